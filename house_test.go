// Package rehydrate_test holds the rules of the house: which package may import what.
package rehydrate_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// A rule forbids an import, or a use, outside the packages that own it.
type rule struct {
	imports []string // import paths; a trailing /... covers those below
	use     string   // "pkg.Name": a selector that is forbidden, instead of an import
	only    []string // the module-relative folders in which it is allowed; nil with never set
	never   []string // the folders in which it is forbidden; nil means everywhere but only
	tests   bool     // the rule holds for _test.go files as well
	why     string
}

var rules = []rule{
	{imports: []string{"github.com/otiai10/gosseract/..."}, only: []string{"cmd/ocr"}, tests: true,
		why: "a C call can be neither cancelled nor survived: Tesseract lives in worker processes alone"},
	{imports: []string{"net/http"}, only: []string{"internal/polite", "pipeline/reddit", "study/endpoint",
		"curate/review", "pipeline/redditemu", "pipeline/redditemu/hostile"},
		why: "what asks a server goes through internal/polite; review and redditemu are servers for this machine alone"},
	{imports: []string{"github.com/hashicorp/go-retryablehttp"}, only: []string{"internal/polite"},
		why: "what is asked again, and after how long, is decided in one place"},
	{imports: []string{"github.com/digitorus/..."}, only: []string{"audit"},
		why: "a time stamp is asked for and checked in one place, where the library's panics are caught"},
	{imports: []string{"github.com/parquet-go/parquet-go/..."},
		only: []string{"pipeline/dataset", "pipeline/dataset/scan"},
		why:  "its defaults are wrong for images; the settings stand in one place, and so do the checks of files of others"},
	{imports: []string{"github.com/apache/arrow-go/...", "github.com/google/flatbuffers/..."}, only: []string{"audit"},
		why: "its panics on damaged files are caught, and its memory is bounded, in one place"},
	{imports: []string{"github.com/corona10/goimagehash"}, only: []string{"dedupe"},
		why: "its faults on transparent, empty and flat images are guarded in one place"},
	{imports: []string{"github.com/schollz/progressbar/..."}, only: []string{"cmd/internal/console"},
		why: "one owner of stderr, so that progress and log lines never land inside one another"},
	{imports: []string{"github.com/spf13/cobra"}, only: []string{"cmd/rehydrate", "cmd/ocr", "cmd/internal/console"},
		why: "the engine never talks to a terminal"},
	{imports: []string{"github.com/hiddeco/sshsig", "golang.org/x/crypto/..."}, only: []string{"policy"},
		why: "what a signature proves is decided in one place"},
	{use: "image.Decode", only: []string{}, why: "a decoder that some package registers would be reached"},
	{use: "jpeg.Decode", only: []string{"internal/picture"},
		why: "whether a file may be decoded is decided in one place, before"},
	{use: "png.Decode", only: []string{"internal/picture"},
		why: "whether a file may be decoded is decided in one place, before"},
	{use: "gif.Decode", only: []string{"internal/picture"},
		why: "whether a file may be decoded is decided in one place, before"},
	{use: "webp.Decode", only: []string{"internal/picture"},
		why: "whether a file may be decoded is decided in one place, before"},
	{use: "os.Exit", only: []string{"cmd/rehydrate", "cmd/ocr", "tools/mutants", "tools/systems"},
		why: "a library returns errors"},
	{use: "os.Stdout", only: []string{"cmd/rehydrate", "cmd/ocr", "tools/mutants"},
		why: "stdout belongs to the command"},
	{use: "fmt.Print", only: []string{}, why: "streams are passed in"},
	{use: "fmt.Printf", only: []string{}, why: "streams are passed in"},
	{use: "fmt.Println", only: []string{}, why: "streams are passed in"},
	{use: "time.Now", never: []string{"manifest", "manifest/guess", "manifest/value", "policy", "dedupe", "labels",
		"pipeline/auditlog"},
		why: "a pure decision takes the time as an argument"},
	{imports: []string{"net", "net/http", "os/exec"},
		never: []string{"manifest", "manifest/guess", "manifest/value", "policy", "dedupe", "labels", "pipeline/auditlog"},
		why:   "a pure decision asks nobody"},
	{imports: []string{"os", "io", "bufio", "encoding/..."}, never: []string{"labels"},
		why: "labels takes values: study opens the files and reads their formats"},
	{use: "durable.HookKey", only: []string{}, why: "the hook before each step belongs to tests"},
	{imports: []string{"C"}, only: []string{"cmd/ocr"},
		why: "an auditor builds rehydrate without a C compiler"},
}

