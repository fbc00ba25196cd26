package manifest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rehydrate/internal/keysort"
	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// Entries gives the manifest's good entries in file order. It goes on after a problem, and ends with an error if it met
// any (*Problems), if ctx ended, or if the manifest is no longer the one that was opened: the entries before it then
// are not all, or not those of the release.
func (r *Release) Entries(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		_, err := r.scan(ctx, func(e Entry) bool { return yield(e, nil) })
		// A caller that left is not called once more: scan then has no error.
		if err != nil {
			yield(Entry{}, err)
		}
	}
}

// Check reads the whole manifest as Entries does. Its error is *Problems when entries are wrong,
// and the Summary then counts the good ones.
func (r *Release) Check(ctx context.Context) (Summary, error) {
	return r.scan(ctx, func(Entry) bool { return true })
}

// A Summary counts what a manifest holds.
type Summary struct {
	Entries int      // images that are named; rows = "many" has more rows
	Posts   int      // different post ids
	Splits  []string // in order of first appearance
}

func (r *Release) scan(ctx context.Context, emit func(Entry) bool) (Summary, error) {
	var counted Summary
	rows, err := r.openRows(r.used())
	if err != nil {
		return counted, err
	}
	defer rows.Close()
	d := newDecoder(r, rows.Columns())
	var problems Problems
	told := make(map[string]bool) // hints
	d.report = func(cell int, message, hint string) {
		if r.IsList() && told[hint] { // a list of other things says so once
			problems.More++
			return
		}
		told[hint] = true
		file, line, column := rows.Place(cell)
		problems.Add(Problem{File: file, Line: line, Column: column, Message: message, Hint: hint})
	}
	without := r.newSkip(rows)
	d.beside.chosen = !r.isTable && r.named[r.columns[FieldID.String()]] != ""
	d.beside.meet(rows.Columns(), func(name string) bool { return !slices.Contains(r.asides, name) })
	keys := new(keysort.Sorter)
	defer keys.Close()
	for {
		// A million rows take seconds, and Ctrl-C must not wait for them.
		if err := ctx.Err(); err != nil {
			return counted, err
		}
		cells, err := rows.Next()
		if err == io.EOF {
			break
		}
		rows.count++
		if p, ok := table.AsProblem(err); ok {
			problems.Add(*p)
			continue
		}
		if err != nil {
			return counted, fmt.Errorf("read %s: %w", rows.file().path, err)
		}
		if without != nil && without(cells) {
			continue
		}
		if told := r.options.Unanswered; told != nil && d.beside.isNone(cells) {
			told()
			continue
		}
		for _, name := range r.lists {
			if i, is := rows.index[name]; is { // which those that are left out are not
				cells[i] = cells[i].ReadList()
			}
		}
		found := problems.Count()
		e := d.entry(cells)
		if r.isTable {
			file, line, _ := rows.Place(-1)
			var p *Problem
			e.Key, p = d.beside.numbers.Key(e.Key, d.beside.imageFields(cells), Problem{File: file, Line: line})
			if p != nil {
				problems.Add(*p)
			}
		}
		d.beside.judge(e.ID, cells, func(cell int) Problem {
			file, line, column := rows.Place(cell)
			return Problem{File: file, Line: line, Column: column}
		}, func(p Problem) { problems.Add(p) })
		e.Split = d.splitIn(rows.file(), e.Split)
		_, e.Line, _ = rows.Place(-1)
		good := problems.Count() == found
		if good && !slices.Contains(counted.Splits, e.Split) {
			counted.Splits = append(counted.Splits, e.Split)
		}
		// A row that is wrong in another way still holds its key.
		if e.ID != "" {
			key := placeKey(e.Key, rows.next-1, e.Line)
			if good {
				key.Note = noteOf(e, slices.Index(counted.Splits, e.Split))
			}
			if err := keys.Add(key.Key); err != nil {
				return counted, err
			}
		}
		if !good {
			continue
		}
		e.Ordinal = counted.Entries
		counted.Entries++
		if !emit(e) {
			return counted, nil
		}
	}
	problems.Add(d.beside.numbers.Mixed()...)
	problems.Join(d.beside.ofComments())
	return counted, r.finish(&counted, rows, keys, problems)
}

