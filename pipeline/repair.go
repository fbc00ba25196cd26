package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"rehydrate/dedupe"
	"rehydrate/internal/picture"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/reading"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A disk that is not mounted, a file that was deleted by hand or an older state.db must not cost an image of a live
// post: its host may not have it any more. So before a sweep makes files and rows agree, files whose rows are lost are
// taken back where the log says that they were fetched, and files that are lost are put back from the dataset, which
// has their bytes. Where more is missing than a few, nothing is done until somebody says that it is lost. A later
// edition of the release can have entries that an older state.db lacks: a job that does not load the manifest leaves
// their files to the next run, which does.

// A MissingError says that more than a tenth of the stored images are not there.
type MissingError struct {
	Missing, Of int
	First       string // the name of the first file
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%d of the %d stored images are not there, %s first: is the disk mounted that holds them?",
		e.Missing, e.Of, e.First)
}

// repair makes files and rows of images fit before a sweep, and returns the files that stay for the next run.
func (r *run) repair(ctx context.Context, a workspace.Astray) ([]workspace.LooseImage, error) {
	if err := r.restoreLoose(ctx, &a); err != nil {
		return nil, err
	}
	if r.loads && len(r.later) == 0 { // all that were left to it are taken back
		if err := state.ClearNote[state.LooseNote](ctx, r.Workspace); err != nil {
			return nil, err
		}
	}
	unknown, err := r.findUnknown(ctx, &a)
	if err != nil || len(a.Missing) == 0 {
		return r.later, err
	}
	if err := r.allowMissing(a); err != nil {
		return nil, err
	}
	put, unpacked, err := r.unpackUnknown(ctx, unknown)
	if err != nil {
		return nil, err
	}
	left := workspace.Astray{Missing: slices.Clone(a.Missing), Loose: unpacked}
	left.Missing = slices.DeleteFunc(left.Missing, func(k manifest.Key) bool { return put[k] })
	if err := r.restoreLoose(ctx, &left); err != nil {
		return nil, err
	}
	back, err := r.restoreFromDataset(ctx, left.Missing...)
	n := len(a.Missing) - len(left.Missing)
	for _, done := range back {
		if done {
			n++
		}
	}
	if err == nil {
		r.Log.Warn("stored images were missing", "images", len(a.Missing), "put back from the dataset", n)
	}
	return r.later, err
}

// allowMissing is asked when image files are missing. It uses up the confirmation where they are many.
func (r *run) allowMissing(a workspace.Astray) error {
	n := len(a.Missing)
	if !state.TooManyMissing(n, a.Images) {
		return nil
	}
	if !r.confirmsRemovals() {
		return &MissingError{Missing: n, Of: a.Images, First: a.Missing[0].String()}
	}
	r.spent = true
	return nil
}

// looseImages are image files without rows, or with those of earlier images, that may be images of posts which stay.
type looseImages struct {
	loaded  map[manifest.Key]bool // whether state.db has the entry
	removed map[manifest.Key]bool // its image was removed, by state.db
	missing map[manifest.Key]bool // state.db has an image of it, which is not there
}

// restoreLoose takes images back whose rows are lost, or are of earlier images, as with an older state.db: what the log
// says was fetched last of a post that is not gone, and was not erased since, or what the dataset has. Such an entry's
// own image is not missing then. Those of entries that are not loaded stay for the next run.
func (r *run) restoreLoose(ctx context.Context, a *workspace.Astray) error {
	all, err := r.findLoose(ctx, a)
	if err != nil || len(all.loaded) == 0 {
		return err
	}
	fetched, erased, err := r.fetched(ctx, all.loaded)
	damaged := errors.As(err, new(*auditlog.Broken))
	if err != nil && !damaged {
		return err
	}
	stays := map[string]manifest.Key{}
	for k := range all.loaded {
		if !erased[k] && !all.removed[k] {
			stays[k.String()] = k
		}
	}
	inDataset, err := r.noteLoose(ctx, stays)
	if err != nil {
		return err
	}
	if damaged {
		r.keepUnknown(slices.DeleteFunc(slices.Clone(a.Loose), func(l workspace.LooseImage) bool {
			_, candidate := all.loaded[l.Key]
			return !candidate
		}))
		return nil
	}
	// What today's policy does not take stays without a row, as where state.db has it (terms.refused).
	decoder := reading.New(nil, policy.Policy{Images: policy.WidestImages()})
	for _, l := range a.Loose {
		var can []auditlog.Event
		if event, was := fetched[l.Key]; was {
			can = append(can, event)
		}
		if digest := inDataset[l.Key]; digest != "" {
			can = append(can, fetchedOnce(digest))
		}
		if len(can) == 0 {
			continue
		}
		if !all.loaded[l.Key] {
			r.later = append(r.later, l)
			continue
		}
		back := false
		for i := 0; i < len(can) && !back; i++ {
			back, err = r.restoreFetched(ctx, decoder, l, can[i])
			if err != nil {
				return err
			}
		}
		if back && !all.missing[l.Key] {
			a.Images++
		}
		if back {
			a.Missing = slices.DeleteFunc(a.Missing, func(k manifest.Key) bool { return k == l.Key })
		}
	}
	if len(r.later) > 0 {
		r.Log.Warn("images of entries that are not in state.db stay until the next run: `rehydrate run` takes them back",
			"images", len(r.later))
	}
	return nil
}

