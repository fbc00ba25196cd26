package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// answers is every answer of Reddit and of the image hosts that rehydrate must bear, as they
// were recorded or deduced (PRAW and prawcore cassettes, gallery-dl, the Reddit Data API wiki).
// Each name here is a case of its own: TestAnswerList fails when one has no test, or when a
// test has no name here.
var answers = []answerGroup{
	{"rate headers", []string{
		"remaining 997.0 parses",
		"remaining 0.0 trips the limiter",
		"reset 0 with remaining 0 waits a second",
		"absent headers decrement the count",
		"used and remaining sum to 600",
		"used and remaining sum to 1000",
		"used and remaining sum to 10000",
		"huge reset gives a visible and bounded wait",
	}},
	{"429 and 403", []string{
		"429 as HTML with Retry-After",
		"429 as JSON without Retry-After",
		"429 with an empty body",
		"429 for a default User-Agent",
		"403 HTML, Blocked",
		"403 HTML, blocked by network security",
		"403 HTML, administrative rules",
		"403 JSON with a reason",
		"403 with Retry-After is a rate limit",
		"414",
		"451",
	}},
	{"token", []string{
		"200 with an error is a failure",
		"expires_in 3600",
		"expires_in 86400",
		"expiry in the middle of a run refreshes once",
		"a token that always expires makes no loop",
		"401 with 34 KB of HTML",
		"403 insufficient_scope",
		"the bearer goes to oauth.reddit.com only",
	}},
	{"server errors", []string{
		"500", "502", "503", "504", "520", "522", "408",
		"reset connection",
		"truncated JSON",
		"truncated body",
		"HTML with 200",
	}},
	{"id lists", []string{
		"exactly 100 ids",
		"over 100 ids are never sent",
		"absent ids",
		"an extra id",
		"a duplicate id",
		"an empty listing for all is unknown, not removal",
	}},
	{"absent cause", []string{
		"private subreddit",
		"banned subreddit",
		"quarantined subreddit",
		"gated subreddit",
		"unknown id",
	}},
	{"removal", []string{
		"category deleted",
		"category author",
		"category moderator",
		"category automod_filtered",
		"category reddit",
		"category anti_evil_ops",
		"category community_ops",
		"category content_takedown",
		"category copyright_takedown",
		"category trademark_takedown",
		"category legal_operations",
		"category legal",
		"unknown category",
		"null category, deleted by its user (t3_ah3gqo)",
		"title [deleted by user]",
		"title [ Removed by Reddit ]",
		"removal_reason legal",
		"removed by a moderator, later reversed",
		"deleted by its user, later reversed",
		"empty url",
	}},
	{"not removal", []string{
		"robot_indexable false on a live post",
		"account deleted, post live",
		"over_18",
		"imgur region block",
	}},
	{"ordering", []string{
		"removed at the API, 200 at the image host",
		"live at the API, 404 with the grey PNG at the image host",
		"removed between the API's answer and the download",
		"removed between the download and the export",
	}},
	{"media JSON", []string{
		"gallery_data null",
		"media_metadata null",
		"media id missing in media_metadata",
		"status failed",
		"status unprocessed",
		"crosspost list empty",
		"crosspost parent",
		"image/jpg",
		"null fields",
		"edited image",
		"u_ subreddit",
	}},
	{"media hosts", []string{
		"&amp; in a signed URL",
		"-v0- slug",
		"HTML with 200 as image",
		"WebP under .jpg",
		"404 with an image body",
		"removed.png linked",
		"removed.png by a redirect",
		"removed.png by a chain of redirects",
		"region PNG",
		"redirect to /media",
		"empty body",
		"truncated body",
		"half an image",
		".gifv",
		"imgur over capacity, 403",
		"imgur over capacity, 429",
		"imgur API over capacity",
		"imgur API 404 with a live direct link",
	}},
}

type answerGroup struct {
	name  string
	cases []string
}

// TestAnswerList holds the list against the tests there are, both ways. With -v it prints it.
func TestAnswerList(t *testing.T) {
	have := map[string]bool{}
	for name := range wireAnswers {
		have[name] = true
	}
	for name := range postAnswers {
		if have[name] {
			t.Errorf("%q is tested twice under one name", name)
		}
		have[name] = true
	}
	n := 0
	for _, g := range answers {
		t.Logf("%s: %s", g.name, strings.Join(g.cases, "; "))
		for _, c := range g.cases {
			n++
			name := g.name + ": " + c
			if !have[name] {
				t.Errorf("%q is listed, and nothing tests it", name)
			}
			delete(have, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		t.Errorf("%q is tested, and not listed", name)
	}
	t.Logf("%d cases", n)
}

// eachAnswer runs the cases of one kind, in the order of the list.
func eachAnswer[T any](t *testing.T, cases map[string]T, do func(t *testing.T, name string, c T)) {
	for _, g := range answers {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.cases {
				name := g.name + ": " + c
				if impl, ok := cases[name]; ok {
					t.Run(c, func(t *testing.T) { do(t, name, impl) })
				}
			}
		})
	}
}
