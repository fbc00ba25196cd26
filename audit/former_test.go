package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parquet-go/parquet-go"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// TestFormerPictures: a picture that was removed from a post that stays is found wherever it lies, also when the entry
// has another one since, which is no finding. One that is back is its own.
func TestFormerPictures(t *testing.T) {
	for _, c := range []struct {
		name     string
		reason   manifest.Reason
		another  bool
		old, now Verdict
	}{
		{"taken out of its gallery, and another one came", policy.LeftGallery, true, Fail, Pass},
		{"taken out of its gallery, and back", policy.LeftGallery, false, Pass, Pass},
		{"lost, and another one came", "damaged_file", true, Pass, Pass},
	} {
		for _, published := range []bool{false, true} {
			w, ctx := newWorld(t, false, published), t.Context()
			old, now := w.images[live1], w.images[live1]
			ws, err := workspace.Open(ctx, w.ws, workspace.Options{Now: w.config.Now})
			testkit.OK(t, err, ws.DropImage(ctx, manifest.Key{ID: live1},
				workspace.Trouble{Outcome: manifest.Gone, Reason: c.reason}, policy.LeftPost(c.reason)))
			if c.another {
				now = encodePNG(drawn(7))
			}
			w.images[live1] = now
			w.store(t, ws, live1)
			testkit.OK(t, ws.SetPosts(ctx, []workspace.Post{{ID: live1, State: manifest.StateLive,
				CheckedAt: w.config.Now(), LiveAt: w.config.Now()}}), ws.Close())
			for body, want := range map[*[]byte]Verdict{&old: c.old, &now: c.now} {
				file := filepath.Join(t.TempDir(), "picture")
				testkit.OK(t, os.WriteFile(file, *body, 0o600))
				r := w.audit(t, w.ws, file)
				if r.Verdict != want && !(want == Pass && r.Verdict != Fail) {
					t.Errorf("%s, digests published: %t: %s, want %s; found %+v", c.name, published, r.Verdict, want, r.Findings)
				}
				if want == Fail && !slices.ContainsFunc(r.Findings, func(f Finding) bool {
					return f.ID == live1 && f.Removal.Why == whyImageGone(c.reason)
				}) {
					t.Errorf("%s: found %+v", c.name, r.Findings)
				}
			}
		}
	}
}

// TestPictureForEverybodyIsNoFinding: what a host sent in place of everything is no picture of a post that is deleted,
// and what came once more as its image is.
func TestPictureForEverybodyIsNoFinding(t *testing.T) {
	for _, again := range []bool{false, true} {
		w, ctx := newWorld(t, false, false), t.Context()
		ws, err := workspace.Open(ctx, w.ws, workspace.Options{Now: w.config.Now})
		testkit.OK(t, err, ws.ForgetImage(ctx, manifest.Key{ID: live1}, workspace.Trouble{Outcome: manifest.Failed}))
		if again {
			w.store(t, ws, live1)
		}
		testkit.OK(t, ws.AddTombstones(ctx, []workspace.Tombstone{{Tombstone: manifest.Tombstone{ID: live1,
			State: manifest.StateDeleted, Time: w.config.Now()}}}), ws.Erase(ctx, live1), ws.Close())
		file := filepath.Join(t.TempDir(), "picture")
		testkit.OK(t, os.WriteFile(file, w.images[live1], 0o600))
		r := w.audit(t, w.ws, file)
		testkit.Same(t, "found", again, slices.ContainsFunc(r.Findings, func(f Finding) bool {
			return f.ID == live1 && f.Where == file
		}))
	}
}

