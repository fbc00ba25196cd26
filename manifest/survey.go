package manifest

import (
	"errors"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What Init takes for labels: few different short texts.
const (
	maxGuessedLabels = 50
	maxGuessedText   = 64 // bytes
	maxPending       = 1000
)

// A survey is what a whole manifest says of its columns.
type survey struct {
	columns []*columnSurvey
	schema  Schema // FigSIM's
	figsim  []vocabulary
}

// A columnSurvey counts the values of one column; empty and null ones count only as
// empty.
type columnSurvey struct {
	name    string
	filled  int
	empty   int
	nested  bool // objects, lists within lists, values that cannot be used
	lists   int
	strange bool // text that no label has: long, several lines, an address

	ids       int // readable as post ids
	addresses int // of these, with t3_ or as addresses
	mixed     int // of these, letters and digits both, as ids have
	sha256    int
	phash     int
	numbers   int // small whole numbers
	zeros     int
	words     int // usable as split names
	flags     int // 1, 0, true...

	values wordSet // whole values
	folded bool    // two values differ only in case
	parts  [len(separators)]partSurvey
	fits   []fit // by FigSIM's categories

	pending map[string]int // texts put by, each with how often it came
	order   []string       // of pending, as they were met
}

// A partSurvey is a column read as lists under one separator (or as the lists they are).
type partSurvey struct {
	several int // cells with more than one part
	bad     bool
	none    bool // "none" stands beside another part
	words   wordSet
}

// A wordSet holds the different texts of a column, folded, until they are too many.
type wordSet struct {
	spelled map[string]string // folded -> as first spelled
	over    bool
}

// add reports whether the text was there already, in another spelling.
func (w *wordSet) add(text string) (respelled bool) {
	if w.over {
		return false
	}
	if first, ok := w.spelled[fold(text)]; ok {
		return first != text
	}
	if len(w.spelled) == maxGuessedLabels {
		w.over, w.spelled = true, nil
		return false
	}
	if w.spelled == nil {
		w.spelled = make(map[string]string)
	}
	w.spelled[fold(text)] = strings.Clone(text)
	return false
}

// survey reads every row. Rows that cannot be read are left to the check that follows.
func (r *Release) survey() (*survey, error) {
	rows, err := r.openRows(nil, true)
	if err != nil {
		return nil, err
	}
	defer rows.close()
	s := &survey{schema: FigSIM()}
	for i := range s.schema.Categories {
		s.figsim = append(s.figsim, newVocabulary(&s.schema.Categories[i]))
	}
	s.widen(rows.Columns())
	var first Problems
	for range maxRows {
		cells, err := rows.Next()
		if err == io.EOF {
			break
		}
		var p *Problem
		if errors.As(err, &p) {
			first.add(*p)
			continue
		}
		if err != nil {
			return nil, err
		}
		s.widen(rows.Columns())
		for i, cell := range cells {
			s.columns[i].add(cell, s.figsim)
		}
	}
	for _, c := range s.columns {
		c.flush(s.figsim)
	}
	if len(s.columns) == 0 && len(first.List) > 0 {
		return nil, &first
	}
	return s, nil
}

func (s *survey) widen(names []string) {
	for len(s.columns) < len(names) {
		s.columns = append(s.columns, &columnSurvey{
			name: names[len(s.columns)], fits: make([]fit, len(s.figsim)), pending: make(map[string]int),
		})
	}
}

func (c *columnSurvey) add(cell Cell, figsim []vocabulary) {
	switch text := strings.TrimSpace(cell.Text); {
	case cell.nested, cell.Fault != "":
		c.nested = true
	case cell.Null, !cell.IsList && text == "":
		c.empty++
	case cell.IsList:
		c.lists++
		c.addParts(cell, figsim, 1)
		for i := range c.parts {
			c.parts[i].add(cell.List, 1)
		}
	default:
		if _, put := c.pending[text]; !put {
			text = strings.Clone(text)
			c.order = append(c.order, text)
		}
		c.pending[text]++
		if len(c.order) == maxPending {
			c.flush(figsim)
		}
	}
}

// flush counts the texts that were put by, each once and with its number, in the order
// in which they were first met.
func (c *columnSurvey) flush(figsim []vocabulary) {
	for _, text := range c.order {
		n := c.pending[text]
		c.addParts(Cell{Text: text}, figsim, n)
		c.addText(text, n)
		for i, sign := range separators {
			if !c.parts[i].dead() {
				c.parts[i].add(strings.Split(text, sign), n)
			}
		}
	}
	clear(c.pending)
	c.order = c.order[:0]
}

// addParts counts a cell for FigSIM's categories; one that had a strange cell is out.
func (c *columnSurvey) addParts(cell Cell, figsim []vocabulary, n int) {
	c.filled += n
	for i := range c.fits {
		f := &c.fits[i]
		if f.filled > slices.Max(f.matched[:]) {
			continue
		}
		f.filled += n
		f.match(cell, figsim[i], n)
	}
}

func (c *columnSurvey) addText(text string, n int) {
	count := func(total *int, yes bool) {
		if yes {
			*total += n
		}
	}
	id, err := cellID(text)
	s := string(id)
	_, isFlag := flagText(text)
	number, isNumber := imageNumber(text)
	count(&c.ids, err == nil)
	count(&c.addresses, err == nil && len(s) != len(text))
	count(&c.mixed, err == nil && strings.ContainsAny(s, "0123456789") && !digits(s))
	count(&c.sha256, isHex(foldASCII(text), 64))
	count(&c.phash, isHex(foldASCII(text), 16))
	count(&c.numbers, isNumber)
	count(&c.zeros, isNumber && number == 0)
	count(&c.words, validWord(text, maxSplit))
	count(&c.flags, isFlag)
	if !validText(text, maxGuessedText) || strings.Contains(text, "://") {
		c.strange = true
	}
	if c.values.add(text) {
		c.folded = true
	}
}

// dead reports that the column is no list of labels under this separator, whatever follows.
func (p *partSurvey) dead() bool { return p.bad || p.words.over }

func (p *partSurvey) add(parts []string, n int) {
	if len(parts) > 1 {
		p.several += n
	}
	for i, part := range parts {
		part = strings.TrimSpace(part)
		same := func(other string) bool { return fold(other) == fold(part) }
		if !validText(part, maxGuessedText) || strings.Contains(part, "://") || slices.ContainsFunc(parts[:min(i, maxGuessedLabels)], same) {
			p.bad = true
			return
		}
		if isNone(part) && len(parts) > 1 {
			p.none = true
		}
		p.words.add(part)
	}
}

func isNone(text string) bool { return fold(text) == "none" }

// few reports whether n different values are few enough to be labels of a column with
// so many filled cells.
func few(n, filled int) bool {
	const small = 20 // so short a file shows no repetition
	return n > 0 && n <= maxGuessedLabels && (filled < small || 2*n <= filled)
}

// isSingle reports whether the column's whole values can be labels.
func (c *columnSurvey) isSingle() bool {
	return !c.nested && !c.strange && c.lists == 0 && !c.values.over && few(len(c.values.spelled), c.filled)
}

// isMulti reports whether the column's values are lists of labels under separator sign.
func (c *columnSurvey) isMulti(sign int) bool {
	p := &c.parts[sign]
	if c.nested || p.bad || p.words.over || !few(len(p.words.spelled), c.filled) {
		return false
	}
	for _, word := range p.words.spelled {
		if strings.Contains(word, separators[sign]) { // an item of a list, which a cell could not hold
			return false
		}
	}
	return p.several > 0 || c.lists > 0
}

// usable reports whether the column's name can be written into release.toml.
func (c *columnSurvey) usable() bool {
	return c.name != "" && len(c.name) <= maxLabelText && utf8.ValidString(c.name)
}

// personal reports whether the column, by its name, tells of people or their words,
// which are no labels and belong in no release.
func (c *columnSurvey) personal() bool {
	name := plain(c.name)
	switch name {
	case "author", "username", "user_name", "user", "user_id", "email", "title", "selftext", "body", "permalink":
		return true
	}
	return strings.HasPrefix(name, "author_")
}

// slug makes a category name of a column name.
func slug(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
	}
	s := strings.TrimRight(b.String(), "_")
	if s == "" || isDigit(s[0]) {
		s = "c_" + s
	}
	s = strings.TrimRight(s[:min(len(s), maxName-8)], "_")
	if reserved(s) {
		s += "_label"
	}
	return s
}
