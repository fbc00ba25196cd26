package labels

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"rehydrate/manifest"
)

// Limits of an Argilla export. The fields of a record may hold the picture itself.
const (
	maxExport  = 512 << 20 // bytes
	maxRecords = 1_000_000
	maxLines   = 4 << 20 // lines whose places are remembered; of later ones no problem tells the line
)

// An Export is what an Argilla export holds of the categories asked for.
type Export struct {
	Annotators []Annotator // in the order in which they appear; their ids are kept nowhere
	Records    int
	// LeftOut counts the answers that are drafts or were discarded.
	LeftOut int
	// Ignored are the questions that are no category, sorted. They come from the file.
	Ignored []string
}

// ReadArgilla reads the responses of an Argilla export: the JSON that Dataset.records.to_json of
// Argilla 2 writes, one such record a line, or the flat form of to_list(flatten=True) and
// to_datasets; and the older forms, with one response a user ("values") and with one list a
// question (FeedbackDataset on the Hugging Face Hub). The post's id is metadata or a field called
// id, post_id, submission_id or reddit_id, else the record's own id.
//
// Suggestions are not read: they are a model's. What is wrong comes as *manifest.Problems with
// file, line and column, and never holds the id of a user.
func ReadArgilla(in io.Reader, file string, release *manifest.Release) (Export, error) {
	return readArgilla(in, file, release, maxExport)
}

func readArgilla(in io.Reader, file string, release *manifest.Release, most int64) (Export, error) {
	a := argillaReader{file: file, release: release, most: most, users: make(map[string]int), ignored: make(map[string]bool), seen: make(map[manifest.PostID]bool)}
	a.in = &lineCounter{in: io.LimitReader(in, most+1)}
	if err := a.read(); err != nil {
		return Export{}, err
	}
	a.out.Ignored = slices.Sorted(maps.Keys(a.ignored))
	return a.out, nil
}

type argillaReader struct {
	file    string
	release *manifest.Release
	in      *lineCounter
	most    int64          // bytes that are read
	users   map[string]int // user id -> place in out.Annotators
	seen    map[manifest.PostID]bool
	ignored map[string]bool
	out     Export
	skipped int64 // bytes before the first that is not space
	start   int64 // offset of the record being read
}

func (a *argillaReader) read() error {
	buffered := bufio.NewReader(a.in)
	first, err := a.firstByte(buffered)
	if err != nil && err != io.EOF {
		return fmt.Errorf("read %s: %w", a.file, err)
	}
	if first != '[' && first != '{' {
		return a.fail(0, "the file is no Argilla export: it holds no JSON records", "export with dataset.records.to_json(PATH)")
	}
	d := json.NewDecoder(buffered)
	if first == '[' {
		if _, err := d.Token(); err != nil {
			return a.broken(d, err)
		}
	}
	for d.More() {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return a.broken(d, err)
		}
		a.start = a.skipped + d.InputOffset() - int64(len(raw))
		var record map[string]json.RawMessage
		if err := json.Unmarshal(raw, &record); err != nil || record == nil {
			return a.fail(a.start, "a record is no JSON object", "export with dataset.records.to_json(PATH)")
		}
		if a.out.Records++; a.out.Records > maxRecords {
			return a.fail(a.start, "the export has more than 1,000,000 records", "export a part of them")
		}
		if err := a.record(record); err != nil {
			return err
		}
	}
	if err := a.end(d, first == '['); err != nil {
		return err
	}
	if len(a.out.Annotators) == 0 {
		return a.fail(0, fmt.Sprintf("none of the %d records has a submitted response to a question that is a category", a.out.Records),
			"the questions are to be named as the categories, or as their columns in release.toml (--release)")
	}
	return nil
}

// end makes sure that nothing follows what was read: a record there would be dropped in silence.
func (a *argillaReader) end(d *json.Decoder, list bool) error {
	if list {
		if _, err := d.Token(); err != nil {
			return a.broken(d, err)
		}
	}
	switch _, err := d.Token(); {
	case a.in.n > a.most || err != nil && err != io.EOF:
		return a.broken(d, err)
	case err == nil:
		return a.fail(a.skipped+d.InputOffset()-1, "something follows the list of records", "give one export: two that were put into one file are two lists")
	}
	return nil
}

// firstByte peeks at the first byte that is not space.
func (a *argillaReader) firstByte(in *bufio.Reader) (byte, error) {
	for ; ; a.skipped++ {
		b, err := in.ReadByte()
		if err != nil {
			return 0, err
		}
		if b != ' ' && b != '\t' && b != '\r' && b != '\n' {
			return b, in.UnreadByte()
		}
	}
}

// A lineCounter remembers where the lines of what was read through it begin.
type lineCounter struct {
	in     io.Reader
	n      int64
	starts []int64 // offset behind each line break, of maxLines at most
	more   bool    // there are lines after those
}

