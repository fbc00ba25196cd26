package policy

import (
	"reflect"
	"strings"
	"testing"

	"rehydrate/manifest"
)

// A judgeCase is facts with the reason of the verdict that they must get.
type judgeCase struct {
	name   string
	facts  Facts
	reason manifest.Reason
}

// TestVerdicts holds the verdicts, one case a published or recorded form of a post. Judge has the sources of the marks;
// here stand those of whole posts: PRAW is its cassettes.
func TestVerdicts(t *testing.T) {
	yes, no := true, false
	for _, group := range []struct {
		state manifest.PostState
		cases []judgeCase
	}{
		{manifest.StateRemoved, []judgeCase{
			{"safety team", Facts{RemovedBy: "anti_evil_ops"}, "anti_evil_ops"},
			{"community team", Facts{RemovedBy: "community_ops"}, "community_ops"},
			{"content violation", Facts{RemovedBy: "content_takedown"}, "content_takedown"},
			{"copyright", Facts{RemovedBy: "copyright_takedown"}, "copyright_takedown"},
			{"trademark", Facts{RemovedBy: "trademark_takedown"}, "trademark_takedown"}, // arctic_shift, removal_type, 2025
			{"legal operations", Facts{RemovedBy: "legal_operations"}, "legal_operations"},
			{"takedown of a post with its image still named",
				Facts{RemovedBy: "copyright_takedown", RobotIndexable: &yes, HasMedia: true}, "copyright_takedown"},
			// The Markup, June 2022: images of removed posts stay reachable
			{"takedown, title replaced", Facts{RemovedBy: "anti_evil_ops", TitleRemoved: true, AuthorDeleted: true,
				RobotIndexable: &no}, "anti_evil_ops"},
			{"takedown of a quarantined post", Facts{RemovedBy: "content_takedown", Quarantine: true}, "content_takedown"},
			{"takedown and legal: the category is more exact",
				Facts{RemovedBy: "copyright_takedown", RemovalReason: "legal"}, "copyright_takedown"},
			{"takedown of what its author then deleted",
				Facts{RemovedBy: "community_ops", AuthorDeleted: true, SelftextDeleted: true}, "community_ops"},
			{"legal", Facts{RemovalReason: "legal", HasMedia: true}, "legal"},
			{"legal before the author", Facts{RemovalReason: "legal", RemovedBy: "deleted"}, "legal"},
			{"legal before the spam filter", Facts{RemovalReason: "legal", RemovedBy: "reddit"}, "legal"},
		}},
		{manifest.StateDeleted, []judgeCase{
			{"deleted", Facts{RemovedBy: "deleted"}, "author"},
			{"author", Facts{RemovedBy: "author"}, "author"},
			{"a crosspost", Facts{RemovedBy: "deleted", OfParent: true}, "crosspost_author"},
			{"a crosspost, of old", Facts{AuthorDeleted: true, TitleDeleted: true, OfParent: true}, "crosspost_author"},
			{"deleted, every field replaced", Facts{RemovedBy: "deleted", AuthorDeleted: true, SelftextDeleted: true,
				TitleDeleted: true, RobotIndexable: &no}, "author"},
			{"deleted before banned_by", Facts{RemovedBy: "deleted", ModRemoved: true}, "author"},
			{"deleted before [removed]", Facts{RemovedBy: "author", SelftextRemoved: true}, "author"},
		}},
		{manifest.StateRemoved, []judgeCase{
			{"spam filter", Facts{RemovedBy: "reddit", RobotIndexable: &no}, "spam_filter"}, // PRAW t3_1kh35wk
			{"spam filter, account gone", Facts{RemovedBy: "reddit", AuthorDeleted: true, SelftextDeleted: true},
				"spam_filter"},
			{"moderator", Facts{RemovedBy: "moderator"}, "moderator"},
			{"a moderator removed an image post", Facts{RemovedBy: "moderator", ModRemoved: true, RobotIndexable: &no,
				HasMedia: true}, "moderator"}, // PRAW t3_ehaje2
			{"moderator, then the account went", Facts{RemovedBy: "moderator", AuthorDeleted: true, SelftextDeleted: true},
				"moderator"},
			{"held by AutoModerator", Facts{RemovedBy: "automod_filtered", HasMedia: true}, "automod_filtered"},
			{"a new category", Facts{RemovedBy: "brand_new"}, "other_brand_new"},
			{"a new category beside every sign of life",
				Facts{RemovedBy: "brand_new", RobotIndexable: &yes, HasMedia: true}, "other_brand_new"},
			{"a category with other signs in it", Facts{RemovedBy: "New Thing/2!"}, "other_free_text"},
			{"a category of two words", Facts{RemovedBy: "New-Thing_2"}, "other_new_thing_2"},
			{"an endless category", Facts{RemovedBy: strings.Repeat("x", 41)}, "other_free_text"},
			{"the longest category", Facts{RemovedBy: strings.Repeat("x", 40)},
				manifest.Reason("other_" + strings.Repeat("x", 40))},
			{"the case of a category counts", Facts{RemovedBy: "Moderator"}, "other_moderator"},
			{"legal as a category is in third-party code only", Facts{RemovedBy: "legal"}, "other_legal"},
			{"a new category before the markers", Facts{RemovedBy: "brand_new", AuthorDeleted: true, SelftextDeleted: true},
				"other_brand_new"},
			{"a category that only begins like null", Facts{RemovedBy: "nullified", HasMedia: true}, "other_nullified"},
			{"the word null beside banned_by", Facts{RemovedBy: "null", ModRemoved: true}, "moderator"},
			{"banned_by is true", Facts{ModRemoved: true}, "moderator"},                                    // PRAW t3_4o0j4p
			{"banned_by is true, account gone", Facts{ModRemoved: true, AuthorDeleted: true}, "moderator"}, // PRAW t3_2u37co
			{"banned_by before the deletion markers", Facts{ModRemoved: true, AuthorDeleted: true, SelftextDeleted: true},
				"moderator"},
		}},
		{manifest.StateDeleted, []judgeCase{
			{"image post deleted in the old form", Facts{AuthorDeleted: true, SelftextDeleted: true, RobotIndexable: &no,
				HasMedia: true}, "author"}, // PRAW t3_ah3gqo
			{"text post deleted in the oldest form", Facts{AuthorDeleted: true, SelftextDeleted: true}, "author"},
			// PRAW t3_5dec48
			{"deleted in the later form: title, no URL", Facts{AuthorDeleted: true, TitleDeleted: true}, "author"},
			{"no author, not indexable", Facts{AuthorDeleted: true, RobotIndexable: &no, HasMedia: true}, "author"},
			// PRAW t3_ah3gqo, without its text
			{"the word null for a category hides no mark",
				Facts{RemovedBy: "null", AuthorDeleted: true, TitleDeleted: true}, "author"},
			{"deletion before removal markers", Facts{AuthorDeleted: true, SelftextRemoved: true, RobotIndexable: &no},
				"author"},
			{"deletion before quarantine", Facts{AuthorDeleted: true, SelftextDeleted: true, Quarantine: true}, "author"},
		}},
		{manifest.StateRemoved, []judgeCase{
			{"[removed]", Facts{SelftextRemoved: true}, "marker"}, // PRAW t3_5dec21
			{"[removed], account gone", Facts{SelftextRemoved: true, AuthorDeleted: true}, "marker"},
			{"[ Removed by Reddit ]", Facts{TitleRemoved: true, HasMedia: true}, "marker"},
			{"[removed] in quarantine", Facts{SelftextRemoved: true, Quarantine: true}, "marker"},
		}},
		{manifest.StateHeld, []judgeCase{
			{"quarantine", Facts{Quarantine: true}, "quarantine"},                                    // PRAW t3_30het4
			{"quarantine, account gone", Facts{Quarantine: true, AuthorDeleted: true}, "quarantine"}, // PRAW t3_309b9g
			{"quarantine before a profile", Facts{Quarantine: true, ProfileSubreddit: true}, "quarantine"},
			{"profile post", Facts{ProfileSubreddit: true, RobotIndexable: &yes}, "profile_post"},
			// PRAW t3_1t4nr7v
			{"profile post, account gone", Facts{ProfileSubreddit: true, AuthorDeleted: true, RobotIndexable: &yes},
				"profile_post"}, // Reddit Data API wiki, fields that name a user
		}},
		{manifest.StateLive, []judgeCase{
			{"account deleted", Facts{AuthorDeleted: true, RobotIndexable: &yes}, "account_deleted"},
			// PRAW t3_61pa9g
			{"account deleted, before is_robot_indexable", Facts{AuthorDeleted: true, HasMedia: true}, "account_deleted"},
			// PRAW t3_185qq7
			{"not indexable", Facts{RobotIndexable: &no, HasMedia: true}, "not_indexable"},
			// PRAW t3_bb24k7
			{"no image", Facts{RobotIndexable: &yes}, "no_media"},
			// PRAW t3_84anfy
			{"live", Facts{RobotIndexable: &yes, HasMedia: true}, ""},
			// PRAW t3_1sk0jaq
			{"live, before is_robot_indexable", Facts{HasMedia: true}, ""},
			// PRAW t3_1756x8
			{"an author wrote [deleted]", Facts{SelftextDeleted: true, TitleDeleted: true, HasMedia: true}, ""},
			// deduced from reddit-archive: the author goes with a deletion
			{"another removal_reason", Facts{RemovalReason: "other", HasMedia: true}, ""},
			// reddit-archive: null or legal
			{"the word null for a category", Facts{RemovedBy: "null", RobotIndexable: &yes, HasMedia: true}, ""},
			// null, in quotes on its way
			{"null in another spelling", Facts{RemovedBy: " NULL\n", HasMedia: true}, ""},
			{"a blank category", Facts{RemovedBy: " \t", HasMedia: true}, ""},
		}},
	} {
		for _, tt := range group.cases {
			if got, want := Judge(tt.facts), (Verdict{group.state, tt.reason}); got != want {
				t.Errorf("%s: Judge(%+v) = %v, want %v", tt.name, tt.facts, got, want)
			}
		}
	}
}