func (r *run) findLoose(ctx context.Context, a *workspace.Astray) (looseImages, error) {
	all := looseImages{map[manifest.Key]bool{}, map[manifest.Key]bool{}, map[manifest.Key]bool{}}
	for _, k := range a.Missing {
		all.missing[k] = true
	}
	for _, l := range a.Loose {
		rec, err := r.stored(ctx, l.Key)
		if err != nil {
			return all, err
		}
		has := rec.Key == l.Key
		gone := r.stones.Has(l.ID) || rec.Post.State.Gone() && !rec.Post.Withheld
		if gone && !has && !r.loads { // the sweep removes it
			r.laterGone = append(r.laterGone, l.Key)
		}
		if !gone && (has && (rec.Image == nil || all.missing[l.Key]) || !has && !r.loads) {
			all.loaded[l.Key] = has
			all.removed[l.Key] = rec.Trouble != nil && slices.Contains(policy.ImageRemovals(), rec.Trouble.Reason)
		}
	}
	return all, nil
}

// noteLoose notes the digests that the dataset has of images without rows which no removal is known of, and returns
// those that are noted of the wanted ones. Where state.db and log were put back together from a backup, and are older
// than images and dataset, nothing else tells what these images are; and a removal erases the file. They are noted
// because their rows can leave the dataset before a job takes the images back.
func (r *run) noteLoose(ctx context.Context, wanted map[string]manifest.Key) (map[manifest.Key]string, error) {
	noted, err := state.ReadNote[state.LooseNote](ctx, r.Workspace)
	if err != nil || len(wanted) == 0 {
		return nil, err
	}
	files, err := state.Shards(ctx, r.Workspace)
	if err != nil {
		return nil, err
	}
	found := maps.Clone(noted)
	if found == nil {
		found = state.LooseNote{}
	}
	for _, f := range files {
		err := r.findInFile(ctx, f.Name, wanted, func(k manifest.Key, body []byte) error {
			found[k.String()] = state.SHA256(body)
			return nil
		})
		if err != nil && ctx.Err() != nil { // a damaged file of the dataset has nothing to say
			return nil, err
		}
	}
	if !maps.Equal(found, noted) {
		if err := state.WriteNote(ctx, r.Workspace, found); err != nil {
			return nil, err
		}
	}
	digests := map[manifest.Key]string{}
	for row, k := range wanted {
		digests[k] = found[row]
	}
	return digests, nil
}

// fetchedOnce stands for the record of an image that the dataset alone knows: when its post was seen live is not known,
// nor is the file that its host sent.
func fetchedOnce(digest string) auditlog.Event {
	return auditlog.Event{Time: time.Unix(1, 0), SHA256: digest, Original: digest}
}

// keepUnknown leaves the candidates to a later job: while the log is damaged nothing tells an image that was fetched
// from one that was erased. It stops no removal: the end of the job says that the log is damaged.
func (r *run) keepUnknown(loose []workspace.LooseImage) {
	if len(loose) == 0 {
		return
	}
	r.later = append(r.later, loose...)
	r.Log.Warn("images without a row stay where they are: the audit log, which says what they are, is damaged",
		"images", len(r.later))
}

// removeLater removes what stays for the next run of entries that are gone since.
func (r *run) removeLater(ctx context.Context, gone state.GoneSet) error {
	for _, l := range r.later {
		if !gone.HasRow(l.Key.String()) {
			continue
		}
		if err := r.Workspace.RemoveFile(ctx, l.Name); err != nil {
			return err
		}
		r.laterGone = append(r.laterGone, l.Key)
	}
	return nil
}

