package guess

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"rehydrate/manifest"
	"rehydrate/manifest/table"
)

// Unfit lists the categories and columns of a release that hold words, addresses or people by what Files goes by, other
// than those to keep, each with the reason. Of a column that passes through, one value is enough. The release is one
// that a manifest.Rewriting wrote, whose files call categories and columns by their names; former gives the column that
// one had before, whose name counts as well. known is that of Options.
func Unfit(ctx context.Context, r *manifest.Release, former func(name string) string, keep []string,
	known func(word string) bool) ([]string, error) {
	known = withField(known)
	in, err := r.Rows()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	columns, _, _, err := survey(ctx, in, Options{Options: manifest.Options{Known: known}}, // ids do not matter here
		manifest.Without{})
	var unfit []string
	sign := r.Schema.Separator()
	for _, c := range columns {
		passed := slices.ContainsFunc(r.Schema.Columns, func(p manifest.Column) bool { return p.Name == c.name })
		isCategory := slices.ContainsFunc(r.Schema.Categories, func(of manifest.Category) bool { return of.Name == c.name })
		was := former(c.name)
		names := lookLikeNames(strings.FieldsFunc(strings.Join(c.values(), sign),
			func(r rune) bool { return strings.ContainsRune(sign, r) }), known)
		if passed {
			names = cmp.Or(names, namesOne(c.values()))
		}
		names = cmp.Or(names, c.checkers(known))
		switch {
		case slices.Contains(keep, c.name) || !passed && !isCategory:
		case c.private() != "":
			unfit = append(unfit, fmt.Sprintf("column %s %s", table.Quote(c.name), strings.TrimPrefix(c.private(), "it ")))
		case was != "" && was != c.name && c.privateAs(was, c.ordinary) != "":
			unfit = append(unfit, fmt.Sprintf("column %s, which was %s, %s", table.Quote(c.name), table.Quote(was),
				strings.TrimPrefix(c.privateAs(was, c.ordinary), "it ")))
		case names != "":
			unfit = append(unfit, fmt.Sprintf("the values of column %s look like %s", table.Quote(c.name), names))
		case passed && c.nested > 0:
			unfit = append(unfit, fmt.Sprintf("column %s holds objects, in which people can be named and quoted",
				table.Quote(c.name)))
		case c.forms[formFile] > 0:
			unfit = append(unfit, fmt.Sprintf("column %s holds names of files", table.Quote(c.name)))
		case isCategory && c.wroteLabel(sign):
			unfit = append(unfit, fmt.Sprintf("a label of column %s is a sentence that one row alone has",
				table.Quote(c.name)))
		case passed && (c.words() || c.forms[formWords]+c.forms[formAddress] > 0): // a category has the words of its labels
			unfit = append(unfit, fmt.Sprintf("column %s holds what people wrote, or addresses", table.Quote(c.name)))
		}
	}
	return unfit, err
}

// wroteLabel reports whether a label is a sentence that one row alone has, as answers in free text are. A long label of
// a list that people choose from stands in several.
func (c *surveyed) wroteLabel(sign string) bool {
	rows := make(map[string]int)
	for i, cell := range c.cells {
		for _, text := range cell {
			for label := range strings.SplitSeq(text, sign) {
				rows[strings.TrimSpace(label)] += c.rows[i]
			}
		}
	}
	for label, n := range rows {
		if n == 1 && isText(label) {
			return true
		}
	}
	return false
}
