package manifest

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"rehydrate/manifest/table"
)

// Numbers are the columns of numbers of a table with a row for each entry, such as features of images.
type Numbers struct {
	Keys    []Key
	Columns []NumberColumn // in the order of the file
	Others  []OtherColumn  // the columns that hold something else
}

// A NumberColumn has a value for each of Numbers.Keys, NaN where there is none. true and yes are 1, false and no 0.
type NumberColumn struct {
	Name   string
	Values []float64
}

// An OtherColumn is one that does not hold numbers: its first such value, "" where that is long, and where it stands.
type OtherColumn struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Line  int    `json:"line"` // 0 for a column without any value
}

const (
	maxRows    = 1_000_000  // as they are held in memory
	maxNumbers = 50_000_000 // 400 MB
	maxNumber  = 1e300      // sums and differences of such numbers are finite
)

// ReadNumbers reads a CSV, TSV, JSONL or Parquet file that anybody may have written. Ids stand in the column id, or
// for "" in one that people keep ids in, and may be ID/N. A column counts where all its values are numbers or missing
// (empty, null, NaN, NA, n/a, None); those of a release's splits, digests and subreddits do not. The error is *Problems.
func ReadNumbers(ctx context.Context, path, id string, o Options) (Numbers, error) {
	r, err := fileRelease(path, o)
	if err != nil {
		return Numbers{}, err
	}
	r.isTable, r.numbered = true, true
	header, err := r.readHeader(nil)
	if err != nil {
		return Numbers{}, err
	}
	m := matcher{Release: r, header: header, taken: make(map[string]bool)}
	switch {
	case id == "":
		id = m.find("id", aliases(fieldID))
		if id == "" && len(m.problems) == 0 {
			m.missing("no column of post ids was found", "id")
		}
	case !slices.Contains(header, id):
		m.missing("there is no column "+table.Quote(id), "id")
	}
	if len(m.problems) > 0 {
		return Numbers{}, &Problems{List: m.problems}
	}
	rows, err := r.openRows(nil)
	if err != nil {
		return Numbers{}, err
	}
	defer rows.Close()
	n := numberReader{decoder: decoder{Release: r}, rows: rows, id: id, seen: make(seen)}
	n.report = func(cell int, message, hint string) {
		_, line, column := rows.place(cell)
		n.problems.Add(Problem{File: path, Line: line, Column: column, Message: message, Hint: hint})
	}
	return n.read(ctx)
}

// A numberReader turns rows into columns of numbers.
type numberReader struct {
	decoder  // of ids
	rows     *manifestRows
	id       string // the column of ids
	seen     seen
	problems Problems
	columns  []numberCells // by column of the file
	out      Numbers
}

type numberCells struct {
	values []float64
	known  bool         // whether one is not missing
	skip   bool         // it is not a feature, whatever it holds
	other  *OtherColumn // nil while all are numbers or missing
}

func (n *numberReader) read(ctx context.Context) (Numbers, error) {
	for len(n.out.Keys) < maxRows && len(n.out.Keys)*len(n.columns) < maxNumbers {
		if err := ctx.Err(); err != nil {
			return Numbers{}, err
		}
		cells, err := n.rows.Next()
		if err == io.EOF {
			return n.end()
		}
		if p, ok := table.AsProblem(err); ok {
			n.problems.Add(*p)
			continue
		}
		if err != nil {
			return Numbers{}, fmt.Errorf("read %s: %w", n.ManifestPath, err)
		}
		n.row(cells)
	}
	return Numbers{}, table.One(&Problem{File: n.ManifestPath, Line: 1, Message: "the table has more than 1,000,000 rows or 50,000,000 numbers",
		Hint: "keep the columns that are needed"})
}

// column makes the next column of the file, with nothing in the rows that were read.
func (n *numberReader) column() numberCells {
	name := n.rows.Columns()[len(n.columns)]
	c := numberCells{values: slices.Repeat([]float64{math.NaN()}, len(n.out.Keys)), skip: name == "" || name == n.id}
	for field := fieldSplit; field < len(fieldNames); field++ {
		c.skip = c.skip || slices.Contains(aliases(field), plain(name))
	}
	return c
}

func (n *numberReader) row(cells []Cell) {
	for len(n.columns) < len(cells) { // keys of JSON lines become columns as they are met
		n.columns = append(n.columns, n.column())
	}
	n.fields[fieldID] = slices.Index(n.rows.Columns(), n.id)
	if n.fields[fieldID] < 0 {
		n.report(-1, "the line has no key "+table.Quote(n.id), "every line needs the id of its post")
		return
	}
	_, line, _ := n.rows.place(-1)
	found := n.problems.Count()
	var key Key
	key.Image, _ = n.cutNumber(cells)
	key.ID = n.decoder.id(cells)
	if first, twice := n.seen.add(key, line); twice {
		n.report(n.fields[fieldID], fmt.Sprintf("%s is already on line %d", key, first),
			"keep one row for each image; image N of a gallery is named ID/N")
	}
	if n.problems.Count() > found {
		return
	}
	n.out.Keys = append(n.out.Keys, key)
	for i := range n.columns {
		c := &n.columns[i]
		if c.skip || c.other != nil {
			continue
		}
		v, ok := number(cells[i])
		if !ok {
			c.other, c.values = &OtherColumn{Name: n.rows.Columns()[i], Line: line}, nil
			if text := cells[i].Text; len(text) <= 12 { // a typing error, and not somebody's words
				c.other.Value = strings.Clone(text)
			}
			continue
		}
		c.known = c.known || !math.IsNaN(v)
		c.values = append(c.values, v)
	}
}

// number reads a cell, false for what is neither a number nor missing.
func number(c Cell) (float64, bool) {
	if c.Null {
		return math.NaN(), true
	}
	if c.IsList || c.Nested || c.Fault != "" {
		return 0, false
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(c.Text), 64)
	if err == nil {
		return v, math.IsNaN(v) || math.Abs(v) <= maxNumber
	}
	switch fold(c.Text) {
	case "", "na", "n/a", "null", "none":
		return math.NaN(), true
	case "true", "yes":
		return 1, true
	case "false", "no":
		return 0, true
	}
	return 0, false
}

func (n *numberReader) end() (Numbers, error) {
	for i, c := range n.columns {
		name := n.rows.Columns()[i]
		switch {
		case c.skip:
		case c.other != nil:
			n.out.Others = append(n.out.Others, *c.other)
		case !c.known:
			n.out.Others = append(n.out.Others, OtherColumn{Name: name})
		default:
			n.out.Columns = append(n.out.Columns, NumberColumn{name, c.values})
		}
	}
	if len(n.out.Columns) == 0 && n.problems.Count() == 0 {
		n.problems.Add(Problem{File: n.ManifestPath, Line: 1, Message: "no column of numbers was found; the columns are " + quotedList(n.rows.Columns()),
			Hint: "each line is an entry: its id, and a number in each further column"})
	}
	if err := n.problems.Err(); err != nil {
		return Numbers{}, err
	}
	return n.out, nil
}
