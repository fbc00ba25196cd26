package state

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"rehydrate/dedupe"
	"rehydrate/internal/picture"
	"rehydrate/internal/safely"
	"rehydrate/internal/word"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/language"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// Candidate is the outcome of an entry that only the language filter and the near-duplicate rule are left
// to judge.
const Candidate manifest.Outcome = ""

// ReasonTakedown is the reason of a post that was purged by request. It begins that of a request for which the operator
// gave a word: takedown_privacy. None of Reddit's reasons does, so that a request is never taken for what Reddit says.
const ReasonTakedown manifest.Reason = "takedown"

// Requested gives the reason of a request with an operator's word.
func Requested(word string) manifest.Reason {
	if word == string(ReasonTakedown) {
		return ReasonTakedown
	}
	return ReasonTakedown + "_" + manifest.Reason(word)
}

// IsRequest reports whether a reason is that of a request, and gives the operator's word; "" for none.
func IsRequest(reason manifest.Reason) (word string, yes bool) {
	word, has := strings.CutPrefix(string(reason), string(ReasonTakedown)+"_")
	if has {
		return word, true
	}
	return "", reason == ReasonTakedown
}

// isKnown reports whether a tombstone can have a reason: that of a request, or of what Reddit said.
func isKnown(reason manifest.Reason) bool {
	word, request := IsRequest(reason)
	return request && (word != "" || reason == ReasonTakedown) || policy.RemovalReason(reason)
}

// A Judge turns what is stored of an entry into its outcome.
type Judge struct {
	Policy     policy.Policy
	Tombstones Holding
	Now        time.Time
	heard      HeardNote             // of audits since the last job
	removed    RemovedPictures       // nil where only jobs' decisions count, which took them out
	withheld   RemovedPictures       // of posts whose removal waits
	told       RemovedPictures       // of those that audits heard are gone
	shared     map[manifest.Key]bool // whose image came from too many URLs: the policy takes it for a stand-in
}

// StoredJudge judges by the tombstones and the policy that the workspace has on record.
func StoredJudge(ctx context.Context, ws *workspace.Workspace, now time.Time) (Judge, error) {
	p, err := LastPolicy(ctx, ws)
	if err != nil {
		return Judge{}, err
	}
	stones, err := HoldingTombstones(ctx, ws)
	if err != nil {
		return Judge{}, err
	}
	return newJudge(ctx, ws, Judge{Policy: p, Tombstones: stones, Now: now})
}

// JudgeBy judges by the tombstones and the policy of a release as they are now: it may be newer than the last run.
// published are its tombstones.
func JudgeBy(ctx context.Context, ws *workspace.Workspace, rel *manifest.Release, published []manifest.Tombstone,
	p policy.Policy, now time.Time) (Judge, error) {
	stones, err := Stones(ctx, ws, rel, published, p, now)
	if err != nil {
		return Judge{}, err
	}
	if err := stones.NamePictures(ctx, ws, rel); err != nil {
		return Judge{}, err
	}
	removed, err := FindRemovedPictures(ctx, ws, stones)
	if err != nil {
		return Judge{}, err
	}
	return newJudge(ctx, ws, Judge{Policy: p, Tombstones: stones, Now: now, removed: removed})
}

func newJudge(ctx context.Context, ws *workspace.Workspace, j Judge) (Judge, error) {
	withheld, err := Withheld(ctx, ws)
	if err != nil {
		return Judge{}, err
	}
	j.withheld, err = findComing(ctx, ws, withheld, j.Tombstones)
	if err != nil {
		return Judge{}, err
	}
	j, err = j.Later(ctx, ws, j.Now)
	if err != nil {
		return Judge{}, err
	}
	j.shared, _, err = findStandIns(ctx, ws, j.Policy)
	return j, err
}

// Later returns the judge at a later time, for a work that lasts: with what audits have heard by then.
func (j Judge) Later(ctx context.Context, ws *workspace.Workspace, now time.Time) (_ Judge, err error) {
	j.Now = now
	j.heard, err = ReadNote[HeardNote](ctx, ws)
	if err != nil {
		return j, err
	}
	heard, err := Heard(ctx, ws)
	if err != nil {
		return j, err
	}
	j.told, err = findComing(ctx, ws, heard, j.Tombstones)
	return j, err
}

