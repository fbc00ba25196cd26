package neardup

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"image"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"maps"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"golang.org/x/image/draw"

	"rehydrate/dedupe"
	"rehydrate/internal/durable"
	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset/pictures"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
	"rehydrate/policy"
)

func asJPEG(t testing.TB, img image.Image, quality int) []byte {
	return encoded(t, func(w io.Writer) error { return jpeg.Encode(w, img, &jpeg.Options{Quality: quality}) })
}

func asPNG(t testing.TB, img image.Image) []byte {
	return encoded(t, func(w io.Writer) error { return png.Encode(w, img) })
}

func asGIF(t testing.TB, frames ...image.Image) []byte {
	all := &gif.GIF{Delay: make([]int, len(frames))}
	for _, frame := range frames {
		small := image.NewPaletted(frame.Bounds(), palette.Plan9)
		draw.FloydSteinberg.Draw(small, small.Bounds(), frame, image.Point{})
		all.Image = append(all.Image, small)
	}
	return encoded(t, func(w io.Writer) error { return gif.EncodeAll(w, all) })
}

func encoded(t testing.TB, encode func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	testkit.OK(t, encode(&b))
	return b.Bytes()
}

func resized(img image.Image, w, h int) image.Image {
	small := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.CatmullRom.Scale(small, small.Bounds(), img, img.Bounds(), draw.Src, nil)
	return small
}

// gallery is a folder of pictures: three scenes with copies, two without.
func gallery(t testing.TB) map[string][]byte {
	one, two, three := redditemu.Photo(1, 320, 240), redditemu.Photo(2, 300, 300), redditemu.Photo(3, 240, 320)
	webp, err := redditemu.Draw(redditemu.Spec{Seed: 7, Format: "webp"})
	testkit.OK(t, err)
	return map[string][]byte{
		"b/one.jpg":         asJPEG(t, one, 92),
		"c/recompressed":    asJPEG(t, one, 8),
		"c/smaller.png":     asPNG(t, resized(one, 160, 120)),
		"a two.png":         asPNG(t, two),
		"Z/two again.jpeg":  asJPEG(t, two, 60),
		"three.gif":         asGIF(t, three, resized(two, 240, 320)),
		"tree/three.jpg":    asJPEG(t, resized(three, 480, 640), 80),
		"alone.jpg":         asJPEG(t, redditemu.Photo(4, 200, 200), 90),
		"notes.txt":         []byte("no picture"),
		"d/e/f/lonely.webp": webp.Body,
	}
}

func writeFolder(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, body := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		testkit.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
		testkit.OK(t, os.WriteFile(path, body, 0o600))
	}
	return dir
}

// config compares the pictures of path as a user does who gives no flags.
func config(t testing.TB, path string) Config {
	p := policy.Default()
	return Config{Path: path, Rule: dedupe.Rule{Radius: p.Dedupe.HashRadius, Words: p.Dedupe.WordDifference},
		Images: p.Images, Workers: 2, Out: filepath.Join(t.TempDir(), "answer"), Pictures: 100}
}

// saved is the path of a new file with that content.
func saved(t testing.TB, content string) string {
	return filepath.Join(writeFolder(t, map[string][]byte{"saved": []byte(content)}), "saved")
}

func find(t testing.TB, c Config) Summary {
	t.Helper()
	f, err := Open(t.Context(), c)
	testkit.OK(t, err)
	s, err := f.Find(t.Context())
	testkit.OK(t, err)
	return s
}

// records are those of a CSV of an answer, without the header.
func records(t testing.TB, dir, name string) [][]string {
	t.Helper()
	all, err := csv.NewReader(strings.NewReader(answerOf(t, dir)[name])).ReadAll()
	testkit.OK(t, err)
	return all[1:]
}

// nearPairs are the files of groups.csv: group, file, duplicate_of, class.
func nearPairs(t testing.TB, dir string) []string {
	t.Helper()
	var all []string
	var first []string // of the group
	for _, r := range records(t, dir, groupsName) {
		distance := ""
		if r[3] == "" {
			first = r
		} else {
			var a, b uint64
			_, err := fmt.Sscanf(first[7]+" "+r[7], "%x %x", &a, &b)
			testkit.OK(t, err)
			distance = strconv.Itoa(bits.OnesCount64(a ^ b))
		}
		if kept := r[3] == ""; kept != (r[2] == "true") || kept != (r[6] == "") || r[4] != distance {
			t.Errorf("a record that contradicts itself: %q, at distance %s", r, distance)
		}
		all = append(all, strings.Join([]string{r[0], r[1], r[3], r[6]}, "|"))
	}
	return all
}

