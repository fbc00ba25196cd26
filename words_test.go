package rehydrate_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// manner are turns of phrase that are not plain English, in code, help, messages and docs.
var manner = regexp.MustCompile(`(?:[^e]|[^r]e) is no (?:[^lm]|l[^o]|m[^o])|\banew\b|\b(?:tells?|told) of\b|\b[Nn]obody\b|; "" where`)

// sources yields the files of the project with one of the suffixes to f, with their text.
func sources(t *testing.T, f func(name, text string), suffixes ...string) {
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
		for _, suffix := range suffixes {
			if strings.HasSuffix(name, suffix) && name != "words_test.go" {
				b, err := os.ReadFile(name)
				if err != nil {
					return err
				}
				f(name, string(b))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestWords holds the language: subject, verb, object. Tests are still to follow.
func TestWords(t *testing.T) {
	sources(t, func(name, text string) {
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".txt") && filepath.Base(filepath.Dir(name)) != "help" {
			return
		}
		for i, line := range strings.Split(text, "\n") {
			if found := manner.FindString(line); found != "" {
				t.Errorf("%s:%d: %q is not plain English: say it with subject, verb and object", name, i+1, found)
			}
		}
	}, ".go", ".md", ".html", ".txt")
}

// TestSizes holds that the engine is read in one sitting, and that no package grows beyond what one person knows.
func TestSizes(t *testing.T) {
	most := map[string]int{"pipeline": 3000, "cmd/rehydrate": 6000, "pipeline/redditemu": 5000}
	lines := map[string]int{}
	sources(t, func(name, text string) {
		if !strings.HasSuffix(name, "_test.go") {
			lines[filepath.ToSlash(filepath.Dir(name))] += strings.Count(text, "\n")
		}
	}, ".go")
	for folder, n := range lines {
		bound, ok := most[folder]
		if !ok {
			bound = 5000
		}
		if n > bound {
			t.Errorf("%s has %d lines of code, and at most %d are allowed: find the part that is an idea of its own", folder, n, bound)
		}
	}
}