// Outcome returns the outcome that an entry has by itself, or Candidate.
func (j Judge) Outcome(rec workspace.Record) manifest.Result {
	res := manifest.Result{Key: rec.Key, Split: rec.Split}
	// A tombstone outweighs whatever Reddit says: what was deleted by its author does not come back.
	if stone, ok := j.Tombstones[rec.Key.ID]; ok {
		res.Outcome, res.Reason = manifest.Outcome(stone.State), "tombstone"
		_, asked := IsRequest(stone.Reason)
		switch {
		case rec.Post.State == stone.State:
			res.Reason = rec.Post.Reason // what Reddit says now, while it agrees
		case asked:
			res.Reason = stone.Reason
		}
		return res
	}
	p := rec.Post
	if t := rec.Trouble; t != nil && !p.State.Gone() && t.Beside != workspace.Odd &&
		slices.Contains(policy.ImageRemovals(), t.Reason) {
		return ofTrouble(rec, res) // also of a post that is held now, or not asked about: its image is not to come back
	}
	switch p.State {
	case "":
		res.Outcome = manifest.Pending
		return res
	case manifest.StateUnknown:
		res.Outcome, res.Reason = manifest.Failed, p.Reason
		return res
	case manifest.StateRemoved, manifest.StateDeleted, manifest.StateUnavailable:
		res.Outcome, res.Reason = manifest.Outcome(p.State), p.Reason
		switch {
		case p.Withheld && WentBefore(rec):
			res.Detail = "held back, and no image of it is here"
		case p.Withheld:
			res.Detail = withheldDetail
		}
		return res
	case manifest.StateHeld:
		res.Outcome, res.Reason = manifest.Refused, p.Reason
		return res
	}
	return j.ofLive(rec, res)
}

// ofLive is Outcome of an entry whose post is live. A row needs an image that was read, and one that comes in an answer
// that came after the image, and not too long ago. Age takes out no row that is there.
func (j Judge) ofLive(rec workspace.Record, res manifest.Result) manifest.Result {
	p, t, comes := rec.Post, rec.Trouble, rec.Result == nil || rec.Result.Outcome != manifest.Kept
	var unlike *policy.Fault // another edition of the release can name other digests
	if rec.Image != nil {
		unlike = Compare(j.Policy, rec.Entry, *rec.Image)
	}
	switch {
	case t != nil && (rec.Image == nil || t.Beside != workspace.Odd):
		return ofTrouble(rec, res)
	case unlike != nil && !j.shared[rec.Key]:
		res.Outcome, res.Reason, res.Detail = unlike.Outcome, unlike.Reason, unlike.Detail
	case comes && !p.AbsentAt.IsZero():
		res.Outcome, res.Reason = manifest.Failed, "absent_once"
	case rec.Image == nil || rec.Reading == nil:
		res.Outcome = manifest.Pending
	case rec.Reading.Failed != nil:
		t := rec.Reading.Failed
		res.Outcome, res.Reason, res.Detail = t.Outcome, t.Reason, t.Detail
	case j.shared[rec.Key]:
		return suspected(res, j.Policy)
	case comes && p.Unseen:
		// Removed between the answer and the download, perhaps: the image alone proves nothing.
		res.Outcome, res.Reason = manifest.Failed, "not_rechecked"
		res.Detail = "not seen live since its image was fetched"
	case comes && j.Policy.Stale(p.LiveAt, j.Now):
		res.Outcome, res.Reason = manifest.Failed, "not_rechecked"
		res.Detail = "last seen live longer ago than the policy's recheck_within"
	case t != nil:
		res.Outcome, res.Detail = Candidate, "the stored image stays: "+oddity(*t)
	default:
		res.Outcome = Candidate
	}
	return res
}

// ofTrouble is the outcome of an entry that has no image, or one that is no row, for its trouble.
func ofTrouble(rec workspace.Record, res manifest.Result) manifest.Result {
	t := rec.Trouble
	res.Outcome, res.Reason, res.Detail = t.Outcome, t.Reason, t.Detail
	if t.Withheld() {
		res.Detail = withheldDetail
	}
	return res
}

// WentBefore reports whether an image was removed alone: where its post goes, too, nothing of it is left to erase.
func WentBefore(rec workspace.Record) bool {
	t := rec.Trouble
	return rec.Image == nil && t != nil && t.Removed() && slices.Contains(policy.ImageRemovals(), t.Reason)
}

const withheldDetail = "held back, not erased yet"

