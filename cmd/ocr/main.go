// Command ocr reads the text of images with Tesseract. It is also the worker that
// rehydrate starts, and the only program of the project that uses cgo.
//
//	ocr FILE...      print the text of images
//	ocr worker       answer a supervisor on stdin and stdout
//	ocr conform      check whether a program can be such a worker
//
// `ocr FILE...` decodes the files itself, within the default policy's limits, and reads
// them with workers of its own: a file that brings Tesseract down costs that file.
// It contacts nothing, and writes only what --hocr=DIR, --parquet and --draw name.
package main

import (
	"context"
	"os"
	"os/signal"

	"rehydrate/internal/ending"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), ending.Signals()...)
	status := run(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}
