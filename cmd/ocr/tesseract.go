package main

// #cgo LDFLAGS: -ltesseract -lleptonica
// #include <stdlib.h>
// #include <tesseract/capi.h>
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
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/otiai10/gosseract/v2"

	"rehydrate/internal/word"
	"rehydrate/pipeline/ocr"
)

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

// handle is the engine inside gosseract's client, which makes, sets up and closes it. gosseract takes pictures as
// files, which Leptonica reads byte by byte, and frees none of the words that it returns.
func handle(client *gosseract.Client) *C.TessBaseAPI {
	return (*C.TessBaseAPI)(reflect.ValueOf(client).Elem().FieldByName("api").UnsafePointer())
}

// resolution in dots per inch is what Tesseract takes for credible; pixels have none.
const resolution = 70

// readPixels reads a picture with the engine as it is set up.
func readPixels(api *C.TessBaseAPI, g *image.Gray) ([]word.Raw, error) {
	size := g.Rect.Size()
	C.TessBaseAPISetImage(api, (*C.uchar)(unsafe.Pointer(&g.Pix[0])), C.int(size.X), C.int(size.Y), 1, C.int(g.Stride))
	C.TessBaseAPISetSourceResolution(api, resolution)
	if C.TessBaseAPIRecognize(api, nil) != 0 {
		return nil, errors.New("recognise: Tesseract gives no reason")
	}
	it := C.TessBaseAPIGetIterator(api)
	if it == nil {
		return nil, nil
	}
	defer C.TessResultIteratorDelete(it)
	page := C.TessResultIteratorGetPageIterator(it)
	var words []word.Raw
	block, par, line := 0, 0, 0
	for more := C.int(1); more != 0; more = C.TessResultIteratorNext(it, C.RIL_WORD) {
		if C.TessPageIteratorIsAtBeginningOf(page, C.RIL_BLOCK) != 0 {
			block++
		}
		if C.TessPageIteratorIsAtBeginningOf(page, C.RIL_PARA) != 0 {
			par++
		}
		if C.TessPageIteratorIsAtBeginningOf(page, C.RIL_TEXTLINE) != 0 {
			line++
		}
		text := C.TessResultIteratorGetUTF8Text(it, C.RIL_WORD)
		if text == nil {
			continue // a block without words
		}
		var left, top, right, bottom C.int
		C.TessPageIteratorBoundingBox(page, C.RIL_WORD, &left, &top, &right, &bottom)
		words = append(words, word.Raw{Text: C.GoString(text),
			Confidence: float64(C.TessResultIteratorConfidence(it, C.RIL_WORD)),
			Box:        image.Rect(int(left), int(top), int(right), int(bottom)), Block: block, Par: par, Line: line})
		C.TessDeleteText(text)
	}
	return words, nil
}
