package audit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"io"
	"iter"
	"math/bits"
	"strings"

	"golang.org/x/sync/semaphore"

	"rehydrate/dedupe"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// decoding bounds the memory of the images that are decoded at a time.
var decoding = semaphore.NewWeighted(maxDecoding)

const (
	maxDecoding = 128 << 20
	maxFrames   = 500
)

// A sighting is what was seen of an image, or of a digest or hash of one.
type sighting struct {
	place
	what    string // empty for an image itself
	digests []string
	hashes  []uint64 // of an image, of each frame and for each way it can be turned or mirrored
	fault   string   // why its looks are not known
	stored  bool     // it is a file of the workspace
}

// image looks at an image: its digests, its looks, and the bytes in it and behind it that are not pixels.
func (w walker) image(p place, all *io.SectionReader) error {
	body, err := readAll(all, maxImage)
	if err != nil {
		return err
	}
	s := &sighting{place: p, stored: p.src.name != "" && p.part == ""}
	s.digests = []string{p.src.file.SHA256}
	if p.path != p.src.where || p.part != "" || p.table != nil {
		s.digests[0] = state.SHA256(body)
	}
	defer w.saw(s)
	// An image of a post that may stay need not be decoded.
	if w.gone.staying[s.digests[0]] {
		return nil
	}
	format := policy.ImageFormat(body)
	digest := ""
	if stripped, err := workspace.Strip(body, format); err == nil {
		digest = state.SHA256(stripped)
	}
	s.digests = append(s.digests, digest)
	if err := w.looks(s, body); err != nil {
		return err
	}
	// Segments can hold whole archives, so they count as a container.
	w.depth++
	for _, part := range imageParts(body, format) {
		if w.depth > maxDepth || len(bytes.Trim(part.bytes, "\x00 ")) == 0 {
			continue
		}
		if err := w.look(p.in(part.name), section(part.bytes)); err != nil {
			return err
		}
	}
	return nil
}

// looks decodes an image and takes its hashes. An image that cannot be decoded matches nothing: fault says why.
func (w walker) looks(s *sighting, body []byte) error {
	p := w.policy
	// The release's limits choose what is kept. What is looked at must not depend on them.
	p.Images = policy.Default().Images
	// The header is judged before anything is decoded: an image can claim terabytes.
	info, fault := p.InspectImage(body)
	switch {
	case fault != nil && fault.Outcome == manifest.Placeholder:
		return nil
	case fault != nil:
		s.fault = string(fault.Reason)
		return nil
	}
	// Two huge images at once on each core would break the bound of memory.
	memory := min(info.DecodedBytes, maxDecoding)
	if err := decoding.Acquire(w.ctx, memory); err != nil {
		return err
	}
	defer decoding.Release(memory)
	frames, err := frames(body, info)
	if err != nil {
		s.fault = err.Error()
	}
	frame := s
	for n, img := range frames {
		if n > 0 {
			frame = &sighting{place: s.in(fmt.Sprintf("picture %d", n+1))}
			defer w.saw(frame)
		}
		h, err := dedupe.HashTurned(img)
		if err != nil {
			s.fault = err.Error()
			break
		}
		for _, h := range h {
			// Pictures of one colour all look alike.
			if !h.Flat {
				frame.hashes = append(frame.hashes, h.Bits)
			}
		}
		// Equal pixels look equal: the digest decides where looks are not known, or close.
		if near, _ := nearest(w.gone.gone, frame.hashes); near != nil || w.gone.pixels {
			frame.digests = append(frame.digests, policy.PixelDigest(policy.Upright(img, body)))
		}
	}
	if bytes.Contains(body[:min(len(body), 256)], []byte("acTL")) {
		s.fault = "it is animated, and only its first picture was compared"
	}
	return nil
}

// frames yields the pictures of an image: of an animated GIF each, as viewers show it.
func frames(body []byte, info policy.ImageInfo) (iter.Seq2[int, image.Image], error) {
	if info.Format == "gif" {
		parts, _, _ := gifFrames(body)
		if len(parts) > 2*maxFrames {
			return func(func(int, image.Image) bool) {}, fmt.Errorf("it has %d pictures, and at most %d are compared", len(parts)/2, maxFrames)
		}
		if len(parts) > 2 {
			return func(yield func(int, image.Image) bool) {
				shown := image.NewNRGBA(image.Rect(0, 0, info.Width, info.Height))
				for n, part := range parts {
					img, err := policy.DecodeImage(part)
					if err != nil {
						continue
					}
					// A picture covers what was shown before, except where it is transparent.
					if n%2 == 0 {
						draw.Draw(shown, img.Bounds(), img, img.Bounds().Min, draw.Over)
						img = shown
					}
					if !yield(n, img) {
						return
					}
				}
			}, nil
		}
	}
	img, err := policy.DecodeImage(body)
	return func(yield func(int, image.Image) bool) {
		if err == nil {
			yield(0, img)
		}
	}, err
}

