package main

import (
	"bytes"
	"encoding/json"
	"image"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"rehydrate/pipeline/ocr"
)

func word(text string, confidence float64, accepted bool, box image.Rectangle) ocr.Word {
	return ocr.Word{Text: text, Confidence: confidence, Accepted: accepted, Box: box}
}

func readingOf(words ...ocr.Word) ocr.Reading { return ocr.Reading{Words: words} }

func TestDoctor(t *testing.T) {
	r := runProgram(t, "doctor")
	if r.status != 0 || r.stderr != "" {
		t.Fatalf("ocr doctor = %+v, want status 0", r)
	}
	dir, err := tessdataDir(os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	digest, err := fileDigest(modelFile(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{leptonicaVersion(), modelFile(dir), digest, "OMP_THREAD_LIMIT=1", "read back", "gosseract v"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("ocr doctor does not say %q:\n%s", want, r.stdout)
		}
	}
	if strings.Contains(r.stdout, "FAIL") {
		t.Errorf("ocr doctor:\n%s", r.stdout)
	}
}

func TestDoctorMisses(t *testing.T) {
	empty := t.TempDir()
	damaged := t.TempDir()
	if err := os.WriteFile(modelFile(damaged), bytes.Repeat([]byte("no model "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, name := range map[string]string{empty: "model", damaged: "worker"} {
		r := runProgram(t, "doctor", "--json", "--tessdata-dir", dir)
		var got struct {
			OK     bool
			Checks []finding
		}
		if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
			t.Fatal(err)
		}
		var failed []finding
		for _, f := range got.Checks {
			if !f.OK {
				failed = append(failed, f)
			}
		}
		if r.status != exitFailed || r.stderr != "" || got.OK || len(failed) != 1 || failed[0].Name != name || failed[0].Hint == "" || failed[0].Found == "" {
			t.Errorf("%s: status %d, failed %+v, want %s with a hint", name, r.status, failed, name)
		}
	}
}

// Plain lines come every few seconds, and never for a single image.
func TestPlainProgress(t *testing.T) {
	now := time.Unix(0, 0)
	var out bytes.Buffer
	c := newConsole(&out, func() time.Time { return now })
	for i := range 10 {
		now = now.Add(2 * time.Second)
		c.progress(counts{read: i, failed: 1}, 10)
	}
	want := "ocr: 3 of 10 images, 1 could not be read, about 14s left\nocr: 6 of 10 images, 1 could not be read, about 8s left\n" +
		"ocr: 9 of 10 images, 1 could not be read, about 2s left\n"
	if out.String() != want {
		t.Errorf("progress %q, want %q", out.String(), want)
	}
	out.Reset()
	now = now.Add(time.Hour)
	c.progress(counts{read: 0}, 1)
	if out.Len() > 0 {
		t.Errorf("progress of one image: %q", out.String())
	}
	if _, err := io.WriteString(c, "a line\n"); err != nil || out.String() != "a line\n" {
		t.Errorf("a line came out as %q, %v", out.String(), err)
	}
}
