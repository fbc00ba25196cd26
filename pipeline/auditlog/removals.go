package auditlog

import (
	"cmp"
	"slices"
	"time"

	"rehydrate/manifest"
	"rehydrate/policy"
)

// Removals are what a log says was removed and is not back. Whoever holds something against the log, a state.db that
// was put back or what an audit found, goes by them. Fill them with Add, in the order of the log, and where the
// digests are wanted with Learn, from the first record on again.
type Removals struct {
	Tombstones []Tombstone                                // one of each record, in their order
	Entries    map[manifest.Key]Left                      // images that were removed from posts that stay
	Images     map[manifest.PostID]map[int][]ImageDigests // of what went with its post, or out of it, the last one last

	// Fetched are those of Entries that have an image again: it need not be the one that was removed.
	Fetched map[manifest.Key]Left

	Gone map[manifest.PostID]GonePost  // posts that are gone by the last answer, which no tombstone follows
	Held map[manifest.PostID]time.Time // those of which an image is held back: when the last record says so
	Back map[manifest.PostID]BackPost  // those that were in Gone or Held, and Reddit showed since

	Heard    Heard    // by audits
	Suspects Suspects // whatever was removed

	removed map[manifest.PostID]bool                 // posts whose content was removed, or a part of it
	last    map[manifest.PostID]map[int]ImageDigests // of their images, as they were fetched last
}

// A Tombstone is one of a post, as a record has it.
type Tombstone struct {
	Post
	Since  time.Time
	Record int64
	Undone bool // a later record lifts or suspends it: whether that counts is for the release to say
}

// A GonePost is one that is gone by the last answer.
type GonePost struct {
	State     manifest.PostState
	Reason    manifest.Reason
	Since, At time.Time // of the first such answer, and of the last
	Withheld  bool      // as a mass removal, and not confirmed since
	Erased    bool      // its content went, or was to go
}

// A BackPost is what Reddit said last of a post that it showed again.
type BackPost struct {
	State  manifest.PostState
	Reason manifest.Reason
	At     time.Time
}

// A Left is an image that was removed from a post that stays.
type Left struct {
	Reason manifest.Reason
	Since  time.Time // of the first record that says so
}

// ImageDigests are those of a Fetch record: of the stored file, of the downloaded one and of the pixels.
type ImageDigests struct{ SHA256, Original, Pixels string }

// NewRemovals returns those of an empty log.
func NewRemovals() *Removals {
	return &Removals{Entries: map[manifest.Key]Left{}, Fetched: map[manifest.Key]Left{},
		Images: map[manifest.PostID]map[int][]ImageDigests{},
		Gone:   map[manifest.PostID]GonePost{}, Held: map[manifest.PostID]time.Time{}, Heard: Heard{}, Suspects: Suspects{},
		Back: map[manifest.PostID]BackPost{}, removed: map[manifest.PostID]bool{},
		last: map[manifest.PostID]map[int]ImageDigests{}}
}

// Add takes the next record.
func (r *Removals) Add(e Event) {
	r.Heard.Add(e)
	r.Suspects.Add(e)
	for _, p := range e.Posts {
		k := manifest.Key{ID: p.ID, Image: e.Image}
		switch {
		case e.Kind == Buried && p.State.Gone():
			r.Tombstones = append(r.Tombstones, Tombstone{Post: p, Since: e.Since, Record: e.Seq})
			r.removed[p.ID] = true
			delete(r.Gone, p.ID)
			delete(r.Back, p.ID)
		case e.Kind == Verdicts && !p.State.Gone():
			r.bringBack(p, e.Time)
		case e.Kind == Verdicts:
			g, known := r.Gone[p.ID]
			g.State, g.Reason, g.At = p.State, p.Reason, e.Time
			if !known || e.Time.Before(g.Since) { // a clock was ahead
				g.Since = e.Time
			}
			r.Gone[p.ID] = g
			delete(r.Back, p.ID)
		case e.Kind == Withheld && policy.LeftPost(p.Reason):
			r.Held[p.ID] = e.Time
			delete(r.Back, p.ID)
		case e.Kind == Withheld:
			r.settle(p.ID, true, false)
		case e.Kind == Confirmed && !policy.LeftPost(p.Reason):
			r.settle(p.ID, false, true)
		case e.Kind == Lifted, e.Kind == Readmitted:
			for i := range r.Tombstones {
				if r.Tombstones[i].ID == p.ID {
					r.Tombstones[i].Undone = e.Verdict != Revoked
				}
			}
		case e.Kind == Fetch: // somebody asked for it by name
			if left, was := r.Entries[k]; was {
				r.Fetched[k] = left
				delete(r.Entries, k)
			}
		case e.Kind == Erased && policy.LeftPost(manifest.Reason(e.Verdict)):
			first := cmp.Or(r.Entries[k].Since, e.Time)
			r.Entries[k] = Left{manifest.Reason(e.Verdict), first}
			r.removed[p.ID] = true
			delete(r.Held, p.ID)
		case e.Kind == Erased && e.Verdict == "":
			r.removed[p.ID] = true
			r.settle(p.ID, false, true)
		}
	}
}

