package workspace

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"rehydrate/internal/durable"
	"rehydrate/internal/word"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/policy"
)

// ErrNoImage means that a reading is of an image that is not stored (any more).
var ErrNoImage = errors.New("that image is not stored")

// Damaged is the error of ReadImage when a stored file is not what its row says.
type Damaged struct {
	Key  manifest.Key
	Name string // of the file
	What string // what is wrong with it
}

func (e *Damaged) Error() string {
	return fmt.Sprintf("image of %s is damaged: %s %s; `rehydrate run` fetches it again", e.Key, e.Name, e.What)
}

// extensions are those of the formats that can be stored.
var extensions = map[string]string{"jpeg": "jpg", "png": "png", "gif": "gif", "webp": "webp"}

// ImageName returns the name of an entry's image file, such as images/1n/1n6oiw-1.jpg for image 1 and without -1 for
// image 0. It is empty for a format that is not stored and for an id that ParsePostID did not make.
func (w *Workspace) ImageName(k manifest.Key, format string) string {
	ext := extensions[format]
	if ext == "" || !validID(k.ID) || k.Image < 0 {
		return ""
	}
	base := strings.ReplaceAll(k.String(), "/", "-") // a gallery's images are id/n
	return path.Join(imagesName, string(k.ID[:min(2, len(k.ID))]), base+"."+ext)
}

// StoreImage stores the image of an entry in place of any older one, drops its trouble and its reading, and marks the
// post as not seen since (Post.Unseen). Body is stored as it is: call picture.Strip first. It sets Bytes and SHA256 of
// img. Killed anywhere, the entry has the older image or the new one, whole, once Sweep has looked. Called from several
// goroutines, it stores images of several posts at once.
func (w *Workspace) StoreImage(ctx context.Context, k manifest.Key, body []byte, img Image) (err error) {
	defer wrap(&err, "store image of %s", k)
	name := w.ImageName(k, img.Format)
	if name == "" {
		return fmt.Errorf("id %q with format %q cannot be stored", string(k.ID), img.Format)
	}
	if err := w.writable(ctx); err != nil {
		return err
	}
	post := w.post(k.ID)
	post.Lock()
	defer post.Unlock()
	older, err := w.older(ctx, k, name)
	if err != nil {
		return err
	}
	// The file first, with its content and its name on the disk: a row is only ever of a file that is there. These two
	// syncs are the image's own, and those of other images pass at the same time. To sync the whole file system for all
	// of them would wait for whatever else is being written there. (Replace would keep its digest for the seal, which
	// has none.)
	f, err := WriteFile(ctx, w.files, name, "", func(f io.Writer) error { _, err := f.Write(body); return err },
		func(_ io.ReaderAt, f File) error {
			img.SHA256, img.Bytes = f.SHA256, f.Size
			if !older {
				return nil
			}
			// What comes is on record before it takes the name of another image: Sweep finds either file to be the
			// right one.
			return w.change(ctx, "note the row to come", func(ctx context.Context, t *tx) {
				t.exec(ctx, "UPDATE image SET next = ? WHERE id = ? AND image = ?", jsonColumn{&img}, k.ID, k.Image)
			})
		})
	if err != nil && older {
		w.unfinished.Store(true) // the older one is there, or the new one, and Sweep can tell
		return err
	}
	if err != nil {
		return errors.Join(err, w.unlink(ctx, name)) // it may have its name, and only the folder was not synced
	}
	img.SHA256, img.Bytes = f.SHA256, f.Size
	// A kill before the row leaves an orphan, which the next Sweep unlinks; a stop request would only waste the
	// download.
	ctx = context.WithoutCancel(ctx)
	var replaced string // the format of the older image
	if err := w.change(ctx, "write the row", func(ctx context.Context, t *tx) {
		t.get(ctx, "SELECT format FROM image WHERE id = ? AND image = ?", []any{k.ID, k.Image}, &replaced)
		w.putImage(ctx, t, k, img)
	}); err != nil {
		if older {
			w.unfinished.Store(true)
			return err
		}
		return errors.Join(err, w.unlink(ctx, name))
	}
	if old := w.ImageName(k, replaced); old != "" && old != name {
		return w.unlink(ctx, old) // killed before this, it is an orphan
	}
	return nil
}

