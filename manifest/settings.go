package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// settingsFile is release.toml as it is written.
type settingsFile struct {
	Name        string         `toml:"name"`
	Version     string         `toml:"version"`
	Date        any            `toml:"date"`
	Homepage    string         `toml:"homepage"`
	License     string         `toml:"license"`
	Citation    string         `toml:"citation"`
	Manifest    string         `toml:"manifest"`
	Files       []manifestFile `toml:"file"`
	Records     string         `toml:"records"`
	Rows        string         `toml:"rows"` // "many" or "one"
	Format      Format         `toml:"format"`
	Policy      string         `toml:"policy"`
	Tombstones  string         `toml:"tombstones"`
	Revocations string         `toml:"revocations"`
	Signers     []Signer       `toml:"signer"`
	Schema      string         `toml:"schema"`
	Categories  []Category     `toml:"category"`
	Passed      []Column       `toml:"column"`
	Columns     map[string]any `toml:"columns"` // field or category -> column, or a table label -> column
	Labels      map[string]any `toml:"labels"`  // "separator", or category -> a table spelling -> code
}

// A manifestFile is one [[file]] of release.toml: a file, a folder or a pattern, and the split of its rows.
type manifestFile struct {
	Path  string `toml:"path"`
	Split string `toml:"split"`
}

// CheckSettings reports what is wrong with a release.toml as far as that shows without the files that it names. The
// error is *Problems.
func CheckSettings(text []byte, o Options) error {
	_, err := parseSettings(text, SettingsName, o)
	return err
}

func parseSettings(b []byte, file string, o Options) (*Release, error) {
	r := newRelease(o)
	r.separator = Separators()[0]
	var err error
	r.toml, err = DecodeTOML(file, b, &r.file)
	if err != nil {
		return nil, err
	}
	// In this order: columns and spellings are of categories, which the schema names.
	r.checkAbout()
	r.checkFiles()
	r.checkSigners()
	r.readSchema()
	r.readColumns()
	r.readLabels()
	f := &r.file
	r.Name, r.Version, r.Homepage, r.License, r.Citation = f.Name, f.Version, f.Homepage, f.License, f.Citation
	r.Signers = f.Signers
	return r, r.toml.Err()
}

func (r *Release) checkAbout() {
	f := &r.file
	for _, line := range []struct{ key, text string }{
		{"name", f.Name}, {"version", f.Version}, {"homepage", f.Homepage}, {"license", f.License},
	} {
		if line.text != "" && !value.IsLine(line.text, 500) {
			r.toml.Add(line.key, line.key+" is not one line of text", textForm)
		}
	}
	if f.Name == "" {
		r.toml.Add("name", "the release has no name", `write name = "..." first`)
	}
	if f.Date != nil && f.Date != "" {
		r.Date = fmt.Sprint(f.Date) // TOML has a type for dates; a text will do
		if _, err := time.Parse(time.DateOnly, r.Date); err != nil {
			r.toml.Add("date", "date is not a date", "write date = 2025-12-31")
		}
	}
}

const textForm = "shorten it, and take out line breaks and spaces at its ends"

func (r *Release) checkFiles() {
	f := &r.file
	r.records = f.Records
	switch {
	case f.Manifest == "" && len(f.Files) == 0:
		r.toml.Add("manifest", "the release does not name a manifest", `write manifest = "annotations.csv"`)
	case f.Manifest != "" && len(f.Files) > 0:
		r.toml.Add("manifest", "the release has both manifest and [[file]] tables", "keep one of them")
	case !slices.Contains([]string{"", "one", "many"}, f.Rows):
		r.toml.Add("rows", "rows is "+table.Quote(f.Rows),
			`rows is "one" or "many": how many rows of the manifest are about one image`)
	case r.toml.Has("format") && !slices.Contains([]Format{CSV, TSV, JSONL, JSON, Parquet}, f.Format):
		r.toml.Add("format", fmt.Sprintf("format %s is not known", table.Quote(string(f.Format))),
			"format is csv, tsv, jsonl, json or parquet; leave it out to go by the file's name")
	}
	for i, file := range f.Files {
		at := fmt.Sprintf("file[%d].", i)
		if file.Path == "" {
			r.toml.Add(at+"path", "the file has no path", `write path = "train.csv"`)
		}
		if file.Split != "" && !value.IsWord(file.Split, MaxSplit) {
			r.toml.Add(at+"split", fmt.Sprintf("%s cannot name a split", table.Quote(file.Split)), splitForm)
		}
		if (file.Split == "") != (f.Files[0].Split == "") {
			r.toml.Add(at+"path", "some files name their split and others do not",
				"write split = \"...\" for each file, or for none")
		}
	}
}

// Names of the files that carry grants, in a release folder.
const (
	GrantName       = "grant.json"
	RevocationsName = "revocations.json"
	SignatureSuffix = ".sig" // added to a signed file's name
)

