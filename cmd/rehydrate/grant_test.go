package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"rehydrate/manifest"
	"rehydrate/policy"
)

const figSIMFolder = "../../releases/figsim"

// testSigner is obviously nobody's key.
func testSigner(t testing.TB, seed string) ssh.Signer {
	t.Helper()
	key := sha256.Sum256([]byte(seed))
	s, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(key[:]))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pin is the [[signer]] table for a public key.
func pin(key string) string {
	return fmt.Sprintf("\n[[signer]]\nname = \"Test Signer\"\nkey = %q\n", key)
}

// signed writes a file and its signature by testSigner.
func (s *site) signed(path, namespace, text string) {
	s.t.Helper()
	s.signedBy(testSigner(s.t, "rehydrate test signer"), path, namespace, text)
}

func (s *site) signedBy(key ssh.Signer, path, namespace, text string) {
	s.t.Helper()
	sig, err := sshsig.Sign(strings.NewReader(text), key, sshsig.HashSHA512, namespace)
	if err != nil {
		s.t.Fatal(err)
	}
	s.write(path, text)
	s.write(path+manifest.SignatureSuffix, string(sshsig.Armor(sig)))
}

// grantText is a grant for a release, for a day.
func grantText(t testing.TB, release string, change func(map[string]any)) string {
	t.Helper()
	rel, err := manifest.Open(release, manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	grant := map[string]any{"v": 1, "type": "rehydrate-grant", "id": "test-1",
		"holder":  map[string]any{"name": "Test Holder", "organization": "Test University"},
		"release": map[string]any{"name": rel.Name, "digest": rel.Digest},
		"purpose": map[string]any{"statement": "A test.", "academic": true, "commercial": false},
		"ethics":  map[string]any{"body": "Test Board", "reference": "TB-1"},
		"platform_approval": map[string]any{"program": "Test Program", "reference": "RFR-TEST-1",
			"expires": at(48 * time.Hour)},
		"asserted": at(-time.Hour), "not_before": at(-time.Hour), "expires": at(24 * time.Hour)}
	if change != nil {
		change(grant)
	}
	b, err := json.MarshalIndent(grant, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func revocationsText(t testing.TB, release string, serial int, revoked ...string) string {
	t.Helper()
	now := time.Now().UTC()
	list := []any{}
	for _, id := range revoked {
		list = append(list, map[string]any{"id": id, "at": now.Format(time.RFC3339), "reason": "a test"})
	}
	b, err := json.Marshal(map[string]any{"v": 1, "type": "rehydrate-revocations", "release": map[string]any{"name": release},
		"serial": serial, "issued": now.Add(-time.Minute).Format(time.RFC3339), "next_update": now.Add(time.Hour).Format(time.RFC3339), "revoked": list})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// figSIMSite is a site whose release is the FigSIM folder of this repository, with a test
// signer and a few made-up posts in place of the annotations.
func figSIMSite(t testing.TB, n int) *site {
	t.Helper()
	posts := fewPosts(n)
	_, speed, _ := strings.Cut(fastPolicy, "\n")
	s := newSite(t, fewAnnotations(posts), read(t, filepath.Join(figSIMFolder, "policy.toml"))+"\n"+speed, posts...)
	public := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(testSigner(t, "rehydrate test signer").PublicKey())))
	s.write(filepath.Join(s.release, "release.toml"), read(t, filepath.Join(figSIMFolder, "release.toml"))+pin(public))
	return s
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (s *site) grantPath() string { return filepath.Join(s.release, manifest.GrantName) }

// granted is the run's command line, which names no approval.
func (s *site) granted(more ...string) finished {
	s.t.Helper()
	return s.do(s.env(), append([]string{"run", s.release, "-w", s.workspace, "--connect-to", s.emulator.ConnectTo(),
		"--cacert", s.cacert, "--ocr", s.reader}, more...)...)
}

func (f finished) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	if f.code != code {
		t.Fatalf("exit %d, want %d\n%s%s", f.code, code, f.stderr, f.stdout)
	}
	for _, text := range texts {
		if !strings.Contains(f.stdout+f.stderr, text) {
			t.Errorf("the output does not hold %q:\n%s%s", text, f.stderr, f.stdout)
		}
	}
}

// TestFigSIMRelease opens the folder that this repository ships, with made-up annotations in
// the place of the authors': it is whole but for them and for a signer.
func TestFigSIMRelease(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"annotations.csv", manifest.GrantName} {
		if _, err := os.Stat(filepath.Join(figSIMFolder, name)); err == nil {
			t.Errorf("%s is in the repository", name)
		}
	}
	s := newSite(t, read(t, "../../manifest/testdata/annotations.csv"), read(t, filepath.Join(figSIMFolder, "policy.toml")))
	s.write(filepath.Join(s.release, "release.toml"), read(t, filepath.Join(figSIMFolder, "release.toml")))
	rel, err := openRelease(t.Context(), s.release)
	if err != nil {
		t.Fatal(err)
	}
	if rel.Name != "FigSIM" || rel.summary.Entries != 1049 || len(rel.Signers) != 0 {
		t.Errorf("release %s with %d entries and %d signers, want FigSIM, 1049 and 0", rel.Name, rel.summary.Entries, len(rel.Signers))
	}
	s.granted("--approval", "TEST-1").want(t, exitRejected, `no grant was given for the release "FigSIM"`, rel.Digest, "--grant FILE")
	s.signed(s.grantPath(), policy.GrantNamespace, grantText(t, s.release, nil))
	s.granted().want(t, exitRejected, "no_signer", "[[signer]]")
	if n := len(s.emulator.Requests()); n > 0 {
		t.Errorf("%d requests were made", n)
	}
	if _, err := os.Stat(s.workspace); err == nil {
		t.Error("a workspace was written")
	}
}

// TestSSHKeygen signs as docs/operations.md says, with OpenSSH itself.
func TestSSHKeygen(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Fatalf("scripts/setup installs openssh-client: %v", err)
	}
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		t.Run(kind, func(t *testing.T) {
			s := figSIMSite(t, 1)
			key := filepath.Join(t.TempDir(), "key")
			keygen := func(args ...string) {
				t.Helper()
				if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
					t.Fatalf("ssh-keygen %v: %v\n%s", args, err, out)
				}
			}
			keygen("-q", "-t", kind, "-N", "", "-C", "test@example.invalid", "-f", key)
			s.write(filepath.Join(s.release, "release.toml"), demoRelease+pin(strings.TrimSpace(read(t, key+".pub"))))
			s.write(s.grantPath(), grantText(t, s.release, nil))
			keygen("-Y", "sign", "-f", key, "-n", "rehydrate-grant", s.grantPath())
			list := filepath.Join(s.release, manifest.RevocationsName)
			s.write(list, revocationsText(t, "Demo", 1))
			keygen("-Y", "sign", "-f", key, "-n", "rehydrate-revocations", list)

			f := s.do(nil, "grant", "check", s.release, "-w", s.workspace, "--json")
			f.want(t, exitDone)
			var report struct {
				Valid, Required bool
				Grant           policy.Grant
				Signer          struct{ Name, Fingerprint string }
				Revocations     policy.Revocations
			}
			if err := json.Unmarshal([]byte(f.stdout), &report); err != nil {
				t.Fatal(err)
			}
			if !report.Valid || !report.Required || report.Grant.ID != "test-1" || report.Signer.Name != "Test Signer" || report.Revocations.Serial != 1 {
				t.Errorf("grant check --json says %+v", report)
			}
			out, err := exec.CommandContext(t.Context(), program, "-l", "-f", key+".pub").Output()
			if err != nil || !bytes.Contains(out, []byte(report.Signer.Fingerprint)) {
				t.Errorf("ssh-keygen -l (%v) prints %s, grant check %s", err, out, report.Signer.Fingerprint)
			}
		})
	}
}
