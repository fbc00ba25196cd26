package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// logged is what the log says of one post.
type logged struct {
	state       manifest.PostState // of the last verdict
	reason      manifest.Reason
	at          time.Time
	goneAt      time.Time // of the first verdict that it is gone since one that it is not
	record      *int64
	withheld    bool
	tombstone   bool // one that holds: nothing lifted or suspended it
	tombstoneIn int64
	lifted      bool // no record of a tombstone follows a maintainer's statement
}

// readLog replays the log and compares it with its checkpoint, an earlier one and the workspace.
func (a *audit) readLog(ctx context.Context) error {
	if a.Workspace == nil {
		if a.Since != nil {
			a.gap("", "--since", "there is no workspace, and so no log to compare the checkpoint with")
		}
		return nil
	}
	l, err := a.Workspace.LogReader(ctx)
	if errors.Is(err, auditlog.ErrNoLog) {
		if a.Since != nil {
			a.finding(FoundLog, "", "audit", "the log is gone: a checkpoint of it was kept, and there is none here")
		} else if a.stored.images > 0 {
			a.note("there is no audit log: its first run was killed")
		}
		return a.readPending(ctx, 0)
	}
	if err != nil {
		return a.doubtLog(ctx, err)
	}
	c := l.Checkpoint()
	a.report.Log = LogReport{Present: true, Records: l.Size(), Root: c.Root, Origin: c.Origin, Checkpoint: string(c.Signed), Consistent: true}
	if err := cmp.Or(a.doubtLog(ctx, l.Verify(ctx)), a.compareSince(ctx, l)); err != nil {
		return err
	}
	next, err := a.Workspace.LogNext(ctx)
	if err != nil {
		return a.doubtLog(ctx, err)
	}
	if next < l.Size() {
		a.finding(FoundLog, "", "state.db", "the log has %d records, and state.db knows of %d: it came from a backup, or was put back", l.Size(), next)
	}
	// The records count only after the whole log is verified: Records yields nothing of a broken one.
	for e, err := range l.Records(ctx, 0) {
		if err != nil {
			return a.doubtLog(ctx, err)
		}
		a.replay(e)
	}
	return a.readPending(ctx, l.Size())
}

// doubtLog notes what is wrong with the log. It returns an error only if the audit ends.
func (a *audit) doubtLog(ctx context.Context, err error) error {
	l := &a.report.Log
	var broken *auditlog.Broken
	switch {
	case err == nil, ctx.Err() != nil:
	case errors.As(err, &broken):
		l.Present, l.Consistent = true, false
		l.Broken = cmp.Or(l.Broken, &broken.Record)
		a.finding(FoundLog, "", "audit", "%v", broken)
	default:
		l.Consistent = false
		a.gap("", "audit", "the log could not be read: %v", err)
	}
	return ctx.Err()
}

// compareSince compares the log with a checkpoint that the auditor kept.
func (a *audit) compareSince(ctx context.Context, l *auditlog.Log) error {
	if a.Since == nil {
		return nil
	}
	earlier, err := l.Since(ctx, a.Since)
	s := &Since{Records: earlier.Size, Holds: err == nil}
	a.report.Log.Since = s
	var broken *auditlog.Broken
	switch {
	case err == nil, ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &broken):
		s.Broken, s.What = &broken.Record, broken.What
		a.finding(FoundLog, "", "--since", "the log does not go on from the checkpoint that was kept: %v", broken)
	default:
		s.What = err.Error()
		a.finding(FoundLog, "", "--since", "the checkpoint that was kept does not fit the log: %v", err)
	}
	return nil
}

// readPending replays the records that are stored and not published yet.
func (a *audit) readPending(ctx context.Context, size int64) error {
	pending, err := a.Workspace.Unpublished(ctx)
	if err != nil {
		a.gap("", "state.db", "the records that wait for the log could not be read: %v", err)
		return ctx.Err()
	}
	// A record is stored with what it records, and published later: a killed run leaves some.
	for _, e := range pending {
		if e.Seq >= size {
			a.report.Log.Pending++
			a.replay(e)
		}
	}
	a.compareLog()
	return a.compareCopies(ctx)
}

