package reddit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rehydrate/internal/secret"
	"rehydrate/policy"
)

func TestSecretIsNeverPrinted(t *testing.T) {
	s := secret.New(canarySecret)
	type inner struct{ s secret.Secret } // fmt calls no method of an unexported field
	scrubber := new(secret.Scrubber)
	scrubber.Learn(canarySecret)
	scrubber.LearnToken(canaryToken)
	fmt.Fprint(scrubber.Writer(io.Discard), "x") // with all that it keeps
	cached := &tokenCache{}
	cached.keep(secret.New(canarySecret), time.Hour)
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%10.3s", "%-80s"} {
		for _, v := range []any{s, &s, inner{s}, &inner{s}, []secret.Secret{s}, map[string]secret.Secret{"k": s},
			Credentials{ClientSecret: s},
			Options{Credentials: Credentials{ClientSecret: s}, ImgurClientID: s, Scrubber: scrubber}, scrubber,
			scrubber.Writer(io.Discard), cached, struct{ s *secret.Scrubber }{scrubber},
			(&script{}).client(t, testOptions())} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
	}
	fmt.Fprintln(&out, s, &s, inner{s})
	fmt.Fprintln(&out, fmt.Errorf("y: %w: %v", fs.ErrExist, s))
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(h).Info("m", "secret", s, "pointer", &s, "in", Credentials{ClientSecret: s}, "inner", inner{s},
			"scrubber", scrubber)
	}
	b, err := json.Marshal(map[string]any{"s": s, "c": Credentials{ClientSecret: s}, "i": inner{s}, "scrubber": scrubber})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(b)
	if got := out.String(); strings.Contains(got, "CANARY") ||
		strings.Contains(strings.ToLower(got), fmt.Sprintf("%x", canarySecret)) {
		t.Errorf("the secret was printed:\n%s", got)
	}
	if got := fmt.Sprint(s); got != "[redacted]" {
		t.Errorf("Sprint = %q", got)
	}
	if s.Empty() || !(secret.Secret{}).Empty() || s.Reveal() != canarySecret {
		t.Error("the secret lost its value")
	}
}

func TestCredentialsFromEnv(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // whatever the umask
			t.Fatal(err)
		}
		return path
	}
	private := file("private", canarySecret+"\n", 0o600)
	set := func(change ...string) map[string]string {
		env := map[string]string{"REDDIT_CLIENT_ID": "id-1", "REDDIT_CLIENT_SECRET": canarySecret,
			"REDDIT_USERNAME": "some_body"}
		for i := 0; i < len(change); i += 2 {
			env[change[i]] = change[i+1]
		}
		return env
	}
	inFile := func(path string) map[string]string {
		return set("REDDIT_CLIENT_SECRET", "", "REDDIT_CLIENT_SECRET_FILE", path)
	}
	for _, tt := range []struct {
		name string
		env  map[string]string
		want string // in the error, "" for none
	}{
		{"all set", set(), ""},
		{"blanks around", set("REDDIT_CLIENT_SECRET", " "+canarySecret+"\n"), ""},
		{"secret in a file", inFile(private), ""},
		{"no id", set("REDDIT_CLIENT_ID", ""), "set REDDIT_CLIENT_ID (or"},
		{"no secret", set("REDDIT_CLIENT_SECRET", " "), "set REDDIT_CLIENT_SECRET (or"},
		{"no user name", set("REDDIT_USERNAME", ""), "set REDDIT_USERNAME (or"},
		{"user name with u/", set("REDDIT_USERNAME", "u/somebody"), "REDDIT_USERNAME is not a user name"},
		{"short user name", set("REDDIT_USERNAME", "ab"), "REDDIT_USERNAME is not a user name"},
		{"user name with a line break inside", set("REDDIT_USERNAME", "some\r\nX: y"),
			"REDDIT_USERNAME is not a user name"},
		{"odd id", set("REDDIT_CLIENT_ID", "a:b"), "REDDIT_CLIENT_ID is not a client id"},
		{"odd secret", set("REDDIT_CLIENT_SECRET", canarySecret+" x"), "REDDIT_CLIENT_SECRET is not a secret"},
		{"both", set("REDDIT_CLIENT_SECRET_FILE", private),
			"both REDDIT_CLIENT_SECRET and REDDIT_CLIENT_SECRET_FILE are set"},
		{"missing file", inFile(filepath.Join(dir, "none")), "REDDIT_CLIENT_SECRET_FILE names: no such file"},
		{"the secret in place of its file", inFile(canarySecret), "no such file"},
		{"empty file", inFile(file("empty", "\n", 0o600)), "is empty"},
		{"readable by the group", inFile(file("group", canarySecret, 0o640)), "can be read by others"},
		{"readable by all", inFile(file("all", canarySecret, 0o604)), "run chmod 600"},
		{"large file", inFile(file("large", strings.Repeat("x", 5000), 0o600)), "longer than 4096 bytes"},
		{"folder", inFile(dir), "not a regular file"},
	} {
		c, err := CredentialsFromEnv(func(k string) string { return tt.env[k] })
		if tt.want == "" {
			if err != nil || c.ClientID != "id-1" || c.ClientSecret.Reveal() != canarySecret || c.Username != "some_body" {
				t.Errorf("%s: %+v, %v", tt.name, c, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q in it", tt.name, err, tt.want)
		} else if strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s: the error shows the secret: %v", tt.name, err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"approval":    func(o *Options) { o.Approval = " \t" },
		"client id":   func(o *Options) { o.ClientID = "" },
		"secret":      func(o *Options) { o.ClientSecret = secret.Secret{} },
		"user name":   func(o *Options) { o.Username = "" },
		"reddit rate": func(o *Options) { o.Policy.Reddit.RequestsPerMinute = 0.01 },
		"host rate":   func(o *Options) { o.Policy.Images.Hosts[0].RequestsPerSecond = 0.001 },
	} {
		o := testOptions()
		change(&o)
		if c, err := New(o); err == nil || c != nil {
			t.Errorf("without a good %s: New = %v, %v", name, c, err)
		}
	}
	o := testOptions()
	o.Policy.Reddit.RequestsPerMinute = 1. / 15
	o.Policy.Images.Hosts = []policy.Host{{Name: "i.redd.it", RequestsPerSecond: 4. / 900, Concurrency: 4}}
	if _, err := New(o); err != nil {
		t.Errorf("New with the slowest policy that waits no longer than 15 minutes = %v", err)
	}
	if _, err := New(Options{}); !errors.Is(err, ErrNoApproval) {
		t.Errorf("New without approval = %v, want ErrNoApproval", err)
	}
}

func TestImgurClientIDFromEnv(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  map[string]string
		want string // in the error; "" for none
		id   string
	}{
		{"none", nil, "", ""},
		{"value", map[string]string{"IMGUR_CLIENT_ID": " " + imgurTestID + " "}, "", imgurTestID},
		{"both", map[string]string{"IMGUR_CLIENT_ID": imgurTestID, "IMGUR_CLIENT_ID_FILE": "/none"},
			"both IMGUR_CLIENT_ID", ""},
		{"malformed", map[string]string{"IMGUR_CLIENT_ID": "Client-ID " + imgurTestID},
			"IMGUR_CLIENT_ID is not a client id", ""},
	} {
		id, err := ImgurClientIDFromEnv(func(name string) string { return tt.env[name] })
		if (err == nil) != (tt.want == "") || err != nil &&
			(!strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), imgurTestID)) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
		if id.Reveal() != tt.id || id.Empty() != (tt.id == "") {
			t.Errorf("%s: the id is not the one that was given", tt.name)
		}
	}
}
