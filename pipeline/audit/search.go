package audit

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// scanText searches any bytes for texts that must be gone, for images within pages and JSON and, unless the file is
// one that may name posts, for ids of such posts. Bytes that are not text are a gap.
func (a *audit) scanText(ctx context.Context, t thing, r io.ReaderAt) error {
	ids, binary := !a.mayName(t.name), false
	block := make([]byte, min(scanBlock+scanOverlap, max(t.size, 1)))
	// Neighbouring blocks overlap, so that a text across the border is whole in one of them.
	for at := int64(0); at < t.size; at += scanBlock {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.ReadAt(block[:min(int64(len(block)), t.size-at)], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		a.search(t, r, at, block[:n], ids)
		binary = binary || bytes.ContainsFunc(block[:n], noText)
	}
	if binary && !a.isOurs(t) {
		return errors.New("unknown binary format: only searched for plain text")
	}
	return nil
}

// noText reports whether a character does not occur in text: UTF-16, compressed and other binary files have them.
func noText(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\v' && r != '\f' && r != '\r' && r != '\b' && r != '\x1b'
}

// isOurs reports whether a binary file is expected: a database whose rows were checked, or an unfinished file.
func (a *audit) isOurs(t thing) bool {
	return t.database || t.name != "" && strings.Contains(t.name, "/.tmp-")
}

// mayName reports whether a file of the workspace may name posts that are gone, as lists of outcomes do.
func (a *audit) mayName(name string) bool {
	switch {
	case name == manifest.OutcomesName, name == manifest.TombstonesName, name == workspace.ReportName, strings.HasPrefix(name, state.AuditDir+"/"):
		return true
	}
	return a.stored.dataset[name] != ""
}

var (
	imageTag = regexp.MustCompile(`<img [^>]*>`)
	inBase64 = regexp.MustCompile(`[A-Za-z0-9+/]{160,}=*`)
)

// search searches a block of a file that begins at byte at.
func (a *audit) search(t thing, r io.ReaderAt, at int64, block []byte, ids bool) {
	if len(a.gone.texts) > 0 {
		folded := fold(block)
		for text, k := range a.gone.texts {
			if bytes.Contains(folded, []byte(text)) {
				a.finding(FoundText, k.name, t.where, "text read off %s, which must be gone: %s", k.name, a.posts[k.id].why())
			}
		}
		for _, l := range a.gone.lines {
			if bytes.Contains(folded, l.line) {
				a.finding(FoundText, l.of.name, t.where, "text read off %s, which must be gone: %s", l.of.name, a.posts[l.of.id].why())
			}
		}
	}
	for _, tag := range imageTag.FindAll(block, -1) {
		a.searchIDs(t, inBase64.ReplaceAll(tag, []byte(" ")), true, FoundImage, "an image named after a post that must be gone")
	}
	for _, m := range inBase64.FindAllIndex(block, -1) {
		a.searchBase64(t, r, at, block, m)
	}
	if ids {
		whole := at == 0 && int64(len(block)) == t.size
		a.searchIDs(t, block, whole, FoundRow, "it names a post that must be gone")
	}
}

// searchBase64 judges an image within a page or a line of JSON.
func (a *audit) searchBase64(t thing, r io.ReaderAt, at int64, block []byte, m []int) {
	text := block[m[0]:m[1]]
	head, err := base64.StdEncoding.DecodeString(string(text[:160]))
	if err != nil || policy.ImageFormat(head[:min(len(head), policy.SniffBytes)]) == "" {
		return
	}
	// The block ends within the image: it is read again, to its own end.
	if m[1] == len(block) && at+int64(len(block)) < t.size {
		text, err = readAll(io.NewSectionReader(r, at+int64(m[0]), min(t.size-at-int64(m[0]), maxAuditImage)), min(t.size-at-int64(m[0]), maxAuditImage), maxAuditImage)
		if err != nil {
			return // the next block fails in the same way
		}
		text = inBase64.Find(text)
	}
	text = bytes.TrimRight(text, "=")
	body := make([]byte, base64.RawStdEncoding.DecodedLen(len(text)))
	n, _ := base64.RawStdEncoding.Decode(body, text) // an error at its end does not matter
	body = body[:n]
	if k, how := a.imageKnown(t.where, body, ""); k != nil {
		a.finding(FoundImage, k.name, t.where, "the image of %s (%s), which must be gone: %s", k.name, how, a.posts[k.id].why())
	}
}

// searchIDs searches for ids of posts that must be gone. whole says that the block is the whole text.
func (a *audit) searchIDs(t thing, block []byte, whole bool, kind FindingKind, what string) {
	for at := 0; at < len(block); {
		end := at
		for end < len(block) && isIDByte(block[end]) {
			end++
		}
		// A word at the edge of a block may be cut off: the neighbouring block has all of it.
		if n := end - at; n >= 4 && n <= 13 && (whole || at > 0 && end < len(block)) {
			if e := a.posts[manifest.PostID(bytes.ToLower(block[at:end]))]; e != nil && e.MustGo {
				a.finding(kind, string(e.ID), t.where, "%s: %s", what, e.why())
			}
		}
		at = end + 1
	}
}

func isIDByte(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// fold makes texts comparable in any format: it keeps letters and digits, in lower case, and puts one space for
// everything between them, escapes of JSON and HTML included.
func fold(text []byte) []byte {
	out := make([]byte, 0, len(text))
	gap := false
	for i := 0; i < len(text); {
		if n := escape(text[i:]); n > 0 {
			i, gap = i+n, true
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		i += n
		if r == utf8.RuneError || !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			gap = true
			continue
		}
		if gap && len(out) > 0 {
			out = append(out, ' ')
		}
		out, gap = utf8.AppendRune(out, unicode.ToLower(r)), false
	}
	return out
}

var escaped = regexp.MustCompile(`^(?:\\u[0-9a-fA-F]{4}|\\.|&#?[0-9A-Za-z]{1,8};)`)

// escape returns the length of the escape that a text begins with, 0 for none.
func escape(text []byte) int {
	if text[0] != '\\' && text[0] != '&' {
		return 0
	}
	return len(escaped.Find(text[:min(len(text), 12)]))
}
