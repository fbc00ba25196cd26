package policy

import (
	_ "embed" // for placeholders.toml
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"rehydrate/internal/picture"
	"rehydrate/internal/printable"
	"rehydrate/manifest"
)

// A Placeholder is a picture that a host sends for one that it does not have, or does not want to send. Each of its
// marks is enough to know it by: a hash, the final URL, or the four figures Format, Width, Height and Bytes together,
// which are the weakest and serve where no hash was recorded.
type Placeholder struct {
	Name    string           `toml:"name"`    // lower-case words joined by underscores; no two of a list share it
	Meaning string           `toml:"meaning"` // what it stands for, in a few words: the detail of its fault
	SHA256  string           `toml:"sha256"`  // lower-case hex, "" when not recorded; so is MD5
	MD5     string           `toml:"md5"`
	Format  string           `toml:"format"`  // jpeg, png, gif or webp; "" when the four figures are not recorded
	Width   int              `toml:"width"`   // pixels
	Height  int              `toml:"height"`  // pixels
	Bytes   int              `toml:"bytes"`   // length of the file
	URL     string           `toml:"url"`     // host and start of the path of the final URL, "" when there is none
	Outcome manifest.Outcome `toml:"outcome"` // Placeholder; Failed for a host that refuses a region
	Source  string           `toml:"source"`  // who recorded it
}

//go:embed placeholders.toml
var placeholdersTOML string

// builtIn returns the placeholders that every policy knows.
var builtIn = sync.OnceValue(func() []Placeholder {
	p, err := Parse([]byte(placeholdersTOML), "placeholders.toml")
	if err != nil {
		panic(err) // a fault of the build, which a test finds
	}
	return p.Images.Placeholders
})

// FinalURLPlaceholder returns the fault of a known placeholder that is served at u, or nil. It is to be asked of the
// URL of an image and of each redirect's target, before that is requested and whether or not its host is allowed: the
// answer is known already.
func (p Policy) FinalURLPlaceholder(u *url.URL) *Fault {
	// The host is compared as Policy.Host does, the path by its start; query and fragment do not count.
	at := strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")) + u.Path
	return p.knownPlaceholder(func(k Placeholder) bool { return k.URL != "" && strings.HasPrefix(at, k.URL) })
}

// mayBePlaceholder reports whether a file of that length can have the hash of a known placeholder.
func (p Policy) mayBePlaceholder(length int) bool {
	// Of each built-in hash the length is known, and a release may name a hash alone.
	return slices.ContainsFunc(builtIn(), func(k Placeholder) bool { return k.Bytes == length }) ||
		slices.ContainsFunc(p.Images.Placeholders, func(k Placeholder) bool { return k.SHA256+k.MD5 != "" })
}

// PlaceholderOf returns the fault of the known placeholder that has one of the marks, or nil. The hashes are lower-case
// hex, "" when not known; info is what the header says.
func (p Policy) PlaceholderOf(sha256, md5 string, info picture.Info, length int64) *Fault {
	return p.knownPlaceholder(func(k Placeholder) bool {
		return k.SHA256 != "" && k.SHA256 == sha256 || k.MD5 != "" && k.MD5 == md5 ||
			int64(k.Bytes) == length && k.Format == info.Format && k.Width == info.Width && k.Height == info.Height
	})
}

// knownPlaceholder returns the fault of the first placeholder that fits: of the built-in ones, then of the policy's
// own.
func (p Policy) knownPlaceholder(fits func(Placeholder) bool) *Fault {
	all := slices.Concat(builtIn(), p.Images.Placeholders)
	i := slices.IndexFunc(all, fits)
	switch {
	case i < 0:
		return nil
	case all[i].Outcome == manifest.Failed:
		// A failure, for it says where we are and nothing of the image: the same run elsewhere gets the picture.
		return &Fault{manifest.Failed, regionBlock, all[i].Meaning}
	}
	return &Fault{all[i].Outcome, knownPlaceholder, all[i].Meaning}
}

const (
	regionBlock      manifest.Reason = "region_block"
	knownPlaceholder manifest.Reason = "known_placeholder"
)

// IsOfPlaceholder reports whether the reason of a fault is that a picture is a known placeholder.
func IsOfPlaceholder(r manifest.Reason) bool { return r == regionBlock || r == knownPlaceholder }

var (
	placeholderForm = regexp.MustCompile(`^[a-z0-9_]{1,64}$`)
	digestForm      = regexp.MustCompile(`^[0-9a-f]{64}$`)
	md5Form         = regexp.MustCompile(`^[0-9a-f]{32}$`)
)

// checkPlaceholders notes what breaks a limit in a list of placeholders.
func (c checker) checkPlaceholders(list []Placeholder) {
	const together = "; format, width, height and bytes go together"
	names := map[string]bool{}
	for n, k := range list {
		want := func(key string, ok bool, got any, want string) {
			c.want(fmt.Sprintf("images.placeholder[%d].%s", n, key), ok, got, want)
		}
		figures := k.Format != "" || k.Width != 0 || k.Height != 0 || k.Bytes != 0
		want("name", placeholderForm.MatchString(k.Name), k.Name, "lower-case words joined by _, such as imgur_removed")
		want("name", k.Name == "" || !names[k.Name], k.Name, "a name that is not in the list already")
		// Without a mark, the tables would be there and find nothing.
		want("name", k.SHA256 != "" || k.MD5 != "" || k.URL != "" || figures, k.Name,
			"followed by sha256, md5, url, or format, width, height and bytes")
		// It becomes a detail in outcomes.csv, which never holds a URL.
		want("meaning", k.Meaning != "" && len(k.Meaning) <= 200 && !strings.Contains(k.Meaning, "://") &&
			printable.Is(k.Meaning), k.Meaning,
			"what it stands for: one line without a URL, at most 200 bytes")
		want("sha256", k.SHA256 == "" || digestForm.MatchString(k.SHA256), k.SHA256, "64 lower-case hex digits")
		want("md5", k.MD5 == "" || md5Form.MatchString(k.MD5), k.MD5, "32 lower-case hex digits")
		if figures {
			want("format", picture.Decodes(k.Format), k.Format, "jpeg, png, gif or webp"+together)
			want("width", k.Width > 0, k.Width, "more than 0"+together)
			want("height", k.Height > 0, k.Height, "more than 0"+together)
			want("bytes", k.Bytes > 0, k.Bytes, "more than 0"+together)
		}
		// A path, because a mark that says "everything on this host" would take in its pictures.
		host, path, _ := strings.Cut(k.URL, "/")
		want("url", k.URL == "" || hostName(host) && path != "" && !strings.ContainsAny(path, "?#*%\\ "), k.URL,
			"a host and the start of a path, such as i.imgur.com/removed.png, without scheme, port or query")
		want("outcome", k.Outcome == manifest.Placeholder || k.Outcome == manifest.Failed, string(k.Outcome),
			`"placeholder", or "failed" for a host that refuses a region`)
		want("source", k.Source != "", k.Source, "who recorded it")
		names[k.Name] = true
	}
}