// TestLostImageCountsAsShownLast: an entry without an image shows what it showed last. Its row is a finding where that
// is a picture that was taken down with another post.
func TestLostImageCountsAsShownLast(t *testing.T) {
	for _, another := range []bool{false, true} {
		w, ctx := newWorld(t, false, false), t.Context()
		w.images[live2] = w.images[live1]
		ws, err := workspace.Open(ctx, w.ws, workspace.Options{Now: w.config.Now})
		testkit.OK(t, err)
		w.store(t, ws, live2)
		if another {
			w.images[live1] = encodePNG(drawn(7))
			w.store(t, ws, live1)
		}
		testkit.OK(t, ws.DropImage(ctx, manifest.Key{ID: live1}, workspace.Trouble{Outcome: manifest.Failed}, false),
			ws.AddTombstones(ctx, []workspace.Tombstone{{Tombstone: manifest.Tombstone{ID: live2,
				State: manifest.StateDeleted, Time: w.config.Now()}}}), ws.Erase(ctx, live2), ws.Close())
		file := filepath.Join(t.TempDir(), "rows.csv")
		testkit.OK(t, os.WriteFile(file, []byte("id,severity\n"+live1+",SS6\n"), 0o600))
		r := w.audit(t, w.ws, file)
		testkit.Same(t, "found", !another, slices.ContainsFunc(r.Findings, func(f Finding) bool {
			return f.ID == live1 && strings.HasPrefix(f.Where, file)
		}))
	}
}

// TestIDOfAGalleryThatStays: the id of a gallery is no finding in a table of posts when its first image was taken out.
// The image is one, and so is a row that says it is of that image.
func TestIDOfAGalleryThatStays(t *testing.T) {
	w := withoutFirstImage(t)
	sum := sha256.Sum256(w.images[live1])
	with := func(picture []byte) string {
		return fmt.Sprintf("{\"id\":%q,\"picture\":%q}\n", live1, base64.StdEncoding.EncodeToString(picture))
	}
	for _, c := range []struct {
		file, text string
		want       Verdict
	}{
		{"scores.csv", "post,score\n" + live1 + ",12\n" + live2 + ",7\n", Undecided},
		{"posts.txt", live1 + "\n" + live2 + "\n", Pass},
		{"text.txt", "see https://www.reddit.com/gallery/" + live1 + " there\n", Pass},
		{"places.csv", "id,image,score\n" + live1 + ",0,12\n", Fail},
		{"entries.csv", "id,score\n" + live1 + ",12\n" + live2 + "/1,7\n", Fail},
		{"names.csv", "id,file\n" + live1 + "," + live1 + ".png\n", Fail},
		{"later.csv", "id,file\n" + live1 + "," + live1 + "-3.png\n", Pass},
		{"digests.csv", "id,digest\n" + live1 + "," + hex.EncodeToString(sum[:]) + "\n", Fail},
		{"pictures.jsonl", with(w.images[live1]), Fail},
		{"another.jsonl", with(w.images[live2]), Undecided},
	} {
		file := filepath.Join(t.TempDir(), c.file)
		testkit.OK(t, os.WriteFile(file, []byte(c.text), 0o600))
		r := w.audit(t, w.ws, file)
		r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool { return !strings.HasPrefix(f.Where, file) })
		r.Open = slices.DeleteFunc(r.Open, func(o Open) bool { return !strings.HasPrefix(o.Where, file) })
		if got := verdictOf(r.Findings, r.Open, nil); got != c.want {
			t.Errorf("%s: %s, want %s; found %+v, open %+v", c.file, got, c.want, r.Findings, r.Open)
		}
	}
}

