package audit

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"rehydrate/internal/page"
	"rehydrate/internal/printable"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/state"
	"rehydrate/policy"
)

// What an audit comes to, in words for people. A fact is a name and what is to be said of it.

// are is page.Counted with its verb.
func are(n int, one string) string {
	if n == 1 {
		return page.Counted(n, one) + " is"
	}
	return page.Counted(n, one) + " are"
}

// countPosts counts the posts that ids of posts and images name: each once, however many of its images.
func countPosts(ids []string) int {
	posts := map[manifest.PostID]bool{}
	for _, id := range ids {
		posts[dataset.PostOf(id)] = true
	}
	return len(posts)
}

func at(t time.Time) string    { return t.UTC().Format("2 January 2006, 15:04 UTC") }
func dayOf(t time.Time) string { return t.UTC().Format("2 January 2006") }

// inFuture is said of a time on record that policy.Ahead does not believe.
const inFuture = "in the future: a clock was wrong"

// lasts says roughly how long something lasts.
func lasts(d time.Duration) string {
	switch {
	case d < time.Hour:
		return page.Counted(max(1, int(d.Minutes())), "minute")
	case d <= 48*time.Hour:
		return page.Counted(int(d.Hours()), "hour")
	}
	return page.Counted(int(d.Hours()/24), "day")
}

// Title says what was audited, and when.
func (r Report) Title() string {
	name := strings.TrimSpace(r.Scope.Release + " " + r.Scope.ReleaseVersion)
	if r.Scope.Rehearsal {
		name += ", a rehearsal with made-up posts"
	}
	return fmt.Sprintf("Audit of %s, %s", name, at(r.Time))
}

// Headline says what the verdict means, and what it rests on.
func (r Report) Headline() []string {
	switch r.Verdict {
	case Fail:
		return r.failed()
	case Undecided:
		return []string{r.undecided(), r.rests()}
	case Overdue:
		late := slices.DeleteFunc(slices.Clone(r.Duties), func(d Duty) bool { return !d.Late })
		if len(late) == 1 {
			return r.overdue("No removed post was found, but a duty of the workspace's holder is late.")
		}
		return r.overdue(fmt.Sprintf("No removed post was found, but %d duties of the workspace's holder are late.",
			len(late)))
	}
	if r.Known.MustGo == 0 {
		return []string{fmt.Sprintf("No post of this dataset is known to be removed; looked at %s.",
			page.Counted(len(r.Scope.Files), "file")) + r.undecidedPosts(), r.rests()}
	}
	lines := []string{r.noneFound() + r.undecidedPosts()}
	return append(append(lines, r.Known.reach()...), r.rests())
}

// noneFound says that no removed post is in the files.
func (r Report) noneFound() string {
	n, files := r.Known.MustGo, len(r.Scope.Files)
	which := fmt.Sprintf("None of the %d removed posts is", n)
	lost := r.Known.States[imageAlone] > 0 // the post itself may well be there
	switch {
	case lost && n == 1:
		which = "What was removed of 1 post is not"
	case lost:
		which = fmt.Sprintf("Nothing that was removed of %d posts is", n)
	case n == 1:
		which = "The removed post is not"
	}
	if files == 1 {
		return which + " in this file."
	}
	return fmt.Sprintf("%s in these %d files.", which, files)
}

// undecidedPosts says of posts that are held back that they are no removed posts here; "" where there are none.
func (r Report) undecidedPosts() string {
	var held []string
	for _, d := range r.Duties {
		if d.Kind == DutyConfirm {
			held = append(held, d.Posts...)
		}
	}
	n := countPosts(held)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" %s held back and not decided, so not looked for: copies may have %s.", are(n, "post"),
		map[bool]string{true: "it", false: "them"}[n == 1])
}

