package reddit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"rehydrate/internal/polite"
	"rehydrate/manifest"
	"rehydrate/policy"
)

const (
	imgurSite     = "https://imgur.com/"
	imgurAPIHost  = "api.imgur.com" // the only one that the imgur client id goes to; never asked for an image
	imgurFileHost = "i.imgur.com"   // the only one that its answers may name
	maxImgurBody  = 4 << 20         // of an answer; an album of a thousand images has about 1 MB
	imgurMemory   = time.Minute     // for so long an answer serves further images of the same album
	// imgurRest is how long the API is left alone when it does not say how long to wait: the quota of an app is for a
	// day, and running over it five times blocks the app for a month.
	imgurRest = 24 * time.Hour
)

// The kinds of imgurPage, as they stand in its URL.
const (
	imgurImage   = ""
	imgurAlbum   = "a/"
	imgurGallery = "gallery/" // an image or an album: the link does not say which
)

// An imgurPage is one image of a page of imgur. Its URL names it in a Candidate and is never fetched.
type imgurPage struct {
	kind, id string
	image    int // of an album, from 0
}

// imgurPageForm matches the paths of pages (gallery-dl imgur.py). An id has 5 characters or 7, and behind a title 7.
var imgurPageForm = regexp.MustCompile(`^/(?:(a|gallery|t/[^/]+|r/[^/]+)/)?(?:[^/]+-([0-9A-Za-z]{7})|([0-9A-Za-z]{5}|[0-9A-Za-z]{7}[sbtmlh]?))(/.*)?$`)

// readImgurPath reads the path of a page.
func readImgurPath(path string) (imgurPage, bool) {
	m := imgurPageForm.FindStringSubmatch(path)
	if m == nil {
		return imgurPage{}, false
	}
	g := imgurPage{id: m[2] + m[3]}
	switch kind, _, _ := strings.Cut(m[1], "/"); kind {
	case "a":
		g.kind = imgurAlbum
	case "gallery", "t":
		g.kind = imgurGallery
	default:
		g.id = g.id[:min(len(g.id), 7)] // without the suffix of a thumbnail
		return g, g.id != "gallery" && (m[4] == "" || m[4] == "/")
	}
	return g, true
}

// parseImgurPage reads the URL of a Candidate.
func parseImgurPage(link string) (imgurPage, bool) {
	page, image, _ := strings.Cut(link, "#")
	path, ok := strings.CutPrefix(page, imgurSite)
	if !ok {
		return imgurPage{}, false
	}
	g, ok := readImgurPath("/" + path)
	if n, err := strconv.Atoi(image); err == nil && n >= 0 {
		g.image = n
	}
	return g, ok
}

// String returns the page's one URL.
func (g imgurPage) String() string {
	link := imgurSite + g.kind + g.id
	if g.kind != imgurImage {
		link += "#" + strconv.Itoa(g.image)
	}
	return link
}

// imgurCandidate makes a candidate of a link to a page.
func imgurCandidate(path string, p policy.Policy) Candidate {
	g, ok := readImgurPath(path)
	if !ok {
		return fault(manifest.Refused, "imgur_other_page", "a page of imgur that names no image and no album")
	}
	if _, ok := p.Host(imgurAPIHost); !ok {
		return fault(manifest.Refused, ReasonImgurPage, "a page or album of imgur: it takes an IMGUR_CLIENT_ID, and "+
			imgurAPIHost+" among the policy's hosts, to find its images")
	}
	return Candidate{URL: g.String(), Host: imgurAPIHost}
}

// imgurAPI is what a client knows of imgur's API. Only who holds the API's one place may use it.
type imgurAPI struct {
	transport http.RoundTripper
	accepted  bool        // the client id is: a 200 has come
	rejected  bool        // the client id is; nothing is asked any more
	page      imgurPage   // that was asked about last, with image 0
	files     []imgurFile // of that page
	at        time.Time
}

// An imgurFile is what the API says of an image.
type imgurFile struct {
	Link string `json:"link"`
	Type string `json:"type"` // image/jpeg, image/png, image/gif, video/mp4...
}