// TestPlacesBelongToTheirIDs: the place of an image belongs to the id of its object, whatever lists are between them;
// lists beside each other belong together element by element. In doubt it is the place of all.
func TestPlacesBelongToTheirIDs(t *testing.T) {
	w := withoutFirstImage(t)
	type posts struct {
		ID    []string `parquet:"id,list"`
		Image []int32  `parquet:"image,list"`
	}
	table := func(row posts) string {
		var b bytes.Buffer
		testkit.OK(t, parquet.Write(&b, []posts{row}))
		return b.String()
	}
	for _, c := range []struct {
		text string
		want bool
	}{
		{`{"id":"LIVE1","tags":["a","b"],"image":0}`, true},
		{`{"id":"LIVE1","tags":["a","b"],"image":2}`, false},
		{`{"id":"LIVE2","image":1}` + "\n" + `{"id":"LIVE1","tags":["a","b"],"image":"0"}`, true},
		{`{"image":0,"tags":["a","b"],"posts":[{"id":"LIVE2"},{"id":"LIVE1"}]}`, true},
		{`{"post":{"id":"LIVE1"},"tags":["a","b"],"media":{"image":0}}`, true},
		{`{"id":"LIVE1","images":[{"image":1},{"image":0}]}`, true},
		{`{"id":"LIVE1","images":[{"image":1},{"image":2}]}`, false},
		{`[{"id":"LIVE1","images":[{"image":1},{"image":0},{"image":2}]}]`, true},
		{`{"LIVE1":{"tags":["a","b"],"image":0},"LIVE2":{"image":1}}`, true},
		{`{"LIVE1":{"tags":["a","b"],"image":1},"LIVE2":{"image":0}}`, false},
		{`{"LIVE1":[{"id":"LIVE1","image":1},{"id":"LIVE1","image":2}]}`, false},
		{`{"id":["LIVE2","LIVE1"],"tags":["a","b","c"],"image":[1,0]}`, true},
		{`{"id":["LIVE2","LIVE1"],"tags":["a","b","c"],"image":[0,1]}`, false},
		{`{"a":[{"id":"LIVE1","image":1},{"id":"LIVE2","image":0}],"b":[{"id":"LIVE1","image":2}]}`, false},
		{`{"a":[{"id":"LIVE1","image":1},{"id":"LIVE2","image":0}],"b":[{"id":"LIVE1","image":0}]}`, true},
		// What is beside another id of the list, or of a list of other things, is not the place of this one.
		{`{"data":[{"id":"LIVE1","image":null},{"id":"1other","image":1}]}`, true},
		{`{"data":[{"id":"LIVE1"},{"id":"LIVE2","image":1}]}`, true},
		{`{"data":[{"id":"LIVE1","image":1},{"id":"1other","image":0}]}`, false},
		{`{"id":["LIVE1","LIVE2"],"image":[null,1]}`, true},
		{`{"id":["1other","LIVE1"],"image":[0,1]}`, false},
		{`{"posts":[{"id":"LIVE1"},{"id":"LIVE2"}],"settings":{"image":1}}`, true},
		{`{"posts":[{"id":"LIVE1"},{"id":"LIVE2"}],"of":[{"image":1},{"image":2},{"image":3}]}`, true},
		{`{"LIVE2":[{"id":"LIVE2","image":1},{"id":"LIVE1"}]}`, true},
		{`{"id":"LIVE1","image":"1.0"}`, false},
		{`{"id":"LIVE1","image":[` + strings.Repeat("7,", 40) + `7]}`, true}, // a picture
		// Many answers about a gallery, ids of other things, and keys that count.
		{`{"id":"LIVE1","votes":[` + strings.Repeat(`{"image":1},`, 30) + `{"image":0}]}`, true},
		{`{"id":"LIVE1","votes":[` + strings.Repeat(`{"image":1},`, 30) + `{"image":2}]}`, false},
		{`{"id":"LIVE1","images":[{"id":"xk3lp9","image":0}]}`, true},
		{`{"id":"LIVE1","images":[{"id":"xk3lp9","image":2}]}`, true},
		{`{"id":{"0":"LIVE2","1":"LIVE1"},"image":{"0":2,"1":0}}`, true},
		{`{"id":{"0":"LIVE2","1":"LIVE1"},"image":{"0":0,"1":2}}`, false},
		{`{"0":{"id":"LIVE1","tags":["a","b"],"image":1},"1":{"id":"LIVE2","image":0}}`, false},
		// They belong together by the key, and have nothing of what stands beside them.
		{`{"id":{"0":"LIVE2","1":"LIVE1"},"image":{"1":0,"0":2}}`, true},
		{`{"id":{"1":"LIVE2","2":"LIVE1"},"image":{"2":0,"3":1}}`, true},
		{`{"id":["LIVE2","LIVE1"],"image":{"1":1,"2":0}}`, true},
		{`{"id":"LIVE1","0":{"image":1},"1":{"image":0}}`, true},
		{`{"id":"LIVE1","1":{"image":1,"vote":3},"2":{"image":0,"vote":2}}`, true},
		{`{"id":"LIVE1","1":{"image":1,"vote":3},"2":{"image":2,"vote":2}}`, false},
		{`{"1":{"image":1},"2":{"image":0},"id":"LIVE1"}`, true},
		{`{"id":"LIVE1","2021":{"image":2},"2022":{"image":1},"image":0}`, true},
		{`{"id":"LIVE2","image":1,"0":{"image":1},"1":{"image":0,"id":"LIVE1"}}`, true},
		{`{"image":0,"0":{"id":"LIVE2"},"1":{"id":"LIVE1"}}`, true},
		{`{"LIVE1":{"1":{"image":1},"2":{"image":0}}}`, true},
		{table(posts{[]string{"1other", live1}, []int32{0, 1}}), false},
		{table(posts{[]string{"1other", live1}, []int32{1, 0}}), true},
		{table(posts{[]string{live2, live1}, []int32{1, 0}}), true},
		{table(posts{[]string{live2, live1}, []int32{0, 1}}), false},
		{table(posts{[]string{live1}, []int32{1, 2, 0}}), true},
		{table(posts{[]string{live1}, []int32{1, 2}}), false},
	} {
		w.checkFinds(t, c.text, c.want)
	}
}

