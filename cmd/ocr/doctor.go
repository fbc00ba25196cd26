package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/image/font"
	"golang.org/x/image/math/fixed"

	"rehydrate/cmd/internal/build"
	"rehydrate/cmd/internal/console"
	"rehydrate/internal/printable"
	"rehydrate/pipeline/language"
	"rehydrate/pipeline/ocr"
)

const doctorHelp = `Check that this machine can read images, and say how to get what is missing.

doctor checks Tesseract, Leptonica, the English model and the dictionary; it draws a caption and
reads it back, and has a worker try to reach files, the network and other processes.

Where the libraries themselves are missing, ocr cannot start at all: the dynamic linker
says so ("error while loading shared libraries"). scripts/setup installs them.

Exit status:
  0    everything is there, and the caption was read
  1    something is missing or does not work
  2    wrong usage`

func doctorCommand(o *options, env []string, stdout, stderr io.Writer) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine's setup",
		Long:  doctorHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings := examine(cmd.Context(), *o, env, stderr)
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			sick := slices.ContainsFunc(findings, func(f console.Finding) bool { return !f.OK })
			if err := printFindings(stdout, findings, asJSON, !sick); err != nil {
				return err
			}
			if sick {
				return exitCode(exitFailed)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func printFindings(out io.Writer, findings []console.Finding, asJSON, ok bool) error {
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(map[string]any{"ok": ok, "checks": findings})
	}
	var b strings.Builder
	for _, f := range findings {
		mark := "ok     "
		if !f.OK {
			mark = "FAIL   "
		}
		fmt.Fprintf(&b, "%s  %-10s %s\n", mark, f.Name, printable.EscapedLine(f.Found))
		if f.Hint != "" {
			fmt.Fprintf(&b, "         %-10s hint: %s\n", "", printable.EscapedLine(f.Hint))
		}
	}
	return toStdout(out, b.String())
}

const modelHint = "apt-get install tesseract-ocr-eng, or scripts/setup; elsewhere put eng.traineddata (github.com/tesseract-ocr/tessdata_fast) " +
	"into a folder and name it with --tessdata-dir or TESSDATA_PREFIX"

// examine checks everything that reading needs.
func examine(ctx context.Context, o options, env []string, stderr io.Writer) (findings []console.Finding) {
	add := func(name, found string, err error, hint string) {
		f := console.Finding{Name: name, OK: err == nil, Found: found, Hint: hint}
		if f.OK {
			f.Hint = ""
		} else {
			f.Found = err.Error()
		}
		findings = append(findings, f)
	}
	add("program", fmt.Sprintf("ocr %s, %s, %s/%s", build.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH),
		nil, "")
	add("leptonica", leptonicaVersion(), nil, "")
	if o.tessdataDir != "" {
		env = append(slices.Clip(env), "TESSDATA_PREFIX="+o.tessdataDir)
	}
	dir, noModel := tessdataDir(env)
	digest := ""
	if noModel == nil {
		digest, noModel = fileDigest(modelFile(dir))
	}
	add("model", modelFile(dir)+" "+shortDigest(digest), noModel, modelHint)
	words, noWords := language.New()
	add("dictionary", shortDigest(language.DictionaryDigest), noWords, "build again from a clean checkout")
	if noModel != nil || noWords != nil {
		return findings // without them there is no engine to ask
	}
	o.workers, o.timeout = 1, 30*time.Second
	c, err := o.ownConfig(words, stderr)
	if err != nil {
		add("worker", "", err, "")
		return findings
	}
	pool, err := ocr.Start(ctx, c)
	if err != nil {
		hint := ""
		if start, ok := errors.AsType[*ocr.StartError](err); ok {
			hint = start.Hint
		}
		add("worker", "", err, hint)
		return findings
	}
	defer pool.Close()
	e := pool.Engine()
	add("tesseract", e.Tesseract+", through gosseract "+e.Gosseract, nil, "")
	// The worker has said hello, which it refuses to do without.
	add("threads", "workers run with OMP_THREAD_LIMIT=1, set before they start", nil, "")
	found, err := selfTest(ctx, pool)
	add("self-test", found, err,
		"the engine is there and does not read: compare its version and the model's digest with docs/ocr.md")
	found, err = sandbox(ctx, c)
	add("sandbox", found, err,
		"the worker reads and its confinement cannot be tried: report this, with what ocr doctor printed")
	return findings
}

const testCaption = "THE QUICK BROWN FOX"

func selfTest(ctx context.Context, pool *ocr.Pool) (string, error) {
	img, err := drawCaption(testCaption)
	if err != nil {
		return "", err
	}
	start := time.Now()
	r, err := pool.Read(ctx, img)
	if err != nil {
		return "", fmt.Errorf("reading a drawn caption: %w", err)
	}
	if r.Text != testCaption {
		return "", fmt.Errorf("a drawn caption %q was read as %q", testCaption, r.Text)
	}
	return fmt.Sprintf("a drawn caption was read back: confidence %.0f, %d ms, worker of %d MiB",
		r.Confidence, time.Since(start).Milliseconds(), pool.Stats().PeakRSS>>20), nil
}

func drawCaption(text string) (image.Image, error) {
	face, err := newFace(40)
	if err != nil {
		return nil, err
	}
	defer face.Close()
	img := image.NewRGBA(image.Rect(0, 0, 600, 200))
	// White on a dark gradient: black on white would be read without the filters.
	for y := range 200 {
		draw.Draw(img, image.Rect(0, y, 600, y+1), image.NewUniform(color.RGBA{20, uint8(30 + y/3), 90, 255}),
			image.Point{}, draw.Src)
	}
	d := font.Drawer{Dst: img, Src: image.White, Face: face, Dot: fixed.P(40, 110)}
	d.DrawString(text)
	return img, nil
}

// shortDigest is enough of a digest to compare by eye, so that a finding fits a line; rehydrate version prints all.
func shortDigest(digest string) string { return "sha256 " + digest[:min(len(digest), 16)] }
