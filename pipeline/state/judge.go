package state

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"
	"strings"
	"time"

	"rehydrate/dedupe"
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

// ReasonTakedown is the reason of a post that was purged by request.
const ReasonTakedown manifest.Reason = "takedown"

// A Judge turns what is stored of an entry into its outcome.
type Judge struct {
	Policy     policy.Policy
	Tombstones Holding
	Now        time.Time
	AnyAge     bool                  // rows pass whose posts were seen live too long ago
	shared     map[manifest.Key]bool // whose image came from too many URLs: the policy takes it for a stand-in
}

// StoredJudge judges by the tombstones and the policy that the workspace has on record.
func StoredJudge(ctx context.Context, ws *workspace.Workspace, now time.Time) (Judge, error) {
	p, err := lastPolicy(ctx, ws)
	if err != nil {
		return Judge{}, err
	}
	stones, err := HoldingTombstones(ctx, ws)
	if err != nil {
		return Judge{}, err
	}
	j := Judge{Policy: p, Tombstones: stones, Now: now}
	return j, j.findShared(ctx, ws)
}

func (j *Judge) findShared(ctx context.Context, ws *workspace.Workspace) (err error) {
	// Found again each time: a raised threshold brings rows back without a download.
	if n := j.Policy.Images.SuspectAfter; n > 0 {
		var shared []workspace.Record
		shared, err = ws.SharedImages(ctx, n)
		j.shared = unproven(shared)
	}
	return err
}

func unproven(shared []workspace.Record) map[manifest.Key]bool {
	found := make(map[manifest.Key]bool, len(shared))
	for _, rec := range shared {
		found[rec.Key] = !Proven(rec.Entry, *rec.Image)
	}
	return found
}

// Outcome returns the outcome that an entry has by itself, or Candidate.
func (j Judge) Outcome(rec workspace.Record) manifest.Result {
	res := manifest.Result{Key: rec.Key, Split: rec.Split}
	// A tombstone outweighs whatever Reddit says: what was deleted by its author does not come back.
	if stone, ok := j.Tombstones[rec.Key.ID]; ok {
		res.Outcome, res.Reason = manifest.Outcome(stone.State), "tombstone"
		switch {
		case rec.Post.State == stone.State:
			res.Reason = rec.Post.Reason // what Reddit says now, while it agrees
		case stone.Reason == ReasonTakedown:
			res.Reason = ReasonTakedown
		}
		return res
	}
	p := rec.Post
	switch p.State {
	case "":
		res.Outcome = manifest.Pending
		return res
	case manifest.StateUnknown:
		res.Outcome, res.Reason = manifest.Failed, p.Reason
		return res
	case manifest.StateRemoved, manifest.StateDeleted, manifest.StateUnavailable:
		res.Outcome, res.Reason = manifest.Outcome(p.State), p.Reason
		if p.Withheld {
			res.Detail = "withheld, not erased yet"
		}
		return res
	case manifest.StateHeld:
		res.Outcome, res.Reason = manifest.Refused, p.Reason
		return res
	}
	// From here on the post is live. A row needs an image that was read, and an answer that came after the image.
	switch {
	case !p.AbsentAt.IsZero():
		res.Outcome, res.Reason = manifest.Failed, "absent_once"
	case rec.Image == nil && rec.Trouble != nil:
		res.Outcome, res.Reason, res.Detail = rec.Trouble.Outcome, rec.Trouble.Reason, rec.Trouble.Detail
	case rec.Image != nil && j.shared[rec.Key]:
		res.Outcome, res.Reason = manifest.Placeholder, "suspected_placeholder"
		res.Detail = fmt.Sprintf("the same bytes came from %d or more different URLs", j.Policy.Images.SuspectAfter)
	case rec.Image == nil || rec.Reading == nil:
		res.Outcome = manifest.Pending
	case rec.Reading.Failed != nil:
		t := rec.Reading.Failed
		res.Outcome, res.Reason, res.Detail = t.Outcome, t.Reason, t.Detail
	case p.Unseen:
		// Removed between the answer and the download, perhaps: the image alone proves nothing.
		res.Outcome, res.Reason = manifest.Failed, "not_rechecked"
		res.Detail = "not seen live since its image was fetched"
	case !j.AnyAge && j.Policy.Stale(p.LiveAt, j.Now):
		res.Outcome, res.Reason = manifest.Failed, "not_rechecked"
		res.Detail = "last seen live longer ago than the policy's recheck_within"
	default:
		res.Outcome = Candidate
	}
	return res
}

