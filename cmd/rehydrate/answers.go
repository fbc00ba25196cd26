package main

import (
	"bytes"
	_ "embed" // the templates
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"text/template"
	"time"

	"rehydrate/internal/csvcell"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/study"
)

// answersText has what the commands print for people: a template for each answer, and for what several have in common.
//
//go:embed answers.txt
var answersText string

// standalone is a line with one action that prints nothing: it leaves no empty line.
var standalone = regexp.MustCompile(`(?m)^(\{\{(?:if|else|end|range|with|define|template)\b[^{}\n]*\}\})\n`)

// answer prints v as JSON where that was asked for, else by the template of that name. Cells that stand below each
// other are set in columns; a line with a form feed alone ends a table, and a vertical tab alone before it sets the
// cells at the right.
func (c *command) answer(name string, v any) error {
	if c.json {
		c.said.object = written(toJSON(v))
		return nil
	}
	var b bytes.Buffer
	_ = c.render(&b, name, v) // a buffer takes everything
	for part := range strings.SplitSeq(b.String(), "\f\n") {
		var flags uint
		if rest, right := strings.CutPrefix(part, "\v\n"); right {
			part, flags = rest, tabwriter.AlignRight
		}
		w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', flags)
		fmt.Fprint(w, part)
		w.Flush() // the stream remembers its error
	}
	return nil
}

// render writes v by the template of that name. An error is one of writing.
func (c *command) render(w io.Writer, name string, v any) error {
	few := func(n int) int { // of a long list without -v
		if c.verbose {
			return math.MaxInt
		}
		return n
	}
	t := template.Must(template.New("answers").Funcs(template.FuncMap{
		"add":       func(a, b int) int { return a + b },
		"abs":       math.Abs,
		"advice":    adviceFor,
		"at":        func(t time.Time) string { return t.Format(time.RFC3339) },
		"because":   withReason,
		"byCode":    byCode,
		"broken":    broken,
		"cell":      func(text string) string { return fmt.Sprintf("%.20s", oneTerminalLine(text)) },
		"counts":    countsOf,
		"day":       func(t time.Time) string { return t.Format(time.DateOnly) },
		"decimal":   decimal,
		"filtered":  filtered,
		"few":       few,
		"highest":   func(numbers []int) int { return slices.Max(numbers) },
		"off":       func(share float64) string { return fmt.Sprintf("%+.1f", share) },
		"hundred":   func(share float64) string { return fmt.Sprintf("%.0f", 100*share) },
		"join":      func(list []string) string { return strings.Join(list, ", ") },
		"key":       keyText,
		"labels":    labelList,
		"lasts":     lasts,
		"line":      func(v any) string { return oneTerminalLine(fmt.Sprint(v)) },
		"lines":     func(s string) []string { return strings.Split(s, "\n") },
		"more":      func(n, shown int) int { return max(n-few(shown), 0) },
		"number":    fiveDigits,
		"other":     study.OtherText,
		"ocrWords":  bracketed,
		"per1000":   func(n, of int) string { return fmt.Sprintf("%.1f", 1000*float64(n)/float64(max(of, 1))) },
		"percents":  func(share float64) float64 { return 100 * share },
		"printable": csvcell.Shown,
		"quote":     strconv.QuoteToGraphic,
		"rate":      rate,
		"quiet":     func() bool { return c.quiet },
		"record":    record,
		"published": publishedRows,
		"score":     func(v *float64) string { return decimal(hundredfold(v), 2) },
		"size":      size,
		"some":      someOf,
		"narrow":    func(row []string) []string { return row[:min(len(row), 7)] }, // as a rule it fits into 80 signs
		"tally":     tally,
		"text":      state.Printable,
		"times":     times,
		"verbose":   func() bool { return c.verbose },
		"workspace": func() string { return c.workspace },
	}).Parse(standalone.ReplaceAllString(answersText, "$1")))
	err := t.ExecuteTemplate(w, name, v)
	if is[template.ExecError](err) {
		panic(err) // the template is wrong, whatever the data are
	}
	return err
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
		width = max(width, len(row[0]))
	}
	for _, row := range rows {
		name, line := row[0], ""
		for word := range strings.FieldsSeq(oneTerminalLine(row[1])) {
			if line != "" && len(line)+1+len(word) > 76-width {
				lines, name, line = append(lines, [2]string{name, line}), "", ""
			}
			line = strings.TrimPrefix(line+" "+word, " ")
		}
		lines = append(lines, [2]string{name, line})
	}
	return lines
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

func withReason(what any, reason manifest.Reason) string {
	if reason == "" {
		return fmt.Sprint(what)
	}
	return fmt.Sprintf("%s, %s", what, reason)
}

func oneTerminalLine(s string) string {
	// A line break would break the table, and an escape sequence moves the cursor.
	quoted := strconv.QuoteToGraphic(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
