package main

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rehydrate/internal/testkit"
)

// A slurm is a cluster of this machine alone, with a configuration, a key and ports of its own.
type slurm struct {
	t   *testing.T
	dir string
	ctl *exec.Cmd
}

const slurmConf = `ClusterName=test
SlurmctldHost=%[1]s(127.0.0.1)
SlurmUser=%[2]s
SlurmdUser=%[2]s
SlurmctldPort=%[3]d
SlurmdPort=%[4]d
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/munge
AuthInfo=socket=%[5]s/munge.sock
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,batch_sched_delay=0,requeue_delay=1
StateSaveLocation=%[5]s/ctld
SlurmdSpoolDir=%[5]s/slurmd
SlurmctldPidFile=%[5]s/slurmctld.pid
SlurmdPidFile=%[5]s/slurmd.pid
SlurmctldLogFile=%[5]s/slurmctld.log
SlurmdLogFile=%[5]s/slurmd.log
ReturnToService=2
KillWait=1
MinJobAge=5
NodeName=%[1]s NodeAddr=127.0.0.1 CPUs=%[6]d State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
`

// startSlurm starts Debian's Slurm and munge, which the end of the test stops.
func startSlurm(t *testing.T) *slurm {
	t.Helper()
	path := os.Getenv("PATH") + ":/usr/sbin:/sbin"
	t.Setenv("PATH", path)
	for _, program := range []string{"slurmctld", "slurmd", "munged", "sbatch"} {
		if _, err := exec.LookPath(program); err != nil {
			testkit.Lacking(t, "slurm-wlm", err)
		}
	}
	dir, err := os.MkdirTemp("", "slurm") // a socket's name is short
	check(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &slurm{t: t, dir: dir}
	host, err := os.Hostname()
	check(t, err)
	who, err := user.Current()
	check(t, err)
	check(t, errors.Join(os.Mkdir(dir+"/ctld", 0o700), os.Mkdir(dir+"/slurmd", 0o700),
		os.WriteFile(dir+"/munge.key", []byte(strings.Repeat("a key for one test only. ", 40)), 0o400),
		os.WriteFile(dir+"/slurm.conf", fmt.Appendf(nil, slurmConf, host, who.Username, freePort(t), freePort(t), dir,
			runtime.NumCPU()), 0o600)))
	t.Setenv("SLURM_CONF", dir+"/slurm.conf")
	s.start("munged", "--foreground", "--force", "--socket="+dir+"/munge.sock", "--key-file="+dir+"/munge.key",
		"--pid-file="+dir+"/munge.pid",
		"--log-file="+dir+"/munge.log", "--seed-file="+dir+"/munge.seed")
	s.until("munge", func() bool { _, err := os.Stat(dir + "/munge.sock"); return err == nil })
	s.ctl = s.start("slurmctld", "-D")
	s.start("slurmd", "-D")
	s.until("the node", func() bool { return strings.Contains(s.out("sinfo", "--noheader", "--format=%T"), "idle") })
	return s
}

func freePort(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (s *slurm) start(program string, args ...string) *exec.Cmd {
	s.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	check(s.t, cmd.Start())
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have been killed before
		_ = cmd.Wait()
	})
	return cmd
}

// out is what a program prints, "" where it fails.
func (s *slurm) out(program string, args ...string) string {
	b, _ := exec.Command(program, args...).Output()
	return strings.TrimSpace(string(b))
}

func (s *slurm) until(what string, holds func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			logs, _ := filepath.Glob(s.dir + "/*.log")
			for _, name := range logs {
				s.t.Logf("%s:\n%s", name, read(s.t, name))
			}
			s.t.Fatalf("waited a minute for %s", what)
		}
	}
}

// running waits for a task to run, and returns its name.
func (s *slurm) running() (task string) {
	s.t.Helper()
	s.until("a running task", func() bool {
		task, _, _ = strings.Cut(s.out("squeue", "--noheader", "--array", "--states=RUNNING", "--format=%i"), "\n")
		return task != ""
	})
	return task
}

