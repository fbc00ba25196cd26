package state

import (
	"context"
	"maps"
	"slices"
	"strings"

	"rehydrate/manifest"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A stand-in is a host's picture for what it does not have, which is in no list of such pictures. What came from as
// many URLs as the policy says is suspected to be one, or came so often in place of images that are stored. It is found
// again each time, so that a raised threshold brings rows back without a download; and how often it came is kept, so
// that it is no row once most posts have their own image, or are gone.

// A StandInsNote has the pictures that may be stand-ins, by the SHA-256 of the file that came.
type StandInsNote map[string]StandIn

// A StandIn says how often a picture came, at most.
type StandIn struct {
	URLs     int `json:"urls,omitempty"`     // that it is stored from at the same time, of live posts
	Replaced int `json:"replaced,omitempty"` // stored images for which it came instead in one run
}

func (StandInsNote) key() string { return "stand_ins" }

// AddStandIns adds to the workspace's note.
func AddStandIns(ctx context.Context, ws *workspace.Workspace, add StandInsNote) error {
	known, err := ReadNote[StandInsNote](ctx, ws)
	if err != nil || len(add) == 0 {
		return err
	}
	all := maps.Clone(known)
	if all == nil {
		all = StandInsNote{}
	}
	for digest, s := range add {
		all[digest] = StandIn{max(s.URLs, all[digest].URLs), max(s.Replaced, all[digest].Replaced)}
	}
	if maps.Equal(all, known) {
		return nil
	}
	return WriteNote(ctx, ws, all)
}

// SmallSide bounds the sides of a picture, in pixels, that stands in for others: no meme is as small.
const SmallSide = 200

// StandIns returns the entries whose stored image is suspected to be a stand-in.
func StandIns(ctx context.Context, ws *workspace.Workspace, p policy.Policy) (map[manifest.Key]bool, error) {
	found, _, err := findStandIns(ctx, ws, p)
	return found, err
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
	often := StandInsNote{}
	for digest, urls := range shared {
		often[digest] = StandIn{max(urls, known[digest].URLs), known[digest].Replaced}
	}
	for digest, s := range known {
		if s.URLs >= n || s.Replaced >= n {
			often[digest] = StandIn{max(s.URLs, shared[digest]), s.Replaced}
		}
	}
	if len(often) == 0 {
		return nil, nil, nil
	}
	records, err := ws.ImagesThatCame(ctx, slices.Sorted(maps.Keys(often)))
	if err != nil {
		return nil, nil, err
	}
	found, note := map[manifest.Key]bool{}, StandInsNote{}
	for _, rec := range records {
		s := often[rec.Image.OriginalSHA256]
		if standsIn(rec, s.Replaced >= n) {
			found[rec.Key], note[rec.Image.OriginalSHA256] = true, s
		}
	}
	return found, note, nil
}

// standsIn reports whether a picture that came often stands in for the image of an entry. What many people posted does
// not: it is large, has text, lies where they said, and came in place of no other.
func standsIn(rec workspace.Record, replaced bool) bool {
	img := rec.Image
	stands := replaced || max(img.Width, img.Height) < SmallSide || img.Redirected ||
		strings.TrimSpace(rec.Reading.Text) == ""
	return stands && !Proven(rec.Entry, *img)
}

// ReasonSuspected is the reason of an entry whose stored image is suspected to be a stand-in.
const ReasonSuspected manifest.Reason = "suspected_placeholder"

// WasSuspected reports whether the last job suspected the stored image of an entry.
func WasSuspected(rec workspace.Record) bool {
	return rec.Image != nil && rec.Result != nil && rec.Result.Reason == ReasonSuspected
}