// newSkip gives what decides of a row whether it is left out, nil where none is.
func (r *Release) newSkip(rows *Rows) func(cells []Cell) bool {
	if r.without.Is == nil {
		return nil
	}
	texts := make([]string, len(r.without.Columns))
	return func(cells []Cell) bool {
		for i, name := range r.without.Columns {
			texts[i] = cells[rows.index[name]].Plain() // all that are used have a place
		}
		return r.without.Is(texts)
	}
}

// finish adds what only a whole reading shows, and gives the error of all problems.
func (r *Release) finish(counted *Summary, rows *Rows, keys *keysort.Sorter, problems Problems) error {
	var last placedKey
	repeats := 0
	var repeat Problem // the first by its place
	err := keys.Each(func(key keysort.Key) {
		k := (placedKey{key})
		switch {
		case !k.samePost(last):
			counted.Posts++
			last = k
		case !k.same(last):
			last = k
		default:
			counted.Entries--
			known := last.Note > 0 && k.Note > 0
			switch {
			case !r.Schema.Many:
				repeats++
				if p := r.again(last, k, "is already %s", RepeatHint); repeats == 1 || r.before(p, repeat) {
					repeat = p
				}
			case known && k.split() != last.split():
				problems.Add(r.again(last, k,
					"is in split "+counted.Splits[k.split()]+", %s in split "+counted.Splits[last.split()],
					"rows about one image have one split"))
			case known && k.digests() != last.digests():
				problems.Add(r.again(last, k, "has other digests than %s",
					"rows about one image have the same digests: correct one of them, or "+
						"leave the column out"))
			}
		}
	})
	if err != nil {
		return err
	}
	more := repeats - 1
	switch { // said once: it is nearly always the shape of the file
	case more == 1:
		repeat.Message += ", and 1 more row is about an image that stood before"
	case more > 1:
		repeat.Message += fmt.Sprintf(", and %d more rows are about an image that stood before", more)
	}
	if repeats > 0 {
		problems.Add(repeat)
	}
	slices.SortStableFunc(problems.List, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(r.place(a), r.place(b)), cmp.Compare(a.Line, b.Line))
	})
	ofFile := func(message, hint string) {
		problems.Add(Problem{File: r.ManifestPath, Line: 1, Message: message, Hint: hint})
	}
	if rows.count == 0 && !r.options.MayBeEmpty {
		ofFile("the manifest has no entries", "each line below the header is an entry: a post id and its labels")
	}
	for i, met := range rows.met {
		if !met && slices.Contains(rows.met, true) && !slices.Contains(r.asides, rows.columns[i]) {
			ofFile("no record has the key "+table.Quote(rows.columns[i]),
				"name the key as the records spell it, under [columns] of release.toml")
		}
	}
	return problems.Err()
}

// RepeatHint is the hint of the problem of rows about one image.
const RepeatHint = "keep one of the rows; further images of a post are told apart by an image " +
	`column, several rows about one image are read with rows = "many" (rehydrate init --many)`

// place is that of the problem's file among those of the manifest.
func (r *Release) place(p Problem) int {
	return slices.IndexFunc(r.files, func(in inputFile) bool { return in.path == p.File })
}

// before reports whether a problem stands before another.
func (r *Release) before(p, other Problem) bool {
	return cmp.Or(cmp.Compare(r.place(p), r.place(other)), cmp.Compare(p.Line, other.Line)) < 0
}

// again is the problem of a key that stood before; what has a %s for where.
func (r *Release) again(first, again placedKey, what, hint string) Problem {
	id, image := first.key()
	where := fmt.Sprintf("on line %d", first.line())
	if first.file() != again.file() {
		where = fmt.Sprintf("in %s, line %d", table.Quote(filepath.Base(r.files[first.file()].path)), first.line())
	}
	return Problem{File: r.files[again.file()].path, Line: again.line(), Hint: hint,
		Message: fmt.Sprintf("post %s, image %d, "+what, id, image, where)}
}

const (
	maxImage  = 999 // far above Reddit's 20 images a gallery
	MaxSplits = 64  // different splits of a manifest
)

// DefaultSplit is the split of every entry of a manifest without a split column.
const DefaultSplit = "train"

