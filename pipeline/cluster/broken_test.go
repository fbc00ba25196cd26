package cluster

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/internal/testkit/brokenoff"
	"rehydrate/pipeline/state"
)

// TestBrokenOffAnywhere: what is stopped, or whose disk fails, says so wherever that happens, and the same again goes
// on until all is done.
func TestBrokenOffAnywhere(t *testing.T) {
	all := []string{"few001: width 200", "few001/1: width 201", "few002: width 202", "few003: width 203"}
	read := func(want ...string) func(f *fleet) {
		return func(f *fleet) {
			engine, _, err := Check(f.ws, f.plan)
			testkit.Same(f, "the engine", "fake", engine.Name, err)
			testkit.Same(f, "results", want, f.results(0))
		}
	}
	worked := func(f *fleet) { f.split(); f.work(0) }
	for _, job := range []struct {
		name          string
		before, after func(f *fleet)
		do            func(ctx context.Context, f *fleet) error
	}{
		{"a split", nil, func(f *fleet) { f.work(0); read(all...)(f) },
			func(ctx context.Context, f *fleet) error { _, err := Split(ctx, f.ws, f.plan, f.stones); return err }},
		{"a split for another version", func(f *fleet) { worked(f); f.plan.Tool = "2" },
			func(f *fleet) { f.work(0); read(all...)(f) },
			func(ctx context.Context, f *fleet) error { _, err := Split(ctx, f.ws, f.plan, f.stones); return err }},
		{"a shard", func(f *fleet) { f.split() }, read(all...), func(ctx context.Context, f *fleet) error {
			j := f.job(0)
			j.Workers = 1
			_, err := Work(ctx, j)
			return err
		}},
		{"a shard that another engine reads", func(f *fleet) {
			f.engine = &reader{name: "other"}
			worked(f)
			f.engine = &reader{name: "fake"}
		},
			read(all...), func(ctx context.Context, f *fleet) error { _, err := Work(ctx, f.job(0)); return err }},
		{"what a purge finds gone", func(f *fleet) {
			worked(f)
			put(f.T, f.ws.Dir(), logName(0), "few002: no words\n")
		}, func(f *fleet) {
			if _, _, err := Check(f.ws, f.plan); err != nil { // broken off between the results and their sidecar
				f.work(0)
			}
			read(all[0], all[1], all[3])(f)
			names, err := f.ws.Files(f.Context(), state.ShardsDir)
			testkit.OK(f, err)
			for _, name := range names {
				text, err := os.ReadFile(filepath.Join(f.ws.Dir(), name))
				testkit.Same(f, "few002 in "+name, false, strings.Contains(string(text), "few002"), err)
			}
		}, func(ctx context.Context, f *fleet) error {
			return Drop(ctx, f.ws, func(row string) bool { return row == "few002" })
		}},
		{"the end of a merge", func(f *fleet) {
			worked(f)
			for _, key := range posts {
				if key.ID != "few005" {
					f.readBefore(key, "f", false)
				}
			}
		}, func(f *fleet) {
			names, err := f.ws.Files(f.Context(), state.ShardsDir)
			testkit.Same(f, "what is left", 0, len(names), err)
		}, func(ctx context.Context, f *fleet) error {
			if err := Clear(ctx, f.ws); err != nil {
				return err
			}
			merged, err := Merged(ctx, f.ws, "r", "m")
			if err == nil && !merged {
				f.Error("it is not merged")
			}
			return err
		}},
	} {
		t.Run(job.name, func(t *testing.T) {
			brokenoff.Anywhere(t, func(t *testing.T, repeat func(func(context.Context) error)) {
				f := newFleet(t, 1)
				if job.before != nil {
					job.before(f)
				}
				repeat(func(ctx context.Context) error { return job.do(ctx, f) })
				job.after(f)
			})
		})
	}
}
