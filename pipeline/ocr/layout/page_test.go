package layout

import (
	"errors"
	"image"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/internal/word"
)

// fakeWords reads the same words in every picture, next to each other on one line.
func fakeWords(g *image.Gray) []word.Raw {
	var words []word.Raw
	texts := []string{"KIND", "36", "INTERNATIONAL", "PROBLEMS"}
	step := g.Rect.Dx() / len(texts)
	for i, text := range texts {
		box := image.Rect(i*step, 0, (i+1)*step-1, g.Rect.Dy())
		words = append(words, word.Raw{Text: text, Confidence: 95, Box: box})
	}
	return words
}

// TestRequests counts how often an engine is asked about an image.
func TestRequests(t *testing.T) {
	nothing := func(*image.Gray) []word.Raw { return nil }
	for name, tt := range map[string]struct {
		decision bool
		img      *image.Gray
		engine   func(*image.Gray) []word.Raw
		want     string // l is a request of lines, p one of the whole page
	}{
		"the page, if no line is found":     {false, image.NewGray(image.Rect(0, 0, 550, 200)), fakeWords, "p"},
		"lines, lines again, then the page": {false, inked(1000, row(4, 40, 20, 8, 30, 25)...), nothing, "lllp"},
		"lines alone":                       {false, rows(4, 8, 30), fakeWords, "l"},
		"the first few, if they decide":     {true, rows(8, 8, 30), fakeWords, "l"},
		"all of them":                       {false, rows(20, 8, 14), fakeWords, "ll"},
	} {
		t.Run(name, func(t *testing.T) {
			all := func(string) bool { return true }
			page := Find(tt.img, Rules{Dictionary: all, DictionaryID: "all", DecisionOnly: tt.decision})
			for range 2 { // a page is not changed by reading it
				asked := ""
				_, err := page.Read(func(pictures []*image.Gray, whole bool) ([][]word.Raw, error) {
					if whole {
						asked += "p"
					} else {
						asked += "l"
					}
					var words [][]word.Raw
					for _, g := range pictures {
						words = append(words, tt.engine(g))
					}
					return words, nil
				})
				testkit.Same(t, "requests", tt.want, asked, err)
			}
		})
	}
}

// TestReadError: an error of the engine ends a reading, wherever it comes.
func TestReadError(t *testing.T) {
	page := Find(inked(1000, row(4, 40, 20, 8, 30, 25)...), Rules{})
	failure := errors.New("no such mode")
	for fails := 1; ; fails++ {
		asked := 0
		words, err := page.Read(func(pictures []*image.Gray, _ bool) ([][]word.Raw, error) {
			asked++
			if asked == fails {
				return nil, failure
			}
			return make([][]word.Raw, len(pictures)), nil
		})
		if asked < fails {
			testkit.Same(t, "an engine that reads nothing", Reading{}, words.Reading(), err)
			break
		}
		if err != failure || asked != fails {
			t.Errorf("request %d fails: %d requests, %v", fails, asked, err)
		}
	}
}

// TestParameters pins what the fingerprint of an engine is made of.
func TestParameters(t *testing.T) {
	want := "method 5; lines @1000 enlarge at most 4; Y ramp 250-180 even 500; M ramp 250-180 even 500; " +
		"Y ramp 20-140 even 500; Y ramp 180-80 even 550; Y ramp 80-200 even 550; Y ramp 90-40 even 550; " +
		"E ramp 250-180 even 500; E ramp 20-140 even 500; C ramp 160-60 even 500; X ramp 20-140 even 500; " +
		"stretched from 16 below 160 but for 1/1000; " +
		"below 24 letters evened by 25 times 4; minimum from 150; ink below 160; letters 6 1/4 wide 4 narrow 10 ink 12%; " +
		"neighbours like 55% gap -33% 110% beside 70%; line of 4 high 3, below 10 of 8; joined -50% 200%, 70-135%; " +
		"under -20% 100%, 80-125%, even 300 600; slants [-500 -350 -200 200 350 500] from 100, 12 in rows of 5 even 500; " +
		"strips 36, marks 2 2 1/1 1/3 1/4, margins 20% 40% 12%, psm 13; " +
		"at most 60, by 20 letters, 3 of a place 60% covered 50%; certain 60 of 4 letters 80%; " +
		"done 92 listed 85% letters 3 70% 80%; noise below 80; below 12 letters of 60 Y @1000 psm 11 invert; " +
		"merge overlap 30% length^0.3 unlisted 80%; agree overlap 50%; words from 50; columns 110% rows 200% 2; line 45%; small 55%, alone 75%, low 140%"
	if got := (Rules{}).Parameters("psm 13", "psm 11 invert"); got != want+"; accept 60" {
		t.Errorf("Parameters() =\n%s\nwant\n%s\n(a change here makes everyone's OCR run again)", got, want+"; accept 60")
	}
	dictionary := Rules{Dictionary: func(string) bool { return true }, DictionaryID: "all"}
	decision := dictionary
	decision.DecisionOnly = true
	all := dictionary.Parameters("psm 13", "psm 11 invert")
	if !strings.HasPrefix(all, want+"; dictionary all; ") {
		t.Errorf("Parameters() with a dictionary =\n%s", all)
	}
	testkit.Same(t, "with the decision alone", all+"; enough at 4 words of 3 letters, 70%, from 60",
		decision.Parameters("psm 13", "psm 11 invert"))
}
