package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"rehydrate/dedupe"
	"rehydrate/internal/durable"
	"rehydrate/internal/page"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// evidence is what is known of one post, by source.
type evidence struct {
	AuditedPost
	entry  bool  // the release has it
	bare   []int // its images that the release has without a digest
	absent bool  // the last answer that the workspace has left it out, and no second one was asked for
	// its content is withheld until a mass removal is confirmed: no finding, but an open obligation
	waits     bool
	many      bool                 // likewise, for a confirmation: another answer that it is gone says nothing new
	digests   bool                 // some are known that recognise an image of it
	hashes    bool                 // likewise, a changed copy
	texts     bool                 // likewise, a text
	weak      bool                 // a text is known that recognises nothing
	stone     *workspace.Tombstone // the workspace's
	kept      *workspace.Tombstone // that only tombstones.csv of the workspace has
	published *manifest.Tombstone  // the release's
	asked     int64                // when the log has Reddit's last answer about it, in Unix seconds; 0 for never
	askedLive int64                // likewise, the last one that it is live
	heldState manifest.PostState   // by workspace and log, whatever this audit was answered
	// likewise, when the holder's jobs were answered about it last: of a live post, when they saw it live
	heldAsked *time.Time
	// this audit's answer, unavailable if the post was absent twice; without a state, why there is none
	live    *policy.Verdict
	liveAt  time.Time // when the look began that asked for it
	content *known    // of its entries
}

// past is what workspace and log say of a post beside its last state: nothing, of most.
type past struct {
	policy.Verdict           // the last of the log
	at             time.Time // of that
	since          time.Time // the workspace found it gone then, and withholds its removal
	goneAt         time.Time // of the first verdict that it is gone since one that it is not
	withheld       bool
	left           bool      // since the last verdict, its image was erased because the manifest lacked it
	imageHeld      time.Time // an image of it, which was live, was withheld then: the last such record
	stone          *int64    // the record of a tombstone that holds: nothing lifted or suspended it
	buried         time.Time // that of the last tombstone on record
	firstBuried    time.Time // that of the first one of those that hold: a second request moves it
	elsewhere      bool      // a statement for another edition of the release lifted it
}

// An edition is that of the release of which the last job of a log was, and the record since which it is.
type edition struct {
	manifest string // its digest
	since    int64
}

func (d *edition) note(e auditlog.Event) {
	if e.Manifest == "" || e.Manifest == d.manifest {
		return
	}
	if d.manifest != "" {
		d.since = e.Seq
	}
	d.manifest = e.Manifest
}

