package manifest

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"unicode/utf8"

	"rehydrate/pipeline/durable"
)

// A Draft is a release that Init made of an annotations file, before it is written.
type Draft struct {
	Settings []byte   // release.toml
	Notes    []string // what was guessed and why, one line each
	Warnings []string // what to look at before publishing

	release   *Release
	manifest  string // its name in the release folder
	columns   []*surveyed
	guesses   []columnGuess
	isFigSIM  bool
	separator string
	leftOut   []string // columns that do not hold labels, each with the reason
	redacted  []string // columns that are not copied
}

// Init guesses the columns and labels of an annotations file from all its rows, for a release with these signers. A
// draft has passed Check; when the file has problems, or nothing to build on, the error is *Problems. The draft's copy goes
// without columns whose names say that they are about people or hold their words; a Parquet file is copied whole, with a warning.
func Init(ctx context.Context, path string, signers []Signer, o Options) (*Draft, error) {
	source, err := fileRelease(path, o)
	if err != nil {
		return nil, err
	}
	d := &Draft{manifest: "annotations." + string(source.Format)}
	if err := d.guess(ctx, source); err != nil {
		return nil, err
	}
	if !validText(source.Name, maxLabelText) {
		source.Name = "annotations"
	}
	var text bytes.Buffer
	err = draftTemplate.Execute(&text, map[string]any{"Name": source.Name, "Source": filepath.Base(path), "Manifest": d.manifest,
		"HasSplit": d.columnOf("split") != "", "Guesses": d.guesses, "IsFigSIM": d.isFigSIM, "Separator": d.separator,
		"LeftOut": d.leftOut, "Warnings": d.Warnings, "Signers": signers})
	if err != nil {
		return nil, err
	}
	d.Settings = text.Bytes()
	// The draft is read as Open and Check will read it, with the manifest where it is now.
	d.release, err = parseSettings(d.Settings, SettingsName, o)
	if err != nil {
		return nil, fmt.Errorf("the release.toml that was guessed cannot be read: %w", err)
	}
	d.release.ManifestPath = path
	err = d.release.bind(d.Settings)
	if err == nil {
		_, err = d.release.Check(ctx)
	}
	return d, err
}

