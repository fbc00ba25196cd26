package main

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"io"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/image/font"
	"golang.org/x/image/math/fixed"

	"rehydrate/cmd/internal/console"
	"rehydrate/pipeline/language"
	"rehydrate/pipeline/ocr"
)

const conformHelp = `Check whether rehydrate can read images with another OCR program (--ocr PROGRAM).

PROGRAM is started as rehydrate starts it, as "PROGRAM worker", and gets every kind of request
that a worker can get: lines, many in one request, a whole image, the smallest and the largest
images, and the end. The check ends at the first fault and names it. How well the program reads is shown,
but does not decide. docs/ocr.md has the protocol, and docs/worker.py is a worker in Python to
start from.

Exit status:
  0    rehydrate can read with the program
  1    it cannot, or not safely
  2    wrong usage
  130  interrupted`

const conformHint = "docs/ocr.md says what a worker has to do"

func conformCommand(o *options, stdout, stderr io.Writer) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     "conform PROGRAM",
		Short:   "Check whether rehydrate can read with another OCR program",
		Long:    conformHelp,
		Example: "  ocr conform docs/worker.py",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return usage("ocr conform PROGRAM", "conform needs one program")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.timeout <= 0 {
				return usage("for example: --timeout 30s", "--timeout takes a time over zero, not %v", o.timeout)
			}
			findings, err := conform(cmd.Context(), *o, args[0], stderr)
			if err := errors.Join(err, cmd.Context().Err()); err != nil {
				return err
			}
			ok := findings[len(findings)-1].OK
			if err := printFindings(stdout, findings, asJSON, ok); err != nil {
				return err
			}
			if !ok {
				return exitCode(exitFailed)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 30*time.Second, "longest time for one request")
	return cmd
}

// conform checks a program; what is wrong with it is the last finding.
func conform(ctx context.Context, o options, program string, stderr io.Writer) (findings []console.Finding, err error) {
	words, err := language.New()
	if err != nil {
		return nil, err
	}
	var lines []*image.Gray
	for _, text := range []string{testCaption, "JUMPS OVER", "THE LAZY DOG", "WHILE NOBODY", "IS LOOKING AT THEM"} {
		line, err := drawLine(text)
		if err != nil {
			return nil, fmt.Errorf("draw a line: %w", err)
		}
		lines = append(lines, line)
	}
	for _, check := range ocr.Conform(ctx, o.config(program, words, stderr), lines) {
		f := console.Finding{Name: check.Name, OK: check.Err == nil, Found: check.Found}
		if check.Err != nil {
			f.Found, f.Hint = check.Err.Error(), conformHint
		}
		findings = append(findings, f)
	}
	return findings, nil
}

// drawLine draws black letters on white, as high as the lines that rehydrate cuts out.
func drawLine(text string) (*image.Gray, error) {
	face, err := newFace(36)
	if err != nil {
		return nil, err
	}
	defer face.Close()
	img := image.NewGray(image.Rect(0, 0, font.MeasureString(face, text).Ceil()+24, 48))
	draw.Draw(img, img.Rect, image.White, image.Point{}, draw.Src)
	d := font.Drawer{Dst: img, Src: image.Black, Face: face, Dot: fixed.P(12, 36)}
	d.DrawString(text)
	return img, nil
}
