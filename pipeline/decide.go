package pipeline

import (
	"context"
	"fmt"
	"iter"
	"time"

	"rehydrate/dedupe"
	"rehydrate/manifest"
	"rehydrate/pipeline/language"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// candidate is the outcome of an entry that only the near-duplicate rule is left to judge.
const candidate manifest.Outcome = ""

// A judge turns what is stored of one entry into its outcome. It asks nobody: the same
// record gives the same outcome.
type judge struct {
	policy     policy.Policy
	tombstones map[manifest.PostID]workspace.Tombstone // those that hold
	shared     map[string]bool                         // images that came from too many URLs (workspace.SharedImages)
	now        time.Time
	// anyAge lets rows pass whose posts were seen live too long ago: they stay where they are, and
	// whoever writes a row anew has to look.
	anyAge bool
}

// judge is the outcome of a record as far as it can be told while the run goes on.
func (r *run) judge(rec workspace.Record) manifest.Result {
	return judge{policy: r.Policy, tombstones: r.buried, now: r.Now()}.outcome(rec)
}

// sharedImages are the images that the policy's suspect_after takes for stand-ins.
func sharedImages(ctx context.Context, ws *workspace.Workspace, p policy.Policy) (map[string]bool, error) {
	if p.Images.SuspectAfter == 0 {
		return nil, nil
	}
	return ws.SharedImages(ctx, p.Images.SuspectAfter)
}

// outcome returns the outcome that everything before dedupe and language decides, or
// candidate.
func (j judge) outcome(rec workspace.Record) manifest.Result {
	res := manifest.Result{Key: rec.Key, Split: rec.Split}
	if stone, ok := j.tombstones[rec.Key.ID]; ok {
		return j.buried(res, rec.Post, stone)
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
		res.Outcome, res.Reason = outcomeOf(p.State), p.Reason
		if p.Withheld {
			res.Detail = "withheld, not erased yet"
		}
		return res
	case manifest.StateHeld:
		res.Outcome, res.Reason = manifest.Refused, p.Reason
		return res
	}
	switch {
	case !p.AbsentAt.IsZero():
		res.Outcome, res.Reason = manifest.Failed, "absent_once"
	case rec.Image == nil && rec.Trouble != nil:
		res.Outcome, res.Reason, res.Detail = rec.Trouble.Outcome, rec.Trouble.Reason, rec.Trouble.Detail
	case rec.Image != nil && j.shared[rec.Image.OriginalSHA256]:
		res.Outcome, res.Reason = manifest.Placeholder, "suspected_placeholder"
		res.Detail = fmt.Sprintf("the same bytes came from %d or more different URLs", j.policy.Images.SuspectAfter)
	case rec.Image == nil || rec.Reading == nil:
		res.Outcome = manifest.Pending
	case rec.Reading.Failed != nil:
		t := rec.Reading.Failed
		res.Outcome, res.Reason, res.Detail = t.Outcome, t.Reason, t.Detail
	case p.Unseen:
		res.Outcome, res.Reason = manifest.Failed, "not_rechecked"
		res.Detail = "not seen live since its image was fetched"
	case !j.anyAge && j.policy.Stale(p.LiveAt, j.now):
		res.Outcome, res.Reason = manifest.Failed, "not_rechecked"
		res.Detail = "last seen live longer ago than the policy's recheck_within"
	default:
		res.Outcome = candidate
	}
	return res
}

// buried is the outcome of an entry whose post has a tombstone. What Reddit says now is the
// reason while it agrees; a post that came back stays out all the same.
func (j judge) buried(res manifest.Result, p workspace.Post, stone workspace.Tombstone) manifest.Result {
	res.Outcome, res.Reason = outcomeOf(stone.State), "tombstone"
	switch {
	case p.State == stone.State:
		res.Reason = p.Reason
	case stone.Reason == ReasonTakedown:
		res.Reason = ReasonTakedown
	}
	return res
}

func outcomeOf(s manifest.PostState) manifest.Outcome {
	switch s {
	case manifest.StateDeleted:
		return manifest.Deleted
	case manifest.StateUnavailable:
		return manifest.Unavailable
	default:
		return manifest.Removed
	}
}

// A near is what dedupe found of one dropped entry.
type near struct {
	of    manifest.Key
	class string
	bits  int
	words int
}

// decide gives every entry its outcome and stores them all.
func (r *run) decide(ctx context.Context) error {
	r.Progress.stage("dedupe")
	shared, err := sharedImages(ctx, r.Workspace, r.Policy)
	if err != nil {
		return err
	}
	j := judge{policy: r.Policy, tombstones: r.buried, shared: shared, now: r.Now(), anyAge: r.purge != nil}
	nears, err := r.findNear(ctx, j)
	if err != nil {
		return err
	}
	results := func(yield func(manifest.Result, error) bool) {
		for rec, err := range r.Workspace.Records(ctx, workspace.Select{WithWords: true}) {
			if err != nil {
				yield(manifest.Result{}, err)
				return
			}
			if !yield(r.conclude(j, rec, nears), nil) {
				return
			}
		}
	}
	if err := r.Workspace.SetResults(ctx, results); err != nil {
		return fmt.Errorf("store the outcomes: %w", err)
	}
	return nil
}

// findNear applies the near-duplicate rule to all entries that everything else lets pass,
// in manifest order. What a purge would not let into the dataset comes last, so that no row gives way to it.
func (r *run) findNear(ctx context.Context, j judge) (map[manifest.Key]near, error) {
	var (
		items []dedupe.Item
		keys  []manifest.Key
		stays []bool
	)
	for rec, err := range r.Workspace.Records(ctx, workspace.Select{WithWords: true}) {
		if err != nil {
			return nil, err
		}
		if j.outcome(rec).Outcome != candidate || r.inEnglish(rec).Outcome != "" {
			continue
		}
		items, keys = append(items, itemOf(rec)), append(keys, rec.Key)
		stays = append(stays, r.purge == nil || r.stays(rec))
	}
	items, keys = inOrder(items, stays), inOrder(keys, stays)
	decisions, err := dedupe.KeepFirst(ctx, items, ruleOf(r.Policy))
	if err != nil {
		return nil, fmt.Errorf("find near-duplicates: %w", err)
	}
	if r.guardSpares, err = dedupe.Spared(ctx, items, ruleOf(r.Policy), decisions); err != nil {
		return nil, fmt.Errorf("find near-duplicates: %w", err)
	}
	nears := map[manifest.Key]near{}
	for i, d := range decisions {
		if d.Of >= 0 {
			nears[keys[i]] = near{of: keys[d.Of], class: d.Class, bits: d.HashDistance, words: d.WordDistance}
		}
	}
	return nears, nil
}

// inOrder returns the elements of list that are first, and then the others.
func inOrder[T any](list []T, first []bool) []T {
	out := make([]T, 0, len(list))
	for _, now := range []bool{true, false} {
		for i, e := range list {
			if first[i] == now {
				out = append(out, e)
			}
		}
	}
	return out
}

// itemOf is a record that was read as the near-duplicate rule compares it.
func itemOf(rec workspace.Record) dedupe.Item {
	item := dedupe.Item{Hash: dedupe.Hash{Bits: rec.Image.PHash, Flat: rec.Image.Flat},
		Content: rec.Image.SHA256, Tokens: tokens(rec.Reading.Words)}
	if rec.Reading.Wide != nil {
		wide := dedupe.Hash256(*rec.Reading.Wide)
		item.Wide = &wide
	}
	return item
}

func ruleOf(p policy.Policy) dedupe.Rule {
	return dedupe.Rule{Radius: p.Dedupe.HashRadius, Words: p.Dedupe.WordDifference, Guard: p.Dedupe.Guard}
}

func (r *run) inEnglish(rec workspace.Record) language.Verdict {
	return inEnglish(r.Language, r.Policy, rec)
}

// inEnglish is the language filter's verdict on a record that was read.
func inEnglish(f *language.Filter, p policy.Policy, rec workspace.Record) language.Verdict {
	words := make([]language.Word, 0, len(rec.Reading.Words))
	for _, w := range rec.Reading.Words {
		if !language.IsMask(w.Text) {
			words = append(words, language.Word{Text: w.Text, Confidence: w.Confidence})
		}
	}
	return f.Judge(words, p.Filter.EnglishThreshold)
}

// conclude is the outcome of one entry with all that is known. In flag mode a filtered row
// is kept, and its reason names the outcome that it would have had.
func (r *run) conclude(j judge, rec workspace.Record, nears map[manifest.Key]near) manifest.Result {
	res := j.outcome(rec)
	if res.Outcome != candidate {
		return res
	}
	res.Outcome = manifest.Kept
	v := r.inEnglish(rec)
	res.Reason = v.Reason // of a kept entry: no text, or too short to tell
	if v.Outcome != "" {
		res.Outcome = v.Outcome
		res.Detail = fmt.Sprintf("%.0f %% of %d words are in the English dictionary", 100*v.Hit, v.Tokens)
	}
	if n, ok := nears[rec.Key]; ok {
		res.Outcome, res.Reason, res.DuplicateOf = manifest.Duplicate, manifest.Reason(n.class), n.of
		res.Detail = fmt.Sprintf("%d bits and %d words apart", n.bits, n.words)
	}
	if r.Policy.Filter.Mode == policy.Flag && res.Outcome != manifest.Kept {
		res.Reason = manifest.Reason(res.Outcome)
		res.Outcome = manifest.Kept
	}
	if r.purge != nil && res.Outcome == manifest.Kept && !r.stays(rec) {
		return manifest.Result{Key: rec.Key, Split: rec.Split, Outcome: manifest.Pending}
	}
	if last := rec.Result; r.withdrawing && res.Outcome == manifest.Kept && (last == nil || last.Outcome != manifest.Kept) {
		return manifest.Result{Key: rec.Key, Split: rec.Split, Outcome: manifest.Pending}
	}
	return res
}

// outcomes yields the stored results in manifest order.
func (r *run) outcomes(ctx context.Context) iter.Seq2[manifest.Result, error] {
	return func(yield func(manifest.Result, error) bool) {
		for rec, err := range r.Workspace.Records(ctx, workspace.Select{}) {
			if err == nil && rec.Result == nil {
				err = fmt.Errorf("entry %s has no outcome", rec.Key.ID)
			}
			if err != nil {
				yield(manifest.Result{}, err)
				return
			}
			if !yield(*rec.Result, nil) {
				return
			}
		}
	}
}
