package guess

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"rehydrate/manifest"
	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// A columnGuess is a field, category or column with its column in the file and the reason. A field without a column
// says why the column of the usual name is not the field's.
type columnGuess struct {
	Name, Column, Why string
	// the columns of a category that has one for each label; Column is then the first
	OneHot   []string
	Category *manifest.Category // nil for a field and a column
	Passed   *manifest.Column   // nil for a field and a category
}

// names gives the columns that the guess takes.
func (c columnGuess) names() []string {
	if c.OneHot != nil {
		return c.OneHot
	}
	return []string{c.Column}
}

// A guesser decides what the columns of a survey mean.
type guesser struct {
	Options
	columns   []*surveyed
	differ    differences
	guesses   []columnGuess
	isFigSIM  bool
	separator string
	// the separators of categories, by their names, that have another one
	separators map[string]string
	whyLeft    map[string]string // column -> the reason why it is not in the release
	leftOut    []string          // columns that are not in the release, each with the reason
	notes      []string
	warnings   []string
	marks      commentMarks
	splits     map[string]string // a split as it is spelled in the file -> its name
	spellings  []manifest.Spelling
	numbers    string // a column called image that numbers the rows, "" for none
	names      map[string]bool
	headed     bool // the first line of a file of text was taken for a header
	bare       bool // the file has none: its columns are column_1 and so on

	platform   string    // whose export the file is
	skipped    []string  // files of the folder that were not read
	damaged    []LeftOut // the rows whose ids cannot be read
	commentIDs *surveyed // the first column of ids that are those of comments
	idNote     int       // the place of the note about the column of ids

	groups     []*labelGroup
	again      []*surveyed // columns that --keep names, and which are categories all the same
	annotators [][]string  // the columns of each group of annotators that were left out
}

// refusal gives the error of a file, which names its columns.
func (d *guesser) refusal(file string) func(message, hint string) error {
	return func(message, hint string) error {
		var names []string
		for _, c := range d.columns {
			names = append(names, c.name)
		}
		message += "; the columns are " + manifest.QuotedList(names)
		return table.One(&manifest.Problem{File: file, Line: 1, Message: message, Hint: hint})
	}
}

// guessRows takes the column of ids and those by which rows about comments are known. It fails only when there is
// nothing to build a release on, or when a person has to decide.
func (d *guesser) guessRows(file string) error {
	if len(d.columns) == 0 {
		return table.One(&manifest.Problem{File: file, Line: 1, Message: "no record holds a JSON object with keys",
			Hint: table.WholeObject})
	}
	at, message, hint := d.guessID()
	switch {
	case at.line > 0:
		return table.One(&manifest.Problem{File: at.file, Line: at.line, Column: at.column, Message: message,
			Hint: hint})
	case message != "" && d.notOurs() != nil:
		return d.notOurs()
	case message != "" && d.headed && d.looksLikeRow():
		return headless(file, "the file seems to have no header, for its first line looks like a row",
			"--no-header reads it as one: "+
				"the columns are then column_1, column_2 and so on, and --id names one of them")
	case message != "":
		return d.refusal(file)(message, hint)
	}
	if id := d.column(d.columnOf("id")); d.headed && id.eaten(d.Known) {
		return headless(file, "the header of the ids is an id itself, "+table.Quote(id.name),
			"if the file has no header, read it with --no-header "+
				"(the columns are then column_1, column_2 and so on); else give the column another name, such as id")
	}
	d.guessMarks()
	return nil
}

// guess takes the other columns, and fails only where one that --keep names cannot be kept.
func (d *guesser) guess(file string) error {
	isDataset := d.column("ocr_text") != nil && d.column("ocr_confidence") != nil
	d.guessSplit()
	for field := manifest.FieldImage; field < manifest.FieldSubreddit; field++ {
		d.guessField(field, isDataset)
	}
	for _, c := range d.columns {
		if isDataset && !c.used && manifest.Reserved(manifest.FoldColumn(c.name)) {
			c.used = true
			d.leave(c, "a run makes it")
		}
	}
	d.leaveGivers()
	d.leavePlatform()
	d.guessSeparator() // while all columns are free
	d.groupLabels()
	// FigSIM first: its columns would also do as categories with labels of their own.
	isFigSIM := !d.Many && d.guessFigSIM()
	d.leaveAnnotators()
	if isFigSIM {
		d.guessColumns()
		return d.conclude(d.refusal(file))
	}
	d.guessSubreddit()
	d.guessOneHot()
	d.guessCategories()
	isLabelled := slices.ContainsFunc(d.guesses, func(c columnGuess) bool { return c.Category != nil })
	if !isLabelled && len(d.columns) > 1 { // a list of ids has no labels to look for
		what := "no column looks like labels (at most 50 different short values)"
		if len(d.annotators) > 0 {
			what = "no other column looks like labels, such as the final label of each image"
		}
		d.lookAt("%s: the release has none", what)
	}
	d.guessColumns()
	return d.conclude(d.refusal(file))
}

// conclude leaves out what was not taken, and refuses what cannot be kept.
func (d *guesser) conclude(refuse func(message, hint string) error) error {
	if message, hint := d.refuseKept(); message != "" {
		return refuse(message, hint)
	}
	d.leaveOut()
	d.lookAtGivers()
	d.lookAtStates()
	d.lookAtNames()
	return nil
}

func (d *guesser) column(name string) *surveyed {
	if i := slices.IndexFunc(d.columns, func(c *surveyed) bool { return c.name == name }); i >= 0 {
		return d.columns[i]
	}
	return nil
}

