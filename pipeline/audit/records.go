package audit

import (
	"cmp"
	"context"
	"io"
	"path"
	"strings"

	"rehydrate/dedupe"
	"rehydrate/manifest"
	"rehydrate/pipeline/durable"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// readRecords reads the records of every entry, and the files of the last export.
func (a *audit) readRecords(ctx context.Context) error {
	ws := a.Workspace
	for rec, err := range ws.Records(ctx, workspace.Select{WithEarlier: true}) {
		if err != nil {
			return err
		}
		if rec.Result != nil && rec.Result.Outcome == manifest.Kept {
			a.rows++
		}
		if rec.Image == nil && rec.Reading == nil && !rec.Earlier.Read {
			continue
		}
		// Of posts that may stay too: their content tells a shared picture from an erased one.
		k := a.known(rec.ID, rec.Key.String())
		k.read = rec.Earlier.Read
		if img := rec.Image; img != nil {
			a.images++
			k.image, k.format = parseDigest(img.SHA256), img.Format
			a.gone.mark(k, k.image, parseDigest(img.OriginalSHA256), parseDigest(img.PixelsSHA256))
			if !img.Flat && img.HashKind == dedupe.HashKind() {
				k.hash(img.PHash)
			}
		}
		if r := rec.Reading; r != nil {
			k.read = k.read || r.Text != "" || r.Failed == nil
			a.gone.read = append(a.gone.read, clue[string]{r.Text, k})
		}
	}
	// A purge keeps what recognises an image and leads to no content.
	erased, err := ws.ErasedImages(ctx)
	if err != nil {
		return err
	}
	for _, e := range erased {
		a.gone.mark(a.known(e.ID, e.Key.String()), parseDigest(e.File), parseDigest(e.Stripped), parseDigest(e.Pixels))
	}
	last, err := state.ReadNote[state.ExportNote](ctx, ws)
	if err != nil {
		a.gap("state.db", "the note of the last export cannot be read: %v", err)
	}
	for _, f := range last.Files {
		a.exported[f.Name] = f.SHA256
	}
	return ctx.Err()
}

// storedAs returns the entry whose image is a file of the workspace; nil for none.
func (a *audit) storedAs(p place) *known {
	key, _ := manifest.ParseKey(p.own)
	if e := a.posts[key.ID]; e != nil && p.part == "" {
		for k := e.content; k != nil; k = k.next {
			if k.name == p.own && k.format != "" && a.Workspace.ImageName(key, k.format) == p.src.name {
				return k
			}
		}
	}
	return nil
}

// mayName reports whether a file of the workspace may name posts that are gone, as lists of outcomes do.
func (a *audit) mayName(name string) bool {
	return name == manifest.OutcomesName || name == manifest.TombstonesName || name == workspace.ReportName ||
		strings.HasPrefix(name, state.AuditDir+"/") || a.exported[name] != ""
}

func (a *audit) checkOutcomes(s *source, r io.Reader) {
	for res, err := range manifest.ReadOutcomes(r) {
		if err != nil {
			a.unread(s.where, err)
			return
		}
		if e := a.posts[res.ID]; e != nil && e.MustGo && (res.Outcome == manifest.Kept || res.Outcome == manifest.Duplicate) {
			a.finding(FoundRow, res.Key.String(), s.where, "it says %s of a post that must be gone: %s", res.Outcome, e.why)
		}
	}
}

// accountFor compares a file with the records of it, and reports whether they say all there is to say.
func (w walker) accountFor(s *source, kind string, all *io.SectionReader) (done bool) {
	sum, noted, logged := s.file.SHA256.String(), w.exported[s.name], w.logged[s.name]
	switch {
	// The release names every post by right, wherever it lies.
	case sum == w.Release.ManifestDigest:
		return true
	case s.recorded != "" && s.recorded != sum:
		w.changedCopy(s.where, "somebody changed it since it was exported")
	case s.name == manifest.OutcomesName:
		w.checkOutcomes(s, io.NewSectionReader(all, 0, s.size))
	case s.name == "" || s.name == state.StateFile || durable.IsTemp(path.Base(s.name)):
	case kind == isDatabase:
		w.finding(FoundCopy, "", s.where, "a database in the workspace that no record accounts for: move it away, or out of backups that the posts of today have outlived")
	case kind != isParquet && noted == "":
	case noted == "" && logged == "":
		w.stray(FoundCopy, "", s.name, "a Parquet in the workspace that no record accounts for")
	case cmp.Or(noted, sum) != sum || cmp.Or(logged, sum) != sum:
		w.stray(FoundExport, "", s.name, "it is not the file that was exported last under this name, as state.db and the log have it: restore it with `rehydrate run`")
	case logged == "" && w.report.Log.Present && w.report.Log.Consistent:
		w.stray(FoundExport, "", s.name, "no record of the log names its export")
	}
	// A copy that is as it was made holds only texts that this workspace knows.
	s.ours = s.ours || s.recorded != "" && s.recorded == sum
	return false
}

// changedCopy notes a file of a registered copy that is not as its record has it.
func (a *audit) changedCopy(where, what string) {
	a.owed(where, "a file of a registered copy: "+what, "; `rehydrate purge` says what to do")
}

// stray notes a file of the workspace that is not the one on record, or has no record.
func (a *audit) stray(kind FindingKind, id, where, what string) {
	if a.sealed {
		a.finding(kind, id, where, "%s", what)
		return
	}
	// The records may be older than the file.
	a.gap(where, "%s; or a run is writing it, or was killed: run, then audit again", what)
}
