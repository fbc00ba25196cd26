package manifest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFigSIMSchema(t *testing.T) {
	s := FigSIM()
	for i := range s.Categories {
		if message, _ := s.Categories[i].fault(); message != "" {
			t.Errorf("category %s: %s", s.Categories[i].Name, message)
		}
	}
	severity := s.Categories[1]
	if got := strings.Join(labelCodes(severity.Labels), " "); got != "SS6 SS1 SS2 SS3 SS4 SS5" ||
		severity.Kind != Ordinal {
		t.Errorf("severity is %s, from lowest to highest %s", severity.Kind, got)
	}
	s.Categories[0].Labels[0].Name = "changed"
	if FigSIM().Categories[0].Labels[0].Name == "changed" {
		t.Error("FigSIM shares its labels between calls")
	}
}

func TestOpenFolder(t *testing.T) {
	dir := folder(t, map[string]string{
		SettingsName: `
name = "Two moods"   # a comment
version = "1.2"
date = 2025-02-28
homepage = "https://example.org"
license = "CC-BY-4.0"
citation = """
Somebody.
[columns]
"""
manifest = "data/rows.txt"
format = "tsv"

[[category]]
name = "mood"
title = "Mood of it"
kind = "multi"
labels = [{code = "H", name = "Happy"}, {code = "S", name = "Sad"}, {code = "N", name = "None", exclusive = true}]

[[category]]
name = "size"
kind = "ordinal"
labels = [{code = "small"}, {code = "large"}]

[columns]
id = "Post"
split = ""
mood = {H = "is happy", S = "is sad"}
size = "How large"

[labels.size]
big = "large"
`,
		"data/rows.txt": "Post\tsplit\tis happy\tis sad\tHow large\nt3_B1\t?\t1\ttrue\tBIG\nb2\t?\t0\t\tsmall\n",
	})
	r, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{r.Name, r.Version, r.Date, r.Homepage, r.License, r.Citation, r.Dir, r.ManifestPath, r.Schema.Name,
		r.Schema.Categories[1].Title}
	want := []string{"Two moods", "1.2", "2025-02-28", "https://example.org", "CC-BY-4.0", "Somebody.\n[columns]\n", dir,
		filepath.Join(dir, "data/rows.txt"), "Two moods", "size"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("release (-want +got):\n%s", diff)
	}
	list, err := entries(t, r, nil)
	wantEntries := []Entry{
		{Key: Key{ID: "b1"}, Line: 2, Split: "train", Labels: [][]int{{0, 1}, {1}}},
		{Key: Key{ID: "b2"}, Line: 3, Ordinal: 1, Split: "train", Labels: [][]int{{}, {0}}},
	}
	if diff := cmp.Diff(wantEntries, list); err != nil || diff != "" {
		t.Errorf("%v, entries (-want +got):\n%s", err, diff)
	}
	if byFile, err := Open(filepath.Join(dir, SettingsName), Options{}); err != nil || byFile.Digest != r.Digest {
		t.Errorf("opened by its release.toml: %v", err)
	}
}

