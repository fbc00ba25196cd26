package policy

import (
	"reflect"
	"strings"
	"testing"

	"rehydrate/manifest"
)

// A judgeCase is facts with the reason of the verdict that they must get. The source names where the mark or the pair
// of marks was published or recorded.
type judgeCase struct {
	name   string
	facts  Facts
	reason manifest.Reason
	source string
}

// ruleCases are those that one rule must decide.
type ruleCases struct {
	rule  string
	state manifest.PostState
	cases []judgeCase
}

// Sources that several cases share.
const (
	devvit    = "Reddit Devvit docs, Post.removedByCategory"
	arctic    = "arctic_shift, RS_2026-01 and its schema docs"
	reveddit  = "reveddit utils.tsx, lines 134-165"
	archive   = "reddit-archive, the open release of October 2017"
	galleryDL = "gallery-dl issues 3386, 2913 and 4045"
	dataWiki  = "Reddit Data API wiki: content that was removed has to go, whatever else is said of it"
)

func judgeCases() []ruleCases {
	yes, no := true, false
	return []ruleCases{
		{"admin", manifest.StateRemoved, []judgeCase{
			{"safety team", Facts{RemovedBy: "anti_evil_ops"}, "anti_evil_ops", devvit},
			{"community team", Facts{RemovedBy: "community_ops"}, "community_ops", devvit},
			{"content violation", Facts{RemovedBy: "content_takedown"}, "content_takedown", devvit},
			{"copyright", Facts{RemovedBy: "copyright_takedown"}, "copyright_takedown", devvit},
			{"trademark", Facts{RemovedBy: "trademark_takedown"}, "trademark_takedown", "arctic_shift, removal_type, 2025"},
			{"legal operations", Facts{RemovedBy: "legal_operations"}, "legal_operations", reveddit},
			{"takedown of a post with its image still named", Facts{RemovedBy: "copyright_takedown", RobotIndexable: &yes, HasMedia: true}, "copyright_takedown",
				"The Markup, June 2022: images of removed posts stay reachable"},
			{"takedown, title replaced", Facts{RemovedBy: "anti_evil_ops", TitleRemoved: true, AuthorDeleted: true, RobotIndexable: &no}, "anti_evil_ops",
				reveddit},
			{"takedown of a quarantined post", Facts{RemovedBy: "content_takedown", Quarantine: true}, "content_takedown",
				devvit},
			{"takedown and legal: the category is more exact", Facts{RemovedBy: "copyright_takedown", RemovalReason: "legal"}, "copyright_takedown",
				devvit},
			{"takedown of what its author then deleted", Facts{RemovedBy: "community_ops", AuthorDeleted: true, SelftextDeleted: true}, "community_ops",
				devvit},
		}},
		{"legal", manifest.StateRemoved, []judgeCase{
			{"legal", Facts{RemovalReason: "legal", HasMedia: true}, "legal", archive},
			{"legal before the author", Facts{RemovalReason: "legal", RemovedBy: "deleted"}, "legal", archive},
			{"legal before the spam filter", Facts{RemovalReason: "legal", RemovedBy: "reddit"}, "legal", archive},
		}},
		{"author", manifest.StateDeleted, []judgeCase{
			{"deleted", Facts{RemovedBy: "deleted"}, "author", devvit},
			{"author", Facts{RemovedBy: "author"}, "author", devvit},
			{"deleted, every field replaced", Facts{RemovedBy: "deleted", AuthorDeleted: true, SelftextDeleted: true, TitleDeleted: true, RobotIndexable: &no}, "author",
				reveddit},
			{"deleted before banned_by", Facts{RemovedBy: "deleted", ModRemoved: true}, "author", reveddit},
			{"deleted before [removed]", Facts{RemovedBy: "author", SelftextRemoved: true}, "author", reveddit},
		}},
		{"spam filter", manifest.StateRemoved, []judgeCase{
			{"spam filter", Facts{RemovedBy: "reddit", RobotIndexable: &no}, "spam_filter", "PRAW cassettes, t3_1kh35wk"},
			{"spam filter, account gone", Facts{RemovedBy: "reddit", AuthorDeleted: true, SelftextDeleted: true}, "spam_filter",
				arctic},
		}},
		{"moderator", manifest.StateRemoved, []judgeCase{
			{"moderator", Facts{RemovedBy: "moderator"}, "moderator", devvit},
			{"a moderator removed an image post", Facts{RemovedBy: "moderator", ModRemoved: true, RobotIndexable: &no, HasMedia: true}, "moderator",
				"PRAW cassettes, t3_ehaje2"},
			{"moderator, then the account went", Facts{RemovedBy: "moderator", AuthorDeleted: true, SelftextDeleted: true}, "moderator",
				reveddit},
			{"held by AutoModerator", Facts{RemovedBy: "automod_filtered", HasMedia: true}, "automod_filtered", devvit},
		}},
		{"other category", manifest.StateRemoved, []judgeCase{
			{"a new category", Facts{RemovedBy: "brand_new"}, "other_brand_new", arctic},
			{"a new category beside every sign of life", Facts{RemovedBy: "brand_new", RobotIndexable: &yes, HasMedia: true}, "other_brand_new",
				dataWiki},
			{"a category with other signs in it", Facts{RemovedBy: "New Thing/2!"}, "other_new_thing_2_", arctic},
			{"an endless category", Facts{RemovedBy: strings.Repeat("x", 1000)}, manifest.Reason("other_" + strings.Repeat("x", 40)),
				arctic},
			{"the case of a category counts", Facts{RemovedBy: "Moderator"}, "other_moderator", arctic},
			{"legal as a category is in third-party code only", Facts{RemovedBy: "legal"}, "other_legal", reveddit},
			{"a new category before the markers", Facts{RemovedBy: "brand_new", AuthorDeleted: true, SelftextDeleted: true}, "other_brand_new",
				dataWiki},
		}},
		{"moderator's view", manifest.StateRemoved, []judgeCase{
			{"banned_by is true", Facts{ModRemoved: true}, "moderator", "PRAW cassettes, t3_4o0j4p"},
			{"banned_by is true, account gone", Facts{ModRemoved: true, AuthorDeleted: true}, "moderator",
				"PRAW cassettes, t3_2u37co"},
			{"banned_by before the deletion markers", Facts{ModRemoved: true, AuthorDeleted: true, SelftextDeleted: true}, "moderator",
				archive},
		}},
		{"deletion markers", manifest.StateDeleted, []judgeCase{
			{"image post deleted in the old form", Facts{AuthorDeleted: true, SelftextDeleted: true, RobotIndexable: &no, HasMedia: true}, "author",
				"PRAW cassettes, t3_ah3gqo"},
			{"text post deleted in the oldest form", Facts{AuthorDeleted: true, SelftextDeleted: true}, "author",
				"PRAW cassettes, t3_5dec48"},
			{"deleted in the later form: title, no URL", Facts{AuthorDeleted: true, TitleDeleted: true}, "author", galleryDL},
			{"no author, not indexable", Facts{AuthorDeleted: true, RobotIndexable: &no, HasMedia: true}, "author",
				"PRAW cassettes, t3_ah3gqo, without its text"},
			{"deletion before removal markers", Facts{AuthorDeleted: true, SelftextRemoved: true, RobotIndexable: &no}, "author",
				reveddit},
			{"deletion before quarantine", Facts{AuthorDeleted: true, SelftextDeleted: true, Quarantine: true}, "author",
				dataWiki},
		}},
		{"removal markers", manifest.StateRemoved, []judgeCase{
			{"[removed]", Facts{SelftextRemoved: true}, "marker", "PRAW cassettes, t3_5dec21"},
			{"[removed], account gone", Facts{SelftextRemoved: true, AuthorDeleted: true}, "marker", archive},
			{"[ Removed by Reddit ]", Facts{TitleRemoved: true, HasMedia: true}, "marker", reveddit},
			{"[removed] in quarantine", Facts{SelftextRemoved: true, Quarantine: true}, "marker", dataWiki},
		}},
		{"quarantine", manifest.StateHeld, []judgeCase{
			{"quarantine", Facts{Quarantine: true}, "quarantine", "PRAW cassettes, t3_30het4"},
			{"quarantine, account gone", Facts{Quarantine: true, AuthorDeleted: true}, "quarantine",
				"PRAW cassettes, t3_309b9g"},
			{"quarantine before a profile", Facts{Quarantine: true, ProfileSubreddit: true}, "quarantine", archive},
		}},
		{"profile post", manifest.StateHeld, []judgeCase{
			{"profile post", Facts{ProfileSubreddit: true, RobotIndexable: &yes}, "profile_post", "PRAW cassettes, t3_1t4nr7v"},
			{"profile post, account gone", Facts{ProfileSubreddit: true, AuthorDeleted: true, RobotIndexable: &yes}, "profile_post",
				"Reddit Data API wiki, fields that name a user"},
		}},
		{"account deleted", manifest.StateLive, []judgeCase{
			{"account deleted", Facts{AuthorDeleted: true, RobotIndexable: &yes}, "account_deleted",
				"PRAW cassettes, t3_61pa9g"},
			{"account deleted, before is_robot_indexable", Facts{AuthorDeleted: true, HasMedia: true}, "account_deleted",
				"PRAW cassettes, t3_185qq7"},
		}},
		{"not indexable", manifest.StateLive, []judgeCase{
			{"not indexable", Facts{RobotIndexable: &no, HasMedia: true}, "not_indexable", "PRAW cassettes, t3_bb24k7"},
		}},
		{"no media", manifest.StateLive, []judgeCase{
			{"no image", Facts{RobotIndexable: &yes}, "no_media", "PRAW cassettes, t3_84anfy"},
		}},
		{"live", manifest.StateLive, []judgeCase{
			{"live", Facts{RobotIndexable: &yes, HasMedia: true}, "", "PRAW cassettes, t3_1sk0jaq"},
			{"live, before is_robot_indexable", Facts{HasMedia: true}, "", "PRAW cassettes, t3_1756x8"},
			{"an author wrote [deleted]", Facts{SelftextDeleted: true, TitleDeleted: true, HasMedia: true}, "",
				"deduced from reddit-archive: the author goes with a deletion"},
			{"another removal_reason", Facts{RemovalReason: "other", HasMedia: true}, "", archive + ": null or legal"},
		}},
	}
}

