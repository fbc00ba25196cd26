package audit

import (
	"cmp"
	"slices"
	"strings"
)

// What stands in the row of a removed post, or has its name, is learnt as its image, and recognises copies elsewhere.
// It need not be its image: icons, logos, the picture that a host sends in place of one that is gone, and the examples
// of a prompt stand in the rows of many posts. Only what nothing speaks against is learnt. The rest is in doubt: no
// other row or file is a finding for it, and nobody is told to delete one.

// A doubt is about a picture that is said to be of a post that must be gone.
type doubt struct {
	of *known // the entry that it is said to be of; of several the first by name
	// another says that the image of each of these is known, and looks otherwise.
	another bool
	// live are entries of different posts that stay, which it is said to be of as well: all of them, or so many that it
	// is nobody's.
	live []*known
}

// ofMany is of how many posts that stay a picture is said to be that is an icon or the like, and nobody's image.
const ofMany = 3

// learn takes what is said to be of posts that must be gone for their images, or notes that it is in doubt. It returns
// what it took.
func (a *audit) learn(gone map[*sighting]*known) map[*sighting]*known {
	learnt, proved, rest := map[*sighting]*known{}, map[*sighting]*known{}, map[*sighting]*known{}
	for s, k := range gone {
		of, _ := a.imageKnown(s, nil)
		switch {
		case of != nil:
			learnt[s], proved[s] = k, of
			if of == k {
				k.looksOf(s)
			}
		case !slices.ContainsFunc(s.digests, a.gone.stays):
			rest[s] = k
		}
	}
	a.doubts = map[digest]*doubt{}
	for s, k := range rest {
		a.doubt(s, k)
	}
	for _, s := range a.sightings {
		if gone[s] == nil {
			a.claimToo(s)
		}
	}
	for s, k := range rest {
		if in := a.doubtOf(s); (in == nil || len(in.live) == 0) && !k.looksOtherwise(s) {
			learnt[s] = k
		}
	}
	for s, k := range learnt {
		a.gone.add(k, s.digests...)
		if proved[s] != k {
			k.looksOf(s)
		}
	}
	return learnt
}

// doubt notes that an image is said to be of an entry that must be gone.
func (a *audit) doubt(s *sighting, k *known) {
	another := k.looksOtherwise(s)
	for _, d := range s.digests {
		in := a.doubts[d]
		switch {
		case d == digest{}:
		case in == nil:
			a.doubts[d] = &doubt{of: k, another: another}
		default:
			in.another = in.another && another
			if k.name < in.of.name {
				in.of = k
			}
		}
	}
}

// claimToo notes that a picture which is in doubt is said to be of a post that stays, if it is.
func (a *audit) claimToo(s *sighting) {
	var mine *known
	for _, d := range s.digests {
		in := a.doubts[d]
		if in == nil || len(in.live) == ofMany {
			continue
		}
		if mine == nil {
			mine = a.claimed(s.claims(), false)
		}
		if mine != nil {
			in.add(mine)
		}
	}
}

// add adds an entry that stays, of its post the first by name.
func (in *doubt) add(k *known) {
	at, found := slices.BinarySearchFunc(in.live, k, func(x, y *known) int { return cmp.Compare(x.ID, y.ID) })
	switch {
	case !found && len(in.live) < ofMany:
		in.live = slices.Insert(in.live, at, k)
	case found && k.name < in.live[at].name:
		in.live[at] = k
	}
}

// doubtOf returns what is in doubt about an image, or nil.
func (a *audit) doubtOf(s *sighting) (all *doubt) {
	if slices.ContainsFunc(s.digests, a.gone.stays) {
		return nil
	}
	for _, d := range s.digests {
		in := a.doubts[d]
		switch {
		case in == nil:
			continue
		case all == nil:
			one := *in
			one.live = slices.Clone(in.live)
			all = &one
			continue
		case in.of.name < all.of.name:
			all.of = in.of
		}
		all.another = all.another && in.another
		for _, k := range in.live {
			all.add(k)
		}
	}
	return all
}

// open reports whether anybody has to look: not where the picture is nobody's, nor where it is not that of the removed
// post, and a post that stays has it.
func (in *doubt) open() bool {
	return in != nil && len(in.live) < ofMany && !(in.another && len(in.live) > 0)
}

// String says what the doubt is.
func (in *doubt) String() string {
	said := "said to be of " + in.of.name + ", which must be gone, "
	if len(in.live) == 0 {
		return said + "and looks otherwise than its image"
	}
	var stay []string
	for _, k := range in.live {
		stay = append(stay, k.name)
	}
	return said + "and of " + strings.Join(stay, " and ") + ": nothing that is known shows whose it is"
}

// looksOf takes the looks of an image for those of the entry's.
func (k *known) looksOf(s *sighting) {
	if len(s.hashes) > 0 {
		k.hash(s.hashes[0])
	}
}

// looksOtherwise reports whether the entry's image is known, by its digest and by its looks, and this is another one.
// Nothing is known of the looks of an animation but for its first picture; the others have no digest of a file.
func (k *known) looksOtherwise(s *sighting) bool {
	like, _ := nearest(k.looks, s.hashes)
	return k.marked && len(k.looks) > 0 && len(s.digests) > 1 && len(s.hashes) > 0 && like == nil
}
