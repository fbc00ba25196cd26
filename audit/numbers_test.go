package audit

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
)

// numberLists are bytes as lists of numbers: in JSON, and in arrays of one dimension of each type.
func numberLists(b []byte) map[string][]byte {
	array := func(descr string, add func([]byte, byte) []byte) []byte {
		var data []byte
		for _, c := range b {
			data = add(data, c)
		}
		return npyOf(descr, len(b), data)
	}
	return map[string][]byte{
		"a.json": []byte(`{"b":[` + listed(b, "%d", ",") + "]}"),
		"b.json": []byte("[" + signed(b, "%d", ", ") + "]"),
		"c.json": []byte(`{"n":1}` + "\n" + `{"n":[[` + listed(b, "%d.0", ",") + "],2]}\n"),
		"d.npy":  npyOf("|u1", len(b), b),
		"e.npy":  npyOf("|i1", len(b), b),
		"f.npy":  npyOf("|b1", len(b), b),
		"g.npy":  npyOf("<u2", len(b)/2, b[:len(b)&^1]),
		"h.npy": array("<i8", func(out []byte, c byte) []byte {
			return binary.LittleEndian.AppendUint64(out, uint64(int8(c)))
		}),
		"i.npy": array(">u2", func(out []byte, c byte) []byte { return binary.BigEndian.AppendUint16(out, uint16(c)) }),
		"j.npy": array("<f4", func(out []byte, c byte) []byte {
			return binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(c)))
		}),
		"k.npy": array(">f8", func(out []byte, c byte) []byte {
			return binary.BigEndian.AppendUint64(out, math.Float64bits(float64(c)))
		}),
	}
}

// TestPackedNumbers looks at the bytes that numbers spell as at any others: what is packed, is not read, or is of no
// known kind.
func TestPackedNumbers(t *testing.T) {
	w := newWorld(t, false, false)
	jpg, pic := w.images[goneJPEG], drawn(1)
	secret := make([]byte, 1500)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(secret)
	rest := secret[:300]
	var rgb, grey []byte
	for i := 0; i < len(pic.Pix); i += 4 {
		rgb, grey = append(rgb, pic.Pix[i:i+3]...), append(grey, pic.Pix[i])
	}
	var cases []hiding
	for _, c := range []struct {
		name, want string
		body       []byte
	}{
		{"gzip", "image " + goneJPEG, gzipOf(jpg)},
		{"zstd", "image " + goneJPEG, zstdOf(jpg)},
		{"zlib", "image " + goneJPEG, deflated(jpg)},
		{"zip", "image " + goneJPEG, zipOf("a.jpg", jpg)},
		{"tar", "image " + goneJPEG, tarOf("a.jpg", jpg)},
		{"the image itself", "image " + goneJPEG, jpg},
		{"a cut image", "some", jpg[:len(jpg)*2/3]},
		{"bzip2 that is cut off", "some", append([]byte("BZh91AY&SY"), rest...)},
		{"xz", "gap xz", append([]byte("\xfd7zXZ\x00\x00\x04"), rest...)},
		{"7-Zip", "gap 7-zip", append([]byte("7z\xbc\xaf\x27\x1c\x00\x04"), rest...)},
		{"RAR", "gap rar", append([]byte("Rar!\x1a\x07\x01\x00"), rest...)},
		{"a pickle", "gap pickle", slices.Concat([]byte("\x80\x04\x95"), rest, []byte("."))},
		{"a stream of Arrow", "some", slices.Concat([]byte("\xff\xff\xff\xff\x70\x00\x00\x00\x10\x00\x00\x00"), rest)},
		{"encrypted bytes", "gap unknown", secret},
		{"pixels with alpha", "gap unknown", pic.Pix},
		{"pixels", "gap unknown", rgb},
		{"grey pixels", "gap unknown", grey},
		{"a text", "row " + goneUnseen, append(lines("line %d of a text that goes on\n", 9),
			"see https://redd.it/"+goneUnseen+" there"...)},
		{"a text among other bytes", "row " + goneUnseen,
			append([]byte("\x00\x01\x02 see https://redd.it/"+goneUnseen+" there"), make([]byte, 100)...)},
	} {
		for file, body := range numberLists(c.body) {
			// What has nothing but its statistics is not known by them where its bytes are those of larger numbers.
			if file == "g.npy" && c.want == "gap unknown" {
				continue
			}
			cases = append(cases, hiding{c.name + " in " + file, file, c.want, body})
		}
	}
	w.finds(t, cases)
	for file, body := range numberLists(jpg) {
		at := filepath.Join(t.TempDir(), file)
		testkit.OK(t, os.WriteFile(at, body, 0o600))
		testkit.Same(t, "images in "+file, 1, len(w.audit(t, w.ws, at).Findings))
	}
}

