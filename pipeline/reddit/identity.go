package reddit

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// errForbidden is the error of a request that this package must never make. Reaching it
// is a mistake in the package, not in the input.
var errForbidden = errors.New("request not allowed")

// errNoToken is the error of a request to the API whose token ran out while it waited for
// its turn. It has not been sent.
var errNoToken = errors.New("the token ran out during a wait")

// identified sends the requests of one kind, with what says who asks. It is the last to look at where
// a request goes, and sits below everything that could print one. Which kind is said when a stack is
// made, not by a request's host: a policy or a redirect that names a host of the API gets no credential.
type identified struct {
	c         *Client
	next      http.RoundTripper
	authorize func(*http.Request) error // puts on the credentials of a host, or refuses the host
}

func (t identified) RoundTrip(req *http.Request) (*http.Response, error) {
	u := req.URL
	if u.Scheme != "https" || u.User != nil || u.Port() != "" && u.Port() != "443" {
		return nil, fmt.Errorf("%w: only https on port 443, without user information", errForbidden)
	}
	req = req.Clone(req.Context())
	req.Header.Set("User-Agent", t.c.userAgent)
	if err := t.authorize(req); err != nil {
		return nil, err
	}
	resp, err := t.next.RoundTrip(req)
	if err == nil {
		// net/http reads a Location even where redirects are not followed, and fails on a
		// bad one as if the host had not answered.
		if _, bad := u.Parse(resp.Header.Get("Location")); bad != nil {
			resp.Header.Del("Location")
		}
	}
	return resp, err
}

// toReddit puts on each request to Reddit's API the credentials of its one host.
func (c *Client) toReddit(req *http.Request) error {
	switch req.URL.Hostname() {
	case apiHost:
		token := c.token.current()
		if token.Empty() {
			return errNoToken
		}
		req.Header.Set("Authorization", "bearer "+token.reveal())
	case tokenHost:
		req.SetBasicAuth(c.credentials.ClientID, c.credentials.ClientSecret.reveal())
	default:
		return fmt.Errorf("%w: not a host of Reddit's API", errForbidden)
	}
	return nil
}

// toImages lets requests to the policy's image hosts pass, without any credential.
func (c *Client) toImages(req *http.Request) error {
	if _, ok := c.policy.Host(req.URL.Hostname()); !ok {
		return fmt.Errorf("%w: the policy does not name the host", errForbidden)
	}
	return nil
}

// toImgur puts the client id on requests to imgur's API, and lets no other pass.
func (c *Client) toImgur(req *http.Request) error {
	if req.URL.Hostname() != imgurAPIHost {
		return fmt.Errorf("%w: not imgur's API", errForbidden)
	}
	req.Header.Set("Authorization", "Client-ID "+c.imgurID.reveal())
	return nil
}

// A tokenCache holds the bearer token, in memory only. Only who holds the API's one place may use it.
type tokenCache struct {
	value   Secret
	expires time.Time
}

// current returns the token, or an empty one when there is none that is still good.
func (t *tokenCache) current() Secret {
	if !time.Now().Before(t.expires) {
		return Secret{}
	}
	return t.value
}

// keep stores a token that Reddit says is good for life. It counts as expired a minute
// earlier, so that none expires on its way.
func (t *tokenCache) keep(token Secret, life time.Duration) {
	t.value, t.expires = token, time.Now().Add(life-min(time.Minute, life/2))
}
