// Package audit looks for deleted posts in a workspace, its registered copies and any files that an auditor names. It
// never writes.
package audit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rehydrate/internal/polite"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/reddit/sweep"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A Verdict is what an audit comes to.
type Verdict string

// The verdicts. One finding makes it FAIL, whatever else could not be read.
const (
	Pass       Verdict = "PASS"
	Fail       Verdict = "FAIL"       // erased content was found, or the audit log is inconsistent
	Incomplete Verdict = "INCOMPLETE" // nothing was found, and something could not be asked or read
)

// A FindingKind says what was found.
type FindingKind string

// The kinds of findings. The list is closed.
const (
	FoundRow       FindingKind = "row"       // a row or a line that names a post that must be gone
	FoundImage     FindingKind = "image"     // an image of such a post, or one that no record accounts for
	FoundText      FindingKind = "text"      // text that OCR read off an image of such a post
	FoundCopy      FindingKind = "copy"      // a Parquet or a database in the workspace that no record accounts for
	FoundStale     FindingKind = "stale"     // an exported row whose post was last seen live too long ago
	FoundWithheld  FindingKind = "withheld"  // an exported row whose post is withheld
	FoundTombstone FindingKind = "tombstone" // a tombstone of the log or the release that the workspace lacks
	FoundLog       FindingKind = "log"       // the log contradicts itself, the workspace or an earlier checkpoint
	FoundExport    FindingKind = "export"    // a file of the dataset that is not the one on record
	FoundGrant     FindingKind = "grant"     // content is kept without a grant that is good
	FoundOverdue   FindingKind = "overdue"   // a removal that waits for a confirmation for more than 48 hours
)

// A Finding is one violation. What could not be asked or read, and a duty that is still open, have no kind.
type Finding struct {
	ID    string      `json:"id"` // of the entry; empty when it concerns no single one
	Kind  FindingKind `json:"kind,omitempty"`
	Where string      `json:"where"`
	What  string      `json:"what"`
	Due   *time.Time  `json:"due,omitempty"` // of a duty
}

// StatementFormat names the format of a report as JSON, which is the statement that can be signed and handed on.
const StatementFormat = "rehydrate-audit/1"

// A Report says what an audit read and found. The same inputs give the same report but for Time.
type Report struct {
	Format      string          `json:"format"` // StatementFormat
	Verdict     Verdict         `json:"verdict"`
	Findings    []Finding       `json:"findings"`
	Gaps        []Finding       `json:"not_judged"`
	Time        time.Time       `json:"time"`
	Who         Auditor         `json:"who"`
	Scope       Scope           `json:"scope"`
	Totals      map[string]int  `json:"totals"` // posts by state; a post without one counts as never_asked
	Coverage    Coverage        `json:"coverage"`
	Known       Known           `json:"known"`
	Log         auditlog.Report `json:"log"`
	Obligations []Finding       `json:"open_obligations"`
	Notes       []string        `json:"notes"`
	Posts       []*AuditedPost  `json:"posts"`
}

// An Auditor says who audited, and by what leave.
type Auditor struct {
	Tool        string `json:"tool_version"`
	Mode        string `json:"mode"` // live or offline
	Approval    string `json:"approval,omitempty"`
	Grant       string `json:"grant,omitempty"` // its id
	Holder      string `json:"holder,omitempty"`
	Fingerprint string `json:"key_fingerprint,omitempty"` // of the signer
}

// A Scope says what was audited.
type Scope struct {
	Release        string         `json:"release"`
	ReleaseVersion string         `json:"release_version"`
	ReleaseDigest  string         `json:"release_digest"`
	ManifestDigest string         `json:"manifest_digest"`
	PolicyDigest   string         `json:"policy_digest"`
	Entries        int            `json:"entries"`
	Posts          int            `json:"posts"`
	Workspace      string         `json:"workspace"` // empty for none
	Files          []*AuditedFile `json:"files"`     // in the order in which they were looked at
	LookedAt       int            `json:"looked_at"` // how many files and members of archives were read
}

// An AuditedFile is a file that was looked at.
type AuditedFile struct {
	Name   string `json:"name"`
	SHA256 SHA256 `json:"sha256"`
	Size   int64  `json:"bytes"`
	Rows   int    `json:"rows"` // of a Parquet
}

