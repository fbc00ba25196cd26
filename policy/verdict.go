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
