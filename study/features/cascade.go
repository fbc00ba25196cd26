package features

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A Cascade is a Haar cascade of stumps: stages of weak classifiers, each of which compares one sum of rectangles with
// a threshold. It must not be changed.
type Cascade struct {
	Name   string // as its file is called
	SHA256 string // of the file
	side   int    // of the window, in pixels
	stages []stage
}

type stage struct {
	threshold float32
	stumps    []stump
}

// A stump adds its left value where its feature is below the threshold, else the right one.
type stump struct {
	threshold, left, right float32
	rects                  []weighted // two or three
}

// A weighted is a rectangle of the window, and its weight in the feature.
type weighted struct {
	x, y, w, h int
	weight     float32
}

// The limits of a cascade that is read. The largest of OpenCV's own has 2.7 MB and 50 stages.
const maxCascade = 16 << 20

//go:embed data/haarcascade_frontalface_default.xml.gz
var frontalFace []byte

// FrontalFace returns OpenCV's haarcascade_frontalface_default, which the program carries with its licence.
func FrontalFace() (*Cascade, error) {
	r, err := gzip.NewReader(bytes.NewReader(frontalFace))
	if err != nil {
		return nil, err
	}
	return ReadCascade(r, "haarcascade_frontalface_default.xml")
}

// ReadCascade reads a cascade in OpenCV's XML format: boosted stumps on upright Haar features. The error says what else
// it holds, or what is damaged.
func ReadCascade(r io.Reader, name string) (*Cascade, error) {
	body, err := io.ReadAll(io.LimitReader(r, maxCascade+1))
	if err == nil && len(body) > maxCascade {
		err = fmt.Errorf("it is larger than %d MiB", maxCascade>>20)
	}
	var file struct {
		Cascade *cascadeXML `xml:"cascade"`
	}
	if err == nil {
		err = xml.Unmarshal(body, &file)
	}
	if err == nil && file.Cascade == nil {
		err = errors.New("it has no element cascade: cascades of before OpenCV 2.4 are not read")
	}
	if err != nil {
		return nil, fmt.Errorf("read the cascade %s: %w", name, err)
	}
	sum := sha256.Sum256(body)
	c := &Cascade{Name: name, SHA256: hex.EncodeToString(sum[:]), side: file.Cascade.Width}
	c.stages, err = file.Cascade.stages()
	if err != nil {
		return nil, fmt.Errorf("read the cascade %s: %w", name, err)
	}
	return c, nil
}

// A cascadeXML is the element as OpenCV's traincascade writes it. Numbers of a list stand in one text.
type cascadeXML struct {
	StageType   string `xml:"stageType"`
	FeatureType string `xml:"featureType"`
	Height      int    `xml:"height"`
	Width       int    `xml:"width"`
	Stages      []struct {
		Threshold float32 `xml:"stageThreshold"`
		Weak      []struct {
			Nodes  string `xml:"internalNodes"`
			Leaves string `xml:"leafValues"`
		} `xml:"weakClassifiers>_"`
	} `xml:"stages>_"`
	Features []struct {
		Rects  []string `xml:"rects>_"`
		Tilted int      `xml:"tilted"`
	} `xml:"features>_"`
}

func (x *cascadeXML) stages() ([]stage, error) {
	switch {
	case x.StageType != "BOOST" || x.FeatureType != "HAAR":
		return nil, fmt.Errorf("it is of the kind %q on %q: only BOOST on HAAR is read", x.StageType, x.FeatureType)
	case x.Width != x.Height || x.Width < 3 || x.Width > 100:
		return nil, fmt.Errorf("its window has %d by %d pixels: only squares of 3 to 100 are read", x.Width, x.Height)
	case len(x.Stages) == 0:
		return nil, errors.New("it has no stages")
	}
	var stages []stage
	for i, from := range x.Stages {
		s := stage{threshold: from.Threshold - 1e-5} // as OpenCV loads it
		if len(from.Weak) == 0 {
			return nil, fmt.Errorf("stage %d has no classifiers", i)
		}
		for k, weak := range from.Weak {
			one, err := x.stump(weak.Nodes, weak.Leaves)
			if err != nil {
				return nil, fmt.Errorf("classifier %d of stage %d: %w", k, i, err)
			}
			s.stumps = append(s.stumps, one)
		}
		stages = append(stages, s)
	}
	return stages, nil
}

// stump reads one classifier: the nodes are left child, right child, feature, threshold.
func (x *cascadeXML) stump(nodes, leaves string) (stump, error) {
	node, err := numbers(nodes)
	if err != nil {
		return stump{}, err
	}
	leaf, err := numbers(leaves)
	switch {
	case err != nil:
		return stump{}, err
	case len(node) != 4 || len(leaf) != 2 || node[0] != 0 || node[1] != -1:
		return stump{}, errors.New("it is a tree, and only stumps are read: take haarcascade_frontalface_default.xml")
	case node[2] < 0 || int(node[2]) >= len(x.Features):
		return stump{}, fmt.Errorf("it names feature %v of %d", node[2], len(x.Features))
	}
	feature := x.Features[int(node[2])]
	if feature.Tilted != 0 || len(feature.Rects) < 2 || len(feature.Rects) > 3 {
		return stump{}, errors.New("its feature is tilted, or has other than two or three rectangles: that is not read")
	}
	s := stump{threshold: float32(node[3]), left: float32(leaf[0]), right: float32(leaf[1])}
	for _, text := range feature.Rects {
		v, err := numbers(text)
		if err != nil || len(v) != 5 {
			return stump{}, fmt.Errorf("the rectangle %q does not have five numbers", text)
		}
		r := weighted{x: int(v[0]), y: int(v[1]), w: int(v[2]), h: int(v[3]), weight: float32(v[4])}
		if min(r.x, r.y) < 0 || min(r.w, r.h) < 1 || r.w > x.Width-r.x || r.h > x.Width-r.y {
			return stump{}, fmt.Errorf("the rectangle %q leaves the window", text)
		}
		s.rects = append(s.rects, r)
	}
	return s, nil
}

func numbers(text string) ([]float64, error) {
	var list []float64
	for field := range strings.FieldsSeq(text) {
		v, err := strconv.ParseFloat(field, 32)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number", field)
		}
		list = append(list, v)
	}
	return list, nil
}