// TestSlurm reads images in the tasks of a real Slurm: the dataset is that of a plain run, whatever is killed on the
// way.
func TestSlurm(t *testing.T) {
	long(t)
	cluster := startSlurm(t)
	posts := fewPosts(12)
	s := newSite(t, fewAnnotations(posts), patient(""), posts...)
	s.do(s.env(), s.args()...).want(t, 0)
	whole := s.dataset()
	check(t, os.RemoveAll(s.workspace))
	// Long enough that a task can be caught at work.
	slow := filepath.Join(t.TempDir(), "slow")
	check(t, os.WriteFile(slow, fmt.Appendf(nil, "#!/bin/sh\nsleep 1\nexec %q \"$@\"\n", s.reader), 0o700))
	args := s.job("cluster run", "--engine", "slurm", "--shards", "4", "--ocr", slow)
	same := func(t *testing.T) {
		t.Helper()
		if !maps.Equal(whole, s.dataset()) {
			t.Error("the dataset is another one than that of a plain run")
		}
		if left := tree(t, filepath.Join(s.workspace, "shards")); len(left) > 0 {
			t.Errorf("left of the shards: %q", slices.Sorted(maps.Keys(left)))
		}
		check(t, os.RemoveAll(s.workspace))
	}

	t.Run("a step is killed", func(t *testing.T) {
		done := make(chan finished)
		go func() { done <- s.do(s.env(), args...) }()
		for range 3 {
			cluster.out("scancel", "--signal=KILL", "--full", cluster.running())
		}
		(<-done).want(t, 0)
		same(t)
	})
	if !full() { // it waits more than it tests
		return
	}
	t.Run("the controller goes away and comes back", func(t *testing.T) {
		done := make(chan finished)
		go func() { done <- s.do(s.env(), args...) }()
		cluster.running()
		cluster.restart(syscall.SIGTERM, 3*time.Second) // some looks fail
		(<-done).want(t, 0)
		same(t)
	})
	for _, by := range []os.Signal{os.Kill, syscall.SIGHUP} {
		t.Run("the login is lost, "+by.String(), func(t *testing.T) {
			login := s.login(args...)
			cluster.running()
			check(t, login.Process.Signal(by))
			_ = login.Wait() // killed or hung up
			if by == syscall.SIGHUP {
				cluster.running() // still
			}
			s.do(s.env(), args...).want(t, 0)
			same(t)
		})
	}
	t.Run("an interrupt cancels", func(t *testing.T) {
		done := make(chan finished)
		go func() { done <- s.do(s.env(), args...) }()
		cluster.running()
		close(s.stop)
		(<-done).want(t, 130)
		s.stop = make(chan struct{})
		cluster.until("an empty queue", func() bool { return cluster.out("squeue", "--noheader") == "" })
		s.do(s.env(), args...).want(t, 0)
		same(t)
	})
	t.Run("a task takes too long, and is read again", func(t *testing.T) {
		hangs := filepath.Join(t.TempDir(), "hangs")
		check(t, os.WriteFile(hangs, fmt.Appendf(nil, "#!/bin/sh\nmkdir %q 2>/dev/null && sleep 1000\nexec %q \"$@\"\n",
			hangs+".once", s.reader), 0o700))
		s.do(s.env(), append(args, "--sbatch", "--time=1 --overcommit", "--ocr", hangs)...).want(t, 0)
		same(t)
	})
	t.Run("a task always fails", func(t *testing.T) {
		broken := filepath.Join(t.TempDir(), "broken")
		check(t, os.WriteFile(broken, []byte("#!/bin/sh\necho it is broken >&2\nexit 1\n"), 0o700))
		s.do(s.env(), append(args, "--ocr", broken)...).want(t, 1, "failed 3 times", "it is broken")
	})
	figsimOnSlurm(t, cluster)
}

// restart ends the controller by a signal, and starts it after a while.
func (s *slurm) restart(by os.Signal, after time.Duration) {
	s.t.Helper()
	check(s.t, s.ctl.Process.Signal(by))
	_ = s.ctl.Wait() // killed, it ends with an error
	time.Sleep(after)
	s.ctl = s.start("slurmctld", "-D")
}

// login starts a command as somebody on a login node does: in a process of its own.
func (s *site) login(args ...string) *exec.Cmd {
	s.t.Helper()
	cmd := s.command(s.t.Context(), nil, args...)
	// what its tasks run, without the variable that makes a test binary a program
	cmd.Path, cmd.Err = exec.LookPath("rehydrate")
	check(s.t, cmd.Start())
	return cmd
}

