package main

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/csv"
	"fmt"
	"io"
	"io/fs"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"text/template"
	"time"
	"unicode/utf8"

	"rehydrate/internal/csvcell"
	"rehydrate/internal/printable"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/policy"
	"rehydrate/study"
	"rehydrate/study/models"

	"github.com/dustin/go-humanize"
)

// The screens are what the commands print for people: screens/NAME.txt has those of NAME.go, common.txt what several
// share.
//
//go:embed screens/*.txt
var screenFiles embed.FS

// standalone is a line with one action that prints nothing: it leaves no empty line.
var standalone = regexp.MustCompile(`(?m)^(\{\{(?:if|else|end|range|with|define|template)\b[^{}\n]*\}\})\n`)

// screens parses all screens, once. TestScreens executes each with all values and with none.
var screens = sync.OnceValue(func() *template.Template {
	t := template.New("screens").Funcs((&command{}).screenFuncs())
	files, err := fs.Glob(screenFiles, "screens/*.txt")
	if err != nil {
		panic(err) // the pattern is written wrong in this program
	}
	for _, name := range files {
		b, err := screenFiles.ReadFile(name)
		if err != nil {
			panic(err) // it is part of this program
		}
		template.Must(t.New(name).Parse(standalone.ReplaceAllString(string(b), "$1")))
	}
	return t
})

// answer prints v as JSON where that was asked for, else by the screen of that name.
func (c *command) answer(name string, v any) error {
	if c.json {
		c.said.object = written(toJSON(v))
		return nil
	}
	var b bytes.Buffer
	_ = c.render(&b, name, v) // a buffer takes everything
	fmt.Fprint(c.stdout, aligned(b.String(), 0))
	return nil
}

// aligned sets cells that tabs end, and that stand below each other, in columns.
func aligned(text string, flags uint) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', flags)
	fmt.Fprint(w, text)
	w.Flush() // a builder takes everything
	return b.String()
}

// render writes v by the screen of that name. An error is one of writing.
func (c *command) render(w io.Writer, name string, v any) error {
	t := template.Must(screens().Clone()).Funcs(c.screenFuncs())
	t.Funcs(template.FuncMap{"table": func(flags string, name string, v any) (string, error) {
		var b strings.Builder
		err := t.ExecuteTemplate(&b, name, v)
		set := map[string]uint{"left": 0, "right": tabwriter.AlignRight}
		return strings.TrimSuffix(aligned(printable.Escaped(b.String()), set[flags]), "\n"), err
	}})
	var b strings.Builder
	err := t.ExecuteTemplate(&b, name, v)
	if is[template.ExecError](err) {
		panic(err) // the screen is wrong, whatever the data are
	}
	_, wrong := io.WriteString(w, printable.Escaped(b.String()))
	return cmp.Or(err, wrong)
}

