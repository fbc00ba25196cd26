package study

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// Numbers are the columns of numbers of a table with a row for each entry, such as features of images.
type Numbers struct {
	Keys  []manifest.Key
	Lines []int // of the file, by Keys
	// Columns are in the order of the file, with a value for each key, NaN where there is none. true and yes are 1; a
	// column of such words alone is yes or no. One of numbers and such words has no meaning of its own: see Written.
	Columns []labels.Feature
	Written []Writing     // by Columns
	Others  []OtherColumn // the columns that hold something else
	LeftOut int           // rows that say in words that they are no answer
}

// A Writing is where a column is first written as a number, and where as a word that means yes or no: lines of the
// file, 0 for nowhere.
type Writing struct{ Number, Word int }

// mixed is the error of a column that has both.
func (w Writing) mixed(file, column, hint string) error {
	return table.One(&manifest.Problem{File: file, Line: max(w.Number, w.Word), Hint: hint,
		Message: fmt.Sprintf("column %s holds numbers and words for yes or no: a number on line %d, a word on line %d",
			table.Quote(column), w.Number, w.Word)})
}

// An OtherColumn is one that does not hold numbers, and the line that first shows it. It has no value: a cell can be
// somebody's name or words.
type OtherColumn struct {
	Name string `json:"name"`
	Line int    `json:"line"` // 0 for a column without any value
	// Thousands is true for numbers whose points may part thousands, because others of the file have a decimal comma.
	Thousands bool   `json:"thousands,omitempty"`
	Large     bool   `json:"large,omitempty"`  // there is a number that is not computed with: see tooLarge
	Unread    string `json:"unread,omitempty"` // the type of a Parquet column whose values cannot be read
}

const (
	maxNumbers = 50_000_000 // 400 MB
	maxNumber  = 1e300      // sums and differences of such numbers are finite
)

// ReadNumbers reads a CSV, TSV, JSONL or Parquet file that anybody may have written. Ids stand in the column id, or
// for "" in one that people keep ids in, and may be ID/N. A column counts where all its values are numbers or missing
// (empty, null, NaN, NA, n/a, None); those of a release's splits, digests and subreddits do not. The error is
// *Problems.
func ReadNumbers(ctx context.Context, path, id string, o manifest.Options) (Numbers, error) {
	rows, err := manifest.OpenKeyed(path, id, o)
	if err != nil {
		return Numbers{}, err
	}
	defer rows.Close()
	n := numberReader{path: path, rows: rows}
	if err := rows.Each(ctx, n.row); err != nil {
		return Numbers{}, err
	}
	return n.end()
}

// ReadColumn reads one column of such a file as text, the empty cells left out.
func ReadColumn(ctx context.Context, path, column string, o manifest.Options) (map[manifest.Key]string, error) {
	out, lacks, err := readColumn(ctx, path, column, o)
	return out, cmp.Or(err, lacks)
}

// readColumn is ReadColumn; lacks is the error of a file without the column.
func readColumn(ctx context.Context, path, column string, o manifest.Options) (out map[manifest.Key]string,
	lacks, err error) {
	rows, err := manifest.OpenKeyed(path, "", o)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	out = make(map[manifest.Key]string)
	met := false
	err = rows.Each(ctx, func(key manifest.Key, cells []manifest.Cell) bool {
		place := slices.Index(rows.Columns(), column)
		met = met || place >= 0
		if place >= 0 && strings.TrimSpace(cells[place].Text) != "" {
			out[key] = strings.Clone(strings.TrimSpace(cells[place].Text))
		}
		return true
	})
	if !met {
		lacks = table.One(&manifest.Problem{File: path, Line: 1, Message: "it lacks the column " + table.Quote(column),
			Hint: "its columns are " + manifest.ListColumns(rows.Columns(), rows.Unread())})
	}
	return out, lacks, err
}

// A numberReader turns rows into columns of numbers.
type numberReader struct {
	path    string
	rows    *manifest.Keyed
	columns []numberCells // by column of the file
	out     Numbers
}

type numberCells struct {
	values []float64
	known  bool // whether one is not missing
	skip   bool // it is not a feature, whatever it holds
	tells  bool // a word in it can say that the row is no answer
	wrote  Writing
	other  *OtherColumn // nil while all are numbers or missing
	style  value.Style
	point  int // the first line with a point that may part thousands
}

// column makes the next column of the file, with nothing in the rows that were read.
func (n *numberReader) column() numberCells {
	name := n.rows.Columns()[len(n.columns)]
	return numberCells{values: slices.Repeat([]float64{math.NaN()}, len(n.out.Keys)), skip: n.skips(name),
		tells: manifest.AnswerNamed(name)}
}

// skips reports whether a column is none of features, whatever it holds.
func (n *numberReader) skips(name string) bool {
	return name == "" || name == n.rows.ID() ||
		slices.ContainsFunc(manifest.Fields()[manifest.FieldSplit:], func(field manifest.Field) bool {
			return slices.Contains(field.Names(), manifest.FoldColumn(name))
		})
}

