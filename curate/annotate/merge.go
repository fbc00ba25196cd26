package annotate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"rehydrate/internal/csvcell"
	"rehydrate/internal/durable"
	"rehydrate/internal/userfile"
	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/study"
	"rehydrate/study/argilla"
)

// A Merging says which answers become a manifest.
type Merging struct {
	Files   []string          // Argilla exports (.json) and tables, one for each annotator
	Release *manifest.Release // whose entries were annotated
	Scheme  *manifest.Release // whose labels were given
	Batch   string            // the metadata or column that names batches
	Decides labels.Decider    // who decides where others differ
}

// Merged is what came of a round. Annotators are A1, A2 and so on: those of Argilla exports in the order in which they
// answered first, then those of tables as they were given.
type Merged struct {
	Asked   int `json:"asked"`              // entries with an answer
	Unasked int `json:"unasked"`            // entries of the release without one
	LeftOut int `json:"left_out,omitempty"` // answers that are drafts, were discarded, or otherwise say that they are none
	// Missing are words for a missing value in place of answers.
	Missing    []study.MissingWords `json:"missing_words,omitempty"`
	Annotators []Annotator          `json:"annotators"`
	Categories []Tally              `json:"categories"`
	Agreement  *study.Agreement     `json:"agreement"`              // of those who do not decide; nil where there is none
	Without    string               `json:"no_agreement,omitempty"` // why, or why there is none by batch
	Open       []Open               `json:"open"`                   // in the order of the release

	entries []manifest.Entry // with the labels that were found
	schema  manifest.Schema
}

// An Annotator is a number and what they did.
type Annotator struct {
	Name    string `json:"name"`
	Entries int    `json:"entries"` // with an answer of theirs
	Decided int    `json:"decided"` // answers that stand although others differed
}

// A Tally counts how the answers of a category were found.
type Tally struct {
	Category string `json:"category"`
	Agreed   int    `json:"agreed"`
	Decided  int    `json:"decided"` // by the one who decides
	Open     int    `json:"open"`
}

// An Open question is one that still has no answer.
type Open struct {
	Entry    string   `json:"entry"`
	Batch    string   `json:"batch,omitempty"`
	Category string   `json:"category"`
	Why      string   `json:"why"`     // differ, or too_few
	Answers  []string `json:"answers"` // codes joined by |, by annotator; "no label", or "" for no answer
}

// noLabel is what an open question has for the answer that no label applies, where no label of the category says so.
const noLabel = "no label"

// noAnswer is what the table of open questions has where nobody answered.
const noAnswer = "no answer"

// Why a question is open.
const (
	differ = "differ"
	tooFew = "too_few" // answers: it takes two
)

// Merge finds the label of each question that annotators answered: where all but the one who decides agree, what they
// say, else what that one says. The error lists the records and rows that are at fault.
func Merge(ctx context.Context, m Merging) (*Merged, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	read, err := m.read(ctx)
	if err != nil {
		return nil, err
	}
	answers, batches := read.annotators, read.batches
	if len(answers) < int(m.Decides) {
		return nil, fmt.Errorf("--decides %s: there are %d annotators", labels.Annotator(int(m.Decides)-1), len(answers))
	}
	out := &Merged{Open: []Open{}, LeftOut: read.leftOut, Missing: read.missing, schema: m.Scheme.Schema}
	out.schema.Columns = m.Release.Schema.Joined().Columns
	given := make([]labels.Answers, len(answers)) // of which nothing is taken out
	for i := range answers {
		out.Annotators = append(out.Annotators, Annotator{Name: labels.Annotator(i), Entries: len(answers[i])})
		given[i] = maps.Clone(answers[i])
	}
	for _, c := range m.Scheme.Schema.Categories {
		out.Categories = append(out.Categories, Tally{Category: c.Name})
	}
	for e, err := range labels.Images(m.Release.Schema, m.Release.Entries(ctx)) {
		if err != nil {
			return nil, err
		}
		who := who(answers, e.Key)
		if len(who) == 0 {
			out.Unasked++
			continue
		}
		out.Asked++
		e.Labels = make([][]int, len(out.Categories))
		for c := range out.Categories {
			e.Labels[c] = m.settle(out, answers, e.Key, c, batches.Of()[e.Key])
		}
		out.entries = append(out.entries, e)
		for _, of := range answers {
			delete(of, e.Key)
		}
	}
	if err := m.strangers(answers); err != nil {
		return nil, err
	}
	if out.Asked == 0 {
		return nil,
			errors.New("the files hold no answer for an entry of the release: is a column or a question called as its category?")
	}
	out.Agreement, err = m.agreement(given, batches)
	if err != nil {
		out.Without = err.Error()
	}
	return out, nil
}