// reach says by what the removed posts were looked for, and what a verdict that nothing was found does not cover.
func (k Known) reach() (lines []string) {
	one := k.MustGo == 1
	by := func(n int, its, their string) string {
		switch {
		case n == 0:
			return map[bool]string{true: "not by ", false: "none by "}[one] + their
		case one:
			return "by " + its
		case n == k.MustGo:
			return "all by " + their
		}
		return fmt.Sprintf("%d by %s", n, map[bool]string{true: its, false: their}[n == 1])
	}
	who := map[bool]string{true: "It was", false: "All were"}[one]
	const unchanged, theirs = "its unchanged image", "their unchanged images"
	switch {
	case k.MustGo == 0:
		return nil
	case one && k.Digests+k.Hashes+k.Texts == 0:
		return []string{"It was looked for by id alone: its image and caption could not be recognised."}
	case k.Digests+k.Hashes+k.Texts == 0:
		return []string{"They were looked for by id alone: their images and captions could not be recognised."}
	case k.Hashes+k.Texts == 0:
		lines = []string{fmt.Sprintf("%s looked for by id, %s, %s.", who, by(k.Digests, unchanged, theirs),
			by(0, "", "changed images or captions"))}
	default:
		lines = []string{fmt.Sprintf("%s looked for by id, %s, %s, %s.", who, by(k.Digests, unchanged, theirs),
			by(k.Hashes, "its changed image", "changed images"), by(k.Texts, "its caption", "their captions"))}
	}
	if n := k.MustGo - k.Digests; n > 0 {
		lines = append(lines, fmt.Sprintf("The images of %d of the %d could not be looked for.", n, k.MustGo))
	}
	return lines
}

// Next says what to do after this audit, and who does it.
func (r Report) Next() string {
	switch {
	case r.Verdict == Fail && len(r.Open) > 0:
		return "Keep this report, and settle what is open. Then whoever keeps these files does what the list of findings " +
			"says, and you run rehydrate audit again."
	case r.Verdict == Fail:
		return "Keep this report. Then whoever keeps these files does what the list of findings says, and you run " +
			"rehydrate audit again."
	case r.Verdict == Undecided:
		return "Do what the list says, then run rehydrate audit again."
	case r.Verdict == Overdue:
		return "The holder of the workspace does what stands under each duty. Then run rehydrate audit again."
	case r.Scope.Workspace == "":
		if n := r.unasked(); n > 0 && r.Who.Mode == "offline" {
			return fmt.Sprintf("This says nothing of the %s without a tombstone: the same command with --approval REF "+
				"instead of --offline asks Reddit.", page.Counted(n, "post"))
		}
		if r.Who.Mode == "offline" {
			return "Nothing is to be done. Later deletions need another audit: the same command later, with --approval REF " +
				"instead of --offline."
		}
		return "Nothing is to be done. Later deletions need another audit: the same command later."
	}
	for _, d := range r.Duties {
		if d.Kind == DutyConfirm && d.Due != nil {
			held := "the post that is held back"
			if n := countPosts(d.Posts); n != 1 {
				held = fmt.Sprintf("the %d posts that are held back", n)
			}
			return fmt.Sprintf("By %s the holder of the workspace decides about %s.", at(*d.Due), held)
		}
	}
	for _, d := range r.Duties {
		if d.Kind == DutyRecheck && d.Due != nil {
			return fmt.Sprintf("Nothing is to be done now. The holder of the workspace asks Reddit again by %s.", at(*d.Due))
		}
	}
	return "Nothing is to be done now. Later deletions need another audit: the same command later."
}

