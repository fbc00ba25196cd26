package dataset

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"rehydrate/manifest"
)

// WriteCroissant writes croissant.json, which conforms to Croissant 1.1: the files with
// their digests, the columns, the labels as enumerations, the splits, and where it all
// comes from. datePublished is the release's date; a release without one (a bare
// annotations file) gives a document without one, which a strict validator will mark.
func WriteCroissant(w io.Writer, c Card) error {
	if err := checkSchema(c.Schema, c.Flagged); err != nil {
		return fmt.Errorf("write croissant.json: %w", err)
	}
	if c.format() != Parquet {
		return fmt.Errorf("write croissant.json: it describes Parquet files, not the format %q", c.Format)
	}
	doc := object{
		{"@context", croissantContext()},
		{"@type", "sc:Dataset"},
		{"conformsTo", []string{"http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"}},
		{"name", cmp.Or(oneLine(c.Name), "untitled release")},
		{"description", oneLine(c.description())},
		{"license", c.croissantLicense()},
		{"url", c.croissantURL()},
		{"creator", object{{"@type", "sc:Organization"}, {"name", cmp.Or(oneLine(c.Creator), "the maintainers of "+cmp.Or(oneLine(c.Name), "the release"))}}},
	}
	for _, m := range (object{{"datePublished", oneLine(c.Date)}, {"version", oneLine(c.Version)}, {"citeAs", strings.TrimSpace(c.Citation)}}) {
		if m.value != "" {
			doc = append(doc, m)
		}
	}
	doc = append(doc, object{{"inLanguage", "en"}, {"keywords", []string{"Reddit", "images", "OCR", "image classification"}}}...)
	doc = append(doc, c.responsibleAI()...)
	doc = append(doc, c.derivation()...)
	doc = append(doc, object{{"distribution", c.distribution()}, {"recordSet", c.recordSets()}}...)

	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return fmt.Errorf("write croissant.json: %w", err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write croissant.json: %w", err)
	}
	return nil
}

// An object is a JSON object whose members keep their order.
type object []member

type member struct {
	name  string
	value any
}

