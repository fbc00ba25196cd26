package reddit

import (
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"rehydrate/internal/picture"
	"rehydrate/internal/polite"
	"rehydrate/internal/secret"
	"rehydrate/manifest"
	"rehydrate/pipeline/reddit/calls"
	"rehydrate/policy"
)

// The two hosts of Reddit's API. Any other host is an image host.
const (
	apiHost   = "oauth.reddit.com" // the only one that the bearer token goes to
	tokenHost = "www.reddit.com"   // the only one that the client secret goes to
)

// ReasonEmptyListing is the reason of the *Unanswered of an Ask whose answer was whole and held no post at all: every
// post is absent, or Reddit is not answering. Asking again beside a post known to be live decides.
const ReasonEmptyListing manifest.Reason = "empty_listing"

// ReasonImgurPage is the reason of the Fault of a page of imgur that this client cannot ask imgur's API about.
const ReasonImgurPage manifest.Reason = "imgur_page"

// ErrNoApproval is the error of New when Options.Approval is empty.
var ErrNoApproval = errors.New("no approval by Reddit is named, so nothing is asked of it")

// Options are what a Client works with. Credentials, Approval and Policy are required.
type Options struct {
	Credentials
	Approval string // the operator's reference to Reddit's approval; must not be blank
	// ImgurClientID lets links to imgur's pages and albums be resolved through its API; empty, they are refused.
	ImgurClientID secret.Secret
	Policy        policy.Policy      // rates, image hosts, limits on images
	ConnectTo     []polite.ConnectTo // addresses to dial in place of hosts; the first that fits wins
	Proxy         polite.Proxy       // by which all other hosts are reached
	RootCAs       *x509.CertPool     // nil = the system's
	Version       string             // of the tool, for the User-Agent; "" = dev
	Log           *slog.Logger       // nil = discard
	Scrubber      *secret.Scrubber   // learns the credentials, and each token that the client gets; nil = none
	OnWait        func(polite.Wait)  // called before every wait over 2 s, from any goroutine; may be nil

	retryWait time.Duration // the longest pause before a first retry; 0 = 1 s, tests have their own
}

// A Client asks Reddit and its image hosts. Make one with New. It is safe for concurrent use.
type Client struct {
	o         Options // with what New has put in place of nothing
	userAgent string
	jitter    func() float64 // in [0, 1)
	pace      *pacer
	api       http.RoundTripper // what carries one attempt to Reddit's API
	images    http.RoundTripper // and to image hosts
	imgur     imgurAPI
	token     tokenCache
}

// Calls returns the counts as they stand. It may be called at any time.
func (c *Client) Calls() calls.Counts {
	total, longest := c.pace.waits.Sum()
	c.pace.mu.Lock()
	defer c.pace.mu.Unlock()
	counts := c.pace.calls
	counts.Waited = total
	if longest.For > 0 {
		counts.WaitedFor = longest.Host + ": " + longest.Reason
	}
	return counts
}

// New makes a client, and no request. A missing approval or credential, one that cannot be right, and a policy so slow
// that a request would wait over 15 minutes for its turn are errors that say what to set.
func New(o Options) (*Client, error) {
	api, images := newTransports(o)
	return newClient(o, api, images)
}

// newClient is New over given transports, which tests replace.
func newClient(o Options, api, images http.RoundTripper) (*Client, error) {
	if strings.TrimSpace(o.Approval) == "" {
		return nil, ErrNoApproval
	}
	if err := cmp.Or(o.Credentials.check(), checkRates(o.Policy)); err != nil {
		return nil, err
	}
	o.Log, o.Scrubber = cmp.Or(o.Log, slog.New(slog.DiscardHandler)), cmp.Or(o.Scrubber, new(secret.Scrubber))
	o.retryWait = cmp.Or(o.retryWait, time.Second)
	if o.ImgurClientID.Empty() {
		// The host leaves the client's policy, so that nothing can ask it. The caller's policy stays as it is.
		hosts := slices.Clone(o.Policy.Images.Hosts)
		o.Policy.Images.Hosts = slices.DeleteFunc(hosts, func(h policy.Host) bool { return h.Name == imgurAPIHost })
	}
	clientSecret := o.ClientSecret.Reveal()
	// Basic authorization joins id and secret by a colon and encodes them together.
	o.Scrubber.Learn(o.ClientID, clientSecret, o.ImgurClientID.Reveal(), o.ClientID+":"+clientSecret, o.Proxy.Password())
	c := &Client{o: o, pace: newPacer(o.Policy, o.OnWait), jitter: rand.Float64}
	// The form that Reddit's API rules require; by the account's name Reddit can reach whoever runs this.
	c.userAgent = fmt.Sprintf("%s:rehydrate:%s (by /u/%s)", runtime.GOOS, cmp.Or(o.Version, "dev"), o.Username)
	c.api, c.images = identified{c, api, c.toReddit}, identified{c, images, nil}
	c.imgur.transport = identified{c, api, c.toImgur}
	return c, nil
}

