package manifest

import (
	"fmt"
	"slices"
	"strings"
)

// Names of the files that carry grants, in a release folder.
const (
	GrantName       = "grant.json"
	RevocationsName = "revocations.json"
	SignatureSuffix = ".sig" // added to a signed file's name
)

// A Signer is one [[signer]] of release.toml: a person or office whose signature makes a grant valid. The key is
// kept as it is written, one line of an OpenSSH public key file; package policy reads it.
type Signer struct {
	Name string `toml:"name"`
	Key  string `toml:"key"`
}

// The longest key in use, RSA with 16,384 bits, takes 2,800 bytes.
const maxSignerKey = 4096

// sameKey compares public key lines without their comments.
func sameKey(a, b string) bool {
	first := func(key string) []string { return strings.Fields(key)[:min(2, len(strings.Fields(key)))] }
	return slices.Equal(first(a), first(b))
}

// Pin adds signers to a draft's release.toml.
func (d *Draft) Pin(signers []Signer) error {
	var b strings.Builder
	b.Write(d.Settings)
	fmt.Fprint(&b, "\n# Grants and revocation lists count when one of these keys signed them.\n")
	for _, s := range signers {
		fmt.Fprintf(&b, "[[signer]]\nname = %s\nkey = %s\n", tomlText(s.Name), tomlText(s.Key))
	}
	settings := []byte(b.String())
	if _, err := parseSettings(settings, SettingsName, Options{}); err != nil {
		return fmt.Errorf("pin the signers in %s: %w", SettingsName, err)
	}
	d.Settings = settings
	return nil
}