// A SHA256 is a digest, in hex as text.
type SHA256 [sha256.Size]byte

func (d SHA256) String() string { return hex.EncodeToString(d[:]) }

// MarshalText implements encoding.TextMarshaler.
func (d SHA256) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *SHA256) UnmarshalText(text []byte) error {
	raw, err := hex.DecodeString(string(text))
	copy(d[:], raw)
	return err
}

// Coverage says how much of the release the evidence covers.
type Coverage struct {
	Asked    int        `json:"asked"`    // posts that this audit asked about
	Answered int        `json:"answered"` // of these
	Judged   int        `json:"judged"`   // posts with evidence of any kind
	Oldest   *time.Time `json:"oldest_check"`
	OldestID string     `json:"oldest_check_id"`
}

// An AuditedPost is one post with the evidence on it.
type AuditedPost struct {
	ID manifest.PostID `json:"id"`
	*Standing
	LastLive *time.Time `json:"last_live"`
	Checked  *time.Time `json:"checked"`
	Record   *int64     `json:"log_record"` // of the last verdict
}

// A Standing is what the evidence on a post comes to. Posts that stand alike share one.
type Standing struct {
	State   manifest.PostState `json:"state"`
	Reason  manifest.Reason    `json:"reason"`
	Because string             `json:"because"` // live, tombstone, release, workspace, log or empty
	// Unanswered is why a live audit has no verdict on it.
	Unanswered manifest.Reason `json:"unanswered,omitempty"`
	MustGo     bool            `json:"must_go"`
	Withheld   bool            `json:"withheld,omitempty"`
	Stale      bool            `json:"stale"`
	why        string          // the state and its source, in words
}

// A Config is what an audit works with.
type Config struct {
	Release    *manifest.Release
	Tombstones []manifest.Tombstone // those that the release publishes
	Policy     policy.Policy
	Workspace  *workspace.Workspace // nil for none; open for reading
	// Missing says why there is no workspace although one was named; it is a gap.
	Missing string
	Files   []string           // Parquet files, folders and archives to audit besides
	Columns ScanColumns        // of these
	Reddit  *reddit.Client     // nil: no request is sent
	Access  *policy.GrantFault // why the grant is not valid; nil if it is, or if none is needed
	Who     Auditor
	Since   []byte // an earlier checkpoint; nil for none
	Now     func() time.Time
	Log     *slog.Logger
	OnWait  func(polite.Wait)
}

// Audit searches for content that must be gone. It changes nothing. Its error is one that keeps it from judging: the context's,
// *reddit.Denied, an unreadable release. A file that is only partly readable is a gap in the report.
func Audit(ctx context.Context, c Config) (Report, error) {
	a := newAudit(c)
	// Content is searched for once all verdicts are known: a removal that one source reports must count in every file.
	for _, step := range []func(context.Context) error{a.readRelease, a.readWorkspace, a.readLog, a.askLive, a.judge, a.scanAll} {
		if err := step(ctx); err != nil {
			return Report{}, err
		}
	}
	return a.conclude(), nil
}

// An audit is one call of Audit. Sources are looked at by several goroutines, which change only what mu guards.
type audit struct {
	Config
	order     []*evidence // on the posts of the release, then on others that the files name
	posts     map[manifest.PostID]*evidence
	past      map[manifest.PostID]past
	standings map[Standing]*Standing
	moments   map[time.Time]*time.Time
	noted     map[manifest.PostID]time.Time // tombstones up to then were lifted, by the workspace's note
	exported  map[string]string             // the digest on record of each file of the dataset
	logged    map[string]string             // the digest that the log has of each
	images    int                           // that the workspace keeps
	rows      int
	gone      goneContent
	removed   map[string]*evidence      // on entries whose image was removed from a post that is live, by row
	copies    map[string]auditlog.Event // by the digest of their path: those that no record closed
	foreign   []string                  // what state.db has that this program does not make
	sealed    bool                      // no run is at work on the workspace, and the last one ended well
	lookedAt  atomic.Int64

	mu        sync.Mutex // guards the rest
	report    Report
	gaps      map[Finding]*tally // by folder, and what is to be said
	sightings []*sighting
	texts     []textSeen
}

