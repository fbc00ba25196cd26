package pipeline

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rehydrate/manifest"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// FuzzHistory does random jobs while Reddit, its hosts and the engine answer at random, some of them disturbed, and
// holds the workspace to the invariant after each. A failure tells the steps as do takes them.
func FuzzHistory(f *testing.F) {
	seeds := uint64(6)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		newHistory(t, seed).live(6)
	})
}

// A history is a world that changes at random, with what it needs to say what may have been lost in it.
type history struct {
	*world
	rng   *rand.Rand
	rows  []string
	mayGo map[string]bool         // rows whose removal Reddit has told of at some time
	shown map[string]map[int]bool // pictures that a host had for a row
	down  map[int]bool            // pictures of posts that were taken down at some time
	next  int                     // picture that no row has shown
	dead  bool                    // the last job was killed
	last  inventory               // what there was after the last job
}

const everybody = 60000 // the picture that a host in trouble sends to everybody

func newHistory(t testing.TB, seed uint64) *history {
	h := &history{world: newWorld(t, append(numbered(9), "g*3")...), rng: rand.New(rand.NewPCG(seed, 1)),
		mayGo: map[string]bool{},
		shown: map[string]map[int]bool{}, down: map[int]bool{}, next: 100}
	for i, row := range []string{"p00", "p01", "p02", "p03", "p04", "p05", "p06", "p07", "p08", "g", "g/1", "g/2"} {
		h.rows, h.shown[row] = append(h.rows, row), map[int]bool{i: true}
	}
	return h
}

func pick[T any](h *history, of ...T) T { return of[h.rng.IntN(len(of))] }

// live does so many jobs with changes before each, and heals at last.
func (h *history) live(jobs int) {
	h.step("run")
	for range jobs {
		for range h.rng.IntN(4) {
			h.step(h.anyChange())
		}
		h.step(h.anyJob())
		if h.Failed() {
			h.FailNow()
		}
	}
	h.heal()
}

func (h *history) anyChange() string {
	row := pick(h, h.rows...)
	id, _, _ := strings.Cut(row, "/")
	switch h.rng.IntN(14) {
	case 0, 1, 2:
		return "post " + pick(h, "live", "deleted", "moderator", "copyright", "absent", "quarantined", "unclear") + " " + id
	case 3:
		return "post " + pick(h, "deleted", "absent", "quarantined") + " p01 p02 p03"
	case 4:
		return "image " + pick(h, slices.Sorted(maps.Keys(oddities))...) + " " + row
	case 5:
		return "image " + pick(h, "left", "parent", "ok") + " " + row
	case 6:
		return "serve " + h.anyAnswer() + " " + row
	case 7, 8:
		return "move " + h.anyAnswer() + " " + row
	case 9:
		return "host " + pick(h, "404", "avif", "login", strconv.Itoa(everybody), "ok", "ok") + " i.redd.it"
	case 10:
		return "clock " + pick(h, "1h", "25h", "72h")
	case 11:
		return pick(h, "engine B", "engine C", "fail 3", "policy readmit", "policy flag", "policy drop", "manifest 9",
			"manifest 10")
	case 12:
		return "answers"
	default:
		return fmt.Sprintf("copy c%d", len(h.done))
	}
}

func (h *history) anyAnswer() string {
	switch h.rng.IntN(3) {
	case 0:
		return pick(h, slices.Sorted(maps.Keys(answers))...)
	case 1:
		return pick(h, "1", "2", "small:1", "redirected:2")
	}
	h.next++
	return strconv.Itoa(h.next)
}

func (h *history) anyJob() string {
	job := pick(h, "run", "run", "run", "recheck", "recheck", "purge", "purge offline", "reread", "reread all", "split",
		"split; work; merge",
		"work; merge", "purge offline id=p05")
	switch h.rng.IntN(9) {
	case 0, 1:
		job += " confirm"
	case 2:
		job += fmt.Sprintf(" stop=%d", 1+h.rng.IntN(6))
	case 3:
		job += fmt.Sprintf(" blocked=%d", 1+h.rng.IntN(2))
	case 4:
		job += fmt.Sprintf(" die=%d", 1+h.rng.IntN(60))
	case 5:
		job += " denied"
	}
	return job
}

// step does a change or jobs, and holds the workspace to what must be true after each.
func (h *history) step(steps string) {
	h.Helper()
	for step := range strings.SplitSeq(steps, "; ") {
		words := strings.Fields(step)
		if slices.Contains([]string{"post", "image", "serve", "move", "host", "clock", "engine", "fail", "policy",
			"manifest", "stones", "names", "item"}, words[0]) {
			h.do(step)
			h.note(words)
			continue
		}
		if h.dead && (words[0] == "copy" || words[0] == "answers") {
			continue // of what a job left that was killed
		}
		h.err = nil
		h.do(step)
		h.check(step, h.last)
	}
}

// note notes what a change lets go.
func (h *history) note(words []string) {
	for _, name := range words[min(2, len(words)):] {
		for _, row := range h.rows {
			id, _ := splitRow(row)
			switch words[0] {
			case "stones":
				h.mayGo[row] = h.mayGo[row] || id == name
			case "post":
				if id == name && slices.Contains([]string{"deleted", "moderator", "copyright", "absent"}, words[1]) {
					h.mayGo[row] = true
				}
			case "image":
				h.mayGo[row] = h.mayGo[row] || row == name && isRemoval(words[1])
			case "serve", "move", "item":
				_, text, _ := strings.Cut(":"+words[1], ":")
				_, after, found := strings.Cut(text, ":")
				if found {
					text = after
				}
				if n, err := strconv.Atoi(text); err == nil && row == name && answers[words[1]].fault.Reason == "" {
					h.shown[row][n] = true
				}
			}
		}
	}
	for _, row := range h.rows {
		if h.mayGo[row] {
			for n := range h.shown[row] {
				h.down[n] = true
			}
		}
	}
}