// Strip is the audit in five numbers, for its page.
func (r Report) Strip() []page.Figure {
	posts, places, changes, strays := r.found()
	open, late, k := len(r.Open), len(r.LateDuties())/2, r.Known
	found := page.Figure{Value: strconv.Itoa(posts), Label: "removed posts found", Tone: page.Bad.If(posts)}
	if posts == 1 {
		found.Label = "removed post found"
	}
	if places > 0 {
		found.Label += ", in " + page.Counted(places, "place")
	}
	strip := []page.Figure{
		found,
		{Value: strconv.Itoa(open), Label: "files or other things not decided", Tone: page.Open.If(open)},
		{Value: strconv.Itoa(late), Label: "overdue", Tone: page.Bad.If(late)},
		{Value: fmt.Sprintf("%d of %d", k.Digests, k.MustGo), Label: "removed posts looked for by image too",
			Tone: page.Open.If(k.MustGo - k.Digests), Section: "rests"},
		{Value: strconv.Itoa(len(r.Scope.Files)), Label: "files looked at", Section: "files"},
	}
	for _, f := range []struct {
		n     int
		label string
	}{{changes, "changes of the record"}, {strays, "files not on record"}} {
		if f.n > 0 {
			strip = append(strip, page.Figure{Value: strconv.Itoa(f.n), Label: f.label, Tone: page.Bad, Section: "found"})
		}
	}
	for i, part := range []struct {
		id    string
		there bool
	}{{"found", posts > 0}, {"open", open > 0}, {"duties", len(r.Duties) > 0}} {
		if part.there {
			strip[i].Section = part.id
		}
	}
	return strip
}

// overdue is the headline of an audit whose first line that is.
func (r Report) overdue(first string) []string {
	return append(append([]string{first}, r.Known.reach()...), r.rests())
}

// found counts the removed posts that were found, the places where they are, the changes of the record, which are of
// the log or state.db, and the other files of the workspace that are not on record.
func (r Report) found() (posts, places, changes, strays int) {
	each, record := map[manifest.PostID]bool{},
		[]string{state.StateFile, manifest.TombstonesName, state.AuditDir, atSince}
	for _, f := range r.Findings {
		switch {
		case f.Kinds[0] != FoundRecord:
			places++
			each[dataset.PostOf(f.ID)] = true
		case slices.Contains(record, f.Where):
			changes++
		default:
			strays++
		}
	}
	return len(each), places, changes, strays
}

// kinds counts the places of what was found of removed posts, each by the gravest that is there.
func (r Report) kinds() string {
	names := []string{"image", "caption", "row", "id"}
	counts := make([]int, len(names))
	for _, f := range r.Findings {
		at := slices.Index([]FindingKind{FoundImage, FoundText, FoundRow}, f.Kinds[0])
		if f.Kinds[0] == FoundRow && !slices.Contains(f.What, itsRow) {
			at++
		}
		if at >= 0 {
			counts[at]++
		}
	}
	var parts []string
	for i, name := range names {
		if counts[i] > 0 {
			parts = append(parts, page.Counted(counts[i], name))
		}
	}
	return strings.Join(parts, ", ")
}

// named says where removed posts are of which more than ids and rows were found, and where others are.
func (r Report) named() string {
	content := func(f Finding) bool { return f.Kinds[0] == FoundImage || f.Kinds[0] == FoundText }
	if slices.ContainsFunc(r.Findings, content) {
		return "here"
	}
	return "named here"
}

func (r Report) failed() (lines []string) {
	posts, places, changes, strays := r.found()
	if places > 0 {
		lines = append(lines, fmt.Sprintf("%s still %s, in %s: %s.", are(posts, "removed post"), r.named(),
			page.Counted(places, "place"), r.kinds()))
	}
	if changes > 0 {
		lines = append(lines, fmt.Sprintf("The record was changed: %s not as log and workspace have it.",
			are(changes, "thing")))
	}
	if strays > 0 {
		lines = append(lines, fmt.Sprintf("%s in the workspace %s not on record.", page.Counted(strays, "file"),
			map[bool]string{true: "is", false: "are"}[strays == 1]))
	}
	// What is found recognises what is not: a row has the hashes of its image, which a workspace erased.
	if n := len(r.Unread()); n > 0 {
		lines = append(lines, fmt.Sprintf("%s could not be checked.", page.Counted(n, "thing")))
	}
	if n := len(r.Suspected()); n > 0 {
		lines = append(lines, looksRemoved(n)+".")
	}
	if len(r.Open) > 0 && places > 0 {
		lines[len(lines)-1] += " Settle this first: a file that you delete may be the only thing that identifies another."
	}
	lines = append(lines, r.rests())
	if places > 0 {
		lines = append(lines, "Keep this report before anything is deleted: --statement FILE has the digest of every file.")
	}
	return lines
}

