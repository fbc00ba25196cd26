package review

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"rehydrate/internal/durable"
	"rehydrate/internal/jsonscan"
	"rehydrate/manifest"
)

// What became of an image.
const (
	answered = "answered"
	skipped  = "skipped"
)

// Keys of a line beside the id and the categories.
const (
	keyBatch  = "batch"
	keyStatus = "status"
	keyCare   = "care"
)

// An answer is what the annotator said of one image.
type answer struct {
	Key    manifest.Key
	Batch  string
	Status string
	Care   bool    // somebody should look after the post, or after the annotator
	Labels [][]int // by category; nil for none
}

// A journal is the file of one annotator's answers: lines of JSON, in the order in which they were given, which labels
// agreement and annotate merge read as a table. It is written whole each time, so that it is one whenever the program
// ends.
type journal struct {
	path   string
	scheme manifest.Schema
	list   []answer
	bytes  []byte // of the file
}

// openJournal reads what is there already.
func openJournal(path string, scheme manifest.Schema) (*journal, error) {
	j := &journal{path: path, scheme: scheme}
	for _, c := range scheme.Categories {
		if slices.Contains([]string{keyBatch, keyStatus, keyCare}, c.Name) {
			return nil, fmt.Errorf("a category is called %s, as a column of the answers: rename it", c.Name)
		}
	}
	var err error
	j.bytes, err = os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	n := 0
	for line := range bytes.Lines(j.bytes) {
		n++
		a, failed := j.parse(line)
		if failed == nil && slices.ContainsFunc(j.list, func(b answer) bool { return b.Key == a.Key }) {
			failed = fmt.Errorf("%s has an answer already", a.Key)
		}
		if failed != nil && !bytes.HasSuffix(line, []byte("\n")) { // as a write that was cut off leaves it
			failed = fmt.Errorf("%w; the last line is cut off: delete it, and answer its image again", failed)
		}
		if failed != nil {
			return nil, fmt.Errorf("read the answers in %s, line %d: %w", path, n, failed)
		}
		j.list = append(j.list, a)
	}
	return j, err
}

// parse reads a line of format. It refuses what format would not write again: it would be lost with the next answer.
func (j *journal) parse(line []byte) (a answer, err error) {
	var all map[string]json.RawMessage
	var id string
	if _, err := jsonscan.Decode(line); err != nil { // a key that stands twice says two things
		return a, fmt.Errorf("it is not an answer of this page: %w", err)
	}
	err = errors.Join(json.Unmarshal(line, &all), json.Unmarshal(all["id"], &id),
		json.Unmarshal(all[keyStatus], &a.Status))
	if err == nil && all[keyBatch] != nil {
		err = json.Unmarshal(all[keyBatch], &a.Batch)
	}
	if err == nil && all[keyCare] != nil {
		err = json.Unmarshal(all[keyCare], &a.Care)
	}
	if err != nil || a.Status != answered && a.Status != skipped {
		return a, errors.New("it is not an answer of this page")
	}
	if err := j.sameLabels(all, a.Status); err != nil {
		return a, err
	}
	a.Key, err = manifest.ParseKey(id)
	given := map[string][]string{}
	for _, c := range j.scheme.Categories {
		var one string
		var many []string
		raw := all[c.Name]
		switch {
		case raw == nil || string(raw) == "null":
		case a.Status == skipped:
			return a, fmt.Errorf("the image was skipped, and category %s has an answer", c.Name)
		case json.Unmarshal(raw, &many) == nil:
			given[c.Name] = many
		case json.Unmarshal(raw, &one) == nil:
			given[c.Name] = []string{one}
		default:
			return a, fmt.Errorf("category %s has %s, which is no label", c.Name, raw)
		}
	}
	if err == nil && a.Status == answered {
		a.Labels, err = labelsOf(j.scheme, given)
	}
	return a, err
}

