package reddit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"rehydrate/manifest"
	"rehydrate/policy"
)

const (
	infoURL     = "https://" + apiHost + "/api/info"
	maxInfoBody = 8 << 20
)

// Ask asks Reddit what became of up to MaxAsk posts, in one request. It waits as long as
// the rate limits want, and tries again after passing trouble.
//
// An *Unanswered means no verdict for any of the ids, and the run can go on. Every other
// error stops the run: *Denied, *WaitTooLong, *Unreachable, the context's, a wrong setting.
// More than MaxAsk ids, none, or one that ParsePostID would not have made are the caller's
// mistake and cost no request.
func (c *Client) Ask(ctx context.Context, ids []manifest.PostID) (Answer, error) {
	asked, err := checkIDs(ids)
	if err != nil {
		return Answer{}, err
	}
	names := make([]string, len(asked))
	for i, id := range asked {
		names[i] = id.Fullname()
	}
	var children []json.RawMessage
	var empty error
	// The commas stand as they are: Reddit's own clients send them so.
	e, err := c.askAPI(ctx, infoURL+"?id="+strings.Join(names, ",")+"&raw_json=1", func(e exchange) error {
		var err error
		children, err = c.readListing(e)
		empty = nil
		if none, ok := errors.AsType[*Unanswered](err); ok && none.Reason == ReasonEmptyListing {
			empty, err = err, nil // an answer; only the caller knows what it means
		}
		return err
	})
	switch {
	case err != nil:
		return Answer{}, err
	case e.status == http.StatusForbidden:
		return Answer{}, c.blocked(e)
	case empty != nil:
		return Answer{}, empty
	}
	return readChildren(children, asked, c.policy)
}

// askAPI makes one call of the API, alone, and renews the token once when the answer is a 401.
// What use gets is never a 401. Its errors are those of Ask.
func (c *Client) askAPI(ctx context.Context, url string, use validator) (exchange, error) {
	leave, err := c.pace.enter(ctx, apiHost)
	if err != nil {
		return exchange{}, err
	}
	defer leave()
	for range 2 {
		e, err := c.askAuthorized(ctx, url, func(e exchange) error {
			if e.status == http.StatusUnauthorized {
				return nil
			}
			return use(e)
		})
		if err != nil {
			return exchange{}, err
		}
		if e.status != http.StatusUnauthorized {
			return e, nil
		}
		// The token ran out or was revoked: once is normal, so one more try with a new one.
		c.token.drop()
	}
	return exchange{}, &Denied{"unauthorized", "reddit rejects a token that it has just given out",
		"check that the app is still registered and approved"}
}

// askAuthorized asks with a token that is good when the request goes out: the wait for a turn
// can be longer than what is left of one.
func (c *Client) askAuthorized(ctx context.Context, url string, use validator) (exchange, error) {
	const tries = 3
	for try := 1; ; try++ {
		if err := c.authorize(ctx); err != nil {
			return exchange{}, err
		}
		start := time.Now()
		e, err := c.get(ctx, c.api, url, "application/json", maxInfoBody, use)
		endpoint, _, _ := strings.Cut(path.Base(url), "?")
		c.log.Debug("asked reddit", "for", endpoint, "status", e.status, "bytes", len(e.body), "took", time.Since(start).Round(time.Millisecond))
		switch {
		case err == nil:
			return e, nil
		case !errors.Is(err, errNoToken) || try == tries:
			return exchange{}, c.unanswered(ctx, err)
		}
	}
}

// checkIDs drops repeated ids and refuses what must not stand in a query.
func checkIDs(ids []manifest.PostID) ([]manifest.PostID, error) {
	seen := make(map[manifest.PostID]bool, len(ids))
	var asked []manifest.PostID
	for _, id := range ids {
		if parsed, err := manifest.ParsePostID(string(id)); err != nil || parsed != id {
			return nil, fmt.Errorf("ask: %q is not a post id", id)
		}
		if !seen[id] {
			seen[id] = true
			asked = append(asked, id)
		}
	}
	if len(asked) == 0 || len(asked) > MaxAsk {
		return nil, fmt.Errorf("ask: %d ids; one request asks 1 to %d", len(asked), MaxAsk)
	}
	return asked, nil
}

// readListing reads an answer of /api/info other than a 401. Its error is an *Unanswered. A 403
// has no children, and no error: it is for Ask to say what it means.
func (c *Client) readListing(e exchange) ([]json.RawMessage, error) {
	switch {
	case e.status == http.StatusForbidden && !repeatable(e.status, e.header):
		return nil, nil
	case e.status != http.StatusOK:
		return nil, &Unanswered{status("http_", e.status), c.said(e)}
	case looksLikeHTML(e):
		return nil, c.isHTML(e)
	}
	return parseListing(e.body)
}

