package workspace

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"testing"
	"time"

	"rehydrate/manifest"
)

// An image is the same file, the same but for what does not show, the same picture, or another one.
func TestIdentify(t *testing.T) {
	img := image.NewPaletted(image.Rect(0, 0, 24, 16), color.Palette{color.Gray{10}, color.Gray{200}})
	for i := range img.Pix {
		img.Pix[i] = byte(i / 7 % 2)
	}
	var asPNG, fast, asJPEG bytes.Buffer
	for _, err := range []error{png.Encode(&asPNG, img), (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(&fast, img),
		jpeg.Encode(&asJPEG, img, nil)} {
		ok(t, err)
	}
	file := asPNG.String()
	want, err := Identify([]byte(file))
	ok(t, err)
	for _, tt := range []struct {
		name, body             string
		file, stripped, pixels bool
		fault                  bool
	}{
		{name: "itself", body: file, file: true, stripped: true, pixels: true},
		{name: "a byte behind it", body: file + "!", stripped: true, pixels: true},
		{name: "other compression", body: fast.String(), pixels: true},
		{name: "another format", body: asJPEG.String()},
		{name: "cut in half", body: file[:len(file)/2], fault: true},
		{name: "no image", body: "hello", fault: true},
	} {
		got, err := Identify([]byte(tt.body))
		if (err != nil) != tt.fault {
			t.Errorf("%s: error %v", tt.name, err)
		}
		same := [3]bool{got.File == want.File, got.Stripped == want.Stripped, got.Pixels == want.Pixels}
		if same != [3]bool{tt.file, tt.stripped, tt.pixels} || len(got.File) != 64 {
			t.Errorf("%s: %+v, of the picture: %+v", tt.name, got, want)
		}
	}
}

// What is erased of a post that must stay away leaves its digests, until the tombstone is lifted or the image is back.
func TestErasedImages(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(4)...)
	stone := func(id manifest.PostID) Tombstone {
		return Tombstone{Tombstone: manifest.Tombstone{ID: id, State: manifest.StateRemoved, Time: time.Unix(1e9, 0)}}
	}
	images := map[manifest.PostID]Image{}
	for _, id := range []manifest.PostID{"a000", "a001", "a002", "a003"} {
		images[id] = store(t, w, manifest.Key{ID: id}, "image of "+string(id))
	}
	ok(t, w.AddTombstones(ctx, []Tombstone{stone("a000"), stone("a001"), stone("a002")}))
	for id := range images { // a003 only left the manifest
		ok(t, w.Erase(ctx, id))
	}
	if err := w.Erase(ctx, "a000"); err != nil { // once more: nothing is lost
		t.Fatal(err)
	}
	ok(t, w.LiftTombstones(ctx, digestOf(nil), "a001"))
	store(t, w, key("a002"), "back again")
	got, err := w.ErasedImages(ctx)
	img := images["a000"]
	want := []ErasedImage{{Key: key("a000"), Digests: Digests{File: img.OriginalSHA256, Stripped: img.SHA256, Pixels: img.PixelsSHA256}}}
	same(t, "", want, got, err)
}
