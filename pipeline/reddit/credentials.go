package reddit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"syscall"
)

// A Secret is a string that is never printed: fmt and slog show it as [redacted], encoding/json as nothing.
type Secret struct {
	value *string // of which fmt prints an address, where it may not call the methods of an unexported field
}

const redacted = "[redacted]"

// NewSecret wraps a secret string.
func NewSecret(s string) Secret { return Secret{&s} }

// reveal returns the string itself.
func (s Secret) reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// Format writes [redacted] for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// Empty reports whether there is no secret.
func (s Secret) Empty() bool { return s.reveal() == "" }

// Credentials are those of an app that Reddit has registered, and the account that answers for it.
type Credentials struct {
	ClientID     string
	ClientSecret Secret
	Username     string // without u/
}

// CredentialsFromEnv reads REDDIT_CLIENT_ID, REDDIT_CLIENT_SECRET and REDDIT_USERNAME through getenv (os.Getenv), or
// the private files that these names with _FILE added name. Errors name the variable, never the value.
func CredentialsFromEnv(getenv func(string) string) (Credentials, error) {
	var values [3]string
	for i, name := range []string{"REDDIT_CLIENT_ID", "REDDIT_CLIENT_SECRET", "REDDIT_USERNAME"} {
		v, err := fromEnv(getenv, name)
		if err != nil {
			return Credentials{}, err
		}
		values[i] = v
	}
	c := Credentials{ClientID: values[0], ClientSecret: NewSecret(values[1]), Username: values[2]}
	return c, c.check()
}

// ImgurClientIDFromEnv reads IMGUR_CLIENT_ID or IMGUR_CLIENT_ID_FILE in the same way. It may be missing.
func ImgurClientIDFromEnv(getenv func(string) string) (Secret, error) {
	v, err := fromEnv(getenv, "IMGUR_CLIENT_ID")
	if err == nil && v != "" && !clientIDForm.MatchString(v) {
		v, err = "", errors.New("IMGUR_CLIENT_ID is not a client id: letters, digits, _ and - only")
	}
	return NewSecret(v), err
}

func fromEnv(getenv func(string) string, name string) (string, error) {
	value, path := strings.TrimSpace(getenv(name)), getenv(name+"_FILE")
	switch {
	case value != "" && path != "":
		return "", fmt.Errorf("both %s and %s_FILE are set; unset one of them", name, name)
	case path == "":
		return value, nil
	}
	value, err := readPrivate(path)
	if err == nil && value == "" {
		err = errors.New("it is empty")
	}
	if err != nil {
		return "", fmt.Errorf("the file that %s_FILE names: %w", name, err)
	}
	return value, nil
}

// readPrivate reads a short file that only its owner may read.
func readPrivate(path string) (string, error) {
	const most = 4096
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a pipe would hang
	if err != nil {
		// The path is left out: people put the secret itself where its file belongs.
		if at, ok := errors.AsType[*fs.PathError](err); ok {
			err = at.Err
		}
		return "", err
	}
	defer f.Close()
	// Of the open file, which cannot be exchanged between check and read.
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		return "", errors.New("it is not a regular file")
	case mode.Perm()&0o077 != 0:
		return "", fmt.Errorf("it can be read by others (mode %v): %w; run chmod 600 on it", mode.Perm(), fs.ErrPermission)
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil || len(b) > most {
		return "", fmt.Errorf("it cannot be read, or is longer than %d bytes; is it the right file?", most)
	}
	return strings.TrimSpace(string(b)), nil
}

var (
	usernameForm = regexp.MustCompile(`^[A-Za-z0-9_-]{3,20}$`)
	clientIDForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)
	secretForm   = regexp.MustCompile(`^[!-~]{1,200}$`)
)

// check reports what is missing or malformed, without the values.
func (c Credentials) check() error {
	for _, v := range []struct {
		value              string
		form               *regexp.Regexp
		name, what, to, is string
	}{
		{c.ClientID, clientIDForm, "REDDIT_CLIENT_ID", "client id", "the id of the approved app",
			"a client id: letters, digits, _ and - only"},
		{c.ClientSecret.reveal(), secretForm, "REDDIT_CLIENT_SECRET", "client secret", "the secret of the approved app",
			"a secret of Reddit: printable ASCII without spaces, at most 200 characters"},
		{c.Username, usernameForm, "REDDIT_USERNAME", "user name",
			"the account that answers for the app; Reddit wants it in the User-Agent",
			"a user name: 3 to 20 letters, digits, _ and -, without u/"},
	} {
		if v.value == "" {
			return fmt.Errorf("no Reddit %s: set %s (or %[2]s_FILE) to %s", v.what, v.name, v.to)
		}
		if !v.form.MatchString(v.value) {
			return fmt.Errorf("%s is not %s", v.name, v.is)
		}
	}
	return nil
}
