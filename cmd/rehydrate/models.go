package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rehydrate/cmd/internal/build"
	"rehydrate/cmd/internal/console"
	"rehydrate/internal/polite"
	"rehydrate/manifest"
	"rehydrate/pipeline"
	"rehydrate/pipeline/copies"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/study"
	"rehydrate/study/endpoint"
	"rehydrate/study/models"
)

// modelFlags say which model classify and moderate ask, about which rows, and how much.
type modelFlags struct {
	releaseFlags
	redditFlags
	endpoint, model, server string
	omit                    []string
	perMinute               float64
	timeout                 time.Duration
	thirdParty, note        string
	release, split, out     string
	maxSide, concurrency    int
	limits                  models.Limits
	dryRun                  bool
	releaseDir              string         // of release; "" for none
	rechecked               *state.Summary // what the command's rechecks did; nil where Reddit was not asked
}

func (f *modelFlags) register(cmd *cobra.Command, out string) {
	flags := cmd.Flags()
	flags.StringVar(&f.endpoint, "endpoint", "", "")
	flags.StringVar(&f.model, "model", "", "")
	flags.StringVar(&f.server, "server", string(endpoint.VLLM), "")
	flags.StringSliceVar(&f.omit, "omit", nil, "")
	flags.Float64Var(&f.perMinute, "requests-per-minute", 0, "")
	flags.DurationVar(&f.timeout, "timeout", 5*time.Minute, "")
	flags.StringVar(&f.thirdParty, "third-party", "", "")
	flags.StringVar(&f.note, "note", "", "")
	flags.StringVar(&f.release, "release", "", "")
	flags.StringVar(&f.split, "split", "", "")
	registerOut(cmd, &f.out, out)
	flags.IntVar(&f.maxSide, "max-side", 0, "")
	flags.IntVar(&f.concurrency, "concurrency", 1, "")
	flags.IntVar(&f.limits.Requests, "max-requests", 0, "")
	flags.Float64Var(&f.limits.Cost, "max-cost", 0, "")
	flags.Float64Var(&f.limits.Total, "max-cost-total", 0, "")
	flags.Float64Var(&f.limits.PriceIn, "price-in", 0, "")
	flags.Float64Var(&f.limits.PriceOut, "price-out", 0, "")
	flags.BoolVar(&f.dryRun, "dry-run", false, "")
	f.releaseFlags.register(cmd)
	f.redditFlags.register(cmd, &f.approval)
}

func (f *modelFlags) check(cmd *cobra.Command) error {
	for _, limit := range []struct {
		flag  string
		value float64
	}{{"max-requests", float64(f.limits.Requests)}, {"max-cost", f.limits.Cost}, {"max-cost-total", f.limits.Total}} {
		if limit.value == 0 && cmd.Flags().Changed(limit.flag) { // models.Limits means no limit by it
			return usageError("--%s 0 would ask nothing: give more, or leave it out to ask without this limit "+
				"(--dry-run shows what is left to ask)", limit.flag)
		}
	}
	_, err := endpoint.ParseDialect(f.server)
	switch {
	case f.endpoint == "" && !f.dryRun:
		return usageError("--endpoint URL is missing, such as http://127.0.0.1:8000/v1")
	case f.model == "":
		return usageError("--model NAME is missing")
	case err != nil:
		return usageError("--server: %w", err)
	case f.concurrency < 1 || f.concurrency > 64:
		return usageError("--concurrency %d: give 1 to 64", f.concurrency)
	case f.maxSide < 0 || !(f.perMinute >= 0) || f.limits.Requests < 0 || f.timeout <= 0:
		return usageError("--max-side, --requests-per-minute, --max-requests and --timeout take positive numbers")
	case !(min(f.limits.Cost, f.limits.Total, f.limits.PriceIn, f.limits.PriceOut) >= 0 &&
		max(f.limits.Cost, f.limits.Total, f.limits.PriceIn, f.limits.PriceOut) <= 1e12):
		return usageError("--max-cost, --max-cost-total, --price-in and --price-out take positive numbers up to a million million")
	case f.limits.Cost+f.limits.Total > 0 && f.limits.PriceIn+f.limits.PriceOut == 0:
		return usageError("--max-cost and --max-cost-total need --price-in and --price-out")
	case f.thirdParty != "" && f.release == "":
		return usageError("--third-party needs --release RELEASE, whose rules and grant say whether images may go there")
	case f.thirdParty != "":
		if err := (copies.Disclosure{Name: f.thirdParty, Note: f.note}).Check(); err != nil {
			return usageError("--third-party, --note: %w", err)
		}
	}
	if _, err := endpoint.ParseOmit(strings.Join(f.omit, ",")); err != nil {
		return usageError("--omit: %w", err)
	}
	f.out = strings.TrimSuffix(f.out, ".jsonl") // the file has this name in the folder
	f.note = cmp.Or(f.note, "answers of a model")
	return copies.CheckNote(f.note)
}

