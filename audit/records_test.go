package audit

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// TestRecordsTellWhoseImageTheyHave: an image in a record of JSON is that of the post whose id the record has, or the
// one around it, however deep the image lies, and wherever the id stands. Other files are then found by it.
func TestRecordsTellWhoseImageTheyHave(t *testing.T) {
	w := newWorld(t, false, false)
	photo := encodePNG(drawn(77))
	for _, c := range []struct {
		text string
		want bool
	}{
		{`{"id":"GONE","image":{"bytes":"PICTURE"}}`, true},
		{`{"id":"GONE","images":["PICTURE"]}`, true},
		{`{"id":"GONE","images":[{"bytes":"AA=="},{"bytes":"PICTURE"}]}`, true},
		{`{"image":{"bytes":"PICTURE"},"post":{"id":"GONE"}}`, true},
		{`{"query":{"id":"GONE"},"results":[{"image":"PICTURE"}]}`, false},
		{`[{"id":"LIVE"},{"id":"GONE","images":[{"bytes":"PICTURE"}]}]`, true},
		{`{"id":"GONE","messages":[{"role":"user","content":[{"type":"image","data":"PICTURE"}]}]}`, true},
		{`{"id":"GONE","images":{"0":{"bytes":"PICTURE"}}}`, true},
		{`{"0":{"id":"LIVE"},"1":{"id":"GONE","image":"PICTURE"}}`, true},
		{`{"id":{"0":"LIVE","1":"GONE"},"image":{"0":"AA==","1":"PICTURE"}}`, true},
		{`{"image":{"0":"AA==","1":"PICTURE"},"id":{"0":"LIVE","1":"GONE"}}`, true},
		{`{"id":{"0":"LIVE","1":"GONE"},"image":{"0":null,"1":{"bytes":"PICTURE"}}}`, true},
		{`{"id":{"0":"GONE","1":"LIVE"},"image":{"0":"AA==","1":"PICTURE"}}`, false},
		{`{"post":{"id":"GONE","title":"t"},"media":{"image":{"bytes":"PICTURE"}}}`, true},
		{`{"GONE":{"label":"c","image":"PICTURE"},"LIVE":{"image":"AA=="}}`, true},
		{`{"GONE":"PICTURE"}`, true},
		{`{"id":"GONE","media":{"id":"1zzzzz","bytes":"PICTURE"}}`, true},
		{`{"LIVE":{"image":"PICTURE"},"GONE":{"image":null}}`, false},
		{`{"LIVE":"PICTURE","GONE":null}`, false},
		{`{"a":{"id":"GONE","image":null},"b":{"id":"LIVE","image":"PICTURE"}}`, false},
		{`{"id":"GONE","related":[{"id":"LIVE","image":"PICTURE"}]}`, false},
		{`{"posts":[{"id":"GONE"}],"images":["PICTURE"]}`, false},
		{`[{"id":"GONE"},{"image":"PICTURE"}]`, false},
		{`{"id":"GONE"}` + "\n" + `{"images":[{"bytes":"PICTURE"}]}`, false},
	} {
		dir := t.TempDir()
		rows, other := filepath.Join(dir, "rows.json"), filepath.Join(dir, "photo.png")
		text := strings.NewReplacer("GONE", goneUnseen, "LIVE", live1, "PICTURE",
			base64.StdEncoding.EncodeToString(photo)).Replace(c.text)
		testkit.OK(t, os.WriteFile(rows, []byte(text), 0o600), os.WriteFile(other, photo, 0o600))
		r := w.audit(t, w.ws, rows, other)
		found := slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.ID == goneUnseen && f.Where == other })
		if found != c.want {
			t.Errorf("%s: the image is found elsewhere: %t; %+v", c.text, found, r.Findings)
		}
	}
}

