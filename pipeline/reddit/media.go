package reddit

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"rehydrate/manifest"
	"rehydrate/policy"
)

// factFields are the fields that a verdict needs: no other is decoded, so that none can be stored by accident. Author,
// title and selftext are read for Reddit's markers and go no further.
type factFields struct {
	Author            *string `json:"author"`
	Title             string  `json:"title"`
	Selftext          string  `json:"selftext"`
	Subreddit         string  `json:"subreddit"`
	RemovedByCategory string  `json:"removed_by_category"`
	RemovalReason     string  `json:"removal_reason"`
	RobotIndexable    *bool   `json:"is_robot_indexable"`
	Quarantine        bool    `json:"quarantine"`
	// For moderators only.
	BannedBy  byWhom `json:"banned_by"`
	RemovedBy byWhom `json:"removed_by"`
	Removed   bool   `json:"removed"`
	Spam      bool   `json:"spam"`
}

// byWhom reports whether a field that says who did something is filled in: with a name, or true. Empty are null, false
// and "".
type byWhom bool

// UnmarshalJSON fails for a value of any other type.
func (b *byWhom) UnmarshalJSON(text []byte) error {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	switch value := value.(type) {
	case nil:
		*b = false
	case bool:
		*b = byWhom(value)
	case string:
		*b = value != ""
	default:
		return errors.New("it is neither a name nor true or false")
	}
	return nil
}

// readThing reads a link. A field that a verdict rests on of a type that it never had, and a missing author, are
// errors: such a thing is not evidence. Trouble with the media is a fault of the images and leaves the facts whole.
func readThing(data json.RawMessage, p policy.Policy) (Post, error) {
	facts, subreddit, err := readFacts(data)
	if err != nil {
		return Post{}, err
	}
	images := findImages(data, p)
	facts.HasMedia = hasMedia(images)
	facts.OfParent = slices.ContainsFunc(images, func(c Candidate) bool { return c.Parent != "" })
	return Post{Facts: facts, Images: images, Subreddit: subreddit}, nil
}

// removedBy starts the title and the text that Reddit puts in place of those of a post that it took down: the title is
// "[ Removed by Reddit ]", and the text of newer posts names the content policy.
const removedBy = "[ Removed by "

// readFacts reads what a verdict rests on, and the subreddit of the post as in Post.
func readFacts(data json.RawMessage) (policy.Facts, string, error) {
	var t factFields
	if err := json.Unmarshal(data, &t); err != nil {
		return policy.Facts{}, "", fmt.Errorf("read a thing: %w", err)
	}
	if t.Author == nil {
		return policy.Facts{}, "", errors.New("read a thing: it has no author field")
	}
	subreddit := manifest.Subreddit(t.Subreddit)
	return policy.Facts{
		RemovedBy:        t.RemovedByCategory,
		RemovalReason:    t.RemovalReason,
		ModRemoved:       bool(t.BannedBy || t.RemovedBy) || t.Removed || t.Spam,
		AuthorDeleted:    *t.Author == "[deleted]",
		SelftextDeleted:  t.Selftext == "[deleted]",
		SelftextRemoved:  t.Selftext == "[removed]" || strings.HasPrefix(t.Selftext, removedBy),
		TitleDeleted:     t.Title == "[deleted by user]",
		TitleRemoved:     strings.HasPrefix(t.Title, removedBy),
		RobotIndexable:   t.RobotIndexable,
		Quarantine:       t.Quarantine,
		ProfileSubreddit: strings.HasPrefix(strings.ToLower(t.Subreddit), "u_"),
	}, subreddit, nil
}

// mediaFields are the fields of a link that say where its images are.
type mediaFields struct {
	URL           string            `json:"url"`
	Destination   string            `json:"url_overridden_by_dest"`
	PostHint      string            `json:"post_hint"`
	IsSelf        bool              `json:"is_self"`
	IsVideo       bool              `json:"is_video"`
	IsGallery     bool              `json:"is_gallery"`
	Crosspost     string            `json:"crosspost_parent"` // t3_ID
	CrosspostList []json.RawMessage `json:"crosspost_parent_list"`
	GalleryData   *struct {
		Items []galleryItem `json:"items"`
	} `json:"gallery_data"`
	MediaMetadata map[string]mediaItem `json:"media_metadata"`
}

type galleryItem struct {
	MediaID   string `json:"media_id"`
	IsDeleted bool   `json:"is_deleted"`
}

type mediaItem struct {
	Status string `json:"status"` // valid, unprocessed or failed
	Type   string `json:"e"`      // Image, AnimatedImage or RedditVideo
	MIME   string `json:"m"`
	Source struct {
		URL string `json:"u"`
		GIF string `json:"gif"`
	} `json:"s"`
}

func fault(o manifest.Outcome, r manifest.Reason, detail string) Candidate {
	return Candidate{Fault: &policy.Fault{Outcome: o, Reason: r, Detail: detail}}
}

// none are the candidates of a post without an image.
func none(o manifest.Outcome, r manifest.Reason, detail string) []Candidate {
	return []Candidate{fault(o, r, detail)}
}

