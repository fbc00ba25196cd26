package reddit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"rehydrate/manifest"
	"rehydrate/policy"
)

const (
	imgurAPIHost  = "api.imgur.com" // the only one that the imgur client id goes to; never asked for an image
	imgurFileHost = "i.imgur.com"   // the only one that its answers may name
	maxImgurBody  = 4 << 20         // of an answer; an album of a thousand images has about 1 MB
	// imgurRest is how long the API is left alone when it does not say how long to wait: the
	// quota of an app is for a day, and running over it five times blocks the app for a month.
	imgurRest = 24 * time.Hour
	// imgurMemory is how long an answer serves further images of the same album.
	imgurMemory = time.Minute
)

// The kinds of imgurPage.
const (
	imgurImage   = "image"   // imgur.com/ID
	imgurAlbum   = "album"   // imgur.com/a/ID
	imgurGallery = "gallery" // imgur.com/gallery/ID: an image or an album, the link does not say which
)

// An imgurPage is one image of a page of imgur. Its URL names it in a Candidate and is never
// fetched: the API says which file it is.
type imgurPage struct {
	kind, id string
	image    int // of an album, from 0
}

// imgurPageForm matches the paths of pages (gallery-dl imgur.py): a kind, perhaps a title,
// and the id, which has 5 characters or 7, and behind a title 7.
var imgurPageForm = regexp.MustCompile(`^/(?:(a|gallery|t/[^/]+|r/[^/]+)/)?(?:[^/]+-([0-9A-Za-z]{7})|([0-9A-Za-z]{5}|[0-9A-Za-z]{7}[sbtmlh]?))(/.*)?$`)

// readImgurPath reads the path of a page.
func readImgurPath(path string) (imgurPage, bool) {
	m := imgurPageForm.FindStringSubmatch(path)
	if m == nil {
		return imgurPage{}, false
	}
	id := m[2] + m[3]
	kind, _, _ := strings.Cut(m[1], "/")
	switch kind {
	case "a":
		return imgurPage{kind: imgurAlbum, id: id}, true
	case "gallery", "t":
		return imgurPage{kind: imgurGallery, id: id}, true
	}
	id = id[:min(len(id), 7)] // without the suffix of a thumbnail
	return imgurPage{kind: imgurImage, id: id}, id != "gallery" && (m[4] == "" || m[4] == "/")
}

// parseImgurPage reads the URL of a Candidate.
func parseImgurPage(raw string) (imgurPage, bool) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "https" || u.Host != "imgur.com" {
		return imgurPage{}, false
	}
	g, ok := readImgurPath(u.Path)
	if n, err := strconv.Atoi(u.Fragment); err == nil && n >= 0 {
		g.image = n
	}
	return g, ok
}

// String returns the page's one URL.
func (g imgurPage) String() string {
	switch g.kind {
	case imgurAlbum:
		return fmt.Sprintf("https://imgur.com/a/%s#%d", g.id, g.image)
	case imgurGallery:
		return fmt.Sprintf("https://imgur.com/gallery/%s#%d", g.id, g.image)
	}
	return "https://imgur.com/" + g.id
}

// imgurCandidate makes a candidate of a link to a page. The client's policy names the API
// only when the client has an id for it.
func imgurCandidate(path string, p policy.Policy) Candidate {
	g, ok := readImgurPath(path)
	if !ok {
		return fault(manifest.Refused, "imgur_other_page", "a page of imgur that names no image and no album")
	}
	if _, ok := p.Host(imgurAPIHost); !ok {
		return fault(manifest.Refused, ReasonImgurPage, "a page or album of imgur: it takes an IMGUR_CLIENT_ID, and "+imgurAPIHost+" among the policy's hosts, to find its images")
	}
	return Candidate{URL: g.String(), Host: imgurAPIHost}
}

// inAlbum returns image i of the album that a candidate names; ok is false when it names none.
func (c Candidate) inAlbum(i int) (at Candidate, ok bool) {
	g, ok := parseImgurPage(c.URL)
	if !ok || g.kind == imgurImage || i < 0 {
		return Candidate{}, false
	}
	g.image = i
	return Candidate{URL: g.String(), Host: c.Host}, true
}

