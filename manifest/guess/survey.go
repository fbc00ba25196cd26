package guess

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"rehydrate/manifest"
	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// What is taken for labels: few different short texts.
const (
	maxGuessedLabels = 50
	maxGuessedText   = 64   // bytes
	maxDifferent     = 2000 // cells of a column that are kept; with more the column holds no labels
)

// A surveyed column is what all rows say of a column, before anything is guessed.
type surveyed struct {
	name    string
	place   int // among the columns
	filled  int
	empty   bool // some are
	missing int  // cells with a word for a missing value, which count as empty

	missingAs string         // the first such word
	lists     bool           // some cells are lists
	texts     int            // cells that are texts
	listed    int            // texts that stand for lists, as pandas writes them
	bare      int            // texts that are words in brackets: lists where all texts are
	written   bool           // the lists stand in texts
	several   bool           // some of these have several items
	nested    int            // cells that are objects, or lists of more than plain values
	kept      bool           // --keep names it
	inside    string         // what tells who somebody is in the objects of such a column, "" for nothing
	odd       bool           // some are objects, lists in lists, or values that cannot be used
	cells     [][]string     // the different ones, as far as they are kept; what is not a list has one text
	rows      []int          // how many rows have each of cells
	seen      map[string]int // the cells that are kept, by their texts, each with its place in cells
	states    map[string]int // of a column of states the rows that have each value, nil for another
	used      bool           // as a field, category or column

	// Places to point at: of each of cells where it stands first, and of the first cell that is empty, and that is odd.
	places         []place
	emptyAt, oddAt place
	whyOdd         string       // to go on from "the value"
	faulty         bool         // the first odd one cannot be used, or has lost a part of itself
	unread         string       // why its values are not read, in one of the files or all; "" where they are
	here           func() place // of the present cell

	style     value.Style // of its numbers
	thousands string      // why their points may part thousands, "" where they do not
	floats    bool        // some are numbers of JSON or Parquet, whose points part decimals

	today      time.Time
	zone       *time.Location // of times that do not say it, nil for none
	measured   bool           // it belongs to columns of fractions, although its own numbers are 0 and 1
	namedWords bool           // the name is one of columns of words
	ordinary   bool           // the values are a few ordinary words that repeat
	names      string         // what the values look like, which would do as labels: "names of accounts"; "" for labels
	differs    bool           // two rows about one image have different values
	personal   string         // what a value that tells who somebody is looks like, "" for none

	items int        // values, with those of lists
	forms [forms]int // how many of them have a form
	last  int        // the last value, where it was a row number so far
	steps int        // values that are the one before and 1
	id    string     // the post that the present row names, "" for none

	strong  bool // id can be nothing else
	namedID bool // the column has a name of ids
}

// A place is that of a cell.
type place struct {
	file         string
	line, column int
}

// String gives a place as messages do. It is not known where only the first values of a column are kept.
func (p place) String() string {
	if p.line == 0 {
		return "a later row"
	}
	return fmt.Sprintf("%s:%d:%d", p.file, p.line, p.column)
}

// The forms of a value. One can have several.
const (
	formID      = iota // what a post id can look like
	formPost           // an id with t3_ or a permalink: nothing else looks like it
	formGallery        // ID/N
	formComment        // t1_ or the permalink of a comment
	formTooNew         // what would be a post id, were it not too high for one by today
	formDigits
	formInteger
	formNumber
	formFlag         // true or false in a word
	formLossyInteger // a number that a column of integers would not keep as it is
	formLossyNumber  // and one of numbers
	formTime
	formNaive   // such a text that names no time zone
	formDay     // and no time of day
	formTwice   // and that the clocks of --timezone show twice, or never
	formSeconds // a number that can be seconds since 1970
	formSHA256
	formPHash
	formAddress
	formShare // a share link of Reddit's
	formImage // the address of an image
	formWords
	formFile
	formRow     // the name of the column, or of a row of sums
	formProfile // a user's profile, where a subreddit may stand
	forms
)

