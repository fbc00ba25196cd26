package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/redditemu"
	"rehydrate/policy"
)

// BenchmarkScale has every command work on releases of REHYDRATE_BENCH_POSTS posts, and writes what each took into the
// file REHYDRATE_BENCH_SCALE. Reddit is emulated in a process of its own, pictures are specks, and the fake ocr program
// reads them. Rates of the policy are lifted: what they add is arithmetic.
func BenchmarkScale(b *testing.B) {
	file := os.Getenv("REHYDRATE_BENCH_SCALE")
	if file == "" {
		b.Skip("scripts/bench scale runs it")
	}
	for _, size := range strings.Fields(os.Getenv("REHYDRATE_BENCH_POSTS")) {
		posts, err := strconv.Atoi(size)
		check(b, err)
		b.Run(size, func(b *testing.B) { // one round: it is told to make no more
			keepFigures(b, file, newScale(b, posts).measure(posts))
		})
	}
}

// usage is what a process took; CPU is of user and system together.
type usage struct {
	Wall, CPU, Children time.Duration // Children: of the processes that it started, as far as it waited for them
	Peak                int64         // bytes of memory
}

func (u *usage) add(self, children syscall.Rusage) {
	cpu := func(r syscall.Rusage) time.Duration { return time.Duration(r.Utime.Nano() + r.Stime.Nano()) }
	u.CPU, u.Children, u.Peak = cpu(self), cpu(children), self.Maxrss<<10
}

// Variables of the environment of measured.
const (
	usageVar   = "REHYDRATE_BENCH_USAGE"   // the file for its usage
	profileVar = "REHYDRATE_BENCH_PROFILE" // the folder for a CPU profile of each command; may be empty
)

// measured is the main function of a rehydrate that asks as fast as it is answered, and says what it took itself.
func measured() {
	began := time.Now()
	if dir := os.Getenv(profileVar); dir != "" {
		if f, err := os.Create(filepath.Join(dir, strconv.FormatInt(began.UnixNano(), 10)+"-"+os.Args[1]+".prof")); err == nil {
			_ = pprof.StartCPUProfile(f)
		}
	}
	code := realMain(func(p *policy.Policy) {
		p.Reddit.RequestsPerMinute = 1e6
		for i := range p.Images.Hosts {
			p.Images.Hosts[i].RequestsPerSecond = 1e6
		}
	})
	pprof.StopCPUProfile()
	u := usage{Wall: time.Since(began)}
	var self, children syscall.Rusage
	_, _ = syscall.Getrusage(syscall.RUSAGE_SELF, &self), syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children)
	u.add(self, children)
	// Maxrss is that of the parent where that was larger: it outlives exec.
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		_, after, _ := strings.Cut(string(status), "VmHWM:")
		_, _ = fmt.Sscan(after, &u.Peak)
		u.Peak <<= 10
	}
	if err := os.WriteFile(os.Getenv(usageVar), toJSON(u), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = exitFailed
	}
	os.Exit(code)
}

// An access is how the emulator in another process is reached.
type access struct{ ConnectTo, CA, ClientID, Secret string }

