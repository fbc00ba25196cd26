package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/pipeline/state"
)

// TestAnswersOfAHostInTroubleAreNotFinal: what a host in trouble answers is final for nobody, until it sends an image
// or a day has passed.
func TestAnswersOfAHostInTroubleAreNotFinal(t *testing.T) {
	const waits = "failed/host_sends_no_images"
	all := strings.Join(numbered(12), " ")
	for i, c := range []struct {
		name, steps string // SICK in them is each answer of a host in trouble
		kept        string // rows of the dataset
		p11         string // how that one ends
		trouble     string // hosts of the last lines
	}{
		{"from the start", "host SICK i.redd.it; run", "", waits, "i.redd.it"},
		{"healed", "host SICK i.redd.it; run; host ok i.redd.it; run", all, "kept/", ""},
		{"still sick, and few are asked",
			"host SICK i.redd.it; run; post deleted p00 p01 p02 p03 p04 p05 p06 p07 p08 p09; run confirm; run confirm", "",
			waits, "i.redd.it"},
		{"still sick after a day", "host SICK i.redd.it; run; clock 25h; run", "", "MANY", ""},
		{"still sick after a day, since a clock was ahead",
			"clock 99h; host SICK i.redd.it; run; clock -99h; run; clock 25h; run", "", "MANY", ""},
		{"another one after a day", "manifest 11; host SICK i.redd.it; run; clock 25h; manifest 12; run", "",
			"failed/OWN", ""},
		{"another one after two days",
			"manifest 11; host SICK i.redd.it; run; clock 25h; manifest 12; run; run; clock 51h; run", "", "MANY", ""},
		{"healed for one after a day", "host SICK i.redd.it; run; clock 25h; host ok i.redd.it; serve SICK p11; run",
			strings.TrimSuffix(all, " p11"), "ONE", ""},
		{"of seven it is about the images",
			"manifest 7; serve SICK p06 p05 p04 p03 p02 p01 p00; run; manifest 12; serve SICK p11; run", "p07 p08 p09 p10",
			"MANY", ""},
		{"a witness says that it works",
			"manifest 3; run; manifest 12; serve SICK p03 p04 p05 p06 p07 p08 p09 p10 p11; run", "p00 p01 p02", "MANY", ""},
		{"a witness says that it does not", "manifest 3; run; manifest 12; host SICK i.redd.it; run", "p00 p01 p02",
			waits, "i.redd.it"},
		{"stored images stay", "run; host SICK i.redd.it; move 40 " + all + "; run; run", all, "kept/", "i.redd.it"},
		{"few beside a witness that works", "manifest 10; run; manifest 12; serve SICK p10 p11; run",
			strings.TrimSuffix(all, " p10 p11"), "ONE", ""},
		{"few beside a witness that does not", "manifest 10; run; manifest 12; host SICK i.redd.it; run",
			strings.TrimSuffix(all, " p10 p11"), waits, "i.redd.it"},
		{"sick since a run was killed", "run die=150; host SICK i.redd.it; run; host ok i.redd.it; run", all, "kept/", ""},
		{"in the middle of a run", "serve SICK p11; run", strings.TrimSuffix(all, " p11"), "ONE", ""},
	} {
		// how one entry ends by itself, and one of many with the same answer
		for j, final := range []struct{ sick, one, many string }{
			{"404", "gone/http_404", "gone/http_404"},
			{"403", "gone/http_403", "gone/http_403"},
			{"login", "refused/redirect_host_not_allowed", "refused/redirect_host_not_allowed"},
			{"avif", "invalid/not_an_image_avif", "invalid/not_an_image_avif"},
			{"html", "invalid/not_an_image_html", "failed/not_an_image_html"}, // a text must come in two runs
			{"503", "failed/http_503", "failed/http_503"},
			// Each file lacks its end.
			{"short:60000", "invalid/bad_container", "invalid/bad_container"},
		} {
			if leftOut(i+j, 7) {
				continue
			}
			t.Run(c.name+", "+final.sick, func(t *testing.T) {
				t.Parallel()
				_, own, _ := strings.Cut(final.one, "/")
				p11 := strings.NewReplacer("ONE", final.one, "MANY", final.many, "OWN", own).Replace(c.p11)
				checkHosts(t, strings.ReplaceAll(c.steps, "SICK", final.sick), c.kept, p11, c.trouble)
			})
		}
	}
}

