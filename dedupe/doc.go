// Package dedupe decides which images of a release are near-duplicates of earlier
// ones: the same image with fewer than Rule.Words words of difference.
//
// It owns the perceptual hash (hash.go), the tokens of a text and their distance
// (text.go), the exact search for all pairs of hashes within a radius (join.go) and
// the choice of what stays (keep.go). KeepFirst is the whole stage:
//
//	collapse items that no rule can tell apart
//	for every pair of hashes within the radius, on all cores:
//	        if the texts are near: an edge
//	in the given order: keep an item unless a kept, earlier item is its neighbour
//
// Promises: the search loses no pair and reports none twice; the same items give the
// same decisions whatever GOMAXPROCS is; every dropped item names the earliest kept
// item that it is near; no two kept items are near each other; items added at the end
// change no earlier decision. Everything here is pure: no clock, no files, no network.
//
// # Limitations
//
// Nearness is not transitive, so the kept set depends on the order of the items; give
// them in manifest order. EXIF orientation is not applied: a picture and its rotated
// copy are not near. Of an animation, the caller's first frame is the picture. Hashes
// of one picture can differ by a bit or two between Go releases, because the decoders
// do, and between processors that fuse multiplications and those that do not.
// Memory grows with the pairs that are near in image and text: many thousands of
// copies of one picture under texts of one or two words each are near pairwise.
package dedupe