func (c *surveyed) add(cell manifest.Cell) {
	c.id, c.strong = "", false
	parts := cell.List
	if !cell.IsList {
		parts = []string{strings.TrimSpace(cell.Text)}
	}
	text, counted := strings.Join(parts, "\x00"), parts
	switch {
	case cell.Nested, cell.Fault != "":
		if cell.Fault == "" {
			c.addObject(cell)
		}
		if !c.odd {
			c.odd, c.oddAt, c.faulty = true, c.here(), cell.Fault != ""
			c.whyOdd = cmp.Or(cell.Fault, "is an object, or a list with more than plain values")
		}
	case cell.Null, text == "" && !cell.IsList, !cell.IsList && value.Missing(text):
		if !cell.Null && text != "" {
			c.missing++
			c.missingAs = cmp.Or(c.missingAs, strings.Clone(text))
		}
		if !c.empty {
			c.empty, c.emptyAt = true, c.here()
		}
	default:
		c.filled++
		c.lists, c.floats = c.lists || cell.IsList, c.floats || cell.Float
		if !cell.IsList {
			counted = c.addText(parts[0])
		}
		if _, met := c.states[text]; met || c.states != nil && len(c.states) <= maxDifferent {
			c.states[strings.Clone(text)]++
		}
		for _, part := range counted {
			c.count(part)
		}
		if c.personal == "" && len(counted) == 2 && isPlace(counted[0]+","+counted[1]) {
			c.personal = ofPlace
		}
		if at, met := c.seen[text]; met {
			c.rows[at]++
		} else if len(c.cells) <= maxDifferent {
			// A cell that is kept should not keep its row. A long one cannot be a label, wherever it is cut.
			var kept []string
			for _, part := range parts[:min(len(parts), maxGuessedLabels+1)] {
				kept = append(kept, strings.Clone(part[:min(len(part), 4096)]))
			}
			c.seen[strings.Clone(text[:min(len(text), 4096)])] = len(c.cells)
			c.cells = append(c.cells, kept)
			c.rows = append(c.rows, 1)
			c.places = append(c.places, c.here())
		}
	}
}

// addText notes what a text stands for, and gives the values in it.
func (c *surveyed) addText(text string) []string {
	c.texts++
	items, kind := table.ParseLiteral(text)
	switch kind {
	case table.ListLiteral:
		c.listed++
	case table.BareList:
		c.bare++
		c.several = c.several || len(items) > 1
	default:
		return []string{text}
	}
	if kind == table.BareList {
		return []string{text}
	}
	c.several = true
	return items
}

// readLists makes lists of the cells that stand for some, where all do.
func (c *surveyed) readLists() {
	if c.texts == 0 || c.listed+c.bare < c.texts || !c.several {
		return
	}
	c.lists, c.written = true, true
	for i, cell := range c.cells {
		if len(cell) == 1 {
			list := manifest.Cell{Text: cell[0]}.ReadList()
			if list.IsList {
				c.cells[i] = list.List[:min(len(list.List), maxGuessedLabels+1)]
			}
		}
	}
}

// firstOther gives the place of the first text that stands for no list.
func (c *surveyed) firstOther() place {
	for i, cell := range c.cells {
		if len(cell) == 1 && !(manifest.Cell{Text: cell[0]}).ReadList().IsList {
			return c.places[i]
		}
	}
	return place{}
}

// mixed reports whether texts that stand for lists are among others that do not.
func (c *surveyed) mixed() bool { return c.listed > 0 && !c.written }

