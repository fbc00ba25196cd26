package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
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

// BenchmarkScale has every command work on releases of REHYDRATE_BENCH_POSTS posts. What each took goes into scale.csv
// in the folder REHYDRATE_BENCH_SCALE, which keeps that of other sizes; scale.svg and table are drawn of all. Reddit is
// emulated in a process of its own, pictures are specks, and the fake ocr program reads them. Rates of the policy are
// lifted: what they add is arithmetic.
func BenchmarkScale(b *testing.B) {
	dir := os.Getenv("REHYDRATE_BENCH_SCALE")
	if dir == "" {
		b.Skip("scripts/bench scale runs it")
	}
	for _, size := range strings.Fields(os.Getenv("REHYDRATE_BENCH_POSTS")) {
		posts, err := strconv.Atoi(size)
		check(b, err)
		b.Run(size, func(b *testing.B) { // one round: it is told to make no more
			keepFigures(b, filepath.Join(dir, "scale.csv"), newScale(b, posts).measure(posts))
		})
	}
	d := newDrawing(readFigures(b, filepath.Join(dir, "scale.csv")))
	check(b, os.WriteFile(filepath.Join(dir, "scale.svg"), []byte(d.chart()), 0o644))
	check(b, os.WriteFile(filepath.Join(dir, "table"), []byte(d.table()), 0o644))
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
		if f, err := os.Create(filepath.Join(dir,
			strconv.FormatInt(began.UnixNano(), 10)+"-"+os.Args[1]+".prof")); err == nil {
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

// serveSpecks is the main function of an emulator of as many posts as its argument says. It ends with its standard
// input.
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
		id := 36*36*36*36*36 + i*48271%(1<<31-1) // ids of a release come from years of posts, in no order
		posts[i] = redditemu.Post{ID: manifest.PostID(strconv.FormatInt(int64(id), 36)),
			Images: []redditemu.Image{{Body: speck(rng), Ext: "png"}}}
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
	s.env = append(os.Environ(), "REDDIT_CLIENT_ID="+a.ClientID, "REDDIT_CLIENT_SECRET="+a.Secret,
		"REDDIT_USERNAME=test_user",
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
	local := func(args ...string) []string { return append(args, "-w", s.in("ws")) }
	online := func(args ...string) []string { return local(append(args, s.network...)...) }
	return []step{
		{"run: ask and fetch", 1, online("cluster", "split", release, "--shards", "1")},
		{"run: read", 0, local("cluster", "work", "--shard", "0/1", "--workers", "2")},
		{"run: ask again, decide, export", 1, online("cluster", "merge", release)},
		{"run again", 1, online("run", release)},
		{"recheck", 1, online("recheck", release)},
		{"status", 0, local("status")},
		{"report", 0, local("report")},
		{"verify", 0, local("verify")},
		{"audit --offline", 0, local("audit", release, "--offline")},
		{"export", 0, local("export", release, "--out", s.in("copy"), "--note", "a measurement")},
		{"diff", 0, []string{"diff", s.in("ws"), s.in("copy")}},
		{"purge of one post", 1, online("purge", release, "--id", gone)},
	}
}

// measure does all steps, and returns a line of figures for each, for the emulator and for the files.
func (s *scale) measure(posts int) (lines []figures) {
	for _, step := range s.steps() {
		cmd := exec.Command("measured", step.args...)
		cmd.Env = s.env
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != exitDone && code != exitRetry {
			s.Fatalf("%s: %v\n%s", step.name, err, out)
		}
		var u usage
		b, err := os.ReadFile(s.in("usage"))
		check(s, err)
		check(s, json.Unmarshal(b, &u))
		s.Logf("%-32s %8.1f s, CPU %8.1f s (children %.1f s), %4d MB", step.name, u.Wall.Seconds(), u.CPU.Seconds(),
			u.Children.Seconds(), u.Peak/1e6)
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

// keepFigures puts the figures of a size into a file of figures, in place of older ones.
func keepFigures(b *testing.B, file string, lines []figures) {
	all := slices.DeleteFunc(readFigures(b, file), func(f figures) bool { return f.posts == lines[0].posts })
	all = append(all, lines...)
	slices.SortStableFunc(all, func(x, y figures) int { return x.posts - y.posts })
	var text strings.Builder
	w := csv.NewWriter(&text)
	// a strings.Builder takes everything
	_ = w.Write([]string{"posts", "step", "sweeps", "wall_s", "cpu_s", "children_cpu_s", "bytes"})
	for _, l := range all {
		s := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }
		_ = w.Write([]string{strconv.Itoa(l.posts), l.name, strconv.Itoa(l.sweeps), s(l.Wall), s(l.CPU), s(l.Children),
			strconv.FormatInt(l.Peak, 10)})
	}
	w.Flush()
	check(b, os.WriteFile(file, []byte(text.String()), 0o644))
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

// A drawing is a table and a chart of figures, for docs/scale.md.
type drawing struct {
	sizes []int
	steps []string
	at    map[string]map[int]figures
}

func newDrawing(all []figures) drawing {
	d := drawing{at: map[string]map[int]figures{}}
	for _, f := range all {
		if !slices.Contains(d.sizes, f.posts) {
			d.sizes = append(d.sizes, f.posts)
		}
		if d.at[f.name] == nil {
			d.steps, d.at[f.name] = append(d.steps, f.name), map[int]figures{}
		}
		d.at[f.name][f.posts] = f
	}
	return d
}

// beyond extrapolates what was measured at the two largest sizes: by the power of n that leads from one to the other,
// at least the first. It is 0 where less was measured.
func (d drawing) beyond(step string, n int, value func(figures) float64) float64 {
	sizes := slices.Sorted(maps.Keys(d.at[step]))
	if len(sizes) < 2 {
		return 0
	}
	a, b := sizes[len(sizes)-2], sizes[len(sizes)-1]
	x, y := value(d.at[step][a]), value(d.at[step][b])
	if min(x, y) <= 0 {
		return 0
	}
	power := max(1, math.Log(y/x)/math.Log(float64(b)/float64(a)))
	return y * math.Pow(float64(n)/float64(b), power)
}

// table has a line for each step: seconds by the clock, of the processor, and the most memory, at each size.
func (d drawing) table() string {
	var b strings.Builder
	b.WriteString("| posts |")
	for _, n := range d.sizes {
		fmt.Fprintf(&b, " %s |", grouped(n))
	}
	b.WriteString(" 1,000,000, extrapolated from the last two |\n|---|" + strings.Repeat("---|", len(d.sizes)+1) + "\n")
	for _, step := range d.steps {
		fmt.Fprintf(&b, "| %s |", step)
		for _, n := range d.sizes {
			f, ok := d.at[step][n]
			switch {
			case !ok:
				b.WriteString(" |")
			case f.CPU == 0: // a file
				fmt.Fprintf(&b, " %.1f MB |", float64(f.Peak)/1e6)
			case f.Wall == 0:
				fmt.Fprintf(&b, " CPU %.1f s, %d MB |", f.CPU.Seconds(), f.Peak/1e6)
			default:
				fmt.Fprintf(&b, " %.1f s, CPU %.1f s, %d MB |", f.Wall.Seconds(), f.CPU.Seconds(), f.Peak/1e6)
			}
		}
		cpu := d.beyond(step, 1e6, func(f figures) float64 { return f.CPU.Seconds() })
		if cpu > 0 {
			fmt.Fprintf(&b, " CPU %.0f s |\n", cpu)
		} else {
			fmt.Fprintf(&b, " %.0f MB |\n", d.beyond(step, 1e6, func(f figures) float64 { return float64(f.Peak) })/1e6)
		}
	}
	return b.String()
}

// grouped writes a number with commas.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// chart draws the processor's time of each command against the posts, both by powers of ten, and n log n beside it.
func (d drawing) chart() string {
	const left, top, width, height, from, to, least, most = 50.0, 12.0, 480.0, 340.0, 3.0, 6.0, -2.0, 4.0
	x := func(n float64) float64 { return left + width*(math.Log10(n)-from)/(to-from) }
	y := func(s float64) float64 {
		return top + height*(most-min(max(math.Log10(s), least), most))/(most-least)
	}
	var b strings.Builder
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" width="760" height="400" font-family="sans-serif" font-size="12">` + "\n" +
		`<title>CPU seconds of each command, by posts</title><rect width="760" height="400" fill="white"/>` + "\n")
	text := func(x, y float64, anchor, color, s string) {
		fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\">%s</text>\n", x, y, anchor, color, s)
	}
	path := func(color, style string, points []float64) {
		fmt.Fprintf(&b, "<path fill=\"none\" stroke=\"%s\" %s d=\"M", color, style)
		for i := 0; i < len(points); i += 2 {
			fmt.Fprintf(&b, " %.1f %.1f", points[i], points[i+1])
		}
		b.WriteString("\"/>\n")
	}
	for n := 1000; n <= 1e6; n *= 10 {
		path("#ddd", "", []float64{x(float64(n)), top, x(float64(n)), top + height})
		text(x(float64(n)), top+height+16, "middle", "#333", grouped(n))
	}
	for e := least; e <= most; e++ {
		path("#ddd", "", []float64{left, y(math.Pow(10, e)), left + width, y(math.Pow(10, e))})
		text(left-6, y(math.Pow(10, e))+4, "end", "#333", strconv.FormatFloat(math.Pow(10, e), 'f', -1, 64))
	}
	text(left+width/2, top+height+36, "middle", "#333", "posts; dashed: n log n")
	text(left+4, top+12, "start", "#333", "CPU seconds")
	nlogn := func(n float64) float64 { return n * math.Log(n) * 2e-6 }
	path("#888", `stroke-dasharray="4 4"`, []float64{x(1e3), y(nlogn(1e3)), x(1e6), y(nlogn(1e6))})
	colors := []string{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#333333", "#8c564b",
		"#7f7f00", "#5e3c99", "#b2182b", "#1a9850"}
	line := 0
	for _, step := range d.steps {
		var points []float64
		for _, n := range d.sizes {
			if f, ok := d.at[step][n]; ok && f.Wall > 0 {
				points = append(points, x(float64(n)), y(f.CPU.Seconds()))
			}
		}
		if len(points) == 0 {
			continue // the emulator, and files
		}
		color := colors[line%len(colors)]
		path(color, `stroke-width="2"`, points)
		for i := 0; i < len(points); i += 2 {
			fmt.Fprintf(&b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", points[i], points[i+1], color)
		}
		text(left+width+16, top+14+20*float64(line), "start", color, step)
		line++
	}
	b.WriteString("</svg>\n")
	return b.String()
}
