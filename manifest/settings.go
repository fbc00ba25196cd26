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

// parseSettings reads release.toml strictly. Its error is *Problems.
func parseSettings(b []byte, file string, o Options) (*Release, error) {
	r := newRelease(o)
	r.separator = separators[0]
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
	r.Format, r.Signers = f.Format, f.Signers
	return r, r.toml.Err()
}

func (r *Release) checkAbout() {
	f := &r.file
	for _, line := range []struct{ key, text string }{
		{"name", f.Name}, {"version", f.Version}, {"homepage", f.Homepage}, {"license", f.License},
	} {
		if line.text != "" && !validText(line.text, 500) {
			r.toml.Add(line.key, line.key+" is not one line of text", textForm)
		}
	}
	if f.Name == "" {
		r.toml.Add("name", "the release has no name", `write name = "..." first`)
	}
	// TOML has a type for dates; a text will do.
	r.Date, _ = f.Date.(string)
	if d, ok := f.Date.(toml.LocalDate); ok {
		r.Date = d.String()
	}
	if _, err := time.Parse(time.DateOnly, r.Date); err != nil && f.Date != nil && f.Date != "" {
		r.toml.Add("date", "date is not a date", "write date = 2025-12-31")
	}
}

const textForm = "shorten it, and take out line breaks and spaces at its ends"

func (r *Release) checkFiles() {
	f := &r.file
	var p *Problem
	switch {
	case f.Manifest == "":
		r.toml.Add("manifest", "the release does not name a manifest", `write manifest = "annotations.csv"`)
	case !r.toml.Has("format"):
		f.Format, p = formatOf(f.Manifest)
		if p != nil {
			r.toml.Add("manifest", p.Message, p.Hint)
		}
	case !slices.Contains([]Format{CSV, TSV, JSONL, Parquet}, f.Format):
		r.toml.Add("format", fmt.Sprintf("format %s is not known", quote(string(f.Format))),
			"format is csv, tsv, jsonl or parquet; leave it out to go by the file's name")
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

// The longest key in use, RSA with 16,384 bits, takes 2,800 bytes.
const maxSignerKey = 4096

func (r *Release) checkSigners() {
	names, keys := make(map[string]bool), make(map[string]bool)
	for i, signer := range r.file.Signers {
		at := fmt.Sprintf("signer[%d]", i)
		// The comment behind a key says nothing of whose it is.
		fields := strings.Fields(signer.Key)
		key := strings.Join(fields[:min(2, len(fields))], " ")
		switch {
		case !validText(signer.Name, maxLabelText):
			r.toml.Add(at+".name", "the signer's name is not one line of text", "say in a few words who holds the key")
		case !validText(signer.Key, maxSignerKey) || len(fields) < 2:
			r.toml.Add(at+".key", "the signer's key is not an OpenSSH public key",
				`copy the line of the .pub file: key = "ssh-ed25519 AAAA... comment"`)
		case names[signer.Name]:
			r.toml.Add(at+".name", fmt.Sprintf("two signers are named %s", quote(signer.Name)),
				"rename one, so that messages tell which one signed")
		case keys[key]:
			r.toml.Add(at+".key", fmt.Sprintf("the key of %s is another signer's too", quote(signer.Name)),
				"every signer has a key of their own")
		}
		names[signer.Name], keys[key] = true, true
	}
}

func (r *Release) readSchema() {
	name, own := r.file.Schema, r.file.Categories
	switch given := r.toml.Has("schema"); {
	case given && name != "figsim":
		r.toml.Add("schema", fmt.Sprintf("schema %s is not built in", quote(name)),
			`schema = "figsim" is; another one is given as [[category]] tables`)
	case given && len(own) > 0:
		r.toml.Add("schema", "the release has both schema and [[category]] tables", "keep one of them")
	case given:
		r.setSchema(FigSIM())
	case len(own) == 0:
		r.toml.Add("schema", "the release has no label schema",
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
				r.toml.Add(fmt.Sprintf("category[%d].name", i), message, hint)
			}
		}
		r.setSchema(Schema{Name: r.file.Name, Categories: own})
	}
}

// readColumns reads [columns]: a name for every field and category, or, for a multi-label
// category, a table label -> column.
func (r *Release) readColumns() {
	// Sorted, so that of two keys with one column it is always the same that is refused.
	for _, key := range slices.Sorted(maps.Keys(r.file.Columns)) {
		at, value := tomlKey("columns", key), r.file.Columns[key]
		// A release may have made a field, such as the subreddit, a label.
		category := r.Schema.index(key)
		if texts, isTable := value.(map[string]any); isTable && category >= 0 {
			r.readOneHot(at, r.vocabularies[category], texts)
		} else if category < 0 && !slices.Contains(fieldNames[:], key) {
			r.toml.Add(at, unknownKey(key, "columns"), keyHint(key, append(fieldNames[:], r.Schema.names()...)))
		} else if text, ok := value.(string); ok && text == "" && category < 0 && key != fieldNames[fieldID] {
			r.columns[key] = "" // no column is meant, although one may have the name
		} else {
			r.columns[key] = r.column(at, key, value)
		}
	}
}

// text notes a problem of a value that is not a text.
func (r *Release) text(at, key string, value any) (text string, ok bool) {
	text, ok = value.(string)
	if !ok {
		r.toml.Add(at, key+" is not a text", fmt.Sprintf(`write %s = "..."`, key))
	}
	return text, ok
}

// column reads the name of a column, and refuses one column for two purposes: it is always a slip.
func (r *Release) column(at, key string, value any) string {
	name, ok := r.text(at, key, value)
	if ok && name == "" {
		r.toml.Add(at, key+" does not name a column", "name its column, or take the line out")
	}
	if other, taken := r.named[name]; taken && name != "" {
		r.toml.Add(at, fmt.Sprintf("column %s is given to both %s and %s", quote(name), other, at),
			"give each its own column")
	}
	r.named[name] = at
	return name
}

func (r *Release) readOneHot(table string, v vocabulary, texts map[string]any) {
	c := v.category
	if c.Kind != Multi {
		r.toml.Add(table, fmt.Sprintf("category %s takes one label, so it has one column", c.Name),
			fmt.Sprintf(`write %s = "column"; a table label -> column is for kind = "multi"`, c.Name))
		return
	}
	columns := make([]string, len(c.Labels))
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		at := tomlKey(table, key)
		label, known := v.find(key)
		if !known {
			message, hint := v.unknown(key)
			r.toml.Add(at, message, hint)
		} else if columns[label] != "" {
			r.toml.Add(at, fmt.Sprintf("label %s has two columns", quote(key)), "keep one of them")
		} else {
			columns[label] = r.column(at, key, texts[key])
		}
	}
	r.oneHot[c.Name] = columns
}