func (c *surveyed) count(text string) {
	c.items++
	note := func(form int, is bool) {
		if is {
			c.forms[form]++
		}
	}
	// A column of words is left out as such, and long to search; only a category can have such a name, and few values.
	if c.personal == "" && !c.has(text) && (!c.namedWords || len(c.cells) <= maxGuessedLabels) {
		c.personal = personalValue(text)
	}
	id, strong := manifest.PostForm(text)
	tooNew := id != "" && manifest.PostID(id).TooNew(c.today)
	if tooNew {
		id, strong = "", false
	}
	c.id, c.strong = id, strong
	note(formTooNew, tooNew)
	note(formID, id != "")
	note(formPost, id != "" && strong)
	note(formComment, id == "" && strong)
	head, tail, _ := strings.Cut(text, "/")
	_, numbered := manifest.ParseImage(tail)
	note(formGallery, numbered && manifest.PostID(head).Valid())
	digits := value.IsDigits(text)
	note(formDigits, digits)
	row, err := strconv.Atoi(text)
	if digits && err == nil && (c.items == 1 || row == c.last+1) {
		c.steps++
	}
	c.last = row
	c.style.Add(text)
	n, ok := value.Number(text)
	note(formInteger, ok && n == math.Trunc(n))
	note(formNumber, ok)
	note(formLossyInteger, ok && !keepsInteger(text))
	note(formLossyNumber, ok && !keepsNumber(text))
	note(formFlag, slices.Contains([]string{"true", "false"}, value.FoldASCII(text)))
	_, isTime := value.Time(text, time.UTC)
	note(formTime, isTime && !ok)
	naive := isTime && value.Naive(text)
	note(formNaive, naive)
	note(formDay, naive && value.Day(text))
	note(formTwice, naive && c.zone != nil && !value.Once(text, c.zone))
	note(formSeconds, isTime && ok)
	hex := len(text) == 64 || len(text) == 16
	note(formSHA256, hex && value.IsHex(value.FoldASCII(text), 64))
	note(formPHash, hex && value.IsHex(value.FoldASCII(text), 16))
	note(formAddress, isAddress(text))
	note(formShare, isShare(text))
	note(formImage, isImageAddress(text))
	note(formWords, isWritten(text))
	note(formFile, isFile(text))
	note(formRow, c.namesRow(text))
	note(formProfile, manifest.IsProfile(manifest.SubredditCell(text)))
}

// What is a sentence: so many words, or so many letters in scripts that do not part words. Labels have fewer.
const (
	textWords   = 6
	textSigns   = 12 // of Chinese or Japanese
	textLetters = 24 // of Thai, Lao, Khmer or Burmese
)

// isText reports whether somebody wrote the text: several lines, or as many words as a sentence has, also where -, _, a
// dot, a sign of an address (%20) or nothing is between them.
func isText(text string) bool {
	if strings.ContainsAny(text, "\n") || strings.Count(text, " ") >= textWords-1 {
		return true
	}
	if len(text) < textWords*3 {
		return false
	}
	signs, letters := 0, 0
	for _, r := range text {
		switch {
		case r < '\u0e00': // below all of them
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
			signs++
		case unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
			letters++
		}
	}
	return signs >= textSigns || letters >= textLetters || signs >= textSigns/2 && strings.ContainsAny(text, "。！？，") ||
		!strings.ContainsAny(text, " /") && isSlug(escapedSpace.Replace(text))
}

// maxWords is how many words a label has at most, by the sign between several, where many short ones stand in a cell.
// In a sentence commas stand between few words, too.
var maxWords = map[string]int{"|": textWords - 1, ";": 3, ",": 2}

// isWritten reports whether somebody wrote the text of a cell, which may hold several labels: words are counted in
// each.
func isWritten(text string) bool {
	if !isText(text) || strings.Contains(text, "\n") {
		return isText(text)
	}
	for _, sign := range manifest.Separators() {
		parts := strings.Split(text, sign)
		isLong := func(part string) bool { return len(value.Words(part)) > maxWords[sign] || isText(part) }
		if len(parts) > 2 && !slices.ContainsFunc(parts, isLong) {
			return false
		}
	}
	return true
}

