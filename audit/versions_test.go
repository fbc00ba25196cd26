package audit_test

import (
	"bytes"
	"crypto/x509"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rehydrate/audit"
	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/cluster"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// TestVersionsOfFiles: of each file whose format has a version, an older and a newer one are refused in a sentence that
// says which it is, which one is read, and what to do.
func TestVersionsOfFiles(t *testing.T) {
	for name, file := range map[string]struct {
		reads int
		said  string // with which file it begins
		again string
		read  func(t *testing.T, version string) error
	}{
		"state.db": {workspace.Layout, "state.db", "start another workspace with -w DIR", openState},
		"dataset":  {1, "the Parquet", "make it again: rehydrate run, or export for a copy", readParquet},
		"plan":     {cluster.Format, "the plan", "split again: rehydrate cluster split", readPlan},
		"result":   {cluster.Format, "the result", "read the shard again: rehydrate cluster work", readResult},
		"statement": {2, "the statement a.json", "audit again", func(t *testing.T, version string) error {
			t.Chdir(t.TempDir())
			testkit.OK(t, os.WriteFile("a.json", []byte(`{"format":"rehydrate-audit/`+version+`"}`), 0o600))
			_, err := audit.CheckStatement(t.Context(), "a.json", "", func() (*x509.CertPool, error) { return nil, nil })
			return err
		}},
	} {
		for version, want := range map[string]string{
			fmt.Sprint(file.reads - 1): "use the older rehydrate that wrote it, or " + file.again,
			fmt.Sprint(file.reads + 1): "use a rehydrate as new as the one that wrote it, or " + file.again,
			fmt.Sprint(file.reads):     "",
		} {
			err := file.read(t, version)
			if want == "" {
				if err != nil && strings.Contains(err.Error(), "of its format") {
					t.Errorf("%s of version %s: %v", name, version, err)
				}
				continue
			}
			want := fmt.Sprintf("%s has version %s of its format, and this program reads version %d: %s", file.said,
				version, file.reads, want)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s of version %s: %v\nwant: %s", name, version, err, want)
			}
		}
	}
}

// TestNewerRecords: a record that a newer program may have written is said to be so.
func TestNewerRecords(t *testing.T) {
	for line, want := range map[string]string{
		`{"seq":0,"time":"2026-11-21T15:00:00Z","kind":"painted"}`:            "if a newer rehydrate wrote the log",
		`{"seq":0,"time":"2026-11-21T15:00:00Z","kind":"run","colour":"red"}`: "or a newer rehydrate wrote it",
	} {
		if _, err := auditlog.ParseLine([]byte(line + "\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

func openState(t *testing.T, version string) error {
	dir := filepath.Join(t.TempDir(), "w")
	ws, err := workspace.Open(t.Context(), dir, workspace.Options{})
	testkit.OK(t, err, ws.Close())
	db, err := sql.Open("sqlite", filepath.Join(dir, state.StateFile))
	testkit.OK(t, err)
	_, err = db.ExecContext(t.Context(), "UPDATE meta SET value = ? WHERE key = 'schema_version'", version)
	testkit.OK(t, err, db.Close())
	ws, err = workspace.Open(t.Context(), dir, workspace.Options{ReadOnly: true})
	if err == nil {
		testkit.OK(t, ws.Close())
	}
	return err
}

func readParquet(t *testing.T, version string) error {
	var b bytes.Buffer
	none := func(func(dataset.Row, error) bool) {}
	_, err := dataset.WriteParquet(&b, manifest.Schema{}, dataset.Provenance{}, false, none)
	testkit.OK(t, err)
	const key = "rehydrate.format\x18\x01" // and behind it the version
	if bytes.Count(b.Bytes(), []byte(key+dataset.FormatVersion)) != 1 {
		t.Fatal("the footer does not have the version where this test changes it")
	}
	body := bytes.Replace(b.Bytes(), []byte(key+dataset.FormatVersion), []byte(key+version), 1)
	_, err = dataset.ReadProvenance(bytes.NewReader(body), int64(len(body)))
	return err
}

func readPlan(t *testing.T, version string) error {
	return checkShards(t, `{"format":`+version+`,"shards":1}`, `{"format":1}`)
}

func readResult(t *testing.T, version string) error {
	return checkShards(t, `{"format":1,"shards":1}`, `{"format":`+version+`}`)
}

// checkShards checks a plan of one shard and its result.
func checkShards(t *testing.T, plan, result string) error {
	dir := filepath.Join(t.TempDir(), "w")
	ws, err := workspace.Open(t.Context(), dir, workspace.Options{})
	testkit.OK(t, err, os.MkdirAll(filepath.Join(dir, state.ShardsDir), 0o700),
		os.WriteFile(filepath.Join(dir, cluster.PlanFile), []byte(plan), 0o600),
		os.WriteFile(filepath.Join(dir, state.ShardsDir, "result-00000.json"), []byte(result), 0o600))
	_, _, err = cluster.Check(ws, cluster.Plan{Format: cluster.Format})
	testkit.OK(t, ws.Close())
	return err
}
