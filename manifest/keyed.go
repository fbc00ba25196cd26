package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"rehydrate/manifest/table"
)

// MaxRows is how many rows Keyed.Each visits, because its callers hold them in memory.
const MaxRows = 1_000_000

// A Keyed is a table that anybody may have written, with a column of ids of posts. It belongs to one reading.
type Keyed struct {
	ids      decoder
	rows     *Rows
	id       string // the column of ids
	beside   asides
	problems Problems
}

// OpenKeyed opens a CSV, TSV, JSON, JSONL or Parquet file. Its ids, which may be ID/N, are in the column id, or for
// "" in one that people keep ids in; which image a row is about can stand beside them (Images). With
// Options.Unanswered, rows that are no answer are left out. The error is *Problems.
func OpenKeyed(path, id string, o Options) (*Keyed, error) {
	r, err := fileRelease(path, o)
	if err != nil {
		return nil, err
	}
	r.isTable, r.numbered = true, true
	chosen := id != ""
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
	k := &Keyed{ids: decoder{Release: r}, rows: rows, id: id}
	k.beside.chosen = chosen
	k.ids.report = func(cell int, message, hint string) {
		_, line, column := rows.Place(cell)
		k.problems.Add(Problem{File: path, Line: line, Column: column, Message: message, Hint: hint})
	}
	return k, nil
}

// Columns gives the columns so far; a record of JSON can add some.
func (k *Keyed) Columns() []string { return k.rows.Columns() }

// Unread gives the columns whose values cannot be read, and which are not among Columns for them.
func (k *Keyed) Unread() []Unread { return k.rows.Unread() }

// ID is the column of ids.
func (k *Keyed) ID() string { return k.id }

// Line is the line, or row of a Parquet, that is visited.
func (k *Keyed) Line() int {
	_, line, _ := k.rows.Place(-1)
	return line
}

// Close closes the file.
func (k *Keyed) Close() error { return k.rows.Close() }

// Each visits the rows, with their cells in the order of Columns, until visit returns false, which says that there is
// too much to hold. A row whose id is wrong, or stands twice, is not visited. The error is *Problems when rows are
// wrong or too many, or that of the context.
func (k *Keyed) Each(ctx context.Context, visit func(Key, []Cell) bool) error {
	seen := make(seen)
	for n := 0; ; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		cells, err := k.rows.Next()
		if err == io.EOF {
			k.problems.Add(k.beside.numbers.Mixed()...)
			k.problems.Join(k.beside.ofComments())
			return k.problems.Err()
		}
		if n == MaxRows {
			break
		}
		if p, ok := table.AsProblem(err); ok {
			k.problems.Add(*p)
			continue
		}
		if last, ok := errors.AsType[*Problems](err); ok {
			k.problems.Join(*last)
			return k.problems.Err()
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", k.ids.ManifestPath, err)
		}
		k.beside.meet(k.rows.Columns(), func(name string) bool { return name == k.id })
		if told := k.ids.options.Unanswered; told != nil && k.beside.isNone(cells) {
			told()
			continue
		}
		if key, ok := k.key(cells, seen); ok && !visit(key, cells) {
			break
		}
	}
	return table.One(&Problem{File: k.ids.ManifestPath, Line: 1,
		Message: "the table has more than 1,000,000 rows or 50,000,000 numbers",
		Hint:    "keep the columns that are needed"})
}

// key reads the key of a row; what is wrong with it is reported.
func (k *Keyed) key(cells []Cell, seen seen) (key Key, ok bool) {
	k.ids.fields[FieldID] = slices.Index(k.rows.Columns(), k.id)
	if k.ids.fields[FieldID] < 0 {
		k.ids.report(-1, "the line has no key "+table.Quote(k.id), "every line needs the id of its post")
		return key, false
	}
	line := k.Line()
	found := k.problems.Count()
	key.Image, _ = k.ids.cutNumber(cells)
	key.ID = k.ids.id(cells)
	key, p := k.beside.numbers.Key(key, k.beside.imageFields(cells), Problem{File: k.ids.ManifestPath, Line: line})
	if p != nil {
		k.problems.Add(*p)
	}
	k.beside.judge(key.ID, cells, func(cell int) Problem {
		_, line, column := k.rows.Place(cell)
		return Problem{File: k.ids.ManifestPath, Line: line, Column: column}
	}, func(p Problem) { k.problems.Add(p) })
	if first, twice := seen.add(key, line); twice {
		k.ids.report(k.ids.fields[FieldID], fmt.Sprintf("%s is already on line %d", key, first),
			"keep one row for each image; image N of a gallery is named ID/N, or by a column image")
	}
	return key, k.problems.Count() == found
}