// TestVerdicts holds the verdicts, one case a published or recorded form of a post, and that
// each rule of the table decides in some case and has a source.
func TestVerdicts(t *testing.T) {
	decided := map[string]bool{}
	for _, group := range judgeCases() {
		decided[group.rule] = true
		for _, tt := range group.cases {
			if got, want := Judge(tt.facts), (Verdict{group.state, tt.reason}); got != want || tt.source == "" {
				t.Errorf("%s: Judge(%+v) = %v, want %v; source %q", tt.name, tt.facts, got, want, tt.source)
			}
			if rule := decide(tt.facts).name; rule != group.rule {
				t.Errorf("%s: the rule %q decides, want %q", tt.name, rule, group.rule)
			}
		}
	}
	for _, r := range rules {
		if !decided[r.name] || r.source == "" {
			t.Errorf("the rule %q decides no case, or has no source", r.name)
		}
	}
}

// TestJudgeOrder: the rules that say gone stand before all others, so that no sign of life
// can outdo one; and the last rule fits all facts.
func TestJudgeOrder(t *testing.T) {
	over := false
	for _, r := range rules {
		if over && r.state.Gone() {
			t.Errorf("the rule %q says %s behind one that does not", r.name, r.state)
		}
		over = over || !r.state.Gone()
		if (r.reason != "") == (r.reasons != nil) && r.name != "live" {
			t.Errorf("the rule %q has no reason, or two", r.name)
		}
	}
	if last := rules[len(rules)-1]; !last.test(Facts{}) || !last.test(Facts{RemovedBy: "x", ModRemoved: true}) {
		t.Errorf("the last rule, %q, does not fit everything", last.name)
	}
}