// oddity is what Reddit or a host says of an image that is stored.
func oddity(t workspace.Trouble) string {
	what := "the last answer was " + string(t.Outcome)
	if t.Reason != "" {
		what += ", " + string(t.Reason)
	}
	return what
}

// ReasonStricter is the reason of a row that is not to leave the workspace: it was let in under another policy, and the
// present one may not allow its image.
const ReasonStricter manifest.Reason = "policy_stricter"

// Admits reports whether the policy is known to take a stored image.
func Admits(p policy.Policy, img workspace.Image) bool {
	return p.Admits(policy.HeldImage{Limits: img.Limits, Bytes: img.OriginalBytes, SHA256: img.OriginalSHA256,
		Info: picture.Info{Format: img.Format, Width: img.Width, Height: img.Height}})
}

// HandedOut is Outcome of a row that is to leave the workspace now: one whose post was not seen live lately, or is gone
// or lost its image by what an audit heard, may not, nor one whose image the policy does not allow any more.
func (j Judge) HandedOut(rec workspace.Record) manifest.Result {
	rec, _ = j.heard.Applied(rec)
	rec.Result = nil // as if it were to come in
	res := j.Outcome(rec)
	if res.Outcome != Candidate {
		return res
	}
	for _, pictures := range []RemovedPictures{j.removed, j.withheld, j.told} {
		if f := pictures.Refuses(j.Policy, rec.ID, *rec.Image); f != nil {
			res.Outcome, res.Reason, res.Detail = f.Outcome, f.Reason, f.Detail
			return res
		}
	}
	if !Admits(j.Policy, *rec.Image) {
		res.Outcome, res.Reason, res.Detail = manifest.Refused, ReasonStricter, ""
	}
	return res
}

// ShowsWithheld reports whether an image shows the picture of a post that is held back, and of none that is gone.
func (j Judge) ShowsWithheld(rec workspace.Record) bool {
	return rec.Image != nil && j.removed.Refuses(j.Policy, rec.ID, *rec.Image) == nil &&
		j.withheld.Refuses(j.Policy, rec.ID, *rec.Image) != nil
}

// A Stricter says that rows were let in under another policy, and that the present one may not allow them.
type Stricter struct{ Rows int }

func (e *Stricter) Error() string {
	return fmt.Sprintf("%d of the rows %s", e.Rows, WhyStricter)
}

// WhyStricter says of rows why they are not handed out.
const WhyStricter = "came in under another policy.toml, and may not be allowed any more"

// ErrNotMasked means that the texts of the dataset show names, and the present policy wants them masked.
var ErrNotMasked = errors.New("names in its texts are not masked as policy.toml wants it now")

// CheckMasked fails with ErrNotMasked where the policy has names masked, and the dataset was written without.
func CheckMasked(ctx context.Context, ws *workspace.Workspace, p policy.Policy) error {
	last, err := ReadNote[ExportNote](ctx, ws)
	if err == nil && p.Text.MaskNames && last.Card != nil &&
		!strings.Contains(last.Card.Provenance.OCRParameters, masking()) {
		err = ErrNotMasked
	}
	return err
}

// Compare holds an image against the digests that the manifest names; one that matches is enough. It returns nil if it
// may be the labelled one.
func Compare(p policy.Policy, e manifest.Entry, img workspace.Image) *policy.Fault {
	distance, radius := 0, p.Dedupe.HashRadius
	if e.PHash != "" {
		want, err := strconv.ParseUint(e.PHash, 16, 64)
		if err != nil {
			return &policy.Fault{Outcome: manifest.Invalid, Reason: "bad_phash", Detail: e.PHash}
		}
		distance = bits.OnesCount64(want ^ img.PHash)
	}
	if e.Named() && !Proven(e, img) {
		f := &policy.Fault{Outcome: manifest.Changed, Reason: "sha256",
			Detail: "the image has sha256 " + img.OriginalSHA256}
		if e.PHash != "" { // an image that was only encoded again is near
			f.Detail += fmt.Sprintf(" and is %d bits from the manifest's phash", distance)
		}
		return f
	}
	if distance > radius {
		return &policy.Fault{Outcome: manifest.Changed, Reason: "phash",
			Detail: fmt.Sprintf("the image is %d bits from the manifest's phash, %d are allowed", distance, radius)}
	}
	return nil
}