// Removals are the posts that were found, each once: why it must go, since when that is known, and by when it must be
// gone.
func (r Report) Removals() (rows [][4]string) {
	said := map[string]bool{}
	when := func(t *time.Time) string {
		if t == nil {
			return "not known"
		}
		return t.UTC().Format("2 Jan 2006, 15:04 UTC") // the table fits into 80 columns
	}
	for _, f := range r.Findings {
		if f.Why == "" || said[f.ID] {
			continue
		}
		said[f.ID] = true
		since, due := when(f.Since), when(f.Due)
		if f.Since != nil && policy.Ahead(*f.Since, r.Time) {
			since = inFuture
		}
		if f.Due != nil && r.Time.After(*f.Due) {
			due += " (late)"
		}
		rows = append(rows, [4]string{f.ID, f.Why, since, due})
	}
	slices.SortFunc(rows, func(x, y [4]string) int { return strings.Compare(x[0], y[0]) })
	return rows
}

// Why a post must be gone, where more than one place asks for it.
const (
	whyRequest = "taken down on request"
	whyRemoved = "removed, or on request" // its tombstone gives no reason
)

// whyGone says why a post must be gone, by its state and the reason on record.
func whyGone(gone manifest.PostState, reason manifest.Reason) string {
	word, asked := state.IsRequest(reason)
	switch {
	case asked && word != "":
		return fmt.Sprintf("%s (%s)", whyRequest, word)
	case asked:
		return whyRequest
	case gone == manifest.StateDeleted:
		return "deleted by its author"
	case gone == manifest.StateUnavailable:
		return "missing from Reddit"
	case reason == "":
		return whyRemoved
	case reason == "moderator", reason == "automod_filtered":
		return "removed by moderators"
	}
	return fmt.Sprintf("removed on Reddit (%s)", reason)
}

// whyImageGone says why an image must be gone whose post stays.
func whyImageGone(reason manifest.Reason) string {
	switch reason {
	case policy.LeftGallery:
		return "its author took the image out of the post"
	case policy.CrosspostParent:
		return "the post that it came from is gone"
	case policy.SameAsRemoved:
		return "the same image was deleted or taken down with another post"
	}
	return fmt.Sprintf("its image was removed (%s)", reason)
}

func (r Report) undecided() string {
	looked, open, others := map[string]bool{}, map[string]bool{}, false
	for _, f := range r.Scope.Files {
		looked[f.Name] = true
	}
	for _, o := range r.Unread() {
		file, _, _ := strings.Cut(o.Where, " > ")
		open[file] = true
		others = others || !looked[file]
	}
	var parts []string
	if n := len(r.Suspected()); n > 0 {
		parts = append(parts, looksRemoved(n))
	}
	n := len(r.Unread())
	switch {
	case n == 0:
	case others:
		parts = append(parts, page.Counted(n, "thing")+" could not be checked")
	default:
		parts = append(parts, fmt.Sprintf("%d of %s could not be checked", len(open), page.Counted(len(looked), "file")))
	}
	return "Nothing was found for certain, but " + strings.Join(parts, ", and ") + "."
}

// looksRemoved counts things that look like those of removed posts.
func looksRemoved(n int) string {
	return page.Counted(n, "thing") + map[bool]string{true: " looks like a removed post's",
		false: " look like those of removed posts"}[n == 1]
}

// Suspected are the open things that were looked at, and can be of a removed post.
func (r Report) Suspected() []Open {
	return slices.DeleteFunc(slices.Clone(r.Open), func(o Open) bool { return o.ID == "" })
}

// Unread are the other open things: nobody looked at them, or not at all of them.
func (r Report) Unread() []Open {
	return slices.DeleteFunc(slices.Clone(r.Open), func(o Open) bool { return o.ID != "" })
}

// imageAlone counts the posts that stay and lost images, among the States of Known.
const imageAlone = "whose image alone was removed"

// waysOut are the states of removed posts, as people say how they went.
var waysOut = map[string]string{
	string(manifest.StateDeleted):     "by their authors",
	string(manifest.StateRemoved):     "by moderators or Reddit",
	string(manifest.StateUnavailable): "no longer in Reddit's answers",
}

