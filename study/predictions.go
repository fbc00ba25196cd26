package study

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"rehydrate/internal/userfile"
	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// columnsOf finds the category of each column that is named.
func (f Scoring) columnsOf(of *manifest.Release, tasks []labels.Task) (map[string]string, error) {
	columns := map[string]string{}
	isTask := func(name string) bool {
		return slices.ContainsFunc(tasks, func(t labels.Task) bool { return t.Category == name })
	}
	for _, column := range f.Columns {
		category, name, both := strings.Cut(column, "=")
		i := of.CategoryOf(column)
		switch {
		case both && isTask(category):
		case i >= 0 && isTask(of.Schema.Categories[i].Name):
			category, name = of.Schema.Categories[i].Name, column
		case len(tasks) == 1:
			category, name = tasks[0].Category, column
		default:
			return nil, userfile.Wrong("--column %s: say of which category, as %s=%s", column, tasks[0].Category,
				column)
		}
		columns[category] = name
	}
	return columns, nil
}

// orByColumn adds to an error about columns that are not found the flag that names one.
func (s scorer) orByColumn(err error) error {
	problems, ok := errors.AsType[*manifest.Problems](err)
	if !ok {
		return err
	}
	for i, p := range problems.List {
		if strings.HasPrefix(p.Hint, "name the columns id and ") && len(s.tasks) > 0 {
			problems.List[i].Hint += fmt.Sprintf(", or say which column has them: --column %s=COLUMN", s.tasks[0].Category)
		}
	}
	return err
}

// predictions reads a file of labels. It adds to out the classes that are told apart and the words for missing values,
// and to left the rows that are no answer.
func (s scorer) predictions(ctx context.Context, file string, out *Scores, left *int) (labels.Answers, error) {
	read, err := readTable(ctx, file, s.read)
	if err != nil {
		return nil, s.orByColumn(err)
	}
	*left += read.LeftOut
	isOther := func(m MissingWords) bool { return !slices.Contains(named(s.tasks), m.Category) }
	out.Missing = append(out.Missing, slices.DeleteFunc(read.of("", file), isOther)...)
	look, err := s.look(ctx, file)
	if err == nil {
		err = s.unambiguous(look)
	}
	if err != nil {
		return nil, err
	}
	for _, t := range s.tasks {
		for _, class := range s.apart[t.Category] {
			class.File, class.Rows = file, look.classes[cellsOf{look.own[t.Category], class.Class}]
			if class.Rows > 0 {
				out.Mapped = append(out.Mapped, class)
			}
		}
	}
	return read.Answers, nil
}

// A columnLook is what a file of predictions has in its columns.
type columnLook struct {
	file    string
	columns []string
	own     map[string]string // category -> the column that is read for it
	used    map[string]bool   // columns that are read
	values  map[string]int    // column -> rows with a value
	labels  map[cellsOf]int   // rows with labels of the category
	classes map[cellsOf]int   // rows that name the class, by its code in place of a category
}

// cellsOf are the cells of a column that belong to something.
type cellsOf struct{ column, of string }

// look reads all columns of a file of predictions that was found good.
func (s scorer) look(ctx context.Context, file string) (l columnLook, err error) {
	l = columnLook{file: file, own: map[string]string{}, used: map[string]bool{}, values: map[string]int{},
		labels:  map[cellsOf]int{},
		classes: map[cellsOf]int{}}
	opened, err := manifest.OpenTable(file, s.read, withParquet)
	if err != nil {
		return l, userfile.Faulty(err)
	}
	for _, t := range s.tasks {
		l.own[t.Category] = opened.ColumnOf(t.Category)
	}
	rows, err := opened.Rows()
	if err != nil {
		return l, userfile.Faulty(err)
	}
	defer rows.Close()
	for ctx.Err() == nil {
		cells, err := rows.Next()
		_, odd := table.AsProblem(err)
		switch {
		case err == io.EOF:
			l.columns = rows.Columns()
			return l, nil
		case odd: // a draft: the others were found good
			continue
		case err != nil:
			return l, userfile.Faulty(err)
		}
		for i, column := range rows.Columns() {
			l.used[column] = opened.Uses(column)
			s.count(&l, column, cells[i])
		}
	}
	return l, ctx.Err()
}

