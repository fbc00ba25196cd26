package reddit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"rehydrate/internal/picture"
	"rehydrate/internal/polite"
	"rehydrate/manifest"
	"rehydrate/policy"
)

// Download fetches the image of a candidate and inspects it. The caller has seen the post live first: a 200 from an
// image host proves nothing. A *policy.Fault is this image's trouble, or what the candidate has already; where NoImage
// has its reason, the Body is what came. Every other error is the context's and stops the run.
func (c *Client) Download(ctx context.Context, cand Candidate) (Download, error) {
	if cand.Fault != nil {
		return Download{}, cand.Fault
	}
	link := cand.URL
	if page, ok := parseImgurPage(link); ok {
		var err error
		link, err = c.resolve(ctx, page)
		if err != nil {
			return Download{}, err
		}
	}
	at, f := allowed(link, c.o.Policy) // whoever made the candidate
	if f != nil {
		return Download{}, f
	}
	d, err := c.fetchImage(ctx, at)
	d.Host = at.Host
	if !errors.As(err, &f) || !NoImage(f.Reason) {
		return d, err
	}
	c.o.Log.Debug("text or nothing in place of an image, asking once more", "host", at.Host, "reason", f.Reason)
	w := polite.Wait{Host: at.Host, Reason: waitServer, For: 2 * c.o.retryWait}
	if err := c.pace.waits.Sleep(ctx, w); err != nil {
		return Download{}, err
	}
	d, err = c.fetchImage(ctx, at)
	d.Host = at.Host
	return d, err
}

// NoImage reports whether a fault is text or nothing in place of an image, which a host in trouble sends, too.
func NoImage(r manifest.Reason) bool {
	return slices.Contains([]manifest.Reason{"empty_body", "not_an_image_html", "not_an_image_json",
		"not_an_image_xml"}, r)
}

var redirects = map[int]bool{301: true, 302: true, 303: true, 307: true, 308: true}

// fetchImage asks for a URL and follows where it leads. Its error is a *policy.Fault or the context's.
func (c *Client) fetchImage(ctx context.Context, at *url.URL) (d Download, err error) {
	f := c.o.Policy.FinalURLPlaceholder(at)
	var lanes []*lane // of the hosts that were asked
	for hops := 0; f == nil; hops++ {
		d.Redirected = hops > 0
		lanes = append(lanes, c.pace.lanes[at.Host])
		if hops > maxHops {
			return d, failed("too_many_redirects", fmt.Sprintf("more than %d", maxHops))
		}
		leave, err := c.pace.enter(ctx, at.Host)
		if err != nil {
			return d, err
		}
		// Naming image types would make i.redd.it answer with WebP, and text/html with a page.
		e, err := c.get(ctx, c.images, at.String(), "*/*", c.o.Policy.Images.MaxBytes, nil)
		leave()
		if err != nil {
			return d, c.fetchFault(ctx, at.Host, err)
		}
		if !redirects[e.status] {
			d.Body, d.Info, err = c.receive(at.Host, e)
			for _, l := range lanes {
				if err == nil || forbidden(err) {
					l.gave()
				}
			}
			return d, err
		}
		d.Redirected = true
		at, f = c.follow(at, e.header)
	}
	return d, f
}

// notAllowed is the fault of a host that the policy does not name.
func notAllowed(host string) *policy.Fault {
	return &policy.Fault{Outcome: manifest.Refused, Reason: "host_not_allowed",
		Detail: domain(strings.ToLower(host)) + " is not among the policy's hosts"}
}

// allowed checks a URL against the policy, in full.
func allowed(raw string, p policy.Policy) (*url.URL, *policy.Fault) {
	refuse := func(r manifest.Reason, detail string) (*url.URL, *policy.Fault) {
		return nil, &policy.Fault{Outcome: manifest.Refused, Reason: r, Detail: detail}
	}
	u, err := url.Parse(raw)
	if err != nil || !u.IsAbs() || u.Opaque != "" || u.Scheme == "https" && u.Hostname() == "" {
		return refuse("bad_url", "not an absolute URL")
	}
	name := u.Hostname()
	host, known := p.Host(name)
	switch {
	case u.Scheme != "https":
		return refuse("not_https", "only https is asked")
	case u.User != nil:
		return refuse("url_userinfo", "the URL holds a user name")
	case u.Port() != "" && u.Port() != "443":
		return refuse("url_port", "the URL names another port than 443")
	case !known, host.Name == imgurAPIHost:
		return nil, notAllowed(name)
	}
	u.Host, u.Fragment = host.Name, ""
	return u, nil
}

// follow checks where a redirect leads. A refusal has the reason that allowed gives, behind "redirect_".
func (c *Client) follow(from *url.URL, h http.Header) (*url.URL, *policy.Fault) {
	to, err := from.Parse(h.Get("Location"))
	if err != nil || h.Get("Location") == "" {
		return nil, failed("bad_redirect", "the host redirects to nowhere")
	}
	if f := c.o.Policy.FinalURLPlaceholder(to); f != nil {
		return nil, f
	}
	if isImagePage(to) {
		return nil, failed("redirect_to_page", "the host redirects to a page about the image, as it does for a browser")
	}
	at, f := allowed(to.String(), c.o.Policy)
	if f != nil {
		f.Reason = "redirect_" + f.Reason
	}
	return at, f
}

// isImagePage recognises the pages that i.redd.it and i.imgur.com send browsers to.
func isImagePage(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	return host == tokenHost && u.Path == "/media" || imgurSites[host] && !imageExtension.MatchString(u.Path)
}

