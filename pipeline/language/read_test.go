package language

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	_ "golang.org/x/image/webp"

	"rehydrate/internal/testkit"
	"rehydrate/internal/word"
	"rehydrate/pipeline/ocr"
	"rehydrate/pipeline/redditemu"
)

// A picture is one that OCR is to read, or has read.
type picture struct {
	kind  string // "en", "blank", or the language of a foreign caption
	split string // "dev" or "test"
	name  string // the caption, what a blank picture shows, or the name of a file
	file  string // of a meme; "" of what is drawn
	words []word.Word
}

// key tells pictures apart.
func (p picture) key() string { return p.kind + "\t" + p.split + "\t" + p.name }

// blanksOfKind is how many pictures are drawn of each of blankKinds, the first blanksDev of them to tune on.
const blanksOfKind, blanksDev = 8, 3

// pictures lists what is drawn: every caption of testdata, and the blank kinds.
func pictures(t testing.TB) []picture {
	t.Helper()
	var all []picture
	for line := range strings.Lines(string(readFile(t, "foreign.txt"))) {
		if f := strings.SplitN(strings.TrimSpace(line), " ", 3); !strings.HasPrefix(line, "#") {
			all = append(all, picture{kind: f[0], split: f[1], name: f[2]})
		}
	}
	for line := range strings.Lines(string(readFile(t, "english.txt"))) {
		if f := strings.SplitN(strings.TrimSpace(line), " ", 2); !strings.HasPrefix(line, "#") {
			all = append(all, picture{kind: english, split: f[0], name: f[1]})
		}
	}
	for _, kind := range append(slices.Sorted(maps.Keys(blankKinds)), "photo") {
		for i := range blanksOfKind {
			split := "dev"
			if i >= blanksDev {
				split = "test"
			}
			all = append(all, picture{kind: "blank", split: split, name: kind + " " + strconv.Itoa(i)})
		}
	}
	return all
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", name))
	testkit.OK(t, err)
	return body
}

// draw draws a picture, or opens that of a meme; seed is its place in the list.
func (p picture) draw(seed int) (image.Image, error) {
	if p.file != "" {
		body, err := os.ReadFile(p.file)
		if err != nil {
			return nil, err
		}
		img, _, err := image.Decode(bytes.NewReader(body))
		return img, err
	}
	spec := redditemu.Spec{Seed: uint64(seed) + 1, Caption: p.name}
	if p.kind == "blank" {
		kind, _, _ := strings.Cut(p.name, " ")
		if _, ok := blankKinds[kind]; ok {
			return drawBlank(kind, spec.Seed), nil
		}
		spec.Style = redditemu.StyleBare
	}
	if p.kind == "vi" { // the fonts lack its letters; without accents it is written, too
		spec.Caption = plain.Replace(strings.ToUpper(p.name))
	}
	drawn, err := redditemu.Draw(spec)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", p.name, err)
	}
	img, _, err := image.Decode(bytes.NewReader(drawn.Body))
	return img, err
}

// readPictures draws the pictures and reads them with the program that is built of cmd/ocr.
func readPictures(t testing.TB, all []picture) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "ocr")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program,
		"../../cmd/ocr").CombinedOutput(); err != nil {
		t.Fatalf("go build rehydrate/cmd/ocr: %v\n%s", err, out)
	}
	pool, err := ocr.Start(t.Context(), ocr.Config{Command: []string{program, "worker"}, Workers: 2,
		Timeout:    5 * time.Minute,
		Dictionary: newFilter(t).Knows, DictionaryID: DictionaryDigest})
	testkit.OK(t, err)
	defer pool.Close()
	var wg sync.WaitGroup
	for lane := range 2 {
		wg.Go(func() {
			for i := lane; i < len(all); i += 2 {
				img, err := all[i].draw(i)
				if err != nil {
					t.Errorf("draw: %v", err)
					continue
				}
				reading, err := pool.Read(t.Context(), img)
				if err != nil {
					t.Errorf("read %q: %v", all[i].name, err)
				}
				all[i].words = reading.Words
			}
		})
	}
	wg.Wait()
}

// formatReadings and parseReadings write and read testdata/readings.txt: kind, split,
// name and the words with their confidence, divided by tabs.
func formatReadings(all []picture) []byte {
	var out bytes.Buffer
	for _, p := range all {
		out.WriteString(p.key())
		for _, w := range p.words {
			fmt.Fprintf(&out, "\t%s %.1f", w.Text, w.Confidence)
		}
		out.WriteByte('\n')
	}
	return out.Bytes()
}