// floors are the folders of the top level, the highest first: a package imports only from lower floors, and from its
// own folder. Folders that share a floor do not know each other.
var floors = [][]string{
	{"tools"},            // a module of its own: what developers run and compare with; nothing imports it
	{"cmd"},              // flags, printing, exit codes: whatever a library could do is below
	{"curate", "audit"},  // making datasets, and judging any folder: both start from what the engine and the study wrote
	{"study", "report"},  // numbers and pages of a workspace
	{"pipeline"},         // the engine and the stages that it is made of
	{"labels", "policy"}, // pure decisions about values
	{"dedupe", "manifest"},
	{"internal"}, // leaves: a tool that the product's users would not name
}

// inPipeline says which packages of pipeline a package of pipeline imports: engine -> copies -> state -> what a state
// is made of. What is not a key imports none of them.
var inPipeline = map[string][]string{
	// the engine: every phase of a job, in order
	"pipeline": {"auditlog", "cluster", "copies", "dataset", "language", "ocr", "reading", "reddit", "reddit/calls",
		"reddit/sweep", "state", "workspace"},
	// shards are read as a run reads, and are part of a workspace
	"pipeline/cluster": {"ocr", "reading", "state", "workspace"},
	// the pool asks its workers what the detector of lines wants to know
	"pipeline/ocr":     {"ocr/layout"},
	"pipeline/reading": {"ocr", "ocr/layout", "state", "workspace"},
	// a copy is a dataset that the workspace's log knows
	"pipeline/copies": {"auditlog", "dataset", "state", "workspace"},
	// a run's counts are part of its notes
	"pipeline/state": {"auditlog", "dataset", "language", "reddit/calls", "workspace"},
	// the log lies in the workspace's database
	"pipeline/workspace":         {"auditlog"},
	"pipeline/dataset":           {"dataset/scan"},
	"pipeline/dataset/pictures":  {"dataset/scan"},
	"pipeline/diff":              {"dataset", "dataset/scan", "state", "workspace"},
	"pipeline/reddit":            {"reddit/calls"},
	"pipeline/reddit/sweep":      {"reddit"},
	"pipeline/language/data":     {"language"},
	"pipeline/redditemu/hostile": {"redditemu"},
}

// apart are packages that must not reach others, directly or through what they import, each with its reason.
var apart = []struct{ from, never, why string }{
	{"cmd/ocr", "pipeline/workspace", "the worker reads pixels, and knows of no workspace"},
	{"cmd/ocr", "pipeline/reddit", "the worker runs where there is no network"},
	{"manifest", "manifest/guess", "a release says what its columns mean: nothing in it is guessed"},
	{"manifest/value", "manifest", "readers of values lie below those who read and those who guess"},
	{"pipeline/state", "pipeline/reddit", "what a workspace means is read from the disk; reddit/calls has the counts"},
	{"pipeline/copies", "pipeline/reddit", "a copy is made and purged from what the workspace has"},
	{"pipeline/diff", "pipeline/reddit", "two datasets are compared without asking anybody"},
	{"audit", "study/endpoint", "an audit asks no model; what it shares with that client is in internal/polite"},
	{"report", "pipeline/reddit", "a page is made of what a run has stored"},
}

