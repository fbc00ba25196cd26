package models

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"sync"

	"golang.org/x/image/draw"

	"rehydrate/internal/picture"
	"rehydrate/pipeline/workspace"
	"rehydrate/study/endpoint"
)

// Pictures reads the pictures of rows as they are sent: a JPEG that stands upright as it is stored, everything else as
// PNG, the first frame, upright and over white. It is safe for concurrent use.
type Pictures struct {
	Store   Store
	MaxSide int // pixels; a larger picture is made smaller; 0 for none

	decoding sync.Mutex // one picture at a time: a large one takes 200 MB
}

// How says how pictures are prepared, for records of what was sent.
func (p *Pictures) How() string {
	how := "upright JPEG as stored, else PNG of the first frame, upright, over white"
	if p.MaxSide > 0 {
		how += fmt.Sprintf("; the longer side at most %d pixels", p.MaxSide)
	}
	return how
}

// Read reads the picture of a row. The error of one that is not there is *workspace.Damaged.
func (p *Pictures) Read(ctx context.Context, rec workspace.Record) (picture endpoint.Image, err error) {
	err = p.Store.Read(ctx, func(ws *workspace.Workspace) (err error) {
		picture, err = p.readFrom(ctx, ws, rec)
		return err
	})
	return picture, err
}

// readFrom is Read in an open workspace.
func (p *Pictures) readFrom(ctx context.Context, ws *workspace.Workspace, rec workspace.Record) (endpoint.Image,
	error) {
	body, err := ws.ReadImage(ctx, rec.Key, *rec.Image)
	if err != nil {
		return endpoint.Image{}, err
	}
	p.decoding.Lock()
	defer p.decoding.Unlock()
	out, err := prepare(body, rec.Image.Format, p.MaxSide)
	if err != nil {
		return out, fmt.Errorf("prepare the picture of %s: %w", rec.Key, err)
	}
	return out, nil
}

func prepare(body []byte, format string, most int) (endpoint.Image, error) {
	img, err := picture.Decode(body)
	if err != nil {
		return endpoint.Image{}, err
	}
	upright := picture.Upright(picture.AsLibwebp(img, body), body)
	size := upright.Bounds().Size()
	longer := max(size.X, size.Y)
	if format == "jpeg" && upright == img && (most == 0 || longer <= most) {
		return endpoint.Image{Type: "image/jpeg", Data: body}, nil
	}
	white := picture.OverWhite(upright)
	if most > 0 && longer > most {
		small := image.NewRGBA(image.Rect(0, 0, max(size.X*most/longer, 1), max(size.Y*most/longer, 1)))
		draw.CatmullRom.Scale(small, small.Rect, white, white.Rect, draw.Src, nil)
		white = small
	}
	var b bytes.Buffer
	if err := png.Encode(&b, white); err != nil {
		return endpoint.Image{}, err
	}
	return endpoint.Image{Type: "image/png", Data: b.Bytes()}, nil
}

// pictureTokens estimates what a picture costs: one token for 28 by 28 pixels, about as Qwen3-VL and Claude count.
func (p *Pictures) tokens(img workspace.Image) int {
	width, height := img.Width, img.Height
	if longer := max(width, height); p.MaxSide > 0 && longer > p.MaxSide {
		width, height = width*p.MaxSide/longer, height*p.MaxSide/longer
	}
	return width*height/(28*28) + 1
}