func TestFind(t *testing.T) {
	c := config(t, writeFolder(t, gallery(t)))
	s := find(t, c)
	want := []string{
		"1|Z/two again.jpeg||", "1|a two.png|Z/two again.jpeg|image",
		"2|b/one.jpg||", "2|c/recompressed|b/one.jpg|image", "2|c/smaller.png|b/one.jpg|image",
		"3|three.gif||", "3|tree/three.jpg|three.gif|image",
	}
	testkit.Same(t, "", want, nearPairs(t, c.Out))
	wantSum := Summary{Source: c.Path, Files: 9, Skipped: 1, Reasons: map[string]int{}, Groups: 3, Duplicates: 4,
		Classes: map[string]int{"image": 4}, Mode: ModeImage, Radius: 8, Hash: dedupe.HashKind(), Shown: 7,
		Written: []string{filepath.Join(c.Out, sheetName), filepath.Join(c.Out, unreadableName),
			filepath.Join(c.Out, groupsName)}}
	testkit.Same(t, "", wantSum, s)
	testkit.Same(t, "unreadable", [][]string{}, records(t, c.Out, unreadableName))
	page := answerOf(t, c.Out)[sheetName]
	if n := strings.Count(page, "<img "); n != 7 || !strings.Contains(page, "2 of 64 bits differ") {
		t.Errorf("the contact sheet shows %d pictures, want 7, or does not say that 2 bits differ", n)
	}
}

