package auditlog

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
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

// maxCheckpoint bounds a checkpoint and a key, in bytes.
const maxCheckpoint = 4096

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
			err = fmt.Errorf("it is of log %q, and the key of %q", c.Origin, verifier.Name())
		}
		c.Signed = signed
		return c, key, err
	}
	return Checkpoint{}, "", errOtherKey
}

// parseBody reads the text of a checkpoint: origin, size and root, a line each, and no more. Without the first
// line it is the tree of the Go checksum database.
func parseBody(text string) (Checkpoint, error) {
	const first = "go.sum database tree\n"
	origin, rest, _ := strings.Cut(text, "\n")
	t, err := tlog.ParseTree([]byte(first + rest))
	if err != nil || string(tlog.FormatTree(t)) != first+rest {
		return Checkpoint{}, errors.New("it is not a name, a number of records and a root hash")
	}
	return Checkpoint{Origin: origin, Size: t.N, Root: t.Hash.String()}, nil
}

// A Key signs the checkpoints of one log. Printed, it shows its public half only.
type Key struct {
	signer          note.Signer
	private, public string
}

// NewKey makes a key from the randomness of rand, for a log of a name of its own.
func NewKey(rand io.Reader) (*Key, error) {
	// GenerateKey reads a varying number of bytes, so it gets a reader of its own.
	random := make([]byte, 8+64)
	if _, err := io.ReadFull(rand, random); err != nil {
		return nil, fmt.Errorf("make a key for the audit log: %w", err)
	}
	private, public, err := note.GenerateKey(bytes.NewReader(random[8:]), "rehydrate/"+hex.EncodeToString(random[:8]))
	if err != nil {
		return nil, fmt.Errorf("make a key for the audit log: %w", err)
	}
	return ParseKey([]byte(private + "\n" + public + "\n"))
}

// ParseKey reads what Encode returns.
func ParseKey(text []byte) (*Key, error) {
	lines := strings.Split(string(text), "\n")
	if len(lines) != 3 || lines[2] != "" {
		return nil, errors.New("read the key of the audit log: it is not a private and a public line")
	}
	k := &Key{private: lines[0], public: lines[1]}
	var err error
	k.signer, err = note.NewSigner(k.private)
	if err != nil {
		return nil, fmt.Errorf("read the key of the audit log: %w", err)
	}
	// The key is tried before anything is signed with it: its halves may come from two keys.
	var t tree
	t.add(nil)
	probe, err := k.sign(&t)
	if err == nil {
		_, _, err = ParseCheckpoint(probe.Signed, k.public)
	}
	if err != nil {
		return nil, fmt.Errorf("read the key of the audit log: its two lines are not halves of one key: %w", err)
	}
	return k, nil
}

// Encode returns the key as it is stored, the private half in it.
func (k *Key) Encode() []byte { return []byte(k.private + "\n" + k.public + "\n") }

// Public returns the verifier key, as log.pub holds it without its line end.
func (k *Key) Public() string { return k.public }

// Format prints the verifier key, whatever the verb.
func (k *Key) Format(f fmt.State, _ rune) { io.WriteString(f, k.public) }

// sign makes the checkpoint of a tree.
func (k *Key) sign(t *tree) (Checkpoint, error) {
	c := Checkpoint{Origin: k.signer.Name(), Size: t.size, Root: t.root()}
	var err error
	c.Signed, err = note.Sign(&note.Note{Text: fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, c.Root)}, k.signer)
	return c, err
}
