package manifest

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// settings are what release.toml says, or stands for when there is none.
type settings struct {
	name, version, date, homepage, license, citation string

	manifest   string // local name within the release folder
	format     Format
	policy     optionalFile
	tombstones optionalFile

	revocations optionalFile
	signers     []Signer

	schema       Schema
	vocabularies []vocabulary // of schema.Categories, with the mapped spellings
	separator    string
	columns      map[string]string   // fieldNames and categories -> column; "" = none
	oneHot       map[string][]string // category -> column by label, "" = none
	oneHotKeys   map[string][]string // category -> the label as [columns] spells it, by label
}

// An optionalFile is a file of the release that may be missing unless it is named.
type optionalFile struct {
	name  string
	named bool
}

// column gives the column that is set for a field or category, and whether one is.
func (s *settings) column(key string) (name string, set bool) {
	name, set = s.columns[key]
	return name, set
}

// parseSettings reads release.toml strictly. The tomlFile goes on to place problems.
func parseSettings(b []byte, file string) (*settings, *tomlFile, *Problems) {
	t, p := parseTOML(b, file)
	if p != nil {
		return nil, nil, one(p)
	}
	top := t.table("", "", t.root)
	s := &settings{columns: make(map[string]string), oneHot: make(map[string][]string), oneHotKeys: make(map[string][]string)}
	s.readAbout(top)
	s.readFiles(top)
	s.readSigners(top)
	s.readSchema(top)
	s.readColumns(top.sub("columns"))
	s.readLabels(top.sub("labels"))
	top.done()
	if problems := t.problems(); problems != nil {
		return nil, nil, problems
	}
	return s, t, nil
}

func (s *settings) readAbout(top *table) {
	line := func(key string) string {
		v, _ := top.text(key)
		if v != "" && !validText(v, 500) {
			top.add(key, key+" is not one line of text", "shorten it, and take out line breaks and spaces at its ends")
		}
		return v
	}
	s.name = line("name")
	if s.name == "" {
		top.add("name", "the release has no name", `write name = "..." first`)
	}
	s.version = line("version")
	s.date = top.date("date")
	s.homepage = line("homepage")
	s.license = line("license")
	s.citation, _ = top.text("citation")
}

func (s *settings) readFiles(top *table) {
	s.manifest, _ = top.text("manifest")
	switch {
	case s.manifest == "":
		top.add("manifest", "the release names no manifest", `write manifest = "annotations.csv"`)
	case !localName(s.manifest):
		top.add("manifest", fmt.Sprintf("manifest %s is not inside the release folder", quote(s.manifest)), "put the file into the folder and name it without .. or a leading /")
	}
	format, given := top.text("format")
	s.format = Format(format)
	if given && !slices.Contains([]Format{CSV, TSV, JSONL, Parquet}, s.format) {
		top.add("format", fmt.Sprintf("format %s is not known", quote(format)), "format is csv, tsv, jsonl or parquet; leave it out to go by the file's name")
	}
	if !given && s.manifest != "" {
		var p *Problem
		if s.format, p = formatOf(s.manifest); p != nil {
			top.add("manifest", p.Message, p.Hint)
		}
	}
	s.policy = readOptional(top, "policy", "policy.toml")
	s.tombstones = readOptional(top, "tombstones", "tombstones.csv")
	s.revocations = readOptional(top, "revocations", RevocationsName)
}

func readOptional(top *table, key, name string) optionalFile {
	v, given := top.text(key)
	if !given {
		return optionalFile{name: name}
	}
	if !localName(v) {
		top.add(key, fmt.Sprintf("%s %s is not inside the release folder", key, quote(v)), "put the file into the folder and name it without .. or a leading /")
	}
	return optionalFile{name: v, named: true}
}

func localName(name string) bool {
	return filepath.IsLocal(name) && name != "." && !strings.ContainsRune(name, 0) && utf8.ValidString(name)
}

func (s *settings) readSchema(top *table) {
	name, given := top.text("schema")
	own := top.tables("category")
	switch {
	case given && name != "figsim":
		top.add("schema", fmt.Sprintf("schema %s is not built in", quote(name)), `schema = "figsim" is; another one is given as [[category]] tables`)
	case given && len(own) > 0:
		top.add("schema", "the release has both schema and [[category]] tables", "keep one of them")
	case given:
		s.schema = FigSIM()
	case len(own) == 0:
		top.add("schema", "the release has no label schema", `write schema = "figsim", or a [[category]] table for each category`)
	case len(own) > maxCategories:
		top.add("category", fmt.Sprintf("the release has %d categories", len(own)), "at most 200 are read")
	default:
		s.schema.Name = s.name
		for i, keys := range own {
			s.readCategory(top.file.table(top.path.key("category").item(i), "category", keys))
		}
	}
	for i := range s.schema.Categories {
		s.vocabularies = append(s.vocabularies, newVocabulary(&s.schema.Categories[i]))
	}
}