// withoutFirstImage is a world in which live1 is a gallery that lost its first image.
func withoutFirstImage(t *testing.T) *world {
	t.Helper()
	w, ctx := newWorld(t, false, false), t.Context()
	ws, err := workspace.Open(ctx, w.ws, workspace.Options{Now: w.config.Now})
	testkit.OK(t, err, ws.DropImage(ctx, manifest.Key{ID: live1},
		workspace.Trouble{Outcome: manifest.Gone, Reason: policy.LeftGallery}, true), ws.Close())
	return w
}

// TestNamesBelongToTheirIDs: the id of a post stands for the images of it that its row names in other columns. It
// stands for the first one where the row names that, or says by a place that it is of it.
func TestNamesBelongToTheirIDs(t *testing.T) {
	w := withoutFirstImage(t)
	type post struct {
		ID    string   `parquet:"id"`
		Files []string `parquet:"files,list"`
	}
	table := func(id string, files ...string) string {
		var b bytes.Buffer
		testkit.OK(t, parquet.Write(&b, []post{{id, files}}))
		return b.String()
	}
	database := func(file string) string {
		return string(sqliteOf(t, "CREATE TABLE t (id TEXT, file TEXT); INSERT INTO t VALUES (?, ?)", live1, file))
	}
	for _, c := range []struct {
		text string
		want bool
	}{
		{"id,file\nLIVE1,LIVE1-3.jpg\nLIVE2,LIVE2.jpg\n", false},
		{"id,image\nLIVE1,LIVE1-3.jpg\n", false},
		{"id,file,score\nLIVE1,train/LIVE1-3.jpg,7\n", false},
		{"file,link,id\nLIVE1-3.jpg,https://redd.it/LIVE1,LIVE1\n", false},
		{"id,file,preview\nLIVE1,LIVE1-3.jpg,LIVE1.jpg\n", true},
		{"id,file,preview\nLIVE1,LIVE1-3.jpg,LIVE1/0\n", true},
		{"id,file,image_index\nLIVE1,LIVE1-3.jpg,0\n", true},
		{"id,file,image_index\nLIVE1,LIVE1-3.jpg,3\n", false},
		{`[{"id":"LIVE1","image":"LIVE1-3.jpg"}]`, false},
		{`[{"post":{"id":"LIVE1"},"files":["LIVE1-2.jpg","LIVE1-3.jpg"]}]`, false},
		{`[{"id":"LIVE1","files":["LIVE1-2.jpg","LIVE1.jpg"]}]`, true},
		{`[{"id":"LIVE1","image":0,"file":"LIVE1-3.jpg"}]`, true},
		{`{"id":"LIVE1","files":["LIVE1-2.jpg","LIVE1-3.jpg"]}` + "\n" + `{"id":"LIVE2"}`, false},
		{`{"id":"LIVE1","files":["LIVE1-2.jpg","LIVE1.jpg"]}` + "\n" + `{"id":"LIVE2"}`, true},
		{table(live1, live1+"-2.jpg", live1+"-3.jpg"), false},
		{table(live1, live1+"-2.jpg", live1+".jpg"), true},
		{database(live1 + "-3.jpg"), false},
		{database(live1 + ".jpg"), true},
	} {
		w.checkFinds(t, c.text, c.want)
	}
}

