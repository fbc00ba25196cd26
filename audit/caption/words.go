package caption

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

//go:embed data/common.txt
var common string

// Words says how rare words are, in nats: the logarithm of how many texts there are for each one that has the word.
type Words struct {
	rarity map[string]float64
	rarest float64 // of what is not listed
	enough float64 // what the words of a caption that is found must carry together
}

// Common returns the table that comes with the package, of English words. data/NOTICE names its sources.
func Common() (*Words, error) { return ParseWords(strings.NewReader(common)) }

// ParseWords reads a table: a line a word, with the share of texts that have it, a space between them, from the
// commonest to the rarest. A word that is not listed counts as rare as the last one that is. The line "ENOUGH nats"
// says what the words of a caption that is found must carry together. # begins a comment.
func ParseWords(r io.Reader) (*Words, error) {
	w := &Words{rarity: map[string]float64{}}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if strings.TrimSpace(text) == "" {
			continue
		}
		var name string
		var value float64
		if _, err := fmt.Sscan(text, &name, &value); err != nil {
			return nil, fmt.Errorf("line %d of a table of common words: want a word and its share: %w", n, err)
		}
		if name == "ENOUGH" { // no folded word has capitals
			w.enough = value
			continue
		}
		if !(value > 0 && value <= 1) {
			return nil,
				fmt.Errorf("line %d of a table of common words: the share of %q is %v, want more than 0 and at most 1",
					n, name, value)
		}
		if _, twice := w.rarity[name]; twice {
			return nil, fmt.Errorf("line %d of a table of common words: %q is there twice", n, name)
		}
		w.rarity[name] = -math.Log(value)
		w.rarest = max(w.rarest, w.rarity[name])
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read a table of common words: %w", err)
	}
	if len(w.rarity) == 0 || w.enough <= 0 {
		return nil, errors.New(`a table of common words lists no word, or lacks the line "ENOUGH nats"`)
	}
	return w, nil
}

const latin = 0x24f // the last letter of the Latin alphabets

// of returns how rare a folded word is.
func (w *Words) of(letters string) float64 {
	first, _ := utf8.DecodeRuneInString(letters)
	rarity, listed := w.rarity[letters]
	if !listed {
		rarity = w.rarest
	}
	switch {
	case len(letters) == 1: // one letter numbers things
		return min(rarity, 1)
	case first > latin && utf8.RuneCountInString(letters) <= 3:
		// The table has no words of other alphabets, of which short ones are common, too. In scripts without spaces a
		// letter is about half a word.
		return rarity / 2
	}
	return rarity
}
