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
)

// What an audit comes to, in words for people. A fact is a name and what is to be said of it.

// are is page.Counted with its verb.
func are(n int, one string) string {
	if n == 1 {
		return page.Counted(n, one) + " is"
	}
	return page.Counted(n, one) + " are"
}

func at(t time.Time) string    { return t.UTC().Format("2 January 2006, 15:04 UTC") }
func dayOf(t time.Time) string { return t.UTC().Format("2 January 2006") }

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
			return []string{"No removed post was found, but a duty is late.", r.rests()}
		}
		return []string{fmt.Sprintf("No removed post was found, but %d duties are late.", len(late)), r.rests()}
	}
	if r.Known.MustGo == 0 {
		return []string{fmt.Sprintf("No post of this dataset is known to be removed; looked at %s.",
			page.Counted(len(r.Scope.Files), "file")), r.rests()}
	}
	lines := []string{fmt.Sprintf("No removed post was found: none of %d, in %s.", r.Known.MustGo,
		page.Counted(len(r.Scope.Files), "file"))}
	if r.Known.Digests == 0 {
		lines = append(lines, "They were looked for by id alone: of their images there is nothing to compare with.")
	} else if r.Known.Digests < r.Known.MustGo {
		lines = append(lines, fmt.Sprintf("All were looked for by id, and %d of them by image.", r.Known.Digests))
	}
	return append(lines, r.rests())
}

// Strip is the audit in five numbers, for its page.
func (r Report) Strip() []page.Figure {
	found, open, late := len(r.Findings), len(r.Open), len(r.LateDuties())/2
	strip := []page.Figure{
		{Value: strconv.Itoa(found), Label: "found", Tone: page.Bad.If(found)},
		{Value: strconv.Itoa(open), Label: "not checked", Tone: page.Open.If(open)},
		{Value: strconv.Itoa(late), Label: "overdue", Tone: page.Bad.If(late)},
		{Value: strconv.Itoa(r.Known.MustGo), Label: "removed posts looked for", Section: "rests"},
		{Value: strconv.Itoa(len(r.Scope.Files)), Label: "files looked at", Section: "files"},
	}
	for i, part := range []struct {
		id    string
		there bool
	}{{"found", found > 0}, {"open", open > 0}, {"duties", len(r.Duties) > 0}} {
		if part.there {
			strip[i].Section = part.id
		}
	}
	return strip
}

func (r Report) failed() (lines []string) {
	posts, places, changes := map[manifest.PostID]bool{}, 0, 0
	for _, f := range r.Findings {
		if f.Kinds[0] == FoundRecord {
			changes++
			continue
		}
		places++
		posts[dataset.PostOf(f.ID)] = true
	}
	if places > 0 {
		lines = append(lines, fmt.Sprintf("%s still here, in %s.", are(len(posts), "removed post"),
			page.Counted(places, "place")))
	}
	if changes > 0 {
		lines = append(lines, fmt.Sprintf("The record was changed: %s not as log and workspace have it.",
			are(changes, "thing")))
	}
	if n := len(r.Open); n > 0 {
		lines = append(lines, fmt.Sprintf("%s could not be checked besides.", page.Counted(n, "thing")))
	}
	return append(lines, r.rests(),
		"Do what the last column says, then run rehydrate audit again: Reddit requires that",
		"deleted posts are gone within 48 hours.")
}

func (r Report) undecided() string {
	looked, open, others := map[string]bool{}, map[string]bool{}, false
	for _, f := range r.Scope.Files {
		looked[f.Name] = true
	}
	for _, o := range r.Open {
		file, _, _ := strings.Cut(o.Where, " > ")
		open[file] = true
		others = others || !looked[file]
	}
	if others {
		return fmt.Sprintf("Nothing was found for certain, but %s could not be checked.",
			page.Counted(len(r.Open), "thing"))
	}
	return fmt.Sprintf("Nothing was found for certain, but %d of %s could not be checked.", len(open),
		page.Counted(len(looked), "file"))
}

// waysOut are the states of removed posts, as people say how they went.
var waysOut = map[string]string{
	string(manifest.StateDeleted):     "by their authors",
	string(manifest.StateRemoved):     "by moderators or on request",
	string(manifest.StateUnavailable): "no longer in Reddit's answers",
}

// removed counts the posts that must be gone, and says how they went.
func (r Report) removed() string {
	var parts []string
	for _, how := range slices.Sorted(maps.Keys(r.Known.States)) {
		parts = append(parts, fmt.Sprintf("%d %s", r.Known.States[how], cmp.Or(waysOut[how], how)))
	}
	return fmt.Sprintf("%d of %d: %s", r.Known.MustGo, r.Scope.Posts, strings.Join(parts, ", "))
}

// rests says whose word the verdict rests on, and of when.
func (r Report) rests() string {
	switch c := r.Coverage; {
	case c.Answered > 0:
		return "According to Reddit's answers in this audit."
	case c.Oldest != nil:
		return fmt.Sprintf("According to Reddit's answers of %s (%s ago); later deletions are not known.",
			at(*c.Oldest), lasts(r.Time.Sub(*c.Oldest)))
	case c.Published != nil:
		return fmt.Sprintf("According to the release's tombstones alone, the last of which is of %s.",
			dayOf(*c.Published))
	}
	return "No source says of any post that it was removed."
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
			fmt.Sprintf("all %d by id; %d also by the bytes of their images, %d by changed images, %d by caption",
				k.MustGo, k.Digests, k.Hashes, k.Texts))
	}
	say("Looked at", r.lookedAt())
	if c := r.Coverage; c.Asked > 0 {
		say("Reddit", fmt.Sprintf("asked now about %s; %s", page.Counted(c.Asked, "post"),
			page.Counted(c.Answered, "answer")))
	}
	say("Can't be told", r.Limits...)
	if r.Verdict != Undecided {
		for _, o := range r.OpenByFolder() {
			say("Not checked", o.Where+": "+o.What+": "+o.Do)
		}
	}
	say(map[bool]string{true: "Other duties", false: "Duties"}[r.Verdict == Fail], r.duties()...)
	say("On record", proof)
	for _, n := range r.Notes {
		say("Note", n)
	}
	return facts
}