// decidePost fills in AuditedPost: it has the workspace's answer, and the latest gives the state, of the log or of this
// audit.
func (a *audit) decidePost(e *evidence, was past) {
	s, by := e.Standing, "as Reddit said last"
	// An edition that lacked the post made the workspace forget the answer, and not its tombstone. Nothing of it is held
	// back any more.
	forgot := e.Checked == nil && e.Record != nil && (*e.Record < a.edition.since || was.left || !e.entry)
	if was.State != "" && was.State != s.State && (e.Checked == nil || was.at.After(*e.Checked)) {
		knows := forgot || e.stone != nil && !e.stone.Readmitted
		if e.entry && was.State.Gone() && !s.State.Gone() && !knows {
			a.changed(string(e.ID), state.StateFile, doRun,
				"record %d of the log says %s, and the workspace does not know: state.db is older than the log, or was changed",
				*e.Record, withReason(was.State, was.Reason))
		}
		s.State, s.Reason, s.Because, s.Withheld, e.Checked = was.State, was.Reason, "log", was.withheld && !forgot,
			moment(was.at)
		by = "by the log"
	}
	heard := a.removals.Heard[e.ID]
	if heard.State.Gone() && !(e.waits && e.many) { // a job has held it back, whatever the log has kept
		s.State, s.Reason, s.Because, s.Withheld, e.Checked = heard.State, heard.Reason, "log", false, moment(heard.At)
		by, e.waits = anAuditHeard(heard.At), false
	}
	e.heldState = s.State
	if e.live != nil && e.live.State == "" {
		s.Unanswered = e.live.Reason
	} else if e.live != nil {
		s.State, s.Reason, s.Because, s.Withheld, e.Checked = e.live.State, e.live.Reason, "live",
			e.many && e.live.State.Gone(),
			moment(e.liveAt)
		by = redditSays
		if s.State == manifest.StateLive {
			e.LastLive, s.takenBack = e.Checked, heard.State.Gone()
		}
	}
	// A tombstone outweighs every answer. The release's comes first, as the operator cannot suspend it, unless one that
	// the workspace has says more.
	own := e.kept
	if e.stone != nil && !state.Suspended(*e.stone, a.Policy) {
		own = e.stone
	}
	s.MustGo = s.State.Gone() && !s.Withheld
	gone, reason := s.State, s.Reason
	switch {
	// One that a statement of its maintainers lifted holds no more: the signature was checked against their keys.
	case e.published != nil && !a.lifted[policy.NameTombstone(e.ID, e.published.Time)] &&
		(own == nil || !policy.Outweighs(own.State, own.Reason, e.published.State, "")):
		s.MustGo, s.Because, gone, reason, by = true, "release", e.published.State, "",
			"by the release's tombstone of "+dayOf(e.published.Time)
	case own != nil && own == e.stone:
		s.MustGo, s.Because, gone, reason, by = true, "tombstone", e.stone.State, e.stone.Reason,
			"by the workspace's tombstone of "+dayOf(e.stone.Time)
	case e.kept != nil:
		s.MustGo, s.Because, gone, reason, by = true, "tombstone", e.kept.State, e.kept.Reason,
			"by tombstones.csv of the workspace"
	case was.stone != nil && e.stone == nil:
		s.MustGo, s.Because, gone, reason, by = true, "log", "", "", "there is a tombstone of it in the log"
	case s.State == "":
		s.Because = ""
	}
	s.why = strings.TrimPrefix(withReason(gone, reason)+", "+by, ", ")
	if s.MustGo {
		s.goneAs, s.removal = gone, Removal{Why: whyGone(gone, reason), Since: a.knownSince(e, own, was, s.State)}
		if s.removal.Since != nil {
			s.removal.Due = moment(policy.GoneBy(*s.removal.Since, a.report.Time))
		}
	}
	e.waits = e.waits && s.Because != "release" && s.Because != "tombstone"
	s.Stale = !s.MustGo && (e.LastLive == nil || a.Policy.Stale(*e.LastLive, a.report.Time))
	e.Standing = s
}

// knownSince returns the earliest time at which a source knew a post as removed that must be gone; own is the tombstone
// of the workspace that holds, nil for none, and last the post's state by the last answer.
func (a *audit) knownSince(e *evidence, own *workspace.Tombstone, was past, last manifest.PostState) *time.Time {
	times := []time.Time{was.goneAt, was.since}
	if h := a.removals.Heard[e.ID]; h.State.Gone() {
		times = append(times, h.Since)
	}
	if own != nil {
		times = append(times, own.Time)
	}
	if t := e.published; t != nil && !a.lifted[policy.NameTombstone(e.ID, t.Time)] {
		times = append(times, t.Time)
	}
	if was.stone != nil {
		times = append(times, was.firstBuried)
	}
	if last.Gone() && e.Checked != nil {
		times = append(times, *e.Checked)
	}
	return moment(earliest(times...))
}

// earliest is the first of the times that are known, zero for none.
func earliest(times ...time.Time) (first time.Time) {
	for _, t := range times {
		if first.IsZero() || !t.IsZero() && t.Before(first) {
			first = t
		}
	}
	return first
}

// Who says of a post or an image that it is gone.
const redditSays = "as Reddit says now"

func anAuditHeard(at time.Time) string { return "as an audit of " + dayOf(at) + " heard" }

// told reports whether Reddit has ever said what became of the post: to be asked in an outage tells nothing, nor does
// one answer that lacked it.
func (e *evidence) told() bool {
	return e.State != "" && (e.State != manifest.StateUnknown || e.LastLive != nil)
}

// leftOut reports whether the last answer about a post that was live left it out: whether it is gone nobody knows.
func (e *evidence) leftOut() bool {
	answered := e.live != nil && e.live.State != ""
	return !answered && (e.absent || e.State == manifest.StateUnknown && e.told())
}

// moment returns a time as the report has it; nil for none.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func withReason(what manifest.PostState, reason manifest.Reason) string {
	return strings.TrimSuffix(string(what)+", "+string(reason), ", ")
}

