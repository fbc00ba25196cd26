package manifest

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
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

// An OtherColumn is one that does not hold numbers, and the line that first shows it. It has no value: a cell can be
// somebody's name or words.
type OtherColumn struct {
	Name string `json:"name"`
	Line int    `json:"line"` // 0 for a column without any value
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
	rows, err := openKeyed(path, id, o)
	if err != nil {
		return Numbers{}, err
	}
	defer rows.rows.Close()
	n := numberReader{keyedRows: rows}
	if err := rows.each(ctx, n.row); err != nil {
		return Numbers{}, err
	}
	return n.end()
}

// ReadColumn reads one column of such a file as text, the empty cells left out.
func ReadColumn(ctx context.Context, path, column string, o Options) (map[Key]string, error) {
	rows, err := openKeyed(path, "", o)
	if err != nil {
		return nil, err
	}
	defer rows.rows.Close()
	out := make(map[Key]string)
	met := false
	err = rows.each(ctx, func(key Key, cells []Cell) bool {
		place := slices.Index(rows.rows.Columns(), column)
		met = met || place >= 0
		if place >= 0 && strings.TrimSpace(cells[place].Text) != "" {
			out[key] = strings.Clone(strings.TrimSpace(cells[place].Text))
		}
		return true
	})
	if err == nil && !met {
		err = table.One(&Problem{File: path, Line: 1, Message: "it lacks the column " + table.Quote(column), Hint: "its columns are " + QuotedList(rows.rows.Columns())})
	}
	return out, err
}

// keyedRows are the rows of any table with a column of ids.
type keyedRows struct {
	decoder  // of ids
	rows     *Rows
	id       string // the column of ids
	problems Problems
}

func openKeyed(path, id string, o Options) (*keyedRows, error) {
	r, err := fileRelease(path, o)
	if err != nil {
		return nil, err
	}
	r.isTable, r.numbered = true, true
	header, err := r.readHeader(nil)
	if err != nil {
		return nil, err
	}
	m := matcher{Release: r, header: header, taken: make(map[string]bool)}
	switch {
	case id == "":
		id = m.find("id", FieldID.Names())
		if id == "" && len(m.problems) == 0 {
			m.missing("no column of post ids was found", "id")
		}
	case !slices.Contains(header, id):
		m.missing("it lacks the column "+table.Quote(id), "id")
	}
	if len(m.problems) > 0 {
		return nil, &Problems{List: m.problems}
	}
	rows, err := r.openRows(nil)
	if err != nil {
		return nil, err
	}
	k := &keyedRows{decoder: decoder{Release: r}, rows: rows, id: id}
	k.report = func(cell int, message, hint string) {
		_, line, column := rows.Place(cell)
		k.problems.Add(Problem{File: path, Line: line, Column: column, Message: message, Hint: hint})
	}
	return k, nil
}

// each visits the rows until visit returns false, which says that there are too many numbers.
func (k *keyedRows) each(ctx context.Context, visit func(Key, []Cell) bool) error {
	seen := make(seen)
	for n := 0; ; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		cells, err := k.rows.Next()
		if err == io.EOF {
			return k.problems.Err()
		}
		if n == maxRows {
			break
		}
		if p, ok := table.AsProblem(err); ok {
			k.problems.Add(*p)
			continue
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", k.ManifestPath, err)
		}
		if key, ok := k.key(cells, seen); ok && !visit(key, cells) {
			break
		}
	}
	return table.One(&Problem{File: k.ManifestPath, Line: 1, Message: "the table has more than 1,000,000 rows or 50,000,000 numbers",
		Hint: "keep the columns that are needed"})
}

// key reads the key of a row; what is wrong with it is reported.
func (k *keyedRows) key(cells []Cell, seen seen) (key Key, ok bool) {
	k.fields[FieldID] = slices.Index(k.rows.Columns(), k.id)
	if k.fields[FieldID] < 0 {
		k.report(-1, "the line has no key "+table.Quote(k.id), "every line needs the id of its post")
		return key, false
	}
	_, line, _ := k.rows.Place(-1)
	found := k.problems.Count()
	key.Image, _ = k.cutNumber(cells)
	key.ID = k.decoder.id(cells)
	if first, twice := seen.add(key, line); twice {
		k.report(k.fields[FieldID], fmt.Sprintf("%s is already on line %d", key, first),
			"keep one row for each image; image N of a gallery is named ID/N")
	}
	return key, k.problems.Count() == found
}

// A numberReader turns rows into columns of numbers.
type numberReader struct {
	*keyedRows
	columns []numberCells // by column of the file
	out     Numbers
}

type numberCells struct {
	values []float64
	known  bool         // whether one is not missing
	skip   bool         // it is not a feature, whatever it holds
	other  *OtherColumn // nil while all are numbers or missing
}

// column makes the next column of the file, with nothing in the rows that were read.
func (n *numberReader) column() numberCells {
	name := n.rows.Columns()[len(n.columns)]
	c := numberCells{values: slices.Repeat([]float64{math.NaN()}, len(n.out.Keys)), skip: name == "" || name == n.id}
	for _, field := range Fields()[FieldSplit:] {
		c.skip = c.skip || slices.Contains(field.Names(), FoldColumn(name))
	}
	return c
}

func (n *numberReader) row(key Key, cells []Cell) bool {
	for len(n.columns) < len(cells) { // keys of JSON lines become columns as they are met
		n.columns = append(n.columns, n.column())
	}
	_, line, _ := n.rows.Place(-1)
	n.out.Keys = append(n.out.Keys, key)
	for i := range n.columns {
		c := &n.columns[i]
		if c.skip || c.other != nil {
			continue
		}
		v, ok := number(cells[i])
		if !ok {
			c.other, c.values = &OtherColumn{Name: n.rows.Columns()[i], Line: line}, nil
			continue
		}
		c.known = c.known || !math.IsNaN(v)
		c.values = append(c.values, v)
	}
	return len(n.out.Keys)*len(n.columns) < maxNumbers
}

// number reads a cell, false for what is neither a number nor missing.
func number(c Cell) (float64, bool) {
	if c.Null {
		return math.NaN(), true
	}
	if c.IsList || c.Nested || c.Fault != "" {
		return 0, false
	}
	if v, ok := value.Number(strings.TrimSpace(c.Text)); ok {
		return v, math.Abs(v) <= maxNumber
	}
	switch value.Fold(c.Text) {
	case "", "nan", "na", "n/a", "null", "none":
		return math.NaN(), true
	case "x": // a flag, and often a placeholder
		return 0, false
	}
	yes, ok := value.Flag(c.Text)
	if yes {
		return 1, ok
	}
	return 0, ok
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
	if len(n.out.Columns) == 0 {
		return Numbers{}, table.One(&Problem{File: n.ManifestPath, Line: 1, Message: "no column of numbers was found; the columns are " + QuotedList(n.rows.Columns()),
			Hint: "each line is an entry: its id, and a number in each further column"})
	}
	return n.out, nil
}
