package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// leastCalls are files with commands, and how many TestDocs finds there at least. They are fewer than there are, so
// that a sentence may go.
var leastCalls = map[string]int{
	"CONTRIBUTING.md": 0,
	"README.md":       6,

	"docs/README.md":          0,
	"docs/annotate.md":        8,
	"docs/auditor.md":         8,
	"docs/author.md":          15,
	"docs/decisions.md":       1,
	"docs/dedupe.md":          1,
	"docs/design.md":          1,
	"docs/features.md":        5,
	"docs/files.md":           7,
	"docs/labels.md":          12,
	"docs/maintainer.md":      20,
	"docs/models.md":          11,
	"docs/ocr.md":             4,
	"docs/publish.md":         5,
	"docs/researcher.md":      30,
	"docs/scale.md":           10,
	"docs/select.md":          5,
	"docs/troubleshooting.md": 5,

	"releases/examples/README.md": 1,
	"releases/figsim/README.md":   2,

	"scripts/Containerfile": 1,
	"scripts/bundle":        1,
	"scripts/circle":        12,
	"scripts/demo":          1,
	"scripts/recheck":       2,
}

// TestDocs runs every command line of the documents and the scripts through the program's own parser, which does no
// work: the command exists, and takes these flags and so many arguments.
func TestDocs(t *testing.T) {
	const top = "../.."
	files := pagesBelow(t, top)
	for name := range leastCalls {
		files = append(files, filepath.Join(top, name))
	}
	slices.Sort(files)
	for _, file := range slices.Compact(files) {
		name, err := filepath.Rel(top, file)
		check(t, err)
		name = filepath.ToSlash(name)
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			check(t, err)
			read := scriptCalls
			if filepath.Ext(name) == ".md" {
				read = pageCalls
			}
			calls := read(string(text))
			for _, c := range calls {
				if err := c.parse(); err != nil {
					t.Errorf("%s:%d: rehydrate %s: %v", name, c.line, strings.Join(c.args, " "), err)
				}
			}
			t.Logf("%d commands", len(calls))
			if least := leastCalls[name]; len(calls) < least {
				t.Errorf("%s: %d commands were found, want %d at least: have they gone, or does the test not read them?",
					name, len(calls), least)
			}
		})
	}
}

// pagesBelow returns the pages of the documents and the releases of a repository.
func pagesBelow(t *testing.T, top string) (files []string) {
	t.Helper()
	for _, pattern := range []string{"docs/*.md", "releases/*/README.md"} {
		found, err := filepath.Glob(filepath.Join(top, filepath.FromSlash(pattern)))
		check(t, err)
		files = append(files, found...)
	}
	return files
}

var (
	pageLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	pageHeading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInAnchor = regexp.MustCompile("[^a-z0-9_ -]")
)

// TestLinks: each link of a page to a file of the repository finds the file, and the heading in it.
func TestLinks(t *testing.T) {
	const top = "../.."
	files := pagesBelow(t, top)
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "SECURITY.md"} {
		files = append(files, filepath.Join(top, name))
	}
	for _, file := range files {
		for _, m := range pageLink.FindAllStringSubmatch(read(t, file), -1) {
			path, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(path, "://") {
				continue
			}
			to := file
			if path != "" {
				to = filepath.Join(filepath.Dir(file), path)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s: %v", file, m[1], err)
				continue
			}
			if anchor != "" && !slices.Contains(anchors(read(t, to)), anchor) {
				t.Errorf("%s links to %s: there is no such heading", file, m[1])
			}
		}
	}
}

