package ocr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"rehydrate/internal/word"
	"rehydrate/pipeline/ocr/layout"
)

// A Check is one thing that Conform asked of a program, and what came of it.
type Check struct {
	Name  string
	Found string
	Err   error // nil where the program did what a worker has to do
}

// Conform asks a worker program for all that a pool may ask, and ends at the first thing that is wrong. lines are
// pictures of a line of text each, with different words.
func Conform(ctx context.Context, c Config, lines []*image.Gray) []Check {
	c.Workers = 2
	pool, err := Start(ctx, c)
	if err != nil {
		return []Check{{Name: "hello", Err: err}}
	}
	defer pool.Close()
	return (&conformance{pool: pool, lines: lines}).run(ctx)
}

// A conformance is one call of Conform.
type conformance struct {
	pool  *Pool
	lines []*image.Gray
	w     *worker      // at work
	alone [][]word.Raw // of each line, sent by itself
}

func (c *conformance) run(ctx context.Context) (checks []Check) {
	for _, step := range []struct {
		name string
		run  func(context.Context) (string, error)
	}{
		{"hello", c.hello}, {"one line", c.oneLine}, {"lines", c.manyLines}, {"page", c.page}, {"limits", c.limits},
		{"end", c.end}, {"again", c.again}, {"reading", c.reading},
	} {
		found, err := step.run(ctx)
		checks = append(checks, Check{step.name, found, err})
		if err != nil {
			break
		}
	}
	if c.w != nil {
		c.release()
	}
	return checks
}

// release ends the worker and lets the pool start another.
func (c *conformance) release() {
	c.w.stop()
	c.w = nil
	c.pool.replace()
}

var sha256Hex = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (c *conformance) hello(ctx context.Context) (found string, err error) {
	c.w, err = c.pool.take(ctx)
	if err != nil {
		return "", err
	}
	e := c.w.engine
	switch {
	case cmp.Or(e.Name, e.Tesseract) == "":
		return "", errors.New(`the hello has no "name" of the engine: datasets are published under it`)
	case e.Model == "":
		return "", errors.New(`the hello has no "model"`)
	case !sha256Hex.MatchString(e.ModelSHA256):
		return "", fmt.Errorf(`"model_sha256" is %q, not 64 hex digits: a changed model would not be noticed`,
			e.ModelSHA256)
	}
	return fmt.Sprintf("protocol %d; %s; model %s sha256 %.12s...", ProtocolVersion, e, e.Model, e.ModelSHA256), nil
}

// ask sends one request and looks at the words of its answer. After an error the worker is dead.
func (c *conformance) ask(ctx context.Context, m Mode, pictures ...*image.Gray) ([][]word.Raw, error) {
	var answers [][]word.Raw
	err := c.w.watched(ctx, c.pool.config, func() (err error) {
		answers, err = c.w.recognize(pictures, m)
		return err
	})
	if err != nil {
		return nil, err
	}
	most := 0.0
	for _, w := range slices.Concat(answers...) {
		if strings.ContainsFunc(strings.TrimSpace(w.Text), unicode.IsSpace) {
			return nil, fmt.Errorf("%q has white space in it: an answer has each word by itself, with its box", w.Text)
		}
		if w.Text != "" && w.Box.Empty() {
			return nil, fmt.Errorf("the word %q has the empty box %v", w.Text, w.Box)
		}
		most = max(most, w.Confidence)
	}
	if most > 0 && most <= 1 {
		return nil, fmt.Errorf("no word has a confidence over %v: it goes from 0 to 100", most)
	}
	return answers, nil
}

func (c *conformance) oneLine(ctx context.Context) (string, error) {
	for _, line := range c.lines {
		words, err := c.ask(ctx, lineMode, line)
		if err != nil {
			return "", err
		}
		c.alone = append(c.alone, words[0])
	}
	return fmt.Sprintf("the first of %d is read as %q", len(c.lines), joined(c.alone[0])), nil
}

func joined(words []word.Raw) string {
	var texts []string
	for _, w := range words {
		texts = append(texts, w.Text)
	}
	return strings.Join(texts, " ")
}