// figsimOnSlurm reads FigSIM's 1,049 with Tesseract in four shards, first undisturbed, then struck at ten moments:
// always the bytes of a plain run. It prints what docs/scale.md says of it.
func figsimOnSlurm(t *testing.T, cluster *slurm) {
	s, _, _ := figsim(t, 1)
	began := time.Now()
	s.do(s.env(), s.args()...).want(t, 0)
	t.Logf("a plain run with %d workers took %.1f s", runtime.NumCPU(), time.Since(began).Seconds())
	whole := s.dataset()
	args := s.job("cluster run", "--engine", "slurm", "--shards", "4", "--ocr", s.reader)
	again := func() {
		check(t, os.RemoveAll(s.workspace))
		began = time.Now()
	}
	same := func() {
		t.Helper()
		t.Logf("it took %.1f s", time.Since(began).Seconds())
		if !maps.Equal(whole, s.dataset()) {
			t.Error("the dataset is another one than that of a plain run")
		}
	}

	again()
	login, seen := s.login(args...), newSightings(filepath.Join(s.workspace, "shards"))
	check(t, login.Wait())
	reading := seen.table(t, began)
	same()

	again()
	s.do(s.env(), s.job("cluster split", "--shards", "4")...).want(t, 0)
	fetched := s.workspace + ".fetched"
	check(t, os.Rename(s.workspace, fetched))
	random, _ := chance(t)
	// At most two in one run end a task: a shard that fails three times ends the command.
	for _, strikes := range [][]string{{"step", "controller", "login", "process"},
		{"process", "controller killed", "login"}, {"login", "controller", "step"}} {
		again()
		check(t, works(t, "cp", "-a", fetched, s.workspace))
		login := s.login(args...)
		cluster.running()
		random.Shuffle(len(strikes), func(i, j int) { strikes[i], strikes[j] = strikes[j], strikes[i] })
		for _, strike := range strikes {
			time.Sleep(time.Duration(random.Int64N(int64(reading) / int64(len(strikes)))))
			t.Logf("%.1f s: %s, %s", time.Since(began).Seconds(), strike,
				cluster.out("squeue", "--noheader", "--array", "--format=%K:%T"))
			switch strike {
			case "step":
				cluster.out("scancel", "--signal=KILL", "--full", cluster.running())
			case "process":
				cluster.running()
				check(t, syscall.Kill(s.task(t), syscall.SIGKILL))
			case "controller":
				cluster.restart(syscall.SIGTERM, time.Duration(random.Int64N(int64(8*time.Second))))
			case "controller killed":
				cluster.restart(syscall.SIGKILL, time.Duration(random.Int64N(int64(8*time.Second))))
			case "login":
				check(t, login.Process.Kill())
				_ = login.Wait() // killed
				login = s.login(args...)
			}
		}
		check(t, login.Wait())
		same()
	}
}

// task finds the process of a task that reads a shard of the workspace.
func (s *site) task(t *testing.T) (pid int) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	check(t, err)
	for _, name := range lines {
		line, _ := os.ReadFile(name) // it may have ended
		if strings.Contains(string(line), "\x00work\x00--quiet\x00--workspace\x00"+s.workspace+"\x00") {
			pid, err = strconv.Atoi(filepath.Base(filepath.Dir(name)))
			check(t, err)
			return pid
		}
	}
	t.Fatal("no task is running")
	return 0
}

// sightings are the moments at which the files of a folder were seen first.
type sightings struct {
	at   map[string]time.Time
	stop chan struct{}
	done chan struct{}
}

func newSightings(dir string) *sightings {
	s := &sightings{map[string]time.Time{}, make(chan struct{}), make(chan struct{})}
	go func() {
		defer close(s.done)
		for {
			files, _ := os.ReadDir(dir) // not there yet, or no more
			for _, f := range files {
				name := f.Name()
				if strings.HasPrefix(name, "part-") {
					name = name[:len("part-00000")]
				}
				if _, ok := s.at[name]; !ok {
					s.at[name] = time.Now()
				}
			}
			select {
			case <-s.stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return s
}

// table prints what a run in shards spent its time on, and returns how long the reading took. A shard waits for Slurm
// from the moment that a processor is free for it; it starts until it opens its results.
func (s *sightings) table(t *testing.T, began time.Time) (reading time.Duration) {
	t.Helper()
	close(s.stop)
	<-s.done
	end, plan := time.Now(), s.at["plan.json"]
	type shard struct{ log, part, done time.Time }
	var shards []shard
	for i := range 4 {
		shards = append(shards, shard{s.at[fmt.Sprintf("log-%05d.txt", i)], s.at[fmt.Sprintf("part-%05d", i)],
			s.at[fmt.Sprintf("result-%05d.json", i)]})
	}
	slices.SortFunc(shards, func(a, b shard) int { return a.log.Compare(b.log) })
	free, last := slices.Repeat([]time.Time{plan}, runtime.NumCPU()), plan
	for i, r := range shards {
		t.Logf("shard %d of 4 in the order of their starts: scheduling %.2f s, start %.2f s, reading %.1f s", i,
			r.log.Sub(free[0]).Seconds(), r.part.Sub(r.log).Seconds(), r.done.Sub(r.part).Seconds())
		free = append(free[1:], r.done)
		slices.SortFunc(free, time.Time.Compare)
		last = free[len(free)-1]
	}
	t.Logf("fetching and splitting %.1f s, all shards %.1f s, merging and writing %.1f s", plan.Sub(began).Seconds(),
		last.Sub(plan).Seconds(), end.Sub(last).Seconds())
	return last.Sub(plan)
}
