package pipeline

import (
	"slices"
	"strings"
	"testing"
	"time"

	"rehydrate/dedupe"
	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/reading"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// testTerms are those of a job that reads with the engine A; the picture "down" was taken down with the post "gone".
func testTerms() terms {
	c := Config{Policy: policy.Default(), OCR: &fakeOCR{name: "A"}}
	return newTerms(c, state.RemovedPictures{"down": "gone"}, reading.New(c.OCR, c.Policy))
}

// entryHere is an entry with an image from the place "here" that was read by the engine A.
func entryHere(t terms) workspace.Record {
	return workspace.Record{Entry: manifest.Entry{Key: manifest.Key{ID: "aaa1"}},
		Image: &workspace.Image{Source: "here", Limits: t.limits, SHA256: "00", OriginalSHA256: "01",
			PixelsSHA256: "02", Format: "png", Width: 300, Height: 300,
			OriginalBytes: 5000, HashKind: dedupe.HashKind()},
		Reading: &workspace.Reading{Fingerprint: t.reader.Fingerprint, ImageSHA256: "00"}}
}

// TestNextStepOfAnEntry: what an entry needs, by what is stored of it and what Reddit says; and what a plan takes
// Reddit to say.
func TestNextStepOfAnEntry(t *testing.T) {
	terms := testTerms()
	at := func(source string) answer { return answer{live: true, place: &place{source: source}} }
	fault := func(o manifest.Outcome, reason manifest.Reason) answer {
		return answer{live: true, place: &place{fault: &policy.Fault{Outcome: o, Reason: reason, Detail: "d"}}}
	}
	none := func(r *workspace.Record) { r.Image, r.Reading = nil, nil }
	trouble := func(o manifest.Outcome, reason manifest.Reason, source string,
		beside workspace.Beside) func(*workspace.Record) {
		return func(r *workspace.Record) {
			r.Trouble = &workspace.Trouble{Outcome: o, Reason: reason, Beside: beside}
			if source != "-" {
				r.Trouble.Source = terms.attempt(r.Entry, source, reason)
			}
		}
	}
	both := func(changes ...func(*workspace.Record)) func(*workspace.Record) {
		return func(r *workspace.Record) {
			for _, change := range changes {
				change(r)
			}
		}
	}
	stale := func(r *workspace.Record) { r.Reading.Fingerprint = "B" }
	for _, c := range []struct {
		name    string
		change  func(*workspace.Record)
		answer  answer
		retry   string
		want    string // words for the step
		planned string // the same, of what a plan supposes; "" for want, "-" for none
	}{
		{"gone", none, answer{place: &place{source: "here"}}, "", "gone", "fetch"},
		{"no verdict, no image", none, answer{live: true}, "", "gone", "fetch"},
		{"no verdict", func(*workspace.Record) {}, answer{live: true}, "", "", "same"},
		{"no verdict, of another engine", stale, answer{live: true}, "", "read", "same read"},
		{"never fetched", none, at("here"), "", "fetch", ""},
		{"where it lay", func(*workspace.Record) {}, at("here"), "", "same", ""},
		{"where it lay, of another engine", stale, at("here"), "", "same read", ""},
		{"where it lay, with odd trouble", trouble(manifest.NoMedia, "no_url", "", workspace.Odd), at("here"), "",
			"same clear",
			"-"},
		{"elsewhere", func(*workspace.Record) {}, at("there"), "", "fetch", "same"},
		{"elsewhere, and of another engine", stale, at("there"), "", "fetch read", "same read"},
		{"elsewhere, where nothing is", trouble(manifest.Gone, "http_404", "there", workspace.Odd), at("there"), "",
			"", ""},
		{"elsewhere, where nothing is, and again", trouble(manifest.Gone, "http_404", "there", workspace.Odd),
			at("there"), "http_404", "fetch clear", ""},
		{"final", both(none, trouble(manifest.Gone, "http_404", "here", "")), at("here"), "", "gone/http_404", ""},
		{"final, elsewhere now", both(none, trouble(manifest.Gone, "http_404", "here", "")), at("there"), "", "fetch",
			"gone/http_404"},
		{"final, to be tried by its reason", both(none, trouble(manifest.Gone, "http_404", "here", "")), at("here"),
			"http_404", "fetch", ""},
		{"final, to be tried by its outcome", both(none, trouble(manifest.Gone, "http_404", "here", "")), at("here"),
			"gone", "fetch", ""},
		{"final, of another policy", both(none, trouble(manifest.Gone, "http_404", "here", ""),
			func(r *workspace.Record) { r.PHash = "ff" }), at("here"), "",
			"fetch", ""},
		{"failed", both(none, trouble(manifest.Failed, "http_503", "here", "")), at("here"), "",
			"fetch before=http_503", ""},
		{"failed, elsewhere now", both(none, trouble(manifest.Failed, "http_503", "here", "")), at("there"), "",
			"fetch", "fetch before=http_503"},
		{"left its gallery, and back", both(none, trouble(manifest.Gone, policy.LeftGallery, "-", "")), at("here"),
			"", "gone/gallery_item_deleted", ""},
		{"left its gallery, and asked for", both(none, trouble(manifest.Gone, policy.LeftGallery, "-", "")),
			at("here"), string(policy.LeftGallery), "fetch", ""},
		{"left its gallery, asked for, and not there",
			both(none, trouble(manifest.Gone, policy.LeftGallery, "here", "")), fault(manifest.Changed, "another_image"),
			string(policy.LeftGallery), "gone/gallery_item_deleted", "fetch"},
		{"dropped for what it shows", both(none, trouble(manifest.Refused, policy.SameAsRemoved, "-", "")),
			at("here"), "", "fetch", ""},
		{"refused for what it shows", both(none, trouble(manifest.Refused, policy.SameAsRemoved, "here", "")),
			at("here"), "", "refused/same_as_removed", ""},
		{"no url", none, fault(manifest.NoMedia, "no_url"), "", "/no_media/no_url no_media/no_url", "fetch"},
		{"no url, again", both(none, trouble(manifest.NoMedia, "no_url", "", "")), fault(manifest.NoMedia, "no_url"),
			"", "/no_media/no_url no_media/no_url", ""},
		{"no url any more", func(*workspace.Record) {}, fault(manifest.NoMedia, "no_url"), "", "odd/no_media/no_url",
			"same"},
		{"no url, as before", trouble(manifest.NoMedia, "no_url", "", workspace.Odd),
			fault(manifest.NoMedia, "no_url"), "", "odd/no_media/no_url", "-"},
		{"no url any more, of another engine", stale, fault(manifest.NoMedia, "no_url"), "",
			"odd/no_media/no_url read", "same read"},
		{"leaves its gallery", func(*workspace.Record) {}, fault(manifest.Gone, policy.LeftGallery), "",
			"gone/gallery_item_deleted", "same"},
		{"a host that is not allowed", func(*workspace.Record) {}, fault(manifest.Refused, "host_not_allowed"), "",
			"odd/refused/host_not_allowed", "same"},
		{"a host that is not allowed any more", func(r *workspace.Record) { r.Image.Limits = "older" },
			fault(manifest.Refused, "host_not_allowed"), "",
			"out/refused/host_not_allowed refused/host_not_allowed", "same inspect"},
		{"stored under other limits", func(r *workspace.Record) { r.Image.Limits = "older" }, at("here"), "",
			"same inspect", ""},
		{"too large now", func(r *workspace.Record) { r.Image.Limits, r.Image.OriginalBytes = "older", 1<<40 },
			at("here"), "",
			"same out/invalid/too_large invalid/too_large", ""},
		{"large, as the limits are", func(r *workspace.Record) { r.Image.OriginalBytes = 1 << 40 }, at("here"), "",
			"same", ""},
		{"not what was labelled", func(r *workspace.Record) { r.SHA256 = "ff" }, at("here"), "",
			"same out/changed/sha256 changed/sha256", ""},
		{"not what was labelled, and elsewhere", func(r *workspace.Record) { r.SHA256 = "ff" }, at("there"), "",
			"fetch out/changed/sha256 changed/sha256",
			"same out/changed/sha256 changed/sha256"},
		{"what was taken down", func(r *workspace.Record) { r.Image.PixelsSHA256 = "down" }, at("here"), "",
			"same drop /refused/same_as_removed refused/same_as_removed", ""},
		{"from no known place", func(r *workspace.Record) { r.Image.Source = "" }, at("here"), "", "fetch", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			terms := terms
			if c.retry != "" {
				terms.retry = []string{c.retry}
			}
			rec := entryHere(terms)
			c.change(&rec)
			testkit.Same(t, "step", c.want, wordsOf(next(terms, rec, c.answer)))
			want := c.planned
			if want == "" {
				want = c.want
			}
			testkit.Same(t, "planned", strings.TrimPrefix(want, "-"),
				wordsOf(next(terms, rec, terms.supposed(rec, nil))))
		})
	}
}