func (d *guesser) columnOf(field string) string {
	i := slices.IndexFunc(d.guesses, func(c columnGuess) bool { return c.Name == field })
	if i < 0 {
		return ""
	}
	return d.guesses[i].Column
}

func (d *guesser) take(c columnGuess) {
	d.guesses = append(d.guesses, c)
	d.notes = append(d.notes, c.note())
}

// note says what the guess is, and why.
func (c columnGuess) note() string {
	what := c.Name + " is column " + table.Quote(c.Column)
	switch {
	case c.Category != nil:
		what = fmt.Sprintf("category %s (%s) is %s", c.Name, c.Category.Kind, table.Quote(c.Column))
	case c.Passed != nil:
		what = fmt.Sprintf("column %s (%s) is %s", c.Name, c.Passed, table.Quote(c.Column))
	case c.Column == "":
		what = c.Name + " has no column"
	}
	return what + ": " + c.Why
}

func (d *guesser) leave(c *surveyed, why string) {
	c.used = true
	d.whyLeft[c.name] = why
	d.leftOut = append(d.leftOut, table.Quote(c.name)+": "+why)
	d.notes = append(d.notes, "not used: "+table.Quote(c.name)+": "+why)
}

// lookAt adds a line on what somebody has to look at before publishing.
func (d *guesser) lookAt(format string, args ...any) {
	d.warnings = append(d.warnings, fmt.Sprintf(format, args...))
}

// leaveLookAt leaves a column out that somebody has to look at: also who asked for quiet.
func (d *guesser) leaveLookAt(c *surveyed, why, what string) {
	d.leave(c, why)
	d.lookAt("column %s %s: it was left out of the release's annotations", table.Quote(c.name), what)
}

// holds says why the column's values can be the field's, "" if they cannot.
func (c *surveyed) holds(field manifest.Field) string {
	if c.lists || c.odd || len(c.cells) == 0 {
		return ""
	}
	fits := func(text string) bool { return value.IsHex(value.FoldASCII(text), field.Digits()) }
	why := "all values have the right digits"
	if field == manifest.FieldImage {
		fits = func(text string) bool { _, ok := manifest.ParseImage(text); return ok }
		why = "all values are small numbers"
	}
	if slices.ContainsFunc(c.cells, func(cell []string) bool { return !fits(cell[0]) }) {
		return ""
	}
	return why
}

// guessSplit takes the column of that name whatever it holds, so that the reading says which rows have no split; one of
// another usual name where all its values can be splits, and says where one cannot; and one of any name where all are
// usual splits. It takes none with a value that may name somebody.
func (d *guesser) guessSplit() {
	for _, alias := range manifest.FieldSplit.Names() {
		for _, c := range d.columns {
			if manifest.FoldColumn(c.name) != alias || c.used || c.filled == 0 {
				continue
			}
			if d.refuseSplits(c) {
				return
			}
			at, fault := c.noSplit()
			if fault == "" || alias == manifest.FieldSplit.String() {
				d.takeSplit(c, "by its name")
				return
			}
			d.take(columnGuess{Name: manifest.FieldSplit.String(),
				Why: fmt.Sprintf("column %s has the name, but other values", table.Quote(c.name))})
			d.lookAt("column %s was not taken for the split, because the value at %s %s: every entry is in split %s",
				table.Quote(c.name), at, fault, manifest.DefaultSplit)
			return
		}
	}
	usual := func(cell []string) bool { return manifest.UsualSplit(cell[0]) != "" }
	for _, c := range d.columns {
		_, fault := c.noSplit()
		if !c.used && fault == "" && len(c.cells) > 1 &&
			!slices.ContainsFunc(c.cells, func(cell []string) bool { return !usual(cell) }) {
			d.takeSplit(c, "by its values")
			return
		}
	}
}

// noSplit gives the first place where the column cannot be the split, and why; "" if it can.
func (c *surveyed) noSplit() (at place, fault string) {
	switch {
	case c.odd:
		return c.oddAt, c.whyOdd
	case len(c.cells) > manifest.MaxSplits:
		return c.places[manifest.MaxSplits], fmt.Sprintf("is one more than %d different ones", manifest.MaxSplits)
	}
	for i, cell := range c.cells {
		switch {
		case len(cell) != 1 || c.lists:
			return c.places[i], "is a list"
		case value.Absent(cell[0]):
			return c.places[i], "looks like a missing value"
		case !value.IsWord(cell[0], manifest.MaxSplit):
			return c.places[i], "cannot name a split, which has letters, digits and _"
		}
	}
	n := len(c.cells)
	switch {
	case c.empty:
		return c.emptyAt, "is empty"
	case c.filled >= 20 && 2*n > c.filled:
		return c.places[n-1], "is one of too many different ones"
	}
	return place{}, ""
}

// takeSplit takes the column of splits, of which those that differ in case alone are one.
func (d *guesser) takeSplit(c *surveyed, why string) {
	d.splits = make(map[string]string)
	var names []string
	for _, cell := range c.cells {
		if len(cell) != 1 || c.lists {
			continue
		}
		same := func(name string) bool { return value.Fold(name) == value.Fold(cell[0]) }
		i := slices.IndexFunc(names, same)
		switch {
		case i < 0:
			names = append(names, cell[0])
		case value.Fold(cell[0]) == cell[0]: // rather train than Train
			names[i] = cell[0]
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(value.Fold(a), value.Fold(b)) })
	for _, cell := range c.cells {
		for _, name := range names {
			if len(cell) == 1 && value.Fold(name) == value.Fold(cell[0]) && name != cell[0] {
				d.splits[cell[0]] = name
				d.lookAt("splits %s and %s of column %s differ in case alone and count as one, %s",
					table.Quote(cell[0]), table.Quote(name), table.Quote(c.name), table.Quote(name))
			}
		}
	}
	d.lookAtSplits(c)
	c.used = true
	d.take(columnGuess{Name: manifest.FieldSplit.String(), Column: c.name,
		Why: why + "; the splits are " + manifest.List(names[:min(len(names), 10)])})
}