// addLaterGone adds to the posts that the job removed those whose entries state.db does not have: of files that were
// left to the next run, and of a manifest that no longer names them.
func (r *run) addLaterGone(removed []state.RemovedPost, gone state.GoneSet) []state.RemovedPost {
	others := slices.Clone(r.leftGone)
	for _, k := range r.laterGone {
		if post, is := gone.Of(k.String()); is {
			others = append(others, state.RemovedPost{GonePost: post})
		}
	}
	for _, o := range others {
		if !slices.ContainsFunc(removed, func(p state.RemovedPost) bool { return p.ID == o.ID }) {
			removed = append(removed, o)
		}
	}
	return removed
}

// eraseLaterPictures removes what stays for the next run and is, byte for byte, the image of a post that was taken
// down. It notes how many others there are whose entries are not in state.db.
func (r *run) eraseLaterPictures(ctx context.Context) error {
	if len(r.later) == 0 {
		return state.ClearNote[state.LaterNote](ctx, r.Workspace)
	}
	removed, err := r.removedPictures(ctx)
	if err != nil {
		return err
	}
	waiting := state.LaterNote(0)
	for _, l := range r.later {
		rec, err := r.stored(ctx, l.Key)
		if err != nil {
			return err
		}
		f, err := r.Workspace.Stat(ctx, l.Name)
		if errors.Is(err, fs.ErrNotExist) { // it was taken back meanwhile, or removed
			continue
		}
		if err == nil &&
			removed.Refuses(r.Policy, l.ID, workspace.Image{SHA256: f.SHA256, OriginalSHA256: f.SHA256}) != nil {
			err = r.Workspace.RemoveFile(ctx, l.Name)
			r.dropped = append(r.dropped, l.Key)
		} else if err == nil && rec.Key != l.Key {
			waiting++
		}
		if err != nil {
			return err
		}
	}
	return state.WriteNote(ctx, r.Workspace, waiting)
}

// findUnknown finds images of which neither a row nor the file is there, as where state.db was lost or is an older one
// and the file is lost, too: rows of the dataset that have what the log says was fetched last. It adds them to those
// that are missing. While the log is damaged they get their files, and no more: see keepUnknown.
func (r *run) findUnknown(ctx context.Context, a *workspace.Astray) (map[manifest.Key]auditlog.Event, error) {
	unsure, err := r.Workspace.ExportUnsure(ctx)
	if err == nil && !unsure && !r.Workspace.LogDamaged() {
		unsure, err = r.datasetIsOther(ctx)
		if err == nil && !unsure {
			return nil, nil
		}
	}
	if err != nil {
		return nil, err
	}
	files, err := state.Shards(ctx, r.Workspace)
	if err != nil {
		return nil, err
	}
	unknown, err := r.unknownRows(ctx, *a, files)
	if err != nil || len(unknown.loaded) == 0 {
		return nil, err
	}
	missing := map[manifest.Key]bool{}
	for _, k := range a.Missing {
		missing[k] = true
	}
	fetched, erased, err := r.fetched(ctx, unknown.loaded)
	if errors.As(err, new(*auditlog.Broken)) {
		_, loose, err := r.unpackUnknown(ctx, unknown.perhaps(missing))
		if err != nil {
			return nil, err
		}
		r.keepUnknown(loose)
		rows := map[string]manifest.Key{}
		for _, l := range loose {
			rows[l.Key.String()] = l.Key
		}
		_, err = r.noteLoose(ctx, rows)
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	untold := map[string]manifest.Key{}
	maps.DeleteFunc(fetched, func(k manifest.Key, e auditlog.Event) bool { return e.SHA256 == unknown.refused[k] })
	for k := range unknown.loaded {
		_, told := fetched[k]
		if !told && !erased[k] && !missing[k] && !slices.Contains(policy.ImageRemovals(), unknown.trouble[k].Reason) {
			untold[k.String()] = k
		}
	}
	inDataset, err := r.noteLoose(ctx, untold)
	for k, digest := range inDataset {
		if digest != "" && digest != unknown.refused[k] {
			fetched[k] = fetchedOnce(digest)
		}
	}
	maps.DeleteFunc(fetched, func(k manifest.Key, e auditlog.Event) bool {
		return unknown.trouble[k].At.After(e.Time)
	})
	byName := func(k, l manifest.Key) int { return cmp.Compare(k.String(), l.String()) }
	for _, k := range slices.SortedFunc(maps.Keys(fetched), byName) {
		if !missing[k] {
			a.Missing = append(a.Missing, k)
			if unknown.refused[k] == "" {
				a.Images++
			}
		}
	}
	return fetched, err
}

// datasetIsOther reports whether a file of the dataset has another size than the last export says, or is none of its
// files: as where state.db and log were put back together from a backup. To read them all takes long.
func (r *run) datasetIsOther(ctx context.Context) (bool, error) {
	last, err := state.ReadNote[state.ExportNote](ctx, r.Workspace)
	if err != nil {
		return false, err
	}
	names, err := r.Workspace.Files(ctx, state.DatasetDir)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		if !state.IsShard(name) {
			continue
		}
		f, err := r.Workspace.OpenFile(name)
		if err != nil {
			return false, err
		}
		info, err := f.Stat()
		f.Close()
		if err != nil {
			return false, err
		}
		of := func(w workspace.File) bool { return w.Name == name && w.Size == info.Size() }
		if !slices.ContainsFunc(last.Files, of) {
			return true, nil
		}
	}
	return false, nil
}