// wordsOf says what a step is.
func wordsOf(s step) string {
	var words []string
	for word, is := range map[string]bool{"gone": s.gone, "same": s.same, "fetch": s.fetch, "drop": s.drop,
		"clear": s.clear, "read": s.read, "inspect": s.inspect} {
		if is {
			words = append(words, word)
		}
	}
	order := []string{"gone", "same", "fetch", "drop", "clear", "inspect"}
	slices.SortFunc(words, func(a, b string) int {
		at := func(word string) int {
			if i := slices.Index(order, word); i >= 0 {
				return i
			}
			return len(order)
		}
		return at(a) - at(b)
	})
	read := slices.Contains(words, "read")
	words = slices.DeleteFunc(words, func(word string) bool { return word == "read" })
	if s.note != nil {
		words = append(words, string(s.note.Beside)+"/"+string(s.note.Outcome)+"/"+string(s.note.Reason))
	}
	if s.outcome != "" {
		words = append(words, string(s.outcome)+"/"+string(s.reason))
	}
	if read {
		words = append(words, "read")
	}
	if s.before != "" {
		words = append(words, "before="+string(s.before))
	}
	return strings.Join(words, " ")
}

// TestAttemptNamesAllThatDecides: whatever decides how a download ends changes the name of the attempt, behind its
// place.
func TestAttemptNamesAllThatDecides(t *testing.T) {
	e := manifest.Entry{Key: manifest.Key{ID: "aaa1"}}
	base := testTerms()
	for _, reason := range []manifest.Reason{"", policy.SameAsRemoved, policy.RobotsTag} {
		seen := map[string]string{base.attempt(e, "here", reason): "the first"}
		different := func(what string, t2 terms, e manifest.Entry, source string) {
			t.Helper()
			a := t2.attempt(e, source, reason)
			if was, twice := seen[a]; twice {
				t.Errorf("%s changes nothing of %s for the reason %q", what, was, reason)
			}
			seen[a] = what
			if !strings.HasPrefix(a, source+" ") {
				t.Errorf("%s: %s", what, a)
			}
		}
		other := base
		other.limits = "other"
		different("limits", other, e, "here")
		different("a place", base, e, "there")
		other = base
		other.policy.Dedupe.HashRadius++
		different("a radius", other, e, "here")
		for what, changed := range map[string]manifest.Entry{"sha256": {SHA256: "1"},
			"stripped": {StrippedSHA256: "1"}, "pixels": {PixelsSHA256: "1"}, "phash": {PHash: "1"}} {
			changed.Key = e.Key
			different(what, base, changed, "here")
		}
		other = base
		other.policy.Images.Hosts = []policy.Host{{Name: "i.redd.it", RespectRobotsTag: true}}
		if reason == policy.RobotsTag {
			different("a host that is respected", other, e, "here")
		}
		other = base
		other.removed = state.RemovedPictures{"down": "gone", "more": "gone"}
		if reason == policy.SameAsRemoved {
			different("a picture that was taken down", other, e, "here")
			other = base
			other.policy.Images.AllowSame = []manifest.PostID{"aaa1"}
			different("a picture that is allowed", other, e, "here")
		}
	}
	limits := testTerms().limits
	for what, change := range map[string]func(*policy.Images){"bytes": func(im *policy.Images) { im.MaxBytes++ },
		"pixels": func(im *policy.Images) { im.MaxPixels++ },
		"side":   func(im *policy.Images) { im.MaxSide++ }, "hosts": func(im *policy.Images) { im.Hosts = im.Hosts[1:] },
		"placeholders": func(im *policy.Images) {
			im.Placeholders = append(im.Placeholders,
				policy.Placeholder{Name: "p"})
		}} {
		p := policy.Default()
		change(&p.Images)
		if newTerms(Config{Policy: p}, nil, nil).limits == limits {
			t.Errorf("%s are not among the limits", what)
		}
	}
}

