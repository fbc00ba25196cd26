// Package argilla reads the answers of annotators out of the exports of Argilla, and keeps no id of a user.
package argilla

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"rehydrate/internal/jsonscan"
	"rehydrate/internal/userfile"
	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/manifest/table"
)

// maxExport bounds an Argilla export, in bytes. The fields of a record may hold the picture itself.
const maxExport = 512 << 20

// An Export is what an Argilla export holds of the categories asked for.
type Export struct {
	Annotators []labels.Answers // in the order in which they appear; their ids are kept nowhere
	Records    int
	LeftOut    int                     // answers that are drafts or were discarded
	Ignored    []string                // questions that name no category, sorted; they come from the file
	Batches    map[manifest.Key]string // of the records that have the metadata asked for
}

// A Reader reads the exports of annotation datasets of Argilla, a file after the other: a user of one is the same in
// all.
type Reader struct {
	batch   string
	release *manifest.Release
	most    int64          // bytes of a file
	users   map[string]int // user id -> place in out.Annotators
	ignored map[string]struct{}
	out     Export

	// Of the file that is read.
	file     string
	records  int
	answers  int
	seen     map[manifest.Key]bool
	images   manifest.Images
	beside   manifest.Beside
	ids      []ownID // of records that have another post's in their metadata or fields
	problems manifest.Problems
}

// An ownID is the id of a record itself, where that can be the id of another post than the one it is about.
type ownID struct {
	record int
	id     manifest.PostID
	sure   bool // it can be nothing else
}

// New returns a reader that has read nothing. batch names the metadata that tells a record's batch, "" for none.
func New(batch string, release *manifest.Release) *Reader {
	return &Reader{batch: batch, release: release, most: maxExport, users: make(map[string]int),
		ignored: make(map[string]struct{})}
}

// Export returns what was read.
func (a *Reader) Export() Export {
	a.out.Ignored = slices.Sorted(maps.Keys(a.ignored))
	return a.out
}

// Read reads the responses of what Dataset.records.to_json of Argilla 2 writes. The post's id is metadata or a field
// with one of the names of manifest.NameOfID, else the record's own id; metadata such as image can say which image it
// is (manifest.Images). The answers of a record whose metadata say that it is no answer are left out. A record whose
// metadata and fields name a comment or another post is refused as the row of a table is (manifest.Beside), and so is
// one whose own id is that of another record's post, or of another one of the release. Suggestions are a model's and are
// not read. Errors are *manifest.Problems that name each record, and never hold the id of a user.
func (a *Reader) Read(ctx context.Context, in io.Reader, file string) error {
	a.file, a.records, a.answers, a.problems, a.images = file, 0, 0, manifest.Problems{}, manifest.Images{}
	a.beside, a.ids = manifest.Beside{}, nil
	a.seen = make(map[manifest.Key]bool)
	limited := &io.LimitedReader{R: userfile.Text(in), N: a.most}
	err := a.read(ctx, json.NewDecoder(limited))
	a.out.Records += a.records
	switch {
	case err != nil && limited.N <= 0: // the decoder failed at the limit, not at a fault of the file
		err = a.fail(fmt.Sprintf("the export is larger than %d MiB", a.most>>20), "export it without images and vectors")
	case err == nil && a.answers == 0:
		err = a.fail(fmt.Sprintf("none of the %d records has a submitted response to a question that is a category",
			a.records),
			"name the questions as the categories, or as their columns in release.toml (--release)")
	}
	return err
}

// An argillaRecord is a post with the answers to each question.
type argillaRecord struct {
	ID        any              `json:"id"`
	Metadata  map[string]any   `json:"metadata"`
	Fields    map[string]any   `json:"fields"`
	Responses argillaResponses `json:"responses"`
}

// argillaResponses are the questions of a record in the order of the file, by which annotators are numbered.
type argillaResponses []questionResponses

type questionResponses struct {
	question  string
	responses []argillaResponse
}

func (q *argillaResponses) UnmarshalJSON(text []byte) error {
	var byQuestion map[string][]argillaResponse
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // it is not inherited
	if err := d.Decode(&byQuestion); err != nil || byQuestion == nil {
		return err
	}
	for m := range jsonscan.Members(string(text)) {
		*q = append(*q, questionResponses{m.Key, byQuestion[m.Key]})
	}
	return nil
}

type argillaResponse struct {
	User   any    `json:"user_id"`
	Status string `json:"status"` // "" where the export has none: then every response was submitted
	Value  any    `json:"value"`
}

