package policy

import (
	"strings"

	"rehydrate/manifest"
)

// adminRemovals are the values of removed_by_category that Reddit itself sets: safety
// and community teams, takedowns, courts.
var adminRemovals = map[string]bool{
	"anti_evil_ops": true, "community_ops": true, "content_takedown": true,
	"copyright_takedown": true, "trademark_takedown": true, "legal_operations": true,
}

// Judge says what state a post is in. The rules are tried in order and the first that
// fits decides, so that a mark of removal always wins over every sign of life:
//
//  1. removed by Reddit: removal_reason "legal", or a takedown category;
//  2. deleted by its author, in the category's words;
//  3. removed by the spam filter, by a moderator, by AutoModerator, or by a category
//     that is not known here (reason other_...), which counts as a removal;
//  4. removed, as a moderator sees it (banned_by, removed_by);
//  5. deleted or removed, in the markers that stand in for author, title and text:
//     older deletions have no category at all;
//  6. held: quarantined, or posted to a user's profile;
//  7. live, with a reason where something is worth knowing: the author's account is
//     gone, the post is not indexable, it has no image.
//
// Judge never answers unavailable or unknown: those say that there was no answer.
func Judge(f Facts) Verdict {
	for _, rule := range []func(Facts) Verdict{judgeCategory, judgeMarks, judgeHold} {
		if v := rule(f); v.State != "" {
			return v
		}
	}
	return judgeLive(f)
}

// judgeCategory goes by removal_reason and removed_by_category.
func judgeCategory(f Facts) Verdict {
	switch by := f.RemovedBy; {
	case adminRemovals[by]:
		return Verdict{manifest.StateRemoved, manifest.Reason(by)}
	case f.RemovalReason == "legal":
		return Verdict{manifest.StateRemoved, "legal"}
	case by == "deleted" || by == "author":
		return Verdict{manifest.StateDeleted, "author"}
	case by == "reddit":
		return Verdict{manifest.StateRemoved, "spam_filter"}
	case by == "moderator" || by == "automod_filtered":
		return Verdict{manifest.StateRemoved, manifest.Reason(by)}
	case by != "":
		return Verdict{manifest.StateRemoved, "other_" + sanitize(by)}
	}
	return Verdict{}
}

// judgeMarks goes by the moderator's view and by the markers in author, title and text.
func judgeMarks(f Facts) Verdict {
	notIndexable := f.RobotIndexable != nil && !*f.RobotIndexable
	switch {
	case f.ModRemoved:
		return Verdict{manifest.StateRemoved, "moderator"}
	case f.AuthorDeleted && (f.SelftextDeleted || notIndexable || f.TitleDeleted):
		return Verdict{manifest.StateDeleted, "author"}
	case f.SelftextRemoved || f.TitleRemoved:
		return Verdict{manifest.StateRemoved, "marker"}
	}
	return Verdict{}
}

// judgeHold names posts that are there, but that no image is taken from. It comes before
// the live rules: a quarantined post stays held when its author's account goes.
func judgeHold(f Facts) Verdict {
	switch {
	case f.Quarantine:
		return Verdict{manifest.StateHeld, "quarantine"}
	case f.ProfileSubreddit:
		return Verdict{manifest.StateHeld, "profile_post"}
	}
	return Verdict{}
}

func judgeLive(f Facts) Verdict {
	switch {
	case f.AuthorDeleted:
		return Verdict{manifest.StateLive, "account_deleted"}
	case f.RobotIndexable != nil && !*f.RobotIndexable:
		return Verdict{manifest.StateLive, "not_indexable"}
	case !f.HasMedia:
		return Verdict{manifest.StateLive, "no_media"}
	}
	return Verdict{manifest.StateLive, ""}
}

// sanitize turns a value that Reddit sent into the end of a reason: lower case letters,
// digits and underscores, at most 40 of them.
func sanitize(s string) manifest.Reason {
	const most = 40
	out := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '_'
	}, s)
	return manifest.Reason(out[:min(len(out), most)])
}