// guessField takes the column with the likeliest name, if it has the usual values; of digests the one with their form.
func (d *guesser) guessField(field manifest.Field, isDataset bool) {
	names := field.Names()
	if isDataset { // a dataset has the digest of the file as it is stored
		switch field {
		case manifest.FieldSHA256:
			return
		case manifest.FieldStripped:
			names = []string{"sha256"}
		}
	}
	for _, alias := range names {
		for _, c := range d.columns {
			if manifest.FoldColumn(c.name) != alias || c.used {
				continue
			}
			why := c.holds(field)
			if why == "" {
				d.take(columnGuess{Name: field.String(),
					Why: fmt.Sprintf("column %s has the name, but other values", table.Quote(c.name))})
				return
			}
			if field == manifest.FieldImage && d.refuseNumbers(c) {
				continue
			}
			c.used = true
			d.take(columnGuess{Name: field.String(), Column: c.name, Why: "by its name; " + why})
			if field == manifest.FieldImage && !c.has("0") && !c.empty {
				d.lookAt("the image column %s never is 0: images are counted from 0 here", table.Quote(c.name))
			}
			return
		}
	}
	form := map[manifest.Field]int{manifest.FieldSHA256: formSHA256, manifest.FieldPHash: formPHash}[field]
	var fields []string
	for _, other := range manifest.Fields() {
		fields = append(fields, other.String())
	}
	var found []*surveyed
	for _, c := range d.columns {
		if form != 0 && !c.used && !c.lists && c.all(form) && c.private() == "" &&
			!slices.Contains(fields, manifest.FoldColumn(c.name)) {
			found = append(found, c)
		}
	}
	switch {
	case len(found) == 1:
		found[0].used = true
		d.take(columnGuess{Name: field.String(), Column: found[0].name,
			Why: "by its form; all values have the right digits"})
		d.lookAt("column %s was taken for %s of the image's file by its form alone: where it is another digest, all images would be outcome changed",
			table.Quote(found[0].name), field.String())
	case len(found) > 1:
		for _, c := range found {
			d.leave(c, "several columns look like "+field.String()+": name one so")
		}
	}
}

// refuseNumbers leaves a column called image out, unless it is one to keep, if it numbers the rows of several posts, in
// their order or in another one. What is called gallery_index is one, but where it counts the rows.
func (d *guesser) refuseNumbers(c *surveyed) bool {
	id := d.column(d.columnOf("id"))
	refused := c.rowNumbers() && len(id.cells) > 1 ||
		manifest.FoldColumn(c.name) != "gallery_index" && c.differsBeside(id)
	if refused {
		d.numbers = c.name
	}
	if refused && !c.kept {
		d.leaveLookAt(c, "it numbers the rows, and not the images of a gallery",
			"numbers the rows, and was not taken for the number of an image in its gallery")
	}
	return refused
}

// differsBeside reports whether each row has another post and another number. Of one image of each post, the numbers
// in their galleries are small, and repeat.
func (c *surveyed) differsBeside(id *surveyed) bool {
	posts := make(map[string]bool)
	for _, text := range id.values() {
		post, _ := manifest.PostForm(text)
		posts[post] = true
	}
	return c.filled > 2 && !c.empty && len(c.cells) == c.filled && len(posts) == id.filled
}

// guessFigSIM takes FigSIM's labels if the file has a column for each category, by its name, and their cells are its
// labels.
func (d *guesser) guessFigSIM() bool {
	r := manifest.BuiltIn()
	var found []*surveyed
	for i := range r.Schema.Categories {
		at := slices.IndexFunc(d.columns, func(s *surveyed) bool {
			return !s.used && r.CategoryOf(s.name) == i
		})
		if at < 0 || d.columns[at].odd || len(d.columns[at].cells) > maxDifferent {
			return false
		}
		for _, cell := range d.columns[at].cells {
			parts := cell
			if !d.columns[at].lists {
				parts = r.SplitLabels(i, cell[0], d.separator)
			}
			if _, p := r.Labels(i, parts); p != nil {
				return false
			}
		}
		found = append(found, d.columns[at])
	}
	d.isFigSIM = true
	for i, c := range found {
		c.used = true
		category := &r.Schema.Categories[i]
		d.take(columnGuess{Name: category.Name, Column: c.name, Why: "all values are FigSIM's labels of this category",
			Category: category})
	}
	return true
}

// free reports whether a column can be a category.
func (d *guesser) free(c *surveyed) bool {
	return !c.used && !c.unfit() && (!c.all(formFlag) || c.namedLabel()) && c.shaped() &&
		(!slices.Contains(d.Keep, c.name) || slices.Contains(d.again, c))
}

// shaped reports whether the values of a column can be labels by what they are, whatever the column is called.
func (c *surveyed) shaped() bool {
	if !c.usable() || c.words() || c.all(formTime) || c.rowNumbers() || c.ofPosts() || c.digests() || c.dates() ||
		c.decimals() || c.thousands != "" || c.style.Grouped() {
		return false
	}
	// Numbers are labels where they are whole and repeat, or are said to be labels.
	return !c.all(formNumber) || c.all(formInteger) && !c.counted() && !c.measured &&
		(2*len(c.cells) <= c.filled || c.filled < 3 || c.namedLabel())
}