func (l *lineCounter) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	for i, b := range p[:n] {
		if b == '\n' {
			if len(l.starts) == maxLines {
				l.more = true
				break
			}
			l.starts = append(l.starts, l.n+int64(i)+1)
		}
	}
	l.n += int64(n)
	return n, err
}

// at gives the place of an offset, 0 and 0 when it lies behind the lines that are remembered.
func (l *lineCounter) at(offset int64) (line, column int) {
	if l.more && offset >= l.starts[len(l.starts)-1] {
		return 0, 0
	}
	i, found := slices.BinarySearch(l.starts, offset)
	if found {
		i++
	}
	start := int64(0)
	if i > 0 {
		start = l.starts[i-1]
	}
	return i + 1, int(offset-start) + 1
}

func (a *argillaReader) fail(offset int64, message, hint string) error {
	line, column := a.in.at(offset)
	return &manifest.Problems{List: []manifest.Problem{{File: a.file, Line: line, Column: column, Message: message, Hint: hint}}}
}

// bad is a problem of the record being read.
func (a *argillaReader) bad(message, hint string) error {
	return a.fail(a.start, fmt.Sprintf("record %d: %s", a.out.Records, message), hint)
}

// broken tells of JSON that is none, without its text.
func (a *argillaReader) broken(d *json.Decoder, err error) error {
	var syntax *json.SyntaxError
	switch {
	case a.in.n > a.most: // what is wrong is where it was cut
		return a.fail(a.start, fmt.Sprintf("the export is larger than %d MiB", a.most>>20), "export it without images and vectors")
	case errors.As(err, &syntax):
		// Where in the record the fault is the decoder counts from another place.
		return a.fail(a.skipped+d.InputOffset(), fmt.Sprintf("record %d, which follows here, is not valid JSON", a.out.Records+1), "export it again")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return a.fail(a.skipped+d.InputOffset(), "the JSON ends in the middle of a record or list", "the file is cut off: export it again")
	}
	return fmt.Errorf("read %s: %w", a.file, err)
}

// An answer is what one user said to one question. user and status are "" where the file has none.
type answer struct {
	user, question, status string
	value                  json.RawMessage
}

func (a *argillaReader) record(record map[string]json.RawMessage) error {
	answers, ok := a.answers(record)
	if !ok {
		return a.bad("the responses are of no form that is known", "export with dataset.records.to_json(PATH)")
	}
	var key manifest.Key
	for _, x := range answers {
		category := a.release.CategoryOf(x.question)
		if category < 0 {
			a.ignored[x.question] = true
			continue
		}
		if x.status != "" && x.status != "submitted" {
			a.out.LeftOut++
			continue
		}
		if key.ID == "" {
			id, err := a.id(record)
			if err != nil {
				return err
			}
			key.ID = id
		}
		if err := a.take(key, category, x); err != nil {
			return err
		}
	}
	return nil
}

// id finds the post's id and refuses a second record of the post.
func (a *argillaReader) id(record map[string]json.RawMessage) (manifest.PostID, error) {
	texts := []string{}
	for _, within := range [...]string{"metadata", "fields"} {
		var keys map[string]json.RawMessage
		if json.Unmarshal(record[within], &keys) != nil {
			continue
		}
		for _, name := range [...]string{"id", "post_id", "submission_id", "reddit_id"} {
			texts = append(texts, text(keys[name]))
		}
	}
	for _, name := range [...]string{"post_id", "submission_id", "reddit_id", "external_id", "id"} {
		texts = append(texts, text(record[name]))
	}
	for _, t := range texts {
		if t == "" {
			continue
		}
		id, err := manifest.ParsePostID(t)
		if err != nil {
			continue // Argilla's own ids, which are UUIDs, among them
		}
		if a.seen[id] {
			return "", a.bad(fmt.Sprintf("post %s has a record already", id), "export one dataset, and each post once")
		}
		a.seen[id] = true
		return id, nil
	}
	return "", a.bad("it has no post id", "give records the id of their post, as id or as the metadata post_id")
}

// text gives a JSON string's or number's text, "" for anything else.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}

func (a *argillaReader) take(key manifest.Key, category int, x answer) error {
	texts, ok := texts(x.value)
	if !ok {
		return a.bad(fmt.Sprintf("an answer for category %s is neither a label nor a list of labels", a.release.Schema.Categories[category].Name),
			"a category is a LabelQuestion or a MultiLabelQuestion")
	}
	if texts == nil {
		return nil
	}
	found, p := a.release.Labels(category, texts)
	if p != nil {
		return a.bad(p.Message, p.Hint)
	}
	if len(found) == 0 && a.release.Schema.Categories[category].Kind != manifest.Multi {
		return nil
	}
	place, known := a.users[x.user]
	if !known {
		place = len(a.out.Annotators)
		a.users[x.user] = place
		a.out.Annotators = append(a.out.Annotators, Annotator{Labels: make(map[manifest.Key][][]int)})
	}
	of := a.out.Annotators[place].Labels
	if of[key] == nil {
		of[key] = make([][]int, len(a.release.Schema.Categories))
	}
	if of[key][category] != nil {
		return a.bad(fmt.Sprintf("one user answered for category %s twice", a.release.Schema.Categories[category].Name), "keep one of the responses")
	}
	of[key][category] = found
	return nil
}

