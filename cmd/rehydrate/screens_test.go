package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"rehydrate/audit"
	"rehydrate/audit/verify"
	"rehydrate/curate/annotate"
	"rehydrate/curate/publish"
	"rehydrate/internal/safely"
	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/diff"
	"rehydrate/pipeline/state"
	"rehydrate/policy"
	"rehydrate/report"
	"rehydrate/study"
	"rehydrate/study/features"
	"rehydrate/study/models"
)

// screenValues are the values that commands print, by the screens that print them.
var screenValues = map[string]any{
	"annotate-export":   annotate.Sent{},
	"annotate-merge":    mergeAnswer{Merged: &annotate.Merged{}},
	"annotate-review":   reviewAnswer{},
	"audit":             auditAnswer{},
	"audit-interrupted": auditAnswer{},
	"statement":         audit.StatementCheck{},
	"log":               auditlog.FolderReport{},
	"merged":            mergedAnswer{}, "split": shardsAnswer{}, "work": workAnswer{},
	"dedupe": dedupeAnswer{}, "demo": demoLook{}, "diff": diff.Report{}, "doctor": doctorAnswer{},
	"explain":        report.Explanation{},
	"export":         state.CopyReport{},
	"export-digests": digestsAnswer{},
	"export-list":    copiesAnswer{},
	"export-adopted": state.CopyReport{}, "export-moved": movedAnswer{},
	"export-noted":     closedAnswer{},
	"features":         featuresAnswer{Table: &features.Table{}},
	"grant-show":       grantReport{Grant: &policy.Grant{}},
	"grant-check":      grantReport{Release: &policy.GrantedRelease{}},
	"init":             initAnswer{},
	"labels-agreement": study.Agreement{}, "labels-compare": study.Comparison{}, "labels-groups": study.Groups{},
	"labels-groups-csv":     study.Groups{},
	"labels-moderation":     study.Moderation{ModerationTable: labels.ModerationTable{Services: make([]labels.ServiceRow, 1)}},
	"labels-moderation-csv": study.Moderation{},
	"labels-score":          study.Scores{},
	"labels-split":          study.Split{},
	"labels-split-csv":      study.Split{},
	"labels-stats":          statsTables{},
	"labels-stats-csv":      statsTables{},
	"labels-weights":        study.Weighting{},
	"man":                   manAnswer{},
	"classify":              modelAnswer{},
	"moderate":              modelAnswer{},
	"rechecked":             recheckedAnswer{},
	"model-plan":            models.Estimate{}, "prompts": promptsAnswer{}, "ocr": state.Reread{},
	"ocr-plan":       ocrPlanAnswer{},
	"publish":        publish.Report{},
	"publish-review": publish.Review{},
	"purge":          purgeAnswer{},
	"purge-plan":     purgePlanAnswer{},
	"purge-all":      endAnswer{}, "purge-all-plan": endPlan{}, "recheck": recheckAnswer{},
	"report":   reportAnswer{},
	"run-plan": planAnswer{}, "select": selectAnswer{}, "status": statusReport{}, "run": runAnswer{},
	"tombstones":        stonesAnswer{},
	"tombstones-export": stonesFileAnswer{},
	"tombstones-lift":   liftAnswer{},
	"verify":            verify.Report{},
	"version":           versions{},
}

// TestScreens: every screen prints a value of which nothing is empty, and one of which everything is. A screen that is
// written wrong fails here and not where a user would see it.
func TestScreens(t *testing.T) {
	calls := regexp.MustCompile(`\b(?:answer|answerHolds|render)\((?:c, |w, )?"([a-z-]+)"`)
	files, err := filepath.Glob("*.go")
	check(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		check(t, err)
		for _, call := range calls.FindAllStringSubmatch(string(text), -1) {
			if _, ok := screenValues[call[1]]; !ok {
				t.Errorf("%s prints the screen %s, which has no value here", file, call[1])
			}
		}
	}
	for name, empty := range screenValues {
		t.Run(name, func(t *testing.T) {
			full := reflect.New(reflect.TypeOf(empty)).Elem()
			fill(full, acting, 0)
			for _, c := range []*command{{quiet: true}, {verbose: true}} {
				c.workspace, c.now = defaultWorkspace, time.Now
				for _, v := range append(variants(full.Interface()), empty) {
					if screens().Lookup(name) == nil {
						t.Fatal("there is no such screen")
					}
					var out strings.Builder
					check(t, safely.Do(func() error { return c.render(&out, name, v) }))
					if at := strings.IndexAny(out.String(), "\x1b\u202e"); at >= 0 {
						t.Fatalf("a terminal acts on what a file is called: %q", out.String()[max(0, at-60):])
					}
				}
			}
		})
	}
}

