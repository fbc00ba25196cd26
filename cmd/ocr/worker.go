package main

// #cgo LDFLAGS: -lleptonica
// #include <stdlib.h>
// #include <unistd.h>
//
// // Of leptonica/allheaders.h, which would pull in a thousand declarations.
// extern char *getLeptonicaVersion(void);
import "C"

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"github.com/otiai10/gosseract/v2"

	"rehydrate/internal/word"
	"rehydrate/pipeline/ocr"
)

// serve is the worker: one Tesseract client in one process.
func serve(env []string, stdin io.Reader, stdout io.Writer) (err error) {
	if !slices.Contains(env, "OMP_THREAD_LIMIT=1") {
		return usage("", "the worker needs OMP_THREAD_LIMIT=1 in its environment before it starts: "+
			"without it Tesseract's threads slow it down two to seven times")
	}
	// A signal ends the worker at once: it has nothing to tidy up, and a read of stdin cannot be interrupted.
	signal.Reset(os.Interrupt, syscall.SIGTERM)
	frames, err := reserveStdout(stdout)
	if err != nil {
		return err
	}
	r, _, err := startEngine(env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return ocr.Serve(stdin, frames, r.engine, r.recognize)
}

// startEngine loads the model, then confines this process. The caller closes the engine.
func startEngine(env []string) (*tesseract, confinement, error) {
	dir, err := tessdataDir(env)
	if err != nil {
		return nil, confinement{}, err
	}
	// One client alone: gosseract's Init moves the process's stderr about.
	r, err := newTesseract(dir)
	if err != nil {
		return nil, confinement{}, err
	}
	// The model is loaded: from here on only pipes are used.
	did, err := confine(dir)
	if err != nil {
		return nil, did, errors.Join(err, r.Close())
	}
	return r, did, nil
}

// reserveStdout moves the process's stdout away and lets file descriptor 1 mean stderr. Any other writer is returned as
// it is.
func reserveStdout(stdout io.Writer) (io.Writer, error) {
	// A stray printf in C must not get between the messages.
	if stdout != io.Writer(os.Stdout) {
		return stdout, nil
	}
	fd, err := C.dup(1)
	if err != nil {
		return nil, fmt.Errorf("duplicate stdout: %w", err)
	}
	if _, err := C.dup2(2, 1); err != nil {
		return nil, fmt.Errorf("point stdout to stderr: %w", err)
	}
	return os.NewFile(uintptr(fd), "frames"), nil
}

const model = "eng"

// maxTessdataPath keeps Tesseract's complaints about a model short: gosseract gives
// them a buffer of 512 bytes that it says is larger.
const maxTessdataPath = 160

// tessdataDir finds the folder of the model: TESSDATA_PREFIX, else the first usual place with it.
func tessdataDir(env []string) (string, error) {
	// Tesseract never searches itself: the digest must be that of the file that it loads.
	dirs := []string{
		"/usr/share/tesseract-ocr/5/tessdata",
		"/usr/share/tessdata",
		"/usr/share/tesseract/tessdata",
		"/usr/local/share/tessdata",
		"/opt/homebrew/share/tessdata",
		"/opt/local/share/tessdata",
	}
	for _, pair := range env {
		if prefix, ok := strings.CutPrefix(pair, "TESSDATA_PREFIX="); ok && prefix != "" {
			dirs = []string{prefix} // the last one counts, as in exec
		}
	}
	for _, dir := range dirs {
		if len(dir) > maxTessdataPath {
			return "", fmt.Errorf("tessdata folder %.40s...: the path is longer than %d bytes", dir, maxTessdataPath)
		}
		if info, err := os.Stat(modelFile(dir)); err == nil && info.Mode().IsRegular() {
			return dir, nil
		}
	}
	return "", fmt.Errorf("no %s.traineddata in %s", model, strings.Join(dirs, ", "))
}

func modelFile(dir string) string { return filepath.Join(dir, model+".traineddata") }

// The variables that are set. gosseract drops a name that Tesseract does not know without
// a word, so tests see that these work.
const (
	pageSegMode = gosseract.SettableVariable("tessedit_pageseg_mode")
	doInvert    = gosseract.SettableVariable("tessedit_do_invert")
)

// tesseract is what the worker reads with.
type tesseract struct {
	client *gosseract.Client
	engine ocr.Engine
	mode   ocr.Mode // as set
}

// newTesseract loads the model of dir. The caller closes it.
func newTesseract(dir string) (*tesseract, error) {
	digest, err := fileDigest(modelFile(dir))
	if err != nil {
		return nil, err
	}
	client := gosseract.NewClient()
	t := &tesseract{client: client, engine: ocr.Engine{
		Tesseract:   client.Version(),
		Leptonica:   leptonicaVersion(),
		Gosseract:   gosseractVersion(),
		Model:       model,
		ModelSHA256: digest,
		Parameters:  "grey pixels, word boxes",
	}}
	// gosseract loads the model with its first image: whatever is wrong must show before the hello.
	err = errors.Join(client.SetTessdataPrefix(dir), client.SetImageFromBytes([]byte("P5 1 1 255\n\xff")))
	if err == nil {
		_, err = client.Text()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("load %s: %w", modelFile(dir), err), t.Close())
	}
	return t, nil
}

func (t *tesseract) Close() error { return t.client.Close() }

// recognize reads one picture.
func (t *tesseract) recognize(gray *image.Gray, m ocr.Mode) ([]word.Raw, error) {
	// The others need another model.
	if m.PSM < 3 || m.PSM > 13 || m.PSM == 12 {
		return nil, fmt.Errorf("page segmentation mode %d: only 3 to 11 and 13 are read", m.PSM)
	}
	if m != t.mode {
		if err := t.set(m); err != nil {
			return nil, err
		}
		t.mode = m
	}
	return readPixels(handle(t.client), gray)
}

// set tells the engine how to read what comes.
func (t *tesseract) set(m ocr.Mode) error {
	// As a variable, because gosseract loses SetPageSegMode before the first image.
	if err := t.client.SetVariable(pageSegMode, strconv.Itoa(m.PSM)); err != nil {
		return fmt.Errorf("set page segmentation mode %d: %w", m.PSM, err)
	}
	invert := "0"
	if m.Invert {
		invert = "1"
	}
	if err := t.client.SetVariable(doInvert, invert); err != nil {
		return fmt.Errorf("set inversion: %w", err)
	}
	return nil
}

func fileDigest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("open the model: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read the model %s: %w", path, err)
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// leptonicaVersion returns "1.82.0" for "leptonica-1.82.0".
func leptonicaVersion() string {
	version := C.getLeptonicaVersion()
	defer C.free(unsafe.Pointer(version))
	return strings.TrimPrefix(C.GoString(version), "leptonica-")
}

// gosseractVersion reads the module version that was linked in.
func gosseractVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	i := slices.IndexFunc(info.Deps, func(m *debug.Module) bool { return m.Path == "github.com/otiai10/gosseract/v2" })
	if i < 0 {
		return "unknown"
	}
	return cmp.Or(info.Deps[i].Replace, info.Deps[i]).Version
}