// unknownImages are entries of rows of the dataset that have no image file, as fetched wants them.
type unknownImages struct {
	loaded  map[manifest.Key]bool
	trouble map[manifest.Key]workspace.Trouble // that state.db noted: it can be later than a log that is older
	refused map[manifest.Key]string            // the digests of images that are stored and were no rows: others came since
}

// perhaps are those whose image may have been fetched, as far as the manifest and state.db tell: not what was removed,
// nor what left with its entry, nor what would take the place of an image. missing are images of which state.db has the
// digest.
func (u unknownImages) perhaps(missing map[manifest.Key]bool) map[manifest.Key]auditlog.Event {
	images := map[manifest.Key]auditlog.Event{}
	for k, loaded := range u.loaded {
		if loaded && !missing[k] && u.refused[k] == "" &&
			!slices.Contains(policy.ImageRemovals(), u.trouble[k].Reason) {
			images[k] = auditlog.Event{}
		}
	}
	return images
}

// unknownRows are the rows of the dataset's files without an image file, or with one that state.db knows as no row.
// Those of posts that are gone are not among them.
func (r *run) unknownRows(ctx context.Context, a workspace.Astray,
	files []workspace.File) (u unknownImages, err error) {
	rows := map[string]bool{}
	for _, f := range files {
		if _, err := state.ReadRows(ctx, r.Workspace, f.Name, rows); err != nil && ctx.Err() != nil {
			return u, err // of a damaged file nothing can be put back
		}
	}
	for _, l := range slices.Concat(a.Loose, r.later) {
		delete(rows, l.Key.String())
	}
	missing := map[manifest.Key]bool{}
	for _, k := range a.Missing {
		missing[k] = true
	}
	u = unknownImages{map[manifest.Key]bool{}, map[manifest.Key]workspace.Trouble{}, map[manifest.Key]string{}}
	for rec, err := range r.Workspace.Records(ctx, workspace.Select{Bare: true}) {
		if err != nil {
			return u, err
		}
		row := rec.Key.String()
		gone := r.stones.Has(rec.ID) || rec.Post.State.Gone() && !rec.Post.Withheld
		refused := rec.Image != nil && !missing[rec.Key] &&
			(state.WasSuspected(rec) || rec.Trouble != nil && rec.Trouble.Beside == workspace.Out)
		if refused {
			u.refused[rec.Key] = rec.Image.SHA256
		}
		if rows[row] && !gone && (rec.Image == nil || missing[rec.Key] || refused) {
			u.loaded[rec.Key] = true
			if t := rec.Trouble; t != nil && rec.Image == nil {
				u.trouble[rec.Key] = *t
			}
		}
		delete(rows, row)
	}
	for row := range rows {
		if k, err := manifest.ParseKey(row); err == nil && !r.loads && !r.stones.Has(k.ID) {
			u.loaded[k] = false
		}
	}
	return u, nil
}