// texts gives the labels of a value: nil for no answer, false for what is no label.
func texts(raw json.RawMessage) ([]string, bool) {
	var list []json.RawMessage
	switch raw = bytes.TrimSpace(raw); {
	case len(raw) == 0, string(raw) == "null":
		return nil, true
	case raw[0] == '[':
		if json.Unmarshal(raw, &list) != nil {
			return nil, false
		}
	default:
		list = []json.RawMessage{raw}
	}
	out := []string{}
	for _, item := range list {
		t := text(item)
		if t == "" && string(item) != `""` {
			return nil, false
		}
		if t = strings.TrimSpace(t); t != "" {
			out = append(out, t)
		}
	}
	if len(out) == 0 && raw[0] != '[' {
		return nil, true // an empty text
	}
	return out, true
}

// answers gives the record's answers in a fixed order, and false for responses of an unknown form.
func (a *argillaReader) answers(record map[string]json.RawMessage) ([]answer, bool) {
	var out []answer
	if raw := bytes.TrimSpace(record["responses"]); len(raw) > 0 && raw[0] == '[' {
		return byUser(raw)
	} else if len(raw) > 0 && string(raw) != "null" {
		var questions map[string]json.RawMessage
		if json.Unmarshal(raw, &questions) != nil {
			return nil, false
		}
		for _, question := range slices.Sorted(maps.Keys(questions)) {
			some, ok := byQuestion(question, questions[question])
			if !ok {
				return nil, false
			}
			out = append(out, some...)
		}
		return out, true
	}
	for _, name := range slices.Sorted(maps.Keys(record)) {
		question, flat := strings.CutSuffix(name, ".responses")
		var some []answer
		ok := true
		switch {
		case flat:
			some, ok = columns(question, record[name], record[name+".users"], record[name+".status"])
		case a.release.CategoryOf(name) >= 0:
			some, ok = byQuestion(name, record[name])
		}
		if !ok {
			return nil, false
		}
		out = append(out, some...)
	}
	return out, true
}

// byUser reads the older form: [{"user_id": ..., "status": ..., "values": {QUESTION: {"value": ...}}}].
func byUser(raw json.RawMessage) ([]answer, bool) {
	var responses []struct {
		User   json.RawMessage `json:"user_id"`
		Status string          `json:"status"`
		Values map[string]struct {
			Value json.RawMessage `json:"value"`
		} `json:"values"`
	}
	if json.Unmarshal(raw, &responses) != nil {
		return nil, false
	}
	var out []answer
	for _, r := range responses {
		for _, question := range slices.Sorted(maps.Keys(r.Values)) {
			out = append(out, answer{user: text(r.User), question: question, status: r.Status, value: r.Values[question].Value})
		}
	}
	return out, true
}

// byQuestion reads [{"value": ..., "user_id": ...}], or the columns of such a list.
func byQuestion(question string, raw json.RawMessage) ([]answer, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, true
	}
	if raw[0] == '{' {
		var c struct {
			Users    json.RawMessage `json:"user_id"`
			Values   json.RawMessage `json:"value"`
			Statuses json.RawMessage `json:"status"`
		}
		if json.Unmarshal(raw, &c) != nil {
			return nil, false
		}
		return columns(question, c.Values, c.Users, c.Statuses)
	}
	var responses []struct {
		User   json.RawMessage `json:"user_id"`
		Status *string         `json:"status"`
		Value  json.RawMessage `json:"value"`
	}
	if json.Unmarshal(raw, &responses) != nil {
		return nil, false
	}
	var out []answer
	for _, r := range responses {
		x := answer{user: text(r.User), question: question, value: r.Value}
		if r.Status != nil {
			x.status = *r.Status
		}
		out = append(out, x)
	}
	return out, true
}

// columns reads parallel lists of values, users and statuses; the last two may be missing.
func columns(question string, values, users, statuses json.RawMessage) ([]answer, bool) {
	var lists [3][]json.RawMessage
	for i, raw := range [...]json.RawMessage{values, users, statuses} {
		if len(raw) > 0 && json.Unmarshal(raw, &lists[i]) != nil {
			return nil, false
		}
	}
	var out []answer
	for i, value := range lists[0] {
		x := answer{question: question, value: value}
		if i < len(lists[1]) {
			x.user = text(lists[1][i])
		}
		if i < len(lists[2]) {
			x.status = text(lists[2][i])
		}
		out = append(out, x)
	}
	return out, true
}