// TestPictureForEverybodyIsNobodysImage: a picture that a host sends to everybody is nobody's image. Many posts with
// the same picture are reposts only where the host sends others, too.
func TestPictureForEverybodyIsNobodysImage(t *testing.T) {
	const waits = "failed/host_sends_no_images"
	all := strings.Join(numbered(12), " ")
	for i, c := range []struct{ name, steps, kept, p11, trouble string }{
		{"from the start", "host ALL i.redd.it; run", "", waits, "i.redd.it"},
		{"healed", "host ALL i.redd.it; run; host ok i.redd.it; run", all, "kept/", ""},
		{"and few are asked",
			"host ALL i.redd.it; run; post deleted p00 p01 p02 p03 p04 p05 p06 p07 p08 p09; run confirm; run confirm", "",
			waits, "i.redd.it"},
		{"and one is asked",
			"host ALL i.redd.it; run; post deleted p00 p01 p02 p03 p04 p05 p06 p07 p08 p09 p10; run confirm; run confirm",
			"", waits, "i.redd.it"},
		{"and one is asked once more",
			"host ALL i.redd.it; run; post deleted p00 p01 p02 p03 p04 p05 p06 p07 p08 p09 p10; run confirm; run confirm; run",
			"", waits, "i.redd.it"},
		{"the picture of one that is deleted since",
			"host ALL i.redd.it; run; post deleted p00; run; host ok i.redd.it; run", strings.TrimPrefix(all, "p00 "), "kept/",
			""},
		{"killed, and still so", "host ALL i.redd.it; run die=120; run", "", waits, "i.redd.it"},
		{"killed, still so, and healed", "host ALL i.redd.it; run die=120; run; host ok i.redd.it; run; run", all,
			"kept/", ""},
		{"killed early, and still so", "host ALL i.redd.it; run die=26; run", "", waits, "i.redd.it"},
		{"killed, and another one comes", "host ALL i.redd.it; run die=120; host 60001 i.redd.it; run", "", waits,
			"i.redd.it"},
		{"killed, and healed", "host ALL i.redd.it; run die=120; host ok i.redd.it; run; run", all, "kept/", ""},
		{"killed, and the same was for two", "serve ALL p10 p11; run die=150; run", strings.TrimSuffix(all, " p11"),
			"duplicate/flat", ""},
		{"stopped, and healed", "host ALL i.redd.it; run stop=9; host ok i.redd.it; run; run", all, "kept/", ""},
		{"after a day it is a repost", "host ALL i.redd.it; run; clock 25h; run", "p00", "duplicate/flat", ""},
		{"of seven it is a repost", "manifest 7; host ALL i.redd.it; run; host ok i.redd.it; manifest 12; run",
			"p00 p07 p08 p09 p10 p11", "kept/", ""},
		{"a witness says that it works",
			"manifest 3; run; manifest 12; serve ALL p03 p04 p05 p06 p07 p08 p09 p10 p11; run", "p00 p01 p02 p03",
			"duplicate/flat", ""},
		{"a witness says that it does not", "manifest 3; run; manifest 12; host ALL i.redd.it; run", "p00 p01 p02", waits,
			"i.redd.it"},
		{"a witness says that it does not, for days",
			"manifest 3; run; manifest 12; host ALL i.redd.it; run; clock 25h; run; clock 50h; run", "p00 p01 p02", waits,
			"i.redd.it"},
		{"a witness says that it does not, for days, and healed",
			"manifest 11; run; manifest 12; host ALL i.redd.it; run; clock 25h; run; host ok i.redd.it; run", all, "kept/", ""},
		{"killed, and a witness says that it does not, for days",
			"manifest 3; run; manifest 12; host ALL i.redd.it; run die=55; run; clock 25h; run; run", "p00 p01 p02", waits,
			"i.redd.it"},
		{"killed, and a witness says that it does not, for days, and healed",
			"manifest 3; run; manifest 12; host ALL i.redd.it; run die=55; run; clock 25h; run; host ok i.redd.it; run", all,
			"kept/", ""},
		{"stored images stay", "run; host ALL i.redd.it; move 40 " + all + "; run; run", all, "kept/", "i.redd.it"},
		{"few beside a witness that works", "manifest 10; run; manifest 12; serve ALL p10 p11; run",
			strings.TrimSuffix(all, " p11"), "duplicate/flat", ""},
		{"few beside a witness that does not", "manifest 10; run; manifest 12; host ALL i.redd.it; run",
			strings.TrimSuffix(all, " p10 p11"), waits, "i.redd.it"},
		{"reposts of the only stored picture", "manifest 1; serve ALL p00; run; manifest 3; serve ALL p01 p02; run", "p00",
			"", ""},
		{"reposts of all stored pictures",
			"manifest 5; serve ALL p01 p02 p03 p04; run; manifest 12; serve ALL p10 p11; run", "p00 p01 p05 p06 p07 p08 p09",
			"duplicate/flat", ""},
		{"one beside a witness that works", "manifest 11; run; manifest 12; serve ALL p11; run", all, "kept/", ""},
		{"one beside a witness that works, with the picture of another", "manifest 11; run; manifest 12; serve 10 p11; run",
			strings.TrimSuffix(all, " p11"), "duplicate/flat", ""},
		{"one beside a witness that does not", "manifest 11; run; manifest 12; host ALL i.redd.it; run",
			strings.TrimSuffix(all, " p11"), waits, "i.redd.it"},
		{"one beside a witness that does not, and healed",
			"manifest 11; run; manifest 12; host ALL i.redd.it; run; host ok i.redd.it; run", all, "kept/", ""},
		{"in the middle of a run", "serve ALL p10 p11; run", strings.TrimSuffix(all, " p11"), "duplicate/flat", ""},
	} {
		for j, picture := range []string{"60000", "own:60000"} {
			if leftOut(i+j, 2) {
				continue
			}
			t.Run(c.name+", "+picture, func(t *testing.T) {
				t.Parallel()
				checkHosts(t, strings.ReplaceAll(c.steps, "ALL", picture), c.kept, c.p11, c.trouble)
			})
		}
	}
}

