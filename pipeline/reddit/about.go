package reddit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"rehydrate/manifest"
	"rehydrate/policy"
)

// About asks Reddit what a subreddit is, which may explain why a post is absent. An answer that explains nothing is
// policy.CommunityUnknown, without an error. The errors are those of Ask that stop the run, and that of a name that is
// not a subreddit's, which costs no request.
func (c *Client) About(ctx context.Context, name string) (manifest.Reason, error) {
	name = manifest.Subreddit(name)
	if name == "" {
		return "", errors.New("about: that is not the name of a subreddit: at most 21 letters, digits and _, not a profile")
	}
	var kind manifest.Reason
	err := c.askAPI(ctx, "https://"+apiHost+"/r/"+name+"/about?raw_json=1", func(e exchange) (err error) {
		kind, err = readAbout(e, name)
		return err
	})
	if none, ok := errors.AsType[*Unanswered](err); ok {
		c.o.Log.Debug("no answer about a subreddit", "reason", none.Reason, "detail", none.Detail)
		return policy.CommunityUnknown, nil
	}
	if err != nil {
		return policy.CommunityUnknown, fmt.Errorf("ask about a subreddit: %w", err)
	}
	return kind, nil
}

// communities are the reasons that Reddit gives with a 403 or a 404 (redditwarp, redlib client.rs).
var communities = map[string]manifest.Reason{
	"private": policy.CommunityPrivate, "gold_only": policy.CommunityPrivate,
	"employees_only": policy.CommunityPrivate, "banned": policy.CommunityBanned,
	"quarantined": policy.CommunityQuarantined, "gated": policy.CommunityGated,
}

// readAbout reads an answer of /r/NAME/about other than a 401. Its error is an *Unanswered, or the *Denied of a 403
// that is about the client and not about the subreddit.
func readAbout(e exchange, name string) (manifest.Reason, error) {
	var answer struct {
		Kind string
		Data struct {
			Name       string `json:"display_name"`
			Type       string `json:"subreddit_type"`
			Quarantine bool   `json:"quarantine"`
		}
		Reason  string
		Message any
		Error   any
	}
	none := unmarshal(e, &answer, "not_a_subreddit")
	if e.status == http.StatusOK {
		switch {
		case none != nil:
			return policy.CommunityUnknown, none
		case answer.Kind != "t5" || !strings.EqualFold(answer.Data.Name, name): // others are suggested in its place
			return "", &Unanswered{"not_a_subreddit", "the answer is JSON, but not about the subreddit"}
		case answer.Data.Quarantine:
			return policy.CommunityQuarantined, nil
		case communities[answer.Data.Type] == policy.CommunityPrivate: // seen by a member
			return policy.CommunityPrivate, nil
		}
		return policy.CommunityOpen, nil
	}
	if redirects[e.status] && leadsToSearch(e.header) {
		return policy.CommunityMissing, nil
	}
	forbidden := e.status == http.StatusForbidden
	switch {
	case saysLater(e.status, e.header), !forbidden && (e.status != http.StatusNotFound || none != nil):
	case none != nil:
		return policy.CommunityUnknown, blocked(e)
	case answer.Reason != "":
		return communities[answer.Reason], nil // unknown for a reason that is not known here
	case forbidden:
		if denied := blocked(e); denied.Reason != "forbidden" {
			return policy.CommunityUnknown, denied
		}
		return policy.CommunityUnknown, nil // of this subreddit, and without a reason
	case answer.Message == "Not Found", answer.Error == float64(http.StatusNotFound):
		return policy.CommunityMissing, nil
	}
	return policy.CommunityUnknown, &Unanswered{status("http_", e.status), ""}
}

// leadsToSearch reports whether a redirect is the one that Reddit sends for a name that it does not know.
func leadsToSearch(h http.Header) bool {
	to, err := url.Parse(h.Get("Location"))
	return err == nil && (to.Host == "" || isRedditPage(strings.ToLower(to.Hostname()))) &&
		strings.TrimSuffix(to.Path, ".json") == "/subreddits/search"
}