var escapedSpace = strings.NewReplacer("%20", " ", "%2C", " ", "%27", "'")

// isSlug reports whether a text without spaces has the words of a sentence.
func isSlug(text string) bool {
	words := value.Words(text)
	long := 0
	for _, word := range words {
		if utf8.RuneCountInString(word) > 2 && strings.IndexFunc(word, unicode.IsLetter) >= 0 {
			long++
		}
	}
	return len(words) >= textWords && 2*long > len(words) && long > 3
}

// hostAndPath is an address without its scheme: example.org/page.
var hostAndPath = pattern(`^[\pL\d-]+(\.[\pL\d-]+)*\.[A-Za-z]{2,}(:\d+)?/\S`)

func isAddress(text string) bool {
	return strings.Contains(text, "://") || strings.HasPrefix(text, "/r/") || strings.Contains(text, "reddit.com/") ||
		strings.Contains(text, "/") && hostAndPath().MatchString(text)
}

// significant gives the digits of a number in decimals that carry its value.
func significant(text string) string {
	mantissa, _, _ := strings.Cut(value.FoldASCII(text), "e")
	return strings.Trim(strings.NewReplacer(".", "", "-", "").Replace(mantissa), "0")
}

// beginsOddly reports whether a number begins as one that was a text or code: with a sign or a zero that says nothing.
func beginsOddly(text string) bool {
	text = strings.TrimPrefix(text, "-")
	return len(text) > 1 && (text[0] == '+' || text[0] == '0' && value.IsDigit(text[1]))
}

// keepsInteger reports whether a column of integers keeps the number. 4.0 is 4 there.
func keepsInteger(text string) bool {
	if len(text) <= 15 {
		return !beginsOddly(text)
	}
	_, err := strconv.ParseInt(text, 10, 64)
	return !beginsOddly(text) && (err == nil || len(significant(text)) <= 15)
}

// keepsNumber reports whether a column of numbers keeps the digits of the number.
func keepsNumber(text string) bool {
	if len(text) <= 15 {
		return !beginsOddly(text)
	}
	digits := significant(text)
	v, _ := value.Number(text)
	return !beginsOddly(text) && (len(digits) <= 15 || significant(strconv.FormatFloat(v, 'e', -1, 64)) == digits)
}

// firstLossy gives the place of the first number that would not stay as it is.
func (c *surveyed) firstLossy() place {
	for i, cell := range c.cells {
		if !keepsInteger(cell[0]) || !keepsNumber(cell[0]) || c.style.MayBeCodes() && value.EndsInZero(cell[0]) {
			return c.places[i]
		}
	}
	return place{}
}

// all reports whether every value has the form.
func (c *surveyed) all(form int) bool { return c.items > 0 && c.forms[form] == c.items }

// rowNumbers reports whether the values count the rows: 0, 1, 2 or from another number on.
func (c *surveyed) rowNumbers() bool { return c.filled > 2 && c.steps == c.items && !c.lists }

// differences are the pairs of columns that name different posts in some row, each with the place of the first in the
// second of them. One of each pair is strong: its value can be nothing but the id of a post, or its name is one of ids.
type differences map[[2]int]place

// at gives the place of the first difference of two columns, the zero place for none.
func (d differences) at(a, b *surveyed) place {
	return d[[2]int{min(a.place, b.place), max(a.place, b.place)}]
}

func (d differences) has(a, b *surveyed) bool { return d.at(a, b) != place{} }

// add compares the columns that name a post in the present row.
func (d differences) add(columns []*surveyed) {
	var named []*surveyed
	for _, c := range columns {
		if c.id == "" || !c.strong && !c.namedID {
			continue
		}
		for _, other := range named {
			pair := [2]int{other.place, c.place}
			if _, known := d[pair]; !known && other.id != c.id {
				d[pair] = c.here()
			}
		}
		named = append(named, c)
	}
}

