package redditemu

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"strconv"
	"strings"

	"rehydrate/internal/jsonscan"
	"rehydrate/manifest"
)

// A Kind says what sort of submission a post is.
type Kind string

// The kinds of post.
const (
	KindImage     Kind = "image"      // one image on i.redd.it
	KindGallery   Kind = "gallery"    // Images on preview.redd.it
	KindImgur     Kind = "imgur"      // a direct link to i.imgur.com
	KindImgurPage Kind = "imgur_page" // imgur.com/ID, which is HTML; imgur's API knows the image
	KindLink      Kind = "link"       // Post.Link, some page elsewhere
	KindSelf      Kind = "self"       // text only
	KindVideo     Kind = "video"      // v.redd.it
	KindCrosspost Kind = "crosspost"  // of Post.Parent
)

// A Condition is what has happened to a post, in one of the forms recorded of the API.
type Condition string

// The conditions. Those that start "absent" are missing from /api/info.
const (
	Live               Condition = "live"
	LiveNotIndexable   Condition = "live_not_indexable"   // is_robot_indexable false, nothing else
	LiveAccountDeleted Condition = "live_account_deleted" // author "[deleted]", nothing else
	Deleted            Condition = "deleted"              // RemovedBy ("deleted"), url "", title "[deleted by user]"
	DeletedNoCategory  Condition = "deleted_no_category"  // the same with a null category
	DeletedOld         Condition = "deleted_old"          // the shape of t3_ah3gqo: null category, url intact
	Removed            Condition = "removed"              // by RemovedBy ("moderator"); url stays
	RemovedModView     Condition = "removed_mod_view"     // banned_by set, category null
	RemovedAdmin       Condition = "removed_admin"        // RemovedBy ("anti_evil_ops"), title "[ Removed by Reddit ]"
	RemovedTitle       Condition = "removed_title"        // that title, category null
	RemovedSelftext    Condition = "removed_selftext"     // selftext "[removed]", category null
	RemovedLegal       Condition = "removed_legal"        // removal_reason "legal"
	Quarantined        Condition = "quarantined"          // present, quarantine true
	Absent             Condition = "absent"               // an id Reddit does not know
	AbsentBanned       Condition = "absent_banned"        // in a banned subreddit
	AbsentPrivate      Condition = "absent_private"       // in a private one
	AbsentQuarantined  Condition = "absent_quarantined"   // in one that needs an opt-in
	AbsentGated        Condition = "absent_gated"         // in a gated one
)

// absence maps the conditions under which /api/info leaves a post out to the reason
// that /r/NAME/about gives for its subreddit ("" = the subreddit is fine).
var absence = map[Condition]string{
	Absent: "", AbsentBanned: "banned", AbsentPrivate: "private",
	AbsentQuarantined: "quarantined", AbsentGated: "gated",
}

// State returns the post state that a correct client arrives at under c.
func (c Condition) State() manifest.PostState {
	switch c {
	case "", Live, LiveNotIndexable, LiveAccountDeleted:
		return manifest.StateLive
	case Deleted, DeletedNoCategory, DeletedOld:
		return manifest.StateDeleted
	case Quarantined:
		return manifest.StateHeld
	}
	if _, absent := absence[c]; absent {
		return manifest.StateUnavailable
	}
	return manifest.StateRemoved
}

// A Serve says how the image host answers for one image.
type Serve string

// The ways to answer. The zero value serves the image.
const (
	ServeImage        Serve = ""
	ServeNotFound     Serve = "not_found"     // 404, HTML
	ServeForbidden    Serve = "forbidden"     // 403, 418 bytes of XML
	ServePlaceholder  Serve = "placeholder"   // 404 with the grey 130x60 PNG
	ServeImgurRemoved Serve = "imgur_removed" // 302 to i.imgur.com/removed.png, 200
	ServeImgurChain   Serve = "imgur_chain"   // the same over one more redirect
	ServeHTML         Serve = "html"          // 200 text/html
	ServeEmpty        Serve = "empty"         // 200 image/jpeg, no byte
	ServeCut          Serve = "cut"           // 200, whole HTTP answer, first half of the image
	ServeGarbage      Serve = "garbage"       // 200 image/jpeg, random bytes
	ServeUnavailable  Serve = "unavailable"   // 503, each time
)

// StatusDeleted is the status of an item that the author took out of a gallery.
const StatusDeleted = "deleted"