func (n *numberReader) row(key manifest.Key, cells []manifest.Cell) bool {
	for len(n.columns) < len(cells) { // keys of JSON lines become columns as they are met
		n.columns = append(n.columns, n.column())
	}
	line := n.rows.Line()
	if n.isNone(cells) {
		n.out.LeftOut++
		return true
	}
	n.out.Keys, n.out.Lines = append(n.out.Keys, key), append(n.out.Lines, line)
	for i := range n.columns {
		c := &n.columns[i]
		if c.skip {
			continue
		}
		c.read(cells[i], line)
		if c.other != nil {
			continue
		}
		v, word, ok := number(cells[i])
		if !ok {
			c.other, c.values = &OtherColumn{Name: n.rows.Columns()[i], Line: line, Large: tooLarge(cells[i])}, nil
			continue
		}
		c.known = c.known || !math.IsNaN(v)
		switch {
		case word:
			c.wrote.Word = cmp.Or(c.wrote.Word, line)
		case !math.IsNaN(v):
			c.wrote.Number = cmp.Or(c.wrote.Number, line)
		}
		c.values = append(c.values, v)
	}
	return len(n.out.Keys)*len(n.columns) < maxNumbers
}

// isNone reports whether a row says in words that it is no answer. Numbers, yes and no are values here.
func (n *numberReader) isNone(cells []manifest.Cell) bool {
	for i := range n.columns {
		if !n.columns[i].tells {
			continue
		}
		if _, _, isValue := number(cells[i]); !isValue && manifest.NoAnswer(n.rows.Columns()[i], cells[i]) {
			return true
		}
	}
	return false
}

// read adds how the cell's number is written.
func (c *numberCells) read(cell manifest.Cell, line int) {
	text := strings.TrimSpace(cell.Plain())
	if text == "" || value.Absent(text) {
		return
	}
	c.style.Add(text)
	if c.point == 0 && value.IsThousands(text) {
		c.point = line
	}
}

// number reads a cell, false for what is neither a number nor missing. word is true for a word that means yes or no.
func number(c manifest.Cell) (v float64, word, ok bool) {
	if c.Null {
		return math.NaN(), false, true
	}
	if c.IsList || c.Nested || c.Fault != "" {
		return 0, false, false
	}
	if v, ok := value.Number(strings.TrimSpace(c.Text)); ok {
		return v, false, !tooLarge(c)
	}
	text := value.Fold(c.Text)
	switch {
	case text == "", value.Absent(text):
		return math.NaN(), false, true
	case text == "x": // a flag, and often a placeholder
		return 0, false, false
	}
	yes, ok := value.Flag(c.Text)
	if yes {
		return 1, true, ok
	}
	return 0, true, ok
}

// tooLarge reports whether a cell holds a number above maxNumber, or an integer that a float64 would round: two
// different ones could then become equal, and have one rank.
func tooLarge(c manifest.Cell) bool {
	text := strings.TrimSpace(c.Text)
	v, _ := value.Number(text) // infinite for one that no float64 holds
	if text == "" || !value.IsDigit(text[len(text)-1]) {
		return false
	}
	digits := strings.TrimLeft(strings.TrimLeft(text, "+-"), "0")
	// Below 2^53 every integer is exact. The text of a float64 is as short as it can be, and tells it all the same.
	isRounded := !c.Float && math.Abs(v) >= 1<<53 && value.IsDigits(digits) &&
		strconv.FormatFloat(math.Abs(v), 'f', 0, 64) != digits
	return math.Abs(v) > maxNumber || isRounded
}

func (n *numberReader) end() (Numbers, error) {
	commas := slices.ContainsFunc(n.columns, func(c numberCells) bool { return c.style.DecimalComma() })
	for i, c := range n.columns {
		name := n.rows.Columns()[i]
		switch {
		case c.skip:
		case c.other == nil && commas && c.style.MayPartThousands():
			n.out.Others = append(n.out.Others, OtherColumn{Name: name, Line: c.point, Thousands: true})
		case c.other != nil:
			n.out.Others = append(n.out.Others, *c.other)
		case !c.known:
			n.out.Others = append(n.out.Others, OtherColumn{Name: name})
		default:
			feature := labels.Feature{Name: name, Values: c.values, YesNo: c.wrote.Number == 0}
			n.out.Columns = append(n.out.Columns, feature)
			n.out.Written = append(n.out.Written, c.wrote)
		}
	}
	for _, u := range n.rows.Unread() {
		if !n.skips(u.Name) {
			n.out.Others = append(n.out.Others, OtherColumn{Name: u.Name, Unread: u.Type})
		}
	}
	thousands := slices.IndexFunc(n.out.Others, func(c OtherColumn) bool { return c.Thousands })
	none := len(n.out.Columns) == 0
	switch {
	case none && thousands >= 0:
		c := n.out.Others[thousands]
		return Numbers{}, table.One(&manifest.Problem{File: n.path, Line: c.Line,
			Message: "column " + table.Quote(c.Name) +
				" has a point that may part thousands, for other numbers have a decimal comma",
			Hint: "write thousands without a point, and decimals with one"})
	case none:
		return Numbers{}, table.One(&manifest.Problem{File: n.path, Line: 1,
			Message: "no column of numbers was found; the columns are " +
				manifest.ListColumns(n.rows.Columns(), n.rows.Unread()) + spoilt(n.out.Others),
			Hint: "each line is an entry: its id, and a number in each further column"})
	}
	return n.out, nil
}

// spoilt says where columns hold what is no number, of a few of them; "" for none.
func spoilt(columns []OtherColumn) string {
	said := ""
	for _, c := range columns[:min(len(columns), 5)] {
		said += "; " + table.Quote(c.Name) + ": " + OtherText(c)
	}
	return said
}