func parseReadings(t testing.TB, body []byte) []picture {
	t.Helper()
	var all []picture
	for line := range strings.Lines(string(body)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		p := picture{kind: f[0], split: f[1], name: f[2]}
		for _, one := range f[3:] {
			text, confidence, _ := strings.Cut(one, " ")
			c, err := strconv.ParseFloat(confidence, 64)
			if err != nil {
				t.Fatalf("readings.txt: %v", err)
			}
			p.words = append(p.words, word.Word{Text: text, Confidence: c})
		}
		all = append(all, p)
	}
	return all
}

// A tally counts what became of the pictures of one kind and split.
type tally struct{ pictures, rejected, textless int }

// tallies judges pictures. Foreign captions count together, but for other scripts.
func tallies(f *Filter, all []picture) map[string]tally {
	counts := map[string]tally{}
	for _, p := range all {
		kind := p.kind
		switch kind {
		case english, "blank", "meme":
		case "ru", "el":
			kind = "other script"
		default:
			kind = "foreign"
		}
		n := counts[kind+" "+p.split]
		v := f.Judge(p.words, policyThreshold)
		n.pictures++
		if v.Outcome != "" {
			n.rejected++
		}
		if v.Reason == ReasonNoText {
			n.textless++
		}
		counts[kind+" "+p.split] = n
	}
	return counts
}

// TestReadings judges what OCR read of the pictures, as testdata/readings.txt holds it.
func TestReadings(t *testing.T) {
	read := parseReadings(t, readFile(t, "readings.txt"))
	testkit.Same(t,
		"readings.txt is of other pictures: make it again with go test ./pipeline/language -run - -bench Filter -benchtime 1x -update", keys(pictures(t)), keys(read))
	f := newFilter(t)
	for key, n := range tallies(f, read) {
		t.Logf("%s: %+v", key, n)
		wrong, bar := n.rejected, 1
		switch kind, _, _ := strings.Cut(key, " "); kind {
		case "foreign":
			wrong, bar = n.pictures-n.rejected-n.textless, 3
		case "other": // noise, to the English model
			wrong, bar = n.pictures-n.rejected-n.textless, 8
		case english: // the captions are there to be hard
			bar = 8
		}
		if 100*wrong > bar*n.pictures {
			t.Errorf("%s: %d of %d are wrong, want %d %% at most", key, wrong, n.pictures, bar)
		}
	}
}

func keys(all []picture) []string {
	var out []string
	for _, p := range all {
		out = append(out, p.key())
	}
	return out
}

var update = flag.Bool("update", false, "write what BenchmarkFilter reads to testdata/readings.txt")

// BenchmarkFilter draws and reads every picture, reads the memes of the folder
// REHYDRATE_MEMES, too, where it is set, and reports what the filter makes of them:
//
//	REHYDRATE_MEMES=DIR go test ./pipeline/language -run - -bench Filter -benchtime 1x
func BenchmarkFilter(b *testing.B) {
	f := newFilter(b)
	for b.Loop() {
		drawn := pictures(b)
		memes := memePictures(b)
		all := slices.Concat(drawn, memes)
		readPictures(b, all)
		if *update {
			testkit.OK(b, os.WriteFile(filepath.Join("testdata", "readings.txt"), formatReadings(all[:len(drawn)]), 0o644))
		}
		counts := tallies(f, all)
		for _, key := range slices.Sorted(maps.Keys(counts)) {
			n := counts[key]
			name := strings.ReplaceAll(key, " ", "-")
			b.ReportMetric(float64(n.pictures), name+":pictures")
			b.ReportMetric(100*float64(n.rejected)/float64(n.pictures), name+":rejected%")
			b.ReportMetric(100*float64(n.textless)/float64(n.pictures), name+":no-text%")
		}
	}
}

// memePictures lists the memes of REHYDRATE_MEMES, none without it.
func memePictures(t testing.TB) []picture {
	t.Helper()
	dir := os.Getenv("REHYDRATE_MEMES")
	if dir == "" {
		return nil
	}
	body, err := os.ReadFile(filepath.Join(dir, "transcripts.jsonl"))
	testkit.OK(t, err)
	var all []picture
	for line := range bytes.Lines(body) {
		var meme struct{ File, Split string }
		testkit.OK(t, json.Unmarshal(line, &meme))
		all = append(all, picture{kind: "meme", split: meme.Split, name: meme.File, file: filepath.Join(dir, meme.File)})
	}
	return all
}