// TestHouse holds the layout of docs/design.md: who may import whom, and which part of the world is touched by which
// package. It also holds that an if statement opens with a declaration or with nothing, so that what it changes
// stands on a line of its own.
func TestHouse(t *testing.T) {
	met, module := map[string]bool{}, modulePath(t)
	sources(t, func(name, text string) {
		folder, isTest := filepath.ToSlash(filepath.Dir(name)), strings.HasSuffix(name, "_test.go")
		if folder == "." {
			return
		}
		met[folder] = true
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if !isTest {
				if own, ok := strings.CutPrefix(path, module+"/"); ok {
					checkArrow(t, folder, filepath.ToSlash(name), own)
				}
			}
			for _, r := range rules {
				if (!isTest || r.tests) && r.forbids(folder) && matches(r.imports, path) {
					t.Errorf("%s imports %s: %s", name, path, r.why)
				}
			}
		}
		if isTest {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				x, _ := n.X.(*ast.Ident)
				for _, r := range rules {
					if x != nil && r.use == x.Name+"."+n.Sel.Name && r.forbids(folder) {
						t.Errorf("%s: uses %s: %s", fset.Position(n.Pos()), r.use, r.why)
					}
				}
			case *ast.IfStmt:
				if assigned, ok := n.Init.(*ast.AssignStmt); n.Init != nil && (!ok || assigned.Tok != token.DEFINE) {
					t.Errorf("%s: an if statement opens with := or nothing", fset.Position(n.Pos()))
				}
			case *ast.SwitchStmt:
				if n.Init != nil && n.Tag == nil {
					t.Errorf("%s: what a switch decides on is computed before it", fset.Position(n.Pos()))
				}
			}
			return true
		})
	}, ".go")
	for folder := range inPipeline {
		if !met[folder] {
			t.Errorf("the rules name %s, which does not exist: take it out of this test or put it back", folder)
		}
	}
	for _, r := range rules {
		for _, folder := range slices.Concat(r.only, r.never) {
			if !met[folder] {
				t.Errorf("the rules name %s, which does not exist: take it out of this test or put it back", folder)
			}
		}
	}
}

// forTests are packages that only tests import.
var forTests = []string{"internal/testkit", "internal/testkit/brokenoff", "internal/testkit/browser",
	"internal/testkit/duckdb", "internal/testkit/measure", "internal/testkit/modelserver",
	"manifest/table/tabletest", "pipeline/redditemu/hostile"}

// modulePath returns the path of the module, which go.mod alone says.
func modulePath(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	return modfile.ModulePath(b)
}

// checkArrow holds the arrows of floors, inPipeline and forTests: file, in folder, imports own, another folder.
func checkArrow(t *testing.T, folder, file, own string) {
	t.Helper()
	if slices.Contains(forTests, own) && !slices.Contains(forTests, folder) {
		t.Errorf("%s imports %s, which is for tests alone", file, own)
	}
	if own == "pipeline/redditemu" && file != "cmd/rehydrate/demo.go" && folder != "pipeline/redditemu/hostile" {
		t.Errorf("%s imports %s: the emulator is for tests and demo; no answer of it may reach real data", file, own)
	}
	from, to := floorOf(folder), floorOf(own)
	if from < 0 {
		t.Errorf("%s: folder %s has no floor: add it to floors in this test and to docs/design.md", file, folder)
	}
	if !sameTop(folder, own) && to <= from {
		t.Errorf("%s imports %s: arrows run downward only (docs/design.md, The house)", file, own)
	}
	if strings.HasPrefix(folder, "pipeline") && strings.HasPrefix(own, "pipeline") &&
		!slices.Contains(inPipeline[folder], strings.TrimPrefix(own, "pipeline/")) {
		t.Errorf("%s imports %s: not an arrow of inPipeline in this test", file, own)
	}
}

