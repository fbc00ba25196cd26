package audit

import (
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"image"
	"image/gif"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/encoding/charmap"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/workspace"
)

// A hiding is a file that holds something of a removed post, or seems to, and what an audit is to say of it:
//
//	row 1bodut, image 1bodut, text 1bodut   a finding of this kind, of this post
//	any 1bodut                              a finding of any kind
//	like 1bodut                             a finding, or a gap that names the post: an image was changed so much that it
//	                                        only looks like the one that was removed
//	text                                    a caption that several posts have
//	gap xz                                  a gap that names this
//	some                                    a finding or a gap
//	none                                    nothing, but in the workspace: nothing is there, or nothing that an audit
//	                                        promises to find
//
// Nothing else may be said of the file, and no other post accused.
type hiding struct {
	name, file, want string
	body             []byte
}

// finds audits the files of all cases in each of three places: in a folder that is named, in a registered copy and in
// the workspace. Each lies in a folder of its own, so that what is said of it is told from what is said of the others.
func (w *world) finds(t *testing.T, cases []hiding) {
	t.Helper()
	before, knew := w.learns(t)
	places := []string{filepath.Join(w.dir, "found"), w.copied, filepath.Join(w.ws, "stash")}
	if testing.Short() {
		places = places[:1]
	}
	for place, dir := range places {
		folder := func(i int) string { return fmt.Sprintf("case-%d-", i) }
		var files []string
		if place == 0 {
			files = []string{dir}
		}
		for i, c := range cases {
			name := filepath.Join(dir, folder(i), c.file)
			testkit.OK(t, os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, c.body, 0o600))
		}
		r, knows := w.learns(t, files...)
		// A row of a removed post teaches what its image is. A case that is found by what another one taught proves
		// nothing.
		testkit.Same(t, "what was learnt from the cases", knew, knows)
		for i, c := range cases {
			testkit.OK(t, os.RemoveAll(filepath.Join(dir, folder(i))))
			t.Run(filepath.Base(dir)+"/"+c.name, func(t *testing.T) {
				findings, open := cutFolder(&r, folder(i))
				c.judge(t, place, findings, open)
			})
		}
		// Of what lay there before nothing new is said.
		if d := cmp.Diff([2]any{before.Findings, before.Open}, [2]any{r.Findings, r.Open}); d != "" {
			t.Errorf("in %s, beside the cases (-without +with):\n%s", filepath.Base(dir), d)
		}
	}
}

// learns audits the workspace and files, and returns how much is known at the end by which images are recognised.
func (w *world) learns(t *testing.T, files ...string) (r Report, known [4]int) {
	t.Helper()
	ws, err := workspace.Open(t.Context(), w.ws, workspace.Options{ReadOnly: true})
	testkit.OK(t, err)
	defer ws.Close()
	c := w.config
	c.Workspace, c.Files = ws, files
	a := newAudit(c)
	testkit.OK(t, a.run(t.Context()))
	return a.report, [4]int{len(a.gone.marks), len(a.gone.looks[true]), len(a.gone.looks[false]), len(a.gone.wide)}
}

// cutFolder takes from a report what it says of the files in a folder.
func cutFolder(r *Report, folder string) (findings []Finding, open []Open) {
	in := func(where string) bool { return strings.Contains(where, "/"+folder+"/") }
	r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool {
		if in(f.Where) {
			findings = append(findings, f)
		}
		return in(f.Where)
	})
	r.Open = slices.DeleteFunc(r.Open, func(g Open) bool {
		if in(g.Where) {
			open = append(open, g)
		}
		return in(g.Where)
	})
	return findings, open
}

