package dataset

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"rehydrate/manifest"
)

// A Card is what the dataset card and croissant.json say. Zero fields are left out, or
// said to be unknown where a reader would look for them.
type Card struct {
	// Of the release. Date is YYYY-MM-DD or another ISO 8601 date.
	Name, Version, Date, Homepage, License, Citation string

	Creator        string // who made the release; "" for "the maintainers of" Name
	Description    string // one or two sentences; "" for a general one
	ContentWarning string // "" for a general one
	Terms          string // terms of access; "" for the general ones

	Format     Format // "" is Parquet
	Schema     manifest.Schema
	Provenance Provenance
	Flagged    bool // the files have the column filter
	Splits     []Split
	// Outcomes counts the entries of the manifest by split and outcome.
	Outcomes map[string]map[manifest.Outcome]int
	// RobotsTag counts those of outcome refused whose image host keeps them out of datasets.
	RobotsTag int `json:",omitempty"`
}

// A Split is one split of the dataset with its shards.
type Split struct {
	Name   string
	Shards []Stats // the files with rows, named by shardName
	Rows   int
	Bytes  int64 // of all files, the images of a folder included
}

// Add counts a shard in.
func (s *Split) Add(shard Stats) {
	s.Shards, s.Rows, s.Bytes = append(s.Shards, shard), s.Rows+shard.Rows, s.Bytes+shard.Bytes
}

//go:embed card.md croissant.tmpl
var pageFiles embed.FS

// pages are card.md and croissant.tmpl.
var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"bare":     func(s string) string { return strings.ReplaceAll(s, "`", "") },
	"dataType": func(t manifest.ColumnType) string { return dataTypes[t] },
	"fenced":   fenced,
	"iri":      func(path string) string { return (&url.URL{Path: path}).EscapedPath() },
	// a name of a category can have a space
	"json":     jsonText,
	"kind":     func(k manifest.CategoryKind) string { return kindWords[k] },
	"line":     oneLine,
	"markdown": markdown,
	"quote":    quoted,
	"splitURL": splitURL,
	"trim":     strings.TrimSpace,
}).ParseFS(pageFiles, "*"))

// WriteCard writes README.md: the metadata that the Hugging Face Hub reads, then text for people.
func WriteCard(w io.Writer, c Card) error {
	var b bytes.Buffer // half a card is never written
	_, err := c.render(&b, "card.md")
	if err == nil {
		_, err = b.WriteTo(w)
	}
	if err != nil {
		return fmt.Errorf("write dataset card: %w", err)
	}
	return nil
}

// outdated is what a card says of rows and files: the splits, what is missing, and the table of digests.
var outdated = regexp.MustCompile(`(?s)  splits:\n.*?  dataset_size: \d+\n|## What is here .*?\n(## Columns\n)|\| file \| rows .*?\n\n`)

// WriteCardWithout writes a card that WriteCard made once more without its counts, sizes and digests: what still fits
// when rows were taken out of a copy. It no longer names the splits of an image folder that have no row left.
func WriteCardWithout(w io.Writer, old io.Reader, emptied []string) error {
	text, err := io.ReadAll(old)
	if err != nil {
		return err
	}
	text = outdated.ReplaceAll(text, []byte("$1"))
	for _, split := range emptied {
		// Hugging Face datasets takes a lone metadata.parquet for the rows of a split, and refuses the folder.
		c := card{Card{Format: Folder}}
		text = bytes.Replace(text, fmt.Appendf(nil, "  - split: %s\n    path: %s\n", quoted(split),
			quoted(c.Pattern(split))), nil, 1)
	}
	_, err = w.Write(text)
	return err
}

// render writes the card on a page.
func (c Card) render(b *bytes.Buffer, page string) (card, error) {
	full := withDefaults(c)
	return full, pages.ExecuteTemplate(b, page, full)
}

// A card is a Card with general words where the release has none, and what card.md asks of it.
type card struct{ Card }

func withDefaults(c Card) card {
	filled := card{c}
	filled.Format = cmp.Or(c.Format, Parquet)
	if manifest.IsListName(c.Name) {
		filled.Description = cmp.Or(c.Description, "Reddit image posts from a list of ids. It has no labels; images "+
			"and OCR text were rebuilt from it.")
		filled.Terms = cmp.Or(c.Terms, "The images belong to the people who posted them. "+passingOn)
	}
	filled.Description = cmp.Or(filled.Description, fmt.Sprintf("Reddit image posts with the labels of the release "+
		"%s. The release holds post ids and labels only; "+
		"images and OCR text were rebuilt from it.", filled.Title()))
	filled.ContentWarning = cmp.Or(c.ContentWarning,
		"The images are what people posted on Reddit, and no one has reviewed this copy. They and their text may be "+
			"distressing, offensive or adult, and may touch on the subjects that the labels name.")
	filled.Terms = cmp.Or(filled.Terms, "The licence of the release covers its annotations, not the images: those "+
		"belong to the people who posted them. "+
		passingOn)
	switch c.Provenance.releasePolicy() {
	case listPolicy:
		filled.Terms += " It was rebuilt from a list of ids: no release and no policy of one stands behind it, and " +
			"no grant was asked for."
	case noPolicy:
		filled.Terms += " It was rebuilt from a bare annotations file: no release's policy applies to it, and no grant was asked for."
	}
	return filled
}

