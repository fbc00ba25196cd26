package layout

import (
	"image"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/internal/word"
)

// A test's dictionary: the words of the list in any case, without the marks around them.
func testLexicon(list string) lexicon {
	words := strings.Fields(list)
	return lexicon{id: "test", knows: func(word string) bool {
		for _, w := range words {
			if bare(word) == w {
				return true
			}
		}
		return false
	}}
}

func TestSplit(t *testing.T) {
	l := testLexicon("IT HAS HASTE TODAY TO DIE FROM OUR FRIENDS DADDY GLOB LIST DEMON ZING CAUSE INTO IN THE DON'T DONT ASK HEALTHCARE")
	for _, tt := range []struct{ in, want string }{
		{"ITHAS", "IT HAS"},
		{"intheFRIENDS", "in the FRIENDS"},
		{"“ITHAS...”", "“IT HAS...”"},
		{"friends,to", "friends, to"},
		{"INTO", ""},          // a word of the dictionary
		{"GLOBALIST", ""},     // a single letter stands at an end only
		{"DEMONIZING", ""},    // so does that of a name that begins with a word
		{"DADDYDADDY", ""},    // no function word
		{"HECAUS", ""},        // not to the end
		{"DIEFROM", ""},       // DIE has three letters and is no function word
		{"IHASTE", "I HASTE"}, // a single letter, at the start
		{"don'tTODAY", "don't TODAY"},
		{"ITHAS2", ""}, // a digit
		{"IT-HAS", ""}, // a hyphen joins on purpose
		{"ISIT", "IS IT"},
		{"AMI", ""},    // too short to be sure
		{"ÉTÉTHE", ""}, // other letters
		{strings.Repeat("THE", 17), ""},
		{strings.Repeat("THE", 6), ""}, // six pieces
		{"", ""},
	} {
		got := l.split(tt.in, nil)
		if strings.Join(got, " ") != tt.want {
			t.Errorf("split(%q) = %q, want %q", tt.in, got, tt.want)
		}
		if got != nil && strings.Join(got, "") != tt.in {
			t.Errorf("split(%q) = %q: the pieces do not make up the word", tt.in, got)
		}
	}
}

func TestMend(t *testing.T) {
	l := testLexicon("IT HAS FEEL")
	raw := func(line int, text string, confidence float64, x0, x1, high int) word.Raw {
		return word.Raw{Text: text, Confidence: confidence, Box: image.Rect(x0, 0, x1, high), Line: line}
	}
	for _, tt := range []struct {
		name string
		in   []word.Raw
		want string
	}{
		{"a stroke before a word is I", []word.Raw{raw(1, "|", 40, 0, 5, 20), raw(1, "FEEL", 90, 10, 50, 20)}, "I FEEL"},
		{"so is what looks like one", []word.Raw{raw(1, "1.", 84, 0, 5, 20), raw(1, "FEEL", 90, 10, 50, 20)}, "I FEEL"},
		{"but not what was read well", []word.Raw{raw(1, "1", 85, 0, 5, 20), raw(1, "FEEL", 90, 10, 50, 20)}, "1 FEEL"},
		{"at the end it is a stroke", []word.Raw{raw(1, "FEEL", 90, 10, 50, 20), raw(1, "|", 40, 60, 65, 20)}, "FEEL |"},
		{"on another line", []word.Raw{raw(1, "|", 40, 0, 5, 20), raw(2, "FEEL", 90, 10, 50, 20)}, "| FEEL"},
		{"before noise", []word.Raw{raw(1, "|", 40, 0, 5, 20), raw(1, "xqz", 90, 10, 50, 20)}, "| xqz"},
		{"before an unsure word", []word.Raw{raw(1, "|", 40, 0, 5, 20), raw(1, "FEEL", 69, 10, 50, 20)}, "| FEEL"},
		{"a rule, much higher than the word", []word.Raw{raw(1, "|", 40, 0, 5, 60), raw(1, "FEEL", 90, 10, 50, 20)},
			"| FEEL"},
		{"I am, whose letters touch", []word.Raw{raw(1, "“Lam", 80, 0, 40, 20)}, "“I am"},
		{"on the lam", []word.Raw{raw(1, "the", 80, 0, 40, 20), raw(1, "lam", 80, 50, 90, 20)}, "the lam"},
		{"several words read as one", []word.Raw{raw(1, "ITHAS", 80, 0, 100, 20)}, "IT HAS"},
	} {
		var got []string
		for _, w := range slices.Concat(l.mend(tt.in, nil)...) {
			got = append(got, w.Text)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: mend = %q, want %q", tt.name, got, tt.want)
		}
	}
	want := []word.Raw{raw(1, "IT", 80, 0, 40, 20), raw(1, "HAS", 80, 40, 100, 20)}
	testkit.Same(t, "pieces", [][]word.Raw{want}, l.mend([]word.Raw{raw(1, "ITHAS", 80, 0, 100, 20)}, nil))
	if got := (lexicon{}).mend([]word.Raw{raw(1, "ITHAS", 80, 0, 100, 20)}, nil); len(got[0]) != 1 {
		t.Errorf("without a dictionary mend = %v, want the words as they are", got)
	}
}

