// Package duckdb lets tests read Parquet with DuckDB, a reader that shares no code with
// the writer. DuckDB runs in node: scripts/setup --with-readers installs it. Where it is
// missing a test skips, except under CI=true, where it fails.
package duckdb

import (
	"strings"
	"testing"

	"rehydrate/internal/testkit"
)

// Query runs SQL and decodes the rows of its last statement, objects by column name, into
// rows, a pointer to a slice. Blobs come as hex. Name files with Quote. Any failure ends t.
func Query(t testing.TB, rows any, sql string) {
	t.Helper()
	testkit.Node(t, rows, "@duckdb/node-api", "internal/testkit/duckdb/duckdb.mjs", sql)
}

// Quote returns s as an SQL string, for file names.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
