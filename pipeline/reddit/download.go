package reddit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/hashicorp/go-retryablehttp"

	"rehydrate/manifest"
	"rehydrate/policy"
)

// maxHops is the most redirects that an image is followed through.
const maxHops = 3

// Download fetches the image of a candidate and inspects it. The caller has seen the post
// live first: a 200 from an image host proves nothing.
//
// A *policy.Fault is this image's trouble, with the outcome and reason for its entry; it
// is also the answer to a candidate that has a fault already. Every other error is the
// context's and stops the run.
func (c *Client) Download(ctx context.Context, cand Candidate) (Download, error) {
	if cand.Fault != nil {
		return Download{}, cand.Fault
	}
	at, f := c.allowed(cand.URL)
	for hop := 0; f == nil; hop++ {
		e, err := c.fetch(ctx, at)
		if err != nil {
			return Download{}, c.fetchFault(ctx, at.Host, err)
		}
		if !redirects[e.status] {
			return c.receive(at.Host, e)
		}
		if hop == maxHops {
			return Download{}, &policy.Fault{Outcome: manifest.Failed, Reason: "too_many_redirects",
				Detail: fmt.Sprintf("more than %d", maxHops)}
		}
		at, f = c.follow(at, e.header)
	}
	return Download{}, f
}

var redirects = map[int]bool{301: true, 302: true, 303: true, 307: true, 308: true}

// fetch makes one hop, in one of the host's places.
func (c *Client) fetch(ctx context.Context, at *url.URL) (exchange, error) {
	leave, err := c.pace.enter(ctx, at.Host)
	if err != nil {
		return exchange{}, err
	}
	defer leave()
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return exchange{}, err
	}
	// Naming image types would make i.redd.it answer with WebP, and text/html with a page.
	req.Header.Set("Accept", "*/*")
	e, err := c.do(c.images, req, c.policy.Images.MaxBytes)
	c.log.Debug("asked an image host", "host", at.Host, "status", e.status, "bytes", len(e.body))
	return e, err
}

// allowed checks a URL against the policy, in full, whoever made it.
func (c *Client) allowed(raw string) (*url.URL, *policy.Fault) {
	refuse := func(r manifest.Reason, detail string) (*url.URL, *policy.Fault) {
		return nil, &policy.Fault{Outcome: manifest.Refused, Reason: r, Detail: detail}
	}
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" || u.Host == "" {
		return refuse("bad_url", "not an absolute URL")
	}
	host, known := c.policy.Host(u.Hostname())
	switch {
	case u.Scheme != "https":
		return refuse("not_https", "only https is asked")
	case u.User != nil:
		return refuse("url_userinfo", "the URL holds a user name")
	case u.Port() != "" && u.Port() != "443":
		return refuse("url_port", "the URL names another port than 443")
	case !known:
		return refuse("host_not_allowed", domain(strings.ToLower(u.Hostname()))+" is not among the policy's hosts")
	}
	u.Host, u.Fragment = host.Name, ""
	return u, nil
}

// follow checks where a redirect leads.
func (c *Client) follow(from *url.URL, h http.Header) (*url.URL, *policy.Fault) {
	to, err := from.Parse(h.Get("Location"))
	if err != nil || h.Get("Location") == "" {
		return nil, &policy.Fault{Outcome: manifest.Failed, Reason: "bad_redirect", Detail: "the host redirects to nowhere"}
	}
	at, f := c.allowed(to.String())
	if f != nil {
		return nil, &policy.Fault{Outcome: manifest.Refused, Reason: "redirect_not_allowed", Detail: string(f.Reason) + ": " + f.Detail}
	}
	if strings.HasSuffix(at.Path, "/removed.png") {
		return nil, &policy.Fault{Outcome: manifest.Placeholder, Reason: "known_placeholder", Detail: "the host redirects to its picture for a removed image"}
	}
	return at, nil
}

// receive judges the last answer of an image host.
func (c *Client) receive(host string, e exchange) (Download, error) {
	if e.status != http.StatusOK {
		return Download{}, statusFault(host, e)
	}
	if enc := e.header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return Download{}, &policy.Fault{Outcome: manifest.Failed, Reason: "content_encoding", Detail: "the host packed the body, unasked"}
	}
	info, f := c.policy.InspectImage(e.body)
	if f != nil {
		return Download{}, f
	}
	return Download{Body: e.body, Info: info}, nil
}

// statusFault says what a status other than 200 means for an image. Its body is never an
// image, whatever it looks like.
func statusFault(host string, e exchange) *policy.Fault {
	f := &policy.Fault{Outcome: manifest.Failed, Reason: status("http_", e.status)}
	switch e.status {
	case http.StatusNotFound, http.StatusGone, http.StatusUnavailableForLegalReasons:
		f.Outcome = manifest.Gone
	case http.StatusForbidden:
		// Reddit's image hosts answer so for a file they do not have; imgur does for
		// clients and networks that it does not like, which says nothing of the image.
		switch {
		case e.header.Get("Retry-After") != "":
			f.Reason, f.Detail = "rate_limited", "403 with a Retry-After"
		case speaksOfBlock(e.body):
			f.Reason, f.Detail = "blocked", "the host refuses this client or network"
		case strings.HasSuffix(host, ".redd.it"):
			f.Outcome = manifest.Gone
		}
	}
	return f
}

// speaksOfBlock recognises the texts of Reddit's and imgur's block and overload pages.
func speaksOfBlock(body []byte) bool {
	text := bytes.ToLower(body)
	for _, mark := range []string{"blocked", "network security", "network policy", "administrative rules",
		"whoa there", "too many requests", "rate limit", "over capacity"} {
		if bytes.Contains(text, []byte(mark)) {
			return true
		}
	}
	return false
}

// fetchFault makes a fault of an error without an answer; the context's stays as it is.
func (c *Client) fetchFault(ctx context.Context, host string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c.log.Debug("no answer from an image host", "host", host, "error", c.printable(err.Error()))
	var shut *Unreachable
	if errors.As(err, &shut) {
		return &policy.Fault{Outcome: manifest.Failed, Reason: "host_unreachable",
			Detail: "the host failed several times in a row and is left alone for a while"}
	}
	var long *WaitTooLong
	if errors.As(err, &long) {
		return &policy.Fault{Outcome: manifest.Failed, Reason: "retry_after_too_long", Detail: "the host asks for a pause of more than " + maxWait.String()}
	}
	reason, detail := trouble(err)
	outcome := manifest.Failed
	switch reason {
	case "too_large":
		outcome = manifest.Invalid
	case "address_not_allowed":
		outcome = manifest.Refused
	}
	return &policy.Fault{Outcome: outcome, Reason: reason, Detail: detail}
}