// manyLines asks for all lines at once, backwards: who mistakes where a picture ends reads something else.
func (c *conformance) manyLines(ctx context.Context) (string, error) {
	backwards := slices.Clone(c.lines)
	slices.Reverse(backwards)
	words, err := c.ask(ctx, lineMode, backwards...)
	if err != nil {
		return "", err
	}
	slices.Reverse(words)
	for i := range words {
		if !same(words[i], c.alone[i]) {
			return "", fmt.Errorf("line %d is read as %q in a request of %d, and as %q by itself", i+1, joined(words[i]),
				len(words), joined(c.alone[i]))
		}
	}
	return fmt.Sprintf("%d in one request are read as by themselves", len(words)), nil
}

// same compares words; none may be written as null or as [].
func same(a, b []word.Raw) bool { return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b) }

// pageOf lays lines below each other on white.
func pageOf(lines []*image.Gray) *image.Gray {
	page := image.NewGray(image.Rect(0, 0, 600, 120*len(lines)))
	draw.Draw(page, page.Rect, image.White, image.Point{}, draw.Src)
	for i, line := range lines {
		draw.Draw(page, line.Rect.Add(image.Pt(30, 120*i+30)), line, line.Rect.Min, draw.Src)
	}
	return page
}

func (c *conformance) page(ctx context.Context) (string, error) {
	words, err := c.ask(ctx, pageMode, pageOf(c.lines))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d words in a whole picture", len(words[0])), nil
}

// limits sends the smallest and the largest pictures that a pool makes, and the most in one request.
func (c *conformance) limits(ctx context.Context) (string, error) {
	blank := func(width, height int) *image.Gray {
		g := image.NewGray(image.Rect(0, 0, width, height))
		draw.Draw(g, g.Rect, image.White, image.Point{}, draw.Src)
		return g
	}
	const side = layout.PageSide
	for _, size := range []image.Point{{1, 1}, {side, 1}, {1, side}, {side, side}} {
		if _, err := c.ask(ctx, pageMode, blank(size.X, size.Y)); err != nil {
			return "", fmt.Errorf("a picture of %d x %d: %w", size.X, size.Y, err)
		}
	}
	most := []*image.Gray{blank(1, layout.StripHeight)}
	for len(most) < layout.BatchSize {
		most = append(most, blank(layout.StripWidth, layout.StripHeight))
	}
	if _, err := c.ask(ctx, lineMode, most...); err != nil {
		return "", fmt.Errorf("%d lines, up to %d x %d: %w", len(most), layout.StripWidth, layout.StripHeight, err)
	}
	return fmt.Sprintf("from 1 x 1 to %d x %d, and %d lines of up to %d x %d; memory %d MiB at most",
		layout.PageSide, layout.PageSide, len(most), layout.StripWidth, layout.StripHeight, c.w.peak.Load()>>20), nil
}

// end closes the worker's stdin.
func (c *conformance) end(context.Context) (string, error) {
	c.w.in.Close()
	select {
	case <-c.w.exited:
	case <-time.After(stopTimeout):
		c.w.kill()
		return "", fmt.Errorf("it did not end within %v of the end of its stdin", stopTimeout)
	}
	c.release()
	return "it ends when its stdin ends", nil
}

// again asks another process of the program, which may be another worker's beside it.
func (c *conformance) again(ctx context.Context) (found string, err error) {
	c.w, err = c.pool.take(ctx)
	if err != nil {
		return "", err
	}
	words, err := c.ask(ctx, lineMode, c.lines...)
	if err != nil {
		return "", err
	}
	for i := range words {
		if !same(words[i], c.alone[i]) {
			return "", fmt.Errorf("line %d is read as %q by another process, and as %q by the first", i+1, joined(words[i]),
				joined(c.alone[i]))
		}
	}
	return "another process says the same hello and reads the same", nil
}

func (c *conformance) reading(ctx context.Context) (string, error) {
	start := time.Now()
	r, err := c.pool.Read(ctx, pageOf(c.lines))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("the whole picture is read as %q, %d ms", strings.ReplaceAll(r.Text, "\n", " / "),
		time.Since(start).Milliseconds()), nil
}
