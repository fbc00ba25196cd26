// Package state says what a workspace means: its notes, which tombstones hold, what is kept and why, which posts must
// be gone, what registered copies owe, and what a summary says. Run, purge, re-reading, export, report and audit call
// it alike, so that they never differ. The same workspace, policy and time give the same answers.
package state

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	"rehydrate/internal/printable"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
)

// Names in a workspace, as its files call them.
const (
	StateFile   = "state.db"
	JournalFile = "state.db-journal"
	LockFile    = "lock"
	LogKeyFile  = "log.key"
	PolicyFile  = "policy.toml" // the policy of a release that has none
	SealFile    = "audit/seal.json"
	AuditDir    = "audit"
	ImagesDir   = "images"
	DatasetDir  = "dataset"
	ShardsDir   = "shards" // what a cluster has to read, and what it read (package cluster)
)

// ErrInterrupted is returned by what was asked to stop. What it had done is stored.
var ErrInterrupted = errors.New("interrupted: run the same command again to go on")

// IsShard reports whether a name of the workspace is one that a run gives a Parquet file of the dataset.
func IsShard(name string) bool {
	// A file that somebody put beside them says nothing about the rows of the dataset.
	inDataset, ok := strings.CutPrefix(name, DatasetDir+"/")
	_, shard := dataset.SplitOf(inDataset)
	return ok && shard
}

// IsOfDataset reports whether a name of the workspace is one that a run gives a file of the dataset.
func IsOfDataset(name string) bool {
	return IsShard(name) || name == DatasetDir+"/README.md" || name == DatasetDir+"/croissant.json"
}

// RehearsalOf is the name under which a workspace holds the made-up posts of a release.
func RehearsalOf(release string) string { return rehearsalOf + release }

// IsRehearsal reports whether a workspace that is bound under this name holds made-up posts.
func IsRehearsal(bound string) bool { return strings.HasPrefix(bound, rehearsalOf) }

// ReleaseOf is the name of the release whose posts, real or made up, a workspace holds that is bound under this name.
func ReleaseOf(bound string) string { return strings.TrimPrefix(bound, rehearsalOf) }

const rehearsalOf = "rehearsal of "

// SHA256 returns the digest of body in hex.
func SHA256(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// A Conclusion is an outcome with its reason.
type Conclusion struct {
	Outcome     manifest.Outcome `json:"outcome"`
	Reason      manifest.Reason  `json:"reason"`
	Detail      string           `json:"detail,omitempty"`
	DuplicateOf string           `json:"duplicate_of,omitempty"`
}

// NewConclusion is what a result says of its entry.
func NewConclusion(r manifest.Result) Conclusion {
	c := Conclusion{Outcome: r.Outcome, Reason: r.Reason, Detail: r.Detail}
	if r.DuplicateOf.ID != "" {
		c.DuplicateOf = r.DuplicateOf.String()
	}
	return c
}

// Short is the conclusion without detail.
func (c Conclusion) Short() string {
	if c.Reason == "" {
		return string(c.Outcome)
	}
	return string(c.Outcome) + ", " + string(c.Reason)
}

// DiffWords gives the words that the new text has more often than the old one, and the other way round, in order.
func DiffWords(before, after string) (gained, lost []string) {
	return without(after, before), without(before, after)
}

// without returns the words of text minus those of others, as multisets.
func without(text, others string) []string {
	have := map[string]int{}
	for w := range strings.FieldsSeq(others) {
		have[w]++
	}
	left := []string{}
	for w := range strings.FieldsSeq(text) {
		have[w]-- // a word that stands twice in one text and once in the other is left once
		if have[w] < 0 {
			left = append(left, printable.Text(w))
		}
	}
	return left
}
