// Package auditlog is the log of what was asked, fetched, erased, exported and audited: a list of
// records that can grow and cannot be changed unnoticed.
//
// It is one file that only grows, and a signed checkpoint (golang.org/x/mod/sumdb/note) with the size and root of the
// Merkle tree of RFC 6962 over its lines. In the folder of the log:
//
//	records.jsonl   the records, one JSON line each
//	checkpoint      the signed note: origin, number of records, root hash in base64
//	log.pub         the key that verifies it
//
// What lies beyond the checkpoint does not count yet. It proves that the records are those of the checkpoint, in
// number, order and content (Log.Verify), and that a checkpoint that an auditor kept covers a beginning of the same
// list (Log.Since). Whoever holds the key can write another history, but not one that agrees with a checkpoint
// elsewhere.
//
// No record holds content, a user name, a title, a URL or the name of a subreddit: there is room for post ids,
// lower-case words and digests. The ids of removed posts stay. The package works over a Store.
package auditlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"rehydrate/internal/jsonscan"
	"rehydrate/internal/printable"
	"rehydrate/manifest"
)

// A Kind says what a record is about. The list is closed.
type Kind string

// Kinds of records, with the fields of Event that each fills beside Seq, Time and Kind.
const (
	Run        Kind = "run"         // Phase, Tool, Release, Manifest, Policy; Verdict at its end: done, interrupted...
	Verdicts   Kind = "verdicts"    // Posts: what Reddit said, one record for each answer
	Fetch      Kind = "fetch"       // Posts (one), Image, SHA256 of the stored file, Original, Pixels, Source
	Withheld   Kind = "withheld"    // Posts that are gone, as a mass removal that waits for a confirmation
	Confirmed  Kind = "confirmed"   // Posts of a mass removal that the operator confirmed
	Buried     Kind = "tombstone"   // Posts that must not come back
	Readmitted Kind = "readmitted"  // Posts whose tombstone is suspended; with Verdict Revoked: holds again
	Lifted     Kind = "lifted"      // Posts whose tombstone a maintainer's statement took away, SHA256 of that
	Erased     Kind = "erased"      // Posts whose content, or image Image, the workspace no longer has
	Export     Kind = "export"      // Files of the dataset, with rows
	Copy       Kind = "copy"        // Path, Note, Format, Files: a copy that was registered
	CopyPurged Kind = "copy_purged" // Path, Posts that left it, Files as they are now; Verdict told: only the holder can
	Disclosed  Kind = "disclosed"   // Path (of the third party's name), Format, Posts that it is sent, SHA256 of its host
	Purge      Kind = "purge"       // Phase, Posts that were purged, Files before (Old) and after
	Audit      Kind = "audit"       // Verdict, SHA256 of the report, Posts of which it heard, Image, CutOff
	Suspected  Kind = "suspected"   // Original of a picture that may stand in for others; Verdict, Size, Image, Posts
	Restored   Kind = "restored"    // Verdict (see below), Size and Root of the log that the workspace knew
)

// Verdicts of a Restored record: which part is older than the rest, or has another history.
const (
	RestoredState      = "state"      // state.db is older than the log
	RestoredLog        = "log"        // the log is older than state.db, or gone: records are lost
	RestoredCheckpoint = "checkpoint" // the checkpoint was, and the records were there
	RestoredOther      = "other_log"  // neither continues the other
	RestoredKey        = "key"        // the key was gone, and there is a new one
	RestoredChanged    = "changed"    // state.db is as old as the log, and not as its last writer left it
)

var kinds = []Kind{Run, Verdicts, Fetch, Withheld, Confirmed, Buried, Readmitted, Lifted, Erased, Export, Copy,
	CopyPurged, Disclosed, Purge, Audit, Suspected, Restored}

// Revoked is the verdict of a Readmitted record of posts whose tombstone holds again.
const Revoked = "revoked"

// LeftManifest is the verdict of an Erased record of images whose entries the manifest no longer has, all with the same
// number in their posts. Logs of before have no number there.
const LeftManifest = "left_manifest"

