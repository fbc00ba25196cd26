package guess

import (
	"fmt"
	"strings"
	"testing"
)

// TestRowsThatAreNoPosts: a header that stands again and rows of sums are refused with their lines, whatever ids could
// have their letters.
func TestRowsThatAreNoPosts(t *testing.T) {
	const head = "id,label\n1ab00,sad\n1ab01,funny\n1ab02,sad\n"
	for _, test := range []struct {
		in   string
		o    Options
		want []string // nil for none
	}{
		{head + "id,label\n1ab03,funny\nTotal,4\n", Options{},
			[]string{"a.csv:5:1 the row repeats the header", `a.csv:7:1 "Total" seems to be the name of a row`}},
		{head + "id,label\n1ab03,funny\nTotal,4\n", Options{ID: "id"},
			[]string{"a.csv:5:1 the row repeats the header", `a.csv:7:1 "Total" seems`}},
		{head + "ID,label\n", Options{}, []string{"a.csv:5:1 the row repeats the header"}},
		{head + "none,sad\n", Options{}, []string{`a.csv:5:1 "none" looks like a missing value`}},
		{head + "mean,sad\n", Options{}, []string{`a.csv:5:1 "mean" seems`}},
		{head + "Summe,sad\n", Options{}, []string{`a.csv:5:1 "Summe" seems`}},
		{head + "test,sad\n", Options{}, []string{`a.csv:5:1 "test" seems`}},
		{head + "t3_total,sad\n", Options{}, nil}, {head + "abcde,sad\n", Options{}, nil},
		{"id,label\nmean,sad\nbody,sad\nlock,funny\n", Options{}, nil},
	} {
		_, err := initFiles(t, test.o, file(t, "a.csv", test.in))
		if test.want == nil {
			if err != nil {
				t.Errorf("%q: %v", test.in, err)
			}
			continue
		}
		wantPlaces(t, test.in, err, test.want...)
	}
}

// TestNamesOfRows: ids that count rows or images are refused, and what looks like ids of another site is said.
func TestNamesOfRows(t *testing.T) {
	for _, test := range []struct {
		form   string // of the ids
		id     string
		refuse bool
		says   string // a part of a warning; "" for none
	}{
		{"user%d", "", true, ""}, {"img%03d", "", true, ""}, {"q%d", "", true, ""}, {"t3_img%03d", "", true, ""},
		{"user%d", "id", false, `ids of column "id" look like names of rows, such as "user0"`},
		{"abcd%02d", "", false, `ids of column "id" look like names of rows, such as "abcd00"`},
		{"aB%02dx", "", false, `ids of column "id" mix capital and small letters, such as "aB00x"`},
		{"1abc%02d", "", false, `ids of column "id" have nothing but the digits of hex`},
		{"1xyz%02d", "", false, ""}, {"a%d", "", false, ""},
	} {
		in := "id,label\n"
		for i := range 24 {
			in += fmt.Sprintf(test.form, i) + "," + []string{"sad", "funny"}[i%2] + "\n"
		}
		d, err := initFiles(t, Options{ID: test.id}, file(t, "a.csv", in))
		if test.refuse {
			wantPlaces(t, test.form, err, `a.csv:2:1 column "id" has names of rows`)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.form, err)
			continue
		}
		if said := strings.Join(d.Warnings, "\n"); !strings.Contains(said, test.says) || test.says == "" && said != "" {
			t.Errorf("%s: it says %q", test.form, said)
		}
	}
}