// readWorkspace reads what the state knows of posts, images and texts.
func (a *audit) readWorkspace(ctx context.Context) (err error) {
	ws := a.Workspace
	if ws == nil {
		return nil
	}
	a.report.Scope.Workspace = ws.Dir()
	a.foreign, err = ws.ForeignSchema(ctx)
	for _, what := range a.foreign {
		a.changed("", state.StateFile, doExplain,
			"it has the %s, which rehydrate does not make: nothing accounts for what is in it", what)
	}
	b, bound, wrong := ws.Binding(ctx)
	switch {
	case err != nil || wrong != nil:
		return cmp.Or(err, wrong)
	case !bound:
		a.open("workspace", doRun, "it holds no release yet")
		return nil
	case b.Release == state.RehearsalOf(a.Release.Name):
		a.report.Scope.Rehearsal = true
		a.Access = nil
	case b.Release != a.Release.Name:
		return &workspace.OtherRelease{Have: b.Release, Want: a.Release.Name}
	}
	if err := a.readSeal(ctx); err != nil {
		return err
	}
	wrong = state.CheckWritten(ctx, ws)
	_, a.unwrote = errors.AsType[*state.Unwritten](wrong)
	if wrong != nil && !a.unwrote {
		return wrong
	}
	if b.ReleaseDigest != a.Release.Digest {
		a.note("the workspace was last run with another edition of the release: %s", b.ReleaseDigest)
	}
	noEntry := maps.Clone(a.posts) // of a later edition, which an older state.db does not have
	for p, err := range ws.Posts(ctx) {
		if err != nil {
			return err
		}
		a.readPost(p)
		delete(noEntry, p.ID)
	}
	others, err := ws.PostsOfNoEntry(ctx, slices.Collect(maps.Keys(noEntry))...)
	if err != nil {
		return err
	}
	for _, p := range others {
		a.readPost(p)
	}
	stones, err := ws.Tombstones(ctx)
	for i, t := range stones {
		a.post(t.ID).stone = &stones[i]
	}
	// One that is lost with what came from a backup still stands there.
	kept, trouble := state.KeptTombstones(ctx, ws)
	if trouble != nil {
		a.open(manifest.TombstonesName, "repair it, and audit again", "%v", trouble)
	}
	for i, t := range kept {
		a.post(t.ID).kept = &kept[i]
	}
	returned, wrong := state.Returned(ctx, ws, a.Release, a.Now())
	lifts, fault := state.Lifts(ctx, ws, a.Release, a.Now())
	if err := errors.Join(err, wrong, fault); err != nil {
		return err
	}
	a.lifted = lifts
	for _, t := range returned {
		what := "is suspended: a moderator had removed the post, and it came back"
		if l := t.Lifted; l != nil && l.Refused != "" {
			what = "was lifted by a statement that does not count, " + l.Refused
		} else if l != nil {
			what = "was lifted by"
			if !l.Held {
				what = "of " + t.Time.Format(time.RFC3339) + " was never in this workspace, and is named in"
			}
			what = fmt.Sprintf("%s a statement that %s wrote on %s: %s", what, l.Signer,
				l.Asserted.Format(time.DateOnly), l.Why)
		}
		a.note("the tombstone of %s %s", t.ID, what)
	}
	return a.readRecords(ctx)
}

// readPost reads what the workspace has of a post.
func (a *audit) readPost(p workspace.Post) {
	e := a.post(p.ID)
	e.absent = !p.AbsentAt.IsZero() && !p.State.Gone()
	e.Standing = Standing{State: p.State, Reason: p.Reason, Because: "workspace", Withheld: p.Withheld}
	e.LastLive, e.Checked, e.heldAsked = moment(p.LiveAt), moment(p.CheckedAt), moment(p.LiveAt)
	if p.Withheld || e.absent || p.State == manifest.StateHeld {
		e.heldAsked = moment(slices.MaxFunc([]time.Time{p.CheckedAt, p.AbsentAt}, time.Time.Compare))
	}
	if p.Withheld && p.State.Gone() {
		e.waits, e.many, a.past[p.ID] = true, p.Unconfirmed, past{since: cmp.Or(p.GoneAt, p.CheckedAt)}
	}
}

// readSeal holds the records of what was removed against the seal of the workspace's last writer.
func (a *audit) readSeal(ctx context.Context) error {
	seal, sealed, err := a.Workspace.ReadSeal(ctx)
	a.sealed = sealed
	switch {
	case err != nil:
		a.unread(state.SealFile, err)
		return nil
	case !sealed:
		a.open(state.SealFile, "rehydrate run or recheck, then audit again",
			"the workspace is not sealed: a run is at work on it, the last one was killed, or somebody took the seal away")
		return nil
	}
	for _, name := range []string{state.StateFile, manifest.TombstonesName} {
		is := func(f workspace.File) bool { return f.Name == name }
		now, err := a.Workspace.Stat(ctx, name)
		switch {
		case errors.Is(err, fs.ErrNotExist) && !slices.ContainsFunc(seal.Files, is):
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		case err != nil || !slices.Contains(seal.Files, now):
			a.changed("", name, "rehydrate verify says what to do",
				"it is not as its last writer left it on %s: it was changed, damaged or put back from a backup",
				dayOf(seal.Time))
		}
	}
	return nil
}