// survey reads all rows but those that are left out, and counts them. What is wrong with a row is for the reading of
// the draft to say, but for a file that has no other rows.
func survey(ctx context.Context, in *manifest.Rows, o Options, without manifest.Without) (columns []*surveyed,
	differ differences, rows int, err error) {
	differ = make(differences)
	problems := new(table.Problems)
	zone, _ := value.Zone(o.Timezone)
	for ctx.Err() == nil {
		cells, err := in.Next()
		for _, name := range in.Columns()[len(columns):] { // a record of JSON may have further keys
			at := len(columns)
			c := &surveyed{name: name, place: at, seen: make(map[string]int), today: o.Today, here: func() (p place) {
				p.file, p.line, p.column = in.Place(at)
				return p
			}}
			c.zone = zone
			if stateOf(name) != noState {
				c.states = make(map[string]int)
			}
			c.kept = slices.Contains(o.Keep, name)
			c.namedID = name == o.ID || manifest.IDNamed(name)
			c.namedWords = c.namedAs("title text selftext body caption comment sentence description permalink url link href")
			columns = append(columns, c)
		}
		if err == io.EOF {
			for _, unread := range in.Unread() {
				columns = meetUnread(columns, unread)
			}
			for _, c := range columns {
				c.readLists()
				c.ordinary = c.isOrdinary(o.Known)
			}
			findThousands(columns)
			if rows == 0 {
				return columns, differ, rows, problems.Err()
			}
			return columns, differ, rows, nil
		}
		if p, isProblem := table.AsProblem(err); isProblem {
			problems.Add(*p)
			continue
		}
		if err != nil {
			return nil, nil, 0, err
		}
		if without.Is != nil && without.Is(without.Texts(in.Columns(), cells)) {
			continue
		}
		rows++
		for i, cell := range cells {
			columns[i].add(cell)
		}
		differ.add(columns)
	}
	return nil, nil, 0, ctx.Err()
}

// meetUnread marks the column of that name, which is a new one where no file has values of it.
func meetUnread(columns []*surveyed, unread manifest.Unread) []*surveyed {
	i := slices.IndexFunc(columns, func(c *surveyed) bool { return c.name == unread.Name })
	if i < 0 {
		i, columns = len(columns), append(columns, &surveyed{name: unread.Name, place: len(columns)})
	}
	columns[i].odd, columns[i].faulty, columns[i].unread = true, true, unread.Why()
	return columns
}

// findThousands finds the columns whose points may part thousands: other numbers of the file have a decimal comma, or
// those of the column that have no point are whole.
func findThousands(columns []*surveyed) {
	commas := slices.ContainsFunc(columns, func(c *surveyed) bool { return c.style.DecimalComma() })
	for _, c := range columns {
		switch {
		case !c.all(formNumber) || c.floats:
		case commas && c.style.MayPartThousands():
			c.thousands = "for others have a decimal comma"
		case c.style.PartsThousands():
			c.thousands = "for each has three digits behind it, and the other numbers are whole"
		}
	}
}

// splitByCase gives two columns that look like one whose name is spelled in two ways: where one has a value, the other
// has none. nil for none.
func splitByCase(columns []*surveyed, rows int) (a, b *surveyed) {
	for i, a := range columns {
		for _, b := range columns[i+1:] {
			if manifest.FoldColumn(a.name) == manifest.FoldColumn(b.name) && a.filled > 0 && b.filled > 0 &&
				a.filled+b.filled <= rows {
				return a, b
			}
		}
	}
	return nil, nil
}

// labels gives the different labels of a column whose cells are parted at the sign, "" for cells that are
// one label each; nil if they cannot be labels.
func (c *surveyed) labels(sign string) []manifest.Label {
	read := c.readLabels(sign)
	if c.odd || len(read.faults) > 0 {
		return nil
	}
	return read.labels
}

