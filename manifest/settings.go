package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
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
	Format      Format         `toml:"format"`
	Policy      string         `toml:"policy"`
	Tombstones  string         `toml:"tombstones"`
	Revocations string         `toml:"revocations"`
	Signers     []Signer       `toml:"signer"`
	Schema      string         `toml:"schema"`
	Categories  []Category     `toml:"category"`
	Columns     map[string]any `toml:"columns"` // field or category -> column, or a table label -> column
	Labels      map[string]any `toml:"labels"`  // "separator", or category -> a table spelling -> code
}

// settings are what release.toml says, or stands for when there is none.
type settings struct {
	file settingsFile
	toml *Document // nil for a bare annotations file

	date         string
	schema       Schema
	vocabularies []vocabulary        // of schema.Categories, with the mapped spellings
	separator    string              // "": each cell has its own, one of separators
	isTable      bool                // of OpenTable: any categories will do, and ids may be ID/N
	columns      map[string]string   // fieldNames and categories -> column; "" = none
	oneHot       map[string][]string // category -> column by label, "" = none
	named        map[string]string   // column -> the key of release.toml that names it
}

func newSettings() *settings {
	return &settings{columns: make(map[string]string), oneHot: make(map[string][]string), named: make(map[string]string)}
}

func (s *settings) setSchema(schema Schema) {
	s.schema = schema
	for i := range schema.Categories {
		s.vocabularies = append(s.vocabularies, newVocabulary(&schema.Categories[i]))
	}
}

// parseSettings reads release.toml strictly. Its error is *Problems.
func parseSettings(b []byte, file string) (*settings, error) {
	s := newSettings()
	s.separator = separators[0]
	var err error
	s.toml, err = DecodeTOML(file, b, &s.file)
	if err != nil {
		return nil, err
	}
	// In this order: columns and spellings are of categories, which the schema names.
	s.checkAbout()
	s.checkFiles()
	s.checkSigners()
	s.readSchema()
	s.readColumns()
	s.readLabels()
	if err := s.toml.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *settings) checkAbout() {
	f := &s.file
	for _, line := range []struct{ key, text string }{
		{"name", f.Name}, {"version", f.Version}, {"homepage", f.Homepage}, {"license", f.License},
	} {
		if line.text != "" && !validText(line.text, 500) {
			s.toml.Add(line.key, line.key+" is not one line of text", textForm)
		}
	}
	if f.Name == "" {
		s.toml.Add("name", "the release has no name", `write name = "..." first`)
	}
	// TOML has a type for dates; a text will do.
	s.date, _ = f.Date.(string)
	if d, ok := f.Date.(toml.LocalDate); ok {
		s.date = d.String()
	}
	if _, err := time.Parse(time.DateOnly, s.date); err != nil && f.Date != nil && f.Date != "" {
		s.toml.Add("date", "date is not a date", "write date = 2025-12-31")
	}
}

const textForm = "shorten it, and take out line breaks and spaces at its ends"

func (s *settings) checkFiles() {
	f := &s.file
	var p *Problem
	switch {
	case f.Manifest == "":
		s.toml.Add("manifest", "the release does not name a manifest", `write manifest = "annotations.csv"`)
	case !s.toml.Has("format"):
		f.Format, p = formatOf(f.Manifest)
		if p != nil {
			s.toml.Add("manifest", p.Message, p.Hint)
		}
	case !slices.Contains([]Format{CSV, TSV, JSONL, Parquet}, f.Format):
		s.toml.Add("format", fmt.Sprintf("format %s is not known", quote(string(f.Format))),
			"format is csv, tsv, jsonl or parquet; leave it out to go by the file's name")
	}
	for _, file := range f.files() {
		if !s.toml.Has(file.key) {
			*file.name = file.usual
		} else if !filepath.IsLocal(*file.name) {
			s.toml.Add(file.key, fmt.Sprintf("%s %s is not inside the release folder", file.key, quote(*file.name)),
				"put the file into the folder and name it without .. or a leading /")
		}
	}
}

// A namedFile is a file of the release: its key, its name, and the one that it has without the key.
type namedFile struct {
	key   string
	name  *string
	usual string
}