// TestImagesOfOtherRecordsAreNotBelieved: an image is that of a live post only where its own record has the id, or one
// around it: not by a record of the next list, nor by the first of a list whose object has more.
func TestImagesOfOtherRecordsAreNotBelieved(t *testing.T) {
	w := newWorld(t, false, true)
	for _, id := range []manifest.PostID{goneUnseen, goneJPEG} { // without digests
		w.config.Tombstones = append(w.config.Tombstones,
			manifest.Tombstone{ID: id, State: manifest.StateRemoved, Time: w.config.Now()})
	}
	for _, c := range []struct {
		text string
		want Verdict
	}{
		{`{"id":"LIVE1","image":{"bytes":"PICTURE"}}`, Pass},
		{`{"id":"LIVE1","images":[{"bytes":"PICTURE"}]}`, Pass},
		{`{"id":{"0":"LIVE1","1":"LIVE2"},"image":{"1":"PICTURE"}}`, Pass},
		{`{"image":{"0":{"bytes":"PICTURE"}},"id":{"0":"LIVE1","1":"LIVE2"}}`, Pass},
		{`[{"image":"PICTURE","id":"LIVE1"}]`, Pass},
		{`{"post":{"id":"LIVE1","title":"t"},"media":{"image":{"bytes":"PICTURE"}}}`, Pass},
		{`{"a":{"id":"LIVE1","image":"PICTURE"},"b":{"id":"1zzzzz"}}`, Pass},
		{`{"a":{"id":"LIVE1","image":null},"b":{"id":"1zzzzz","image":"PICTURE"}}`, Undecided},
		{`{"a":{"id":"LIVE1"},"b":{"id":"LIVE2"},"c":{"bytes":"PICTURE"}}`, Undecided},
		{`[{"query":{"id":"LIVE1","image":"` + strings.Repeat("QUJD", 80) + `"},"positive":{"image":"PICTURE"}}]`, Undecided},
		{`[{"query":{"id":"LIVE1","image":"data:image/png;base64, ` + strings.Repeat("QUJD", 80) +
			`"},"positive":{"image":"PICTURE"}}]`, Undecided},
		{`[{"query":{"id":"LIVE1","image":"<img alt='a b' src='data:image/png;base64,` + strings.Repeat("QUJD", 80) +
			`'>"},"positive":{"image":"PICTURE"}}]`, Undecided},
		{`[{"query":{"id":"LIVE1","image":"` + strings.Repeat(strings.Repeat("QUJD", 19)+" ", 5) +
			`"},"positive":{"image":"PICTURE"}}]`, Undecided},
		{`[{"query":{"id":"LIVE1","image":"b'` + strings.Repeat(`\\x89 `, 80) +
			`'"},"positive":{"image":"PICTURE"}}]`, Undecided},
		{`{"LIVE1":null,"LIVE2":null,"LIVE3":null,"1zzzzz":"PICTURE"}`, Undecided},
		{`{"query":{"id":"LIVE1"},"results":[{"image":"PICTURE"}]}`, Undecided},
		{`{"best":{"id":"LIVE1"},"data":["PICTURE"]}`, Undecided},
		{`{"id":"LIVE1","reply":{"id":"1zzzzz","image":"PICTURE"}}`, Undecided},
		{`{"LIVE1":{"image":"PICTURE"}}`, Pass},
		{`{"LIVE1":{"image2":"PICTURE"}}`, Pass},
		{`{"LIVE1":{"sha256":"0","image2":{"bytes":"PICTURE"}}}`, Pass},
		{`{"LIVE1":{"1zzzzz":{"image":"PICTURE"}}}`, Undecided},
		{`{"LIVE1":{"1zzzzz":"PICTURE"}}`, Undecided},
		{`{"LIVE1":{"id":"1zzzzz","image":"PICTURE"}}`, Undecided},
		{`{"LIVE1":{"near":{"1zzzzz":{"image":"PICTURE"},"1yyyy2":{"image":null}}}}`, Undecided},
		{`{"id":"LIVE1","near":{"1zzzzz":{"image":"PICTURE"}}}`, Undecided},
		{`{"id":"LIVE1","near":{"t3_1zzzzz":"PICTURE"}}`, Undecided},
		{`{"post":{"id":"LIVE1","text":"` + strings.Repeat("such words ", 40) + `"},"image":{"bytes":"PICTURE"}}`, Pass},
		{`{"id":"LIVE1","near":[{"id":null,"image":"PICTURE"}]}`, Undecided},
		{`{"id":"LIVE1","near":[{"image":"PICTURE","id":""}]}`, Undecided},
		{`{"LIVE1":{"post":{"id":"1zzzzz"},"image":"PICTURE"}}`, Undecided},
		{`{"id":"LIVE1","parents":[{"id":"1zzzzz","image":"PICTURE"}]}`, Undecided},
		{`{"id":"LIVE1","near":[{"post":{"id":"1zzzzz"},"image":"PICTURE"}]}`, Undecided},
		{`{"id":"LIVE1","near":{"file":"1zzzzz.jpg","image":"PICTURE"}}`, Undecided},
		{`{"id":"LIVE1","near":{"1ZZZZZ":"PICTURE"}}`, Undecided},
		{`{"id":"LIVE1","near":{"1zzzzz_1":"PICTURE"}}`, Undecided},
		{`{"id":"LIVE1","near":{"1zzzzz.jpg":"PICTURE"}}`, Undecided},
		{`{"id":"LIVE1","file":"a1b2c3.jpg","image":"PICTURE"}`, Pass},
		{`{"id":"LIVE1","image":{"path":"1zzzzz00abc.jpg","bytes":"PICTURE"}}`, Pass},
		{`{"post":{"id":"LIVE1","author":{"id":"1zzzzz"}},"image":"PICTURE"}`, Pass},
		{`{"id":"LIVE1","images":[{"id":"thumb","bytes":"PICTURE"}]}`, Pass},
		{`{"id":"LIVE1","images":{"640x480":"PICTURE"}}`, Pass},
		{`{"LIVE1":{"1080p":null,"b64json":"PICTURE"}}`, Pass},
		{`{"LIVE1":{"crosspost_parent":"t3_1zzzzz","image":"PICTURE"}}`, Pass},
		{`{"id":"LIVE1","near":[{"post_id":"[removed]","image":"PICTURE"}]}`, Undecided},
		{`{"id":"LIVE1","near":{"name":"t3_1zzzzz","image":"PICTURE"}}`, Undecided},
		{`{"id":"LIVE1","images":[{"id":0,"bytes":"PICTURE"},{"id":1,"bytes":null}]}`, Pass},
		{`{"id":"LIVE1","image":{"id":null,"bytes":"PICTURE"}}`, Pass},
		{`[{"id":"LIVE1"},{"bytes":"PICTURE"}]`, Undecided},
		{`["LIVE1","PICTURE"]`, Undecided},
		{`{"live":[{"id":"LIVE1"}],"other":[{"bytes":"PICTURE"}]}`, Undecided},
		{`{"live":[{"id":"LIVE1"}],"other":["PICTURE"]}`, Undecided},
		{`{"live":[{"id":"LIVE1"}],"other":[["PICTURE"]]}`, Undecided},
		{`{"live":[{"id":"LIVE1"}],"other":[[{"bytes":"PICTURE"}]]}`, Undecided},
		{`{"live":[{"id":"LIVE1"}],"other":{"0":"PICTURE"}}`, Undecided},
		{`{"live":{"0":{"id":"LIVE1"}},"other":{"0":"PICTURE"}}`, Undecided},
		{`{"live":[{"id":"LIVE1"}],"other":{"a":{"bytes":"PICTURE"}}}`, Undecided},
		{`{"0":{"id":"LIVE1"},"1":{"bytes":"PICTURE"}}`, Undecided},
		{`{"id":{"0":"LIVE1"},"image":{"1":"PICTURE"}}`, Undecided},
		{`{"id":{"5":"LIVE1"},"image":{"0":"PICTURE"}}`, Undecided},
	} {
		file := filepath.Join(t.TempDir(), "rows.json")
		testkit.OK(t, os.WriteFile(file, []byte(strings.NewReplacer("LIVE1", live1, "LIVE2", live2, "PICTURE",
			base64.StdEncoding.EncodeToString(encodePNG(drawn(77)))).Replace(c.text)), 0o600))
		config := w.config
		config.Files = []string{file}
		r, err := Audit(t.Context(), config)
		testkit.Same(t, c.text, c.want, r.Verdict, err)
	}
}

