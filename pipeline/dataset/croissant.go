package dataset

import (
	"bytes"
	"cmp"
	_ "embed"
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
	full := withDefaults(c)
	if !full.IsParquet() {
		return fmt.Errorf("write croissant.json: it describes Parquet files, not the format %q", c.Format)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(full.croissant()); err != nil {
		return fmt.Errorf("write croissant.json: %w", err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write croissant.json: %w", err)
	}
	return nil
}

// croissantContext is the JSON-LD context of the specification's first appendix, as far as
// its terms are used here, with PROV-O.
//
//go:embed croissant_context.json
var croissantContext []byte

// The types of a Croissant document, members in the order in which they are written.
type (
	croissant struct {
		Context       json.RawMessage `json:"@context"`
		Type          string          `json:"@type"`
		ConformsTo    []string        `json:"conformsTo"`
		Name          string          `json:"name"`
		Description   string          `json:"description"`
		License       any             `json:"license"` // an address, or a thing with a name
		URL           string          `json:"url"`
		Creator       thing           `json:"creator"`
		DatePublished string          `json:"datePublished,omitempty"`
		Version       string          `json:"version,omitempty"`
		CiteAs        string          `json:"citeAs,omitempty"`
		InLanguage    string          `json:"inLanguage"`
		Keywords      []string        `json:"keywords"`

		Collection     string   `json:"rai:dataCollection"`
		CollectionType []string `json:"rai:dataCollectionType"`
		MissingData    string   `json:"rai:dataCollectionMissingData"`
		Preprocessing  []string `json:"rai:dataPreprocessingProtocol"`
		Tools          []string `json:"rai:machineAnnotationTools"`
		Sensitive      string   `json:"rai:personalSensitiveInformation"`
		Biases         string   `json:"rai:dataBiases"`
		UseCases       string   `json:"rai:dataUseCases"`
		Limitations    string   `json:"rai:dataLimitations"`
		Maintenance    string   `json:"rai:dataReleaseMaintenancePlan"`

		DerivedFrom provEntity   `json:"prov:wasDerivedFrom"`
		GeneratedBy provActivity `json:"prov:wasGeneratedBy"`

		Distribution []fileObject `json:"distribution"`
		RecordSet    []recordSet  `json:"recordSet"`
	}
	ref struct {
		ID string `json:"@id"`
	}
	thing struct {
		Type string `json:"@type"`
		Name string `json:"name"`
	}
	provEntity struct {
		ID    string `json:"@id,omitempty"`
		Type  string `json:"@type"`
		Label string `json:"prov:label"`
	}
	// A provActivity has no start and no end: they would be clock values, and one input gives one document.
	provActivity struct {
		Type  string     `json:"@type"`
		Label string     `json:"prov:label"`
		Used  ref        `json:"prov:used"`
		With  provEntity `json:"prov:wasAssociatedWith"`
	}
	fileObject struct {
		Type           string `json:"@type"`
		ID             string `json:"@id"`
		Name           string `json:"name"`
		Description    string `json:"description,omitempty"`
		ContentURL     string `json:"contentUrl,omitempty"`
		ContentSize    string `json:"contentSize,omitempty"`
		EncodingFormat string `json:"encodingFormat"`
		SHA256         string `json:"sha256,omitempty"`
		Includes       string `json:"includes,omitempty"`
	}
	recordSet struct {
		Type     string  `json:"@type"`
		ID       string  `json:"@id"`
		Name     string  `json:"name"`
		DataType string  `json:"dataType,omitempty"`
		Key      ref     `json:"key"`
		Field    []field `json:"field"`
		Data     any     `json:"data,omitempty"` // inline rows, by the names of the fields
	}
	field struct {
		Type        string       `json:"@type"`
		ID          string       `json:"@id"`
		Name        string       `json:"name"`
		Description string       `json:"description,omitempty"`
		DataType    any          `json:"dataType"` // one or several
		IsArray     bool         `json:"isArray,omitempty"`
		ArrayShape  string       `json:"arrayShape,omitempty"`
		References  *ref         `json:"references,omitempty"`
		Source      *fieldSource `json:"source,omitempty"`
	}
	fieldSource struct {
		FileSet   ref               `json:"fileSet"`
		Extract   map[string]string `json:"extract"`
		Transform map[string]string `json:"transform,omitempty"`
	}
)

func (c card) croissant() croissant {
	filtered := "dropped"
	if c.Flagged {
		filtered = "marked in the column filter"
	}
	missing := []string{fmt.Sprintf("the release names %d images, %d are here", c.Entries(), c.Rows())}
	for _, o := range c.Missing() {
		missing = append(missing, fmt.Sprintf("%d %s: %s", c.Count(o), o, why(o)))
	}
	p, name := c.Provenance, oneLine(c.Name)
	return croissant{
		Context: croissantContext, Type: "sc:Dataset",
		ConformsTo: []string{"http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"},
		Name:       cmp.Or(name, "untitled release"), Description: oneLine(c.Description), License: c.croissantLicense(),
		URL:           cmp.Or(c.Link(), "urn:sha256:"+p.ReleaseDigest),
		Creator:       thing{"sc:Organization", cmp.Or(oneLine(c.Creator), "the maintainers of "+cmp.Or(name, "the release"))},
		DatePublished: oneLine(c.Date), Version: oneLine(c.Version), CiteAs: strings.TrimSpace(c.Citation),
		InLanguage: "en", Keywords: []string{"Reddit", "images", "OCR", "image classification"},

		Collection:     "Every post of the release was looked up with Reddit's API; its image was fetched only while the post was live.",
		CollectionType: []string{"Web API", "User-generated content data"},
		MissingData:    strings.Join(missing, "; "),
		Preprocessing: []string{"image metadata stripped, pixels untouched", "text read by OCR", "images with text that is not English " + filtered,
			"near-duplicates by perceptual hash and words " + filtered + ", the first kept"},
		Tools:     []string{strings.TrimSpace(cmp.Or(p.OCREngine, "OCR engine not recorded") + ", " + cmp.Or(p.OCRModel, "model not recorded"))},
		Sensitive: oneLine(c.ContentWarning + " Names and faces may be visible in the pixels; user names and titles are not stored."),
		Biases: "Posts do not disappear at random: what moderators remove and what authors delete is missing more often than the rest, " +
			"and so are its labels.",
		UseCases:    "Research that the approval of its holder covers; training, validation and testing as the release splits it.",
		Limitations: "Posts disappear, so two copies made at different times differ in rows. OCR text has errors.",
		Maintenance: "Removed posts have to be deleted from every copy: the holder checks it again and rebuilds the files. A copy that lost rows " +
			"is another dataset: in Croissant's numbering a MAJOR step, one that gained some a MINOR one.",

		DerivedFrom: provEntity{"urn:sha256:" + p.ManifestDigest, "prov:Entity", "annotations of " + c.Title()},
		GeneratedBy: provActivity{"prov:Activity", "rehydration", ref{"urn:sha256:" + p.PolicyDigest},
			provEntity{Type: "prov:SoftwareAgent", Label: strings.TrimSpace("rehydrate " + p.ToolVersion)}},
		Distribution: c.distribution(), RecordSet: c.recordSets(),
	}
}

var spdxID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+-]*$`)

func (c card) croissantLicense() any {
	switch text := oneLine(c.License); {
	case strings.HasPrefix(text, "https://"), strings.HasPrefix(text, "http://"):
		return text
	case spdxID.MatchString(text):
		return "https://spdx.org/licenses/" + text + ".html"
	default:
		return thing{"sc:CreativeWork", cmp.Or(text, "not stated by the release")}
	}
}

const (
	parquetType = "application/x-parquet"
	fileSet     = "parquet-files"
)

func (c card) distribution() []fileObject {
	var files []fileObject
	for _, s := range c.Splits {
		for i, shard := range s.Shards {
			name := FileName(s.Name, i, len(s.Shards))
			files = append(files, fileObject{Type: "cr:FileObject", ID: name, Name: name, ContentURL: name,
				ContentSize: strconv.FormatInt(shard.Bytes, 10) + " B", EncodingFormat: parquetType, SHA256: shard.SHA256})
		}
	}
	return append(files, fileObject{Type: "cr:FileSet", ID: fileSet, Name: fileSet, Description: "the Parquet files of all splits",
		EncodingFormat: parquetType, Includes: "data/*.parquet"})
}

func newField(id string, dataType any) field {
	return field{Type: "cr:Field", ID: id, Name: id, DataType: dataType}
}

// columnField is the field of a column of the files.
func columnField(column, description string, dataType any) field {
	f := newField("default/"+column, dataType)
	f.Description = description
	f.Source = &fieldSource{FileSet: ref{fileSet}, Extract: map[string]string{"column": column}}
	return f
}

func newSet(id, dataType, key string, fields []field, data any) recordSet {
	return recordSet{Type: "cr:RecordSet", ID: id, Name: id, DataType: dataType, Key: ref{id + "/" + key}, Field: fields, Data: data}
}

// recordSets are the splits, the labels of each category, and the columns.
func (c card) recordSets() []recordSet {
	sets, fields := []recordSet{c.splits()}, []field{c.splitField()}
	for _, name := range baseColumns(c.Flagged) {
		f := columnField(name, strings.ReplaceAll(columnContent(name), "`", ""), "sc:Text")
		switch name {
		case "image":
			f.DataType, f.Source.Transform = "sc:ImageObject", map[string]string{"jsonPath": "bytes"}
		case "width", "height":
			f.DataType = "sc:Integer"
		case "ocr_confidence":
			f.DataType = "sc:Float"
		}
		fields = append(fields, f)
	}
	for _, cat := range c.Schema.Categories {
		id := "labels/" + cat.Name
		data := []map[string]any{}
		for i, l := range cat.Labels {
			data = append(data, map[string]any{id + "/id": i, id + "/name": l.Name})
		}
		sets = append(sets, newSet(id, "sc:Enumeration", "id", []field{newField(id+"/id", "sc:Integer"), newField(id+"/name", "sc:Text")}, data))
		f := columnField(cat.Name, cmp.Or(oneLine(cat.Title), cat.Name), []string{"sc:Integer", "cr:Label"})
		f.References = &ref{id + "/id"}
		if cat.Kind == manifest.Multi {
			f.IsArray, f.ArrayShape = true, "-1"
		}
		fields = append(fields, f)
	}
	return append(sets, newSet("default", "", "id", fields, nil))
}

// splits lists the splits. They have a url where Croissant has a name for every one of them:
// readers want all rows of inline data to have the same members.
func (c card) splits() recordSet {
	named := !slices.ContainsFunc(c.Splits, func(s Split) bool { return splitURL(s.Name) == "" })
	fields := []field{newField("splits/name", "sc:Text")}
	if named {
		fields = append(fields, newField("splits/url", "cr:Split"))
	}
	data := []map[string]string{}
	for _, s := range c.Splits {
		row := map[string]string{"splits/name": s.Name}
		if named {
			row["splits/url"] = splitURL(s.Name)
		}
		data = append(data, row)
	}
	return newSet("splits", "cr:Split", "name", fields, data)
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
func (c card) splitField() field {
	names := []string{}
	for _, s := range c.Splits {
		names = append(names, regexp.QuoteMeta(s.Name))
	}
	f := columnField("split", "the split, from the file name", "sc:Text")
	f.References = &ref{"splits/name"}
	f.Source.Extract = map[string]string{"fileProperty": "filename"}
	f.Source.Transform = map[string]string{"regex": "^(" + strings.Join(names, "|") + `)-.*\.parquet$`}
	return f
}
