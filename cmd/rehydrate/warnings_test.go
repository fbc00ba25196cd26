package main

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWarnings: a warning is a sentence, whatever it was logged with, and cannot steer a terminal.
func TestWarnings(t *testing.T) {
	for _, c := range []struct {
		warn func(*slog.Logger)
		want string
	}{
		{func(l *slog.Logger) {
			l.Warn("reddit gives a reason for a removal that is not known here; it counts as a removal",
				"id", "180t6q", "reason", "other_something_new")
		}, "post 180t6q was removed for a reason this version does not know (other_something_new); treated as removed"},
		{func(l *slog.Logger) { l.Warn("mass removal withheld", "gone", 31, "were_live", 90) },
			"31 of 90 live posts are gone at once: they are held back, and nothing of them is erased"},
		{func(l *slog.Logger) {
			l.Warn("mass removal withheld, with images of live posts", "gone", 31, "were_live", 90)
		}, "31 of 90 live posts are gone or lost images at once: what is gone is held back, and nothing of it is erased"},
		{func(l *slog.Logger) { l.Warn("no verdict", "posts", 100, "reason", "empty", "detail", "") },
			"Reddit gave no usable answer about 100 posts (empty)"},
		{func(l *slog.Logger) { l.Warn("nothing more to say") }, "nothing more to say"},
		{func(l *slog.Logger) {
			l.With("shard", 3).Warn("it is asked again", "after_s", 5, "error", errors.New("sbatch: \x1b[31mno\nroute"))
		}, `it is asked again (shard 3, after s 5): sbatch: \x1b[31mno\nroute`},
	} {
		var out bytes.Buffer
		c.warn(slog.New(newWarnings(&out, slog.LevelWarn)))
		if diff := cmp.Diff("rehydrate: warning: "+c.want+"\n", out.String()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

// TestDetails: what -v adds stays for machines to read, and without -v it is not printed.
func TestDetails(t *testing.T) {
	for level, want := range map[slog.Level]string{
		slog.LevelDebug: "level=DEBUG msg=asked posts=3\n", slog.LevelWarn: "",
	} {
		var out bytes.Buffer
		slog.New(newWarnings(&out, level)).Debug("asked", "posts", 3)
		if got := out.String(); !strings.HasSuffix(got, want) || want == "" && got != "" {
			t.Errorf("at level %v: %q, want it to end with %q", level, got, want)
		}
	}
}
