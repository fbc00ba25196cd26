package workspace

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/policy"
)

// A Binding names the release that a workspace belongs to.
type Binding struct {
	Release        string // name of the release
	ReleaseDigest  string // sha256 hex of release.toml and manifest together
	ManifestDigest string // sha256 hex of the manifest's bytes
	Schema         manifest.Schema
	Splits         []string // in order of first appearance
}

// OtherRelease is the error of Load when the workspace belongs to another release.
type OtherRelease struct {
	Have string // the release that the workspace holds
	Want string // the one that was asked for
}

func (e *OtherRelease) Error() string {
	return fmt.Sprintf("the workspace holds the release %q, not %q", e.Have, e.Want)
}

// Binding returns the release that the workspace belongs to; false when none was loaded.
func (w *Workspace) Binding(ctx context.Context) (Binding, bool, error) {
	b, err := readNote[Binding](ctx, w.db, metaBinding)
	return b, err == nil && b.Release != "", err
}

// Load binds the workspace to a release and stores its entries, as manifest.Release yields them; none when b's digests
// are those of the present binding and no entry that is back lacks its values. Keys that left are erased with their
// images; where there are any, the error of lose (nil for none), which gets their number and that of all images, refuses
// the change. Another release is refused with *OtherRelease. After an error nothing has changed.
func (w *Workspace) Load(ctx context.Context, b Binding, entries iter.Seq2[manifest.Entry, error],
	lose func(images, of int) error) error {
	have, bound, err := w.Binding(ctx)
	if err != nil {
		return err
	}
	if bound && have.Release != b.Release {
		return &OtherRelease{Have: have.Release, Want: b.Release}
	}
	if bound && have.ReleaseDigest == b.ReleaseDigest && have.ManifestDigest == b.ManifestDigest {
		lacking, err := w.lacksValues(ctx, b.Schema)
		if err != nil || !lacking {
			return err
		}
	}
	var left []string
	err = w.change(ctx, "load release "+b.Release, func(ctx context.Context, t *tx) {
		// Negative ordinals do not collide with the new entries; entries that are still negative
		// afterwards have left the manifest.
		t.exec(ctx, "UPDATE entry SET ordinal = -1 - ordinal")
		t.putEntries(ctx, entries, b.Schema.Many)
		var of int
		t.get(ctx, "SELECT count(*) FROM image", nil, &of)
		left = w.dropLeft(ctx, t)
		t.addLeft(ctx, nil)
		t.texts = textColumns(b.Schema)
		t.dropValues(ctx, goneSQL)
		if t.err == nil && len(left) > 0 && lose != nil {
			t.fail(lose(len(left), of))
		}
		if bound {
			t.markErased(ctx)
		}
		t.setMeta(ctx, metaBinding, jsonColumn{b})
	})
	if err != nil {
		return err
	}
	// The files go last, so that a failed load has changed nothing. A kill before this leaves files
	// without rows, which the next Sweep unlinks.
	return w.unlink(ctx, left...)
}

func (t *tx) putEntries(ctx context.Context, entries iter.Seq2[manifest.Entry, error], many bool) {
	further, held := make(map[manifest.Key]cells), 0
	for e, err := range entries {
		t.fail(err)
		if many {
			e.Values = e.RowValues()
		}
		stored := t.exec(ctx, `
			INSERT INTO entry (ordinal, id, image, line, split, labels, sha256, phash, subreddit, sha256_stripped, sha256_pixels)
			VALUES (?, ?, ?, ?, ?, coalesce(?, 'null'), ?, ?, ?, ?, ?)
			ON CONFLICT (id, image) DO UPDATE SET ordinal = excluded.ordinal, line = excluded.line, split = excluded.split,
			  labels = excluded.labels, sha256 = excluded.sha256, phash = excluded.phash, subreddit = excluded.subreddit,
			  sha256_stripped = excluded.sha256_stripped, sha256_pixels = excluded.sha256_pixels WHERE entry.ordinal < 0`,
			e.Ordinal, e.ID, e.Image, e.Line, e.Split, jsonColumn{cellsOf(e)}, e.SHA256, e.PHash, e.Subreddit,
			e.StrippedSHA256,
			e.PixelsSHA256)
		if t.err != nil {
			return
		}
		if stored > 0 || !many {
			continue
		}
		// An earlier row made the entry. Its lists are written once for many rows: each time costs their whole length.
		c := further[e.Key]
		held += c.add(cells{e.Labels, e.Values})
		further[e.Key] = c
		if held >= maxHeld {
			t.join(ctx, further)
			clear(further)
			held = 0
		}
	}
	t.join(ctx, further)
}

