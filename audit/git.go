package audit

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
)

// Kinds of files of a git repository. Of its lists only names and digests can be told; loose objects and packs are
// searched.
const (
	gitObject = "a git object"
	gitPack   = "a git pack"
	gitList   = "a list of git"
)

var (
	gitHeader = regexp.MustCompile(`^(blob|tree|commit|tag) [0-9]{1,19}\x00`)
	// gitOwn finds the texts that git itself keeps: their numbers are times and sizes.
	gitOwn = regexp.MustCompile(`(^|/)\.git/(index|config|description|packed-refs|[A-Z_]*HEAD|[A-Z_]*MSG|(refs|logs|hooks|info)/.*|objects/info/.*)$`)
)

// gitLoose reports whether bytes begin as a loose object does.
func gitLoose(head []byte) bool {
	if len(head) < 2 || head[0] != 0x78 {
		return false
	}
	z, err := zlib.NewReader(bytes.NewReader(head))
	if err != nil {
		return false
	}
	start := make([]byte, 32)
	n, _ := io.ReadFull(z, start)
	return gitHeader.Match(start[:n])
}

// gitObject looks at a loose object: what zlib packed, behind a header of its kind and size.
func (w walker) gitObject(p place, all *io.SectionReader) error {
	z, err := zlib.NewReader(bufio.NewReader(io.NewSectionReader(all, 0, all.Size())))
	if err != nil {
		return err
	}
	head := bufio.NewReaderSize(z, 64)
	start, _ := head.Peek(32)
	header := gitHeader.FindSubmatch(start)
	if header == nil {
		return errors.New("it does not begin as a git object")
	}
	kind := string(header[1])
	_, _ = head.Discard(len(header[0]))
	return w.gitContent(p.in("git "+kind), kind, head)
}

// gitContent looks at the content of an object. A tree has names and digests, a delta parts of a content.
func (w walker) gitContent(p place, kind string, r io.Reader) error {
	all, end, err := w.unpack(r)
	w.spawn(func(w walker) {
		defer end.Close()
		switch kind {
		case "tree", "delta":
			w.raw(p, all)
		case "commit", "tag": // their numbers are times
			p.label = true
			w.scan(p, all)
		default:
			w.packed(p, "", all)
		}
	})
	return err
}

// gitPack looks at the objects of a pack, one by one. Of one that is kept as the difference to another, what it adds is
// searched.
func (w walker) gitPack(p place, all *io.SectionReader) error {
	in := bufio.NewReader(io.NewSectionReader(all, 0, all.Size()))
	var head [12]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return err
	}
	count := binary.BigEndian.Uint32(head[8:])
	kinds := map[byte]string{1: "commit", 2: "tree", 3: "blob", 4: "tag", 6: "delta", 7: "delta"}
	for i := range count {
		if i == maxMembers {
			return fmt.Errorf("more than %d objects: the rest were not checked", maxMembers)
		}
		c, err := in.ReadByte()
		kind := c >> 4 & 7
		for err == nil && c >= 0x80 {
			c, err = in.ReadByte()
		}
		switch kind {
		case 6: // behind the distance to its base
			for c = 0x80; err == nil && c >= 0x80; {
				c, err = in.ReadByte()
			}
		case 7:
			_, err = in.Discard(20)
		}
		if err == nil && kinds[kind] == "" {
			err = fmt.Errorf("an object of kind %d", kind)
		}
		if err == nil {
			var z io.ReadCloser
			z, err = zlib.NewReader(in)
			if err == nil {
				err = w.gitContent(p.in(fmt.Sprintf("object %d, a %s", i+1, kinds[kind])), kinds[kind], z)
			}
		}
		if err != nil {
			w.raw(p, all)
			return fmt.Errorf("object %d of %d: %w", i+1, count, err)
		}
		if w.ctx.Err() != nil {
			return w.ctx.Err()
		}
	}
	if rest, _ := io.Copy(io.Discard, in); rest > 32 { // a digest
		w.raw(p, all)
		return fmt.Errorf("%d bytes behind its %d objects", rest, count)
	}
	return nil
}