// A labelReading is what the cells of a column say where they are taken for labels.
type labelReading struct {
	labels   []manifest.Label // of the cells without fault; nil where these cannot be labels
	merged   []string         // pairs of spellings that differ in case alone, as messages have them
	numbers  []string         // and of those that are one number
	stored   []string         // and of those that are stored in other signs
	spelled  []spelling       // the spellings of numbers that are not their labels
	faults   []int            // the cells that cannot be labels, by their places in cells
	firstWhy string           // of the first one, to go on from "the value"
	twice    int              // how many of them have one label twice, and no other fault

	several, besideNone, phrases bool
}

// A spelling is a text that means a label of another text: 1.0 where the label is 1.
type spelling struct{ text, code string }

func (c *surveyed) readLabels(sign string) (r labelReading) {
	if sign == "" && c.lists || len(c.cells) > maxDifferent {
		return r
	}
	r.several = c.lists
	for i, parts := range c.cells {
		if !c.lists && sign != "" {
			parts = strings.Split(parts[0], sign)
		}
		if why := r.addCell(parts, sign); why != "" {
			r.faults = append(r.faults, i)
			r.firstWhy = cmp.Or(r.firstWhy, why)
		}
		if len(r.labels) > maxGuessedLabels {
			r.labels = nil
			return r
		}
	}
	// Single words in a file of less than 20 rows need not repeat; several words may be a sentence or a person's name.
	if sign != "" && !r.several || (c.filled >= 20 || r.phrases) && 2*len(r.labels) > c.filled {
		r.labels = nil
	}
	for i, l := range r.labels {
		r.labels[i].Exclusive = value.Fold(l.Code) == "none" && sign != "" && !r.besideNone
	}
	sortLabels(r.labels)
	if r.labels != nil {
		for i, s := range r.spelled {
			r.spelled[i].code = r.labels[r.find(s.text)].Code
		}
	}
	return r
}

// find gives the place of the label that a text means, -1 for none.
func (r *labelReading) find(text string) int {
	return slices.IndexFunc(r.labels, func(l manifest.Label) bool { return sameLabel(l.Code, text) })
}

// sameLabel reports whether two texts mean one label: they differ in case or in how signs are stored alone (é as one
// sign or two, wide letters), or are one number. A number that begins or ends as a code does (007, 1.10) is a text.
func sameLabel(a, b string) bool {
	if value.Fold(a) == value.Fold(b) || value.Fold(plainSigns(a)) == value.Fold(plainSigns(b)) {
		return true
	}
	n, isNumber := value.Number(a)
	other, both := value.Number(b)
	return isNumber && both && n == other && !isCode(a) && !isCode(b)
}

// isCode reports whether a number may be a code that would not be the same without the zeros before it or at its end,
// or has more digits than a float64 holds, as ids of other sites do.
func isCode(number string) bool {
	n, _ := value.Number(number)
	return beginsOddly(strings.TrimPrefix(number, "+")) || n != math.Trunc(n) && value.EndsInZero(number) ||
		!isExact(number, n)
}

// isExact reports whether a float64 tells a number from every other one with as many digits.
func isExact(number string, n float64) bool {
	const most = 15 // digits that every float64 keeps (DBL_DIG of IEEE 754)
	mantissa, _, _ := strings.Cut(value.FoldASCII(number), "e")
	if strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(mantissa, "0")
	}
	digits := strings.TrimLeft(strings.ReplaceAll(strings.TrimLeft(mantissa, "+-"), ".", ""), "0")
	return len(digits) <= most && (n != 0 || digits == "")
}