// readLog replays the log and compares it with its checkpoint, an earlier one and the workspace.
func (a *audit) readLog(ctx context.Context) error {
	if a.Workspace == nil {
		if a.Since != nil {
			a.open("--since", "name the workspace with -w",
				"there is no workspace, and so no log to compare the checkpoint with")
		}
		return nil
	}
	l, err := a.Workspace.LogReader(ctx)
	if errors.Is(err, auditlog.ErrNoLog) {
		if a.Since != nil {
			a.changed("", state.AuditDir, doExplain,
				"the log is missing: a checkpoint of it was kept, and the workspace has no log")
		} else if a.images > 0 {
			a.note("there is no audit log: its first run was killed")
		}
		return a.readPending(ctx, 0)
	}
	// The records count only after the whole log is verified.
	a.report.Log, err = auditlog.NewReport(ctx, l, err, a.Since)
	r := a.report.Log
	if s := r.Since; s != nil && !s.Holds {
		a.changed("", atSince, doExplain, "the log does not continue from the checkpoint that was kept: %s", s.What)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case r.Broken != nil:
		a.changed("", state.AuditDir, doExplain, "%v", err)
		return nil
	case err != nil:
		a.open(state.AuditDir, "make it readable, and audit again", "the log could not be read: %v", err)
		return nil
	}
	for e, err := range l.Records(ctx, 0) {
		if err != nil {
			return err
		}
		a.replay(e)
	}
	err = a.readPending(ctx, l.Size())
	a.forgetNobodys()
	return err
}

// readHeard adds what earlier audits heard of which the log has no record: it was damaged, or could not be written.
// What a job was answered since counts instead: an audit that lasts is recorded after that.
func (a *audit) readHeard(ctx context.Context) error {
	maps.DeleteFunc(a.removals.Heard, func(id manifest.PostID, h auditlog.HeardPost) bool {
		e := a.posts[id]
		// The record of an answer can be lost with a part of the log. checkedLater tells where it is not.
		return e != nil && (e.askedLive > h.At.Unix() || e.Checked != nil && e.Checked.After(h.At))
	})
	if a.Workspace == nil {
		return nil
	}
	heard, err := state.ReadNote[state.HeardNote](ctx, a.Workspace)
	for id, h := range heard {
		e := a.posts[id]
		asked := e != nil && e.Checked != nil && e.Checked.After(h.At) && !h.Later // by a job that did not live to settle it
		if !asked && h.At.After(a.removals.Heard[id].At) {
			a.removals.Heard[id] = h
		}
	}
	return err
}

// readPending replays the records that are stored and not published yet.
func (a *audit) readPending(ctx context.Context, size int64) error {
	pending, err := a.Workspace.Unpublished(ctx)
	next, wrong := a.Workspace.LogNext(ctx)
	if err := errors.Join(err, wrong); err != nil {
		a.open(state.StateFile, "rehydrate verify", "the records that wait for the log could not be read: %v", err)
		return ctx.Err()
	}
	if next < size {
		a.changed("", state.StateFile, doExplain,
			"the log has %d records, and state.db knows of %d: state.db came from a backup", size, next)
	}
	// A record is stored with what it records, and published later: a killed run leaves some.
	for _, e := range pending {
		if e.Seq >= size {
			a.report.Log.Pending++
			a.replay(e)
		}
	}
	return nil
}

// digestsOf are those of the image that a record is of.
func digestsOf(e auditlog.Event) []digest {
	return []digest{parseDigest(e.SHA256), parseDigest(e.Original), parseDigest(e.Pixels)}
}

// forgetNobodys takes out of the marks what hosts in trouble sent in place of everything: no post showed it.
func (a *audit) forgetNobodys() {
	if len(a.nobodys) > 0 {
		a.gone.marks = slices.DeleteFunc(a.gone.marks, func(m clue[digest]) bool { return a.nobodys[m] })
	}
}