func (r Report) lookedAt() string {
	var parts []string
	if r.Scope.Workspace != "" {
		parts = append(parts, "the workspace "+r.Scope.Workspace)
	}
	if n := r.Scope.Copies; n > 0 {
		parts = append(parts, map[bool]string{true: "1 copy", false: fmt.Sprintf("%d copies", n)}[n == 1])
	}
	if n := r.Scope.Named; n > 0 {
		parts = append(parts, page.Counted(n, "file or folder")+" named besides")
	}
	text := page.Counted(len(r.Scope.Files), "file")
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text + " (--details lists them)"
}

// duties says of each duty what is to be done, and by when.
func (r Report) duties() (lines []string) {
	for _, d := range r.Duties {
		text := d.What
		if d.Due != nil && d.Late {
			text += ", late since " + at(*d.Due)
		} else if d.Due != nil {
			text += ": by " + at(*d.Due)
		}
		lines = append(lines, text+": "+d.Do)
	}
	switch {
	case r.Scope.Workspace == "":
		return []string{"none: nothing is held here"}
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
			lines = append(lines, [2]string{"", d.What + "."}, [2]string{"  ", d.Do})
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
		if n := k.MustGo - k.Digests; n > 0 && here {
			limits = append(limits,
				"the images of "+of(n)+": there is nothing to compare with, as when a post was gone before its image was here")
		} else if n > 0 {
			limits = append(limits,
				"the images of "+of(n)+": no digest of them is published; the maintainers can publish them (rehydrate export --digests)")
		}
		if n := k.Digests - k.Hashes; n > 0 {
			limits = append(limits, "changed images of "+of(n)+": what recognises them was erased with the post")
		}
		if n := k.MustGo - k.Texts - k.Weak; n > 0 {
			limits = append(limits, "the captions of "+of(n)+": they were never here, or were erased with the post")
		}
		if k.Weak > 0 {
			limits = append(limits,
				"the captions of "+of(k.Weak)+": they are too short or too common, or a post that stays has them too")
		}
		limits = append(limits, "cropped images, and images inside other images")
	}
	return limits
}

// For returns the report with the release in its advice as the reader types it: its path, and flags behind it.
func (r Report) For(release string) Report {
	r.Findings, r.Open, r.Duties = slices.Clone(r.Findings), slices.Clone(r.Open), slices.Clone(r.Duties)
	named := func(do string) string { return strings.ReplaceAll(do, "RELEASE", release) }
	for i := range r.Findings {
		r.Findings[i].Do = named(r.Findings[i].Do)
	}
	for i := range r.Open {
		r.Open[i].Do = named(r.Open[i].Do)
	}
	for i := range r.Duties {
		r.Duties[i].Do = named(r.Duties[i].Do)
	}
	return r
}

// Thing says what was found.
func (f Finding) Thing() string {
	if f.Kinds[0] == FoundRecord {
		return strings.Join(f.What, "; ")
	}
	names := map[FindingKind]string{FoundImage: "its image", FoundText: "its caption", FoundRow: "its id"}
	if strings.Contains(f.Where, rowMark) {
		names[FoundRow] = "its row"
	}
	var things []string
	for _, kind := range f.Kinds {
		things = append(things, names[kind])
	}
	return strings.Join(things, ", ")
}

// Place is where it was found, as people say it: "row 3 of train.csv in data.zip".
func (f Finding) Place() string {
	file, rest, ok := strings.Cut(f.Where, " > ")
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

// OpenByFolder returns what is open, things of one folder of which the same is to be said together.
func (r Report) OpenByFolder() (groups []Open) {
	const most = 3 // of one folder that are said one by one
	alike := map[Open][]Open{}
	for _, o := range r.Open {
		file, _, _ := strings.Cut(o.Where, " > ")
		k := Open{Where: path.Dir(file), What: o.What, Do: o.Do, ID: o.ID}
		alike[k] = append(alike[k], o)
	}
	for k, of := range alike {
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
	say("scope", fmt.Sprintf("%d entries of %d posts, %d files", r.Scope.Entries, r.Scope.Posts, r.Scope.LookedAt))
	say("workspace", r.Scope.Workspace)
	say("asked", fmt.Sprintf("%d posts, %d answers", r.Coverage.Asked, r.Coverage.Answered))
	say("evidence", fmt.Sprintf("on %d of %d posts", r.Coverage.Judged, len(r.Posts)))
	if t := r.Coverage.Oldest; t != nil {
		say("oldest check", t.Format(time.RFC3339)+", of "+r.Coverage.OldestID)
	}
	say("log", r.logged())
	if s := r.Log.Since; s != nil && s.Holds {
		say("since", fmt.Sprintf("the log goes on from the %d records that were kept", s.Records))
	} else if s != nil {
		say("since", "the log does not go on from the checkpoint that was kept: "+s.What)
	}
	return facts
}

func (r Report) logged() string {
	switch l := r.Log; {
	case !l.Present:
		return "none"
	case l.Broken != nil:
		return fmt.Sprintf("breaks at record %d", *l.Broken)
	default:
		return fmt.Sprintf("%d records, %d more to be published, root %s", l.Records, l.Pending, l.Root)
	}
}
