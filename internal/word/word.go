// Package word has the words that OCR reads: one type for the reading, the database, the language filter and the
// near-duplicate rule, and another for the engine's answer. It promises that the JSON of both stays as it is: a Word is
// stored in a workspace, and a Raw is sent over the pipe between worker and supervisor.
package word

import (
	"image"
	"strings"
)

// A Word is one word of a reading. Its box is in pixels of the upright image that was read.
type Word struct {
	Text       string
	Confidence float64 // 0 to 100
	X, Y, W, H int     // the box: its upper left corner, its width and its height
	Line       int     // the line of the reading order, from 0
	Accepted   bool    // certain enough to be in the text of the reading
	Repair     Repair  `json:",omitempty"`
	// Readings are what the engine read at the place of a repaired word, each text once. They are not stored: names are
	// masked in Text alone.
	Readings []string `json:"-"`
}

// A Repair says how the text of a word came to be if no single reading gave it as it is. None has a letter that the
// engine read nowhere at its place, but an I for an upright stroke or for the L of LAM.
type Repair string

const (
	Mended Repair = "mended" // cut in two, an I for a stroke, or put in the place of a worse reading
	Filled Repair = "filled" // put where the best reading of the line has no certain word
)

// Box returns the box as a rectangle.
func (w Word) Box() image.Rectangle {
	return image.Rectangle{Min: image.Pt(w.X, w.Y), Max: image.Pt(w.X+w.W, w.Y+w.H)}
}

// Join returns the text that the accepted words make up, in their order: a space between words of one line, \n between
// lines. confidence is the mean of the accepted words. Without any, the text is "" and the confidence 0.
func Join(words []Word) (text string, confidence float64) {
	var b strings.Builder
	accepted, sum, line := 0, 0.0, 0
	for _, w := range words {
		if !w.Accepted {
			continue
		}
		switch {
		case accepted == 0:
		case w.Line == line:
			b.WriteByte(' ')
		default:
			b.WriteByte('\n')
		}
		b.WriteString(w.Text)
		accepted, sum, line = accepted+1, sum+w.Confidence, w.Line
	}
	if accepted == 0 {
		return "", 0
	}
	return b.String(), sum / float64(accepted)
}

// A Raw is one word as an engine gives it. It is not a Word: its box is in pixels of the picture that the engine got,
// which may be a strip of one line, and Block, Par and Line number the engine's own layout of that picture. Two words
// have all three in common exactly if they are on one line.
type Raw struct {
	Text             string
	Confidence       float64 // 0 to 100
	Box              image.Rectangle
	Block, Par, Line int
}