// replay applies one record to the evidence.
func (a *audit) replay(e auditlog.Event) {
	a.removals.Add(e)
	seq := e.Seq
	for _, p := range e.Posts {
		post, was := a.post(p.ID), a.past[p.ID]
		switch e.Kind {
		case auditlog.Verdicts:
			post.Record, post.asked, was.left = &seq, e.Time.Unix(), false
			if p.State == manifest.StateLive {
				post.askedLive = post.asked
			}
			if !p.State.Gone() {
				was.goneAt, was.withheld = time.Time{}, false
			} else if was.goneAt.IsZero() || e.Time.Before(was.goneAt) {
				was.goneAt = e.Time
			}
			// A verdict that says no more than the workspace, as most do, takes no memory.
			if was != (past{}) || p.State != post.State {
				was.Verdict, was.at = policy.Verdict{State: p.State, Reason: p.Reason}, e.Time
			}
		// Withheld and confirmed follow each other: the later record counts.
		case auditlog.Withheld, auditlog.Confirmed:
			if policy.LeftPost(p.Reason) { // of an image: the post stays
				was.imageHeld = e.Time
			} else {
				was.withheld = e.Kind == auditlog.Withheld
			}
		case auditlog.Buried:
			if was.stone == nil {
				was.firstBuried = e.Since
			}
			was.stone, was.withheld, was.buried, was.elsewhere = &seq, false, e.Since, false
		case auditlog.Readmitted:
			was.stone = nil
			if e.Verdict == auditlog.Revoked {
				was.stone = &seq
			}
		case auditlog.Lifted:
			// A statement that this release does not accept lifts nothing, whoever applied it, nor a tombstone that it
			// does not name.
			l, _, err := state.CheckLift(a.Workspace, a.Release, e.SHA256, a.Now())
			fault, _ := errors.AsType[*policy.GrantFault](err)
			other := l.OfOtherEdition(fault, a.Release.Name)
			if (err == nil || other) && slices.Contains(l.Tombstones, policy.NameTombstone(p.ID, was.buried)) {
				was.stone, was.elsewhere = nil, other
			}
		case auditlog.Erased:
			was.left = was != past{} && e.Verdict == string(state.LeftManifest)
			if e.Verdict == auditlog.StandIn {
				for _, d := range digestsOf(e) {
					a.nobodys[clue[digest]{d, a.known(p.ID, manifest.Key{ID: p.ID, Image: e.Image}.String())}] = true
				}
			}
		case auditlog.Fetch:
			k := a.known(p.ID, manifest.Key{ID: p.ID, Image: e.Image}.String())
			for _, d := range digestsOf(e) { // it came again, and may stay
				delete(a.nobodys, clue[digest]{d, k})
			}
			a.gone.add(k, digestsOf(e)...)
		}
		if was != a.past[p.ID] {
			a.past[p.ID] = was
		}
	}
	switch e.Kind {
	case auditlog.Audit:
		a.audited = e
	case auditlog.Run, auditlog.Purge:
		a.audited = auditlog.Event{} // what it found may be gone
		a.edition.note(e)
		// One that was killed has no end.
		a.cutOff = a.cutOff || e.Phase == auditlog.Started && a.began || e.Phase == auditlog.Ended && e.Verdict != "done"
		a.began = e.Phase == auditlog.Started
	case auditlog.Restored:
		a.restored(e)
	}
	if opened, closed := e.OfCopy(); opened {
		a.copies[e.Path] = e
	} else if closed {
		delete(a.copies, e.Path)
	}
	if e.Kind == auditlog.Export {
		a.cutOff = false
	}
	if e.Kind == auditlog.Export || e.Kind == auditlog.Purge {
		// The last export of a file counts: records come in their order.
		for _, f := range e.Files {
			a.logged[f.Name] = f.SHA256
		}
	}
}

// checkedLater reports whether the workspace has an answer of Reddit about a post that is younger than any that the log
// can bear: an answer and its record are stored together.
func (a *audit) checkedLater(e *evidence) bool {
	const apart = time.Minute // of a clock that was put back in between
	after := func(t *time.Time, asked int64) bool {
		return t != nil && t.After(time.Unix(max(asked, a.lost), 0).Add(apart))
	}
	return after(e.Checked, e.asked) || after(e.LastLive, e.askedLive)
}

// tellLater notes the posts of which this is so.
func (a *audit) tellLater(later []string) {
	if len(later) > 0 && a.report.Log.Present && a.report.Log.Consistent {
		a.changed("", state.StateFile, "rehydrate recheck RELEASE: it asks Reddit again, and records the answers",
			"it has answers of Reddit about %s (%s) that are later than those in the log",
			page.Counted(len(later), "post"), some(later))
	}
}

