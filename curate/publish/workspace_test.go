package publish

import (
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"rehydrate/internal/durable"
	"rehydrate/internal/testkit"
	"rehydrate/internal/testkit/brokenoff"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// known is a workspace that has the image of the post abc1 and the words in it, under a release of two posts.
func known(t *testing.T, r *manifest.Release, text string) *workspace.Workspace {
	t.Helper()
	now := time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)
	ws, err := workspace.Open(t.Context(), filepath.Join(t.TempDir(), "ws"), workspace.Options{})
	testkit.OK(t, err)
	t.Cleanup(func() { ws.Close() })
	testkit.OK(t, ws.Load(t.Context(), workspace.Binding{Release: r.Name, ReleaseDigest: r.Digest,
		ManifestDigest: r.ManifestDigest, Schema: r.Schema,
		Splits: []string{"train"}}, r.Entries(t.Context()), nil))
	key, body := manifest.Key{ID: "abc1"}, []byte("an image")
	digest := func(of string) string { return state.SHA256([]byte(of)) }
	img := workspace.Image{SHA256: digest(string(body)), OriginalSHA256: digest("original"),
		PixelsSHA256: digest("pixels"), Format: "png", Width: 9, Height: 9,
		Bytes: int64(len(body)), PHash: 0xabc}
	testkit.OK(t, ws.SetPosts(t.Context(), []workspace.Post{{ID: "abc1", State: manifest.StateLive, CheckedAt: now,
		LiveAt: now}}),
		ws.StoreImage(t.Context(), key, body, img),
		ws.SetReadings(t.Context(), workspace.NewReading{Key: key,
			Reading: workspace.Reading{Fingerprint: "f", ImageSHA256: img.SHA256, Text: text}}))
	return ws
}

var two = map[string]string{"release.toml": bare, "a.csv": "id,tone\nabc1,a\nabc2,b\n"}

// TestDigestsOfImages: digests are published where they are asked for, of the images that are known, and counted.
func TestDigestsOfImages(t *testing.T) {
	for asked, want := range map[bool]int{true: 1, false: 0} {
		made, report, err := published(t, two, func(c *Config) { c.Workspace, c.Digests = known(t, c.Release, ""), asked })
		testkit.Same(t, "entries with digests", want, report.WithDigests, err)
		for _, digest := range []string{state.SHA256([]byte("original")), state.SHA256([]byte("pixels")),
			state.SHA256([]byte("an image")), "0000000000000abc"} {
			if strings.Contains(made["annotations.csv"], digest) != asked {
				t.Errorf("asked for digests: %t; annotations:\n%s", asked, made["annotations.csv"])
			}
		}
	}
}

// TestDigestsOfTheReleaseStay: where the workspace has no image, the digests that the release has are published.
func TestDigestsOfTheReleaseStay(t *testing.T) {
	digest := state.SHA256([]byte("theirs"))
	files := map[string]string{"release.toml": bare, "a.csv": "id,sha256,tone\nabc1,,a\nabc2," + digest + ",b\n"}
	made, report, err := published(t, files, func(c *Config) { c.Workspace, c.Digests = known(t, c.Release, ""), true })
	testkit.Same(t, "entries with digests", 2, report.WithDigests, err)
	if !strings.Contains(made["annotations.csv"], digest) {
		t.Errorf("annotations:\n%s", made["annotations.csv"])
	}
}

// TestLooksOfGonePosts: of a post that has a tombstone, also one that only the release has, no hash of its looks is
// published with digests, and it is counted where other digests are; without them a release is published as it is.
func TestLooksOfGonePosts(t *testing.T) {
	const own = "00000000000000f1"
	files := map[string]string{"release.toml": bare, "a.csv": "id,phash,tone\nabc1,,a\nabc2," + own + ",b\n"}
	for digests, want := range map[bool]string{true: "", false: own} {
		made, report, err := published(t, files, func(c *Config) {
			c.Workspace, c.Digests = known(t, c.Release, ""), digests
			for _, id := range []manifest.PostID{"abc1", "abc2"} {
				c.Tombstones = append(c.Tombstones,
					manifest.Tombstone{ID: id, State: manifest.StateRemoved, Time: time.Unix(1e9, 0)})
			}
		})
		testkit.Same(t, "entries with digests", 1, report.WithDigests, err)
		testkit.Same(t, "rows without a hash", map[bool]int{true: 1}[digests], report.Hidden)
		table := made["annotations.csv"]
		if strings.Contains(table, state.SHA256([]byte("original"))) != digests || strings.Contains(table, "abc,") ||
			strings.Contains(table, own) != (want != "") {
			t.Errorf("digests: %t; annotations:\n%s", digests, table)
		}
	}
}

