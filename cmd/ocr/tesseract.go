package main

// #cgo LDFLAGS: -ltesseract -lleptonica
// #include <tesseract/capi.h>
import "C"

import (
	"errors"
	"image"
	"reflect"
	"unsafe"

	"github.com/otiai10/gosseract/v2"

	"rehydrate/internal/word"
)

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
