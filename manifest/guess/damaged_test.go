package guess

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest"
)

// TestDamaged refuses rows whose ids cannot be read with one problem, and leaves them out where that is asked for.
func TestDamaged(t *testing.T) {
	const rows = "1abcde,a\n1abcdf,b\n1abcdg,a\n1abcdh,b\n1abcdi,b\n"
	for _, test := range []struct {
		name, in string
		o        Options
		want     string // the beginning of the problem
		hint     string
		left     string // what is left out, the lines with their reasons
	}{
		{"no column has it", "id,x\n" + rows + "1E+05,a\n,b\n", Options{},
			`a.csv:7:1 "1E+05" is not a post id but a number or day as a ` +
				`spreadsheet writes it; the ids of 2 of 7 rows cannot be read`, "the spreadsheet damaged this id when " +
				"it saved the file: " +
				"take the original file, or import the column as text; --skip-damaged leaves such rows out",
			"7 is not a post id but a number or day as a spreadsheet writes it,8 is empty"},
		{"empty first", "id,x\n,a\n" + rows, Options{},
			`a.csv:2:1 the id is empty; the id of 1 of 6 rows cannot be read`,
			"every row needs the id of its post; --skip-damaged leaves such rows out", "2 is empty"},
		{"share link", "https://www.reddit.com/r/a/s/Ab1\n" + strings.ReplaceAll(rows, ",a", ""), Options{},
			`a.txt:1:1 "https://www.reddit.com/r/a/s/Ab1" is a share link`,
			"open it and copy the address that the browser then shows; --skip-damaged leaves such rows out", ""},
		{"shares", "link\nhttps://www.reddit.com/r/a/s/Ab1\n1abcde\n1abcdf\n", Options{},
			`a.csv:2:1 "https://www.reddit.com/r/a/s/Ab1" is a share link`,
			"open it and copy the address that the browser then shows; --skip-damaged leaves such rows out",
			"2 is a share link, which does not hold the post's id: only a request to Reddit says where it leads"},
		{"most", "id,x\n1E+05,a\n1E+05,b\n1abcde,a\n", Options{ID: "id"},
			`a.csv:2:1 "1E+05" is not a post id but a number or day as a ` +
				`spreadsheet writes it; the ids of 2 of 3 rows cannot be read`, "the spreadsheet damaged this id when " +
				"it saved the file: " +
				"take the original file, or import the column as text; is it the column of ids? --id COLUMN " +
				"names another", ""},
		{"zero", "id,x\n" + rows + "01abcde,a\n", Options{SkipDamaged: true}, "", "",
			"7 begins with 0, as no post's id does"},
		{"gallery", "id,x\n" + rows + "1abcde/1,a\n", Options{SkipDamaged: true}, "", "", ""},
		{"comments are judged apart", "id,x\n" + rows + "t1_abc,a\n", Options{SkipDamaged: true},
			`a.csv:7:1 "t1_abc" is the id of a comment`, "", ""},
		{"comments go as well", "id,x\n" + rows + "t1_abc,a\nnull,b\n", Options{SkipDamaged: true,
			PostsOnly: true}, "", "",
			"8 looks like a missing value, not a post id"},
		{"missing in R", "id,x\n" + rows + "NA,a\nhttps://redd.it/None,a\nNA/1,a\n", Options{SkipDamaged: true}, "", "",
			"7 looks like a missing value, not a post id,8 has a missing value in the place of the id,9 does not name a post"},
		{"a neighbour",
			"id,x,Post Permalink\n1abcde,a,/r/a/comments/1abcde/x\n1abcdf,b,/r/a/comments/1abcdf/\n1.97E+279,c,/r/a/comments/197e277/\n", Options{},
			`a.csv:4:1 "1.97E+279" is not`,
			`column "Post Permalink" still has the ids of all rows: --id "Post Permalink"; --skip-damaged leaves such rows out`,
			"4 is not a post id but a number or day as a spreadsheet writes it"},
		{"a neighbour that differs",
			"id,x,original_post\n1abcde,a,t3_1abcdf\n1abcdf,b,t3_1abcdf\n1.97E+279,c,t3_1abcdh\n", Options{ID: "id"},
			`a.csv:4:1 "1.97E+279" is not`, "the spreadsheet damaged this id when it saved the file: take the " +
				"original file, or import the column as text; " +
				"--skip-damaged leaves such rows out", ""},
	} {
		name := "a.csv"
		if strings.HasPrefix(test.want, "a.txt") {
			name = "a.txt"
			test.in = strings.ReplaceAll(test.in, ",b", "")
		}
		path := file(t, name, test.in)
		_, err := initFiles(t, test.o, path)
		if test.want == "" && err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if test.want != "" {
			wantPlaces(t, test.name, err, test.want)
		}
		if problems, ok := err.(*manifest.Problems); test.hint != "" && (!ok || problems.List[0].Hint != test.hint) {
			t.Errorf("%s: %v\nwant the hint %q", test.name, err, test.hint)
		}
		if test.left == "" {
			continue
		}
		test.o.SkipDamaged = true
		d, err := initFiles(t, test.o, path)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		var left []string
		for _, row := range d.LeftOut {
			left = append(left, fmt.Sprintf("%d %s", row.Line, row.Reason))
		}
		if got := strings.Join(left, ","); got != test.left {
			t.Errorf("%s leaves out %q, want %q", test.name, got, test.left)
		}
		var list bytes.Buffer
		if err := d.WriteLeftOut(&list); err != nil || strings.Count(list.String(), "\n") != 1+len(left) ||
			strings.Contains(list.String(), "E+") {
			t.Errorf("%s lists %q: %v", test.name, list.String(), err)
		}
	}
}

