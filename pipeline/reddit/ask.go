package reddit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"rehydrate/internal/secret"
	"rehydrate/manifest"
	"rehydrate/policy"
)

const (
	infoURL     = "https://" + apiHost + "/api/info"
	maxInfoBody = 8 << 20
)

// Ask asks Reddit what became of up to policy.MaxAsk posts, in one request. It waits as long as the rate limits want,
// and tries again after passing trouble.
//
// An *Unanswered means no verdict for any of the ids, and the run can go on. Every other error stops the run: *Denied,
// *Unreachable, the context's, a wrong setting, and ids that the caller should not have asked, which cost no request.
func (c *Client) Ask(ctx context.Context, ids []manifest.PostID) (Answer, error) {
	var asked []manifest.PostID
	var names []string
	for _, id := range ids {
		// What is not an id must not stand in a query.
		if parsed, err := manifest.ParsePostID(string(id)); err != nil || parsed != id {
			return Answer{}, fmt.Errorf("ask: %q is not a post id", id)
		}
		if !slices.Contains(asked, id) {
			asked, names = append(asked, id), append(names, id.Fullname())
		}
	}
	if len(asked) == 0 || len(asked) > policy.MaxAsk {
		return Answer{}, fmt.Errorf("ask: %d ids; one request asks 1 to %d", len(asked), policy.MaxAsk)
	}
	var children []json.RawMessage
	// The commas stand as they are: Reddit's own clients send them so.
	url := infoURL + "?id=" + strings.Join(names, ",") + "&raw_json=1"
	err := c.askAPI(ctx, url, func(e exchange) (err error) {
		children, err = readListing(e)
		return err
	})
	if err != nil {
		return Answer{}, err
	}
	return readChildren(children, asked, c.o.Policy)
}

// askAPI makes one call of the API, alone. It renews the token, so that use never gets a 401. Its errors are Ask's.
func (c *Client) askAPI(ctx context.Context, url string, use func(exchange) error) error {
	leave, err := c.pace.enter(ctx, apiHost)
	if err != nil {
		return err
	}
	defer leave()
	for expired, rejected := 0, false; ; {
		if c.token.current().Empty() { // app-only, by client credentials
			if _, err := c.get(ctx, c.api, tokenURL, "application/json", maxTokenBody, c.readToken); err != nil {
				return c.unanswered(ctx, err)
			}
		}
		e, err := c.get(ctx, c.api, url, "application/json", maxInfoBody, func(e exchange) error {
			if e.status == http.StatusUnauthorized {
				return nil
			}
			return use(e)
		})
		switch {
		case errors.Is(err, errNoToken) && expired < 2: // it has not been sent
			expired++
		case err != nil:
			return c.unanswered(ctx, err)
		case e.status != http.StatusUnauthorized:
			return nil
		case rejected:
			return &Denied{"unauthorized", "reddit rejects a token that it has just given out",
				"check that the app is still registered and approved"}
		default: // the token was revoked: once is normal
			rejected = true
			c.token.keep(secret.Secret{}, 0)
		}
	}
}

// readListing reads an answer of /api/info other than a 401. Its error is an *Unanswered, or the *Denied of a 403.
func readListing(e exchange) ([]json.RawMessage, error) {
	switch {
	case e.status == http.StatusForbidden && !saysLater(e.status, e.header):
		return nil, blocked(e)
	case e.status != http.StatusOK:
		return nil, &Unanswered{status("http_", e.status), ""}
	}
	var envelope struct {
		Kind string
		Data struct {
			Children *[]json.RawMessage
			Dist     float64 // how many there are
		}
	}
	if none := unmarshal(e, &envelope, "not_a_listing"); none != nil {
		return nil, none
	}
	if envelope.Kind != "Listing" || envelope.Data.Children == nil {
		return nil, &Unanswered{"not_a_listing", "the answer is JSON but not a listing"}
	}
	if len(*envelope.Data.Children) == 0 {
		return nil, &Unanswered{ReasonEmptyListing, "the answer holds no post at all"}
	}
	if n := len(*envelope.Data.Children); envelope.Data.Dist > float64(n) {
		// What is missing was lost on its way, and would pass for absent.
		return nil, &Unanswered{"cut_listing", fmt.Sprintf("the answer announces more posts than the %d that it holds", n)}
	}
	return *envelope.Data.Children, nil
}

