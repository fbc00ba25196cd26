package caption

import (
	"cmp"
	"math"
	"slices"
	"unicode/utf8"
)

// A Hit is a caption of a removed post in a text.
type Hit[K comparable] struct {
	Owner K
	Words int   // of the caption that the text has, in order
	Of    int   // words that the caption has
	At    int64 // where the first of them begins: the byte that was written, or what Cell was given
	Word  int64 // which word of the text that is, from 0; numbers do not count
}

// A Text takes so many bytes, and some for each caption of its Index.
const (
	TextMemory     = 20 << 10
	TextMemoryEach = 72
)

// A Text is a text that is searched, in pieces. One goroutine at a time may use it. It takes up to 20 kB, and 72
// bytes for each caption once a word of any caption occurs, whatever the text is.
type Text[K comparable] struct {
	x       *Index[K]
	scan    scanner
	count   int64    // words so far
	recent  []seen   // the last words, by their number but for its upper bits
	ids     []uint32 // of those
	states  []state  // by caption, from the first anchor on
	waiting []uint32 // captions that are looked for when more words are known
	next    int64    // when the first of them is
	found   []find[K]
	matches []match
	best    []aligned
	counts  []int16
}

// A seen is a word of the text.
type seen struct {
	letters [maxLetters]byte
	n       int32
	at      int64
}

// A state is what is known of a caption while its text goes on. Numbers of words count from 1.
type state struct {
	block int64     // of as many words as the caption's window, where the last anchor was
	seen  [2]uint64 // anchors there, and others in the block before
	carry [2]int32  // what they carry
	due   int64     // with which word of the text it is looked for; 0 for not at all
	again int64     // an anchor since then that begins another search
	found bool
}

type find[K comparable] struct {
	of      *caption[K]
	hit     Hit[K]
	carries int32 // thousandths of nats
}

// NewText returns a Text that captions are looked for in.
func (x *Index[K]) NewText() *Text[K] {
	t := &Text[K]{x: x, next: math.MaxInt64}
	t.scan = scanner{folds: x.folds, emit: t.word}
	return t
}

// Write reads the next piece of the text. A word may go on from one piece to the next. It never fails.
func (t *Text[K]) Write(p []byte) (int, error) {
	t.scan.write(p)
	return len(p), nil
}

// Cell reads a piece of the text that ends its last word, such as a cell of a column or an element of a list. At says
// where it is, a row for example: a hit that begins in the cell has this number, in place of a byte.
func (t *Text[K]) Cell(at int64, p []byte) {
	t.scan.flush()
	before := t.scan.at
	t.scan.at, t.scan.fixed = at, true
	t.scan.write(p)
	t.scan.flush()
	t.scan.at, t.scan.fixed = before, false
}

// End ends the text, and returns a hit for each owner of a caption in it, in the order of the text: the first place
// where the caption is recognised. The Text can then be used for another one.
func (t *Text[K]) End() (hits []Hit[K]) {
	found := t.end()
	slices.SortStableFunc(found, func(f, g find[K]) int { return cmp.Compare(f.hit.Word, g.hit.Word) })
	owners := map[K]bool{}
	for _, f := range found {
		if !owners[f.hit.Owner] {
			owners[f.hit.Owner] = true
			hits = append(hits, f.hit)
		}
	}
	return hits
}

// Find returns the captions in a text.
func (x *Index[K]) Find(text []byte) []Hit[K] {
	t := x.NewText()
	t.scan.write(text)
	return t.End()
}

func (t *Text[K]) end() []find[K] {
	t.scan.flush()
	t.scan.at = 0
	t.search(true)
	found := t.found
	clear(t.states)
	t.count, t.waiting, t.next, t.found = 0, t.waiting[:0], math.MaxInt64, nil
	return found
}

// folded reads a word that is folded.
func (t *Text[K]) folded(letters string) {
	w := newWord(letters)
	t.word(&w)
}

// word takes the next word of the text.
func (t *Text[K]) word(w *word) {
	if t.x.kept == 0 {
		return
	}
	id := t.x.lookUp(w)
	t.remember(w, id)
	for _, a := range t.x.vocab[id].anchors { // 0 has none
		t.anchored(a)
	}
	if t.count >= t.next {
		t.search(false)
	}
}

// remember keeps a word as long as a caption may be looked for in it.
func (t *Text[K]) remember(w *word, id uint32) {
	if len(t.recent) < t.x.kept && t.count == int64(len(t.recent)) {
		size := min(max(32, 2*len(t.recent)), t.x.kept)
		t.recent = append(make([]seen, 0, size), t.recent...)[:size]
		t.ids = append(make([]uint32, 0, size), t.ids...)[:size]
	}
	at := t.count & int64(len(t.recent)-1)
	t.ids[at] = id
	s := &t.recent[at]
	s.letters, s.n, s.at = w.letters, w.n, w.at
	t.count++
}