// TestDigestsThatTheReleaseNames: one that matches is enough, and a hash may be as far away as the policy says.
func TestDigestsThatTheReleaseNames(t *testing.T) {
	terms := testTerms()
	img := workspace.Image{OriginalSHA256: "o", SHA256: "s", PixelsSHA256: "p", PHash: 0b1111}
	terms.policy.Dedupe.HashRadius = 2
	for _, c := range []struct {
		entry manifest.Entry
		want  string
	}{
		{manifest.Entry{}, ""}, {manifest.Entry{SHA256: "o"}, ""}, {manifest.Entry{SHA256: "s"}, ""},
		{manifest.Entry{StrippedSHA256: "s"}, ""},
		{manifest.Entry{PixelsSHA256: "p"}, ""}, {manifest.Entry{SHA256: "x", PixelsSHA256: "p"}, ""},
		{manifest.Entry{SHA256: "x"}, "changed/sha256: the image has sha256 o"},
		{manifest.Entry{StrippedSHA256: "o"}, "changed/sha256: the image has sha256 o"},
		{manifest.Entry{PHash: "f"}, ""}, {manifest.Entry{PHash: "3"}, ""},
		{manifest.Entry{PHash: "1"}, "changed/phash: the image is 3 bits from the manifest's phash, 2 are allowed"},
		{manifest.Entry{PHash: "zz"}, "invalid/bad_phash: zz"},
		{manifest.Entry{SHA256: "x", PHash: "e"},
			"changed/sha256: the image has sha256 o and is 1 bits from the manifest's phash"},
	} {
		got := ""
		if f := state.Compare(terms.policy, c.entry, img); f != nil {
			got = string(f.Outcome) + "/" + string(f.Reason) + ": " + f.Detail
		}
		testkit.Same(t, "an image of "+c.entry.SHA256+c.entry.StrippedSHA256+c.entry.PixelsSHA256+c.entry.PHash,
			c.want, got)
	}
}

