package policy

import (
	"regexp"
	"slices"
	"strings"

	"rehydrate/manifest"
)

// Facts are what a well-formed answer of Reddit says of one post: the fields that a verdict needs and no others.
// Author, title and selftext are not facts; only whether they carry one of Reddit's markers is.
type Facts struct {
	RemovedBy        string // removed_by_category as it came, "" when null or absent
	RemovalReason    string // removal_reason, "" when null
	ModRemoved       bool   // banned_by or removed_by set, as a moderator sees it
	AuthorDeleted    bool   // author is "[deleted]"
	SelftextDeleted  bool   // selftext is "[deleted]"
	SelftextRemoved  bool   // selftext is "[removed]", or starts "[ Removed by "
	TitleDeleted     bool   // title is "[deleted by user]"
	TitleRemoved     bool   // title starts "[ Removed by "
	RobotIndexable   *bool  // is_robot_indexable, nil when absent
	Quarantine       bool
	ProfileSubreddit bool // subreddit starts with "u_"
	HasMedia         bool // an image can be named for some entry of the post
	OfParent         bool // the image is that of the post that it is a crosspost of, which is live
}

// A Verdict is the state of a post with the reason for it.
type Verdict struct {
	State  manifest.PostState
	Reason manifest.Reason
}

// Why a post is unavailable: nothing more is known of it, or what /r/NAME/about says of its subreddit.
const (
	ReasonAbsent         manifest.Reason = "absent_twice"
	CommunityUnknown     manifest.Reason = ""                      // no usable answer
	CommunityOpen        manifest.Reason = "subreddit_open"        // anyone may read it, and the post is not there
	CommunityPrivate     manifest.Reason = "subreddit_private"     // 403, reason private
	CommunityBanned      manifest.Reason = "subreddit_banned"      // 404, reason banned
	CommunityQuarantined manifest.Reason = "subreddit_quarantined" // 403, reason quarantined
	CommunityGated       manifest.Reason = "subreddit_gated"       // 403, reason gated
	CommunityMissing     manifest.Reason = "subreddit_missing"     // 404 without a reason, or a redirect to the search
)

// OtherReason starts the reason of a post with a removed_by_category that Judge does not know: other_ and Reddit's own
// word if it has at most 40 letters, digits, _ and -, else free_text. The post counts as removed; whoever runs the tool
// should be warned, because the list of categories has grown.
const OtherReason = "other_"

// CrosspostAuthor is the reason of a post that its author deleted while it was a crosspost of another: the image is the
// other post's, which stays.
const CrosspostAuthor manifest.Reason = "crosspost_author"

// takedowns are the values of removed_by_category for what Reddit itself or the law took down: Reddit Devvit docs,
// Post.removedByCategory; arctic_shift; reveddit utils.tsx.
var takedowns = []string{"anti_evil_ops", "community_ops", "content_takedown", "copyright_takedown",
	"trademark_takedown", "legal_operations"}

// RemovalCategory returns a removed_by_category, or "" for one that says nothing: a blank one, and the word null in any
// case, which is what becomes of null where something on the way writes it as text.
func RemovalCategory(s string) string {
	if blank := strings.TrimSpace(s); blank == "" || strings.EqualFold(blank, "null") {
		return ""
	}
	return s
}

// Judge is the decision table: it says what state a post is in. The first case that fits decides. A post is live with a
// reason where something is worth knowing. Judge never answers unavailable or unknown: those say that there was no
// answer. Each case names where the meaning of its mark was published or recorded.
func Judge(f Facts) Verdict {
	category, notIndexable := RemovalCategory(f.RemovedBy), f.RobotIndexable != nil && !*f.RobotIndexable
	author := manifest.Reason("author")
	if f.OfParent {
		author = CrosspostAuthor
	}
	// The order is a decision: every case that says removed or deleted stands before the first one that does not, so
	// that a mark of removal wins over every sign of life; a takedown by Reddit before the author's own deletion, and a
	// category before the marks that posts had before there were categories.
	switch {
	case slices.Contains(takedowns, category):
		return Verdict{manifest.StateRemoved, manifest.Reason(category)}
	case f.RemovalReason == "legal": // reddit-archive 2017
		return Verdict{manifest.StateRemoved, "legal"}
	case category == "deleted", category == "author": // Reddit Devvit docs; reveddit utils.tsx
		return Verdict{manifest.StateDeleted, author}
	case category == "reddit": // reveddit utils.tsx; PRAW cassettes, t3_1kh35wk
		return Verdict{manifest.StateRemoved, "spam_filter"}
	case category == "moderator", category == "automod_filtered": // Reddit Devvit docs; PRAW cassettes, t3_ehagna
		return Verdict{manifest.StateRemoved, manifest.Reason(category)}
	case category != "": // arctic_shift: the values have grown over the years
		return Verdict{manifest.StateRemoved, OtherReason + sanitize(category)}
	case f.ModRemoved: // PRAW cassettes, t3_4o0j4p (banned_by true), t3_462bww (a name)
		return Verdict{manifest.StateRemoved, "moderator"}
	case f.AuthorDeleted && (f.SelftextDeleted || f.TitleDeleted || notIndexable): // PRAW t3_ah3gqo; gallery-dl 3386
		return Verdict{manifest.StateDeleted, author}
	case f.SelftextRemoved, f.TitleRemoved: // reddit-archive 2017; PRAW cassettes, t3_5dec21
		return Verdict{manifest.StateRemoved, "marker"}
	case f.Quarantine: // even when its author's account goes: reddit-archive 2017; PRAW cassettes, t3_309b9g
		return Verdict{manifest.StateHeld, "quarantine"}
	case f.ProfileSubreddit: // PRAW cassettes, t3_1t4nr7v; Reddit Data API wiki: what names a user has to go
		return Verdict{manifest.StateHeld, "profile_post"}
	case f.AuthorDeleted: // PRAW cassettes, t3_61pa9g; reveddit utils.tsx
		return Verdict{manifest.StateLive, "account_deleted"}
	case notIndexable: // PRAW cassettes, t3_bb24k7, in a restricted subreddit
		return Verdict{manifest.StateLive, "not_indexable"}
	case !f.HasMedia: // PRAW cassettes, t3_84anfy; gallery-dl reddit.py
		return Verdict{manifest.StateLive, "no_media"}
	}
	return Verdict{manifest.StateLive, ""} // PRAW cassettes, t3_1sk0jaq
}

