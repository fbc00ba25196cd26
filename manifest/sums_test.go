package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit"
)

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// wrongFiles gives the problems of err as "file:line message", the file below dir.
func wrongFiles(t *testing.T, dir string, err error) (all []string) {
	t.Helper()
	var problems *Problems
	if err != nil && !errors.As(err, &problems) {
		t.Fatalf("error %v is not a *Problems", err)
	}
	if problems == nil {
		return nil
	}
	for _, p := range problems.List {
		name, _ := filepath.Rel(dir, p.File)
		if p.Line > 0 {
			name += fmt.Sprint(":", p.Line)
		}
		all = append(all, name+" "+p.Message)
		if !strings.HasSuffix(p.Hint, "delete "+filepath.Join(dir, SumsName)+" first") {
			t.Errorf("%s: hint %q", p.File, p.Hint)
		}
	}
	return all
}

// TestSums: lines as sha256sum and people who edit them write them, and what is none.
func TestSums(t *testing.T) {
	const noLine = "the line is not a digest and a name, as sha256sum prints them"
	one, two := digestOf("1"), digestOf("2")
	for _, c := range []struct {
		text string
		want string // names, each with the beginning of its digest
		says []string
	}{
		{one + "  a.csv\n" + two + "  b c.csv\n", "a.csv " + one[:4] + ", b c.csv " + two[:4], nil},
		{one + " *a.csv\r\n" + two + " *data/b.csv\r\n", "a.csv " + one[:4] + ", data/b.csv " + two[:4], nil},
		{"\ufeff" + strings.ToUpper(one) + "  ./a.csv\n", "a.csv " + one[:4], nil},
		{"SHA256 (a (1).csv) = " + one + "\n# of today\n\n", "a (1).csv " + one[:4], nil},
		{`\` + one + `  a\\b\n` + "\n", "a\\b\n " + one[:4], nil},
		{one + "  a.csv\n" + one + "  ./a.csv\n", "a.csv " + one[:4], nil},
		{"", "", []string{"SHA256SUMS it lists no file"}},
		{"# nothing\n", "", []string{"SHA256SUMS:1 it lists no file"}},
		{one + "  a.csv\n" + two + "  b.c", "", []string{"SHA256SUMS:2 the line is cut off"}},
		{one[1:] + "  a.csv\n" + one + "  \n\x00\x00\n", "",
			[]string{"SHA256SUMS:1 " + noLine, "SHA256SUMS:2 " + noLine, "SHA256SUMS:3 " + noLine}},
		{one + "  ../a.csv\n" + one + "  /a.csv\n" + one + "  a/../../b\n", "", []string{
			`SHA256SUMS:1 "../a.csv" is not in the release folder`, `SHA256SUMS:2 "/a.csv" is not in the release folder`,
			`SHA256SUMS:3 "a/../../b" is not in the release folder`}},
		{one + "  a.csv\n" + two + "  ./a.csv\n", "", []string{`SHA256SUMS:2 "./a.csv" has another digest in a line above`}},
		{strings.Repeat("#\n", maxSums/2+1), "", []string{"SHA256SUMS the file is larger than 4 MiB"}},
	} {
		dir := folder(t, map[string]string{SumsName: c.text})
		s, err := readSums(dir)
		if diff := cmp.Diff(c.says, wrongFiles(t, dir, err)); diff != "" {
			t.Errorf("%.200q (-want +got):\n%s", c.text, diff)
		}
		if err != nil {
			continue
		}
		var got []string
		for _, name := range slices.Sorted(maps.Keys(s.list)) {
			got = append(got, name+" "+s.list[name][:4])
		}
		testkit.Same(t, c.text, c.want, strings.Join(got, ", "))
	}
}

// TestAsPublished: of a folder with SHA256SUMS, what the release reads has to be as it is listed; nothing else has to.
func TestAsPublished(t *testing.T) {
	const (
		changed = " the file is not as it was published: its digest is not the one in SHA256SUMS"
		missing = " the file is missing: SHA256SUMS lists it"
	)
	one := map[string]string{SettingsName: figsimTOML, "a.csv": figsimHeader + testRow, "policy.toml": "p",
		TombstonesName: "t", RevocationsName: "r", RevocationsName + SignatureSuffix: "s", "datasheet.md": "d"}
	several := map[string]string{
		SettingsName: strings.Replace(figsimTOML, "a.csv", "data", 1) + "tombstones = 'list/gone.csv'\n",
		"data/a.csv": figsimHeader + testRow, "data/b.csv": figsimHeader + strings.Replace(testRow, "abc", "abd", 1),
		"data/README": "x", "list/gone.csv": "t", TombstonesName: "not read"}
	pattern := maps.Clone(several)
	pattern[SettingsName] = "name = 'x'\nschema = 'figsim'\n[[file]]\npath = 'data/?.csv'\n"
	for name, c := range map[string]struct {
		files  map[string]string
		change map[string]string // name -> text; "" takes the file away
		want   []string
	}{
		"whole":               {one, nil, nil},
		"whole, of several":   {several, nil, nil},
		"read by nobody":      {one, map[string]string{"datasheet.md": "", "more.txt": "x"}, nil},
		"read by nobody here": {several, map[string]string{TombstonesName: "x", "data/README": ""}, nil},
		"settings":            {one, map[string]string{SettingsName: "name = "}, []string{SettingsName + changed}},
		"no settings":         {one, map[string]string{SettingsName: ""}, []string{SettingsName + missing}},
		"annotations":         {one, map[string]string{"a.csv": figsimHeader}, []string{"a.csv" + changed}},
		"no annotations":      {one, map[string]string{"a.csv": ""}, []string{"a.csv" + missing}},
		"all beside them": {one, map[string]string{"policy.toml": "x", TombstonesName: "x", RevocationsName: "",
			RevocationsName + SignatureSuffix: ""}, []string{"policy.toml" + changed, RevocationsName + missing,
			RevocationsName + SignatureSuffix + missing, TombstonesName + changed}},
		"one of several":       {several, map[string]string{"data/b.csv": figsimHeader}, []string{"data/b.csv" + changed}},
		"not one of several":   {several, map[string]string{"data/b.csv": ""}, []string{"data/b.csv" + missing}},
		"not one of a pattern": {pattern, map[string]string{"data/b.csv": ""}, []string{"data/b.csv" + missing}},
		"under another name":   {several, map[string]string{"list/gone.csv": ""}, []string{"list/gone.csv" + missing}},
	} {
		sums := ""
		for _, file := range slices.Sorted(maps.Keys(c.files)) {
			sums += digestOf(c.files[file]) + "  " + file + "\n"
		}
		files := maps.Clone(c.files)
		files[SumsName] = sums
		maps.Copy(files, c.change)
		maps.DeleteFunc(files, func(_, text string) bool { return text == "" })
		dir := folder(t, files)
		_, err := Open(dir, Options{AsPublished: true})
		if diff := cmp.Diff(c.want, wrongFiles(t, dir, err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if c.want == nil {
			continue
		}
		// Whoever changed it on purpose hears of another fault, or of none.
		_, asked := Open(dir, Options{})
		failed := os.Remove(filepath.Join(dir, SumsName))
		_, err = Open(dir, Options{AsPublished: true})
		if failed != nil || err != nil && strings.Contains(err.Error(), SumsName) || fmt.Sprint(err) != fmt.Sprint(asked) {
			t.Errorf("%s: without SHA256SUMS %v, %v; not asked about it %v", name, failed, err, asked)
		}
	}
}

// FuzzSums: no file of digests panics; every name that it lists is below the folder, and its digest is one.
func FuzzSums(f *testing.F) {
	sum := digestOf("1")
	f.Add(sum + "  a.csv\n" + sum + " *../b\r\n")
	f.Add(`\` + sum + `  a\nb` + "\nSHA256 (c) = " + sum + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		s := &sums{dir: "d", list: map[string]string{}}
		if err := s.parse([]byte(text)); (err == nil) != (len(s.list) > 0 && len(wrongFiles(t, "d", err)) == 0) {
			t.Errorf("%q: %v, and it lists %q", text, err, s.list)
		}
		for name, sum := range s.list {
			if b, err := hex.DecodeString(sum); !filepath.IsLocal(name) || err != nil || len(b) != sha256.Size {
				t.Errorf("%q lists %q with %q", text, name, sum)
			}
		}
	})
}