// putImage writes the row of an image, in place of an older one and of what is known of that.
func (w *Workspace) putImage(ctx context.Context, t *tx, k manifest.Key, img Image) {
	t.exec(ctx, "UPDATE post SET unseen = 1 WHERE id = ?", k.ID)
	t.noteFormer(ctx, k, img)
	t.dropRows(ctx, k, "0")
	// Only this picture is back. Another one that was erased stays so, and is known by its digests wherever it turns up.
	t.exec(ctx, "UPDATE former_image SET erased = 0 WHERE id = ? AND image = ? AND sha256 = ?", k.ID, k.Image, img.SHA256)
	// A text of another image cannot be compared with the new one's.
	t.exec(ctx, "DELETE FROM earlier_reading WHERE id = ? AND image = ? AND image_sha256 <> ?", k.ID, k.Image,
		img.SHA256)
	// It may describe the other image.
	if t.exec(ctx, "DELETE FROM answer WHERE id = ? AND image = ? AND image_sha256 <> ?", k.ID, k.Image,
		img.SHA256) > 0 {
		t.markErased(ctx)
	}
	t.exec(ctx,
		`INSERT INTO image (id, image, source, original_sha256, sha256, format, width, height, bytes, phash, flat, hash_kind,
		original_bytes, limits, pixels_sha256, redirected) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		k.ID, k.Image, img.Source, img.OriginalSHA256, img.SHA256, img.Format, img.Width, img.Height, img.Bytes,
		int64(img.PHash), img.Flat, img.HashKind, img.OriginalBytes, img.Limits, img.PixelsSHA256, img.Redirected)
	e := fetched(k, img)
	if img.Item {
		e.Source = img.Source
		t.noteOrigin(ctx, k, e)
	}
	w.record(ctx, t, e)
}

// fetched is the record of an image that is stored.
func fetched(k manifest.Key, img Image) auditlog.Event {
	return auditlog.Event{Kind: auditlog.Fetch, Posts: []auditlog.Post{{ID: k.ID}}, Image: k.Image,
		SHA256: img.SHA256, Original: img.OriginalSHA256, Pixels: img.PixelsSHA256}
}

// noteOrigin keeps from which item of a gallery an image came, by the record of it.
func (t *tx) noteOrigin(ctx context.Context, k manifest.Key, fetched auditlog.Event) {
	t.exec(ctx, "INSERT OR REPLACE INTO origin (id, image, sha256, source) VALUES (?, ?, ?, ?)", k.ID, k.Image,
		fetched.SHA256, fetched.Source)
}

// post returns what keeps other changes of a post's images out. Two posts may share one.
func (w *Workspace) post(id manifest.PostID) *sync.Mutex {
	return &w.posts[crc32.ChecksumIEEE([]byte(id))%uint32(len(w.posts))]
}

// older reports whether a file of this name is on record as the entry's image.
func (w *Workspace) older(ctx context.Context, k manifest.Key, name string) (bool, error) {
	// Most images are new. A question to state.db would wait for the commit that is under way.
	if _, err := w.root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	old, err := w.imageFile(ctx, k)
	return old == name, err
}

// A Staged image lies beside the one that is stored of its entry. A Sweep takes it away.
type Staged struct {
	manifest.Key
	Image
	w     *Workspace
	name  string
	noted bool // InsteadOfStored has it
}

// Stage keeps a downloaded image beside the one that is stored of its entry, until Store or Discard. If it is another
// one, InsteadOfStored has it from then on, unless it is stored.
func (w *Workspace) Stage(ctx context.Context, k manifest.Key, body []byte, img Image) (s *Staged, err error) {
	defer wrap(&err, "keep another image of %s", k)
	name := w.ImageName(k, img.Format)
	if name == "" {
		return nil, fmt.Errorf("id %q with format %q cannot be stored", string(k.ID), img.Format)
	}
	if err := w.writable(ctx); err != nil {
		return nil, err
	}
	img.SHA256, img.Bytes = hexDigest(body), int64(len(body))
	// The same one, as most are once state.db was lost, costs no change.
	same, err := texts(ctx, w.db, "SELECT id FROM image WHERE id = ? AND image = ? AND sha256 = ?", k.ID, k.Image,
		img.SHA256)
	if err != nil {
		return nil, err
	}
	s = &Staged{Key: k, Image: img, w: w, name: path.Join(path.Dir(name), durable.TempPrefix+"next-"+path.Base(name)),
		noted: len(same) == 0}
	if err := w.files.MkdirAll(ctx, path.Dir(name), dirMode); err != nil {
		return nil, err
	}
	if err := w.root.WriteFile(s.name, body, fileMode); err != nil {
		return s, err
	}
	if !s.noted {
		return s, nil
	}
	// At once: the job may be killed before it decides.
	return s, w.change(ctx, "note from where another image came", func(ctx context.Context, t *tx) {
		t.exec(ctx, "INSERT OR IGNORE INTO instead (original_sha256, source) VALUES (?, ?)", img.OriginalSHA256, img.Source)
	})
}

// Store makes it the entry's image, as StoreImage does.
func (s *Staged) Store(ctx context.Context) error {
	if err := s.StoreFor(ctx, s.Key); err != nil {
		return err
	}
	if s.noted {
		if err := s.w.change(ctx, "note that another image is stored", func(ctx context.Context, t *tx) {
			t.exec(ctx, "DELETE FROM instead WHERE original_sha256 = ? AND source = ?", s.OriginalSHA256, s.Source)
		}); err != nil {
			return err
		}
	}
	return s.Discard(ctx)
}

// StoreFor makes it the image of an entry, as StoreImage does, and keeps it.
func (s *Staged) StoreFor(ctx context.Context, k manifest.Key) error {
	body, err := s.w.readSmall(s.name, s.Bytes)
	if err == nil && hexDigest(body) != s.SHA256 {
		err = errors.New("it is not what was written")
	}
	if err != nil {
		return fmt.Errorf("read another image of %s back: %w", s.Key, err)
	}
	return s.w.StoreImage(ctx, k, body, s.Image)
}

// InsteadOfStored returns the files that ever came for entries which kept the image that they had, by their digest as
// they came, with from where they did, as Image.Source has it.
func (w *Workspace) InsteadOfStored(ctx context.Context) (_ map[string][]string, err error) {
	defer wrap(&err, "read what came in place of stored images")
	type file struct{ digest, source string }
	all, err := list(ctx, w.db, func(f *file) []any { return []any{&f.digest, &f.source} },
		"SELECT original_sha256, source FROM instead ORDER BY original_sha256, source")
	came := map[string][]string{}
	for _, f := range all {
		came[f.digest] = append(came[f.digest], f.source)
	}
	return came, err
}

// Discard forgets it.
func (s *Staged) Discard(ctx context.Context) error { return s.w.unlink(ctx, s.name) }

// A storedImage is a row of image, as far as its file goes.
type storedImage struct {
	manifest.Key
	format string
	bytes  int64
}

// storedImages reads the rows of image that a clause selects.
func storedImages(ctx context.Context, q querier, clause string, args ...any) ([]storedImage, error) {
	return list(ctx, q, func(i *storedImage) []any { return []any{&i.ID, &i.Image, &i.format, &i.bytes} },
		"SELECT id, image, format, bytes FROM image i "+clause, args...)
}

// imageFile returns the name of the entry's image file, or an empty string if it has no row.
func (w *Workspace) imageFile(ctx context.Context, k manifest.Key) (name string, err error) {
	formats, err := texts(ctx, w.db, "SELECT format FROM image WHERE id = ? AND image = ?", k.ID, k.Image)
	for _, format := range formats {
		name = w.ImageName(k, format)
	}
	return name, err
}

// SetHash replaces the perceptual hash of the stored image by that of img, made of the same bytes by other code. It
// fails with ErrNoImage unless img.SHA256 names the image that is stored now.
func (w *Workspace) SetHash(ctx context.Context, k manifest.Key, img Image) error {
	return w.change(ctx, "store the hash of "+k.String(), func(ctx context.Context, t *tx) {
		if t.exec(ctx, "UPDATE image SET phash = ?, flat = ?, hash_kind = ? WHERE id = ? AND image = ? AND sha256 = ?",
			int64(img.PHash), img.Flat, img.HashKind, k.ID, k.Image, img.SHA256) == 0 {
			t.fail(ErrNoImage)
		}
	})
}

// dropRows deletes what is known of an entry's image: reading, image and trouble. That its removal waits stays known,
// for copies have its row: only ClearTrouble and DropImage end that. erased is as in dropImages.
func (t *tx) dropRows(ctx context.Context, k manifest.Key, erased string) {
	t.exec(ctx, "DELETE FROM reading WHERE id = ? AND image = ?", k.ID, k.Image)
	t.dropImages(ctx, "id = ?1 AND image = ?2", erased, k.ID, k.Image)
	t.exec(ctx, "DELETE FROM trouble WHERE id = ? AND image = ? AND NOT "+waitsSQL, k.ID, k.Image)
}

// dropImages deletes rows of images, and keeps their digests among those of former ones: whatever becomes of the post,
// its picture is known by them. They give no content away. But for that of ForgetImage, no other statement deletes an
// image. erased is an expression of each row: whether the image goes as one that was removed.
func (t *tx) dropImages(ctx context.Context, which, erased string, args ...any) {
	t.exec(ctx, "INSERT OR REPLACE INTO former_image SELECT id, image, original_sha256, sha256, pixels_sha256, "+
		erased+" FROM image WHERE "+which, args...)
	t.exec(ctx, "DELETE FROM image WHERE "+which, args...)
}

// waitsSQL holds of trouble that Trouble.Withheld is true of.
const waitsSQL = "beside IN ('" + string(Waiting) + "', '" + string(Unconfirmed) + "')"

// loseImage is dropRows of an image that was lost. Where its removal waits, it counts as erased with that.
func (t *tx) loseImage(ctx context.Context, k manifest.Key) {
	t.dropRows(ctx, k, `EXISTS (SELECT 1 FROM post WHERE id = ?1 AND withheld > 0)
		OR EXISTS (SELECT 1 FROM trouble WHERE id = ?1 AND image = ?2 AND `+waitsSQL+")")
}

// ReadImage returns the bytes of a stored image. It fails with *Damaged when the file is not the one of img.
func (w *Workspace) ReadImage(ctx context.Context, k manifest.Key, img Image) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	name := w.ImageName(k, img.Format)
	body, err := w.readSmall(name, img.Bytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &Damaged{Key: k, Name: name, What: "is missing"}
	case err != nil:
		return nil, fmt.Errorf("read image of %s: %w", k, err)
	case hexDigest(body) != img.SHA256:
		return nil, &Damaged{Key: k, Name: name, What: "does not have the digest on record"}
	}
	return body, nil
}

// SetTrouble notes why an entry has no image, or what is the matter with the one that it has, which stays. While its
// removal waits, or once it left its post, only another word on its removal takes the place of that.
func (w *Workspace) SetTrouble(ctx context.Context, k manifest.Key, trouble Trouble) error {
	return w.change(context.WithoutCancel(ctx), "store trouble of "+k.String(),
		func(ctx context.Context, t *tx) { w.putTrouble(ctx, t, k, trouble) })
}

// SetLimits notes against which limits the stored image of an entry was held last, as Image.Limits has it.
func (w *Workspace) SetLimits(ctx context.Context, k manifest.Key, limits string) error {
	return w.change(ctx, "store the limits of "+k.String(), func(ctx context.Context, t *tx) {
		t.exec(ctx, "UPDATE image SET limits = ? WHERE id = ? AND image = ?", limits, k.ID, k.Image)
	})
}

// ClearTrouble takes back what SetTrouble noted of an entry.
func (w *Workspace) ClearTrouble(ctx context.Context, k manifest.Key) error {
	return w.change(ctx, "clear the trouble of "+k.String(), func(ctx context.Context, t *tx) { t.clearTrouble(ctx, k) })
}

func (t *tx) clearTrouble(ctx context.Context, k manifest.Key) {
	t.exec(ctx, "DELETE FROM trouble WHERE id = ? AND image = ?", k.ID, k.Image)
}

func (w *Workspace) putTrouble(ctx context.Context, t *tx, k manifest.Key, trouble Trouble) {
	if policy.LeftPost(trouble.Reason) {
		trouble.At = earlier(trouble.At, w.sinceByLog(ctx, t).Images[k.ID])
	}
	t.exec(ctx, `INSERT INTO trouble (id, image, source, outcome, reason, detail, beside, at)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (id, image) DO UPDATE SET source = excluded.source,
		outcome = excluded.outcome, reason = excluded.reason, detail = excluded.detail, beside = excluded.beside,
		at = excluded.at WHERE ?9 OR NOT (trouble.`+waitsSQL+` OR trouble.beside = '' AND trouble.`+leftSQL+`)`,
		k.ID, k.Image, trouble.Source, trouble.Outcome, trouble.Reason, trouble.Detail, trouble.Beside, seconds(trouble.At),
		slices.Contains(policy.ImageRemovals(), trouble.Reason))
}

// DropImage removes the image of an entry with all that was made of it, and notes why, as SetTrouble does. Of one that
// was removed it keeps the digests, and has the log say so, also where the image went with its post before, which came
// back without it, or where its file was lost before it left its post: the file can turn up again. One that left its
// gallery is told from others there by its source, which it keeps as that of the trouble.
func (w *Workspace) DropImage(ctx context.Context, k manifest.Key, why Trouble, removed bool) (err error) {
	defer wrap(&err, "drop the image of %s", k)
	if removed && why.At.IsZero() { // no earlier job found it
		why.At = w.now().UTC().Truncate(time.Second)
	}
	post := w.post(k.ID)
	post.Lock()
	defer post.Unlock()
	old, err := w.imageFile(ctx, k)
	if err != nil {
		return err
	}
	// That it goes is on record first. The file goes before its row: a kill between the two leaves a row without a
	// file, of which nobody would know that its image was removed, and that copies and shards owe the row.
	if old != "" && removed {
		why.Beside = Going
		if err := w.SetTrouble(ctx, k, why); err != nil {
			return err
		}
	}
	if old != "" {
		if err := w.unlink(ctx, old, ReportName); err != nil {
			return err
		}
	}
	why.Beside = ""
	return w.change(context.WithoutCancel(ctx), "write the row", func(ctx context.Context, t *tx) {
		was := false // here, and is not on record as removed
		if removed {
			if why.Reason == policy.LeftGallery {
				t.get(ctx, "SELECT source FROM image WHERE id = ? AND image = ? AND source <> ''", []any{k.ID, k.Image},
					&why.Source)
			}
			left := policy.LeftPost(why.Reason)
			t.get(ctx, `SELECT (EXISTS (SELECT 1 FROM image WHERE id = ?1 AND image = ?2)
				OR EXISTS (SELECT 1 FROM former_image WHERE id = ?1 AND image = ?2 AND (erased OR ?4)))
				AND NOT EXISTS (SELECT 1 FROM trouble WHERE id = ?1 AND image = ?2 AND reason = ?3 AND beside = '')`,
				[]any{k.ID, k.Image, why.Reason, left}, &was)
			t.dropRows(ctx, k, "1")
			if left && old == "" {
				t.exec(ctx, `UPDATE former_image SET erased = 1
					WHERE rowid = (SELECT max(rowid) FROM former_image WHERE id = ? AND image = ?)`, k.ID, k.Image)
			}
		} else {
			t.loseImage(ctx, k)
		}
		t.dropMade(ctx, k)
		if was {
			w.record(ctx, t, auditlog.Event{Kind: auditlog.Erased, Posts: []auditlog.Post{{ID: k.ID}}, Image: k.Image,
				Verdict: string(auditlog.Word(why.Reason))})
		}
		w.putTrouble(ctx, t, k, why)
		t.dropValues(ctx, "id = ? AND image = ? AND "+goneSQL, k.ID, k.Image)
	})
}

// dropMade deletes what was made of an entry's image.
func (t *tx) dropMade(ctx context.Context, k manifest.Key) {
	for _, table := range []string{"reading", "earlier_reading", "answer"} {
		t.exec(ctx, "DELETE FROM "+table+" WHERE id = ? AND image = ?", k.ID, k.Image)
	}
	t.markErased(ctx)
}

// ForgetImage removes what a host in trouble sent in place of an entry's image, as if it had not come, and notes why,
// as SetTrouble does. It was never the picture of the post, and has the log say so; one that the entry had before, too,
// is.
func (w *Workspace) ForgetImage(ctx context.Context, k manifest.Key, why Trouble) (err error) {
	defer wrap(&err, "forget what a host sent for %s", k)
	post := w.post(k.ID)
	post.Lock()
	defer post.Unlock()
	old, err := w.imageFile(ctx, k)
	if err != nil {
		return err
	}
	// The row goes first: of a row without its file the next Sweep would keep the digests.
	err = w.change(context.WithoutCancel(ctx), "write the row", func(ctx context.Context, t *tx) {
		e := auditlog.Event{Kind: auditlog.Erased, Posts: []auditlog.Post{{ID: k.ID}}, Image: k.Image,
			Verdict: auditlog.StandIn}
		t.dropMade(ctx, k)
		had := false
		t.get(ctx, `DELETE FROM image WHERE id = ?1 AND image = ?2 AND NOT EXISTS (SELECT 1 FROM former_image f
			WHERE (f.id, f.image, f.pixels_sha256) = (image.id, image.image, image.pixels_sha256))
			RETURNING true, original_sha256, sha256, pixels_sha256`,
			[]any{k.ID, k.Image}, &had, &e.Original, &e.SHA256, &e.Pixels)
		if had {
			t.exec(ctx, "DELETE FROM origin WHERE (id, image, sha256) = (?, ?, ?)", k.ID, k.Image, e.SHA256)
			w.record(ctx, t, e)
		}
		t.loseImage(ctx, k)
		w.putTrouble(ctx, t, k, why)
	})
	if err != nil || old == "" {
		return err
	}
	return w.unlink(ctx, old, ReportName) // killed before this, it is an orphan
}

// Repairs counts the words of stored texts that no single reading gave as they are, by how they came to be.
func (w *Workspace) Repairs(ctx context.Context) (counts map[word.Repair]int, err error) {
	defer wrap(&err, "count the repaired words")
	type row struct {
		repair word.Repair
		words  int
	}
	rows, err := list(ctx, w.db, func(r *row) []any { return []any{&r.repair, &r.words} }, `
		SELECT value ->> 'Repair', count(*) FROM reading, json_each(reading.words)
		WHERE value ->> 'Repair' IS NOT NULL AND value ->> 'Accepted' GROUP BY 1`)
	counts = map[word.Repair]int{}
	for _, r := range rows {
		counts[r.repair] = r.words
	}
	return counts, err
}

// A NewReading is what OCR read in the entry's image. Old, a text of the reading that it replaces, is kept until
// EndReread unless it is nil.
type NewReading struct {
	Key manifest.Key
	Reading
	Old *string
}

// SetReadings stores readings in place of older ones, all or none. It fails with ErrNoImage unless each ImageSHA256
// names the image that is stored.
func (w *Workspace) SetReadings(ctx context.Context, readings ...NewReading) (err error) {
	defer wrap(&err, "store readings")
	if len(readings) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // OCR may have taken minutes, and this takes milliseconds
	return w.change(ctx, "write the rows", func(ctx context.Context, t *tx) {
		for _, r := range readings {
			t.setReading(ctx, r)
		}
	})
}

func (t *tx) setReading(ctx context.Context, r NewReading) {
	// The first text that is kept stays: a re-reading that was killed reads some images again.
	if r.Old != nil {
		t.exec(ctx, `INSERT INTO earlier_reading (id, image, image_sha256, text)
			SELECT id, image, image_sha256, ? FROM reading WHERE id = ? AND image = ? ON CONFLICT DO NOTHING`, *r.Old, r.Key.ID, r.Key.Image)
	}
	var hadText bool
	t.get(ctx, "DELETE FROM reading WHERE id = ? AND image = ? RETURNING text <> '' OR words IS NOT NULL",
		[]any{r.Key.ID, r.Key.Image}, &hadText)
	if hadText { // it may hold what this one masks
		t.markErased(ctx)
	}
	stored := t.exec(ctx, `
		INSERT INTO reading (id, image, fingerprint, image_sha256, failed, text, confidence, words, wide, masked)
		SELECT id, image, ?, sha256, ?, ?, ?, ?, ?, ? FROM image WHERE id = ? AND image = ? AND sha256 = ?`,
		r.Fingerprint, jsonColumn{r.Failed}, r.Text, r.Confidence, jsonColumn{r.Words}, wideText(r.Wide), r.Masked,
		r.Key.ID, r.Key.Image, r.ImageSHA256)
	if stored == 0 {
		t.fail(fmt.Errorf("%s: %w", r.Key, ErrNoImage))
	}
}

// Erase removes a post's content from the workspace, and the report, which can show any image. State and tombstone
// stay, and which images had left it before, or were about to: it can come back. Give it its final state first
// (SetPosts): the next Sweep then finishes an Erase that was killed.
func (w *Workspace) Erase(ctx context.Context, id manifest.PostID) (err error) {
	defer wrap(&err, "erase post %s", id)
	if !validID(id) {
		return fmt.Errorf("%q is not a post id", string(id))
	}
	post := w.post(id)
	post.Lock()
	defer post.Unlock()
	images, err := list(ctx, w.db, func(image *int) []any { return []any{image} },
		"SELECT image FROM entry WHERE id = ?", id)
	if err != nil {
		return err
	}
	// Every name that an image of the post can have, stored or left by a crash.
	names := []string{ReportName}
	for _, image := range images {
		for format := range extensions {
			names = append(names, w.ImageName(manifest.Key{ID: id, Image: image}, format))
		}
	}
	// The files go first: while a row is left, Sweep finds an Erase that was killed and finishes it.
	if err := w.unlink(ctx, names...); err != nil {
		return err
	}
	return w.change(context.WithoutCancel(ctx), "delete the rows", func(ctx context.Context, t *tx) {
		for _, table := range []string{"reading", "earlier_reading", "answer"} {
			t.exec(ctx, "DELETE FROM "+table+" WHERE id = ?", id)
		}
		t.dropImages(ctx, "id = ?", "1", id)
		left := t.settleLeft(ctx, id)
		t.exec(ctx, "DELETE FROM trouble WHERE id = ? AND NOT "+staysSQL, id)
		t.dropValues(ctx, "id = ?", id)
		t.exec(ctx, "UPDATE post SET subreddit = '', gone_at = 0 WHERE id = ?", id)
		t.exec(ctx, "UPDATE result SET detail = '', duplicate_id = '', duplicate_image = 0 WHERE id = ?", id)
		var state manifest.PostState
		t.get(ctx, "SELECT state FROM post WHERE id = ?", []any{id}, &state)
		w.record(ctx, t, auditlog.Event{Kind: auditlog.Erased,
			Posts: []auditlog.Post{{ID: id, State: auditlog.Word(state)}}})
		w.record(ctx, t, left...)
		t.markErased(ctx)
	})
}

// staysSQL holds of trouble that outlives its post: that the image left it before, or waits to, where the post itself
// can come back without a word of anybody. With a tombstone nobody asks about the image any more: it left, too.
const staysSQL = "(" + leftSQL + " AND (beside = '' OR " + waitsSQL +
	" AND id NOT IN (SELECT id FROM tombstone WHERE NOT readmitted)))"

// settleLeft has the images of a post be removed whose removal was not done, and returns the records that say so.
func (t *tx) settleLeft(ctx context.Context, id manifest.PostID) []auditlog.Event {
	if t.err != nil {
		return nil
	}
	events, err := list(ctx, t, func(e *auditlog.Event) []any { return []any{&e.Image, &e.Verdict} },
		"SELECT image, reason FROM trouble WHERE id = ? AND "+leftSQL+" AND NOT "+staysSQL+" ORDER BY image", id)
	t.fail(err)
	for i := range events {
		events[i].Kind, events[i].Posts = auditlog.Erased, []auditlog.Post{{ID: id}}
	}
	t.exec(ctx, "UPDATE trouble SET beside = '' WHERE id = ? AND "+leftSQL+" AND NOT "+staysSQL, id)
	return events
}

// An Earlier is the state of an entry before a re-reading that has not ended.
type Earlier struct {
	Read    bool             // its reading was replaced since
	Text    string           // of the replaced reading
	Outcome manifest.Outcome // of the last completed run before it began, empty when there was none
	Reason  manifest.Reason
}

// BeginReread keeps the outcomes of the last completed run for the comparison.
func (w *Workspace) BeginReread(ctx context.Context) error {
	return w.change(ctx, "begin a re-reading", func(ctx context.Context, t *tx) {
		// When the mark is there, a re-reading that was killed continues, with the outcomes from before it.
		if t.exec(ctx, "INSERT INTO meta (key, value) VALUES (?, '1') ON CONFLICT (key) DO NOTHING", metaReread) > 0 {
			t.exec(ctx,
				"INSERT INTO earlier_result (id, image, outcome, reason) SELECT id, image, outcome, reason FROM result")
		}
	})
}

// Rereading reports whether a re-reading has begun and not ended.
func (w *Workspace) Rereading(ctx context.Context) (bool, error) {
	mark, err := readMeta(ctx, w.db, metaReread)
	return mark != "", err
}

// EndReread deletes the earlier outcomes and texts, the last copies inside state.db when the workspace is closed.
func (w *Workspace) EndReread(ctx context.Context) error {
	return w.change(ctx, "end a re-reading", func(ctx context.Context, t *tx) {
		t.exec(ctx, "DELETE FROM meta WHERE key = ?", metaReread)
		t.exec(ctx, "DELETE FROM earlier_result")
		if t.exec(ctx, "DELETE FROM earlier_reading") > 0 {
			t.markErased(ctx)
		}
	})
}

// Digests recognise an image as the same file, as the same but for metadata, and as the same picture in any lossless
// form. Each is 64 hex digits; docs/files.md defines them to the byte.
type Digests struct {
	File     string // SHA-256 of the file
	Stripped string // SHA-256 of what picture.Strip leaves of it
	Pixels   string // picture.PixelDigest of the upright picture
}

// A FormerImage is what the workspace still knows of an image that it had.
type FormerImage struct {
	manifest.Key
	Digests
	Erased bool // it was removed, with its post or out of it
}

// FormerImages returns the digests of all images that were stored of posts, nil for all, and went, by id and image. An
// entry can have several, in the order in which they went. One that came back is among them, too.
func (w *Workspace) FormerImages(ctx context.Context, of []manifest.PostID) ([]FormerImage, error) {
	if of == nil {
		return w.formerImages(ctx, "")
	}
	return w.formerImages(ctx, "WHERE id IN (SELECT value FROM json_each(?))", jsonColumn{of})
}

// An ItemImage is an image that an entry of a post has or had.
type ItemImage struct {
	manifest.Key
	Digests
	Source string // where it came from, as Image.Source has it; "" if that is not known
}

// ItemImages returns all images that the entries of a post have or had, also where the entry left the manifest, of a
// workspace that is open for writing.
func (w *Workspace) ItemImages(ctx context.Context, of manifest.PostID) (all []ItemImage, err error) {
	defer wrap(&err, "read the images of a gallery")
	const source = `coalesce(%s, (SELECT source FROM origin o
		WHERE (o.id, o.image, o.sha256) = (i.id, i.image, i.sha256)), '')`
	const columns = "SELECT id, image, original_sha256, sha256, pixels_sha256, "
	return list(ctx, w.db, func(i *ItemImage) []any {
		return []any{&i.ID, &i.Image, &i.File, &i.Stripped, &i.Pixels, &i.Source}
	}, columns+fmt.Sprintf(source, "NULL")+" FROM former_image i WHERE id = ?1 UNION ALL "+
		columns+fmt.Sprintf(source, "nullif(source, '')")+" FROM image i WHERE id = ?1", of)
}

// ErasedImages returns those of FormerImages that were removed, of all posts.
func (w *Workspace) ErasedImages(ctx context.Context) ([]FormerImage, error) {
	return w.formerImages(ctx, "WHERE erased")
}

// LostImages returns the last one of FormerImages of each entry of these posts that has no image now: the one that
// copies have, unless they note another (Copy.Former).
func (w *Workspace) LostImages(ctx context.Context, of []manifest.PostID) (last []FormerImage, err error) {
	// Of these alone: after the end of a workspace every image that it had is a former one.
	all, err := w.formerImages(ctx, `f WHERE id IN (SELECT value FROM json_each(?))
		AND NOT EXISTS (SELECT 1 FROM image i WHERE i.id = f.id AND i.image = f.image)`, jsonColumn{of})
	for i, f := range all {
		if i+1 == len(all) || all[i+1].Key != f.Key {
			last = append(last, f)
		}
	}
	return last, err
}

// Origins say where images of entries came from, as Image.Source has it, by post and image.
type Origins map[manifest.PostID]map[int]string

// Of is that of an entry; "" if it is not known.
func (o Origins) Of(k manifest.Key) string { return o[k.ID][k.Image] }

// Beside yields those of the other entries of a post.
func (o Origins) Beside(k manifest.Key) iter.Seq[string] {
	return func(yield func(string) bool) {
		for image, source := range o[k.ID] {
			if image != k.Image && !yield(source) {
				return
			}
		}
	}
}

// Origins returns those of images of these posts that are stored, and of items of a gallery also where the log alone has
// it, as once state.db was lost, or once they went, also with their entry.
func (w *Workspace) Origins(ctx context.Context, of []manifest.PostID) (from Origins, err error) {
	defer wrap(&err, "read where images came from")
	has, err := w.hasTable(ctx, "origin")
	if err != nil {
		return nil, err
	}
	last, left := "NULL", "" // in a state.db of an earlier version
	if has {
		last = `(SELECT source FROM origin o WHERE o.id = e.id AND o.image = e.image
			AND (i.sha256 IS NULL OR o.sha256 = i.sha256) ORDER BY o.rowid DESC LIMIT 1)`
		left = ` UNION ALL SELECT id, image, source FROM (SELECT id, image, source FROM origin o
			WHERE id IN (SELECT value FROM json_each(?1))
			AND NOT EXISTS (SELECT 1 FROM entry e WHERE e.id = o.id AND e.image = o.image) ORDER BY o.rowid)`
	}
	type origin struct {
		manifest.Key
		source string
	}
	all, err := list(ctx, w.db, func(o *origin) []any { return []any{&o.ID, &o.Image, &o.source} },
		`SELECT e.id, e.image, coalesce(nullif(i.source, ''), `+last+`, '') FROM entry e
		LEFT JOIN image i USING (id, image) WHERE e.id IN (SELECT value FROM json_each(?1))`+left, jsonColumn{of})
	from = Origins{}
	for _, o := range all {
		if o.source == "" {
			continue
		}
		if from[o.ID] == nil {
			from[o.ID] = map[int]string{}
		}
		from[o.ID][o.Image] = o.source
	}
	return from, err
}

// An itemImage is an image that came from an item of a gallery.
type itemImage struct {
	manifest.Key
	sha256 string
}

// itemOrigins returns from where all images came that were items of galleries.
func (w *Workspace) itemOrigins(ctx context.Context) (map[itemImage]string, error) {
	type origin struct {
		itemImage
		source string
	}
	all, err := list(ctx, w.db, func(o *origin) []any { return []any{&o.ID, &o.Image, &o.sha256, &o.source} },
		"SELECT id, image, sha256, source FROM origin")
	from := make(map[itemImage]string, len(all))
	for _, o := range all {
		from[o.itemImage] = o.source
	}
	return from, err
}

func (w *Workspace) formerImages(ctx context.Context, clause string, args ...any) (all []FormerImage, err error) {
	defer wrap(&err, "read the digests of former images")
	from := "former_image"
	if w.lock == nil { // no writer may have opened a state.db of an earlier version since
		earlier, err := w.hasErased(ctx)
		if err != nil {
			return nil, err
		}
		if earlier {
			from = "(SELECT rowid, *, 1 AS erased FROM " + erasedTable + ")"
		}
	}
	return list(ctx, w.db, func(f *FormerImage) []any {
		return []any{&f.ID, &f.Image, &f.File, &f.Stripped, &f.Pixels, &f.Erased}
	}, "SELECT id, image, original_sha256, sha256, pixels_sha256, erased FROM "+from+" "+clause+
		" ORDER BY id, image, rowid", args...)
}

// Swept counts the repairs of Sweep. All are zero after a run that ended by itself.
type Swept struct {
	Temporary int // unfinished files unlinked
	Orphans   int // image files without a row, unlinked
	Strays    int // of them those that are named as no image of an entry, so that no run wrote them
	Lost      int // image rows without their file, or with one of another length, dropped
	Erased    int // posts that must not stay and still had content, and images that were being dropped: that was finished
	Replaced  int // images that were being replaced by others: the row is of the file that is there
}

// Astray is what does not fit between the rows of images and their files.
type Astray struct {
	Images  int            // rows
	Missing []manifest.Key // rows whose file is not there, or has another length
	Loose   []LooseImage   // files that are named as images of entries and have no row, or one of another length
}

// A LooseImage is a file that no row is of.
type LooseImage struct {
	manifest.Key
	Name, Format string
	Bytes        int64
}

// Sweep repairs what a killed run left; call it at the start of a run. It checks names and lengths, not content. Files
// and rows of images that do not fit together go, but for those that mend, which may be nil, makes fit before: PutBack
// and TakeBack do. The files that it returns stay, without rows. An error of mend ends it.
func (w *Workspace) Sweep(ctx context.Context,
	mend func(context.Context, Astray) (stay []LooseImage, err error)) (s Swept, err error) {
	defer wrap(&err, "sweep the workspace")
	// Erase comes before the images are compared, so that a row without a file is not taken for a lost image. It is
	// unfinished where a post must not stay and still has content.
	ids, err := texts(ctx, w.db, `
		SELECT id FROM post p WHERE (state IN ('removed', 'deleted', 'unavailable') AND NOT withheld OR id IN (SELECT id FROM tombstone WHERE NOT readmitted))
		AND (EXISTS (SELECT 1 FROM image WHERE id = p.id) OR EXISTS (SELECT 1 FROM reading WHERE id = p.id)
		  OR EXISTS (SELECT 1 FROM trouble WHERE id = p.id AND NOT `+staysSQL+`)
		  OR EXISTS (SELECT 1 FROM earlier_reading WHERE id = p.id)
		  OR EXISTS (SELECT 1 FROM answer WHERE id = p.id))
		ORDER BY id`)
	if err != nil {
		return s, err
	}
	for _, id := range ids {
		if err := w.Erase(ctx, manifest.PostID(id)); err != nil {
			return s, err
		}
		s.Erased++
	}
	if err := w.sweepGoing(ctx, &s); err != nil {
		return s, err
	}
	if err := w.sweepReplaced(ctx, &s); err != nil {
		return s, err
	}
	a, _, err := w.compareFiles(ctx, &s, nil)
	var stay []LooseImage
	if err == nil && mend != nil {
		stay, err = mend(ctx, a)
	}
	if err == nil {
		err = w.sweepFiles(ctx, &s, stay)
	}
	if err != nil {
		return s, err
	}
	w.unfinished.Store(false) // files and rows agree: the workspace may be sealed
	return s, nil
}

// sweepGoing finishes each DropImage of a removed image that was killed.
func (w *Workspace) sweepGoing(ctx context.Context, s *Swept) error {
	type going struct {
		manifest.Key
		why Trouble
	}
	all, err := list(ctx, w.db, func(g *going) []any {
		return []any{&g.ID, &g.Image, &g.why.Source, &g.why.Outcome, &g.why.Reason, &g.why.Detail, timestamp{&g.why.At}}
	}, "SELECT id, image, source, outcome, reason, detail, at FROM trouble WHERE beside = ? ORDER BY id, image", Going)
	if err != nil {
		return err
	}
	for _, g := range all {
		if err := w.DropImage(ctx, g.Key, g.why, true); err != nil {
			return err
		}
		s.Erased++
	}
	return nil
}

// sweepReplaced finishes each StoreImage that was killed between a file and its row.
func (w *Workspace) sweepReplaced(ctx context.Context, s *Swept) error {
	type replaced struct {
		manifest.Key
		next Image
	}
	all, err := list(ctx, w.db, func(r *replaced) []any { return []any{&r.ID, &r.Key.Image, jsonColumn{&r.next}} },
		"SELECT id, image, next FROM image WHERE next IS NOT NULL")
	if err != nil {
		return err
	}
	for _, r := range all {
		_, err := w.ReadImage(ctx, r.Key, r.next)
		damaged, isOld := errors.AsType[*Damaged](err)
		if err != nil && !isOld {
			return err
		}
		if err := w.change(ctx, "finish the row of "+r.Key.String(), func(ctx context.Context, t *tx) {
			if damaged == nil {
				w.putImage(ctx, t, r.Key, r.next)
			}
			t.exec(ctx, "UPDATE image SET next = NULL WHERE id = ? AND image = ?", r.ID, r.Key.Image)
		}); err != nil {
			return err
		}
		s.Replaced++
	}
	return nil
}

// sweepFiles removes unfinished files, image files without their rows but for those that stay, and rows without their
// files.
func (w *Workspace) sweepFiles(ctx context.Context, s *Swept, stay []LooseImage) error {
	stays := map[string]bool{}
	for _, l := range stay {
		stays[l.Name] = true
	}
	a, left, err := w.compareFiles(ctx, s, stays)
	if err != nil {
		return err
	}
	// A file whose length is not its row's goes as well, and its row below: the next run fetches it again.
	if err := w.unlink(ctx, left...); err != nil {
		return err
	}
	s.Lost = len(a.Missing)
	if s.Lost == 0 {
		return nil
	}
	return w.change(ctx, "drop rows without their file", func(ctx context.Context, t *tx) {
		for _, k := range a.Missing {
			t.loseImage(ctx, k)
		}
	})
}

// Astray compares the image files with their rows, and changes nothing.
func (w *Workspace) Astray(ctx context.Context) (a Astray, err error) {
	a, _, err = w.compareFiles(ctx, &Swept{}, nil)
	return a, err
}

// compareFiles compares the image files with their rows, and lists the files that a sweep removes: those that do not
// stay.
func (w *Workspace) compareFiles(ctx context.Context, s *Swept, stays map[string]bool) (a Astray, left []string,
	err error) {
	// A link in the place of the folder would make all images look lost.
	if info, err := w.root.Lstat(imagesName); err == nil && !info.IsDir() {
		return a, nil, fmt.Errorf("%s is not a folder: move it away", imagesName)
	}
	rows, err := storedImages(ctx, w.db, "")
	if err != nil {
		return a, nil, err
	}
	missing := map[string]storedImage{} // the rows by file name, less those whose file was found
	for _, r := range rows {
		missing[w.ImageName(r.Key, r.format)] = r
	}
	a.Images, s.Temporary, s.Orphans, s.Strays = len(rows), 0, 0, 0
	for f, err := range w.Walk(ctx, ".") {
		if err != nil {
			return a, nil, err
		}
		row, hasRow := missing[f.Name]
		switch {
		case durable.IsTemp(path.Base(f.Name)):
			s.Temporary++
		case !strings.HasPrefix(f.Name, imagesName+"/"):
			continue
		case hasRow && f.Mode.IsRegular() && f.Size == row.bytes:
			delete(missing, f.Name)
			continue
		case stays[f.Name]:
			continue
		default:
			loose, ok := w.looseImage(f)
			if ok {
				a.Loose = append(a.Loose, loose)
			}
			if !hasRow {
				s.Orphans++
			}
			if !hasRow && !ok {
				s.Strays++
			}
		}
		left = append(left, f.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		a.Missing = append(a.Missing, missing[name].Key)
	}
	return a, left, nil
}

// looseImage is the entry whose image a file would be by its name.
func (w *Workspace) looseImage(f Found) (LooseImage, bool) {
	ext := strings.TrimPrefix(path.Ext(f.Name), ".")
	base := strings.TrimSuffix(path.Base(f.Name), path.Ext(f.Name))
	k, err := manifest.ParseKey(strings.Replace(base, "-", "/", 1))
	for format, its := range extensions {
		if err == nil && its == ext && f.Mode.IsRegular() && w.ImageName(k, format) == f.Name {
			return LooseImage{Key: k, Name: f.Name, Format: format, Bytes: f.Size}, true
		}
	}
	return LooseImage{}, false
}

// TakeBack stores an image whose file is there already, in place of a row of another one. It writes no file: one that
// was to be written again could be lost with that. SHA256 and Bytes of img are those of the file.
func (w *Workspace) TakeBack(ctx context.Context, k manifest.Key, img Image) error {
	post := w.post(k.ID)
	post.Lock()
	defer post.Unlock()
	return w.change(ctx, "take back the image of "+k.String(),
		func(ctx context.Context, t *tx) { w.putImage(ctx, t, k, img) })
}

// PutBack writes the file of a stored image again, and keeps all that is known of it. It fails with ErrNoImage where no
// row names these bytes.
func (w *Workspace) PutBack(ctx context.Context, k manifest.Key, body []byte) (err error) {
	defer wrap(&err, "put back the image of %s", k)
	post := w.post(k.ID)
	post.Lock()
	defer post.Unlock()
	formats, err := texts(ctx, w.db, "SELECT format FROM image WHERE id = ? AND image = ? AND sha256 = ?", k.ID,
		k.Image, hexDigest(body))
	if err == nil && len(formats) == 0 {
		err = ErrNoImage
	}
	if err != nil {
		return err
	}
	return w.writeImage(ctx, w.ImageName(k, formats[0]), body)
}

// PutLoose writes the file of an image of which there is no row. TakeBack makes one.
func (w *Workspace) PutLoose(ctx context.Context, k manifest.Key, format string, body []byte) (l LooseImage,
	err error) {
	defer wrap(&err, "put back the image of %s", k)
	post := w.post(k.ID)
	post.Lock()
	defer post.Unlock()
	name := w.ImageName(k, format)
	return LooseImage{k, name, format, int64(len(body))}, w.writeImage(ctx, name, body)
}

func (w *Workspace) writeImage(ctx context.Context, name string, body []byte) error {
	_, err := WriteFile(ctx, w.files, name, "", func(f io.Writer) error {
		_, err := f.Write(body)
		return err
	}, nil)
	return err
}