// FuzzWhyDamaged holds that the reason of a row that is left out repeats nothing of its id.
func FuzzWhyDamaged(f *testing.F) {
	for _, text := range []string{"1E+05", "https://www.reddit.com/user/anna_1234/s/AbC", "t2_anna1234",
		"anna, who wrote this", "01abcde"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		why, hint := whyDamaged(text + "_anna1234_")
		if why != "" && (hint == "" || strings.Contains(why, "anna1234")) {
			t.Errorf("%q: %q, %q", text, why, hint)
		}
	})
}

// TestRowsThatGo: rows that are left out say nothing of labels, types and splits.
func TestRowsThatGo(t *testing.T) {
	const posts = "1exa00,post,sad,3\n1exa01,post,glad,14\n1exa02,post,sad,15\n1exa03,post,glad,92\n"
	kept := strings.NewReplacer("post,", "post,train,").Replace(posts)
	comments := strings.Repeat("t1_c,comment,other,1.5\n", 9)
	header := "id,type,label,n\n"
	damaged, without := Options{SkipDamaged: true}, Options{PostsOnly: true}
	const both, n = "label single glad,sad", "n integer"
	for _, test := range []struct {
		name, in string
		o        Options
		want     []string // categories, columns and splits
		look     string   // all that is to look at, but for how many rows go
	}{
		{"a label of comments", header + posts + "t1_c,comment,other,7\n", without, []string{both, n}, ""},
		{"a name of comments", header + posts + "t1_c,comment,Anna Miller,7\n", without, []string{both, n}, ""},
		{"several labels of comments", header + posts + "t1_c,comment,sad;glad,7\n", without, []string{both, n}, ""},
		{"decimals of comments", header + posts + "t1_c,comment,sad,7.5\n", without, []string{both, n}, ""},
		{"most are comments", header + posts + comments, without, []string{both, n}, ""},
		{"most are comments, first", header + comments + posts, without, []string{both, n}, ""},
		{"a split of comments", "id,type,split,label,n\n" + kept + "t1_c,comment,test,sad,7\n", without,
			[]string{both, n, "train"}, ""},
		{"a label of damaged rows", header + posts + "#REF!,post,other,7\n", damaged, []string{both, n}, ""},
		{"an address in damaged rows", header + posts + ",,Questions? anna@uni.edu,7\n", damaged, []string{both, n}, ""},
		{"a note in damaged rows", header + posts + ",,one two three four five six seven eight,x\n", damaged,
			[]string{both, n}, ""},
	} {
		d, err := initFiles(t, test.o, file(t, "a.csv", test.in))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		r := written(t, d, manifest.Options{})
		got := shown(r.Schema)
		for _, c := range r.Schema.Columns {
			got = append(got, c.Name+" "+c.String())
		}
		if s, err := r.Check(t.Context()); err != nil || s.Entries != 4 {
			t.Errorf("%s: %+v, %v", test.name, s, err)
		} else if strings.Contains(test.in, "split") {
			got = append(got, strings.Join(s.Splits, ","))
		}
		look := slices.DeleteFunc(d.Warnings, func(text string) bool {
			return strings.Contains(text,
				"--skip-damaged leaves")
		})
		if diff := cmp.Diff(test.want, got); diff != "" || strings.Join(look, "\n") != test.look {
			t.Errorf("%s: look at %q, want %q (-want +got):\n%s", test.name, look, test.look, diff)
		}
		for _, note := range []string{`id is column "id": 4 of 4 values are post ids`, "2 different values in 4 cells"} {
			if !slices.ContainsFunc(d.Notes, func(text string) bool { return strings.Contains(text, note) }) {
				t.Errorf("%s: no note %q in %q", test.name, note, d.Notes)
			}
		}
	}
}