// replay applies one record to the evidence.
func (a *audit) replay(e auditlog.Event) {
	seq := e.Seq
	for _, p := range e.Posts {
		l := &a.post(p.ID).log
		switch e.Kind {
		case auditlog.Verdicts:
			switch {
			case !p.State.Gone():
				l.goneAt = time.Time{}
			case l.goneAt.IsZero():
				l.goneAt = e.Time
			}
			l.state, l.reason, l.at, l.record, l.withheld = p.State, p.Reason, e.Time, &seq, l.withheld && p.State.Gone()
		// Withheld and confirmed follow each other: the later record counts.
		case auditlog.Withheld:
			l.withheld = true
		case auditlog.Confirmed:
			l.withheld = false
		case auditlog.Buried:
			l.tombstone, l.tombstoneIn, l.withheld, l.lifted = true, seq, false, false
		case auditlog.Readmitted:
			l.tombstone = e.Verdict == "revoked"
			l.tombstoneIn = seq
		case auditlog.Lifted:
			// A statement that this release does not accept lifts nothing, whoever applied it.
			if _, _, err := state.CheckLift(a.Workspace, a.Release, e.SHA256, a.Now()); err == nil {
				l.tombstone, l.lifted = false, true
			}
		case auditlog.Fetch:
			a.gone.of(p.ID, string(p.ID)).digest(e.SHA256, e.Original, e.Pixels)
		}
	}
	switch e.Kind {
	case auditlog.Restored:
		a.restored(e)
	case auditlog.Copy:
		a.copies[e.Path] = e
	case auditlog.CopyPurged:
		if e.Verdict == "told" || e.Verdict == "unfinished" {
			delete(a.copies, e.Path)
		}
	case auditlog.Export, auditlog.Purge:
		// The last export of a file counts: records come in their order.
		for _, f := range e.Files {
			a.stored.logged[f.Name] = f.SHA256
		}
	}
}

// restored notes that a part of the workspace came from a backup.
func (a *audit) restored(e auditlog.Event) {
	missing := ""
	switch e.Verdict {
	case auditlog.RestoredLog:
		missing = fmt.Sprintf("audit/ was put back from a backup, or was gone: records %d to %d of the log as it was are lost, whatever they recorded", e.Seq, e.Size-1)
	case auditlog.RestoredOther:
		missing = fmt.Sprintf("audit/ was exchanged for that of another history: any of the %d records of the log as it was can be missing", e.Size)
	case auditlog.RestoredKey:
		missing = fmt.Sprintf("the key of the log was gone, and there is a new one: no checkpoint from before proves that records 0 to %d are those that there were", e.Seq-1)
	}
	// An operator could drop a record in this way: it is a gap until the auditor has a checkpoint from after it.
	if s := a.report.Log.Since; missing == "" || s != nil && s.Holds && s.Records > e.Seq {
		a.note("record %d: part of the workspace was put back from a backup (%s)", e.Seq, e.Verdict)
		return
	}
	a.gap("", "audit", "record %d, of %s: %s; find out why, keep a checkpoint (--checkpoint), and name it from then on (--since)", e.Seq, e.Time.Format(time.RFC3339), missing)
}

// compareCopies compares the registered copies of the state with those of the log.
func (a *audit) compareCopies(ctx context.Context) error {
	have, err := a.Workspace.Copies(ctx)
	if err != nil {
		return err
	}
	closed := map[string]bool{}
	// What state.db still knows is purged by the usual way, and only the rest has to be said.
	for _, c := range have {
		digest := state.SHA256([]byte(c.Path))
		closed[digest] = state.StateOfCopy(c) == state.CopyClosed
		if !closed[digest] {
			delete(a.copies, digest)
		}
	}
	// A copy that state.db lost, or has as closed while the log does not, still exists and no purge reaches it.
	for _, e := range slices.SortedFunc(maps.Values(a.copies), func(x, y auditlog.Event) int { return cmp.Compare(x.Seq, y.Seq) }) {
		what := "state.db no longer knows where it is"
		if closed[e.Path] {
			what = "state.db has it as closed, and no record says so"
		}
		where := "the copy " + e.Path
		what = fmt.Sprintf("a copy whose path has this sha256 was registered on %s (record %d of the log, with the digests of its files), and %s", e.Time.Format(time.RFC3339), e.Seq, what)
		a.gap("", where, "%s: its content could not be checked", what)
		a.obligation(where, nil, "%s: put back a newer state.db, or find it and purge it by hand", what)
	}
	return nil
}