// maxHeld is how many bytes of further rows are held in memory, about.
const maxHeld = 64 << 20

// join adds further rows to the lists of their entries.
func (t *tx) join(ctx context.Context, further map[manifest.Key]cells) {
	for k, c := range further {
		var have cells
		t.get(ctx, "SELECT labels FROM entry WHERE id = ? AND image = ?", []any{k.ID, k.Image}, jsonColumn{&have})
		have.add(c)
		t.exec(ctx, "UPDATE entry SET labels = ? WHERE id = ? AND image = ?",
			jsonColumn{cellsOf(manifest.Entry{Labels: have.Labels, Values: have.Values})}, k.ID, k.Image)
	}
}

// cellsOf is what the column labels holds of an entry: its labels, or an object of them and the values that pass
// through. Where a release passes none through, the column is as it was before there were any.
func cellsOf(e manifest.Entry) any {
	if len(e.Values) == 0 {
		return e.Labels
	}
	return cells{e.Labels, e.Values}
}

type cells struct {
	Labels [][]int
	Values [][]string
}

// add appends the lists of o to those of c, and returns about how many bytes they take.
func (c *cells) add(o cells) (bytes int) {
	if len(c.Labels)+len(c.Values) == 0 {
		c.Labels, c.Values = make([][]int, len(o.Labels)), make([][]string, len(o.Values))
	}
	const entryBytes, valueBytes = 200, 16
	bytes = entryBytes
	for i, labels := range o.Labels {
		c.Labels[i] = append(c.Labels[i], labels...)
		bytes += valueBytes * len(labels)
	}
	for i, values := range o.Values {
		c.Values[i] = append(c.Values[i], values...)
		for _, v := range values {
			bytes += valueBytes + len(v)
		}
	}
	return bytes
}

// UnmarshalJSON reads either form.
func (c *cells) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte("{")) {
		type plain cells // without this method
		return json.Unmarshal(text, (*plain)(c))
	}
	return json.Unmarshal(text, &c.Labels)
}

// goneSQL holds of an entry that has no image because its post, or its image, is gone.
const goneSQL = `NOT EXISTS (SELECT 1 FROM image i WHERE i.id = entry.id AND i.image = entry.image) AND (
	  EXISTS (SELECT 1 FROM tombstone s WHERE s.id = entry.id AND NOT s.readmitted)
	  OR EXISTS (SELECT 1 FROM post p WHERE p.id = entry.id AND p.state IN ('removed', 'deleted', 'unavailable'))
	  OR EXISTS (SELECT 1 FROM trouble t WHERE t.id = entry.id AND t.image = entry.image AND ` + removedSQL + `))`

// removedSQL holds of trouble whose reason is one of policy.ImageRemovals.
const removedSQL = "(" + leftSQL + " OR reason = '" + string(policy.SameAsRemoved) + "')"

// leftSQL holds of trouble that policy.LeftPost is true of.
const leftSQL = "reason IN ('" + string(policy.LeftGallery) + "', '" + string(policy.CrosspostParent) + "')"

// lackingMark ends the labels of an entry that dropValues took texts from.
const lackingMark = `,"Lacking":true}`

// textColumns are the places of the columns that pass through and may have what somebody wrote.
func textColumns(s manifest.Schema) []int {
	places := []int{}
	for i, c := range s.Columns {
		if c.Type == manifest.TypeText || c.Type == manifest.TypeJSON {
			places = append(places, i)
		}
	}
	return places
}

// dropValues takes the texts that pass through from entries: they can be what somebody wrote in the post. Labels,
// numbers and times stay, which say nothing that the release does not.
func (t *tx) dropValues(ctx context.Context, which string, args ...any) {
	if t.err != nil {
		return
	}
	if t.texts == nil {
		b, err := readNote[Binding](ctx, t, metaBinding)
		t.fail(err)
		t.texts = textColumns(b.Schema)
	}
	if len(t.texts) == 0 {
		return
	}
	emptied := "labels"
	for _, i := range t.texts {
		emptied = fmt.Sprintf("json_set(%s, '$.Values[%d]', json('null'))", emptied, i)
	}
	if t.exec(ctx, "UPDATE entry SET labels = json_set("+emptied+", '$.Lacking', json('true')) WHERE labels LIKE '{%' "+
		"AND labels NOT LIKE '%"+lackingMark+"' AND "+which, args...) > 0 {
		t.markErased(ctx)
	}
}

