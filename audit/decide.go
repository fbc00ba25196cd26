package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"rehydrate/internal/page"
	"rehydrate/internal/printable"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/policy"
)

// A sight is one thing of a removed post that was seen, or one that is not as recorded. Those of one post at one place
// make a finding.
type sight struct {
	spot
	id, what string
	kind     FindingKind
}

// A spot is a place as people find it again, and what to do about what was found there.
type spot struct{ where, do string }

const (
	doPurge   = "rehydrate purge RELEASE"
	doRun     = "rehydrate run RELEASE"
	doFetch   = "delete the file, then " + doRun // no run reads a stored image that has its length
	doLoose   = doRun + ": it takes the file back if the log says that it was fetched, and removes it if not"
	doExplain = "ask the holder of the workspace to explain it"
	doAway    = "delete it; if you must keep it, name its new place in the next audit"
	doClose   = "rehydrate export --destroyed PATH --note WHO" // PATH is where the copy is
	doPublish = "ask the maintainers to publish digests (rehydrate publish --digests)"
)

// onlyPart is for tables that have several posts in a row.
const onlyPart = "; if other posts are in it, too, delete only what is of this post"

// inDataset is a file where a dataset has its rows: the folder above may be a copy that nobody registered.
var inDataset = regexp.MustCompile(`(^|/)data/[^/]+-\d{5}-of-\d{5}\.parquet$`)

// spot names the row of a table, or the part of a file, in which a place lies.
func (p place) spot() spot {
	table, where := p.table, p.path+p.part
	if table != nil {
		where = table.at(p.row, nil).String()
	}
	switch {
	case p.src.known, p.src.again, p.src.recorded != "" && p.src.recorded == p.src.file.SHA256.String():
		return spot{where, doPurge}
	case p.src.recorded != "":
		return spot{where, "delete the copy, and make a new one: no purge changes a file that somebody changed"}
	case p.src.name != "":
		return spot{where, doAway}
	case p.src.copied:
		return spot{where, "delete the file: no export wrote it, so no purge changes it"}
	case table != nil && strings.HasSuffix(p.src.where, ".ipynb"):
		return spot{where, "delete the cell's output, or what is of this post in the cell"}
	case table != nil && p.row < 0:
		return spot{where, "delete the file, or write it again without the values that no row has: in pandas " +
			"cat.remove_unused_categories(), in R droplevels()"}
	case table != nil && table.parquet && inDataset.MatchString(filepath.ToSlash(p.path)):
		return spot{where, "delete the file; or, where DIR is a whole copy of the dataset, register it and have it purged: " +
			"rehydrate export --adopt DIR --note WHO, then " + doPurge}
	case table != nil && table.parquet:
		return spot{where, "delete the file, or write it again without this row (the first is row 1); if other posts are " +
			"in the row, too, without what is of this post"}
	case table != nil && table.json:
		return spot{where, "delete what is of this post there, and nothing else: other posts can be in the same row"}
	case table != nil && table.database && table.label:
		return spot{where, "give the table or column another name"}
	case table != nil && table.database:
		return spot{where, "delete the row (rows are counted as SELECT * lists them, not by rowid)" + onlyPart}
	case table != nil:
		return spot{where, "delete the row" + onlyPart}
	case where != p.src.where && isImageName.MatchString(path.Ext(where)):
		return spot{where, "delete the picture in it"}
	case where != p.src.where:
		return spot{where, "take it out of the file"}
	case isImageName.MatchString(path.Ext(where)):
		return spot{where, "delete the file"}
	}
	return spot{where, "remove it there"}
}

// atReddit is where something is open that Reddit was not asked, or did not answer.
const atReddit = "Reddit's answers"

// atSince is where a finding lies that is of the checkpoint which was kept, and of no file here.
const atSince = "--since"

// finding notes a thing of a removed post.
func (a *audit) finding(kind FindingKind, id string, at spot, format string, args ...any) {
	// Names of files are anyone's words.
	at.where = printable.Line(at.where)
	add(a, &a.found, sight{at, id, printable.Line(fmt.Sprintf(format, args...)), kind})
}

// changed notes that the record was changed, or a file that is not on record.
func (a *audit) changed(id, where, do, format string, args ...any) {
	a.finding(FoundRecord, id, spot{where, do}, format, args...)
}

