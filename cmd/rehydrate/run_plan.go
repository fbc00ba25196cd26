package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"rehydrate/pipeline"
	"rehydrate/pipeline/workspace"
)

// A planner says what a job would ask and take.
type planner func(context.Context, pipeline.Config) (pipeline.RunPlan, error)

// refused is a plan of a job that begins, or the error with which it would not.
func refused(check func(context.Context, pipeline.Config) error, planned planner) planner {
	return func(ctx context.Context, config pipeline.Config) (pipeline.RunPlan, error) {
		if config.Workspace != nil {
			if err := check(ctx, config); err != nil {
				return pipeline.RunPlan{}, err
			}
		}
		return planned(ctx, config)
	}
}

// planReading is pipeline.PlanRun by the OCR engine that the run would use, which decides what is read again. A plan needs
// no ocr program: where there is none, it says nothing of the engine.
func (c *command) planReading(f ocrFlags) planner {
	return func(ctx context.Context, config pipeline.Config) (pipeline.RunPlan, error) {
		if config.Workspace == nil { // nothing was read yet
			return pipeline.PlanRun(ctx, config)
		}
		with := config
		pool, err := c.startOCR(ctx, ocrFlags{program: f.program, workers: 1}, &with)
		switch {
		case err == nil:
			defer pool.Close()
			config.OCR = with.OCR
		case f.program != "":
			return pipeline.RunPlan{}, err
		}
		return pipeline.PlanRun(ctx, config)
	}
}

// planRun says what a job would do, without a request and without making a workspace. start returns the command that
// does it.
func (c *command) planRun(
	ctx context.Context, path string, f runFlags, planned planner, start func(context.Context, pipeline.Config) string,
) error {
	config, err := c.prepare(ctx, path, &f.releaseFlags, f.filters)
	if err == nil {
		err = f.ocrFlags.check()
	}
	if err != nil {
		return err
	}
	c.sayList(config, &f.releaseFlags)
	config.Workers, config.Retry, config.ConfirmRemovals = f.workers, f.retry, f.confirmRemovals
	plan, err := reading(ctx, c, func(ws *workspace.Workspace) (pipeline.RunPlan, error) {
		config.Workspace = ws
		return planned(ctx, config)
	})
	if errors.Is(err, workspace.ErrNoWorkspace) {
		plan, err = planned(ctx, config)
	}
	if err != nil {
		return err
	}
	free, dir, err := c.freeSpace()
	if err != nil {
		return err
	}
	return c.answer("run-plan", planAnswer{plan, config.Release.Name, f.workers,
		config.Policy.Reddit.RequestsPerMinute, free, dir, ruleOf(plan), start(ctx, config)})
}

// toRun is the command that does what the plan of a run says: the one that was typed, with the leave that it lacks.
func (c *command) toRun(f *releaseFlags) func(context.Context, pipeline.Config) string {
	return func(ctx context.Context, config pipeline.Config) string {
		lacks := ""
		p, err := c.findGrant(ctx, config.Release, config.Policy.Access.GrantRequired, f.grant)
		switch {
		case err != nil: // the run says what is wrong with the grant
		case p == nil && f.approval == "":
			lacks = "--approval REF"
		case p != nil && p.name == "":
			lacks = "--grant FILE"
		}
		return c.again(lacks, dryRun)
	}
}

const dryRun = "--dry-run"

// A planAnswer is what run and recheck print with --dry-run.
type planAnswer struct {
	pipeline.RunPlan
	Release string   `json:"release"`
	Workers int      `json:"workers"`
	Minute  float64  `json:"requests_per_minute"`
	Free    int64    `json:"free"`
	Dir     string   `json:"-"`
	Rule    []string `json:"rule"`
	Start   string   `json:"-"` // the command that does it
}

// warnOfTime says at the start of a job, which is planned so, that it cannot honour removals in time.
func (c *command) warnOfTime(ctx context.Context, config pipeline.Config, planned planner) error {
	late := func(p pipeline.RunPlan) bool { return p.Parts+p.Most > 0 }
	ws := config.Workspace
	config.Workspace = nil // without a look at a million entries, most runs are short enough
	plan, err := planned(ctx, config)
	if err == nil && late(plan) {
		config.Workspace = ws
		plan, err = planned(ctx, config)
	}
	if err == nil && late(plan) {
		c.log.Warn(strings.Join(ruleOf(plan), " "))
	}
	return err
}

// ruleOf says, in lines, whether what is removed at Reddit can go in time, and else what to do.
func ruleOf(p pipeline.RunPlan) []string {
	within := "what is removed has to go within " + lasts(p.Within)
	switch {
	case p.Most > 0:
		takes := "asking about all posts takes " + lasts(p.Sweep)
		if p.Sweep <= p.Within {
			takes = "the run takes " + lasts(p.All) + ", " + takes
		}
		return []string{
			takes + ", and", within + ":",
			"keep at most " + humanize.Comma(int64(p.Most)) + " posts, or",
			"raise reddit.requests_per_minute (Reddit allows 100)"}
	case p.Parts > 0:
		return []string{
			"the run takes " + lasts(p.All) + ", and", within + ":",
			fmt.Sprintf("make %d parts of at most %s posts each, in the order of the annotations file,", p.Parts,
				humanize.Comma(int64(p.Part))),
			"every part a release with a workspace of its own, and run one after the other;",
			"ask about the finished ones again with recheck in that time, which takes",
			lasts(p.Sweep) + " for all posts"}
	}
	return []string{"What is removed has to go within " + lasts(p.Within) + ", which can be kept.",
		"Asking about all posts takes " + lasts(p.Sweep) + ". Ask at least every " + lasts(p.Within) + "."}
}

// lasts is how long something takes, about.
func lasts(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "less than a minute"
	case d < time.Hour:
		return fmt.Sprintf("%.0f min", math.Ceil(d.Minutes()))
	case d <= 2*24*time.Hour:
		return fmt.Sprintf("%.3g h", d.Hours())
	}
	const tenth = 24 * time.Hour / 10
	return humanize.CommafWithDigits(float64((d+tenth-1)/tenth)/10, 1) + " days" // which never says less than it takes
}