// bringBack notes that Reddit did not say that a post is gone.
func (r *Removals) bringBack(p Post, at time.Time) {
	_, gone := r.Gone[p.ID]
	_, held := r.Held[p.ID]
	_, back := r.Back[p.ID]
	if (gone || held || back) && p.State != manifest.StateUnknown {
		r.Back[p.ID] = BackPost{p.State, p.Reason, at}
	}
	delete(r.Gone, p.ID)
}

// settle notes what became of a post that is gone by the last answer.
func (r *Removals) settle(id manifest.PostID, withheld, erased bool) {
	if g, gone := r.Gone[id]; gone {
		g.Withheld, g.Erased = withheld, g.Erased || erased
		r.Gone[id] = g
	}
}

// Learn takes a record for its digests, once Add has taken all.
func (r *Removals) Learn(e Event) {
	for _, p := range e.Posts {
		switch {
		case !r.removed[p.ID]: // most posts: nothing is kept of them
		case e.Kind == Fetch:
			digests := ImageDigests{e.SHA256, e.Original, e.Pixels}
			set(r.last, p.ID, e.Image, digests)
			r.forget(p.ID, e.Image, digests)
		case e.Verdict == StandIn:
			delete(r.last[p.ID], e.Image)
		default:
			for image, digests := range r.last[p.ID] {
				if e.Erases(manifest.Key{ID: p.ID, Image: image}) {
					r.forget(p.ID, image, digests)
					set(r.Images, p.ID, image, append(r.Images[p.ID][image], digests))
				}
			}
		}
	}
}

// forget takes digests out of those of erased images.
func (r *Removals) forget(id manifest.PostID, image int, digests ImageDigests) {
	all := slices.DeleteFunc(r.Images[id][image], func(d ImageDigests) bool { return d.SHA256 == digests.SHA256 })
	if r.Images[id] != nil {
		r.Images[id][image] = all
	}
}

func set[T any](m map[manifest.PostID]map[int]T, id manifest.PostID, image int, value T) {
	if m[id] == nil {
		m[id] = map[int]T{}
	}
	m[id][image] = value
}

// Erases reports whether the record says that the workspace may not have the image of an entry any more: its post got a
// tombstone, or the image went, with its post, out of it, with its line of the manifest, or as nobody's.
func (e Event) Erases(k manifest.Key) bool {
	if !slices.ContainsFunc(e.Posts, func(p Post) bool { return p.ID == k.ID }) {
		return false
	}
	alone := e.Verdict == LeftManifest || e.Verdict == StandIn ||
		slices.Contains(policy.ImageRemovals(), manifest.Reason(e.Verdict))
	return e.Kind == Buried || e.Kind == Erased && (!alone || e.Image == k.Image)
}

// OfCopy reports whether the record registers a copy, or says that a registered one is no more.
func (e Event) OfCopy() (opened, closed bool) {
	return e.Kind == Copy || e.Kind == Disclosed,
		e.Kind == CopyPurged && (e.Verdict == "told" || e.Verdict == "unfinished")
}
