package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rehydrate/pipeline/redditemu"
)

// TestRecheckTwiceADay runs the lines that docs/researcher.md gives to cron, and those of docs/systemd, in an
// environment without a variable, without the ocr program, and reads the mail that they send.
func TestRecheckTwiceADay(t *testing.T) {
	long(t)
	t.Parallel()
	docs := read(t, "../../docs/researcher.md")
	home := t.TempDir()
	for _, name := range []string{"rehydrate-recheck.service", "rehydrate-recheck.timer"} {
		unit := read(t, filepath.Join("../../docs/systemd", name))
		place := regexp.MustCompile(`# ~(/\S+)`).FindStringSubmatch(unit)[1]
		writeAs(t, filepath.Join(home, place), unit, 0o600)
	}
	unit := filepath.Join(home, ".config/systemd/user/rehydrate-recheck.")
	writeAs(t, filepath.Join(home, "rehydrate/scripts/recheck"), read(t, "../../scripts/recheck"), 0o700)
	mail := filepath.Join(home, "mail.txt")
	writeAs(t, filepath.Join(home, "bin/mail"), "#!/bin/sh\necho \"$@\" >"+mail+"\ncat >>"+mail+"\n", 0o700)
	if program, err := exec.LookPath("systemd-analyze"); err == nil {
		cmd := exec.Command(program, "--user", "verify", unit+"service", unit+"timer")
		cmd.Env = []string{"HOME=" + home, "XDG_RUNTIME_DIR=" + home}
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("systemd-analyze verify: %v\n%s", err, out)
		}
	}
	cron := regexp.MustCompile(`(?m)^    17 5,17 \* \* \* (.+)$`).FindStringSubmatch(docs)[1]
	service := strings.ReplaceAll(regexp.MustCompile(`(?m)^ExecStart=(.+)$`).FindStringSubmatch(read(t,
		unit+"service"))[1], "%h", home)

	posts := fewPosts(4)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	old := read(t, filepath.Join(s.workspace, "dataset/data/train-00000-of-00001.parquet"))
	to := filepath.Join(t.TempDir(), "copy")
	s.copyTo(to).want(t, exitDone)
	rehydrate, err := exec.LookPath("rehydrate")
	check(t, err)
	settings := func(mailTo string) {
		conf := "PATH=" + filepath.Join(home,
			"bin") + ":/usr/bin:/bin\nREHYDRATE=" + rehydrate + "\nRELEASE=" + s.release + "\nWORKSPACE=" + s.workspace +
			"\nMAILTO=" + mailTo + "\nFLAGS=\"--approval TEST-1 --connect-to " + s.emulator.ConnectTo() + " --cacert " + s.cacert + "\"\n"
		for key, value := range s.env() {
			conf += key + "=" + value + "\n"
		}
		writeAs(t, filepath.Join(home, ".config/rehydrate/recheck.conf"), conf, 0o600)
	}
	do := func(want int, line string) string {
		t.Helper()
		f := outcome(t, exec.Command("env", "-i", "HOME="+home, "/bin/sh", "-c", line))
		f.want(t, want)
		return f.stdout + f.stderr
	}

	settings("office@example.org")
	// A file that others can read gives the secret away, and one that they can write is run.
	conf := filepath.Join(home, ".config/rehydrate/recheck.conf")
	s.emulator.ForgetRequests()
	for _, mode := range []os.FileMode{0o640, 0o620, 0o604, 0o602} {
		check(t, os.Chmod(conf, mode))
		if out := do(exitUsage, service); !strings.Contains(out, conf+" can be read or written by others") ||
			!strings.Contains(out, "chmod 600") {
			t.Errorf("settings of mode %v: printed %q", mode, out)
		}
	}
	check(t, os.Chmod(conf, 0o600))
	if out := do(exitUsage, service+".nowhere"); !strings.Contains(out, "nowhere") {
		t.Errorf("settings that are not there: printed %q", out)
	}
	if asked := s.emulator.Requests(); len(asked) > 0 {
		t.Errorf("%d requests by settings that others could have", len(asked))
	}
	s.becomes(redditemu.Deleted, posts[0])
	out := do(exitDone, service)
	if _, err := os.Lstat(mail); out != "" || err == nil {
		t.Errorf("a recheck that found all in order printed %q, or sent a mail", out)
	}
	if got := s.exported(); !slices.Equal(got, []string{"few001", "few002", "few003"}) {
		t.Errorf("rows %v after it", got)
	}
	check(t, os.Rename(to, to+"2"))
	do(exitRetry, service)
	want := []string{"-s rehydrate: exit status 3 for " + s.workspace + " office@example.org", "not there any more",
		"rehydrate recheck: exit status 3"}
	for _, want := range want {
		if got := read(t, mail); !strings.Contains(got, want) {
			t.Errorf("the mail lacks %q:\n%s", want, got)
		}
	}
	// Cron mails what is printed.
	settings("")
	s.write(filepath.Join(s.workspace, "old.parquet"), old)
	if out := do(exitFound, cron); !strings.Contains(out, "old.parquet") ||
		!strings.Contains(out, "rehydrate audit --offline: exit status 4") {
		t.Errorf("printed:\n%s", out)
	}
	for name, b := range everyFile(t, home) {
		if !strings.HasSuffix(name, "recheck.conf") && bytes.Contains(b, []byte(s.emulator.Secret)) {
			t.Errorf("%s has the secret", name)
		}
	}
}

func writeAs(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	check(t, os.MkdirAll(filepath.Dir(name), 0o700))
	check(t, os.WriteFile(name, []byte(text), mode))
}
