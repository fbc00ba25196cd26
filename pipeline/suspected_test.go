package pipeline

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// TestSuspectedStandIns: what many got in place of their image is no row as long as the policy says so, however many
// have theirs by now, and whatever its post was meanwhile. Another image takes its place, and no place of one that the
// policy takes; who asks for it again need not know where it lies now.
func TestSuspectedStandIns(t *testing.T) {
	const suspected = "placeholder/suspected_placeholder"
	for _, c := range []struct {
		jobs       string
		after      int // of the policy, from those jobs on
		then       string
		first, row string // the outcomes of p00, and of p04 whose host sends what it sent
	}{
		{"", 4, "run", suspected, suspected},
		{"", 4, "serve 0 p00; serve 1 p01; serve 2 p02; serve 3 p03; run retry=placeholder", "kept/", suspected},
		{"serve 0 p00; serve 1 p01; serve 2 p02; serve 3 p03; run retry=placeholder", 4,
			"post quarantined p04; run; post live p04; run", "kept/", suspected},
		{"serve 0 p00; serve 1 p01; serve 2 p02; serve 3 p03; run retry=placeholder", 4,
			"post absent p04; run; post live p04; run", "kept/", suspected},
		{"serve 0 p00; serve 1 p01; serve 2 p02; serve 3 p03; run retry=placeholder", 50, "run", "kept/", "kept/"},
		{"move 404 p00; run; serve 0 p00", 4, "run retry=placeholder", "kept/", suspected},
		{"move small:71 p00 p01; run; serve 0 p00", 4, "run retry=placeholder", "kept/", suspected},
		{"", 4, "recheck", suspected, suspected},
		{"", 4, "post quarantined p00; recheck; post live p00; recheck", suspected, suspected},
		{"", 4, "purge offline", suspected, suspected},
		{"", 4, "post removed p01 p02 p03; run", suspected, suspected},
		{"", 4, "post quarantined p01 p02 p03; run", suspected, suspected},
		{"", 50, "run; move 90 p00; run", "kept/", "duplicate/flat"},
		{"", 50, "move 90 p00; run", "kept/", "duplicate/flat"},
	} {
		w := newWorld(t, numbered(20)...).do("serve small:70 p00 p01 p02 p03 p04; run").ok()
		if c.jobs != "" {
			w.do(c.jobs).ok()
		}
		stored := imageOf(w, "p00")
		w.policy.Images.SuspectAfter = c.after
		s := w.do(c.then).ok().inspect()
		if s.outcome("p00") != c.first || s.outcome("p04") != c.row {
			t.Errorf("%s; after %d; %s: p00 %s, p04 %s", c.jobs, c.after, c.then, s.outcome("p00"), s.outcome("p04"))
		}
		if c.after > 4 && c.jobs == "" && imageOf(w, "p00") != stored {
			t.Errorf("after %d; %s: another image took the place of the stored one", c.after, c.then)
		}
	}
}

// TestWhatComesInPlaceOfStoredImages: a picture that came in place of many stored images is a stand-in for those, too,
// that have none, whatever it looks like.
func TestWhatComesInPlaceOfStoredImages(t *testing.T) {
	for _, c := range []struct {
		picture, lied, want string
	}{
		{"small:70", "p00 p01 p02 p03", "placeholder/suspected_placeholder"},
		{"70", "p00 p01 p02 p03", "placeholder/suspected_placeholder"},
		{"70", "p00 p01 p02", "placeholder/suspected_placeholder"},
		{"70", "p00 p01", "kept/"},
	} {
		w := newWorld(t, numbered(20)...).do("serve 503 p18 p19; run").ok()
		for i, row := range strings.Fields(c.lied) {
			w.do(fmt.Sprintf("move %s %s", c.picture, row)).ok()
			testkit.Same(t, "moved", fmt.Sprintf("p%02d", i), row)
		}
		s := w.do("serve " + c.picture + " p18; serve 19 p19; run").ok().inspect()
		testkit.Same(t, c.picture+" in place of those of "+c.lied, []string{c.want, "kept/", "kept/"},
			[]string{s.outcome("p18"), s.outcome("p19"), s.outcome("p00")})
		s = w.do("run").ok().inspect()
		testkit.Same(t, c.picture+", again", c.want, s.outcome("p18"))
	}
}