// gifFrames returns each picture of a GIF as a GIF of its own, on the screen and by itself, the comments, and where the last block ends.
func gifFrames(b []byte) (frames, comments [][]byte, end int) {
	table := func(at int) int {
		if at < len(b) && b[at]&0x80 != 0 {
			return 3 << (b[at]&7 + 1)
		}
		return 0
	}
	head := 13 + table(10)
	control := []byte{}
	i := head
	for i+1 < len(b) {
		from, data := i, i+2
		picture := b[i] == 0x2c
		switch {
		case picture:
			data = i + 10 + table(i+9) + 1
		case b[i] != 0x21:
			return frames, comments, i
		}
		text := []byte{}
		for data < len(b) && b[data] != 0 {
			next := data + 1 + int(b[data])
			text = append(text, b[data+1:max(data+1, min(next, len(b)))]...)
			data = next
		}
		i = min(data+1, len(b))
		switch {
		case picture:
			one := bytes.Join([][]byte{b[:head], control, b[from:i], {0x3b}}, nil)
			alone, at := bytes.Clone(one), head+len(control)
			// As large as the picture itself, which may cover a part of the screen.
			if len(one) > at+9 {
				copy(alone[6:10], one[at+5:at+9])
				clear(alone[at+1 : at+5])
			}
			frames, control = append(frames, one, alone), nil
		case b[from+1] == 0xf9:
			control = b[from:i]
		case !bytes.HasPrefix(text, []byte("NETSCAPE2.0")): // how often it plays
			comments = append(comments, text)
		}
	}
	return frames, comments, i
}

// A part is bytes of an image that are not its pixels.
type part struct {
	name  string
	bytes []byte
}

// imageParts returns segments, chunks, comments, and what follows the end of an image.
func imageParts(b []byte, format string) (parts []part) {
	add := func(name string, from, to int) {
		if from < to && to <= len(b) {
			parts = append(parts, part{name, b[from:to]})
		}
	}
	switch format {
	case "jpeg":
		for i := 2; i+4 <= len(b); {
			marker, n := b[i+1], 2+int(binary.BigEndian.Uint16(b[i+2:]))
			switch {
			case b[i] != 0xff || marker == 0 || marker == 0xff || marker >= 0xd0 && marker <= 0xd7: // pixels
				i++
				continue
			case marker == 0xd9:
				add("bytes behind the image", i+2, len(b))
				return parts
			case marker >= 0xe0 && marker <= 0xef || marker == 0xfe:
				add(fmt.Sprintf("segment %02x", marker), i+4, min(i+n, len(b)))
			}
			i += n
		}
	case "png":
		for i := 8; i+12 <= len(b); {
			n, kind := int(binary.BigEndian.Uint32(b[i:])), string(b[i+4:i+8])
			if n < 0 || n > len(b)-i-12 {
				break
			}
			if !strings.Contains("IHDR PLTE IDAT IEND tRNS fdAT", kind) {
				parts = append(parts, pngText(kind, b[i+8:i+8+n]))
			}
			i += 12 + n
			if kind == "IEND" {
				add("bytes behind the image", i, len(b))
				break
			}
		}
	case "gif":
		_, comments, end := gifFrames(b)
		for _, text := range comments {
			parts = append(parts, part{"comment", text})
		}
		add("bytes behind the image", end+1, len(b))
	case "webp":
		end := min(int(binary.LittleEndian.Uint32(b[4:]))+8, len(b))
		for i := 12; i+8 <= end; {
			n := int(binary.LittleEndian.Uint32(b[i+4:]))
			if kind := string(b[i : i+4]); !strings.Contains("VP8 VP8L VP8X ANIM ANMF ALPH", kind) && n <= end-i-8 {
				add("chunk "+kind, i+8, i+8+n)
			}
			i += 8 + n + n%2
		}
		add("bytes behind the image", end, len(b))
	}
	return parts
}

// pngText returns a chunk of a PNG; the text of one that is compressed is unpacked.
func pngText(kind string, data []byte) part {
	if kind == "zTXt" || kind == "iTXt" || kind == "iCCP" {
		if at := bytes.IndexByte(data, 0x78); at > 0 {
			if text, err := inflate(data[at:], maxHeld); len(text) > 0 && (err == nil || errors.Is(err, errTooLong)) {
				return part{"chunk " + kind, append(bytes.Clone(data[:at]), text...)}
			}
		}
	}
	return part{"chunk " + kind, data}
}

// nearBits is how many of the 64 bits may differ between an image and a copy of it that was made
// smaller or compressed again.
const nearBits = 8

// nearest returns the entry with the hash closest to one of hashes, of equals the first by name; nil for none.
func nearest(list []*known, hashes []uint64) (best *known, apart int) {
	apart = nearBits + 1
	for _, k := range list {
		for _, have := range k.hashes {
			for _, h := range hashes {
				d := bits.OnesCount64(have ^ h)
				if d < apart || d == apart && best != nil && k.name < best.name {
					best, apart = k, d
				}
			}
		}
	}
	return best, apart
}
