package audit

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/draw"
	"io"
	"math/bits"
	"slices"
	"strings"

	"golang.org/x/sync/semaphore"

	"rehydrate/dedupe"
	"rehydrate/internal/picture"
	"rehydrate/manifest"
	"rehydrate/policy"
)

// decoding bounds the memory of the images that are decoded at a time.
var decoding = semaphore.NewWeighted(maxDecoding)

const (
	maxDecoding = 128 << 20
	maxFrames   = 500
	nearBits    = 8  // of 64 that may differ between an image and a copy of it that was made smaller or compressed again
	sureBits    = 4  // of 256, likewise, and no other caption on the same picture: of such pairs 1 % are within
	iconSide    = 64 // pixels
)

// A sighting is what was seen of an image, or of a digest or hash of one.
type sighting struct {
	place
	what     string // empty for an image itself
	digests  []digest
	hashes   []uint64 // of an image, of each frame and for each way it can be turned or mirrored
	wide     *dedupe.Hash256
	side     int    // pixels, the longer one
	fault    string // why its looks are not known
	stored   bool   // it is a file of the workspace
	animated bool   // it has several pictures
	unsure   bool   // what spells it out may not have been read as it was written
}

// image looks at an image: its digests, its looks, and the bytes in it and behind it that are not pixels.
func (w walker) image(p place, all *io.SectionReader) error {
	body, err := readAll(all, p.atOnce(maxImage))
	if err != nil {
		return err
	}
	file := digest(p.src.file.SHA256[:])
	whole := p.path == p.src.where && p.part == "" && p.table == nil
	if !whole { // it is only a part of it
		file = digestOf(body)
	}
	s := &sighting{place: p, digests: []digest{file, file}, stored: p.src.name != "" && p.part == ""}
	// An image of a post that may stay need not be decoded. It is a finding where the record is of one that must go, and
	// in the workspace where a file is not the image on record.
	if w.gone.stays(file) {
		rec := w.storedAs(p)
		misnamed := p.table == nil && p.own != "" && w.evidenceOn(p.own).MustGo
		if misplaced := s.stored && whole && (rec == nil || rec.image != file); misplaced || misnamed ||
			rec != nil && rec.MustGo {
			w.record(s)
		}
		return nil
	}
	defer w.record(s)
	inner := w
	inner.depth++ // segments can hold whole archives, so they count as a container
	stripped, malformed := picture.Split(body, picture.Format(body), func(name string, b []byte) {
		if len(bytes.Trim(b, "\x00 ")) > 0 {
			part := p.in(name)
			// Too short for a text, as the header of every JFIF is, or the next row of a table, which was looked at.
			part.label = len(b) < minEncoded || ofCameras(b) || p.text && name == picture.Behind
			part.again = part.label // a camera's picture of the picture
			inner.scan(part, section(b))
		}
	})
	if malformed != nil {
		s.digests[1] = digest{}
	} else if !bytes.Equal(stripped, body) { // files of a dataset are equal
		s.digests[1] = digestOf(stripped)
	}
	if err := w.matchLooks(s, body); err != nil {
		return err
	}
	if malformed != nil {
		s.fault = cmp.Or(s.fault, malformed.Error())
		w.raw(p, all)
	}
	return nil
}

// ofCameras reports whether a segment is one that cameras and programs write into every image: bytes, and not of an
// unknown kind.
func ofCameras(segment []byte) bool {
	return slices.ContainsFunc([]string{"Exif\x00", "ICC_PROFILE\x00", "JFIF\x00", "JFXX\x00", "Adobe\x00",
		"Ducky\x00", "MPF\x00", "Photoshop 3.0\x00",
		"II*\x00", "MM\x00*"}, func(mark string) bool { return bytes.HasPrefix(segment, []byte(mark)) }) ||
		len(segment) > 40 && string(segment[36:40]) == "acsp" // a profile of colours
}

// matchLooks decodes an image and takes its hashes. An image that cannot be decoded matches nothing: fault says why.
func (w walker) matchLooks(s *sighting, body []byte) error {
	// The header is judged before anything is decoded, as an image can claim terabytes, and not by the limits of the
	// release: they choose what is kept, and what is looked at must not depend on them.
	info, fault := policy.Default().InspectImage(body)
	s.side = max(info.Width, info.Height)
	if fault != nil {
		if fault.Outcome != manifest.Placeholder {
			s.fault = string(fault.Reason)
		}
		return nil
	}
	// Two huge images at once on each core would break the bound of memory.
	memory := min(info.DecodedBytes, maxDecoding)
	if err := decoding.Acquire(w.ctx, memory); err != nil {
		return err
	}
	defer decoding.Release(memory)
	parts := [][]byte{body}
	var screen *image.NRGBA // of a GIF of several pictures
	if info.Format == "gif" {
		if pictures := picture.GIFPictures(body); len(pictures) > 2 {
			parts, screen = pictures, image.NewNRGBA(image.Rect(0, 0, info.Width, info.Height))
		}
	}
	if len(parts) > 2*maxFrames {
		s.fault = fmt.Sprintf("it has %d pictures, and at most %d are compared", len(parts)/2, maxFrames)
		return nil
	}
	s.animated = picture.Animated(body, info.Format)
	frame := s
	for n, part := range parts {
		img, err := picture.Decode(part)
		if err != nil {
			if screen == nil {
				s.fault = fmt.Sprintf("the %s is damaged (%v)", strings.ToUpper(info.Format), err)
			}
			continue
		}
		// A picture of a GIF covers what was shown before, except where it is transparent.
		if screen != nil && n%2 == 0 {
			draw.Draw(screen, img.Bounds(), img, img.Bounds().Min, draw.Over)
			img = screen
		}
		if n > 0 {
			frame = &sighting{place: s.in(fmt.Sprintf("picture %d", n+1))}
			defer w.record(frame)
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
		near, _ := nearest(w.gone.looks[true], frame.hashes)
		if near != nil {
			if wide, err := dedupe.HashImage256(img); err == nil {
				frame.wide = &wide
			}
		}
		if near != nil || w.gone.pixels {
			frame.digests = append(frame.digests, parseDigest(picture.PixelDigest(picture.Upright(img, body))))
		}
	}
	if bytes.Contains(body[:min(len(body), 256)], []byte("acTL")) {
		s.fault = "it is animated, and only its first picture was compared"
	}
	return nil
}

// nearest returns the entry with the hash closest to one of hashes, of equals the first by name; nil for none.
func nearest(list []clue[uint64], hashes []uint64) (best *known, apart int) {
	apart = nearBits + 1
	for _, l := range list {
		for _, h := range hashes {
			d := bits.OnesCount64(l.is ^ h)
			if d < apart || d == apart && best != nil && l.of.name < best.name {
				best, apart = l.of, d
			}
		}
	}
	return best, apart
}
