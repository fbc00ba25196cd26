package ocr

import (
	"fmt"
	"image"
	"strings"
)

// A pass is one look at the image: which plane, how filtered, how large, and with
// which page segmentation mode Tesseract reads it (3 automatic, 11 sparse text).
type pass struct {
	plane      string // "Y" or "M"
	filter     string // "white", "dark" or ""
	from, to   int    // of the filter
	components bool   // component filter after it
	long       int    // pixels of the longer side
	psm        int
}

// The passes. Measured on 549 real memes that were not tuned on: P1 alone reads 72 %
// of the words, with P2 82 %, with P3 and P4 87 % at a precision of 90 %; plain
// Tesseract on the whole image reads 64 %. P4 runs only where the first three read
// fewer than sparseBelow letters and digits.
var (
	firstPasses = [...]pass{
		{plane: "Y", filter: "white", from: 180, to: 250, long: 550, psm: 3},
		{plane: "Y", filter: "dark", from: 20, to: 140, long: 700, psm: 3},
		{plane: "M", filter: "white", from: 180, to: 250, components: true, long: 700, psm: 3},
	}
	sparsePass = pass{plane: "Y", long: 1000, psm: 11}
)

const sparseBelow = 12

// methodVersion changes whenever the passes change in a way their constants do not
// show.
//
//	1: first version
const methodVersion = 1

// render makes the image a pass reads.
func (p planes) render(s pass) *image.Gray {
	plane := p.luma
	if s.plane == "M" {
		plane = p.minimum
	}
	g := scale(plane, s.long)
	switch s.filter {
	case "white":
		softWhite(g, s.from, s.to)
	case "dark":
		softDark(g, s.from, s.to)
	}
	if s.components {
		filterComponents(g)
	}
	return g
}

func (s pass) String() string {
	var b strings.Builder
	b.WriteString(s.plane)
	if s.filter != "" {
		fmt.Fprintf(&b, " soft %s %d-%d", s.filter, s.from, s.to)
	}
	if s.components {
		b.WriteString(" components")
	}
	fmt.Fprintf(&b, " @%d psm %d", s.long, s.psm)
	return b.String()
}

// parameters describes every constant between pixels and text, for the dataset's
// provenance and the fingerprint.
func parameters() string {
	var b strings.Builder
	fmt.Fprintf(&b, "method %d", methodVersion)
	for i, s := range firstPasses {
		fmt.Fprintf(&b, "; P%d %v", i+1, s)
	}
	fmt.Fprintf(&b, "; P%d below %d letters %v", len(firstPasses)+1, sparseBelow, sparsePass)
	fmt.Fprintf(&b, "; minimum from %d; enlarge at most %d", minFrom, maxEnlarge)
	fmt.Fprintf(&b, "; components ink %d high %d%% wide %d%% speck %d/1000",
		componentDark, componentHighPct, componentWidePct, componentSpeckMill)
	fmt.Fprintf(&b, "; merge floor %d overlap %d%% length^%v", mergeFloor, mergeOverlapPct, mergeLengthPower)
	fmt.Fprintf(&b, "; accept %d; line %d%%", AcceptConfidence, sameLinePct)
	return b.String()
}