// anchors are the names by which a page's headings are linked to, as GitHub makes them.
func anchors(page string) (names []string) {
	for _, m := range pageHeading.FindAllStringSubmatch(page, -1) {
		name := notInAnchor.ReplaceAllString(strings.ToLower(m[1]), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

// A docCall is one command line of a document.
type docCall struct {
	line int
	args []string // without the program
	// It stands within a sentence, where the arguments and the value of the last flag may be left out.
	inline bool
}

// parse returns what the program says of the call before it begins to work.
func (c docCall) parse() error {
	root := (&command{process: process{args: c.args, stdout: io.Discard, stderr: io.Discard}}).root()
	root.SetErr(io.Discard)
	cmd, _, err := root.Find(c.args)
	if err != nil {
		return err
	}
	cmd.Run, cmd.RunE = nil, func(*cobra.Command, []string) error { return nil }
	takes := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if takes == nil || c.inline && len(args) == 0 {
			return nil
		}
		return takes(cmd, args)
	}
	root.SetArgs(c.filled(cmd))
	_, err = root.ExecuteC()
	return err
}

// filled gives the arguments with a number where a placeholder stands for the number of a flag.
func (c docCall) filled(cmd *cobra.Command) []string {
	cmd.InheritedFlags() // from here on the flags know those of all commands by their letters, too
	args := slices.Clone(c.args)
	for i, arg := range c.args {
		name, value, joined := strings.Cut(arg, "=")
		var f *pflag.Flag
		switch {
		case strings.HasPrefix(name, "--"):
			f = cmd.Flags().Lookup(name[2:])
		case len(name) == 2 && name[0] == '-':
			f = cmd.Flags().ShorthandLookup(name[1:])
		}
		if f == nil || f.NoOptDefVal != "" {
			continue
		}
		switch {
		case joined:
			args[i] = name + "=" + numeral(f, value)
		case i+1 < len(args):
			args[i+1] = numeral(f, args[i+1])
		case c.inline:
			args = append(args, numeral(f, "N"))
		}
	}
	return args
}

var placeholder = regexp.MustCompile(`^[A-Z]+$|\$`)

// numeral returns the value of a flag, or a number where a placeholder stands for one.
func numeral(f *pflag.Flag, value string) string {
	switch f.Value.Type() {
	case "int", "int64", "uint", "uint64", "float64":
		if placeholder.MatchString(value) {
			return "1"
		}
	case "duration":
		if placeholder.MatchString(value) {
			return "1h"
		}
	}
	return value
}

var (
	optionalPart  = regexp.MustCompile(`\[[^]"]*\]`)                                       // [RELEASE]
	codeSpan      = regexp.MustCompile("`[^`]+`")                                          // code within a sentence
	typedLine     = regexp.MustCompile(`^(\$ |(\S*/)?rehydrate |.*\b(do|exec|parallel) )`) // not what is printed
	quotedCall    = regexp.MustCompile(`^(?:\$|.*would:|exec) (rehydrate [a-z].*)`)        // a command within quotes
	arrayLine     = regexp.MustCompile(`(\w+)=\((.*)\)$`)                                  // an array of a shell
	loopLine      = regexp.MustCompile(`^for (\w+) in (.*); do$`)
	shellVariable = regexp.MustCompile(`^\$\{?(\w+|@)(\[@\]|-)?\}?$`)
	commandWord   = regexp.MustCompile(`^-{0,2}[a-z]`)
)

// pageCalls returns the calls of a page in Markdown: those of its code blocks, and those within sentences, which may
// leave out the name of the program where another word follows the command.
func pageCalls(text string) []docCall {
	var calls []docCall
	lines := strings.Split(text, "\n")
	// a session is a block with a $: what else begins with rehydrate was printed
	code, fenced, session := false, false, false
	for i, line := range lines {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence:
			fenced, session = !fenced, false
		case strings.TrimSpace(line) == "":
			continue // between two parts of a block, or around one
		case !fenced:
			code = strings.HasPrefix(line, "    ") && (code || i == 0 || strings.TrimSpace(lines[i-1]) == "")
		}
		if !code && !fenced && !fence {
			session = false
			continue
		}
		trimmed := strings.TrimSpace(line)
		session = session || strings.HasPrefix(trimmed, "$ ")
		if !fence && typedLine.MatchString(trimmed) && !(session && strings.HasPrefix(trimmed, "rehydrate ")) {
			calls = append(calls, callsOf(i+1, optionalPart.ReplaceAllString(joinedLine(lines[i:]), ""), nil)...)
		}
		lines[i] = "" // no span begins or ends in it; each line was read before it is emptied
	}
	prose := strings.Join(lines, "\n")
	var names []string
	for _, cmd := range (&command{}).root().Commands() {
		names = append(names, cmd.Name())
	}
	for _, at := range codeSpan.FindAllStringIndex(prose, -1) {
		code := strings.Join(strings.Fields(prose[at[0]+1:at[1]-1]), " ")
		code = optionalPart.ReplaceAllString(strings.ReplaceAll(code, `\|`, "|"), "")
		first, rest, _ := strings.Cut(code, " ")
		// KEY = "VALUE" is of a file, and the program ocr has commands, too.
		if slices.Contains(names, first) && rest != "" && !strings.HasPrefix(rest, "=") && first != "ocr" {
			code = "rehydrate " + code
		}
		if !strings.HasPrefix(code, "rehydrate ") {
			continue
		}
		for _, c := range callsOf(1+strings.Count(prose[:at[0]], "\n"), code, nil) {
			c.inline = true
			calls = append(calls, c)
		}
	}
	slices.SortStableFunc(calls, func(a, b docCall) int { return a.line - b.line })
	return calls
}

// scriptCalls returns the calls of a script of a shell, also those that its comments show indented.
func scriptCalls(text string) []docCall {
	var calls []docCall
	values := map[string][][]string{"@": {nil}, "rehydrate": {{"rehydrate"}}}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		line = strings.TrimSpace(line)
		if m := arrayLine.FindStringSubmatch(line); m != nil {
			words, _ := shellWords(m[2])
			values[m[1]] = [][]string{words}
		}
		if m := loopLine.FindStringSubmatch(line); m != nil {
			words, _ := shellWords(m[2])
			for _, word := range words {
				values[m[1]] = append(values[m[1]], strings.Fields(word))
			}
		}
		if shown, ok := strings.CutPrefix(line, "#   "); ok {
			line = shown
		} else {
			line = joinedLine(lines[i:])
		}
		calls = append(calls, callsOf(i+1, line, values)...)
	}
	return calls
}

