package study

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
)

// writer writes files of a folder that is made for the test, and returns the path of each.
func writer(t *testing.T) func(name, text string) string {
	dir := t.TempDir()
	return func(name, text string) string {
		path := filepath.Join(dir, name)
		testkit.OK(t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
		return path
	}
}

// TestColumns: annotators who have a column each in one file are compared by the labels of the columns, or of a
// release.
func TestColumns(t *testing.T) {
	write := writer(t)
	const rows = "post_id,A 1,A 2,A 3,tone\nabc1,1,1.0,3,1\nabc2,2,2,2,2\nabc3,3,3.0,3,1\nabc4,1,,1,3\n"
	file := write("a.csv", rows)
	release := write("r/release.toml", "name = \"r\"\nmanifest = \"m.csv\"\n"+
		"[[category]]\nname = \"tone\"\nkind = \"ordinal\"\nlabels = [{code = \"1\"}, {code = \"2\"}, {code = \"3\"}]\n"+
		"[labels.tone]\n\"1.0\" = \"1\"\n\"3.0\" = \"3\"\n"+
		"[[category]]\nname = \"other\"\nkind = \"single\"\nlabels = [{code = \"x\"}]\n")
	write("r/m.csv", "id,tone,other\nabc1,1,x\nabc2,2,x\nabc3,3,x\n")
	all := []string{"A 1", "A 2", "A 3"}
	names, err := CategoriesOf(t.Context(), file, all, filepath.Dir(release))
	testkit.OK(t, err)
	testkit.Same(t, "categories with their labels", strings.Join(names, ", "), "tone")
	for _, test := range []struct {
		of      Annotations
		entries int
		says    string // distance of alpha, or the error
	}{
		{Annotations{Columns: all}, 4, "nominal for label"},
		{Annotations{Columns: all[:2]}, 3, "nominal for label"},
		{Annotations{Columns: all, Release: filepath.Dir(release)}, 3, "ordinal for tone"},
		{Annotations{Columns: all, Release: filepath.Dir(release), Category: "tone"}, 3, "ordinal for tone"},
		{Annotations{Columns: all, Release: filepath.Dir(release), Category: "x"}, 0,
			`no category "x"; it has tone, other`},
		{Annotations{Columns: all, Release: filepath.Dir(release), Category: "other"}, 0,
			`"1" is not a label of category other`},
		{Annotations{Columns: []string{"A 1", "tome"}}, 0, `it lacks the column "tome"`},
		{Annotations{Columns: all[:1]}, 0, "--columns needs the columns of two annotators at least"},
		{Annotations{Columns: []string{"A 1", "A 2", "A 1"}}, 0, "--columns names a column twice"},
		{Annotations{Columns: all, Category: "tone"}, 0, "--category needs --release"},
		{Annotations{Columns: all, Files: []string{file, release}}, 0, "there are 2 files"},
	} {
		if test.of.Files == nil {
			test.of.Files = []string{file}
		}
		got, err := Agree(t.Context(), test.of)
		if test.entries == 0 {
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%+v: %v, want %s", test.of, err, test.says)
			}
			continue
		}
		testkit.OK(t, err)
		if len(got.Categories) != 1 || got.Categories[0].Entries != test.entries ||
			strings.Join(got.Distances(), ";") != test.says || len(got.Annotators) != len(test.of.Columns) {
			t.Errorf("%+v: %+v", test.of, got.Agreement)
		}
	}
}

// TestColumnsAsk: columns whose labels may have an order, or that may hold several labels in a cell, are compared label
// by label, and the answer asks for the release that says what they are.
func TestColumnsAsk(t *testing.T) {
	write := writer(t)
	release := func(kind string) string {
		write(kind+"/m.csv", "id,tone\nabc1,1\nabc2,2\n")
		return write(kind+"/release.toml", "name = \"p\"\nmanifest = \"m.csv\"\n[[category]]\nname = \"tone\"\n"+
			"kind = \""+kind+"\"\nlabels = [{code = \"1\"}, {code = \"2\"}, {code = \"3\"}]\n")
	}
	for _, test := range []struct {
		rows, release, scales, sign string
	}{
		{"abc1,1,1\nabc2,2,3\nabc3,2,2\n", "", "label", ""},
		{"abc1,1,1\nabc2,2,3\nabc3,2,2\n", release("single"), "tone", ""},
		{"abc1,1,1\nabc2,2,3\nabc3,2,2\n", release("ordinal"), "", ""},
		{"abc1,yes,yes\nabc2,no,yes\nabc3,no,no\n", "", "", ""},
		{"abc1,sad|numb,sad|numb\nabc2,sad,angry\nabc3,angry,sad\n", "", "", "|"},
		{"abc1,sad; numb,numb;sad\nabc2,angry,angry\n", "", "", ";"},
		{"abc1,sad|numb,well\nabc2,well,well\n", "", "", ""},
		{"abc1,\"well, no\",yes\nabc2,yes,yes\n", "", "", ""},
	} {
		file := write("a.csv", "id,A,B\n"+test.rows)
		got, err := Agree(t.Context(), Annotations{Files: []string{file}, Columns: []string{"A", "B"}, Release: test.release})
		testkit.OK(t, err)
		testkit.Same(t, test.rows+test.release, strings.Join(got.Scales, " ")+"/"+got.SeveralSign+"/"+got.Order,
			test.scales+"/"+test.sign+"/of --columns")
	}
}