// nth returns a word that is kept, by its number from 0.
func (t *Text[K]) nth(n int64) *seen { return &t.recent[n&int64(len(t.recent)-1)] }

// anchored takes note that the last word is an anchor of a caption.
func (t *Text[K]) anchored(a anchor) {
	if t.states == nil {
		t.states = make([]state, len(t.x.captions))
	}
	s, c := &t.states[a.caption], t.x.captions[a.caption]
	if s.found {
		return
	}
	// All words that are within a window are in two blocks that follow each other.
	if block := t.count / int64(c.window); block != s.block {
		if block == s.block+1 {
			s.carry[1], s.seen[1] = s.carry[0], s.seen[0]
		} else {
			s.carry[1], s.seen[1] = 0, 0
		}
		s.block, s.carry[0], s.seen[0] = block, 0, 0
	}
	if s.seen[0]&a.bit == 0 {
		s.seen[0], s.carry[0] = s.seen[0]|a.bit, s.carry[0]+a.weight
		if s.seen[1]&a.bit != 0 {
			s.seen[1], s.carry[1] = s.seen[1]&^a.bit, s.carry[1]-a.weight
		}
	}
	switch {
	case s.carry[0]+s.carry[1] < c.trigger:
	case s.due == 0:
		s.due = t.count + int64(c.window)
		t.waiting, t.next = append(t.waiting, a.caption), min(t.next, s.due)
	default:
		s.again = t.count
	}
}

// search looks for the captions that are due, or for all that wait.
func (t *Text[K]) search(all bool) {
	waiting := t.waiting
	t.waiting, t.next = t.waiting[:0], math.MaxInt64
	for _, number := range waiting {
		s, c := &t.states[number], t.x.captions[number]
		if all || s.due <= t.count {
			t.searchFor(s, c)
		}
		if s.due > 0 {
			t.waiting, t.next = append(t.waiting, number), min(t.next, s.due)
		}
	}
}

// searchFor looks for a caption among the last words.
func (t *Text[K]) searchFor(s *state, c *caption[K]) {
	from := max(0, s.due-2*int64(c.window))
	a := t.align(c, from, c.need, c.enough)
	if a.words() > 0 && !t.closerToRival(c, from, a.words()) {
		s.found = true
		first := t.nth(from + int64(a.first))
		hit := Hit[K]{Owner: c.owner, Words: a.words(), Of: len(c.words), At: first.at, Word: from + int64(a.first)}
		t.found = append(t.found, find[K]{c, hit, int32(a.score)})
	}
	again := s.again
	s.due, s.again = 0, 0
	if again > 0 && !s.found {
		s.due = again + int64(c.window)
	}
}

// closerToRival reports whether the words from one on are as close to the caption of a post that stays, or closer:
// they have more words of that, or a larger part of it.
func (t *Text[K]) closerToRival(c *caption[K], from int64, words int) bool {
	return slices.ContainsFunc(c.rivals, func(r *caption[K]) bool {
		theirs := t.align(r, from, 1, 0).words()
		return theirs > words || theirs*len(c.words) >= words*len(r.words)
	})
}

// A match is a word of the text that equals a part of a caption.
type match struct {
	at   int // from the first word that is looked at
	part int // or -1 for none
}

// An aligned says how much of a caption some words of the text have in order: thousandths of nats below, words above.
type aligned struct {
	score int64
	first int // word of them, from the first that is looked at
}

func (a aligned) words() int { return int(a.score >> 32) }

// worse reports whether b has more, or the same within fewer words.
func (a aligned) worse(b aligned) bool {
	return a.score < b.score || a.score == b.score && a.first < b.first
}

// align returns how a caption aligns best with words of the text, from one on, that are within the caption's window;
// or nothing where they are fewer than need, or carry less than enough.
func (t *Text[K]) align(c *caption[K], from int64, need int, enough int32) (best aligned) {
	t.matches = t.matches[:0]
	for i := from; i < t.count; i++ {
		id := t.ids[i&int64(len(t.ids)-1)]
		if id == 0 || c.ids[id/64%4]&(1<<(id%64)) == 0 {
			continue
		}
		if at, found := partOf(c.parts, id); found {
			t.matches = append(t.matches, match{int(i - from), at})
		}
	}
	if !t.mayHold(c, (need+1)/2, enough/2) {
		return best
	}
	t.addMisread(c, from)
	m, need64 := t.matches, int64(need)
	for i, to := 0, 0; i < len(m); {
		for to < len(m) && m[to].at < m[i].at+c.window {
			to++
		}
		a := aligned{}
		if int64(to-i) >= max(need64, best.score>>32) {
			a = t.longest(c, m[i:to])
		}
		if a.score > best.score && a.words() >= need && int32(a.score) >= enough {
			best = a
		}
		// A window that begins one word later has at most one word more of the caption.
		step := 1
		if lacks := int(max(need64, best.score>>32+1)) - a.words(); lacks > 1 && a.words() > 0 {
			step = t.later(m, i, to, lacks, c.window)
		}
		i += step
	}
	return best
}

