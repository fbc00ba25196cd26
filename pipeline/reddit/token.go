package reddit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"rehydrate/manifest"
)

const (
	tokenURL     = "https://" + tokenHost + "/api/v1/access_token"
	maxTokenBody = 64 << 10
	maxToken     = 8 << 10             // bytes; Reddit's are about 1000 at most
	maxTokenLife = 30 * 24 * time.Hour // Reddit says 1 h or 24 h; this only keeps sums in range
)

// A token must be fit to stand in a header.
var tokenForm = regexp.MustCompile(`^[!-~]+$`)

// authorize sees to it that there is a bearer token: app-only, by client credentials.
func (c *Client) authorize(ctx context.Context) error {
	if !c.token.current(time.Now()).Empty() {
		return nil
	}
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, tokenURL, []byte("grant_type=client_credentials"))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	var got token
	var denied *Denied
	_, err = c.do(c.api, req, maxTokenBody, func(e exchange) error {
		var err error
		got, err = c.readToken(e)
		if errors.As(err, &denied) {
			return nil // an answer, if not the one that was hoped for
		}
		return err
	})
	switch {
	case err != nil:
		return c.unanswered(ctx, err)
	case denied != nil:
		return denied
	}
	c.scrubber.learnToken(got.value)
	c.token.keep(got.value, got.life, time.Now())
	c.log.Debug("got a token", "life", got.life)
	return nil
}

// A token is what the token endpoint gave.
type token struct {
	value string
	life  time.Duration
}

// readToken reads an answer of the token endpoint. OAuth errors come with status 200. Its error
// is a *Denied or an *Unanswered.
func (c *Client) readToken(e exchange) (token, error) {
	switch {
	case e.status == http.StatusUnauthorized, e.status == http.StatusBadRequest:
		return token{}, &Denied{"bad_credentials", c.said(e),
			"check REDDIT_CLIENT_ID and REDDIT_CLIENT_SECRET against the app's page at Reddit"}
	case e.status == http.StatusForbidden && e.header.Get("Retry-After") == "":
		return token{}, c.blocked(e)
	case e.status != http.StatusOK:
		return token{}, &Unanswered{status("token_http_", e.status), c.said(e)}
	}
	var answer struct {
		AccessToken string  `json:"access_token"`
		TokenType   string  `json:"token_type"`
		ExpiresIn   float64 `json:"expires_in"`
		Error       any     `json:"error"`
	}
	if err := json.Unmarshal(e.body, &answer); err != nil {
		return token{}, &Unanswered{"token_malformed", "the token endpoint sent no JSON object"}
	}
	if len(answer.AccessToken) > maxToken {
		return token{}, &Unanswered{"token_malformed", "the token is too long to stand in a header"}
	}
	if answer.Error != nil {
		code, _ := answer.Error.(string)
		return token{}, &Denied{word(c.printable(code, answer.AccessToken), "oauth_error"), c.said(e, answer.AccessToken),
			"the app must be of type script or web app, and be the one that Reddit approved"}
	}
	if !tokenForm.MatchString(answer.AccessToken) || !strings.EqualFold(answer.TokenType, "bearer") || !(answer.ExpiresIn >= 1) {
		return token{}, &Unanswered{"token_malformed", "the token endpoint sent no usable bearer token"}
	}
	return token{answer.AccessToken, seconds(min(answer.ExpiresIn, maxTokenLife.Seconds()))}, nil
}

// reasonForbidden is the reason of a Denied that Reddit does not explain.
const reasonForbidden manifest.Reason = "forbidden"

// blocked is the error of a 403 that no retry mends.
func (c *Client) blocked(e exchange) *Denied {
	if strings.Contains(e.header.Get("WWW-Authenticate"), "insufficient_scope") {
		return &Denied{"insufficient_scope", c.said(e), "the app may not read posts; ask Reddit for the scope read"}
	}
	if looksLikeHTML(e) || speaksOfBlock(e.body) {
		return &Denied{"blocked", c.said(e),
			"Reddit blocks this client or network; check REDDIT_USERNAME and the app's approval, and do not try to get around it"}
	}
	return &Denied{reasonForbidden, c.said(e), "check that the app's approval covers this use"}
}

// unanswered makes an Unanswered of an error without an answer. The context's error, a
// WaitTooLong, an Unreachable, and errors that mean a wrong setting stop the run.
func (c *Client) unanswered(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errNoToken):
		return &Unanswered{"token_expired", "the token ran out during the waits for a turn"}
	case isCertificate(err):
		return fmt.Errorf("ask reddit: %s; if a mirror or an emulator is meant, name its certificate with --cacert", badCertificate(err))
	case isGuard(err):
		return fmt.Errorf("ask reddit: its name leads to an address that is not public: %w; name an address that is meant with --connect-to", err)
	case permanent(err) && !isTooLarge(err):
		return err
	}
	c.log.Debug("no answer from reddit", "error", c.printable(err.Error()))
	reason, detail := trouble(err)
	return &Unanswered{reason, detail}
}

func status(prefix string, code int) manifest.Reason {
	return manifest.Reason(prefix + strconv.Itoa(code))
}

// word makes a reason of a word that Reddit sent, if it is one.
func word(s string, otherwise manifest.Reason) manifest.Reason {
	if !wordForm.MatchString(s) {
		return otherwise
	}
	return manifest.Reason(s)
}

var wordForm = regexp.MustCompile(`^[a-z][a-z_]{1,39}$`)