// isHTML is the error of a page where JSON was asked for.
func (c *Client) isHTML(e exchange) *Unanswered {
	title := c.said(e)
	if title == "" {
		title = "without a title"
	}
	return &Unanswered{"html", "a page in place of JSON: " + title}
}

func looksLikeHTML(e exchange) bool {
	return strings.HasPrefix(strings.ToLower(e.header.Get("Content-Type")), "text/html") ||
		bytes.HasPrefix(bytes.TrimSpace(e.body), []byte("<"))
}

// parseListing takes the envelope off an answer. Its error is an *Unanswered.
func parseListing(body []byte) ([]json.RawMessage, error) {
	var envelope struct {
		Kind string
		Data struct{ Children *[]json.RawMessage }
	}
	if none := unmarshal(body, &envelope, "not_a_listing"); none != nil {
		return nil, none
	}
	if envelope.Kind != "Listing" || envelope.Data.Children == nil {
		return nil, &Unanswered{"not_a_listing", "the answer is JSON but not a listing"}
	}
	if len(*envelope.Data.Children) == 0 {
		return nil, &Unanswered{ReasonEmptyListing, "the answer holds no post at all"}
	}
	return *envelope.Data.Children, nil
}

// unmarshal is json.Unmarshal of an answer. What is JSON of another shape has the reason given.
func unmarshal(body []byte, v any, otherwise manifest.Reason) *Unanswered {
	err := json.Unmarshal(body, v)
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax) && (errors.Is(err, io.ErrUnexpectedEOF) || syntax.Offset >= int64(len(body))):
		return &Unanswered{"truncated_json", fmt.Sprintf("the answer breaks off after %d bytes", len(body))}
	case errors.As(err, &syntax):
		return &Unanswered{"bad_json", fmt.Sprintf("at byte %d: %v", syntax.Offset, syntax)}
	}
	return &Unanswered{otherwise, "the answer is JSON of another shape"}
}

// readChildren sorts the things of a listing. Only ids that were asked count.
func readChildren(children []json.RawMessage, asked []manifest.PostID, p policy.Policy) (Answer, error) {
	wanted := make(map[manifest.PostID]bool, len(asked))
	for _, id := range asked {
		wanted[id] = true
	}
	a := Answer{Posts: map[manifest.PostID]Post{}, Unclear: map[manifest.PostID]manifest.Reason{}}
	nameless := false
	for _, raw := range children {
		id, data, ok := identify(raw)
		if !ok {
			nameless = true
			continue
		}
		if wanted[id] {
			a.add(id, data, p)
		}
	}
	if len(a.Posts) == 0 && len(a.Unclear) == 0 && !nameless {
		return Answer{}, &Unanswered{"none_asked", "the answer holds posts, but none that was asked for"}
	}
	for _, id := range asked {
		_, found := a.Posts[id]
		_, unclear := a.Unclear[id]
		switch {
		case found || unclear:
		case nameless || len(a.Posts) == 0: // a thing without a name may be this post, and no sound post proves nothing
			a.Unclear[id] = "missing_beside_malformed"
		default:
			a.Absent = append(a.Absent, id)
		}
	}
	return a, nil
}

// add takes in one thing that was asked for. A second thing of the same id is ignored
// when it says the same, and makes the id unclear when it does not.
func (a *Answer) add(id manifest.PostID, data json.RawMessage, p policy.Policy) {
	post, err := readThing(data, p)
	if err != nil {
		delete(a.Posts, id)
		a.Unclear[id] = "malformed_thing"
		return
	}
	if _, ok := a.Unclear[id]; ok {
		return
	}
	if before, ok := a.Posts[id]; ok && policy.Judge(before.Facts) != policy.Judge(post.Facts) {
		delete(a.Posts, id)
		a.Unclear[id] = "contradiction"
		return
	} else if !ok {
		a.Posts[id] = post
	}
}

// identify reads which post a thing of a listing is.
func identify(raw json.RawMessage) (id manifest.PostID, data json.RawMessage, ok bool) {
	var thing struct {
		Kind string
		Data json.RawMessage
	}
	if json.Unmarshal(raw, &thing) != nil {
		return "", nil, false
	}
	var names struct{ ID, Name string }
	if json.Unmarshal(thing.Data, &names) != nil {
		return "", nil, false
	}
	if thing.Kind != "t3" { // another kind than a link has a name of its own
		return "", nil, thing.Kind != ""
	}
	id, err := manifest.ParsePostID(names.ID)
	if err != nil || names.Name != "" && names.Name != id.Fullname() {
		return "", nil, false
	}
	return id, thing.Data, true
}
