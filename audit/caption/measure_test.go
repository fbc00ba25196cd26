package caption

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
)

// TestMeasure counts how many captions of real memes are recognised, by length and by change, and how many ordinary
// files are accused. REHYDRATE_MEMES is a folder with transcripts.jsonl. These may be left out: REHYDRATE_FILES is a
// file with the names of ordinary files, REHYDRATE_PARTS lengths of parts of the captions that are captions as well
// ("6 8"), REHYDRATE_READ what `ocr --json` read off the memes, and REHYDRATE_WORDS another table of common words.
func TestMeasure(t *testing.T) {
	memes := os.Getenv("REHYDRATE_MEMES")
	if memes == "" {
		t.Skip("needs memes: set REHYDRATE_MEMES to a folder with transcripts.jsonl")
	}
	words := tableOf(t, os.Getenv("REHYDRATE_WORDS"))
	texts := transcripts(t, filepath.Join(memes, "transcripts.jsonl"))
	b := New[string](words)
	for _, m := range texts {
		b.Add(m.File, m.Text, true)
	}
	x := b.Build()
	t.Log("captions: ", kindsOf(x))
	for _, change := range changes {
		var rows [5]struct{ all, found, others int }
		for i, m := range texts {
			c := x.captions[i]
			if c.kind == TooShort {
				continue
			}
			found := 0
			for _, h := range x.Find([]byte(change.of(m.Text))) {
				if h.Owner == m.File {
					found = 1
				} else {
					rows[lengthClass(len(c.words))].others++
				}
			}
			for _, class := range []int{lengthClass(len(c.words)), 4} {
				rows[class].all++
				rows[class].found += found
			}
		}
		line := fmt.Sprintf("%-24s", change.name)
		for i, class := range []string{"5-7", "8-12", "13-20", ">20", "all"} {
			found, all := rows[i].found, rows[i].all
			line += fmt.Sprintf("  %s: %3d of %3d %.3f", class, found, all, float64(found)/float64(max(1, all)))
		}
		t.Log(line)
		if all := rows[4]; float64(all.found) < change.least*float64(all.all) {
			t.Errorf("%s: fewer than %v of the captions are recognised", change.name, change.least)
		}
	}
	measureRead(t, words, texts)
	if n := measureFiles(t, x); n > 0 {
		t.Errorf("%d ordinary files are accused", n)
	}
	// Parts of captions are shorter than captions, and more often a stock phrase.
	b = New[string](words)
	for _, m := range texts {
		for line := range strings.Lines(m.Text) {
			b.Add(strings.TrimSpace(line), line, true)
		}
		words := strings.Fields(m.Text)
		for n := range strings.FieldsSeq(os.Getenv("REHYDRATE_PARTS")) {
			n, _ := strconv.Atoi(n)
			for i := 0; i+n <= len(words); i++ {
				part := strings.Join(words[i:i+n], " ")
				b.Add(part, part, true)
			}
		}
	}
	x = b.Build()
	t.Log("their lines and parts: ", kindsOf(x))
	measureFiles(t, x)
}

var changes = []struct {
	name  string
	least float64 // share that must be recognised
	of    func(string) string
}{
	{"verbatim", .95, func(s string) string { return s }},
	{"last word changed", .88, func(s string) string {
		w := strings.Fields(s)
		for i := len(w) - 1; i >= 0; i-- {
			if strings.ContainsFunc(w[i], unicode.IsLetter) {
				w[i] = "xylophones"
				break
			}
		}
		return strings.Join(w, " ")
	}},
	{"60 % of words left", 0, func(s string) string { return thinned(s, .6) }},
	{"80 % of words left", 0, func(s string) string { return thinned(s, .8) }},
	{"first 60 %", 0, func(s string) string { w := strings.Fields(s); return strings.Join(w[:(len(w)*6+9)/10], " ") }},
	{"first half", 0, func(s string) string { w := strings.Fields(s); return strings.Join(w[:(len(w)+1)/2], " ") }},
	{"1 letter in 20 misread", 0, func(s string) string { return misread(s, .05) }},
	{"1 letter in 10 misread", 0, func(s string) string { return misread(s, .10) }},
	{"a word a line of TSV", 0, func(s string) string {
		var b strings.Builder
		for i, w := range strings.Fields(s) {
			fmt.Fprintf(&b, "5\t1\t1\t%d\t%s\n", i, w)
		}
		return b.String()
	}},
}

