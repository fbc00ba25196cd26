// Package policy holds the decisions of rehydrate that need neither network, clock nor
// disk: what a release allows (policy.toml), what Reddit's answer says of a post
// (Judge), and whether a downloaded body may be treated as an image (InspectImage).
//
// Everything here is a function of its arguments: the same input gives the same answer, on every machine, at any time.
// Nothing is stored or logged, and all of it is safe for concurrent use.
package policy

import (
	"crypto/sha256"
	_ "embed" // for default.toml
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"rehydrate/manifest"
)

// A Mode says what becomes of entries that the text filter rejects.
type Mode string

const (
	Drop Mode = "drop" // left out of the dataset
	Flag Mode = "flag" // kept, with the verdict in a column
)

// A Policy is what a release allows. Make one with Default or Parse: the zero value allows nothing.
type Policy struct {
	Access Access
	Reddit Reddit
	Images Images
	Text   Text
	Filter Filter
	Dedupe Dedupe
}

// Access holds the rules for who may use the release.
type Access struct {
	GrantRequired bool // run and export need a grant; without it, an approval is enough
}

// A ReadmitMode says which removed posts may come back when they are seen live again.
type ReadmitMode string

// The readmit modes. What its author deleted, and what Reddit, its spam filter or the law took down, never comes back.
const (
	ReadmitNever     ReadmitMode = "never"     // none: a tombstone is for good
	ReadmitModerator ReadmitMode = "moderator" // those that a moderator or AutoModerator removed
)

// Reddit holds the rules for asking Reddit's API.
type Reddit struct {
	RequestsPerMinute float64       // API and token requests together
	RecheckWithin     time.Duration // how long a live answer stays good for an export
	SecondLookAfter   time.Duration // pause before an absent id is asked again
	MassRemovalShare  float64       // newly lost share of the live posts that withholds them
	Readmit           ReadmitMode   // which removed posts may come back
}

// MaxAsk is the most posts that one request to Reddit can ask about: Reddit answers a longer list with an empty one.
const MaxAsk = 100

// Images holds the rules for image hosts and image files.
type Images struct {
	Hosts        []Host            `toml:"host"`
	MaxBytes     int64             `toml:"max_bytes"`
	MaxPixels    int64             `toml:"max_pixels"`
	MaxSide      int               `toml:"max_side"`
	SuspectAfter int               `toml:"suspect_after"`         // URLs with the same bytes that are suspect; 0: never
	Placeholders []Placeholder     `toml:"placeholder"`           // besides the built-in ones
	AllowSame    []manifest.PostID `toml:"allow_same_as_removed"` // posts that may show a picture that was taken down
}

// A Host is an image host that may be asked.
type Host struct {
	Name              string  `toml:"name"` // lower case, no port
	RequestsPerSecond float64 `toml:"requests_per_second"`
	Concurrency       int     `toml:"concurrency"`
	// RespectRobotsTag says whether its X-Robots-Tag counts (TagForbids).
	RespectRobotsTag bool `toml:"respect_robots_tag"`
}

// Text holds the rules for the text that is read off images.
type Text struct {
	MaskNames bool `toml:"mask_names"` // take out what leads to a person, before anything is stored
}

// Filter holds the rules of the English filter.
type Filter struct {
	Mode             Mode    `toml:"mode"`
	EnglishThreshold float64 `toml:"english_threshold"` // share of words in the dictionary that votes for English, 0 to 1
}

// Dedupe holds the rules for near-duplicates.
type Dedupe struct {
	HashRadius     int  `toml:"hash_radius"`     // most bits that differ between hashes of one image
	WordDifference int  `toml:"word_difference"` // texts that differ in fewer words than this are the same
	Guard          bool `toml:"guard"`           // only texts that changed by less than half are the same
}

//go:embed default.toml
var defaultTOML string

// DefaultTOML returns a policy.toml that says Default() in full, with a comment on every
// key for the maintainer who edits it.
func DefaultTOML() []byte { return []byte(defaultTOML) }

// RequiringGrant gives the default policy with a grant that is required. Its comments stay, so the text is edited.
func RequiringGrant() []byte {
	return []byte(strings.Replace(defaultTOML, `grant = "optional"`, `grant = "required"`, 1))
}

//go:embed cautious.toml
var cautiousTOML string

// CautiousTOML returns what Cautious says where it differs from Default, or where it should be said, with a comment
// each.
func CautiousTOML() []byte { return []byte(cautiousTOML) }

// Cautious returns the policy of a list of ids, behind which no release stands: it asks slower than Default, only
// Reddit's own hosts for images, and leaves no image out for its language.
func Cautious() Policy {
	p := cautious()
	p.Images.Hosts = slices.Clone(p.Images.Hosts) // the caller may change them
	return p
}

