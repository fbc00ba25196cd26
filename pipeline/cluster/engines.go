package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"rehydrate/internal/printable"
	"rehydrate/pipeline/state"
)

// A Command is `rehydrate cluster work` but for the index of the shard.
type Command struct {
	Workspace string   // an absolute path
	Args      []string // the program with its arguments, among them IndexArg
}

// IndexArg stands among the arguments of a Command where the index of the shard belongs.
const IndexArg = "{index}"

// Local is the engine of plain processes on this machine.
type Local struct {
	Command
	AtOnce int           // how many processes run at one time
	Grace  time.Duration // how long one that is interrupted may take to end, before it is killed

	mu      sync.Mutex // guards what follows
	waiting []int
	running map[int]bool
	workers int             // that go on to the next shard, also those that have not begun
	ctx     context.Context // of all processes
	cancel  context.CancelFunc
	ended   sync.WaitGroup
}

// Submit starts processes, AtOnce at a time, which Cancel ends.
func (l *Local) Submit(_ context.Context, shards []int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, shards...)
	if l.running == nil {
		l.running = map[int]bool{}
		l.ctx, l.cancel = context.WithCancel(context.Background())
	}
	for range min(len(shards), l.AtOnce-l.workers) {
		l.workers++
		l.ended.Go(func() { l.work(l.ctx) })
	}
	return nil
}

// work runs shards until none waits.
func (l *Local) work(ctx context.Context) {
	for last := -1; ; {
		l.mu.Lock()
		delete(l.running, last)
		if len(l.waiting) == 0 || ctx.Err() != nil {
			l.workers--
			l.mu.Unlock()
			return
		}
		last, l.waiting = l.waiting[0], l.waiting[1:]
		l.running[last] = true
		l.mu.Unlock()
		_ = l.run(ctx, last) // what is not done is submitted again, and its log says why
	}
}

func (l *Local) run(ctx context.Context, shard int) error {
	log, err := os.Create(filepath.Join(l.Workspace, state.ShardsDir, logName(shard)))
	if err != nil {
		return err
	}
	defer log.Close()
	args := slices.Clone(l.Args)
	for i, a := range args {
		args[i] = strings.ReplaceAll(a, IndexArg, strconv.Itoa(shard))
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = l.Grace
	err = cmd.Run()
	if cmd.ProcessState.ExitCode() < 0 { // it could not say so itself: not started, or killed
		fmt.Fprintln(log, err)
	}
	return err
}

// Running returns the shards that wait or are being read.
func (l *Local) Running(context.Context) (all []int, why string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.running {
		all = append(all, i)
	}
	return append(all, l.waiting...), "", nil
}

// Cancel interrupts the processes and waits for their end.
func (l *Local) Cancel(context.Context) error {
	l.mu.Lock()
	l.waiting = nil
	if l.cancel != nil {
		l.cancel()
	}
	l.mu.Unlock()
	l.ended.Wait()
	return nil
}

// Slurm is the engine of Slurm's arrays (https://slurm.schedmd.com/job_array.html). It finds its jobs by their name,
// which is of the command alone: so whoever comes back after a lost login, or never heard that sbatch came through,
// goes on with them.
type Slurm struct {
	Command
	AtOnce int      // how many tasks run at one time, 0 for as many as the cluster lets
	Sbatch []string // further arguments of sbatch
}

// Submit submits an array of the shards. What the cluster needs to know beside them stands in Sbatch.
func (s *Slurm) Submit(ctx context.Context, shards []int) error {
	var indices []string
	for _, i := range shards {
		indices = append(indices, strconv.Itoa(i))
	}
	array := strings.Join(indices, ",")
	if len(shards) > 1 && shards[len(shards)-1]-shards[0] == len(shards)-1 {
		array = indices[0] + "-" + indices[len(indices)-1]
	}
	if s.AtOnce > 0 {
		array += "%" + strconv.Itoa(s.AtOnce)
	}
	args := append([]string{"--array=" + array, "--requeue",
		// Not the environment of the caller, which holds credentials.
		"--export=PATH,HOME,LANG,TESSDATA_PREFIX",
		"--output=" + strings.ReplaceAll(filepath.Join(s.Workspace, state.ShardsDir), "%",
			"%%") + "/" + logPrefix + "%5a.txt"}, s.Sbatch...)
	cmd := slurmCommand(ctx, "sbatch", append(args, "--job-name="+s.name())...)
	cmd.Stdin = strings.NewReader(s.script())
	_, err := output(cmd)
	return err
}

func (s *Slurm) name() string { return "rehydrate-" + state.SHA256([]byte(s.script()))[:12] }

// script is what each task runs.
func (s *Slurm) script() string {
	var b strings.Builder
	b.WriteString("#!/bin/sh\nexec")
	for _, a := range s.Args {
		// The index and the processors are the cluster's to say; all else is quoted.
		quoted := "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		b.WriteString(" " + strings.ReplaceAll(quoted, IndexArg, `'"$SLURM_ARRAY_TASK_ID"'`))
	}
	b.WriteString(` --workers "${SLURM_CPUS_PER_TASK:-1}"` + "\n")
	return b.String()
}

// Running asks squeue for the tasks of all jobs of this command.
func (s *Slurm) Running(ctx context.Context) (all []int, why string, err error) {
	out, err := output(slurmCommand(ctx, "squeue", user(), "--name="+s.name(), "--noheader", "--array",
		"--format=%K %T %r"))
	if err != nil {
		return nil, "", err
	}
	return tasks(out)
}

// tasks reads what squeue printed: a task a line, with its index, its state and why it waits.
func tasks(out string) (all []int, why string, err error) {
	busy := false
	for line := range strings.Lines(out) {
		index, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		status, reason, _ := strings.Cut(rest, " ")
		i, err := strconv.Atoi(index)
		if err != nil {
			return nil, "", fmt.Errorf("squeue printed %q, not the index of a task", printable.Line(line))
		}
		all = append(all, i)
		busy = busy || status != "PENDING"
		if status == "PENDING" && !isHeld(why) {
			why = printable.Line(reason)
		}
	}
	if busy && !isHeld(why) {
		why = ""
	}
	return all, why, nil
}

// isHeld reports whether Slurm's reason for a wait ends only when somebody releases the task.
func isHeld(reason string) bool { return strings.Contains(strings.ToLower(reason), "held") }

// Cancel cancels all jobs of this command.
func (s *Slurm) Cancel(ctx context.Context) error {
	_, err := output(slurmCommand(ctx, "scancel", user(), "--name="+s.name()))
	return err
}

// slurmCommand is a program of Slurm with what it needs of the environment of this process, which holds credentials for
// Reddit and for model servers: where things are, the user's language, the settings of Slurm's own programs, and what
// an array takes along (--export).
func slurmCommand(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = []string{} // nil would be all of it
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		known := slices.Contains([]string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR",
			"LD_LIBRARY_PATH",
			"KRB5CCNAME", "TESSDATA_PREFIX"}, name)
		settings := slices.ContainsFunc([]string{"SLURM_", "SBATCH_", "SQUEUE_", "SCANCEL_"}, func(p string) bool {
			return strings.HasPrefix(name, p)
		})
		if known || settings {
			cmd.Env = append(cmd.Env, pair)
		}
	}
	return cmd
}

func user() string { return "--user=" + strconv.Itoa(os.Getuid()) }

// output runs a program, and puts what it says on stderr into its error.
func output(cmd *exec.Cmd) (string, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", path.Base(cmd.Args[0]), err,
			printable.Line(strings.TrimSpace(errs.String())))
	}
	return out.String(), nil
}
