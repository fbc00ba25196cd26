package manifest

import (
	"hash/fnv"
	"strings"

	"rehydrate/internal/keysort"
	"rehydrate/manifest/value"
)

// A placedKey is an entry's key and where it stands, in 128 bits whose order is that of id, image, file and line: 13
// signs of 6 bits, 10 bits, 12 bits and 28 bits. Its note is that of noteOf, 0 where the row is wrong.
type placedKey struct{ keysort.Key }

const (
	placeBits = 40
	lineBits  = 28
	splitBits = 16
)

func placeKey(k Key, file, line int) placedKey {
	var tail uint64 // the last three signs
	var p placedKey
	for i := range maxIDLength {
		sign := uint64(0)
		if i < len(k.ID) {
			sign = 1 + uint64(strings.IndexByte(value.Digits+value.Lower, k.ID[i]))
		}
		if i < 10 {
			p.Hi = p.Hi<<6 | sign
		} else {
			tail = tail<<6 | sign
		}
	}
	p.Hi = p.Hi<<4 | tail>>14
	p.Lo = tail<<50 | uint64(k.Image)<<placeBits | uint64(file)<<lineBits | uint64(min(line, 1<<lineBits-1))
	return p
}

// noteOf holds what the rows about one image share: the place of its split in the Summary from 1, and above it 48 bits
// of a hash of its digests.
func noteOf(e Entry, split int) uint64 {
	h := fnv.New64a()
	for _, digest := range []string{e.SHA256, e.StrippedSHA256, e.PixelsSHA256, e.PHash} {
		_, _ = h.Write([]byte(digest + ",")) // a hash takes all
	}
	return h.Sum64()<<splitBits | uint64(split+1)
}

func (p placedKey) split() int      { return int(p.Note&(1<<splitBits-1)) - 1 }
func (p placedKey) digests() uint64 { return p.Note >> splitBits }

func (p placedKey) samePost(o placedKey) bool { return p.Hi == o.Hi && p.Lo>>50 == o.Lo>>50 }

func (p placedKey) same(o placedKey) bool { return p.Hi == o.Hi && p.Lo>>placeBits == o.Lo>>placeBits }

// key gives the id and the image again.
func (p placedKey) key() (id PostID, image int) {
	head, tail := p.Hi>>4, p.Hi&15<<14|p.Lo>>50
	for i := range maxIDLength {
		sign := tail >> (6 * (12 - max(i, 10))) & 63
		if i < 10 {
			sign = head >> (6 * (9 - i)) & 63
		}
		if sign > 0 {
			id += PostID((value.Digits + value.Lower)[sign-1])
		}
	}
	return id, int(p.Lo >> placeBits & 1023)
}

func (p placedKey) file() int { return int(p.Lo >> lineBits & (1<<(placeBits-lineBits) - 1)) }
func (p placedKey) line() int { return int(p.Lo & (1<<lineBits - 1)) }