// TestRowsOfJSONAreCountedAsAReaderDoes: in the outermost list, and of JSON Lines by the lines.
func TestRowsOfJSONAreCountedAsAReaderDoes(t *testing.T) {
	w := newWorld(t, false, false)
	for text, want := range map[string]string{
		`[{"id":"GONE"},{"id":"A"}]`:                                               "row 1",
		`{"data":[{"id":"A"},{"id":"GONE"}]}`:                                      "row 2",
		`{"version":"1.0","data":[{"id":"GONE"},{"id":"A"}]}`:                      "row 1",
		`{"version":"1.0","data":[{"id":"A"},{"id":"GONE"}]}`:                      "row 2",
		`{"a":[{"id":"A"},{"id":"B"}],"b":[{"id":"C"},{"id":"GONE"}]}`:             "row 2",
		`[{"id":"A","of":[{"id":"B"},{"id":"C"}]},{"of":[1,{"id":"GONE"}]}]`:       "row 2",
		`{"0":{"id":"A"},"1":{"id":"GONE"}}`:                                       "row 2",
		`{"x":{"0":"A","1":"B"},"id":{"0":"A","1":"GONE"}}`:                        "row 2",
		`{"n":[1,2],"d":[{"id":"A"}]}` + "\n" + `{"d":[{"id":"A"},{"id":"GONE"}]}`: "row 2",
		// Such an object has no number of its own.
		`{"id":"GONE"}`: "",
		`{"last":{"id":"GONE"},"data":[{"id":"A"},{"id":"B"}]}`: "",
		`{"GONE":{"a":1},"A":{"a":2}}`:                          "",
	} {
		file := filepath.Join(t.TempDir(), "rows.json")
		testkit.OK(t, os.WriteFile(file, []byte(strings.ReplaceAll(text, "GONE", goneJPEG)), 0o600))
		var rows []string
		for _, f := range w.audit(t, w.ws, file).Findings {
			rows = append(rows, strings.TrimPrefix(strings.TrimPrefix(f.Where, file), " > "))
		}
		testkit.Same(t, text, []string{want}, rows)
	}
}