// readLabels reads [labels]: the separator, and [labels.CATEGORY] spelling -> code.
func (r *Release) readLabels() {
	for _, key := range slices.Sorted(maps.Keys(r.file.Labels)) {
		at, value := tomlKey("labels", key), r.file.Labels[key]
		spellings, isTable := value.(map[string]any)
		switch category := r.Schema.index(key); {
		case key == "separator":
			text, isText := r.text(at, key, value)
			if validSeparator(text) {
				r.separator = text
			} else if isText {
				r.toml.Add(at, fmt.Sprintf("separator %s cannot part labels", quote(text)),
					`use a sign such as "|", ";" or ","`)
			}
		case category < 0:
			r.toml.Add(at, unknownKey(key, "labels"), keyHint(key, append([]string{"separator"}, r.Schema.names()...)))
		case !isTable:
			r.toml.Add(at, key+" is not a table", fmt.Sprintf("write [%s] on a line, and its keys below", at))
		default:
			for _, spelling := range slices.Sorted(maps.Keys(spellings)) {
				if code, ok := r.text(tomlKey(at, spelling), spelling, spellings[spelling]); ok {
					r.mapSpelling(tomlKey(at, spelling), r.vocabularies[category], spelling, code)
				}
			}
		}
	}
	for _, c := range r.Schema.Categories {
		_, oneHot := r.oneHot[c.Name]
		for _, l := range c.Labels {
			if c.Kind == Multi && !oneHot && strings.Contains(l.Code, r.separator) {
				r.toml.Add("labels.separator", fmt.Sprintf("code %s of category %s holds the separator %s", quote(l.Code), c.Name, quote(r.separator)), "choose another separator in [labels]")
			}
		}
	}
}

func (r *Release) mapSpelling(at string, v vocabulary, spelling, code string) {
	label := slices.Index(labelCodes(v.category.Labels), code)
	if label < 0 {
		message, hint := v.unknown(code)
		r.toml.Add(at, message, hint)
		return
	}
	if other, taken := v.find(spelling); taken && other != label {
		r.toml.Add(at, fmt.Sprintf("spelling %s already means label %s", quote(spelling), quote(labelCodes(v.category.Labels)[other])), "codes, names and spellings are compared without regard to case and must differ")
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
