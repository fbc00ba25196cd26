package auditlog

import (
	"cmp"
	"maps"
	"slices"

	"rehydrate/manifest"
)

// Suspects has the pictures that may stand in for what a host does not have, by the SHA-256 of the file that came.
type Suspects map[string]Suspect

// A Suspect says how often a picture came, at most.
type Suspect struct {
	URLs     int `json:"urls,omitempty"`     // that it is stored from at the same time, of live posts
	Replaced int `json:"replaced,omitempty"` // places from which it came instead of stored images
	// Before are the rows that had it before it first came so: it is their own.
	Before []string `json:"before,omitempty"`
	Named  bool     `json:"named,omitempty"` // a policy named it as one
}

// Verdicts of a Suspected record.
const (
	ManyURLs      = "urls"    // Size of them have the picture
	InsteadOfRows = "instead" // it came in place of Size stored images; of Posts, each with Image, it was before
	ByPolicy      = "named"   // the policy names it
)

// Came reports whether it came n times, and that is enough.
func (s Suspect) Came(n int) bool { return n > 0 && (s.URLs >= n || s.Replaced >= n) }

// With adds what is known later.
func (s Suspect) With(later Suspect) Suspect {
	if s.Replaced == 0 {
		s.Before = later.Before
	}
	return Suspect{max(s.URLs, later.URLs), max(s.Replaced, later.Replaced), s.Before, s.Named || later.Named}
}

// Update adds what is known later, and returns the digests of which that is more.
func (s Suspects) Update(later Suspects) (more []string) {
	for _, digest := range slices.Sorted(maps.Keys(later)) {
		was := s[digest]
		is := was.With(later[digest])
		if is.URLs != was.URLs || is.Replaced != was.Replaced || is.Named != was.Named {
			s[digest], more = is, append(more, digest)
		}
	}
	return more
}

// Events are the records of a picture.
func (s Suspect) Events(digest string) (all []Event) {
	if s.URLs > 0 {
		all = append(all, Event{Kind: Suspected, Verdict: ManyURLs, Original: digest, Size: int64(s.URLs)})
	}
	if s.Named {
		all = append(all, Event{Kind: Suspected, Verdict: ByPolicy, Original: digest})
	}
	if s.Replaced == 0 {
		return all
	}
	e := Event{Kind: Suspected, Verdict: InsteadOfRows, Original: digest, Size: int64(s.Replaced)}
	all = append(all, e)
	byImage := map[int][]Post{}
	for _, row := range s.Before {
		if k, err := manifest.ParseKey(row); err == nil {
			byImage[k.Image] = append(byImage[k.Image], Post{ID: k.ID})
		}
	}
	for _, image := range slices.Sorted(maps.Keys(byImage)) {
		slices.SortFunc(byImage[image], func(p, q Post) int { return cmp.Compare(p.ID, q.ID) })
		for some := range slices.Chunk(byImage[image], MaxPosts) {
			e.Image, e.Posts = image, some
			all = append(all, e)
		}
	}
	return all
}

// Add takes the next record of a log.
func (s Suspects) Add(e Event) {
	if e.Kind != Suspected {
		return
	}
	was, n := s[e.Original], int(e.Size)
	switch e.Verdict {
	case ManyURLs:
		was.URLs = max(was.URLs, n)
	case ByPolicy:
		was.Named = true
	case InsteadOfRows:
		was.Replaced = max(was.Replaced, n)
		for _, p := range e.Posts { // of the first records alone: who has it later is not among them
			row := manifest.Key{ID: p.ID, Image: e.Image}.String()
			if !slices.Contains(was.Before, row) {
				was.Before = append(was.Before, row)
			}
		}
	}
	s[e.Original] = was
}