// StandIn is the verdict of an Erased record of what a host in trouble sent in place of everything: what its Fetch
// record says was never the picture of the post. It has the digests of that.
const StandIn = "host_sends_no_images"

// Phases of what takes time.
const Started, Ended = "started", "ended"

// MaxPosts and MaxFiles bound the lists of a record.
const MaxPosts, MaxFiles = 100, 100

// maxLine is the length that no line reaches, in bytes.
const maxLine = 64 << 10

// An Event is the content of one record. Empty fields are left out of the line.
type Event struct {
	Seq      int64     `json:"seq"`  // place in the log, from 0; the log sets it
	Time     time.Time `json:"time"` // UTC, to the second
	Kind     Kind      `json:"kind"`
	Phase    string    `json:"phase,omitempty"`
	Verdict  string    `json:"verdict,omitempty"` // a lower_case_word
	CutOff   bool      `json:"cut_off,omitempty"` // of an audit that could not ask about every post
	Posts    []Post    `json:"posts,omitempty"`
	Since    time.Time `json:"since,omitzero"`            // of tombstones, UTC, to the second: a lift names them by it
	Image    int       `json:"image,omitempty"`           // which image of the post
	SHA256   string    `json:"sha256,omitempty"`          // 64 hex digits
	Original string    `json:"sha256_original,omitempty"` // of an image as it was downloaded, 64 hex digits
	Pixels   string    `json:"sha256_pixels,omitempty"`   // picture.PixelDigest of it
	Source   string    `json:"source,omitempty"`          // sha256 hex of the URL that an image came from, never the URL
	Path     string    `json:"path,omitempty"`            // sha256 hex of a path, never the path
	Note     string    `json:"note,omitempty"`            // of the operator: who has the copy
	Format   string    `json:"format,omitempty"`          // a lower_case_word
	Files    []File    `json:"files,omitempty"`
	Old      []File    `json:"old,omitempty"`      // what Files replaced
	Tool     string    `json:"tool,omitempty"`     // version of the program
	Release  string    `json:"release,omitempty"`  // sha256 hex of release.toml and manifest
	Manifest string    `json:"manifest,omitempty"` // sha256 hex
	Policy   string    `json:"policy,omitempty"`   // sha256 hex
	Size     int64     `json:"size,omitempty"`     // records of a log; how often a suspected picture came
	Root     string    `json:"root,omitempty"`     // its root hash, base64
}

// A Post is a post in a record. State and reason are empty where the kind says all there is to say.
type Post struct {
	ID     manifest.PostID
	State  manifest.PostState
	Reason manifest.Reason
}

// A File is a file in a record. Name is relative to the workspace, or to the copy.
type File struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"` // hex; empty when the file is gone
	Rows   int64  `json:"rows,omitempty"`
}