// count adds a cell to what is known of its column.
func (s scorer) count(l *columnLook, column string, cell manifest.Cell) {
	texts := cell.List
	if !cell.IsList {
		texts = []string{cell.Plain()}
	}
	if len(texts) == 0 || texts[0] == "" || value.Absent(texts[0]) {
		return // None can be a label, and is no value nearly anywhere else
	}
	l.values[column]++
	for _, t := range s.tasks {
		category := placeOf(s.read.Schema, t)
		for _, class := range s.apart[t.Category] {
			if l.own[t.Category] == column && slices.ContainsFunc(texts, class.isCalled) {
				l.classes[cellsOf{column, class.Class}]++
			}
		}
		if l.used[column] {
			continue
		}
		parts := texts
		if !cell.IsList {
			parts = s.read.SplitLabels(category, texts[0], "")
		}
		if _, problem := s.read.Labels(category, parts); problem == nil {
			l.labels[cellsOf{column, t.Category}]++
		}
	}
}

// unambiguous refuses a file of predictions with a second column of labels of a category, or one that is called after
// predictions: the column that is called as the category may then be the truth, which would be scored against itself.
func (s scorer) unambiguous(l columnLook) error {
	for _, column := range l.columns {
		if strings.HasPrefix(strings.ToLower(column), "pred") && !l.used[column] && len(s.columns) == 0 {
			return userfile.Wrong("%s has the column %q, and the column of a category is what is scored: is that the truth? "+
				"Keep the id and the predictions, in columns called as the categories, or name the column of the predictions "+
				"with --column", l.file, column)
		}
		for _, t := range s.tasks {
			own, chosen := l.own[t.Category], s.columns[t.Category] != ""
			if n := l.labels[cellsOf{column, t.Category}]; own == "" || chosen || 2*n <= l.values[column] {
				continue
			}
			return userfile.Wrong("%s: the columns %q and %q both hold labels of %s, and one of them may be the truth: "+
				"name the one of the predictions, such as --column %s=%s, or keep it alone",
				l.file, own, column, t.Category, t.Category, column)
		}
	}
	for category, column := range s.columns {
		if !slices.Contains(l.columns, column) {
			return userfile.Wrong("--column %s=%s: %s has no column %q; it has %s",
				category, column, l.file, column, strings.Join(l.columns, ", "))
		}
	}
	return nil
}

// toldApart are the classes that the schema's own task makes of several labels of a category, and that a task tells
// apart.
func toldApart(schema manifest.Schema, t labels.Task) (all []Mapped) {
	category := schema.Categories[placeOf(schema, t)]
	for _, own := range schema.Tasks() {
		task, err := labels.NewTask(schema, own)
		if own.Category != t.Category || err != nil {
			continue
		}
		for class, c := range task.Classes {
			first, apart := -1, false
			for label := range category.Labels {
				switch {
				case task.ClassOf(label) != class:
				case first < 0:
					first = label
				case t.ClassOf(label) != t.ClassOf(first):
					apart = true
				}
			}
			if apart {
				all = append(all, Mapped{Category: t.Category, Class: c.Code, Code: category.Labels[first].Code,
					Name: c.Name})
			}
		}
	}
	return all
}

// placeOf is the place of a task's category in its schema.
func placeOf(schema manifest.Schema, t labels.Task) int {
	return slices.IndexFunc(schema.Categories, func(c manifest.Category) bool { return c.Name == t.Category })
}

// isCalled reports whether a text is the code or the name of the class.
func (m Mapped) isCalled(text string) bool {
	text = strings.TrimSpace(text)
	return strings.EqualFold(text, m.Class) || strings.EqualFold(text, m.Name)
}
