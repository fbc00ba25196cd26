package guess

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"rehydrate/internal/durable"
	"rehydrate/internal/printable"
	"rehydrate/manifest"
	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// Options are what a maintainer says of the files; what is empty is guessed.
type Options struct {
	manifest.Options
	Signers   []manifest.Signer
	ID        string   // the column of post ids
	Records   string   // the path of keys to the records in JSON
	Keep      []string // columns to pass through although they hold words, addresses or people
	PostsOnly bool     // leave out the rows about comments
	// SkipDamaged leaves out the rows whose ids cannot be read, up to half of all.
	SkipDamaged bool
	Many        bool   // several rows are about one image
	Name        string // of the release, "" for that of the folder
	Timezone    string // where times stand that do not say it; "": they are no times
	NoHeader    bool   // the first line of a CSV or TSV file is a row
	Stdin       string // the file with what the path - stands for
}

// A Draft is a release that was made of annotations, before it is written.
type Draft struct {
	Settings []byte    // release.toml
	Notes    []string  // what was guessed and why, one line each
	Warnings []string  // what to look at before publishing
	LeftOut  []LeftOut // the rows that SkipDamaged left out
	// Labelled says that the release has a category, Unused that a column with values is not in it.
	Labelled, Unused bool
	// Annotators are the columns that were left out as the answers of annotators: those of one category each.
	Annotators [][]string
	Example    [][]string // after Write: a header and the first ten rows, for a person to judge

	meaning manifest.Meaning  // as it was guessed
	source  *manifest.Release // the files as they are read by it
	format  manifest.Format   // of the annotations in the release folder
	fields  []manifest.Field  // those that they have beside the id
	numbers string            // a column called image that numbers the rows, "" for none
}

