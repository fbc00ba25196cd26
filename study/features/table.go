package features

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"rehydrate/internal/picture"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset/pictures"
	"rehydrate/policy"
)

// A Config says of which pictures and texts numbers are computed, and which.
type Config struct {
	Paths        []string // a folder of pictures, or Parquet files that have pictures and perhaps texts
	Columns      pictures.Columns
	Images       policy.Images // what may be decoded
	Workers      int           // pictures at once, at least 1
	Cascade      *Cascade      // nil leaves faces out
	Detection    Detection
	Dictionaries []*Dictionary
	Counts       bool // tokens of a category instead of percent
	// Hidden reports whether a row is left out; may be nil.
	Hidden func(id string) bool
	// Progress is called after every picture, one call at a time; may be nil.
	Progress func(done, total int)
}

// A Table has the numbers, in the order of the sources.
type Table struct {
	Columns  []string                `json:"columns"`
	Kinds    map[string]Kind         `json:"kinds"` // of each column
	Rows     []Row                   `json:"-"`
	Pictures int                     `json:"pictures"`
	Faults   map[manifest.Reason]int `json:"unreadable"`         // pictures without numbers, by why
	Hidden   int                     `json:"left_out,omitempty"` // rows that Config.Hidden names
	NoText   int                     `json:"without_text"`       // rows without a word; all of them where no text is known
	Known    int                     `json:"resumed"`            // rows that an interrupted computation had
	How      []string                `json:"how"`                // what decides the numbers, for people
	Texts    bool                    `json:"texts"`              // the sources have texts
}

// A Kind says what the numbers of a column are, whatever they happen to be in one table.
type Kind string

// The kinds.
const (
	Number Kind = "number"
	Count  Kind = "count"
	YesNo  Kind = "yes_no" // 1 or 0
)

// kinds declares the columns.
func (c *Config) kinds(columns []string) map[string]Kind {
	known := map[string]Kind{"faces": Count, "face_haar": YesNo, "words": Count, "sentences": Count}
	if c.Counts { // in place of percent
		for _, d := range c.Dictionaries {
			for _, category := range d.Categories {
				known[d.Name+"."+category] = Count
			}
		}
	}
	kinds := make(map[string]Kind, len(columns))
	for _, name := range columns {
		kinds[name] = Number
		if kind, ok := known[name]; ok {
			kinds[name] = kind
		}
	}
	return kinds
}

// A Row has the numbers of one picture and its text, NaN for none.
type Row struct {
	ID      string
	Numbers []float64
}

// All yields the rows.
func (t *Table) All(yield func(string, []float64) bool) {
	for _, r := range t.Rows {
		if !yield(r.ID, r.Numbers) {
			return
		}
	}
}

// IDs returns the ids of the rows.
func (t *Table) IDs() (ids []string) {
	for _, r := range t.Rows {
		ids = append(ids, r.ID)
	}
	return ids
}

// Made says on one line what decides the numbers.
func (t *Table) Made() string { return strings.Join(t.How, "; ") }

// FaultCounts has the unreadable pictures by why.
func (t *Table) FaultCounts() map[string]int {
	counts := map[string]int{}
	for why, n := range t.Faults {
		counts[string(why)] = n
	}
	return counts
}

// how says what decides the numbers.
func (c *Config) how() []string {
	parts := []string{"pixels upright, over white, first frame; lossy WebP as libwebp; " +
		"grey and HSV as OpenCV's 8-bit conversions"}
	if c.Cascade != nil {
		parts = append(parts, fmt.Sprintf("faces by %s (SHA-256 %s), scale factor %g, min neighbors %d, min size %d",
			c.Cascade.Name,
			c.Cascade.SHA256, c.Detection.Scale, c.Detection.Neighbors, c.Detection.MinSize))
	}
	for _, d := range c.Dictionaries {
		parts = append(parts, fmt.Sprintf("dictionary %s (%s, SHA-256 %s, %d entries, %d categories, union %t)", d.Name,
			d.Form,
			d.SHA256, d.Entries, len(d.Categories), d.Union))
	}
	if c.Counts {
		parts = append(parts, "tokens of a category counted")
	}
	return parts
}

// Compute computes the numbers of all pictures. Each finished row is kept in the file part, if it has a name, so that a
// computation that is interrupted goes on from there; with other settings it begins once more. Whatever is wrong with a
// picture is counted; the error is of the sources, the disk or the context.
func Compute(ctx context.Context, c Config, part string) (*Table, error) {
	t := &Table{Faults: map[manifest.Reason]int{}, How: c.how()}
	var sources []*pictures.Source
	total := 0
	for _, path := range c.Paths {
		s, err := pictures.Open(ctx, path, c.Columns, c.Images, pictures.Without{})
		if err != nil {
			return nil, err
		}
		sources = append(sources, s)
		total += s.Most
		t.Texts = t.Texts || s.TextColumn != ""
	}
	t.Columns = PictureColumns()
	if c.Cascade != nil {
		t.Columns = append(t.Columns, "faces", "face_haar")
	}
	if t.Texts {
		t.Columns = append(t.Columns, TextColumns(c.Dictionaries)...)
	}
	t.Kinds = c.kinds(t.Columns)
	kept, err := openKept(part, t)
	if err != nil {
		return nil, err
	}
	work := &computing{Config: c, table: t, kept: kept, total: total, taken: map[string]bool{}}
	for _, s := range sources {
		err = errors.Join(err, s.Each(ctx, c.Workers, work.pick(s)))
		if err != nil {
			break
		}
	}
	return t, errors.Join(err, kept.Close())
}