// Proven reports whether a digest of the manifest says that an image is the one that was labelled.
func Proven(e manifest.Entry, img workspace.Image) bool {
	// The sha256 may be that of the image as it was downloaded, or as it is stored.
	return e.SHA256 != "" && (e.SHA256 == img.OriginalSHA256 || e.SHA256 == img.SHA256) ||
		e.StrippedSHA256 != "" && e.StrippedSHA256 == img.SHA256 || e.PixelsSHA256 != "" && e.PixelsSHA256 == img.PixelsSHA256
}

// Known is the outcome of an entry as far as it is settled: pending when it was not judged beside the others yet.
func (j Judge) Known(rec workspace.Record) manifest.Result {
	res := j.Outcome(rec)
	if res.Outcome != Candidate {
		return res
	}
	// What needs the other entries is as the last Decide left it.
	decided := []manifest.Outcome{manifest.Kept, manifest.Duplicate, manifest.NotEnglish, manifest.Unreadable}
	if rec.Result != nil && slices.Contains(decided, rec.Result.Outcome) {
		return *rec.Result
	}
	res.Outcome = manifest.Pending
	return res
}

// Decisions are the outcomes of all entries, with what the dataset of the kept ones is made of.
type Decisions struct {
	Results []manifest.Result // in manifest order
	Gone    GoneSet           // posts that are gone, also withheld ones, or have a tombstone
	Spared  int               // duplicates that the policy's dedupe.guard would keep
	rows    []rowFacts        // by place in Results
}

// rowFacts are of an entry that could be a row of the dataset.
type rowFacts struct {
	candidate, admitted bool
	digest              [sha256.Size]byte // of all that the row is made of
	bytes               int64             // that it takes in a shard
}

