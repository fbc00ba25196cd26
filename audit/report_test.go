package audit

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// TestHeadline: a headline says no more than was done.
func TestHeadline(t *testing.T) {
	at := time.Date(2026, 11, 26, 18, 49, 0, 0, time.UTC)
	asked := Coverage{Answered: 1}
	const keep = "Keep this report before anything is deleted: --statement FILE has the digest of every file."
	found := []Finding{{ID: "p1", Where: "a.csv > row 1", Kinds: []FindingKind{FoundRow},
		What: []string{itsRow}}}
	stray := func(where string) Finding { return Finding{Where: where, Kinds: []FindingKind{FoundRecord}} }
	requested := &AuditedPost{ID: "p1", Standing: Standing{State: manifest.StateLive, MustGo: true, Because: "tombstone",
		removal: Removal{Why: whyRequest}}}
	listed := &AuditedPost{ID: "p4", Standing: Standing{MustGo: true, Because: "release"}}
	for _, tt := range []struct {
		name string
		r    Report
		want string
	}{
		{"by id alone", Report{Verdict: Pass, Known: Known{MustGo: 6}, Coverage: asked},
			"None of the 6 removed posts is in these 0 files. They were looked for by id alone: their images and " +
				"captions could not be recognised. According to Reddit's answers in this audit."},
		{"by one image", Report{Verdict: Pass, Known: Known{MustGo: 10, Digests: 1}, Coverage: asked},
			"None of the 10 removed posts is in these 0 files. All were looked for by id, 1 by its unchanged image, " +
				"none by changed images or captions. The images of 9 of the 10 could not be looked for. " +
				"According to Reddit's answers in this audit."},
		{"one post", Report{Verdict: Pass, Known: Known{MustGo: 1, Digests: 1}, Coverage: asked},
			"The removed post is not in these 0 files. It was looked for by id, by its unchanged image, " +
				"not by changed images or captions. According to Reddit's answers in this audit."},
		{"by all", Report{Verdict: Pass, Known: Known{MustGo: 2, Digests: 2, Hashes: 1, Texts: 2}, Coverage: asked},
			"None of the 2 removed posts is in these 0 files. All were looked for by id, all by their unchanged images, " +
				"1 by its changed image, all by their captions. According to Reddit's answers in this audit."},
		{"overdue", Report{Verdict: Overdue, Known: Known{MustGo: 6}, Duties: []Duty{{Late: true}}, Coverage: asked},
			"No removed post was found, but a duty of the workspace's holder is late. They were looked for by id alone: " +
				"their images and captions could not be recognised. According to Reddit's answers in this audit."},
		{"on request", Report{Verdict: Fail, Findings: found, Posts: []*AuditedPost{requested}, Coverage: asked},
			"1 removed post is still named here, in 1 place: 1 row. " +
				"According to Reddit's answers in this audit and, for 1 post, the workspace's tombstones. " + keep},
		{"earlier answers", Report{Verdict: Fail, Findings: found, Posts: []*AuditedPost{requested},
			Time:     at.Add(time.Hour),
			Coverage: Coverage{Oldest: &at}}, "1 removed post is still named here, in 1 place: 1 row. " +
			"According to Reddit's answers of 26 November 2026, 18:49 UTC (1 hour ago) and, for 1 post, " +
			"the workspace's tombstones; later deletions are not known. " + keep},
		{"a file beside", Report{Verdict: Fail, Findings: append(found, stray("old/x.parquet")), Coverage: asked},
			"1 removed post is still named here, in 1 place: 1 row. 1 file in the workspace is not on record. " +
				"According to Reddit's answers in this audit. " + keep},
		{"files and the record", Report{Verdict: Fail, Findings: []Finding{stray("a.db"), stray("state.db"), stray("b.jpg"),
			stray("audit")}, Coverage: asked}, "The record was changed: 2 things are not as log and workspace have it. " +
			"2 files in the workspace are not on record. According to Reddit's answers in this audit."},
		{"another log", Report{Verdict: Fail, Findings: []Finding{stray("--since")}, Coverage: asked},
			"The record was changed: 1 thing is not as log and workspace have it. " +
				"According to Reddit's answers in this audit."},
		{"open", Report{Verdict: Fail, Findings: found, Open: []Open{{Where: "b.png"}}, Coverage: asked},
			"1 removed post is still named here, in 1 place: 1 row. 1 thing could not be checked. Settle this " +
				"first: a file that you delete may be the only thing that identifies another. According to Reddit's answers " +
				"in this audit. " + keep},
		{"kinds", Report{Verdict: Fail, Findings: []Finding{{ID: "p1", Kinds: []FindingKind{FoundImage, FoundRow}},
			{ID: "p1", Kinds: []FindingKind{FoundText}}, found[0], {ID: "p2", Kinds: []FindingKind{FoundRow}, What: []string{
				itsID}}, {ID: "p2", Kinds: []FindingKind{FoundRow}}}, Coverage: asked},
			"2 removed posts are still here, in 5 places: 1 image, 1 caption, 1 row, 2 ids. " +
				"According to Reddit's answers in this audit. " + keep},
		{"alike", Report{Verdict: Undecided, Open: []Open{{ID: "p1", Where: "b.png"}, {Where: "c.7z"}},
			Scope: Scope{Files: []*AuditedFile{{Name: "b.png"}, {Name: "c.7z"}}}, Coverage: asked},
			"Nothing was found for certain, but 1 thing looks like a removed post's, and 1 of 2 files could not be " +
				"checked. According to Reddit's answers in this audit."},
		{"tombstones alone", Report{Verdict: Pass, Known: Known{MustGo: 1}, Coverage: Coverage{Published: &at},
			Posts: []*AuditedPost{listed, {ID: "p2"}, {ID: "p3"}}},
			"The removed post is not in these 0 files. It was looked for by id alone: its image and caption " +
				"could not be recognised. According to the release's tombstones alone, the last of which is of " +
				"26 November 2026. Reddit was not asked about the other 2 posts."},
		{"all of a workspace removed", Report{Verdict: Pass, Known: Known{MustGo: 2}, Coverage: Coverage{Published: &at},
			Posts: []*AuditedPost{requested, listed}},
			"None of the 2 removed posts is in these 0 files. They were looked for by id alone: their images and captions " +
				"could not be recognised. According to the workspace's tombstones and log and, for 1 post, " +
				"the release's tombstones."},
		{"nothing known", Report{Verdict: Pass, Posts: []*AuditedPost{{ID: "p2"}}},
			"No post of this dataset is known to be removed; looked at 0 files. " +
				"No source says of any post that it was removed."},
	} {
		testkit.Same(t, tt.name, tt.want, strings.Join(tt.r.Headline(), " "))
	}
}

