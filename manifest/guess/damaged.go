package guess

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"rehydrate/manifest"
	"rehydrate/manifest/table"
)

// A LeftOut is a row that SkipDamaged left out of a draft. It holds no cell of the row.
type LeftOut struct {
	File   string
	Line   int    // row number of a Parquet
	Reason string // to go on from "the id"
}

// WriteLeftOut writes the rows that were left out as CSV: file, line, reason.
func (d *Draft) WriteLeftOut(w io.Writer) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"file", "line", "reason"}) // a failed write is remembered until the end
	for _, row := range d.LeftOut {
		_ = out.Write([]string{row.File, strconv.Itoa(row.Line), "the id " + row.Reason})
	}
	out.Flush()
	return out.Error()
}

// whyDamaged says why no post can be read from the text of an id, to go on from "the id"; "" where one can, and for
// comments, which are judged apart. It repeats nothing of the text. hint is what to try.
func whyDamaged(text string) (why, hint string) {
	if strings.TrimSpace(text) == "" {
		return "is empty", "every row needs the id of its post"
	}
	if id, strong := manifest.PostForm(text); id == "" && strong {
		return "", ""
	}
	_, err := manifest.ParseCellKey(text)
	if p, isProblem := table.AsProblem(err); isProblem {
		return strings.TrimPrefix(p.Message, table.Quote(strings.TrimSpace(text))+" "), p.Hint
	}
	if text[0] == '0' && len(strings.TrimSpace(text)) > 1 {
		return "begins with 0, as no post's id does", "take the zeros off"
	}
	return "", ""
}

// judgeIDs reads the rows again where ids may be damaged. Such rows are an error, which names the first, how many there
// are, and a column that still has their ids. With SkipDamaged it notes them instead.
func (d *guesser) judgeIDs(ctx context.Context, source *manifest.Source) error {
	id := d.column(d.columnOf("id"))
	if !d.SkipDamaged && !id.empty && !id.odd && id.forms[formID]+id.forms[formGallery]+id.forms[formComment]+
		id.forms[formTooNew] >= id.items {
		return nil
	}
	without, rows := d.marks.without(id.name, d.Today), 0
	have := newNeighbours(d.columns, id)
	var first *manifest.Problem
	err := eachRow(ctx, source, func(in *manifest.Rows, cells []table.Cell) {
		if d.PostsOnly && without.Is(without.Texts(in.Columns(), cells)) {
			return
		}
		rows++
		at := slices.Index(in.Columns(), id.name)
		text := cells[at].Plain()
		why, hint := whyDamaged(text)
		have.add(in.Columns(), cells, text, why != "")
		if why == "" {
			return
		}
		name, line, column := in.Place(at)
		d.damaged = append(d.damaged, LeftOut{File: name, Line: line, Reason: why})
		if first == nil {
			message := "the id " + why
			if text != "" {
				message = table.Quote(text) + " " + why
			}
			first = &manifest.Problem{File: name, Line: line, Column: column, Message: message, Hint: hint}
		}
	})
	if err != nil || first == nil {
		return err
	}
	return d.concludeDamaged(first, rows, have.still())
}

// concludeDamaged says what becomes of the rows whose ids cannot be read.
func (d *guesser) concludeDamaged(first *manifest.Problem, rows int, still string) error {
	n := len(d.damaged)
	count := fmt.Sprintf("the ids of %d of %d rows cannot be read", n, rows)
	if n == 1 {
		count = fmt.Sprintf("the id of 1 of %d rows cannot be read", rows)
	}
	few := 2*n <= rows
	if d.SkipDamaged && few {
		d.lookAt("%s: --skip-damaged leaves these rows out", count)
		return nil
	}
	first.Message += "; " + count
	switch {
	case still != "":
		first.Hint = "column " + table.Quote(still) + " still has the ids of all rows: --id " + strconv.Quote(still)
	case !few:
		first.Hint += "; is it the column of ids? --id COLUMN names another"
	}
	if few {
		first.Hint += "; --skip-damaged leaves such rows out"
	}
	return table.One(first)
}

// neighbours finds a column that has the ids of damaged rows, and those of all others as well.
type neighbours struct {
	columns []*surveyed // that may be one; nil in the place of those that are none
	found   bool        // a damaged row was met
}

func newNeighbours(columns []*surveyed, id *surveyed) *neighbours {
	n := &neighbours{columns: slices.Clone(columns)}
	n.columns[id.place] = nil
	return n
}

func (n *neighbours) add(names []string, cells []manifest.Cell, id string, damaged bool) {
	n.found = n.found || damaged
	own, _ := manifest.PostForm(id)
	for i, c := range n.columns {
		if c == nil {
			continue
		}
		at := slices.Index(names, c.name)
		other, strong := "", false
		if at >= 0 {
			other, strong = manifest.PostForm(cells[at].Plain())
		}
		if other == "" || !strong && !c.namedID || !damaged && other != own {
			n.columns[i] = nil
		}
	}
}

func (n *neighbours) still() string {
	i := slices.IndexFunc(n.columns, func(c *surveyed) bool { return c != nil })
	if i < 0 || !n.found {
		return ""
	}
	return n.columns[i].name
}

// eachRow visits the rows of a source that can be read. What is wrong with the others the reading of the draft will
// say.
func eachRow(ctx context.Context, source *manifest.Source, visit func(in *manifest.Rows, cells []table.Cell)) error {
	in, err := source.Rows()
	if err != nil {
		return err
	}
	defer in.Close()
	for ctx.Err() == nil {
		cells, err := in.Next()
		if err == io.EOF {
			break
		}
		if _, isProblem := table.AsProblem(err); isProblem {
			continue
		}
		if err != nil {
			return err
		}
		visit(in, cells)
	}
	return ctx.Err()
}