// TestGoneCounted: the datasheet says how many entries are of posts that are gone.
func TestGoneCounted(t *testing.T) {
	made, _, err := published(t, two, func(c *Config) {
		for _, id := range []manifest.PostID{"abc2", "zzz9"} {
			c.Tombstones = append(c.Tombstones,
				manifest.Tombstone{ID: id, State: manifest.StateRemoved, Time: time.Unix(1e9, 0)})
		}
	})
	testkit.OK(t, err)
	if s := made[DatasheetName]; !strings.Contains(s, "\n1 entries are of posts that are known to be gone") {
		t.Errorf("the datasheet:\n%s", s)
	}
}

// TestTextsOfGonePosts: texts and JSON that pass through are left out where the post is gone, by the release or by the
// workspace, or its image is; ids, labels, numbers and times stay.
func TestTextsOfGonePosts(t *testing.T) {
	const said = "they made the whole office laugh"
	columns := bare
	for _, c := range []string{"note text", "more json", "score integer"} {
		name, kind, _ := strings.Cut(c, " ")
		columns += "[[column]]\nname = \"" + name + "\"\ntype = \"" + kind + "\"\n"
	}
	files := map[string]string{"release.toml": columns,
		"a.csv": "id,tone,note,more,score\nabc1,a," + said + ",\"{\"\"said\"\":1}\",7\nabc2,b,a short note,,8\n"}
	stone := manifest.Tombstone{ID: "abc1", State: manifest.StateDeleted, Time: time.Unix(1e9, 0)}
	for name, change := range map[string]func(c *Config, ws *workspace.Workspace){
		"the release": func(c *Config, _ *workspace.Workspace) { c.Tombstones = []manifest.Tombstone{stone} },
		"the workspace": func(c *Config, ws *workspace.Workspace) {
			c.Workspace = ws
			testkit.OK(t, ws.AddTombstones(t.Context(), []workspace.Tombstone{{Tombstone: stone}}),
				ws.Erase(t.Context(), "abc1"))
		},
		"unavailable": func(c *Config, ws *workspace.Workspace) {
			c.Workspace = ws
			testkit.OK(t, ws.SetPosts(t.Context(), []workspace.Post{{ID: "abc1", State: manifest.StateUnavailable,
				CheckedAt: time.Unix(1e9, 0)}}), ws.Erase(t.Context(), "abc1"))
		},
		"an image": func(c *Config, ws *workspace.Workspace) {
			c.Workspace = ws
			testkit.OK(t, ws.DropImage(t.Context(), manifest.Key{ID: "abc1"},
				workspace.Trouble{Outcome: manifest.Gone, Reason: policy.LeftGallery}, true))
		},
	} {
		made, report, err := published(t, files, func(c *Config) {
			change(c, known(t, c.Release, said))
			c.Keep = []string{"note", "more"}
		})
		testkit.Same(t, name+": rows without texts", 1, report.Emptied, err)
		testkit.Same(t, name, "id,split,tone,note,more,score\nabc1,train,a,,,7\nabc2,train,b,a short note,,8\n",
			made["annotations.csv"])
	}
}

// TestEmptiedTextsRenewTheDigest: the report says that the digest is a new one where a text was left out since the
// folder that is published again; where none was, the folder keeps its digest, whatever tombstones came.
func TestEmptiedTextsRenewTheDigest(t *testing.T) {
	files := map[string]string{"release.toml": bare + "[[column]]\nname = \"note\"\ntype = \"text\"\n",
		"a.csv": "id,tone,note\nabc1,a,a short note\nabc2,b,\n"}
	digest, stones := "", []manifest.Tombstone(nil)
	for _, test := range []struct {
		name, gone      string
		isNew, saysThat bool
	}{
		{"a draft", "", true, false},
		{"a row without a text is gone", "abc2", false, false},
		{"a row with a text is gone", "abc1", true, true},
		{"nothing more is gone", "", false, false},
	} {
		if test.gone != "" {
			stones = append(stones, manifest.Tombstone{ID: manifest.PostID(test.gone), State: manifest.StateDeleted,
				Time: time.Unix(1e9, 0)})
		}
		made, report, err := published(t, files, func(c *Config) { c.Tombstones, c.Keep = stones, []string{"note"} })
		testkit.Same(t, test.name+": says that the digest is new", test.saysThat, report.NewDigest, err)
		testkit.Same(t, test.name+": the digest is new", test.isNew, report.Digest != digest)
		files, digest = made, report.Digest
	}
}