// TestRemediesSpareOtherPosts: who does what is said of a row takes nothing of other posts, and finds the row of a
// SQLite table.
func TestRemediesSpareOtherPosts(t *testing.T) {
	w := newWorld(t, false, true)
	w.config.Tombstones = append(w.config.Tombstones,
		manifest.Tombstone{ID: goneUnseen, State: manifest.StateRemoved, Time: w.config.Now()})
	table := func(sql string) string { return string(sqliteOf(t, sql, goneUnseen)) }
	for name, c := range map[string]struct{ text, want string }{
		"a.csv":   {"id,other\n" + live1 + "," + goneUnseen + "\n", "if other posts are in it, too"},
		"a.json":  {`[{"ids":["` + live1 + `","` + goneUnseen + `"]}]`, "and nothing else"},
		"a.db":    {table("CREATE TABLE posts (id TEXT); INSERT INTO posts VALUES (?)"), "as SELECT * lists them, not by"},
		"b.db":    {table(`CREATE TABLE posts (id TEXT, "` + goneUnseen + `" TEXT)`), "give the table or column another"},
		"a.ipynb": {`{"cells":[{"attachments":{"` + goneUnseen + `.jpg":0}}],"nbformat":4}`, "of this post in the cell"},
	} {
		file := filepath.Join(t.TempDir(), name)
		testkit.OK(t, os.WriteFile(file, []byte(c.text), 0o600))
		config := w.config
		config.Files = []string{file}
		r, err := Audit(t.Context(), config)
		testkit.OK(t, err)
		testkit.Same(t, name+": found", true, len(r.Findings) > 0)
		for _, f := range r.Findings {
			if !strings.Contains(f.Do, c.want) {
				t.Errorf("%s: %s: %s, want %s", name, f.Where, f.Do, c.want)
			}
		}
	}
}