func (a *Reader) read(ctx context.Context, d *json.Decoder) error {
	if first, err := d.Token(); err != nil || first != json.Delim('[') {
		return a.fail("the file is not an Argilla export: it does not hold a list of records", exportAgain)
	}
	for d.More() {
		a.records++
		var raw json.RawMessage
		err := d.Decode(&raw)
		if err != nil {
			err = a.broken(err)
		} else {
			err = a.readRecord(raw)
		}
		if one, isOne := errors.AsType[*badRecord](err); isOne {
			a.problems.Add(one.Problem)
		} else if err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return a.broken(err)
	}
	// Without this check a second list would be ignored without an error.
	if _, err := d.Token(); err != io.EOF {
		return a.fail("something follows the list of records",
			"give one export: two that were put into one file are two lists")
	}
	for _, mixed := range a.images.Mixed() {
		mixed.File = a.file
		a.problems.Add(mixed)
	}
	a.problems.Join(a.beside.Comments())
	if err := a.judgeOwnIDs(ctx); err != nil {
		return err
	}
	return a.problems.Err()
}

// judgeOwnIDs refuses records whose own ids are those of posts, and of other ones than theirs: metadata that slipped by
// a row look so. What else an own id is, such as a number or a name, says nothing. The posts are those of the other
// records and of the release.
func (a *Reader) judgeOwnIDs(ctx context.Context) error {
	if len(a.ids) == 0 {
		return nil
	}
	posts := make(map[manifest.PostID]bool)
	for key := range a.seen {
		posts[key.ID] = true
	}
	if a.release.ManifestPath != "" { // else it is a schema alone
		for e, err := range a.release.Entries(ctx) {
			if err != nil {
				return userfile.Faulty(err)
			}
			posts[e.ID] = true
		}
	}
	for _, own := range a.ids {
		if own.sure || posts[own.id] {
			a.problems.Add(manifest.Problem{File: a.file, Message: fmt.Sprintf("record %d: its own id is that of post "+
				"%s, and its metadata or fields name another post", own.record, own.id),
				Hint: "correct the metadata, or give the records ids that are not those of posts"})
		}
	}
	return nil
}

// readRecord reads one record. A key that stands twice in it, such as a question, could be read in two ways.
func (a *Reader) readRecord(raw json.RawMessage) error {
	_, err := jsonscan.Decode(raw)
	if _, twice := errors.AsType[*jsonscan.Twice](err); twice {
		return a.bad("a key stands twice in one object of it", "keep one of them, or "+exportAgain)
	}
	var r argillaRecord
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // ids and labels may be numbers
	if err := d.Decode(&r); err != nil {
		return a.broken(err)
	}
	return a.record(r)
}

// A badRecord is the problem of one record, behind which others can be read.
type badRecord struct{ manifest.Problem }

// fail is the end of the file, with the problems that were met before.
func (a *Reader) fail(message, hint string) error {
	a.problems.Add(manifest.Problem{File: a.file, Message: message, Hint: hint})
	return a.problems.Err()
}

// bad is a problem of the record being read.
func (a *Reader) bad(message, hint string) error {
	return &badRecord{manifest.Problem{File: a.file, Message: fmt.Sprintf("record %d: %s", a.records, message),
		Hint: hint}}
}

const exportAgain = "export with dataset.records.to_json(PATH)"

// broken describes an error of the decoder.
func (a *Reader) broken(err error) error {
	var unfit *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	// None repeats the decoder's own words: they can hold the text in which the fault was found.
	switch {
	case errors.As(err, &unfit):
		return a.bad("it does not have the form that Argilla 2 writes", exportAgain)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return a.fail("the JSON ends in the middle of a record or list", "the file is cut off: export it again")
	case errors.As(err, &syntax):
		return a.fail(fmt.Sprintf("record %d: the file is not valid JSON there", a.records), "export it again")
	}
	return fmt.Errorf("read %s: %w", a.file, err)
}

func (a *Reader) record(r argillaRecord) error {
	var key manifest.Key
	isNone := a.isNoAnswer(r)
	for _, q := range r.Responses {
		category := a.release.CategoryOf(q.question)
		if category < 0 {
			a.ignored[q.question] = struct{}{}
			continue
		}
		for _, response := range q.responses {
			if response.Status != "" && response.Status != "submitted" || isNone {
				a.out.LeftOut++
				continue
			}
			// Only a record with a submitted answer needs an id: others may be unfinished.
			if key.ID == "" {
				var err error
				key, err = a.key(r)
				if err != nil {
					return err
				}
				if name := text(r.Metadata[a.batch]); name != "" {
					if a.out.Batches == nil {
						a.out.Batches = make(map[manifest.Key]string)
					}
					a.out.Batches[key] = name
				}
			}
			if err := a.take(key, category, response); err != nil {
				return err
			}
		}
	}
	return nil
}

