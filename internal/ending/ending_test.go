package ending

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"rehydrate/internal/testkit"
)

// childVar makes this test binary a program that watches, and says what happens.
const childVar = "REHYDRATE_ENDING_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVar) == "" {
		testkit.HearHangups()
		os.Exit(m.Run())
	}
	cancelled := make(chan struct{})
	said := "stopped"
	stop := Watch(func() { said = "hung up" }, func() { close(cancelled) })
	fmt.Println("ready")
	select {
	case <-stop:
	case <-time.After(time.Second):
		fmt.Println("not stopped")
		os.Exit(0)
	}
	fmt.Println(said)
	select {
	case <-cancelled:
		fmt.Println("cancelled")
	case <-time.After(time.Second):
	}
	fmt.Println("whole") // also where nobody reads it
	os.Exit(7)
}

// TestWatch: the first signal stops, the second cancels unless it is a hangup, and one that was ignored from the start
// does nothing. Output that nobody reads ends nothing.
func TestWatch(t *testing.T) {
	const hup, interrupt, term = syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM
	for _, test := range []struct {
		name    string
		under   []string
		signals []syscall.Signal
		deaf    bool // nobody reads what it says after the first signal
		want    string
		code    int
	}{
		{"Ctrl-C", nil, []syscall.Signal{interrupt}, false, "stopped whole", 7},
		{"SIGTERM", nil, []syscall.Signal{term}, false, "stopped whole", 7},
		{"the terminal is closed", nil, []syscall.Signal{hup}, false, "hung up whole", 7},
		{"it says so twice", nil, []syscall.Signal{hup, hup}, false, "hung up whole", 7},
		{"the session ends", nil, []syscall.Signal{hup, term}, false, "hung up cancelled whole", 7},
		{"Ctrl-C twice", nil, []syscall.Signal{interrupt, interrupt}, false, "stopped cancelled whole", 7},
		{"Ctrl-C, then the terminal is closed", nil, []syscall.Signal{interrupt, hup}, false, "stopped whole", 7},
		{"nohup", []string{"sh", "-c", `trap "" HUP; exec "$0"`}, []syscall.Signal{hup}, false, "not stopped", 0},
		{"what reads the output ends too", nil, []syscall.Signal{hup}, true, "", 7},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			line := append(test.under, os.Args[0])
			cmd := exec.CommandContext(t.Context(), line[0], line[1:]...)
			cmd.Env = append(os.Environ(), childVar+"=1")
			out, err := cmd.StdoutPipe()
			testkit.OK(t, err, cmd.Start())
			lines := bufio.NewScanner(out)
			if !lines.Scan() || lines.Text() != "ready" {
				t.Fatalf("it says %q", lines.Text())
			}
			if test.deaf {
				testkit.OK(t, out.Close())
			}
			for _, s := range test.signals {
				testkit.OK(t, cmd.Process.Signal(s))
				time.Sleep(200 * time.Millisecond) // two at once can come in any order
			}
			var said []string
			for lines.Scan() {
				said = append(said, lines.Text())
			}
			_ = cmd.Wait() // its status says more
			testkit.Same(t, "said", test.want, strings.Join(said, " "))
			testkit.Same(t, "exit status", test.code, cmd.ProcessState.ExitCode())
		})
	}
}
