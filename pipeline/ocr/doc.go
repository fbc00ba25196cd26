// Package ocr reads the text of images with Tesseract, which runs in child processes: a C call can be neither cancelled
// nor survived, but a process can be killed.
//
// It has the protocol between supervisor and worker, the supervisor (Pool), and the check that a program is a worker
// (Conform). Package layout decides what a worker is asked about an image, and makes the reading of its answers. The
// call into Tesseract is in cmd/ocr, the only cgo program, whose main loop is Serve.
//
// # Promises
//
//   - One image costs one image. A worker that crashes, hangs, outgrows its memory or
//     sends anything but the protocol is killed and replaced; its image is read once more on a
//     fresh worker if that can help, and then given up with a *Failure. No other
//     image is affected.
//   - Time is bounded: an image has Config.Timeout on its worker, a worker has half a
//     minute to start, and a cancelled context kills at once.
//   - The same pixels give the same words. They depend neither on the worker nor on the order of images.
//   - No worker outlives the pool, nor the process that holds it.
//   - A worker gets pixels and what it needs to load Tesseract: no path, no URL, no fetched bytes, no credentials.
//   - Engine.Fingerprint changes whenever the engine, its model, or anything else between pixels and text changes.
//
// # Limitations
//
// The caller decodes images and limits their size (package policy). A second CPU type was never
// compared: Tesseract picks its vector code by CPU. The memory watch samples, so a
// worker can pass its limit for some milliseconds; RLIMIT_AS is the hard limit behind
// it. Memory watch, RLIMIT_AS and the parent-death signal exist on Linux only;
// elsewhere the deadline and the end of stdin remain.
package ocr
