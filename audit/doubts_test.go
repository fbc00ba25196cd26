package audit

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// TestWhatStandsInRowsOfMany: what stands in the row of a removed post, or has its name, is its image for the other
// files unless posts that stay have it too, or the post's own image is known and looks otherwise. What is known to be
// its image is so everywhere.
func TestWhatStandsInRowsOfMany(t *testing.T) {
	const live3 = "1live3"
	icon, picture := encodePNG(drawn(61)), encodePNG(drawn(62))
	digests := map[string][]byte{gonePNG: encodePNG(drawn(2)), goneUnseen: nil, live1: encodeJPEG(drawn(3), 85),
		live2: encodePNG(drawn(4)), live3: encodePNG(drawn(5))}
	uri := func(b []byte) string {
		if b == nil {
			return ""
		}
		return "data:image/png;base64," + base64.StdEncoding.EncodeToString(b)
	}
	type row struct{ ID, Image, Icon string }
	lines := func(rows ...row) []byte {
		var all []string
		for _, r := range rows {
			line, err := json.Marshal(map[string]string{"id": r.ID, "image": r.Image, "icon": r.Icon})
			testkit.OK(t, err)
			all = append(all, string(line))
		}
		return []byte(strings.Join(all, "\n"))
	}
	iconic := func(gone string, image []byte, live ...string) (rows []row) {
		rows = []row{{gone, uri(image), uri(icon)}}
		for _, id := range live {
			rows = append(rows, row{id, uri(digests[id]), uri(icon)})
		}
		return rows
	}
	page := func(id string) []byte {
		return []byte(fmt.Sprintf(`<title>%s</title><img src="%s"><p>[deleted]`, id, uri(icon)))
	}
	both := func(gone string, live ...string) string {
		return fmt.Sprintf("open it is said to be of %s, which must be gone, and of %s: "+
			"nothing that is known shows whose it is", gone, strings.Join(live, " and "))
	}
	otherwise := "logo.png: open it is said to be of " + gonePNG + ", which must be gone, and looks otherwise than its image"
	noDigest := "logo.png: open an image; the release publishes no digest of 1 of the 2 removed posts to compare it with"
	for _, tt := range []struct {
		name  string
		files map[string][]byte
		// What is said of places beside the rows and the files of the removed post.
		want   []string // with a release that has the digests of one of two removed posts
		within []string // with the workspace, where it was purged, and which has no third post that stays
	}{
		{"an icon in the rows of three", map[string][]byte{
			"a.jsonl": lines(iconic(gonePNG, digests[gonePNG], live1, live2, live3)...), "logo.png": icon},
			[]string{noDigest}, nil},
		{"an icon in the rows of three, and the removed image was never known", map[string][]byte{
			"a.jsonl": lines(iconic(goneUnseen, picture, live1, live2, live3)...), "logo.png": icon, "photo.png": picture},
			[]string{"photo.png: image " + goneUnseen + " its image, byte for byte"},
			[]string{"a.jsonl: " + both(goneUnseen, live1, live2) + " (in 3 places)", "logo.png: " + both(goneUnseen, live1, live2),
				"photo.png: image " + goneUnseen + " its image, byte for byte"}},
		{"an icon in the rows of two", map[string][]byte{
			"a.jsonl": lines(iconic(gonePNG, digests[gonePNG], live1)...), "logo.png": icon},
			[]string{noDigest}, nil},
		{"another picture beside the removed image", map[string][]byte{
			"a.jsonl": lines(iconic(gonePNG, digests[gonePNG])...), "logo.png": icon},
			[]string{otherwise}, []string{otherwise}},
		{"another copy beside the removed image", map[string][]byte{
			"a.jsonl": lines(row{gonePNG, uri(digests[gonePNG]), uri(encodeJPEG(drawn(2), 40))}),
			"b.jpg":   encodeJPEG(drawn(2), 40)},
			[]string{"b.jpg: image " + gonePNG + " its image, byte for byte"},
			[]string{"b.jpg: image " + gonePNG + " its image, byte for byte"}},
		{"a logo in pages", map[string][]byte{goneUnseen + ".html": page(goneUnseen), live1 + ".html": page(live1),
			"logo.png": icon},
			[]string{live1 + ".html: " + both(goneUnseen, live1), "logo.png: " + both(goneUnseen, live1)},
			[]string{live1 + ".html: " + both(goneUnseen, live1), "logo.png: " + both(goneUnseen, live1)}},
		{"a logo in pages of many", map[string][]byte{goneUnseen + ".html": page(goneUnseen), live1 + ".html": page(live1),
			live2 + ".html": page(live2), live3 + ".html": page(live3)}, nil,
			[]string{live1 + ".html: " + both(goneUnseen, live1, live2), live2 + ".html: " + both(goneUnseen, live1, live2),
				live3 + ".html: " + both(goneUnseen, live1, live2)}},
		{"a host's picture in place of two", map[string][]byte{goneUnseen + ".png": icon, live2 + ".png": icon},
			[]string{live2 + ".png: " + both(goneUnseen, live2)}, []string{live2 + ".png: " + both(goneUnseen, live2)}},
		{"nobody else's", map[string][]byte{"a.jsonl": lines(row{goneUnseen, uri(picture), ""}),
			"b.jsonl": lines(row{"", uri(picture), ""}, row{}), "photo.png": picture},
			[]string{"b.jsonl: image " + goneUnseen + " its image, byte for byte",
				"photo.png: image " + goneUnseen + " its image, byte for byte"},
			[]string{"b.jsonl: image " + goneUnseen + " its image, byte for byte",
				"photo.png: image " + goneUnseen + " its image, byte for byte"}},
		{"a repost", map[string][]byte{"a.jsonl": lines(row{gonePNG, uri(digests[gonePNG]), ""},
			row{live1, uri(digests[gonePNG]), ""}, row{live2, uri(digests[gonePNG]), ""}), live3 + ".png": digests[gonePNG]},
			[]string{live3 + ".png: image " + gonePNG + " its image, byte for byte, said to be of " + live3,
				"a.jsonl: image " + gonePNG + " its image, byte for byte, said to be of " + live1,
				"a.jsonl: image " + gonePNG + " its image, byte for byte, said to be of " + live2},
			[]string{live3 + ".png: image " + gonePNG + " its image, byte for byte",
				"a.jsonl: image " + gonePNG + " its image, byte for byte, said to be of " + live1,
				"a.jsonl: image " + gonePNG + " its image, byte for byte, said to be of " + live2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, body := range tt.files {
				testkit.OK(t, os.WriteFile(filepath.Join(dir, name), body, 0o600))
			}
			w := newWorld(t, false, false)
			c := w.config
			c.Release, c.Files = releaseOf(t, digests), []string{dir}
			for _, id := range []manifest.PostID{gonePNG, goneUnseen} {
				c.Tombstones = append(c.Tombstones, manifest.Tombstone{ID: id, State: manifest.StateRemoved, Time: c.Now()})
			}
			r, err := Audit(t.Context(), c)
			testkit.OK(t, err)
			testkit.Same(t, "by the release", tt.want, elsewhere(r, gonePNG, goneUnseen))
			testkit.Same(t, "by the workspace", tt.within, elsewhere(w.audit(t, w.ws, dir), gonePNG, goneUnseen))
		})
	}
}

// elsewhere is what a report says of images beside those in rows and files of these posts. The text of a table is
// searched as well, which tells no rows apart.
func elsewhere(r Report, gone ...string) (said []string) {
	name := func(where string) string {
		where = filepath.Base(where)
		if rest, text := strings.CutSuffix(where, encodedPart); text && strings.HasSuffix(rest, ".jsonl") {
			return ""
		}
		where, _, _ = strings.Cut(where, " > ")
		return where
	}
	for _, f := range r.Findings {
		its := slices.ContainsFunc(gone, func(id string) bool { return strings.HasPrefix(name(f.Where), id+".") })
		if slices.Contains(f.Kinds, FoundImage) && !its && name(f.Where) != "" && !strings.Contains(f.Thing(), itsRow) {
			said = append(said, fmt.Sprintf("%s: image %s %s", name(f.Where), f.ID, f.Thing()))
		}
	}
	for _, o := range r.Open {
		if name(o.Where) != "" && !strings.Contains(o.What, "ids of another release") {
			said = append(said, name(o.Where)+": open "+o.What)
		}
	}
	slices.Sort(said)
	return said
}
