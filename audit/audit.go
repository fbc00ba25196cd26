// Package audit looks for deleted posts in a workspace, its registered copies and any files that an auditor names. It
// never writes.
package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"rehydrate/internal/polite"
	"rehydrate/internal/printable"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/reddit/sweep"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A Verdict is what an audit comes to.
type Verdict string

// The verdicts. Each outweighs those behind it: what was found is there, whatever else could not be read.
const (
	Fail      Verdict = "FAIL"        // a removed post is there, or something is not as recorded
	Undecided Verdict = "NOT DECIDED" // nothing was found for certain, and something that can be looked at is open
	Overdue   Verdict = "OVERDUE"     // nothing was found, nothing is open, and a duty of this workspace is late
	Pass      Verdict = "PASS"
)

// A FindingKind says what was found.
type FindingKind string

// The kinds of findings, the gravest first. The list is closed.
const (
	FoundImage  FindingKind = "image"  // an image of a removed post, or a digest or hash of one
	FoundText   FindingKind = "text"   // its caption
	FoundRow    FindingKind = "row"    // a row or a line that names it
	FoundRecord FindingKind = "record" // no post: log, dataset or workspace are not as they are on record
)

var findingKinds = []FindingKind{FoundImage, FoundText, FoundRow, FoundRecord}

// A Finding is a removed post, or something that is not as recorded, at one place.
type Finding struct {
	ID    string        `json:"id"`    // of the entry; empty for what is not as recorded and concerns no single one
	Kinds []FindingKind `json:"kinds"` // the gravest first
	Where string        `json:"where"`
	What  []string      `json:"what"`         // what of it is there, and how that is known
	By    string        `json:"by,omitempty"` // who says that the post was removed; empty for what is not as recorded
	Do    string        `json:"do"`
	Removal
}

// A Removal says why a post must be gone. It is empty for what is not as recorded.
type Removal struct {
	Why   string     `json:"why,omitempty"`         // in words
	Since *time.Time `json:"known_since,omitempty"` // when the post was first known as removed; nil if no source says it
	Due   *time.Time `json:"gone_by,omitempty"`     // by when it must be gone
}

// An Open thing could not be asked, read or told, and somebody can do something about it.
type Open struct {
	ID    string `json:"id,omitempty"` // of the entry that it may be of
	Where string `json:"where"`
	What  string `json:"what"`
	Do    string `json:"do"`
}

// A DutyKind says what is to be done.
type DutyKind string

// The kinds of duties. The list is closed.
const (
	DutyRecheck  DutyKind = "recheck"  // to ask Reddit about every post of a row, in the time that the policy gives
	DutyHeld     DutyKind = "held"     // to take out rows that the policy does not allow, or that are withheld
	DutyConfirm  DutyKind = "confirm"  // to confirm a mass removal, and erase what waits for it
	DutyCopy     DutyKind = "copy"     // to look after a registered copy, or a third party, that owes a removal
	DutyTakeOver DutyKind = "takeover" // to take over a tombstone that the release publishes
	DutyGrant    DutyKind = "grant"    // to hold images by a grant that is good
)

// A Duty is what has to be done with what this workspace or a registered copy of it holds. Of files that somebody else
// has there are none.
type Duty struct {
	Kind  DutyKind   `json:"kind"`
	Where string     `json:"where"`
	What  string     `json:"what"`
	Do    string     `json:"do"`
	Posts []string   `json:"posts,omitempty"` // that it is about
	Due   *time.Time `json:"due,omitempty"`
	Late  bool       `json:"late"`
}

// StatementFormat names the format of a report as JSON, which is the statement that can be signed and handed on.
const StatementFormat = statementName + statementVersion

const statementName, statementVersion = "rehydrate-audit/", "2"

// A Report says what an audit read and found. The same inputs give the same report but for Time.
type Report struct {
	Format   string          `json:"format"` // StatementFormat
	Verdict  Verdict         `json:"verdict"`
	Says     []string        `json:"says,omitempty"` // the headline
	Findings []Finding       `json:"findings"`
	Open     []Open          `json:"open"`
	Duties   []Duty          `json:"duties"`
	Limits   []string        `json:"limits"` // what nobody can find with what is held
	Time     time.Time       `json:"time"`
	Who      Auditor         `json:"who"`
	Scope    Scope           `json:"scope"`
	Totals   map[string]int  `json:"totals"` // posts by state; a post without one counts as never_asked
	Coverage Coverage        `json:"coverage"`
	Known    Known           `json:"known"`
	Log      auditlog.Report `json:"log"`
	Notes    []string        `json:"notes"`
	Posts    []*AuditedPost  `json:"posts"`
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
	Entries        int            `json:"entries"` // images of the release, of which several rows may be
	Posts          int            `json:"posts"`
	Workspace      string         `json:"workspace"` // empty for none
	Files          []*AuditedFile `json:"files"`     // in the order in which they were looked at
	LookedAt       int            `json:"looked_at"` // how many files and members of archives were read
	Rehearsal      bool           `json:"rehearsal,omitempty"`
	Copies         int            `json:"copies"` // registered, that are there
	Named          int            `json:"named"`  // files and folders that the auditor named
	Looked         []Looked       `json:"looked"` // how many of the files lie where
	// Listed are the posts of a bare list of ids that stand in a table or in the name of a file, in the list's order.
	Listed []string `json:"listed,omitempty"`
	IsList bool     `json:"is_list,omitempty"` // the release is such a list
}

