// Package fakeocr is an ocr program for tests, which reads pictures of its own in no time and always alike: a picture
// carries the number of its caption in its shape. Each run starts the program of the folder ocr, some once for each
// processor: the program of the tests, which can be it too, takes ten times as long to start.
package fakeocr

import (
	"fmt"
	"image"
	"os"
	"strings"

	"rehydrate/internal/word"
	"rehydrate/pipeline/ocr"
)

// A picture with the caption n is Step * n pixels higher than it is wide, where it is Width wide.
const (
	Width = 64
	Step  = 6
)

// Captions are the texts of pictures by number. A word that ends in ? is read with a low confidence.
var Captions = []string{
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

// FirstOwn is the first caption with words that no other has; they stand in one line.
var FirstOwn = len(Captions)

func init() { // the first words of Captions[FirstOwn:]; the chaos tests know the fourth
	for word := range strings.FieldsSeq(`hippopotamus refrigerator archaeologist constellation rhododendron thunderstorm saxophonist
		xylophone mathematician kindergarten orchestra dictionary caterpillar accountant elevator pineapple neighbour professor
		dinosaur submarine volcano penguin lighthouse crocodile umbrella astronaut plumber cathedral scarecrow toothbrush`) {
		Captions = append(Captions,
			strings.ToUpper(word)+" MADE THE WHOLE OFFICE LAUGH ABOUT OUR NEW MANAGER AND HER "+strings.ToUpper(word))
	}
}

var engine = ocr.Engine{Tesseract: "5.0-fake", Leptonica: "1.0-fake", Gosseract: "v0.0.0", Model: "fake",
	ModelSHA256: "00", Parameters: "fake"}

func recognize(g *image.Gray, m ocr.Mode) ([]word.Raw, error) {
	if m.PSM == 7 { // a line that the blocks of such a picture look like: only the whole picture has its shape
		return nil, nil
	}
	width, height := g.Rect.Dx(), g.Rect.Dy()
	n := (height*Width/width - Width + Step/2) / Step
	if n < 0 || n >= len(Captions) {
		return nil, nil
	}
	var words []word.Raw
	for i, text := range strings.Fields(Captions[n]) {
		confidence := 96.0
		if cut, low := strings.CutSuffix(text, "?"); low {
			text, confidence = cut, 31
		}
		line, left, right := i, width/8, width/2
		if n >= FirstOwn {
			line, left, right = i/4, width*(i%4)/4, width*(i%4+1)/4-width/32
		}
		top := height * (2*line + 1) / 32
		words = append(words, word.Raw{Text: text, Confidence: confidence, Line: line,
			Box: image.Rect(left, top, right, top+height/32)})
	}
	return words, nil
}

// Main is the main function of the program.
func Main() {
	if len(os.Args) > 1 && os.Args[1] == "doctor" {
		fmt.Println(`{"checks": [{"name": "engine", "ok": true, "found": "fake"}]}`)
		return
	}
	if err := ocr.Serve(os.Stdin, os.Stdout, engine, recognize); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