// removed counts the posts that must be gone, and says how they went.
func (r Report) removed() string {
	var parts []string
	say := func(n int, how string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, how))
		}
	}
	requested, open := 0, 0 // of those that count as removed
	unnamed := 0
	for _, p := range r.Posts {
		unnamed += number(p.MustGo && p.unnamed)
		lost := slices.ContainsFunc(p.Images, func(i AuditedImage) bool { return i.MustGo })
		unnamed += number(p.unnamed && !p.MustGo && lost)
		requested += number(p.MustGo && strings.HasPrefix(p.removal.Why, whyRequest))
		open += number(p.MustGo && p.removal.Why == whyRemoved)
	}
	for _, how := range slices.Sorted(maps.Keys(r.Known.States)) {
		n := r.Known.States[how]
		if how == string(manifest.StateRemoved) {
			say(requested, "on request")
			say(open, "by moderators or on request")
			n -= requested + open
		}
		say(n, cmp.Or(waysOut[how], how))
	}
	of := fmt.Sprintf("%d of %d", r.Known.MustGo-unnamed, r.Scope.Posts)
	if unnamed > 0 {
		of += fmt.Sprintf(", and %d that the release does not name", unnamed)
	}
	return of + ": " + strings.Join(parts, ", ")
}

// rests says whose word the verdict rests on, and of when.
func (r Report) rests() string {
	c, by := r.Coverage, map[string]int{}
	for _, p := range r.Posts {
		by[p.Because] += number(p.MustGo)
	}
	said := ""
	switch {
	case c.Answered > 0:
		return fmt.Sprintf("According to Reddit's answers in this audit%s.", r.others())
	case c.Oldest != nil:
		ago := lasts(r.Time.Sub(*c.Oldest)) + " ago"
		if policy.Ahead(*c.Oldest, r.Time) {
			ago = inFuture
		}
		return fmt.Sprintf("According to Reddit's answers of %s (%s)%s; later deletions are not known.",
			at(*c.Oldest), ago, r.others())
	case by["tombstone"]+by["workspace"]+by["log"] > 0: // of a removed post nobody asks again
		said = "According to the workspace's tombstones and log"
		if n := by["release"]; n > 0 {
			said += fmt.Sprintf(" and, for %s, the release's tombstones", page.Counted(n, "post"))
		}
		said += "."
	case c.Published != nil:
		said = fmt.Sprintf("According to the release's tombstones alone, the last of which is of %s.", dayOf(*c.Published))
	default:
		return "No source says of any post that it was removed."
	}
	if n := r.unasked(); n > 0 {
		said += fmt.Sprintf(" Reddit was not asked about the other %s.", page.Counted(n, "post"))
	}
	return said
}

// unasked counts the posts of the release of which nobody knows whether they were removed.
func (r Report) unasked() (n int) {
	for _, p := range r.Posts {
		n += number(p.State == "" && !p.MustGo && !p.unnamed)
	}
	return n
}

// others says on whose word removed posts rest that Reddit does not call removed, as one that was taken down on
// request.
func (r Report) others() (said string) {
	sources := []struct{ because, words string }{{"tombstone", "the workspace's tombstones"},
		{"release", "the release's tombstones"}, {"log", "the workspace's log"}}
	for _, s := range sources {
		n := 0
		for _, p := range r.Posts {
			n += number(p.MustGo && !p.State.Gone() && p.Because == s.because)
		}
		if n > 0 {
			said += fmt.Sprintf(" and, for %s, %s", page.Counted(n, "post"), s.words)
		}
	}
	return said
}