// Unanswered is the error of an Ask that got no well-formed answer: evidence of nothing. The run can go on.
type Unanswered struct {
	Reason manifest.Reason // html, truncated_json, not_a_listing, empty_listing, too_large, http_503, timeout, ...
	Detail string
}

// Error says what was wrong with the answer.
func (e *Unanswered) Error() string {
	return "reddit gave no usable answer: " + withDetail(e.Reason, e.Detail)
}

// Denied is the error of an Ask that more of the same requests cannot mend, as of a blocked client. It stops the run.
type Denied struct {
	Reason manifest.Reason // bad_credentials, blocked, insufficient_scope, unauthorized, ...
	Detail string          // what was wrong: of fixed texts, but for a status
	Hint   string          // what to do
}

// Error says what Reddit refused and what to do.
func (e *Denied) Error() string {
	return "reddit refuses to answer: " + withDetail(e.Reason, e.Detail) + "; " + e.Hint
}

func withDetail(r manifest.Reason, detail string) string {
	if detail == "" {
		return string(r)
	}
	return string(r) + ": " + detail
}

// An Answer is what one Ask learned. Every id that was asked is in exactly one of the three.
type Answer struct {
	Posts   map[manifest.PostID]Post
	Absent  []manifest.PostID                   // left out of an answer that holds others of them; in the order asked
	Unclear map[manifest.PostID]manifest.Reason // answered, but in a form that supports no verdict
}

// A Post is what Reddit says of one post.
type Post struct {
	Facts  policy.Facts
	Images []Candidate // at least one; several only for a gallery, in its order
	// Subreddit is where the post was made, in lower case; "" on a user's profile, whose name is a person's.
	Subreddit string
}

// Image returns image i of the post. Past the end of a gallery, and for every i of a post without images, it has a
// fault. The mark of an author on the only item that a gallery lists is of no other image. How many images an album of
// imgur has is known only to Download. Of an image that is stored ask ImageFrom.
func (p Post) Image(i int) Candidate {
	if i >= 0 && i < len(p.Images) {
		return p.Images[i]
	}
	if len(p.Images) == 1 {
		only := p.Images[0]
		if only.Fault != nil && !only.leftGallery() {
			return only
		}
		if g, ok := parseImgurPage(only.URL); ok && g.kind != imgurImage && i >= 0 {
			g.image = i
			return Candidate{URL: g.String(), Host: only.Host, Parent: only.Parent}
		}
	}
	return Candidate{Fault: &policy.Fault{Outcome: manifest.Gone, Reason: "no_such_image",
		Detail: fmt.Sprintf("image %d asked for, the post has %d", i, len(p.Images))}}
}

// ImageFrom is Image of an image that came from source, as Candidate.Source has it; "" is not known. others are the
// sources of the other entries of the post. An author takes an image out of a gallery, not a place: the mark counts
// wherever the image is listed now, and a mark on another image in its place says nothing of it.
func (p Post) ImageFrom(i int, source string, others iter.Seq[string]) Candidate {
	if source == "" {
		c := p.Image(i)
		for other := range others {
			if c.leftGallery() && c.Media != "" && c.IsFrom(other) {
				c.Fault = AnotherImage("the image that the gallery has in its place is another entry's, and was taken out of it")
			}
		}
		return c
	}
	for _, c := range p.Images {
		if c.leftGallery() && c.IsFrom(source) {
			return c
		}
	}
	c := p.Image(i)
	if c.leftGallery() && c.Media != "" {
		c.Fault = AnotherImage("the image that the gallery has in its place was taken out of it")
	}
	return c
}

// AnotherImage is the fault of an image in whose place Reddit has another one.
func AnotherImage(detail string) *policy.Fault {
	return &policy.Fault{Outcome: manifest.Changed, Reason: "another_image", Detail: detail}
}