func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		value, err := jsonText(m.value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quoted(m.name) + ":" + value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func ref(id string) object { return object{{"@id", id}} }

// croissantContext is the JSON-LD context of the specification's first appendix, as far as
// its terms are used here, with PROV-O.
func croissantContext() object {
	context := object{
		{"@language", "en"},
		{"@vocab", "http://schema.org/"},
		{"sc", "http://schema.org/"},
		{"cr", "http://mlcommons.org/croissant/"},
		{"rai", "http://mlcommons.org/croissant/RAI/"},
		{"dct", "http://purl.org/dc/terms/"},
		{"prov", "http://www.w3.org/ns/prov#"},
		{"conformsTo", "dct:conformsTo"},
		{"data", object{{"@id", "cr:data"}, {"@type", "@json"}}},
		{"dataType", object{{"@id", "cr:dataType"}, {"@type", "@vocab"}}},
	}
	for _, term := range []string{"arrayShape", "citeAs", "column", "extract", "field", "fileObject", "fileProperty", "fileSet", "includes", "isArray",
		"jsonPath", "key", "recordSet", "references", "regex", "source", "transform"} {
		context = append(context, member{term, "cr:" + term})
	}
	return context
}

var spdxID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+-]*$`)

func (c *Card) croissantLicense() any {
	switch text := oneLine(c.License); {
	case strings.HasPrefix(text, "https://"), strings.HasPrefix(text, "http://"):
		return text
	case spdxID.MatchString(text):
		return "https://spdx.org/licenses/" + text + ".html"
	default:
		return object{{"@type", "sc:CreativeWork"}, {"name", cmp.Or(text, "not stated by the release")}}
	}
}

func (c *Card) croissantURL() string {
	if home, ok := c.homepage(); ok {
		return home
	}
	return "urn:sha256:" + c.Provenance.ReleaseDigest
}

func (c *Card) responsibleAI() object {
	filtered := "dropped"
	if c.Flagged {
		filtered = "marked in the column filter"
	}
	missing := []string{fmt.Sprintf("the release names %d images, %d are here", c.entries(), c.rows())}
	for _, o := range c.outcomes() {
		if o != manifest.Kept {
			missing = append(missing, fmt.Sprintf("%d %s: %s", c.count(o), o, why(o)))
		}
	}
	return object{
		{"rai:dataCollection", "Every post of the release was looked up with Reddit's API; its image was fetched only while the post was live."},
		{"rai:dataCollectionType", []string{"Web API", "User-generated content data"}},
		{"rai:dataCollectionMissingData", strings.Join(missing, "; ")},
		{"rai:dataPreprocessingProtocol", []string{"image metadata stripped, pixels untouched", "text read by OCR", "images with text that is not English " + filtered,
			"near-duplicates by perceptual hash and words " + filtered + ", the first kept"}},
		{"rai:machineAnnotationTools", []string{strings.TrimSpace(cmp.Or(c.Provenance.OCREngine, "OCR engine not recorded") + ", " + cmp.Or(c.Provenance.OCRModel, "model not recorded"))}},
		{"rai:personalSensitiveInformation", oneLine(c.contentWarning() + " Names and faces may be visible in the pixels; user names and titles are not stored.")},
		{"rai:dataBiases", "Posts do not disappear at random: what moderators remove and what authors delete is missing more often than the rest, and so are its labels."},
		{"rai:dataUseCases", "Research that the approval of its holder covers; training, validation and testing as the release splits it."},
		{"rai:dataLimitations", "Posts disappear, so two copies made at different times differ in rows. OCR text has errors."},
		{"rai:dataReleaseMaintenancePlan", "Removed posts have to be deleted from every copy: the holder checks it again and rebuilds the files. A copy that lost rows is another dataset: in Croissant's numbering a MAJOR step, one that gained some a MINOR one."},
	}
}

// derivation is the provenance in PROV-O. There is no start and no end: they would be clock
// values, and one input gives one document.
func (c *Card) derivation() object {
	p := c.Provenance
	return object{
		{"prov:wasDerivedFrom", object{
			{"@id", "urn:sha256:" + p.ManifestDigest}, {"@type", "prov:Entity"}, {"prov:label", "annotations of " + c.title()}}},
		{"prov:wasGeneratedBy", object{
			{"@type", "prov:Activity"}, {"prov:label", "rehydration"},
			{"prov:used", ref("urn:sha256:" + p.PolicyDigest)},
			{"prov:wasAssociatedWith", object{{"@type", "prov:SoftwareAgent"}, {"prov:label", strings.TrimSpace("rehydrate " + p.ToolVersion)}}}}},
	}
}

func (c *Card) distribution() []object {
	files := []object{}
	for _, s := range c.Splits {
		for i, shard := range s.Shards {
			name := FileName(s.Name, i, len(s.Shards))
			files = append(files, object{{"@type", "cr:FileObject"}, {"@id", name}, {"name", name}, {"contentUrl", name},
				{"contentSize", strconv.FormatInt(shard.Bytes, 10) + " B"}, {"encodingFormat", parquetType}, {"sha256", shard.SHA256}})
		}
	}
	return append(files, object{{"@type", "cr:FileSet"}, {"@id", fileSet}, {"name", fileSet}, {"description", "the Parquet files of all splits"},
		{"encodingFormat", parquetType}, {"includes", "data/*.parquet"}})
}

const (
	parquetType = "application/x-parquet"
	fileSet     = "parquet-files"
)

func (c *Card) recordSets() []object {
	fields := []object{c.splitField()}
	for _, name := range baseColumns(c.Flagged) {
		fields = append(fields, baseField(name))
	}
	sets := []object{c.splits()}
	for i := range c.Schema.Categories {
		sets = append(sets, enumeration(&c.Schema.Categories[i]))
		fields = append(fields, labelField(&c.Schema.Categories[i]))
	}
	return append(sets, object{{"@type", "cr:RecordSet"}, {"@id", "default"}, {"name", "default"}, {"key", ref("default/id")}, {"field", fields}})
}

func newField(column string, more ...member) object {
	id := "default/" + column
	return append(object{{"@type", "cr:Field"}, {"@id", id}, {"name", id}}, more...)
}

// columnSource is the source of a field that is a column; transform may be nil.
func columnSource(column string, transform object) member {
	source := object{{"fileSet", ref(fileSet)}, {"extract", object{{"column", column}}}}
	if transform != nil {
		source = append(source, member{"transform", transform})
	}
	return member{"source", source}
}

func baseField(name string) object {
	var transform object
	dataType := "sc:Text"
	switch name {
	case "image":
		dataType, transform = "sc:ImageObject", object{{"jsonPath", "bytes"}}
	case "width", "height":
		dataType = "sc:Integer"
	case "ocr_confidence":
		dataType = "sc:Float"
	}
	return newField(name, member{"description", strings.ReplaceAll(columnContent(name), "`", "")}, member{"dataType", dataType}, columnSource(name, transform))
}