// key finds the post's id, or ID/N of an image of a gallery, and refuses a second record of it.
func (a *Reader) key(r argillaRecord) (manifest.Key, error) {
	var texts []string
	for _, within := range [...]map[string]any{r.Metadata, r.Fields} {
		// In the order of the names; of keys that are one name, as they are sorted, with the name itself first.
		for _, name := range manifest.IDColumns(manifest.NameOfID) {
			texts = append(texts, text(within[name]))
			for _, key := range slices.Sorted(maps.Keys(within)) {
				if key != name && manifest.FoldColumn(key) == name {
					texts = append(texts, text(within[key]))
				}
			}
		}
	}
	for _, t := range append(texts, text(r.ID)) {
		key, err := manifest.ParseCellKey(t)
		if err != nil {
			continue // Argilla's own ids, which are UUIDs, among them
		}
		key, p := a.images.Key(key, imageOf(r), manifest.Problem{})
		if p != nil {
			return key, a.bad(p.Message, p.Hint)
		}
		if a.seen[key] {
			return key, a.bad(fmt.Sprintf("post %s has a record already", key), "export one dataset, and each post once")
		}
		if p := a.beside.Judge(key.ID, a.besideOf(r), manifest.Problem{File: a.file}); p != nil {
			return key, a.bad(p.Message, p.Hint)
		}
		if own, sure := manifest.PostForm(text(r.ID)); own != "" && own != string(key.ID) {
			a.ids = append(a.ids, ownID{a.records, manifest.PostID(own), sure})
		}
		a.seen[key] = true
		return key, nil
	}
	return manifest.Key{}, a.bad("it has no post id",
		"give records the id of their post, as id or as the metadata post_id")
}

// isNoAnswer reports whether the metadata of a record say that it is no answer, as the columns of a table do. Its own
// status says only whether it has as many answers as were wanted.
func (a *Reader) isNoAnswer(r argillaRecord) bool {
	for name, value := range r.Metadata {
		if name != a.batch && manifest.AnswerNamed(name) && manifest.NoAnswer(name, cellOf(value)) {
			return true
		}
	}
	return false
}

// cellOf gives a value as the cell of a table.
func cellOf(value any) table.Cell {
	if flag, isFlag := value.(bool); isFlag {
		return table.Cell{Text: strconv.FormatBool(flag)}
	}
	return table.Cell{Text: text(value), Null: value == nil}
}

// besideOf are the metadata and fields that can say which post a record is about, but for the batch.
func (a *Reader) besideOf(r argillaRecord) iter.Seq2[string, table.Cell] {
	return func(yield func(string, table.Cell) bool) {
		for _, within := range [...]map[string]any{r.Metadata, r.Fields} {
			for _, name := range slices.Sorted(maps.Keys(within)) {
				if name != a.batch && manifest.AboutNamed(name) && !yield(name, cellOf(within[name])) {
					return
				}
			}
		}
	}
}

// imageOf are the metadata that can say which image of its post a record is about.
func imageOf(r argillaRecord) iter.Seq2[string, table.Cell] {
	return func(yield func(string, table.Cell) bool) {
		for _, name := range slices.Sorted(maps.Keys(r.Metadata)) {
			value := r.Metadata[name]
			if manifest.ImageNamed(name) && !yield(name, table.Cell{Text: text(value), Null: value == nil}) {
				return
			}
		}
	}
}

// take adds a response to what its user said of the entry.
func (a *Reader) take(key manifest.Key, category int, response argillaResponse) error {
	c := a.release.Schema.Categories[category]
	given, ok := answer(response.Value)
	if !ok {
		return a.bad(fmt.Sprintf("an answer for category %s is neither a label nor a list of labels", c.Name),
			"a category is a LabelQuestion or a MultiLabelQuestion")
	}
	if given == nil || len(given) == 0 && c.Kind != manifest.Multi {
		return nil
	}
	user := text(response.User)
	if strings.TrimSpace(user) == "" {
		return a.bad(fmt.Sprintf("an answer for category %s has no user_id, so that nobody knows whose it is", c.Name),
			"export the responses with their users, or take the answers without one out: they would count as those of one person")
	}
	found, p := a.release.Labels(category, given)
	if p != nil {
		return a.bad(p.Message, p.Hint)
	}
	place, known := a.users[user]
	if !known {
		// By the order in which they appear: an id stands for a person, and none goes into the report.
		place = len(a.out.Annotators)
		a.users[user] = place
		a.out.Annotators = append(a.out.Annotators, labels.Answers{})
	}
	of := a.out.Annotators[place]
	if of[key] == nil {
		of[key] = make([][]int, len(a.release.Schema.Categories))
	}
	if of[key][category] != nil {
		return a.bad(fmt.Sprintf("one user answered for category %s twice", c.Name), "keep one of the responses")
	}
	of[key][category] = found
	a.answers++
	return nil
}

// answer gives the labels of a value: nil for no answer, false for what is not a label.
func answer(value any) (given []string, ok bool) {
	if value == nil || value == "" {
		return nil, true
	}
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	given = []string{} // an empty list is an answer: no label
	for _, item := range list {
		given = append(given, strings.TrimSpace(text(item)))
	}
	return given, !slices.Contains(given, "")
}

// text gives the text of a string or number, "" for anything else.
func text(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case json.Number:
		return value.String()
	}
	return ""
}
