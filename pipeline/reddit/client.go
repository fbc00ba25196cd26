package reddit

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"rehydrate/manifest"
	"rehydrate/policy"
)

// The two hosts of Reddit's API. Any other host is an image host.
const (
	apiHost   = "oauth.reddit.com" // the only one that the bearer token goes to
	tokenHost = "www.reddit.com"   // the only one that the client secret goes to
)

// MaxAsk is the most ids that one Ask can ask: Reddit answers a longer list with an
// empty one.
const MaxAsk = 100

// ReasonEmptyListing is the reason of the *Unanswered of an Ask whose answer was whole and
// held no post at all. It can mean that every post asked for is absent, or that Reddit is
// not answering. Asking again beside a post known to be live decides.
const ReasonEmptyListing manifest.Reason = "empty_listing"

// ReasonImgurPage is the reason of the Fault of a page or album of imgur that this client cannot
// ask imgur's API about. It says nothing of the images behind it.
const ReasonImgurPage manifest.Reason = "imgur_page"

// ErrNoApproval is the error of New when Options.Approval is empty.
var ErrNoApproval = errors.New("no approval by Reddit is named, so nothing is asked of it")

// Options are what a Client works with. Credentials, Approval and Policy are required.
type Options struct {
	Credentials
	Approval string // the operator's reference to Reddit's approval; must not be blank
	// ImgurClientID is that of an app registered with imgur. With one, links to imgur's pages
	// and albums are resolved through its API; empty, they are refused.
	ImgurClientID Secret
	Policy        policy.Policy  // rates, image hosts, limits on images
	ConnectTo     []ConnectTo    // addresses to dial in place of hosts; the first that fits wins
	RootCAs       *x509.CertPool // nil = the system's
	Version       string         // of the tool, for the User-Agent; "" = dev
	Log           *slog.Logger   // nil = discard
	Scrubber      *Scrubber      // learns the credentials, and each token that the client gets; nil = none
	OnWait        func(Wait)     // called before every wait over 2 s, from any goroutine; may be nil
	// RetryWait is the longest pause before a first retry; it doubles with each further one, and the pause is a
	// random part of it. After a call that was refused by a rate limit its host rests for four times as long,
	// after the second failure in a row, of whatever kind, for 16 times, and so on. 0 = 1 s.
	RetryWait time.Duration
}

// A Wait is a pause that the client is about to make.
type Wait struct {
	Host   string
	Reason string // pace, rate_limit, retry_after, server_error or network
	For    time.Duration
}

// A Client asks Reddit and its image hosts. Make one with New. It is safe for concurrent use.
type Client struct {
	policy    policy.Policy
	log       *slog.Logger
	onWait    func(Wait)
	retryWait time.Duration
	jitter    func() float64 // in [0, 1)

	credentials Credentials
	userAgent   string

	pace   *pacer
	api    *retryablehttp.Client
	images *retryablehttp.Client

	imgurID Secret
	imgur   imgurAPI

	token    tokenCache
	scrubber *Scrubber
	calls    counters
}

// New makes a client. It makes no request. Without an approval, a client id, a secret or
// a user name that a Reddit account can have, and with a policy so slow that a request would
// wait over 15 minutes for its turn, it is an error that says what to set.
func New(o Options) (*Client, error) {
	api, images := newTransports(o)
	return newClient(o, api, images)
}

// newClient is New over given transports, which tests replace.
func newClient(o Options, api, images http.RoundTripper) (*Client, error) {
	if strings.TrimSpace(o.Approval) == "" {
		return nil, ErrNoApproval
	}
	if err := o.Credentials.check(); err != nil {
		return nil, err
	}
	if err := checkRates(o.Policy); err != nil {
		return nil, err
	}
	c := &Client{
		policy: o.Policy, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), onWait: o.OnWait,
		retryWait: cmp.Or(max(o.RetryWait, 0), time.Second), jitter: rand.Float64,
		credentials: o.Credentials, scrubber: cmp.Or(o.Scrubber, new(Scrubber)),
		// The form that Reddit's API rules require; by the account's name Reddit can reach whoever runs this.
		userAgent: fmt.Sprintf("%s:rehydrate:%s (by /u/%s)", runtime.GOOS, cmp.Or(o.Version, "dev"), o.Username),
	}
	if c.onWait == nil {
		c.onWait = func(Wait) {}
	}
	secret := o.ClientSecret.reveal()
	c.scrubber.learn(o.ClientID, secret, o.ImgurClientID.reveal(), o.ClientID+":"+secret)
	c.pace = newPacer(o.Policy, c.onWait, &c.calls)
	c.api, c.images = c.stack(api, c.toReddit), c.stack(images, c.toImages)
	if err := c.useImgur(o.ImgurClientID, api); err != nil {
		return nil, err
	}
	return c, nil
}

