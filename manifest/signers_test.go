package manifest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const signedRelease = `name = "Test"
manifest = "annotations.csv"
schema = "figsim"
revocations = "lists/revoked.json"

[[signer]]
name = "First Office"
key = "ssh-ed25519 AAAAfirst first@example.invalid"

[[signer]]
name = "Second Office"
key = "ssh-ed25519 AAAAsecond"
`

func signedFolder(t *testing.T, toml string) string {
	return folder(t, map[string]string{SettingsName: toml, "lists/revoked.json": "{}", RevocationsName: "{}", "annotations.csv": figsimHeader + testRow})
}

func TestSigners(t *testing.T) {
	dir := signedFolder(t, signedRelease)
	r, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []Signer{{"First Office", "ssh-ed25519 AAAAfirst first@example.invalid"}, {"Second Office", "ssh-ed25519 AAAAsecond"}}
	if diff := cmp.Diff(want, r.Signers); diff != "" {
		t.Errorf("the signers differ (-want +got):\n%s", diff)
	}
	if want := filepath.Join(dir, "lists", "revoked.json"); r.RevocationsPath != want {
		t.Errorf("RevocationsPath = %s, want %s", r.RevocationsPath, want)
	}
	// Found under its usual name; absent where nothing names it.
	dir = signedFolder(t, strings.Replace(signedRelease, `revocations = "lists/revoked.json"`, "", 1))
	if r, err = Open(dir, Options{}); err != nil || r.RevocationsPath != filepath.Join(dir, RevocationsName) {
		t.Errorf("RevocationsPath = %s, %v", r.RevocationsPath, err)
	}
	if err := os.Remove(filepath.Join(dir, RevocationsName)); err != nil {
		t.Fatal(err)
	}
	if r, err = Open(dir, Options{}); err != nil || r.RevocationsPath != "" {
		t.Errorf("RevocationsPath = %s, %v, want none", r.RevocationsPath, err)
	}
}

func TestSignersRefused(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"unknown key", `name = "First Office"`, "name = \"First Office\"\nrole = \"chair\"", `release.toml:8:1: unknown key "role" in [signer]`},
		{"no name", `name = "First Office"`, "", "release.toml:6:3: the signer's name is not"},
		{"name of two lines", `"First Office"`, `"First\nOffice"`, "release.toml:7:1: the signer's name is not"},
		{"name turned round", `"First Office"`, `"First \u202eOffice"`, "release.toml:7:1: the signer's name is not"},
		{"no key", `key = "ssh-ed25519 AAAAfirst first@example.invalid"`, "", "release.toml:6:3: the signer's key is not"},
		{"key of one word", `"ssh-ed25519 AAAAfirst first@example.invalid"`, `"AAAAfirst"`, "release.toml:8:1: the signer's key is not"},
		{"key too long", "AAAAfirst", strings.Repeat("A", 5000), "release.toml:8:1: the signer's key is not"},
		{"key that is a number", `"ssh-ed25519 AAAAfirst first@example.invalid"`, "7", "release.toml:8:1: key is not a text"},
		{"same name", "Second Office", "First Office", `release.toml:11:1: two signers are named "First Office"`},
		{"same key", "AAAAsecond", "AAAAfirst other@example.invalid", `release.toml:12:1: the key of "Second Office" is another signer's too`},
		{"one table", "[[signer]]\nname = \"First Office\"\nkey = \"ssh-ed25519 AAAAfirst first@example.invalid\"\n\n[[signer]]", "[signer]", "signer is not a list of tables"},
		{"list outside", "lists/revoked.json", "../revoked.json", "release.toml:4:1: revocations \"../revoked.json\" is not inside"},
		{"list absolute", "lists/revoked.json", "/revoked.json", "is not inside"},
		{"list missing", "lists/revoked.json", "lists/none.json", "release.toml:4:1: revocations \"lists/none.json\" cannot be opened"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(signedRelease, c.from) {
				t.Fatalf("the release does not hold %q", c.from)
			}
			_, err := Open(signedFolder(t, strings.Replace(signedRelease, c.from, c.to, 1)), Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error = %v\nwant one with %q", err, c.want)
			}
			if problems := (*Problems)(nil); !errors.As(err, &problems) {
				t.Errorf("the error is a %T, want *Problems", err)
			}
		})
	}
}

// TestPin holds that a draft with pins is one that Open reads.
func TestPin(t *testing.T) {
	dir := signedFolder(t, signedRelease)
	d, err := Init(t.Context(), filepath.Join(dir, "annotations.csv"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []Signer{{`A "quoted" Office`, "ssh-ed25519 AAAAfirst"}, {"Second Office", "ssh-ed25519 AAAAsecond"}}
	if err := d.Pin(want); err != nil {
		t.Fatal(err)
	}
	before := string(d.Settings)
	if err := d.Pin(want[:1]); err == nil || string(d.Settings) != before {
		t.Errorf("pinning a signer twice: error %v, or the draft was changed", err)
	}
	to := filepath.Join(dir, "new")
	if _, err := d.Write(t.Context(), to, nil); err != nil {
		t.Fatal(err)
	}
	r, err := Open(to, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, r.Signers); diff != "" {
		t.Errorf("the signers differ (-want +got):\n%s", diff)
	}
}