// A Looked is a place whose files were looked at.
type Looked struct {
	Where string    `json:"where"` // as the auditor named it; the path of a workspace or a copy
	Kind  PlaceKind `json:"kind"`
	Files int       `json:"files"`
}

// A PlaceKind says what a Looked is.
type PlaceKind string

// The kinds of places.
const (
	InWorkspace PlaceKind = "workspace"
	InCopy      PlaceKind = "copy"
	InNamed     PlaceKind = "named"
)

// An AuditedFile is a file that was looked at.
type AuditedFile struct {
	Name   string `json:"name"`
	SHA256 SHA256 `json:"sha256"`
	Size   int64  `json:"bytes"`
	Rows   int    `json:"rows"` // of a Parquet
	in     int    // the place of Scope.Looked that it lies in
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
	// Published is the time of the last tombstone that the release publishes.
	Published *time.Time `json:"tombstones_until,omitempty"`
}

// An AuditedPost is one post with the evidence on it.
type AuditedPost struct {
	ID manifest.PostID `json:"id"`
	Standing
	LastLive *time.Time     `json:"last_live"`
	Checked  *time.Time     `json:"checked"`
	Record   *int64         `json:"log_record"`       // of the last verdict
	Images   []AuditedImage `json:"images,omitempty"` // that were removed from it while it stays, or are held back
	unnamed  bool           // by the release
}

// An AuditedImage is an image that was removed from a post that stays, or whose removal is held back.
type AuditedImage struct {
	ID       string          `json:"id"` // of the entry
	Reason   manifest.Reason `json:"reason"`
	Because  string          `json:"because"` // as of Standing
	MustGo   bool            `json:"must_go"`
	Withheld bool            `json:"withheld,omitempty"`
	number   int             // in the post
}

// A Standing is what the evidence on a post comes to.
type Standing struct {
	State   manifest.PostState `json:"state"`
	Reason  manifest.Reason    `json:"reason"`
	Because string             `json:"because"` // live, tombstone, release, workspace, log or empty
	// Unanswered is why a live audit has no verdict on it.
	Unanswered manifest.Reason `json:"unanswered,omitempty"`
	MustGo     bool            `json:"must_go"`
	Withheld   bool            `json:"withheld,omitempty"`
	Stale      bool            `json:"stale"`
	takenBack  bool            // an earlier audit heard that it is gone, and this one that it is live
	why        string          // the state and its source, in words
	goneAs     manifest.PostState
	removal    Removal
	imageGone  manifest.Reason // why the image of an entry was removed from a post that stays
}