// A Draft is what can be decided before it is known which posts are live: what was read, and what the language filter says
// of it. Its lists are in manifest order.
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
	// Room for all at once: lists that grow are in memory twice while they are copied. And each word once.
	d := &Draft{make([]manifest.Result, 0, entries), make([]rowFacts, 0, entries), make([]dedupe.Item, 0, entries), 0}
	words, images, seed := map[string]string{}, map[uint64]int{}, maphash.MakeSeed()
	for rec, err := range safely.Ahead(ctx, ws.Records(ctx, workspace.Select{WithWords: true})) {
		if err != nil {
			return nil, err
		}
		if rec.Image != nil {
			digest := maphash.String(seed, rec.Image.OriginalSHA256)
			images[digest]++
			d.most = max(d.most, images[digest])
		}
		res, row, item := manifest.Result{Key: rec.Key, Split: same(words, rec.Split)}, rowFacts{}, dedupe.Item{}
		if rec.Image != nil && rec.Reading != nil && rec.Reading.Failed == nil {
			if err := row.read(rec, p); err != nil {
				return nil, err
			}
			v := InEnglish(f, p, rec)
			if v.Outcome == "" {
				item = nearItem(rec, words)
			} else {
				res.Detail = fmt.Sprintf("%.0f %% of %d words are in the English dictionary", 100*v.Hit, v.Tokens)
			}
			res.Outcome, res.Reason = cmp.Or(v.Outcome, manifest.Kept), v.Reason // of a kept entry: no text, or too short to tell
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

func (n *nearItems) add(item dedupe.Item, at int) {
	n.items, n.at = append(n.items, item), append(n.at, at)
}

// Decide gives every entry its outcome and stores them all. It uses up the draft, which has all readings of the workspace.
// admit, where it is not nil, says which rows may be in the dataset: one that may not is pending instead of kept, and no
// other row gives way to it.
func (j Judge) Decide(ctx context.Context, ws *workspace.Workspace, draft *Draft, admit func(workspace.Record) bool) (*Decisions, error) {
	if draft.most >= j.Policy.Images.SuspectAfter { // else SQLite would sort all digests in vain, in 100 bytes of each
		if err := j.findShared(ctx, ws); err != nil {
			return nil, err
		}
	}
	d := &Decisions{Gone: GoneSet{}, Results: draft.results, rows: draft.rows}
	// The list of those that are compared grows in the place of the list of all, which is as long or longer.
	near, last := nearItems{draft.near[:0], make([]int, 0, len(draft.near))}, nearItems{}
	for id, t := range j.Tombstones {
		d.Gone[id] = GonePost{id, t.State, t.Reason}
	}
	// The rule keeps the first of a group: what may not stay comes last.
	n, seed := 0, maphash.MakeSeed()
	var stored, decided uint64 // sums of all results
	sum := func(all uint64, res manifest.Result) uint64 { return 31*all + maphash.Comparable(seed, res) }
	for rec, err := range safely.Ahead(ctx, ws.Records(ctx, workspace.Select{Bare: true})) {
		if err != nil {
			return nil, err
		}
		if rec.Post.State.Gone() {
			d.Gone[rec.ID] = GonePost{rec.ID, rec.Post.State, rec.Post.Reason}
		}
		if rec.Result != nil { // without one it is another sum, because now there will be one
			stored = sum(stored, *rec.Result)
		}
		was, row, res := &d.Results[n], &d.rows[n], j.Outcome(rec)
		switch {
		case res.Outcome != Candidate:
			res.Split = was.Split // which is in memory once
			*was = res
		case was.Outcome == "":
			return nil, fmt.Errorf("decide about %s: its text was stored after the others had been read", rec.Key)
		default:
			row.candidate, row.admitted = true, admit == nil || admit(rec)
			if was.Outcome == manifest.Kept && row.admitted {
				near.add(draft.near[n], n)
			} else if was.Outcome == manifest.Kept {
				last.add(draft.near[n], n)
			}
		}
		n++
	}
	near.items, near.at = append(near.items, last.items...), append(near.at, last.at...)
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
		if res.Outcome == manifest.Kept && !row.admitted {
			*res = manifest.Result{Key: res.Key, Split: res.Split, Outcome: manifest.Pending}
		}
	}
	for _, res := range d.Results {
		decided = sum(decided, res)
	}
	if decided == stored { // most often, and writing them costs as much as a request
		return d, nil
	}
	if err := ws.SetResults(ctx, d.Results); err != nil {
		return nil, fmt.Errorf("store the outcomes: %w", err)
	}
	return d, nil
}

// markNear applies the near-duplicate rule to the candidates.
func (d *Decisions) markNear(ctx context.Context, all nearItems, rule dedupe.Rule) error {
	found, err := dedupe.KeepFirst(ctx, all.items, rule)
	if err != nil {
		return err
	}
	// For the summary, which says what the guard would change.
	d.Spared, err = dedupe.Spared(ctx, all.items, rule, found)
	if err != nil {
		return err
	}
	for i, near := range found {
		if near.Of >= 0 {
			res := &d.Results[all.at[i]]
			res.Outcome, res.Reason, res.DuplicateOf = manifest.Duplicate, manifest.Reason(near.Class), d.Results[all.at[near.Of]].Key
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
func (d *Decisions) All() iter.Seq2[manifest.Result, error] {
	return func(yield func(manifest.Result, error) bool) {
		for _, res := range d.Results {
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

// Counts are the entries of each split by outcome.
func (d *Decisions) Counts() map[string]map[manifest.Outcome]int {
	counts := map[string]map[manifest.Outcome]int{}
	for _, res := range d.Results {
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
	item := dedupe.Item{Hash: dedupe.Hash{Bits: rec.Image.PHash, Flat: rec.Image.Flat}, Tokens: dedupe.Tokens(rec.Reading.Words)}
	if item.Hash.Flat {
		item.Content = rec.Image.SHA256
	}
	if rec.Reading.Wide != nil {
		wide := dedupe.Hash256(*rec.Reading.Wide)
		item.Wide = &wide
	}
	return item
}

// nearItem is NearItem with words that all items share.
func nearItem(rec workspace.Record, words map[string]string) dedupe.Item {
	item := NearItem(rec)
	tokens := make([]string, len(item.Tokens)) // without room for more
	for i, token := range item.Tokens {
		tokens[i] = same(words, token)
	}
	item.Tokens = tokens
	return item
}

// same returns a text as it was met first, so that it is in memory once.
func same(met map[string]string, text string) string {
	if _, ok := met[text]; !ok {
		text = strings.Clone(text)
		met[text] = text
	}
	return met[text]
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