// TestNextOfAPass: a PASS by tombstones alone says of how many posts it says nothing.
func TestNextOfAPass(t *testing.T) {
	asked := []*AuditedPost{{ID: "p2", Standing: Standing{State: manifest.StateLive}}}
	for _, tt := range []struct {
		mode  string
		posts []*AuditedPost
		want  string
	}{
		{"offline", []*AuditedPost{{ID: "p2"}, {ID: "p3"}}, "This says nothing of the 2 posts without a tombstone: " +
			"the same command with --approval REF instead of --offline asks Reddit."},
		{"offline", asked, "Nothing is to be done. Later deletions need another audit: the same command later, with " +
			"--approval REF instead of --offline."},
		{"live", asked, "Nothing is to be done. Later deletions need another audit: the same command later."},
	} {
		testkit.Same(t, tt.mode, tt.want, Report{Verdict: Pass, Who: Auditor{Mode: tt.mode}, Posts: tt.posts}.Next())
	}
}

// TestHeldBack: what is held back has one word, and the time by which somebody decides about it.
func TestHeldBack(t *testing.T) {
	since := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	last := since.Add(20 * time.Hour)
	for _, tt := range []struct {
		posts      map[string]time.Time
		duty, next string
	}{
		{map[string]time.Time{"p1": since}, "1 post is held back (p1), gone since 26 November 2026, 12:00 UTC; the holder " +
			"decides about it by 28 November 2026, 12:00 UTC: rehydrate run RELEASE --confirm-removals",
			"By 28 November 2026, 12:00 UTC the holder of the workspace decides about the post that is held back."},
		{map[string]time.Time{"p4": since, "p1": since.Add(time.Second), "p3": since, "p2": since.Add(2 * time.Second)},
			"4 posts are held back (p1, p2, p3, ...), gone since 26 November 2026, 12:00 UTC; the holder decides about " +
				"them by 28 November 2026, 12:00 UTC: rehydrate run RELEASE --confirm-removals",
			"By 28 November 2026, 12:00 UTC the holder of the workspace decides about the 4 posts that are held back."},
		{map[string]time.Time{"p1": last, "p2/1": since}, "2 posts are held back (p1, p2/1), the first gone since 26 " +
			"November 2026, 12:00 UTC; the holder decides about them by 28 November 2026, 12:00 UTC: rehydrate run " +
			"RELEASE --confirm-removals",
			"By 28 November 2026, 12:00 UTC the holder of the workspace decides about the 2 posts that are held back."},
	} {
		a := newAudit(Config{Policy: policy.Default()})
		a.report.Time, a.report.Verdict, a.report.Scope.Workspace = last, Pass, "ws"
		for id, gone := range tt.posts {
			a.noteWithheld(id, gone)
		}
		a.tellWithheld()
		testkit.Same(t, "the duties", []string{"nothing is overdue", tt.duty}, a.report.duties())
		testkit.Same(t, "what comes next", tt.next, a.report.Next())
		a.report.Time, a.report.Duties = since.Add(48*time.Hour+time.Second), nil
		a.tellWithheld()
		testkit.Same(t, "late with the first of them", true, a.report.Duties[0].Late)
	}
	a := newAudit(Config{Policy: policy.Default()})
	a.report.Time = since
	a.noteWithheld("p1", since.Add(time.Hour))
	a.tellWithheld()
	testkit.Same(t, "a time in the future gives no time", [][2]string{{"", "1 post is held back (p1), by state.db since " +
		"a time in the future: a clock was wrong, or state.db was changed."},
		{"  ", "rehydrate recheck RELEASE"}}, a.report.LateDuties())
}