// TestWhatComesInPlaceInSeveralRuns: what came in place of stored images counts over all runs, those included that were
// cut off. What was a row before it first came so stays one.
func TestWhatComesInPlaceInSeveralRuns(t *testing.T) {
	const suspected = "placeholder/suspected_placeholder"
	lies, healed := "move 70 p00 p01 p02 p03 p04 p05; serve 70 p18", "; serve 0 p00; serve 1 p01; serve 2 p02; "+
		"serve 3 p03; serve 4 p04; serve 5 p05; run"
	type history struct{ jobs, row, want string }
	histories := []history{
		{"move 70 p00; run; move 70 p01 p02; run; move 70 p03; run; serve 70 p18; run", "p18", suspected},
		{"move 70 p00; run; move 70 p01; run; move 70 p02; run; serve 70 p18; run", "p18", suspected},
		{"move 70 p00; run; move 70 p01; run; serve 70 p18; run", "p18", "kept/"},
		{"serve 70 p18; run; move 70 p00 p01; run; move 70 p02 p03; run", "p18", "kept/"},
		{"move 70 p00; run; serve 70 p18; run; move 70 p01 p02; run; move 70 p03; run", "p18", suspected},
		{lies + "; run" + healed, "p18", suspected},
	}
	for _, c := range histories {
		s := newWorld(t, numbered(20)...).do("serve 503 p18 p19; run").ok().do(c.jobs).ok().inspect()
		testkit.Same(t, c.jobs, c.want, s.outcome(c.row))
	}
	for at := 5; ; at += 5 {
		w := newWorld(t, numbered(20)...).do("serve 503 p18 p19; run").ok()
		w.do(fmt.Sprintf("%s; run die=%d", lies, at))
		if w.err == nil {
			break
		}
		s := w.do(strings.TrimPrefix(healed, "; ")).ok().inspect()
		var often int // else few got it, which is believed
		w.read(func(ctx context.Context, ws *workspace.Workspace) {
			came, err := ws.InsteadOfStored(ctx)
			testkit.OK(t, err)
			often = len(came[state.SHA256(drawn("70"))])
		})
		rec := s.records["p18"]
		if rec.Image != nil && rec.Image.OriginalSHA256 == state.SHA256(drawn("70")) && often >= 3 {
			testkit.Same(t, fmt.Sprint("cut off at ", at), suspected, s.outcome("p18"))
		}
	}
}

// TestRealImagesThatLookLikeStandIns: an image that was its entry's before its host sent it in place of others stays
// that, and so does one that many share and that was not read yet.
func TestRealImagesThatLookLikeStandIns(t *testing.T) {
	const lies = "move 5 p10 p11 p12 p13; run"
	for _, c := range []struct{ jobs, row, want string }{
		{"serve 503 p18; run; serve 5 p18; " + lies, "p18", "placeholder/suspected_placeholder"},
		{"serve 503 p18; run; serve 5 p18; " + lies + "; run; " + lies, "p18", "placeholder/suspected_placeholder"},
		{"run; " + lies, "p05", "kept/"},
		{"run; " + lies + "; run; " + lies, "p05", "kept/"},
		{"run; " + lies + "; run; move 90 p05; run", "p05", "kept/"},
		{"run; " + lies + "; run; serve 90 p05; run retry=placeholder", "p05", "kept/"},
		{"run; LOSE state.db; " + lies, "p05", "kept/"},
	} {
		w := newWorld(t, numbered(20)...)
		first, rest, lost := strings.Cut(c.jobs, "; LOSE state.db")
		w.do(first).ok()
		if lost {
			testkit.OK(t, os.Remove(filepath.Join(w.dir, "ws", "state.db")))
			w.do(strings.TrimPrefix(rest, "; ")).ok()
		}
		s := w.inspect()
		testkit.Same(t, c.jobs, c.want, s.outcome(c.row))
		if c.want == "kept/" {
			testkit.Same(t, c.jobs+": the image", state.SHA256(drawn(strings.TrimPrefix(c.row, "p0"))), imageOf(w, c.row))
		}
	}
	for _, jobs := range []string{"run; move 90 p00; run", "split; move 90 p00; run",
		"split; move 90 p00; split; work; merge", "split; serve 90 p00; run retry=placeholder",
		"fail 70; run; move 90 p00; run", "run die=150; move 90 p00; run",
		"run; engine B; fail 70; run; move 90 p00; run"} {
		w := newWorld(t, numbered(20)...).do("serve 70 p00 p01 p02 p03 p04").do(jobs)
		testkit.Same(t, "one that many share: "+jobs, state.SHA256(drawn("70")), imageOf(w, "p00"))
	}
}