func newAudit(c Config) *audit {
	return &audit{Config: c, gaps: map[Finding]*tally{}, posts: map[manifest.PostID]*evidence{}, past: map[manifest.PostID]past{},
		noted: map[manifest.PostID]time.Time{}, standings: map[Standing]*Standing{}, moments: map[time.Time]*time.Time{},
		copies: map[string]auditlog.Event{}, exported: map[string]string{}, logged: map[string]string{},
		removed: map[string]*evidence{}, gone: goneContent{lines: map[string][]clue[string]{}}}
}

// readRelease takes the posts and the tombstones of the release, with the digests that it may have of their images.
func (a *audit) readRelease(ctx context.Context) error {
	r := &a.report
	// A list that stays empty is [] in the statement, not null.
	*r = Report{Format: StatementFormat, Time: a.Now().UTC().Truncate(time.Second), Who: a.Who, Findings: []Finding{}, Gaps: []Finding{}, Obligations: []Finding{},
		Totals: map[string]int{}, Notes: []string{}, Posts: []*AuditedPost{}}
	r.Scope = Scope{Release: a.Release.Name, ReleaseVersion: a.Release.Version, ReleaseDigest: a.Release.Digest,
		ManifestDigest: a.Release.ManifestDigest, PolicyDigest: a.Policy.Digest(), Files: []*AuditedFile{}}
	for e, err := range a.Release.Entries(ctx) {
		if err != nil {
			return fmt.Errorf("read the release: %w", err)
		}
		r.Scope.Entries++
		a.post(e.ID).entry = true
		if e.SHA256+e.StrippedSHA256+e.PixelsSHA256+e.PHash == "" {
			continue
		}
		k := a.known(e.ID, e.Key.String())
		a.gone.mark(k, parseDigest(e.SHA256), parseDigest(e.StrippedSHA256), parseDigest(e.PixelsSHA256))
		// A manifest is written by others: a hash of another length is of another kind.
		if h, err := strconv.ParseUint(e.PHash, 16, 64); err == nil && len(e.PHash) == 16 {
			k.hash(h)
		}
	}
	r.Scope.Posts = len(a.order)
	// A tombstone counts even where the release no longer has the entry: copies may.
	for i, t := range a.Tombstones {
		a.post(t.ID).published = &a.Tombstones[i]
	}
	return nil
}

// post returns the evidence on a post, and starts it if there is none.
func (a *audit) post(id manifest.PostID) *evidence {
	e := a.posts[id]
	if e == nil {
		e = &evidence{AuditedPost: AuditedPost{ID: id, Standing: shared(a.standings, Standing{})}}
		a.posts[id], a.order = e, append(a.order, e)
	}
	return e
}

// shared returns the one value that all share: posts are many, and stand in few ways at few times.
func shared[T comparable](all map[T]*T, value T) *T {
	if all[value] == nil {
		all[value] = new(value)
	}
	return all[value]
}

func (a *audit) finding(kind FindingKind, id, where, format string, args ...any) {
	a.say(&a.report.Findings, Finding{ID: id, Kind: kind, Where: where}, format, args...)
}

// gap notes something that could not be asked or read.
func (a *audit) gap(where, format string, args ...any) {
	file, _, _ := strings.Cut(where, " > ")
	alike := Finding{Where: path.Dir(file), What: fmt.Sprintf(format, args...)}
	a.mu.Lock()
	defer a.mu.Unlock()
	t := cmp.Or(a.gaps[alike], &tally{file: file})
	a.gaps[alike] = t
	t.n++
	if t.file != file {
		t.file = ""
	}
	// By name, for files are looked at in any order.
	t.first = append(t.first, where)
	slices.Sort(t.first)
	t.first = slices.Compact(t.first)
	t.first = t.first[:min(len(t.first), maxNamed+1)]
}

// A tally counts the places in a folder of which the same is to be said.
type tally struct {
	n     int
	file  string   // that all of them lie in; empty for several
	first []string // of them by name, up to one more than are named
}

