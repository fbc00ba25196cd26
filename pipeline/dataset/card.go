package dataset

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

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
}

// A Split is one split of the dataset with its shards.
type Split struct {
	Name   string
	Shards []Stats // Parquet only: the file of shard i is FileName(Name, i, len(Shards))
	Rows   int
	Bytes  int64 // of all files
}

// rows is how many rows the dataset has.
func (c *Card) rows() int {
	n := 0
	for _, s := range c.Splits {
		n += s.Rows
	}
	return n
}

// entries is how many entries the manifest has.
func (c *Card) entries() int {
	n := 0
	for _, counts := range c.Outcomes {
		for _, k := range counts {
			n += k
		}
	}
	return n
}

func (c *Card) description() string {
	return cmp.Or(c.Description, fmt.Sprintf("Reddit image posts with the labels of the release %s. The release holds post ids and labels only; "+
		"images and OCR text were rebuilt from it.", c.title()))
}

func (c *Card) contentWarning() string {
	return cmp.Or(c.ContentWarning, "The images are what people posted on Reddit, and nobody has reviewed this copy. They and their text may be "+
		"distressing, offensive or adult, and may touch on the subjects that the labels name.")
}

func (c *Card) terms() string {
	return cmp.Or(c.Terms, "The licence of the release covers its annotations, not the images: those belong to the people who posted them. "+
		"This copy is for the holder of the approval it was made under. Do not pass it on, do not try to find out who posted an image, "+
		"check it again for removed posts, and delete what has been removed.")
}

// title is the name of the release with its version, on one line.
func (c *Card) title() string {
	return oneLine(strings.TrimSpace(cmp.Or(c.Name, "untitled release") + " " + c.Version))
}

func (c *Card) homepage() (string, bool) {
	u, err := url.Parse(c.Homepage)
	ok := err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && !strings.ContainsAny(c.Homepage, " <>\"\n\t")
	return c.Homepage, ok
}

// outcomes lists the outcomes that occur, in the order of tables.
func (c *Card) outcomes() []manifest.Outcome {
	return slices.DeleteFunc(manifest.Outcomes(), func(o manifest.Outcome) bool { return c.count(o) == 0 })
}

func (c *Card) count(o manifest.Outcome) int {
	n := 0
	for _, counts := range c.Outcomes {
		n += counts[o]
	}
	return n
}

// why says, for each outcome but kept, what happened to its entries.
func why(o manifest.Outcome) string {
	switch o {
	case manifest.Duplicate:
		return "nearly the same image and text as an earlier row, which is kept"
	case manifest.NotEnglish:
		return "has text, and it is not English"
	case manifest.Unreadable:
		return "has text that OCR cannot read"
	case manifest.Removed:
		return "the post was removed by a moderator, by Reddit or for legal reasons"
	case manifest.Deleted:
		return "the post was deleted by its author"
	case manifest.Unavailable:
		return "Reddit no longer knows the post"
	case manifest.NoMedia:
		return "the post has no image"
	case manifest.Gone:
		return "the post is there, its image is not"
	case manifest.Placeholder:
		return "the image host sent a stand-in for a missing image"
	case manifest.Invalid:
		return "what the host sent is not an image, or not a safe one"
	case manifest.Changed:
		return "the image is not the one that the release describes"
	case manifest.Refused:
		return "the policy of the release does not allow it"
	case manifest.Failed:
		return "could not be fetched or read; another run may succeed"
	case manifest.Pending:
		return "was not reached; another run goes on"
	}
	return string(o)
}

// WriteCard writes README.md: the metadata that the Hugging Face Hub reads, then text for
// people. One Card gives one sequence of bytes.
func WriteCard(w io.Writer, c Card) error {
	if err := checkSchema(c.Schema, c.Flagged); err != nil {
		return fmt.Errorf("write dataset card: %w", err)
	}
	var b bytes.Buffer
	c.writeHead(&b)
	c.writeIntroduction(&b)
	c.writeOutcomes(&b)
	c.writeColumns(&b)
	c.writeHow(&b)
	if c.Citation != "" {
		fmt.Fprintf(&b, "\n## Citation\n\n%s\n", fenced(c.Citation))
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write dataset card: %w", err)
	}
	return nil
}