// Proven reports whether a digest of the manifest says that an image is the one that was labelled.
func Proven(e manifest.Entry, img workspace.Image) bool {
	// The sha256 may be that of the image as it was downloaded, or as it is stored.
	return e.SHA256 != "" && (e.SHA256 == img.OriginalSHA256 || e.SHA256 == img.SHA256) ||
		e.StrippedSHA256 != "" && e.StrippedSHA256 == img.SHA256 ||
		e.PixelsSHA256 != "" && e.PixelsSHA256 == img.PixelsSHA256
}

// Known is the outcome of an entry as far as it is settled: pending when it was not judged beside the others yet.
func (j Judge) Known(rec workspace.Record) manifest.Result {
	res := j.Outcome(rec)
	if res.Outcome != Candidate {
		return res
	}
	// What needs the other entries is as the last Decide left it.
	decided := append(manifest.OutcomesOf(manifest.FateKept, manifest.FateFiltered), manifest.Pending)
	if rec.Result != nil && slices.Contains(decided, rec.Result.Outcome) {
		return *rec.Result
	}
	res.Outcome = manifest.Pending
	return res
}

// Decisions are the outcomes of all entries, with what the dataset of the kept ones is made of.
type Decisions struct {
	Results []manifest.Result // in manifest order
	Gone    GoneSet           // MustLeaveDataset
	Spared  int               // duplicates that the policy's dedupe.guard would keep

	standIns StandInsNote // to be noted
	Before   int          // rows that the dataset has, by the stored results
	Leave    []Count      // of those, what no removal takes out and no other row replaces
	rows     []rowFacts   // by place in Results
}

// rowFacts are of an entry that could be a row of the dataset.
type rowFacts struct {
	candidate bool
	there     bool              // it is a row, by its stored result
	odd       string            // Result.Detail of a row with trouble that is none
	digest    [sha256.Size]byte // of all that the row is made of
	bytes     int64             // that it takes in a shard
}

// A Draft is what can be decided before it is known which posts are live: what was read, and what the language filter
// says of it. Its lists are in manifest order.
type Draft struct {
	results []manifest.Result // of the filter
	rows    []rowFacts
	near    []dedupe.Item
	most    int // how many images have the same bytes, at most
}

// DraftAll reads what was read of all entries. A reading that is stored meanwhile may be missing.
func DraftAll(ctx context.Context, ws *workspace.Workspace, f *language.Filter, p policy.Policy) (*Draft, error) {
	entries, _, err := ws.Counts(ctx)
	if err != nil {
		return nil, err
	}
	// Room for all at once: lists that grow are in memory twice while they are copied.
	d := &Draft{results: make([]manifest.Result, 0, entries), rows: make([]rowFacts, 0, entries),
		near: make([]dedupe.Item, 0, entries)}
	images := map[string]int{} // by digest
	for rec, err := range safely.Ahead(ctx, ws.Records(ctx, workspace.Select{WithWords: true})) {
		if err != nil {
			return nil, err
		}
		if rec.Image != nil {
			images[rec.Image.OriginalSHA256]++
			d.most = max(d.most, images[rec.Image.OriginalSHA256])
		}
		res, row, item := manifest.Result{Key: rec.Key, Split: rec.Split}, rowFacts{}, dedupe.Item{}
		if rec.Image != nil && rec.Reading != nil && rec.Reading.Failed == nil {
			if err := row.read(rec, p); err != nil {
				return nil, err
			}
			v := InEnglish(f, p, rec)
			if v.Outcome == "" {
				item = NearItem(rec)
			} else {
				res.Detail = fmt.Sprintf("%.0f %% of %d words are in the English dictionary", 100*v.Hit, v.Tokens)
			}
			// of a kept entry: no text, or too short to tell
			res.Outcome, res.Reason = cmp.Or(v.Outcome, manifest.Kept), v.Reason
		}
		d.results, d.rows, d.near = append(d.results, res), append(d.rows, row), append(d.near, item)
	}
	return d, nil
}

// nearItems are what the near-duplicate rule compares, with their places in Results.
type nearItems struct {
	items []dedupe.Item
	at    []int
}