// judge holds what was said of a file against what is wanted.
func (c hiding) judge(t *testing.T, place int, findings []Finding, open []Open) {
	t.Helper()
	kind, what, _ := strings.Cut(c.want, " ")
	if c.want == digits && place > 0 {
		kind, what = "row", goneDigits
	}
	owners := []string{"", what} // nobody else is accused; what is of no post is of none
	switch {
	case c.want == digits:
		owners = append(owners, goneDigits)
	case kind == "text": // both begin with the same words
		owners = append(owners, goneJPEG, gonePNG)
	case kind == "gap", kind == "some":
		owners = append(owners, goneJPEG, gonePNG, goneDigits, goneUnseen)
	}
	good := kind == "some" && len(findings)+len(open) > 0 ||
		kind == "none" && (place == 2 || len(findings)+len(open) == 0)
	var out []string
	for _, f := range findings {
		out = append(out, fmt.Sprintf("%s %s at %s: %s", f.Kinds, f.ID, f.Where, f.What))
		good = good || (kind == "any" || kind == "like" || slices.Contains(f.Kinds, FindingKind(kind))) &&
			(f.ID == what || what == "")
		if !slices.Contains(owners, f.ID) || c.want == digits && kind == "gap" {
			t.Errorf("accused of %s: %s at %s: %s", f.ID, f.Kinds, f.Where, f.What)
		}
	}
	for _, g := range open {
		out = append(out, fmt.Sprintf("gap at %s: %s", g.Where, g.What))
		good = good || kind == "gap" && strings.Contains(strings.ToLower(g.What), what) || kind == "like" && g.ID == what
		if !slices.Contains(owners, g.ID) {
			t.Errorf("suspected of %s at %s: %s", g.ID, g.Where, g.What)
		}
	}
	if !good {
		t.Errorf("wanted %s, came out %.300q", c.want, out)
	}
}

