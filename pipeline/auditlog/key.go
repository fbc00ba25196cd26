package auditlog

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// A Key signs the checkpoints of one log. Printed, it shows its public half only.
type Key struct {
	signer          note.Signer
	private, public string
}

// NewKey makes a key from the randomness of rand, for a log of a name of its own.
func NewKey(rand io.Reader) (*Key, error) {
	// Read before the key is made: what else is taken from rand is not the key's.
	random := make([]byte, 8+64)
	if _, err := io.ReadFull(rand, random); err != nil {
		return nil, fmt.Errorf("make a key for the audit log: %w", err)
	}
	origin := "rehydrate/" + hex.EncodeToString(random[:8])
	private, public, err := note.GenerateKey(bytes.NewReader(random[8:]), origin)
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
	verifier, err := note.NewVerifier(k.public)
	if err == nil {
		k.signer, err = note.NewSigner(k.private)
	}
	if err != nil {
		return nil, fmt.Errorf("read the key of the audit log: %w", err)
	}
	signed, err := note.Sign(&note.Note{Text: "probe\n"}, k.signer)
	if err == nil {
		_, err = note.Open(signed, note.VerifierList(verifier))
	}
	if err != nil {
		return nil, errors.New("read the key of the audit log: its two lines are not halves of one key")
	}
	return k, nil
}

// Encode returns the key as it is stored, the private half in it.
func (k *Key) Encode() []byte { return []byte(k.private + "\n" + k.public + "\n") }

// Public returns the verifier key, as log.pub holds it without its line end.
func (k *Key) Public() string { return k.public }

// String returns the verifier key.
func (k *Key) String() string { return k.public }

// GoString returns the verifier key.
func (k *Key) GoString() string { return k.public }
