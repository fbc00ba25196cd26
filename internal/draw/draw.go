// Package draw draws posts at random, and draws the same ones on every machine: whatever order the posts come in, and
// whichever others there are. Adding a post moves no other.
package draw

import (
	"bytes"
	"crypto/sha256"
)

// A Rank is the place of a post in the draw of a seed: the lowest is drawn first.
type Rank [sha256.Size]byte

// RankOf returns SHA-256 of the seed, a zero byte and the id.
func RankOf[ID ~string](seed string, id ID) Rank {
	return sha256.Sum256([]byte(seed + "\x00" + string(id)))
}

// Compare returns -1, 0 or 1, for slices.SortFunc.
func (r Rank) Compare(other Rank) int { return bytes.Compare(r[:], other[:]) }
