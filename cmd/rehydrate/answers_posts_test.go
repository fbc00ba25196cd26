package main

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
)

// A postAnswer is one post of the release that TestPostAnswers rehydrates, four times: what
// is told of it, and what must become of its entry.
type postAnswer struct {
	post redditemu.Post
	with func(p *redditemu.Post, slug string) // sets what hangs on the slug of its image
	// spoil, when not the zero value, is what an image host answers for the image in the first run.
	spoil hostile.FaultKind
	// named says that the manifest names the post's subreddit.
	named bool
	// want is the outcome of the first run: "outcome/reason", or an outcome for any reason.
	want string
	// asked says that the image host is asked for the image. Without it not one request is made.
	asked bool
	// then are the later runs: what changes before each, and the outcome after it.
	then  []change
	check func(t *testing.T, s *site, runs []snapshot, c postCase) // more to look at
}

type change struct {
	update func(p *redditemu.Post) // nil = as it was
	want   string
}

// gone is a post whose image must not be asked for.
func gone(p redditemu.Post, want string) postAnswer { return postAnswer{post: p, want: want} }

// removedBy is a removal by a value of removed_by_category.
func removedBy(category string, c redditemu.Condition, want string) postAnswer {
	return gone(redditemu.Post{Condition: c, RemovedBy: category}, want)
}

// kept is a post whose image is fetched and exported.
func kept(p redditemu.Post) postAnswer { return postAnswer{post: p, want: "kept", asked: true} }

// lost is a live post whose image can't be had.
func lost(p redditemu.Post, want string) postAnswer {
	return postAnswer{post: p, want: want, asked: true}
}

func served(how redditemu.Serve) redditemu.Post {
	return redditemu.Post{Images: []redditemu.Image{{Serve: how}}}
}

func onImgur(how redditemu.Serve) redditemu.Post {
	return redditemu.Post{Kind: redditemu.KindImgur, Images: []redditemu.Image{{Serve: how}}}
}

func gallery(img redditemu.Image) redditemu.Post {
	return redditemu.Post{Kind: redditemu.KindGallery, Images: []redditemu.Image{img}}
}

// linked is a link whose target is also an image of i.redd.it.
func linked(before, after string) func(*redditemu.Post, string) {
	return func(p *redditemu.Post, slug string) { p.Link = before + slug + after }
}

func (a postAnswer) spoiled(kind hostile.FaultKind) postAnswer { a.spoil = kind; return a }
func (a postAnswer) later(f func(*redditemu.Post), w string) postAnswer {
	a.then = append(a.then, change{f, w})
	return a
}