// joinedLine returns the first of lines, with those that its backslash continues it by.
func joinedLine(lines []string) string {
	whole := ""
	for _, line := range lines {
		part, more := strings.CutSuffix(strings.TrimSpace(line), `\`)
		whole += part
		if !more {
			break
		}
	}
	return whole
}

// callsOf returns the calls of one line of a shell: several where a word has several values, given by name for the
// variables of a script, or written A|B.
func callsOf(line int, text string, values map[string][][]string) []docCall {
	var calls []docCall
	for text != "" {
		var words []string
		words, text = shellWords(text)
		for _, word := range words {
			if m := quotedCall.FindStringSubmatch(word); m != nil {
				calls = append(calls, callsOf(line, strings.TrimSuffix(m[1], "]"), values)...)
			}
		}
		for _, words := range spelledOut(words, values) {
			at := slices.IndexFunc(words, func(w string) bool {
				return w == "rehydrate" ||
					strings.HasSuffix(w, "/rehydrate")
			})
			if at >= 0 && at+1 < len(words) && commandWord.MatchString(words[at+1]) {
				calls = append(calls, docCall{line: line, args: words[at+1:]})
			}
		}
	}
	return calls
}

// spelledOut returns words once for each choice among the values that they have.
func spelledOut(words []string, values map[string][][]string) [][]string {
	all := [][]string{nil}
	for _, word := range words {
		choice := [][]string{{word}}
		m := shellVariable.FindStringSubmatch(word)
		switch {
		case m != nil && values[m[1]] != nil:
			choice = values[m[1]]
		case m != nil && m[2] != "", word == "...": // any number of words, also none
			choice = [][]string{nil}
		case strings.Contains(word, "|"):
			choice = nil
			for each := range strings.SplitSeq(word, "|") {
				choice = append(choice, []string{each})
			}
		}
		var longer [][]string
		for _, before := range all {
			for _, more := range choice {
				longer = append(longer, slices.Concat(before, more))
			}
		}
		all = longer
	}
	return all
}

// shellWords splits the first command of a line as a shell does, and returns what comes behind it. It ends at a pipe, a
// redirection, a bracket, or where another begins. Variables stay as they are written; of $(...) only these signs stay.
func shellWords(text string) (words []string, rest string) {
	word, started, quote, depth := "", false, byte(0), 0
	end := func() {
		if started {
			words = append(words, word)
		}
		word, started = "", false
	}
	for i := 0; i < len(text); i++ {
		b := text[i]
		switch {
		case depth > 0 && b == '(':
			depth++
		case depth > 0 && b == ')':
			depth--
		case depth > 0: // within $(...)
		case quote != '\'' && strings.HasPrefix(text[i:], "$("):
			word, started, depth = word+"$()", true, 1
			i++
		case quote != 0 && b == quote:
			quote = 0
		case quote != 0:
			word += string(b)
		case b == '"' || b == '\'':
			quote, started = b, true
		case b == ' ':
			end()
		case b == '#' && !started:
			return words, ""
		case b == '>' || b == '<':
			if _, err := strconv.Atoi(word); err != nil { // 2> is one sign
				end()
			}
			return words, text[i+1:]
		case b == '|' && (!started || strings.HasPrefix(text[i:], "| ")), b == '&', b == ';', b == '(' && !started,
			b == ')':
			end()
			return words, text[i+1:]
		default:
			word, started = word+string(b), true
		}
	}
	end()
	return words, ""
}

// TestCalls holds how TestDocs reads a page and a script, and that it can fail.
func TestCalls(t *testing.T) {
	page := strings.Join([]string{
		"Say `rehydrate verify`, `rehydrate explain", // 1
		"ID` or `grant show|check X`, not `verify` or `audit`.",
		"",
		"    $ bin/rehydrate doctor -w dir [RELEASE] | head -2   # what is missing", // 4
		"    next: rehydrate run DIR and more words",
		"    $ rehydrate version \\",
		"        --json >out 2>err",
		"    for i in 1 2; do rehydrate explain $i/16 || exit; done", // 8
		"    seq 0 1 | parallel rehydrate explain {}/2",
		`    command: [sh, -c, "exec rehydrate verify -w /shared"]`,
		"",
		"`rehydrate status --exit-code`, `grant = \"required\"`", // 12
	}, "\n")
	script := strings.Join([]string{
		"both=(rehydrate explain a)", // 1
		"#   podman run rehydrate verify -w dir",
		`run "${both[@]}" -w w || status=$?`,
		`for job in verify "status --exit-code"; do`, // 4
		`	"$rehydrate" $job -w "$W" ${FLAGS-} >>x`,
		"  echo '$ rehydrate version'",
		`exec bin/rehydrate demo "$@"`,
	}, "\n")
	var got []string
	for _, c := range slices.Concat(pageCalls(page), scriptCalls(script)) {
		got = append(got, fmt.Sprintf("%d %t %s", c.line, c.inline, strings.Join(c.args, " ")))
	}
	want := []string{
		"1 true verify", "1 true explain ID", "2 true grant show X", "2 true grant check X", "4 false doctor -w dir",
		"6 false version --json", "8 false explain $i/16", "9 false explain {}/2", "10 false verify -w /shared",
		"12 true status --exit-code",
		"2 false verify -w dir", "3 false explain a -w w", "5 false verify -w $W", "5 false status --exit-code -w $W",
		"6 false version", "7 false demo",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	for _, c := range []struct {
		docCall
		want string // of the error
	}{
		{docCall{args: []string{"verify"}}, ""},
		{docCall{args: []string{"explain"}, inline: true}, ""},
		{docCall{args: []string{"select", "--n", "N"}, inline: true}, ""},
		{docCall{args: []string{"select", "--n"}, inline: true}, ""},
		{docCall{args: []string{"explain"}}, "rehydrate explain needs one ID"},
		{docCall{args: []string{"explain", "a", "b"}, inline: true}, "rehydrate explain takes"},
		{docCall{args: []string{"verfy"}, inline: true}, `unknown command "verfy"`},
		{docCall{args: []string{"labels", "counts"}}, `rehydrate labels has no command "counts"`},
		{docCall{args: []string{"verify", "--fast"}}, "rehydrate verify has no flag --fast"},
		{docCall{args: []string{"select", "x", "--n", "many"}}, "--n takes a whole number"},
		{docCall{args: []string{"select", "x", "--n"}}, "--n needs a value"},
	} {
		err := c.parse()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("rehydrate %s: the error is %v, want %q", strings.Join(c.args, " "), err, c.want)
		}
	}
}