func labelField(cat *manifest.Category) object {
	f := newField(cat.Name, member{"description", cmp.Or(oneLine(cat.Title), cat.Name)}, member{"dataType", []string{"sc:Integer", "cr:Label"}})
	if cat.Kind == manifest.Multi {
		f = append(f, object{{"isArray", true}, {"arrayShape", "-1"}}...)
	}
	return append(f, member{"references", ref(enumerationID(cat) + "/id")}, columnSource(cat.Name, nil))
}

func enumerationID(cat *manifest.Category) string { return "labels/" + cat.Name }

func enumeration(cat *manifest.Category) object {
	id := enumerationID(cat)
	data := []object{}
	for i, l := range cat.Labels {
		data = append(data, object{{id + "/id", i}, {id + "/name", l.Name}})
	}
	return object{{"@type", "cr:RecordSet"}, {"@id", id}, {"name", id}, {"dataType", "sc:Enumeration"}, {"key", ref(id + "/id")},
		{"field", []object{
			{{"@type", "cr:Field"}, {"@id", id + "/id"}, {"name", id + "/id"}, {"dataType", "sc:Integer"}},
			{{"@type", "cr:Field"}, {"@id", id + "/name"}, {"name", id + "/name"}, {"dataType", "sc:Text"}},
		}}, {"data", data}}
}

// splits lists the splits. They have a url where Croissant has a name for every one of them:
// readers want all rows of inline data to have the same members.
func (c *Card) splits() object {
	named := !slices.ContainsFunc(c.Splits, func(s Split) bool { return splitURL(s.Name) == "" })
	fields := []object{{{"@type", "cr:Field"}, {"@id", "splits/name"}, {"name", "splits/name"}, {"dataType", "sc:Text"}}}
	if named {
		fields = append(fields, object{{"@type", "cr:Field"}, {"@id", "splits/url"}, {"name", "splits/url"}, {"dataType", "cr:Split"}})
	}
	data := []object{}
	for _, s := range c.Splits {
		row := object{{"splits/name", s.Name}}
		if named {
			row = append(row, member{"splits/url", splitURL(s.Name)})
		}
		data = append(data, row)
	}
	return object{{"@type", "cr:RecordSet"}, {"@id", "splits"}, {"name", "splits"}, {"dataType", "cr:Split"}, {"key", ref("splits/name")},
		{"field", fields}, {"data", data}}
}

// splitURL is Croissant's name for a split, "" where it has none.
func splitURL(split string) string {
	switch strings.ToLower(split) {
	case "train", "training":
		return "cr:TrainingSplit"
	case "validation", "valid", "val", "dev":
		return "cr:ValidationSplit"
	case "test", "testing":
		return "cr:TestSplit"
	}
	return ""
}

// splitField reads the split off the file name.
func (c *Card) splitField() object {
	names := []string{}
	for _, s := range c.Splits {
		names = append(names, regexp.QuoteMeta(s.Name))
	}
	return newField("split", member{"description", "the split, from the file name"}, member{"dataType", "sc:Text"},
		member{"references", ref("splits/name")},
		member{"source", object{{"fileSet", ref(fileSet)}, {"extract", object{{"fileProperty", "filename"}}},
			{"transform", object{{"regex", "^(" + strings.Join(names, "|") + `)-.*\.parquet$`}}}}})
}