func (h *history) check(step string, before inventory) {
	h.Helper()
	words := strings.Fields(step)
	if errors.Is(h.err, errDead) {
		h.dead, h.last = true, h.inspect()
		return
	}
	job := slices.Contains([]string{"run", "recheck", "purge", "reread", "split", "merge"}, words[0])
	if !job {
		if h.dead {
			return
		}
		h.last = h.checkSound()
		return
	}
	if !h.expected(words[0]) {
		h.Fatalf("%s: %v", strings.Join(h.done, "; "), h.err)
	}
	if h.dead && h.err != nil { // it may have ended before it could mend anything
		h.last = h.inspect()
		return
	}
	wasDead := h.dead
	h.dead = false
	after := h.checkSound()
	h.last = after
	if slices.Contains([]string{"recheck", "purge", "split"}, words[0]) || h.err != nil {
		h.checkSameBytes(before, after)
		for row := range after.rows {
			if _, ok := before.rows[row]; !ok && !wasDead {
				h.Errorf("after %s:\nthe row of %s came in", strings.Join(h.done, "; "), row)
			}
		}
	}
	for row := range before.records {
		rec, stays := after.records[row]
		if stays && before.answers[row] && !after.answers[row] && rec.Image != nil &&
			rec.Image.SHA256 == before.records[row].Image.SHA256 {
			h.Errorf("after %s:\n%s lost what a model said of the image that it still has", strings.Join(h.done, "; "), row)
		}
		if !stays || !before.imageOf(row) || rec.Image != nil || wasDead {
			continue
		}
		if !h.mayLose(row) && before.records[row].Image.OriginalSHA256 != state.SHA256(drawn(strconv.Itoa(everybody))) {
			h.Errorf("after %s:\n%s lost its image: %s, %+v", strings.Join(h.done, "; "), row, after.outcome(row),
				rec.Trouble)
		}
	}
	if h.err == nil && words[0] != "reread" && words[0] != "split" && !slices.Contains(words, "offline") {
		h.checkGone(after)
	}
}

// mayLose reports whether anything justifies that an entry has no image any more.
func (h *history) mayLose(row string) bool {
	id, _ := splitRow(row)
	if h.mayGo[row] || id == "p05" { // which goes by request, too
		return true
	}
	for n := range h.shown[row] {
		if h.down[n] || h.shown["p05"][n] {
			return true
		}
	}
	return false
}

// checkGone asserts that what Reddit says is gone has no row, and no image unless it is withheld.
func (h *history) checkGone(s inventory) {
	h.Helper()
	for _, row := range h.rows {
		rec, have := s.records[row]
		id, i := splitRow(row)
		p := h.post(id)
		gone := slices.Contains([]string{"deleted", "moderator", "copyright"}, p.state)
		odd := p.state == "live" && isRemoval(p.images[i])
		if !have || !gone && !odd {
			continue
		}
		withheld := gone && rec.Post.Withheld || odd && rec.Trouble != nil && rec.Trouble.Withheld()
		if _, there := s.rows[row]; there || rec.Image != nil && !withheld {
			h.Errorf("after %s:\n%s is gone; a row: %v, withheld: %v, %s", strings.Join(h.done, "; "), row, there, withheld,
				s.outcome(row))
		}
	}
}

// expected reports whether a job may end with its error.
func (h *history) expected(job string) bool {
	_, denied := errors.AsType[*reddit.Denied](h.err)
	_, loss := errors.AsType[*LossError](h.err)
	return h.err == nil || denied || loss || job == "merge" || errors.Is(h.err, errAccess) ||
		errors.Is(h.err, state.ErrInterrupted) ||
		errors.Is(h.err, workspace.ErrNoWorkspace)
}

// heal has Reddit, the hosts and the engine answer as they should. Whatever was never removed is in the dataset then.
func (h *history) heal() {
	h.Helper()
	h.step("host ok i.redd.it; manifest 10; policy drop; post live " + "p00 p01 p02 p03 p04 p05 p06 p07 p08 g")
	clear(h.ocr.fails)
	s := h.last
	for _, row := range h.rows {
		h.step("image ok " + row)
		if s.imageOf(row) {
			continue
		}
		where := "move"
		if id, _ := splitRow(row); len(h.post(id).images) > 1 { // an entry of a gallery gets no other item than its own
			where = "item"
		}
		h.next++
		h.step(fmt.Sprintf("%s %d %s", where, h.next, row))
	}
	h.step("run confirm; run confirm")
	for _, row := range h.rows {
		// What its host sent from the very same place before is final, until somebody asks for it.
		t := h.last.records[row].Trouble
		if id, _ := splitRow(row); h.err == nil && t != nil && !h.mayLose(row) && len(h.post(id).images) > 1 {
			h.step("run confirm retry=" + string(t.Reason))
		}
	}
	if h.err != nil {
		h.Fatalf("%s: %v", strings.Join(h.done, "; "), h.err)
	}
	s = h.last
	for _, row := range h.rows {
		got := s.records[row].Result
		if !h.mayLose(row) && got.Outcome != manifest.Kept && got.Outcome != manifest.Duplicate &&
			got.Outcome != manifest.Placeholder {
			h.Errorf("after %s:\n%s is not back: %s %s", strings.Join(h.done, "; "), row, s.outcome(row), got.Detail)
		}
	}
}