var postAnswers = map[string]postAnswer{
	"absent cause: private subreddit":     wentAbsent(redditemu.AbsentPrivate, "unavailable/subreddit_private"),
	"absent cause: gated subreddit":       wentAbsent(redditemu.AbsentGated, "unavailable/subreddit_gated"),
	"absent cause: banned subreddit":      absentIn(redditemu.AbsentBanned, "unavailable/subreddit_banned"),
	"absent cause: quarantined subreddit": absentIn(redditemu.AbsentQuarantined, "unavailable/subreddit_quarantined"),
	"absent cause: unknown id":            absentIn(redditemu.Absent, "unavailable/subreddit_open"),

	"removal: category deleted":            removedBy("deleted", redditemu.Deleted, "deleted/author"),
	"removal: category author":             removedBy("author", redditemu.Deleted, "deleted/author"),
	"removal: category moderator":          removedBy("moderator", redditemu.Removed, "removed/moderator"),
	"removal: category automod_filtered":   removedBy("automod_filtered", redditemu.Removed, "removed/automod_filtered"),
	"removal: category reddit":             removedBy("reddit", redditemu.Removed, "removed/spam_filter"),
	"removal: category anti_evil_ops":      removedBy("anti_evil_ops", redditemu.RemovedAdmin, "removed/anti_evil_ops"),
	"removal: category community_ops":      removedBy("community_ops", redditemu.RemovedAdmin, "removed/community_ops"),
	"removal: category content_takedown":   removedBy("content_takedown", redditemu.Removed, "removed/content_takedown"),
	"removal: category copyright_takedown": removedBy("copyright_takedown", redditemu.Removed, "removed/copyright_takedown"),
	"removal: category trademark_takedown": removedBy("trademark_takedown", redditemu.Removed, "removed/trademark_takedown"),
	"removal: category legal_operations":   removedBy("legal_operations", redditemu.Removed, "removed/legal_operations"),
	"removal: category legal":              removedBy("legal", redditemu.Removed, "removed/other_legal"),
	"removal: unknown category":            removedBy("Some new: category", redditemu.Removed, "removed/other_some_new__category"),

	"removal: null category, deleted by its user (t3_ah3gqo)": gone(redditemu.Post{Condition: redditemu.DeletedOld}, "deleted/author"),
	"removal: title [deleted by user]": gone(redditemu.Post{Condition: redditemu.LiveAccountDeleted,
		Set: map[string]any{"title": "[deleted by user]"}}, "deleted/author"),
	"removal: title [ Removed by Reddit ]":            gone(redditemu.Post{Condition: redditemu.RemovedTitle}, "removed/marker"),
	"removal: removal_reason legal":                   gone(redditemu.Post{Condition: redditemu.RemovedLegal}, "removed/legal"),
	"removal: removed by a moderator, later reversed": reversed(redditemu.Removed, "removed/moderator", "removed/tombstone", "kept"),
	"removal: deleted by its user, later reversed":    reversed(redditemu.Deleted, "deleted/author", "deleted/tombstone", "deleted/tombstone"),
	"removal: empty url": gone(redditemu.Post{Set: map[string]any{"url": "", "url_overridden_by_dest": ""},
		Unset: []string{"preview"}}, "no_media/no_url"),

	"not removal: robot_indexable false on a live post": kept(redditemu.Post{Condition: redditemu.LiveNotIndexable}),
	"not removal: account deleted, post live":           kept(redditemu.Post{Condition: redditemu.LiveAccountDeleted}),
	"not removal: over_18":                              kept(redditemu.Post{Over18: true}),
	"not removal: imgur region block": lost(onImgur(""), "failed/region_block").
		spoiled(hostile.RegionBlock()).later(nil, "kept"), // somewhere else

	"ordering: removed at the API, 200 at the image host":                gone(redditemu.Post{Condition: redditemu.Removed}, "removed/moderator"),
	"ordering: live at the API, 404 with the grey PNG at the image host": lost(served(redditemu.ServePlaceholder), "gone/http_404"),

	"media JSON: gallery_data null": gone(redditemu.Post{Kind: redditemu.KindGallery, NoGalleryData: true}, "no_media/gallery_missing"),
	"media JSON: media_metadata null": gone(redditemu.Post{Kind: redditemu.KindGallery, NoMediaMetadata: true},
		"gone/gallery_item_missing"),
	"media JSON: media id missing in media_metadata": gone(gallery(redditemu.Image{NoMetadata: true}), "gone/gallery_item_missing"),
	"media JSON: status failed":                      gone(gallery(redditemu.Image{Status: "failed"}), "gone/gallery_item_failed"),
	"media JSON: status unprocessed":                 gone(gallery(redditemu.Image{Status: "unprocessed"}), "failed/gallery_item_unprocessed"),
	"media JSON: crosspost list empty":               kept(redditemu.Post{Kind: redditemu.KindCrosspost, EmptyParentList: true}),
	"media JSON: crosspost parent": kept(redditemu.Post{Kind: redditemu.KindCrosspost, Set: map[string]any{
		"url": "https://www.reddit.com/r/other/comments/zzz/", "url_overridden_by_dest": "https://www.reddit.com/r/other/comments/zzz/"}}),
	"media JSON: image/jpg":    {post: gallery(redditemu.Image{}), want: "kept", asked: true, check: askedAs(".jpg")},
	"media JSON: null fields":  kept(redditemu.Post{Set: nulls()}),
	"media JSON: edited image": edited(),
	"media JSON: u_ subreddit": gone(redditemu.Post{Subreddit: "u_canary"}, "refused/profile_post"),

	"media hosts: -v0- slug":              {post: linkedImage(), with: linked("https://i.redd.it/some-title-v0-", ".jpg"), want: "kept", asked: true, check: askedAs(".jpg")},
	"media hosts: HTML with 200 as image": lost(served(redditemu.ServeHTML), "invalid/not_an_image_html"),
	"media hosts: WebP under .jpg": {post: redditemu.Post{Images: []redditemu.Image{{Spec: redditemu.Spec{Format: "webp"}}}},
		want: "kept", asked: true, check: storedAs(".webp")},
	"media hosts: 404 with an image body": lost(redditemu.Post{}, "gone/http_404").spoiled(hostile.Status(404, nil, smallPNG())),
	"media hosts: removed.png linked": {post: redditemu.Post{Kind: redditemu.KindLink, Link: "https://i.imgur.com/removed.png"},
		want: "placeholder/known_placeholder"},
	"media hosts: removed.png by a redirect":           lost(onImgur(redditemu.ServeImgurRemoved), "placeholder/known_placeholder"),
	"media hosts: removed.png by a chain of redirects": lost(onImgur(redditemu.ServeImgurChain), "placeholder/known_placeholder"),
	"media hosts: region PNG":                          lost(onImgur(""), "failed/region_block").spoiled(hostile.RegionBlock()),
	"media hosts: redirect to /media": {post: redditemu.Post{}, spoil: hostile.RedirectTo("https://www.reddit.com/media?url=https%3A%2F%2Fi.redd.it%2Fx.jpg"),
		want: "failed/redirect_to_page", asked: true, check: noPageAsked},
	"media hosts: empty body":               lost(served(redditemu.ServeEmpty), "invalid/empty_body"),
	"media hosts: truncated body":           lost(redditemu.Post{}, "failed/truncated").spoiled(hostile.TruncatedBody()),
	"media hosts: half an image":            lost(served(redditemu.ServeCut), "invalid"),
	"media hosts: .gifv":                    {post: redditemu.Post{Kind: redditemu.KindLink}, with: linked("https://i.imgur.com/", ".gifv"), want: "no_media/video"},
	"media hosts: imgur over capacity, 403": lost(onImgur(""), "failed/over_capacity").spoiled(hostile.OverCapacity(403)),
	"media hosts: imgur over capacity, 429": lost(onImgur(""), "failed/over_capacity").spoiled(hostile.OverCapacity(429)),
	"media hosts: imgur API over capacity": lost(redditemu.Post{Kind: redditemu.KindImgurPage}, "failed/over_capacity").
		spoiled(hostile.OverCapacity(403)),
	"media hosts: imgur API 404 with a live direct link": {post: redditemu.Post{Kind: redditemu.KindImgurPage,
		Images: []redditemu.Image{{NoAPI: true}}}, want: "kept", asked: true, check: apiThenFile},
}

