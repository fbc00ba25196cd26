package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/pipeline/ocr"
)

// TestConform: what is wrong with a worker is named, each time as the sample worker with one change.
func TestConform(t *testing.T) {
	if err := exec.CommandContext(t.Context(), "python3", "-c", "").Run(); err != nil {
		testkit.Lacking(t, "python3", err)
	}
	body, err := os.ReadFile("../../docs/worker.py")
	if err != nil {
		t.Fatal(err)
	}
	sample := string(body)
	if lines := strings.Count(sample, "\n"); lines >= 100 {
		t.Errorf("docs/worker.py has %d lines, want fewer than 100", lines)
	}
	page, err := os.ReadFile("../../docs/ocr.md")
	if hello := fmt.Sprintf(`{"protocol": %d, `, ocr.ProtocolVersion); err != nil ||
		!strings.Contains(string(page), hello) {
		t.Errorf("docs/ocr.md does not show the hello %s..., %v", hello, err)
	}
	const loop, called = `        say(answer(request, pictures))`, `{"id": request["ID"], "words": words}`
	for _, tt := range []struct{ name, old, new, check, want string }{
		{"as it is", "", "", "reading", `ok       hello      protocol 6; picture sizes 1.0; model none`},
		{"silent", loop, "        import time; time.sleep(60)", "one line", "ocr_timeout: no answer within 500ms"},
		{"another version", "PROTOCOL = 6", "PROTOCOL = 5", "hello", "the worker speaks version 5, this program version 6"},
		{"no name", `"name": "picture sizes 1.0"`, `"label": "x"`, "hello", `no "name" of the engine`},
		{"no model", `"model": "none"`, `"model": ""`, "hello", `no "model"`},
		{"no digest", "hashlib.sha256(open(__file__, \"rb\").read()).hexdigest()", `"1.0"`, "hello",
			`"model_sha256" is "1.0", not 64 hex digits`},
		{"another engine every time", `"ink below 128"`, `str(__import__("os").getpid())`, "again", "the engine changed"},
		{"words every time", `{what} IS`, `{__import__('os').getpid()} IS`, "again", "by another process"},
		{"garbage", loop, "        print(\"hello\", file=sys.__stdout__, flush=True)", "one line",
			`ocr_protocol: not the worker protocol: it begins with "h"`},
		{"a line without end", loop, `        answers.write(b"{" + 5000000 * b" ")`, "one line",
			"a line of more than 4194304 bytes"},
		{"another number of answers", called, `{"id": request["ID"], "words": words[:2]}`, "lines",
			"answer for 2 pictures, expected 5"},
		{"another request", `"id": request["ID"], "words"`, `"id": 7, "words"`, "one line",
			"answer to request 7, expected 1"},
		{"pictures mistaken", `["Sizes"], pictures)`, `["Sizes"], pictures[::-1])`, "lines", "in a request of 5, and as"},
		{"a word outside", "(i + 1) * step - 1, height", "width + 1, height", "one line", "in a picture of"},
		{"an empty box", "(i + 1) * step - 1, height", "i * step, height", "one line", "empty box"},
		{"a share of one", "yield text, 95,", "yield text, 0.95,", "one line", "no word has a confidence over 0.95"},
		{"lines as words", `INK".split()`, `INK",`, "one line", "has white space in it"},
		{"an error", "    ink = 100", "    assert False, \"no CUDA\"\n    ink = 100", "one line", "ocr_engine: no CUDA"},
		{"no whole pictures", "    ink = 100", "    assert psm == 13, \"lines only\"\n    ink = 100", "page",
			"ocr_engine: lines only"},
		{"no small pictures", "    if width < 60:", "    1 // (width - 1)\n    if width < 60:", "limits",
			"a picture of 1 x 1: ocr_engine: integer"},
		{"few lines", called, `{"id": request["ID"], "words": words[:12]}`, "limits",
			"16 lines, up to 4096 x 36: ocr_protocol"},
		{"dead", loop, "        sys.exit(\"Killed by a test\")", "one line",
			"ocr_crashed: exit status 1: Killed by a test"},
		{"endless", "    main()", "    main()\n    import time; time.sleep(60)", "end", "did not end within 2s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			changed := strings.Replace(sample, tt.old, tt.new, 1)
			if tt.old != "" && changed == sample {
				t.Fatalf("docs/worker.py does not hold %q", tt.old)
			}
			worker := filepath.Join(t.TempDir(), "worker.py")
			if err := os.WriteFile(worker, []byte(changed), 0o700); err != nil {
				t.Fatal(err)
			}
			timeout := "30s"
			if tt.name == "silent" {
				timeout = "500ms"
			}
			r := runProgram(t, "conform", worker, "--timeout", timeout)
			status, mark := exitFailed, "FAIL     "
			if tt.old == "" {
				status, mark = 0, "ok       "
			}
			// The last finding is the one to look at: nothing is asked after it.
			_, last, found := strings.Cut(r.Stdout, mark+tt.check)
			if r.Status != status || r.Stderr != "" || !found || strings.Contains(last, "ok ") ||
				!strings.Contains(r.Stdout, tt.want) {
				t.Errorf("ocr conform = %+v, want status %d and %q at %q", r, status, tt.want, tt.check)
			}
		})
	}
}

// TestConformSelf: the project's own worker does what is asked of others.
func TestConformSelf(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := runProgram(t, "conform", self)
	if want := `read as "THE QUICK BROWN FOX / JUMPS OVER / THE LAZY DOG / WHILE NOBODY / IS LOOKING AT THEM"`; r.Status != 0 || !strings.Contains(r.Stdout, want) {
		t.Errorf("ocr conform = %+v, want %s", r, want)
	}
	if r := runProgram(t, "conform", filepath.Join(t.TempDir(), "none")); r.Status != exitFailed ||
		!strings.Contains(r.Stdout, "FAIL     hello      start an OCR worker") {
		t.Errorf("ocr conform of no program = %+v", r)
	}
	wantError(t, exitUsage, "one program", "", "conform")
	wantError(t, exitUsage, "--timeout takes a time over zero", "", "conform", "x", "--timeout", "0s")
}
