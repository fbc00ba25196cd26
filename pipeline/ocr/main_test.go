package ocr

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	imageGarbageOnce
	imageWrongID
	imageOutside
	imageClosesStdout
	imageEngineError
	imageNoText
	imageEnvironment
	imageNoisyStderr
	imageDigest
	imageManyWords
)

func TestMain(m *testing.M) {
	if how := os.Getenv(fakeStart); how != "" {
		fakeMain(how)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func fakeMain(how string) {
	hello := Engine{Tesseract: "5.0-fake", Leptonica: "1.0-fake", Gosseract: "v0.0.0", Model: "fake", ModelSHA256: "00", Parameters: "fake"}
	switch how {
	case "exit":
		fmt.Fprintln(os.Stderr, "ocr: error: no eng.traineddata in /nowhere")
		os.Exit(1)
	case "silent":
		hang()
	case "garbage":
		fmt.Println("Tesseract says hello")
		time.Sleep(time.Hour)
	case "version":
		_ = writeHello(os.Stdout, Hello{Protocol: ProtocolVersion + 1, Engine: hello})
		time.Sleep(time.Hour)
	case "changed":
		if once() {
			hello.ModelSHA256 = "11"
		}
	case "parent":
		fakeParent()
	}
	if err := Serve(context.Background(), os.Stdin, os.Stdout, fakeRecognizer{hello}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// fakeParent holds a pool whose only worker hangs in an image, and waits to be killed.
func fakeParent() {
	pool, err := Start(context.Background(), Config{Command: []string{os.Args[0]}, Workers: 1,
		Timeout: time.Hour, Env: []string{fakeStart + "=ok", fakeBusy + "=" + os.Getenv(fakeBusy)}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, err = pool.Read(context.Background(), imageFor(imageHang))
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

type fakeRecognizer struct{ engine Engine }

func (f fakeRecognizer) Hello() Engine { return f.engine }
func (f fakeRecognizer) Close() error  { return nil }

func (f fakeRecognizer) Recognize(g *image.Gray, _ Mode) ([]RawWord, error) {
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
	case imageGarbageOnce:
		if !once() {
			fmt.Println("Warning: invalid resolution 0 dpi")
			time.Sleep(time.Hour)
		}
	case imageGarbage:
		fmt.Println("Warning: invalid resolution 0 dpi")
		time.Sleep(time.Hour)
	case imageWrongID:
		_ = writeAnswer(os.Stdout, 1<<40, g.Rect, nil, nil)
		time.Sleep(time.Hour)
	case imageOutside:
		_ = writeFrame(os.Stdout, kindAnswer, []byte(`{"id":1,"words":[{"t":"X","c":90,"b":[0,0,9999,5],"l":[1,1,1]}]}`))
		time.Sleep(time.Hour)
	case imageClosesStdout:
		os.Stdout.Close()
		time.Sleep(time.Hour)
	case imageEngineError:
		return nil, errors.New("no such mode")
	case imageNoText:
		return nil, nil
	case imageEnvironment:
		return fakeWords(g, os.Environ()...), nil
	case imageDigest:
		sum := sha256.Sum256(g.Pix)
		return fakeWords(g, "DIGEST", hex.EncodeToString(sum[:])), nil
	case imageManyWords:
		return fakeWords(g, "ONE", "TWO", "THREE", "FOUR", "FIVE"), nil
	case imageNoisyStderr:
		fmt.Fprint(os.Stderr, strings.Repeat("Image too small to scale!!\n", 20_000))
	}
	return fakeWords(g, "KIND", fmt.Sprint(kind), "INTERNATIONAL", "PROBLEMS"), nil
}

// fakeWords lays words side by side on one line.
func fakeWords(g *image.Gray, texts ...string) []RawWord {
	var words []RawWord
	step := g.Rect.Dx() / len(texts)
	for i, text := range texts {
		words = append(words, RawWord{Text: text, Confidence: 90,
			Box: image.Rect(i*step, 2, (i+1)*step-1, 12), Block: 1, Par: 1, Line: 1})
	}
	return words
}

func grow() {
	var held [][]byte
	for {
		block := make([]byte, 8<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		held = append(held, block)
		time.Sleep(2 * time.Millisecond)
		if len(held) > 250 { // 2 GB: the watch does not work, and the machine matters more
			os.Exit(9)
		}
	}
}

// once reports whether it was called before by any worker of the folder.
func once() bool {
	f, err := os.OpenFile(filepath.Join(os.Getenv(fakeFolder), "once"), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return true
	}
	f.Close()
	return false
}

// imageFor makes an image that the fake worker knows by its height.
func imageFor(kind int) image.Image {
	return image.NewGray(image.Rect(0, 0, fakeWidth, fakeUnit*kind))
}

// A busy is a named pipe into which a fake worker writes a byte when it hangs, and which it has open until it ends.
type busy struct {
	t    *testing.T
	name string
}

func newBusy(t *testing.T) busy {
	b := busy{t, filepath.Join(t.TempDir(), "busy")}
	if err := syscall.Mkfifo(b.name, 0o600); err != nil {
		t.Fatal(err)
	}
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
