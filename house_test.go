// Package rehydrate_test holds the rules of the house: which package may import what.
package rehydrate_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
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
	{imports: []string{"net/http", "github.com/hashicorp/go-retryablehttp"}, only: []string{"pipeline/reddit", "pipeline/endpoint", "pipeline/review", "pipeline/redditemu", "pipeline/redditemu/hostile"},
		why: "one place paces, guards and logs every request"},
	{imports: []string{"github.com/parquet-go/parquet-go/..."}, only: []string{"pipeline/dataset", "pipeline/dataset/scan"},
		why: "its defaults are wrong for images; the settings stand in one place, and so do the checks of files of others"},
	{imports: []string{"github.com/corona10/goimagehash"}, only: []string{"dedupe"},
		why: "its faults on transparent, empty and flat images are guarded in one place"},
	{imports: []string{"github.com/schollz/progressbar/..."}, only: []string{"cmd/internal/console"},
		why: "one owner of stderr, so that progress and log lines never land inside one another"},
	{imports: []string{"github.com/spf13/cobra"}, only: []string{"cmd/rehydrate", "cmd/ocr", "cmd/internal/console"},
		why: "the engine never talks to a terminal"},
	{imports: []string{"github.com/hiddeco/sshsig", "golang.org/x/crypto/..."}, only: []string{"policy"},
		why: "what a signature proves is decided in one place"},
	{use: "os.Exit", only: []string{"cmd/rehydrate", "cmd/ocr", "scripts/mutants"},
		why: "a library returns errors"},
	{use: "os.Stdout", only: []string{"cmd/rehydrate", "cmd/ocr", "scripts/mutants"},
		why: "stdout belongs to the command"},
	{use: "fmt.Print", only: []string{}, why: "streams are passed in"},
	{use: "fmt.Printf", only: []string{}, why: "streams are passed in"},
	{use: "fmt.Println", only: []string{}, why: "streams are passed in"},
	{use: "time.Now", never: []string{"manifest", "policy", "dedupe", "labels", "pipeline/auditlog"},
		why: "a pure decision takes the time as an argument"},
	{imports: []string{"net", "net/http", "os/exec"}, never: []string{"manifest", "policy", "dedupe", "labels", "pipeline/auditlog"},
		why: "a pure decision asks nobody"},
	{use: "durable.HookKey", only: []string{}, why: "the hook before each step belongs to tests"},
	{imports: []string{"C"}, only: []string{"cmd/ocr"},
		why: "an auditor builds rehydrate without a C compiler"},
}

// leaves import nothing of the module's, and every package may import them.
var leaves = []string{"pipeline/contain", "pipeline/durable", "pipeline/route", "pipeline/secret", "manifest/jsonlist", "manifest/table", "manifest/keysort", "manifest/unpack", "pipeline/given"}