// writeHead writes the YAML. Every text that comes from the release stands in double
// quotes: YAML reads bare None, No, 0 or : as something else.
func (c *Card) writeHead(b *bytes.Buffer) {
	fmt.Fprintf(b, "---\npretty_name: %s\nlanguage:\n- en\nlicense: other\nlicense_name: %s\n", quoted(c.title()), quoted(c.licenseName()))
	if home, ok := c.homepage(); ok {
		fmt.Fprintf(b, "license_link: %s\n", quoted(home))
	}
	// The labels are the release's: how they were made, its paper says.
	fmt.Fprintf(b, "annotations_creators:\n- found\nlanguage_creators:\n- found\nsize_categories:\n- %s\nsource_datasets:\n- original\n", sizeCategory(c.rows()))
	if len(c.Schema.Categories) > 0 {
		b.WriteString("task_categories:\n- image-classification\n")
	}
	fmt.Fprintf(b, "tags:\n- not-for-all-audiences\nextra_gated_prompt: %s\n", quoted(oneLine(c.terms())))
	b.WriteString("extra_gated_fields:\n  Name: text\n  Organization: text\n  Purpose: text\n  Approval of Reddit for this use: text\n" +
		"  I will not pass the images on or look for the people who posted them: checkbox\n" +
		"  I will delete what is removed at the source: checkbox\n")
	if len(c.Splits) > 0 {
		b.WriteString("configs:\n- config_name: default\n  data_files:\n")
		for _, s := range c.Splits {
			fmt.Fprintf(b, "  - split: %s\n    path: %s\n", quoted(s.Name), quoted(c.pattern(s.Name)))
		}
	}
	if c.format() == Parquet {
		c.writeInfo(b)
	}
	b.WriteString("---\n")
}

func (c *Card) format() Format { return cmp.Or(c.Format, Parquet) }

// pattern names the files of a split.
func (c *Card) pattern(split string) string {
	switch c.format() {
	case WebDataset:
		return split + "-*.tar"
	case Folder:
		return split + "/**"
	}
	return "data/" + split + "-*"
}

// writeInfo writes dataset_info: the features once more, for readers that look at the card first, and the
// splits. Loaders of the other formats make features of their own, which these would contradict.
func (c *Card) writeInfo(b *bytes.Buffer) {
	b.WriteString("dataset_info:\n  features:\n")
	for _, f := range features(c.Schema, c.Flagged) {
		fmt.Fprintf(b, "  - name: %s\n", quoted(f.name))
		switch f.Type {
		case "Image":
			b.WriteString("    dtype: image\n")
		case "ClassLabel":
			b.WriteString("    dtype:\n")
			writeClassLabel(b, f.Names)
		case "Sequence": // not list: datasets before version 4 does not know it
			b.WriteString("    sequence:\n")
			writeClassLabel(b, f.Feature.Names)
		default:
			fmt.Fprintf(b, "    dtype: %s\n", f.DType)
		}
	}
	if len(c.Splits) == 0 {
		return
	}
	b.WriteString("  splits:\n")
	var all int64
	for _, s := range c.Splits {
		fmt.Fprintf(b, "  - name: %s\n    num_bytes: %d\n    num_examples: %d\n", quoted(s.Name), s.Bytes, s.Rows)
		all += s.Bytes
	}
	// The images are stored as they are, so a file takes what it takes in memory.
	fmt.Fprintf(b, "  download_size: %d\n  dataset_size: %d\n", all, all)
}

func writeClassLabel(b *bytes.Buffer, names []string) {
	b.WriteString("      class_label:\n        names:\n")
	for i, name := range names {
		fmt.Fprintf(b, "          '%d': %s\n", i, quoted(name)) // the ids have to be strings
	}
}

func (c *Card) writeIntroduction(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n# %s, rebuilt\n\n%s\n", markdown(c.title()), markdown(c.description()))
	if home, ok := c.homepage(); ok {
		fmt.Fprintf(b, "\nThe release: <%s>\n", home)
	}
	fmt.Fprintf(b, "\n> **Content warning.** %s\n", markdown(c.contentWarning()))
	fmt.Fprintf(b, "\n## Licence and access\n\nLicence of the release: %s. %s\n", markdown(cmp.Or(oneLine(c.License), "not stated")), markdown(c.terms()))
}

func (c *Card) writeOutcomes(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n## What is here and what is missing\n\nThe release names %d images; %d are here.", c.entries(), c.rows())
	b.WriteString(" Posts disappear from Reddit, so a copy made later holds fewer. `outcomes.csv` has the outcome of every entry.\n")
	outcomes := c.outcomes()
	if len(outcomes) > 0 {
		b.WriteString("\n| outcome |")
		for _, s := range c.Splits {
			fmt.Fprintf(b, " %s |", markdown(s.Name))
		}
		fmt.Fprintf(b, " all |\n|---|%s---:|\n", strings.Repeat("---:|", len(c.Splits)))
	}
	for _, o := range outcomes {
		fmt.Fprintf(b, "| %s |", o)
		for _, s := range c.Splits {
			fmt.Fprintf(b, " %d |", c.Outcomes[s.Name][o])
		}
		fmt.Fprintf(b, " %d |\n", c.count(o))
	}
	if missing := slices.DeleteFunc(outcomes, func(o manifest.Outcome) bool { return o == manifest.Kept }); len(missing) > 0 {
		b.WriteByte('\n')
		for _, o := range missing {
			fmt.Fprintf(b, "- **%s**: %s\n", o, why(o))
		}
	}
	if c.Flagged {
		b.WriteString("\nThis copy was made in flag mode: rows that the filters would have dropped are here, and the column `filter` says why.\n")
	}
}