// open notes something that could not be asked, read or told.
func (a *audit) open(where, do, format string, args ...any) {
	a.openOf("", where, do, format, args...)
}

// openOf is open for a thing that may be of an entry. The rows of one table of which the same is to be said count as
// one.
func (a *audit) openOf(id, where, do, format string, args ...any) {
	table, _, _ := strings.Cut(where, rowMark)
	a.tallyOpen(Open{id, table, fmt.Sprintf(format, args...), do}, where, 1)
}

// openOnce is open for what is said once of a file, with the first place in it.
func (a *audit) openOnce(file, where, do, what string) {
	a.tallyOpen(Open{"", file, what, do}, where, 0)
}

// tallyOpen notes a place of those of which the same is open, and adds to how many they are.
func (a *audit) tallyOpen(alike Open, where string, n int) {
	alike.Where, alike.What, where = printable.Line(alike.Where), printable.Line(alike.What),
		printable.Line(where)
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.opens[alike]
	if t == nil {
		t = &tally{first: where}
		a.opens[alike] = t
	}
	t.n += n
	if len(where) < len(t.first) || len(where) == len(t.first) && where < t.first { // rows are looked at in any order
		t.first = where
	}
}

// A tally counts the rows of a table of which the same is to be said.
type tally struct {
	n     int
	first string
}

// tellOpen lists what is open.
func (a *audit) tellOpen() {
	r := &a.report
	for o, t := range a.opens {
		o.Where = t.first
		if t.n > 1 && strings.Contains(t.first, rowMark) {
			o.What += fmt.Sprintf(" (in %d places)", t.n)
		}
		r.Open = append(r.Open, o)
	}
	sortOpen(r.Open)
}

func sortOpen(open []Open) {
	slices.SortFunc(open, func(x, y Open) int {
		return cmp.Or(cmp.Compare(x.Where, y.Where), cmp.Compare(x.ID, y.ID), cmp.Compare(x.What, y.What))
	})
}

func (a *audit) unread(where string, err error) { a.open(unreadable(where, err)) }

// unreadable says of what could not be read why, and what to do.
func unreadable(where string, err error) (at, do, format string, why error) {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err // the path stands before it
	}
	if unlike, ok := errors.AsType[*unreadFormat](err); ok {
		return where, unlike.do, "%v", err
	}
	return where, "make it readable, or look at it by hand", "it could not be read: %v", err
}

// An unreadFormat is bytes of a kind that is not read here, or not as a whole.
type unreadFormat struct{ what, do string }

func (e *unreadFormat) Error() string { return e.what }

func (a *audit) duty(d Duty) {
	d.Where, d.What = printable.Line(d.Where), printable.Line(d.What)
	add(a, &a.report.Duties, d)
}

// rowsHeld counts the rows and the stored images of posts that may stay, in the workspace and the registered copies.
type rowsHeld struct {
	oldest time.Time // when the holder asked about the post that was not asked about for the longest time
	never  bool      // one never was, or in the future
	stale  map[manifest.PostID]bool
	held   map[manifest.PostID]bool
	heard  map[manifest.PostID]bool            // the policy holds it by what Reddit answered this audit alone
	barred map[manifest.PostID]bool            // the policy refuses the image, or may, and the dataset has the row
	copies map[string]map[manifest.PostID]bool // likewise in copies, by their paths
}

// holdsRow notes a row of a post in the dataset or a registered copy. A copy may have that of a post that is withheld
// until this is confirmed, the dataset not.
func (a *audit) holdsRow(e *evidence, copied bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := &a.rowsHeld
	switch {
	case e.MustGo:
		return
	case e.Withheld && copied:
	case e.Withheld, e.State == manifest.StateHeld && e.heldState == e.State:
		r.held[e.ID] = true
		return
	case e.State == manifest.StateHeld:
		r.heard[e.ID] = true
	}
	a.holds(e)
}