// Unanswered is the error of an Ask that got no well-formed answer: no verdict on any of
// the ids, evidence of nothing. The run can go on and ask again later.
type Unanswered struct {
	Reason manifest.Reason // html, truncated_json, not_a_listing, empty_listing, too_large, http_503, timeout, ...
	Detail string
}

// Error says what was wrong with the answer.
func (e *Unanswered) Error() string {
	return "reddit gave no usable answer: " + withDetail(e.Reason, e.Detail)
}

// Denied is the error of an Ask that more of the same requests cannot mend: credentials
// rejected, a client blocked, a rate limit longer than a run should wait. It stops the run.
type Denied struct {
	Reason manifest.Reason // bad_credentials, blocked, insufficient_scope, unauthorized, retry_after_too_long, ...
	Detail string          // what Reddit said, short and printable
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

// An Answer is what one Ask learned. Every id that was asked is in exactly one of the
// three.
type Answer struct {
	Posts map[manifest.PostID]Post
	// Absent are the ids that the answer left out, in the order asked. It has ids only when
	// the same answer held another requested post, so that an empty answer proves nothing.
	Absent []manifest.PostID
	// Unclear are the ids that Reddit did answer, but in a form that supports no verdict.
	Unclear map[manifest.PostID]manifest.Reason
}

// A Post is what Reddit says of one post.
type Post struct {
	Facts  policy.Facts
	Images []Candidate // at least one; several only for a gallery, in its order
	// Subreddit is where the post was made, in lower case, as About takes it. It is "" for a
	// post on a user's profile, whose name is a person's, and for what is not a subreddit's name.
	Subreddit string
}

// Image returns image i of the post. Where the post as a whole has no image (a video, a
// text) that is the answer for every i; past the end of a gallery it is a fault. How many
// images an album of imgur has is known only to Download.
func (p Post) Image(i int) Candidate {
	if i >= 0 && i < len(p.Images) {
		return p.Images[i]
	}
	if len(p.Images) == 1 {
		only := p.Images[0]
		if only.Fault != nil {
			return only
		}
		if g, ok := parseImgurPage(only.URL); ok && g.kind != imgurImage && i >= 0 {
			g.image = i
			return Candidate{URL: g.String(), Host: only.Host}
		}
	}
	return Candidate{Fault: &policy.Fault{Outcome: manifest.Gone, Reason: "no_such_image",
		Detail: fmt.Sprintf("image %d asked for, the post has %d", i, len(p.Images))}}
}

// A Candidate is where an image of a post can be had, or why it cannot.
type Candidate struct {
	URL   string        // "" when Fault is set
	Host  string        // whose queue and budget the download uses, a host of the policy; "" when Fault is set
	Fault *policy.Fault // nil when URL is set
}

// A Download is the body of an image that has passed policy.InspectImage.
type Download struct {
	Body []byte
	Info policy.ImageInfo
}

// A WaitTooLong is the error of an Ask when a host asks for a longer pause than a run
// should make. It stops the run, which goes on where it was when started again.
type WaitTooLong struct {
	Host string
	For  time.Duration
}

// Error says who asked for what pause.
func (e *WaitTooLong) Error() string {
	return fmt.Sprintf("%s asks to wait %v, more than the %v that a run waits; start again after that time",
		e.Host, e.For.Round(time.Second), maxWait)
}

// wait sleeps for d or until ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