// TestRefusalAmongOnePictureForEverybody: what a host in trouble answers for some images is final for none of them,
// also where it came after the picture that the host sends for all others.
func TestRefusalAmongOnePictureForEverybody(t *testing.T) {
	all := strings.Join(numbered(12), " ")
	heal := ""
	for i, id := range numbered(12) {
		heal += fmt.Sprintf("serve %d %s; ", i, id)
	}
	for _, sick := range []string{"404", "403", "login", "short:60001"} {
		for _, runs := range []string{"run", "run; run", "run stop=9"} {
			w := newWorld(t, numbered(12)...).do("serve 60000 " + all + "; serve " + sick + " p02 p05")
			w.do(runs)
			w.err = nil
			if !strings.Contains(runs, "stop") {
				s := w.checkSound()
				testkit.Same(t, sick+", "+runs, "failed/host_sends_no_images", s.outcome("p02"))
				testkit.Same(t, sick+", "+runs, "failed/host_sends_no_images", s.outcome("p05"))
			}
			w.do(heal + "run; run").ok()
			testkit.Same(t, "rows after "+sick+", "+runs, all, namesOf(w.checkSound().rows))
		}
	}
	w := newWorld(t, numbered(3)...).do("serve 404 p01; serve 0 p02; run").ok()
	testkit.Same(t, "beside a repost", "gone/http_404", w.checkSound().outcome("p01"))
}