// A Signer is one [[signer]] of release.toml: a person or office whose signature makes a grant valid. The key is
// kept as it is written, one line of an OpenSSH public key file; package policy reads it.
type Signer struct {
	Name string `toml:"name"`
	Key  string `toml:"key"`
}

// Bare is the key without its comment, which proves nothing about its owner and often names a person and a machine.
func (s Signer) Bare() string {
	fields := strings.Fields(s.Key)
	return strings.Join(fields[:min(2, len(fields))], " ")
}

// The longest key in use, RSA with 16,384 bits, takes 2,800 bytes.
const maxSignerKey = 4096

func (r *Release) checkSigners() {
	names, keys := make(map[string]bool), make(map[string]bool)
	for i, signer := range r.file.Signers {
		at := fmt.Sprintf("signer[%d]", i)
		key := signer.Bare()
		switch {
		case !value.IsLine(signer.Name, MaxLabelText):
			r.toml.Add(at+".name", "the signer's name is not one line of text", "say in a few words who holds the key")
		case !value.IsLine(signer.Key, maxSignerKey) || !strings.Contains(key, " "):
			r.toml.Add(at+".key", "the signer's key is not an OpenSSH public key",
				`copy the line of the .pub file: key = "ssh-ed25519 AAAA... comment"`)
		case names[signer.Name]:
			r.toml.Add(at+".name", fmt.Sprintf("two signers are named %s", table.Quote(signer.Name)),
				"rename one, so that messages tell which one signed")
		case keys[key]:
			r.toml.Add(at+".key", fmt.Sprintf("the key of %s is another signer's too", table.Quote(signer.Name)),
				"every signer has a key of their own")
		}
		names[signer.Name], keys[key] = true, true
	}
}

func (r *Release) readSchema() {
	name, own := r.file.Schema, r.file.Categories
	schema := Schema{Name: r.file.Name, Categories: own}
	given := r.toml.Has("schema")
	switch {
	case given && name != "figsim":
		r.toml.Add("schema", fmt.Sprintf("schema %s is not built in", table.Quote(name)),
			`schema = "figsim" is; another one is given as [[category]] tables`)
		return
	case given && len(own) > 0:
		r.toml.Add("schema", "the release has both schema and [[category]] tables", "keep one of them")
		return
	case given:
		schema = FigSIM()
	}
	var names []string
	if given {
		names = each(schema.names(), value.Fold)
	}
	note := func(key, name, message, hint string) {
		if slices.Contains(names, value.Fold(name)) {
			message, hint = fmt.Sprintf("two categories or columns are named %s", table.Quote(name)), "rename one"
		}
		names = append(names, value.Fold(name))
		if message != "" {
			r.toml.Add(key, message, hint)
		}
	}
	for i := range own {
		c := &own[i]
		c.Title = cmp.Or(c.Title, c.Name)
		for l := range c.Labels {
			c.Labels[l].Name = cmp.Or(c.Labels[l].Name, c.Labels[l].Code)
		}
		message, hint := c.fault()
		note(fmt.Sprintf("category[%d].name", i), c.Name, message, hint)
	}
	for i, c := range r.file.Passed {
		message, hint := c.fault()
		note(fmt.Sprintf("column[%d].name", i), c.Name, message, hint)
	}
	schema.Columns, schema.Many = r.file.Passed, r.file.Rows == "many"
	r.checkMany(schema)
	r.setSchema(schema)
}

// checkMany refuses what cannot be a list of what the rows of an image say.
func (r *Release) checkMany(s Schema) {
	if !s.Many {
		return
	}
	for i, c := range r.file.Categories {
		if c.Kind == Multi {
			r.toml.Add(fmt.Sprintf("category[%d].name", i),
				fmt.Sprintf("category %s can have several labels a row, and there are many rows an image", c.Name),
				`where rows = "many" a category takes one label a row; a column for each label is a [[column]] with type = "boolean"`)
		}
	}
	if r.toml.Has("schema") {
		r.toml.Add("rows", `rows = "many" does not go with schema = "figsim", which has several labels a row`,
			"leave rows out")
	}
	for i, c := range s.Columns {
		if c.List {
			r.toml.Add(fmt.Sprintf("column[%d].name", i),
				fmt.Sprintf("column %s is a list, and there are many rows an image", c.Name),
				"leave list out: a row then has one value")
		}
	}
}

// A setting is a text of [columns] or [labels], or of the table that a category has there.
type setting struct {
	at, key, text string
	category      int  // of the key, or of the table; -1 for none
	inTable       bool // the key is a label or a spelling
}

