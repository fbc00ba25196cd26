package state

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/reddit/calls"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A note is a small value that the workspace keeps.
type note interface{ key() string }

// ReadNote returns the workspace's note of the type T, the zero value where there is none.
func ReadNote[T note](ctx context.Context, ws *workspace.Workspace) (T, error) {
	var n T
	// Its type says under which key it lies, so that no two notes share one.
	text, err := ws.Meta(ctx, n.key())
	if err == nil && text != "" {
		err = json.Unmarshal([]byte(text), &n)
	}
	if err != nil {
		return n, fmt.Errorf("read the workspace's note %q: %w", n.key(), err)
	}
	return n, nil
}

// WriteNote stores a note durably. One that is there already costs no write.
func WriteNote[T note](ctx context.Context, ws *workspace.Workspace, n T) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return ws.SetMeta(ctx, n.key(), string(text))
}

// ClearNote takes the note of the type T away.
func ClearNote[T note](ctx context.Context, ws *workspace.Workspace) error {
	var n T
	return ws.SetMeta(ctx, n.key(), "")
}

// An ExportNote says what the last export wrote: the digest of all that went in, the files, and what copies need for
// their cards.
type ExportNote struct {
	Inputs string           `json:"inputs"` // "" after rows were taken out: the next run writes it again
	Files  []workspace.File `json:"files"`
	Card   *dataset.Card    `json:"card,omitempty"` // nil: no export has ended
	// Next are the digests, by name, of files that are to take the place of others: after a kill either is the right
	// one.
	Next map[string]string `json:"next,omitempty"`
}

// Wrote reports whether f is a file that the last export wrote, or what a removal made of it.
func (n ExportNote) Wrote(f workspace.File) bool {
	return slices.Contains(n.Files, f) || n.Next[f.Name] == f.SHA256 && f.SHA256 != ""
}

// A HostsNote has the image hosts that were in trouble, by name.
type HostsNote map[string]SickHost

// A SickHost is an image host that sent no images.
type SickHost struct {
	Since   time.Time `json:"since"`
	Picture string    `json:"picture,omitempty"` // SHA-256 of the one that it sent to everybody
}

// An UnjudgedNote says that a run stores images, or was cut off, and has not judged yet what their hosts sent.
type UnjudgedNote bool

// A LooseNote has the digests of image files without rows that the dataset had when a job left them to the next run, by
// the names of the rows.
type LooseNote map[string]string

// A LaterNote is how many image files the last job left to the next run because state.db does not have their entries;
// below zero where no job has counted them since state.db or the log came from a backup.
type LaterNote int

// A MassRemovalNote is the policy's share of the live posts above which the last ones were withheld.
type MassRemovalNote float64

// A LastRun has the counters of the last run that ended. It holds no names and no addresses.
type LastRun struct {
	At         time.Time     `json:"at"` // when it ended
	Elapsed    time.Duration `json:"elapsed_ns"`
	Unverified int           `json:"unverified"` // of it, or of a purge that asked later
	Looks      Looks         `json:"looks"`
	Calls      calls.Counts  `json:"calls"`
}

// A LastReread has the counts of the last re-reading that ended.
type LastReread struct {
	At       time.Time `json:"at"` // when it ended
	Read     int       `json:"read"`
	Changed  int       `json:"changed"`
	Gained   int       `json:"words_gained"`
	Lost     int       `json:"words_lost"`
	Outcomes int       `json:"outcomes"`
}

// An OCRRate says how many images a second the last re-reading read.
type OCRRate float64

// A PolicyNote is the policy of the last run, with the images.allow_same_as_removed of the last job.
type PolicyNote struct{ policy.Policy }

// An ApprovalNote is the approval by which the last run asked Reddit. A removal may go by it when there is no other.
type ApprovalNote struct {
	Reference string    `json:"reference"`
	Ends      time.Time `json:"ends,omitzero"` // zero where it is not known: --approval does not say
}

// An EndedNote says that the workspace was ended (pipeline.End), until a run begins anew.
type EndedNote struct {
	At         time.Time `json:"at"`
	Unfinished bool      `json:"unfinished,omitempty"` // it was killed
}

// A LiftedNote has the tombstones that were lifted, in the order of the lifting.
type LiftedNote []TombstoneEntry

// A RevocationsNote is the highest serial of a revocation list that a job has seen.
type RevocationsNote int64

// A MergedNote says of which release the last shards were taken in, by the digests of its settings and its annotations.
type MergedNote struct {
	Release  string `json:"release"`
	Manifest string `json:"manifest"`
}

func (ExportNote) key() string      { return "export" }
func (HeardNote) key() string       { return workspace.HeardKey }
func (HostsNote) key() string       { return "sick_hosts" }
func (UnjudgedNote) key() string    { return "unjudged_hosts" }
func (LooseNote) key() string       { return "loose_images" }
func (LaterNote) key() string       { return workspace.LaterKey }
func (MergedNote) key() string      { return "merged" }
func (MassRemovalNote) key() string { return "mass_removal_share" }
func (LastRun) key() string         { return "last_run" }
func (LastReread) key() string      { return "last_reread" }
func (OCRRate) key() string         { return "ocr_rate" }
func (PolicyNote) key() string      { return "policy" }
func (ApprovalNote) key() string    { return "approval" }
func (EndedNote) key() string       { return "ended" }
func (LiftedNote) key() string      { return "lifted" }
func (RevocationsNote) key() string { return "revocations_serial" }

// LastPolicy returns the policy that the workspace was last run under, the default one before the first run.
func LastPolicy(ctx context.Context, ws *workspace.Workspace) (policy.Policy, error) {
	text, err := ws.Meta(ctx, PolicyNote{}.key())
	if err != nil || text == "" {
		return policy.Default(), err
	}
	n, err := ReadNote[PolicyNote](ctx, ws)
	return n.Policy, err
}

// SeenRevocations returns the serial of the newest revocation list of the release that was seen here, 0 for none.
func SeenRevocations(ctx context.Context, ws *workspace.Workspace, release string) (int64, error) {
	b, bound, err := ws.Binding(ctx)
	if err != nil || bound && b.Release != release { // the serials of another release say nothing
		return 0, err
	}
	n, err := ReadNote[RevocationsNote](ctx, ws)
	return int64(n), err
}