// serveSpecks is the main function of an emulator of as many posts as its argument says. It ends with its standard input.
func serveSpecks() {
	err := func() error {
		posts, err := strconv.Atoi(os.Args[1])
		if err != nil {
			return err
		}
		s, err := redditemu.Start(redditemu.Options{RequestsPerWindow: 1e6, Window: time.Second})
		if err != nil {
			return err
		}
		defer s.Close()
		if err := s.Put(specks(posts)...); err != nil {
			return err
		}
		_, err = os.Stdout.Write(toJSON(access{s.ConnectTo(), string(s.CAPEM()), s.ClientID, s.Secret}))
		_, _ = io.Copy(io.Discard, os.Stdin)
		return err
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// specks are posts of one speck each. Of 100, three are gone, and three have the picture of the post before them.
func specks(n int) []redditemu.Post {
	rng, posts := rand.New(rand.NewPCG(1, 0x7370656b)), make([]redditemu.Post, n)
	for i := range posts {
		posts[i] = redditemu.Post{ID: manifest.PostID(fmt.Sprintf("1s%07d", i)), Images: []redditemu.Image{{Body: speck(rng), Ext: "png"}}}
		switch i % 100 {
		case 17:
			posts[i].Condition = redditemu.Removed
		case 47:
			posts[i].Condition = redditemu.Deleted
		case 77:
			posts[i].Condition = redditemu.Absent
		case 20, 50, 80:
			posts[i].Images = posts[i-1].Images
		}
	}
	return posts
}

// A scale is a release with the emulator of its posts.
type scale struct {
	*testing.B
	dir      string
	emulator *exec.Cmd
	end      io.Closer // ends the emulator
	network  []string
	env      []string
}

func newScale(b *testing.B, posts int) *scale {
	s := &scale{B: b, dir: b.TempDir(), emulator: exec.Command("reddit", strconv.Itoa(posts))}
	check(b, os.Mkdir(s.in("release"), 0o700))
	s.emulator.Stderr = os.Stderr
	in, err := s.emulator.StdinPipe()
	check(b, err)
	out, err := s.emulator.StdoutPipe()
	check(b, err)
	check(b, s.emulator.Start())
	s.end = in
	b.Cleanup(func() { in.Close() })
	var a access
	check(b, json.NewDecoder(out).Decode(&a))
	for name, text := range map[string]string{"ca.pem": a.CA, "release/annotations.csv": fewAnnotations(specks(posts)),
		"release/policy.toml": demoPolicy, "release/release.toml": demoRelease} {
		check(b, os.WriteFile(s.in(name), []byte(text), 0o600))
	}
	s.network = []string{"--approval", "TEST-1", "--connect-to", a.ConnectTo, "--cacert", s.in("ca.pem")}
	s.env = append(os.Environ(), "REDDIT_CLIENT_ID="+a.ClientID, "REDDIT_CLIENT_SECRET="+a.Secret, "REDDIT_USERNAME=test_user",
		usageVar+"="+s.in("usage"))
	return s
}

func (s *scale) in(name string) string { return filepath.Join(s.dir, name) }

// A step is one command of the table; requests says how often it asks about all posts, at the pace of Reddit.
type step struct {
	name   string
	sweeps int
	args   []string
}

func (s *scale) steps() []step {
	release, gone := s.in("release"), string(specks(1)[0].ID)
	online := func(args ...string) []string { return append(args, s.network...) }
	return []step{
		{"run: ask and fetch", 1, online("run", release, "--until", "fetched", "--shards", "1")},
		{"run: read", 0, []string{"work", "--shard", "0/1", "--workers", "2"}},
		{"run: ask again, decide, export", 1, online("run", release, "--merge")},
		{"run again", 1, online("run", release)},
		{"run --recheck", 1, online("run", release, "--recheck")},
		{"status", 0, []string{"status"}},
		{"report", 0, []string{"report"}},
		{"verify", 0, []string{"verify"}},
		{"audit --offline", 0, []string{"audit", release, "--offline"}},
		{"export", 0, []string{"export", release, "--to", s.in("copy"), "--note", "a measurement"}},
		{"diff", 0, []string{"diff", s.in("ws"), s.in("copy")}},
		{"purge of one post", 1, online("purge", release, "--id", gone)},
	}
}

// measure does all steps, and returns a line of figures for each, for the emulator and for the files.
func (s *scale) measure(posts int) (lines []figures) {
	for _, step := range s.steps() {
		cmd := exec.Command("measured", append(step.args, "-w", s.in("ws"))...)
		cmd.Env = s.env
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != exitDone && code != exitRetry {
			s.Fatalf("%s: %v\n%s", step.name, err, out)
		}
		var u usage
		b, err := os.ReadFile(s.in("usage"))
		check(s, err)
		check(s, json.Unmarshal(b, &u))
		s.Logf("%-32s %8.1f s, CPU %8.1f s (children %.1f s), %4d MB", step.name, u.Wall.Seconds(), u.CPU.Seconds(), u.Children.Seconds(), u.Peak/1e6)
		lines = append(lines, figures{posts, step.name, step.sweeps, u})
	}
	s.end.Close()
	check(s, s.emulator.Wait())
	var u usage
	u.add(*s.emulator.ProcessState.SysUsage().(*syscall.Rusage), syscall.Rusage{})
	lines = append(lines, figures{posts, "the emulator", 0, u})
	for _, name := range []string{"state.db", "audit/records.jsonl"} {
		info, err := os.Stat(filepath.Join(s.in("ws"), name))
		check(s, err)
		lines = append(lines, figures{posts, name, 0, usage{Peak: info.Size()}})
	}
	return lines
}

// figures are what one step took at one size; of a file Peak is the size.
type figures struct {
	posts  int
	name   string
	sweeps int
	usage
}

// keepFigures puts figures into a file of figures, in place of those of the same size and step.
func keepFigures(b *testing.B, file string, lines []figures) {
	all := readFigures(b, file)
	for _, l := range lines {
		all = slices.DeleteFunc(all, func(f figures) bool { return f.posts == l.posts && f.name == l.name })
	}
	all = append(all, lines...)
	slices.SortStableFunc(all, func(x, y figures) int { return x.posts - y.posts })
	var text strings.Builder
	w := csv.NewWriter(&text)
	_ = w.Write([]string{"posts", "step", "sweeps", "wall_s", "cpu_s", "children_cpu_s", "bytes"}) // a strings.Builder takes everything
	for _, l := range all {
		s := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }
		_ = w.Write([]string{strconv.Itoa(l.posts), l.name, strconv.Itoa(l.sweeps), s(l.Wall), s(l.CPU), s(l.Children), strconv.FormatInt(l.Peak, 10)})
	}
	w.Flush()
	check(b, os.WriteFile(file, []byte(text.String()), 0o600))
}

func readFigures(b *testing.B, file string) (all []figures) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	check(b, err)
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	check(b, err)
	for _, row := range rows[1:] {
		var n [6]float64
		for i, column := range []int{0, 2, 3, 4, 5, 6} {
			n[i], err = strconv.ParseFloat(row[column], 64)
			check(b, err)
		}
		d := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
		all = append(all, figures{int(n[0]), row[1], int(n[1]), usage{d(n[2]), d(n[3]), d(n[4]), int64(n[5])}})
	}
	return all
}