// compareLog reports what the log records and the state lacks.
func (a *audit) compareLog() {
	for _, id := range a.order {
		e := a.posts[id]
		switch {
		// The log is signed and the state is not, so the log is believed.
		case e.log.tombstone && e.stone == nil:
			a.finding(FoundTombstone, string(id), "state.db", "record %d of the log is a tombstone of the post, no statement that this release accepts lifted it, and the workspace does not have it: "+
				"state.db is older than the log, or was changed", e.log.tombstoneIn)
		case e.log.tombstone && e.stone.Readmitted:
			a.finding(FoundTombstone, string(id), "state.db", "the workspace has the tombstone suspended, and the log does not say so (record %d)", e.log.tombstoneIn)
		}
		if e.entry && e.log.record != nil && e.log.state.Gone() && !e.workspace.State.Gone() && e.log.at.After(e.workspace.CheckedAt) {
			a.finding(FoundLog, string(id), "state.db", "record %d of the log says %s, and the workspace does not know: state.db is older than the log, or was changed",
				*e.log.record, withReason(string(e.log.state), e.log.reason))
		}
	}
}

// readWorkspace reads what the state knows of posts, images and texts.
func (a *audit) readWorkspace(ctx context.Context) error {
	ws := a.Workspace
	if ws == nil {
		return nil
	}
	a.report.Scope.Workspace = ws.Dir()
	b, bound, err := ws.Binding(ctx)
	switch {
	case err != nil:
		return err
	case !bound:
		a.gap("", "workspace", "it holds no release yet")
		return nil
	case b.Release != a.Release.Name && b.Release != state.RehearsalOf(a.Release.Name):
		return &workspace.OtherRelease{Have: b.Release, Want: a.Release.Name}
	case b.Release != a.Release.Name:
		a.note("the workspace is a rehearsal: its posts are made up")
		a.Access = nil
	}
	_, a.sealed, err = ws.ReadSeal(ctx)
	if err == nil && !a.sealed {
		a.gap("", state.SealFile, "the workspace is not sealed: a run is at work on it, the last one was killed, or somebody took the seal away; run, then audit again")
	}
	if b.ReleaseDigest != a.Release.Digest {
		a.note("the workspace was last run with another edition of the release: %s", b.ReleaseDigest)
	}
	for p, err := range ws.Posts(ctx) {
		if err != nil {
			return err
		}
		a.post(p.ID).workspace = p
	}
	stones, err := ws.Tombstones(ctx)
	if err != nil {
		return err
	}
	for i, t := range stones {
		a.post(t.ID).stone = &stones[i]
	}
	returned, err := state.Returned(ctx, ws, a.Release, a.Now())
	if err != nil {
		return err
	}
	for _, t := range returned {
		what := "is suspended: a moderator had removed the post, and it came back"
		if t.Lifted != nil {
			what = fmt.Sprintf("was lifted by a statement that %s wrote on %s: %s", t.Lifted.Signer, t.Lifted.Asserted.Format(time.DateOnly), t.Lifted.Why)
			if t.Lifted.Refused != "" {
				what = "was lifted by a statement that does not count, " + t.Lifted.Refused
			} else if e := a.posts[t.ID]; e != nil {
				e.lifted = t.Lifted.Asserted
			}
		}
		a.note("the tombstone of %s %s", t.ID, what)
	}
	// A release's tombstone that the workspace has not taken over counts, unless it was lifted after its time.
	for _, t := range a.Tombstones {
		if e := a.posts[t.ID]; e.stone == nil && e.workspace.State == manifest.StateLive && t.Time.After(e.lifted) {
			a.finding(FoundTombstone, string(t.ID), "state.db", "the release has a tombstone of the post, and the workspace holds it to be live: run again with this release")
		}
	}
	return a.readRecords(ctx)
}
