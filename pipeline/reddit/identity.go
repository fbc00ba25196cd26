package reddit

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// errForbidden is the error of a request that this package must never make. Reaching it
// is a mistake in the package, not in the input.
var errForbidden = errors.New("request not allowed")

// errNoToken is the error of a request to the API whose token ran out while it waited for
// its turn. It has not been sent.
var errNoToken = errors.New("the token ran out during a wait")

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
		token := t.c.token.current(time.Now())
		if token.Empty() {
			return nil, errNoToken
		}
		req.Header.Set("Authorization", "bearer "+token.reveal())
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
	given   [2]Secret // the last two tokens that Reddit gave, good or not
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
	t.value = NewSecret(token)
	if token != t.given[0].reveal() {
		t.given = [2]Secret{t.value, t.given[0]}
	}
	t.expires = now.Add(life - min(early, life/2))
}

// known returns the tokens that an answer could repeat.
func (t *tokenCache) known() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return []string{t.given[0].reveal(), t.given[1].reveal()}
}

func (t *tokenCache) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.value, t.expires = Secret{}, time.Time{}
}