// A decoder turns rows into entries. It belongs to one reading of one file.
type decoder struct {
	*Release
	fields     [len(fieldNames)]int // columns by fieldNames, -1 = none
	categories []categoryColumns
	passed     []int             // by Schema.Columns
	zones      []*time.Location  // of times that do not say it, by Schema.Columns
	splits     map[string]string // folded -> as first spelled
	beside     asides            // of OpenTable
	report     func(cell int, message, hint string)
}

// categoryColumns are a category's columns by place: one, or one per label (-1 = none).
type categoryColumns struct {
	column int
	oneHot []int
}

func newDecoder(r *Release, columns []string) *decoder {
	d := &decoder{Release: r, splits: make(map[string]string)}
	place := func(name string) int { // all that are named are there; "" is not
		if name == "" {
			return -1
		}
		return slices.Index(columns, name)
	}
	for field, key := range fieldNames {
		d.fields[field] = place(r.columns[key])
	}
	for _, c := range r.Schema.Categories {
		var oneHot []int
		for _, name := range r.oneHot[c.Name] {
			oneHot = append(oneHot, place(name))
		}
		d.categories = append(d.categories, categoryColumns{column: place(r.columns[c.Name]), oneHot: oneHot})
	}
	for _, c := range r.Schema.Columns {
		d.passed = append(d.passed, place(r.columns[c.Name]))
		zone, _ := value.Zone(c.Timezone) // nil for none
		d.zones = append(d.zones, zone)
	}
	return d
}

// entry reads a row. Whatever is wrong goes to d.report; the entry is good only when nothing did.
func (d *decoder) entry(cells []Cell) Entry {
	e := Entry{Split: DefaultSplit, Labels: make([][]int, len(d.categories))}
	number, numbered := d.cutNumber(cells) // before the id is read, which would refuse it
	e.ID = d.id(cells)
	image, said := d.image(cells)
	if !numbered {
		number = image
	}
	e.Image = number
	if said && image != number {
		message, hint := twoImages("the id", e.Key, d.columns[FieldImage.String()], image)
		d.report(d.fields[FieldImage], message, hint)
	}
	if i := d.fields[FieldSplit]; i >= 0 {
		e.Split = d.split(i, cells)
	}
	e.SHA256, e.StrippedSHA256 = d.hex(FieldSHA256, cells), d.hex(FieldStripped, cells)
	e.PixelsSHA256, e.PHash = d.hex(FieldPixels, cells), d.hex(FieldPHash, cells)
	e.Subreddit = d.subreddit(cells)
	for c := range d.categories {
		if d.categories[c].oneHot != nil {
			e.Labels[c] = d.oneHot(c, cells)
		} else {
			e.Labels[c] = d.labels(c, cells)
		}
		if d.Schema.Many && !d.isTable && len(e.Labels[c]) == 0 { // in another table it is no answer
			d.report(d.categories[c].column, "the row has no label of category "+d.Schema.Categories[c].Name,
				`where rows = "many" every row needs one; a column that may be empty is a [[column]]`)
		}
	}
	for c := range d.passed {
		e.Values = append(e.Values, d.values(c, cells))
	}
	return e
}

// blank reports whether a cell holds a word for a missing value, where these count as empty.
func (d *decoder) blank(c Cell) bool {
	return (d.blanks || d.isTable) && !c.IsList && value.Missing(c.Text)
}

func (d *decoder) usable(i int, c Cell) bool {
	if c.Fault != "" {
		d.report(i, "the value "+c.Fault, "correct the value, or leave the cell empty")
	}
	return c.Fault == ""
}

// plainText gives the text of cell i, if there is such a column.
func (d *decoder) plainText(i int, cells []Cell) (text string, ok bool) {
	if i < 0 || !d.usable(i, cells[i]) {
		return "", false
	}
	c := cells[i]
	if c.Nested || len(c.List) > 1 {
		d.report(i, "a single value is wanted here, not a list or an object", "write the value alone")
		return "", false
	}
	// Some programs write every value of a JSON or Parquet file as a list.
	if c.IsList {
		return strings.TrimSpace(strings.Join(c.List, "")), true
	}
	return strings.TrimSpace(c.Text), true
}