// A Config is what an audit works with.
type Config struct {
	Release    *manifest.Release
	Tombstones []manifest.Tombstone // those that the release publishes
	Policy     policy.Policy
	Workspace  *workspace.Workspace // nil for none; open for reading
	// Reopen opens it once more: a command that ends may have put another state.db in its place. Nil: it stays open.
	Reopen func(context.Context) (*workspace.Workspace, error)
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

// run looks once.
func (a *audit) run(ctx context.Context) error {
	// Content is searched for once all verdicts are known: a removal that one source reports must count in every file.
	for _, step := range []func(context.Context) error{a.readRelease, a.readWorkspace, a.readLog, a.readHeard, a.askLive,
		a.decide, a.scanAll} {
		if err := step(ctx); err != nil {
			a.report.Findings, a.report.Scope.LookedAt = findingsOf(a.found), int(a.lookedAt.Load())
			return err
		}
	}
	a.conclude()
	return nil
}

// An audit is one look of a call of Audit. Sources are looked at by several goroutines, which change only what mu
// guards.
type audit struct {
	Config
	order      []*evidence // on the posts of the release, then on others that the files name
	posts      map[manifest.PostID]*evidence
	past       map[manifest.PostID]past
	lifted     map[policy.NamedTombstone]bool // by statements that the release accepts
	exported   map[string]string              // the digest on record of each file of the dataset
	next       map[string]string              // those of files that were to take the place of some
	logged     map[string]string              // the digest that the log has of each
	images     int                            // that the workspace keeps
	rows       int
	gone       goneContent
	sources    workspace.Origins                // of the images of the posts in told
	goneImages map[manifest.Key]lostImage       // images that were removed from posts that stay, or are withheld
	removed    map[string]*evidence             // on their entries, by row
	told       map[manifest.PostID]*reddit.Post // answers of this audit that can remove images of posts that stay
	removals   *auditlog.Removals               // what the log has of them
	erased     []workspace.FormerImage          // what the workspace has of them
	lastShown  map[string][]digest              // by entry that lost an image: the last one
	nobodys    map[clue[digest]]bool            // what hosts sent to everybody, which no entry had
	former     map[string]*evidence             // by entry that has another picture: on one that was removed from it
	copies     map[string]auditlog.Event        // by the digest of their path: those that no record closed
	foreign    []string                         // what state.db has that this program does not make
	audited    auditlog.Event                   // the last audit on record; none if a run or a purge was since
	lost       int64                            // until when answers may be missing from the log, in Unix seconds
	sealed     bool                             // no run is at work on the workspace, and the last one ended well
	seal       string                           // of the workspace when the look began; "" for none
	moved      bool                             // it has another one since
	answers    map[manifest.PostID]liveAnswer   // of Reddit, which an earlier look asked for; nil for none
	unwrote    bool                             // the workspace knows that rows are missing in its dataset
	began      bool                             // the last job in the log has no end there
	cutOff     bool                             // a job that did not end well followed the last export, by the log
	lookedAt   atomic.Int64
	hasID      atomic.Bool // a table has the column that the auditor names as that of the ids
	hasPHash   atomic.Bool // and as that of the hashes

	mu           sync.Mutex // guards the rest
	report       Report
	found        []sight
	sightings    []*sighting
	thumbnails   bool              // among them, rather than icons
	doubts       map[digest]*doubt // of the digests of a picture
	alone        []place           // of the values of which hit.alone is said
	opens        map[Open]*tally
	texts        sync.Pool // of *caption.Text
	rowsHeld     rowsHeld
	refused      map[string]bool    // entries whose image the policy refuses, or was not held against: no row may have it
	waiting      []string           // posts and images that are withheld
	waitingSince []time.Time        // when each of them was found gone
	ahead        []string           // of those, which have a time in the future, and not in waiting
	back         []string           // those that are withheld, and that Reddit shows again in this audit
	named        map[*evidence]bool // posts that stand in files; true: in one of neither workspace nor copy
	edition      edition            // of the release, by the log
	elsewhere    []string           // what third parties have, and need not delete yet
}

func newAudit(c Config) *audit {
	a := &audit{Config: c, opens: map[Open]*tally{}, posts: map[manifest.PostID]*evidence{},
		past:   map[manifest.PostID]past{},
		copies: map[string]auditlog.Event{}, exported: map[string]string{}, logged: map[string]string{},
		goneImages: map[manifest.Key]lostImage{},
		removed:    map[string]*evidence{}, former: map[string]*evidence{},
		nobodys: map[clue[digest]]bool{}, lastShown: map[string][]digest{}, removals: auditlog.NewRemovals(),
		told: map[manifest.PostID]*reddit.Post{},
		rowsHeld: rowsHeld{stale: map[manifest.PostID]bool{},
			held: map[manifest.PostID]bool{}, heard: map[manifest.PostID]bool{}, barred: map[manifest.PostID]bool{},
			copies: map[string]map[manifest.PostID]bool{}},
		gone: goneContent{}, named: map[*evidence]bool{}, refused: map[string]bool{}}
	a.texts.New = func() any { return a.gone.captions.NewText() }
	return a
}

// readRelease takes the posts and the tombstones of the release, with the digests that it may have of their images.
func (a *audit) readRelease(ctx context.Context) error {
	r := &a.report
	// A list that stays empty is [] in the statement, not null.
	*r = Report{Format: StatementFormat, Time: a.Now().UTC().Truncate(time.Second), Who: a.Who, Findings: []Finding{},
		Open:   []Open{},
		Duties: []Duty{}, Limits: []string{}, Totals: map[string]int{}, Notes: []string{}, Posts: []*AuditedPost{},
		Known: Known{States: map[string]int{}}}
	r.Scope = Scope{Release: a.Release.Name, ReleaseVersion: a.Release.Version, ReleaseDigest: a.Release.Digest,
		ManifestDigest: a.Release.ManifestDigest, PolicyDigest: a.Policy.Digest(), Files: []*AuditedFile{},
		Looked: []Looked{}, IsList: a.Release.IsList()}
	met := map[manifest.Key]bool{} // of several rows about one image, which have the same digests, one counts
	for e, err := range a.Release.Entries(ctx) {
		if err != nil {
			return fmt.Errorf("read the release: %w", err)
		}
		if met[e.Key] {
			continue
		}
		if a.Release.Schema.Many {
			met[e.Key] = true
		}
		r.Scope.Entries++
		post := a.post(e.ID)
		post.entry = true
		if e.SHA256+e.StrippedSHA256+e.PixelsSHA256 == "" {
			post.bare = append(post.bare, e.Key.Image)
		}
		if e.SHA256+e.StrippedSHA256+e.PixelsSHA256+e.PHash == "" {
			continue
		}
		r.Known.Published++
		k := a.known(e.ID, e.Key.String())
		a.gone.add(k, parseDigest(e.SHA256), parseDigest(e.StrippedSHA256), parseDigest(e.PixelsSHA256))
		// A manifest is written by others: a hash of another length is of another kind.
		if h, err := strconv.ParseUint(e.PHash, 16, 64); err == nil && len(e.PHash) == 16 {
			k.hash(h)
		}
	}
	r.Scope.Posts = len(a.order)
	// A tombstone counts even where the release no longer has the entry: copies may.
	for i, t := range a.Tombstones {
		a.post(t.ID).published = &a.Tombstones[i]
		if r.Coverage.Published == nil || t.Time.After(*r.Coverage.Published) {
			r.Coverage.Published = moment(t.Time)
		}
	}
	return nil
}

// post returns the evidence on a post, and starts it if there is none.
func (a *audit) post(id manifest.PostID) *evidence {
	e := a.posts[id]
	if e == nil {
		e = &evidence{AuditedPost: AuditedPost{ID: id}}
		a.posts[id], a.order = e, append(a.order, e)
	}
	return e
}

// add appends to a list of an audit that several goroutines append to.
func add[T any](a *audit, list *[]T, value T) {
	a.mu.Lock()
	defer a.mu.Unlock()
	*list = append(*list, value)
}

// note notes what a reader of the report should know.
func (a *audit) note(format string, args ...any) {
	a.report.Notes = append(a.report.Notes, printable.Line(fmt.Sprintf(format, args...)))
}

// unreachable is why a live audit that was cut off has no verdict on a post.
const unreachable manifest.Reason = "unreachable"

// A liveAnswer is what Reddit answered an audit about a post.
type liveAnswer struct {
	*policy.Verdict
	at time.Time // when the look began that asked
}

// contradicted reports whether a job was answered something else about the post since an earlier look asked, or may
// have been about an image of it.
func (a *audit) contradicted(e *evidence, known liveAnswer) bool {
	return e.Checked != nil && e.Checked.After(known.at) && (e.State != known.State || a.told[e.ID] != nil)
}

// reuseAnswers takes over the answers of an earlier look, and returns the posts that have to be asked about. It does so
// before any is: an outage then costs no answer, and none that was contradicted passes for a newer one.
func (a *audit) reuseAnswers() (ask []*evidence) {
	for _, e := range a.order {
		if known, asked := a.answers[e.ID]; asked && !a.contradicted(e, known) {
			e.live, e.liveAt = known.Verdict, known.at
			continue
		}
		delete(a.told, e.ID)
		ask = append(ask, e)
	}
	return ask
}

func (a *audit) askLive(ctx context.Context) error {
	if a.Reddit == nil {
		return nil
	}
	unanswered := a.reuseAnswers()
	posts := func(yield func(*evidence, error) bool) {
		for _, e := range unanswered {
			if !yield(e, nil) {
				return
			}
		}
	}
	lacking := a.lackImages()
	s := sweep.Sweep[*evidence]{Reddit: a.Reddit, ID: func(e *evidence) manifest.PostID { return e.ID },
		Pause: a.Policy.Reddit.SecondLookAfter,
		Log:   a.Log, OnWait: a.OnWait, Record: func(_ context.Context, heard []sweep.Heard[*evidence]) error {
			for i, h := range heard {
				h.Post.live, h.Post.liveAt, heard[i].Again = new(h.Verdict), a.report.Time, h.Absent
				delete(a.told, h.Post.ID)
				if h.Found != nil && !h.Verdict.State.Gone() &&
					(lacking[h.Post.ID] || a.mayLackImages(h.Found)) {
					a.told[h.Post.ID] = h.Found
				}
			}
			return nil
		}}
	err := s.Run(ctx, posts)
	if _, unreachable := errors.AsType[*reddit.Unreachable](err); !unreachable {
		return err
	}
	// The answers so far count. Every other post is a gap, so the report is not a PASS.
	none := &policy.Verdict{Reason: unreachable}
	for _, e := range a.order {
		if e.live == nil || e.live.State == "" {
			e.live = none
		}
	}
	return nil
}