// TestOrdinaryNumbers leaves nothing open of numbers that are below 256, and are no bytes of anything.
func TestOrdinaryNumbers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	config, dir := plainWorld(t), t.TempDir()
	const many = 10_000
	for name, number := range map[string]func(i int) int{
		"zeros":                  func(int) int { return 0 },
		"padding of a mask":      func(i int) int { return map[bool]int{true: 255, false: 0}[i < 50 || i%100 < 10] },
		"padding of labels":      func(i int) int { return map[bool]int{true: -1, false: i % 7}[i < 50] },
		"less and less":          func(i int) int { return max(-i-1, -100) },
		"one of five":            func(i int) int { return map[bool]int{true: 1, false: 0}[i%5 == 1] },
		"one of eight":           func(i int) int { return map[bool]int{true: 1, false: 0}[i%8 == 2] },
		"labels":                 func(int) int { return random.IntN(10) },
		"labels of 100 classes":  func(i int) int { return i / 50 % 100 },
		"groups in order":        func(i int) int { return i * 256 / many },
		"groups of two splits":   func(i int) int { return i % 5000 * 256 / 5000 },
		"a counter of a byte":    func(i int) int { return i % 256 },
		"ages":                   func(int) int { return 18 + random.IntN(72) },
		"heart rates":            func(i int) int { return 80 + int(30*math.Sin(float64(i)/30)) + random.IntN(3) },
		"temperatures":           func(i int) int { return 8 + int(25*math.Sin(float64(i)/1400)) + random.IntN(5) - 2 },
		"latitudes":              func(i int) int { return int(90 * math.Sin(float64(i)/300)) },
		"lengths of texts":       func(int) int { return min(255, int(20+40*random.ExpFloat64())) },
		"brightness":             func(int) int { return min(255, max(0, int(128+60*random.NormFloat64()))) },
		"an embedding in int8":   func(int) int { return min(127, max(-128, int(36*random.NormFloat64()))) },
		"an embedding in uint8":  func(int) int { return min(255, max(0, 128+int(36*random.NormFloat64()))) },
		"scores":                 func(int) int { return random.IntN(101) },
		"colours of a plot":      func(i int) int { return []int{31, 119, 180, 255, 127, 14}[i%6] },
		"boxes":                  func(i int) int { return []int{0, 0, 224, 224}[i%4] + random.IntN(32) },
		"letters":                func(int) int { return 65 + random.IntN(26) },
		"votes":                  func(int) int { return int(3 * random.ExpFloat64()) },
		"more than there are in": func(i int) int { return random.IntN(1000) },
	} {
		for n, size := range []int{200, 1600, many} {
			numbers, small := make([]int, size), make([]byte, size)
			for i := range numbers {
				numbers[i] = number(i)
				small[i] = byte(numbers[i])
			}
			arrays := []string{"d.npy", "i.npy", "j.npy", "k.npy"} // of numbers from 0 to 255
			if slices.Min(numbers) < 0 {
				arrays = []string{"e.npy", "h.npy"}
			}
			at := filepath.Join(dir, name, fmt.Sprint(n))
			testkit.OK(t, os.MkdirAll(at, 0o700))
			json := listedInts(numbers)
			testkit.OK(t, os.WriteFile(filepath.Join(at, "a.json"), []byte(json), 0o600),
				os.WriteFile(filepath.Join(at, "b.jsonl"), []byte(`{"x":`+json+"}\n"+`{"x":`+json+"}\n"), 0o600))
			for file, body := range numberLists(small) {
				if slices.Contains(arrays, file) && slices.Max(numbers) <= math.MaxUint8 {
					testkit.OK(t, os.WriteFile(filepath.Join(at, file), body, 0o600))
				}
			}
		}
	}
	config.Files = []string{dir}
	r, err := Audit(t.Context(), config)
	testkit.OK(t, err)
	if r.Verdict != Pass {
		t.Errorf("%s: found %+v", r.Verdict, r.Findings)
		for _, o := range r.Open {
			t.Errorf("open: %+v", o)
		}
	}
}

func listedInts(numbers []int) string {
	out := []byte("[")
	for i, n := range numbers {
		if i > 0 {
			out = append(out, ", "...)
		}
		out = fmt.Append(out, n)
	}
	return string(append(out, ']'))
}

// TestVectors takes none of many vectors of a quantised model for the beginning of a file, though two bytes of each
// begin one format or another by chance.
func TestVectors(t *testing.T) {
	random := rand.NewChaCha8([32]byte{2})
	vector, begin := make([]byte, 256), 0
	for range 1_000_000 {
		_, _ = random.Read(vector)
		if beginsAsFormat(section(vector)) {
			begin++
		}
	}
	testkit.Same(t, "vectors that begin as a format", 0, begin)
}

// TestTwoBytesTellNoFormatOfAKey: a signature in base64 can begin with those of an image that is not read.
func TestTwoBytesTellNoFormatOfAKey(t *testing.T) {
	w := newWorld(t, false, false)
	for n, open := range map[int]bool{72: false, 200: true} {
		raw := make([]byte, n)
		_, _ = rand.NewChaCha8([32]byte{1}).Read(raw)
		for _, magic := range []string{"\xff\x0a", "\x1f\x9d"} {
			file := filepath.Join(t.TempDir(), "note.txt")
			text := "signed " + base64.StdEncoding.EncodeToString(append([]byte(magic), raw...)) + "\n"
			testkit.OK(t, os.WriteFile(file, []byte(text), 0o600))
			r := w.audit(t, w.ws, file)
			testkit.Same(t, fmt.Sprintf("%q, %d bytes", magic, n), open, slices.ContainsFunc(r.Open, func(o Open) bool {
				return strings.Contains(o.Where, "note.txt")
			}))
		}
	}
}
