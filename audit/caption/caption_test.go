package caption

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// captions returns an index of testdata/captions.txt.
func captions(t testing.TB) *Index[string] {
	t.Helper()
	b := New[string](tableOf(t, ""))
	text, err := os.ReadFile("testdata/captions.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.SplitN(strings.TrimSpace(line), "\t", 3); len(f) == 3 {
			b.Add(f[0], strings.ReplaceAll(f[2], " / ", "\n"), f[1] == "removed")
		}
	}
	return b.Build()
}

func owners(hits []Hit[string]) (all []string) {
	for _, h := range hits {
		all = append(all, h.Owner)
	}
	return all
}

func filesIn(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", dir, "*"))
	if err != nil || len(names) == 0 {
		t.Fatal("no files in testdata: ", err)
	}
	all := map[string][]byte{}
	for _, name := range names {
		all[filepath.Base(name)], err = os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestFound: each file of testdata/found has the caption of the owner that it is named after, and no other one.
func TestFound(t *testing.T) {
	x := captions(t)
	for name, text := range filesIn(t, "found") {
		t.Run(name, func(t *testing.T) {
			want, _, _ := strings.Cut(name, ".")
			if diff := cmp.Diff([]string{want}, owners(x.Find(text))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestInnocent: no file of testdata/innocent has a caption of a removed post.
func TestInnocent(t *testing.T) {
	x := captions(t)
	for name, text := range filesIn(t, "innocent") {
		t.Run(name, func(t *testing.T) {
			if hits := x.Find(text); len(hits) > 0 {
				t.Errorf("found %+v", hits)
			}
		})
	}
}

// TestBlocks: how a text is cut into pieces changes nothing.
func TestBlocks(t *testing.T) {
	x := captions(t)
	for name, text := range filesIn(t, "found") {
		want := x.Find(text)
		for _, size := range []int{1, 2, 3, 7, 64, 1000} {
			text, piece := text, x.NewText()
			for len(text) > 0 {
				n := min(size, len(text))
				if _, err := piece.Write(text[:n]); err != nil {
					t.Fatal(err)
				}
				text = text[n:]
			}
			if diff := cmp.Diff(want, piece.End()); diff != "" {
				t.Errorf("%s in pieces of %d bytes: %s", name, size, diff)
			}
		}
	}
}

// TestCells: the words of a column are one text, whatever stands in the other columns, and the hit names its row.
func TestCells(t *testing.T) {
	x := captions(t)
	column := x.NewText()
	const caption = "WHEN YOU FINALLY find your|keys after tearing the whole apartment apart and they were in the fridge"
	rows := append([]string{"text", "", "42"}, strings.Fields(caption)...)
	for row, cell := range rows {
		column.Cell(int64(row), []byte(strings.ReplaceAll(cell, "|", " ")))
	}
	want := []Hit[string]{{Owner: "keys", Words: 18, Of: 18, At: 3, Word: 1}}
	if diff := cmp.Diff(want, column.End()); diff != "" {
		t.Error(diff)
	}
	column.Cell(0, []byte("ducks"))
	if hits := column.End(); len(hits) > 0 {
		t.Errorf("the next text has %v of the one before", hits)
	}
}

// TestPlace: a hit says how much of the caption there is, and where it begins.
func TestPlace(t *testing.T) {
	text := "Überschrift <b>1</b> — lost &\nWeather app promised sun and delivered a flood"
	got := captions(t).Find([]byte(text))
	want := []Hit[string]{{Owner: "weather", Words: 8, Of: 9, At: int64(strings.Index(text, "Weather")), Word: 2}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestOnce: a caption that a text has twice is found once, where it is first.
func TestOnce(t *testing.T) {
	text := strings.Repeat("my neighbour at 3 am teaching his ducks to march. ", 40)
	got := captions(t).Find([]byte(text))
	if len(got) != 1 || got[0].At != 0 || got[0].Words != 9 {
		t.Errorf("found %+v", got)
	}
}

// TestRivals: a text is that of the post that stays if it has more of that one's caption, as of one that goes on.
func TestRivals(t *testing.T) {
	const short = "the goose testified for both sides of the lawsuit"
	const long = short + " while the salmon took notes and my lawn mower wept quietly behind the buffet"
	b := New[int](tableOf(t, ""))
	b.Add(1, short, true)
	b.Add(2, long, false)
	x := b.Build()
	if hits := x.Find([]byte(long)); len(hits) > 0 {
		t.Errorf("in the caption of the post that stays: %+v", hits)
	}
	if hits := x.Find([]byte(short + ". Another text.")); len(hits) != 1 || hits[0].Owner != 1 {
		t.Errorf("in its own text: %+v", hits)
	}
}

// TestOwners: an owner with two captions in a text has one hit, and hits are in the order of the text.
func TestOwners(t *testing.T) {
	const first, second = "my lawn mower wept quietly behind the buffet",
		"the goose testified for both sides of the lawsuit"
	b := New[string](tableOf(t, ""))
	b.Add("gallery", second, true)
	b.Add("gallery", first, true)
	b.Add("other", second, true)
	var got []string
	for _, h := range b.Build().Find([]byte(first + "\n" + second)) {
		got = append(got, fmt.Sprint(h.Owner, " ", h.Word))
	}
	if diff := cmp.Diff([]string{"gallery 0", "other 8"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestKinds(t *testing.T) {
	x := captions(t)
	got := map[string]Kind{}
	for owner, kind := range x.All() {
		if kind != Recognisable {
			got[owner] = kind
		}
	}
	want := map[string]Kind{"short": TooShort, "stock": TooCommon, "same": Shared, "year": TooCommon}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := x.Count(Recognisable); n != 12 {
		t.Errorf("%d captions can be recognised, want 12", n)
	}
}

func TestNothing(t *testing.T) {
	x := New[int](tableOf(t, "")).Build()
	if hits := x.Find([]byte("no caption was added")); len(hits) > 0 {
		t.Error(hits)
	}
}

func TestFold(t *testing.T) {
	for text, want := range map[string]string{
		"Don't PANIC":                          "dont panic",
		"don’t — ‘quoted’":                     "dont quoted",
		"Ça dé\u0301coûte; naïve ﬁn":           "ca decoute naive fin",
		"Straße STRASSE Œuvre":                 "strasse strasse oeuvre",
		"ＦＵＬＬ　ｗｉｄｔｈ ①":                         "full width",
		"so\u00adft zero\u200bwidth":           "soft zerowidth",
		"a_b-c/d":                              "a b c d",
		"1 22 3.5 b2b 4th":                     "b2b 4th",
		"日本語 テスト ｶﾞ":                           "日 本 語 テ ス ト カ",
		"ΣΊΣΥΦΟΣ σίσυφος":                      "σισυφοσ σισυφοσ",
		"x\xffy \xe2\x82":                      "x y",
		`one\ntwo\tthree C:\old`:               "one two three c old",
		"if a < b && c > d":                    "if a b c d",
		"<i>one</i>two<br/>three":              "one two three",
		`<String ID="s" CONTENT="word"/>`:      "word",
		`<a href=x title='a title' id=y>b</a>`: "a title b",
		"<p title='bbox 1 2 3 4'>c":            "c",
		"<!-- a comment -->":                   "a comment",
		"I <3 you <three":                      "i you three",
		"ends in <b and é":                     "ends in b and e",
		"a <b <i>c</i>":                        "a b c",
		"x" + strings.Repeat("y", 99) + " z":   strings.Repeat("y", maxLetters) + " z",
		"<" + strings.Repeat("é ", 600) + "e>": strings.TrimSpace(strings.Repeat("e ", 601)),
	} {
		var got []string
		var at []int64
		s := scanner{folds: newFolds(),
			emit: func(w *word) { got, at = append(got, string(w.text())), append(at, w.at) }}
		s.write([]byte(text))
		s.flush()
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
		if !slices.IsSorted(at) || s.at != int64(len(text)) {
			t.Errorf("%q: words at %v, %d bytes of %d read", text, at, s.at, len(text))
		}
	}
}

func TestOneApart(t *testing.T) {
	for _, pair := range []string{
		"fridge fridqe", "fridge frdge", "fridge fridgee", "fridge tridge", "fridge ridge", "fridge friidge",
		"ветеринар ветерипар",
	} {
		a, b, _ := strings.Cut(pair, " ")
		if !oneApart([]byte(a), b) || !oneApart([]byte(b), a) {
			t.Errorf("%s are not one apart", pair)
		}
	}
	for _, pair := range []string{"fridge frigde", "fridge bridges", "fridge frid", "ветеринар ветеирнар"} {
		a, b, _ := strings.Cut(pair, " ")
		if oneApart([]byte(a), b) || oneApart([]byte(b), a) {
			t.Errorf("%s are one apart", pair)
		}
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "lists no word",
		"the .9\n":              "ENOUGH",
		"ENOUGH 8\nthe\n":       "line 2",
		"ENOUGH 8\nthe 1.5\n":   "line 2",
		"ENOUGH 8\na 1\na .5\n": "line 3",
	} {
		if _, err := ParseWords(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
}

// TestConcurrent: an Index serves any number of texts at a time.
func TestConcurrent(t *testing.T) {
	x, files := captions(t), filesIn(t, "found")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for name, text := range files {
				if got := owners(x.Find(text)); len(got) != 1 || !strings.HasPrefix(name, got[0]) {
					t.Errorf("%s: found %v", name, got)
				}
			}
		})
	}
	all.Wait()
}

// TestBounded: what a Text keeps does not grow with the text, whatever that is.
func TestBounded(t *testing.T) {
	x := captions(t)
	for name, piece := range map[string]string{
		"a word":         "x",
		"anchors":        "goose lawsuit salmon lasagna biblical flood fridge apartment ",
		"tags":           "<",
		"a tag":          "<aaaa",
		"letters apart":  "周",
		"marks":          "\u0301",
		"cut runes":      "\xe2\x82",
		"half a caption": "weather app flood promised biblical sun delivered and a ",
	} {
		block, text := []byte(strings.Repeat(piece, 1<<16/len(piece))), x.NewText()
		write := func() {
			if _, err := text.Write(block); err != nil {
				t.Fatal(err)
			}
		}
		write()
		if allocs := testing.AllocsPerRun(4, write); allocs > 4 {
			t.Errorf("%s: %v allocations for 64 KiB", name, allocs)
		}
		if n := len(text.recent) + len(text.waiting) + cap(text.matches); n > 4*x.kept+len(x.captions) {
			t.Errorf("%s: %d words are kept", name, n)
		}
	}
}

// FuzzText: no text makes a Text fail, and pieces of any size give what the whole gives.
func FuzzText(f *testing.F) {
	x := captions(f)
	for _, dir := range []string{"found", "innocent"} {
		for _, text := range filesIn(f, dir) {
			f.Add(text, uint8(5))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, size uint8) {
		want, piece := x.Find(text), x.NewText()
		for part := range slices.Chunk(text, int(size)+1) {
			if _, err := piece.Write(part); err != nil {
				t.Fatal(err)
			}
		}
		got := piece.End()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("in pieces of %d bytes: %s", int(size)+1, diff)
		}
		for _, h := range got {
			if h.At < 0 || h.At >= int64(len(text)) || h.Words < minWords || h.Words > h.Of {
				t.Errorf("a hit that cannot be: %+v", h)
			}
		}
	})
}

func ExampleIndex_Find() {
	words, err := Common()
	if err != nil {
		fmt.Println(err)
		return
	}
	b := New[string](words)
	b.Add("1tx8fh", "Weather app promised sun\nand delivered a biblical flood", true)
	x := b.Build()
	for _, h := range x.Find([]byte("... the weather app promised sun, and delivered: a biblical flood")) {
		fmt.Printf("%s: %d of %d words from byte %d on\n", h.Owner, h.Words, h.Of, h.At)
	}
	// Output: 1tx8fh: 9 of 9 words from byte 8 on
}
