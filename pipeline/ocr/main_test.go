package ocr

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/internal/word"
)

// The fake worker: this test binary again, told so by fakeStart in its environment.
// What it does with an image is told by the image's height, in units of fakeUnit for a
// width of fakeWidth.
const (
	fakeStart  = "REHYDRATE_TEST_FAKE_START" // how it starts: ok, exit, silent, garbage, version, changed, parent
	fakeFolder = "REHYDRATE_TEST_FAKE_DIR"   // where "once" is remembered
	fakeBusy   = "REHYDRATE_TEST_FAKE_BUSY"  // see busy
	fakeWidth  = 550
	fakeUnit   = 10
)

const (
	imageOK = 20 + iota
	imageCrash
	imageCrashOnce
	imageSegfault
	imageHang
	imageGrow
	imageGarbage
	imageWrongID
	imageOutside
	imageClosesStdout
	imageEngineError
	imageNoText
	imageEnvironment
	imageNoisyStderr
	imageManyWords
)

func TestMain(m *testing.M) {
	if how := os.Getenv(fakeStart); how != "" {
		if err := fakeMain(how); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func fakeMain(how string) error {
	hello := Engine{Tesseract: "5.0-fake", Leptonica: "1.0-fake", Gosseract: "v0.0.0", Model: "fake", ModelSHA256: "00",
		Parameters: "fake"}
	switch how {
	case "exit":
		return errors.New("ocr: error: no eng.traineddata in /nowhere")
	case "silent":
		hang()
	case "garbage":
		say([]byte("Tesseract says hello"))
	case "version":
		_ = writeLine(os.Stdout, Hello{Protocol: ProtocolVersion + 1, Engine: hello}, nil)
	case "changed":
		if once() {
			hello.ModelSHA256 = "11"
		}
	case "parent": // holds a pool whose only worker hangs in an image, and waits to be killed
		pool, err := Start(context.Background(), Config{Command: []string{os.Args[0]}, Workers: 1,
			Timeout: time.Hour, Env: []string{fakeStart + "=ok", fakeBusy + "=" + os.Getenv(fakeBusy)}})
		if err == nil {
			_, err = pool.Read(context.Background(), imageFor(imageHang))
		}
		return err
	}
	return Serve(os.Stdin, os.Stdout, hello, fakeRecognize)
}

func fakeRecognize(g *image.Gray, _ Mode) ([]word.Raw, error) {
	kind := (g.Rect.Dy()*fakeWidth/g.Rect.Dx() + fakeUnit/2) / fakeUnit
	switch kind {
	case imageCrash:
		os.Exit(7)
	case imageCrashOnce:
		if !once() {
			os.Exit(7)
		}
	case imageSegfault:
		_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
		time.Sleep(time.Hour)
	case imageHang:
		hang()
	case imageGrow:
		grow()
	case imageGarbage:
		say([]byte("Warning: invalid resolution 0 dpi"))
	case imageWrongID:
		_ = writeAnswer(os.Stdout, 1<<40, nil, nil, nil)
	case imageOutside:
		say([]byte(`{"id":1,"words":[[{"Text":"X","Box":{"Max":{"X":9999,"Y":5}}}]]}` + "\n"))
	case imageClosesStdout:
		os.Stdout.Close()
		time.Sleep(time.Hour)
	case imageEngineError:
		return nil, errors.New("no such mode")
	case imageNoText:
		return nil, nil
	case imageEnvironment:
		return fakeWords(g, os.Environ()...), nil
	case imageManyWords:
		return fakeWords(g, "ONE", "TWO", "THREE", "FOUR", "FIVE"), nil
	case imageNoisyStderr:
		fmt.Fprint(os.Stderr, strings.Repeat("Image too small to scale!!\n", 20_000))
	}
	return fakeWords(g, "KIND", fmt.Sprint(kind), "INTERNATIONAL", "PROBLEMS"), nil
}

// fakeWords lays words side by side on one line.
func fakeWords(g *image.Gray, texts ...string) []word.Raw {
	var words []word.Raw
	step := g.Rect.Dx() / len(texts)
	for i, text := range texts {
		words = append(words, word.Raw{Text: text, Confidence: 95, Box: image.Rect(i*step, 0, (i+1)*step-1, g.Rect.Dy())})
	}
	return words
}

func say(b []byte) { _, _ = os.Stdout.Write(b) }

// grow takes memory until somebody ends it, and 2 GB at most.
func grow() {
	for held := [][]byte{}; len(held) < 250; time.Sleep(2 * time.Millisecond) {
		block := make([]byte, 8<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		held = append(held, block)
	}
}

// once reports whether it was called before by any worker of the folder.
func once() bool {
	return os.Mkdir(filepath.Join(os.Getenv(fakeFolder), "once"), 0o700) != nil
}

// imageFor makes an image that the fake worker knows by its height.
func imageFor(kind int) *image.Gray {
	return image.NewGray(image.Rect(0, 0, fakeWidth, fakeUnit*kind))
}

func imagesFor(kinds []int) (out []*image.Gray) {
	for _, kind := range kinds {
		out = append(out, imageFor(kind))
	}
	return out
}

// A busy is a named pipe into which a fake worker writes a byte when it hangs, and which it has open until it ends.
type busy struct {
	t    *testing.T
	name string
}

func newBusy(t *testing.T) busy {
	b := busy{t, filepath.Join(t.TempDir(), "busy")}
	testkit.OK(t, syscall.Mkfifo(b.name, 0o600))
	return b
}

func (b busy) env() string { return fakeBusy + "=" + b.name }

// wait returns when n workers hang.
func (b busy) wait(n int) *os.File {
	f, err := os.Open(b.name)
	if err == nil {
		b.t.Cleanup(func() { f.Close() })
		_, err = io.ReadFull(f, make([]byte, n))
	}
	if err != nil {
		b.t.Errorf("wait for %d workers that hang: %v", n, err)
	}
	return f
}

// hang does nothing any more, and says so first.
func hang() {
	if f, err := os.OpenFile(os.Getenv(fakeBusy), os.O_WRONLY, 0); err == nil {
		_, _ = f.Write([]byte{1})
		defer f.Close()
	}
	time.Sleep(time.Hour)
}