// checkFinds checks whether an audit finds what is of live1 in a file with this text, in which LIVE1 and LIVE2 stand
// for the ids, and PICTURE for the image of live2.
func (w *world) checkFinds(t *testing.T, text string, want bool) {
	t.Helper()
	picture := base64.StdEncoding.EncodeToString(w.images[live2])
	file := filepath.Join(t.TempDir(), "posts")
	testkit.OK(t, os.WriteFile(file, []byte(strings.NewReplacer("LIVE1", live1, "LIVE2", live2,
		"PICTURE", picture).Replace(text)), 0o600))
	r := w.audit(t, w.ws, file)
	got := slices.ContainsFunc(r.Findings, func(f Finding) bool {
		return f.ID == live1 && strings.HasPrefix(f.Where, file)
	})
	if got != want {
		t.Errorf("%.200q: found is %t; %+v, open %+v", text, got, r.Findings, r.Open)
	}
}

// TestImagesOfOtherRecords: an image is not that of a record in another list, and an id with /0 is that of a first
// image.
func TestImagesOfOtherRecords(t *testing.T) {
	w := withoutFirstImage(t)
	for _, c := range []struct {
		text string
		want bool
	}{
		{`{"train":[{"id":"LIVE1","image":1}],"test":[{"img":"PICTURE"}]}`, false},
		{`{"train":[{"id":"LIVE2","image":1}],"test":[{"id":"LIVE1","image":0}]}`, true},
		{`{"0":{"id":"LIVE1","image":1},"1":{"img":"PICTURE"}}`, false},
		{`{"train":[{"id":"LIVE1","image":0,"img":"PICTURE"}],"test":[]}`, true},
		{"id,n\nLIVE1/0,4\nLIVE2/0,4\n", true},
		{"id,n\nLIVE1/1,4\nLIVE2/0,4\n", false},
		{"id,n\nLIVE1_0,4\nLIVE2_1,4\n", true},
		{"id,n\nLIVE1_1,4\nLIVE2_0,4\n", false},
		{"file,n\nLIVE1_0.png,4\nLIVE2_0.png,4\n", true},
		{"file,n\nLIVE1_1.png,4\nLIVE2_0.png,4\n", false},
		{"this is LIVE1_0 as it was", true},
		{"this is LIVE1/0 as it was", true},
		{"this is LIVE1/1 as it was", false},
	} {
		w.checkFinds(t, c.text, c.want)
	}
}