// everyFacts calls do with each combination of facts: both values of each mark, and for the
// others every value that some rule tells apart.
func everyFacts(do func(Facts)) {
	yes, no := true, false
	categories := []string{"", "deleted", "author", "reddit", "moderator", "automod_filtered", "anti_evil_ops",
		"community_ops",
		"content_takedown", "copyright_takedown", "trademark_takedown", "legal_operations", "legal", "?", "Null", " "}
	for bits := range 1 << 10 {
		bit := func(n int) bool { return bits>>n&1 == 1 }
		for _, by := range categories {
			for _, why := range []string{"", "legal", "other"} {
				for _, indexable := range []*bool{nil, &yes, &no} {
					do(Facts{RemovedBy: by, RemovalReason: why, ModRemoved: bit(0), AuthorDeleted: bit(1),
						SelftextDeleted: bit(2), SelftextRemoved: bit(3), TitleDeleted: bit(4), TitleRemoved: bit(5),
						RobotIndexable: indexable, Quarantine: bit(6), ProfileSubreddit: bit(7), HasMedia: bit(8),
						OfParent: bit(9)})
				}
			}
		}
	}
}

// TestJudgeRemovalWins goes through every combination of facts: whatever else is said of
// a post, a mark of removal never comes out as live or held, and nothing else as gone.
func TestJudgeRemovalWins(t *testing.T) {
	if got, want := reflect.TypeFor[Facts]().NumField(), 13; got != want {
		t.Fatalf("Facts has %d fields, everyFacts enumerates %d", got, want)
	}
	everyFacts(func(f Facts) {
		marked := RemovalCategory(f.RemovedBy) != "" || f.RemovalReason == "legal" || f.ModRemoved || f.SelftextRemoved ||
			f.TitleRemoved ||
			f.AuthorDeleted && (f.SelftextDeleted || f.TitleDeleted || f.RobotIndexable != nil && !*f.RobotIndexable)
		v := Judge(f)
		switch v.State {
		case manifest.StateRemoved, manifest.StateDeleted:
			if !marked || !RemovalReason(v.Reason) {
				t.Fatalf("Judge(%+v) = %v; marks of removal: %v", f, v, marked)
			}
		case manifest.StateHeld, manifest.StateLive:
			if marked || RemovalReason(v.Reason) || (v.State == manifest.StateHeld) != (f.Quarantine || f.ProfileSubreddit) {
				t.Fatalf("Judge(%+v) = %v; marks of removal: %v", f, v, marked)
			}
		default:
			t.Fatalf("Judge(%+v) = %v: no state that an answer can lead to", f, v)
		}
	})
}