// TestLookedFor: what removed posts were looked for by is counted in one way, whatever it is.
func TestLookedFor(t *testing.T) {
	facts := Report{Known: Known{MustGo: 1}}.Facts("")
	testkit.Same(t, "facts", [2]string{"Looked for", "1 of 1 by id; 0 by the unchanged image; 0 by a changed image; " +
		"0 by caption"}, facts[1])
}

// TestWhyItMustGo: the time counts from the first source that knew of the removal, and a request is not Reddit's word.
func TestWhyItMustGo(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 11, n, 12, 0, 0, 0, time.UTC) }
	stone := func(s manifest.PostState, reason manifest.Reason, n int) *workspace.Tombstone {
		return &workspace.Tombstone{Tombstone: manifest.Tombstone{State: s, Time: day(n)}, Reason: reason}
	}
	live, gone := Standing{State: manifest.StateLive}, Standing{State: manifest.StateDeleted, Reason: "author"}
	a := newAudit(Config{Policy: policy.Default()})
	a.report.Time = day(10)
	for _, tt := range []struct {
		name  string
		e     evidence
		was   past
		why   string
		since int
	}{
		{"a request", evidence{AuditedPost: AuditedPost{Standing: live},
			stone: stone(manifest.StateRemoved, state.ReasonTakedown, 3)}, past{}, "taken down on request", 3},
		{"a request with a word", evidence{AuditedPost: AuditedPost{Standing: live},
			stone: stone(manifest.StateRemoved, state.Requested("privacy"), 3)}, past{},
			"taken down on request (privacy)", 3},
		{"an answer of now", evidence{AuditedPost: AuditedPost{Standing: live},
			live: &policy.Verdict{State: manifest.StateDeleted}, liveAt: day(9)}, past{}, "deleted by its author", 9},
		{"the log knew before", evidence{AuditedPost: AuditedPost{Standing: gone},
			stone: stone(manifest.StateDeleted, "author", 4)}, past{goneAt: day(2)}, "deleted by its author", 2},
		{"the release's tombstone", evidence{published: &manifest.Tombstone{State: manifest.StateRemoved, Time: day(5)}},
			past{}, "removed, or on request", 5},
		{"moderators", evidence{stone: stone(manifest.StateRemoved, "moderator", 6)}, past{}, "removed by moderators", 6},
		{"Reddit", evidence{stone: stone(manifest.StateRemoved, "copyright_takedown", 6)}, past{},
			"removed on Reddit (copyright_takedown)", 6},
		{"nothing", evidence{AuditedPost: AuditedPost{Standing: live}}, past{}, "", 0},
	} {
		a.decidePost(&tt.e, tt.was)
		want := Removal{Why: tt.why}
		if tt.since > 0 {
			want.Since, want.Due = moment(day(tt.since)), moment(day(tt.since+2))
		}
		testkit.Same(t, tt.name, want, tt.e.removal)
	}
	late := Report{Time: day(9), Findings: []Finding{{ID: "p1", Removal: Removal{"deleted by its author", new(day(2)),
		new(day(4))}}, {ID: "p1", Removal: Removal{Why: "deleted by its author"}}, {ID: ""}}}
	testkit.Same(t, "each post once", [][4]string{{"p1", "deleted by its author", "2 Nov 2026, 12:00 UTC",
		"4 Nov 2026, 12:00 UTC (late)"}}, late.Removals())
}