// holds notes that there is a row or an image of a post that may stay: the holder has to ask about it.
func (a *audit) holds(e *evidence) {
	r := &a.rowsHeld
	switch {
	case e.heldState == "": // one of another release, or of which nothing is known
	case e.heldAsked == nil:
		r.never, r.stale[e.ID] = true, true
	default:
		// An audit takes no row out, so that its asking is not the holder's: the next audit counts from the same time.
		stale := a.Policy.Stale(*e.heldAsked, a.report.Time)
		if stale {
			r.stale[e.ID] = true
		}
		if policy.Ahead(*e.heldAsked, a.report.Time) {
			r.never = true
		} else if r.oldest.IsZero() || e.heldAsked.Before(r.oldest) {
			r.oldest = *e.heldAsked
		}
	}
}

// idsOf returns posts in the order of their ids.
func idsOf(posts map[manifest.PostID]bool) (ids []string) {
	for id := range posts {
		ids = append(ids, string(id))
	}
	slices.Sort(ids)
	return ids
}

// some names the first of many.
func some(ids []string) string {
	const most = 3
	if len(ids) > most {
		return strings.Join(ids[:most], ", ") + ", ..."
	}
	return strings.Join(ids, ", ")
}

// tellRows says what is due of the rows and images that are held.
func (a *audit) tellRows() {
	r := &a.rowsHeld
	for _, k := range a.gone.all { // images alone are enough, as before the first export
		if e := a.posts[k.ID]; k.format != "" && !e.MustGo && !k.MustGo {
			a.holds(e)
		}
	}
	if ids := idsOf(r.heard); len(ids) > 0 {
		a.duty(Duty{Kind: DutyHeld, Where: state.DatasetDir, Do: "rehydrate recheck RELEASE", Posts: ids,
			What: fmt.Sprintf("the dataset or a copy has rows of %s (%s) that the policy does not allow since what Reddit "+
				"says now: a recheck takes them out", page.Counted(len(ids), "post"), some(ids))})
	}
	if ids := idsOf(r.held); len(ids) > 0 {
		a.duty(Duty{Kind: DutyHeld, Where: state.DatasetDir, Do: "rehydrate recheck RELEASE --confirm-removals",
			Posts: ids, Late: true,
			What: fmt.Sprintf("the dataset or a copy has rows of %s (%s) that the policy does not allow, or that are held "+
				"back", page.Counted(len(ids), "post"), some(ids))})
	}
	goes := func(id manifest.PostID, _ bool) bool { return a.posts[id].MustGo }
	maps.DeleteFunc(r.barred, goes)
	if ids := idsOf(r.barred); len(ids) > 0 {
		a.duty(Duty{Kind: DutyHeld, Where: state.DatasetDir, Do: doRun, Posts: ids, Late: true,
			What: fmt.Sprintf("the dataset has rows of %s (%s) whose images this policy does not allow, or was not applied "+
				"to yet", page.Counted(len(ids), "post"), some(ids))})
	}
	for path, barred := range r.copies { // no job takes these out: a mistake in a policy would empty all copies
		maps.DeleteFunc(barred, goes)
		if ids := idsOf(barred); len(ids) > 0 {
			a.duty(Duty{Kind: DutyHeld, Where: path, Posts: ids, Late: true,
				Do: "make a new copy with rehydrate export and delete this one, then say so: " + doClose,
				What: fmt.Sprintf("the copy %s has rows of %s (%s) whose images this policy does not allow, or was not "+
					"applied to yet", path, page.Counted(len(ids), "post"), some(ids))})
		}
	}
	due := r.oldest.Add(a.Policy.Reddit.RecheckWithin).UTC()
	d := Duty{Kind: DutyRecheck, Where: "reddit", Do: "rehydrate recheck RELEASE", Posts: idsOf(r.stale),
		Late: len(r.stale) > 0}
	if !r.oldest.IsZero() {
		d.Due = &due
	}
	switch {
	case d.Late && r.never:
		d.What = fmt.Sprintf("by state.db Reddit never showed %s of the workspace or a copy as live (%s), or %s, "+
			"or state.db was changed", page.Counted(len(d.Posts), "post"), some(d.Posts), inFuture)
	case d.Late:
		d.What = fmt.Sprintf("the holder last asked Reddit on %s about %s in the workspace or a copy, and the policy wants "+
			"it every %s",
			at(r.oldest), page.Counted(len(d.Posts), "post"), lasts(a.Policy.Reddit.RecheckWithin))
	case d.Due != nil:
		d.What = "Reddit has to be asked again"
	default:
		return
	}
	a.duty(d)
}