func (s *settings) readCategory(t *table) {
	c := Category{}
	c.Name, _ = t.text("name")
	c.Title, _ = t.text("title")
	kind, _ := t.text("kind")
	c.Kind = CategoryKind(kind)
	if c.Title == "" {
		c.Title = c.Name
	}
	for i, keys := range t.tables("labels") {
		c.Labels = append(c.Labels, readLabel(t.file.table(t.path.key("labels").item(i), t.section, keys)))
	}
	t.done()
	if message, hint := c.fault(); message != "" {
		t.add("name", message, hint)
		return
	}
	for _, other := range s.schema.Categories {
		if fold(other.Name) == fold(c.Name) {
			t.add("name", fmt.Sprintf("two categories are named %s", c.Name), "rename one")
			return
		}
	}
	s.schema.Categories = append(s.schema.Categories, c)
}

// readLabel reads one inline table of a category's labels.
func readLabel(in *table) Label {
	code, _ := in.text("code")
	name, _ := in.text("name")
	if name == "" {
		name = code
	}
	l := Label{Code: code, Name: name, Exclusive: in.flag("exclusive")}
	in.done()
	return l
}

// readColumns reads [columns]: a name for every field and category, or, for a
// multi-label category, a table label code -> column.
func (s *settings) readColumns(t *table) {
	for _, field := range fieldNames {
		if s.schema.has(field) {
			continue // a release may have made the subreddit a label
		}
		if name, given := t.text(field); given {
			s.columns[field] = name
		}
	}
	for i, c := range s.schema.Categories {
		if _, isTable := t.keys[c.Name].(map[string]any); isTable {
			s.readOneHot(t, c, s.vocabularies[i])
			continue
		}
		name, given := t.text(c.Name)
		if given && name == "" {
			t.add(c.Name, fmt.Sprintf("category %s has no column", c.Name), "name its column, or take the category out")
		}
		if given {
			s.columns[c.Name] = name
		}
	}
	if name, given := s.columns["id"]; given && name == "" {
		t.add("id", "id names no column", "every manifest needs a column of post ids")
	}
	t.done()
	s.checkShared(t)
}

func (s *settings) readOneHot(t *table, c Category, v vocabulary) {
	in := t.sub(c.Name)
	if c.Kind != Multi {
		t.add(c.Name, fmt.Sprintf("category %s takes one label, so it has one column", c.Name), fmt.Sprintf(`write %s = "column"; a table label -> column is for kind = "multi"`, c.Name))
		return
	}
	columns, keys := make([]string, len(c.Labels)), make([]string, len(c.Labels))
	for _, code := range slices.Sorted(maps.Keys(in.keys)) {
		name, _ := in.text(code)
		label, known := v.find(code)
		switch {
		case !known:
			message, hint := v.unknown(code)
			in.add(code, message, hint)
		case columns[label] != "":
			in.add(code, fmt.Sprintf("label %s has two columns", quote(code)), "keep one of them")
		case name == "":
			in.add(code, fmt.Sprintf("label %s names no column", quote(code)), "name its column, or take the line out")
		default:
			columns[label], keys[label] = name, code
		}
	}
	s.oneHot[c.Name], s.oneHotKeys[c.Name] = columns, keys
}

// checkShared refuses one column for two purposes: it is always a slip.
func (s *settings) checkShared(t *table) {
	used := make(map[string]string)
	use := func(key, column string) {
		if other, taken := used[column]; taken && column != "" {
			t.add(key, fmt.Sprintf("column %s is given to both %s and %s", quote(column), other, key), "give each its own column")
		}
		used[column] = key
	}
	for _, key := range slices.Sorted(maps.Keys(s.columns)) {
		use(key, s.columns[key])
	}
	for _, key := range slices.Sorted(maps.Keys(s.oneHot)) {
		for _, column := range s.oneHot[key] {
			use(key, column)
		}
	}
}

// readLabels reads [labels]: the separator, and [labels.CATEGORY] spelling -> code.
func (s *settings) readLabels(t *table) {
	s.separator = "|"
	if text, given := t.text("separator"); given {
		if validSeparator(text) {
			s.separator = text
		} else {
			t.add("separator", fmt.Sprintf("separator %s cannot part labels", quote(text)), `use a sign such as "|", ";" or ","`)
		}
	}
	for i, c := range s.schema.Categories {
		in := t.sub(c.Name)
		for _, spelling := range slices.Sorted(maps.Keys(in.keys)) {
			code, _ := in.text(spelling)
			s.mapSpelling(in, s.vocabularies[i], spelling, code)
		}
		_, oneHot := s.oneHot[c.Name]
		for _, l := range c.Labels {
			if c.Kind == Multi && !oneHot && strings.Contains(l.Code, s.separator) {
				t.add("separator", fmt.Sprintf("code %s of category %s holds the separator %s", quote(l.Code), c.Name, quote(s.separator)), "choose another separator in [labels]")
			}
		}
	}
	t.done()
}

func (s *settings) mapSpelling(t *table, v vocabulary, spelling, code string) {
	label := slices.Index(v.codes(), code)
	if label < 0 {
		message, hint := v.unknown(code)
		t.add(spelling, message, hint)
		return
	}
	if other, taken := v.find(spelling); taken && other != label {
		t.add(spelling, fmt.Sprintf("spelling %s already means label %s", quote(spelling), quote(v.codes()[other])), "codes, names and spellings are compared without regard to case and must differ")
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
