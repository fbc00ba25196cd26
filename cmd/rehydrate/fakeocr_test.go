package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"rehydrate/internal/word"
	"rehydrate/pipeline/ocr"
	"rehydrate/pipeline/redditemu"
)

// The fake ocr program is the test binary under the name "ocr", which testscript puts on PATH. It reads the
// pictures of sketch in no time and always alike: a picture carries the number of its caption in its shape.
const (
	sketchWidth = 64
	sketchStep  = 6
)

// Numbers of captions that tests ask for by what they say.
const (
	german     = 4
	withHandle = 9
	spanish    = 10
)

// captions are the texts of sketches by number. A word that ends in ? is read with a low confidence.
var captions = []string{
	"WHEN THE MONDAY MEETING COULD HAVE BEEN AN EMAIL",
	"MY CAT HAS OPINIONS ABOUT EVERY CHOICE THAT I MAKE",
	"NOBODY IN THIS OFFICE EXPECTED THE THUNDERSTORM",
	"",
	"NIEMAND HAT DAS IN DIESEM JAHR JEMALS ERWARTET UND ICH AUCH NICHT",
	"ASK @meme_lord OR MAIL joe.bloggs@example.com ABOUT THE PARTY TONIGHT",
	"XQZ? VVKR? PPTL? QWRT? ZZXC?",
	"WHEN THE MONDAY MEETING COULD HAVE BEEN A LETTER",
	"THE PHOTOGRAPH OF MY GRANDMOTHER EATING MARSHMALLOWS",
	"ASKING u/somebody FOR HELP WHEN THE HOMEWORK IS DUE TOMORROW",
	"CUANDO TU JEFE TE PREGUNTA POR LOS INFORMES DE AYER POR LA NOCHE",
}

// firstOwn is the first caption with words that no other has; they stand in one line.
var firstOwn = len(captions)

func init() { // the first words of captions[firstOwn:]; the chaos tests know the fourth
	for word := range strings.FieldsSeq(`hippopotamus refrigerator archaeologist constellation rhododendron thunderstorm saxophonist
		xylophone mathematician kindergarten orchestra dictionary caterpillar accountant elevator pineapple neighbour professor
		dinosaur submarine volcano penguin lighthouse crocodile umbrella astronaut plumber cathedral scarecrow toothbrush`) {
		captions = append(captions,
			strings.ToUpper(word)+" MADE THE WHOLE OFFICE LAUGH ABOUT OUR NEW MANAGER AND HER "+strings.ToUpper(word))
	}
}

var fakeEngine = ocr.Engine{Tesseract: "5.0-fake", Leptonica: "1.0-fake", Gosseract: "v0.0.0", Model: "fake",
	ModelSHA256: "00", Parameters: "fake"}

func fakeRecognize(g *image.Gray, m ocr.Mode) ([]word.Raw, error) {
	if m.PSM == 7 { // a line that the blocks of a sketch look like: only the whole picture has its shape
		return nil, nil
	}
	width, height := g.Rect.Dx(), g.Rect.Dy()
	n := (height*sketchWidth/width - sketchWidth + sketchStep/2) / sketchStep
	if n < 0 || n >= len(captions) {
		return nil, nil
	}
	var words []word.Raw
	for i, text := range strings.Fields(captions[n]) {
		confidence := 96.0
		if cut, low := strings.CutSuffix(text, "?"); low {
			text, confidence = cut, 31
		}
		line, left, right := i, width/8, width/2
		if n >= firstOwn {
			line, left, right = i/4, width*(i%4)/4, width*(i%4+1)/4-width/32
		}
		top := height * (2*line + 1) / 32
		words = append(words, word.Raw{Text: text, Confidence: confidence, Line: line,
			Box: image.Rect(left, top, right, top+height/32)})
	}
	return words, nil
}

// serveFakeOCR is the main function of the fake ocr program.
func serveFakeOCR() {
	if len(os.Args) > 1 && os.Args[1] == "doctor" {
		fmt.Println(`{"checks": [{"name": "engine", "ok": true, "found": "fake"}]}`)
		return
	}
	if err := ocr.Serve(os.Stdin, os.Stdout, fakeEngine, fakeRecognize); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// fakeOCRPath is where the fake ocr program lies.
func fakeOCRPath(t testing.TB) string {
	t.Helper()
	name, err := exec.LookPath("ocr")
	check(t, err)
	return name
}

// sketch draws a picture with the caption of a number: seed decides what else is on it, shade and format (jpg, png,
// gif) make near-duplicates.
func sketch(caption int, seed uint64, shade uint8, format string) redditemu.Image {
	rng := rand.New(rand.NewPCG(seed, 0x6368616f73))
	var grid [8][16]color.NRGBA
	for x := range grid {
		for y := range grid[x] {
			grid[x][y] = color.NRGBA{uint8(rng.IntN(240)) + shade, uint8(rng.IntN(240)) + shade,
				uint8(rng.IntN(240)) + shade, 255}
		}
	}
	img := image.NewNRGBA(image.Rect(0, 0, sketchWidth, sketchWidth+caption*sketchStep))
	for y := range img.Rect.Dy() {
		for x := range sketchWidth {
			img.SetNRGBA(x, y, grid[x/8][y/8%16])
		}
	}
	var b bytes.Buffer // takes everything: no encoder fails
	switch format {
	case "jpg":
		_ = jpeg.Encode(&b, img, &jpeg.Options{Quality: 90})
	case "gif":
		_ = gif.Encode(&b, img, nil)
	default:
		_ = png.Encode(&b, img)
	}
	return redditemu.Image{Body: b.Bytes(), Ext: format}
}