// An Image is one image of a post.
type Image struct {
	Spec Spec   // what to draw, at the first request
	Body []byte // served in its place when not nil
	// Write, when not nil, writes what is served in place of both, made again each time: for
	// what is too large to keep.
	Write func(io.Writer) error
	Serve Serve
	Slug  string // media id; "" = made from the post's id and the image's place
	Ext   string // extension in the URL, without the dot; "" = by format, and jpg for WebP
	// TitleSlug makes gallery URLs of the form some-title-v0-SLUG.jpg. Only preview.redd.it
	// answers that form; i.redd.it knows the slug alone.
	TitleSlug bool
	Status    string // gallery: "" = valid; failed, unprocessed and StatusDeleted items have no source
	NoAPI     bool   // imgur: the API answers 404, the direct link lives
}

// A Post is one post as the emulator has it. The zero value of every field but
// ID is the plain case: a live post with one image drawn for its id.
type Post struct {
	ID        manifest.PostID
	Kind      Kind      // "" = KindImage
	Condition Condition // "" = Live
	RemovedBy string    // removed_by_category under Removed, RemovedAdmin and Deleted; "" = the usual one
	Subreddit string    // "" = one that suits the condition
	Over18    bool
	Link      string  // KindLink; KindImgurPage may give another address here
	Images    []Image // nil = one, drawn for the id (none for self, video, link)
	Parent    *Post   // KindCrosspost; nil = a live image post made from the id
	// Set changes fields of the finished JSON object, last: so a post gets any oddity.
	Set map[string]any
	// Raw, when not nil, is served in place of all of this, byte for byte: a thing, {"kind":"t3","data":{...}}.
	Raw json.RawMessage

	// What a correct run makes of the post. Put fills Want in when it is empty.
	Want        manifest.PostState
	WantOutcome manifest.Outcome // under the default policy; "" = not said
	CopyOf      manifest.PostID  // the post whose image this one's copies
}

// normalized fills in the fields that have defaults.
func (p Post) normalized() Post {
	p.Kind, p.Condition = cmp.Or(p.Kind, KindImage), cmp.Or(p.Condition, Live)
	p.Subreddit = cmp.Or(p.Subreddit, cmp.Or(absence[p.Condition], "memes")+"_emulated")
	if p.Kind == KindCrosspost {
		parent := Post{ID: manifest.PostID("1" + base36(Hash64(string(p.ID), "parent"), 6)), Images: p.Images}
		if p.Parent != nil {
			parent = *p.Parent
		}
		// A copy, because the same Parent may stand in posts of the caller's.
		parent = parent.normalized()
		p.Parent = &parent
	}
	if p.Images == nil && (p.Kind == KindImage || p.Kind == KindGallery || p.onImgur()) {
		p.Images = []Image{{Spec: Spec{Seed: Hash64(string(p.ID), "image")}}}
	}
	if p.Want == "" && p.Raw == nil {
		p.Want = p.Condition.State()
	}
	return p
}

// URLs returns the address of each image of the post, in the form that a correct
// client asks for: i.redd.it for galleries. Images without an address give "".
func (p Post) URLs() []string {
	p = p.normalized()
	if p.Kind == KindCrosspost {
		return p.Parent.URLs()
	}
	urls := make([]string, len(p.Images))
	for i, img := range p.Images {
		if img.Status == "" {
			urls[i] = p.imageURL(i)
		}
	}
	return urls
}

// slug is the media id of image i: 13 base-36 digits on Reddit's own hosts, 7 on imgur.
func (p Post) slug(i int) string {
	if s := p.Images[i].Slug; s != "" {
		return s
	}
	digits := 13
	if p.onImgur() {
		digits = 7
	}
	return base36(Hash64(string(p.ID), "slug", strconv.Itoa(i)), digits)
}

func (p Post) onImgur() bool { return p.Kind == KindImgur || p.Kind == KindImgurPage }

func (p Post) imageURL(i int) string {
	host := "i.redd.it"
	if p.onImgur() {
		host = imgurFileHost
	}
	return "https://" + host + "/" + p.slug(i) + "." + p.Images[i].ext()
}

// previewURL is the signed address of image i on preview.redd.it.
func (p Post) previewURL(i int, query string) string {
	return signed(previewHost, "/"+p.previewName(i), query)
}

func (p Post) previewName(i int) string {
	name := p.slug(i) + "." + p.Images[i].ext()
	if p.Images[i].TitleSlug {
		name = "canary-title-zq83-v0-" + name
	}
	return name
}

func (img Image) ext() string {
	if f := img.Spec.Format; f == "png" || f == "gif" {
		return cmp.Or(img.Ext, f)
	}
	return cmp.Or(img.Ext, "jpg")
}

// thing is the post as /api/info sends it: {"kind":"t3","data":{...}}.
func (p Post) thing() (json.RawMessage, error) {
	if p.Raw != nil {
		return p.Raw, nil
	}
	b, err := jsonscan.Marshal(map[string]any{"kind": "t3", "data": p.fields()})
	if err != nil {
		return nil, fmt.Errorf("post %s: %w", p.ID, err)
	}
	return b, nil
}

