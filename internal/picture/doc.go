// Package picture is the home of all that concerns the safety and the geometry of image files: it names their formats
// by their first bytes, decides whether a file may be decoded (Inspect), decodes it (Decode), takes out what is not
// needed to show it (Strip), turns it upright (Upright), and makes it smaller.
//
// Everything here is a function of its arguments: the same bytes give the same answer, on every machine, at any time.
// Nothing is stored or logged, and all of it is safe for concurrent use. What is allowed is the caller's to say, as
// Limits; known placeholders, outcomes and reasons to leave an image out are those of package policy.
//
// # Limitations
//
// Inspect reads headers only; a file that passes can still fail in Decode. Decode recovers from a panic of a decoder,
// but cannot stop one that is slow: the limits on bytes, pixels and JPEG scans bound the work, they do not time it. The
// estimate of decoded bytes leaves out the Huffman tables of a lossless WebP, which are small in honest files and can
// be made to take some 180 MB.
package picture