// sameLabels refuses a line of other labels: an answer to a category that the scheme lacks would be lost, and one that
// was not asked for would be taken for no label.
func (j *journal) sameLabels(line map[string]json.RawMessage, status string) error {
	known := []string{"id", keyBatch, keyStatus, keyCare}
	var lacking []string
	for _, c := range j.scheme.Categories {
		known = append(known, c.Name)
		if line[c.Name] == nil && status == answered {
			lacking = append(lacking, c.Name)
		}
	}
	var others []string
	for _, key := range slices.Sorted(maps.Keys(line)) {
		if !slices.Contains(known, key) {
			others = append(others, fmt.Sprintf("%q", key))
		}
	}
	const ask = "name another folder with --answers DIR, or with --scheme FILE the labels that were answered there"
	switch {
	case len(others) > 0:
		return &manifest.Problem{Message: "it has " + strings.Join(others, ", ") +
			", and no category is called so: the next answer would lose it",
			Hint: ask + "; keep notes of your own in another file"}
	case len(lacking) > 0:
		return &manifest.Problem{Message: "it has no answer to " + strings.Join(lacking, ", ") +
			", which nobody asked for", Hint: ask}
	}
	return nil
}

// labelsOf reads the codes that were given for each category, and refuses what the scheme does not allow.
func labelsOf(s manifest.Schema, given map[string][]string) (all [][]int, err error) {
	for _, c := range s.Categories {
		labels := []int{}
		for _, code := range given[c.Name] {
			at := slices.IndexFunc(c.Labels, func(l manifest.Label) bool { return l.Code == code })
			if at < 0 || slices.Contains(labels, at) {
				return nil, fmt.Errorf("%q is not a label of category %s, or given twice", code, c.Name)
			}
			labels = append(labels, at)
		}
		exclusive := func(l manifest.Label) bool { return l.Exclusive }
		alone := slices.ContainsFunc(labels, func(l int) bool { return c.Labels[l].Exclusive })
		switch {
		case c.Kind != manifest.Multi && len(labels) != 1:
			return nil, fmt.Errorf("category %s takes one label", c.Name)
		case len(labels) == 0 && slices.ContainsFunc(c.Labels, exclusive):
			return nil, fmt.Errorf("category %s takes a label, None if no other applies", c.Name)
		case alone && len(labels) > 1:
			return nil, fmt.Errorf("a label of category %s stands alone", c.Name)
		case given[c.Name] == nil: // no answer, which is not the answer that no label applies
			return nil, fmt.Errorf("category %s has no answer", c.Name)
		}
		slices.Sort(labels)
		all = append(all, labels)
	}
	return all, nil
}

// format is the line of an answer. A category without an answer is null.
func (j *journal) format(a answer) ([]byte, error) {
	line := map[string]any{"id": a.Key.String(), keyStatus: a.Status, keyCare: a.Care}
	if a.Batch != "" {
		line[keyBatch] = a.Batch
	}
	for i, c := range j.scheme.Categories {
		switch {
		case a.Labels == nil:
			line[c.Name] = nil
		case c.Kind == manifest.Multi:
			line[c.Name] = append([]string{}, c.Codes(a.Labels[i])...)
		default:
			line[c.Name] = c.Codes(a.Labels[i])[0]
		}
	}
	b, err := json.Marshal(line)
	return append(b, '\n'), err
}

// find returns the answer for an image, nil for none.
func (j *journal) find(key manifest.Key) *answer {
	at := slices.IndexFunc(j.list, func(a answer) bool { return a.Key == key })
	if at < 0 {
		return nil
	}
	return &j.list[at]
}

// save replaces the answers, on the disk first.
func (j *journal) save(ctx context.Context, list []answer) error {
	var b bytes.Buffer
	for _, a := range list {
		line, err := j.format(a)
		if err != nil {
			return err
		}
		b.Write(line)
	}
	// Another page that is open on the same file would lose its answers.
	there, err := os.ReadFile(j.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !bytes.Equal(there, j.bytes) {
		return fmt.Errorf("somebody else changed %s: close this page, and open it again", j.path)
	}
	err = durable.Write(ctx, j.path, 0o600, func(w io.Writer) error { _, err := w.Write(b.Bytes()); return err })
	if err == nil {
		j.list, j.bytes = list, b.Bytes()
	}
	return err
}
