package main

import (
	"bytes"
	"encoding/json"
	"image"
	"os"
	"strings"
	"testing"

	"rehydrate/cmd/internal/console"
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

func TestProgress(t *testing.T) {
	want := console.Progress{Words: "images, 1 could not be read", Line: "3 of 10 images, 1 could not be read", Done: 3, Total: 10}
	if got := progress(counts{read: 2, failed: 1}, 3, 10); got != want {
		t.Errorf("progress = %+v, want %+v", got, want)
	}
}
