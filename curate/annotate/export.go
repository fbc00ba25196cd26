package annotate

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"rehydrate/manifest"
	"rehydrate/pipeline/copies"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// An Order says what goes out.
type Order struct {
	copies.Config                 // Format and Fill are set here
	Scheme        manifest.Schema // the labels that are asked for
	Batches       []int           // how many images each has; nil for one batch of all
	Pick                          // of the images
	Overlap       int             // how many annotators answer for each image
}

// Sent is what went out.
type Sent struct {
	state.CopyReport
	Batches   []int    `json:"batches"`
	Questions []string `json:"questions"`
	Dataset   string   `json:"dataset"`  // its name in Argilla
	Left      int      `json:"left_out"` // images that are in no batch
	Absent    *Absent  `json:"absent,omitempty"`
}

// A Misfit says that an order cannot be carried out as it was given.
type Misfit struct{ error }

func misfit(format string, args ...any) error { return Misfit{fmt.Errorf(format, args...)} }

// Export writes the kept images of a workspace as a folder for Dataset.from_disk of Argilla 2, without any answer, and
// registers it as a copy: what a purge takes out of the dataset, it takes out of records.json. The errors are those of
// copies.Export, and of a scheme that Argilla would refuse.
func Export(ctx context.Context, o Order) (Sent, error) {
	sent := Sent{}
	settings, err := settingsOf(o.Scheme, o.Release.Name, o.Overlap)
	if err != nil {
		return sent, err
	}
	posts, absent, err := Posts(ctx, o.Workspace, o.Pick)
	if err != nil {
		return sent, err
	}
	sent.Absent = absent
	sent.Batches = o.Batches
	if len(o.Batches) == 0 {
		sent.Batches = []int{len(posts)}
	}
	total := 0
	for _, n := range sent.Batches {
		total += n
	}
	if total > len(posts) {
		return sent, misfit("the batches take %d images, and there are %d to annotate", total, len(posts))
	}
	sent.Left = len(posts) - total
	for _, q := range settings.Questions {
		sent.Questions = append(sent.Questions, q.Name)
	}
	folder, err := filepath.Abs(o.To)
	if err != nil {
		return sent, err
	}
	sent.Dataset = datasetName(o.Release.Name, filepath.Base(folder))
	o.Format = string(dataset.Argilla)
	o.Fill = func(ctx context.Context, sink dataset.Sink) (rows []string, err error) {
		for _, p := range posts[:total] {
			rows = append(rows, p.Key.String())
		}
		return rows, errors.Join(
			sink(".argilla/settings.json", writeJSON(settings)),
			sink(".argilla/dataset.json", writeJSON(map[string]any{"name": sent.Dataset, "status": "draft"})),
			sink(dataset.RecordsName, func(w io.Writer) error {
				return dataset.WriteRecords(w, records(ctx, o.Workspace, posts, sent.Batches))
			}))
	}
	sent.CopyReport, err = copies.Export(ctx, o.Config)
	return sent, err
}

func writeJSON(v any) func(io.Writer) error {
	return func(w io.Writer) error { return json.NewEncoder(w).Encode(v) }
}

// datasetName is the name of the dataset in Argilla, of the release and the folder: Argilla loads a folder whose name
// it has already into the dataset of that name, with the settings of that one, so that each round needs its own.
func datasetName(release, folder string) string {
	name := plainName(folder)
	if name != folder { // others may be as plain
		sum := sha256.Sum256([]byte(folder))
		name += "-" + hex.EncodeToString(sum[:3])
	}
	return "annotate-" + strings.Trim(plainName(release)+"-"+strings.Trim(name, "-"), "-")
}

// mostName bounds what of a name is taken; Argilla takes 200 characters.
const mostName = 60

// plainName keeps of a name what Argilla takes for that of a dataset.
func plainName(name string) string {
	kept := strings.Trim(regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(name, "-"), "-")
	return kept[:min(len(kept), mostName)]
}

func records(ctx context.Context, ws *workspace.Workspace, posts []Post, batches []int) iter.Seq2[dataset.Record,
	error] {
	return func(yield func(dataset.Record, error) bool) {
		for b, n := range batches {
			for _, p := range posts[:n] {
				body, err := ws.ReadImage(ctx, p.Key, p.Image)
				uri := "data:image/" + p.Image.Format + ";base64," + base64.StdEncoding.EncodeToString(body)
				r := dataset.Record{ID: p.Key.String(), Fields: map[string]any{imageField: map[string]string{"data": uri}},
					Metadata: map[string]string{BatchName: strconv.Itoa(b + 1)}}
				if !yield(r, err) || err != nil {
					return
				}
			}
			posts = posts[n:]
		}
	}
}

// BatchName is the metadata that names a record's batch.
const BatchName = "batch"

const imageField = "image"