// everyFacts calls do with each combination of facts: both values of each mark, and for the
// others every value that some rule tells apart.
func everyFacts(do func(Facts)) {
	yes, no := true, false
	categories := []string{"", "deleted", "author", "reddit", "moderator", "automod_filtered", "anti_evil_ops", "community_ops",
		"content_takedown", "copyright_takedown", "trademark_takedown", "legal_operations", "legal", "?"}
	for bits := range 1 << 9 {
		bit := func(n int) bool { return bits>>n&1 == 1 }
		for _, by := range categories {
			for _, why := range []string{"", "legal", "other"} {
				for _, indexable := range []*bool{nil, &yes, &no} {
					do(Facts{RemovedBy: by, RemovalReason: why, ModRemoved: bit(0), AuthorDeleted: bit(1),
						SelftextDeleted: bit(2), SelftextRemoved: bit(3), TitleDeleted: bit(4), TitleRemoved: bit(5),
						RobotIndexable: indexable, Quarantine: bit(6), ProfileSubreddit: bit(7), HasMedia: bit(8)})
				}
			}
		}
	}
}

// TestJudgeRemovalWins goes through every combination of facts: whatever else is said of
// a post, a mark of removal never comes out as live or held, and nothing else as gone.
func TestJudgeRemovalWins(t *testing.T) {
	if got, want := reflect.TypeFor[Facts]().NumField(), 12; got != want {
		t.Fatalf("Facts has %d fields, everyFacts enumerates %d", got, want)
	}
	count := 0
	everyFacts(func(f Facts) {
		count++
		marked := f.RemovedBy != "" || f.RemovalReason == "legal" || f.ModRemoved || f.SelftextRemoved || f.TitleRemoved ||
			f.AuthorDeleted && (f.SelftextDeleted || f.TitleDeleted || notIndexable(f))
		v := Judge(f)
		switch v.State {
		case manifest.StateRemoved, manifest.StateDeleted:
			if !marked || v.Reason == "" {
				t.Fatalf("Judge(%+v) = %v; marks of removal: %v", f, v, marked)
			}
		case manifest.StateHeld, manifest.StateLive:
			if marked || (v.State == manifest.StateHeld) != (f.Quarantine || f.ProfileSubreddit) {
				t.Fatalf("Judge(%+v) = %v; marks of removal: %v", f, v, marked)
			}
		default:
			t.Fatalf("Judge(%+v) = %v: no state that an answer can lead to", f, v)
		}
		if again := Judge(f); again != v {
			t.Fatalf("Judge(%+v) = %v, then %v", f, v, again)
		}
	})
	if want := 512 * 14 * 3 * 3; count != want {
		t.Errorf("%d combinations judged, want %d", count, want)
	}
}