// tellOldAnswers says of posts in files that Reddit was not asked about them for too long, where no row that is held
// says so: an entry that the last run's edition of the release lacked is not asked about by a recheck.
func (a *audit) tellOldAnswers() {
	old, since := map[manifest.PostID]bool{}, time.Time{}
	for e, found := range a.named {
		switch {
		case !found, !e.entry, e.MustGo, e.live != nil, e.Checked == nil, a.rowsHeld.stale[e.ID],
			!a.Policy.Stale(*e.Checked, a.report.Time):
			continue
		case since.IsZero() || e.Checked.Before(since):
			since = *e.Checked
		}
		old[e.ID] = true
	}
	if ids := idsOf(old); len(ids) > 0 {
		a.duty(Duty{Kind: DutyRecheck, Where: atReddit, Do: "audit without --offline, or " + doRun, Posts: ids, Late: true,
			What: fmt.Sprintf("Reddit was last asked on %s about %s in these files (%s), and the policy wants it every %s",
				at(since), page.Counted(len(ids), "post"), some(ids), lasts(a.Policy.Reddit.RecheckWithin))})
	}
}

// decide decides about each post from all evidence on it: a removal reported by any source counts.
func (a *audit) decide(ctx context.Context) error {
	r := &a.report
	// The order of the release, so that two reports can be compared line by line.
	r.Posts = slices.Grow(r.Posts, len(a.order))
	unanswered := map[manifest.Reason][]string{}
	var unasked, leftOut, later []string
	for _, e := range a.order {
		was := a.past[e.ID]
		a.compare(e, was)
		if a.checkedLater(e) {
			later = append(later, string(e.ID))
		}
		// What is withheld stays in the workspace on purpose, so it is a duty and not content that must be gone.
		shown := e.live != nil && e.live.State == manifest.StateLive
		a.decidePost(e, was)
		switch { // it waits no longer where a tombstone says that it must go
		case e.waits && shown:
			a.back = append(a.back, string(e.ID))
		case e.waits:
			a.noteWithheld(string(e.ID), was.since, was.goneAt)
		}
		e.unnamed = !e.entry
		r.Posts = append(r.Posts, &e.AuditedPost)
		r.Totals[cmp.Or(string(e.State), "never_asked")]++
		if e.MustGo {
			r.Known.MustGo++
			r.Known.States[cmp.Or(string(e.goneAs), "removed")]++
		}
		if e.live != nil {
			r.Coverage.Asked++
			r.Coverage.Answered++
		}
		if e.told() || e.MustGo {
			r.Coverage.Judged++
		}
		// Of a removed post nobody asks again.
		if !e.MustGo && e.Checked != nil && (r.Coverage.Oldest == nil || e.Checked.Before(*r.Coverage.Oldest)) {
			r.Coverage.Oldest, r.Coverage.OldestID = e.Checked, string(e.ID)
		}
		switch {
		case e.Unanswered != "":
			r.Coverage.Answered--
			unanswered[e.Unanswered] = append(unanswered[e.Unanswered], string(e.ID))
		case !e.told() && !e.MustGo && e.entry:
			unasked = append(unasked, string(e.ID))
		case e.leftOut() && !e.MustGo && e.entry:
			leftOut = append(leftOut, string(e.ID))
		}
	}
	a.tellUnasked(unanswered, unasked, leftOut)
	a.tellLater(later)
	if err := a.findRemoved(ctx); err != nil {
		return err
	}
	if n := len(a.lostImages()); n > 0 {
		r.Known.MustGo += n
		r.Known.States[imageAlone] += n
	}
	for _, k := range a.gone.all {
		if k.format != "" && k.MustGo && !k.waits {
			a.finding(FoundImage, k.name, spot{state.StateFile, doPurge},
				"the description of its image, with its hashes")
		}
		if k.read && k.MustGo && !k.waits {
			a.finding(FoundText, k.name, spot{state.StateFile, doPurge}, "the text read off its image")
		}
	}
	return nil
}