// layers says which of the module's own packages a package may import: arrows run downward only.
var layers = map[string][]string{
	"pipeline/durable":      {},
	"pipeline/clean":        {},
	"pipeline/route":        {},
	"pipeline/secret":       {},
	"pipeline/given":        {},
	"manifest/jsonlist":     {},
	"manifest/table":        {},
	"manifest/keysort":      {},
	"manifest/unpack":       {},
	"manifest/dump":         {"manifest"},
	"manifest":              {"pipeline/clean"},
	"policy":                {"manifest"},
	"dedupe":                {"manifest"},
	"labels":                {"manifest"},
	"pipeline/auditlog":     {"manifest"},
	"pipeline/reddit":       {"policy", "dedupe", "manifest"},
	"pipeline/redditemu":    {"manifest"},
	"pipeline/workspace":    {"pipeline/auditlog", "policy", "dedupe", "manifest"},
	"pipeline/ocr":          {"policy", "dedupe", "manifest"},
	"pipeline/language":     {"policy", "dedupe", "manifest"},
	"pipeline/dataset/scan": {"manifest"},
	"pipeline/dataset":      {"pipeline/clean", "pipeline/dataset/scan", "policy", "dedupe", "labels", "manifest"},
	"pipeline/contain":      {},
	"pipeline/diff":         {"pipeline/dataset/scan", "pipeline/state", "manifest"},
	"pipeline/pictures":     {"pipeline/dataset/scan", "policy", "manifest"},
	"pipeline/near":         {"pipeline/clean", "pipeline/pictures", "pipeline/page", "pipeline/contain", "pipeline/dataset", "policy", "dedupe", "manifest"},
	"pipeline/features":     {"pipeline/pictures", "policy", "dedupe", "manifest"},
	"pipeline/annotate":     {"manifest/dump", "pipeline/clean", "pipeline/copies", "pipeline/dataset", "pipeline/dataset/scan", "pipeline/state", "pipeline/study", "pipeline/workspace", "labels", "manifest"},
	"pipeline/review":       {"pipeline/annotate", "pipeline/state", "pipeline/workspace", "manifest"},
	"pipeline/page":         {},
	"pipeline/study":        {"pipeline/dataset/scan", "pipeline/workspace", "labels", "manifest"},
	"pipeline/models":       {"manifest/dump", "pipeline/endpoint", "pipeline/state", "pipeline/workspace", "policy", "dedupe", "labels", "manifest"},
	"pipeline/endpoint":     {},
	// reddit: the counts of requests, which a summary has.
	"pipeline/state": {"pipeline/auditlog", "pipeline/reddit", "pipeline/workspace", "pipeline/language", "pipeline/dataset",
		"policy", "dedupe", "labels", "manifest"},
	"pipeline/report": {"pipeline/state", "pipeline/page", "pipeline/auditlog", "pipeline/reddit", "pipeline/workspace", "pipeline/language", "pipeline/dataset",
		"policy", "dedupe", "labels", "manifest"},
	"pipeline/audit": {"pipeline/endpoint", "pipeline/dataset/scan", "pipeline/page", "pipeline/state", "pipeline/auditlog", "pipeline/reddit", "pipeline/reddit/sweep", "pipeline/workspace", "pipeline/dataset",
		"policy", "dedupe", "manifest"},
	"pipeline/reddit/sweep": {"pipeline/contain", "pipeline/reddit",
		"policy", "manifest"},
	// hostile: no package may import it, only tests do.
	"pipeline/redditemu/hostile": {"pipeline/redditemu",
		"manifest"},
	"pipeline/publish": {"pipeline/study", "pipeline/copies", "pipeline/state", "pipeline/workspace", "labels", "policy", "manifest"},
	"pipeline/reading": {"pipeline/state", "pipeline/workspace", "pipeline/ocr", "policy", "dedupe", "manifest"},
	"pipeline/cluster": {"pipeline/reading", "pipeline/state", "pipeline/workspace", "pipeline/ocr", "policy", "manifest"},
	"pipeline/copies":  {"pipeline/state", "pipeline/workspace", "pipeline/dataset", "pipeline/auditlog", "policy", "manifest"},
	"pipeline": {"pipeline/cluster", "pipeline/reading", "pipeline/copies", "pipeline/state", "pipeline/reddit/sweep", "pipeline/reddit", "pipeline/auditlog", "pipeline/workspace",
		"pipeline/ocr", "pipeline/language", "pipeline/dataset", "policy", "dedupe", "labels", "manifest"},
	// language: the dictionary that accepts words, the judgement of --filter. dataset: --parquet.
	"cmd/internal/console": {},
	"cmd/ocr":              {"cmd/internal/console", "pipeline/ocr", "pipeline/language", "pipeline/dataset", "policy", "manifest"},
	"cmd/rehydrate": {"manifest/dump", "pipeline/annotate", "pipeline/review", "pipeline/clean", "pipeline/dataset/scan", "cmd/internal/console", "pipeline", "pipeline/endpoint", "pipeline/cluster", "pipeline/copies", "pipeline/diff", "pipeline/near", "pipeline/pictures", "pipeline/features", "pipeline/models", "pipeline/report", "pipeline/study", "pipeline/publish", "pipeline/audit",
		"pipeline/state", "pipeline/auditlog", "pipeline/reddit", "pipeline/workspace", "pipeline/ocr", "pipeline/language",
		"pipeline/dataset", "pipeline/redditemu", "policy", "dedupe", "labels", "manifest"},
	"scripts/mutants":        {},
	"pipeline/language/data": {"pipeline/language"},
}

// TestHouse holds the layout of docs/design.md: who may import whom, and which part of the world is touched by which
// package. It also holds that an if statement opens with a declaration or with nothing, so that what it changes
// stands on a line of its own.
func TestHouse(t *testing.T) {
	met := map[string]bool{}
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
			checkLayer(t, folder, name, path, isTest)
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
			}
			return true
		})
	}, ".go")
	for folder := range layers {
		if !met[folder] {
			t.Errorf("the rules name %s, which does not exist: take it out of this test or put it back", folder)
		}
		delete(met, folder)
	}
	for folder := range met {
		if !isTestHelper(folder) {
			t.Errorf("package %s has no place in the house: add it to layers in this test and to docs/design.md", folder)
		}
	}
}

// isTestHelper reports whether only tests import the package in folder.
func isTestHelper(folder string) bool { return strings.HasSuffix(folder, "test") }

func checkLayer(t *testing.T, folder, file, path string, isTest bool) {
	t.Helper()
	own, ok := strings.CutPrefix(path, "rehydrate/")
	switch {
	case !ok:
	case own == "pipeline/redditemu":
		if !isTest && file != "cmd/rehydrate/demo.go" && folder != "pipeline/redditemu/hostile" {
			t.Errorf("%s imports %s: the emulator is for tests and demo; no answer of it may reach real data", file, path)
		}
	case !isTest && !isTestHelper(folder) && !slices.Contains(layers[folder], own) && !slices.Contains(leaves, own):
		t.Errorf("%s imports %s: arrows run downward only (docs/design.md, The house)", file, path)
	}
}

func (r rule) forbids(folder string) bool {
	if r.never != nil {
		return slices.Contains(r.never, folder)
	}
	return !slices.Contains(r.only, folder) && !isTestHelper(folder)
}

func matches(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		base, below := strings.CutSuffix(p, "/...")
		return path == base || below && strings.HasPrefix(path, base+"/")
	})
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
