package auditlog

import (
	"cmp"
	"maps"
	"time"

	"rehydrate/manifest"
	"rehydrate/policy"
)

// Heard has what audits heard is gone, posts and images of posts that stay: Reddit answered them and no job since. What
// was settled or taken back stays, with the time of that.
type Heard map[manifest.PostID]HeardPost

// A HeardPost is what Reddit answered an audit of a post.
type HeardPost struct {
	State  manifest.PostState `json:"state"` // live, or held, where only images are gone
	Reason manifest.Reason    `json:"reason"`
	At     time.Time          `json:"at"`                // of the last answer
	Since  time.Time          `json:"since,omitzero"`    // of the first one that it is gone
	Images map[int]HeardImage `json:"images,omitempty"`  // of a post that stays, those that were removed from it
	CutOff bool               `json:"cut_off,omitempty"` // only audits said so that did not ask about every post
	// Later says that no job since could take the images out: state.db does not have their entries.
	Later bool `json:"later,omitempty"`

	back     map[int]HeardImage // what was taken back with the post
	backWith string             // by the audit with this statement, which may say anew that some of these are gone
}

// A HeardImage is what Reddit answered an audit of an image that was removed from a post that stays.
type HeardImage struct {
	Reason manifest.Reason `json:"reason"`
	Since  time.Time       `json:"since"` // of the first such answer
}

// Add takes the next record of a log. What an audit heard holds until a job settles it, or is answered something else.
func (n Heard) Add(e Event) {
	if e.Kind == Audit {
		n.Hear(e, e.Time)
		return
	}
	for _, p := range e.Posts {
		_, heard := n[p.ID]
		held := (e.Kind == Withheld || e.Kind == Confirmed) && !policy.LeftPost(p.Reason) // not an image: the post stays
		switch {
		case !heard: // most posts
		case e.Kind == Buried, held: // with its time: a note that is older must not say it again
			n[p.ID] = HeardPost{At: e.Time}
		case e.Kind == Verdicts && p.State != manifest.StateUnknown && !p.State.Gone():
			n[p.ID] = HeardPost{State: p.State, At: e.Time}
		}
	}
}

// Hear takes the record of an audit in which Reddit answered at a time. What it says of a post stands in the place of
// what earlier ones said of it and its images.
func (n Heard) Hear(e Event, at time.Time) {
	at = at.UTC().Truncate(time.Second)
	for _, p := range e.Posts {
		was := n[p.ID]
		said := was // before this audit
		if was.back != nil && was.backWith == e.SHA256 {
			said.Images = was.back
		}
		h := HeardPost{State: p.State, At: at}
		switch {
		case p.State.Gone():
			h.Reason, h.Since = p.Reason, at
			if was.State.Gone() {
				h.Since = cmp.Or(was.Since, was.At)
			}
		case policy.LeftPost(p.Reason):
			h.Images, h.back, h.backWith = map[int]HeardImage{}, was.back, was.backWith
			maps.Copy(h.Images, was.Images)
			first := cmp.Or(h.Images[e.Image].Since, said.Images[e.Image].Since)
			h.Images[e.Image] = HeardImage{p.Reason, cmp.Or(first, at)}
		default:
			h.back, h.backWith = was.Images, e.SHA256
		}
		h.CutOff = e.CutOff && (was.CutOff || !said.saysAsMuch(h))
		n[p.ID] = h
	}
}

// Update takes over what a log says, but for posts of which there is a later answer, and drops what is heard no more.
func (n Heard) Update(log Heard) {
	for id, h := range log {
		if was, known := n[id]; !known || !was.At.After(h.At) {
			n[id] = h
		}
	}
	n.DropBack()
}

// DropBack drops what was settled or taken back.
func (n Heard) DropBack() {
	maps.DeleteFunc(n, func(_ manifest.PostID, h HeardPost) bool { return !h.State.Gone() && len(h.Images) == 0 })
}

// saysAsMuch reports whether a post, or all images of it, that are gone by after were so before.
func (h HeardPost) saysAsMuch(after HeardPost) bool {
	if after.State.Gone() {
		return h.State.Gone()
	}
	for image := range after.Images {
		if _, was := h.Images[image]; !was {
			return false
		}
	}
	return true
}