// imgurAPI asks imgur's API. It is safe for concurrent use.
type imgurAPI struct {
	http *retryablehttp.Client

	mu       sync.Mutex
	accepted bool        // the client id is: a 200 has come
	rejected bool        // the client id is; nothing is asked any more
	page     imgurPage   // the last that was answered, image 0
	files    []imgurFile // its answer
	at       time.Time   // and when that came
}

// An imgurFile is what the API says of an image.
type imgurFile struct {
	Link string `json:"link"`
	Type string `json:"type"` // image/jpeg, image/png, image/gif, video/mp4...
}

// useImgur gives the client access to the API. Without an id there is none, and the host
// leaves the client's policy, so that nothing can ask it.
func (c *Client) useImgur(id Secret, api http.RoundTripper) error {
	if id.Empty() {
		hosts := slices.Clone(c.policy.Images.Hosts)
		c.policy.Images.Hosts = slices.DeleteFunc(hosts, func(h policy.Host) bool { return h.Name == imgurAPIHost })
		return nil
	}
	if !clientIDForm.MatchString(id.reveal()) {
		return errImgurClientID
	}
	c.imgurID = id
	c.imgur = &imgurAPI{http: c.stack(api, c.toImgur)}
	return nil
}

// imgurPause is when the next request may go out after an answer of the API, or after none.
func imgurPause(resp *http.Response, now time.Time) time.Time {
	if resp == nil {
		return now
	}
	d := creditPause(resp.Header, now)
	// A 429 without a time ends the run's requests: each further one could be an overrun.
	if _, named := retryAfter(resp.Header, now); d == 0 && resp.StatusCode == http.StatusTooManyRequests && !named {
		d = imgurRest
	}
	return now.Add(d)
}

// creditPause is the pause that the credit headers ask for: a user, who is an address, has so many
// requests until UserReset (seconds since 1970), and an app so many a day.
func creditPause(h http.Header, now time.Time) time.Duration {
	if n, ok := headerNumber(h, "X-Ratelimit-Clientremaining"); ok && n == 0 {
		return imgurRest
	}
	if n, ok := headerNumber(h, "X-Ratelimit-Userremaining"); !ok || n > 0 {
		return 0
	}
	reset, err := strconv.ParseInt(strings.TrimSpace(h.Get("X-Ratelimit-Userreset")), 10, 64)
	if err != nil {
		return imgurRest
	}
	return min(max(time.Unix(reset, 0).Sub(now), time.Second), imgurRest)
}

// resolve finds the file of an image of a page. Its error is a *policy.Fault or the
// context's.
func (c *Client) resolve(ctx context.Context, g imgurPage) (string, error) {
	if _, ok := c.policy.Host(imgurAPIHost); !ok || c.imgur == nil {
		return "", imgurCandidate("/a/"+g.id, c.policy).Fault
	}
	files, err := c.imgurFiles(ctx, imgurPage{kind: g.kind, id: g.id})
	if err != nil {
		return "", err
	}
	if g.image >= len(files) {
		return "", &policy.Fault{Outcome: manifest.Gone, Reason: "no_such_image",
			Detail: fmt.Sprintf("image %d asked for, the album has %d", g.image, len(files))}
	}
	link, f := c.imgurLink(files[g.image])
	if f != nil {
		return "", f
	}
	return link, nil
}

