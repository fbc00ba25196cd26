package auditlog

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// A Checkpoint is a signed statement of how many records a log has and what they are.
type Checkpoint struct {
	Origin string `json:"-"`    // name of the log, which is that of its key
	Size   int64  `json:"size"` // number of records
	Root   string `json:"root"` // root hash, base64
	Signed []byte `json:"-"`    // the note as it was signed
	Key    string `json:"key"`  // verifier key that it is signed with
}

// maxCheckpoint bounds a checkpoint and a key, in bytes.
const maxCheckpoint = 4096

// errOtherKey means that a checkpoint is well formed, and that none of the accepted keys signed it.
var errOtherKey = errors.New("it is signed with another key")

// parseCheckpoint reads a checkpoint that one of keys signed.
func parseCheckpoint(signed []byte, keys ...string) (Checkpoint, error) {
	if len(signed) > maxCheckpoint {
		return Checkpoint{}, fmt.Errorf("it has more than %d bytes", maxCheckpoint)
	}
	// One by one, so that the caller learns which key it was.
	for _, key := range keys {
		verifier, err := note.NewVerifier(key)
		if err != nil {
			return Checkpoint{}, fmt.Errorf("the key that should verify it: %w", err)
		}
		n, err := note.Open(signed, note.VerifierList(verifier))
		if errors.As(err, new(*note.UnverifiedNoteError)) {
			continue
		}
		if err != nil {
			return Checkpoint{}, err
		}
		c, err := parseBody(n.Text)
		// A signature of this key under the text of another log would let one stand for the other.
		if err == nil && c.Origin != verifier.Name() {
			err = fmt.Errorf("it is of log %q, and the key of %q", c.Origin, verifier.Name())
		}
		c.Signed, c.Key = signed, key
		return c, err
	}
	return Checkpoint{}, errOtherKey
}

// originOf is the name of the log that a checkpoint says it is of.
func originOf(signed []byte) string {
	origin, _, _ := strings.Cut(string(signed), "\n")
	return origin
}

// parseBody reads the text of a checkpoint: origin, size and root, a line each, and no more.
func parseBody(text string) (Checkpoint, error) {
	// But for the first line it is the tree of the Go checksum database.
	const first = "go.sum database tree\n"
	origin, rest, _ := strings.Cut(text, "\n")
	t, err := tlog.ParseTree([]byte(first + rest))
	// ParseTree lets more lines follow, and numbers that begin with a zero.
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

// NewKey makes a key for a log of a name of its own.
func NewKey() (*Key, error) {
	// It fails only for a name that is none; crypto/rand never does.
	private, public, _ := note.GenerateKey(rand.Reader, "rehydrate/"+strings.ToLower(rand.Text()[:16]))
	return ParseKey([]byte(private + "\n" + public + "\n"))
}

// ErrKey begins the error of a key that is damaged.
var ErrKey = errors.New("read the key of the audit log")

// ParseKey reads what Encode returns. Its error is ErrKey.
func ParseKey(text []byte) (*Key, error) {
	lines := strings.Split(string(text), "\n")
	if len(lines) != 3 || lines[2] != "" {
		return nil, fmt.Errorf("%w: it is not a private and a public line", ErrKey)
	}
	signer, err := note.NewSigner(lines[0])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	// The key is tried before anything is signed with it: its halves may come from two keys.
	verifier, err := note.NewVerifier(lines[1])
	if err == nil && verifier.KeyHash() != signer.KeyHash() { // of the name and the public key
		err = errors.New("its two lines are not halves of one key")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	return &Key{signer: signer, private: lines[0], public: lines[1]}, nil
}

// Encode returns the key as it is stored, the private half in it.
func (k *Key) Encode() []byte { return []byte(k.private + "\n" + k.public + "\n") }

// Public returns the verifier key, as log.pub holds it without its line end.
func (k *Key) Public() string { return k.public }

// Format prints the verifier key, whatever the verb.
func (k *Key) Format(f fmt.State, _ rune) { io.WriteString(f, k.public) }

// sign makes the checkpoint of a log.
func (k *Key) sign(size int64, root string) (Checkpoint, error) {
	c := Checkpoint{Origin: k.signer.Name(), Size: size, Root: root, Key: k.public}
	var err error
	c.Signed, err = note.Sign(&note.Note{Text: fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, c.Root)}, k.signer)
	return c, err
}
