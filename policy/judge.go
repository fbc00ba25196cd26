package policy

import (
	"regexp"
	"slices"
	"strings"

	"rehydrate/manifest"
)

// OtherReason starts the reason of a post with a removed_by_category that no rule knows:
// other_ and Reddit's own word. The post counts as removed; whoever runs the tool should
// be warned, because the list of categories has grown.
const OtherReason = "other_"

// A rule is one line of the decision table.
type rule struct {
	name    string
	test    func(Facts) bool
	state   manifest.PostState
	reason  manifest.Reason
	reasons func(Facts) manifest.Reason // instead of reason, where Reddit's word becomes it
	source  string                      // where the meaning of the mark was published or recorded
}

// rules is the decision table. The order is a decision: every rule that says removed or
// deleted stands before the first one that does not, a takedown by Reddit before the
// author's own deletion, and a category before the marks that posts had before there were
// categories. The last rule takes what is left.
var rules = []rule{
	{name: "admin", test: category("anti_evil_ops", "community_ops", "content_takedown", "copyright_takedown",
		"trademark_takedown", "legal_operations"),
		state: manifest.StateRemoved, reasons: ownWord,
		source: "Reddit Devvit docs, Post.removedByCategory; arctic_shift; reveddit utils.tsx"},
	{name: "legal", test: func(f Facts) bool { return f.RemovalReason == "legal" },
		state: manifest.StateRemoved, reason: "legal",
		source: "reddit-archive 2017, removal_reason"},
	{name: "author", test: category("deleted", "author"),
		state: manifest.StateDeleted, reason: "author",
		source: "Reddit Devvit docs, Post.removedByCategory; reveddit utils.tsx"},
	{name: "spam filter", test: category("reddit"),
		state: manifest.StateRemoved, reason: "spam_filter",
		source: "reveddit utils.tsx; PRAW cassettes, t3_1kh35wk"},
	{name: "moderator", test: category("moderator", "automod_filtered"),
		state: manifest.StateRemoved, reasons: ownWord,
		source: "Reddit Devvit docs, Post.removedByCategory; PRAW cassettes, t3_ehagna"},
	{name: "other category", test: func(f Facts) bool { return f.RemovedBy != "" },
		state: manifest.StateRemoved, reasons: func(f Facts) manifest.Reason { return OtherReason + sanitize(f.RemovedBy) },
		source: "arctic_shift: the values have grown over the years"},
	{name: "moderator's view", test: func(f Facts) bool { return f.ModRemoved },
		state: manifest.StateRemoved, reason: "moderator",
		source: "PRAW cassettes, t3_4o0j4p (banned_by true), t3_462bww (a name)"},
	{name: "deletion markers", test: func(f Facts) bool {
		return f.AuthorDeleted && (f.SelftextDeleted || f.TitleDeleted || notIndexable(f))
	},
		state: manifest.StateDeleted, reason: "author",
		source: "PRAW cassettes, t3_ah3gqo; gallery-dl 3386"},
	{name: "removal markers", test: func(f Facts) bool { return f.SelftextRemoved || f.TitleRemoved },
		state: manifest.StateRemoved, reason: "marker",
		source: "reddit-archive 2017; PRAW cassettes, t3_5dec21"},
	{name: "quarantine", test: func(f Facts) bool { return f.Quarantine },
		// A quarantined post stays held when its author's account goes.
		state: manifest.StateHeld, reason: "quarantine",
		source: "reddit-archive 2017; PRAW cassettes, t3_309b9g"},
	{name: "profile post", test: func(f Facts) bool { return f.ProfileSubreddit },
		state: manifest.StateHeld, reason: "profile_post",
		source: "PRAW cassettes, t3_1t4nr7v; Reddit Data API wiki: what names a user has to go"},
	{name: "account deleted", test: func(f Facts) bool { return f.AuthorDeleted },
		state: manifest.StateLive, reason: "account_deleted",
		source: "PRAW cassettes, t3_61pa9g; reveddit utils.tsx"},
	{name: "not indexable", test: notIndexable,
		state: manifest.StateLive, reason: "not_indexable",
		source: "PRAW cassettes, t3_bb24k7, in a restricted subreddit"},
	{name: "no media", test: func(f Facts) bool { return !f.HasMedia },
		state: manifest.StateLive, reason: "no_media",
		source: "PRAW cassettes, t3_84anfy; gallery-dl reddit.py"},
	{name: "live", test: func(Facts) bool { return true },
		state:  manifest.StateLive,
		source: "PRAW cassettes, t3_1sk0jaq"},
}

// Judge says what state a post is in. The rules are tried in order and the first that fits decides, so that a mark of
// removal wins over every sign of life. A post is live with a reason where something is worth knowing. Judge never
// answers unavailable or unknown: those say that there was no answer.
func Judge(f Facts) Verdict {
	r := decide(f)
	if r.reasons != nil {
		return Verdict{r.state, r.reasons(f)}
	}
	return Verdict{r.state, r.reason}
}

// decide returns the rule that fits f: the last one always does.
func decide(f Facts) rule {
	return rules[slices.IndexFunc(rules, func(r rule) bool { return r.test(f) })]
}

// category makes the test for some values of removed_by_category.
func category(values ...string) func(Facts) bool {
	return func(f Facts) bool { return slices.Contains(values, f.RemovedBy) }
}

// ownWord makes a category that a rule names a reason.
func ownWord(f Facts) manifest.Reason { return manifest.Reason(f.RemovedBy) }

func notIndexable(f Facts) bool { return f.RobotIndexable != nil && !*f.RobotIndexable }

// SameAsRemoved is the reason of an entry that shows the same picture as one that was taken down.
const SameAsRemoved manifest.Reason = "same_as_removed"

// TakenDown reports whether a removal is about the picture: its author deleted it, or Reddit, the law or somebody
// by request took it down. What moderators and spam filters remove can be fine elsewhere. A removal of which the reason
// is not known counts.
func TakenDown(s manifest.PostState, reason manifest.Reason) bool {
	ofThePlace := []manifest.Reason{"moderator", "automod_filtered", "spam_filter", "marker"}
	return s == manifest.StateDeleted || s == manifest.StateRemoved &&
		!slices.Contains(ofThePlace, reason) && !strings.HasPrefix(string(reason), OtherReason)
}

var notPlain = regexp.MustCompile(`[^a-z0-9]`)

// sanitize turns a value that Reddit sent into the end of a reason: lower case letters,
// digits and underscores, at most 40 of them.
func sanitize(s string) manifest.Reason {
	out := notPlain.ReplaceAllString(strings.ToLower(s), "_")
	return manifest.Reason(out[:min(len(out), 40)])
}