func (f *settingsFile) files() [4]namedFile {
	return [...]namedFile{{"manifest", &f.Manifest, ""}, {"policy", &f.Policy, "policy.toml"},
		{"tombstones", &f.Tombstones, TombstonesName}, {"revocations", &f.Revocations, RevocationsName}}
}

func (s *settings) checkSigners() {
	for i, signer := range s.file.Signers {
		at, before := fmt.Sprintf("signer[%d]", i), s.file.Signers[:i]
		name, key := at+".name", at+".key"
		switch {
		case !validText(signer.Name, maxLabelText):
			s.toml.Add(name, "the signer's name is not one line of text", "say in a few words who holds the key")
		case !validText(signer.Key, maxSignerKey) || len(strings.Fields(signer.Key)) < 2:
			s.toml.Add(key, "the signer's key is not an OpenSSH public key",
				`copy the line of the .pub file: key = "ssh-ed25519 AAAA... comment"`)
		case slices.ContainsFunc(before, func(o Signer) bool { return o.Name == signer.Name }):
			s.toml.Add(name, fmt.Sprintf("two signers are named %s", quote(signer.Name)),
				"rename one, so that messages tell which one signed")
		case slices.ContainsFunc(before, func(o Signer) bool { return sameKey(o.Key, signer.Key) }):
			s.toml.Add(key, fmt.Sprintf("the key of %s is another signer's too", quote(signer.Name)),
				"every signer has a key of their own")
		}
	}
}

func (s *settings) readSchema() {
	name, own := s.file.Schema, s.file.Categories
	switch given := s.toml.Has("schema"); {
	case given && name != "figsim":
		s.toml.Add("schema", fmt.Sprintf("schema %s is not built in", quote(name)),
			`schema = "figsim" is; another one is given as [[category]] tables`)
	case given && len(own) > 0:
		s.toml.Add("schema", "the release has both schema and [[category]] tables", "keep one of them")
	case given:
		s.setSchema(FigSIM())
	case len(own) == 0:
		s.toml.Add("schema", "the release has no label schema",
			`write schema = "figsim", or a [[category]] table for each category`)
	default:
		for i := range own {
			c := &own[i]
			c.Title = cmp.Or(c.Title, c.Name)
			for l := range c.Labels {
				c.Labels[l].Name = cmp.Or(c.Labels[l].Name, c.Labels[l].Code)
			}
			message, hint := c.fault()
			if slices.ContainsFunc(own[:i], func(o Category) bool { return fold(o.Name) == fold(c.Name) }) {
				message, hint = fmt.Sprintf("two categories are named %s", quote(c.Name)), "rename one"
			}
			if message != "" {
				s.toml.Add(fmt.Sprintf("category[%d].name", i), message, hint)
			}
		}
		s.setSchema(Schema{Name: s.file.Name, Categories: own})
	}
}

// readColumns reads [columns]: a name for every field and category, or, for a multi-label
// category, a table label -> column.
func (s *settings) readColumns() {
	// Sorted, so that of two keys with one column it is always the same that is refused.
	for _, key := range slices.Sorted(maps.Keys(s.file.Columns)) {
		at, value := tomlKey("columns", key), s.file.Columns[key]
		// A release may have made a field, such as the subreddit, a label.
		category := s.schema.index(key)
		if texts, isTable := value.(map[string]any); isTable && category >= 0 {
			s.readOneHot(at, s.vocabularies[category], texts)
		} else if category < 0 && !slices.Contains(fieldNames[:], key) {
			s.toml.Add(at, unknownKey(key, "columns"), keyHint(key, append(fieldNames[:], s.schema.names()...)))
		} else if text, ok := value.(string); ok && text == "" && category < 0 && key != fieldNames[fieldID] {
			s.columns[key] = "" // no column is meant, although one may have the name
		} else {
			s.columns[key] = s.column(at, key, value)
		}
	}
}

