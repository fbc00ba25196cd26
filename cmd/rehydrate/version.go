package main

import (
	"context"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"rehydrate/cmd/internal/build"
	"rehydrate/dedupe"
	"rehydrate/pipeline"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/language"
	"rehydrate/pipeline/ocr"
	"rehydrate/pipeline/workspace"
)

// A versions is everything that can make two machines answer differently.
type versions struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// OCR is the engine of the ocr program, nil when there is none; NoOCR then says why.
	OCR       *ocr.Engine       `json:"ocr"`
	NoOCR     string            `json:"no_ocr,omitempty"`
	Hash      string            `json:"hash"`      // kind of perceptual hash
	Language  string            `json:"language"`  // fingerprint of the English filter
	Workspace int               `json:"workspace"` // layout of the workspace
	Parquet   string            `json:"parquet"`   // layout of the dataset
	Libraries map[string]string `json:"libraries"` // modules in this program, by path
	Modules   []*debug.Module   `json:"-"`         // the same in their order
}

func (c *command) versionCommand() *cobra.Command {
	var program string
	cmd := newCommand("version", noArgs, func(cmd *cobra.Command, _ []string) error {
		return c.printVersions(cmd.Context(), program)
	})
	registerProgram(cmd, &program)
	return cmd
}

func (c *command) printVersions(ctx context.Context, program string) error {
	v := versions{Version: build.Version(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Hash:     dedupe.HashKind(),
		Language: language.Fingerprint(), Workspace: workspace.Layout, Parquet: dataset.FormatVersion,
		Libraries: map[string]string{}}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			v.Libraries[m.Path] = m.Version
		}
		v.Modules = info.Deps
	}
	// Only the workers know the versions of what they read with, so one is started.
	engine, err := c.engine(ctx, program)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil { // half of the answer is better than none
		v.NoOCR = err.Error()
	} else {
		v.OCR = &engine
	}
	return c.answer("version", v)
}

func (c *command) engine(ctx context.Context, program string) (ocr.Engine, error) {
	words, err := dictionary()
	if err != nil {
		return ocr.Engine{}, err
	}
	config := pipeline.Config{Language: words}
	pool, err := c.startOCR(ctx, ocrFlags{program: program, workers: 1}, &config)
	if err != nil {
		return ocr.Engine{}, err
	}
	defer pool.Close()
	return pool.Engine(), nil
}
