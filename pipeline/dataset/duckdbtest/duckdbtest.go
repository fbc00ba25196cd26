// Package duckdbtest lets tests read Parquet with DuckDB, a reader that shares no code with
// the writer. DuckDB runs in node: scripts/setup --with-readers installs it. Where it is
// missing a test skips, except under CI=true, where it fails.
package duckdbtest

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Query runs SQL and decodes the rows of its last statement, objects by column name, into
// rows, a pointer to a slice. Blobs come as hex. Name files with Quote. Any failure ends t.
func Query(t testing.TB, rows any, sql string) {
	t.Helper()
	root := moduleRoot(t)
	readers := filepath.Join(root, ".cache", "readers")
	node, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat(filepath.Join(readers, "node_modules", "@duckdb", "node-api"))
	}
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("DuckDB is needed under CI (scripts/setup --with-readers): %v", err)
		}
		t.Skipf("no DuckDB (scripts/setup --with-readers): %v", err)
	}
	cmd := exec.CommandContext(t.Context(), node, filepath.Join(root, "pipeline", "dataset", "duckdbtest", "duckdb.mjs"), readers)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(sql), &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("DuckDB: %v\n%s\nin: %s", err, errs.Bytes(), sql)
	}
	if err := json.Unmarshal(out.Bytes(), rows); err != nil {
		t.Fatalf("DuckDB: decode %.300s: %v\nin: %s", out.Bytes(), err, sql)
	}
}

// Quote returns s as an SQL string, for file names.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// moduleRoot is the nearest folder above the test's own that holds go.mod.
func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test's folder")
		}
		dir = parent
	}
}
