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

	"rehydrate/pipeline/attest"
)

// Query runs SQL and decodes the rows of its last statement, objects by column name, into
// rows, a pointer to a slice. Blobs come as hex. Name files with Quote. Any failure ends t.
func Query(t testing.TB, rows any, sql string) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat(attest.Reader(t, "@duckdb/node-api"))
	}
	if err != nil {
		attest.Lacking(t, "DuckDB", err)
	}
	root := attest.ModuleRoot(t)
	cmd := exec.CommandContext(t.Context(), node, filepath.Join(root, "pipeline", "dataset", "duckdbtest", "duckdb.mjs"), filepath.Join(root, ".cache", "readers"))
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
