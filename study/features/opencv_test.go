package features

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"rehydrate/internal/picture"
	"rehydrate/internal/testkit"
	"rehydrate/pipeline/redditemu"
)

// TestOpenCV compares with OpenCV 4.5.1, an npm package of WebAssembly: grey and HSV are equal on every pixel, and each
// face is seen by both, to the pixel. With REHYDRATE_PICTURES it also takes the pictures of that folder, and prints
// times.
func TestOpenCV(t *testing.T) {
	if testing.Short() {
		t.Skip("OpenCV takes seconds")
	}
	detections := []Detection{DefaultDetection(), {Scale: 1.1, Neighbors: 3}, {Scale: 1.3, Neighbors: 1, MinSize: 24}}
	type question struct {
		File       string      `json:"file"`
		Width      int         `json:"width"`
		Height     int         `json:"height"`
		Detections []Detection `json:"detections"`
	}
	dir, pictures := t.TempDir(), drawn(t)
	var questions []question
	for i, img := range pictures {
		file := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(file, img.Pix, 0o600); err != nil {
			t.Fatal(err)
		}
		questions = append(questions, question{file, img.Rect.Dx(), img.Rect.Dy(), detections})
	}
	var answers []struct {
		Grey, HSV    string
		Numbers      []float64
		Faces        [][][4]int
		Milliseconds []float64
	}
	askOpenCV(t, dir, questions, &answers)
	c, err := FrontalFace()
	if err != nil {
		t.Fatal(err)
	}
	theirs, ours := make([]float64, 1+len(detections)), make([]float64, 1+len(detections))
	seen := 0
	for i, img := range pictures {
		a, begin := answers[i], time.Now()
		numbers, grey := Picture(img)
		ours[0] += time.Since(begin).Seconds() * 1000
		sum, all := sha256.Sum256(grey.Pix), sha256.New()
		for at := 0; at < len(img.Pix); at += 4 {
			h, s, v := hsvOf(img.Pix[at], img.Pix[at+1], img.Pix[at+2])
			all.Write([]byte{h, s, v})
		}
		if hex.EncodeToString(sum[:]) != a.Grey || hex.EncodeToString(all.Sum(nil)) != a.HSV {
			t.Errorf("picture %d: some pixels differ", i)
		}
		for k, v := range a.Numbers {
			if math.Abs(v-numbers[k]) > 1e-6 {
				t.Errorf("picture %d: %s is %v, OpenCV says %v", i, PictureColumns()[k], numbers[k], v)
			}
		}
		for k, d := range detections {
			begin := time.Now()
			var got [][4]int
			for _, r := range c.Faces(t.Context(), grey, d) {
				got = append(got, [4]int{r.Min.X, r.Min.Y, r.Dx(), r.Dy()})
			}
			ours[k+1] += time.Since(begin).Seconds() * 1000
			for _, list := range [][][4]int{got, a.Faces[k]} {
				slices.SortFunc(list, func(p, q [4]int) int { return cmp.Compare(fmt.Sprint(p), fmt.Sprint(q)) })
			}
			seen += len(got)
			if !slices.Equal(got, a.Faces[k]) {
				t.Errorf("picture %d, %+v: faces %v, OpenCV says %v", i, d, got, a.Faces[k])
			}
		}
		for k, v := range a.Milliseconds {
			theirs[k] += v
		}
	}
	if seen < 10 {
		t.Errorf("only %d faces in all: too few to compare", seen)
	}
	for k, name := range []string{"numbers", "faces 1.1/5/30", "faces 1.1/3/0", "faces 1.3/1/24"} {
		n := float64(len(pictures))
		t.Logf("%d pictures, %s: %.1f ms a picture, OpenCV %.1f", len(pictures), name, ours[k]/n, theirs[k]/n)
	}
}

// askOpenCV runs testdata/opencv.mjs.
func askOpenCV(t *testing.T, dir string, questions, answers any) {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(frontalFace))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r)
	cascade := filepath.Join(dir, "cascade.xml")
	testkit.OK(t, err, os.WriteFile(cascade, body, 0o600))
	in, err := json.Marshal(questions)
	testkit.OK(t, err)
	testkit.Node(t, answers, "@techstark/opencv-js", "study/features/testdata/opencv.mjs", string(in), cascade)
}

// drawn are the pictures of REHYDRATE_PICTURES, all colours in noise, pictures of the emulator, and drawn faces.
func drawn(t *testing.T) (list []*image.RGBA) {
	t.Helper()
	if folder := os.Getenv("REHYDRATE_PICTURES"); folder != "" {
		files, err := filepath.Glob(filepath.Join(folder, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			body, err := os.ReadFile(file)
			if err != nil {
				continue // a folder
			}
			if img, err := picture.Decode(body); err == nil {
				list = append(list, picture.OverWhite(img))
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	noise := image.NewRGBA(image.Rect(0, 0, 600, 500))
	for i := range noise.Pix {
		noise.Pix[i] = uint8(random.Uint32())
		if i%4 == 3 {
			noise.Pix[i] = 255
		}
	}
	list = append(list, noise)
	for seed := range 4 {
		list = append(list, picture.OverWhite(redditemu.Photo(uint64(seed), 300+37*seed, 280+11*seed)))
	}
	for i := range 6 {
		list = append(list, face(random, 180+30*i, 200+25*i))
	}
	return list
}

// face draws what a cascade takes for one, on noise: an oval with dark eyes, brows and a mouth.
func face(random *rand.Rand, width, height int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	oval := func(x, y, cx, cy, rx, ry float64) bool {
		dx, dy := (x-cx)/rx, (y-cy)/ry
		return dx*dx+dy*dy < 1
	}
	for y := range height {
		for x := range width {
			u, v := (float64(x)/float64(width)-.5)*2.4, (float64(y)/float64(height)-.5)*2.4
			shade := 90.0
			if oval(u, v, 0, 0, .75, 1) {
				shade = 205 - 40*math.Abs(u)
			}
			for _, side := range []float64{-.32, .32} {
				if oval(u, v, side, -.25, .17, .08) {
					shade = 60
				} else if oval(u, v, side, -.45, .22, .06) {
					shade = 95
				}
			}
			if oval(u, v, 0, .1, .1, .25) {
				shade += 25
			}
			if oval(u, v, 0, .5, .3, .08) {
				shade = 90
			}
			l := uint8(shade + float64(random.IntN(12)))
			img.Set(x, y, color.RGBA{l, l - l/8, l - l/6, 255})
		}
	}
	return img
}
