package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"golang.org/x/sync/errgroup"
	"golang.org/x/text/unicode/norm"

	"rehydrate/internal/word"
	"rehydrate/pipeline/language"
	"rehydrate/pipeline/ocr"
	"rehydrate/pipeline/ocr/layout"
)

// A meme is one line of transcripts.jsonl.
type meme struct {
	File  string `json:"file"`
	Split string `json:"split"`
	Text  string `json:"text"`
}

// loadMemes reads the transcripts of the folder that REHYDRATE_MEMES names, those of the split
// REHYDRATE_MEMES_SPLIT (dev, for tuning, or test, for the record), and skips without one. The
// pictures are for measuring only and are no part of the project.
func loadMemes(b *testing.B) (dir string, memes []meme) {
	split := cmp.Or(os.Getenv("REHYDRATE_MEMES_SPLIT"), "dev")
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
	dir, memes := loadMemes(b)
	for b.Loop() {
		readings, took := readMemes(b, dir, memes, false)
		b.ReportMetric(float64(len(memes))/took.elapsed.Seconds(), "img/s")
		b.ReportMetric(took.rendering.Seconds()*1000/float64(len(memes)), "decode-cpu-ms/img")
		b.ReportMetric(took.reading.Seconds()*1000/float64(len(memes)), "worker-cpu-ms/img")
		b.ReportMetric(float64(took.peak)/(1<<20), "worker-MiB")
		scoreAll(b, "50", memes, readings, func(word.Word) bool { return true })
		scoreAll(b, "Acc", memes, readings, func(w word.Word) bool { return w.Accepted })
		reportErrorRates(b, memes, readings)
	}
}

// BenchmarkDecision reads the memes of REHYDRATE_MEMES only as far as the decision on their
// language needs, with two workers.
func BenchmarkDecision(b *testing.B) {
	dir, memes := loadMemes(b)
	english, err := language.New()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		readings, took := readMemes(b, dir, memes, true)
		rejected := 0
		for _, r := range readings {
			if d := decide(english, r); d.Decision == "not_english" || d.Decision == "unreadable" {
				rejected++
			}
		}
		b.ReportMetric(float64(len(memes))/took.elapsed.Seconds(), "img/s")
		b.ReportMetric((took.rendering+took.reading).Seconds()*1000/float64(len(memes)), "cpu-ms/img")
		b.ReportMetric(float64(rejected)/float64(len(memes)), "rejected")
	}
}

// An effort is what it took to read pictures.
type effort struct {
	elapsed   time.Duration
	rendering time.Duration // CPU of this process
	reading   time.Duration // CPU of the workers
	peak      int64         // memory of a worker, in bytes
}

func readMemes(b *testing.B, dir string, memes []meme, decisionOnly bool) ([]layout.Reading, effort) {
	config := benchConfig(b)
	config.DecisionOnly = decisionOnly
	pool := startPool(b, config)
	r := newReader(pool, options{workers: 1}, nil)
	start, own, children := time.Now(), processorTime(syscall.RUSAGE_SELF), processorTime(syscall.RUSAGE_CHILDREN)
	readings := make([]layout.Reading, len(memes))
	var g errgroup.Group
	g.SetLimit(config.Workers + 1)
	for i, m := range memes {
		g.Go(func() error {
			got := r.read(b.Context(), input{name: filepath.Join(dir, m.File)})
			readings[i] = got.Reading
			return got.err
		})
	}
	if err := g.Wait(); err != nil {
		b.Error(err)
	}
	took := effort{elapsed: time.Since(start), peak: pool.Stats().PeakRSS}
	pool.Close() // only now do the workers count as children that ended
	took.rendering = processorTime(syscall.RUSAGE_SELF) - own
	took.reading = processorTime(syscall.RUSAGE_CHILDREN) - children
	return readings, took
}

// benchConfig is what rehydrate uses, with two workers.
func benchConfig(b testing.TB) ocr.Config {
	b.Helper()
	english, err := language.New()
	if err != nil {
		b.Fatal(err)
	}
	return ocr.Config{Workers: 2, Timeout: time.Minute,
		Dictionary: english.Knows, DictionaryID: language.DictionaryDigest}
}