// texts gives the settings of a table, whose keys are the categories and these others.
func (r *Release) texts(table string, values map[string]any, others ...string) (all []setting) {
	add := func(table, key string, value any, category int, inTable bool) {
		s := setting{at: tomlKey(table, key), key: key, category: category, inTable: inTable}
		var ok bool
		s.text, ok = value.(string)
		if !ok {
			r.toml.Add(s.at, key+" is not a text", fmt.Sprintf(`write %s = "..."`, key))
			return
		}
		all = append(all, s)
	}
	// Sorted, so that of two keys with one column it is always the same that is refused.
	for _, key := range slices.Sorted(maps.Keys(values)) {
		// A release may have made a field, such as the subreddit, a label.
		category := r.Schema.index(key)
		inner, isTable := values[key].(map[string]any)
		switch {
		case category < 0 && !slices.Contains(others, key):
			r.toml.Add(tomlKey(table, key), unknownKey(key, table), keyHint(key, slices.Concat(others, r.Schema.names())))
		case category >= 0 && isTable:
			for _, part := range slices.Sorted(maps.Keys(inner)) {
				add(tomlKey(table, key), part, inner[part], category, true)
			}
		default:
			add(table, key, values[key], category, false)
		}
	}
	return all
}

// readColumns reads [columns]: a name for every field and category, or, for a multi-label
// category, a table label -> column.
func (r *Release) readColumns() {
	keys := slices.Concat(fieldNames[:], each(r.file.Passed, func(c Column) string { return c.Name }))
	for _, s := range r.texts("columns", r.file.Columns, keys...) {
		switch {
		case s.inTable:
			r.readOneHot(s, r.vocabularies[s.category])
		case s.text == "" && s.category < 0 && slices.Contains(fieldNames[1:], s.key):
			r.columns[s.key] = "" // no column is meant, although one may have the name
		default:
			r.columns[s.key] = r.column(s)
		}
	}
}

func (r *Release) column(s setting) string {
	if s.text == "" {
		r.toml.Add(s.at, s.key+" does not name a column", "name its column, or take the line out")
	} else if other, taken := r.named[s.text]; taken { // always a slip
		r.toml.Add(s.at, fmt.Sprintf("column %s is given to both %s and %s", table.Quote(s.text), other, s.at),
			"give each its own column")
	}
	r.named[s.text] = s.at
	return s.text
}

func (r *Release) readOneHot(s setting, v vocabulary) {
	c := v.category
	columns := r.oneHot[c.Name]
	if columns == nil {
		columns = make([]string, len(c.Labels))
		r.oneHot[c.Name] = columns
	}
	label, known := v.find(s.key)
	switch {
	case c.Kind != Multi:
		r.toml.Add(s.at, fmt.Sprintf("category %s takes one label, so it has one column", c.Name),
			fmt.Sprintf(`write %s = "column"; a table label -> column is for kind = "multi"`, c.Name))
	case !known:
		message, hint := v.unknown(s.key)
		r.toml.Add(s.at, message, hint)
	case columns[label] != "":
		r.toml.Add(s.at, fmt.Sprintf("label %s has two columns", table.Quote(s.key)), "keep one of them")
	default:
		columns[label] = r.column(s)
	}
}

// readLabels reads [labels]: the separator, and [labels.CATEGORY] spelling -> code.
func (r *Release) readLabels() {
	for _, s := range r.texts("labels", r.file.Labels, "separator") {
		switch {
		case s.inTable:
			r.mapSpelling(s, r.vocabularies[s.category])
		case s.category >= 0:
			r.toml.Add(s.at, s.key+" is not a table", fmt.Sprintf("write [%s] on a line, and its keys below", s.at))
		case !validSeparator(s.text):
			r.toml.Add(s.at, fmt.Sprintf("separator %s cannot part labels", table.Quote(s.text)),
				`use a sign such as "|", ";" or ","`)
		default:
			r.separator = s.text
		}
	}
	for _, c := range r.Schema.Categories {
		_, oneHot := r.oneHot[c.Name]
		for _, l := range c.Labels {
			if c.Kind == Multi && !oneHot && strings.Contains(l.Code, r.separator) {
				r.toml.Add("labels.separator", fmt.Sprintf("code %s of category %s holds the separator %s",
					table.Quote(l.Code), c.Name, table.Quote(r.separator)), "choose another separator in [labels]")
			}
		}
	}
}

func (r *Release) mapSpelling(s setting, v vocabulary) {
	codes := labelCodes(v.category.Labels)
	label := slices.Index(codes, s.text)
	other, taken := v.find(s.key)
	switch {
	case label < 0:
		message, hint := v.unknown(s.text)
		r.toml.Add(s.at, message, hint)
	case taken && other != label:
		r.toml.Add(s.at, fmt.Sprintf("spelling %s already means label %s", table.Quote(s.key), table.Quote(codes[other])),
			differ)
	default:
		v.add(s.key, label)
	}
}

func validSeparator(s string) bool {
	if s == "" || utf8.RuneCountInString(s) > 3 {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsControl(r) || r == '_' || r == utf8.RuneError
	}) < 0 && strings.TrimSpace(s) == s
}