// TestNothingThere: that a named folder or file has nothing in it is open, unless such files often have nothing.
func TestNothingThere(t *testing.T) {
	w, dir := newWorld(t, false, false), t.TempDir()
	for _, tt := range []struct {
		name string
		want Verdict
	}{{"folder/", Undecided}, {"folder/in/folders/", Undecided}, {"found.zip", Undecided}, {"found.csv", Undecided},
		{"1live1.txt", Pass}, {"__init__.py", Pass}, {".gitkeep", Pass}} {
		name := filepath.Join(dir, tt.name)
		if strings.HasSuffix(tt.name, "/") {
			testkit.OK(t, os.MkdirAll(name, 0o700))
		} else {
			testkit.OK(t, os.WriteFile(name, nil, 0o600))
		}
		r := w.audit(t, w.ws, name)
		if r.Verdict != tt.want {
			t.Errorf("%s: %s, want %s; open %+v", tt.name, r.Verdict, tt.want, r.Open)
		}
	}
	testkit.OK(t, os.WriteFile(filepath.Join(dir, "folder", "note.md"), []byte("A note.\n"), 0o600))
	r := w.audit(t, w.ws, filepath.Join(dir, "folder"), filepath.Join(dir, "found.zip"))
	testkit.Same(t, "with a note in it", []string{"found.zip"}, openIn(r))
	if got, want := r.lookedAt(), ": 1 in "+filepath.Join(dir, "folder")+", "+filepath.Join(dir,
		"found.zip")+", "; !strings.Contains(got, want) {
		t.Errorf("looked at %q, want %q in it", got, want)
	}
}

// openIn are the names of the files in which something is open.
func openIn(r Report) (names []string) {
	for _, o := range r.Open {
		names = append(names, filepath.Base(o.Where))
	}
	return names
}

// TestLimits: what nobody can tell is said, with whom to ask.
func TestLimits(t *testing.T) {
	until := time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name string
		r    Report
		want string // in one of them
		none bool
	}{
		{"no digest at all", Report{Known: Known{MustGo: 6}},
			"ask the maintainers to publish digests (rehydrate publish --digests)", false},
		{"digests of others", Report{Known: Known{MustGo: 6, Published: 43}},
			"the images of the removed posts: the release has no digest for them", false},
		{"digests of others", Report{Known: Known{MustGo: 6, Published: 43}}, "ask the maintainers", true},
		{"requests, no tombstones", Report{Coverage: Coverage{Answered: 5}},
			"Reddit still shows them, and the release lists none", false},
		{"requests", Report{Coverage: Coverage{Answered: 5, Published: &until}},
			"taken down on request since 26 November 2026", false},
		{"requests that a workspace knows", Report{Coverage: Coverage{Answered: 5}, Scope: Scope{Workspace: "ws"}},
			"on request", true},
		{"names alone", Report{Known: Known{MustGo: 6, Unproved: 5}}, "5 images taken for those of posts that stay", false},
	} {
		said := slices.ContainsFunc(tt.r.limits(), func(l string) bool { return strings.Contains(l, tt.want) })
		if said == tt.none {
			t.Errorf("%s: %q: %v in %q", tt.name, tt.want, said, tt.r.limits())
		}
	}
}