// fields builds the data object.
func (p Post) fields() map[string]any {
	d := p.identity()
	p.content(d)
	// After the content, because what is removed or deleted loses part of it.
	p.afflict(d)
	// Last, so that a test has its way whatever the post is.
	maps.Copy(d, p.Set)
	return d
}

func (p Post) identity() map[string]any {
	// The posts of the set that the tool was made for are of 2018 to 2022.
	created := float64(1522540800 + Hash64(string(p.ID), "created")%149_000_000)
	return map[string]any{
		"approved_by": nil, "author": CanaryAuthor, "author_fullname": CanaryFullname,
		"author_flair_text": CanaryFlair, "banned_at_utc": nil, "banned_by": nil,
		"created": created, "created_utc": created, "domain": "i.redd.it", "edited": false,
		"id": string(p.ID), "is_crosspostable": true, "is_reddit_media_domain": false,
		"is_robot_indexable": true, "is_self": false, "is_video": false, "likes": nil,
		"name": p.ID.Fullname(), "num_crossposts": 0, "num_reports": nil, "over_18": p.Over18,
		"permalink":  "/r/" + p.Subreddit + "/comments/" + string(p.ID) + "/" + CanaryPermalink + "/",
		"quarantine": false, "removal_reason": nil, "removed_by": nil, "removed_by_category": nil,
		"score": Hash64(string(p.ID), "score") % 5000, "selftext": CanarySelftext, "spoiler": false,
		"subreddit": p.Subreddit, "subreddit_id": "t5_" + base36(Hash64(p.Subreddit), 5), "subreddit_type": "public",
		// The title has characters that encoders like to escape.
		"thumbnail": "default", "title": CanaryTitle + " <&> " + string(p.ID),
	}
}

// content adds the fields that the kind of post decides.
func (p Post) content(d map[string]any) {
	link := func(u string) { d["url"], d["url_overridden_by_dest"] = u, u }
	self := "https://www.reddit.com" + d["permalink"].(string)
	switch p.Kind {
	case KindImage:
		link(p.imageURL(0))
		d["is_reddit_media_domain"], d["post_hint"] = true, "image"
		d["preview"] = p.preview(p.previewURL(0, "auto=webp"))
		d["thumbnail"] = "https://b.thumbs.redditmedia.com/" + CanaryPermalink + ".jpg"
	case KindGallery:
		link("https://www.reddit.com/gallery/" + string(p.ID))
		d["domain"], d["is_gallery"] = "reddit.com", true
		items, metadata := []any{}, map[string]any{}
		for i := range p.Images {
			mid := p.slug(i)
			item := map[string]any{"media_id": mid, "id": 900000000 + i, "caption": CanarySelftext}
			if p.Images[i].Status == StatusDeleted {
				item["is_deleted"] = true
			}
			items = append(items, item)
			metadata[mid] = p.galleryItem(i)
		}
		d["gallery_data"], d["media_metadata"] = map[string]any{"items": items}, metadata
	case KindImgur:
		link(p.imageURL(0))
		d["domain"], d["post_hint"] = "i.imgur.com", "image"
		d["preview"] = p.preview(signed("external-preview.redd.it", "/"+p.slug(0)+"preview.jpg", "auto=webp"))
	case KindImgurPage:
		link(cmp.Or(p.Link, "https://imgur.com/"+p.slug(0)))
		d["domain"], d["post_hint"] = "imgur.com", "link"
	case KindLink:
		link(cmp.Or(p.Link, "https://news.example/weather/"+string(p.ID)))
		d["domain"], d["post_hint"] = "news.example", "link"
		if u, err := url.Parse(p.Link); err == nil && u.Host != "" {
			d["domain"] = u.Hostname()
		}
	case KindSelf:
		d["url"], d["is_self"], d["domain"], d["post_hint"] = self, true, "self."+p.Subreddit, "self"
	case KindVideo:
		link("https://v.redd.it/" + base36(Hash64(string(p.ID), "video"), 13))
		d["domain"], d["is_video"], d["post_hint"], d["is_reddit_media_domain"] = "v.redd.it", true, "hosted:video", true
	case KindCrosspost:
		parent := p.Parent.fields()
		link(fmt.Sprint(parent["url"]))
		d["domain"], d["crosspost_parent"] = parent["domain"], parent["name"]
		d["crosspost_parent_list"] = []any{parent}
	}
}