// TestStandInsOfALostState: what is suspected is known from the log where state.db is lost or older, also where the log
// was older before. It stays no row, and its post's own image takes its place.
func TestStandInsOfALostState(t *testing.T) {
	const suspected = "placeholder/suspected_placeholder"
	own := "serve 0 p00; serve 1 p01; serve 2 p02; serve 3 p03; serve 4 p04; serve 5 p05; run"
	for _, c := range []struct{ before, then, first, last string }{
		{"", "run", suspected, suspected},
		{"", "serve 404 p00 p01 p02 p03 p04 p05; run", suspected, suspected},
		{"", own, "kept/", "kept/"},
		{"", own + "; run retry=placeholder", "kept/", "kept/"},
		{"", "serve 0 p00; run", "kept/", suspected},
		{"serve 0 p00; serve 1 p01; serve 2 p02; serve 3 p03; run retry=placeholder", "run", "kept/", suspected},
		{"serve 0 p00; serve 1 p01; serve 2 p02; serve 3 p03; run retry=placeholder", own, "kept/", "kept/"},
	} {
		first := newWorld(t, numbered(20)...).do("serve 503 p00 p01 p02 p03 p04 p05; run").ok()
		ran := first.copied(t).do("serve small:70 p00 p01 p02 p03 p04 p05; run").ok()
		for _, what := range []string{"lost", "older", "lost, and the log was older before"} {
			w := ran.copied(t)
			if c.before != "" {
				w.do(c.before).ok()
			}
			then := c.then
			switch what {
			case "older": // it knows from where they came: nobody asks there again
				w.putBack(ran, "state.db")
				then += "; run retry=placeholder"
			case "lost, and the log was older before":
				w.putBack(first, "audit")
				w.do("run").ok()
				fallthrough
			default:
				testkit.OK(t, os.Remove(filepath.Join(w.dir, "ws", "state.db")))
			}
			s := w.do(then).ok().inspect()
			testkit.Same(t, fmt.Sprint(c, what), []string{c.first, c.last}, []string{s.outcome("p00"), s.outcome("p05")})
		}
	}
}

// TestOneURLOfALostState: what many posts have from one URL is no stand-in, and stays a row when that is not known any
// more.
func TestOneURLOfALostState(t *testing.T) {
	for _, picture := range []string{"70", "small:70"} {
		for _, after := range []string{"404", "503", picture} {
			w := newWorld(t, numbered(20)...)
			const url = "https://i.redd.it/one.png"
			one := oneURL{w.reddit, url, []manifest.PostID{"p00", "p01", "p02", "p03", "p04", "p05"}}
			w.reddit.sends[url] = picture
			for range 3 {
				w.reddit.begin()
				c := w.config()
				c.Reddit = one
				testkit.OK(t, w.inWorkspace(w.Context(), func(ctx context.Context, ws *workspace.Workspace) error {
					c.Workspace = ws
					_, err := Run(ctx, c)
					return err
				}))
				s := w.inspect()
				testkit.Same(t, picture+", then "+after, []string{"kept/", "duplicate/"},
					[]string{s.outcome("p00"), strings.TrimSuffix(s.outcome("p01"), "flat")})
				if w.reddit.sends[url] == picture && after != picture {
					testkit.OK(t, os.Remove(filepath.Join(w.dir, "ws", "state.db")))
				}
				w.reddit.sends[url] = after
			}
		}
	}
}

// oneURL is Reddit where some posts name one URL.
type oneURL struct {
	*fakeReddit
	url string
	of  []manifest.PostID
}

func (o oneURL) Ask(ctx context.Context, ids []manifest.PostID) (reddit.Answer, error) {
	a, err := o.fakeReddit.Ask(ctx, ids)
	for id, p := range a.Posts {
		if slices.Contains(o.of, id) {
			for i := range p.Images {
				p.Images[i].URL = o.url
			}
			a.Posts[id] = p
		}
	}
	return a, err
}

// imageOf is the digest of the stored image of an entry.
func imageOf(w *world, row string) string { return w.inspect().records[row].Image.OriginalSHA256 }