func TestDigests(t *testing.T) {
	open := func(settings, rows string) *Release {
		r, err := release(t, settings, rows)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first, again := open(figsimTOML, figsimHeader+testRow), open(figsimTOML, figsimHeader+testRow)
	comment := open(figsimTOML+"# hi\n", figsimHeader+testRow)
	row := open(figsimTOML, figsimHeader+strings.Replace(testRow, "F1", "F2", 1))
	// docs/files.md: SHA-256 of release.toml and then of the manifest's digest in hexadecimal digits.
	whole := sha256.Sum256([]byte(figsimTOML + first.ManifestDigest))
	if first.Digest != again.Digest || first.Digest != hex.EncodeToString(whole[:]) {
		t.Errorf("digests of equal releases: %q and %q", first.Digest, again.Digest)
	}
	if comment.Digest == first.Digest || comment.ManifestDigest != first.ManifestDigest {
		t.Error("another release.toml: want another Digest and the same ManifestDigest")
	}
	if row.Digest == first.Digest || row.ManifestDigest == first.ManifestDigest {
		t.Error("another manifest: want another Digest and ManifestDigest")
	}
}

func TestOpenRefusesWhatIsNoRelease(t *testing.T) {
	dir := folder(t, map[string]string{"a.csv": figsimHeader})
	pipe := filepath.Join(dir, "pipe.csv")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(pipe, Options{}); !errors.Is(err, errNotRegular) { // to open it would wait for ever
		t.Errorf("a pipe: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "none.csv"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v, want ErrNotExist", err)
	}
	if _, err := Open(folder(t, map[string]string{SettingsName + "/x": ""}), Options{}); !errors.Is(err, errNotRegular) {
		t.Errorf("release.toml is a folder: %v", err)
	}
	_, err := Open(folder(t, map[string]string{SettingsName: figsimTOML, "a.csv": "", TombstonesName + "/x": ""}),
		Options{})
	wantPlaces(t, "", err, `release.toml:1:0 tombstones "tombstones.csv" cannot be opened: not a regular file`)
	for name, want := range map[string]string{
		"": "rehydrate init DIR --manifest FILE", "a.zip": "unpack it", "a.xlsx": "save the sheet as CSV",
		"a": "name it .csv, .tsv, .jsonl, .json or .parquet", "a.parquet": "save the manifest as CSV",
	} {
		path := dir
		if name != "" {
			path = file(t, name, "x")
		}
		if _, err := Open(path, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

func TestEntriesStops(t *testing.T) {
	text := figsimHeader + testRow + "abd,train,F1,SS1,SR1,M1,C1\nt1_x,train,F1,SS1,SR1,M1,C1\nabe,train,F1,SS1,SR1,M1,C1\n"
	r, err := Open(file(t, "a.csv", text), Options{})
	list, err := entries(t, r, err)
	wantPlaces(t, "", err, "a.csv:4:1")
	if len(list) != 3 || list[2].Ordinal != 2 {
		t.Errorf("entries %+v, want 3", list)
	}
	for range r.Entries(t.Context()) { // leaving early must not panic
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n, failed := 0, error(nil)
	for _, err := range r.Entries(ctx) {
		if failed = err; err == nil {
			n++
		}
		cancel()
	}
	if n != 1 || !errors.Is(failed, context.Canceled) {
		t.Errorf("cancelled: %d entries, %v, want 1 and context.Canceled", n, failed)
	}
}

func TestChangedManifestIsNoticed(t *testing.T) {
	r, err := Open(file(t, "a.csv", figsimHeader+testRow), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		figsimHeader + "abd,train,F1,SS1,SR1,M1,C1\n": "was changed", "id\nabc\n": "no longer has column",
	} {
		if err := os.WriteFile(r.ManifestPath, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Check(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	os.Remove(r.ManifestPath)
	if _, err := r.Check(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("manifest removed: %v", err)
	}
}

// A value that cannot be used is reported beside the row's other problems, and only where its
// column is used; of the others no cell is asked for.
func TestParquetManifest(t *testing.T) {
	fault := Cell{Text: "memes", Fault: "is a list with a null in it"}
	memes, train, ss1, m1, c1 := text("memes"), text("train"), text("SS1"), text("M1"), text("C1")
	columns := "subreddit," + strings.TrimSpace(figsimHeader) + ",unused"
	rows := [][]Cell{
		{memes, text("abc"), train, items("F1", "F3"), ss1, items(), m1, {Null: true}, fault},
		{memes, text("t1_x"), fault, fault, text("SS9"), items(), m1, c1, fault},
		{fault, text("abd"), train, items("F1"), ss1, items(), m1, c1, fault},
		{memes, {Text: "100000", Float: true}, train, items("F1"), ss1, items(), m1, c1, fault},
	}
	o := parquet(columns, nil, rows...)
	var wanted [][]string
	open := o.OpenParquet
	o.OpenParquet = func(path string, want []string) (RowReader, error) {
		wanted = append(wanted, want)
		return open(path, want)
	}
	path := file(t, "a.parquet", "any")
	r, err := Open(path, o)
	list, err := entries(t, r, err)
	wantPlaces(t, "", err, `a.parquet:2:2 "t1_x" is the id of a comment`,
		"a.parquet:2:3 the value is a list with a null in it",
		"a.parquet:2:4 the value is a list with a null in it", `a.parquet:2:5 "SS9" is not a label`,
		`a.parquet:4:2 "100000" is not a post id but a floating-point number`)
	want := []Entry{
		{Key: Key{ID: "abc"}, Line: 1, Split: "train", Labels: [][]int{{0, 2}, {1}, {}, {0}, nil}, Subreddit: "memes"},
		{Key: Key{ID: "abd"}, Line: 3, Ordinal: 1, Split: "train", Labels: [][]int{{0}, {1}, {}, {0}, {0}}},
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("good entries (-want +got):\n%s", diff)
	}
	used := []string{"context", "figurative", "id", "modality", "related_content", "severity", "split", "subreddit"}
	if diff := cmp.Diff([][]string{{}, used}, wanted); diff != "" { // the names, then the rows
		t.Errorf("columns asked for (-want +got):\n%s", diff)
	}

	unread := parquet("id,split,figurative,related_content,modality,context,severity:map", nil)
	_, err = Open(path, unread)
	wantPlaces(t, "", err, `a.parquet:1:0 a file without release.toml needs FigSIM's columns, and this one lacks severity; `+
		`the columns are "id", "split", "figurative", "related_content", "modality", "context"; not "severity": its `+
		`Parquet type, map, is not read`)
	named := folder(t, map[string]string{"a.parquet": "any",
		"release.toml": "name = \"x\"\nmanifest = \"a.parquet\"\n[columns]\nid = \"key\"\n"})
	_, err = Open(named, parquet("key:map,label", nil))
	wantPlaces(t, "", err, `release.toml:4:1 column "key" cannot be used: its Parquet type, map, is not read`)

	broken := errors.New("page is corrupt")
	r, err = Open(path, parquet(columns, broken, rows[0]))
	if list, err = entries(t, r, err); len(list) != 1 || !errors.Is(err, broken) ||
		!strings.Contains(err.Error(), "a.parquet: row 2: ") {
		t.Errorf("a corrupt page: %d entries, %v", len(list), err)
	}
	_, err = Open(path, Options{OpenParquet: func(path string, _ []string) (RowReader, error) {
		return nil, &Problem{File: path, Line: 1, Message: "cut off", Hint: "copy it once more"}
	}})
	wantPlaces(t, "", err, "a.parquet:1:0 cut off")
}