const passingOn = "This copy is for the holder of the approval it was made under. Do not pass it on, do not try to " +
	"find out who posted " +
	"an image, check it again for removed posts, and delete what has been removed."

// Title is the name of the release with its version, on one line.
func (c card) Title() string {
	return oneLine(strings.TrimSpace(cmp.Or(c.Name, "untitled release") + " " + c.Version))
}

// Link is the homepage of the release, "" where it has none that can be followed.
func (c card) Link() string {
	// A scheme of scripts would run in the browser of whoever reads the card.
	u, err := url.Parse(c.Homepage)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" ||
		strings.ContainsAny(c.Homepage, " <>\"\n\t") {
		return ""
	}
	return c.Homepage
}

var notSlug = regexp.MustCompile(`[^a-z0-9.+-]+`)

// LicenseName is for license_name.
func (c card) LicenseName() string {
	// The Hub wants lower case and no spaces.
	slug := strings.Trim(notSlug.ReplaceAllString(strings.ToLower(c.License), "-"), "-")
	return "annotations-" + cmp.Or(slug, "not-stated")
}

// SizeCategory is the Hub's word for how many rows there are.
func (c card) SizeCategory() string {
	names := []string{"n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M"}
	i := 0
	for limit := 1000; i < len(names)-1 && c.Rows() >= limit; limit *= 10 {
		i++
	}
	return names[i]
}

// Pattern names the files of a split.
func (c card) Pattern(split string) string {
	return map[Format]string{Parquet: "data/" + split + "-*", WebDataset: split + "-*.tar",
		Folder: split + "/**"}[c.Format]
}

// File names a shard of a split.
func (c card) File(s Split, i int) string { return shardName(c.Format, s.Name, i, len(s.Shards)) }

// Features are the columns once more, for readers that look at the card first.
func (c card) Features() object { return features(c.Schema, c.BaseColumns()) }

// BaseColumns are the columns of every dataset.
func (c card) BaseColumns() []column { return columnsOf(c.Format, c.Flagged) }

// Facts say how the dataset was made.
func (c card) Facts() []pair {
	facts := c.Provenance.pairs()
	if none := c.Provenance.releasePolicy(); none != "" {
		facts = append(facts, pair{"release_policy", "Policy of the release", &none})
	}
	return slices.DeleteFunc(facts, func(p pair) bool { return *p.Value == "" })
}

// Rows is how many rows the dataset has.
func (c card) Rows() (n int) {
	for _, s := range c.Splits {
		n += s.Rows
	}
	return n
}

// Bytes is how long all files are.
func (c card) Bytes() (n int64) {
	for _, s := range c.Splits {
		n += s.Bytes
	}
	return n
}

// Entries is how many entries the manifest has.
func (c card) Entries() (n int) {
	for _, o := range manifest.Outcomes() {
		n += c.Count(o)
	}
	return n
}

// Count is how many of them have an outcome.
func (c card) Count(o manifest.Outcome) (n int) {
	for _, counts := range c.Outcomes {
		n += counts[o]
	}
	return n
}

// Occurring lists the outcomes that an entry has, in the order of tables; Missing all of them but kept.
func (c card) Occurring() []manifest.Outcome {
	return slices.DeleteFunc(manifest.Outcomes(), func(o manifest.Outcome) bool { return c.Count(o) == 0 })
}

func (c card) Missing() []manifest.Outcome {
	return slices.DeleteFunc(c.Occurring(), func(o manifest.Outcome) bool { return o == manifest.Kept })
}

// Why says what happened to the entries of an outcome.
func (c card) Why(o manifest.Outcome) string {
	if o == manifest.Refused && c.RobotsTag > 0 {
		return fmt.Sprintf("%s; of %d of them the image host's X-Robots-Tag says that they are not for "+
			"training models", o.Why(), c.RobotsTag)
	}
	return o.Why()
}

// dataTypes are Croissant's words for the types of columns that pass through.
var dataTypes = map[manifest.ColumnType]string{manifest.TypeText: "sc:Text", manifest.TypeInteger: "sc:Integer",
	manifest.TypeNumber:  "sc:Float",
	manifest.TypeBoolean: "sc:Boolean", manifest.TypeTimestamp: "sc:DateTime", manifest.TypeJSON: "sc:Text"}

var kindWords = map[manifest.CategoryKind]string{manifest.Single: "one label",
	manifest.Ordinal: "one label, from lowest to highest",
	manifest.Multi:   "list of labels"}

// oneLine puts a space for every run of white space and control characters.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "\ufffd"), func(r rune) bool {
		return r == ' ' || !printable(string(r))
	}), " ")
}

// markdown makes a text plain in Markdown: on one line, no markup, no HTML.
func markdown(s string) string {
	var b strings.Builder
	// On one line nothing else begins a block.
	for _, r := range oneLine(s) {
		if strings.ContainsRune("\\`*_[]|#~$", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return strings.NewReplacer("<", "&lt;", "&", "&amp;").Replace(b.String())
}

// fenced puts s in a code block that it cannot end.
func fenced(s string) string {
	fence := "```" // longer than every run of them in the text
	for strings.Contains(s, fence) {
		fence += "`"
	}
	s = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || printable(string(r)) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(s, "\ufffd"))
	return fence + "\n" + strings.TrimSpace(s) + "\n" + fence
}
