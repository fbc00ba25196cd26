package manifest

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// A table that is no manifest says by the names of its columns alone what stands beside ids and labels: which image
// of a post a row is about, and that a row is no answer. The rules are here, for tables, lines of JSON and exports
// alike.

// Images reads which image of its post each row of one file is about, from its columns called image, image_index,
// image_number or gallery_index. A column without any number is about something else, such as the names of files.
type Images struct{ columns []*imageColumn }

type imageColumn struct {
	name   string
	number bool     // it holds a number
	word   *Problem // where it first holds something else; nil for nowhere
}

// ImageNamed reports whether a column can say which image a row is about.
func ImageNamed(column string) bool { return slices.Contains(FieldImage.Names(), FoldColumn(column)) }

// Key gives the entry of a row, whose id may be ID/N. fields are those of the row for which ImageNamed is true. The
// problem, at the given place, is that of a row that names two images.
func (m *Images) Key(key Key, fields iter.Seq2[string, Cell], at Problem) (Key, *Problem) {
	named := ""
	if key.Image > 0 {
		named = "the id"
	}
	for name, cell := range fields {
		n, ok := m.read(name, cell, at)
		switch {
		case !ok:
		case named != "" && n != key.Image:
			at.Message = fmt.Sprintf("%s names image %d of post %s, and %s image %d",
				named, key.Image, key.ID, table.Quote(name), n)
			at.Hint = "keep one of them, or correct it"
			return key, &at
		default:
			key.Image, named = n, table.Quote(name)
		}
	}
	return key, nil
}

// read gives the number in a cell; false for none.
func (m *Images) read(name string, cell Cell, at Problem) (n int, ok bool) {
	i := slices.IndexFunc(m.columns, func(c *imageColumn) bool { return c.name == name })
	if i < 0 {
		i = len(m.columns)
		m.columns = append(m.columns, &imageColumn{name: name})
	}
	text := cell.Plain()
	n, ok = ParseImage(strings.TrimSuffix(text, ".0")) // programs that know no missing integer write 1.0
	other := cell.Nested || len(cell.List) > 1 || cell.Fault != "" || text != "" && !isMissing(text)
	switch c := m.columns[i]; {
	case ok:
		c.number = true
	case other && c.word == nil:
		at.Message = fmt.Sprintf("column %s holds numbers of images and something else", table.Quote(name))
		at.Hint = "it is the image's place in the post's gallery, from 0; call a column of something else by another name"
		c.word = &at
	}
	return n, ok
}

// Mixed gives the problems of columns that have numbers of images and something else, once all rows were read: which of
// the rows are about another image cannot be told.
func (m *Images) Mixed() (all []Problem) {
	for _, c := range m.columns {
		if c.number && c.word != nil {
			all = append(all, *c.word)
		}
	}
	return all
}

// The columns by which a row says that it is no answer, as FoldColumn writes them: by a word for a state, by an
// error, by yes.
var (
	stateNames = []string{"status", "state", "response_status", "answer_status", "annotation_status", "assignment_status",
		"record_status", "review_status", "assignmentstatus"}
	errorNames = []string{"error", "errors", "error_message", "exception"}
	flagNames  = []string{"was_cancelled", "cancelled", "canceled", "is_draft", "draft", "discarded", "skipped", "failed"}
)

// unanswered are states in which a row is no answer: of people's (Argilla, Label Studio, Prolific, MTurk, the page of
// annotate review), and of requests to models. Letters alone, in lower case.
var unanswered = []string{"draft", "discarded", "discard", "pending", "skipped", "skip", "rejected", "returned", "timedout", "timeout",
	"awaitingreview", "inprogress", "incomplete", "unfinished", "failed", "error", "errored", "cancelled", "canceled", "aborted",
	"expired", "refused", "truncated", "queued", "running"}

// AnswerNamed reports whether a column can say that a row is no answer.
func AnswerNamed(column string) bool {
	name := FoldColumn(column)
	return slices.Contains(stateNames, name) || slices.Contains(errorNames, name) || slices.Contains(flagNames, name)
}

// NoAnswer reports whether a field for which AnswerNamed is true says that its row is no answer.
func NoAnswer(column string, cell Cell) bool {
	name, text := FoldColumn(column), cell.Plain()
	switch {
	case cell.Null:
		return false
	case slices.Contains(stateNames, name):
		return IsUnanswered(text)
	case slices.Contains(flagNames, name):
		yes, ok := value.Flag(text)
		return yes && ok
	case text == "": // an object, or a list of several
		return cell.Nested || len(cell.List) > 0
	}
	// A number with digits after the point is how far something is off, and one of errors is how many there are.
	n, isNumber := value.Number(text)
	isCode := n != 0 && n == float64(int(n)) && name != "errors"
	return !isMissing(text) && value.Fold(text) != "false" && (!isNumber || isCode)
}

// isMissing reports whether a text stands for no value, also None, which can be a label elsewhere.
func isMissing(text string) bool { return value.Missing(text) || value.Fold(text) == "none" }

// IsUnanswered reports whether a state is that of an answer that was not given, or was taken back.
func IsUnanswered(state string) bool {
	letters := func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}
	return slices.Contains(unanswered, strings.Map(letters, value.Fold(state)))
}

// asides are the columns beside ids and labels that the rows of a table have.
type asides struct {
	images, answers []aside
	met             int // columns that were looked at
	numbers         Images
}

type aside struct {
	name string
	at   int // its place in a row
}

// meet looks at the columns that are new. taken says of a name that it is that of a field or a category.
func (a *asides) meet(columns []string, taken func(string) bool) {
	for at, name := range columns[a.met:] {
		it := aside{name, a.met + at}
		switch {
		case taken(name):
		case ImageNamed(name):
			a.images = append(a.images, it)
		case AnswerNamed(name):
			a.answers = append(a.answers, it)
		}
	}
	a.met = len(columns)
}

// isNone reports whether a row says that it is no answer.
func (a *asides) isNone(cells []Cell) bool {
	return slices.ContainsFunc(a.answers, func(of aside) bool { return NoAnswer(of.name, cells[of.at]) })
}

// imageFields are the fields of a row that name its image.
func (a *asides) imageFields(cells []Cell) iter.Seq2[string, Cell] {
	return func(yield func(string, Cell) bool) {
		for _, of := range a.images {
			if !yield(of.name, cells[of.at]) {
				return
			}
		}
	}
}