// Facts are the head of the report: what was asked, looked at and left, for somebody who knows nothing of the program.
func (r Report) Facts(proof string) (facts [][2]string) {
	say := func(name string, texts ...string) {
		for _, text := range texts {
			if text != "" {
				facts = append(facts, [2]string{name, text})
				name = ""
			}
		}
	}
	k := r.Known
	if k.MustGo > 0 {
		say("Removed posts", r.removed())
		say("Looked for",
			fmt.Sprintf("%d of %d by id; %d by the unchanged image; %d by a changed image; %d by caption",
				k.MustGo, k.MustGo, k.Digests, k.Hashes, k.Texts))
	}
	say("Looked at", r.lookedAt())
	if r.Scope.IsList {
		text := fmt.Sprintf("%d of the %s stand in them", len(r.Scope.Listed), page.Counted(r.Scope.Posts, "listed post"))
		if len(r.Scope.Listed) > 0 {
			text += ": " + some(r.Scope.Listed)
		}
		if r.Known.MustGo == 0 {
			text += ". Nothing says that any of them was removed"
		}
		say("Listed posts", text)
	}
	if c := r.Coverage; c.Asked > 0 {
		say("Reddit", fmt.Sprintf("asked now about %s; %s", page.Counted(c.Asked, "post"),
			page.Counted(c.Answered, "answer")))
	}
	say("Can't be told", r.Limits...)
	say("Holder's duties", r.duties()...)
	say("On record", proof)
	for _, n := range r.Notes {
		say("Note", n)
	}
	return facts
}

func (r Report) lookedAt() string {
	const most = 3 // of a kind that are said one by one
	var parts []string
	single := map[string]bool{} // files that were named themselves
	for _, f := range r.Scope.Files {
		single[f.Name] = true
	}
	for _, kind := range []PlaceKind{InNamed, InWorkspace, InCopy} {
		of := slices.DeleteFunc(slices.Clone(r.Scope.Looked), func(l Looked) bool { return l.Kind != kind })
		for _, l := range of[:min(len(of), most)] {
			if kind == InNamed && l.Files == 1 && single[l.Where] {
				parts = append(parts, l.Where)
				continue
			}
			parts = append(parts, fmt.Sprintf("%d in %s%s", l.Files, map[PlaceKind]string{InWorkspace: "the workspace ",
				InCopy: "the copy "}[kind], l.Where))
		}
		if len(of) > most {
			files := 0
			for _, l := range of[most:] {
				files += l.Files
			}
			parts = append(parts, fmt.Sprintf("%d in %d more", files, len(of)-most))
		}
	}
	text := page.Counted(len(r.Scope.Files), "file")
	if one, ok := strings.CutPrefix(strings.Join(parts, ", "), strconv.Itoa(len(r.Scope.Files))+" in "); ok {
		text += " in " + one
	} else if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text + listsThem
}

// listsThem says how a terminal lists the files; a page has the list.
const listsThem = " (--details lists them)"

// PageFacts are Facts for a page.
func (r Report) PageFacts(proof string) [][2]string {
	facts := r.Facts(proof)
	for i := range facts {
		facts[i][1] = strings.TrimSuffix(facts[i][1], listsThem)
	}
	return facts
}

// Sentence says what the duty is, and by when.
func (d Duty) Sentence() string {
	switch {
	case d.Due == nil:
		return d.What
	case d.Late:
		return fmt.Sprintf("%s (late since %s)", d.What, at(*d.Due))
	}
	return d.What + " by " + at(*d.Due)
}

// duties says of each duty what is to be done, and by when.
func (r Report) duties() (lines []string) {
	for _, d := range r.Duties {
		lines = append(lines, d.Sentence()+": "+d.Do)
	}
	switch {
	case r.Scope.Workspace == "":
		return []string{"none are known: no workspace was audited"}
	case !slices.ContainsFunc(r.Duties, func(d Duty) bool { return d.Late }):
		lines = slices.Insert(lines, 0, "nothing else is overdue")
		if r.Verdict != Fail {
			lines[0] = "nothing is overdue"
		}
	}
	return lines
}

// LateDuties are the duties that are late, each with what is to be done behind it.
func (r Report) LateDuties() (lines [][2]string) {
	for _, d := range r.Duties {
		if d.Late {
			lines = append(lines, [2]string{"", d.Sentence() + "."}, [2]string{"  ", d.Do})
		}
	}
	return lines
}