// chat is what every chat request has: the model, and the decoding of FigSIM's Table 10 but for its stop sequence.
func (f *modelFlags) chat(cmd *cobra.Command) endpoint.Chat {
	dialect := endpoint.Dialect(f.server)
	chat := endpoint.Chat{Model: f.model, Dialect: dialect, Omit: dialect.Omits(),
		Decoding: endpoint.Decoding{Temperature: new(0.0), TopP: new(1.0), MaxTokens: 128}}
	// What a flag asks for is sent, whatever other servers of the dialect refuse.
	chat.Omit = slices.DeleteFunc(chat.Omit,
		func(name string) bool { return cmd.Flags().Changed(strings.ReplaceAll(name, "_", "-")) })
	if cmd.Flags().Changed("omit") {
		chat.Omit, _ = endpoint.ParseOmit(strings.Join(f.omit, ",")) // check read it
	}
	return chat
}

// open makes the client of the server.
func (f *modelFlags) open(c *command) (*endpoint.Server, error) {
	o := endpoint.Options{URL: f.endpoint, ThirdParty: f.thirdParty != "", PerMinute: f.perMinute, Timeout: f.timeout,
		Scrubber: c.scrubber,
		Log:      c.log, OnWait: func(d time.Duration, why string) {
			if !c.quiet {
				c.console.Wait("for the model: "+why, d)
			}
		}}
	var err error
	o.Key, err = endpoint.KeyFromEnv(c.getenv)
	if err != nil {
		return nil,
			rejected(err, "set "+endpoint.KeyName+", or "+endpoint.KeyName+"_FILE to a file of mode 0600, or neither")
	}
	if f.cacert != "" {
		o.RootCAs, err = readRoots("--cacert", f.cacert)
		if err != nil {
			return nil, err
		}
	}
	o.Proxy, err = polite.ProxyFromEnv(c.getenv)
	if err != nil {
		return nil, asUsage(err)
	}
	server, err := endpoint.Open(o)
	if err != nil {
		return nil, usageError("--endpoint: %w", err)
	}
	return server, nil
}