// TestRowsCounted: what is left out is counted by rows, of which an image can have several, also where only a later row
// has a text.
func TestRowsCounted(t *testing.T) {
	const settings = "rows = \"many\"\n" + bare + "[[column]]\nname = \"note\"\ntype = \"text\"\n"
	files := map[string]string{"release.toml": settings,
		"a.csv": "id,tone,note\nabc1,a,\nabc1,b,one note\nabc2,b,a note\nabc1,a,another note\n"}
	made, report, err := published(t, files, func(c *Config) {
		c.Workspace, c.Digests, c.Keep = known(t, c.Release, "other words"), true, []string{"note"}
		testkit.OK(t, c.Workspace.SetPosts(t.Context(), []workspace.Post{{ID: "abc1", State: manifest.StateDeleted,
			Reason: "author", Withheld: true, CheckedAt: time.Unix(1e9, 0)}}))
	})
	testkit.Same(t, "rows without texts", 2, report.Emptied, err)
	testkit.Same(t, "rows without a hash", 3, report.Hidden)
	testkit.Same(t, "images", 2, report.Entries)
	if table := made["annotations.csv"]; strings.Count(table, " note") != 1 || strings.Contains(table, "phash") {
		t.Errorf("annotations:\n%s", table)
	}
}

// TestWordsOfImages: words that stand in an image are refused, and where they cannot be looked for nothing is
// published.
func TestWordsOfImages(t *testing.T) {
	const said = "they made the whole office laugh"
	files := map[string]string{"release.toml": bare + "[[column]]\nname = \"note\"\ntype = \"text\"\n",
		"a.csv": "id,tone,note\nabc1,a," + said + "\n"}
	for text, want := range map[string]string{"THEY MADE THE WHOLE OFFICE laugh!": "annotations.csv: 5 words in a row that stand in an image", "another caption of a meme": ""} {
		_, report, err := published(t, files, func(c *Config) {
			c.Workspace, c.Keep = known(t, c.Release, text),
				[]string{"note"}
		})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if err == nil && report.Checked != 1 {
			t.Errorf("%d texts were compared", report.Checked)
		}
	}
	dir := t.TempDir()
	for name, text := range two {
		testkit.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	r, err := manifest.Open(dir, manifest.Options{})
	testkit.OK(t, err)
	c := Config{Release: r, Policy: policy.Default(), Workspace: known(t, r, said), To: filepath.Join(t.TempDir(), "out")}
	closed := false
	ctx := context.WithValue(t.Context(), durable.HookKey{}, func(_, name string) error {
		if strings.Contains(name, DatasheetName) && !closed { // the last file before the search
			closed = true
			return c.Workspace.Close()
		}
		return nil
	})
	if _, err := Publish(ctx, c); err == nil || !closed {
		t.Errorf("the words could not be looked for (%t), and the release was published", closed)
	}
	if _, err := os.Stat(c.To); err == nil {
		t.Error("there is a folder")
	}
}

// TestSigned: a key signs the digests of all files, and without one there is no signature.
func TestSigned(t *testing.T) {
	block, err := ssh.MarshalPrivateKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), "")
	testkit.OK(t, err)
	const name = manifest.SumsName + manifest.SignatureSuffix
	made, report, err := published(t, two, func(c *Config) { c.Key = pem.EncodeToMemory(block) })
	testkit.OK(t, err)
	want, err := policy.Sign(pem.EncodeToMemory(block), policy.ReleaseNamespace,
		strings.NewReader(made[manifest.SumsName]))
	testkit.Same(t, "the signature", string(want), made[name], err)
	if !report.Signed || !strings.HasPrefix(made[name], "-----BEGIN SSH SIGNATURE-----") {
		t.Errorf("signed: %t, %s", report.Signed, made[name])
	}
	made, report, err = published(t, two, nil)
	if _, is := made[name]; is || report.Signed || err != nil {
		t.Errorf("without a key: signed %t, %v", report.Signed, err)
	}
	if _, _, err := published(t, two, func(c *Config) { c.Key = []byte("no key") }); err == nil ||
		!strings.Contains(err.Error(), "--sign") {
		t.Errorf("a key that is none: %v", err)
	}
}