func kindsOf(x *Index[string]) string {
	return fmt.Sprintf("%d recognisable, %d too short, %d too common",
		x.Count(Recognisable), x.Count(TooShort), x.Count(TooCommon))
}

func seeded(s string) *rand.Rand { return rand.New(rand.NewPCG(uint64(len(s)), 7)) }

// thinned leaves a share of the words, rounded up.
func thinned(s string, share float64) string {
	words := strings.Fields(s)
	rnd := seeded(s)
	for gone := len(words) - int(float64(len(words))*share+.999); gone > 0; gone-- {
		at := rnd.IntN(len(words))
		words = append(words[:at], words[at+1:]...)
	}
	return strings.Join(words, " ")
}

// misread changes a share of the letters.
func misread(s string, share float64) string {
	rnd := seeded(s)
	return strings.Map(func(r rune) rune {
		if r <= ' ' || rnd.Float64() >= share {
			return r
		}
		return 'a' + rune(rnd.IntN(26))
	}, s)
}

func lengthClass(n int) int {
	switch {
	case n <= 7:
		return 0
	case n <= 12:
		return 1
	case n <= 20:
		return 2
	}
	return 3
}

type transcript struct{ File, Text string }

func transcripts(t testing.TB, name string) (all []transcript) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err) // it was named
	}
	defer f.Close()
	for d := json.NewDecoder(f); ; {
		var m transcript
		err := d.Decode(&m)
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		m.File = filepath.Base(m.File)
		all = append(all, m)
	}
}

func tableOf(t testing.TB, name string) *Words {
	t.Helper()
	words, err := Common()
	if name != "" {
		var f *os.File
		f, err = os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		words, err = ParseWords(f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return words
}

// measureRead has what OCR read as captions, and the transcripts as texts, and the other way round.
func measureRead(t *testing.T, words *Words, texts []transcript) {
	name := os.Getenv("REHYDRATE_READ")
	if name == "" {
		return
	}
	read := transcripts(t, name)
	for _, turned := range []bool{false, true} {
		from, in := read, texts
		if turned {
			from, in = texts, read
		}
		b := New[string](words)
		for _, m := range from {
			b.Add(m.File, m.Text, true)
		}
		x := b.Build()
		var rows [5]struct{ all, found int }
		others := 0
		of := map[string]*caption[string]{}
		for i, m := range from {
			of[m.File] = x.captions[i]
		}
		for _, m := range in {
			c := of[m.File]
			found := 0
			for _, h := range x.Find([]byte(m.Text)) {
				if h.Owner == m.File {
					found = 1
				} else {
					others++
				}
			}
			if c == nil || c.kind == TooShort {
				continue
			}
			for _, class := range []int{lengthClass(len(c.words)), 4} {
				rows[class].all++
				rows[class].found += found
			}
		}
		t.Logf("OCR's reading is the caption, the transcript the text (the other way round: %v): all and found by length "+
			"%v, other captions %d", turned, rows, others)
	}
}

// measureFiles returns how many ordinary files are accused, and logs by what.
func measureFiles(t *testing.T, x *Index[string]) (accused int) {
	list, err := os.ReadFile(os.Getenv("REHYDRATE_FILES"))
	if err != nil {
		return 0
	}
	files, size, took := 0, 0, time.Duration(0)
	text := x.NewText()
	for name := range strings.Lines(string(list)) {
		content := ordinaryFile(strings.TrimSpace(name))
		if content == nil {
			continue
		}
		files++
		size += len(content)
		start := time.Now()
		text.scan.write(content)
		found := text.end()
		took += time.Since(start)
		for _, f := range found {
			h := f.hit
			t.Logf("%.1f nats, %d of %d words of %q at byte %d of %s",
				float64(f.carries)/milli, h.Words, h.Of, h.Owner, h.At, name)
		}
		accused += min(1, len(found))
	}
	t.Logf("%d of %d files accused; %d MB, %.2f ns a byte", accused, files, size/1e6, float64(took)/float64(size))
	return accused
}

// ordinaryFile returns what is in a file, without its gzip; nil for what is no text.
func ordinaryFile(name string) []byte {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	if r, err := gzip.NewReader(bytes.NewReader(content)); err == nil {
		content, err = io.ReadAll(io.LimitReader(r, 1<<26))
		if err != nil {
			return nil
		}
	}
	if bytes.IndexByte(content[:min(len(content), 8000)], 0) >= 0 {
		return nil
	}
	return content
}