// TestColumnsAreShownByName: a report has no key or cell in the place of a name that is a text, an address or an image.
func TestColumnsAreShownByName(t *testing.T) {
	for _, c := range []struct{ name, table, json string }{
		{"id", "id", "id"},
		{"data.posts[].Image ID", "data.posts[].Image ID", "data.posts[].Image ID"},
		{"{}", "{}", "{}"},
		{"", "", ""},
		{"größe_2", "1", "*"},
		{"anna", "1", "*"},
		{"joe_bloggs.post_ids[]", "1", "*.post_ids[]"},
		{"Joe Bloggs.post_id[]", "1", "*.post_id[]"},
		{"I was. He died. We cried.id", "1", "*.*.*.id"},
		{"tel:0151-2345678{}", "1", "*{}"},
		{"joe.bloggs@example.com", "1", "*.*.*"},
		{"WHEN THE MONDAY MEETING WAS AN EMAIL", "1", "*"},
		{"a." + strings.Repeat("QUJD", 20), "1", "*.*"},
		{"/9j/2wCEAAMCAgMCAgMD", "1", "*"},
		{"a\x1b[31m", "1", "*"},
	} {
		at := place{src: &source{where: "f"}, path: "f"}
		nested := newTable(at)
		nested.json = true
		testkit.Same(t, c.name, c.table, newTable(at).column(c.name).shown())
		testkit.Same(t, c.name+" of JSON", c.json, nested.column(c.name).shown())
	}
}

// TestTablesAreShownByName: a table of a database is shown as a column is.
func TestTablesAreShownByName(t *testing.T) {
	w := newWorld(t, false, false)
	for name, want := range map[string]string{"posts": "posts", "anna": "1", "joe.bloggs@example.com": "1",
		"when you see it": "1"} {
		file := filepath.Join(t.TempDir(), "posts.db")
		testkit.OK(t, os.WriteFile(file, sqliteOf(t, fmt.Sprintf("CREATE TABLE %q (id TEXT); INSERT INTO %q VALUES ('%s')",
			name, name, goneJPEG)), 0o600))
		r := w.audit(t, w.ws, file)
		testkit.Same(t, name, true, slices.ContainsFunc(r.Findings, func(f Finding) bool {
			return f.Where == file+" > table "+want+" > row 1"
		}))
	}
}

// TestPlacesOfManyIDs: an object with many ids and many places in lists that don't belong together has a budget, too.
func TestPlacesOfManyIDs(t *testing.T) {
	a := newAudit(Config{})
	a.post(live1)
	for _, c := range []struct {
		places int // that differ
		want   error
	}{{1, nil}, {1000, errSpent}} {
		w := walker{audit: a, ctx: t.Context(), left: &atomic.Int64{}, found: &atomic.Bool{}, opened: &atomic.Bool{}}
		w.left.Store(64 << 20)
		var ids, places strings.Builder
		for i := range 20_000 {
			fmt.Fprintf(&ids, "%q,", live1)
			fmt.Fprintf(&places, `"k%d":{"image":%d},`, i, i%c.places)
		}
		text := fmt.Sprintf(`{"id":[%s""],%s"k":{}}`, ids.String(), places.String())
		err := w.json(place{src: &source{where: "f"}, path: "f"}, strings.NewReader(text))
		testkit.Same(t, fmt.Sprintf("%d places", c.places), true, errors.Is(err, c.want))
	}
}