// namedLabel reports whether the column's name says that it holds labels.
func (c *surveyed) namedLabel() bool { return c.namedAs("label class category") }

// dates reports whether the column holds seconds since 1970, months or days in digits, by its name: 2021-03. Names of
// months are labels.
func (c *surveyed) dates() bool {
	return c.all(formSeconds) && c.namedTime() ||
		c.namedAs("month date") && !c.all(formNumber) && slices.ContainsFunc(c.values(), func(text string) bool {
			return strings.ContainsAny(text, value.Digits)
		})
}

// digests reports whether all values are digests in hex, which are no labels: where they repeat, they can stand for
// people.
func (c *surveyed) digests() bool {
	const shortest = 32 // of MD5
	return len(c.values()) > 0 && !slices.ContainsFunc(c.values(), func(text string) bool {
		return len(text) < shortest || !value.IsHex(value.FoldASCII(text), len(text))
	})
}

// ofPosts reports whether the column holds ids of posts or comments.
func (c *surveyed) ofPosts() bool {
	return 2*(c.forms[formPost]+c.forms[formComment]) > c.items || c.holdsCommentIDs() || c.namesComments() ||
		c.namedID && 2*c.forms[formID] > c.items && !c.all(formNumber)
}

// decimals reports whether the values are numbers with a decimal comma, as spreadsheets write them in many languages.
// With one digit behind it they can be codes of labels as well.
func (c *surveyed) decimals() bool {
	return !c.lists && slices.ContainsFunc(c.cells, hasComma) &&
		!slices.ContainsFunc(c.cells, func(cell []string) bool {
			return len(cell) != 1 ||
				!decimal().MatchString(cell[0])
		})
}

var decimal = pattern(`^[-+]?[0-9]+(,[0-9]{2,})?$`)

func hasComma(cell []string) bool { return len(cell) == 1 && strings.Contains(cell[0], ",") }

// guessSeparator takes the sign under which most columns hold several labels a cell.
func (d *guesser) guessSeparator() {
	most := -1
	for _, sign := range manifest.Separators() {
		n := 0
		for _, c := range d.columns {
			if d.free(c) && !c.lists && c.labels(sign) != nil {
				n++
			}
		}
		if n > most { // of several signs the usual one, which comes first
			d.separator, most = sign, n
		}
	}
}

// signOf gives the sign that parts the labels of a column's cells: that of the file, or another one under which cells
// share labels, as those whose one label has the sign in it do not.
func (d *guesser) signOf(c *surveyed) string {
	if c.lists || c.labels(d.separator) != nil {
		return d.separator
	}
	for _, sign := range manifest.Separators() {
		if labels := c.labels(sign); labels != nil && len(labels) <= len(c.cells) {
			return sign
		}
	}
	return d.separator
}

func (d *guesser) guessCategories() {
	for _, c := range d.columns {
		if !d.free(c) {
			continue
		}
		sign := d.signOf(c)
		category := &manifest.Category{Title: strings.TrimSpace(c.name), Kind: manifest.Multi, Labels: c.labels(sign)}
		read := c.readLabels(sign)
		why := fmt.Sprintf("%d different labels; a cell can hold several, separated by %q", len(category.Labels), sign)
		if c.lists {
			why = fmt.Sprintf("lists of %d different labels", len(category.Labels))
		}
		if category.Labels == nil || d.Many {
			category.Kind, category.Labels = manifest.Single, c.labels("")
			read = c.readLabels("")
			why = fmt.Sprintf("%d different values in %d cells", len(category.Labels), c.filled)
		}
		if category.Labels == nil {
			continue
		}
		if !c.all(formPost) {
			c.names = cmp.Or(lookLikeNames(codes(category.Labels), d.Known), lookLikeNames(c.values(), d.Known),
				c.checkers(d.Known))
		}
		if c.names != "" || d.Many && c.empty && c.kind() != manifest.TypeText {
			continue
		}
		if d.Many && c.empty {
			d.passLabels(c)
			continue
		}
		category.Name = d.name(c.name, "_label")
		if !value.IsLine(category.Title, manifest.MaxLabelText) {
			category.Title = category.Name
		}
		c.used = true
		if at, why := c.nearlyLabels(manifest.Separators()...); category.Kind == manifest.Single && why != "" {
			d.lookAt("cells of column %s seem to hold several labels, but the value at %s %s: each cell was taken for one label",
				table.Quote(c.name), at, why)
		}
		if i := slices.IndexFunc(c.cells, hasComma); category.Kind == manifest.Multi && !c.lists &&
			sign == "," && i >= 0 {
			d.lookAt("cells of column %s are cut at each comma into several labels, such as %s at %s",
				table.Quote(c.name), table.Quote(c.cells[i][0]), c.places[i])
		}
		d.lookAtSigns(c, category, sign)
		d.lookAtValues(c)
		d.lookAtMissing(c)
		d.lookAtMerged(c, read)
		d.lookAtNone(c, category)
		d.lookAtScale(c, category)
		if category.Kind == manifest.Multi && sign != d.separator {
			d.separators[category.Name] = sign
		}
		d.take(columnGuess{Name: category.Name, Column: c.name, Why: why, Category: category})
	}
}