func TestRemovalReason(t *testing.T) {
	for _, reason := range []manifest.Reason{"", "other_", "moderater", "takedown", "absent_twice", "deleted",
		"same_as_removed"} {
		if RemovalReason(reason) {
			t.Errorf("RemovalReason(%q) = true: Judge gives no such reason", reason)
		}
	}
}

// TestReadmits: only what a moderator or AutoModerator removed ever comes back, and only where the policy says so.
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
	for _, v := range []Verdict{{manifest.StateRemoved, ""}, {manifest.StateDeleted, "moderator"},
		{manifest.StateDeleted, ""},
		{manifest.StateUnavailable, "absent_twice"}, {manifest.StateUnavailable, "moderator"}, {"", "moderator"}} {
		if moderator.Readmits(v.State, v.Reason) {
			t.Errorf("readmit = moderator readmits %v", v)
		}
	}
}

func TestTakenDown(t *testing.T) {
	for v, want := range map[Verdict]bool{
		{manifest.StateDeleted, "author"}: true, {manifest.StateRemoved, "takedown"}: true,
		{manifest.StateRemoved, ""}:                   true,
		{manifest.StateRemoved, "copyright_takedown"}: true, {manifest.StateUnavailable, "takedown"}: false,
		{manifest.StateRemoved, "moderator"}: false, {manifest.StateRemoved, "automod_filtered"}: false,
		{manifest.StateRemoved, "spam_filter"}: false, {manifest.StateRemoved, "marker"}: false,
		{manifest.StateRemoved, "other_new_word"}: false,
	} {
		if got := TakenDown(v.State, v.Reason); got != want {
			t.Errorf("TakenDown(%s, %s) = %v, want %v", v.State, v.Reason, got, want)
		}
	}
}