// TestNumbersThatDoNotSayWhichImage: of a post that lost an image they leave the audit open, in the name of a file of
// unknown bytes and in a cell. What else the name or the cell has is found.
func TestNumbersThatDoNotSayWhichImage(t *testing.T) {
	w := withoutFirstImage(t)
	with := strings.NewReplacer("LIVE1", live1, "LIVE2", live2, "GONE", goneUnseen)
	for _, c := range []struct {
		name, text string
		open, gone bool
	}{
		{"LIVE1-1.png", "", false, false}, {"LIVE2_1.png", "", false, false},
		{"LIVE1_1.png", "", true, false}, {"LIVE1_01.png", "", true, false}, {"LIVE1.1.png", "", true, false},
		{"2_LIVE1.png", "", true, false}, {"IMG_0002_LIVE1.png", "", true, false}, {"second-LIVE1.png", "", true, false},
		{"LIVE1_1-GONE.png", "", true, true}, {"LIVE1_1 GONE.txt", "text", true, true},
		{"a.csv", "n,file\n1,LIVE1_1.jpg\n", true, false}, {"a.csv", "n,id\n1,LIVE1_1\n", true, false},
		{"a.csv", "n,file\n1,LIVE1-1.jpg\n", false, false},
		{"a.csv", "n,file\n1,LIVE1_1.jpg;GONE.jpg\n", true, true}, {"a.csv", "n,file\n1,GONE/LIVE1_1.jpg\n", true, true},
		{"a.csv", "n,file\n1,\"LIVE1-1.jpg, LIVE1-2.jpg, GONE.jpg\"\n", false, true},
		{"a.txt", "this is LIVE1_1 as it was, and LIVE1_0 was never", true, false},
	} {
		file, body := filepath.Join(t.TempDir(), with.Replace(c.name)), []byte(with.Replace(c.text))
		if c.text == "" {
			body = encodePNG(drawn(77))
		}
		testkit.OK(t, os.WriteFile(file, body, 0o600))
		r := w.audit(t, w.ws, file)
		testkit.Same(t, c.name+" "+c.text, []bool{c.open, c.gone}, []bool{
			slices.ContainsFunc(r.Open, func(o Open) bool { return strings.Contains(o.What, "which image is meant") }),
			slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.ID == goneUnseen })})
	}
}

// TestRowsOfAGalleryThatLostItsFirstImage: the id of its post stands for that image where the row, or a column of the
// table, says which images it is of; what other rows say leaves the audit open.
func TestRowsOfAGalleryThatLostItsFirstImage(t *testing.T) {
	w := withoutFirstImage(t)
	for _, c := range []struct {
		text       string
		open, gone bool
	}{
		{"id,file\nLIVE2,LIVE2.jpg\nLIVE1,zz8y7x6w.jpg\n", true, false},
		{"id,file\nLIVE2,LIVE2.jpg\nLIVE1,LIVE1 (2).jpg\n", true, false},
		{"id,file\nLIVE1,LIVE1-2.jpg\nLIVE1,zz8y7x6w.jpg\n", true, false},
		{"id,file\nLIVE1,zz8y7x6w.jpg\n", true, false},
		{"id,file\nLIVE1,LIVE2-3.jpg\n", true, false},
		{"id,file\nLIVE1,x\nLIVE2,LIVE1-3.jpg\n", true, false},
		{`[{"id":"LIVE1"},{"image":"LIVE1-3.jpg"}]`, true, false},
		{`[{"LIVE1":"a","LIVE1-3.jpg":"b"}]`, true, false},
		{`{"id":["LIVE1","LIVE1-3.jpg"]}`, true, false},
		{"id,file\nLIVE1,LIVE1-2.jpg\n", false, false},
		{"id,file\nLIVE2,zz8y7x6w.jpg\nLIVE1,LIVE1.jpg\n", false, true},
		{"id,n\nLIVE2/1,1\nLIVE1,2\n", false, true},
		{"id,image,n\nLIVE2,1,1\nLIVE1,0,2\n", false, true},
	} {
		file := filepath.Join(t.TempDir(), "posts")
		testkit.OK(t, os.WriteFile(file, []byte(strings.NewReplacer("LIVE1", live1, "LIVE2", live2).Replace(c.text)), 0o600))
		r := w.audit(t, w.ws, file)
		testkit.Same(t, c.text, []bool{c.open, c.gone}, []bool{
			slices.ContainsFunc(r.Open, func(o Open) bool { return strings.Contains(o.Where, "/posts") }),
			slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.ID == live1 })})
	}
}