// Decide gives every entry its outcome. It uses up the draft, which has all readings of the workspace.
func (j Judge) Decide(ctx context.Context, ws *workspace.Workspace, draft *Draft) (*Decisions, error) {
	d := &Decisions{Results: draft.results, rows: draft.rows}
	known, err := ReadNote[StandInsNote](ctx, ws)
	if err != nil {
		return nil, err
	}
	// Else SQLite would sort all digests in vain, in 100 bytes of each.
	if draft.most >= j.Policy.Images.SuspectAfter || len(known) > 0 {
		j.shared, d.standIns, err = findStandIns(ctx, ws, j.Policy)
		if err != nil {
			return nil, err
		}
	}
	d.Gone, err = MustLeaveDataset(ctx, ws, j.Tombstones, j.Policy)
	if err != nil {
		return nil, err
	}
	// The list of those that are compared grows in the place of the list of all, which is as long or longer.
	near := nearItems{draft.near[:0], make([]int, 0, len(draft.near))}
	n := 0
	for rec, err := range safely.Ahead(ctx, ws.Records(ctx, workspace.Select{Bare: true})) {
		if err != nil {
			return nil, err
		}
		was, row, res := &d.Results[n], &d.rows[n], j.Outcome(rec)
		row.there = rec.Result != nil && rec.Result.Outcome == manifest.Kept
		switch {
		case res.Outcome != Candidate:
			res.Split = was.Split // which is in memory once
			*was = res
		case was.Outcome == "":
			return nil, fmt.Errorf("decide about %s: its text was stored after the others had been read", rec.Key)
		default:
			row.candidate, row.odd = true, res.Detail
			if was.Outcome == manifest.Kept {
				near.items, near.at = append(near.items, draft.near[n]), append(near.at, n)
			}
		}
		n++
	}
	if err := d.markNear(ctx, near, NearRule(j.Policy)); err != nil {
		return nil, fmt.Errorf("find near-duplicates: %w", err)
	}
	for n, row := range d.rows {
		res := &d.Results[n]
		if !row.candidate {
			continue
		}
		// In flag mode a filtered row is kept, and its reason names the outcome that it would have had.
		if j.Policy.Filter.Mode == policy.Flag && res.Outcome != manifest.Kept {
			res.Outcome, res.Reason = manifest.Kept, manifest.Reason(res.Outcome)
		}
		if res.Outcome == manifest.Kept && row.odd != "" {
			res.Detail = strings.TrimPrefix(res.Detail+"; "+row.odd, "; ")
		}
	}
	d.countLeaving()
	return d, nil
}

// countLeaving counts the rows that are there and are to leave for anything but a removal.
func (d *Decisions) countLeaving() {
	kept := map[manifest.Key]bool{} // by the stored results
	for n, row := range d.rows {
		if row.there {
			kept[d.Results[n].Key] = true
		}
	}
	d.Before = len(kept)
	counts := counting{}
	for n, row := range d.rows {
		res := d.Results[n]
		replaced := res.Outcome == manifest.Duplicate && !kept[res.DuplicateOf]
		if row.there && res.Outcome != manifest.Kept && !Removes(res) && !replaced {
			counts.add(res)
		}
	}
	d.Leave = counts.list()
}

// Removes reports whether an outcome is one for which an image that was stored goes.
func Removes(res manifest.Result) bool {
	return slices.Contains([]manifest.Outcome{manifest.Removed, manifest.Deleted, manifest.Unavailable}, res.Outcome) ||
		slices.Contains(policy.ImageRemovals(), res.Reason) || res.Reason == ReasonDamaged
}

// ReasonDamaged is the reason of an entry whose stored image turned out not to be the one on record.
const ReasonDamaged manifest.Reason = "damaged_file"

// Store stores the outcomes. From then on they say which rows the dataset is to have.
func (d *Decisions) Store(ctx context.Context, ws *workspace.Workspace) error {
	if err := ws.SetResults(ctx, d.Results); err != nil {
		return fmt.Errorf("store the outcomes: %w", err)
	}
	return AddStandIns(ctx, ws, d.standIns)
}

// markNear applies the near-duplicate rule to the candidates.
func (d *Decisions) markNear(ctx context.Context, all nearItems, rule dedupe.Rule) error {
	found, spared, err := dedupe.KeepAndSpare(ctx, all.items, rule)
	if err != nil {
		return err
	}
	d.Spared = spared // for the summary, which says what the guard would change
	for i, near := range found {
		if near.Of >= 0 {
			res := &d.Results[all.at[i]]
			res.Outcome, res.Reason, res.DuplicateOf = manifest.Duplicate, manifest.Reason(near.Class),
				d.Results[all.at[near.Of]].Key
			res.Detail = fmt.Sprintf("%d bits and %d words apart", near.HashDistance, near.WordDistance)
		}
	}
	return nil
}