// TestBrokenOffAnywhere: a publication that is stopped, or whose disk fails, says so wherever that happens, and leaves
// nothing.
func TestBrokenOffAnywhere(t *testing.T) {
	dir := t.TempDir()
	for name, text := range two {
		testkit.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	block, err := ssh.MarshalPrivateKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), "")
	testkit.OK(t, err)
	r, err := manifest.Open(dir, manifest.Options{})
	testkit.OK(t, err)
	c := Config{Release: r, Policy: policy.Default(), Workspace: known(t, r, "a caption"), Digests: true,
		Agreement: compared(nil), Key: pem.EncodeToMemory(block)}
	brokenoff.Anywhere(t, func(t *testing.T, repeat func(func(context.Context) error)) {
		parent := t.TempDir()
		c.To = filepath.Join(parent, "out")
		repeat(func(ctx context.Context) error {
			_, err := Publish(ctx, c)
			left, failed := os.ReadDir(parent)
			testkit.OK(t, failed)
			if err == nil {
				testkit.Same(t, "in the end", 1, len(left))
				_, failed := os.Stat(filepath.Join(c.To, manifest.SumsName+manifest.SignatureSuffix))
				testkit.OK(t, failed)
				return nil
			}
			_, failed = os.Stat(filepath.Join(c.To, manifest.SumsName)) // the last step makes the name last on the disk
			if len(left) > 0 && failed != nil {
				t.Fatalf("%v: %v is left", err, left)
			}
			testkit.OK(t, os.RemoveAll(c.To))
			return err
		})
	})
}

// TestReleaseThatChanges: a release that changes while it is published is not published.
func TestReleaseThatChanges(t *testing.T) {
	for _, rows := range []string{"id,tone\nabc1,b\nabc2,b\n", "id,tone\nabc1,a\n", "id,tone\nabc1,a\nabc2,b\nabc3,b\n",
		"id,tone\nabc1,q\nabc2,b\n"} {
		dir := t.TempDir()
		for name, text := range two {
			testkit.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		r, err := manifest.Open(dir, manifest.Options{})
		testkit.OK(t, err)
		ctx := context.WithValue(t.Context(), durable.HookKey{}, func(_, name string) error {
			if strings.Contains(name, DatasheetName) { // after the annotations were written
				return os.WriteFile(filepath.Join(dir, "a.csv"), []byte(rows), 0o600)
			}
			return nil
		})
		to := filepath.Join(t.TempDir(), "out")
		if _, err := Publish(ctx, Config{Release: r, Policy: policy.Default(), To: to}); err == nil {
			t.Errorf("published, and the release is by now\n%s", rows)
		}
		if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("there is a folder: %v", err)
		}
	}
}

// TestTombstonesOfWorkspace: what the workspace knows to be gone is published with the release's own tombstones.
func TestTombstonesOfWorkspace(t *testing.T) {
	at := time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)
	made, report, err := published(t, two, func(c *Config) {
		c.Workspace, c.Now = known(t, c.Release, ""), at.Add(3*time.Hour)
		c.Tombstones = []manifest.Tombstone{{ID: "zzz9", State: manifest.StateDeleted, Time: at.Add(time.Hour)}}
		testkit.OK(t, c.Workspace.AddTombstones(t.Context(), []workspace.Tombstone{
			{Tombstone: manifest.Tombstone{ID: "abc2", State: manifest.StateRemoved, Time: at.Add(2 * time.Hour)}},
			{Tombstone: manifest.Tombstone{ID: "other1", State: manifest.StateRemoved, Time: at}},
			// of no entry: it stays there
			{Tombstone: manifest.Tombstone{ID: "abc1", State: manifest.StateRemoved, Time: at}}}))
	})
	testkit.Same(t, "tombstones", "id,state,time\nabc1,removed,2026-01-10T12:00:00Z\n"+
		"zzz9,deleted,2026-01-10T13:00:00Z\nabc2,removed,2026-01-10T14:00:00Z\n", made[manifest.TombstonesName], err)
	testkit.Same(t, "counted", 3, report.Tombstones)
}

// TestTombstonesAreNamedInOrder: the posts that the workspace adds are named by their ids, whenever they went.
func TestTombstonesAreNamedInOrder(t *testing.T) {
	const ids = "abc1 abc2 abc3 abc4 abc5 abc6 abc7 abc8 abc9"
	at := time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)
	files := map[string]string{"release.toml": bare, "a.csv": "id,tone\n" + strings.ReplaceAll(ids, " ", ",a\n") + ",a\n"}
	_, report, err := published(t, files, func(c *Config) {
		c.Workspace = known(t, c.Release, "")
		for i, id := range strings.Fields(ids) {
			testkit.OK(t, c.Workspace.AddTombstones(t.Context(), []workspace.Tombstone{{Tombstone: manifest.Tombstone{
				ID: manifest.PostID(id), State: manifest.StateRemoved, Time: at.Add(-time.Duration(i) * time.Hour)}}}))
		}
	})
	testkit.Same(t, "added", ids, strings.Join(report.Added, " "), err)
}