// A computing fills a table. The rows have their places before they have their numbers.
type computing struct {
	Config
	table *Table
	kept  *kept
	total int
	taken map[string]bool // ids
	mu    sync.Mutex
	done  int
}

func (w *computing) pick(s *pictures.Source) func(context.Context, pictures.Picture) func() error {
	return func(ctx context.Context, p pictures.Picture) func() error {
		id := p.ID
		if id == "" {
			id = strings.TrimSuffix(p.Name, filepath.Ext(p.Name))
		}
		if w.taken[id] {
			id = p.Name // a.jpg and a.png
		}
		w.taken[id] = true
		if w.Hidden != nil && w.Hidden(id) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.table.Hidden++
			w.total--
			return func() error { return nil }
		}
		w.mu.Lock()
		at := len(w.table.Rows)
		w.table.Rows = append(w.table.Rows, Row{ID: id})
		w.mu.Unlock()
		return func() error {
			body, fault := p.Read()
			// The same name can be another picture by now, or have another text.
			sum := sha256.Sum256(append([]byte(p.Text+"\x00"), body...))
			source := hex.EncodeToString(sum[:])
			known, ok := w.kept.rows[id]
			ok = ok && known.Source == source
			if !ok {
				known = w.row(ctx, s, p.Text, body, fault)
				known.ID, known.Source = id, source
				if ctx.Err() != nil {
					return ctx.Err()
				}
			}
			return w.take(at, known, ok)
		}
	}
}

// take puts a row in its place and keeps it.
func (w *computing) take(at int, r keptRow, known bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	numbers := make([]float64, len(w.table.Columns))
	for i, v := range r.Numbers {
		numbers[i] = math.NaN()
		if v != nil {
			numbers[i] = *v
		}
	}
	w.table.Rows[at].Numbers = numbers
	w.table.Pictures++
	if r.Fault != "" {
		w.table.Faults[r.Fault]++
	}
	if r.NoText {
		w.table.NoText++
	}
	w.done++
	if w.Progress != nil {
		w.Progress(w.done, w.total)
	}
	if known {
		w.table.Known++
		return nil
	}
	return w.kept.add(r)
}

// row computes the numbers of one picture and its text.
func (w *computing) row(ctx context.Context, s *pictures.Source, text string, body []byte,
	fault *policy.Fault) (r keptRow) {
	var numbers []float64
	if fault == nil {
		fault = s.Decode(ctx, body, func(img image.Image) error {
			var grey *image.Gray
			numbers, grey = Picture(picture.Upright(picture.AsLibwebp(img, body), body))
			if w.Cascade != nil {
				faces := len(w.Cascade.Faces(ctx, grey, w.Detection))
				numbers = append(numbers, float64(faces), float64(min(faces, 1)))
			}
			return nil
		})
	}
	if fault != nil {
		r.Fault = fault.Reason
		numbers = slices.Repeat([]float64{math.NaN()}, len(PictureColumns()))
		if w.Cascade != nil {
			numbers = append(numbers, math.NaN(), math.NaN())
		}
	}
	r.NoText = true
	if w.table.Texts {
		words := Text(text, w.Dictionaries, w.Counts)
		r.NoText = math.IsNaN(words[0])
		numbers = append(numbers, words...)
	}
	for _, v := range numbers {
		if math.IsNaN(v) {
			r.Numbers = append(r.Numbers, nil)
		} else {
			r.Numbers = append(r.Numbers, &v)
		}
	}
	return r
}

// A keptRow is a line of the file of rows that are finished. JSON has no NaN.
type keptRow struct {
	ID      string          `json:"id"`
	Source  string          `json:"source"` // SHA-256 of its text and picture
	Numbers []*float64      `json:"numbers"`
	Fault   manifest.Reason `json:"fault,omitempty"`
	NoText  bool            `json:"no_text,omitempty"`
}

// kept are the rows that are finished, in a file whose first line says how they were made.
type kept struct {
	rows map[string]keptRow
	file *os.File // nil keeps nothing
}

func openKept(path string, t *Table) (*kept, error) {
	k := &kept{rows: map[string]keptRow{}}
	if path == "" {
		return k, nil
	}
	head, err := json.Marshal([]string{t.Made(), strings.Join(t.Columns, " ")})
	if err != nil {
		return nil, err
	}
	k.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	in, whole := bufio.NewReader(k.file), int64(0)
	line, err := in.ReadBytes('\n')
	if err == nil && bytes.Equal(bytes.TrimSpace(line), head) {
		whole = k.read(in, int64(len(line)))
	}
	// What a kill cut off, or other settings made, goes.
	err = errors.Join(k.file.Truncate(whole), seekTo(k.file, whole))
	if err == nil && whole == 0 {
		_, err = k.file.Write(append(head, '\n'))
	}
	if err != nil {
		return nil, errors.Join(err, k.file.Close())
	}
	return k, nil
}

func seekTo(f *os.File, at int64) error { _, err := f.Seek(at, 0); return err }

// read takes the whole rows and returns where they end.
func (k *kept) read(in *bufio.Reader, at int64) int64 {
	for {
		line, err := in.ReadBytes('\n')
		var r keptRow
		if err != nil || json.Unmarshal(line, &r) != nil {
			return at
		}
		k.rows[r.ID] = r
		at += int64(len(line))
	}
}

func (k *kept) add(r keptRow) error {
	if k.file == nil {
		return nil
	}
	line, err := json.Marshal(r)
	if err == nil {
		_, err = k.file.Write(append(line, '\n'))
	}
	return err
}

// Close closes the file and leaves it.
func (k *kept) Close() error {
	if k.file == nil {
		return nil
	}
	return k.file.Close()
}