// wentAbsent is a post that is live until its subreddit closes; nothing but the live answer
// told which subreddit that is. When the subreddit opens again the post is back.
func wentAbsent(c redditemu.Condition, want string) postAnswer {
	return postAnswer{with: ownSubreddit, want: "kept", asked: true, check: askedAbout}.
		later(func(p *redditemu.Post) { p.Condition = c }, want).
		later(func(p *redditemu.Post) { p.Condition = redditemu.Live }, "kept")
}

// absentIn is a post that was never seen; the manifest names its subreddit.
func absentIn(c redditemu.Condition, want string) postAnswer {
	return postAnswer{post: redditemu.Post{Condition: c}, with: ownSubreddit, named: true, want: want, check: askedAbout}
}

func ownSubreddit(p *redditemu.Post, slug string) { p.Subreddit = "sub_" + slug }

// reversed is taken down and put back. It stays out; the fourth run has a policy by which
// what a moderator took down may come back.
func reversed(c redditemu.Condition, down, up, readmitted string) postAnswer {
	return kept(redditemu.Post{}).
		later(func(p *redditemu.Post) { p.Condition = c }, down).
		later(func(p *redditemu.Post) { p.Condition = redditemu.Live }, up).
		later(nil, readmitted)
}

// edited shows another image in the second run.
func edited() postAnswer {
	a := kept(redditemu.Post{}).later(func(p *redditemu.Post) {
		p.Edited = true
		p.Images = []redditemu.Image{{Spec: redditemu.Spec{Seed: 9000}, Slug: p.Images[0].Slug + "new"}}
	}, "kept")
	a.check = func(t *testing.T, _ *site, runs []snapshot, c postCase) {
		before, after := runs[0].files[c.id], runs[1].files[c.id]
		if len(before) != 1 || len(after) != 1 || maps.Equal(before, after) {
			t.Errorf("files before and after the edit: %v, %v; want one each, and not the same", slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(after)))
		}
		if n := len(runs[1].asked(c.slug + "new")); n != 1 {
			t.Errorf("the new image was asked for %d times in the second run", n)
		}
	}
	return a
}