// text notes a problem of a value that is not a text.
func (s *settings) text(at, key string, value any) (text string, ok bool) {
	text, ok = value.(string)
	if !ok {
		s.toml.Add(at, key+" is not a text", fmt.Sprintf(`write %s = "..."`, key))
	}
	return text, ok
}

// column reads the name of a column, and refuses one column for two purposes: it is always a slip.
func (s *settings) column(at, key string, value any) string {
	name, ok := s.text(at, key, value)
	if ok && name == "" {
		s.toml.Add(at, key+" does not name a column", "name its column, or take the line out")
	}
	if other, taken := s.named[name]; taken && name != "" {
		s.toml.Add(at, fmt.Sprintf("column %s is given to both %s and %s", quote(name), other, at),
			"give each its own column")
	}
	s.named[name] = at
	return name
}

func (s *settings) readOneHot(table string, v vocabulary, texts map[string]any) {
	c := v.category
	if c.Kind != Multi {
		s.toml.Add(table, fmt.Sprintf("category %s takes one label, so it has one column", c.Name),
			fmt.Sprintf(`write %s = "column"; a table label -> column is for kind = "multi"`, c.Name))
		return
	}
	columns := make([]string, len(c.Labels))
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		at := tomlKey(table, key)
		label, known := v.find(key)
		if !known {
			message, hint := v.unknown(key)
			s.toml.Add(at, message, hint)
		} else if columns[label] != "" {
			s.toml.Add(at, fmt.Sprintf("label %s has two columns", quote(key)), "keep one of them")
		} else {
			columns[label] = s.column(at, key, texts[key])
		}
	}
	s.oneHot[c.Name] = columns
}

// readLabels reads [labels]: the separator, and [labels.CATEGORY] spelling -> code.
func (s *settings) readLabels() {
	for _, key := range slices.Sorted(maps.Keys(s.file.Labels)) {
		at, value := tomlKey("labels", key), s.file.Labels[key]
		spellings, isTable := value.(map[string]any)
		switch category := s.schema.index(key); {
		case key == "separator":
			text, isText := s.text(at, key, value)
			if validSeparator(text) {
				s.separator = text
			} else if isText {
				s.toml.Add(at, fmt.Sprintf("separator %s cannot part labels", quote(text)),
					`use a sign such as "|", ";" or ","`)
			}
		case category < 0:
			s.toml.Add(at, unknownKey(key, "labels"), keyHint(key, append([]string{"separator"}, s.schema.names()...)))
		case !isTable:
			s.toml.Add(at, key+" is not a table", fmt.Sprintf("write [%s] on a line, and its keys below", at))
		default:
			for _, spelling := range slices.Sorted(maps.Keys(spellings)) {
				if code, ok := s.text(tomlKey(at, spelling), spelling, spellings[spelling]); ok {
					s.mapSpelling(tomlKey(at, spelling), s.vocabularies[category], spelling, code)
				}
			}
		}
	}
	for _, c := range s.schema.Categories {
		_, oneHot := s.oneHot[c.Name]
		for _, l := range c.Labels {
			if c.Kind == Multi && !oneHot && strings.Contains(l.Code, s.separator) {
				s.toml.Add("labels.separator", fmt.Sprintf("code %s of category %s holds the separator %s", quote(l.Code), c.Name, quote(s.separator)), "choose another separator in [labels]")
			}
		}
	}
}

func (s *settings) mapSpelling(at string, v vocabulary, spelling, code string) {
	label := slices.Index(labelCodes(v.category.Labels), code)
	if label < 0 {
		message, hint := v.unknown(code)
		s.toml.Add(at, message, hint)
		return
	}
	if other, taken := v.find(spelling); taken && other != label {
		s.toml.Add(at, fmt.Sprintf("spelling %s already means label %s", quote(spelling), quote(labelCodes(v.category.Labels)[other])), "codes, names and spellings are compared without regard to case and must differ")
		return
	}
	v.add(spelling, label)
}

func validSeparator(s string) bool {
	if s == "" || utf8.RuneCountInString(s) > 3 || !utf8.ValidString(s) {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsControl(r) || r == '_' || r == utf8.RuneError
	}) < 0 && strings.TrimSpace(s) == s
}
