package manifest

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// What Init takes for labels: few different short texts.
const (
	maxGuessedLabels = 50
	maxGuessedText   = 64   // bytes
	maxTexts         = 1000 // texts of a column that are kept, so that each is looked at once
)

// A columnSurvey says what the values of one column look like. Empty ones count as empty only.
type columnSurvey struct {
	name   string
	filled int
	empty  int
	lists  int
	nested bool // objects, lists in lists, values that cannot be used

	texts map[string]bool // the first different ones
	// Of so many texts, each kept one counted once, so many can be read as values of a field.
	different int
	fits      [fieldSubreddit]int
	zero      bool // an image number is 0

	whole labelSet                  // each cell a label
	parts [len(separators)]labelSet // each cell a list of labels, separated by a sign (or the list that it is)
}

// A labelSet holds the different labels of a column, until it cannot be one of labels.
type labelSet struct {
	bad     bool              // too many labels, texts that are not labels, or one twice in a cell
	spelled map[string]string // folded -> as first spelled
	folded  bool              // two spellings differ only in case
	several bool              // cells have several labels
	none    bool              // "none" stands beside another
}

func (l *labelSet) add(cell []string) {
	l.several = l.several || len(cell) > 1
	for i, label := range cell {
		label = strings.TrimSpace(label)
		key := fold(label)
		first, known := l.spelled[key]
		twice := func(other string) bool { return fold(other) == key }
		l.bad = l.bad || !validText(label, maxGuessedText) || strings.Contains(label, "://") ||
			!known && len(l.spelled) == maxGuessedLabels || slices.ContainsFunc(cell[:min(i, maxGuessedLabels)], twice)
		if l.bad {
			return
		}
		l.folded = l.folded || known && first != label
		l.none = l.none || key == "none" && len(cell) > 1
		if l.spelled == nil {
			l.spelled = make(map[string]string)
		}
		if !known {
			l.spelled[key] = strings.Clone(label)
		}
	}
}

// survey reads every row.
func (r *Release) survey() ([]*columnSurvey, error) {
	rows, err := r.openRows(nil, true)
	if err != nil {
		return nil, err
	}
	defer rows.close()
	var columns []*columnSurvey
	var problems Problems
	for range maxRows {
		cells, err := rows.Next()
		if err == io.EOF {
			break
		}
		if p, ok := asProblem(err); ok {
			problems.add(*p) // told only if the file has no columns; the check that follows finds it again
			continue
		}
		if err != nil {
			return nil, err
		}
		columns = widen(columns, rows.Columns())
		for i, cell := range cells {
			columns[i].add(cell)
		}
	}
	columns = widen(columns, rows.Columns())
	if len(columns) == 0 {
		return nil, problems.err()
	}
	return columns, nil
}

func widen(columns []*columnSurvey, names []string) []*columnSurvey {
	for _, name := range names[len(columns):] {
		columns = append(columns, &columnSurvey{name: name, texts: make(map[string]bool)})
	}
	return columns
}

func (c *columnSurvey) add(cell Cell) {
	text := strings.TrimSpace(cell.Text)
	switch {
	case cell.nested, cell.Fault != "":
		c.nested = true
		return
	case cell.Null, !cell.IsList && text == "":
		c.empty++
		return
	case cell.IsList:
		c.filled++
		c.lists++
		for i := range c.parts {
			c.parts[i].add(cell.List)
		}
		return
	}
	c.filled++
	if c.texts[text] {
		return
	}
	if len(c.texts) < maxTexts {
		c.texts[strings.Clone(text)] = true
	}
	c.different++
	_, err := cellID(text)
	number, isNumber := imageNumber(text)
	c.zero = c.zero || isNumber && number == 0
	for field, fits := range [...]bool{
		fieldID: err == nil, fieldSplit: validWord(text, maxSplit), fieldImage: isNumber,
		fieldSHA256: isHex(foldASCII(text), 64), fieldPHash: isHex(foldASCII(text), 16),
	} {
		if fits {
			c.fits[field]++
		}
	}
	c.whole.add([]string{text})
	for i, sign := range separators {
		if !c.parts[i].bad {
			c.parts[i].add(strings.Split(text, sign))
		}
	}
}

// holds says why the column's values can be the field's, "" if they cannot.
func (c *columnSurvey) holds(field int) string {
	n := c.fits[field]
	switch whole := n == c.different; {
	case n == 0 || c.lists > 0 || c.nested:
		return ""
	case field == fieldID && 2*n > c.different: // the rest is for the check to show
		return fmt.Sprintf("%d of %d values are post ids", n, c.different)
	case field == fieldSplit && whole && c.empty == 0 && !c.whole.bad && !c.whole.folded:
		return "the splits are " + list(slices.Sorted(maps.Values(c.whole.spelled)))
	case field == fieldImage && whole:
		return "all values are small numbers"
	case field > fieldImage && whole:
		return "all values have the right digits"
	}
	return ""
}

// few reports whether n different values are few enough to be labels of a column with
// so many filled cells.
func few(n, filled int) bool {
	const small = 20 // so short a file shows no repetition
	return n > 0 && n <= maxGuessedLabels && (filled < small || 2*n <= filled)
}

// isSingle reports whether the column's whole values can be labels.
func (c *columnSurvey) isSingle() bool {
	return !c.nested && c.lists == 0 && !c.whole.bad && few(len(c.whole.spelled), c.filled)
}

// isMulti reports whether the column's values are lists of labels under separator sign.
func (c *columnSurvey) isMulti(sign int) bool {
	p := &c.parts[sign]
	if c.nested || p.bad || !p.several && c.lists == 0 || !few(len(p.spelled), c.filled) {
		return false
	}
	for _, label := range p.spelled {
		if strings.Contains(label, separators[sign]) { // an item of a list, which a cell could not hold
			return false
		}
	}
	return true
}

// usable reports whether the column's name can be written into release.toml.
func (c *columnSurvey) usable() bool {
	return c.name != "" && len(c.name) <= maxLabelText && utf8.ValidString(c.name)
}

// personal reports whether the column's name says that it is about people or holds their words,
// which are not labels and do not belong in a release.
func (c *columnSurvey) personal() bool {
	name := plain(c.name)
	return strings.HasPrefix(name, "author_") ||
		slices.Contains([]string{"author", "username", "user_name", "user", "user_id", "email", "title", "selftext", "body", "permalink"}, name)
}

var notInSlug = regexp.MustCompile("[^a-z0-9]+")

// slug makes a category name of a column name.
func slug(name string) string {
	s := strings.Trim(notInSlug.ReplaceAllString(strings.ToLower(name), "_"), "_")
	if s == "" || isDigit(s[0]) {
		s = "c_" + s
	}
	s = strings.TrimRight(s[:min(len(s), maxName-8)], "_")
	if reserved(s) {
		s += "_label"
	}
	return s
}