// nulls are fields that may all be null.
func nulls() map[string]any {
	fields := map[string]any{}
	for _, f := range []string{"selftext", "title", "post_hint", "preview", "gallery_data", "media_metadata", "crosspost_parent_list",
		"is_gallery", "is_self", "is_video", "url_overridden_by_dest", "quarantine", "is_robot_indexable", "thumbnail", "domain"} {
		fields[f] = nil
	}
	return fields
}

func linkedImage() redditemu.Post {
	return redditemu.Post{Kind: redditemu.KindLink, Images: []redditemu.Image{{}}}
}

func smallPNG() []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewGray(image.Rect(0, 0, 300, 200))) // a bytes.Buffer takes everything
	return b.Bytes()
}

// askedAs wants the image to be asked for under its bare slug and this extension.
func askedAs(ext string) func(*testing.T, *site, []snapshot, postCase) {
	return func(t *testing.T, _ *site, runs []snapshot, c postCase) {
		for _, r := range runs[0].asked(c.slug) {
			if r.Path != "/"+c.slug+ext {
				t.Errorf("asked %s for %s, want /%s%s", r.Host, r.Path, c.slug, ext)
			}
		}
	}
}

// apiThenFile wants imgur's API to be asked first, and then the direct link.
func apiThenFile(t *testing.T, _ *site, runs []snapshot, c postCase) {
	var got []string
	for _, r := range runs[0].asked(c.slug) {
		got = append(got, fmt.Sprint(r.Host, r.Path, " ", r.Status))
	}
	want := []string{"api.imgur.com/3/image/" + c.slug + " 404", "i.imgur.com/" + c.slug + ".jpg 200"}
	if !slices.Equal(got, want) {
		t.Errorf("asked %v, want %v", got, want)
	}
}

func storedAs(ext string) func(*testing.T, *site, []snapshot, postCase) {
	return func(t *testing.T, _ *site, runs []snapshot, c postCase) {
		for name := range runs[0].files[c.id] {
			if filepath.Ext(name) != ext {
				t.Errorf("stored as %s, want %s", name, ext)
			}
		}
	}
}

func noPageAsked(t *testing.T, _ *site, runs []snapshot, _ postCase) {
	for _, r := range runs[0].requests {
		if r.Path == "/media" {
			t.Errorf("%s was asked for the page around the image", r.Host)
		}
	}
}

// askedAbout wants the subreddit of an absent post to be asked for, once a run at most.
func askedAbout(t *testing.T, _ *site, runs []snapshot, c postCase) {
	n := 0
	for i, run := range runs {
		asked := 0
		for _, r := range run.requests {
			if strings.HasPrefix(r.Path, "/r/sub_"+c.slug+"/about") {
				asked++
			}
		}
		if asked > 1 {
			t.Errorf("run %d asked %d times about the subreddit", i+1, asked)
		}
		n += asked
	}
	if n == 0 {
		t.Error("nobody asked about the subreddit")
	}
}