// imgurPause is when the next request may go out after an answer of the API, or after none. By its headers a
// user, who is an address, has so many requests until UserReset (seconds since 1970), and an app so many a day.
func imgurPause(resp *http.Response, now time.Time) time.Time {
	if resp == nil {
		return now
	}
	h := resp.Header
	app, ofApp := headerNumber(h, "X-Ratelimit-Clientremaining")
	user, ofUser := headerNumber(h, "X-Ratelimit-Userremaining")
	reset, err := strconv.ParseInt(strings.TrimSpace(h.Get("X-Ratelimit-Userreset")), 10, 64)
	_, named := polite.RetryAfter(h, now)
	switch {
	case ofApp && app == 0, ofUser && user == 0 && err != nil:
		return now.Add(imgurRest)
	case ofUser && user == 0:
		return now.Add(min(max(time.Unix(reset, 0).Sub(now), time.Second), imgurRest))
	case resp.StatusCode == http.StatusTooManyRequests && !named:
		return now.Add(imgurRest) // each further request could be an overrun
	}
	return now
}

// resolve finds the file of an image of a page. Its error is a *policy.Fault or the context's.
func (c *Client) resolve(ctx context.Context, g imgurPage) (string, error) {
	if _, ok := c.o.Policy.Host(imgurAPIHost); !ok {
		return "", imgurCandidate("/a/"+g.id, c.o.Policy).Fault
	}
	files, err := c.imgurFiles(ctx, imgurPage{kind: g.kind, id: g.id})
	if err != nil {
		return "", err
	}
	if g.image >= len(files) {
		return "", &policy.Fault{Outcome: manifest.Gone, Reason: "no_such_image",
			Detail: fmt.Sprintf("image %d asked for, the album has %d", g.image, len(files))}
	}
	return imgurLink(files[g.image])
}

// imgurLink reads what the API names as an image's file, which Download checks as it does a link of a stranger.
func imgurLink(file imgurFile) (string, error) {
	u, err := url.Parse(file.Link)
	if err != nil || u.Host == "" {
		return "", failed("malformed_answer", "imgur's API names no file for the image")
	}
	if strings.HasPrefix(file.Type, "video/") || policy.IsVideo(u.Path) {
		return "", &policy.Fault{Outcome: manifest.NoMedia, Reason: "video"}
	}
	if u.Scheme == "http" {
		u.Scheme = "https"
	}
	u.RawQuery = ""
	if !strings.EqualFold(u.Hostname(), imgurFileHost) {
		return "", &policy.Fault{Outcome: manifest.Refused, Reason: "host_not_allowed",
			Detail: "imgur's API names a file at another place than " + imgurFileHost}
	}
	return u.String(), nil
}

// imgurFiles returns the files of a page, in its order.
func (c *Client) imgurFiles(ctx context.Context, g imgurPage) ([]imgurFile, error) {
	leave, err := c.pace.enter(ctx, imgurAPIHost)
	if err != nil {
		return nil, err
	}
	defer leave()
	// The images of an album are asked for one after the other, so the last answer is kept for a moment.
	if c.imgur.page == g && time.Since(c.imgur.at) < imgurMemory {
		return c.imgur.files, nil
	}
	files, err := c.askImgur(ctx, g.kind == imgurImage, g.id)
	f, _ := errors.AsType[*policy.Fault](err)
	switch {
	case f == nil || f.Outcome != manifest.Gone:
	case g.kind == imgurImage: // the API does not know every image that its direct link serves (gallery-dl 4249)
		files, err = []imgurFile{{Link: "https://" + imgurFileHost + "/" + g.id + ".jpg"}}, nil
	case g.kind == imgurGallery && len(g.id) == 7:
		// Nearly every id of 5 characters is also some image's. With 7 the image is hardly somebody else's.
		files, err = c.askImgur(ctx, true, g.id)
	}
	if err == nil {
		c.imgur.page, c.imgur.files, c.imgur.at = g, files, time.Now()
	}
	return files, err
}