var cautious = sync.OnceValue(func() Policy {
	p, err := Parse([]byte(cautiousTOML), "cautious.toml")
	if err != nil {
		panic(err) // a fault of the build, which a test finds
	}
	return p
})

// DeleteWithin is the time in which Reddit strongly recommends to delete what was removed: "routine deletion within 48
// hours" (Reddit Data API wiki). No live answer stays good for longer, and no obligation to erase stays open for
// longer.
const DeleteWithin = 48 * time.Hour

var defaults = sync.OnceValue(func() Policy {
	p, err := Parse(nil, "")
	if err != nil {
		panic(err) // a fault of the build, which a test finds
	}
	return p
})

// Default returns the policy of a release that has no policy.toml: what default.toml says.
func Default() Policy {
	p := defaults()
	p.Images.Hosts = slices.Clone(p.Images.Hosts) // the caller may change them
	return p
}

// Host returns the rules for the named host and whether it may be asked at all. The name is compared without regard to
// case and to one trailing dot; nothing else is forgiven: i.redd.it.example.com, or a name with a port, is another.
func (p Policy) Host(name string) (Host, bool) {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	i := slices.IndexFunc(p.Images.Hosts, func(h Host) bool { return h.Name == name })
	if i < 0 {
		return Host{}, false
	}
	return p.Images.Hosts[i], true
}

var videoPath = regexp.MustCompile(`(?i)\.(gifv|mp4|webm|mov)$`)

// IsVideo reports whether the path of an address names a video, which no host has as an image.
func IsVideo(path string) bool { return videoPath.MatchString(path) }

// ClockSkew is how far ahead of now a time on record may lie before it is not believed.
const ClockSkew = 5 * time.Minute

// Ahead reports whether a time on record lies in the future, so that a clock was wrong.
func Ahead(t, now time.Time) bool { return t.Sub(now) > ClockSkew }

// GoneBy returns by when what is known to be gone must be erased. Since a time in the future counts as since now.
func GoneBy(since, now time.Time) time.Time {
	if Ahead(since, now) {
		since = now
	}
	return since.Add(DeleteWithin)
}

// Stale reports whether a post last seen live at lastLive is too old to be exported at
// now. A post never seen live is stale, and so is one seen in the future.
func (p Policy) Stale(lastLive, now time.Time) bool {
	if lastLive.IsZero() {
		return true
	}
	return now.Sub(lastLive) > p.Reddit.RecheckWithin || Ahead(lastLive, now)
}

// Digest returns the SHA-256, as lower-case hex, of the effective settings. Comments, spelling of numbers, key order,
// left-out defaults, the order of hosts and placeholders, and the built-in placeholders do not count.
func (p Policy) Digest() string {
	var b strings.Builder
	// Its form never changes: workspaces, datasets and audit logs keep digests.
	fmt.Fprintln(&b, "rehydrate policy 2")
	fmt.Fprintln(&b, "access", p.Access.GrantRequired)
	fmt.Fprintln(&b, "reddit", p.Reddit.RequestsPerMinute, p.Reddit.RecheckWithin.Nanoseconds(),
		p.Reddit.SecondLookAfter.Nanoseconds(), p.Reddit.MassRemovalShare, p.Reddit.Readmit)
	fmt.Fprintln(&b, "images", p.Images.MaxBytes, p.Images.MaxPixels, p.Images.MaxSide, p.Images.SuspectAfter)
	byName := func(a, b Placeholder) int { return strings.Compare(a.Name, b.Name) }
	for _, k := range slices.SortedFunc(slices.Values(p.Images.Placeholders), byName) {
		fmt.Fprintf(&b, "placeholder %q %q %q %q %q %d %d %d %q %q %q\n",
			k.Name, k.Meaning, k.SHA256, k.MD5, k.Format, k.Width, k.Height, k.Bytes, k.URL, k.Outcome, k.Source)
	}
	byHost := func(a, b Host) int { return strings.Compare(a.Name, b.Name) }
	for _, h := range slices.SortedFunc(slices.Values(p.Images.Hosts), byHost) {
		fmt.Fprintln(&b, "host", h.Name, h.RequestsPerSecond, h.Concurrency)
		if h.RespectRobotsTag != respectsTag(h.Name) { // only then, so that releases from before it keep their digests
			fmt.Fprintln(&b, "robots tag", h.Name, h.RespectRobotsTag)
		}
	}
	fmt.Fprintln(&b, "text", p.Text.MaskNames)
	fmt.Fprintln(&b, "filter", p.Filter.Mode, p.Filter.EnglishThreshold)
	fmt.Fprintln(&b, "dedupe", p.Dedupe.HashRadius, p.Dedupe.WordDifference)
	if p.Dedupe.Guard { // only then, so that releases from before it keep their digests
		fmt.Fprintln(&b, "dedupe guard")
	}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(p.Images.AllowSame))) {
		fmt.Fprintln(&b, "allow same", id)
	}
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:])
}