func looksLikeHTML(e exchange) bool {
	return strings.HasPrefix(strings.ToLower(e.header.Get("Content-Type")), "text/html") ||
		bytes.HasPrefix(bytes.TrimSpace(e.body), []byte("<"))
}

// unmarshal is json.Unmarshal of an answer. What is JSON of another shape has the reason given.
func unmarshal(e exchange, v any, otherwise manifest.Reason) *Unanswered {
	if looksLikeHTML(e) {
		return &Unanswered{"html", "a page in place of JSON"}
	}
	err := json.Unmarshal(e.body, v)
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &syntax):
		return &Unanswered{otherwise, "the answer is JSON of another shape"}
	case errors.Is(err, io.ErrUnexpectedEOF), syntax.Offset >= int64(len(e.body)):
		return &Unanswered{"truncated_json", fmt.Sprintf("the answer breaks off after %d bytes", len(e.body))}
	}
	return &Unanswered{"bad_json", fmt.Sprintf("the answer is not JSON at byte %d", syntax.Offset)}
}

// readChildren sorts the things of a listing. Only ids that were asked count. A second thing of the same id is ignored
// when it says the same, and makes the id unclear when it does not.
func readChildren(children []json.RawMessage, asked []manifest.PostID, p policy.Policy) (Answer, error) {
	a := Answer{Posts: map[manifest.PostID]Post{}, Unclear: map[manifest.PostID]manifest.Reason{}}
	nameless := false
	for _, raw := range children {
		id, data, ok := identify(raw)
		nameless = nameless || !ok
		if !slices.Contains(asked, id) {
			continue
		}
		post, err := readThing(data, p)
		before, again := a.Posts[id]
		switch {
		case err != nil:
			a.Unclear[id] = "malformed_thing"
		case !again:
			a.Posts[id] = post
		case policy.Judge(before.Facts) != policy.Judge(post.Facts):
			a.Unclear[id] = "contradiction"
		}
	}
	if len(a.Posts) == 0 && len(a.Unclear) == 0 && !nameless {
		return Answer{}, &Unanswered{"none_asked", "the answer holds posts, but none that was asked for"}
	}
	// Last, so that no further thing of the same id makes an unclear one clear.
	for id := range a.Unclear {
		delete(a.Posts, id)
	}
	for _, id := range asked {
		_, found := a.Posts[id]
		_, unclear := a.Unclear[id]
		switch {
		case found || unclear:
		// A thing without a name may be this post, and no sound post proves nothing.
		case nameless || len(a.Posts) == 0:
			a.Unclear[id] = "missing_beside_malformed"
		default:
			a.Absent = append(a.Absent, id)
		}
	}
	return a, nil
}

// identify reads which post a thing of a listing is: none, and ok, when it is of another kind.
func identify(raw json.RawMessage) (id manifest.PostID, data json.RawMessage, ok bool) {
	var thing struct {
		Kind string
		Data json.RawMessage
	}
	var names struct{ ID, Name string }
	if json.Unmarshal(raw, &thing) != nil || json.Unmarshal(thing.Data, &names) != nil {
		return "", nil, false
	}
	if thing.Kind != "t3" { // what is named as a post is one, whatever else is said of it
		other := slices.Contains([]string{"t1", "t2", "t4", "t5", "t6", "more"}, thing.Kind)
		return "", nil, other && !strings.HasPrefix(names.Name, "t3_")
	}
	id, err := manifest.ParsePostID(names.ID)
	if err != nil || names.Name != "" && names.Name != id.Fullname() {
		return "", nil, false
	}
	return id, thing.Data, true
}
