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

// A Signer is one [[signer]] of release.toml: a person or office whose signature makes a
// grant valid. The key is kept as it is written, one line of an OpenSSH public key file;
// package policy reads it.
type Signer struct {
	Name string
	Key  string
}

// Bounds of [[signer]] tables. The longest key in use, RSA with 16,384 bits, takes 2,800 bytes.
const (
	maxSigners   = 100
	maxSignerKey = 4096
)

func (s *settings) readSigners(top *table) {
	all := top.tables("signer")
	if len(all) > maxSigners {
		top.add("signer", fmt.Sprintf("the release has %d signers", len(all)), fmt.Sprintf("at most %d are read", maxSigners))
		return
	}
	for i, keys := range all {
		s.readSigner(top.file.table(top.path.key("signer").item(i), "signer", keys))
	}
}

func (s *settings) readSigner(t *table) {
	var signer Signer
	signer.Name, _ = t.text("name")
	signer.Key, _ = t.text("key")
	t.done()
	switch {
	case !validText(signer.Name, 200):
		t.add("name", "the signer's name is not one line of text", "say in a few words who holds the key")
	case !validText(signer.Key, maxSignerKey) || len(strings.Fields(signer.Key)) < 2:
		t.add("key", "the signer's key is not an OpenSSH public key", `copy the line of the .pub file: key = "ssh-ed25519 AAAA... comment"`)
	case slices.ContainsFunc(s.signers, func(o Signer) bool { return o.Name == signer.Name }):
		t.add("name", fmt.Sprintf("two signers are named %s", quote(signer.Name)), "rename one, so that messages tell which one signed")
	case slices.ContainsFunc(s.signers, func(o Signer) bool { return sameKey(o.Key, signer.Key) }):
		t.add("key", fmt.Sprintf("the key of %s is another signer's too", quote(signer.Name)), "every signer has a key of their own")
	default:
		s.signers = append(s.signers, signer)
	}
}

// sameKey compares public key lines without their comments.
func sameKey(a, b string) bool {
	return slices.Equal(strings.Fields(a)[:2], strings.Fields(b)[:2])
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
	if _, _, problems := parseSettings(settings, SettingsName); problems != nil {
		return fmt.Errorf("pin the signers in %s: %w", SettingsName, problems)
	}
	d.Settings = settings
	return nil
}