// screenFuncs are what screens call.
func (c *command) screenFuncs() template.FuncMap {
	few := func(n int) int { // of a long list without -v
		if c.verbose {
			return math.MaxInt
		}
		return n
	}
	return template.FuncMap{
		"add":        func(a, b int) int { return a + b },
		"abs":        math.Abs,
		"ahead":      func(t *time.Time) bool { return policy.Ahead(*t, c.now()) },
		"amount":     func(sum float64) string { return models.Amount(sum, 2) },
		"at":         func(t time.Time) string { return t.Format(time.RFC3339) },
		"because":    because,
		"asked":      asked,
		"confirming": c.confirming,
		"comma":      func(n int) string { return humanize.Comma(int64(n)) },
		"groups":     groupRows,
		"percent":    percent,
		"removed":    removedList,
		"span":       span,
		"todos":      c.todos,
		"broken":     broken,
		"cell":       cell,
		"counts":     countsOf,
		"day":        func(t time.Time) string { return t.Format(time.DateOnly) },
		"decimal":    decimal,
		"engine":     engineOf,
		"fetches":    c.fetches,
		"few":        few,
		"highest":    func(numbers []int) int { return slices.Max(numbers) },
		"off":        func(share float64) string { return fmt.Sprintf("%+.1f", share) },
		"hundred":    func(share float64) string { return fmt.Sprintf("%.0f", 100*share) },
		"join":       func(list []string) string { return strings.Join(list, ", ") },
		"list":       manifest.List,
		"kept":       func(s state.Summary) int { return s.Outcomes[manifest.Kept] },
		"key":        keyLine,
		"labels":     labelList,
		"lasts":      lasts,
		"line":       func(v any) string { return printable.EscapedLine(fmt.Sprint(v)) },
		"lines":      func(s string) []string { return strings.Split(s, "\n") },
		"more":       func(n, shown int) int { return max(n-few(shown), 0) },
		"number":     fiveDigits,
		"other":      study.OtherText,
		"ocrWords":   bracketed,
		"percents":   func(share float64) float64 { return 100 * share },
		"printable":  csvcell.Shown,
		"quote":      strconv.QuoteToGraphic,
		"rate":       rate,
		"toRetry":    c.toRetry,
		"shardsNext": c.shardsNext,
		"quiet":      func() bool { return c.quiet },
		"record":     record,
		"published":  publishedRows,
		"sentence":   asSentence,
		"score":      func(v *float64) string { return decimal(hundredfold(v), 2) },
		"size":       size,
		"some":       someOf,
		"named":      c.named,
		"narrow":     func(row []string) []string { return row[:min(len(row), 7)] }, // as a rule it fits into 80 signs
		"tally":      tally,
		"text":       printable.Text,
		"toType":     c.toType,
		"times":      times,
		"verbose":    func() bool { return c.verbose },
		"word":       shellWord,
		"workspace":  func() string { return c.workspace },
		// The table of a screen by name, of cells at the left or the right; render gives the function that has the
		// screens.
		"table": func(string, string, any) (string, error) { return "", nil },
	}
}

// engineOf is the fingerprint of a reading in words: its last number is the version of the rules that mask names.
func engineOf(fingerprint string) string {
	return strings.Replace(fingerprint, " names masked ", ", rules for names ", 1)
}

// record writes cells as a line of CSV, without its end.
func record(cells ...any) string {
	row := make([]string, len(cells))
	for i, cell := range cells {
		switch v := cell.(type) {
		case string: // it can come from a file: neither a spreadsheet nor a terminal must act on it
			row[i] = csvcell.Name(v)
		case float64:
			row[i] = strconv.FormatFloat(v, 'g', -1, 64)
		case *float64:
			if v != nil {
				row[i] = strconv.FormatFloat(*v, 'g', -1, 64)
			}
		default:
			row[i] = fmt.Sprint(v)
		}
	}
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(row) // a builder takes everything
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

// answerHolds answers whether something holds, by the exit status too.
func (c *command) answerHolds(name string, v any, holds bool, otherwise exitCode) error {
	err := c.answer(name, v)
	if err == nil && !holds {
		return otherwise
	}
	return err
}

// broken breaks the second cells of rows, so that they fit into a terminal of 80 columns beside the first.
func broken(rows [][2]string) (lines [][2]string) {
	width := 0
	for _, row := range rows {
		width = max(width, utf8.RuneCountInString(row[0]))
	}
	for _, row := range rows {
		name, line := row[0], ""
		for _, word := range strings.FieldsFunc(printable.EscapedLine(row[1]), func(r rune) bool { return r == ' ' }) {
			if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > 76-width {
				lines, name, line = append(lines, [2]string{name, line}), "", ""
			}
			line = strings.TrimPrefix(line+" "+word, " ")
		}
		lines = append(lines, [2]string{name, line})
	}
	return lines
}

// percent is a share in whole percent: 100 only where none is missing.
func percent(n, of int) string {
	share := math.Round(100 * float64(n) / float64(max(of, 1)))
	if n < of {
		share = min(share, 99)
	}
	return fmt.Sprintf("%.0f", share)
}

func hundredfold(share *float64) *float64 {
	if share == nil {
		return nil
	}
	return new(100 * *share)
}

func times(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
