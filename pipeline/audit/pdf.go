package audit

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

var (
	errTooLong = errors.New("it unpacks to too much")
	pdfFilter  = regexp.MustCompile(`/Filter\s*(\[[^\]]*\]|/[A-Za-z0-9]+)`)
)

// inflate unpacks what zlib packed, up to a limit.
func inflate(packed []byte, limit int64) ([]byte, error) {
	z, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(z, limit+1))
	if int64(len(out)) > limit {
		return out[:limit], errTooLong
	}
	return out, err
}

// pdf looks at the streams of a PDF: images as they are, everything else as text. The words on its pages are numbers
// of signs in its fonts, so a PDF without findings is a gap all the same.
func (w walker) pdf(p place, all *io.SectionReader) error {
	body, err := readAll(all, 2*maxImage)
	if err != nil {
		return err
	}
	if bytes.Contains(body, []byte("/Encrypt")) {
		return errors.New("it is an encrypted PDF: save it without a password, and name that")
	}
	rest, left := body, []byte{}
	for n := 1; ; n++ {
		at := bytes.Index(rest, []byte("stream"))
		if at < 0 || n > maxMembers {
			break
		}
		// The dictionary of a stream stands before it, in the same object.
		head := rest[max(0, at-2048):at]
		head = head[max(0, bytes.LastIndex(head, []byte(" obj"))):]
		left = append(left, rest[:at]...)
		data := bytes.TrimPrefix(bytes.TrimPrefix(rest[at+len("stream"):], []byte("\r")), []byte("\n"))
		end := bytes.Index(data, []byte("endstream"))
		if end < 0 {
			break
		}
		rest, data = data[end+len("endstream"):], data[:end]
		if err := w.pdfStream(p.in(fmt.Sprintf("stream %d", n)), head, data); err != nil {
			return err
		}
	}
	left = append(left, rest...)
	if err := w.search(p, left, true, true); err != nil {
		return err
	}
	return errors.New("it is a PDF: its images and plain words were compared, and what its pages show as text cannot be read: look at them")
}

func (w walker) pdfStream(p place, head, data []byte) error {
	filters := ""
	if m := pdfFilter.FindSubmatch(head); m != nil {
		filters = strings.Join(strings.FieldsFunc(string(m[1]), func(r rune) bool { return strings.ContainsRune("[/] \r\n\t", r) }), " ")
	}
	if f, packed := strings.CutPrefix(filters, "FlateDecode"); packed {
		unpacked, err := inflate(data, maxImage)
		if err == nil || len(unpacked) > 0 {
			data, filters = unpacked, strings.TrimSpace(f)
		}
		if err := w.unpacked(int64(len(unpacked))); err != nil {
			return err
		}
	}
	switch {
	// JBIG2, CCITT and the like hold pictures that no kept library decodes.
	case filters != "" && filters != "DCTDecode":
		w.gap("", p.String(), "it is packed as %s, which is not read here", filters)
		return nil
	case filters == "" && bytes.Contains(head, []byte("/Image")):
		w.gap("", p.String(), "an image as bare samples, which is not read here: look at it")
	}
	if filters == "DCTDecode" {
		return w.look(p, section(data))
	}
	return errors.Join(w.search(p, data, true, true), w.carve(p, data))
}