// addCell adds the labels of a cell. It says why they cannot be labels, to go on from "the value", or "".
func (r *labelReading) addCell(parts []string, sign string) string {
	// Before the search for repeats, which takes the square of them.
	if len(parts) > maxGuessedLabels {
		return fmt.Sprintf("has more than %d parts", maxGuessedLabels)
	}
	var found []string
	twice := false
	for _, text := range parts {
		text = strings.TrimSpace(text)
		if plain := plainSigns(text); !value.IsLine(text, maxGuessedText) && value.IsLine(plain, maxGuessedText) {
			r.spelled = append(r.spelled, spelling{text: text}) // such as one with a no-break space
			text = plain
		}
		if why := notLabel(text, sign); why != "" {
			return why
		}
		if slices.ContainsFunc(found, func(other string) bool { return sameLabel(other, text) }) {
			twice = true
			continue
		}
		found = append(found, text)
	}
	r.several = r.several || len(found) > 1
	for _, text := range found {
		r.phrases = r.phrases || strings.Contains(text, " ")
		r.besideNone = r.besideNone || value.Fold(text) == "none" && len(found) > 1
		r.addLabel(text)
	}
	if twice {
		r.twice++
		return "has one label twice"
	}
	return ""
}

// addLabel adds a label, or says of which one the text is another spelling. Of spellings of a number the plainest is
// the label.
func (r *labelReading) addLabel(text string) {
	i := r.find(text)
	if i < 0 {
		r.labels = append(r.labels, manifest.Label{Code: text, Name: text})
		return
	}
	code := r.labels[i].Code
	if code == text {
		return
	}
	pair, pairs := table.Quote(code)+" and "+table.Quote(text), &r.merged
	if value.Fold(code) != value.Fold(text) {
		pairs = &r.numbers
		isPlain := text == plainSigns(text)
		if value.Fold(plainSigns(code)) == value.Fold(plainSigns(text)) {
			pairs = &r.stored
		}
		r.spelled = append(r.spelled, spelling{text: text})
		const signs = "eE+" // which say less plainly what the number is
		odd, oddText := strings.ContainsAny(code, signs), strings.ContainsAny(text, signs)
		isStored := pairs == &r.stored
		switch {
		case isStored && isPlain && code != plainSigns(code), !isStored &&
			(odd && !oddText || odd == oddText && len(text) < len(code)):
			r.labels[i] = manifest.Label{Code: text, Name: text}
			r.spelled[len(r.spelled)-1].text = code
		}
	}
	if !slices.Contains(*pairs, pair) {
		*pairs = append(*pairs, pair)
	}
}

// notLabel says why a text cannot be a label, to go on from "the value", or "".
func notLabel(text, sign string) string {
	account := value.FoldASCII(strings.TrimLeft(text, "/"))
	switch {
	case text == "":
		return "has an empty label"
	case strings.HasPrefix(account, "u_"), strings.HasPrefix(account, "u/"):
		return "is the name of an account"
	case !value.IsLine(text, maxGuessedText):
		return fmt.Sprintf("is not one line of at most %d bytes", maxGuessedText)
	case isAddress(text):
		return "is an address"
	case isFile(text):
		return "is the name of a file"
	case isLiteral(text):
		return "is a list or an object, written as text"
	case sign != "" && strings.Contains(text, sign): // of a list, which a cell of a text file could not have
		return fmt.Sprintf("has a label with %q in it", sign)
	}
	for _, pair := range []string{"()", "[]", "{}"} { // a sign between them parts no labels
		if strings.Count(text, pair[:1]) != strings.Count(text, pair[1:]) {
			return "has brackets that do not match"
		}
	}
	return ""
}

func isLiteral(text string) bool {
	_, kind := table.ParseLiteral(text)
	return kind == table.ListLiteral || kind == table.ObjectLiteral
}

// nearlyLabels says where the column, which is not labels, has a value of the few that keep it from being some, and
// why; "" where it is of another kind.
func (c *surveyed) nearlyLabels(signs ...string) (at place, why string) {
	for _, sign := range signs {
		read := c.readLabels(sign)
		good := len(c.cells) - len(read.faults) + read.twice // as votes are written, all can have one twice
		few := len(read.faults)-read.twice <= max(1, len(c.cells)/10)
		switch {
		case len(read.labels) < 2 || good < 2 || !few:
		case len(read.faults) > 0:
			return c.places[read.faults[0]], read.firstWhy
		case c.odd:
			return c.oddAt, c.whyOdd
		}
	}
	return place{}, ""
}