// inModelsWorkspace does the work of classify or moderate on the workspace, which it opens for moments alone. A plan
// only reads it.
func (c *command) inModelsWorkspace(ctx context.Context, f *modelFlags,
	do func(*models.Work, workspace.Binding) error) error {
	work := &models.Work{Store: c.modelStore(), Model: f.model, Now: c.now, Concurrency: f.concurrency, Limits: f.limits,
		Stop: c.stop, Progress: c.observeModel}
	if f.release != "" {
		if err := c.underRelease(ctx, f, work); err != nil {
			return err
		}
	}
	var b workspace.Binding
	var last state.PolicyNote
	err := work.Store.Read(ctx, func(ws *workspace.Workspace) (err error) {
		b, _, err = ws.Binding(ctx)
		if err == nil {
			last, err = state.ReadNote[state.PolicyNote](ctx, ws)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case f.release == "" && !f.dryRun && last.Access.GrantRequired && !state.IsRehearsal(b.Release):
		return rejected(fmt.Errorf("the release of this workspace, %q, wants a grant, and no row is handed out without one", b.Release),
			"name the release, whose policy and grant say whether rows may be used: --release RELEASE")
	}
	if state.IsRehearsal(b.Release) && len(f.connectTo) == 0 {
		work.Refresh = nil // Reddit knows nothing of made-up posts
	}
	work.Split, err = f.splitOf(b)
	if err != nil {
		return err
	}
	if f.thirdParty != "" {
		to := copies.Disclosure{Name: f.thirdParty, Note: f.note, Host: f.host()}
		work.Before = func(ctx context.Context, ws *workspace.Workspace, rows []string) error {
			return copies.Disclose(ctx, ws, to, rows, c.now())
		}
	}
	return do(work, b)
}

// modelStore opens the command's workspace.
func (c *command) modelStore() models.Store {
	return models.Store{
		Read: func(ctx context.Context, do func(*workspace.Workspace) error) error {
			_, err := reading(ctx, c, func(ws *workspace.Workspace) (any, error) {
				if err := refuseEnded(ctx, ws); err != nil {
					return nil, err
				}
				return nil, do(ws)
			})
			return err
		},
		// Without the grant: what was answered is stored also when it has ended meanwhile.
		Write: func(ctx context.Context, do func(*workspace.Workspace) error) error {
			return c.usingRows(ctx, nil, do)
		},
		Busy: func(err error) {
			c.log.Warn("what is to be stored waits for another command: " + err.Error())
		},
	}
}

// underRelease has the work keep to the release: to its policy, its tombstones and its grant.
func (c *command) underRelease(ctx context.Context, f *modelFlags, work *models.Work) error {
	config, err := c.resume(ctx, f.release, &f.releaseFlags, "")
	if err != nil {
		return err
	}
	grant, err := c.useGrant(ctx, config, &f.releaseFlags)
	if err != nil {
		return err
	}
	f.releaseDir = config.Release.Dir
	if f.thirdParty != "" && grant != nil {
		c.log.Warn("a grant's purpose may not cover a third party: read it before you send posts (rehydrate grant show)")
	}
	work.Access, config.Access = grant.access(), grant.access()
	if grant != nil {
		// The serial of the grant's list is stored before any work: a crash then still refuses an older list.
		work.Begin = func(ctx context.Context, ws *workspace.Workspace) error { return grant.remember(ctx, ws, c.now()) }
	}
	// The release may be newer than the last run.
	work.Rules = func(ctx context.Context, ws *workspace.Workspace, j *state.Judge) (err error) {
		*j, err = state.JudgeBy(ctx, ws, config.Release, config.Tombstones, config.Policy, j.Now)
		return err
	}
	work.Refresh = func(ctx context.Context, ws *workspace.Workspace) (int, error) {
		return c.recheck(ctx, ws, config, f)
	}
	return nil
}

// splitOf is the split that is asked about, "" for all.
func (f *modelFlags) splitOf(b workspace.Binding) (string, error) {
	split := manifest.SplitNamed(b.Splits, cmp.Or(f.split, "test"))
	switch {
	case f.split == study.All, f.split == "" && split == "":
		return "", nil
	case split == "":
		return "", usageError("--split: the workspace has no split %q; it has %s", f.split, strings.Join(b.Splits, ", "))
	}
	return split, nil
}

// host is the endpoint's host.
func (f *modelFlags) host() string {
	to, err := url.Parse(f.endpoint)
	if err != nil {
		return "" // no client is made for such a URL
	}
	return to.Hostname()
}

// recheck asks Reddit about all posts again, and takes out what is gone, as rehydrate recheck does. It returns
// about how many there was no answer.
func (c *command) recheck(ctx context.Context, ws *workspace.Workspace, config pipeline.Config,
	f *modelFlags) (unverified int, err error) {
	config.Reddit, err = f.client(c, f.approval, config.Policy, c.getenv, config.Progress)
	if err != nil {
		return 0, err
	}
	config.Workspace = ws
	if err := keepFilters(ctx, ws, &config); err != nil {
		return 0, err
	}
	sum, err := pipeline.Recheck(ctx, config)
	c.console.Done()
	if err != nil {
		return 0, err
	}
	if f.rechecked != nil {
		sum = follows(*f.rechecked, sum)
	}
	f.rechecked = &sum
	return sum.Unverified, nil
}

// follows is what a recheck says together with those before it in the same command: what they did, and what is left to
// do after the last.
func follows(before, last state.Summary) state.Summary {
	again := func(p state.RemovedPost) bool {
		return slices.ContainsFunc(last.Removed, func(q state.RemovedPost) bool { return q.ID == p.ID })
	}
	last.Removed = append(slices.DeleteFunc(slices.Clone(before.Removed), again), last.Removed...)
	last.Copies = slices.Clone(last.Copies)
	for i, now := range last.Copies {
		for _, then := range before.Copies {
			if then.Path == now.Path {
				last.Copies[i].Purged = slices.Concat(then.Purged, now.Purged)
			}
		}
	}
	last.Back += before.Back
	last.Left, last.FilesGone = slices.Concat(before.Left, last.Left), slices.Concat(before.FilesGone, last.FilesGone)
	last.ReportGone = last.ReportGone || before.ReportGone
	return last
}

// A modelJob makes the questions of classify or moderate, and reads the answers.
type modelJob interface {
	Report(*models.Done, manifest.Schema, models.Limits) (models.Report, error)
	Write(models.Sink, *models.Done, models.Report) ([]string, error)
}

// askModel asks what is not answered yet by the server that it opens, and writes and prints what is known in the end.
// In a dry run it prints what there is to ask.
func (c *command) askModel(ctx context.Context, w *models.Work, b workspace.Binding, f *modelFlags, name string,
	job modelJob, server **endpoint.Server) error {
	if f.dryRun {
		plan, err := w.Plan(ctx)
		if err != nil {
			return err
		}
		return c.answer("model-plan", plan)
	}
	err := w.Store.Read(ctx, func(ws *workspace.Workspace) error {
		_, err := copies.Destination(ctx, ws, f.out)
		return err
	})
	if err != nil {
		return exportProblem(err)
	}
	*server, err = f.open(c)
	if err != nil {
		return err
	}
	var report models.Report
	done, err := w.Do(ctx, func(ctx context.Context, ws *workspace.Workspace, done *models.Done) (err error) {
		report, err = job.Report(done, b.Schema, f.limits)
		report.Tool, report.Release, report.Digest = build.Version(), b.Release, b.ReleaseDigest
		report.Host = state.SHA256([]byte(f.host()))
		if err != nil || done.Limit != "" {
			return err // half a file would pass for a whole one
		}
		return c.writeAnswers(ctx, ws, f, func(sink models.Sink) ([]string, error) { return job.Write(sink, done, report) })
	})
	c.console.Done()
	switch {
	case err == nil:
		return c.sayAnswers(f, name, report, done)
	case f.rechecked != nil: // no later command says what went
		return errors.Join(err, c.answer("rechecked", recheckedAnswer{f.rechecked}))
	}
	return err
}

// A recheckedAnswer is what the rechecks of classify and moderate did, and left to do.
type recheckedAnswer struct {
	Recheck *state.Summary `json:"recheck,omitempty"` // as recheck prints it
}

// Concerned are the registered copies from which rows were taken, or must go.
func (r recheckedAnswer) Concerned() []state.CopyReport {
	return slices.DeleteFunc(slices.Clone(r.Recheck.Copies), func(c state.CopyReport) bool {
		return !isOpen(c) && len(c.Purged)+len(c.Owed)+len(c.Held)+len(c.Heard) == 0
	})
}

// sayAnswers prints what is known in the end.
func (c *command) sayAnswers(f *modelFlags, name string, report models.Report, done *models.Done) error {
	out := f.out
	if done.Limit != "" {
		out = ""
	}
	failed := 0
	for _, t := range report.Tasks {
		failed += t.Outcomes[endpoint.Failed]
	}
	return c.answerHolds(name, modelAnswer{report, done.Hidden, done.Asked, done.Known, done.Left, done.Limit, done.Raise,
		done.Passed, done.Contradicting, done.Cost, done.Total,
		failed, done.Unverified, out, f.thirdParty, recheckedAnswer{f.rechecked}},
		failed == 0 && done.Limit == "" && done.Unverified == 0 && (f.rechecked == nil || statusOf(*f.rechecked) == nil),
		exitRetry)
}

// A modelAnswer is what classify and moderate print.
type modelAnswer struct {
	models.Report
	Hidden int     `json:"hidden,omitempty"` // rows that are gone or held back
	Asked  int     `json:"asked"`
	Known  int     `json:"answered_before"`
	Left   int     `json:"not_asked"`
	Limit  string  `json:"limit,omitempty"`
	Raise  string  `json:"limit_to_raise,omitempty"` // the flag whose limit lets nothing more be asked
	Passed string  `json:"limit_passed,omitempty"`
	Twice  int     `json:"counts_contradict,omitempty"`
	Spent  float64 `json:"spent"`
	Total  float64 `json:"spent_by_all"`
	Failed int     `json:"failed"`
	Unsure int     `json:"unverified,omitempty"` // posts that Reddit gave no answer about
	Folder string  `json:"folder,omitempty"`
	To     string  `json:"third_party,omitempty"`
	recheckedAnswer
}

// observeModel shows how far the asking is.
func (c *command) observeModel(p models.Progress) {
	if c.quiet {
		return
	}
	ok := p.Outcomes[endpoint.OK]
	others, line := 0, fmt.Sprintf("ask: %d of %d questions", p.Asked, p.Total)
	for _, o := range models.Outcomes() {
		if n := p.Outcomes[o]; n > 0 {
			line += fmt.Sprintf(", %d %s", n, o)
			others += n
		}
	}
	rate := ""
	if s := p.Elapsed.Seconds(); s > 0 {
		rate = fmt.Sprintf(", %.0f tokens/s", float64(p.In+p.Out)/s)
	}
	c.console.Show(console.Progress{Task: "ask", Words: fmt.Sprintf("%d ok, %d other%s", ok, others-ok, rate),
		Done: others, Total: p.Total,
		Line: line + rate})
}

// writeAnswers makes the folder of answers, which is a registered copy.
func (c *command) writeAnswers(ctx context.Context, ws *workspace.Workspace, f *modelFlags,
	write func(models.Sink) ([]string, error)) error {
	err := copies.Derive(ctx, ws, copies.Derived{To: f.out, Note: f.note, Format: string(dataset.Answers),
		Made: c.now(),
		Fill: func(_ context.Context, _ string, sink func(string, func(io.Writer) error) error) ([]string, error) {
			return write(sink)
		}})
	return exportProblem(err)
}