// passLabels passes labels through as text, because not every of several rows about one image has one.
func (d *guesser) passLabels(c *surveyed) {
	if c.missing > 0 { // which a column of text would have as texts
		what := fmt.Sprintf("would hold labels, but %s stands for none in some rows, such as at %s: leave these cells empty",
			table.Quote(c.missingAs), c.emptyAt)
		d.leaveLookAt(c, "it "+what, what)
		return
	}
	d.lookAt("column %s has no label in some rows, such as at %s, and where several rows are about one image each needs one: "+
		"it passes through as text, null where a row says nothing", table.Quote(c.name), c.emptyAt)
	d.lookAtValues(c)
	c.used = true
	p := &manifest.Column{Name: d.name(c.name, "_given"), Type: manifest.TypeText}
	d.take(columnGuess{Name: p.Name, Column: c.name, Why: "its labels are missing in some rows", Passed: p})
}

// lookAtSigns says where a label is several others with another sign between them than the cells of the column have.
func (d *guesser) lookAtSigns(c *surveyed, category *manifest.Category, between string) {
	if c.lists || category.Kind != manifest.Multi {
		return
	}
	is := func(text string) bool {
		return slices.ContainsFunc(category.Labels, func(l manifest.Label) bool {
			return sameLabel(l.Code,
				strings.TrimSpace(text))
		})
	}
	for _, sign := range manifest.Separators() {
		for _, l := range category.Labels {
			parts := strings.Split(l.Code, sign)
			if sign == between || len(parts) < 2 || slices.ContainsFunc(parts,
				func(part string) bool { return !is(part) }) {
				continue
			}
			i := slices.IndexFunc(c.cells, func(cell []string) bool { return strings.Contains(cell[0], l.Code) })
			d.lookAt("cells of column %s are parted by %q and by other signs, such as at %s: %s was taken for one label",
				table.Quote(c.name), between, c.places[max(i, 0)], table.Quote(l.Code))
			return
		}
	}
}

// lookAtValues says what somebody has to look at in a column that was taken for labels.
func (d *guesser) lookAtValues(c *surveyed) {
	name := table.Quote(c.name)
	isSentence := func(cell []string) bool { return slices.ContainsFunc(cell, isWritten) }
	if i := slices.IndexFunc(c.cells, isSentence); i >= 0 {
		d.lookAt("column %s was taken for labels, but one of them looks like a sentence, at %s", name, c.places[i])
	}
	mayName := func(cell []string) bool { return namesOne(cell) != "" || slices.ContainsFunc(cell, mayNamePerson) }
	if i := slices.IndexFunc(c.cells, mayName); i >= 0 {
		d.lookAt("column %s was taken for labels, but one of them may name a person, at %s", name, c.places[i])
	}
	j := newAccountJudge(c.values(), d.Known)
	accounts := func(isCoded bool) int {
		return slices.IndexFunc(c.cells, func(cell []string) bool {
			return slices.ContainsFunc(cell, func(text string) bool {
				return j.look(text) == mixedWord && isIDLike(text) == isCoded
			})
		})
	}
	if i, code := accounts(false), accounts(true); i >= 0 {
		d.lookAt("column %s was taken for labels, but one of them may name an account, at %s", name, c.places[i])
	} else if code >= 0 {
		d.lookAt("column %s was taken for labels, but one of them is a code, which can be an id or the name of an account, "+
			"at %s", name, c.places[code])
	}
	if at := d.firstSurname(c); at != (place{}) {
		d.lookAt("column %s was taken for labels, but most of them are capitalised words that this program does not know, "+
			"such as at %s: are they names of people?", name, at)
	}
	if c.excused() {
		d.lookAt("column %s may be about people by its name, but its values are a few ordinary words: "+
			"it was taken for labels", name)
	}
}

// lookAtMissing says how many cells hold a word for a missing value.
func (d *guesser) lookAtMissing(c *surveyed) {
	if c.missing > 0 {
		d.lookAt("column %s: %d cells hold a word for a missing value, such as %s, and count as empty",
			table.Quote(c.name), c.missing, table.Quote(c.missingAs))
	}
}

// lookAtNone asks about a label that pandas writes for a missing value as well.
func (d *guesser) lookAtNone(c *surveyed, category *manifest.Category) {
	i := slices.IndexFunc(category.Labels, func(l manifest.Label) bool { return value.Fold(l.Code) == "none" })
	if category.Kind == manifest.Single && i >= 0 {
		d.lookAt("column %s: %s was taken for a label; where it stands for a missing value, empty these cells in your "+
			"file, and init into a new folder",
			table.Quote(c.name), table.Quote(category.Labels[i].Code))
	}
}

// lookAtMerged says which spellings of the column's labels count as one, and remembers what those of numbers mean.
func (d *guesser) lookAtMerged(c *surveyed, read labelReading) {
	say := func(what string, pairs []string) {
		if len(pairs) > 0 {
			d.lookAt("labels of column %s that %s count as one: %s", table.Quote(c.name), what, manifest.List(pairs))
		}
	}
	say("differ in case alone", read.merged)
	say("are the same number", read.numbers)
	say("look alike and are stored in other signs", read.stored)
	category := 0 // those that were taken before
	for _, other := range d.guesses {
		if other.Category != nil {
			category++
		}
	}
	for _, s := range read.spelled {
		label := slices.IndexFunc(read.labels, func(l manifest.Label) bool { return l.Code == s.code })
		d.spellings = append(d.spellings, manifest.Spelling{Text: s.text, Category: category, Label: label})
	}
}