func (d *decoder) id(cells []Cell) PostID {
	i := d.fields[FieldID]
	text, ok := d.plainText(i, cells)
	if !ok {
		return ""
	}
	if cells[i].Float {
		d.report(i, fmt.Sprintf("%s is not a post id but a floating-point number", table.Quote(text)),
			"a spreadsheet or another program took ids for numbers and damaged them: take the original file, or import the column as text")
		return ""
	}
	id, err := ParseCellID(text)
	if p, isProblem := err.(*Problem); isProblem {
		d.report(i, p.Message, p.Hint)
	} else if !d.isTable && id.TooNew(d.options.Today) { // a table of ours or anybody's is held against a release
		d.report(i, table.Quote(text)+" is not the id of a post: none has so high an id yet, and comments do",
			"name the column with the ids of the posts, such as link_id; where this is a new post's, set the date of this machine")
		return ""
	}
	if !d.isTable && len(id) > 1 && id[0] == '0' { // which would be another post than the same without it
		d.report(i, table.Quote(text)+" begins with 0, as no post's id does",
			"take the zeros off: "+strings.TrimLeft(string(id), "0"))
		return ""
	}
	return PostID(strings.Clone(string(id))) // an id that is kept should not keep its row
}

// cutNumber takes the number off an id of the form ID/N, where such ids are read.
func (d *decoder) cutNumber(cells []Cell) (n int, ok bool) {
	i := d.fields[FieldID]
	id, n := cutImage(cells[i].Text)
	if !d.numbered || n == 0 {
		return 0, false
	}
	cells[i].Text = id
	return n, true
}

// cutImage takes the number of an image off ID/N. Of every other text, such as a permalink, it is 0.
func cutImage(text string) (id string, n int) {
	id, number, _ := strings.Cut(strings.TrimSpace(text), "/")
	n, ok := ParseImage(number)
	if !ok || n == 0 || !value.IsWord(id, maxIDLength+len("t3_")) {
		return text, 0
	}
	return id, n
}

// ParseKey reads a post id as ParsePostID does, or ID/N for image N of a gallery.
func ParseKey(s string) (k Key, err error) {
	s, k.Image = cutImage(s)
	k.ID, err = ParsePostID(s)
	return k, err
}

// ParseCellKey reads the key in a field of anybody's file, as ParseKey does, with the ids of ParseCellID.
func ParseCellKey(s string) (k Key, err error) {
	id, image := cutImage(s)
	k.ID, err = ParseCellID(id)
	if err != nil && image > 0 {
		_, err = ParseCellID(s) // which repeats all of the text, as of any other
		return k, err
	}
	k.Image = image
	return k, err
}

// ParseCellID reads the post id in a field of anybody's file, as ParsePostID does, but for what programs write where a
// value is missing (value.Absent), alone or in an address. t3_nan is the id nan.
func ParseCellID(text string) (PostID, error) {
	text = strings.TrimSpace(text)
	id, err := ParsePostID(text)
	isAbsent := err == nil && value.Absent(string(id)) && text != id.Fullname()
	if !isAbsent && !value.Absent(text) {
		return id, err
	}
	problem, hint := "looks like a missing value, not a post id", "every entry needs the id of its post"
	if isAbsent {
		hint += "; if a post really has this id, write " + id.Fullname()
		if strings.Contains(text, "/") {
			problem = "has a missing value in the place of the id"
		}
	}
	return notID(text, problem, hint)
}