func (c *Card) writeColumns(b *bytes.Buffer) {
	b.WriteString("\n## Columns\n\n| column | content |\n|---|---|\n")
	for _, name := range baseColumns(c.Flagged) {
		fmt.Fprintf(b, "| `%s` | %s |\n", name, columnContent(name))
	}
	for _, cat := range c.Schema.Categories {
		names := make([]string, len(cat.Labels))
		for i, l := range cat.Labels {
			names[i] = strconv.Itoa(i) + " " + l.Name
		}
		kind := map[manifest.CategoryKind]string{manifest.Single: "one label", manifest.Ordinal: "one label, from lowest to highest",
			manifest.Multi: "list of labels"}[cat.Kind]
		fmt.Fprintf(b, "| %s | %s: %s (%s) |\n", markdown(cat.Name), markdown(cmp.Or(cat.Title, cat.Name)), kind, markdown(strings.Join(names, ", ")))
	}
	switch c.format() {
	case WebDataset:
		b.WriteString("\nEach row is two members of a tar, `KEY.jpg` (or png, gif, webp) and `KEY.json` with the other columns; labels stand there by name. " +
			"KEY is the id, with `-` for its `/`.\n")
	case Folder:
		b.WriteString("\nThe images are files, named in the column `file_name` of `metadata.csv`, which has the other columns; labels stand there by number, " +
			"several as a JSON list. Read it with `keep_default_na=False` in pandas, or the text NA is lost.\n")
	}
	if c.format() != Parquet {
		b.WriteString("\n| split | files | rows | bytes |\n|---|---|---:|---:|\n")
		for _, s := range c.Splits {
			fmt.Fprintf(b, "| %s | %s | %d | %d |\n", markdown(s.Name), markdown(c.pattern(s.Name)), s.Rows, s.Bytes)
		}
		return
	}
	b.WriteString("\n| file | rows | bytes | sha256 |\n|---|---:|---:|---|\n")
	for _, s := range c.Splits {
		for i, shard := range s.Shards {
			fmt.Fprintf(b, "| %s | %d | %d | `%s` |\n", markdown(FileName(s.Name, i, len(s.Shards))), shard.Rows, shard.Bytes, shard.SHA256)
		}
	}
}

func columnContent(name string) string {
	return map[string]string{
		"id":             "Reddit post id; `/n` behind it for image n of a gallery",
		"image":          "the image file, metadata stripped, pixels untouched",
		"ocr_text":       "what OCR read; empty where the image has no text",
		"ocr_confidence": "mean confidence of the words, 0 to 100; 0 where there are none",
		"width":          "pixels",
		"height":         "pixels",
		"sha256":         "of the image file",
		"phash":          "perceptual hash, 16 hex digits",
		"filter":         "why the filters would have dropped the row; null for the others",
	}[name]
}

func (c *Card) writeHow(b *bytes.Buffer) {
	filtered := "taken out"
	if c.Flagged {
		filtered = "marked"
	}
	where := "Each Parquet file carries the following in its footer."
	if c.format() != Parquet {
		where = "It was made of the following."
	}
	fmt.Fprintf(b, "\n## How it was rebuilt\n\nEvery post was looked up with Reddit's API, its image fetched only while the post was live, its text read by OCR, "+
		"text in other languages and near-duplicates %s. Labels are joined by post id, as released. %s\n\n| | |\n|---|---|\n", filtered, where)
	for _, p := range c.Provenance.pairs() {
		if p.value != "" {
			fmt.Fprintf(b, "| %s | %s |\n", p.title, markdown(p.value))
		}
	}
}

var notSlug = regexp.MustCompile(`[^a-z0-9.+-]+`)

// licenseName is for license_name, which the Hub wants in lower case and without spaces.
func (c *Card) licenseName() string {
	slug := strings.Trim(notSlug.ReplaceAllString(strings.ToLower(c.License), "-"), "-")
	return "annotations-" + cmp.Or(slug, "not-stated")
}

// sizeCategory is one of the Hub's size categories.
func sizeCategory(rows int) string {
	names := []string{"n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M"}
	i := 0
	for limit := 1000; i < len(names)-1 && rows >= limit; limit *= 10 {
		i++
	}
	return names[i]
}

// oneLine puts a space for every run of white space and control characters.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "\ufffd"), func(r rune) bool {
		return r == ' ' || !printable(string(r))
	}), " ")
}

// markdown makes a text plain in Markdown: on one line, no markup, no HTML.
func markdown(s string) string {
	var b strings.Builder
	for _, r := range oneLine(s) {
		switch r {
		case '\\', '`', '*', '_', '[', ']', '|', '#', '~', '$':
			b.WriteByte('\\')
			b.WriteRune(r)
		case '<':
			b.WriteString("&lt;")
		case '&':
			b.WriteString("&amp;")
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// fenced puts s in a code block that it cannot end.
func fenced(s string) string {
	fence := "```"
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
