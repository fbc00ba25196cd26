// Package dedupe decides which images of a release are near-duplicates of earlier ones: the same image with fewer
// than Rule.Words words of difference. It owns the perceptual hash, the tokens of a text and their distance, the exact
// search for near pairs, and the rules of what is near. KeepFirst is the whole stage: decide.go tells how it decides,
// search.go how pairs are found and that none is lost.
//
// Promises: no near pair is overlooked; memory is linear in the items, however many of them are near; the same items
// give the same decisions whatever GOMAXPROCS is; every dropped item names the earliest kept item that it is near; no
// two kept items are near each other; items added at the end change no earlier decision. No clock, files or network.
//
// Nearness is not transitive, so the kept set depends on the order of the items; give them in manifest order. EXIF
// orientation is not applied. Hashes of one picture can differ by a bit or two between Go releases, because the
// decoders do, and between processors that fuse multiplications and those that do not. k pictures without text that
// share a hash, no two of them near, cost k*k/2 comparisons of 20 nanoseconds; so do k memes on one template that share
// their rarest words.
package dedupe