func TestAccepts(t *testing.T) {
	l := testLexicon("WORD TWO-FACED")
	type bars struct{ confidence, agreed float64 }
	for _, tt := range []struct {
		text            string
		beside, without bars
	}{
		{"WORD", bars{0, 0}, bars{60, 0}},
		{"“word,”", bars{0, 0}, bars{60, 0}},
		{"of", bars{50, 40}, bars{70, 40}},
		{"I", bars{60, 40}, bars{80, 60}},
		{"a", bars{60, 40}, bars{80, 60}},
		{"2020", bars{80, 80}, bars{90, 85}},
		{"B4", bars{80, 80}, bars{90, 85}},
		{"Xyzzy", bars{85, 75}, bars{90, 80}},
		{"XQ", bars{85, 75}, bars{90, 80}},
		{"ÑÑÑ", bars{85, 75}, bars{90, 80}},
		{"Q", bars{95, 95}, bars{98, 98}},
	} {
		for beside, bar := range map[bool]bars{true: tt.beside, false: tt.without} {
			for _, c := range []struct {
				confidence   float64
				agreed, want bool
			}{
				{bar.confidence, false, true}, {bar.confidence - .1, false, false},
				{bar.agreed, true, true}, {bar.agreed - .1, true, false},
			} {
				w := candidate{Raw: word.Raw{Text: tt.text, Confidence: c.confidence}, agreed: c.agreed}
				if got := l.accepts(w, beside); got != c.want {
					t.Errorf("accepts(%s at %v, agreed %v, beside a sure word %v) = %v, want %v", tt.text, c.confidence,
						c.agreed, beside, got, c.want)
				}
			}
		}
	}
	for confidence, want := range map[float64]bool{60: true, 59.9: false} {
		if got := (lexicon{}).accepts(candidate{Raw: word.Raw{Text: "WORD", Confidence: confidence}}, false); got != want {
			t.Errorf("without a dictionary accepts(%v) = %v, want %v", confidence, got, want)
		}
	}
}

// One sure word carries the others of its line, but not itself.
func TestCompanyOfSureWords(t *testing.T) {
	l := testLexicon("WORD NOISE")
	listed := func(line int, text string, confidence float64, y int) candidate {
		w := newWord(0, line, text, confidence, 10*len(text), y, 10*len(text)+9, y+10)
		w.listed = true
		return w
	}
	r := newReading([]candidate{
		listed(1, "WORD", 66, 0), listed(1, "NOISE", 1, 0), // carried by the word
		listed(2, "NOISE", 59, 50), // by itself
	}, image.Point{}, l)
	if want := "WORD NOISE"; r.Text != want {
		t.Errorf("Text = %q, want %q", r.Text, want)
	}
}