// Files guesses the columns and labels of annotations from all their rows. A path is a file, a folder or a pattern; all
// files that they mean count as one manifest. When there is nothing to build on, or a person has to decide, the error
// is *manifest.Problems.
func Files(ctx context.Context, paths []string, o Options) (*Draft, error) {
	var files []manifest.SourceFile
	var skipped []string
	for _, path := range paths {
		if path == "-" {
			file, err := manifest.Stdin(o.Stdin)
			if err != nil {
				return nil, err
			}
			files = append(files, file)
			continue
		}
		skipped = append(skipped, manifest.SkippedSources(path)...)
		found, err := manifest.FindSources(path)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	if _, ok := value.Zone(o.Timezone); o.Timezone != "" && !ok {
		return nil, table.One(&manifest.Problem{Message: "--timezone " + table.Quote(o.Timezone) + " is no time zone",
			Hint: "write Europe/Berlin, UTC or +02:00"})
	}
	unsaid := nameSplits(files)
	bare, err := findHeaders(ctx, files, o)
	if err != nil {
		return nil, err
	}
	source, err := manifest.OpenSource(files, o.Records, o.Options)
	if err != nil {
		return nil, err
	}
	o.Known = withField(o.Known)
	g := &guesser{Options: o, names: make(map[string]bool), whyLeft: make(map[string]string), notes: bare,
		separators: make(map[string]string), skipped: skipped, warnings: []string{}}
	isTable := files[0].Format == manifest.CSV || files[0].Format == manifest.TSV
	g.headed, g.bare = isTable && !files[0].Bare, isTable && files[0].Bare
	rows, err := g.draw(ctx, source, files[0].Path)
	if err != nil {
		return nil, err
	}
	if len(skipped) > 0 {
		g.lookAt("not read, in the folder of the annotations: %s; name what belongs to them with another --manifest",
			manifest.QuotedList(skipped[:min(len(skipped), 5)]))
	}
	if unsaid != "" && g.columnOf(manifest.FieldSplit.String()) == "" {
		g.lookAt("%s", unsaid)
	}
	g.nameSigners()
	d := &Draft{meaning: g.meaning(cmp.Or(o.Name, table.Stem(files[0].Path))), format: manifest.JSONL,
		Notes: g.notes, Warnings: g.warnings, LeftOut: g.damaged, Annotators: g.annotators, numbers: g.numbers}
	d.Labelled, d.Unused = len(d.meaning.Schema.Categories) > 0, len(g.leftOut) > 0
	d.source = source.Release(d.meaning).Spelling(g.spellings)
	// In CSV a list without items is no list, and an item can hold the separator.
	if format := files[0].Format; slices.Contains([]manifest.Format{manifest.CSV, manifest.TSV, table.List},
		format) && len(d.meaning.Lists) == 0 {
		d.format = manifest.CSV
	}
	for _, field := range manifest.Fields()[manifest.FieldSplit:] {
		name := field.String()
		if d.meaning.Columns[name] != "" && !g.names[name] || field == manifest.FieldSplit && files[0].Split != "" ||
			field == manifest.FieldImage && g.column(g.columnOf("id")).forms[formGallery] > 0 {
			d.fields = append(d.fields, field)
		}
	}
	if err := d.write(g, files, rows); err != nil {
		return nil, err
	}
	// It is read as Open will read it.
	if err := manifest.CheckSettings(d.Settings, o.Options); err != nil {
		return nil, fmt.Errorf("the release.toml that was guessed cannot be read: %w", err)
	}
	return d, nil
}

// nameSigners says by what names release.toml calls the signers, who are named by their keys. ssh-keygen names a key
// after an account and a computer: such a signer gets a number.
func (d *guesser) nameSigners() {
	d.Signers = slices.Clone(d.Signers)
	for i, signer := range d.Signers {
		if !strings.Contains(signer.Name, "@") && LookOfText(signer.Name, d.Known) == "" {
			d.notes = append(d.notes, fmt.Sprintf("the signer is %s: by the comment of the key, or the name of its file",
				table.Quote(signer.Name)))
			continue
		}
		d.Signers[i].Name = fmt.Sprintf("signer %d", i+1)
		d.lookAt("the comment of the signer's key seems to name a person or computer, and does not go out: the signer is "+
			"%q in release.toml; name your office there", d.Signers[i].Name)
	}
}

// draw guesses what the columns of a source mean, whose first file is named in messages, by the rows that stay. It
// gives how many these are.
func (d *guesser) draw(ctx context.Context, source *manifest.Source, file string) (rows int, err error) {
	rows, err = d.survey(ctx, source, manifest.Without{})
	if err != nil {
		return 0, err
	}
	if a, b := splitByCase(d.columns, rows); a != nil {
		at := b.places[0]
		return 0, table.One(&manifest.Problem{File: at.file, Line: at.line, Column: at.column,
			Message: fmt.Sprintf("columns %s and %s are one column, spelled in two ways", table.Quote(a.name),
				table.Quote(b.name)),
			Hint: "spell its name the same way in all rows and files"})
	}
	if err := d.guessRows(file); err != nil {
		return 0, err
	}
	if err := d.refuseComments(ctx, source); err != nil {
		return 0, err
	}
	if err := d.judgeIDs(ctx, source); err != nil {
		return 0, err
	}
	if without := d.without(); without.Is != nil {
		rows, err = d.survey(ctx, source, without)
		if err != nil {
			return 0, err
		}
	}
	if err := d.guess(file); err != nil {
		return 0, err
	}
	if err := d.refuseRows(ctx, source); err != nil {
		return 0, err
	}
	return rows, d.lookAtManyRows(ctx, source)
}

// survey surveys the rows that stay, and remembers what was decided of the columns before.
func (d *guesser) survey(ctx context.Context, source *manifest.Source, without manifest.Without) (rows int, err error) {
	in, err := source.Rows()
	if err != nil {
		return 0, err
	}
	defer in.Close()
	before := d.columns
	d.columns, d.differ, rows, err = survey(ctx, in, d.Options, without)
	if err != nil || before == nil {
		return rows, err
	}
	for i, c := range before {
		d.columns[i].used = c.used
	}
	d.guesses[0].Why = d.whyID(d.column(d.columnOf("id"))) // the ids alone were taken so far
	d.notes[d.idNote] = d.guesses[0].note()
	return rows, nil
}

// without says which rows are left out: those about comments, and those whose ids cannot be read.
func (d *guesser) without() manifest.Without {
	comments := d.marks.without(d.columnOf("id"), d.Today)
	switch {
	case len(d.damaged) > 0:
		return manifest.Without{Columns: comments.Columns, Is: func(texts []string) bool {
			why, _ := whyDamaged(texts[0])
			return why != "" || d.PostsOnly && comments.Is(texts)
		}}
	case d.PostsOnly:
		return comments
	}
	return manifest.Without{}
}

// write writes release.toml.
func (d *Draft) write(g *guesser, files []manifest.SourceFile, rows int) error {
	name := d.meaning.Schema.Name
	if !value.IsLine(name, manifest.MaxLabelText) {
		name = "annotations"
	}
	var text bytes.Buffer
	nameless := g.nameless(files)
	// A comment of TOML holds no control character, and the reasons name values of the file.
	comment := func(text string) string { return printable.EscapedLine(nameless.Replace(text)) }
	comments := template.FuncMap{"comment": comment}
	err := template.Must(draftTemplate.Clone()).Funcs(comments).Execute(&text, map[string]any{"Name": name,
		"Files": len(files), "Rows": rows, "Manifest": d.manifest(), "Many": g.Many, "Fields": d.written(),
		"Guesses": g.guesses, "IsFigSIM": g.isFigSIM, "LeftOut": g.leftOut, "Warnings": d.Warnings,
		"Signers": g.Signers, "Separator": d.meaning.Schema.Separator()})
	d.Settings = text.Bytes()
	return err
}

// manifest is the name of the annotations.
func (d *Draft) manifest() string { return "annotations." + string(d.format) }

// written lists the fields that the annotations have.
func (d *Draft) written() []string {
	names := []string{manifest.FieldID.String()}
	for _, field := range d.fields {
		names = append(names, field.String())
	}
	return names
}

// nameSplits sets the split of each of several files that its name says, where every one's does. Otherwise all entries
// are in one split; it returns what there is to say of that where a file's name says another, or "". What may be an
// older copy of a file is said as well.
func nameSplits(files []manifest.SourceFile) (unsaid string) {
	// The first file whose name says a split, that whose name does not, and that whose name says several.
	var says, none, many string
	other := false
	for i, file := range files {
		name, several := table.Quote(filepath.Base(file.Path)), false
		files[i].Split, several = splitOf(file.Path)
		if several {
			many = cmp.Or(many, name)
		}
		if files[i].Split == "" {
			none = cmp.Or(none, name)
			continue
		}
		says = cmp.Or(says, name)
		other = other || files[i].Split != manifest.DefaultSplit
	}
	if len(files) > 1 && none == "" {
		return sameSplit(files)
	}
	for i := range files {
		files[i].Split = ""
	}
	all := fmt.Sprintf("every entry is in split %s; a column called split can say another", manifest.DefaultSplit)
	switch {
	case len(files) > 1 && says == "" && many != "":
		return fmt.Sprintf("the name of %s says several splits, of which none was taken: %s", many, all)
	case len(files) > 1 && says == "" && slices.ContainsFunc(files, mayBeSplit):
		return fmt.Sprintf("the names of %s and the other files may say splits, but not usual ones: %s", none, all)
	case none != "" && says != "":
		return fmt.Sprintf("the name of %s says a split, but that of %s says none, or several: %s, "+
			"and so can names such as train.csv and test.csv", says, none, all)
	case other:
		return fmt.Sprintf("the name of %s says a split, but of one file alone it is not taken: %s", says, all)
	}
	return ""
}

// oddSplits are words in names of files that may say splits, and are not read.
var oddSplits = set("cv eval evaluation fold folds gold heldout holdout kfold pilot split trn tst")

func mayBeSplit(file manifest.SourceFile) bool {
	return slices.ContainsFunc(value.Words(table.Stem(file.Path)), func(word string) bool { return oddSplits[word] })
}

// sameSplit says which two files say one split by names that differ in other words: test.csv and test_old.csv.
func sameSplit(files []manifest.SourceFile) string {
	first := make(map[string]manifest.SourceFile)
	for _, file := range files {
		other, known := first[file.Split]
		if !known {
			first[file.Split] = file
		} else if !slices.Equal(otherWords(other.Path), otherWords(file.Path)) {
			return fmt.Sprintf("the names of %s and %s both say split %s: look whether both belong in it",
				table.Quote(filepath.Base(other.Path)), table.Quote(filepath.Base(file.Path)), file.Split)
		}
	}
	return ""
}

// otherWords gives the words of a file's name that are neither its split nor the number of a part.
func otherWords(path string) []string {
	return slices.DeleteFunc(value.Words(table.Stem(path)), func(word string) bool {
		return value.IsDigits(word) || manifest.UsualSplit(word) != "" ||
			slices.Contains([]string{"of", "part", "shard"}, word)
	})
}

// splitOf gives the split that a file's name says, "" for none and for several. train1 and train2 are parts of train.
func splitOf(path string) (split string, several bool) {
	separates := func(r rune) bool { return !value.IsWord(string(r), 4) || r == '_' }
	for _, word := range strings.FieldsFunc(value.Fold(table.Stem(path)), separates) {
		word = strings.TrimRight(word, value.Digits)
		switch {
		case manifest.UsualSplit(word) == "" || word == split:
		case split != "":
			return "", true
		default:
			split = word
		}
	}
	return split, false
}

// meaning gives the guesses as the columns and labels of a release of that name.
func (d *guesser) meaning(name string) manifest.Meaning {
	m := manifest.Meaning{Schema: manifest.Schema{Name: name, Many: d.Many}, Columns: make(map[string]string),
		OneHot: make(map[string][]string), Separator: d.separator, Separators: d.separators, Splits: d.splits,
		Without: d.without()}
	for _, guess := range d.guesses {
		if guess.OneHot != nil {
			m.OneHot[guess.Name] = guess.OneHot
			m.Schema.Categories = append(m.Schema.Categories, *guess.Category)
			continue
		}
		m.Columns[guess.Name] = guess.Column
		if c := d.column(guess.Column); c != nil && c.written {
			m.Lists = append(m.Lists, c.name)
		}
		switch {
		case guess.Category != nil:
			m.Schema.Categories = append(m.Schema.Categories, *guess.Category)
		case guess.Passed != nil:
			m.Schema.Columns = append(m.Schema.Columns, *guess.Passed)
		}
	}
	return m
}

// Write makes the release folder dir, with the annotations and the extra files (name -> bytes: policy.toml,
// tombstones.csv). It returns the paths, and refuses a dir that exists and is not empty. Rows that are wrong come as
// *Problems. After an error nothing that it wrote is left.
func (d *Draft) Write(ctx context.Context, dir string, extra map[string][]byte) (paths []string, err error) {
	files, err := os.ReadDir(dir)
	if len(files) > 0 {
		return nil, &manifest.Problem{File: dir, Message: "the folder exists and is not empty",
			Hint: "choose a new folder; or delete this one, and type init again with all that it needs, such as --keep COLUMN " +
				"for a column that was left out"}
	}
	made := errors.Is(err, fs.ErrNotExist) // then it goes again after an error
	if err := durable.MkdirAll(ctx, dir, 0o755); err != nil {
		return nil, fmt.Errorf("write release: %w", err)
	}
	texts := map[string][]byte{manifest.SettingsName: d.Settings}
	maps.Copy(texts, extra)
	// release.toml is written last, so that a folder that has one is whole.
	for _, name := range slices.Concat([]string{d.manifest()}, slices.Sorted(maps.Keys(extra)),
		[]string{manifest.SettingsName}) {
		path := filepath.Join(dir, name)
		err := durable.Write(ctx, path, 0o644, func(w io.Writer) error {
			if name == d.manifest() {
				return d.copyManifest(ctx, w)
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
			if problems := (*manifest.Problems)(nil); errors.As(err, &problems) {
				return nil, problems
			}
			return nil, fmt.Errorf("write release: %w", err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// explained says in the problem of rows about one image why their column called image does not tell images apart.
func (d *Draft) explained(err error) error {
	var problems *manifest.Problems
	if d.numbers == "" || !errors.As(err, &problems) {
		return err
	}
	for i, p := range problems.List {
		if p.Hint == manifest.RepeatHint {
			problems.List[i].Message += fmt.Sprintf("; column %s numbers the rows, and was not taken for "+
				"the number of an image in its gallery", table.Quote(d.numbers))
		}
	}
	return err
}

// copyManifest writes the entries of the source as the release's manifest.
func (d *Draft) copyManifest(ctx context.Context, w io.Writer) error {
	s := d.meaning.Schema
	out := manifest.NewWriter(w, d.format, s, s.Separator(), d.fields...)
	header := d.written()
	for _, c := range s.Categories {
		header = append(header, c.Name)
	}
	for _, c := range s.Columns {
		header = append(header, c.Name)
	}
	d.Example = [][]string{header}
	between := manifest.Separators()[0]
	for e, err := range d.source.Entries(ctx) {
		if err != nil {
			return d.explained(err)
		}
		out.Write(e)
		if len(d.Example) > 10 {
			continue
		}
		row := []string{manifest.FieldID.Of(e)}
		for _, field := range d.fields {
			row = append(row, field.Of(e))
		}
		for i, c := range s.Categories {
			row = append(row, strings.Join(c.Codes(e.Labels[i]), between))
		}
		for _, values := range e.Values {
			row = append(row, strings.Join(values, between))
		}
		d.Example = append(d.Example, row)
	}
	return out.Flush()
}

//go:embed release.toml.tmpl
var draftText string

// draftTemplate writes release.toml for a guess, with the reason beside each setting.
var draftTemplate = template.Must(template.New(manifest.SettingsName).Funcs(template.FuncMap{"text": value.TOML,
	"quote":   table.Quote,
	"comment": func(text string) string { return text }, // until the files are known
	"has":     slices.Contains[[]string]}).Parse(draftText))