// read notes what the row of a record is made of.
func (r *rowFacts) read(rec workspace.Record, p policy.Policy) error {
	text := ShownReading(*rec.Reading, p).Text
	r.bytes = dataset.RowBytes(rec.Image.Bytes, int64(len(rec.Reading.Text)))
	// When any of these changes, the dataset is written again.
	made, err := json.Marshal([]any{rec.Entry, rec.Image, text, rec.Reading.Confidence})
	r.digest = sha256.Sum256(made)
	return err
}

// All yields the results in manifest order.
func (d *Decisions) All() iter.Seq2[manifest.Result, error] { return withoutError(d.Results) }

func withoutError(results []manifest.Result) iter.Seq2[manifest.Result, error] {
	return func(yield func(manifest.Result, error) bool) {
		for _, res := range results {
			if !yield(res, nil) {
				return
			}
		}
	}
}

// RowBytes yields how much room each kept row of a split takes in a shard.
func (d *Decisions) RowBytes(split string) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for n, res := range d.Results {
			if res.Split == split && res.Outcome == manifest.Kept && !yield(d.rows[n].bytes) {
				return
			}
		}
	}
}

// Kept yields the kept rows of a split in manifest order, and whether the dataset has each of them already.
func (d *Decisions) Kept(split string) iter.Seq2[manifest.Key, bool] {
	return func(yield func(manifest.Key, bool) bool) {
		for n, res := range d.Results {
			if res.Split == split && res.Outcome == manifest.Kept && !yield(res.Key, d.rows[n].there) {
				return
			}
		}
	}
}

// Leaving yields the rows that the dataset has and that are not kept.
func (d *Decisions) Leaving() iter.Seq[manifest.Key] {
	return func(yield func(manifest.Key) bool) {
		for n, res := range d.Results {
			if res.Outcome != manifest.Kept && d.rows[n].there && !yield(res.Key) {
				return
			}
		}
	}
}

// Because counts the entries with a reason.
func (d *Decisions) Because(reason manifest.Reason) (n int) {
	for _, res := range d.Results {
		if res.Reason == reason {
			n++
		}
	}
	return n
}

// Counts are the entries of each split by outcome.
func (d *Decisions) Counts() map[string]map[manifest.Outcome]int { return countOutcomes(d.Results) }

func countOutcomes(results []manifest.Result) map[string]map[manifest.Outcome]int {
	counts := map[string]map[manifest.Outcome]int{}
	for _, res := range results {
		if counts[res.Split] == nil {
			counts[res.Split] = map[manifest.Outcome]int{}
		}
		counts[res.Split][res.Outcome]++
	}
	return counts
}

// Inputs is the digest of everything that a dataset is made of: the decisions, the kept rows, and more.
func (d *Decisions) Inputs(more ...any) (string, error) {
	h := sha256.New()
	enc := json.NewEncoder(h)
	if err := enc.Encode(more); err != nil {
		return "", err
	}
	for n, res := range d.Results {
		line := []any{res}
		if res.Outcome == manifest.Kept { // a row that is not in the dataset may change
			line = append(line, hex.EncodeToString(d.rows[n].digest[:]))
		}
		if err := enc.Encode(line); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// NearItem is a record that was read as the near-duplicate rule compares it.
func NearItem(rec workspace.Record) dedupe.Item {
	item := dedupe.Item{Hash: dedupe.Hash{Bits: rec.Image.PHash, Flat: rec.Image.Flat},
		Tokens: dedupe.Tokens(rec.Reading.Words)}
	if item.Hash.Flat {
		item.Content = rec.Image.SHA256
	}
	if rec.Reading.Wide != nil {
		wide := dedupe.Hash256(*rec.Reading.Wide)
		item.Wide = &wide
	}
	return item
}

// NearRule is the near-duplicate rule of a policy.
func NearRule(p policy.Policy) dedupe.Rule {
	return dedupe.Rule{Radius: p.Dedupe.HashRadius, Words: p.Dedupe.WordDifference, Guard: p.Dedupe.Guard}
}

// InEnglish is the language filter's verdict on a record that was read.
func InEnglish(f *language.Filter, p policy.Policy, rec workspace.Record) language.Verdict {
	// A mask is not in the image.
	masked := func(w word.Word) bool { return language.IsMask(w.Text) }
	words := rec.Reading.Words
	if slices.ContainsFunc(words, masked) {
		words = slices.DeleteFunc(slices.Clone(words), masked)
	}
	return f.Judge(words, p.Filter.EnglishThreshold)
}