// askImgur makes one call about an image or an album. Its error is a *policy.Fault or the context's.
func (c *Client) askImgur(ctx context.Context, image bool, id string) ([]imgurFile, error) {
	if c.imgur.rejected {
		return nil, imgurRejected()
	}
	url := "https://" + imgurAPIHost + "/3/album/" + id
	if image {
		url = "https://" + imgurAPIHost + "/3/image/" + id
	}
	e, err := c.get(ctx, c.imgur.transport, url, "application/json", maxImgurBody, nil)
	if err != nil {
		return nil, c.fetchFault(ctx, imgurAPIHost, err)
	}
	files, f := readImgur(image, e, c.imgur.accepted)
	if f == nil || f.Outcome == manifest.Gone {
		c.pace.lanes[imgurAPIHost].gave()
	}
	if f != nil {
		c.imgur.rejected = f.Reason == imgurRejected().Reason
		return nil, f
	}
	c.imgur.accepted = true
	return files, nil
}

// readImgur reads an answer of the API. accepted says that the client id has been good before.
func readImgur(image bool, e exchange, accepted bool) ([]imgurFile, *policy.Fault) {
	if e.status != http.StatusOK {
		return nil, imgurStatus(e, accepted)
	}
	if looksLikeHTML(e) {
		return nil, failed("html", "imgur's API answered with a page in place of JSON")
	}
	var answer struct {
		Data struct {
			imgurFile
			Images []imgurFile
		}
		Success bool
		Status  int
	}
	err := json.Unmarshal(e.body, &answer)
	switch {
	case err != nil:
		return nil, failed("malformed_answer", "imgur's API did not answer with JSON of the usual form")
	case !answer.Success && answer.Status != http.StatusOK: // a status of its own, inside of a 200
		e.status = answer.Status
		return nil, imgurStatus(e, accepted)
	case image:
		return []imgurFile{answer.Data.imgurFile}, nil
	case answer.Data.Images == nil:
		return nil, failed("malformed_answer", "imgur's API names no images")
	case len(answer.Data.Images) == 0: // an album has images while it is there: no evidence that they are gone
		return nil, failed("empty_album", "imgur's API lists an album without images")
	}
	return answer.Data.Images, nil
}

// imgurStatus says what a status other than 200 means.
func imgurStatus(e exchange, accepted bool) *policy.Fault {
	page := !json.Valid(e.body) // or a piece of an answer
	refused := e.status == http.StatusUnauthorized || e.status == http.StatusForbidden
	// Only a 404 in the API's own form says something of the image, and only the API's own words reject the client id,
	// which is not at fault where it was good before. The rest of an answer repeats the request and can hold any word.
	var said struct {
		Data struct{ Error json.RawMessage }
	}
	_ = json.Unmarshal(e.body, &said) // nothing is said by what has another form
	switch {
	case speaksOf(e.body, "over capacity"):
		return overCapacity()
	case e.status == http.StatusNotFound && !page:
		return &policy.Fault{Outcome: manifest.Gone, Reason: "http_404", Detail: "imgur's API does not know it"}
	case e.status == http.StatusTooManyRequests, e.status == http.StatusForbidden && e.header.Get("Retry-After") != "":
		return failed("rate_limited", "imgur's API allows no further request for now")
	case page && speaksOfBlock(e.body):
		return failed("blocked", "the host refuses this client or network")
	case refused && !accepted && speaksOf(said.Data.Error, "client_id", "client id", "authentication required"):
		return imgurRejected()
	}
	return failed(status("http_", e.status), "")
}

func imgurRejected() *policy.Fault {
	return &policy.Fault{Outcome: manifest.Refused, Reason: "imgur_client_id_rejected",
		Detail: "imgur does not know the client id: correct IMGUR_CLIENT_ID, and name this reason with --retry"}
}

func overCapacity() *policy.Fault {
	return failed("over_capacity", "imgur says that it is over capacity")
}