// tellAudited notes that the last audit on record was a FAIL, which this one is not: of what it found, the log has only
// the posts that Reddit said were gone.
func (a *audit) tellAudited() {
	if last := a.audited; last.Verdict == auditVerdict(Fail) && a.report.Verdict != Fail {
		a.note("the last audit on record, of %s, was a FAIL, perhaps of other files; "+
			"no run, recheck or purge followed it (record %d of the log)", at(last.Time), last.Seq)
	}
}

// auditVerdict is a verdict as the log has it.
func auditVerdict(v Verdict) string { return strings.ReplaceAll(strings.ToLower(string(v)), " ", "_") }

// Records are those of an audit for the log: its verdict, the digest of its statement, and the posts and images of
// which Reddit's answers in it alone say that they are gone, so that the next audit knows them without asking; and
// before them the posts of which, or of whose images, an earlier audit said so, and which are live.
func (r Report) Records(digest string) (events []auditlog.Event) {
	type answer struct {
		image int
		at    time.Time
	}
	heard := map[answer][]auditlog.Post{}
	for _, p := range r.Posts {
		// What an earlier audit said of the images of such a post is taken back with it, so it is said again below.
		if p.MustGo && p.Because == "live" || p.takenBack {
			by := answer{0, *p.Checked}
			heard[by] = append(heard[by], auditlog.Post{ID: p.ID, State: p.State, Reason: auditlog.Word(p.Reason)})
		}
	}
	for _, p := range r.Posts {
		for _, img := range p.Images {
			if img.MustGo && (img.Because == "live" || img.Because == "log" && p.takenBack) {
				by := answer{img.number, *p.Checked}
				heard[by] = append(heard[by], auditlog.Post{ID: p.ID, State: p.State, Reason: auditlog.Word(img.Reason)})
			}
		}
	}
	e := auditlog.Event{Kind: auditlog.Audit, Verdict: auditVerdict(r.Verdict), SHA256: digest, CutOff: r.cutOff()}
	for _, by := range slices.SortedFunc(maps.Keys(heard), func(x, y answer) int {
		return cmp.Or(cmp.Compare(x.image, y.image), x.at.Compare(y.at))
	}) {
		for posts := range slices.Chunk(heard[by], auditlog.MaxPosts) {
			e.Image, e.Time, e.Posts = by.image, by.at, posts
			events = append(events, e)
		}
	}
	if len(events) == 0 {
		events = append(events, e)
	}
	return events
}

// cutOff reports whether Reddit could not be asked about every post: what it answered of the others is half a sweep.
func (r Report) cutOff() bool {
	return slices.ContainsFunc(r.Posts, func(p *AuditedPost) bool { return p.Unanswered == unreachable })
}

// restored notes that a part of the workspace came from a backup.
func (a *audit) restored(e auditlog.Event) {
	missing := map[string]string{
		auditlog.RestoredLog:     fmt.Sprintf("audit/ was missing or came from a backup: records %d to %d of the former log are lost", e.Seq, e.Size-1),
		auditlog.RestoredOther:   fmt.Sprintf("audit/ was exchanged for another log: any of the %d records of the former one can be missing", e.Size),
		auditlog.RestoredChanged: "state.db was not as its last writer left it, and not an older copy either: it was changed or damaged, and whatever it said then can be wrong",
		auditlog.RestoredKey:     fmt.Sprintf("the log has a new key, because the old one was gone: no earlier checkpoint proves that records 0 to %d are unchanged", e.Seq-1),
	}[e.Verdict]
	if missing != "" { // answers among them
		a.lost = e.Time.Unix()
	}
	// An operator could drop a record in this way: it is a gap until the auditor has a checkpoint from after it.
	if s := a.report.Log.Since; missing == "" || s != nil && s.Holds && s.Records > e.Seq {
		a.note("record %d: part of the workspace was put back from a backup (%s)", e.Seq, e.Verdict)
		return
	}
	a.open(state.AuditDir, "find out why; keep a checkpoint (--checkpoint), and name it from then on (--since)",
		"record %d, of %s: %s", e.Seq, e.Time.Format(time.RFC3339), missing)
}