// subreddit reads where the post stands: the subreddit column, else the permalink that the id came in.
func (d *decoder) subreddit(cells []Cell) string {
	// It only helps to say why a post is absent, so a cell without one is not reported.
	if i := d.fields[FieldSubreddit]; i >= 0 && cells[i].Fault == "" {
		if name := Subreddit(SubredditCell(cells[i].Text)); name != "" && !value.Absent(name) {
			return strings.Clone(name)
		}
	}
	address := strings.TrimSpace(cells[d.fields[FieldID]].Text)
	if !strings.ContainsRune(address, '/') {
		return ""
	}
	_, u, ok := splitAddress(address)
	if !ok {
		return ""
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(parts) < 2 || parts[0] != "r" || value.Absent(parts[1]) {
		return ""
	}
	return strings.Clone(Subreddit(parts[1]))
}

// image reads the number of the image; false where the cell says none.
func (d *decoder) image(cells []Cell) (n int, ok bool) {
	i := d.fields[FieldImage]
	text, _ := d.plainText(i, cells)
	n, ok = ParseImage(text)
	if text != "" && !ok {
		d.report(i, fmt.Sprintf("%s is not the number of an image", table.Quote(text)),
			"it is the image's place in the post's "+
				`gallery, from 0; for a column of something else write image = "" under [columns] of release.toml (rehydrate init makes one)`)
	}
	return n, ok
}

func (d *decoder) split(i int, cells []Cell) string {
	text, ok := d.plainText(i, cells)
	if !ok {
		return ""
	}
	if name, spelled := d.Release.splits[text]; spelled {
		text = name
	}
	known, taken := d.splits[value.Fold(text)]
	switch {
	case taken && known == text:
		return known
	case text == "":
		d.report(i, "the split is empty",
			"every entry needs one when there is a split column; where this column is something else, rename it")
	case value.Absent(text):
		d.report(i, fmt.Sprintf("the split %s looks like a missing value", table.Quote(text)),
			"every entry needs a split; where this is the name of one, give it another, such as rest")
	case !value.IsWord(text, MaxSplit):
		d.report(i, fmt.Sprintf("%s cannot name a split", table.Quote(text)), splitForm)
	case taken:
		d.report(i, fmt.Sprintf("split %s differs from split %s only in case", table.Quote(text), table.Quote(known)),
			"spell it one way: each split becomes a file")
	case len(d.splits) == MaxSplits:
		d.report(i, fmt.Sprintf("split %s is the 65th", table.Quote(text)),
			"at most 64 are made; is this the split column?")
	default:
		d.splits[value.Fold(text)] = strings.Clone(text)
		return d.splits[value.Fold(text)]
	}
	return ""
}

// splitIn gives the split of a row of a file, where the row's own one is that of its column. The two may not contradict
// each other: which of them is right is not for a program to say. The name of a file says only the usual splits, of
// which a column can name parts (fold_1).
func (d *decoder) splitIn(file inputFile, own string) string {
	said, where := file.split, "the [[file]] of release.toml"
	if said == "" {
		said, where = file.named, "the name of the file"
	}
	usual, ownUsual := UsualSplit(said), UsualSplit(own)
	same := value.Fold(said) == value.Fold(own) || usual != "" && usual == ownUsual
	if i := d.fields[FieldSplit]; i >= 0 && said != "" && own != "" && !same && (file.split != "" || ownUsual != "") {
		d.report(i, fmt.Sprintf("the column says split %s, and %s split %s", table.Quote(own), where,
			table.Quote(said)),
			"correct the one that is wrong, or keep one of the two")
	}
	return cmp.Or(file.split, own)
}

// hex reads a digest; an empty cell is none.
func (d *decoder) hex(field Field, cells []Cell) string {
	i := d.fields[field]
	text, _ := d.plainText(i, cells)
	text = value.FoldASCII(text)
	if text != "" && !value.IsHex(text, field.Digits()) {
		d.report(i, fmt.Sprintf("%s is not a %s", table.Quote(text), fieldNames[field]),
			fmt.Sprintf("it has %d hex digits; leave the cell empty where there is none", field.Digits()))
	}
	return strings.Clone(text)
}

const plainList = "leave null, lists and objects out of it, or write null in place of the whole list"

// labels reads a category's cell: nil for no label given, as Entry.Labels says.
func (d *decoder) labels(c int, cells []Cell) []int {
	i, v := d.categories[c].column, d.vocabularies[c]
	cell := cells[i]
	multi := v.category.Kind == Multi
	if !d.usable(i, cell) {
		return nil
	}
	if cell.Nested && cell.IsList {
		d.report(i, fmt.Sprintf("the list of category %s holds something other than labels", v.category.Name), plainList)
		return nil
	}
	if cell.Nested {
		d.report(i, fmt.Sprintf("category %s wants a label or a list of labels", v.category.Name),
			`write "F1" or ["F1", "F3"]`)
		return nil
	}
	parts := cell.List
	if !cell.IsList {
		parts = split(cell.Text, d.separator, v)
	}
	// An empty list of several labels is an answer: none of them.
	if cell.Null || len(parts) == 0 && !multi {
		return nil
	}
	labels, p := v.read(parts)
	if p != nil && d.blank(cell) {
		if d.options.Missing != nil {
			d.options.Missing(v.category.Name, strings.TrimSpace(cell.Text))
		}
		return nil
	}
	if p != nil {
		d.report(i, p.Message, p.Hint)
	}
	return labels
}

// read finds the labels of texts. The problem, which has no place, is about a text that is not a label or
// labels that may not stand together.
func (v vocabulary) read(texts []string) ([]int, *Problem) {
	labels := make([]int, 0, len(texts))
	for _, text := range texts {
		label, known := v.find(text)
		if !known {
			message, hint := v.unknown(text)
			if strings.TrimSpace(text) == "" {
				message = fmt.Sprintf("category %s has an empty label in its list", v.category.Name)
				hint = "take out the separator too many"
			}
			return nil, &Problem{Message: message, Hint: hint}
		}
		labels = append(labels, label)
	}
	if p := v.clash(labels); p != nil {
		return nil, p
	}
	return labels, nil
}

// Separators are the signs that part labels in people's files, the usual one first.
func Separators() []string { return []string{"|", ";", ","} }

// SplitLabels parts the text of a cell into the labels of a category that it names: one where the whole text is a
// label.
func (r *Release) SplitLabels(category int, text, separator string) []string {
	return split(text, separator, r.vocabularies[category])
}

func split(text, separator string, v vocabulary) []string {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil
	}
	// A cell that is a label as a whole is that label, even with the separator in it.
	if _, whole := v.find(text); whole {
		return []string{text}
	}
	separator = cmp.Or(v.separator, separator)
	if separator == "" { // without release.toml a cell has the separator that it holds
		signs := Separators()
		i := slices.IndexFunc(signs, func(sign string) bool { return strings.Contains(text, sign) })
		separator = signs[max(i, 0)]
	}
	parts := strings.Split(text, separator)
	strange := func(part string) bool { _, ok := v.find(part); return !ok }
	if v.category.Kind != Multi && slices.ContainsFunc(parts, strange) {
		return []string{text} // to a category of one label the separator means nothing
	}
	return parts
}