// floorOf returns the floor of a package by its folder, the highest being 0, or -1.
func floorOf(folder string) int {
	top, _, _ := strings.Cut(folder, "/")
	return slices.IndexFunc(floors, func(on []string) bool { return slices.Contains(on, top) })
}

func sameTop(a, b string) bool {
	a, _, _ = strings.Cut(a, "/")
	b, _, _ = strings.Cut(b, "/")
	return a == b
}

// TestApart holds what no package may reach through all that it imports.
func TestApart(t *testing.T) {
	for _, r := range apart {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./"+r.from).CombinedOutput()
		if err != nil {
			t.Fatalf("go list -deps ./%s: %v\n%s", r.from, err, out)
		}
		if _, err := os.Stat(r.never); err != nil {
			t.Errorf("the rules name %s, which does not exist: take it out of this test or put it back", r.never)
		}
		if slices.Contains(strings.Fields(string(out)), modulePath(t)+"/"+r.never) {
			t.Errorf("%s reaches %s: %s", r.from, r.never, r.why)
		}
	}
}

// sources yields the project's files with the given suffix to f, with their text.
func sources(t *testing.T, f func(name, text string), suffix string) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if name != "." && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata" || e.Name() == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, suffix) {
			return nil
		}
		b, err := os.ReadFile(name)
		if err == nil {
			f(name, string(b))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (r rule) forbids(folder string) bool {
	if r.never != nil {
		return slices.Contains(r.never, folder)
	}
	return !slices.Contains(r.only, folder) && !slices.Contains(forTests, folder)
}

func matches(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		base, below := strings.CutSuffix(p, "/...")
		return path == base || below && strings.HasPrefix(path, base+"/")
	})
}

// TestDesign holds that docs/design.md names every package, and that the packages and files which it and
// docs/decisions.md name exist.
func TestDesign(t *testing.T) {
	page, err := os.ReadFile("docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	_, house, _ := strings.Cut(string(page), "\n## The house\n")
	house, _, _ = strings.Cut(house, "\n## ")
	named := map[string]bool{"tools": true}
	for span := range strings.SplitSeq(house, "`") {
		named[span] = true
	}
	met, files := map[string]bool{}, map[string]bool{}
	sources(t, func(name, _ string) {
		name = filepath.ToSlash(name)
		met[path.Dir(name)], files[name], files[path.Base(name)] = true, true, true
	}, ".go")
	delete(met, ".")
	decisions, err := os.ReadFile("docs/decisions.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, span := range strings.Split(string(page)+string(decisions), "`") {
		if i%2 == 1 && path.Ext(span) == ".go" && !files[span] && !files["pipeline/"+span] {
			t.Errorf("docs/design.md or docs/decisions.md names %s, which is no file", span)
		}
	}
	for folder := range met {
		if !named[folder] {
			t.Errorf("docs/design.md does not name package %s", folder)
		}
	}
	for _, row := range strings.Split(house, "\n") {
		cells := strings.Split(row, "|")
		if len(cells) < 3 {
			continue
		}
		for i, span := range strings.Split(cells[1], "`") {
			if i%2 == 1 && span != "tools" && !met[span] {
				t.Errorf("docs/design.md names %s, which is no package", span)
			}
		}
	}
}

// TestWithoutCgo builds what an auditor builds: rehydrate without a C compiler, stripped, under 60 MB.
func TestWithoutCgo(t *testing.T) {
	if testing.Short() {
		t.Skip("links the program; scripts/test runs it")
	}
	bin := filepath.Join(t.TempDir(), "rehydrate")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, "./cmd/rehydrate")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("CGO_ENABLED=0 go build ./cmd/rehydrate: %v\n%s", err, out)
	}
	info, err := os.Stat(bin)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 60e6 {
		t.Errorf("rehydrate has %d bytes: the emulator, SQLite and all the rest are to stay under 60 MB", info.Size())
	}
}