// unpackUnknown writes the files of these images again from the dataset: of those that have their row, and the others
// for restoreLoose to take back, or to stay. Where no digest is known, any image of the entry is the one.
func (r *run) unpackUnknown(ctx context.Context, fetched map[manifest.Key]auditlog.Event) (put map[manifest.Key]bool,
	back []workspace.LooseImage, err error) {
	put = map[manifest.Key]bool{}
	if len(fetched) == 0 {
		return put, nil, nil
	}
	files, err := state.Shards(ctx, r.Workspace)
	if err != nil {
		return nil, nil, err
	}
	wanted := map[string]manifest.Key{}
	for k := range fetched {
		wanted[k.String()] = k
	}
	var failed error
	for _, f := range files {
		err := r.findInFile(ctx, f.Name, wanted, func(k manifest.Key, body []byte) error {
			if is := fetched[k].SHA256; is != "" && is != state.SHA256(body) {
				return nil
			}
			info, fault := picture.Inspect(body, policy.WidestImages().Limits())
			if fault != nil {
				return nil
			}
			failed = r.Workspace.PutBack(ctx, k, body)
			if !errors.Is(failed, workspace.ErrNoImage) {
				put[k] = true
				return failed
			}
			var l workspace.LooseImage
			l, failed = r.Workspace.PutLoose(ctx, k, info.Format, body)
			back = append(back, l)
			return failed
		})
		if failed != nil || err != nil && ctx.Err() != nil { // a damaged file of the dataset costs its own rows alone
			return nil, nil, err
		}
	}
	return put, back, nil
}