// tooManyLabels reports whether the column has short values that repeat as labels do, but more than are taken for
// labels.
func (c *surveyed) tooManyLabels() bool {
	return len(c.cells) > maxGuessedLabels && len(c.cells) <= maxDifferent && 4*len(c.cells) <= c.filled && !c.odd &&
		!slices.ContainsFunc(c.cells, func(cell []string) bool { return len(cell) != 1 || notLabel(cell[0], "") != "" })
}

func sortLabels(labels []manifest.Label) {
	number := func(l manifest.Label) float64 {
		if n, err := strconv.ParseFloat(l.Code, 64); err == nil {
			return n
		}
		return math.Inf(1)
	}
	slices.SortFunc(labels, func(a, b manifest.Label) int {
		return cmp.Or(cmp.Compare(number(a), number(b)), cmp.Compare(value.Fold(a.Code), value.Fold(b.Code)),
			cmp.Compare(a.Code, b.Code))
	})
}

// has reports whether a cell that is kept has the text alone.
func (c *surveyed) has(text string) bool {
	_, met := c.seen[text]
	return met
}

// values gives the different values that are kept.
func (c *surveyed) values() []string { return slices.Concat(c.cells...) }

// usable reports whether the column's name can be written into release.toml.
func (c *surveyed) usable() bool {
	return c.name != "" && len(c.name) <= manifest.MaxLabelText && utf8.ValidString(c.name)
}

// namedAs reports whether the name is one of these, or ends in _ and one of them; a plural counts as its singular.
func (c *surveyed) namedAs(words string) bool { return namedAs(manifest.FoldColumn(c.name), words) }

func namedAs(name, words string) bool {
	last := name[strings.LastIndexByte(name, '_')+1:]
	all := strings.Fields(words)
	return slices.Contains(all, name) || slices.Contains(all, last) || slices.Contains(all, strings.TrimSuffix(last, "s"))
}

// words reports whether the column holds what people wrote, or addresses that say it: those have a post's title, and an
// image's leads to the image without asking whether its post is still there.
func (c *surveyed) words() bool {
	return c.wordsByName() || 2*c.forms[formAddress] > c.items || 10*c.forms[formWords] > c.items || c.files()
}

// files reports whether the column holds names of files, which are titles of posts or names of accounts in many tools.
func (c *surveyed) files() bool { return 10*c.forms[formFile] > c.items }

func (c *surveyed) wordsByName() bool {
	return c.namedWords && !c.all(formNumber)
}

// counted reports whether the numbers are of the post or its image, and so not labels.
func (c *surveyed) counted() bool {
	return c.namedAs("score up down ratio karma width height size filesize confidence utc timestamp date time year month " +
		"hour minute second duration elapsed count comment num_comments length age")
}

// namedTime reports whether the column's name is one of times.
func (c *surveyed) namedTime() bool { return c.namedAs("utc timestamp created date at on") }

// kind is the type that all values have, TypeText where they have no other.
func (c *surveyed) kind() manifest.ColumnType {
	isTime := c.all(formTime)
	switch {
	case c.mixed(), c.thousands != "", c.all(formNumber) && c.style.MayBeCodes():
		return manifest.TypeText
	case isTime && c.forms[formNaive] > 0 && (c.zone == nil || c.forms[formDay] > 0):
		return manifest.TypeText
	case isTime, c.all(formSeconds) && c.namedTime():
		return manifest.TypeTimestamp
	case c.all(formInteger) && c.forms[formLossyInteger] == 0 && !c.measured:
		return manifest.TypeInteger
	case c.all(formNumber) && c.forms[formLossyNumber] == 0:
		return manifest.TypeNumber
	case c.all(formFlag):
		return manifest.TypeBoolean
	}
	return manifest.TypeText
}
