package userfile

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestMark: one byte order mark is passed over at the beginning of a text, and at no other place.
func TestMark(t *testing.T) {
	for in, want := range map[string]string{
		"\ufeffa,b\n":   "a,b\n",
		"\ufeff":        "",
		"":              "",
		"a":             "a",
		"a\ufeffb":      "a\ufeffb",
		"\ufeff\ufeffa": "\ufeffa",
		"\xef\xbb":      "\xef\xbb",
		"\xff\xfea\x00": "\xff\xfea\x00", // UTF-16, of which the mark is a part
	} {
		if got := Unmarked([]byte(in)); string(got) != want {
			t.Errorf("Unmarked(%q) = %q, want %q", in, got, want)
		}
		for _, r := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in))} {
			if got, err := io.ReadAll(Text(r)); err != nil || string(got) != want {
				t.Errorf("Text(%q) = %q, %v, want %q", in, got, err, want)
			}
		}
	}
	broken := errors.New("disk gone")
	if got, err := io.ReadAll(Text(io.MultiReader(strings.NewReader("\xef"),
		iotest.ErrReader(broken)))); string(got) != "\xef" || !errors.Is(err, broken) {
		t.Errorf("Text of a broken file = %q, %v", got, err)
	}
}
