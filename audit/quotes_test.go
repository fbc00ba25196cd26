package audit

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"rehydrate/internal/testkit"
)

// rewritten is what a quotesReader gives of a text with commas.
func rewritten(t *testing.T, r io.Reader) string {
	t.Helper()
	all, err := io.ReadAll(newQuotesReader(r, ','))
	testkit.OK(t, err)
	return string(all)
}

// recordsOf reads a text as the audit does.
func recordsOf(t *testing.T, text string) [][]string {
	t.Helper()
	in := csv.NewReader(strings.NewReader(text))
	in.LazyQuotes, in.FieldsPerRecord = true, -1
	all, err := in.ReadAll()
	testkit.OK(t, err)
	return all
}

// TestQuotes: a table of text has the cells that Python's csv module has, by its csv.reader, wherever a block ends.
func TestQuotes(t *testing.T) {
	for _, c := range []struct {
		text, want string // the text that encoding/csv reads; empty for the same
		cells      [][]string
	}{
		{"a,\"Me\" at work,0\nb,c,1\n", "a,\"Me at work\",0\nb,c,1\n", [][]string{{"a", "Me at work", "0"}, {"b", "c", "1"}}},
		{"a,\"Me\" at work\r\nb,c\r\n", "a,\"Me at work\"\r\nb,c\r\n", [][]string{{"a", "Me at work"}, {"b", "c"}}},
		{"\"Me\" at work,0\nb,1\n", "\"Me at work\",0\nb,1\n", [][]string{{"Me at work", "0"}, {"b", "1"}}},
		{"a,\"Me\" said \"hi\", too,0\nb,c,d,1\n", "a,\"Me said \"\"hi\"\"\", too,0\nb,c,d,1\n",
			[][]string{{"a", `Me said "hi"`, " too", "0"}, {"b", "c", "d", "1"}}},
		{"a,\"Me\"\" and \"\"you\"\" x\" at \"\" work\nb,c\n", "a,\"Me\"\" and \"\"you\"\" x at \"\"\"\" work\"\nb,c\n",
			[][]string{{"a", `Me" and "you" x at "" work`}, {"b", "c"}}},
		{"a,\"Me, you\nand her\" at work,0\nb,c,1\n", "a,\"Me, you\nand her at work\",0\nb,c,1\n",
			[][]string{{"a", "Me, you\nand her at work", "0"}, {"b", "c", "1"}}},
		{"a,\"Me\" , 0\nb,\"c\" \n", "a,\"Me \", 0\nb,\"c \"\n", [][]string{{"a", "Me ", " 0"}, {"b", "c "}}},
		{"a,\"Me\" at work", "a,\"Me at work\"", [][]string{{"a", "Me at work"}}},
		{"a,\"Me\" at work\r", "a,\"Me at work\"\r", [][]string{{"a", "Me at work"}}},
		{"a,\"Me\" ", "a,\"Me \"", [][]string{{"a", "Me "}}},
		{"a,\"Me\"\r\nb,\"c\"", "", [][]string{{"a", "Me"}, {"b", "c"}}},
		// encoding/csv has \n for each \r\n in a cell.
		{"a,\"Me\r\nyou\",0\r\nb,\"\",1\r\n", "", [][]string{{"a", "Me\nyou", "0"}, {"b", "", "1"}}},
		{"a,\"\"x,0\nb,\"\"\"\"x\"\",1\n", "a,\"x\",0\nb,\"\"\"x\"\"\"\"\",1\n",
			[][]string{{"a", "x", "0"}, {"b", `"x""`, "1"}}},
		{"a,b \"c\" d,0\ne, \"f, g\",1\n", "", [][]string{{"a", `b "c" d`, "0"}, {"e", ` "f`, ` g"`, "1"}}},
		{"a,\"no end\nb,c\n", "", [][]string{{"a", "no end\nb,c\n"}}},
		{"a,\"no \"\"end", "", [][]string{{"a", `no "end`}}},
		{"a,\"x\"y\"\nb,\"\n\"z\n\"c\"d\n", "a,\"xy\"\"\"\nb,\"\nz\"\n\"cd\"\n",
			[][]string{{"a", `xy"`}, {"b", "\nz"}, {"cd"}}},
		{"\n\n\"a\"b\n\n", "\n\n\"ab\"\n\n", [][]string{{"ab"}}},
		{"a,\"{\"b\": \"c, d\"}\",0\n", "a,\"{b\"\": \"\"c\", d\"}\",0\n", [][]string{{"a", `{b": "c`, ` d"}"`, "0"}}},
		{"", "", nil},
		// As with its escapechar of a backslash, which stays.
		{"a,\"say \\\"hi\\\", you\",0\n", "", [][]string{{"a", `say \"hi\`, ` you"`, "0"}}},
		{"a,\"say \\\"hi\\\" you\nand, her\",0\n", "", [][]string{{"a", "say \\\"hi\\\" you\nand, her", "0"}}},
	} {
		if c.want == "" {
			c.want = c.text
		}
		testkit.Same(t, c.text, c.want, rewritten(t, strings.NewReader(c.text)))
		testkit.Same(t, c.text+": cells", c.cells, recordsOf(t, c.want))
		testkit.Same(t, c.text+" byte by byte", c.want, rewritten(t, iotest.OneByteReader(strings.NewReader(c.text))))
		for over := range 4 + len(c.text) {
			long := strings.Repeat("x", quotesBlock-over) + "\n"
			testkit.Same(t, fmt.Sprintf("%s behind %d", c.text, len(long)), long+c.want,
				rewritten(t, strings.NewReader(long+c.text)))
		}
	}
	got, err := io.ReadAll(newQuotesReader(strings.NewReader("a\t\"Me, you\" x\t\"y\"z\nb\tc\td\n"), '\t'))
	testkit.OK(t, err)
	testkit.Same(t, "tabs", "a\t\"Me, you x\"\t\"yz\"\nb\tc\td\n", string(got))
	failed := errors.New("failed")
	got, err = io.ReadAll(newQuotesReader(io.MultiReader(strings.NewReader("a,\"b"), iotest.ErrReader(failed)), ','))
	testkit.Same(t, "a reader that fails", []any{"a,\"b", true}, []any{string(got), errors.Is(err, failed)})
}

// TestQuotesMemory: no cell, whatever is in it, takes more memory than a block, and no time for each quote of a block.
func TestQuotesMemory(t *testing.T) {
	for _, cell := range []string{"x", "\"", "\"\"", "\"\" x", "\\\""} {
		text := []byte("\"a\"b" + strings.Repeat(cell, 8<<20/len(cell)))
		for _, text := range [][]byte{text, text[3:]} {
			r := newQuotesReader(bytes.NewReader(text), ',')
			n, err := io.Copy(io.Discard, r)
			testkit.OK(t, err)
			if n < int64(len(text))-1 || n > 2*int64(len(text)) || cap(r.held) > 4*quotesBlock {
				t.Errorf("%q: %d bytes of %d, %d held", cell, n, len(text), cap(r.held))
			}
		}
	}
}

// FuzzQuotes: what encoding/csv accepts of itself stays as it is, byte for byte; of anything else, what is handed on is
// read without a fault but for quotes that stand in cells without quotes, and stays as it is when it is read again.
func FuzzQuotes(f *testing.F) {
	for _, s := range []string{"a,\"b\"\r\n\"c\nd\",\"\"\"\"\n", "a,\"b\" c\n", "\"a\"\"b\" \"c\"\r\r\n\"d",
		"\"\\\"a\"b\r", "a,b\"c\"\n\n\",\"", "\"a\"\rb\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := rewritten(t, strings.NewReader(text))
		strict := csv.NewReader(strings.NewReader(text))
		strict.FieldsPerRecord = -1
		if _, err := strict.ReadAll(); err == nil {
			testkit.Same(t, "accepted", text, got)
		}
		testkit.Same(t, "byte by byte", got, rewritten(t, iotest.OneByteReader(strings.NewReader(text))))
		testkit.Same(t, "again", got, rewritten(t, strings.NewReader(got)))
		recordsOf(t, got)
	})
}

// TestQuotedWords: a cell that begins with a quoted word hides no row behind it, and the rows count as people count.
func TestQuotedWords(t *testing.T) {
	w := newWorld(t, false, false)
	image := b64(w.images[goneJPEG])
	for _, c := range []struct {
		file, text string
		want       []string // the findings, by rows
	}{
		{"row.csv", "id,title\nLIVE1,\"Me\" at work\nGONE,plain\nLIVE2,\"You\" too\n", []string{"2"}},
		{"row.tsv", "id\ttitle\nLIVE1\t\"Me\" at work\nGONE\tplain\nLIVE2\t\"You\" too\n", []string{"2"}},
		{"first.csv", "title,id\r\n\"Me\" at work,LIVE1\r\n\"You\" too,GONE\r\n\"We\",LIVE2\r\n", []string{"2"}},
		{"spaces.csv", "title,id,n\n\"Me\" ,LIVE1,1\n\"You\" ,GONE,2\n", []string{"2"}},
		{"image.csv", "id,title,picture\nLIVE1,\"Me\" at work,\nLIVE2,x,\nzzzzz9,plain," + image + "\nLIVE2,\"You\" too,\n",
			[]string{"3"}},
		{"lines.csv", "id,title\nLIVE1,\"Me\nand you\" at work\nGONE,plain\n", []string{"2"}},
		{"escaped.csv", "title,id\n\"\\\"Me\\\" at work\nand you\",LIVE1\n\"You\",GONE\n", []string{"2"}},
		{"live.csv", "id,title\nLIVE1,\"Me\" at work\nLIVE2,plain\nLIVE2,\"You\" too\n", nil},
	} {
		file := filepath.Join(t.TempDir(), c.file)
		text := strings.NewReplacer("LIVE1", live1, "LIVE2", live2, "GONE", goneJPEG).Replace(c.text)
		testkit.OK(t, os.WriteFile(file, []byte(text), 0o600))
		var rows []string
		for _, found := range w.audit(t, w.ws, file).Findings {
			if _, row, ok := strings.Cut(found.Where, file+rowMark); ok {
				row, _, _ = strings.Cut(row, " ")
				rows = append(rows, row)
			}
		}
		slices.Sort(rows)
		testkit.Same(t, c.file, c.want, slices.Compact(rows))
	}
}