// imgurLink checks what the API names as an image's file, as if a stranger had named it.
func (c *Client) imgurLink(file imgurFile) (string, *policy.Fault) {
	u, err := url.Parse(file.Link)
	if err != nil || u.Host == "" {
		return "", &policy.Fault{Outcome: manifest.Failed, Reason: "malformed_answer", Detail: "imgur's API names no file for the image"}
	}
	if strings.HasPrefix(file.Type, "video/") || videoExtension.MatchString(u.Path) {
		return "", &policy.Fault{Outcome: manifest.NoMedia, Reason: "video"}
	}
	if u.Scheme == "http" {
		u.Scheme = "https"
	}
	u.RawQuery = ""
	at, f := c.allowed(u.String())
	if f == nil && at.Host != imgurFileHost {
		f = &policy.Fault{Outcome: manifest.Refused, Reason: "host_not_allowed"}
	}
	if f != nil {
		f.Detail = "imgur's API names a file at another place than " + imgurFileHost
		return "", f
	}
	return at.String(), nil
}

// imgurFiles returns the files of a page, in its order. The images of an album are asked for
// one after the other, so the last answer is kept for a moment.
func (c *Client) imgurFiles(ctx context.Context, g imgurPage) ([]imgurFile, error) {
	c.imgur.mu.Lock()
	rejected, known, files := c.imgur.rejected, c.imgur.page == g && time.Since(c.imgur.at) < imgurMemory, c.imgur.files
	c.imgur.mu.Unlock()
	if rejected {
		return nil, imgurRejected()
	}
	if known {
		return files, nil
	}
	files, err := c.askImgurPage(ctx, g)
	if err != nil {
		return nil, err
	}
	c.imgur.mu.Lock()
	defer c.imgur.mu.Unlock()
	c.imgur.page, c.imgur.files, c.imgur.at = g, files, time.Now()
	return files, nil
}

// askImgurPage asks for the files of a page.
func (c *Client) askImgurPage(ctx context.Context, g imgurPage) ([]imgurFile, error) {
	if g.kind == imgurImage {
		files, err := c.askImgur(ctx, imgurImage, g.id)
		if missing(err) { // the API does not know every image that its direct link serves (gallery-dl 4249)
			return []imgurFile{{Link: "https://" + imgurFileHost + "/" + g.id + ".jpg"}}, nil
		}
		return files, err
	}
	files, err := c.askImgur(ctx, imgurAlbum, g.id)
	// Nearly every id of 5 characters is also some image's. With 7 the image is hardly somebody else's.
	if g.kind == imgurGallery && len(g.id) == 7 && missing(err) {
		return c.askImgur(ctx, imgurImage, g.id)
	}
	return files, err
}

// missing reports whether the API does not know what it was asked for.
func missing(err error) bool {
	f, ok := errors.AsType[*policy.Fault](err)
	return ok && f.Outcome == manifest.Gone && f.Reason == "http_404"
}

// askImgur makes one call. Its error is a *policy.Fault or the context's.
func (c *Client) askImgur(ctx context.Context, kind, id string) ([]imgurFile, error) {
	leave, err := c.pace.enter(ctx, imgurAPIHost)
	if err != nil {
		return nil, err
	}
	defer leave()
	e, err := c.get(ctx, c.imgur.http, "https://"+imgurAPIHost+"/3/"+kind+"/"+id, "application/json", maxImgurBody, nil)
	c.log.Debug("asked imgur's API", "for", kind, "status", e.status, "bytes", len(e.body))
	if err != nil {
		return nil, c.imgurFault(ctx, err)
	}
	c.imgur.mu.Lock()
	defer c.imgur.mu.Unlock()
	files, f := readImgur(kind, e, c.imgur.accepted)
	if f == nil {
		c.imgur.accepted = true
		return files, nil
	}
	c.imgur.rejected = c.imgur.rejected || f.Reason == imgurRejected().Reason
	return nil, f
}

// imgurFault makes a fault of a call without an answer: it says nothing of the image.
func (c *Client) imgurFault(ctx context.Context, err error) error {
	if ctx.Err() == nil && is[*WaitTooLong](err) {
		return &policy.Fault{Outcome: manifest.Failed, Reason: "rate_limited", Detail: "imgur's API allows no further request for longer than a run waits"}
	}
	err = c.fetchFault(ctx, imgurAPIHost, err)
	if f, ok := errors.AsType[*policy.Fault](err); ok && f.Outcome == manifest.Invalid {
		f.Outcome = manifest.Failed
	}
	return err
}