// receive judges the last answer of an image host. It returns the body that Download gives out.
func (c *Client) receive(host string, e exchange) ([]byte, picture.Info, error) {
	var none picture.Info
	if e.status != http.StatusOK {
		return nil, none, statusFault(host, e)
	}
	if enc := e.header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return nil, none, failed("content_encoding", "the host packed the body, unasked")
	}
	info, f := c.o.Policy.InspectImage(e.body)
	switch {
	case f == nil && c.tagForbids(host, e.header) != "":
		return nil, none, &policy.Fault{Outcome: manifest.Refused, Reason: policy.RobotsTag,
			Detail: "the host's X-Robots-Tag says " + c.tagForbids(host, e.header)}
	case f == nil:
		return e.body, info, nil
	case f.Reason == "not_an_image_json" && speaksOf(e.body, "over capacity"):
		return nil, none, overCapacity()
	case NoImage(f.Reason), policy.IsOfPlaceholder(f.Reason):
		return e.body, none, f
	}
	return nil, none, f
}

// tagForbids returns the directive by which a host keeps an image out of datasets, "" where there is none or the policy
// does not go by it.
func (c *Client) tagForbids(host string, h http.Header) string {
	if rules, _ := c.o.Policy.Host(host); !rules.RespectRobotsTag {
		return ""
	}
	return policy.TagForbids(h.Values("X-Robots-Tag"))
}

// forbidden reports whether an image came that its host keeps out of datasets.
func forbidden(err error) bool {
	f, ok := errors.AsType[*policy.Fault](err)
	return ok && f.Reason == policy.RobotsTag
}

// failed is the fault of an image that may be tried again.
func failed(reason manifest.Reason, detail string) *policy.Fault {
	return &policy.Fault{Outcome: manifest.Failed, Reason: reason, Detail: detail}
}

// statusFault says what a status other than 200 means for an image. Its body is never an image, whatever it looks like.
func statusFault(host string, e exchange) *policy.Fault {
	f := failed(status("http_", e.status), "")
	s := e.status
	switch {
	case host == imgurFileHost && speaksOf(e.body, "over capacity"):
		return overCapacity()
	case s == http.StatusNotFound, s == http.StatusGone: // and no 451, which speaks of where we are
		f.Outcome = manifest.Gone
	case s != http.StatusForbidden:
	case e.header.Get("Retry-After") != "":
		return failed("rate_limited", "403 with a Retry-After")
	case speaksOfBlock(e.body):
		return failed("blocked", "the host refuses this client or network")
	case !turnedAway(host, e):
		f.Outcome = manifest.Gone
	}
	return f
}

// storeError matches the error of a store like Amazon's S3 for a file that it does not have. S3 says AccessDenied to
// those who may not list the store ("GetObject", Amazon S3 API reference), as to the public behind i.redd.it.
var storeError = regexp.MustCompile(`^\s*(?:<\?xml[^>]*>)?\s*<Error>\s*<Code>(?:AccessDenied|NoSuchKey)</Code>`)

// turnedAway reports whether an answer is a 403 that says nothing of what was asked for.
func turnedAway(host string, e exchange) bool {
	switch {
	case e.status != http.StatusForbidden:
		return false
	case host == "i.redd.it":
		return !storeError.Match(e.body)
	case host == imgurAPIHost:
		return !json.Valid(e.body) || speaksOf(e.body, "over capacity")
	}
	// A page (a CDN's Guru Meditation or Access Denied) or an empty body speaks of the client, the network or the
	// host: preview.redd.it sends a 403 for a wrong signature, imgur to clients that it does not like.
	return true
}

// speaksOfBlock recognises the texts of Reddit's and imgur's block pages.
func speaksOfBlock(body []byte) bool {
	return speaksOf(body, "blocked", "network security", "network policy", "administrative rules",
		"whoa there", "too many requests", "rate limit", "over capacity")
}

// speaksOf reports whether a body holds one of the texts, which are in lower case.
func speaksOf(body []byte, texts ...string) bool {
	body = bytes.ToLower(body[:min(len(body), maxScrap)])
	return slices.ContainsFunc(texts, func(t string) bool { return bytes.Contains(body, []byte(t)) })
}

// fetchFault makes a fault of an error without an answer; the context's stays as it is.
func (c *Client) fetchFault(ctx context.Context, host string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	ofAPI := host == imgurAPIHost
	shut, ok := errors.AsType[*Unreachable](err)
	switch {
	case ok && shut.Reason != reasonTooLong:
		return failed(ReasonGivenUp, "the host failed for ten minutes without giving one image, and is left alone now")
	case ok && ofAPI:
		return failed("rate_limited", "imgur's API allows no further request for longer than a run waits")
	case ok:
		return failed(reasonTooLong, "the host asks for a pause of more than "+polite.MaxWait.String())
	}
	f := failed(trouble(err))
	switch {
	case f.Reason == "too_large" && !ofAPI: // an answer of the API says nothing of the image
		f.Outcome = manifest.Invalid
	case f.Reason == reasonProxy: // without its address, see trouble
		f.Detail = "the proxy that HTTPS_PROXY names made no connection to the host"
		if p, ok := errors.AsType[*polite.ProxyError](err); ok && p.Status != 0 {
			f.Detail = fmt.Sprintf("the proxy that HTTPS_PROXY names answered with status %d", p.Status)
		}
	case f.Reason == notPublic:
		f.Outcome = manifest.Refused
	}
	return f
}
