package caption

import (
	"bufio"
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
)

// TestMeasure counts how many captions of real memes are recognised, by length and by change, and how many ordinary files
// are accused. REHYDRATE_MEMES is a folder with transcripts.jsonl, and REHYDRATE_FILES a file with the names of ordinary
// files. REHYDRATE_WORDS is another table of common words, and REHYDRATE_READ what `ocr --json` read off the memes.
func TestMeasure(t *testing.T) {
	memes := os.Getenv("REHYDRATE_MEMES")
	if memes == "" {
		t.Skip("needs memes: set REHYDRATE_MEMES to a folder with transcripts.jsonl")
	}
	if name := os.Getenv("REHYDRATE_DUMP"); name != "" {
		dump, _ = os.Create(name)
	}
	words := tableOf(t, os.Getenv("REHYDRATE_WORDS"))
	texts := transcripts(t, filepath.Join(memes, "transcripts.jsonl"))
	b := New[string](words)
	for _, m := range texts {
		b.Add(m.File, m.Text, true)
	}
	x := b.Build()
	t.Logf("%d captions: %d recognisable, %d too short, %d too common", len(x.captions), x.Count(Recognisable), x.Count(TooShort), x.Count(TooCommon))
	for _, change := range changes {
		var rows [5]struct{ all, found, others int }
		for i, m := range texts {
			c := x.captions[i]
			if c.kind == TooShort {
				continue
			}
			found := 0
			tt := x.NewText()
			tt.Write([]byte(change.of(m.Text)))
			for _, f := range tt.end() {
				h := f.hit
				if dump != nil {
					fmt.Fprintf(dump, "%s\t%v\t%d\t%d\t%d\t%d\t%s\t%s\n", change.name, h.Owner == m.File, h.Words, h.Of, f.span, f.carries, h.Owner, m.File)
				}
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
			line += fmt.Sprintf("  %s: %3d of %3d %.3f", class, rows[i].found, rows[i].all, float64(rows[i].found)/float64(max(1, rows[i].all)))
		}
		t.Log(line)
	}
	measureRead(t, words, texts)
	measureFiles(t, x)
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
	t.Logf("%d lines: %d recognisable, %d too short, %d too common", len(x.captions), x.Count(Recognisable), x.Count(TooShort), x.Count(TooCommon))
	measureFiles(t, x)
}

var changes = []struct {
	name string
	of   func(string) string
}{
	{"verbatim", func(s string) string { return s }},
	{"last word changed", func(s string) string {
		w := strings.Fields(s)
		for i := len(w) - 1; i >= 0; i-- {
			if strings.ContainsFunc(w[i], func(r rune) bool { return r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' }) {
				w[i] = "xylophones"
				break
			}
		}
		return strings.Join(w, " ")
	}},
	{"60 % of words left", func(s string) string { return thinned(s, .6) }},
	{"80 % of words left", func(s string) string { return thinned(s, .8) }},
	{"first 60 %", func(s string) string { w := strings.Fields(s); return strings.Join(w[:(len(w)*6+9)/10], " ") }},
	{"first half", func(s string) string { w := strings.Fields(s); return strings.Join(w[:(len(w)+1)/2], " ") }},
	{"1 letter in 20 misread", func(s string) string { return misread(s, .05) }},
	{"1 letter in 10 misread", func(s string) string { return misread(s, .10) }},
	{"a word a line of TSV", func(s string) string {
		var b strings.Builder
		for i, w := range strings.Fields(s) {
			fmt.Fprintf(&b, "5\t1\t1\t%d\t%s\n", i, w)
		}
		return b.String()
	}},
}

var dump *os.File

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
		t.Skip(err)
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
		t.Logf("OCR's reading is the caption, the transcript the text (%v: the other way round): by length %v; other captions found: %d", turned, rows, others)
	}
}

// measureFiles counts which ordinary files are accused, and how that depends on what is enough.
func measureFiles(t *testing.T, x *Index[string]) {
	list, err := os.ReadFile(os.Getenv("REHYDRATE_FILES"))
	if err != nil {
		return
	}
	type accused struct {
		file string
		of   find[string]
	}
	var all []accused
	files, size, took := 0, 0, time.Duration(0)
	text := x.NewText()
	lines := bufio.NewScanner(bytes.NewReader(list))
	for lines.Scan() {
		content, err := os.ReadFile(lines.Text())
		if err != nil {
			continue
		}
		if r, err := gzip.NewReader(bytes.NewReader(content)); err == nil {
			content, err = io.ReadAll(io.LimitReader(r, 1<<26))
			if err != nil {
				continue
			}
		}
		if bytes.IndexByte(content[:min(len(content), 8000)], 0) >= 0 {
			continue
		}
		files++
		size += len(content)
		start := time.Now()
		text.scan.write(content)
		for _, f := range text.end() {
			all = append(all, accused{lines.Text(), f})
			if dump != nil {
				fmt.Fprintf(dump, "file\tfalse\t%d\t%d\t%d\t%d\t%s\t%s\n", f.hit.Words, f.hit.Of, f.span, f.carries, f.hit.Owner, lines.Text())
			}
		}
		took += time.Since(start)
	}
	t.Logf("%d files, %d MB, %.2f ns a byte", files, size/1e6, float64(took)/float64(size))
	for enough := int32(1000); enough <= 40_000; enough += 1000 {
		who, where := map[string]bool{}, map[string]bool{}
		for _, a := range all {
			if a.of.carries >= enough {
				who[a.of.hit.Owner], where[a.file] = true, true
			}
		}
		if len(who) > 0 || enough*1 >= int32(x.captions[0].enough) && len(where) > 0 {
			t.Logf("enough %d: %d captions accuse %d files", enough/1000, len(who), len(where))
		}
	}
	for i, a := range all {
		if i < 60 {
			t.Logf("%.1f nats, %d of %d words at %d of %s: %s", float64(a.of.carries)/1000, a.of.hit.Words, a.of.hit.Of, a.of.hit.At, a.file, a.of.hit.Owner)
		}
	}
}
