package guess

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"rehydrate/manifest"
	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// findHeaders marks the files without a header: all of text with NoHeader, else those whose first line begins with an
// id as all other lines do. It returns what there is to say of them.
func findHeaders(ctx context.Context, files []manifest.SourceFile, o Options) (notes []string, err error) {
	for i := range files {
		file := &files[i]
		isText := slices.Contains([]manifest.Format{manifest.CSV, manifest.TSV, table.List}, file.Format)
		if !isText && o.NoHeader {
			return nil, headless(file.Path, "--no-header is for CSV, TSV and lists, and this file has keys or "+
				"columns with names", "leave the flag out")
		}
		if !isText {
			continue
		}
		first, err := manifest.FirstRow(*file)
		if err != nil {
			continue // which the reading of the rows will say
		}
		what := "each line is a row, of column_1 and so on"
		switch {
		case file.Format == table.List:
			what = "each line is the id of a post, or a link to it"
			file.Bare = o.NoHeader
			if manifest.IsIDHeader(first[0]) && !o.NoHeader {
				continue
			}
		case o.NoHeader:
			file.Bare = true
		default:
			file.Bare, err = hasNoHeader(ctx, *file, first, o)
		}
		if err != nil {
			return nil, err
		}
		if file.Bare || file.Format == table.List {
			notes = append(notes, fmt.Sprintf("%s has no header: %s", table.Quote(file.Path), what))
		}
	}
	return notes, nil
}

// columnNames are usual names of columns other than those of ids.
var columnNames = set(`author body caption category class comment created_utc date image label labels score sentence
	split subreddit target text time timestamp title type user`)

// hasNoHeader reports whether all lines of a file with several columns begin with an id, the first one as well. Where
// the first alone can be nothing else, a person has to decide.
func hasNoHeader(ctx context.Context, file manifest.SourceFile, first []string, o Options) (bool, error) {
	_, strong := manifest.PostForm(first[0])
	named := slices.ContainsFunc(first, func(name string) bool {
		return manifest.IsIDHeader(name) || columnNames[manifest.FoldColumn(name)]
	})
	if !strong && (named || !likeID(first[0], o.Known)) {
		return false, nil
	}
	file.Bare = true
	source, err := manifest.OpenSource([]manifest.SourceFile{file}, "", o.Options)
	if err != nil {
		return false, err
	}
	in, err := source.Rows()
	if err != nil {
		return false, err
	}
	defer in.Close()
	rows, digits, alike := 0, 0, 0
	for ctx.Err() == nil {
		cells, err := in.Next()
		if err == io.EOF {
			return strong || 2*digits < rows && alike > 1 || rows == 1, nil
		}
		if _, isProblem := table.AsProblem(err); isProblem {
			continue
		}
		if err != nil {
			return false, err
		}
		rows++
		text := cells[0].Plain()
		if !manifest.NamesPost(text) {
			if !strong {
				return false, nil
			}
			name, line, column := in.Place(0)
			return false, table.One(&manifest.Problem{File: name, Line: line, Column: column,
				Message: "the file seems to have no header, for its first line begins with " + table.Quote(first[0]) +
					"; but this line begins with no id",
				Hint: "--no-header reads each line as a row, whose columns are column_1 and so on, and --id names " +
					"one of them"})
		}
		if value.IsDigits(text) {
			digits++
		}
		if len(text) == len(first[0]) {
			alike++
		}
	}
	return false, ctx.Err()
}

// likeID reports whether a text looks like the id of a post and not like the name of a column.
func likeID(text string, known func(word string) bool) bool {
	folded := value.FoldASCII(text)
	return manifest.PostID(folded).Valid() && len(text) > 4 && len(text) < 9 && !value.IsDigits(text) &&
		!strings.HasSuffix(folded, "id") && !manifest.IsIDHeader(text) && !columnNames[folded] &&
		(known == nil || !known(folded))
}

// eaten reports whether the name of a column of ids is an id itself, which a file without a header would lose.
func (c *surveyed) eaten(known func(word string) bool) bool {
	_, strong := manifest.PostForm(c.name)
	alike := slices.ContainsFunc(c.cells, func(cell []string) bool {
		return len(cell) == 1 && len(cell[0]) == len(c.name)
	})
	return strong || alike && likeID(c.name, known)
}

// headless is the error of a file whose header looks like a row. It does not repeat its fields, as an error about
// columns does.
func headless(file, message, hint string) error {
	return table.One(&manifest.Problem{File: file, Line: 1, Message: message, Hint: hint})
}

// looksLikeRow reports whether the names of the columns look like the fields of a row: like the values below them.
func (d *guesser) looksLikeRow() bool {
	return slices.ContainsFunc(d.columns, func(c *surveyed) bool {
		_, strong := manifest.PostForm(c.name)
		_, isTime := value.Time(c.name, time.UTC)
		most := func(form int) bool { return 2*c.forms[form] > c.items }
		return strong || isTime && most(formTime) || isText(c.name) && most(formWords) ||
			isAddress(c.name) && most(formAddress) || c.eaten(d.Known) && most(formID)
	})
}
