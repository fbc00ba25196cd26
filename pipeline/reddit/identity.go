package reddit

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// errForbidden is the error of a request that this package must never make. Reaching it
// is a mistake in the package, not in the input.
var errForbidden = errors.New("request not allowed")

// credentialed sends the requests to Reddit's API and puts on each the credentials of its
// one host. It sits below everything that could print a request.
type credentialed struct {
	c    *Client
	next http.RoundTripper
}

func (t credentialed) RoundTrip(req *http.Request) (*http.Response, error) {
	req, err := t.c.signed(req)
	if err != nil {
		return nil, err
	}
	switch req.URL.Hostname() {
	case apiHost:
		req.Header.Set("Authorization", "bearer "+t.c.token.current(time.Now()).reveal())
	case tokenHost:
		req.SetBasicAuth(t.c.credentials.ClientID, t.c.credentials.ClientSecret.reveal())
	default:
		return nil, fmt.Errorf("%w: not a host of Reddit's API", errForbidden)
	}
	return t.next.RoundTrip(req)
}

// anonymous sends the requests to image hosts. No credential is in its reach, so that a
// policy or a redirect that names a host of the API gets none.
type anonymous struct {
	c    *Client
	next http.RoundTripper
}

func (t anonymous) RoundTrip(req *http.Request) (*http.Response, error) {
	req, err := t.c.signed(req)
	if err != nil {
		return nil, err
	}
	if _, ok := t.c.policy.Host(req.URL.Hostname()); !ok {
		return nil, fmt.Errorf("%w: the policy does not name the host", errForbidden)
	}
	resp, err := t.next.RoundTrip(req)
	if err == nil {
		// net/http reads a Location even where redirects are not followed, and fails on a
		// bad one as if the host had not answered.
		if _, bad := req.URL.Parse(resp.Header.Get("Location")); bad != nil {
			resp.Header.Del("Location")
		}
	}
	return resp, err
}

// signed returns the request with the User-Agent and nothing else that says who asks. It is
// the last to look at where a request goes.
func (c *Client) signed(req *http.Request) (*http.Request, error) {
	u := req.URL
	if u.Scheme != "https" || u.User != nil || u.Port() != "" && u.Port() != "443" {
		return nil, fmt.Errorf("%w: only https on port 443, without user information", errForbidden)
	}
	req = req.Clone(req.Context())
	for _, h := range []string{"Authorization", "Cookie", "Referer"} {
		req.Header.Del(h)
	}
	req.Header.Set("User-Agent", c.userAgent)
	return req, nil
}

// A tokenCache holds the bearer token, in memory only.
type tokenCache struct {
	mu      sync.Mutex
	value   Secret
	expires time.Time
}

// current returns the token, or an empty one when there is none that is still good.
func (t *tokenCache) current(now time.Time) Secret {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !now.Before(t.expires) {
		return Secret{}
	}
	return t.value
}

// keep stores a token that Reddit says is good for life. It counts as expired a minute
// earlier, so that none expires on its way.
func (t *tokenCache) keep(token string, life time.Duration, now time.Time) {
	const early = time.Minute
	t.mu.Lock()
	defer t.mu.Unlock()
	t.value, t.expires = NewSecret(token), now.Add(life-min(early, life/2))
}

func (t *tokenCache) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.value, t.expires = Secret{}, time.Time{}
}

// said shortens what a server sent to one printable line for an error message: tags,
// control characters and anything that is no ASCII go.
func said(body []byte) string {
	const most = 160
	var b strings.Builder
	tag, space := false, false
	for _, r := range string(body) {
		switch {
		case r == '<':
			tag, space = true, true
		case r == '>' && tag:
			tag = false
		case tag:
		case r <= ' ' || r > '~':
			space = true
		default:
			if space && b.Len() > 0 {
				b.WriteByte(' ')
			}
			space = false
			b.WriteRune(r)
		}
		if b.Len() >= most {
			return b.String() + "..."
		}
	}
	return b.String()
}