// preview is the preview field with the signed address u as its source.
func (p Post) preview(u string) map[string]any {
	w, h := p.Images[0].Spec.Size()
	return map[string]any{"enabled": true, "images": []any{map[string]any{
		"id":          p.slug(0),
		"source":      map[string]any{"url": u, "width": w, "height": h},
		"resolutions": []any{}, "variants": map[string]any{},
	}}}
}

// galleryItem is what media_metadata says of image i.
func (p Post) galleryItem(i int) map[string]any {
	img, mid := p.Images[i], p.slug(i)
	if img.Status != "" {
		return map[string]any{"status": img.Status, "id": mid}
	}
	w, h := img.Spec.Size()
	if img.ext() == "gif" { // has its source under other names
		return map[string]any{"status": "valid", "e": "AnimatedImage", "m": "image/gif", "id": mid,
			"s": map[string]any{"gif": p.imageURL(i), "mp4": p.previewURL(i, "format=mp4"), "x": w, "y": h}}
	}
	mime, format := "image/jpg", "pjpg"
	if img.ext() == "png" {
		mime, format = "image/png", "png"
	}
	u := p.previewURL(i, "width="+strconv.Itoa(w)+"&format="+format+"&auto=webp")
	return map[string]any{"status": "valid", "e": "Image", "m": mime, "id": mid,
		"p": []any{}, "s": map[string]any{"u": u, "x": w, "y": h}}
}

// afflictions are the fields in which a condition differs from a live post.
var afflictions = map[Condition]map[string]any{
	LiveNotIndexable:   {"is_robot_indexable": false, "subreddit_type": "restricted"},
	LiveAccountDeleted: {"author": "[deleted]"},
	Deleted: {"author": "[deleted]", "url": "", "url_overridden_by_dest": "", "title": "[deleted by user]",
		"selftext": "[deleted]", "removed_by_category": "deleted"},
	DeletedNoCategory: {"author": "[deleted]", "url": "", "url_overridden_by_dest": "", "title": "[deleted by user]",
		"selftext": "[deleted]"},
	DeletedOld:      {"author": "[deleted]", "selftext": "[deleted]"},
	Removed:         {"removed_by_category": "moderator"},
	RemovedModView:  {"banned_by": "AutoModerator", "banned_at_utc": 1577648848},
	RemovedAdmin:    {"author": "[deleted]", "title": "[ Removed by Reddit ]", "removed_by_category": "anti_evil_ops"},
	RemovedTitle:    {"title": "[ Removed by Reddit ]"},
	RemovedSelftext: {"selftext": "[removed]"},
	RemovedLegal:    {"removal_reason": "legal"},
	Quarantined:     {"quarantine": true},
}

// afflict changes the fields of a live post into those that its condition shows.
func (p Post) afflict(d map[string]any) {
	if p.Condition.State() != manifest.StateLive && p.Condition != Quarantined {
		// What every removal and deletion shows.
		d["is_robot_indexable"], d["is_crosspostable"], d["thumbnail"] = false, false, "default"
		delete(d, "preview")
		delete(d, "post_hint")
	}
	maps.Copy(d, afflictions[p.Condition])
	// A deleted account takes all of its fields along.
	if d["author"] != CanaryAuthor {
		delete(d, "author_fullname")
		delete(d, "author_flair_text")
	}
	if d["removed_by_category"] != nil && p.RemovedBy != "" {
		d["removed_by_category"] = p.RemovedBy
	}
	if p.Kind == KindSelf && p.Condition == Removed {
		d["selftext"] = "[removed]"
	}
}

// addresses are the asset keys of image i: all places where a client may find it.
func (p Post) addresses(i int) []string {
	name := "/" + p.slug(i) + "." + p.Images[i].ext()
	if p.onImgur() {
		return []string{assetKey(imgurFileHost, name), assetKey("external-preview.redd.it", "/"+p.slug(0)+"preview.jpg")}
	}
	return []string{assetKey("i.redd.it", name), assetKey(previewHost, "/"+p.previewName(i))}
}

// sign signs preview addresses. It protects nothing: it makes them hard to guess
// for a client that should use them as they are given.
func sign(path, query string) string { return fmt.Sprintf("%040x", Hash64("preview", path, query)) }

func signed(host, path, query string) string {
	return "https://" + host + path + "?" + query + "&s=" + sign(path, query)
}

// Hash64 is a stable hash of its parts: everything that is made up follows from it.
func Hash64(parts ...string) uint64 {
	h := sha256.New()
	for _, p := range parts {
		h.Write(binary.AppendUvarint(nil, uint64(len(p))))
		h.Write([]byte(p))
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}

// base36 writes the low digits of n in base 36, padded with zeros to exactly digits.
func base36(n uint64, digits int) string {
	s := strings.Repeat("0", digits) + strconv.FormatUint(n, 36)
	return s[len(s)-digits:]
}