// compareCopies compares the registered copies of the state with those of the log.
func (a *audit) compareCopies(have []workspace.Copy) {
	known := map[string]state.CopyState{}
	for _, c := range have {
		barred := map[manifest.PostID]bool{}
		for _, row := range c.Rows {
			if a.refused[row] && state.StateOfCopy(c) != state.CopyClosed {
				barred[dataset.PostOf(row)] = true
			}
		}
		a.rowsHeld.copies[c.Path] = barred
		known[state.SHA256([]byte(c.Path))] = state.StateOfCopy(c)
	}
	// A copy that state.db lost, or has as closed while the log does not, still exists and no purge reaches it.
	for path, e := range a.copies {
		what := "state.db no longer knows where it is"
		if known[path] == state.CopyClosed {
			what = "state.db has it as closed, and no record says so"
		} else if known[path] != "" {
			continue // it is purged in the usual way
		}
		was, todo := "a copy whose path has this sha256 was registered on %s (record %d of the log, with the digests of its files), and %s", "find it and purge it by hand"
		if e.Kind == auditlog.Disclosed {
			was, todo = "posts were sent to a third party on %s (record %d of the log; the sha256 is that of third-party:NAME), and %s", "have them deleted there"
		}
		a.open("the copy "+path, "put back a newer state.db, or "+todo, was, e.Time.Format(time.RFC3339), e.Seq, what)
	}
}

// compare reports a tombstone that the log or the release has of a post, and the workspace lacks.
func (a *audit) compare(e *evidence, was past) {
	id := string(e.ID)
	// The log is signed and the state is not, so the log is believed.
	stone := was.stone
	switch {
	case was.elsewhere && e.stone == nil && e.published == nil:
		a.open(state.AuditDir, "audit with the edition that the statement names, or have it written for this one",
			"the tombstone of %s was lifted by a statement for another edition of the release", id)
	case stone != nil && e.stone == nil:
		a.changed(id, state.StateFile, doRun,
			"the log has a tombstone of the post (record %d), this release accepts no statement that lifts it, and the "+
				"workspace does not have it: state.db is older than the log, or was changed", *stone)
	case stone != nil && e.stone.Readmitted:
		a.changed(id, state.StateFile, doExplain,
			"the workspace has the tombstone suspended, and the log does not say so (record %d)", *stone)
	}
	// A release's tombstone that the workspace has not taken over counts, unless it was lifted.
	if e.published != nil && e.stone == nil && e.State == manifest.StateLive &&
		!a.lifted[policy.NameTombstone(e.ID, e.published.Time)] {
		a.duty(Duty{Kind: DutyTakeOver, Where: state.StateFile, Posts: []string{id}, Late: true, Do: doRun,
			What: "the release has a tombstone of " + id + ", and the workspace still keeps the post"})
	}
}

// refusedBy reports whether the policy of the last run refuses the stored image of an entry.
func refusedBy(rec workspace.Record) bool {
	t := rec.Trouble // another image than the labelled one is nothing that a policy forbids
	return t != nil && t.Beside == workspace.Out && t.Outcome != manifest.Changed
}

