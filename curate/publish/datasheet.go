package publish

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"time"

	"rehydrate/labels"
	"rehydrate/manifest"
)

// AnswersName is the file of a release folder with its maintainers' answers for the datasheet.
const AnswersName = "datasheet.toml"

// Answers are what people say of a dataset, by section and question.
type Answers map[string]map[string]string

var (
	//go:embed questions.txt
	questionsText string // a section after #, else a question after its key
	//go:embed datasheet.tmpl
	datasheetText string // what the program knows, by the key of its question
)

// ParseAnswers reads datasheet.toml: a table for each section, and in it a text for each question.
func ParseAnswers(file string, b []byte) (Answers, error) {
	var a Answers
	if _, err := manifest.DecodeTOML(file, b, &a); err != nil {
		return nil, err
	}
	var known []string
	for line := range strings.Lines(questionsText) {
		key, _, _ := strings.Cut(line, " ")
		known = append(known, key)
	}
	for section, answers := range a {
		for name := range answers {
			key := section + "." + name
			if slices.Contains(known, key) {
				continue
			}
			err := fmt.Errorf("%s: no question is called %q", file, key)
			if near := manifest.Nearest(key, known); near != "" {
				err = fmt.Errorf("%w; did you mean %s?", err, near)
			}
			return nil, err
		}
	}
	return a, nil
}

// Questions is a datasheet.toml without answers: all questions that the program cannot answer itself, as comments.
func Questions() []byte {
	var b bytes.Buffer
	b.WriteString("# Answers for the datasheet of this release. rehydrate publish adds what it knows itself, and marks the rest\n" +
		"# as open. To answer a question, write its answer and remove the # in front of that line.\n")
	section := ""
	for line := range strings.Lines(questionsText) {
		key, question, _ := strings.Cut(strings.TrimSpace(line), " ")
		if key == "#" || strings.Contains(datasheetText, `{{define "`+key+`"}}`) {
			continue
		}
		of, name, _ := strings.Cut(key, ".")
		if of != section {
			fmt.Fprintf(&b, "\n[%s]\n", of)
			section = of
		}
		fmt.Fprintf(&b, "# %s\n# %s = \"\"\n", question, name)
	}
	return b.Bytes()
}

// facts are what the program knows of what it publishes.
type facts struct {
	*publishing
	Stats   labels.Stats
	Columns []string
	Gone    int // entries of posts with a tombstone
}

// What the datasheet asks of a release.
func (f facts) Citation() string { return f.Release.Citation }
func (f facts) License() string  { return f.Release.License }
func (f facts) Homepage() string { return f.Release.Homepage }
func (f facts) Date() string     { return f.Release.Date }

// Within is how long a live answer stays good, in hours.
func (f facts) Within() string {
	return fmt.Sprintf("%.3g hours", f.Policy.Reddit.RecheckWithin.Seconds()/time.Hour.Seconds())
}

// datasheet writes the questions with their answers, and lists those that are open.
func (a Answers) datasheet(f facts) (sheet []byte, open []string, err error) {
	t, err := template.New("").Funcs(template.FuncMap{
		"cell":    func(s string) string { return strings.ReplaceAll(oneLine(s), "|", `\|`) },
		"decimal": func(v *float64) string { return decimal(v) },
		"kind": func(k manifest.CategoryKind) string {
			return map[manifest.CategoryKind]string{manifest.Single: "one label", manifest.Ordinal: "one label of a scale",
				manifest.Multi: "several labels"}[k]
		},
		"line": oneLine,
	}).Parse(datasheetText)
	if err != nil {
		return nil, nil, err
	}
	var b bytes.Buffer
	err = t.ExecuteTemplate(&b, "head", f)
	for line := range strings.Lines(questionsText) {
		key, question, _ := strings.Cut(strings.TrimSpace(line), " ")
		if key == "#" {
			fmt.Fprintf(&b, "\n## %s\n", question)
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\n", question)
		section, name, _ := strings.Cut(key, ".")
		var known bytes.Buffer
		if t.Lookup(key) != nil {
			err = errors.Join(err, t.ExecuteTemplate(&known, key, f))
		}
		answer := strings.TrimSpace(strings.TrimSpace(known.String()) + "\n\n" + strings.TrimSpace(a[section][name]))
		if answer == "" {
			open = append(open, key)
			answer = fmt.Sprintf("*Open.* (`%s`)", key)
		}
		b.WriteString(answer + "\n")
	}
	return b.Bytes(), open, err
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func decimal(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *v)
}