// TestImagesInTexts: bytes as letters, or in the pieces that pprint makes of them, in what no reader of tables reads.
func TestImagesInTexts(t *testing.T) {
	w := newWorld(t, false, true)
	for _, body := range [][]byte{w.images[gonePNG], w.images[goneJPEG]} {
		var letters, pieces, packed strings.Builder
		for some := range slices.Chunk([]byte(base64.StdEncoding.EncodeToString(body)), 64) {
			packed.WriteString("  b'" + string(some) + "'\n")
		}
		for _, b := range body {
			letters.WriteRune(rune(b))
		}
		pieces.WriteString("{'image': " + printedAs([]byte{'a', '\'', 0}) + "\n")
		for piece := range slices.Chunk(body, 16) {
			pieces.WriteString(" " + printedAs(piece) + "\n")
		}
		quoted, err := json.Marshal(letters.String())
		testkit.OK(t, err)
		pieces.WriteString(" " + printedAs([]byte("\\")) + "\n" + printedAs([]byte("\\x41")) + "\n")
		escaped := strconv.QuoteToASCII(letters.String())
		surrogates, escaped1252 := "", ""
		for rest := body; len(rest) > 0; {
			r, n := utf8.DecodeRune(rest)
			switch {
			case r == utf8.RuneError:
				surrogates += fmt.Sprintf(`\udc%02x`, rest[0])
			case r >= 0x80 && r < 0xa0 || r == 0xad || r < ' ' || r == '\'' || r == '"' || r == '\\' || r == 0x7f:
				surrogates += fmt.Sprintf(`\x%02x`, r)
			default:
				surrogates += string(r)
			}
			rest = rest[n:]
		}
		for _, b := range body {
			r := charmap.Windows1252.DecodeByte(b)
			if strconv.IsPrint(r) && r != utf8.RuneError && r != '\\' && r != '\'' {
				escaped1252 += string(r)
			} else {
				escaped1252 += fmt.Sprintf(`\x%02x`, b)
			}
		}
		lines, err := json.MarshalIndent(map[string]any{"cells": []any{map[string]any{"outputs": []any{map[string]any{
			"text": strings.SplitAfter(pieces.String(), "\n")}}}}}, "", " ")
		testkit.OK(t, err)
		page, err := json.MarshalIndent(strings.SplitAfter("<pre>"+html.EscapeString(pieces.String()), "\n"), "", " ")
		testkit.OK(t, err)
		cell := "{'bytes': " + printedAs(body) + ", 'path': None}"
		sql := "'" + strings.ReplaceAll(cell, "'", "''") + "'"
		inner, err := json.Marshal([]map[string]string{{"id": "99", "image": cell}, {"id": "98", "image": letters.String()}})
		testkit.OK(t, err)
		outer, err := json.Marshal(string(inner))
		testkit.OK(t, err)
		blank := strings.LastIndex(cell, " ") - 40 // the first one is far behind the beginning
		blank = strings.LastIndex(cell[:blank], " ")
		ends := regexp.MustCompile(" ").ReplaceAllString(printedAs(body), "\n    ")
		for name, text := range map[string]string{"a.sql": "INSERT INTO posts VALUES('99'," + sql + ");\n",
			"d.yaml": "- id: '99'\n  image: " + sql + "\n", "e.yaml": "image: " + ends + "\n",
			"a.sh": "IMAGE='" + strings.ReplaceAll(cell, "'", `'\''`) + "'\n",
			"a.tex": strings.NewReplacer(`\`, `\textbackslash `, "{", `\{`, "}", `\}`, "$", `\$`, "&", `\&`, "%", `\%`,
				"#", `\#`, "_", `\_`, "~", `\textasciitilde `, "^", `\textasciicircum `).Replace(cell) + " \\\n",
			"g.yaml": "image: " + cell[:blank] + "\n  " + cell[blank+1:] + "\n",
			"f.yaml": "image: " + strings.ReplaceAll(sql, " ", "\n    ") + "\n",
			"a.json": string(outer), "b.jsonl": string(outer) + "\n" + string(outer) + "\n",
			"c.html": "<script>x = JSON.parse(" + string(outer) + ")</script>",
			"a.py":   "x = json.loads('" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(string(inner)) + "')\n",
			"c.txt":  regexp.MustCompile(".{80}").ReplaceAllString(printedAs(body), "$0\n") + "\n",
			"d.txt": strings.Repeat("Of other things.\n", (searchBlock-len(cell)/2)/17) + cell +
				strings.Repeat("\nAnd more of them.", searchBlock/20),
			"f.js":    "const image = [" + listed(body, "%d", ", ") + "];\n",
			"a.md":    "```json\n{\"image\":[" + listed(body, "%d", ",") + "]}\n",
			"a.java":  "byte[] image = {" + signed(body, "%d", ", ") + "};",
			"a.h":     "char image[] = {\n  " + listed(body, "0x%02x", ",\n  ") + "\n};\n",
			"c.jsonl": "# images\n{\"id\":\"x1\",\"image\":[" + listed(body, "%d", ",") + "]}\n",
			"e.txt":   "image: " + listed(body, "%02x", ":") + ".\n", "f.txt": listed(body, "%02X", " "),
			"c.ipynb": `{"cells":[{"outputs":[{"text":["[` + listed(body, "%d", `,\n", "`) + `]"]}]}]}`,
			"g.txt": strings.Repeat("Of other things.\n", (searchBlock-3*len(body))/17) + listed(body, "%d", ", ") +
				strings.Repeat("\nAnd more of them.", searchBlock/20),
			"a.go": "x := " + strconv.QuoteToASCII(string(body)) + "\n", "h.txt": "got " + strconv.Quote(string(body)) + "\n",
			"i.txt":  "got '" + escaped1252 + "'\n",
			"j.txt":  "got '" + surrogates + "'\n",
			"d.json": `[{"x":"` + surrogates + `"}]`,
			"k.log":  `got {"image": "` + strings.ReplaceAll(surrogates, `\x`, `\u00`) + "\"}\n",
			"l.log":  "GET /?x=" + url.QueryEscape(string(body)) + " 200\n",
			"r.txt":  "got '" + listed(body, `\U000000%02x`, "") + "'\n",
			"b.sql":  "INSERT INTO posts VALUES('99', E'" + listed(body, `\\%03o`, "") + "');\n",
			"h.yaml": "x:\n- " + listed(body, "%d", "\n- ") + "\n", "h.rs": "[" + listed(body, "%du8", ", ") + "]",
			"i.csv":  "byte\n" + listed(body, "%d", "\n") + "\n",
			"j.csv":  "p" + strings.Repeat(",p", len(body)-1) + "\n" + listed(body, "%d", ",") + "\n",
			"k.json": "{" + placed(body, `"%d":%d`, ",") + "}",
			"l.txt":  "Array\n(\n" + placed(body, "    [%d] => %d", "\n") + "\n)\n",
			"m.py":   "import os, sys\nx = [" + listed(body, "%d", ",\n     ") + "]\n",
			"n.java": "{" + listed(body, "(byte) 0x%02x", ", ") + "}",
			"o.asm":  ".byte " + listed(body, "%d", "\n.byte ") + "\n", "p.md": "> " + listed(body, "%d", "\n> "),
			"q.txt": hex.Dump(body), "s.log": "10:00:00,123 INFO\n10:00:01,123 got [" + listed(body, "%d", ", ") + "]\n",
			"a.pl": "$x = \"" + listed(body, `\x{%02x}`, "") + "\";\n",
			"e.js": "x = \"" + regexp.MustCompile(`\\u00(..)`).ReplaceAllString(escaped, `\u{$1}`) + "\"",
			"a.js": "x = " + string(quoted) + ";\n", "b.js": "x = " + escaped + ";\n",
			"a.html": "<html><script>var x = " + string(quoted) + "</script></html>",
			"a.log":  "INFO {\"image\": " + escaped + "}\n",
			"a.txt":  pieces.String(), "a.ipynb": string(lines), "a.jsonl": `{"log":` + string(lines) + "}\n",
			"b.html": "<pre>" + html.EscapeString(pieces.String()) + "</pre>", "b.txt": packed.String(),
			"b.ipynb": strings.NewReplacer(`\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(string(page)),
			"a.yaml": "x: " + strings.NewReplacer(`\x00`, `\0`, `\x1b`, `\e`, `\u0085`, `\N`, `\u00a0`, `\_`,
				`\u00`, `\x`).Replace(escaped) + "\n",
			"b.yaml": folded("x: " + strings.NewReplacer(`\u0085`, `\N`, `\u00a0`, `\_`, `\u00`, `\x`).Replace(escaped)),
			"c.yaml": folded("x: " + strconv.QuoteToGraphic(letters.String())), "d.js": folded("x = " + escaped),
			"c.js": "x = " + strings.NewReplacer(`\x00`, `\0`, `\x1b`, `\e`).Replace(escaped) + ";\n"} {
			file := filepath.Join(t.TempDir(), name)
			testkit.OK(t, os.WriteFile(file, []byte(text), 0o600))
			r := w.audit(t, w.ws, file)
			testkit.Same(t, name, Fail, r.Verdict)
		}
	}
}

// TestUnreadTexts: a text in which an image begins that cannot be read is not passed, unless it is too short for one.
func TestUnreadTexts(t *testing.T) {
	w := newWorld(t, false, true)
	w.config.Tombstones = append(w.config.Tombstones, // without digests
		manifest.Tombstone{ID: goneUnseen, State: manifest.StateRemoved, Time: w.config.Now()})
	var asGIF bytes.Buffer
	testkit.OK(t, gif.Encode(&asGIF, drawn(3), nil))
	for _, body := range [][]byte{w.images[live1], w.images[live2], asGIF.Bytes()} {
		printed, half, letters := printedAs(body), body[:len(body)/2], strings.Builder{}
		for _, b := range body {
			fmt.Fprintf(&letters, "\\u{%x}", b)
		}
		for text, want := range map[string]Verdict{
			"x=" + regexp.MustCompile(`((?:\\x\w\w|[^\\]){20})`).ReplaceAllString(printed, "$1' . '"): Undecided,
			"x = \"" + letters.String() + "\"":                  Pass,
			"x = [" + listed(body, "%d", ", ") + "]":            Pass,
			"x = [" + listed(half, "%d", ", ") + ", ...]":       Undecided,
			"x = [" + listed(body[:100], "%d", ", ") + ", ...]": Pass,
			"x = " + listed(half, "%02x", " ") + " ... 2.5":     Undecided,
			"{'" + live1 + "': '" + hex.EncodeToString(body) + "',\n'" + live2 + "': '" + hex.EncodeToString(body) + "'}": Pass,
			"<table><tr><td>" + live1 + "</td><td>" + html.EscapeString(printed) + "</td></tr></table>":                   Pass,
			"{\"id\": \"" + live1 + "\", \"image\": " + strconv.Quote(printed) + "}":                                      Pass,
			"x = " + printed:                                   Pass,
			"x = " + printed[:300] + "...":                     Pass,
			"INFO of " + strings.Repeat(printed[:60]+"\n", 20): Pass,
		} {
			config := w.config
			config.Files = []string{filepath.Join(t.TempDir(), "a.txt")}
			testkit.OK(t, os.WriteFile(config.Files[0], []byte(text+"\n"), 0o600))
			r, err := Audit(t.Context(), config)
			testkit.Same(t, text[:40], want, r.Verdict, err)
		}
	}
}

// TestImagesAcrossBlocks: a text of several blocks with images of live posts has no image in parts.
func TestImagesAcrossBlocks(t *testing.T) {
	w := newWorld(t, false, true)
	noise := image.NewNRGBA(image.Rect(0, 0, 200, 200))
	random := rand.New(rand.NewPCG(1, 2))
	var bodies [][]byte
	for range 12 {
		for i := range noise.Pix {
			noise.Pix[i] = byte(random.Uint32())
		}
		bodies = append(bodies, encodePNG(noise))
	}
	for name, row := range map[string]func([]byte) string{
		"sqlite": func(b []byte) string {
			return "INSERT INTO t VALUES('" + live1 + "',X'" + hex.EncodeToString(b) + "');\n"
		},
		"copy": func(b []byte) string { return live1 + "\t\\\\x" + hex.EncodeToString(b) + "\n" },
		"yaml": func(b []byte) string {
			lines := regexp.MustCompile(".{76}").ReplaceAllString(base64.StdEncoding.EncodeToString(b), "$0\n    ")
			return "- id: " + live1 + "\n  image: !!binary |\n    " + lines + "\n"
		},
		"printed": func(b []byte) string { return live1 + ": " + printedAs(b) + "\n" },
		"numbers": func(b []byte) string { return live1 + ": [" + listed(b, "%d", ", ") + "]\n" },
	} {
		var text strings.Builder
		for _, b := range bodies {
			text.WriteString(row(b))
		}
		file := filepath.Join(t.TempDir(), "a.txt")
		testkit.OK(t, os.WriteFile(file, []byte(text.String()), 0o600))
		for _, o := range w.audit(t, w.ws, file).Open {
			if strings.Contains(o.Where, file) && !strings.HasPrefix(o.What, "an image; ") {
				t.Error(name, o)
			}
		}
	}
}

func TestPackedFrom(t *testing.T) {
	line := strings.Repeat("A", 50)
	for text, want := range map[string]string{"": "", "some words abc": "abc", line + line: line + line,
		"a b\n" + line:                          line,
		"x: " + line + "\n  " + line + "\n  ab": line + "\n  " + line + "\n  ab", "x y\n  " + line + "\n": "  " + line + "\n",
		"A mail:\n> " + line + "\n> " + line: "> " + line + "\n> " + line, "x y\nabc\n": ""} {
		testkit.Same(t, text, want, text[packedFrom([]byte(text)):])
	}
}

// placed is listed for bytes of which each stands behind its place.
func placed(b []byte, format, between string) string {
	parts := make([]string, len(b))
	for i, c := range b {
		parts[i] = fmt.Sprintf(format, i, c)
	}
	return strings.Join(parts, between)
}

func TestWrittenFrom(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "some words": "", "255, 216, 25": "", "in 255, 216, 255, 224": "255, 216, 255, 224",
		"x=\"0x89, 0x50, 0x4E,\\n0x47": "0x89, 0x50, 0x4E,\\n0x47", "-1,-40,-1,-32": "-1,-40,-1,-32",
		"1255, 216, 255, 224": "",
		"255, 216, 255, 2":    "", "x ff:d8:ff:e0": "ff:d8:ff:e0", "71 73 70 56.0": "71 73 70 56.0", "72 73 70 56": "",
		"256, 216, 255": "", "0xfff, 0xd8, 0xff": "", `{"0":255,"1":216,"2":255,"3":224`: `255,"1":216,"2":255,"3":224`,
		"- 137\n- 80\n- 78\n- 71": "137\n- 80\n- 78\n- 71", "071073070056": "", "071 073 070 056": "071 073 070 056",
		"0000000 137  80\n0000002  78  71":               "137  80\n0000002  78  71",
		"137 80 78 71" + strings.Repeat(" ", longestGap): ""} {
		testkit.Same(t, text, want, text[writtenFrom([]byte(text)):])
	}
}

// folded breaks a string into lines as PyYAML does, never within an escape.
func folded(text string) string {
	var out strings.Builder
	line := 0
	for len(text) > 0 {
		n := 1
		if text[0] == '\\' {
			n = backslashSize([]byte(text))
		} else {
			_, n = utf8.DecodeRuneInString(text)
		}
		if line >= 74 && len(text) > 1 {
			out.WriteString("\\\n  ")
			if text[0] == ' ' {
				out.WriteString(`\`)
			}
			line = 0
		}
		out.WriteString(text[:n])
		text, line = text[n:], line+n
	}
	return out.String() + "\n"
}

// TestPrintedBytesOfLivePosts: a table of their images as Python prints them is clean, whatever the bytes look like.
func TestPrintedBytesOfLivePosts(t *testing.T) {
	w := newWorld(t, false, true)
	w.config.Tombstones = append(w.config.Tombstones, // without digests
		manifest.Tombstone{ID: goneUnseen, State: manifest.StateRemoved, Time: w.config.Now()})
	for name, body := range map[string][]byte{
		"PNG":        encodePNG(drawn(60)),
		"JPEG":       encodeJPEG(drawn(61), 85),
		"two quotes": withSegment(encodeJPEG(drawn(62), 85), 0xfe, strings.Repeat("it''s ", 40)),
		"letters":    withSegment(encodeJPEG(drawn(64), 85), 0xfe, strings.Repeat("\u00e9\u00e8", 40)),
	} {
		for _, cell := range []string{`\x` + hex.EncodeToString(body), printedAs(body),
			"{'bytes': " + printedAs(body) + `, 'path': "x"}`} {
			var table bytes.Buffer
			out := csv.NewWriter(&table)
			testkit.OK(t, out.WriteAll([][]string{{"id", "image"}, {live1, cell}, {live2, "x"}}))
			text := table.String()
			file := filepath.Join(t.TempDir(), "rows.csv")
			testkit.OK(t, os.WriteFile(file, []byte(text), 0o600))
			config := w.config
			config.Files = []string{file}
			r, err := Audit(t.Context(), config)
			testkit.Same(t, name+": "+cell[:4], Pass, r.Verdict, err)
			for _, o := range r.Open {
				t.Error(o)
			}
		}
	}
}

// TestBackslashesOfLivePosts: among the bytes of many images some are backslashes before what looks like an escape.
func TestBackslashesOfLivePosts(t *testing.T) {
	w := newWorld(t, false, true)
	w.config.Tombstones = append(w.config.Tombstones, // without digests
		manifest.Tombstone{ID: goneUnseen, State: manifest.StateRemoved, Time: w.config.Now()})
	rows := [][]string{{"id", "image"}}
	for n := range 120 {
		rows = append(rows, []string{string(live1), printedAs(encodeJPEG(drawn(uint32(100+n)), 60+n%40))})
	}
	var table bytes.Buffer
	testkit.OK(t, csv.NewWriter(&table).WriteAll(rows))
	testkit.Same(t, "backslashes", true, bytes.Count(table.Bytes(), []byte(`\\\x`)) > fewEscapes)
	config := w.config
	config.Files = []string{filepath.Join(t.TempDir(), "rows.csv")}
	testkit.OK(t, os.WriteFile(config.Files[0], table.Bytes(), 0o600))
	r, err := Audit(t.Context(), config)
	testkit.Same(t, "verdict", Pass, r.Verdict, err)
}

// TestBase64InLinesOfLivePosts: a table of ids and images between tabs is clean, however the base64 ends.
func TestBase64InLinesOfLivePosts(t *testing.T) {
	w := newWorld(t, false, true)
	w.config.Tombstones = append(w.config.Tombstones, // without digests
		manifest.Tombstone{ID: goneUnseen, State: manifest.StateRemoved, Time: w.config.Now()})
	for n := range 3 {
		text := ""
		for _, id := range []manifest.PostID{live1, live2, live1} {
			body := withSegment(encodeJPEG(drawn(uint32(id[0])), 85), 0xfe, strings.Repeat("a", n))
			text += string(id) + "\t" + base64.StdEncoding.EncodeToString(body) + "\n"
		}
		for _, header := range []string{"id\timage\n"} {
			file := filepath.Join(t.TempDir(), "rows.tsv")
			testkit.OK(t, os.WriteFile(file, []byte(header+text), 0o600))
			config := w.config
			config.Files = []string{file}
			r, err := Audit(t.Context(), config)
			testkit.Same(t, fmt.Sprint(n, header), Pass, r.Verdict, err)
			for _, o := range r.Open {
				t.Error(o)
			}
		}
	}
}

// TestMisreadImages: a JPEG that a text spells out in a way that nobody knows is still a picture, of which nothing is
// known.
func TestMisreadImages(t *testing.T) {
	w := newWorld(t, false, true)
	dir := t.TempDir()
	for name, c := range map[string]struct {
		body []byte
		want Verdict
	}{
		"removed.txt": {w.images[goneJPEG], Undecided}, "live.txt": {w.images[live1], Undecided},
		"other.txt": {encodePNG(drawn(9)), Pass},
	} {
		misread := regexp.MustCompile(`\\x9[0-9a-f]`).ReplaceAllString(printedAs(c.body), `\x91`)
		if name == "other.txt" {
			misread = printedAs(c.body)
		}
		file := filepath.Join(dir, name)
		testkit.OK(t, os.WriteFile(file, []byte("x = "+misread+"\n"), 0o600))
		r := w.audit(t, w.ws, file)
		testkit.Same(t, name, c.want, r.Verdict)
	}
	file := filepath.Join(dir, "clean.txt")
	text := "x = " + printedAs(w.images[live1]) + "\ny = " + printedAs(encodePNG(drawn(9))) + "\n"
	testkit.OK(t, os.WriteFile(file, []byte(text), 0o600))
	testkit.Same(t, "live, and another PNG", Pass, w.audit(t, w.ws, file).Verdict)
}

// FuzzWritten: whatever a text has as numbers, an image in it begins and ends within it.
func FuzzWritten(f *testing.F) {
	for _, text := range []string{"255, 216, 255, 224", `{"0":71,"1":73,"2":70,"3":56}`, "0x89, 0x50, 0x4E,\n0x47",
		"00000000  89 50 4e 47  |.PNG|\n00000004  0d 0a 1a 0a  |....|\n", "-1,-40,-1,-32", "x\n0000020 71 73 70 56"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		at, n := nextWritten(text)
		raw, size := n.bytes(text[at:], nil, maxImage)
		if at+size > len(text) || len(raw) > size || at < len(text) && !isMagic(raw) || writtenFrom(text) > len(text) {
			t.Errorf("%d bytes at %d of %d, in %d characters", len(raw), at, len(text), size)
		}
	})
}