// tellUnasked says of the posts about which nothing is known, or nothing of now: what is one fact of the release is
// said once.
func (a *audit) tellUnasked(unanswered map[manifest.Reason][]string, unasked, leftOut []string) {
	for reason, ids := range unanswered {
		a.open(atReddit, "audit again", "Reddit gave no answer about %s (%s): %s", page.Counted(len(ids), "post"), reason,
			some(ids))
	}
	if n := len(leftOut); n > 0 {
		a.open("workspace", "rehydrate recheck RELEASE",
			"Reddit's last answer left out %s, and none since said what became of %s: %s", page.Counted(n, "post"),
			map[bool]string{true: "it", false: "them"}[n == 1], some(leftOut))
	}
	n := len(unasked)
	switch {
	case a.report.Coverage.Judged == 0 && len(unanswered) == 0:
		a.open(atReddit, "audit without --offline, or name the workspace with -w",
			"nothing is known of any post: nobody asked Reddit, or it did not answer, and no tombstone is published")
	case n > 0 && a.Workspace != nil:
		a.open("workspace", doRun, "Reddit never said what became of %s: %s", page.Counted(n, "post"), some(unasked))
	}
}

// noteWithheld notes content, of a post or of an entry, that waits for a confirmation since one of these times: the
// clock of the state is the operator's, so an earlier time in the log counts.
func (a *audit) noteWithheld(id string, since ...time.Time) {
	first := earliest(since...).UTC()
	if policy.Ahead(first, a.report.Time) {
		a.ahead = append(a.ahead, id)
		return
	}
	a.waiting = append(a.waiting, id)
	a.waitingSince = append(a.waitingSince, first)
}

// tellWithheld says of posts that wait for a confirmation. One command decides about them all, so they are one duty: it
// is due, and late, with the first of them.
func (a *audit) tellWithheld() {
	it := func(n int) string { return map[bool]string{true: "it", false: "them"}[n == 1] }
	if n := countPosts(a.waiting); n > 0 {
		slices.Sort(a.waiting)
		first, last := slices.MinFunc(a.waitingSince, time.Time.Compare), slices.MaxFunc(a.waitingSince, time.Time.Compare)
		due, since := first.Add(policy.DeleteWithin), "gone since "+at(first)
		if at(first) != at(last) {
			since = "the first gone since " + at(first)
		}
		a.duty(Duty{Kind: DutyConfirm, Where: state.StateFile, Posts: a.waiting, Due: &due,
			Late: a.report.Time.After(due), Do: "rehydrate run RELEASE --confirm-removals",
			What: fmt.Sprintf("%s held back (%s), %s; the holder decides about %s", are(n, "post"), some(a.waiting),
				since, it(n))})
	}
	if n := countPosts(a.ahead); n > 0 {
		slices.Sort(a.ahead)
		a.duty(Duty{Kind: DutyConfirm, Where: state.StateFile, Posts: a.ahead, Late: true,
			Do: "rehydrate recheck RELEASE", // which dates what is gone still
			What: fmt.Sprintf("%s held back (%s), by state.db since a time %s, or state.db was changed", are(n, "post"),
				some(a.ahead), inFuture)})
	}
	if n := countPosts(a.back); n > 0 {
		slices.Sort(a.back)
		a.duty(Duty{Kind: DutyRecheck, Where: state.StateFile, Do: "rehydrate recheck RELEASE", Posts: a.back,
			What: fmt.Sprintf("%s held back (%s), and Reddit shows %s again: a recheck takes that over",
				are(n, "post"), some(a.back), it(n))})
	}
}

// tellGrant says of images that are held without a grant.
func (a *audit) tellGrant() {
	f := a.Access
	switch {
	case f == nil || a.images+a.rows == 0:
	case f.Reason == "no_grant",
		f.Reason == "no_signer": // an auditor need not hold the holder's grant, which may be good
		a.open("grant", "name the holder's grant with --grant",
			"the policy wants a grant, and %d images and %d rows are kept", a.images, a.rows)
	default:
		a.duty(Duty{Kind: DutyGrant, Where: "grant", Late: true,
			Do: "renew it with the maintainers, or end it: rehydrate purge --all",
			What: fmt.Sprintf("the grant is not good (%s), and %d images and %d rows are still here: %s", f.Reason,
				a.images, a.rows, f.Detail)})
	}
}