func codes(labels []manifest.Label) (codes []string) {
	for _, l := range labels {
		codes = append(codes, l.Code)
	}
	return codes
}

// guessSubreddit takes the column of that name before it could become labels, which a purge does not rewrite.
func (d *guesser) guessSubreddit() {
	for _, c := range d.columns {
		if !c.used && !c.lists && slices.Contains(manifest.FieldSubreddit.Names(), manifest.FieldColumn(c.name)) &&
			c.filled > 0 && !c.all(formNumber) && d.columnOf("subreddit") == "" {
			c.used = true
			d.take(columnGuess{Name: "subreddit", Column: c.name, Why: "by its name"})
			if n := c.forms[formProfile]; n > 0 {
				d.lookAt("column %s: cells that name the profile of a user (u_NAME), and count as empty: %d",
					table.Quote(c.name), n)
			}
		}
	}
}

// guessColumns takes what is not a label and holds no words: numbers, times, flags, and lists of them; and what --keep
// names.
func (d *guesser) guessColumns() {
	for _, c := range d.columns {
		named := slices.Contains(d.Keep, c.name)
		if d.isFigSIM && !named { // its release has nothing else
			continue
		}
		kind := c.kind()
		if named && c.objects() && !c.used && c.usable() {
			d.takeObjects(c)
			continue
		}
		if c.used || c.odd || !c.usable() || c.filled == 0 || d.Many && c.lists || !named &&
			(c.unfit() || c.words() || c.rowNumbers() || kind == manifest.TypeText && !c.all(formTime)) {
			continue
		}
		if !named && d.leaveBeside(c, kind) {
			continue
		}
		isTime := c.all(formNumber) && c.namedTime()
		rounded := slices.IndexFunc(c.cells, func(cell []string) bool {
			return len(cell) == 1 &&
				value.Rounded(cell[0])
		})
		if isTime && rounded >= 0 && !named {
			what := fmt.Sprintf("holds times that a spreadsheet rounded, such as %s at %s",
				table.Quote(c.cells[rounded][0]),
				c.places[rounded])
			d.leaveLookAt(c, "it "+what, what)
			continue
		}
		if isTime && !c.all(formSeconds) {
			d.lookAt("column %s may hold times, but its numbers are no seconds since 1970%s: they pass through as numbers",
				table.Quote(c.name), c.firstNoTime())
		}
		if kind != manifest.TypeText {
			d.lookAtMissing(c)
		}
		c.used = true
		p := &manifest.Column{Name: d.name(c.name, "_given"), Type: kind, List: c.lists}
		if kind == manifest.TypeTimestamp && c.forms[formNaive] > 0 {
			p.Timezone = d.Timezone
		}
		d.lookAtTimes(c)
		if named && kind == manifest.TypeText {
			d.lookAtDates(c)
		}
		if kind != manifest.TypeText {
			d.lookAtThousands(c)
		}
		why := fmt.Sprintf("%d of %d cells have a value", c.filled, c.filled)
		if c.empty {
			why = fmt.Sprintf("%d cells have a value, others are empty", c.filled)
		}
		if named {
			why = "--keep names it"
			if c.words() || c.private() != "" ||
				cmp.Or(lookLikeNames(c.values(), d.Known), namesOne(c.values())) != "" {
				d.lookAt("column %s holds what people wrote or who they are: it is published with the release, because --keep names it", table.Quote(c.name))
			}
		}
		d.take(columnGuess{Name: p.Name, Column: c.name, Why: why, Passed: p})
	}
}

// lookAtThousands asks about numbers that all have three digits behind a point, as decimals and thousands can.
func (d *guesser) lookAtThousands(c *surveyed) {
	if c.all(formNumber) && !c.floats && len(c.cells) > 1 && c.style.ThreeDigits() && c.thousands == "" {
		d.lookAt("column %s has three digits behind each point, such as %s: its numbers pass through as decimals; where "+
			"the points part thousands, take them out of your file, and init into a new folder", table.Quote(c.name),
			c.firstThousands())
	}
}

// firstThousands gives the first number whose point may part thousands, and its place.
func (c *surveyed) firstThousands() string {
	for i, cell := range c.cells {
		for _, text := range cell {
			if value.IsThousands(text) {
				return table.Quote(text) + " at " + c.places[i].String()
			}
		}
	}
	return "a number of a later row" // only the first ones are kept
}

// firstNoTime gives the first number that is no time, to go on from what it is none of, and its place.
func (c *surveyed) firstNoTime() string {
	for i, cell := range c.cells {
		for _, text := range cell {
			if _, isTime := value.Time(text, time.UTC); !isTime {
				return fmt.Sprintf(", such as %s at %s", table.Quote(text), c.places[i])
			}
		}
	}
	return ""
}