// MarshalJSON writes a post as [id, state, reason].
func (p Post) MarshalJSON() ([]byte, error) {
	return json.Marshal([3]string{string(p.ID), string(p.State), string(p.Reason)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (p *Post) UnmarshalJSON(b []byte) error {
	var parts [3]string // a list of another length is written differently, which ParseLine finds
	err := json.Unmarshal(b, &parts)
	*p = Post{ID: manifest.PostID(parts[0]), State: manifest.PostState(parts[1]), Reason: manifest.Reason(parts[2])}
	return err
}

// check returns why an event can't be a record, or nil.
func (e Event) check() error {
	switch {
	case !slices.Contains(kinds, e.Kind):
		return errors.New("this program knows no such kind: if a newer rehydrate wrote the log, check it with that one")
	case min(e.Seq, e.Size, int64(e.Image)) < 0:
		return errors.New("a number is below 0")
	case e.Time.IsZero() || e.Time != e.Time.UTC().Truncate(time.Second):
		return errors.New("the time is not in UTC, to the second")
	case e.Since != e.Since.UTC().Truncate(time.Second):
		return errors.New("since is not in UTC, to the second")
	case e.Since.IsZero() == (e.Kind == Buried):
		return errors.New("since is the time of tombstones, and of nothing else")
	case e.Phase != "" && e.Phase != Started && e.Phase != Ended:
		return fmt.Errorf("phase %q is neither started nor ended", e.Phase)
	case len(e.Posts) > MaxPosts:
		return fmt.Errorf("%d posts, and there is room for %d", len(e.Posts), MaxPosts)
	case len(e.Files) > MaxFiles || len(e.Old) > MaxFiles:
		return fmt.Errorf("%d and %d files, and there is room for %d", len(e.Files), len(e.Old), MaxFiles)
	case !plain(e.Note, 200) || !plain(e.Tool, 100) || !plain(e.Root, 64):
		return errors.New("a note, a version or a root is too long or not plain text")
	}
	// Whatever else a record holds is a word or a digest, so it has no room for a name, a title or a URL.
	words := []string{e.Verdict, e.Format}
	digests := []string{e.SHA256, e.Original, e.Pixels, e.Source, e.Path, e.Release, e.Manifest, e.Policy}
	for _, p := range e.Posts {
		// An id has no underscore, and is no longer than 64 bits need.
		if len(p.ID) < 1 || len(p.ID) > 13 || !isWord(string(p.ID)) || strings.Contains(string(p.ID), "_") {
			return fmt.Errorf("%q is not a post id", string(p.ID))
		}
		words = append(words, string(p.State), string(p.Reason))
	}
	for _, f := range slices.Concat(e.Files, e.Old) {
		// A path that leads out of its folder could name a user.
		if !fs.ValidPath(f.Name) || f.Name == "." || !plain(f.Name, 200) || f.Rows < 0 {
			return fmt.Errorf("%q is not a file", f.Name)
		}
		digests = append(digests, f.SHA256)
	}
	if i := slices.IndexFunc(words, func(s string) bool { return !isWord(s) }); i >= 0 {
		return fmt.Errorf("%q is not a lower-case word", words[i])
	}
	if i := slices.IndexFunc(digests, func(s string) bool { return !isDigest(s) }); i >= 0 {
		return fmt.Errorf("%q is not a sha256 digest", digests[i])
	}
	return nil
}

// Word returns s if it is a lower_case_word, and "other" if it is not: for what comes from outside.
func Word[S ~string](s S) S {
	if !isWord(string(s)) {
		return "other"
	}
	return s
}

// isWord reports whether s is empty or a lower_case_word.
func isWord(s string) bool {
	return len(s) <= 100 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// isDigest reports whether s is empty or 64 hex digits.
func isDigest(s string) bool {
	return s == "" || len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// plain reports whether s is at most limit bytes of printable text on one line.
func plain(s string, limit int) bool {
	// An auditor reads it on a terminal, which must not be steered, and text must not be turned around.
	return len(s) <= limit && printable.Is(s)
}

// Line returns the record of an event: JSON, with its line end.
func (e Event) Line() ([]byte, error) {
	err := e.check()
	var line []byte
	if err == nil {
		line, err = jsonscan.Marshal(e) // a check outside Go writes < as it is
	}
	line = append(line, '\n')
	if err == nil && len(line) >= maxLine {
		err = fmt.Errorf("%d bytes, and there is room for %d", len(line), maxLine)
	}
	if err != nil {
		return nil, fmt.Errorf("record of kind %q: %w", string(e.Kind), err)
	}
	return line, nil
}

// ParseLine reads a record. A line that Event.Line would not write, byte for byte, is refused.
func ParseLine(line []byte) (Event, error) {
	var e Event
	// The length comes first: deep nesting costs memory.
	if len(line) >= maxLine {
		return e, fmt.Errorf("a record of %d bytes, and there is room for %d", len(line), maxLine)
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return Event{}, fmt.Errorf("read a record: %w", err)
	}
	again, err := e.Line()
	// Whatever json.Unmarshal forgives shows here: unknown and doubled fields, blanks, what follows.
	if err == nil && !bytes.Equal(again, line) {
		err = errors.New("it is not written as a record is: it was changed, or a newer rehydrate wrote it")
	}
	if err != nil {
		return Event{}, fmt.Errorf("read a record: %w", err)
	}
	return e, nil
}