func TestJudgeAbsent(t *testing.T) {
	for c, want := range map[Community]manifest.Reason{
		CommunityUnknown: "absent_twice", CommunityOpen: "subreddit_open", "something new": "absent_twice",
		CommunityPrivate: "subreddit_private", CommunityBanned: "subreddit_banned", CommunityMissing: "subreddit_missing",
		CommunityQuarantined: "subreddit_quarantined", CommunityGated: "subreddit_gated",
	} {
		if got := JudgeAbsent(c); got != (Verdict{manifest.StateUnavailable, want}) {
			t.Errorf("JudgeAbsent(%q) = %v, want unavailable, %s", c, got, want)
		}
	}
}

// TestReadmits: only what a moderator or AutoModerator removed ever comes back, and only
// where the policy says so.
func TestReadmits(t *testing.T) {
	never, moderator := Default(), Default()
	moderator.Reddit.Readmit = ReadmitModerator
	everyFacts(func(f Facts) {
		v := Judge(f)
		if never.Readmits(v.State, v.Reason) || (Policy{}).Readmits(v.State, v.Reason) {
			t.Fatalf("the default readmits %v", v)
		}
		want := v == Verdict{manifest.StateRemoved, "moderator"} || v == Verdict{manifest.StateRemoved, "automod_filtered"}
		if got := moderator.Readmits(v.State, v.Reason); got != want {
			t.Fatalf("readmit = moderator: Readmits(%v) = %v", v, got)
		}
	})
	for _, v := range []Verdict{{manifest.StateRemoved, ""}, {manifest.StateDeleted, "moderator"}, {manifest.StateDeleted, ""},
		{manifest.StateUnavailable, "absent_twice"}, {manifest.StateUnavailable, "moderator"}, {"", "moderator"}} {
		if moderator.Readmits(v.State, v.Reason) {
			t.Errorf("readmit = moderator readmits %v", v)
		}
	}
}

func TestTakenDown(t *testing.T) {
	for _, tt := range []struct {
		state  manifest.PostState
		reason manifest.Reason
		want   bool
	}{
		{manifest.StateDeleted, "author", true},
		{manifest.StateRemoved, "takedown", true},
		{manifest.StateRemoved, "copyright_takedown", true},
		{manifest.StateRemoved, "", true},
		{manifest.StateRemoved, "moderator", false},
		{manifest.StateRemoved, "automod_filtered", false},
		{manifest.StateRemoved, "spam_filter", false},
		{manifest.StateRemoved, "marker", false},
		{manifest.StateRemoved, "other_new_word", false},
		{manifest.StateUnavailable, "takedown", false},
	} {
		if got := TakenDown(tt.state, tt.reason); got != tt.want {
			t.Errorf("TakenDown(%s, %s) = %v, want %v", tt.state, tt.reason, got, tt.want)
		}
	}
}