// readImgur reads an answer of the API: {"data": ..., "success": ..., "status": ...}. accepted
// says that the client id has been good before.
func readImgur(kind string, e exchange, accepted bool) ([]imgurFile, *policy.Fault) {
	failed := func(reason manifest.Reason, detail string) ([]imgurFile, *policy.Fault) {
		return nil, &policy.Fault{Outcome: manifest.Failed, Reason: reason, Detail: detail}
	}
	if e.status != http.StatusOK {
		return nil, imgurStatus(e, accepted)
	}
	if looksLikeHTML(e) {
		return failed("html", "imgur's API answered with a page in place of JSON")
	}
	var answer struct {
		Data    json.RawMessage
		Success bool
		Status  int
	}
	if err := json.Unmarshal(e.body, &answer); err != nil {
		return failed("malformed_answer", "imgur's API did not answer with JSON of the usual form")
	}
	if !answer.Success && answer.Status != http.StatusOK { // a status of its own, inside of a 200
		return nil, imgurStatus(exchange{status: answer.Status, header: e.header, body: e.body}, accepted)
	}
	if kind == imgurImage {
		var file imgurFile
		if json.Unmarshal(answer.Data, &file) == nil && file.Link != "" {
			return []imgurFile{file}, nil
		}
		return failed("malformed_answer", "imgur's API names no file for the image")
	}
	var album struct{ Images *[]imgurFile }
	if json.Unmarshal(answer.Data, &album) != nil || album.Images == nil {
		return failed("malformed_answer", "imgur's API lists no images for the album")
	}
	if len(*album.Images) == 0 { // an album has images while it is there, so this is not evidence that they are gone
		return failed("empty_album", "imgur's API lists an album without images")
	}
	return *album.Images, nil
}

// imgurStatus says what a status other than 200 means.
func imgurStatus(e exchange, accepted bool) *policy.Fault {
	f := &policy.Fault{Outcome: manifest.Failed, Reason: status("http_", e.status)}
	page := !json.Valid(e.body) // or a piece of an answer
	// Only a 404 in the API's own form says something of the image, and only the API's own words
	// reject the client id, which is not at fault where it was good before.
	switch {
	case speaksOf(e.body, "over capacity"):
		return overCapacity()
	case e.status == http.StatusNotFound && !page:
		f.Outcome, f.Detail = manifest.Gone, "imgur's API does not know it"
	case e.status == http.StatusTooManyRequests, e.status == http.StatusForbidden && e.header.Get("Retry-After") != "":
		f.Reason, f.Detail = "rate_limited", "imgur's API allows no further request for now"
	case page:
		if speaksOfBlock(e.body) {
			f.Reason, f.Detail = "blocked", "the host refuses this client or network"
		}
	case (e.status == http.StatusUnauthorized || e.status == http.StatusForbidden) && !accepted &&
		speaksOf([]byte(imgurError(e.body)), "client_id", "client id", "authentication required"):
		return imgurRejected()
	}
	return f
}

// imgurError is the text of an error of the API: data.error, or the message in it. The rest of
// the answer repeats the request, and can hold any word.
func imgurError(body []byte) string {
	var answer struct {
		Data struct{ Error json.RawMessage }
	}
	if json.Unmarshal(body, &answer) != nil {
		return ""
	}
	var text string
	if json.Unmarshal(answer.Data.Error, &text) == nil {
		return text
	}
	var object struct{ Message string }
	if json.Unmarshal(answer.Data.Error, &object) != nil {
		return ""
	}
	return object.Message
}

func imgurRejected() *policy.Fault {
	return &policy.Fault{Outcome: manifest.Refused, Reason: "imgur_client_id_rejected",
		Detail: "imgur does not know the client id: correct IMGUR_CLIENT_ID, and name this reason with --retry"}
}

func overCapacity() *policy.Fault {
	return &policy.Fault{Outcome: manifest.Failed, Reason: "over_capacity", Detail: "imgur says that it is over capacity"}
}