// lookAtTimes says what becomes of times that name no time zone.
func (d *guesser) lookAtTimes(c *surveyed) {
	name := table.Quote(c.name)
	i := slices.IndexFunc(c.cells, func(cell []string) bool { return slices.ContainsFunc(cell, value.Naive) })
	switch {
	case !c.all(formTime) || c.forms[formNaive] == 0:
	case c.forms[formDay] > 0 && c.zone == nil: // no zone makes times of days
	case c.forms[formDay] > 0:
		i := slices.IndexFunc(c.cells, func(cell []string) bool { return slices.ContainsFunc(cell, value.Day) })
		if i < 0 { // only the first ones are kept
			i = 0
		}
		d.lookAt("column %s has days without a time of day, such as %s at %s, which are no times: it stays text", name,
			table.Quote(strings.Join(c.cells[i], ", ")), c.places[i])
	case c.zone == nil:
		text, at := "", place{}
		if i >= 0 {
			text, at = ", such as "+table.Quote(c.cells[i][slices.IndexFunc(c.cells[i], value.Naive)]), c.places[i]
		}
		d.lookAt("column %s has times without a time zone%s at %s: they pass through as text; --timezone ZONE "+
			"(Europe/Berlin, UTC, +02:00) "+
			"makes times of them", name, text, at)
	default:
		d.lookAt("column %s has %d times without a time zone, which are read as those of %s", name,
			c.forms[formNaive], d.Timezone)
		if c.forms[formTwice] > 0 {
			d.lookAt("column %s has %d times that the clocks of %s show twice or never, when they are set back or "+
				"forward: of two the "+
				"earlier was taken", name, c.forms[formTwice], d.Timezone)
		}
	}
}

// dateForm is how a date begins, in the order of any language.
var dateForm = pattern(`^\d{1,4}([./-])\d{1,2}([./-])\d{1,4}\b`)

// lookAtDates says of a column of dates, in another form than that of times, that --timezone does not read them.
func (d *guesser) lookAtDates(c *surveyed) {
	isDate := func(cell []string) bool { return slices.ContainsFunc(cell, dateForm().MatchString) }
	i := slices.IndexFunc(c.cells, isDate)
	others := slices.ContainsFunc(c.cells, func(cell []string) bool { return !isDate(cell) })
	if c.zone == nil || c.all(formTime) || i < 0 || others {
		return
	}
	d.lookAt("column %s has dates such as %s at %s, which --timezone does not read, so they stay text: write a day as "+
		"2024-11-12, and a time as 2024-11-12 09:30:00", table.Quote(c.name), table.Quote(strings.Join(c.cells[i], ", ")),
		c.places[i])
}

// takeObjects passes a column of objects through as JSON, which --keep names.
func (d *guesser) takeObjects(c *surveyed) {
	c.used = true
	look := "all that is in them is published with the release, because --keep names it"
	if c.inside != "" {
		look = "they may hold personal data (" + c.inside + "); " + look
	}
	d.lookAt("column %s holds objects: %s", table.Quote(c.name), look)
	p := &manifest.Column{Name: d.name(c.name, "_given"), Type: manifest.TypeJSON}
	d.take(columnGuess{Name: p.Name, Column: c.name, Passed: p,
		Why: fmt.Sprintf("--keep names it; %d cells hold objects", c.nested)})
}

// refuseKept says which column that --keep names cannot be kept, and why; "" for none.
func (d *guesser) refuseKept() (message, hint string) {
	for _, name := range d.Keep {
		c := d.column(name)
		switch {
		case c == nil:
			return "--keep names column " + table.Quote(name) + ", which is not there", "name a column of the file"
		case slices.ContainsFunc(d.guesses, func(g columnGuess) bool { return g.Column == name }):
		case c.filled == 0 && !c.odd:
			return "--keep names column " + table.Quote(name) + ", and all its cells are empty", "leave the flag out"
		case c.unread != "":
			return "--keep names column " + table.Quote(name) + ", which cannot be kept: " + c.unread, table.ReadTypes
		case c.faulty:
			return fmt.Sprintf("--keep names column %s, which cannot be kept: the value at %s %s",
					table.Quote(name), c.oddAt, c.whyOdd),
				"correct the value, or leave its cell empty"
		case d.Many && c.lists:
			return "--keep names column " + table.Quote(name) + ", which cannot be kept: it holds lists, and there " +
					"are many rows an image",
				"write one value a row, or leave the flag out"
		case !c.usable():
			return "--keep names column " + table.Quote(name) + ", whose name cannot be written into release.toml",
				"rename the column"
		default:
			return "--keep names column " + table.Quote(name) + ", which cannot be kept: " + d.whyLeft[name],
				"leave the flag out"
		}
	}
	return "", ""
}

// name makes a name that no other column of the dataset has.
func (d *guesser) name(column, suffix string) string {
	word := slug(column)
	if manifest.Reserved(word) {
		word += suffix
	}
	name := word
	for n := 2; d.names[name]; n++ {
		name = word + "_" + strconv.Itoa(n)
	}
	d.names[name] = true
	return name
}

func (d *guesser) leaveOut() {
	for _, c := range d.columns {
		if c.name == "" && !c.used {
			d.leaveNameless(c)
			continue
		}
		if c.used {
			continue
		}
		keep := "--keep " + strconv.Quote(c.name)
		why, look := c.unfitFor(keep)
		if why == "" {
			why, look = d.misshapen(c, keep)
		}
		if look == "" {
			d.leave(c, why)
		} else {
			d.leaveLookAt(c, why, look)
		}
	}
}

// leaveNameless leaves out what has values and no name in the header.
func (d *guesser) leaveNameless(c *surveyed) {
	switch {
	case c.filled == 0 && !c.odd:
	case c.rowNumbers(): // as pandas writes its index
		d.leave(c, "it has no name, and numbers the rows")
	default:
		at := c.oddAt
		if len(c.places) > 0 {
			at = c.places[0]
		}
		d.leave(c, "it has no name in the header")
		d.lookAt("a column without a name in the header has values, such as at %s: it was left out of the release's "+
			"annotations; give it a name", at)
	}
}