// check refuses what would count an answer twice, or give an entry two values under one name.
func (m *Merging) check() error {
	for i, file := range m.Files {
		for _, other := range m.Files[:i] {
			a, err := os.Stat(file)
			b, err2 := os.Stat(other)
			if err == nil && err2 == nil && os.SameFile(a, b) {
				return fmt.Errorf("%s and %s are one file: an annotator answers once", other, file)
			}
		}
	}
	for _, c := range m.Release.Schema.Columns {
		if slices.ContainsFunc(m.Scheme.Schema.Categories, func(k manifest.Category) bool { return k.Name == c.Name }) {
			return fmt.Errorf("%s is a column of the release and a category of the scheme: give one of them another name",
				c.Name)
		}
	}
	return nil
}

// who lists the annotators who answered for an entry.
func who(answers []labels.Answers, key manifest.Key) (list []int) {
	for i, of := range answers {
		if of[key] != nil {
			list = append(list, i)
		}
	}
	return list
}

// settle returns the labels of a category, and counts how they were found; nil where the question is open.
func (m *Merging) settle(out *Merged, answers []labels.Answers, key manifest.Key, c int, batch string) []int {
	category, tally := m.Scheme.Schema.Categories[c], &out.Categories[c]
	var given []int // annotators
	sets := make([][]int, len(answers))
	texts := make([]string, len(answers))
	for i, of := range answers {
		if of[key] != nil && of[key][c] != nil {
			given = append(given, i)
			sets[i] = plain(category, of[key][c])
			texts[i] = cmp.Or(strings.Join(category.Codes(sets[i]), "|"), noLabel)
		}
	}
	judge := m.Decides.Of(given)
	others := slices.DeleteFunc(slices.Clone(given), func(i int) bool { return i == judge })
	same := func(i int) bool { return slices.Equal(sets[i], sets[others[0]]) }
	switch {
	case len(others) >= 2 && !slices.ContainsFunc(others, func(i int) bool { return !same(i) }):
		tally.Agreed++
		return sets[others[0]]
	case judge >= 0:
		tally.Decided++
		out.Annotators[judge].Decided++
		return sets[judge]
	}
	tally.Open++
	why := differ
	if len(given) < 2 {
		why = tooFew
	}
	out.Open = append(out.Open, Open{key.String(), batch, category.Name, why, texts})
	return nil
}

// plain puts labels into the order of the scheme. No label at all is None, where the category has it, and else an
// answer without labels, which is never nil: that would be no answer.
func plain(c manifest.Category, given []int) []int {
	if len(given) == 0 {
		if none := slices.IndexFunc(c.Labels, func(l manifest.Label) bool { return l.Exclusive }); none >= 0 {
			return []int{none}
		}
	}
	return append([]int{}, slices.Sorted(slices.Values(given))...)
}

// given are all answers.
type given struct {
	annotators []labels.Answers
	batches    study.Batches
	leftOut    int // that say that they are none
	missing    []study.MissingWords
}

// read reads all answers.
func (m *Merging) read(ctx context.Context) (out given, err error) {
	answers := argilla.New(m.Batch, m.Scheme)
	var tables []study.Reading
	var failed []error
	for _, file := range m.Files {
		if strings.ToLower(filepath.Ext(file)) == ".json" {
			f, _, err := userfile.Open(file)
			if err == nil {
				err = errors.Join(answers.Read(ctx, f, file), f.Close())
			}
			out.batches.Add(answers.Export().Batches)
			failed = append(failed, err)
			continue
		}
		table, err := study.ReadAnswers(ctx, file, m.Scheme)
		failed = append(failed, err)
		if err == nil {
			_, _ = out.batches.Read(ctx, file, m.Batch) // batches are told where a file names them
		}
		tables = append(tables, table)
	}
	export := answers.Export()
	out.annotators, out.leftOut = export.Annotators, export.LeftOut
	for _, table := range tables {
		out.missing = append(out.missing, table.MissingOf(len(out.annotators))...)
		out.annotators, out.leftOut = append(out.annotators, table.Answers), out.leftOut+table.LeftOut
	}
	return out, errors.Join(failed...)
}

// strangers refuses answers for what is not an entry of the release.
func (m *Merging) strangers(left []labels.Answers) error {
	var problems manifest.Problems
	for i, of := range left {
		for _, key := range slices.SortedFunc(maps.Keys(of),
			func(a, b manifest.Key) int { return strings.Compare(a.String(), b.String()) }) {
			problems.Add(manifest.Problem{Message: fmt.Sprintf("%s answered for %s, which is not an entry of the release",
				labels.Annotator(i), key),
				Hint: "name the release that was exported with --release"})
		}
	}
	return problems.Err()
}

// seed is that of the intervals.
const seed = 1