// TestPictureForEverybodyIsThatOfItsPostAlone: where what a host sends to everybody is the image of one post, that
// stays whatever becomes of the others, also once state.db is lost.
func TestPictureForEverybodyIsThatOfItsPostAlone(t *testing.T) {
	ran := newWorld(t, numbered(12)...).do("manifest 3; run; manifest 12; host 2 i.redd.it; run; host ok i.redd.it").ok()
	for _, steps := range []string{"post deleted p11; recheck", "LOSE state.db; run; post deleted p11; recheck",
		"post deleted p11; run; post deleted p10; LOSE state.db; run"} {
		w := ran.copied(t)
		testkit.Same(t, "p11 before", "failed/host_sends_no_images", w.checkSound().outcome("p11"))
		for step := range strings.SplitSeq(steps, "; ") {
			w.lose(step)
		}
		s := w.checkSound()
		testkit.Same(t, steps, "kept/", s.outcome("p02"))
		testkit.Same(t, steps+": its image", true, s.imageOf("p02"))
	}
	s := ran.copied(t).do("post deleted p02; recheck; host 2 i.redd.it; run").ok().checkSound()
	for _, id := range numbered(12)[3:] {
		testkit.Same(t, id+", where it is taken down", "failed/host_sends_no_images", s.outcome(id))
	}
}

// TestStoredImagesThatMovedAreWitnesses: where state.db does not know where the stored images lay, or Reddit names
// other places for all of them, their host is in trouble if it sends them none either, or all what it sends another.
func TestStoredImagesThatMovedAreWitnesses(t *testing.T) {
	ran := newWorld(t, numbered(6)...).do("policy drop; manifest 5; run; manifest 6").ok()
	for name, steps := range map[string]string{
		"lost": "LOSE state.db; host SICK i.redd.it; run",
		"lost, and sick once more": "manifest 5; LOSE state.db; host SICK i.redd.it; run; host ok i.redd.it; run; " +
			"clock 50h; manifest 6; host SICK i.redd.it; run",
		"lost, and sick for days": "LOSE state.db; host 60000 i.redd.it; run; clock 25h; run; clock 50h; run",
		"moved": "move 40 p00; move 41 p01; move 42 p02; " +
			"move 43 p03; move 44 p04; host SICK i.redd.it; run",
	} {
		for _, sick := range []string{"60000", "404", "login", "avif"} {
			t.Run(name+", "+sick, func(t *testing.T) {
				t.Parallel()
				w := ran.copied(t)
				for step := range strings.SplitSeq(strings.ReplaceAll(steps, "SICK", sick), "; ") {
					w.lose(step)
				}
				s := w.checkSound()
				testkit.Same(t, "sick", "failed/host_sends_no_images", s.outcome("p05"))
				s = w.do("host ok i.redd.it; run").ok().checkSound()
				testkit.Same(t, "healed", "kept/", s.outcome("p05"))
				testkit.Same(t, "its image", state.SHA256(drawn("5")), s.records["p05"].Image.SHA256)
				testkit.Same(t, "rows", "p00 p01 p02 p03 p04 p05", namesOf(s.rows))
			})
		}
	}
}