// Write makes the release folder dir, with the annotations and the extra files (name -> bytes:
// policy.toml, tombstones.csv). It returns the paths, and refuses a dir that exists and is not
// empty. After an error nothing that it wrote is left.
func (d *Draft) Write(ctx context.Context, dir string, extra map[string][]byte) (paths []string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write release: %w", err)
		}
	}()
	files, err := os.ReadDir(dir)
	if len(files) > 0 {
		return nil, &Problem{File: dir, Message: "the folder exists and is not empty", Hint: "choose a new folder, or empty this one first"}
	}
	made := errors.Is(err, fs.ErrNotExist) // then it goes again after an error
	if err := durable.MkdirAll(ctx, dir, 0o755); err != nil {
		return nil, err
	}
	texts := map[string][]byte{SettingsName: d.Settings}
	maps.Copy(texts, extra)
	// release.toml is written last, so that a folder that has one is whole.
	for _, name := range slices.Concat([]string{d.manifest}, slices.Sorted(maps.Keys(extra)), []string{SettingsName}) {
		path := filepath.Join(dir, name)
		err := durable.Write(ctx, path, 0o644, func(w io.Writer) error {
			if name == d.manifest {
				return d.copyManifest(w)
			}
			_, err := w.Write(texts[name])
			return err
		})
		if err != nil {
			for _, path := range paths {
				os.Remove(path)
			}
			if made {
				os.Remove(dir)
			}
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// copyManifest copies the annotations that were checked, and no others, without the columns that are not to be copied.
func (d *Draft) copyManifest(w io.Writer) error {
	r := d.release
	f, err := r.open()
	if err != nil {
		return err
	}
	defer f.Close()
	if len(d.redacted) > 0 {
		err = redact(w, f, r.ManifestPath, r.Format, d.redacted)
	} else {
		_, err = io.Copy(w, f)
	}
	if err := cmp.Or(r.unchanged(), err); err != nil { // a change explains what then failed
		return fmt.Errorf("copy %s: %w", r.ManifestPath, err)
	}
	return nil
}

// redact copies a CSV, TSV or JSONL file, which Check accepted, without the columns named. The
// values of the other columns stay the same.
func redact(w io.Writer, r io.Reader, file string, f Format, without []string) error {
	if f == JSONL {
		return redactJSON(w, r, file, without)
	}
	// The library is enough here: Check has found nothing wrong with the file.
	in, out := csv.NewReader(r), csv.NewWriter(w)
	if f == TSV {
		in.Comma, out.Comma = '\t', '\t'
	}
	header, err := in.Read()
	for i := range header {
		// As the survey has the names.
		header[i] = strings.TrimSpace(header[i])
	}
	for record := header; err == nil; record, err = in.Read() {
		var stay []string
		for i, cell := range record {
			if !slices.Contains(without, header[i]) {
				stay = append(stay, cell)
			}
		}
		_ = out.Write(stay) // a failed write is remembered until the end
	}
	out.Flush()
	if err != io.EOF {
		return err
	}
	return out.Error()
}

func redactJSON(w io.Writer, r io.Reader, file string, without []string) error {
	rows := newJSONRows(r, file, nil)
	out := bufio.NewWriter(w)
	for {
		text, err := rows.nextObject()
		if err == io.EOF {
			return out.Flush()
		}
		if err != nil {
			return err
		}
		var stay []string // members with their bytes
		for m := range members(string(text)) {
			if !slices.Contains(without, m.key) {
				stay = append(stay, string(text[m.from:m.at+len(m.value)]))
			}
		}
		if _, err := fmt.Fprintf(out, "{%s}\n", strings.Join(stay, ",")); err != nil {
			return err
		}
	}
}

//go:embed release.toml.tmpl
var draftText string

// draftTemplate writes release.toml for a guess, with the reason beside each setting.
var draftTemplate = template.Must(template.New(SettingsName).Funcs(template.FuncMap{"text": tomlText, "quote": quote}).Parse(draftText))

// tomlText writes a text as a TOML string, which is a JSON string but for one character.
func tomlText(text any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // of a string it does not fail
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007F`)
}

// What Init takes for labels: few different short texts.
const (
	maxGuessedLabels = 50
	maxGuessedText   = 64     // bytes
	maxDifferent     = 10_000 // cells of a column that are looked at; with more the column holds no labels
)

// A surveyed column is what all rows say of a column, before anything is guessed.
type surveyed struct {
	name   string
	filled int
	empty  bool       // some are
	lists  bool       // some cells are lists
	odd    bool       // some are objects, lists in lists, or values that cannot be used
	cells  [][]string // the different ones; what is not a list has one text
	seen   map[string]bool
	used   bool // as a field or category
}

func (c *surveyed) add(cell Cell) {
	parts := cell.List
	if !cell.IsList {
		parts = []string{strings.TrimSpace(cell.Text)}
	}
	text := strings.Join(parts, "\x00")
	switch {
	case cell.nested, cell.Fault != "":
		c.odd = true
	case cell.Null, text == "" && !cell.IsList:
		c.empty = true
	default:
		c.filled++
		c.lists = c.lists || cell.IsList
		if !c.seen[text] && len(c.cells) <= maxDifferent {
			// A cell that is kept should not keep its row.
			c.seen[strings.Clone(text)] = true
			c.cells = append(c.cells, each(parts, strings.Clone))
		}
	}
}

func (r *Release) survey() ([]*surveyed, error) {
	if _, err := r.readHeader(nil); err != nil {
		return nil, err
	}
	rows, err := r.openRows(nil)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var columns []*surveyed
	for range maxRows {
		cells, err := rows.Next()
		for _, name := range rows.Columns()[len(columns):] { // a line of JSON may have further keys
			columns = append(columns, &surveyed{name: name, seen: make(map[string]bool)})
		}
		if err == io.EOF {
			break
		}
		// What is wrong with a row is for the check of the draft to say.
		if _, isProblem := asProblem(err); err != nil && !isProblem {
			return nil, err
		}
		for i, cell := range cells {
			columns[i].add(cell)
		}
	}
	return columns, nil
}

// labels gives the different labels of a column whose cells are parted at the sign, "" for cells that
// are one label each; nil if they cannot be labels.
func (c *surveyed) labels(sign string) []Label {
	if c.odd || sign == "" && c.lists || len(c.cells) > maxDifferent {
		return nil
	}
	var labels []Label
	several, besideNone := c.lists, false
	for _, parts := range c.cells {
		if !c.lists && sign != "" {
			parts = strings.Split(parts[0], sign)
		}
		// Before the search for repeats, which takes the square of them.
		if len(parts) > maxGuessedLabels {
			return nil
		}
		several = several || len(parts) > 1
		for i, text := range parts {
			text = strings.TrimSpace(text)
			same := func(other string) bool { return fold(other) == fold(text) }
			// An item of a list may hold the sign, which a cell of a text file then could not.
			if slices.ContainsFunc(parts[:i], same) || !validText(text, maxGuessedText) ||
				strings.Contains(text, "://") || sign != "" && strings.Contains(text, sign) {
				return nil
			}
			besideNone = besideNone || same("none") && len(parts) > 1
			if !slices.ContainsFunc(labels, func(l Label) bool { return same(l.Code) }) {
				labels = append(labels, Label{Code: text, Name: text})
			}
		}
		if len(labels) > maxGuessedLabels {
			return nil
		}
	}
	// A file of less than 20 rows shows no repetition.
	if sign != "" && !several || c.filled >= 20 && 2*len(labels) > c.filled {
		return nil
	}
	for i, l := range labels {
		labels[i].Exclusive = fold(l.Code) == "none" && sign != "" && !besideNone
	}
	sortLabels(labels)
	return labels
}

func sortLabels(labels []Label) {
	number := func(l Label) float64 {
		if n, err := strconv.ParseFloat(l.Code, 64); err == nil {
			return n
		}
		return math.Inf(1)
	}
	slices.SortFunc(labels, func(a, b Label) int {
		return cmp.Or(cmp.Compare(number(a), number(b)), cmp.Compare(fold(a.Code), fold(b.Code)), cmp.Compare(a.Code, b.Code))
	})
}

// holds says why the column's values can be the field's, "" if they cannot.
func (c *surveyed) holds(field int) string {
	if c.lists || c.odd || len(c.cells) == 0 {
		return ""
	}
	fits := func(text string) bool { return isHex(foldASCII(text), hexDigits[field]) }
	why := "all values have the right digits"
	switch field {
	case fieldID:
		fits = func(text string) bool { _, err := cellID(text); return err == nil }
	case fieldSplit:
		fits = func(text string) bool { return validWord(text, maxSplit) }
	case fieldImage:
		fits = func(text string) bool { _, ok := imageNumber(text); return ok }
		why = "all values are small numbers"
	}
	n := 0
	for _, cell := range c.cells {
		if fits(cell[0]) {
			n++
		}
	}
	splits := labelCodes(c.labels(""))
	switch whole := n == len(c.cells); {
	case field == fieldID && 2*n > len(c.cells): // the rest is for the check to show
		return fmt.Sprintf("%d of %d values are post ids", n, len(c.cells))
	case !whole:
		return ""
	case field != fieldSplit:
		return why
	// Splits that differ in case only are one label: the check would refuse them.
	case !c.empty && len(splits) == n:
		return "the splits are " + list(splits)
	}
	return ""
}

// usable reports whether the column's name can be written into release.toml.
func (c *surveyed) usable() bool {
	return c.name != "" && len(c.name) <= maxLabelText && utf8.ValidString(c.name)
}

func (c *surveyed) personal() bool {
	// What is about people or holds their words does not belong in a release. Names are all that a program can go by.
	name := plain(c.name)
	return strings.HasPrefix(name, "author_") || slices.Contains([]string{"author", "username", "user_name",
		"user", "user_id", "email", "title", "selftext", "body", "permalink"}, name)
}

// A columnGuess is a field or category with its column and the reason. A field without a column says why the
// column of the usual name is not the field's.
type columnGuess struct {
	Name, Column, Why string
	Category          *Category // nil for a field
}

func (d *Draft) columnOf(field string) string {
	i := slices.IndexFunc(d.guesses, func(c columnGuess) bool { return c.Name == field })
	if i < 0 {
		return ""
	}
	return d.guesses[i].Column
}

// guess guesses what the columns of the source mean. It fails only when there is nothing to build a release on.
func (d *Draft) guess(ctx context.Context, source *Release) (err error) {
	d.columns, err = source.survey()
	if err != nil {
		return err
	}
	refuse := func(message, hint string) error {
		message += "; the columns are " + quotedList(each(d.columns, func(c *surveyed) string { return c.name }))
		return one(&Problem{File: source.ManifestPath, Line: 1, Message: message, Hint: hint})
	}
	for field := range fieldSubreddit {
		d.guessField(field)
	}
	if d.columnOf("id") == "" {
		return refuse("no column looks like post ids", "give the column of ids, t3_ ids or permalinks the name id")
	}
	d.guessSeparator() // while all columns are free
	// FigSIM first: its columns would also do as categories with labels of their own.
	d.isFigSIM = d.guessFigSIM(ctx, source)
	if !d.isFigSIM {
		d.guessCategories()
	}
	if d.guesses[len(d.guesses)-1].Category == nil {
		return refuse("no column looks like labels",
			"a label column has at most 50 different short values; more need a release.toml written by hand")
	}
	d.leaveOut(source.Format)
	return nil
}

func (d *Draft) take(c columnGuess) {
	d.guesses = append(d.guesses, c)
	what := c.Name + " is column " + quote(c.Column)
	if c.Category != nil {
		what = fmt.Sprintf("category %s (%s) is %s", c.Name, c.Category.Kind, quote(c.Column))
	} else if c.Column == "" {
		what = c.Name + " has no column"
	}
	d.Notes = append(d.Notes, what+": "+c.Why)
}

// guessField takes the column with the likeliest name, if it has the usual values.
func (d *Draft) guessField(field int) {
	for _, alias := range aliases(field) {
		for _, c := range d.columns {
			if plain(c.name) != alias {
				continue
			}
			why := c.holds(field)
			switch {
			case why != "":
				c.used = true
				d.take(columnGuess{Name: fieldNames[field], Column: c.name, Why: "by its name; " + why})
			case field == fieldID: // with other values it may be a row number: try the next name
				continue
			default:
				d.take(columnGuess{Name: fieldNames[field], Why: fmt.Sprintf("column %s has the name, but other values", quote(c.name))})
			}
			if field == fieldImage && c.used && !c.seen["0"] && !c.empty {
				d.Warnings = append(d.Warnings, fmt.Sprintf("the image column %s never is 0: images are counted from 0 here", quote(c.name)))
			}
			return
		}
	}
}

// guessFigSIM takes FigSIM's labels if the file has a column for each category, by its name, and the rows
// pass the check.
func (d *Draft) guessFigSIM(ctx context.Context, source *Release) bool {
	r := BuiltIn()
	r.options, r.ManifestPath, r.Format = source.options, source.ManifestPath, source.Format
	for _, f := range d.guesses {
		r.columns[f.Name], r.named[f.Column] = f.Column, f.Name
	}
	if err := r.bind(nil); err != nil {
		return false // the labels are others, or what is wrong shows in the check of the draft
	}
	if _, err := r.Check(ctx); err != nil {
		return false
	}
	for i := range r.Schema.Categories {
		c := &r.Schema.Categories[i]
		d.take(columnGuess{c.Name, r.columns[c.Name], "all values are FigSIM's labels of this category", c})
	}
	// The categories' columns as well, which else would be listed as left out.
	for _, c := range d.columns {
		c.used = slices.ContainsFunc(d.guesses, func(u columnGuess) bool { return u.Column == c.name })
	}
	return true
}

// free reports whether a column can be a category.
func (d *Draft) free(c *surveyed) bool { return c.usable() && !c.used && !c.personal() }

// guessSeparator takes the sign under which most columns hold several labels a cell.
func (d *Draft) guessSeparator() {
	most := -1
	for _, sign := range separators {
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

func (d *Draft) guessCategories() {
	names := make(map[string]bool)
	for _, c := range d.columns {
		if !d.free(c) {
			continue
		}
		category := &Category{Name: slug(c.name), Title: strings.TrimSpace(c.name), Kind: Multi, Labels: c.labels(d.separator)}
		why := fmt.Sprintf("%d different labels; a cell can hold several, separated by %q", len(category.Labels), d.separator)
		if c.lists {
			why = fmt.Sprintf("lists of %d different labels", len(category.Labels))
		}
		if category.Labels == nil {
			category.Kind, category.Labels = Single, c.labels("")
			why = fmt.Sprintf("%d different values in %d cells", len(category.Labels), c.filled)
		}
		if category.Labels == nil {
			continue
		}
		for n := 2; names[category.Name]; n++ {
			category.Name = slug(c.name) + "_" + strconv.Itoa(n)
		}
		if !validText(category.Title, maxLabelText) {
			category.Title = category.Name
		}
		names[category.Name], c.used = true, true
		d.take(columnGuess{category.Name, c.name, why, category})
	}
}

func (d *Draft) leaveOut(format Format) {
	for _, c := range d.columns {
		if c.used || c.name == "" {
			continue
		}
		why := "it holds no short labels that repeat"
		if c.personal() {
			why = "it is about people or holds their words"
			fate := "take it out of the annotations before publishing"
			// A Parquet file is copied byte by byte.
			if format != Parquet {
				fate = "it was left out of the release's annotations"
				d.redacted = append(d.redacted, c.name)
			}
			d.Warnings = append(d.Warnings, fmt.Sprintf("column %s may hold personal data: %s", quote(c.name), fate))
		}
		d.leftOut = append(d.leftOut, quote(c.name)+": "+why)
		d.Notes = append(d.Notes, "not used: "+quote(c.name)+": "+why)
	}
}

var notInSlug = regexp.MustCompile("[^a-z0-9]+")

func slug(name string) string {
	s := strings.Trim(notInSlug.ReplaceAllString(strings.ToLower(name), "_"), "_")
	if s == "" || isDigit(s[0]) {
		s = "c_" + s
	}
	s = strings.TrimRight(s[:min(len(s), maxName-8)], "_") // room for a number or _label behind it
	if reserved(s) {
		s += "_label"
	}
	return s
}
