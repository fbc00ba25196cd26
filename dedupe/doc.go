// Package dedupe decides which images of a release are near-duplicates of earlier
// ones: the same image with fewer than Rule.Words words of difference.
//
// It owns the perceptual hash (hash.go, shrink.go), the tokens of a text and their
// distance (text.go), the exact search for hashes within a radius in linear memory
// (search.go) and the rules of what is near (keep.go). KeepFirst is the whole stage, in
// the given order: keep an item unless a kept, earlier item is its neighbour.
//
// Promises: no near pair is overlooked; memory is linear in the items, however many
// of them are near; the same items give the same decisions whatever GOMAXPROCS is; every
// dropped item names the earliest kept item that it is near; no two kept items are near
// each other; items added at the end change no earlier decision. Everything here is pure:
// no clock, no files, no network.
//
// # Limitations
//
// Nearness is not transitive, so the kept set depends on the order of the items; give
// them in manifest order. EXIF orientation is not applied: a picture and its rotated
// copy are not near. Of an animation, the caller's first frame is the picture. Hashes
// of one picture can differ by a bit or two between Go releases, because the decoders
// do, and between processors that fuse multiplications and those that do not.
// Time grows with the pairs of kept items that look the same: k memes on one template,
// no two with near texts, cost k*k/2 comparisons of a nanosecond or two.
package dedupe
