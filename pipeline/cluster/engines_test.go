package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/pipeline/state"
)

// TestSlurmSubmit: sbatch gets an array of just the shards, and how many may run at once; the caller's own arguments
// come before the name by which the jobs are found again.
func TestSlurmSubmit(t *testing.T) {
	for _, test := range []struct {
		name   string
		shards []int
		atOnce int
		sbatch []string
		want   string // of the arguments
	}{
		{"one", []int{4}, 0, nil, "--array=4 --requeue"},
		{"a range", []int{0, 1, 2, 3}, 0, nil, "--array=0-3 --requeue"},
		{"a range from the middle", []int{5, 6}, 0, nil, "--array=5-6 --requeue"},
		{"with a gap", []int{0, 2, 3}, 0, nil, "--array=0,2,3 --requeue"},
		{"some at once", []int{0, 1, 2}, 2, nil, "--array=0-2%2 --requeue"},
		{"one at once", []int{0, 2}, 1, nil, "--array=0,2%1 --requeue"},
		{"without credentials", []int{0}, 0, nil, "--export=PATH,HOME,LANG,TESSDATA_PREFIX"},
		{"further arguments", []int{0}, 0, []string{"--time=60", "--mem=2G"},
			"%5a.txt --time=60 --mem=2G --job-name=rehydrate-"},
	} {
		bin := t.TempDir()
		script := "#!/bin/sh\necho \"$@\" > " + bin + "/said\ncat > " + bin + "/script\n"
		testkit.OK(t, os.WriteFile(filepath.Join(bin, "sbatch"), []byte(script), 0o700))
		t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
		s := &Slurm{Command: Command{Workspace: "/data/100%/ws",
			Args: []string{"rehydrate", "--shard", IndexArg + "/9", "it's $HOME"}},
			AtOnce: test.atOnce, Sbatch: test.sbatch}
		testkit.OK(t, s.Submit(t.Context(), test.shards))
		said, err := os.ReadFile(bin + "/said")
		testkit.OK(t, err)
		for _, want := range []string{test.want, " --output=/data/100%%/ws/shards/log-%5a.txt", "--job-name=" + s.name()} {
			if !strings.Contains(string(said), want) {
				t.Errorf("%s: sbatch %s, want %s", test.name, said, want)
			}
		}
		got, err := os.ReadFile(bin + "/script")
		testkit.Same(t, test.name+": what each task runs",
			"#!/bin/sh\nexec 'rehydrate' '--shard' ''\"$SLURM_ARRAY_TASK_ID\"'/9' "+
				`'it'\''s $HOME' --workers "${SLURM_CPUS_PER_TASK:-1}"`+"\n", string(got), err)
	}
}

// TestSlurmFails: what a program of Slurm says of its trouble is told, and what squeue prints otherwise is no task.
func TestSlurmFails(t *testing.T) {
	for _, test := range []struct{ name, script, want string }{
		{"it fails", "echo 'no such partition' >&2; exit 1", "exit status 1: no such partition"},
		{"it prints something else", "printf away", `squeue printed "away", not the index of a task`},
	} {
		bin := t.TempDir()
		for _, program := range []string{"sbatch", "squeue", "scancel"} {
			testkit.OK(t, os.WriteFile(filepath.Join(bin, program), []byte("#!/bin/sh\n"+test.script+"\n"), 0o700))
		}
		t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
		s := &Slurm{Command: Command{Workspace: bin, Args: []string{"rehydrate", IndexArg}}}
		shards, _, err := s.Running(t.Context())
		if err == nil || !strings.Contains(err.Error(), test.want) || shards != nil {
			t.Errorf("%s: %v, %v, want %q", test.name, shards, err, test.want)
		}
		for program, err := range map[string]error{"sbatch": s.Submit(t.Context(), []int{0}),
			"scancel": s.Cancel(t.Context())} {
			if fails := strings.Contains(test.script, "exit 1"); (err != nil) != fails ||
				fails && !strings.Contains(err.Error(), program+": "+test.want) {
				t.Errorf("%s: %s: %v", test.name, program, err)
			}
		}
	}
}

// TestLocalRuns: each shard is read once, by a process with its index, no more at once than are asked for, and what
// waits or runs is known.
func TestLocalRuns(t *testing.T) {
	for _, atOnce := range []int{1, 2, 9} {
		dir, _ := folder(t, 4)
		at := filepath.Join(dir, state.ShardsDir)
		l := &Local{Command: Command{dir, []string{"sh", "-c", "echo begun >> " + at + "/begun; while ! test -e " + at +
			"/go; do sleep 0.01; done; echo shard $0", IndexArg}}, AtOnce: atOnce, Grace: time.Second}
		testkit.OK(t, l.Submit(t.Context(), []int{0, 1}), l.Submit(t.Context(), []int{2, 3}))
		begun := func() int {
			text, _ := os.ReadFile(at + "/begun") // not there before the first
			return strings.Count(string(text), "begun")
		}
		for begun() < min(atOnce, 4) {
			time.Sleep(time.Millisecond)
		}
		all, _, err := l.Running(t.Context())
		slices.Sort(all)
		testkit.Same(t, "what waits or runs", []int{0, 1, 2, 3}, all, err)
		time.Sleep(200 * time.Millisecond) // one more would begin in this time
		testkit.Same(t, "how many run at once", min(atOnce, 4), begun())
		testkit.OK(t, os.WriteFile(at+"/go", nil, 0o600))
		for len(all) > 0 {
			all, _, err = l.Running(t.Context())
			testkit.OK(t, err)
			time.Sleep(time.Millisecond)
		}
		testkit.OK(t, l.Cancel(t.Context()))
		for i := range 4 {
			text, err := os.ReadFile(filepath.Join(at, logName(i)))
			testkit.Same(t, "what it printed", "shard "+string(rune('0'+i))+"\n", string(text), err)
		}
		testkit.Same(t, "processes", 4, begun())
	}
	testkit.OK(t, (&Local{}).Cancel(t.Context())) // before anything was submitted
}

// TestLocalCannotStart: a program that is not there leaves the reason in the log of its shard.
func TestLocalCannotStart(t *testing.T) {
	dir, _ := folder(t, 1)
	begun := filepath.Join(dir, "begun")
	l := &Local{Command: Command{filepath.Join(dir, "away"), []string{"touch", begun}}, AtOnce: 1}
	testkit.OK(t, l.Submit(t.Context(), []int{0}))
	l.ended.Wait()
	if _, err := os.Stat(begun); err == nil {
		t.Error("a process without a log was started")
	}
	l = &Local{Command: Command{dir, []string{filepath.Join(dir, "none")}}, AtOnce: 1}
	testkit.OK(t, l.Submit(t.Context(), []int{0}))
	l.ended.Wait()
	if last := lastWords(os.DirFS(dir), 0); !strings.Contains(last, "no such file") {
		t.Error(last)
	}
}
