package state

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A stand-in is a host's picture for what it does not have, which is in no list of such pictures. What came from as
// many URLs as the policy says is suspected to be one, or came so often in place of images that are stored. It is found
// again each time, so that a raised threshold brings rows back without a download; and how often it came is kept, so
// that it is no row once most posts have their own image, or are gone.

// A StandInsNote has the pictures that may be stand-ins. A workspace takes it over from its log, where that is newer
// than state.db.
type StandInsNote auditlog.Suspects

func (StandInsNote) key() string { return workspace.SuspectsKey }

// AddStandIns adds to the workspace's note.
func AddStandIns(ctx context.Context, ws *workspace.Workspace, add StandInsNote) error {
	return ws.NoteSuspects(ctx, auditlog.Suspects(add))
}

// SmallSide bounds the sides of a picture, in pixels, that stands in for others: no meme is as small.
const SmallSide = 200

// StandIns returns the entries whose stored image is suspected to be a stand-in.
func StandIns(ctx context.Context, ws *workspace.Workspace, p policy.Policy) (map[manifest.Key]bool, error) {
	found, _, err := findStandIns(ctx, ws, p)
	return found, err
}

// NotedStandIns is StandIns for pictures that a job took for stand-ins before, which read all texts.
func NotedStandIns(ctx context.Context, ws *workspace.Workspace, p policy.Policy) (map[manifest.Key]bool, error) {
	known, err := ReadNote[StandInsNote](ctx, ws)
	if err != nil {
		return nil, err
	}
	found, _, err := known.find(ctx, ws, p.Images.SuspectAfter)
	return keysOf(found), err
}

// findStandIns is StandIns, and returns what is to be noted.
func findStandIns(ctx context.Context, ws *workspace.Workspace, p policy.Policy) (map[manifest.Key]bool, StandInsNote,
	error) {
	n := p.Images.SuspectAfter
	if n == 0 {
		return nil, nil, nil
	}
	known, err := ReadNote[StandInsNote](ctx, ws)
	if err != nil {
		return nil, nil, err
	}
	shared, err := ws.SharedImages(ctx, n)
	if err != nil {
		return nil, nil, err
	}
	all := maps.Clone(known)
	if all == nil {
		all = StandInsNote{}
	}
	for digest, s := range shared {
		all[digest] = known[digest].With(auditlog.Suspect{URLs: s.Places})
	}
	found, note, err := all.find(ctx, ws, n)
	if err != nil {
		return nil, nil, err
	}
	unsure := map[string]bool{}
	for digest, s := range shared {
		if s.Known < n { // who has it from where is known when its host was asked
			unsure[digest] = !known[digest].Came(n)
			delete(note, digest)
		}
	}
	if err := spareRows(ctx, ws, found, unsure); err != nil {
		return nil, nil, err
	}
	return keysOf(found), note, nil
}

func keysOf(found map[manifest.Key]string) map[manifest.Key]bool {
	keys := make(map[manifest.Key]bool, len(found))
	for k := range found {
		keys[k] = true
	}
	return keys
}

// spareRows takes from found what has one of the unsure pictures of which a row of the dataset is: that was judged when
// it was known from where they came, as before state.db was lost.
func spareRows(ctx context.Context, ws *workspace.Workspace, found map[manifest.Key]string,
	unsure map[string]bool) error {
	maps.DeleteFunc(unsure, func(_ string, is bool) bool { return !is })
	if len(unsure) == 0 {
		return nil
	}
	names, err := ws.Files(ctx, DatasetDir)
	if err != nil {
		return err
	}
	rows := map[string]bool{}
	for _, name := range names {
		if !IsShard(name) {
			continue
		}
		if _, err := ReadRows(ctx, ws, name, rows); err != nil && ctx.Err() != nil { // a damaged file tells nothing
			return err
		}
	}
	judged := map[string]bool{}
	for k, digest := range found {
		judged[digest] = judged[digest] || unsure[digest] && rows[k.String()]
	}
	maps.DeleteFunc(found, func(_ manifest.Key, digest string) bool { return judged[digest] })
	return nil
}

// Has reports whether a picture that an entry had is suspected to be a stand-in, or a policy named it as one.
func (s StandInsNote) Has(digest string, k manifest.Key, p policy.Policy) bool {
	n, in := p.Images.SuspectAfter, s[digest]
	return in.Named || n > 0 && (in.URLs >= n || in.Replaced >= n && !slices.Contains(in.Before, k.String()))
}

// find returns the entries that have one of the pictures, which came n times, with its digest, and what is to be noted
// of these.
func (s StandInsNote) find(ctx context.Context, ws *workspace.Workspace, n int) (map[manifest.Key]string, StandInsNote,
	error) {
	var digests []string
	for digest, in := range s {
		if in.Came(n) {
			digests = append(digests, digest)
		}
	}
	if len(digests) == 0 {
		return nil, nil, nil
	}
	slices.Sort(digests)
	records, err := ws.ImagesThatCame(ctx, digests)
	if err != nil {
		return nil, nil, err
	}
	found, note := map[manifest.Key]string{}, StandInsNote{}
	for _, rec := range records {
		digest := rec.Image.OriginalSHA256
		if in := s[digest]; isOf(in, rec, n) {
			found[rec.Key], note[digest] = digest, in
		}
	}
	return found, note, nil
}

// isOf reports whether the stored image of an entry is a stand-in, if n times are enough. What many people posted is
// none: it is large, has text, and lies where they said.
func isOf(s auditlog.Suspect, rec workspace.Record, n int) bool {
	img := rec.Image
	textless := rec.Reading != nil && strings.TrimSpace(rec.Reading.Text) == ""
	looks := max(img.Width, img.Height) < SmallSide || img.Redirected || textless
	inPlace := s.Replaced >= n && !slices.Contains(s.Before, rec.Key.String())
	return (s.URLs >= n && looks || inPlace) && !Proven(rec.Entry, *img)
}

// ReasonSuspected is the reason of an entry whose stored image is suspected to be a stand-in.
const ReasonSuspected manifest.Reason = "suspected_placeholder"

// suspected is the outcome of such an entry.
func suspected(res manifest.Result, p policy.Policy) manifest.Result {
	res.Outcome, res.Reason = manifest.Placeholder, ReasonSuspected
	res.Detail = fmt.Sprintf("the same bytes came from %d or more different URLs", p.Images.SuspectAfter)
	return res
}

// WasSuspected reports whether the last job suspected the stored image of an entry.
func WasSuspected(rec workspace.Record) bool {
	return rec.Image != nil && rec.Result != nil && rec.Result.Reason == ReasonSuspected
}