var token = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)

// sanitize turns a value that Reddit sent into the end of a reason.
func sanitize(s string) manifest.Reason {
	if !token.MatchString(s) {
		return "free_text" // it can hold what somebody wrote about a person
	}
	return manifest.Reason(strings.ReplaceAll(strings.ToLower(s), "-", "_"))
}

// Reasons of an entry whose image was removed although its post is live.
const (
	SameAsRemoved   manifest.Reason = "same_as_removed"          // it shows the same picture as one that was taken down
	LeftGallery     manifest.Reason = "gallery_item_deleted"     // its author took the picture out of the gallery
	CrosspostParent manifest.Reason = "crosspost_parent_removed" // the post that has it was removed or deleted
)

// ImageRemovals are the reasons of an entry whose image was removed although its post is live.
func ImageRemovals() []manifest.Reason {
	return []manifest.Reason{SameAsRemoved, LeftGallery, CrosspostParent}
}

// LeftPost reports whether an image was removed from a post that stays, by its author or with a crosspost's parent.
// That holds until somebody asks for the image by name, while SameAsRemoved holds as long as the removal of the other
// post.
func LeftPost(reason manifest.Reason) bool { return reason == LeftGallery || reason == CrosspostParent }

// ByAuthor reports whether a reason says that the author deleted the post.
func ByAuthor(reason manifest.Reason) bool { return reason == "author" || reason == CrosspostAuthor }

// RemovalReason reports whether Judge gives a reason to posts that were removed or deleted.
func RemovalReason(reason manifest.Reason) bool {
	others := []manifest.Reason{"legal", "spam_filter", "moderator", "automod_filtered", "marker"}
	return slices.Contains(takedowns, string(reason)) || ByAuthor(reason) || slices.Contains(others, reason) ||
		len(reason) > len(OtherReason) && strings.HasPrefix(string(reason), OtherReason)
}

// TakenDown reports whether a removal is about the picture: its author deleted it, and not only a crosspost of it, or
// Reddit, the law or somebody by request took it down. A removal of which the reason is not known counts.
func TakenDown(s manifest.PostState, reason manifest.Reason) bool {
	// What moderators and spam filters remove can be fine elsewhere.
	ofThePlace := []manifest.Reason{"moderator", "automod_filtered", "spam_filter", "marker"}
	return s == manifest.StateDeleted && reason != CrosspostAuthor || s == manifest.StateRemoved &&
		!slices.Contains(ofThePlace, reason) && !strings.HasPrefix(string(reason), OtherReason)
}

// Outweighs reports whether a tombstone counts although another one of the same post came later: it is about the
// picture, and the later one is not; or it says of a deleted post that this was a crosspost, and the later one does
// not.
func Outweighs(s manifest.PostState, reason manifest.Reason, later manifest.PostState, itsReason manifest.Reason) bool {
	if s == manifest.StateDeleted && later == s {
		return reason == CrosspostAuthor && itsReason != reason
	}
	return TakenDown(s, reason) && !TakenDown(later, itsReason)
}

// Readmits reports whether a post whose tombstone has this state and reason may come back after it was seen live. By
// default a tombstone is for good.
func (p Policy) Readmits(state manifest.PostState, reason manifest.Reason) bool {
	// Moderators and AutoModerator approve posts later. What its author deleted, what Reddit, its spam filter or the
	// law took down, and what went for a reason that was never written down, stays away.
	return p.Reddit.Readmit == ReadmitModerator && state == manifest.StateRemoved &&
		(reason == "moderator" || reason == "automod_filtered")
}