// readRecords reads the records of every entry, and the files of the last export.
func (a *audit) readRecords(ctx context.Context) error {
	ws := a.Workspace
	heard, err := state.ReadNote[state.HeardNote](ctx, ws)
	if err != nil {
		return err
	}
	entries, unnamed := 0, 0
	for rec, err := range ws.Records(ctx, workspace.Select{WithEarlier: true}) {
		if err != nil {
			return err
		}
		e := a.posts[rec.ID]
		entries, unnamed = entries+1, unnamed+number(e == nil || !e.entry)
		if rec.Result != nil && rec.Result.Outcome == manifest.Kept {
			a.rows++
		}
		if img := rec.Image; img != nil && (refusedBy(rec) || !state.Admits(a.Policy, *img)) {
			a.refused[rec.Key.String()] = true
			if rec.Result != nil && rec.Result.Outcome == manifest.Kept {
				a.rowsHeld.barred[rec.ID] = true
			}
		}
		if t := rec.Trouble; t != nil && slices.Contains(policy.ImageRemovals(), t.Reason) &&
			(t.Removed() || t.Withheld()) {
			l := lostImage{reason: t.Reason, because: "workspace", since: t.At, waits: t.Withheld(),
				many: t.Beside == workspace.Unconfirmed}
			if h := heard[rec.ID]; l.waits && !l.many && !h.Images[rec.Key.Image].Since.IsZero() {
				l.heard = h.At
			}
			a.goneImages[rec.Key] = l
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
			a.gone.add(k, k.image, parseDigest(img.OriginalSHA256), parseDigest(img.PixelsSHA256))
			if !img.Flat && img.HashKind == dedupe.HashKind() {
				k.hash(img.PHash)
			}
		}
		if r := rec.Reading; r != nil {
			k.read = k.read || r.Text != "" || r.Failed == nil
			a.gone.read = append(a.gone.read, clue[string]{r.Text, k})
		}
	}
	if unnamed > 0 {
		a.note("the release that you named lacks %d of the %d entries of the workspace", unnamed, entries)
	}
	// The workspace keeps what recognises an image and leads to no content.
	former, err := ws.FormerImages(ctx, nil)
	for _, f := range former {
		k := a.known(f.ID, f.Key.String())
		a.lastShown[k.name] = []digest{parseDigest(f.File), parseDigest(f.Stripped), parseDigest(f.Pixels)}
		a.gone.add(k, a.lastShown[k.name]...)
		if !f.Erased {
			continue
		}
		a.erased = append(a.erased, f)
		// Whether it is that of a post that was taken down is judged anew, by its digests: findSame.
		if a.goneImages[f.Key].reason == policy.SameAsRemoved {
			delete(a.goneImages, f.Key)
		}
	}
	last, wrong := state.ReadNote[state.ExportNote](ctx, ws)
	if wrong != nil {
		a.open(state.StateFile, "rehydrate verify", "the note of the last export cannot be read: %v", wrong)
	}
	for _, f := range last.Files {
		a.exported[f.Name] = f.SHA256
	}
	a.next = last.Next
	if len(a.next) > 0 {
		a.note("files of the dataset were being replaced when the last command was cut off: the next rehydrate recheck " +
			"puts on record what is there")
	}
	return cmp.Or(err, ctx.Err())
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

func (a *audit) checkOutcomes(s *source, r io.Reader) {
	for res, err := range manifest.ReadOutcomes(r) {
		if err != nil {
			a.unread(s.where, err)
			return
		}
		if e := a.posts[res.ID]; e != nil && e.MustGo && holds(res) {
			a.finding(FoundRow, res.Key.String(), spot{s.where, doPurge}, "its id, which it says is %s", res.Outcome)
		}
	}
}

// accountFor compares a file with the records of it, and reports whether they say all there is to say.
func (w walker) accountFor(s *source, kind string, all *io.SectionReader) (done bool) {
	sum, noted, logged := s.file.SHA256.String(), w.exported[s.name], w.logged[s.name]
	if s.next == sum { // a removal that was cut off had written it
		noted, logged = sum, sum
		if s.recorded != "" {
			s.recorded = sum
		}
	}
	switch {
	// The release names every post by right, wherever it lies.
	case w.Release.HasFile(sum):
		return true
	case s.recorded != "" && s.recorded != sum:
		w.changedCopy(s.where, "somebody changed it since it was exported")
	case s.name == manifest.OutcomesName:
		w.checkOutcomes(s, io.NewSectionReader(all, 0, s.size))
	case s.name == "" || w.inMaking(s):
		s.list = w.isOwnList(place{src: s}, all, s.name != "")
	case s.name == state.StateFile:
	case kind == isDatabase:
		w.changed("", s.where, doAway,
			"a database in the workspace that no record accounts for")
	case kind != isParquet && noted == "":
	case noted == "" && logged == "":
		w.stray("", s.name, doAway,
			"a Parquet in the workspace that no record accounts for")
	case cmp.Or(noted, sum) != sum || cmp.Or(logged, sum) != sum:
		w.stray("", s.name, doRun,
			"it is not the file that was exported last under this name, as state.db and the log have it")
	case logged == "" && w.report.Log.Present && w.report.Log.Consistent:
		w.stray("", s.name, doRun, "no record of the log names its export")
	}
	// A copy that is as it was made holds only texts that this workspace knows.
	s.ours = s.ours || s.recorded != "" && s.recorded == sum
	return false
}

// inMaking reports whether a file of the workspace is one that a writer has not finished. Where the last one ended well
// there is none, and what has the name of one is somebody's.
func (a *audit) inMaking(s *source) bool {
	return !a.sealed && s.name != "" && durable.IsTemp(path.Base(s.name))
}

// changedCopy notes a file of a registered copy that is not as its record has it.
func (a *audit) changedCopy(where, what string) {
	a.open(where, "ask its holder, or make a new copy with rehydrate export", "a file of a registered copy: %s", what)
}

// stray notes a file of the workspace that is not the one on record, or has no record.
func (a *audit) stray(id, where, do, what string) {
	if a.sealed && a.cutOff && a.unwrote && strings.HasPrefix(where, state.DatasetDir+"/") {
		a.open(where, "rehydrate run, then audit again", "%s; a run that did not end well may have written it", what)
		return
	}
	if a.sealed {
		a.changed(id, where, do, "%s", what)
		return
	}
	// The records may be older than the file.
	a.open(where, "rehydrate run or recheck, then audit again", "%s; or a run is writing it, or was killed", what)
}