// maxNamed is how many places of one folder a gap is said of one by one.
const maxNamed = 3

// tellGaps says of a folder full of files, or a file full of rows, once what could not be asked or read.
func (a *audit) tellGaps() {
	for alike, t := range a.gaps {
		if len(t.first) > maxNamed {
			alike.What += fmt.Sprintf(": %d times, first in %s", t.n, strings.Join(t.first[:maxNamed], ", "))
			t.first = []string{cmp.Or(t.file, alike.Where)}
		}
		for _, where := range t.first {
			a.say(&a.report.Gaps, Finding{Where: where}, "%s", alike.What)
		}
	}
}

func (a *audit) unread(where string, err error) {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err // the path stands before it
	}
	a.gap(where, "it could not be read: %v", err)
}

// owed notes a registered copy, or a file of one, that somebody has to look after.
func (a *audit) owed(where, what, todo string) {
	a.say(&a.report.Obligations, Finding{Where: where}, "%s%s", what, todo)
	a.gap(where, "%s", what)
}

func (a *audit) say(list *[]Finding, f Finding, format string, args ...any) {
	// Names of files are anyone's words.
	f.Where, f.What = state.PrintableLine(f.Where), state.PrintableLine(fmt.Sprintf(format, args...))
	add(a, list, f)
}

// add appends to a list of an audit that several goroutines append to.
func add[T any](a *audit, list *[]T, value T) {
	a.mu.Lock()
	defer a.mu.Unlock()
	*list = append(*list, value)
}

// note notes what a reader of the report should know.
func (a *audit) note(format string, args ...any) {
	a.report.Notes = append(a.report.Notes, state.PrintableLine(fmt.Sprintf(format, args...)))
}

// judge decides about each post from all evidence on it: a removal reported by any source counts.
func (a *audit) judge(context.Context) error {
	r := &a.report
	// The order of the release, so that two reports can be compared line by line.
	r.Posts = slices.Grow(r.Posts, len(a.order))
	for _, e := range a.order {
		was := a.past[e.ID]
		a.compare(e, was)
		// What is withheld stays in the workspace on purpose, so it is a duty and not content that must be gone.
		if e.waits {
			a.noteWithheld(e, was)
		}
		a.weigh(e, was)
		r.Posts = append(r.Posts, &e.AuditedPost)
		r.Totals[cmp.Or(string(e.State), "never_asked")]++
		if e.MustGo {
			r.Known.MustGo++
		}
		if e.live != nil {
			r.Coverage.Asked++
			r.Coverage.Answered++
		}
		if e.State != "" || e.MustGo {
			r.Coverage.Judged++
		}
		if e.Checked != nil && (r.Coverage.Oldest == nil || e.Checked.Before(*r.Coverage.Oldest)) {
			r.Coverage.Oldest, r.Coverage.OldestID = e.Checked, string(e.ID)
		}
		switch {
		case e.Unanswered != "":
			r.Coverage.Answered--
			a.say(&r.Gaps, Finding{ID: string(e.ID), Where: "reddit"}, "no verdict: %s", e.Unanswered)
		case e.State != "" || e.MustGo:
		case a.Workspace != nil:
			a.say(&r.Gaps, Finding{ID: string(e.ID), Where: "workspace"}, "Reddit was never asked about it")
		default:
			a.say(&r.Gaps, Finding{ID: string(e.ID), Where: "reddit"}, "nothing is known of it: audit without --offline asks, or name its workspace with -w")
		}
	}
	r.Known.MustGo += len(a.removed)
	for _, k := range a.gone.all {
		if k.format != "" && k.MustGo && !k.waits {
			a.finding(FoundImage, k.name, "state.db", "the description of an image, with its hashes, of a post that must be gone: %s", k.why)
		}
		if k.read && k.MustGo && !k.waits {
			a.finding(FoundText, k.name, "state.db", "text read off an image of a post that must be gone: %s", k.why)
		}
	}
	return nil
}