// TestOutweighs: a takedown counts whatever comes later, and that a crosspost was deleted takes nothing of the
// original.
func TestOutweighs(t *testing.T) {
	for _, tt := range []struct {
		old, later Verdict
		want       bool
	}{
		{Verdict{manifest.StateRemoved, "request"}, Verdict{manifest.StateUnavailable, ""}, true},
		{Verdict{manifest.StateDeleted, "author"}, Verdict{manifest.StateRemoved, "moderator"}, true},
		{Verdict{manifest.StateUnavailable, ""}, Verdict{manifest.StateRemoved, ""}, false},
		{Verdict{manifest.StateRemoved, "moderator"}, Verdict{manifest.StateUnavailable, ""}, false},
		{Verdict{manifest.StateRemoved, "moderator"}, Verdict{manifest.StateRemoved, ""}, false},
		{Verdict{manifest.StateRemoved, "request"}, Verdict{manifest.StateDeleted, "author"}, false},
		{Verdict{manifest.StateDeleted, CrosspostAuthor}, Verdict{manifest.StateDeleted, ""}, true},
		{Verdict{manifest.StateDeleted, CrosspostAuthor}, Verdict{manifest.StateRemoved, "request"}, false},
	} {
		if got := Outweighs(tt.old.State, tt.old.Reason, tt.later.State, tt.later.Reason); got != tt.want {
			t.Errorf("Outweighs(%v, %v) = %v, want %v", tt.old, tt.later, got, tt.want)
		}
	}
}
