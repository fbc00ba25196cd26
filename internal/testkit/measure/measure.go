// Package measure measures writers, each in a process of its own, because peak memory belongs to a process.
// Only tests import it.
package measure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// jobVar makes a test binary do a job and print a Measurement of it: "ours 2000".
const jobVar = "REHYDRATE_TEST_WRITER"

// A Job prepares rows, and returns the function that writes them. Only the function is measured.
type Job func(rows int) (write func(io.Writer) error)

// A Measurement says what a job took.
type Measurement struct {
	Rows    int
	Bytes   int64   // that the job wrote
	Seconds float64 // by the clock
	CPU     float64 // seconds
	Peak    float64 // resident memory of the process at most, MB
}

// Main is for TestMain: it does the job that Child asks of this process, or runs the tests.
func Main(m *testing.M, jobs map[string]Job) {
	asked := os.Getenv(jobVar)
	if asked == "" {
		os.Exit(m.Run())
	}
	took, err := do(asked, jobs)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(took)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func do(asked string, jobs map[string]Job) (m Measurement, err error) {
	name, number, _ := strings.Cut(asked, " ")
	m.Rows, err = strconv.Atoi(number)
	if err != nil {
		return m, err
	}
	job, ok := jobs[name]
	if !ok {
		return m, fmt.Errorf("no job %q", name)
	}
	write := job(m.Rows)
	before, err := processor()
	if err != nil {
		return m, err
	}
	began := time.Now()
	if err := write(counter{&m.Bytes}); err != nil {
		return m, err
	}
	m.Seconds = time.Since(began).Seconds()
	after, err := processor()
	if err != nil {
		return m, err
	}
	m.CPU = (after - before).Seconds()
	m.Peak, err = peakMemory()
	return m, err
}

// counter counts the bytes that it throws away.
type counter struct{ n *int64 }

func (c counter) Write(b []byte) (int, error) {
	*c.n += int64(len(b))
	return len(b), nil
}

// processor returns the processor time of this process.
func processor() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// peakMemory returns the most memory that the process had resident, in MB. Getrusage would not do: its value starts
// with the memory of the process that this one was forked from.
func peakMemory() (float64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		var kB float64
		if n, _ := fmt.Sscanf(line, "VmHWM: %f kB", &kB); n == 1 {
			return kB * 1024 / 1e6, nil
		}
	}
	return 0, errors.New("the system does not tell the peak of the memory")
}

// Child measures a job of Main, "NAME ROWS", in a process of its own. Any failure ends t.
func Child(t testing.TB, job string) Measurement {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), jobVar+"="+job, "GOMEMLIMIT=", "GOGC=")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", job, err, errs.Bytes())
	}
	var m Measurement
	if err := json.Unmarshal(out.Bytes(), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// Report measures a job so many times and reports the one that took the least processor time, as the machine may be
// busy. A row has so many MB.
func Report(b *testing.B, job string, times int, rowMB float64) {
	b.Helper()
	best := Child(b, job)
	for range times - 1 {
		if m := Child(b, job); m.CPU < best.CPU {
			best = m
		}
	}
	name := strings.ReplaceAll(job, " ", "-")
	b.ReportMetric(float64(best.Rows)*rowMB/best.Seconds, name+":MB/s")
	b.ReportMetric(float64(best.Rows)*rowMB/best.CPU, name+":MB/cpu-s")
	b.ReportMetric(best.Peak, name+":peak-MB")
	b.ReportMetric(float64(best.Bytes)/1e6, name+":file-MB")
}
