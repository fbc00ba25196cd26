package auditlog

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// A Checkpoint is a signed statement of how many records a log has and what they are.
type Checkpoint struct {
	Origin string // name of the log, which is that of its key
	Size   int64  // number of records
	Root   string // root hash, base64
	Signed []byte // the note as it was signed
}

// maxCheckpoint is more than a checkpoint has, in bytes; maxRecords more than a log ever gets. Near
// the end of int64 the arithmetic of trees overflows, and does not end.
const (
	maxCheckpoint = 4096
	maxRecords    = 1 << 40
)

// errOtherKey means that a checkpoint is well formed and signed with none of the keys that it may
// be signed with.
var errOtherKey = errors.New("it is signed with another key")

// ParseCheckpoint reads a signed checkpoint and returns it with the one of keys that signed it.
func ParseCheckpoint(signed []byte, keys ...string) (Checkpoint, string, error) {
	if len(signed) > maxCheckpoint {
		return Checkpoint{}, "", fmt.Errorf("it has more than %d bytes", maxCheckpoint)
	}
	for _, key := range keys {
		verifier, err := note.NewVerifier(key)
		if err != nil {
			return Checkpoint{}, "", fmt.Errorf("the key that should verify it: %w", err)
		}
		n, err := note.Open(signed, note.VerifierList(verifier))
		var unknown *note.UnverifiedNoteError
		if errors.As(err, &unknown) {
			continue
		}
		if err != nil {
			return Checkpoint{}, "", err
		}
		c, err := parseBody(n.Text)
		if err == nil && c.Origin != verifier.Name() {
			err = fmt.Errorf("it speaks of log %q, the key is that of %q", c.Origin, verifier.Name())
		}
		c.Signed = signed
		return c, key, err
	}
	return Checkpoint{}, "", errOtherKey
}

// parseBody reads the text of a checkpoint: origin, size and root, a line each, and no more.
func parseBody(text string) (Checkpoint, error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 4 || lines[3] != "" {
		return Checkpoint{}, errors.New("it does not have three lines")
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 0 || size > maxRecords || strconv.FormatInt(size, 10) != lines[1] {
		return Checkpoint{}, fmt.Errorf("%q is not a number of records", lines[1])
	}
	if _, err := parseRoot(lines[2]); err != nil {
		return Checkpoint{}, err
	}
	return Checkpoint{Origin: lines[0], Size: size, Root: lines[2]}, nil
}

// parseRoot reads a root hash, in the one way of writing it.
func parseRoot(text string) (tlog.Hash, error) {
	var h tlog.Hash
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(b) != len(h) || base64.StdEncoding.EncodeToString(b) != text {
		return h, fmt.Errorf("%q is not a root hash", text)
	}
	return tlog.Hash(b), nil
}

// sign makes the checkpoint of a tree.
func (k *Key) sign(tree tlog.Tree) (Checkpoint, error) {
	c := Checkpoint{Origin: k.signer.Name(), Size: tree.N, Root: tree.Hash.String()}
	var err error
	c.Signed, err = note.Sign(&note.Note{Text: fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, c.Root)}, k.signer)
	return c, err
}