// TestPlanTakesTheRatesOfThePolicy: how long asking, fetching and reading take, how much room the images need, and in
// which parts a release has to be rebuilt that is too large for the time in which removals have to be followed.
func TestPlanTakesTheRatesOfThePolicy(t *testing.T) {
	c := Config{Policy: policy.Default(), Workers: 2, Manifest: manifest.Summary{Posts: 1000, Entries: 1200}}
	c.Policy.Reddit.RequestsPerMinute = 60
	c.Policy.Images.Hosts = []policy.Host{{Name: "api.imgur.com", RequestsPerSecond: 1},
		{Name: "i.redd.it", RequestsPerSecond: 10}, {Name: "slow", RequestsPerSecond: 1}}
	p, err := PlanRun(t.Context(), c)
	want := RunPlan{Posts: 1000, Entries: 1200, Images: 1200, Resolve: 10, Last: 10, Sweep: 10 * time.Second,
		Look: 10 * time.Second, Fetch: 120 * time.Second,
		Read: span(1200 / 6.5), All: span(1200/6.5) + 10*time.Second,
		Hosts: []HostPlan{{"i.redd.it", 10, 120 * time.Second}, {"slow", 1, 1200 * time.Second}},
		Bytes: 240_000_000, Disk: 480_000_000 + 1200*3300 + 240_000_000, Within: c.Policy.Reddit.RecheckWithin}
	if p.Bytes != want.Bytes || p.Disk != want.Disk {
		t.Errorf("bytes %d, disk %d, want %d and %d", p.Bytes, p.Disk, want.Bytes, want.Disk)
	}
	testkit.Same(t, "hosts", want.Hosts, p.Hosts, err)
	testkit.Same(t, "requests", []int{want.Resolve, want.Last}, []int{p.Resolve, p.Last})
	testkit.Same(t, "times", []time.Duration{want.Sweep, want.Look, want.Fetch, want.Read, want.All, want.Within},
		[]time.Duration{p.Sweep, p.Look, p.Fetch, p.Read, p.All, p.Within})
	testkit.Same(t, "parts", []int{0, 0, 0}, []int{p.Part, p.Parts, p.Most})
	c.Policy.Reddit.RecheckWithin = p.All/2 + time.Millisecond
	p, err = PlanRun(t.Context(), c)
	// 472 posts take 92 s, and the questions about the other 528 take 5 s.
	testkit.Same(t, "parts of half the time", []int{472, 3, 0}, []int{p.Part, p.Parts, p.Most}, err)
	c.Policy.Reddit.RecheckWithin = 5 * time.Second
	p, err = PlanRun(t.Context(), c)
	testkit.Same(t, "posts at most", 500, p.Most, err)
	recheck, err := PlanRecheck(t.Context(), c)
	testkit.Same(t, "a recheck", []int{1000, 0, 10, 0},
		[]int{recheck.Posts, recheck.Images, recheck.Resolve, recheck.Last}, err)
	testkit.Same(t, "a time beyond all", true, span(1e300) > 0)
}
