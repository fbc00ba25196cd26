package publish

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"rehydrate/manifest"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// inARow is how many words in a row are somebody's text: fewer are said by many.
const inARow = 5

// What must not be published, whoever's it is.
var forms = []struct {
	what string
	form *regexp.Regexp
}{
	{"the name of a Reddit user", regexp.MustCompile(`(?i)(?:^|[^\w/.])/?u(?:ser)?/[\w-]{3,20}`)},
	{"the address of a post, a user or an image",
		regexp.MustCompile(`(?i)(?:reddit\.com|redd\.it|redditmedia\.com|reddituploads\.com|imgur\.com)/\w|` +
			`(?:\br/\w+|[^\w.]|^)/comments/\w`)},
	{"an e-mail address", regexp.MustCompile(`[\w.+-]+@[\w-]+\.\w`)},
}

// escaped is a sign as JSON and TOML write those that they do not take as they are.
var escaped = regexp.MustCompile(`\\(?:u[0-9A-Fa-f]{4}|.)`)

// search looks through all files for what must not be published, and says what it found and where.
func (p *publishing) search(ctx context.Context) (found []string, err error) {
	// The program's own words were written by no user: policy.toml names the hosts of images, and a question may be a
	// caption.
	own, ownWords := map[string]bool{}, map[uint64]string{}
	for _, text := range []string{string(policy.DefaultTOML()), questionsText, datasheetText} {
		for line := range strings.Lines(text) {
			own[strings.TrimSpace(line)] = true
		}
		new(window).runs(text, func(run uint64) { ownWords[run] = "" })
	}
	words := map[uint64]string{} // where each run of words stands
	for _, f := range p.Files {
		if strings.HasSuffix(f.Name, manifest.SignatureSuffix) || f.Name == manifest.RevocationsName { // which are signed
			continue
		}
		if err := p.searchFile(f.Name, own, words, &found); err != nil {
			return nil, err
		}
	}
	maps.DeleteFunc(words, func(run uint64, _ string) bool { _, is := ownWords[run]; return is })
	if p.Workspace == nil {
		return found, nil
	}
	said := map[string]bool{}
	for r, err := range p.Workspace.Records(ctx, workspace.Select{}) {
		if err != nil {
			return nil, err
		}
		if r.Reading == nil || r.Reading.Text == "" {
			continue
		}
		p.Checked++
		new(window).runs(r.Reading.Text, func(run uint64) {
			if where, ok := words[run]; ok {
				said[where] = true
			}
		})
	}
	for _, where := range slices.Sorted(maps.Keys(said)) {
		found = append(found, fmt.Sprintf("%s: %d words in a row that stand in an image", where, inARow))
	}
	return found, nil
}

func (p *publishing) searchFile(name string, own map[string]bool, words map[uint64]string, found *[]string) error {
	f, err := os.Open(filepath.Join(p.temp, name))
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	isTable, last := strings.HasPrefix(name, "annotations."), new(window)
	isText := func(c manifest.Column) bool { return c.Type == manifest.TypeText || c.Type == manifest.TypeJSON }
	hasText := slices.ContainsFunc(p.Release.Schema.Columns, isText) // ids, labels and numbers are not words
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if own[strings.TrimSpace(line)] {
			continue
		}
		for i, f := range forms {
			// A datasheet may say how its maintainers are reached.
			if mail := i == len(forms)-1; (!mail || isTable) && f.form.MatchString(line) && len(*found) < 20 {
				*found = append(*found, fmt.Sprintf("%s line %d: %s", name, n, f.what))
			}
		}
		where := fmt.Sprintf("%s line %d", name, n)
		if isTable {
			where = name
		}
		if !isTable || hasText { // a cell may have several lines
			last.runs(escaped.ReplaceAllString(line, " "), func(run uint64) { words[run] = where })
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("%s has a line of more than 64 MiB", name)
	}
	return lines.Err()
}

// A window is the last words of a text.
type window []string

// runs gives every run of words of a text that goes on, in any case and with any signs between them.
func (w *window) runs(text string, take func(run uint64)) {
	for _, word := range strings.FieldsFunc(strings.ToLower(text),
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' }) {
		*w = append((*w)[max(0, len(*w)-inARow+1):], word)
		if len(*w) == inARow {
			h := fnv.New64a()
			_, _ = io.WriteString(h, strings.Join(*w, " ")) // a hash takes everything
			take(h.Sum64())
		}
	}
}
