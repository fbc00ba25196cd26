package endpoint_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"rehydrate/internal/testkit/modelserver"
	"rehydrate/study/endpoint"
)

// TestSystemCalls: in the eyes of the kernel, a client without ThirdParty connects to loopback alone, whatever it is
// asked to do; the names of other machines are asked of no server either.
func TestSystemCalls(t *testing.T) {
	if os.Getenv("ENDPOINT_TRACED") != "" {
		for _, url := range strings.Fields(os.Getenv("ENDPOINT_TRACED")) {
			r, err := open(t, endpoint.Options{URL: url, Timeout: time.Second}).Chat(t.Context(), hello)
			fmt.Println(url, r.Outcome, err)
		}
		return
	}
	if out, err := exec.CommandContext(t.Context(), "strace", "-o", "/dev/null", "true").CombinedOutput(); err != nil {
		t.Skipf("strace does not work here (scripts/setup --with-readers installs it): %v\n%s", err, out)
	}
	server, _, _ := elsewhere(t)
	here := modelserver.New(t, "vllm")
	redirect := httptest.NewServer(http.RedirectHandler(server.URL, http.StatusTemporaryRedirect))
	defer redirect.Close()
	trace := t.TempDir() + "/trace"
	cmd := exec.CommandContext(t.Context(), "strace", "-f", "-e", "trace=connect,sendto,sendmsg,sendmmsg", "-o", trace,
		os.Args[0], "-test.run=^TestSystemCalls$")
	cmd.Env = append(os.Environ(), "ENDPOINT_TRACED="+strings.Join([]string{here.URL, server.URL, redirect.URL,
		"http://models.example/v1", "https://api.openai.com/v1"}, " "))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	calls, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	network := regexp.MustCompile(`(?m)^.*AF_INET.*$`)
	loopback := regexp.MustCompile(`inet_addr\("127\.|inet_pton\(AF_INET6, "::1"`)
	local := 0
	for _, call := range network.FindAllString(string(calls), -1) {
		if !loopback.MatchString(call) {
			t.Errorf("not to this machine: %s", call)
		}
		local++
	}
	if local < 2 || !strings.Contains(string(out), here.URL+" ok") {
		t.Errorf("%d connections to this machine\n%s\n%s", local, out, calls)
	}
}
