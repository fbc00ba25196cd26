package table_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest/table"
)

func TestList(t *testing.T) {
	for _, test := range []struct {
		text string
		want []string
	}{
		{"a1\nb2\n", []string{"post", "1|a1", "2|b2"}},
		{"\ufeffid\n\n# a comment\r\n  \"a1\"  \n\tb2 # why\nb#3", []string{"post", "4|a1", "5|b2", "6|b#3"}},
		{"id\n#N/A\na1\n# REF!\n\"\"\n#REF! \n#BEZUG!", []string{"post", "2|#N/A", "3|a1", "5|", "6|#REF!", "7|#BEZUG!"}},
		{"\"\"\na1", []string{"post", "1|", "2|a1"}},
		{"#\n", []string{"1:0 the file is empty"}},
		{"id\n", []string{"post"}},
		{"which\na1", []string{"1:1 which is it?"}},
		{"a1\n\xff\nb2", []string{"post", "1|a1", "2:1 byte 0xff is not UTF-8", "3|b2"}},
	} {
		in, err := table.NewList(strings.NewReader(test.text), "ids.txt", "post", func(first string) (bool,
			*table.Problem) {
			if first == "which" {
				return false, &table.Problem{Message: "which is it?", Hint: "say so"}
			}
			return first == "id", nil
		})
		if diff := cmp.Diff(test.want, lines(t, in, err)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.text, diff)
		}
	}
}

func TestBareCSV(t *testing.T) {
	for _, test := range []struct {
		text string
		want []string
	}{
		{"a1,\"x\ny\"\nb2,z\n", []string{"column_1|column_2", "1|a1|x\ny", "3|b2|z"}},
		{"a1;a1\nb2;c3", []string{"column_1|column_2", "1|a1|a1", "2|b2|c3"}},
		{"a1,x\nb2\n", []string{"column_1|column_2", "1|a1|x", "2:3 the row has 1 fields, the header has 2"}},
		{"", []string{"1:0 the file is empty"}},
	} {
		in, err := table.NewBareCSV(strings.NewReader(test.text), "a.csv", ',')
		if diff := cmp.Diff(test.want, lines(t, in, err)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.text, diff)
		}
	}
}

// FuzzList: every row is one value, and only quotes around nothing are an empty one.
func FuzzList(f *testing.F) {
	f.Add("id\n# a\n\"t3_abc\" # b\n")
	f.Add("t3_abc\n\"\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		in, err := table.NewList(strings.NewReader(text), "ids.txt", "id", func(string) (bool,
			*table.Problem) {
			return false, nil
		})
		for range len(text) {
			if err != nil {
				break
			}
			var cells []table.Cell
			cells, err = in.Next()
			if err == nil && (len(cells) != 1 || cells[0].Text == "" && !strings.Contains(text, `"`)) {
				t.Fatalf("%+v is a value of %q", cells, text)
			}
		}
	})
}