var (
	messageRow = regexp.MustCompile("(?m)^\\| (`.*?`) \\| ")
	joinedText = regexp.MustCompile("[\"`] \\+\\s+[\"`]") // a text that goes on in the next line of code
)

// TestMessages: each message of docs/troubleshooting.md is one that the program has; "..." stands for what it fills in.
func TestMessages(t *testing.T) {
	var program strings.Builder
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		ext := filepath.Ext(path)
		if e.Type().IsRegular() && (ext == ".go" || ext == ".txt" || ext == ".tmpl") &&
			!strings.HasSuffix(path, "_test.go") {
			program.WriteString(read(t, path))
		}
		return nil
	})
	check(t, err)
	text := strings.Join(strings.Fields(joinedText.ReplaceAllString(program.String(), "")), " ")
	messages := 0
	for _, row := range messageRow.FindAllStringSubmatch(read(t, "../../docs/troubleshooting.md"), -1) {
		for _, span := range codeSpan.FindAllString(row[1], -1) {
			messages++
			for part := range strings.SplitSeq(strings.Trim(span, "`"), "...") {
				if part = strings.Trim(part, " "); !strings.Contains(text, part) {
					t.Errorf("the program prints no message with %q, of %s", part, span)
				}
			}
		}
	}
	if messages < 40 {
		t.Errorf("%d messages were found, want 40 at least", messages)
	}
}