// fetched finds in the log what was fetched last of some entries, which are loaded or not, and not erased since; and
// which of them were erased, and not fetched or allowed back since. The error is *auditlog.Broken where the log is
// damaged.
func (r *run) fetched(ctx context.Context, loaded map[manifest.Key]bool) (last map[manifest.Key]auditlog.Event,
	erased map[manifest.Key]bool, err error) {
	last, erased = map[manifest.Key]auditlog.Event{}, map[manifest.Key]bool{}
	of := map[manifest.PostID][]manifest.Key{}
	for k := range loaded {
		of[k.ID] = append(of[k.ID], k)
	}
	take := func(e auditlog.Event) {
		// An entry that is loaded did not leave the manifest. A record of an earlier version does not tell which image of a
		// post did.
		left := e.Verdict == auditlog.LeftManifest
		back := e.Kind == auditlog.Lifted || e.Kind == auditlog.Readmitted && e.Verdict != auditlog.Revoked
		for _, p := range e.Posts {
			for _, k := range of[p.ID] {
				switch {
				case e.Kind == auditlog.Fetch && k.Image == e.Image:
					last[k], erased[k] = e, false
				case e.Erases(k) && !(left && loaded[k]):
					delete(last, k)
					erased[k] = true
				case back:
					erased[k] = false
				}
			}
		}
	}
	log, err := r.Workspace.LogReader(ctx)
	if errors.Is(err, auditlog.ErrNoLog) {
		return last, erased, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for e, err := range log.Records(ctx, 0) {
		if err != nil {
			return nil, nil, err
		}
		take(e)
	}
	waiting, err := r.Workspace.Unpublished(ctx)
	for _, e := range waiting {
		take(e)
	}
	return last, erased, err
}

// restoreFetched takes a loose image back as it was fetched, and reports whether it did. One that is not what was
// fetched goes with the sweep.
func (r *run) restoreFetched(ctx context.Context, decoder *reading.Reader, l workspace.LooseImage,
	fetched auditlog.Event) (bool, error) {
	body, err := r.Workspace.ReadImage(ctx, l.Key, workspace.Image{Format: l.Format, Bytes: l.Bytes,
		SHA256: fetched.SHA256})
	if _, other := errors.AsType[*workspace.Damaged](err); other {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	info, fault := picture.Inspect(body, policy.WidestImages().Limits())
	if fault != nil {
		return false, nil
	}
	pic, err := decoder.Decode(ctx, info, body)
	if err != nil {
		return false, err
	}
	defer pic.Free()
	hash, err := dedupe.HashImage(pic.Image)
	if err != nil {
		return false, err
	}
	r.Log.Info("an image whose row was lost is taken back", "id", l.ID, "image", l.Key.Image)
	if err := r.Workspace.WasLive(ctx, l.ID, fetched.Time); err != nil {
		return false, err
	}
	// From where it came is not known: the next run asks, and finds the same file there or keeps this one.
	err = r.Workspace.TakeBack(ctx, l.Key, workspace.Image{Format: info.Format, Width: info.Width, Height: info.Height,
		SHA256: fetched.SHA256, Bytes: l.Bytes, OriginalSHA256: fetched.Original, OriginalBytes: l.Bytes,
		PixelsSHA256: picture.ShownDigest(body, info.Format, pic.Upright),
		PHash:        hash.Bits, Flat: hash.Flat, HashKind: dedupe.HashKind()})
	return err == nil, err
}

// readStored reads a stored image; one that is damaged it puts back from the dataset first. The error is
// *workspace.Damaged where that does not have it.
func (r *run) readStored(ctx context.Context, rec workspace.Record) ([]byte, error) {
	body, err := r.Workspace.ReadImage(ctx, rec.Key, *rec.Image)
	damaged, ok := errors.AsType[*workspace.Damaged](err)
	if !ok {
		return body, err
	}
	back, wrong := r.restoreFromDataset(ctx, rec.Key)
	if wrong != nil || !back[rec.Key] {
		return nil, errors.Join(err, wrong)
	}
	r.Log.Warn("a stored image was damaged and is put back from the dataset", "file", damaged.Name, "what",
		damaged.What)
	return r.Workspace.ReadImage(ctx, rec.Key, *rec.Image)
}

// checkMoving reads the stored images of rows that are to move to another file of the dataset, or to leave it, and puts
// back those that are damaged: when the dataset is written, the file that has their bytes may have gone. The error is
// *workspace.Damaged where the dataset does not have one.
func (r *run) checkMoving(ctx context.Context, d *state.Decisions, plans map[string][]int) error {
	moving := slices.Collect(d.Leaving())
	for split, plan := range plans {
		shard, rows := -1, 0 // how many rows it has room for
		var stay map[string]bool
		for k, there := range d.Kept(split) {
			for ; rows == 0; rows = plan[shard] {
				shard++
				stay = map[string]bool{}
				_, err := state.ReadRows(ctx, r.Workspace, shardName(split, shard, plans), stay)
				if err != nil && ctx.Err() != nil { // in a file that is new or damaged no row stays
					return err
				}
			}
			rows--
			if there && !stay[k.String()] {
				moving = append(moving, k)
			}
		}
	}
	const atOnce = 1000
	for keys := range slices.Chunk(moving, atOnce) {
		if err := r.checkImages(ctx, keys); err != nil {
			return err
		}
	}
	return nil
}

// checkImages reads the stored images of entries, and puts back those that are damaged. One that was removed is none.
func (r *run) checkImages(ctx context.Context, keys []manifest.Key) error {
	ids, wanted := []manifest.PostID{}, map[manifest.Key]bool{}
	for _, k := range keys {
		ids = append(ids, k.ID)
		wanted[k] = true
	}
	for rec, err := range r.Workspace.Records(ctx, workspace.Select{Bare: true, IDs: ids}) {
		if err == nil && rec.Image != nil && wanted[rec.Key] {
			_, err = r.readStored(ctx, rec)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// restoreFromDataset writes files of stored images again from the dataset's files on record, and returns which: one
// that is not in the dataset, or not with the bytes on record, stays lost.
func (r *run) restoreFromDataset(ctx context.Context, keys ...manifest.Key) (back map[manifest.Key]bool, err error) {
	back = map[manifest.Key]bool{}
	err = r.findInDataset(ctx, keys, func(k manifest.Key, body []byte) error {
		err := r.Workspace.PutBack(ctx, k, body)
		back[k] = err == nil
		if errors.Is(err, workspace.ErrNoImage) { // which has other bytes on record
			return nil
		}
		return err
	})
	return back, err
}

// findInDataset calls found with the image of each of the entries that is a row of the dataset's files on record.
func (r *run) findInDataset(ctx context.Context, keys []manifest.Key,
	found func(k manifest.Key, body []byte) error) error {
	d, err := r.readDataset(ctx)
	if err != nil {
		return err
	}
	wanted := map[string]manifest.Key{}
	for _, k := range keys {
		if d.rows[k.String()] {
			wanted[k.String()] = k
		}
	}
	for _, f := range d.files {
		if err := r.findInFile(ctx, f.Name, wanted, found); err != nil {
			return err
		}
	}
	return nil
}

// findInFile is findInDataset in one file, for rows by their names.
func (r *run) findInFile(ctx context.Context, name string, wanted map[string]manifest.Key,
	found func(k manifest.Key, body []byte) error) error {
	has := func(row string) bool { _, ok := wanted[row]; return ok }
	ids := map[string]bool{}
	if _, err := state.ReadRows(ctx, r.Workspace, name, ids); err != nil {
		return err
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(ids)), has) {
		return nil
	}
	for row, err := range state.RowsOf(ctx, r.Workspace, name) {
		if err != nil {
			return err
		}
		if !has(row.ID) {
			continue
		}
		if err := found(wanted[row.ID], row.Image); err != nil {
			return err
		}
	}
	return nil
}
