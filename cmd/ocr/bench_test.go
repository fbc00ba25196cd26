package main

import (
	"context"
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

	"rehydrate/pipeline/language"
	"rehydrate/pipeline/ocr"
)

// BenchmarkTesseract reads the memes of REHYDRATE_MEMES with the tesseract program, two at a
// time, as people do with xargs: page segmentation mode 3, the untouched file, one thread
// each. scripts/bench sets its figures beside those of BenchmarkMemes.
func BenchmarkTesseract(b *testing.B) {
	program, err := exec.LookPath("tesseract")
	if err != nil {
		b.Skip("no tesseract program (apt-get install tesseract-ocr)")
	}
	dir, memes := loadMemes(b, benchSplit())
	out := b.TempDir()
	for b.Loop() {
		// xargs puts the number of the picture into the name of the text.
		var list strings.Builder
		for i, m := range memes {
			fmt.Fprintf(&list, "%s\n%s\n", filepath.Join(dir, m.File), filepath.Join(out, strconv.Itoa(i)))
		}
		cmd := exec.Command("xargs", "-P2", "-n2", "-d", "\n", "sh", "-c", `"$0" "$1" "$2" --psm 3 2>/dev/null || :`, program)
		cmd.Env = append(os.Environ(), "OMP_THREAD_LIMIT=1")
		cmd.Stdin = strings.NewReader(list.String())
		start, before := time.Now(), processorTime(syscall.RUSAGE_CHILDREN)
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
		elapsed := time.Since(start)
		b.ReportMetric(float64(len(memes))/elapsed.Seconds(), "img/s")
		b.ReportMetric((processorTime(syscall.RUSAGE_CHILDREN)-before).Seconds()*1000/float64(len(memes)), "worker-cpu-ms/img")
		readings := make([]ocr.Reading, len(memes))
		for i := range memes {
			text, err := os.ReadFile(filepath.Join(out, strconv.Itoa(i)+".txt"))
			if err != nil {
				continue // what it could not read counts as nothing read
			}
			readings[i].Text = string(text)
			for _, w := range strings.Fields(readings[i].Text) {
				readings[i].Words = append(readings[i].Words, ocr.Word{Text: w})
			}
		}
		scoreAll(b, "", memes, readings, func(ocr.Word) bool { return true })
		reportErrorRates(b, memes, readings)
	}
}

// BenchmarkDecision reads the memes of REHYDRATE_MEMES only as far as the decision on their
// language needs, with two workers.
func BenchmarkDecision(b *testing.B) {
	dir, memes := loadMemes(b, benchSplit())
	english, err := language.New()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		config := benchConfig(b)
		config.DecisionOnly = true
		pool := startPool(b, config)
		start, before, childrenBefore := time.Now(), processorTime(syscall.RUSAGE_SELF), processorTime(syscall.RUSAGE_CHILDREN)
		readings := readMemes(b, pool, dir, memes, config.Workers+1)
		elapsed := time.Since(start)
		pool.Close() // only now do the workers count as children that ended
		used := processorTime(syscall.RUSAGE_SELF) - before + processorTime(syscall.RUSAGE_CHILDREN) - childrenBefore
		rejected := 0
		for _, r := range readings {
			if d := decide(english, r); d.Decision == "not_english" || d.Decision == "unreadable" {
				rejected++
			}
		}
		b.ReportMetric(float64(len(memes))/elapsed.Seconds(), "img/s")
		b.ReportMetric(used.Seconds()*1000/float64(len(memes)), "cpu-ms/img")
		b.ReportMetric(float64(rejected)/float64(len(memes)), "rejected")
	}
}

// BenchmarkWorkerMemory reads REHYDRATE_BENCH_IMAGES (5,000) small drawn pictures with two
// workers, and reports the most memory one had after a tenth of them and after all: what leaks
// shows in the difference.
func BenchmarkWorkerMemory(b *testing.B) {
	total := 5000
	if s := os.Getenv("REHYDRATE_BENCH_IMAGES"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 10 {
			b.Fatalf("REHYDRATE_BENCH_IMAGES=%s: want a number from 10", s)
		}
		total = n
	}
	var pictures []image.Image
	for i := range 20 {
		pictures = append(pictures, drawMeme(b, 320, 240, sunset{image.Rect(0, 0, 320, 240)},
			caption{fmt.Sprintf("PICTURE %d OF", i), 20, 60, 30, color.White}, caption{"MANY MORE", 60, 210, 30, color.White}))
	}
	for b.Loop() {
		pool := startPool(b, benchConfig(b))
		start := time.Now()
		early := int64(0)
		for done := 0; done < total; done += total / 10 {
			if err := readMany(pool, pictures, total/10); err != nil {
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

func readMany(pool *ocr.Pool, pictures []image.Image, n int) error {
	next, errs := make(chan image.Image), make(chan error, 3)
	for range 3 {
		go func() {
			for img := range next {
				if _, err := pool.Read(context.Background(), img); err != nil {
					errs <- err
					break
				}
			}
			for range next { // what is left, after an error
			}
			errs <- nil
		}()
	}
	for i := range n {
		next <- pictures[i%len(pictures)]
	}
	close(next)
	for range 3 {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

// benchSplit is the part of the memes that REHYDRATE_MEMES_SPLIT names: dev, for tuning, or
// test, for the record.
func benchSplit() string {
	if s := os.Getenv("REHYDRATE_MEMES_SPLIT"); s != "" {
		return s
	}
	return "dev"
}

// benchConfig is what rehydrate uses, with two workers.
func benchConfig(b *testing.B) ocr.Config {
	b.Helper()
	english, err := language.New()
	if err != nil {
		b.Fatal(err)
	}
	return ocr.Config{Workers: 2, Timeout: time.Minute,
		Dictionary: english.Knows, DictionaryID: language.DictionaryDigest()}
}
