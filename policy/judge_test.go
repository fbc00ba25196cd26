package policy

import (
	"testing"

	"rehydrate/manifest"
)

func TestJudge(t *testing.T) {
	yes, no := true, false
	const (
		live    = manifest.StateLive
		removed = manifest.StateRemoved
		deleted = manifest.StateDeleted
		held    = manifest.StateHeld
	)
	tests := []struct {
		name   string
		facts  Facts
		state  manifest.PostState
		reason manifest.Reason
	}{
		// The numbers are the rows of the decision table (reddit reference, section 6).
		{"2 legal", Facts{RemovalReason: "legal", HasMedia: true}, removed, "legal"},
		{"2 anti_evil_ops", Facts{RemovedBy: "anti_evil_ops"}, removed, "anti_evil_ops"},
		{"2 community_ops", Facts{RemovedBy: "community_ops"}, removed, "community_ops"},
		{"2 content_takedown", Facts{RemovedBy: "content_takedown"}, removed, "content_takedown"},
		{"2 copyright_takedown", Facts{RemovedBy: "copyright_takedown"}, removed, "copyright_takedown"},
		{"2 trademark_takedown", Facts{RemovedBy: "trademark_takedown"}, removed, "trademark_takedown"},
		{"2 legal_operations", Facts{RemovedBy: "legal_operations"}, removed, "legal_operations"},
		{"2 before 3", Facts{RemovalReason: "legal", RemovedBy: "deleted"}, removed, "legal"},
		{"other removal reason", Facts{RemovalReason: "other", HasMedia: true}, live, ""},
		{"3 deleted", Facts{RemovedBy: "deleted"}, deleted, "author"},
		{"3 author", Facts{RemovedBy: "author"}, deleted, "author"},
		{"3 before 7", Facts{RemovedBy: "deleted", ModRemoved: true}, deleted, "author"},
		{"4", Facts{RemovedBy: "reddit"}, removed, "spam_filter"},
		{"5 moderator", Facts{RemovedBy: "moderator", AuthorDeleted: true, SelftextDeleted: true}, removed, "moderator"},
		{"5 automod_filtered", Facts{RemovedBy: "automod_filtered"}, removed, "automod_filtered"},
		{"6 unknown value", Facts{RemovedBy: "New Thing/2!"}, removed, "other_new_thing_2_"},
		{"6 endless value", Facts{RemovedBy: string(make([]byte, 1000))}, removed, "other_________________________________________"},
		{"6 case counts", Facts{RemovedBy: "Moderator"}, removed, "other_moderator"},
		{"7", Facts{ModRemoved: true, AuthorDeleted: true, SelftextDeleted: true}, removed, "moderator"},
		{"8 selftext", Facts{AuthorDeleted: true, SelftextDeleted: true, HasMedia: true}, deleted, "author"},
		{"8 not indexable", Facts{AuthorDeleted: true, RobotIndexable: &no, HasMedia: true}, deleted, "author"},
		{"8 title", Facts{AuthorDeleted: true, TitleDeleted: true, RobotIndexable: &yes}, deleted, "author"},
		{"not 8: an author wrote [deleted]", Facts{SelftextDeleted: true, TitleDeleted: true, HasMedia: true}, live, ""},
		{"9 selftext", Facts{SelftextRemoved: true}, removed, "marker"},
		{"9 title", Facts{TitleRemoved: true, HasMedia: true}, removed, "marker"},
		{"8 before 9", Facts{SelftextRemoved: true, AuthorDeleted: true, RobotIndexable: &no}, deleted, "author"},
		{"10", Facts{AuthorDeleted: true, RobotIndexable: &yes, HasMedia: true}, live, "account_deleted"},
		{"10 without the field", Facts{AuthorDeleted: true, HasMedia: true}, live, "account_deleted"},
		{"11", Facts{RobotIndexable: &no, HasMedia: true}, live, "not_indexable"},
		{"12", Facts{Quarantine: true, HasMedia: true}, held, "quarantine"},
		{"12 holds without an author too", Facts{Quarantine: true, AuthorDeleted: true}, held, "quarantine"},
		{"12 removal wins", Facts{Quarantine: true, SelftextRemoved: true}, removed, "marker"},
		{"profile post", Facts{ProfileSubreddit: true, HasMedia: true}, held, "profile_post"},
		{"13", Facts{RobotIndexable: &yes}, live, "no_media"},
		{"14", Facts{RobotIndexable: &yes, HasMedia: true}, live, ""},
	}
	for _, tt := range tests {
		if got, want := Judge(tt.facts), (Verdict{tt.state, tt.reason}); got != want {
			t.Errorf("%s: Judge(%+v) = %v, want %v", tt.name, tt.facts, got, want)
		}
	}
}

// TestJudgeRemovalWins goes through every combination of facts: whatever else is said of
// a post, a mark of removal never comes out as live or held.
func TestJudgeRemovalWins(t *testing.T) {
	yes, no := true, false
	count := 0
	for bits := range 1 << 9 {
		bit := func(n int) bool { return bits>>n&1 == 1 }
		for _, by := range []string{"", "deleted", "author", "reddit", "moderator", "automod_filtered", "anti_evil_ops", "legal", "?"} {
			for _, why := range []string{"", "legal"} {
				for _, indexable := range []*bool{nil, &yes, &no} {
					f := Facts{RemovedBy: by, RemovalReason: why, ModRemoved: bit(0), AuthorDeleted: bit(1),
						SelftextDeleted: bit(2), SelftextRemoved: bit(3), TitleDeleted: bit(4), TitleRemoved: bit(5),
						RobotIndexable: indexable, Quarantine: bit(6), ProfileSubreddit: bit(7), HasMedia: bit(8)}
					marked := by != "" || why == "legal" || f.ModRemoved || f.SelftextRemoved || f.TitleRemoved ||
						f.AuthorDeleted && (f.SelftextDeleted || f.TitleDeleted || indexable == &no)
					v := Judge(f)
					gone := v.State == manifest.StateRemoved || v.State == manifest.StateDeleted
					if gone != marked {
						t.Fatalf("Judge(%+v) = %v; marks of removal: %v", f, v, marked)
					}
					if gone && v.Reason == "" || !gone && (v.State == manifest.StateHeld) != (f.Quarantine || f.ProfileSubreddit) {
						t.Fatalf("Judge(%+v) = %v", f, v)
					}
					count++
				}
			}
		}
	}
	if want := 512 * 9 * 2 * 3; count != want {
		t.Errorf("%d combinations judged, want %d", count, want)
	}
}
