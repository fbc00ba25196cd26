package ocr

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"image"
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
	fakeStart  = "REHYDRATE_TEST_FAKE_START" // how it starts: ok, exit, silent, slow, garbage, version, changed, parent
	fakeFolder = "REHYDRATE_TEST_FAKE_DIR"   // where "once" is remembered
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
	imageSlow
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
		time.Sleep(time.Hour)
	case "slow":
		time.Sleep(700 * time.Millisecond)
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

// fakeParent holds a pool whose only worker hangs in an image, tells the worker's
// process id, and waits to be killed.
func fakeParent() {
	pool, err := Start(context.Background(), Config{Command: []string{os.Args[0]}, Workers: 1,
		Timeout: time.Hour, Env: []string{fakeStart + "=ok"}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(pool.idle[0].cmd.Process.Pid)
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
		time.Sleep(time.Hour)
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
	case imageSlow:
		time.Sleep(50 * time.Millisecond)
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