// TestWitnessesThatMovedCostNothing: what is asked of stored images that moved costs none of them, asks for no removed
// post, and makes no trouble of one image that is not there any more.
func TestWitnessesThatMovedCostNothing(t *testing.T) {
	w := newWorld(t, numbered(4)...).do("manifest 3; run; post moderator p00; manifest 4; host 404 i.redd.it; run").ok()
	testkit.Same(t, "p03 beside witnesses", "failed/host_sends_no_images", w.checkSound().outcome("p03"))
	testkit.Same(t, "a removed image is asked for", false, slices.Contains(w.reddit.fetched, w.post("p00").url("p00", 0)))

	w = newWorld(t, numbered(3)...).do("serve 2 p01; run").ok()
	w.lose("LOSE state.db")
	s := w.do("serve 404 p00; run").ok().checkSound()
	testkit.Same(t, "reposts that were stored", true, s.imageOf("p01") && s.imageOf("p02"))

	one := newWorld(t, numbered(2)...).do("manifest 1; run; move 404 p00; run").ok()
	testkit.Same(t, "hosts in trouble by one that moved", 0, len(one.summary.Hosts))
	s = one.copied(t).do("manifest 2; serve 404 p01; run").ok().checkSound()
	testkit.Same(t, "beside a place that never sent an image", "gone/http_404", s.outcome("p01"))

	w = newWorld(t, numbered(1)...).do("run; names 40 p00; run; move 404 p00; run; run").ok()
	testkit.Same(t, "hosts in trouble by one that is refused", 0, len(w.summary.Hosts))
	testkit.Same(t, "places that are asked again", 0, len(w.reddit.fetched))
}

// TestOnlyPictureBesideImagesThatGotNone: where it is not known where the stored images lay, and their places gave none
// for a day, they are witnesses of the only picture that comes all the same.
func TestOnlyPictureBesideImagesThatGotNone(t *testing.T) {
	w := newWorld(t, numbered(6)...).do("manifest 5; run").ok()
	w.lose("LOSE state.db")
	w.do("host 404 i.redd.it; run; clock 25h; run").ok()
	w.do("manifest 6; host 60000 i.redd.it; run").ok()
	testkit.Same(t, "the picture for everybody", "failed/host_sends_no_images", w.checkSound().outcome("p05"))
	w.do("host ok i.redd.it; run").ok()
	testkit.Same(t, "healed", "kept/", w.checkSound().outcome("p05"))
}

// TestOnlyPictureOfARunThatWasCutOff: what is all that a run stored of a host, before it was cut off, can be what the
// host sent to everybody. It is the image of its post only if it lies there while a witness gets another one.
func TestOnlyPictureOfARunThatWasCutOff(t *testing.T) {
	ran := newWorld(t, numbered(12)...).do("policy drop; manifest 11; run; manifest 12").ok()
	stored := 0
	for n := 1; ; n += testkit.Stride(4) {
		w := ran.copied(t).do(fmt.Sprintf("host 60000 i.redd.it; run die=%d", n))
		if w.err == nil {
			break
		}
		if w.err = nil; !w.inspect().imageOf("p11") {
			continue
		}
		stored++
		sick := w.copied(t).do("run").ok().checkSound()
		testkit.Same(t, "still so", "failed/host_sends_no_images", sick.outcome("p11"))
		healed := w.copied(t).do("host ok i.redd.it; run; run").ok().checkSound()
		testkit.Same(t, "healed", "kept/", healed.outcome("p11"))
		testkit.Same(t, "its image", state.SHA256(drawn("11")), healed.records["p11"].Image.SHA256)
		down := w.copied(t).do("host 404 i.redd.it; run").ok().checkSound()
		testkit.Same(t, "no picture", "failed/host_sends_no_images", down.outcome("p11"))
		testkit.Same(t, "no picture: what is stored", true, down.imageOf("p11"))
		own := w.copied(t).do("host ok i.redd.it; serve 60000 p11; run").ok().checkSound()
		testkit.Same(t, "it is its own", "kept/", own.outcome("p11"))
	}
	if stored == 0 {
		t.Error("no run was cut off between image and judgement")
	}
}