// BenchmarkTesseract reads the memes of REHYDRATE_MEMES with the tesseract program, two at a
// time, as people do with xargs: page segmentation mode 3, the untouched file, one thread
// each. scripts/bench sets its figures beside those of BenchmarkMemes.
func BenchmarkTesseract(b *testing.B) {
	program, err := exec.LookPath("tesseract")
	if err != nil {
		b.Skip("no tesseract program (apt-get install tesseract-ocr)")
	}
	dir, memes := loadMemes(b)
	out := b.TempDir()
	for b.Loop() {
		// xargs puts the number of the picture into the name of the text.
		var list strings.Builder
		for i, m := range memes {
			fmt.Fprintf(&list, "%s\n%s\n", filepath.Join(dir, m.File), filepath.Join(out, strconv.Itoa(i)))
		}
		cmd := exec.Command("xargs", "-P2", "-n2", "-d", "\n", "sh", "-c", `"$0" "$1" "$2" --psm 3 2>/dev/null || :`,
			program)
		cmd.Env = append(os.Environ(), "OMP_THREAD_LIMIT=1")
		cmd.Stdin = strings.NewReader(list.String())
		start, before := time.Now(), processorTime(syscall.RUSAGE_CHILDREN)
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
		elapsed := time.Since(start)
		b.ReportMetric(float64(len(memes))/elapsed.Seconds(), "img/s")
		b.ReportMetric((processorTime(syscall.RUSAGE_CHILDREN)-before).Seconds()*1000/float64(len(memes)),
			"worker-cpu-ms/img")
		readings := make([]layout.Reading, len(memes))
		for i := range memes {
			text, err := os.ReadFile(filepath.Join(out, strconv.Itoa(i)+".txt"))
			if err != nil {
				continue // what it could not read counts as nothing read
			}
			readings[i].Text = string(text)
			for _, w := range strings.Fields(readings[i].Text) {
				readings[i].Words = append(readings[i].Words, word.Word{Text: w})
			}
		}
		scoreAll(b, "", memes, readings, func(word.Word) bool { return true })
		reportErrorRates(b, memes, readings)
	}
}

// BenchmarkWorkerMemory reads REHYDRATE_BENCH_IMAGES (5,000) small drawn pictures with two
// workers, and reports the most memory one had after a tenth of them and after all: what leaks
// shows in the difference.
func BenchmarkWorkerMemory(b *testing.B) {
	total, err := strconv.Atoi(cmp.Or(os.Getenv("REHYDRATE_BENCH_IMAGES"), "5000"))
	if err != nil || total < 10 {
		b.Fatalf("REHYDRATE_BENCH_IMAGES: want a number from 10, not %d (%v)", total, err)
	}
	var pictures []image.Image
	for i := range 20 {
		pictures = append(pictures, drawMeme(b, 320, 240, sunset{image.Rect(0, 0, 320, 240)},
			caption{fmt.Sprintf("PICTURE %d OF", i), 20, 60, 30, color.White},
			caption{"MANY MORE", 60, 210, 30, color.White}))
	}
	for b.Loop() {
		pool := startPool(b, benchConfig(b))
		start := time.Now()
		early := int64(0)
		for done := 0; done < total; done += total / 10 {
			var g errgroup.Group
			g.SetLimit(3)
			for i := range total / 10 {
				g.Go(func() error {
					_, err := pool.Read(b.Context(), pictures[i%len(pictures)])
					return err
				})
			}
			if err := g.Wait(); err != nil {
				b.Fatal(err)
			}
			if done == 0 {
				early = pool.Stats().PeakRSS
			}
		}
		stats := pool.Stats()
		pool.Close()
		if stats.Failed > 0 || stats.Lost > 0 {
			b.Errorf("Stats = %+v, want nothing failed or lost", stats)
		}
		b.ReportMetric(float64(stats.Images), "images")
		b.ReportMetric(float64(early)/(1<<20), "early-MiB")
		b.ReportMetric(float64(stats.PeakRSS)/(1<<20), "peak-MiB")
		b.ReportMetric(float64(stats.Images)/time.Since(start).Seconds(), "img/s")
	}
}

// processorTime is the CPU time of this process or of its children that ended.
func processorTime(who int) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func scoreAll(b *testing.B, label string, memes []meme, readings []layout.Reading, take func(word.Word) bool) {
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
func reportErrorRates(b *testing.B, memes []meme, readings []layout.Reading) {
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
	if got, want := strings.Join(tokens("Don\u2019t PANIC.. CONSPIRÁCY? 5G\n"), " "),
		"DONT PANIC CONSPIRACY 5G"; got != want {
		t.Errorf("tokens = %q, want %q", got, want)
	}
	if got := common([]string{"A", "A", "B"}, []string{"A", "B", "B", "C"}); got != 2 {
		t.Errorf("common = %d, want 2", got)
	}
	if got := distance([]string{"A", "B", "C"}, []string{"A", "C", "D"}); got != 2 {
		t.Errorf("distance = %d, want 2", got)
	}
}