// variants are a full value, once with each word on which its screen turns.
func variants(v any) []any {
	a, ok := v.(auditAnswer)
	if !ok {
		return []any{v}
	}
	var all []any
	for _, verdict := range []audit.Verdict{audit.Pass, audit.Fail, audit.Undecided, audit.Overdue} {
		a.Verdict = verdict
		all = append(all, a)
	}
	return all
}

// acting is a word on which a terminal acts: it clears the screen, and turns the direction of writing.
const acting = "word\x1b[2J\u202e"

// fill gives every part of v a value: two elements each, to a depth that no screen goes beyond.
func fill(v reflect.Value, word string, depth int) {
	if depth > 14 || !v.CanSet() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(word)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(2)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(2)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(2.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), word, depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), word, depth+1)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, word, depth+1)
		fill(value, word, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2033, 6, 1, 12, 0, 0, 0, time.UTC)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), word, depth+1)
		}
	}
}

// TestPercent: 100 % is said only where nothing is missing.
func TestPercent(t *testing.T) {
	for _, c := range []struct {
		n, of int
		want  string
	}{{262, 263, "99"}, {263, 263, "100"}, {1, 3, "33"}, {0, 0, "0"}, {0, 5, "0"}} {
		if got := percent(c.n, c.of); got != c.want {
			t.Errorf("percent(%d, %d) = %s, want %s", c.n, c.of, got, c.want)
		}
	}
}

// TestCell: a cell that is cut says so, for the end of a number is what it is worth.
func TestCell(t *testing.T) {
	for text, want := range map[string]string{"9.007199254740992e+16": "9.007199254740992...",
		"12345678901234567890": "12345678901234567890", "": "", "a\nb": `a\nb`} {
		if got := cell(text); got != want {
			t.Errorf("cell(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestChangedText: a text whose words are the same is told apart from one with others.
func TestChangedText(t *testing.T) {
	for want, words := range map[string]*diff.WordChange{
		"  text: other order or spacing": {}, "  text +1 -0 words": {Gained: []string{"dog"}},
	} {
		var b strings.Builder
		check(t, (&command{}).render(&b, "change", diff.Change{Kind: "changed", Text: words}))
		if got := b.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestWhatTombstones: what a tombstone of any source keeps out is not counted under that bare word.
func TestWhatTombstones(t *testing.T) {
	for want, n := range map[string]state.Count{
		"kept out by tombstones": {Outcome: manifest.Removed, Reason: "tombstone"},
		"by their authors":       {Outcome: manifest.Deleted, Reason: "tombstone"},
		"on request":             {Outcome: manifest.Removed, Reason: state.Requested("privacy")},
	} {
		if got := what(n); got != want {
			t.Errorf("%+v: %q, want %q", n, got, want)
		}
	}
}

// TestScreensAreNear: a screen lies beside the code of its command.
func TestScreensAreNear(t *testing.T) {
	files, err := screenFiles.ReadDir("screens")
	check(t, err)
	for _, f := range files {
		beside := strings.TrimSuffix(f.Name(), ".txt") + ".go"
		if _, err := os.Stat(beside); err != nil && f.Name() != "common.txt" {
			t.Errorf("screens/%s: %v", f.Name(), err)
		}
	}
	var unused []string
	for _, screen := range screens().Templates() {
		used := fmt.Sprintf("%q", screen.Name())
		found := strings.HasSuffix(screen.Name(), ".txt") || screen.Name() == "screens" ||
			screenValues[screen.Name()] != nil
		for _, f := range files {
			text, err := screenFiles.ReadFile("screens/" + f.Name())
			check(t, err)
			found = found || regexp.MustCompile(`(?:template|table "\w+") `+used).Match(text)
		}
		if !found {
			unused = append(unused, screen.Name())
		}
	}
	if slices.Sort(unused); len(unused) > 0 {
		t.Errorf("no command prints %q", unused)
	}
}