// TestFindText: with texts, the words decide between pictures on one template.
func TestFindText(t *testing.T) {
	template := asJPEG(t, redditemu.Photo(5, 300, 300), 90)
	files := map[string][]byte{"1.jpg": template, "2.jpg": template, "3.jpg": template, "4.jpg": template,
		"5.jpg": template}
	want := []string{"1|1.jpg||", "1|2.jpg|1.jpg|near_text", "2|4.jpg||", "2|5.jpg|4.jpg|no_text"}
	unknown := map[string]int{"csv": 1, "json": 2, "ocr": 2} // pictures of which it is not known which words they have
	for name, text := range map[string]string{
		"csv":  "text,more,file\none two three four,x,1.jpg\n\"One, two THREE!\",,2.jpg\nsome other words here,,3.jpg\n,,5.jpg\nlost,,none.jpg\n",
		"json": `{"file":"1.jpg","text":"one two three four"}` + "\n\n" + `{"file":"2.jpg","text":"one two three"}` + "\n" + `{"file":"3.jpg","text":"some other words here"}` + "\n" + `{"file":"none.jpg","text":"x"}`,
		"ocr": `{"file":"DIR/1.jpg","text":"x","confidence":9,"words":[{"text":"one","confidence":90},{"text":"two","confidence":80},{"text":"three","confidence":99},{"text":"smudge","confidence":79}]}` + "\n" +
			`{"file":"DIR/2.jpg","text":"one two","words":[{"text":"one","confidence":90},{"text":"two","confidence":80}]}` + "\n" +
			`{"file":"DIR/3.jpg","text":"","words":[{"text":"some","confidence":90},{"text":"other","confidence":80},{"text":"words","confidence":80},{"text":"here","confidence":80}]}` + "\n" +
			`{"file":"DIR/4.jpg","error":"decode jpeg","reason":"undecodable"}` + "\n" + `{"file":"elsewhere/1.jpg","text":"x"}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := config(t, writeFolder(t, files))
			c.Texts = saved(t, "\ufeff"+strings.ReplaceAll(text, "DIR", c.Path))
			s := find(t, c)
			testkit.Same(t, "", want, nearPairs(t, c.Out))
			if s.Mode != modeText || s.Words != 3 || s.WithText != 3 || s.NotFound != 1 || s.NoText != unknown[name] ||
				s.TextFrom != c.Texts {
				t.Errorf("summary: %+v", s)
			}
			c.Rule = dedupe.Rule{Radius: 8, Words: 3, ImageOnly: true}
			c.Force = true
			if s := find(t, c); s.Duplicates != 4 || s.Mode != ModeImage {
				t.Errorf("as pictures alone: %+v", s)
			}
		})
	}
}

// TestFindTextNested: the texts of a file name pictures one way. Where a folder holds one of its
// own name, a picture's path is another one's name, and no text goes to two pictures.
func TestFindTextNested(t *testing.T) {
	picture := asJPEG(t, redditemu.Photo(5, 100, 100), 90)
	t.Chdir(writeFolder(t, map[string][]byte{"a/x.jpg": picture, "a/a/x.jpg": picture}))
	for name, text := range map[string]string{
		"paths": "file,text\na/x.jpg,one two three four\n./a/a/x.jpg,five six seven eight\n",
		"names": "file,text\nx.jpg,one two three four\na/x.jpg,five six seven eight\n",
	} {
		c := config(t, "a")
		c.Texts = saved(t, text)
		if s := find(t, c); s.Duplicates != 0 || s.WithText != 2 || s.NotFound != 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// TestFindSpared: the summary says what the guard would keep, and the guard keeps it.
func TestFindSpared(t *testing.T) {
	template := asJPEG(t, redditemu.Photo(5, 300, 300), 90)
	c := config(t, writeFolder(t, map[string][]byte{"1.jpg": template, "2.jpg": template, "3.jpg": template}))
	c.Texts = saved(t, "file,text\n1.jpg,me irl\n2.jpg,oh no\n3.jpg,me irl\n")
	if s := find(t, c); s.Duplicates != 2 || s.Spared != 1 {
		t.Errorf("%d duplicates, %d would be spared; want 2, 1", s.Duplicates, s.Spared)
	}
	c.Force, c.Rule.Guard = true, true
	if s := find(t, c); s.Duplicates != 1 || s.Spared != 0 || !s.Guard {
		t.Errorf("under the guard: %+v", s)
	}
}

// TestFindHostile gives the whole corpus of hostile images: each is read, or a row with the reason
// that a run has for it. None ends the search.
func TestFindHostile(t *testing.T) {
	files := map[string][]byte{}
	want, broken := map[string]string{}, map[string]bool{}
	for _, h := range hostile.Images("127.0.0.1:1") {
		var b bytes.Buffer
		testkit.OK(t, h.Write(&b))
		files[h.Name+".png"] = b.Bytes()
		switch {
		case h.Reason == "bad_container": // a run takes the container apart, to strip it; here its pixels alone count
			broken[h.Name+".png"] = true
		case h.Outcome != manifest.Kept:
			want[h.Name+".png"] = string(h.Reason)
		}
	}
	c := config(t, writeFolder(t, files))
	s := find(t, c)
	got := map[string]string{}
	for _, r := range records(t, c.Out, unreadableName) {
		if broken[r[0]] && r[1] == "undecodable" {
			continue
		}
		got[r[0]] = r[1]
	}
	testkit.Same(t, "", want, got)
	if s.Files != len(files) || s.Unreadable < len(want) || len(want) < 20 {
		t.Errorf("%d files, %d unreadable; want %d, at least %d", s.Files, s.Unreadable, len(files), len(want))
	}
}

// TestFindStrangeFiles: links are not followed, pipes are not waited for, what is called
// a picture but is not one is reported, and files with other names are skipped.
func TestFindStrangeFiles(t *testing.T) {
	body := asJPEG(t, redditemu.Photo(6, 200, 200), 90)
	dir := writeFolder(t, map[string][]byte{"real.jpg": body, "text.png": []byte("only text"), "empty.gif": nil,
		"photo.HEIC": []byte("\x00\x00\x00\x18ftypheic"),
		"readme":     []byte("text"), "unnamed": body, "cut.jpg": body[:len(body)/2], "sub/x.jpg": body})
	outside := writeFolder(t, map[string][]byte{"secret.jpg": body})
	for link, to := range map[string]string{"link.jpg": filepath.Join(dir, "real.jpg"), "folder": outside, "loop": dir,
		"dangling.jpg": "none"} {
		testkit.OK(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	testkit.OK(t, syscall.Mkfifo(filepath.Join(dir, "pipe.jpg"), 0o600))
	c := config(t, dir)
	c.Out = filepath.Join(dir, "sub", "answer") // the folder of the answer is not looked through
	s := find(t, c)
	want := map[string]int{"not_an_image": 1, "empty_body": 1, "not_an_image_heic": 1, "undecodable": 1}
	testkit.Same(t, "", want, s.Reasons)
	if s.Files != 7 || s.Duplicates != 2 || s.Skipped != 1+4+1 {
		t.Errorf("%d pictures, %d duplicates, %d skipped; want 7, 2, 6", s.Files, s.Duplicates, s.Skipped)
	}
	link := filepath.Join(t.TempDir(), "link to the folder")
	testkit.OK(t, os.Symlink(dir, link))
	c.Path, c.Force = link, true
	if again := find(t, c); again.Files != s.Files || again.Skipped != s.Skipped {
		t.Errorf("through a link: %+v, want %+v", again, s)
	}
}

// answerOf returns the bytes of all files of an answer.
func answerOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	testkit.OK(t, err)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		testkit.OK(t, err)
		files[e.Name()] = string(b)
	}
	return files
}

// TestFindDeterministic: the answer depends on neither the workers nor the order of the folder.
func TestFindDeterministic(t *testing.T) {
	files := gallery(t)
	for i := range uint64(30) {
		files[fmt.Sprintf("more/%02d.jpg", i)] = asJPEG(t, redditemu.Photo(10+i/3, 160, 160), 50+int(i))
	}
	files["bad.png"], files["worse.png"] = []byte("bad"), nil
	dir := writeFolder(t, files)
	var first map[string]string
	for _, workers := range []int{1, 2, 8} {
		c := config(t, dir)
		c.Workers = workers
		if s := find(t, c); s.Groups != 13 {
			t.Errorf("%d groups, want 13", s.Groups)
		}
		got := answerOf(t, c.Out)
		if first == nil {
			first = got
		}
		testkit.Same(t, fmt.Sprint(workers, " workers"), first, got)
	}
}

type structRow struct {
	ID    string `parquet:"id"`
	Image struct {
		Bytes []byte `parquet:"bytes,optional"`
		Path  string `parquet:"path,optional"`
	} `parquet:"image,optional"`
	Text    string `parquet:"ocr_text,optional"`
	Caption string `parquet:"caption,optional"`
}

type flatRow struct {
	Label   int64  `parquet:"label"`
	Data    []byte `parquet:"data,optional"`
	Caption string `parquet:"caption,optional"`
}

func writeParquet[T any](t testing.TB, rows []T, options ...parquet.WriterOption) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pictures.parquet")
	testkit.OK(t, parquet.WriteFile(path, rows, options...))
	return path
}

// tableRows are pictures with texts: row 1 is near row 0, row 3 has another caption, row 5 has no picture.
func tableRows(t testing.TB) (structs []structRow, flats []flatRow) {
	one := redditemu.Photo(7, 256, 256)
	bodies := [][]byte{asJPEG(t, one, 90), asJPEG(t, one, 40), asPNG(t, redditemu.Photo(8, 200, 200)), asPNG(t, one),
		[]byte("no picture"), nil}
	texts := []string{"a b c d", "a b c", "", "quite another caption", "", ""}
	for i := range bodies {
		row := structRow{ID: strconv.Itoa(i), Text: texts[i], Caption: "same"}
		row.Image.Bytes = bodies[i]
		if i != 2 {
			row.Image.Path = "p.jpg"
		}
		structs = append(structs, row)
		flats = append(flats, flatRow{Data: bodies[i], Caption: texts[i]})
	}
	return structs, flats
}

func TestFindParquet(t *testing.T) {
	structs, flats := tableRows(t)
	withText := []string{"1|p.jpg#0||", "1|p.jpg#1|p.jpg#0|near_text"}
	texts := saved(t, "file,text\np.jpg#0,x y z\np.jpg,x y z\np.jpg#3,u v w\n")
	for _, tt := range []struct {
		name    string
		path    string
		columns pictures.Columns
		only    bool
		want    []string
		from    string
	}{
		{"struct", writeParquet(t, structs), pictures.Columns{}, false, withText, "column ocr_text"},
		{"small row groups", writeParquet(t, structs, parquet.MaxRowsPerRowGroup(2), parquet.Compression(&parquet.Zstd)),
			pictures.Columns{Image: "image"}, false, withText, "column ocr_text"},
		{"image only", writeParquet(t, structs), pictures.Columns{}, true,
			[]string{"1|p.jpg#0||", "1|p.jpg#1|p.jpg#0|image", "1|p.jpg#3|p.jpg#0|image"}, ""},
		{"text column", writeParquet(t, structs), pictures.Columns{Text: "caption"}, false,
			[]string{"1|p.jpg#0||", "1|p.jpg#1|p.jpg#0|same_text", "1|p.jpg#3|p.jpg#0|same_text"}, "column caption"},
		{"flat", writeParquet(t, flats), pictures.Columns{Image: "data", Text: "caption"}, false,
			[]string{"1|#0||", "1|#1|#0|near_text"}, "column caption"},
		// Texts of a file belong to a row by its name, or by its path.
		{"file of texts", writeParquet(t, structs), pictures.Columns{}, false,
			[]string{"1|p.jpg#0||", "1|p.jpg#1|p.jpg#0|same_text"}, texts},
		{"flat without text", writeParquet(t, flats), pictures.Columns{}, false,
			[]string{"1|#0||", "1|#1|#0|image", "1|#3|#0|image"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := config(t, tt.path)
			c.Columns, c.Rule.ImageOnly = tt.columns, tt.only
			if tt.from == texts {
				c.Texts = texts
			}
			s := find(t, c)
			testkit.Same(t, "", tt.want, nearPairs(t, c.Out))
			if diff := cmp.Diff(map[string]int{"no_image": 1, "not_an_image": 1}, s.Reasons); diff != "" || s.Files != 6 ||
				s.TextFrom != tt.from || s.Shown != len(tt.want) {
				t.Errorf("%s\n%+v", diff, s)
			}
		})
	}
}

// TestFindDamaged: a Parquet that is cut off or damaged is an error, and nothing is written.
func TestFindDamaged(t *testing.T) {
	structs, _ := tableRows(t)
	whole, err := os.ReadFile(writeParquet(t, structs))
	testkit.OK(t, err)
	for _, body := range [][]byte{whole[:len(whole)/2],
		append(slices.Repeat([]byte{0xff}, len(whole)-3000), whole[len(whole)-3000:]...), []byte("PAR1PAR1PAR1"), nil} {
		c := config(t, filepath.Join(t.TempDir(), "x.parquet"))
		testkit.OK(t, os.WriteFile(c.Path, body, 0o600))
		f, err := Open(t.Context(), c)
		if err == nil {
			_, err = f.Find(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), c.Path) {
			t.Errorf("%d damaged bytes: %v", len(body), err)
		}
		if _, err := os.Lstat(c.Out); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%d damaged bytes: something was written (%v)", len(body), err)
		}
	}
}

// TestFindInterrupted: an interrupted search leaves nothing, and the earlier answer as it was.
func TestFindInterrupted(t *testing.T) {
	dir := writeFolder(t, gallery(t))
	for _, stage := range []string{"hash", "draw"} {
		for _, earlier := range []bool{false, true} {
			c := config(t, dir)
			var want map[string]string
			if earlier {
				find(t, c)
				want = answerOf(t, c.Out)
				c.Force, c.Rule.Radius = true, 64
			}
			ctx, cancel := context.WithCancel(t.Context())
			c.Progress = func(p Progress) {
				if p.Stage == stage && p.Done == 2 {
					cancel()
				}
			}
			f, err := Open(ctx, c)
			testkit.OK(t, err)
			_, err = f.Find(ctx)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("stage %s: Find = %v, want an interrupt", stage, err)
			}
			if _, err := os.Lstat(c.Out); !earlier && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("stage %s: the folder of the answer is there (%v)", stage, err)
			}
			if earlier {
				testkit.Same(t, fmt.Sprintf("stage %s: the earlier answer changed", stage), want, answerOf(t, c.Out))
			}
		}
	}
}

// TestFindForce: an answer is written over with --force only, and then as a whole.
func TestFindForce(t *testing.T) {
	c := config(t, writeFolder(t, gallery(t)))
	find(t, c)
	if _, err := Open(t.Context(), c); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("a second answer = %v, want a refusal", err)
	}
	mine := filepath.Join(c.Out, "mine.txt")
	testkit.OK(t, os.WriteFile(mine, []byte("mine"), 0o600))
	c.Force, c.Pictures = true, 0
	find(t, c)
	// The contact sheet of the first answer shows what groups.csv no longer says.
	testkit.Same(t, "", []string{groupsName, "mine.txt", unreadableName}, slices.Sorted(maps.Keys(answerOf(t, c.Out))))
}

// TestAnswerCutShort: whatever step of the writing fails, the folder holds one whole answer, or no groups.csv, and
// nothing unfinished; what a killed search left is removed.
func TestAnswerCutShort(t *testing.T) {
	c := config(t, writeFolder(t, map[string][]byte{"a.png": asPNG(t, redditemu.Photo(1, 64, 64)),
		"b.png": asPNG(t, redditemu.Photo(1, 64, 64))}))
	c.Out, c.Force = filepath.Join(t.TempDir(), "out[1]*"), true
	newer := c
	newer.Rule.Radius = 63
	find(t, newer)
	whole := []map[string]string{answerOf(t, c.Out)}
	find(t, c)
	whole = append(whole, answerOf(t, c.Out))
	for n, steps := 1, 99; n < steps; n++ {
		find(t, c)
		left := filepath.Join(c.Out, unfinished+sheetName)
		testkit.OK(t, os.WriteFile(left, []byte("thumbnails"), 0o600))
		f, err := Open(t.Context(), newer)
		testkit.OK(t, err)
		step := 0
		_, err = f.Find(context.WithValue(t.Context(), durable.HookKey{}, func(string, string) error {
			step++
			if step == n {
				return io.ErrShortWrite
			}
			return nil
		}))
		got := answerOf(t, c.Out)
		if n == 1 {
			delete(got, unfinished+sheetName) // it could not be removed
		}
		same := func(one map[string]string) bool { return cmp.Equal(one, got) }
		if _, complete := got[groupsName]; complete && !slices.ContainsFunc(whole, same) ||
			got[unfinished+sheetName] != "" || len(got) > 3 {
			t.Errorf("step %d fails: %q", n, slices.Sorted(maps.Keys(got)))
		}
		if err == nil {
			steps = step
		}
	}
}

// TestFindSheetLimit: the contact sheet holds no more pictures than asked for, and no group of one.
func TestFindSheetLimit(t *testing.T) {
	files := map[string][]byte{}
	for i := range uint64(40) {
		files[fmt.Sprintf("%02d.jpg", i)] = asJPEG(t, redditemu.Photo(20+i/30, 120, 120), 60+int(i))
	}
	dir := writeFolder(t, files)
	for pictures, want := range map[int]int{1: 0, 2: 2, 5: 5, 25: mostOfGroup, 26: 26, 1000: mostOfGroup + 10} {
		c := config(t, dir)
		c.Pictures = pictures
		s := find(t, c)
		page := answerOf(t, c.Out)[sheetName]
		if n := strings.Count(page, "<img "); n != want || s.Shown != want || s.Groups != 2 {
			t.Errorf("%d pictures at most: %d shown, %d in the summary, want %d", pictures, n, s.Shown, want)
		}
		if !strings.Contains(page, fmt.Sprintf("Shown: %d of 40 grouped pictures", want)) {
			t.Errorf("%d pictures at most: the page does not say what it leaves out", pictures)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := writeFolder(t, map[string][]byte{"a.jpg": asJPEG(t, redditemu.Photo(1, 64, 64), 90),
		"bad.csv": []byte("name,text\nx,y\n"), "twice.csv": []byte("file,text\na.jpg,x\n./a.jpg,y\n"),
		"cut.csv":     []byte("file,text\n\"a.jpg,x\n"),
		"bad.jsonl":   []byte("{\"file\":\"a.jpg\",\"text\":\"x\"}\n{\"file\":\"b.jpg\"}\n"),
		"none.jsonl":  []byte("{\"text\":\"x\"}\n"),
		"typed.jsonl": []byte("{\"file\":\"a.jpg\",\"text\":7}\n"), "empty": nil, "ws/state.db": nil, "ws/lock": nil,
		"full/groups.csv/x": nil, "file": []byte("x")})
	pipe := filepath.Join(dir, "pipe")
	testkit.OK(t, syscall.Mkfifo(pipe, 0o600))
	in := func(name string) string { return filepath.Join(dir, name) }
	structs, _ := tableRows(t)
	table := writeParquet(t, structs)
	for _, tt := range []struct {
		name   string
		change func(c *Config)
		want   string
	}{
		{"no such folder", func(c *Config) { c.Path = in("none") }, "no such file"},
		{"a pipe", func(c *Config) { c.Path = pipe }, "neither a folder nor a file"},
		{"no Parquet", func(c *Config) { c.Path = in("file") }, "not a Parquet file"},
		{"a column of a folder", func(c *Config) { c.Columns.Image = "image" }, "only a Parquet file has columns"},
		{"no such column", func(c *Config) { c.Path, c.Columns.Image = table, "picture" }, `no column "picture"`},
		{"a guard without text", func(c *Config) { c.Rule.Guard = true }, "there are none"},
		{"no texts", func(c *Config) { c.Texts = in("none.csv") }, "there is no file or folder"},
		{"texts of a pipe", func(c *Config) { c.Texts = pipe }, "not a regular file"},
		{"no column file", func(c *Config) { c.Texts = in("bad.csv") }, "bad.csv:1: "},
		{"a file twice", func(c *Config) { c.Texts = in("twice.csv") }, "twice.csv:3: "},
		{"an open quote", func(c *Config) { c.Texts = in("cut.csv") }, "cut.csv:2: "},
		{"no text", func(c *Config) { c.Texts = in("bad.jsonl") }, "bad.jsonl:2: "},
		{"no file name", func(c *Config) { c.Texts = in("none.jsonl") }, "none.jsonl:1: "},
		{"a number for a text", func(c *Config) { c.Texts = in("typed.jsonl") }, "typed.jsonl:1: "},
		{"an empty file of texts", func(c *Config) { c.Texts = in("empty") }, "empty"},
		{"an answer in a workspace", func(c *Config) { c.Out = in("ws/sub/answer") }, "lies in a workspace"},
		{"an answer that is a folder", func(c *Config) { c.Out, c.Force = in("full"), true }, "groups.csv is a folder"},
		{"a place where nothing can be made", func(c *Config) { c.Out = "/proc/none/answer" },
			"write into /proc/none/answer"},
		{"an answer in a file", func(c *Config) { c.Out = in("file") }, "not a directory"},
	} {
		c := config(t, dir)
		tt.change(&c)
		_, err := Open(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Open = %v, want %q", tt.name, err, tt.want)
		}
	}
}

// TestTextBudget: texts that a small file repeats into megabytes are refused before they fill the memory, and images
// alone are compared all the same.
func TestTextBudget(t *testing.T) {
	type row struct {
		Image []byte `parquet:"image"`
		Text  string `parquet:"ocr_text,zstd"`
	}
	rows := slices.Repeat([]row{{asJPEG(t, redditemu.Photo(7, 64, 64), 90), strings.Repeat("a b ", 2560)}}, 600)
	c := config(t, writeParquet(t, rows))
	s, err := Open(t.Context(), c)
	if err == nil {
		_, err = s.Find(t.Context())
	}
	if want := "the texts of column ocr_text are too long to compare: up to #"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("Find = %v, want %q", err, want)
	}
	c.Rule.ImageOnly = true
	if s := find(t, c); s.Files != len(rows) {
		t.Errorf("images alone: %+v", s)
	}
	c.Path, c.Rule.ImageOnly, c.Force = writeParquet(t, rows[:300]), false, true
	if s := find(t, c); s.Files != 300 || s.WithText != 300 {
		t.Errorf("as much as may be: %+v", s)
	}
}

func FuzzTexts(f *testing.F) {
	f.Add([]byte("file,text\na.jpg,x\n"))
	f.Add([]byte(`{"file":"a","text":"b"}`))
	f.Add([]byte(`{"file":"a","words":[{"text":"b","confidence":81}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		texts, err := parseTexts(bytes.NewReader(b), "texts")
		var problem *manifest.Problem
		if err != nil && !errors.As(err, &problem) {
			t.Errorf("an error that names no line: %v", err)
		}
		if err == nil && texts.unused() != len(texts.tokens) {
			t.Error("texts are used before anybody asked")
		}
	})
}