// unfitFor says why a column does not belong in a release, and what somebody has to look at there; "" for nothing. keep
// is the flag that publishes it all the same.
func (c *surveyed) unfitFor(keep string) (why, look string) {
	words := "it holds what people wrote, or addresses; " + keep + " publishes it"
	switch {
	case c.filled == 0 && !c.odd:
		return "all its cells are empty", ""
	case c.privateName() != "":
		return c.privateName(), "may hold personal data"
	case c.wordsByName():
		return words, ""
	case c.privateValue() != "":
		return c.privateValue() + "; " + keep + " publishes it", "may hold personal data (" + c.personal + ")"
	case c.names != "":
		return "its values look like " + c.names + "; " + keep + " publishes them", "may hold " + c.names
	case c.files() && c.repeats():
		return "it holds names of files; " + keep +
			" publishes it", "holds names of files, which can be titles or name people"
	case c.files():
		return "it holds names of files; " + keep + " publishes it", ""
	case c.words() && c.repeats():
		return words, "holds sentences or addresses that repeat as labels do; " + keep + " publishes it"
	case c.words():
		return words, ""
	case !c.faulty && !readable(c.name):
		return "its name has no Latin letters, so that nobody can read in the release what it holds; rename it, or " + keep + " publishes it",
			"has a name that nobody can read in the release, which takes Latin letters alone; rename it, or " + keep + " publishes it"
	}
	return "", ""
}

// repeats reports whether there are no more values than labels would have, and each in several cells.
func (c *surveyed) repeats() bool {
	return len(c.cells) <= maxGuessedLabels && 4*len(c.cells) <= c.filled
}

// misshapen says why a column is none of labels, and does not pass through, and what somebody has to look at there.
func (d *guesser) misshapen(c *surveyed, keep string) (why, look string) {
	at, fault := c.nearlyLabels(d.separator, "")
	switch {
	case c.unread != "" && c.filled > 0:
		return c.unread, "has values that are not read, in one of the files: " + c.unread
	case c.unread != "":
		return c.unread, ""
	case c.rowNumbers():
		return "it numbers the rows", ""
	case c.dates() && c.kind() == manifest.TypeText:
		look = "holds months or dates, which are no labels"
		return "it " + look + "; " + keep + " passes it through", look
	case c.digests():
		look = "holds digests, which can stand for people where they repeat"
		return "it " + look + "; " + keep + " passes it through", look
	case c.ofPosts():
		return "it holds ids or addresses of posts or comments; " + keep + " passes it through", ""
	case fault != "":
		return fmt.Sprintf("the value at %s %s, so that it does not hold labels; %s passes it through", at, fault, keep),
			fmt.Sprintf("would hold labels, but the value at %s %s", at, fault)
	case c.faulty:
		return "it has a value that cannot be used",
			fmt.Sprintf("has a value that cannot be used, at %s: it %s", c.oddAt, c.whyOdd)
	case c.odd && len(c.values()) > 0 && len(c.cells) <= maxGuessedLabels:
		look = fmt.Sprintf("has labels in some cells, but the value at %s %s", c.oddAt, c.whyOdd)
		return "it " + look, look
	case c.odd:
		return fmt.Sprintf("it holds objects, in %d cells; %s passes them through as JSON", c.nested, keep), ""
	case c.thousands != "":
		points := fmt.Sprintf("numbers whose points may part thousands, such as %s, %s", c.firstThousands(), c.thousands)
		return "it has " + points + "; write all without points between thousands, and decimals with a point",
			"has " + points
	case c.style.Grouped():
		i := max(0, slices.IndexFunc(c.cells, func(cell []string) bool {
			return slices.ContainsFunc(cell, value.IsGrouped)
		}))
		look = fmt.Sprintf("has numbers whose commas may part thousands, such as %s at %s",
			table.Quote(strings.Join(c.cells[i], " ")), c.places[i])
		return "it " + look + "; write numbers without them, or " + keep + " passes them through as text", look
	case c.decimals():
		return "its numbers have a decimal comma; write them with a point, or " + keep +
			" passes them through as text", "has numbers with a decimal comma"
	case c.all(formNumber) && !c.lists:
		lossy := fmt.Sprintf("numbers that would not stay as they are, such as at %s; %s passes them through as text",
			c.firstLossy(), keep)
		return "it has " + lossy, "has " + lossy
	case d.Many && c.lists:
		return "it holds lists, which the rows about one image cannot have",
			"holds lists, which several rows about one image cannot have"
	case c.mixed():
		mixed := fmt.Sprintf("lists in some cells and single values in others, such as at %s; %s passes them through as they stand", c.firstOther(), keep)
		return "it has " + mixed, "has " + mixed
	case c.lists && c.readLabels(d.separator).firstWhy != "":
		read := c.readLabels(d.separator)
		look = fmt.Sprintf("has lists that cannot be labels: that at %s %s", c.places[read.faults[0]], read.firstWhy)
		return "it " + look + "; " + keep + " passes it through", look
	case c.tooManyLabels():
		many := fmt.Sprintf("%d different values that repeat, and at most %d are taken for labels; %s passes them through", len(c.cells), maxGuessedLabels, keep)
		return "it has " + many, "has " + many
	}
	return "it holds no short labels that repeat; " + keep + " passes it through", ""
}

var notInSlug = pattern("[^a-z0-9]+")

func slug(name string) string {
	s := strings.Trim(notInSlug().ReplaceAllString(strings.ToLower(value.WithoutMarks(name)), "_"), "_")
	if s == "" || value.IsDigits(s) {
		s = "c_" + s
	}
	return strings.TrimRight(s[:min(len(s), manifest.MaxName-8)], "_") // room for a number or _label behind it
}
