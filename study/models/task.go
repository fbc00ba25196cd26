package models

import (
	"bytes"
	"cmp"
	_ "embed" // the prompt
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"unicode/utf8"

	"rehydrate/internal/userfile"
	"rehydrate/labels"
	"rehydrate/manifest"
)

// promptForm is the prompt where there is no file of one: after that of FigSIM's paper (Table 11), with the schema's
// definitions.
//
//go:embed prompt.tmpl
var promptForm string

// paperPrompt is Table 11, the one prompt that the paper prints, word for word: "FigSIM: A Dataset for Fine-grained
// Suicide Severity and Figurative Language in Suicide Memes" by Liuliu Chen, Elise R. Carrotte, Brian E. Chapman, Jo
// Robinson and Mike Conway (Findings of ACL 2026, arXiv:2606.02523), CC BY 4.0
// (https://creativecommons.org/licenses/by/4.0/).
//
//go:embed paper.txt
var paperPrompt string

// paperLabels are the labels that it allows.
var paperLabels = []string{"Metaphor", "Pun/Double meaning", "Irony/sarcasm"}

// maxPrompt bounds a prompt, in bytes.
const maxPrompt = 64 << 10

// A Task is a category that a model is asked for.
type Task struct {
	labels.Task
	Prompt string
	From   string // where the prompt is from: "built-in", "paper", or the file
	// ThinkEnd is the mark after which a model answers, and without which it still thinks; "" for none but the known
	// ones.
	ThinkEnd string `json:"-"`
	// Prose says that words may stand around the object in an answer. What they mean is not read: a refusal beside an
	// object is then an answer.
	Prose bool `json:"-"`

	category manifest.Category
}

// AllTasks is what Tasks takes for every task of a schema.
const AllTasks = "all"

// PaperPrompts is what Tasks takes for the prompt of FigSIM's paper, in place of a folder.
const PaperPrompts = "paper"

// Tasks finds the tasks of a schema by name: its own ones with AllTasks, or any category. A prompt is the file
// NAME.txt of the folder, where there is one ("" for none), else the built-in one. With PaperPrompts one of the tasks
// must be the one whose prompt the paper prints; the others have the built-in ones.
func Tasks(schema manifest.Schema, names []string, folder string) ([]Task, error) {
	schema = labels.OfImages(schema)
	known := schema.Tasks()
	if slices.Contains(names, AllTasks) {
		names = nil
		for _, t := range known {
			names = append(names, t.Category)
		}
	}
	var tasks []Task
	for _, name := range names {
		i := slices.IndexFunc(known, func(t manifest.Task) bool { return t.Category == name })
		of := manifest.Task{Category: name}
		if i >= 0 {
			of = known[i]
		}
		if slices.ContainsFunc(tasks, func(t Task) bool { return t.Category == name }) {
			return nil, fmt.Errorf("the task %s is named twice", name)
		}
		task, err := labels.NewTask(schema, of)
		if err != nil {
			return nil, err
		}
		c := schema.Categories[slices.IndexFunc(schema.Categories,
			func(c manifest.Category) bool { return c.Name == name })]
		t := Task{Task: task, category: c}
		if err := t.findPrompt(folder); err != nil {
			return nil, fmt.Errorf("the prompt for %s: %w", name, err)
		}
		tasks = append(tasks, t)
	}
	if folder == PaperPrompts && !slices.ContainsFunc(tasks, func(t Task) bool { return t.From == PaperPrompts }) {
		return nil, fmt.Errorf("the paper prints one prompt alone, for a task figurative with the labels %s: "+
			"ask for that task, or leave the prompts out", strings.Join(paperLabels, ", "))
	}
	return tasks, nil
}

// findPrompt reads the prompt of the folder, or writes one.
func (t *Task) findPrompt(folder string) error {
	switch {
	case folder == PaperPrompts && t.isPapers():
		t.From, t.Prompt = PaperPrompts, paperPrompt
		return nil
	case folder != "" && folder != PaperPrompts:
		t.From = filepath.Join(folder, t.Category+".txt")
		text, err := readPrompt(t.From)
		if !errors.Is(err, fs.ErrNotExist) {
			t.Prompt = text
			return err
		}
	}
	type label struct{ Name, Definition string }
	filled := struct {
		Title, Description, Key   string
		Several, Ordered, Defined bool
		Labels                    []label
	}{t.category.Title, cmp.Or(t.category.Description, "Which applies to the meme?"), t.Category,
		t.Kind == manifest.Multi,
		t.Kind == manifest.Ordinal, false, nil}
	for class, c := range t.Classes {
		l := label{c.Name, t.definition(class)}
		filled.Labels, filled.Defined = append(filled.Labels, l), filled.Defined || l.Definition != ""
	}
	form, err := template.New("prompt").Parse(promptForm)
	var b bytes.Buffer
	if err == nil {
		err = form.Execute(&b, filled)
	}
	t.From, t.Prompt = "built-in", b.String()
	return err
}

// isPapers reports whether the paper's prompt asks for the task.
func (t *Task) isPapers() bool {
	same := func(a, b string) bool { return strings.EqualFold(a, b) }
	return t.Category == "figurative" && t.Kind == manifest.Multi && slices.EqualFunc(t.names(), paperLabels, same)
}

// definition says when a class is to be given; of several labels in one class, each with its name.
func (t *Task) definition(class int) string {
	var all []string
	known := false
	for i, l := range t.category.Labels {
		if t.ClassOf(i) != class {
			continue
		}
		text := strings.TrimSuffix(l.Description, ".")
		known = known || text != ""
		switch {
		case l.Name == t.Classes[class].Name:
			return l.Description
		case text == "":
			all = append(all, l.Name)
		default:
			all = append(all, l.Name+" ("+text+")")
		}
	}
	if !known {
		return ""
	}
	return strings.Join(all, "; ") + "."
}

func readPrompt(name string) (string, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular() || info.Size() > maxPrompt:
		return "", fmt.Errorf("%s is not a file of at most %d bytes", name, maxPrompt)
	}
	text, err := os.ReadFile(name)
	text = userfile.Unmarked(text)
	if err == nil && (!utf8.Valid(text) || strings.TrimSpace(string(text)) == "") {
		err = fmt.Errorf("%s does not hold text in UTF-8", name)
	}
	return string(text), err
}

// names are the classes as a model names them.
func (t *Task) names() (names []string) {
	for _, c := range t.Classes {
		names = append(names, c.Name)
	}
	return names
}

// words are what each class is called by: its own name and code, and those of its labels. A class of no label, which an
// exclusive label of several names, is -1. What two classes are called by is no word.
func (t *Task) words() map[string]int {
	words, both := map[string]int{}, map[string]bool{}
	called := func(class int, names ...string) {
		for _, name := range names {
			name = strings.ToLower(name)
			of, known := words[name]
			both[name] = both[name] || known && of != class
			words[name] = class
		}
	}
	for i, l := range t.category.Labels {
		if c := t.ClassOf(i); c >= 0 || l.Exclusive {
			called(c, l.Name, l.Code)
		}
	}
	for i, c := range t.Classes {
		called(i, c.Name, c.Code)
	}
	maps.DeleteFunc(words, func(name string, _ int) bool { return both[name] })
	return words
}

// label is the place in the category of the first label of a class.
func (t *Task) label(class int) int {
	for i := range t.category.Labels {
		if t.ClassOf(i) == class {
			return i
		}
	}
	return -1 // it is not among the classes
}