// limits says what nobody can find with what is held.
func (r Report) limits() []string {
	limits := []string{}
	if k := r.Known; k.MustGo > 0 {
		of := func(n int) string {
			if n == k.MustGo {
				return "the removed posts"
			}
			return fmt.Sprintf("%d of the %d removed posts", n, k.MustGo)
		}
		here := r.Scope.Workspace != ""
		unknown := k.MustGo - k.Digests
		switch {
		case unknown > 0 && here:
			limits = append(limits,
				"the images of "+of(unknown)+": there is nothing to compare with, "+
					"as when a post was gone before its image was here")
		case unknown > 0 && k.Published > 0:
			limits = append(limits, fmt.Sprintf("the images of %s: the release has no digest for them", of(unknown)))
		case unknown > 0:
			limits = append(limits, "the images of "+of(unknown)+": the release publishes no digests; "+doPublish)
		}
		if k.Unproved > 0 {
			limits = append(limits, page.Counted(k.Unproved, "image")+
				" taken for those of posts that stay, by name, row or looks: nothing proves whose they are")
		}
		if k.Icons > 0 {
			limits = append(limits, page.Counted(k.Icons, "image")+
				fmt.Sprintf(" of at most %d pixels: taken for icons, as nothing is there to compare with", iconSide))
		}
		if n := k.Digests - k.Hashes; n > 0 {
			limits = append(limits, "changed images of "+of(n)+": their hashes were erased, so edited copies cannot be found")
		}
		if n := k.MustGo - k.Texts - k.Weak; n > 0 && here {
			limits = append(limits, "the captions of "+of(n)+": they were never here, or were erased with the post")
		} else if n > 0 {
			limits = append(limits, "the captions of "+of(n)+": no release publishes them")
		}
		if k.Weak > 0 {
			limits = append(limits,
				"the captions of "+of(k.Weak)+": they are too short or too common, or a post that stays has them too")
		}
		limits = append(limits, "cropped images, and images inside other images")
	}
	until := r.Coverage.Published
	switch {
	case r.Scope.Workspace != "" || r.Coverage.Answered == 0:
	case until == nil:
		limits = append(limits,
			"posts taken down on request: Reddit still shows them, and the release lists none (the workspace knows them)")
	default:
		limits = append(limits, fmt.Sprintf("posts taken down on request since %s, the day of the release's last "+
			"tombstone: Reddit still shows them (the workspace knows them)", dayOf(*until)))
	}
	return limits
}

// States are the posts by what Reddit says of them, and how many of each are removed here all the same.
func (r Report) States() (rows [][2]string) {
	here := map[string]int{}
	for _, p := range r.Posts {
		here[cmp.Or(string(p.State), "never_asked")] += number(p.MustGo && !p.State.Gone())
	}
	names := map[string]string{"never_asked": "never asked",
		string(manifest.StateHeld): "refused (it is there, but the policy does not allow it, as in quarantine)"}
	for _, s := range slices.Sorted(maps.Keys(r.Totals)) {
		rows = append(rows, [2]string{cmp.Or(names[s], s), strconv.Itoa(r.Totals[s])})
		if n := here[s]; n > 0 {
			rows = append(rows, [2]string{"of these with a tombstone", strconv.Itoa(n)})
		}
	}
	return rows
}

// For returns the report with its advice as the reader types it. typed gets it with RELEASE for the release, and with
// PATH for the place.
func (r Report) For(typed func(do, where string) string) Report {
	r.Findings, r.Open, r.Duties = slices.Clone(r.Findings), slices.Clone(r.Open), slices.Clone(r.Duties)
	for i := range r.Findings {
		r.Findings[i].Do = typed(r.Findings[i].Do, r.Findings[i].Where)
	}
	for i := range r.Open {
		r.Open[i].Do = typed(r.Open[i].Do, r.Open[i].Where)
	}
	for i := range r.Duties {
		r.Duties[i].Do = typed(r.Duties[i].Do, r.Duties[i].Where)
	}
	return r
}

