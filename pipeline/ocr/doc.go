// Package ocr reads the text of images with Tesseract, which it keeps in child
// processes: a C call can be neither cancelled nor survived, a process can be killed.
//
// It owns the protocol between supervisor and worker, the supervisor (Pool), and everything around the recognition
// call. The call is made by cmd/ocr, the only cgo program.
//
// For each image, on one worker:
//
//	planes: luma and the smallest channel, scaled; six ramps that make text black on white
//	shapes: the components of ink; lines: rows of shapes like letters, slanted ones in planes turned level
//	queue: the most promising lines first, each cut out as a strip, many in one request; what is
//	    read for certain is not read again
//	mend and merge the words; with too few letters: lines that are
//	    brighter or darker than what is around them, then the whole picture, merge again
//	order the merged words as a person reads them; accept those that are certain enough
//
// # Promises
//
//   - One image costs one image. A worker that crashes, hangs, outgrows its memory or
//     sends nonsense is killed and replaced; what it was reading is read once more on a
//     fresh worker where that can help, and then given up with a *Failure. No other
//     image notices.
//   - Time is bounded: an image has Config.Timeout on its worker, a worker has half a
//     minute to start, and a cancelled context kills at once.
//   - The same pixels give the same words, whichever worker reads them, in whatever
//     order and beside whatever others. All pixel arithmetic is in integers.
//   - No worker outlives the pool, nor the process that holds it.
//   - A worker sees pixels and what loading Tesseract needs: no path, no URL, no fetched bytes, no credentials.
//
// # Limitations
//
// Decoding and its limits happen before (package policy). A second CPU type was never
// compared: Tesseract picks its vector code by CPU. The memory watch samples, so a
// worker can pass its limit for some milliseconds; RLIMIT_AS is the hard wall behind
// it. Memory watch, RLIMIT_AS and the parent-death signal exist on Linux only;
// elsewhere deadline and end of stdin remain.
package ocr