// TestColumnsOwn: what the cells of columns are as labels of their own: words for a missing value are no answer, words
// for yes and no are one label each, and columns that share no label are not compared.
func TestColumnsOwn(t *testing.T) {
	write := writer(t)
	for _, test := range []struct {
		rows    string
		entries int
		kappa   float64
		says    string // the error; "" for none
	}{
		{"abc1,sad,sad\nabc2,angry,angry\nabc3,NA,sad\nabc4,sad,nan\n", 2, 1, ""},
		{"abc1,TRUE,1\nabc2,FALSE,0\nabc3,TRUE,1\n", 3, 1, ""},
		{"abc1,yes,1.0\nabc2,No,0.0\nabc3,yes,0.0\n", 3, 0.4, ""},
		{"abc1,Y,yes\nabc2,N,no\nabc3,Y,yes\nabc4,N,N\n", 4, 1, ""},
		{"abc1,y,1\nabc2,n,0\nabc3,y,1\n", 3, 1, ""},
		{"abc1,x,x\nabc2,y,y\nabc3,x,y\n", 3, 0.4, ""},
		{"abc1,T,T\nabc2,F,F\nabc3,N,N\nabc4,N,F\n", 4, 7.0 / 11, ""},
		{"abc1,yes,1\nabc2,no,0\nabc3,maybe,2\n", 0, 0, `"A" has "maybe", "no", "yes", and "B" has "0", "1", "2"`},
		{"abc1,sad,NA\nabc2,angry,\n", 0, 0, "no two annotators have an entry in common"},
	} {
		file := write("a.csv", "id,A,B\n"+test.rows)
		got, err := Agree(t.Context(), Annotations{Files: []string{file}, Columns: []string{"A", "B"}})
		if test.says != "" {
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%q: %v, want %s", test.rows, err, test.says)
			}
			continue
		}
		testkit.OK(t, err)
		testkit.Same(t, test.rows, test.entries, got.Categories[0].Entries)
		if kappa := got.Categories[0].Kappa.Value; test.entries > 0 && math.Abs(*kappa-test.kappa) > 1e-9 {
			t.Errorf("%q: kappa %v, want %v", test.rows, *kappa, test.kappa)
		}
	}
}

// TestAsOne: labels of columns that count as one in several spellings are told, with their cells.
func TestAsOne(t *testing.T) {
	write := writer(t)
	for _, test := range []struct{ rows, says string }{
		{"abc1,a,A\nabc2,a,A\nabc3,b,b\nabc4,a,b\n", `"A" in 2 cells and "a" in 3`},
		{"abc1,1,1.0\nabc2,2,02\nabc3,3,3\nabc4,02,1\n", `"1" in 2 cells and "1.0" in 1`},
		{"abc1,1.0,1\nabc2,Two,two\nabc3,TWO,1\n", `"1" in 2 cells and "1.0" in 1, "TWO" in 1 cell and "Two" in 1 and "two" in 1`},
		{"abc1,yes,1\nabc2,no,no\n", `"1" in 1 cell and "yes" in 1`},
		{"abc1,Y,yes\nabc2,N,no\nabc3,Y,yes\nabc4,N,N\n", `"N" in 3 cells and "no" in 1, "Y" in 2 cells and "yes" in 2`},
		{"abc1,a,a\nabc2,NA,nan\nabc3,b,na\n", ""},
	} {
		a := Annotations{Files: []string{write("a.csv", "id,A,B\n"+test.rows)}, Columns: []string{"A", "B"}}
		got, err := Agree(t.Context(), a)
		testkit.OK(t, err)
		testkit.Same(t, test.rows, test.says, got.AsOneText())
	}
}

// TestTwins: annotators who agree in everything are named, for one file may be a copy of the other. A single different
// answer, or entry, makes two of them; so do a few equal ones.
func TestTwins(t *testing.T) {
	write := writer(t)
	rows := func(n int, last string) string {
		text := "id,A,B,C\n"
		for i := range n - 1 {
			text += fmt.Sprintf("abc%d,%d,%[2]d,%[3]d\n", i, i%2, i%3)
		}
		return text + fmt.Sprintf("abc%d,1,%s,2\n", n, last)
	}
	for _, test := range []struct {
		name, text, want string
	}{
		{"all", rows(10, "1"), "A1 and A2"}, {"few", rows(9, "1"), ""}, {"one other", rows(12, "2"), ""},
		{"one more", rows(12, ""), ""},
	} {
		got, err := Agree(t.Context(),
			Annotations{Files: []string{write(test.name+".csv", test.text)}, Columns: []string{"A", "B", "C"}})
		testkit.OK(t, err)
		testkit.Same(t, test.name, strings.Join(got.Twins, ", "), test.want)
	}
}