// later returns how many matches later a window must begin to have so many that the one from i to to has not.
func (t *Text[K]) later(m []match, i, to, lacks, window int) int {
	if to+lacks > len(m) {
		return len(m) - i // there are not so many
	}
	step := 1
	for i+step < len(m) && m[i+step].at+window <= m[to+lacks-1].at {
		step++
	}
	return step
}

// mayHold reports whether there is a window in which the matches, in any order, are as many as need, and carry
// enough.
func (t *Text[K]) mayHold(c *caption[K], need int, enough int32) bool {
	if len(t.matches) < need {
		return false
	}
	t.counts = slices.Grow(t.counts[:0], len(c.parts))[:len(c.parts)]
	clear(t.counts)
	words, carry, first := 0, int32(0), 0
	for _, m := range t.matches {
		for ; m.at-t.matches[first].at >= c.window; first++ {
			part := t.matches[first].part
			t.counts[part]--
			if int(t.counts[part]) < len(c.parts[part].at) {
				words, carry = words-1, carry-c.parts[part].weight
			}
		}
		if int(t.counts[m.part]) < len(c.parts[m.part].at) {
			words, carry = words+1, carry+c.parts[m.part].weight
		}
		t.counts[m.part]++
		if words >= need && carry >= enough {
			return true
		}
	}
	return false
}

// addMisread adds the words to the matches that equal a part of the caption but for one letter.
func (t *Text[K]) addMisread(c *caption[K], from int64) {
	exact := len(t.matches)
	next := 0
	for i := range int(t.count - from) {
		if next < exact && t.matches[next].at == i {
			next++
			continue
		}
		s := t.nth(from + int64(i))
		// A word that is known is another word, and not a misread one.
		if s.n < fuzzyFrom || s.n > maxLetters || t.ids[(from+int64(i))&int64(len(t.ids)-1)] != 0 {
			continue
		}
		for _, l := range c.long {
			if oneApart(s.letters[:s.n], l.letters) {
				t.matches = append(t.matches, match{i, l.part})
				break
			}
		}
	}
	if len(t.matches) > exact {
		slices.SortFunc(t.matches, func(m, n match) int { return m.at - n.at })
	}
}

// oneApart reports whether two words are equal but for one letter that one of them has more, or that differs.
func oneApart(a []byte, b string) bool {
	if d := len(a) - len(b); d >= utf8.UTFMax || d <= -utf8.UTFMax || a[0] != b[0] && a[len(a)-1] != b[len(b)-1] {
		return false
	}
	n := min(len(a), len(b))
	front := 0
	for front < n && a[front] == b[front] {
		front++
	}
	back := 0
	for back < n-front && a[len(a)-1-back] == b[len(b)-1-back] {
		back++
	}
	restA, restB := a[front:len(a)-back], b[front:len(b)-back]
	return utf8.RuneCount(restA) <= 1 && utf8.RuneCountInString(restB) <= 1
}

func partOf(parts []part, id uint32) (int, bool) {
	low, high := 0, len(parts)
	for low < high {
		mid := int(uint(low+high) >> 1)
		if parts[mid].id < id {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low, low < len(parts) && parts[low].id == id
}

// longest returns the longest common subsequence of a caption and matches, of those the one that carries the most.
func (t *Text[K]) longest(c *caption[K], matches []match) (all aligned) {
	n := len(c.words)
	t.best = slices.Grow(t.best[:0], n+1)[:n+1] // best[i] is that of the first i words of the caption
	clear(t.best)
	best := t.best
	for _, m := range matches {
		p := &c.parts[m.part]
		for _, at := range slices.Backward(p.at) {
			a := best[at]
			if a.score == 0 {
				a.first = m.at
			}
			a.score += 1<<32 + int64(p.weight)
			for i := int(at) + 1; i <= n && best[i].worse(a); i++ {
				best[i] = a
			}
		}
		if best[n].score > all.score { // as soon as it ends: what follows may repeat it
			all = best[n]
		}
	}
	return all
}