// blurred shows an image only to who points at it or goes to it by keyboard. Argilla's own image field shows it at
// once.
const blurred = `<style>img{max-width:100%;filter:blur(24px)}img:hover,img:focus{filter:none}</style>
<p>Blurred until you point at it, or go to it with the Tab key.</p>
<img tabindex="0" alt="the image of the post" src="{{record.fields.` + imageField + `.data}}">`

// settings are what Argilla's Settings.from_json reads: see argilla/settings/_resource.py and
// argilla/_models/_settings.
type settings struct {
	Guidelines    string         `json:"guidelines"`
	ExtraMetadata bool           `json:"allow_extra_metadata"`
	Distribution  map[string]any `json:"distribution"`
	Fields        []field        `json:"fields"`
	Questions     []question     `json:"questions"`
	Metadata      []property     `json:"metadata"`
	Vectors       []any          `json:"vectors"`
}

type field struct {
	Name     string         `json:"name"`
	Title    string         `json:"title"`
	Required bool           `json:"required"`
	Settings map[string]any `json:"settings"`
}

type question struct {
	Name        string  `json:"name"`
	Title       string  `json:"title"`
	Description *string `json:"description"`
	Required    bool    `json:"required"`
	Settings    struct {
		Type    string   `json:"type"`
		Options []option `json:"options"`
	} `json:"settings"`
}

type option struct {
	Value       string  `json:"value"`
	Text        string  `json:"text"`
	Description *string `json:"description"`
}

type property struct {
	Name     string         `json:"name"`
	Title    string         `json:"title"`
	Type     string         `json:"type"`
	Settings map[string]any `json:"settings"`
}

// Bounds of argilla_server/api/schemas/v1: questions.py and datasets.py.
const (
	fewestOptions  = 2
	mostGuidelines = 10_000
)

// takenNames are attributes of the collection that holds questions in Argilla: it takes none of their names for a
// question.
var takenNames = []string{"add", "count", "create", "index", "serialize", "update"}

func settingsOf(s manifest.Schema, name string, overlap int) (*settings, error) {
	out := &settings{Guidelines: Guidelines(s, name), ExtraMetadata: true, Vectors: []any{},
		Distribution: map[string]any{"strategy": "overlap", "min_submitted": overlap},
		Fields: []field{{imageField, "Image", true,
			map[string]any{"type": "custom", "template": blurred, "advanced_mode": false}}},
		// The type stands in both: from_dict reads the outer one.
		Metadata: []property{{BatchName, "Batch", "terms",
			map[string]any{"type": "terms", "visible_for_annotators": true}}}}
	if len(out.Guidelines) > mostGuidelines {
		return nil, misfit("the guidelines would have %d bytes, and Argilla takes %d: shorten the descriptions",
			len(out.Guidelines), mostGuidelines)
	}
	for _, c := range s.Categories {
		taken := append([]string{imageField, BatchName}, takenNames...)
		switch {
		case len(c.Labels) < fewestOptions:
			return nil, misfit("category %s has one label, and Argilla asks only where there are two or more", c.Name)
		case slices.Contains(taken, c.Name):
			return nil, misfit("no question of Argilla may be called %s: rename the category", c.Name)
		}
		q := question{Name: c.Name, Title: c.Title, Description: orNull(c.Description), Required: true}
		q.Settings.Type = "label_selection"
		if c.Kind == manifest.Multi {
			q.Settings.Type = "multi_label_selection"
		}
		for _, l := range c.Labels {
			q.Settings.Options = append(q.Settings.Options, option{l.Code, l.Name, orNull(l.Description)})
		}
		out.Questions = append(out.Questions, q)
	}
	return out, nil
}

// orNull is nil for no text: Argilla's server refuses an empty one.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// Guidelines are what annotators read first, in Markdown: the definitions of the scheme, and how to look after oneself.
func Guidelines(s manifest.Schema, name string) string {
	var b strings.Builder
	fmt.Fprintf(&b,
		"# %s\n\nLook at the image and its text together, and answer every question. Each image is blurred until you point at "+
			"it or go to it by keyboard. What it shows can hurt: take a break after 30 minutes at most, discard what you would "+
			"rather not label, and speak with whoever leads the study when something stays with you.\n", name)
	for _, c := range s.Categories {
		many := "one label"
		if c.Kind == manifest.Multi {
			many = "one or more labels"
		}
		fmt.Fprintf(&b, "\n## %s (%s)\n\n", c.Title, many)
		if c.Description != "" {
			fmt.Fprintf(&b, "%s\n\n", c.Description)
		}
		for _, l := range c.Labels {
			fmt.Fprintf(&b, "- **%s** (%s)", l.Name, l.Code)
			if l.Description != "" {
				fmt.Fprintf(&b, ": %s", l.Description)
			}
			if l.Exclusive {
				b.WriteString(" Not beside another label.")
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}