// noteWithheld notes content that waits for a confirmation: a duty, and a finding once its time is over.
func (a *audit) noteWithheld(e *evidence, was past) {
	// The clock of the state is the operator's, so an earlier time in the log counts.
	since := was.since
	if !was.goneAt.IsZero() && was.goneAt.Before(since) {
		since = was.goneAt
	}
	due := since.Add(policy.DeleteWithin).UTC()
	a.say(&a.report.Obligations, Finding{ID: string(e.ID), Where: string(e.ID), Due: &due},
		"gone, withheld from the dataset and not erased: confirm it with `rehydrate run --confirm-removals`")
	if a.report.Time.After(due) {
		a.finding(FoundOverdue, string(e.ID), "state.db", "gone since %s, and its content was to be erased within 48 hours", since.UTC().Format(time.RFC3339))
	}
}

// conclude sorts the report and gives the verdict.
func (a *audit) conclude() Report {
	r := &a.report
	if a.Missing != "" {
		a.gap("workspace", "%s", a.Missing)
	}
	switch f := a.Access; {
	case f == nil || a.images+a.rows == 0:
	case f.Reason == "no_grant", f.Reason == "no_signer": // an auditor need not hold the holder's grant, which may be good
		a.gap("grant", "the policy wants a grant, and %d images and %d rows are kept: name the holder's grant with --grant", a.images, a.rows)
	default:
		a.finding(FoundGrant, "", "grant", "the policy wants a grant, and %d images and %d rows are kept without a good one: %s: %s", a.images, a.rows, f.Reason, f.Detail)
	}
	a.tellGaps()
	if n := a.gone.shared; n > 0 {
		a.note("%d texts of posts that must be gone are also those of posts that may stay: they are no findings", n)
	}
	// Several readings of one place note the same: it is said once.
	for _, list := range []*[]Finding{&r.Findings, &r.Gaps, &r.Obligations} {
		slices.SortStableFunc(*list, func(x, y Finding) int {
			return cmp.Or(cmp.Compare(x.Where, y.Where), cmp.Compare(x.ID, y.ID), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.What, y.What))
		})
		*list = slices.Compact(*list)
	}
	r.Obligations = slices.CompactFunc(r.Obligations, func(x, y Finding) bool { return x.Where == y.Where })
	// What is said of a row need not be said of its file again.
	closer := map[Finding]bool{}
	for _, f := range r.Findings {
		for at := strings.LastIndex(f.Where, " > "); at > 0; at = strings.LastIndex(f.Where[:at], " > ") {
			closer[Finding{ID: f.ID, Where: f.Where[:at]}] = true
		}
	}
	r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool { return closer[Finding{ID: f.ID, Where: f.Where}] })
	r.Scope.Files = slices.DeleteFunc(r.Scope.Files, func(f *AuditedFile) bool { return f.SHA256 == (SHA256{}) }) // those that were gone by then
	r.Scope.LookedAt = int(a.lookedAt.Load())
	// One finding outweighs every gap: what was found is there, whatever else could not be read.
	r.Verdict = Pass
	if len(r.Findings) > 0 {
		r.Verdict = Fail
	} else if len(r.Gaps)+len(r.Obligations) > 0 {
		r.Verdict = Incomplete
	}
	return *r
}

func (a *audit) askLive(ctx context.Context) error {
	if a.Reddit == nil {
		return nil
	}
	posts := func(yield func(*evidence, error) bool) {
		for i := 0; i < len(a.order) && yield(a.order[i], nil); i++ {
		}
	}
	s := sweep.Sweep[*evidence]{Reddit: a.Reddit, ID: func(e *evidence) manifest.PostID { return e.ID }, Pause: a.Policy.Reddit.SecondLookAfter,
		Log: a.Log, OnWait: a.OnWait, Record: func(_ context.Context, heard []sweep.Heard[*evidence]) error {
			for i, h := range heard {
				h.Post.live, heard[i].Again = new(h.Verdict), h.Absent
			}
			return nil
		}}
	err := s.Run(ctx, posts)
	if _, unreachable := errors.AsType[*reddit.Unreachable](err); !unreachable {
		return err
	}
	// The answers so far count. Every other post is a gap, so the report is not a PASS.
	none := &policy.Verdict{Reason: "unreachable"}
	for _, e := range a.order {
		if e.live == nil || e.live.State == "" {
			e.live = none
		}
	}
	return nil
}