// Thing says what was found.
func (f Finding) Thing() string {
	if f.Kinds[0] == FoundRecord {
		return strings.Join(f.What, "; ")
	}
	if !slices.Contains(f.What, itsRow) {
		return strings.Join(f.What, "; ")
	}
	with := slices.DeleteFunc(slices.Clone(f.What), func(what string) bool { return what == itsRow })
	return strings.TrimSuffix(itsRow+", with "+strings.Join(with, " and "), ", with ")
}

// Place is where it was found, as people say it: "row 3 of train.csv in data.zip".
func (f Finding) Place() string { return placeOf(f.Where) }

func placeOf(where string) string {
	file, rest, ok := strings.Cut(where, " > ")
	said := file
	for ok {
		var part string
		part, rest, ok = strings.Cut(rest, " > ")
		if strings.HasPrefix(part, "row ") {
			said = part + " of " + said
		} else {
			said = part + " in " + said
		}
	}
	return said
}

// ByFolder returns open things, those of one folder of which the same is to be said together.
func (r Report) ByFolder(open []Open) (groups []Open) {
	const most = 3 // of one folder that are said one by one
	alike := map[Open][]Open{}
	for _, o := range open {
		file, _, _ := strings.Cut(o.Where, " > ")
		k := Open{Where: path.Dir(file), What: o.What, Do: o.Do, ID: o.ID}
		alike[k] = append(alike[k], o)
	}
	for k, of := range alike {
		for i := range of {
			of[i].Where = placeOf(of[i].Where)
		}
		if len(of) <= most {
			groups = append(groups, of...)
			continue
		}
		var names []string
		for _, o := range of[:most] {
			names = append(names, o.Where)
		}
		k.Where = fmt.Sprintf("%d in %s: %s, ...", len(of), k.Where, strings.Join(names, ", "))
		groups = append(groups, k)
	}
	slices.SortFunc(groups, func(x, y Open) int {
		return strings.Compare(x.Where+"\x00"+x.What,
			y.Where+"\x00"+y.What)
	})
	return groups
}

// Details are who audited what, and the digests by which somebody else finds the same.
func (r Report) Details(digest string) (facts [][2]string) {
	say := func(name, text string) {
		if text != "" {
			facts = append(facts, [2]string{name, printable.Line(text)})
		}
	}
	say("statement", "sha256 "+digest)
	say("time", r.Time.Format(time.RFC3339))
	say("mode", r.Who.Mode)
	say("tool", "rehydrate "+r.Who.Tool)
	say("approval", r.Who.Approval)
	say("grant", r.Who.Grant)
	say("holder", r.Who.Holder)
	say("signer's key", r.Who.Fingerprint)
	say("release", strings.TrimSpace(r.Scope.Release+" "+r.Scope.ReleaseVersion))
	say("release digest", r.Scope.ReleaseDigest)
	say("manifest digest", r.Scope.ManifestDigest)
	say("policy digest", r.Scope.PolicyDigest)
	say("scope", fmt.Sprintf("%d entries of %d posts, %d files and members of archives", r.Scope.Entries, r.Scope.Posts,
		r.Scope.LookedAt))
	say("workspace", r.Scope.Workspace)
	say("asked", fmt.Sprintf("%d posts, %d answers", r.Coverage.Asked, r.Coverage.Answered))
	say("evidence", fmt.Sprintf("on %d of %d posts", r.Coverage.Judged, len(r.Posts)))
	if t := r.Coverage.Oldest; t != nil {
		say("oldest check", t.Format(time.RFC3339)+", of "+r.Coverage.OldestID)
	}
	say("log", r.logged())
	if s := r.Log.Since; s != nil && s.Holds {
		say("since", fmt.Sprintf("the log continues from the %d records that were kept", s.Records))
	} else if s != nil {
		say("since", "the log does not continue from the checkpoint that was kept: "+s.What)
	}
	return facts
}

func (r Report) logged() string {
	l := r.Log
	switch {
	case !l.Present:
		return "none"
	case l.Broken != nil:
		return fmt.Sprintf("breaks at record %d", *l.Broken)
	default:
		return fmt.Sprintf("%d records, %d more to be published, root %s", l.Records, l.Pending, l.Root)
	}
}