// hasMedia reports whether a post has an image, be it one that is gone or that the policy refuses.
func hasMedia(images []Candidate) bool {
	return slices.ContainsFunc(images, func(c Candidate) bool {
		return c.Fault == nil || c.Fault.Outcome != manifest.NoMedia
	})
}

// findImages lists the images of a link: those of the post it is a crosspost of, when that has some or is gone; else
// its gallery; else what it links to. The list is never empty.
func findImages(data json.RawMessage, p policy.Policy) []Candidate {
	var t mediaFields
	if err := json.Unmarshal(data, &t); err != nil {
		return none(manifest.Failed, "malformed_media", "the media fields of the answer have another form than usual")
	}
	if len(t.CrosspostList) > 0 {
		if images := parentImages(t.parent(), p); hasMedia(images) {
			return images
		}
	}
	return t.images(p)
}

// parent is what a crosspost says of the post that it shows, nil where it is all about others: what became of them says
// nothing of this image. Reddit gives a list of one.
func (t mediaFields) parent() json.RawMessage {
	for _, p := range slices.Backward(t.CrosspostList) {
		var post struct{ ID string }
		err := json.Unmarshal(p, &post)
		if err != nil || post.ID == "" || t.Crosspost == "" || "t3_"+post.ID == t.Crosspost {
			return p
		}
	}
	return nil
}

// parentImages lists the images of a crosspost's parent. Those of a parent that is not live are not to be had through
// its crossposts, whatever else the answer says of it: what was deleted often has no image any more.
func parentImages(data json.RawMessage, p policy.Policy) []Candidate {
	facts, _, err := readFacts(data)
	if err != nil {
		return malformedParent()
	}
	v := policy.Judge(facts)
	why := "the post this is a crosspost of is " + string(v.State) + ": " + string(v.Reason)
	switch {
	case v.State == manifest.StateHeld:
		return none(manifest.Refused, "crosspost_parent_held", why)
	case v.State != manifest.StateLive:
		return none(manifest.Gone, policy.CrosspostParent, why)
	}
	var t mediaFields
	var parent struct{ ID manifest.PostID }
	if json.Unmarshal(data, &t) != nil || json.Unmarshal(data, &parent) != nil {
		return malformedParent()
	}
	images := t.images(p)
	for i := range images {
		images[i].Parent = parent.ID
	}
	return images
}

func malformedParent() []Candidate {
	return none(manifest.Failed, "malformed_media", "the crosspost's parent has another form than usual")
}

// images lists a link's own images.
func (t mediaFields) images(p policy.Policy) []Candidate {
	switch {
	case t.GalleryData != nil && len(t.GalleryData.Items) > 0:
		var images []Candidate
		for _, item := range t.GalleryData.Items {
			c := t.galleryImage(item, p)
			c.Media = item.MediaID
			images = append(images, c)
		}
		return images
	case t.IsGallery:
		return none(manifest.NoMedia, "gallery_missing", "the post is a gallery, and Reddit lists no items of it")
	case t.IsVideo:
		return none(manifest.NoMedia, "video", "")
	case t.IsSelf:
		return none(manifest.NoMedia, "self_post", "")
	}
	return []Candidate{classify(cmp.Or(t.Destination, t.URL), "", t.PostHint == "image", p)}
}

func (t mediaFields) galleryImage(item galleryItem, p policy.Policy) Candidate {
	m, ok := t.MediaMetadata[item.MediaID]
	switch {
	case item.IsDeleted:
		return fault(manifest.Gone, policy.LeftGallery, "")
	case !ok:
		return fault(manifest.Gone, "gallery_item_missing", "")
	case m.Status == "unprocessed":
		return fault(manifest.Failed, "gallery_item_unprocessed", "Reddit has not processed the image yet")
	case m.Status != "valid":
		return fault(manifest.Gone, "gallery_item_failed", "")
	case m.Type == "RedditVideo":
		return fault(manifest.NoMedia, "video", "")
	}
	source := m.Source.URL
	if m.Type == "AnimatedImage" && m.Source.GIF != "" {
		source = m.Source.GIF
	}
	if source == "" {
		return fault(manifest.Failed, "gallery_item_no_source", "Reddit names no file for the item")
	}
	return classify(source, extensionOf[m.MIME], true, p)
}

// extensionOf gives the extension under which i.redd.it keeps an original.
var extensionOf = map[string]string{
	"image/jpg": ".jpg", "image/jpeg": ".jpg", "image/png": ".png", "image/gif": ".gif", "image/webp": ".webp",
}

// The hosts of the images of galleries, and the extensions that these have there.
const (
	originalHost = "i.redd.it"
	previewHost  = "preview.redd.it"
)

var mediaExtensions = []string{".jpg", ".jpeg", ".png", ".gif", ".webp"}

// mediaURL is where a host keeps an item of a gallery.
func mediaURL(host, media, extension string) string {
	return "https://" + host + "/" + media + extension
}

