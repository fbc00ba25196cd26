package manifest

import (
	_ "embed"
	"fmt"
	"reflect"
	"slices"

	"github.com/pelletier/go-toml/v2"

	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

//go:embed figsim.toml
var figsim []byte

// FigSIM gives the label schema of the FigSIM release. Each call gives a new copy.
func FigSIM() (s Schema) {
	_ = toml.Unmarshal(figsim, &s) // the file is a part of the program, and tests read it
	return s
}

func (s Schema) index(name string) int {
	return slices.IndexFunc(s.Categories, func(c Category) bool { return c.Name == name })
}

// What two messages say.
const differ = "codes, names and spellings are compared without regard to case and must differ"

// Limits of names and texts of a release.
const (
	MaxName        = 64   // bytes of a category's name
	MaxSplit       = 32   // bytes of a split name
	MaxLabelText   = 200  // bytes of a code or label name
	maxDescription = 1000 // bytes of a description, as many as Argilla takes
)

// nameFault gives what is wrong with the name of a category or column, or "".
func nameFault(what, name string) (message, hint string) {
	switch {
	case !value.IsWord(name, MaxName) || value.IsDigits(name): // what readers of Parquet take, SQL in quotes
		return fmt.Sprintf("%s name %s cannot be a column", what, table.Quote(name)),
			"use letters, digits and _, at most 64, and not digits alone"
	case Reserved(value.Fold(name)):
		return fmt.Sprintf("%s name %q is taken by a column that every dataset has", what, name),
			"name it otherwise, such as " + name + "_label"
	}
	return "", ""
}

// fault gives what is wrong with a category that release.toml defines, or "".
func (c *Category) fault() (message, hint string) {
	message, hint = nameFault("category", c.Name)
	if message != "" {
		return message, hint
	}
	switch {
	case c.Kind != Single && c.Kind != Ordinal && c.Kind != Multi:
		return fmt.Sprintf("category %s has kind %s", c.Name, table.Quote(string(c.Kind))),
			`kind is "single", "ordinal" or "multi"`
	case !value.IsLine(c.Title, MaxLabelText):
		return fmt.Sprintf("category %s has a title that is not one line of text", c.Name), textForm
	case !c.described():
		return fmt.Sprintf("a description of category %s, or of one of its labels, is not one line of text", c.Name),
			fmt.Sprintf("a description has at most %d bytes and no line breaks", maxDescription)
	case len(c.Labels) == 0:
		return fmt.Sprintf("category %s has no labels", c.Name), `write labels = [{code = "A", name = "Apple"}]`
	}
	texts := make(map[string]int)
	for i, l := range c.Labels {
		if !value.IsLine(l.Code, MaxLabelText) || !value.IsLine(l.Name, MaxLabelText) {
			return fmt.Sprintf("category %s has a label (code %s) that is not one line of text", c.Name, table.Quote(l.Code)),
				"every label needs a code; no line breaks, no spaces at the ends"
		}
		if l.Exclusive && c.Kind != Multi {
			return fmt.Sprintf("label %s of category %s is exclusive, but only one label can be given anyway",
					table.Quote(l.Code), c.Name),
				`exclusive is for kind = "multi"`
		}
		for _, text := range []string{l.Code, l.Name} {
			if other, taken := texts[value.Fold(text)]; taken && other != i {
				return fmt.Sprintf("%s means two labels of category %s", table.Quote(text), c.Name), differ
			}
			texts[value.Fold(text)] = i
		}
	}
	return "", ""
}

// described reports whether all descriptions can be shown on one line.
func (c *Category) described() bool {
	fits := func(text string) bool { return text == "" || value.IsLine(text, maxDescription) }
	return fits(c.Description) && !slices.ContainsFunc(c.Labels, func(l Label) bool { return !fits(l.Description) })
}

// bare are the categories without their descriptions.
func (s Schema) bare() (all []Category) {
	for _, c := range s.Categories {
		c.Description, c.Labels = "", slices.Clone(c.Labels)
		for i := range c.Labels {
			c.Labels[i].Description = ""
		}
		all = append(all, c)
	}
	return all
}

// A vocabulary finds a category's labels by code, name or mapped spelling.
type vocabulary struct {
	category *Category
	index    map[string]int // text, folded and as it is spelled -> place in category.Labels
	joined   bool           // a list is what the rows of an image say, which may be anything (Release.Joined)
	// separator parts the labels of a cell of a Source, "" where that of the release does
	separator string
}

func newVocabulary(c *Category) vocabulary {
	v := vocabulary{category: c, index: make(map[string]int, 2*len(c.Labels))}
	for i, l := range c.Labels {
		v.add(l.Code, i)
		v.add(l.Name, i)
	}
	return v
}

func (v vocabulary) add(text string, label int) {
	v.index[value.Fold(text)] = label
	v.index[text] = label // folding is the costly part of reading, and seldom needed
}

func (v vocabulary) find(text string) (int, bool) {
	i, ok := v.index[text]
	if !ok {
		i, ok = v.index[value.Fold(text)]
	}
	return i, ok
}

func (v vocabulary) knows(text string) bool {
	_, ok := v.find(text)
	return ok
}

func labelCodes(labels []Label) []string { return each(labels, func(l Label) string { return l.Code }) }

func (s Schema) names() []string {
	return each(s.Categories, func(c Category) string { return c.Name })
}

// unknown words the problem of a text that is not a label of the category.
func (v vocabulary) unknown(text string) (message, hint string) {
	message = fmt.Sprintf("%s is not a label of category %s", table.Quote(text), v.category.Name)
	codes := labelCodes(v.category.Labels)
	names := each(v.category.Labels, func(l Label) string { return l.Name })
	if near := Nearest(text, slices.Concat(codes, names)); near != "" {
		return message, fmt.Sprintf("did you mean %s? the labels are %s", table.Quote(near), List(codes))
	}
	return message, "the labels are " + List(codes) + "; other spellings are mapped under [labels." + v.category.Name +
		"] in release.toml, and rehydrate init makes a release of other labels"
}

// A Task is what a category's labels are predicted as: some put together, some left out.
type Task struct {
	Category string
	Merge    [][]string // codes that count as one label
	LeaveOut []string   // codes that are not scored
	// By names a multi-label category. An ordinal task's errors are told by its labels as well; "" for none.
	By string
	// ErrorsBy names categories by whose labels wrong predictions are counted.
	ErrorsBy []string
}

// Tasks gives the tasks of the FigSIM paper (section 5) for its schema: figurative phenomenon,
// severity with attempts and death put together, related content without the third-person
// description. Under every other schema each category is a task, with all its labels.
func (s Schema) Tasks() []Task {
	if reflect.DeepEqual(s.bare(), FigSIM().bare()) {
		errorsBy := []string{"modality", "context"}
		return []Task{
			{Category: "figurative", ErrorsBy: errorsBy},
			{Category: "severity", Merge: [][]string{{"SS4", "SS5"}}, By: "figurative", ErrorsBy: errorsBy},
			{Category: "related_content", LeaveOut: []string{"SR5"}, ErrorsBy: errorsBy},
		}
	}
	var tasks []Task
	for _, c := range s.Categories {
		tasks = append(tasks, Task{Category: c.Name})
	}
	return tasks
}