// agreement compares those who do not decide. The error says why nobody can be compared.
func (m *Merging) agreement(answers []labels.Answers, batches study.Batches) (*study.Agreement, error) {
	how := labels.Comparing{Decider: m.Decides, Seed: seed}
	all, err := labels.Agree(m.Scheme.Schema, answers, how)
	if err != nil {
		return nil, err
	}
	by, err := labels.AgreeByBatch(m.Scheme.Schema, answers, batches.Of(), how)
	out := &study.Agreement{Agreement: all}
	out.SetBatches(by, batches)
	return out, err
}

// OpenName is the file beside a manifest with the questions that are open.
func OpenName(to string) string { return strings.TrimSuffix(to, filepath.Ext(to)) + ".open.csv" }

// Write writes the manifest, or while a question is open the table of those instead, and returns its name. A file of
// that name that somebody else wrote or changed stays as it is: they may have noted there what they decided.
func (m *Merged) Write(ctx context.Context, to string) (string, error) {
	open := OpenName(to)
	there, err := os.ReadFile(open)
	own := err == nil && m.wroteOpen(there)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", err
	case len(m.Open) > 0 && err == nil && !own:
		return "", &userfile.Fault{Err: fmt.Errorf("write the open questions: %s is not as annotate merge wrote it", open),
			Hint: "move it away, if it has notes of yours, or name another file with --out"}
	case len(m.Open) > 0:
		return open, durable.Write(ctx, open, 0o600, m.writeOpen)
	case own: // what an earlier merge left there is answered
		err = os.Remove(open)
		if err != nil {
			return "", err
		}
	}
	return to, durable.Write(ctx, to, 0o600, m.writeManifest)
}

// openHead is the first row of the table of open questions.
func (m *Merged) openHead() []string {
	head := []string{"id", "batch"}
	for _, c := range m.schema.Categories {
		head = append(head, c.Name)
	}
	return head
}

// wroteOpen reports whether a file is a table of open questions as writeOpen writes it, with nothing added by hand.
func (m *Merged) wroteOpen(file []byte) bool {
	rows, err := csv.NewReader(bytes.NewReader(file)).ReadAll()
	if err != nil || len(rows) == 0 || !slices.Equal(rows[0], m.openHead()) {
		return false
	}
	for _, row := range rows[1:] {
		for i, c := range m.schema.Categories {
			cell := row[len(row)-len(m.schema.Categories)+i]
			said := strings.Split(csvcell.FromCell(cell), "; ")
			if cell != "" && cell != noAnswer && slices.ContainsFunc(said, func(of string) bool { return !answerIn(c, of) }) {
				return false
			}
		}
	}
	return true
}

var annotatorSays = regexp.MustCompile(`^A[1-9][0-9]*: (.+)$`)

// answerIn reports whether a text is "A1: " and labels of the category, or that no label applies.
func answerIn(c manifest.Category, text string) bool {
	said := annotatorSays.FindStringSubmatch(text)
	if said == nil {
		return false
	}
	isLabel := func(code string) bool {
		return slices.ContainsFunc(c.Labels, func(l manifest.Label) bool { return l.Code == code })
	}
	return said[1] == noLabel || !slices.ContainsFunc(strings.Split(said[1], "|"),
		func(code string) bool { return !isLabel(code) })
}

// writeOpen writes a row for each entry, with what was answered to its open questions.
func (m *Merged) writeOpen(w io.Writer) error {
	rows := [][]string{m.openHead()}
	for _, o := range m.Open {
		if last := rows[len(rows)-1]; last[0] != o.Entry {
			rows = append(rows, make([]string, len(rows[0])))
			copy(rows[len(rows)-1], []string{o.Entry, o.Batch})
		}
		var said []string
		for i, codes := range o.Answers {
			if codes != "" {
				said = append(said, labels.Annotator(i)+": "+codes)
			}
		}
		// An empty cell is a question that is not open.
		rows[len(rows)-1][slices.Index(rows[0], o.Category)] = csvcell.Cell(cmp.Or(strings.Join(said, "; "), noAnswer))
	}
	return csv.NewWriter(w).WriteAll(rows)
}

// writeManifest writes the entries as JSON Lines, in which no code of a label needs a separator.
func (m *Merged) writeManifest(w io.Writer) error {
	var fields []manifest.Field
	for _, field := range []manifest.Field{manifest.FieldImage, manifest.FieldSplit, manifest.FieldSubreddit,
		manifest.FieldSHA256, manifest.FieldStripped, manifest.FieldPixels, manifest.FieldPHash} {
		usual := field.Of(manifest.Entry{Split: manifest.DefaultSplit})
		if slices.ContainsFunc(m.entries, func(e manifest.Entry) bool { return field.Of(e) != usual }) {
			fields = append(fields, field)
		}
	}
	out := manifest.NewWriter(w, manifest.JSONL, m.schema, "", fields...)
	for _, e := range m.entries {
		out.Write(e)
	}
	return out.Flush()
}