// TestNamesAlone: with a release that publishes no digests, an image named after a post that stays is taken for that
// post's; the report says how many were.
func TestNamesAlone(t *testing.T) {
	w, dir := newWorld(t, false, false), t.TempDir()
	testkit.OK(t, os.WriteFile(filepath.Join(dir, live1+".png"), w.images[gonePNG], 0o600))
	c := w.config
	c.Files, c.Tombstones = []string{dir}, []manifest.Tombstone{{ID: gonePNG, State: manifest.StateRemoved,
		Time: c.Now()}}
	r, err := Audit(t.Context(), c)
	testkit.OK(t, err)
	if r.Verdict != Pass || r.Known.Unproved != 1 ||
		!strings.Contains(strings.Join(r.Limits, "\n"), "1 image taken for those") {
		t.Errorf("%s, %d unproved; limits %q", r.Verdict, r.Known.Unproved, r.Limits)
	}
}

// TestEvidenceGoes: what recognises an image that is like a removed one can lie in what is found, so that is settled
// first.
func TestEvidenceGoes(t *testing.T) {
	w, dir := newWorld(t, false, false), t.TempDir()
	testkit.OK(t, os.WriteFile(filepath.Join(dir, gonePNG+".png"), w.images[gonePNG], 0o600),
		os.WriteFile(filepath.Join(dir, "foto.jpg"), encodeJPEG(drawn(2), 40), 0o600))
	r := w.audit(t, w.ws, dir)
	if r.Verdict != Fail || len(r.Open) != 1 || !strings.Contains(strings.Join(r.Headline(), " "), "Settle this first") {
		t.Errorf("%s, open %+v: %q", r.Verdict, r.Open, r.Headline())
	}
}

// TestNamedAfter: of an image that is named after a removed post, or stands in its row, the report says whose it is.
func TestNamedAfter(t *testing.T) {
	w, dir := newWorld(t, false, true), t.TempDir()
	cell := func(body []byte) string { return "data:image/png;base64," + base64.StdEncoding.EncodeToString(body) }
	for name, body := range map[string][]byte{
		gonePNG + ".png":    w.images[gonePNG],
		gonePNG + ".webp":   w.images[live1],
		gonePNG + ".jpg":    encodeJPEG(drawn(9), 85),
		goneUnseen + ".gif": encodePNG(drawn(9)),
		"found.zip":         zipOf(gonePNG+".png", w.images[gonePNG]),
		"rows.csv": []byte("id,image\n" + gonePNG + "," + cell(w.images[gonePNG]) + "\n" +
			goneUnseen + "," + cell(encodePNG(drawn(9))) + "\n" + live1 + ",\n" + live2 + ",\n"),
	} {
		testkit.OK(t, os.WriteFile(filepath.Join(dir, name), body, 0o600))
	}
	got := map[string]string{}
	for _, f := range w.audit(t, w.ws, dir).Findings {
		got[filepath.Base(f.Where)] = fmt.Sprint(f.Kinds, " ", f.Thing())
	}
	testkit.Same(t, "what was found", map[string]string{
		gonePNG + ".png":                  "[image row] its image, byte for byte; its id as the file's name",
		gonePNG + ".webp":                 "[row] an image of " + live1 + ", which stays; its id as the file's name",
		gonePNG + ".jpg":                  "[image row] an image that is not its own unchanged; its id as the file's name",
		"found.zip > " + gonePNG + ".png": "[image row] its image, byte for byte; its id as the file's name",
		goneUnseen + ".gif":               "[image row] an image that could not be compared; its id as the file's name",
		"rows.csv > row 1":                "[image row] its row, with its image, byte for byte",
		"rows.csv > row 2":                "[image row] its row, with an image that could not be compared",
	}, got)
}