// lacksValues reports whether an entry lacks the texts that dropValues took from it, and is not gone any more.
func (w *Workspace) lacksValues(ctx context.Context, s manifest.Schema) (lacking bool, err error) {
	if len(textColumns(s)) == 0 {
		return false, nil
	}
	err = w.db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM entry WHERE labels LIKE '%"+lackingMark+"' AND NOT ("+
		goneSQL+"))").Scan(&lacking)
	return lacking, w.explain(ctx, err)
}

// dropLeft deletes the rows of the keys that left the manifest, and returns the names of their image files.
func (w *Workspace) dropLeft(ctx context.Context, t *tx) (names []string) {
	if t.err != nil {
		return nil
	}
	images, err := storedImages(ctx, t, "JOIN entry USING (id, image) WHERE ordinal < 0 ORDER BY id, image")
	t.fail(err)
	posts := map[int][]auditlog.Post{} // by the number of the image: other images of a gallery may stay
	for _, i := range images {
		names = append(names, w.ImageName(i.Key, i.format))
		posts[i.Image] = append(posts[i.Image], auditlog.Post{ID: i.ID})
	}
	for _, image := range slices.Sorted(maps.Keys(posts)) {
		left := auditlog.Event{Kind: auditlog.Erased, Verdict: auditlog.LeftManifest, Image: image}
		w.recordPosts(ctx, t, left, posts[image])
	}
	t.keepLeft(ctx)
	const ofThese = "(id, image) IN (SELECT id, image FROM entry WHERE ordinal < 0)"
	for _, table := range []string{"reading", "earlier_reading", "earlier_result", "answer", "trouble", "result"} {
		t.exec(ctx, "DELETE FROM "+table+" WHERE "+ofThese)
	}
	t.dropImages(ctx, ofThese, "0")
	t.exec(ctx, "DELETE FROM entry WHERE ordinal < 0")
	t.exec(ctx, "DELETE FROM post WHERE id NOT IN (SELECT id FROM entry)")
	return names
}

// Left returns those of the rows, named as manifest.Key is, whose entries the manifest does not have.
func (w *Workspace) Left(ctx context.Context, rows []string) (left []string, err error) {
	defer wrap(&err, "compare rows with the manifest")
	if len(rows) == 0 {
		return nil, nil
	}
	type row struct {
		Name  string          `json:"name"`
		ID    manifest.PostID `json:"id"`
		Image int             `json:"image"`
	}
	all := make([]row, len(rows))
	for i, name := range rows {
		key, _ := manifest.ParseKey(name) // what is no key is no entry's
		all[i] = row{name, key.ID, key.Image}
	}
	return texts(ctx, w.db, `SELECT value ->> 'name' FROM json_each(?) WHERE NOT EXISTS (
		SELECT 1 FROM entry e WHERE e.id = value ->> 'id' AND e.image = value ->> 'image')`, jsonColumn{all})
}

// Counts returns how many entries the manifest has, and of how many different posts.
func (w *Workspace) Counts(ctx context.Context) (entries, posts int, err error) {
	err = w.db.QueryRowContext(ctx, "SELECT count(*), count(DISTINCT id) FROM entry").Scan(&entries, &posts)
	return entries, posts, w.explain(ctx, err)
}

// SetResults stores the results of the last completed run, one of every entry; one that is stored already costs no
// write. Result.Split is not stored: it is the entry's.
func (w *Workspace) SetResults(ctx context.Context, results []manifest.Result) error {
	return w.change(ctx, "store results", func(ctx context.Context, t *tx) {
		for _, r := range results {
			t.exec(ctx,
				`INSERT INTO result (id, image, outcome, reason, detail, duplicate_id, duplicate_image) VALUES (?, ?, ?, ?, ?, ?, ?)
				ON CONFLICT (id, image) DO UPDATE SET outcome = excluded.outcome, reason = excluded.reason, detail = excluded.detail,
				  duplicate_id = excluded.duplicate_id, duplicate_image = excluded.duplicate_image
				WHERE (outcome, reason, detail, duplicate_id, duplicate_image) IS NOT
				  (excluded.outcome, excluded.reason, excluded.detail, excluded.duplicate_id, excluded.duplicate_image)`,
				r.ID, r.Image, r.Outcome, r.Reason, r.Detail, r.DuplicateOf.ID, r.DuplicateOf.Image)
		}
	})
}

// validID reports whether ParsePostID could have made the id: it becomes part of a file name.
func validID(id manifest.PostID) bool {
	parsed, err := manifest.ParsePostID(string(id))
	return err == nil && parsed == id
}