// TestStoredImageStaysWhateverAHostSends: an image that several posts have is not lost for what their host sends for
// them now. One that came in place of all goes once it is known to be that.
func TestStoredImageStaysWhateverAHostSends(t *testing.T) {
	const waits, flat = "failed/host_sends_no_images", "duplicate/flat"
	ran := newWorld(t, numbered(12)...).do("policy drop; serve 9 p10 p11; run").ok()
	for _, c := range []struct{ name, steps, p10, p11, rows string }{
		{"one picture for everybody", "host 60000 i.redd.it; run", "kept/", flat, "p10"},
		{"two other pictures", "serve 60000 p10; serve 60001 p11; run", "kept/", flat, "p10"},
		{"after a run that was killed", "run die=12; host 60000 i.redd.it; run", waits, waits, ""},
		{"no picture after a run that was killed", "run die=12; host 404 i.redd.it; run", waits, waits, ""},
		{"one picture after a run that was killed, and healed",
			"run die=12; host 60000 i.redd.it; run; host ok i.redd.it; run", "kept/", flat, "p10"},
		{"one picture for a day after a run that was killed",
			"run die=12; host 60000 i.redd.it; run; clock 25h; run", "kept/", flat, "p10"},
		{"another picture in one place after a run that was killed", "run die=12; serve 60000 p10; run", "kept/", flat,
			"p10"},
		{"places without a picture after a run that was killed", "run die=12; serve 404 p10 p11; run", "kept/", flat,
			"p10"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := ran.copied(t).do("post moderator p09; recheck").ok()
			testkit.Same(t, "p10 before", "pending/successor", w.checkSound().outcome("p10"))
			for step := range strings.SplitSeq(c.steps, ";") {
				if w.do(step); strings.Contains(step, "die=") {
					if w.err == nil {
						t.Fatalf("%s came to its end", step)
					}
					w.err = nil
				}
				w.ok()
			}
			s := w.checkSound()
			testkit.Same(t, "p10", c.p10, s.outcome("p10"))
			testkit.Same(t, "p11", c.p11, s.outcome("p11"))
			testkit.Same(t, "images are there", true, s.imageOf("p10") && s.imageOf("p11"))
			_, row := s.rows["p10"]
			testkit.Same(t, "p10 is a row", c.rows == "p10", row)
		})
	}
}

// TestSameTextUnderManyURLsCountsInTwoRuns: where several URLs have the same page in place of an image, that is final
// when it comes again, though the host sends others their images.
func TestSameTextUnderManyURLsCountsInTwoRuns(t *testing.T) {
	w := newWorld(t,
		numbered(12)...).do("manifest 3; run; manifest 12; serve html p03 p04 p05 p06 p07; serve empty p08; run").ok()
	testkit.Same(t, "after one run", "failed/not_an_image_html", w.checkSound().outcome("p03"))
	w.do("run").ok()
	s := w.checkSound()
	testkit.Same(t, "after two", "invalid/not_an_image_html", s.outcome("p03"))
	testkit.Same(t, "another text", "invalid/empty_body", s.outcome("p08"))
	w.do("run").ok()
	testkit.Same(t, "images asked for by a third", 0, len(w.reddit.fetched))
}

// checkHosts does steps in a world of twelve posts, and asserts which rows there are, how p11 ends, and which hosts are
// blamed.
func checkHosts(t *testing.T, steps, kept, p11, trouble string) {
	t.Helper()
	w := newWorld(t, numbered(12)...)
	for step := range strings.SplitSeq("policy drop; "+steps, ";") {
		if w.err = nil; strings.Contains(step, "die=") || strings.Contains(step, "stop=") {
			w.do(step)
			if w.err == nil {
				t.Fatalf("%s came to its end", step)
			}
			continue
		}
		w.do(step).ok()
	}
	s := w.checkSound()
	var hosts []string
	for _, h := range w.summary.Hosts {
		hosts = append(hosts, h.Host)
	}
	testkit.Same(t, "rows", kept, namesOf(s.rows))
	testkit.Same(t, "p11", p11, s.outcome("p11"))
	testkit.Same(t, "hosts in trouble", trouble, strings.Join(hosts, " "))
}
