package reddit

import (
	"errors"
	"fmt"
	"regexp"

	"rehydrate/internal/secret"
)

// Credentials are those of an app that Reddit has registered, and the account that answers for it.
type Credentials struct {
	ClientID     string
	ClientSecret secret.Secret
	Username     string // without u/
}

// CredentialsFromEnv reads REDDIT_CLIENT_ID, REDDIT_CLIENT_SECRET and REDDIT_USERNAME through getenv (os.Getenv), or
// the private files that these names with _FILE added name. Errors name the variable, never the value.
func CredentialsFromEnv(getenv func(string) string) (Credentials, error) {
	var values [3]string
	for i, name := range []string{"REDDIT_CLIENT_ID", "REDDIT_CLIENT_SECRET", "REDDIT_USERNAME"} {
		v, err := secret.FromEnv(getenv, name)
		if err != nil {
			return Credentials{}, err
		}
		values[i] = v
	}
	c := Credentials{ClientID: values[0], ClientSecret: secret.New(values[1]), Username: values[2]}
	return c, c.check()
}

// ImgurClientIDFromEnv reads IMGUR_CLIENT_ID or IMGUR_CLIENT_ID_FILE in the same way. It may be missing.
func ImgurClientIDFromEnv(getenv func(string) string) (secret.Secret, error) {
	v, err := secret.FromEnv(getenv, "IMGUR_CLIENT_ID")
	if err == nil && v != "" && !clientIDForm.MatchString(v) {
		v, err = "", errors.New("IMGUR_CLIENT_ID is not a client id: letters, digits, _ and - only")
	}
	return secret.New(v), err
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
		{c.ClientSecret.Reveal(), secretForm, "REDDIT_CLIENT_SECRET", "client secret", "the secret of the approved app",
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
