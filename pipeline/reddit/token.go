package reddit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"rehydrate/internal/polite"
	"rehydrate/internal/secret"
	"rehydrate/manifest"
)

const (
	tokenURL     = "https://" + tokenHost + "/api/v1/access_token"
	maxTokenBody = 64 << 10
	maxToken     = 8 << 10             // bytes; Reddit's are about 1000 at most
	maxTokenLife = 30 * 24 * time.Hour // Reddit says 1 h or 24 h; this only keeps sums in range
)

var tokenForm = regexp.MustCompile(`^[!-~]+$`) // fit to stand in a header

// oauthErrors are the codes of RFC 6749, 5.2 and 4.1.2.1, and those that Reddit adds to them. Another word of an answer
// is not shown.
var oauthErrors = []string{"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client",
	"unsupported_grant_type", "invalid_scope", "access_denied", "unsupported_response_type", "server_error",
	"temporarily_unavailable"}

// A tokenCache holds the bearer token, in memory only. Only who holds the API's one place may use it.
type tokenCache struct {
	value   secret.Secret
	expires time.Time
}

// current returns the token, or an empty one when there is none that is still good.
func (t *tokenCache) current() secret.Secret {
	if !time.Now().Before(t.expires) {
		return secret.Secret{}
	}
	return t.value
}

// keep stores a token that Reddit says is good for life.
func (t *tokenCache) keep(token secret.Secret, life time.Duration) {
	// It counts as expired a minute earlier, so that none expires on its way.
	t.value, t.expires = token, time.Now().Add(life-min(time.Minute, life/2))
}

// readToken reads an answer of the token endpoint and keeps the token. Its error is a *Denied or an *Unanswered.
func (c *Client) readToken(e exchange) error {
	switch {
	case e.status == http.StatusUnauthorized, e.status == http.StatusBadRequest:
		return &Denied{"bad_credentials", answered(e),
			"check REDDIT_CLIENT_ID and REDDIT_CLIENT_SECRET against the app's page at Reddit"}
	case e.status == http.StatusForbidden && e.header.Get("Retry-After") == "":
		return blocked(e)
	case e.status != http.StatusOK:
		return &Unanswered{status("token_http_", e.status), ""}
	}
	var answer struct {
		AccessToken string      `json:"access_token"`
		TokenType   string      `json:"token_type"`
		ExpiresIn   json.Number `json:"expires_in"` // also in quotes, or null
		Error       any         `json:"error"`
	}
	err := json.Unmarshal(e.body, &answer)
	token := answer.AccessToken
	// RFC 6749 lets it out; Reddit's shortest is an hour, and a token that ends early is asked for again.
	expires, _ := cmp.Or(answer.ExpiresIn, "3600").Float64()
	if len(token) <= maxToken && tokenForm.MatchString(token) { // what holds a line end would hold back lines
		// The scrubber first: nothing must print a token that is in use, or that stands beside an error.
		c.o.Scrubber.LearnToken(token)
	}
	switch {
	case err != nil:
		return &Unanswered{"token_malformed", "the token endpoint sent no JSON object"}
	case answer.Error != nil: // OAuth errors come with status 200
		code, _ := answer.Error.(string)
		if !slices.Contains(oauthErrors, code) {
			code = "oauth_error"
		}
		return &Denied{manifest.Reason(code), "the token endpoint gives an error in place of a token",
			"the app must be of type script or web app, and be the one that Reddit approved"}
	case len(token) > maxToken, !tokenForm.MatchString(token),
		!strings.EqualFold(answer.TokenType, "bearer"), !(expires >= 1):
		return &Unanswered{"token_malformed", "the token endpoint sent no usable bearer token"}
	}
	life := seconds(min(expires, maxTokenLife.Seconds()))
	c.token.keep(secret.New(token), life)
	c.o.Log.Debug("got a token", "life", life)
	return nil
}

// blocked is the error of a 403 that no retry mends.
func blocked(e exchange) *Denied {
	if strings.Contains(e.header.Get("WWW-Authenticate"), "insufficient_scope") {
		return &Denied{"insufficient_scope", answered(e), "the app may not read posts; ask Reddit for the scope read"}
	}
	if looksLikeHTML(e) || speaksOfBlock(e.body) {
		return &Denied{"blocked", answered(e), "Reddit blocks this client or network; " +
			"check REDDIT_USERNAME and the app's approval, and do not try to get around it"}
	}
	return &Denied{"forbidden", answered(e), "check that the app's approval covers this use"}
}

// unanswered makes an Unanswered of an error without an answer, but of those that stop the run.
func (c *Client) unanswered(ctx context.Context, err error) error {
	reason, detail := trouble(err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errNoToken):
		return &Unanswered{"token_expired", "the token ran out during the waits for a turn"}
	case is[*Denied](err), is[*Unreachable](err):
		return err
	}
	hint := ""
	refused := is[*polite.ProxyError](err) && permanent(err)
	// Before Reddit has answered anything, these are the machine's own trouble: a run would write an empty dataset.
	first := c.token.value.Empty()
	switch {
	case reason == "tls": // as of a portal that wants a login, or a mirror
		hint = "see that nothing stands between this machine and Reddit, or name a mirror's certificate with --cacert"
	case reason == notPublic:
		hint = "name an address that is meant with --connect-to"
	case refused:
		hint = "correct HTTPS_PROXY, which names the proxy and may hold a user name and password, or unset it"
	case reason == reasonProxy && first:
		hint = "see that the proxy runs and that HTTPS_PROXY names it, or unset it"
	case reason == "dns" && first:
		hint = networkHint
	case permanent(err) && !is[*Unanswered](err):
		return err
	default:
		return &Unanswered{reason, detail}
	}
	host := apiHost
	if first {
		host = tokenHost
	}
	return &Unreachable{host, reason, time.Time{}, "could not be asked: " + detail + "; " + hint}
}

// answered is all that is told of an answer that is not used: its text can repeat the request, name a person, or say
// anything else.
func answered(e exchange) string {
	return fmt.Sprintf("it answered with status %d", e.status)
}

func status(prefix string, code int) manifest.Reason {
	return manifest.Reason(prefix + strconv.Itoa(code))
}