// conclude sorts the report and gives the verdict.
func (a *audit) conclude() {
	r := &a.report
	if a.Missing != "" {
		a.open("workspace", "make it readable, and audit again", "%s", a.Missing)
	}
	a.tellGrant()
	a.tellWithheld()
	a.tellRows()
	a.tellOldAnswers()
	r.Findings = findingsOf(a.found)
	for i, f := range r.Findings {
		e := a.evidenceOn(f.ID)
		if former := a.former[f.ID]; former != nil && !e.MustGo {
			e = former
		}
		if f.Kinds[0] != FoundRecord && e != nil {
			r.Findings[i].Removal, r.Findings[i].By = e.removal, e.why
		}
	}
	r.Limits = append(r.limits(), a.elsewhere...)
	a.tellOpen()
	slices.SortFunc(r.Duties, func(x, y Duty) int {
		return cmp.Or(-cmp.Compare(number(x.Late), number(y.Late)), cmp.Compare(x.Kind, y.Kind),
			cmp.Compare(x.Where, y.Where), cmp.Compare(x.What, y.What))
	})
	// those that were gone by then
	r.Scope.Files = slices.DeleteFunc(r.Scope.Files, func(f *AuditedFile) bool { return f.SHA256 == (SHA256{}) })
	r.Scope.LookedAt, r.Scope.Named = int(a.lookedAt.Load()), len(a.Files)
	for _, f := range r.Scope.Files {
		r.Scope.Looked[f.in].Files++
	}
	r.Verdict = verdictOf(r.Findings, r.Open, r.Duties)
	a.tellAudited()
	for _, e := range a.order {
		if _, stands := a.named[e]; r.Scope.IsList && e.entry && stands {
			r.Scope.Listed = append(r.Scope.Listed, string(e.ID))
		}
	}
	r.Says = r.Headline()
}

// verdictOf says what the lists of a report come to.
func verdictOf(findings []Finding, open []Open, duties []Duty) Verdict {
	switch {
	case len(findings) > 0:
		return Fail
	case len(open) > 0:
		return Undecided
	case slices.ContainsFunc(duties, func(d Duty) bool { return d.Late }):
		return Overdue
	}
	return Pass
}

// findingsOf makes one finding of all that was seen of a post at a place, and one of what is not as recorded there.
func findingsOf(seen []sight) []Finding {
	type key struct {
		id, where string
		record    bool
	}
	byPlace := map[key]*Finding{}
	slices.SortFunc(seen, func(x, y sight) int {
		return cmp.Or(cmp.Compare(x.where, y.where), cmp.Compare(x.id, y.id),
			cmp.Compare(slices.Index(findingKinds, x.kind), slices.Index(findingKinds, y.kind)),
			cmp.Compare(x.what, y.what))
	})
	// What is said of a row need not be said of its file again.
	closer := map[key]bool{}
	for _, s := range seen {
		for at := strings.LastIndex(s.where, " > "); at > 0 &&
			s.kind != FoundRecord; at = strings.LastIndex(s.where[:at], " > ") {
			closer[key{id: s.id, where: s.where[:at]}] = true
		}
	}
	findings := []Finding{}
	for _, s := range seen {
		k := key{s.id, s.where, s.kind == FoundRecord}
		if closer[k] {
			continue
		}
		f := byPlace[k]
		if f == nil {
			f = &Finding{ID: s.id, Where: s.where, Do: s.do}
			byPlace[k] = f
		}
		if !slices.Contains(f.Kinds, s.kind) {
			f.Kinds = append(f.Kinds, s.kind)
		}
		if !slices.Contains(f.What, s.what) {
			f.What = append(f.What, s.what)
		}
	}
	for _, f := range byPlace {
		findings = append(findings, *f)
	}
	slices.SortFunc(findings, func(x, y Finding) int {
		grave := func(f Finding) int { return slices.Index(findingKinds, f.Kinds[0]) }
		return cmp.Or(cmp.Compare(grave(x), grave(y)), cmp.Compare(x.Where, y.Where), cmp.Compare(x.ID, y.ID))
	})
	return findings
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}