var (
	imageExtension = regexp.MustCompile(`(?i)\.(jpe?g|jpe|png|gif|webp|bmp|tiff?|avif|heic)$`)
	// One path segment with an extension, and the id that i.redd.it knows it by: what follows "-v0-" where the post's
	// title stands before it.
	redditFile = regexp.MustCompile(`^/(?:[^/]*-v0-)?([0-9A-Za-z_-]+)(\.[0-9A-Za-z]+)$`)
	// An id of imgur with the suffix of a thumbnail, and one without an extension. Ids have 5 characters or 7, so one
	// letter more than 7 is a suffix; 6 characters are let be.
	imgurThumbnail = regexp.MustCompile(`^/([0-9A-Za-z]{7})[sbtmlh](\.[0-9A-Za-z]+)?$`)
	imgurID        = regexp.MustCompile(`^/[0-9A-Za-z]{5,10}$`)
)

// imageHosts hold images alone, whatever their addresses look like.
var imageHosts = map[string]bool{
	"i.redd.it": true, "preview.redd.it": true, "external-preview.redd.it": true, "i.reddituploads.com": true,
	imgurFileHost: true,
}

// imgurSites are the hosts of imgur's pages.
var imgurSites = map[string]bool{"imgur.com": true, "www.imgur.com": true, "m.imgur.com": true}

// videoHosts are hosts whose pages are videos; post_hint is missing on old posts.
var videoHosts = map[string]bool{
	"v.redd.it": true, "youtube.com": true, "youtu.be": true, "m.youtube.com": true, "vimeo.com": true,
	"gfycat.com": true, "redgifs.com": true, "streamable.com": true, "tiktok.com": true, "twitch.tv": true,
}

// classify turns a link into the place of an image, or the fault it has none by. extension, where not empty, is what
// the original has at i.redd.it; isImage says that Reddit itself calls the link's target an image.
func classify(link, extension string, isImage bool, p policy.Policy) Candidate {
	// The entities are those of an answer without raw_json=1, which some galleries hold all the same.
	link = strings.TrimSpace(strings.ReplaceAll(link, "&amp;", "&"))
	if link == "" {
		return fault(manifest.NoMedia, "no_url", "")
	}
	u, err := url.Parse(link)
	if err != nil {
		return fault(manifest.Refused, "bad_url", "the post links to something that is not a URL")
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	isImage = isImage || imageHosts[host] || imageExtension.MatchString(u.Path)
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || host == "":
		return fault(manifest.NoMedia, "link", "")
	case videoHosts[strings.TrimPrefix(host, "www.")], policy.IsVideo(u.Path):
		return fault(manifest.NoMedia, "video", "")
	case imgurSites[host] && !imageExtension.MatchString(u.Path),
		host == imgurFileHost && (strings.HasPrefix(u.Path, "/a/") || strings.HasPrefix(u.Path, "/gallery/")):
		return imgurCandidate(u.Path, p)
	case imgurSites[host]:
		host = imgurFileHost
	case isRedditPage(host), host == imgurAPIHost:
		return fault(manifest.NoMedia, "link", "")
	}
	if _, ok := p.Host(host); !ok && host != "preview.redd.it" {
		if !isImage {
			return fault(manifest.NoMedia, "link", "")
		}
		return Candidate{Fault: notAllowed(host)}
	}
	at, f := allowed(place(u, host, extension, p), p)
	if f != nil {
		return Candidate{Fault: f}
	}
	return Candidate{URL: at.String(), Host: at.Host}
}

// place writes the URL that is asked: https, and for the hosts that are known the original instead of a scaled or
// signed form. A user name or an odd port in the link stays, to be refused.
func place(u *url.URL, host, extension string, p policy.Policy) string {
	out := url.URL{Scheme: "https", User: u.User, Host: host, Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}
	if port := u.Port(); port != "" && !(port == "80" && u.Scheme == "http") {
		out.Host = net.JoinHostPort(host, port)
	}
	_, originals := p.Host("i.redd.it")
	m := redditFile.FindStringSubmatch(u.Path)
	switch {
	case m != nil && (host == "i.redd.it" || host == "preview.redd.it" && originals):
		out.Host = strings.Replace(out.Host, host, "i.redd.it", 1)
		out.Path, out.RawPath, out.RawQuery = "/"+m[1]+cmp.Or(extension, m[2]), "", ""
	case host == imgurFileHost:
		out.RawQuery = "" // "?fb" and the like ask for a cropped form
		out.Path = imgurThumbnail.ReplaceAllString(u.Path, "/$1$2")
		if imgurID.MatchString(out.Path) {
			out.Path += ".jpg" // imgur sends the stored type under any extension, a page under none
		}
	}
	return out.String()
}

func isRedditPage(host string) bool {
	return host == "reddit.com" || strings.HasSuffix(host, ".reddit.com") || host == "redd.it"
}

// domain shortens a host to its last two labels: what stands before can be a user's name, but not in a host that is
// known.
func domain(host string) string {
	if imageHosts[host] || imgurSites[host] || videoHosts[host] {
		return host
	}
	labels := strings.Split(host, ".")
	short := strings.Join(labels[max(len(labels)-2, 0):], ".")
	// Nothing of an address, nor what only looks like a name.
	if net.ParseIP(host) != nil || len(short) > 60 ||
		strings.Trim(short, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" {
		return "the host"
	}
	return short
}
