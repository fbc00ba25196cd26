package policy

import "rehydrate/manifest"

// Facts are what a well-formed answer of Reddit says of one post: the fields that a
// verdict needs and no others. Author, title and selftext are not facts; only whether
// they carry one of Reddit's markers is.
type Facts struct {
	RemovedBy        string // removed_by_category, "" when null or absent
	RemovalReason    string // removal_reason, "" when null
	ModRemoved       bool   // banned_by or removed_by set, as a moderator sees it
	AuthorDeleted    bool   // author is "[deleted]"
	SelftextDeleted  bool   // selftext is "[deleted]"
	SelftextRemoved  bool   // selftext is "[removed]"
	TitleDeleted     bool   // title is "[deleted by user]"
	TitleRemoved     bool   // title starts "[ Removed by "
	RobotIndexable   *bool  // is_robot_indexable, nil when absent
	Quarantine       bool
	ProfileSubreddit bool // subreddit starts with "u_"
	HasMedia         bool // an image can be named for some entry of the post
}

// A Verdict is the state of a post with the reason for it.
type Verdict struct {
	State  manifest.PostState
	Reason manifest.Reason
}

// A Community is what /r/NAME/about says of a subreddit.
type Community string

// The kinds of communities.
const (
	CommunityUnknown     Community = ""            // no usable answer
	CommunityOpen        Community = "open"        // anyone may read it
	CommunityPrivate     Community = "private"     // 403, reason private
	CommunityBanned      Community = "banned"      // 404, reason banned
	CommunityQuarantined Community = "quarantined" // 403, reason quarantined
	CommunityGated       Community = "gated"       // 403, reason gated
	CommunityMissing     Community = "missing"     // 404 "Not Found" without a reason, or a redirect to the search
)

// ReasonAbsent is the reason of an unavailable post when nothing more is known of it.
const ReasonAbsent manifest.Reason = "absent_twice"

// JudgeAbsent is the verdict on a post that was absent twice from answers that held other
// posts, once its community has been asked about: unavailable, and why. subreddit_open says that
// its community is there and the post is not; of a community that nothing is known of, the
// reason stays ReasonAbsent.
func JudgeAbsent(c Community) Verdict {
	switch c {
	case CommunityOpen, CommunityPrivate, CommunityBanned, CommunityQuarantined, CommunityGated, CommunityMissing:
		return Verdict{manifest.StateUnavailable, "subreddit_" + manifest.Reason(c)}
	}
	return Verdict{manifest.StateUnavailable, ReasonAbsent}
}

// Readmits reports whether a post whose tombstone has this state and reason may come back after it was seen live. By
// default a tombstone is for good. In the mode "moderator" a post may that a moderator or AutoModerator removed: they
// approve posts later. None does that its author deleted, that Reddit, its spam filter or the law took down, or whose
// reason is not known here or was never written down.
func (p Policy) Readmits(state manifest.PostState, reason manifest.Reason) bool {
	return p.Reddit.Readmit == ReadmitModerator && state == manifest.StateRemoved &&
		(reason == "moderator" || reason == "automod_filtered")
}