func (v vocabulary) clash(labels []int) *Problem {
	c := v.category
	if v.joined {
		return nil
	}
	if c.Kind != Multi && len(labels) > 1 {
		return &Problem{Message: fmt.Sprintf("category %s has %d labels, and takes one", c.Name, len(labels)),
			Hint: fmt.Sprintf(`keep one; if several are right, the category's kind is "multi", not %q`, c.Kind)}
	}
	for n, label := range labels {
		l := c.Labels[label]
		if slices.Contains(labels[:n], label) {
			return &Problem{Message: fmt.Sprintf("label %s of category %s stands twice", table.Quote(l.Code), c.Name),
				Hint: "keep it once"}
		}
		if l.Exclusive && len(labels) > 1 {
			return &Problem{Hint: "it is exclusive: keep it alone, or keep the others",
				Message: fmt.Sprintf("label %s (%s) of category %s stands beside another", table.Quote(l.Code), l.Name, c.Name)}
		}
	}
	return nil
}

// oneHot reads a category that has a column for each label.
func (d *decoder) oneHot(c int, cells []Cell) []int {
	v := d.vocabularies[c]
	labels, null := []int{}, true
	last := -1
	for label, i := range d.categories[c].oneHot {
		if i < 0 {
			continue
		}
		null, last = null && cells[i].Null, i
		text, _ := d.plainText(i, cells)
		yes, isFlag := value.Flag(text)
		if !isFlag {
			d.report(i, fmt.Sprintf("%s is neither yes nor no for label %s", table.Quote(text),
				table.Quote(v.category.Labels[label].Code)), "write 1 or 0")
		}
		if yes {
			labels = append(labels, label)
		}
	}
	if null { // in every column: nothing was said, which differs from a list without labels
		return nil
	}
	if p := v.clash(labels); p != nil {
		d.report(last, p.Message, p.Hint)
	}
	return labels
}
