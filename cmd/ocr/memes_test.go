package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"rehydrate/pipeline/language"
	"rehydrate/pipeline/ocr"
)

// A meme is one line of transcripts.jsonl.
type meme struct {
	File  string `json:"file"`
	Split string `json:"split"`
	Text  string `json:"text"`
}

// loadMemes reads the transcripts of the folder that REHYDRATE_MEMES names, and skips
// without one. The pictures are for measuring only and are no part of the project.
func loadMemes(b *testing.B, split string) (dir string, memes []meme) {
	dir = os.Getenv("REHYDRATE_MEMES")
	if dir == "" {
		b.Skip("REHYDRATE_MEMES names no folder of memes with transcripts.jsonl")
	}
	f, err := os.Open(filepath.Join(dir, "transcripts.jsonl"))
	if err != nil {
		b.Skip(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var m meme
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			b.Fatal(err)
		}
		if m.Split == split {
			memes = append(memes, m)
		}
	}
	if err := lines.Err(); err != nil {
		b.Fatal(err)
	}
	return dir, memes
}

// BenchmarkMemes reads the memes of REHYDRATE_MEMES (split REHYDRATE_MEMES_SPLIT,
// default dev) with two workers and reports how well and how fast:
//
//	REHYDRATE_MEMES=DIR go test ./cmd/ocr -run - -bench Memes -benchtime 1x
//
// Scores: NFKD, marks dropped, upper case, apostrophes dropped, tokens are runs of
// A-Z0-9, matched exactly as a multiset. recall and prec over all words, macroR the mean
// over images, z the share of images with a recall under 20 %, g80 that of 80 % and more.
func BenchmarkMemes(b *testing.B) {
	split := "dev"
	if s := os.Getenv("REHYDRATE_MEMES_SPLIT"); s != "" {
		split = s
	}
	dir, memes := loadMemes(b, split)
	english, err := language.New()
	if err != nil {
		b.Fatal(err)
	}
	const workers = 2
	for b.Loop() {
		pool := startPool(b, ocr.Config{Workers: workers, Timeout: time.Minute,
			Dictionary: english.Knows, DictionaryID: language.DictionaryDigest()})
		start := time.Now()
		before, childrenBefore := processorTime(syscall.RUSAGE_SELF), processorTime(syscall.RUSAGE_CHILDREN)
		readings := readMemes(b, pool, dir, memes, workers+1)
		elapsed := time.Since(start)
		peak := pool.Stats().PeakRSS
		pool.Close() // only now do the workers count as children that ended
		rendering := processorTime(syscall.RUSAGE_SELF) - before
		reading := processorTime(syscall.RUSAGE_CHILDREN) - childrenBefore
		perImage := func(d time.Duration) float64 { return d.Seconds() * 1000 / float64(len(memes)) }
		b.ReportMetric(float64(len(memes))/elapsed.Seconds(), "img/s")
		b.ReportMetric(perImage(rendering), "decode-cpu-ms/img")
		b.ReportMetric(perImage(reading), "worker-cpu-ms/img")
		b.ReportMetric(float64(peak)/(1<<20), "worker-MiB")
		scoreAll(b, "50", memes, readings, func(ocr.Word) bool { return true })
		scoreAll(b, "Acc", memes, readings, func(w ocr.Word) bool { return w.Accepted })
		reportErrorRates(b, memes, readings)
	}
}

func readMemes(b *testing.B, pool *ocr.Pool, dir string, memes []meme, parallel int) []ocr.Reading {
	readings := make([]ocr.Reading, len(memes))
	next := make(chan int)
	var wg sync.WaitGroup
	for range parallel {
		wg.Go(func() {
			for i := range next {
				r, err := readFile(context.Background(), pool, filepath.Join(dir, memes[i].File))
				if err != nil {
					b.Errorf("%s: %v", memes[i].File, err)
				}
				readings[i] = r
			}
		})
	}
	for i := range memes {
		next <- i
	}
	close(next)
	wg.Wait()
	return readings
}

// processorTime is the CPU time of this process or of its children that ended.
func processorTime(who int) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func scoreAll(b *testing.B, label string, memes []meme, readings []ocr.Reading, take func(ocr.Word) bool) {
	var said, read, hits, poor, good int
	var macro float64
	for i, m := range memes {
		var got []string
		for _, w := range readings[i].Words {
			if take(w) {
				got = append(got, tokens(w.Text)...)
			}
		}
		want := tokens(m.Text)
		n := common(want, got)
		said, read, hits = said+len(want), read+len(got), hits+n
		recall := float64(n) / float64(max(1, len(want)))
		macro += recall
		if recall < 0.2 {
			poor++
		}
		if recall >= 0.8 {
			good++
		}
	}
	images := float64(len(memes))
	b.ReportMetric(float64(hits)/float64(said), "recall"+label)
	b.ReportMetric(float64(hits)/float64(max(1, read)), "prec"+label)
	b.ReportMetric(macro/images, "macroR"+label)
	b.ReportMetric(float64(poor)/images, "z"+label)
	b.ReportMetric(float64(good)/images, "g80-"+label)
}

// reportErrorRates compares Reading.Text with the transcript: WER over words, CER over
// characters without spaces.
func reportErrorRates(b *testing.B, memes []meme, readings []ocr.Reading) {
	var words, wordEdits, chars, charEdits int
	for i, m := range memes {
		want, got := tokens(m.Text), tokens(readings[i].Text)
		words, wordEdits = words+len(want), wordEdits+distance(want, got)
		w, g := strings.Split(strings.Join(want, ""), ""), strings.Split(strings.Join(got, ""), "")
		chars, charEdits = chars+len(w), charEdits+distance(w, g)
	}
	b.ReportMetric(float64(wordEdits)/float64(words), "WER")
	b.ReportMetric(float64(charEdits)/float64(chars), "CER")
}

func tokens(s string) []string {
	var clean strings.Builder
	for _, r := range norm.NFKD.String(s) {
		if !unicode.Is(unicode.M, r) && !strings.ContainsRune("'\u2018\u2019`", r) {
			clean.WriteRune(unicode.ToUpper(r))
		}
	}
	return strings.FieldsFunc(clean.String(), func(r rune) bool {
		return (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
}

func common(a, b []string) int {
	count := map[string]int{}
	for _, t := range a {
		count[t]++
	}
	n := 0
	for _, t := range b {
		if count[t] > 0 {
			count[t]--
			n++
		}
	}
	return n
}

// distance is the Levenshtein distance of two sequences.
func distance(a, b []string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

func TestScoring(t *testing.T) {
	if got, want := strings.Join(tokens("Don\u2019t PANIC.. CONSPIRÁCY? 5G\n"), " "), "DONT PANIC CONSPIRACY 5G"; got != want {
		t.Errorf("tokens = %q, want %q", got, want)
	}
	if got := common([]string{"A", "A", "B"}, []string{"A", "B", "B", "C"}); got != 2 {
		t.Errorf("common = %d, want 2", got)
	}
	if got := distance([]string{"A", "B", "C"}, []string{"A", "C", "D"}); got != 2 {
		t.Errorf("distance = %d, want 2", got)
	}
}