// A Candidate is where an image of a post can be had, or why it cannot.
type Candidate struct {
	URL   string        // "" when Fault is set
	Host  string        // whose queue and budget the download uses, a host of the policy; "" when Fault is set
	Fault *policy.Fault // nil when URL is set
	// Parent is the post whose image it is, where the post is a crosspost; "" for its own.
	Parent manifest.PostID
	Media  string // the id that Reddit gives an item of a gallery; "" for any other image
}

func (c Candidate) leftGallery() bool { return c.Fault != nil && c.Fault.Reason == policy.LeftGallery }

// Source names where the image lies as the workspace keeps it: the SHA-256 of its URL, without what Reddit signs anew.
// Of an image that was taken out of its gallery it is a place where that can have been; "" without any.
func (c Candidate) Source() string {
	at := c.URL
	switch {
	case at == "" && c.leftGallery() && c.Media != "":
		at = mediaURL(originalHost, c.Media, ".jpg")
	case at == "":
		return ""
	case c.Media != "" && c.Host == previewHost:
		u, _, _ := strings.Cut(at, "?")
		at = mediaURL(previewHost, c.Media, path.Ext(u))
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(at)))
}

// IsFrom reports whether source, as Source has it, is that of this image. Reddit tells an item of a gallery by its
// media id, and the extension of one that is gone no more.
func (c Candidate) IsFrom(source string) bool {
	if source == "" || c.Media == "" {
		return source != "" && source == c.Source()
	}
	for _, host := range []string{originalHost, previewHost} {
		for _, extension := range mediaExtensions {
			if at := (Candidate{URL: mediaURL(host, c.Media, extension)}); at.Source() == source {
				return true
			}
		}
	}
	return source == c.Source()
}

// Removed reports whether the image was removed from its post: out of a gallery by the author, or with the post that a
// crosspost shows. Of a post that is live it goes alone.
func (c Candidate) Removed() bool {
	return c.Fault != nil && slices.Contains(policy.ImageRemovals(), c.Fault.Reason)
}

// Shows reports whether the answer has an image again that was removed for a reason. source is where it came from, ""
// if that is not known. An answer without the items of a gallery, or without the post that a crosspost shows, says no
// more of the image than silence; another picture in its place is not it.
func (c Candidate) Shows(removed manifest.Reason, source string) bool {
	if removed == policy.CrosspostParent { // the post is live: what is odd about its image is no removal
		return c.Parent != "" && !c.Removed()
	}
	return c.Fault == nil && (source == "" || c.IsFrom(source))
}

// WithoutParent is the post, or, where it is a crosspost of one that tombstone has the state of, what Reddit would
// answer if that were gone.
func (p *Post) WithoutParent(tombstone func(parent manifest.PostID) (manifest.PostState, bool)) *Post {
	for _, c := range p.Images {
		if c.Parent == "" {
			continue
		}
		if stone, taken := tombstone(c.Parent); taken {
			after := *p
			after.Images = []Candidate{{Parent: c.Parent, Fault: &policy.Fault{Outcome: manifest.Gone,
				Reason: policy.CrosspostParent,
				Detail: "the post this is a crosspost of has a tombstone: " + string(stone)}}}
			return &after
		}
	}
	return p
}

// A Download is the body of an image that has passed policy.InspectImage, and where it came from.
type Download struct {
	Body []byte
	Info picture.Info
	// Host is the image host that the image was to come from, as the policy names it: for a page of imgur that of the
	// file. It is also set beside a fault, but for one that was found before any image host was chosen.
	Host string
	// Redirected says that Host sent the request on, be it to another URL of its own: a picture that came this way can
	// be a stand-in. It is also set beside a fault.
	Redirected bool
}

// Unreachable is the error of an Ask of a host that failed too often in a row, or that asks for a longer pause than a
// run makes. It stops the run, which goes on where it was when started again.
type Unreachable struct {
	Host   string
	Reason manifest.Reason // of the last failure (http_429, html, timeout, dns, ...), or retry_after_too_long
	Until  time.Time       // before which it is not worth asking again; zero when that is not known
	Detail string          // what the host did, and what to do
}

// Error says which host failed, how, and what to do.
func (e *Unreachable) Error() string { return e.Host + " " + e.Detail }
