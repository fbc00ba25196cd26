package audit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"rehydrate/internal/fileversion"
	"rehydrate/internal/page"
	"rehydrate/internal/userfile"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/state"
	"rehydrate/policy"
)

// StampSuffix is the end of the name of a statement's time stamp, as authorities name their answers.
const StampSuffix = ".tsr"

// WriteJSON writes the statement: the report as JSON, with an indent of two spaces and a line break at its end.
func (r Report) WriteJSON(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(r)
}

// A StatementCheck says what holds of a statement that was handed on.
type StatementCheck struct {
	Statement string    `json:"statement"`
	SHA256    string    `json:"sha256"`
	Verdict   Verdict   `json:"verdict"`
	Time      time.Time `json:"time"`
	Release   string    `json:"release"`         // its name and version
	Mode      string    `json:"mode"`            // live or offline
	Says      []string  `json:"says"`            // what the verdict means and rests on; empty if something is wrong
	Key       string    `json:"key_fingerprint"` // that signed it; empty without a signature
	Stamp     Stamp     `json:"time_stamp,omitzero"`
	Stamped   bool      `json:"stamped,omitempty"`  // a time stamp lies beside it, whether it holds or not
	Recorded  any       `json:"recorded,omitempty"` // a bool, where a log was looked at
	Holds     bool      `json:"holds"`              // it is signed, and nothing is wrong with it
	What      string    `json:"what"`               // what is wrong; empty for nothing
	Unsigned  bool      `json:"unsigned"`           // there is no signature beside it
}

// A statement is what a check reads of one: the posts, of which there may be many, only for whether they are there.
type statement struct {
	Format   string
	Verdict  Verdict
	Time     time.Time
	Findings []Finding
	Open     []Open
	Duties   []Duty
	Who      Auditor
	Scope    struct {
		Release        string
		Version        string          `json:"release_version"`
		ReleaseDigest  string          `json:"release_digest"`
		ManifestDigest string          `json:"manifest_digest"`
		Files          json.RawMessage // a list
	}
	Limits, Notes, Totals, Coverage, Known, Log, Posts json.RawMessage
}

// lacks names the parts that every report has, and this one has not.
func (s statement) lacks() (parts []string) {
	for _, part := range []struct {
		name  string
		lacks bool
	}{
		{"time", s.Time.IsZero()}, {"findings", s.Findings == nil}, {"open", s.Open == nil},
		{"duties", s.Duties == nil}, {"limits", isNull(s.Limits)}, {"notes", isNull(s.Notes)},
		{"tool_version", s.Who.Tool == ""}, {"mode", s.Who.Mode == ""}, {"release", s.Scope.Release == ""},
		{"release_digest", s.Scope.ReleaseDigest == ""}, {"manifest_digest", s.Scope.ManifestDigest == ""},
		{"files", isNull(s.Scope.Files)}, {"totals", isNull(s.Totals)}, {"coverage", isNull(s.Coverage)},
		{"known", isNull(s.Known)}, {"log", isNull(s.Log)}, {"posts", isNull(s.Posts)},
	} {
		if part.lacks {
			parts = append(parts, part.name)
		}
	}
	return parts
}

func isNull(part json.RawMessage) bool { return len(part) == 0 || string(part) == "null" }

// CheckStatement checks a statement: that it has all parts and its verdict follows from them, the signature and the
// time stamp beside it, and that the log in a folder records it, if one is named. roots gives what the time stamp must
// lead to.
func CheckStatement(ctx context.Context, file, log string, roots func() (*x509.CertPool, error)) (s StatementCheck,
	err error) {
	body, err := userfile.Read(file)
	if err != nil {
		return s, userfile.Wrong("--check: %w", err)
	}
	r := statement{}
	err = json.Unmarshal(body, &r)
	version, is := strings.CutPrefix(r.Format, statementName)
	if err != nil || !is {
		return s, userfile.Wrong("--check: %s is not a statement of the format %s", file, StatementFormat)
	}
	if err := fileversion.Check("the statement "+file, version, statementVersion, "audit again"); err != nil {
		return s, userfile.Wrong("--check: %w", err)
	}
	s = StatementCheck{Statement: file, SHA256: state.SHA256(body), Verdict: r.Verdict, Time: r.Time,
		Release: strings.TrimSpace(r.Scope.Release + " " + r.Scope.Version), Mode: r.Who.Mode, Says: []string{}}
	doubt := func(wrong bool, format string, args ...any) {
		if wrong && s.What == "" { // the first doubt is the one to look into
			s.What = fmt.Sprintf(format, args...)
		}
	}
	signature, err := userfile.Read(file + manifest.SignatureSuffix)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.Unsigned = true
	case err == nil:
		s.Key, err = policy.CheckStatement(signature, body)
		fallthrough
	default:
		doubt(err != nil, "its signature: %v", err)
	}
	// A statement need not have a time stamp.
	if stamp, err := userfile.Read(file + StampSuffix); !errors.Is(err, fs.ErrNotExist) {
		s.Stamped = true
		trusted, wrong := roots()
		err = cmp.Or(err, wrong)
		if err == nil {
			s.Stamp, err = CheckStamp(stamp, sha256.Sum256(body), trusted)
		}
		doubt(err != nil, "its time stamp: %v", err)
	}
	lacks := r.lacks()
	doubt(len(lacks) > 0, "it has no %s", strings.Join(lacks, ", "))
	follows := verdictOf(r.Findings, r.Open, r.Duties)
	doubt(r.Verdict != follows, "it says %s, and its findings, open and duties come to %s", r.Verdict, follows)
	if log != "" {
		found, err := auditlog.CheckFolder(ctx, log, nil)
		if err != nil {
			return s, err
		}
		recorded := slices.Contains(found.Statements, s.SHA256)
		s.Recorded = recorded
		doubt(!found.Log.Consistent, "the log: %s", found.What)
		doubt(!recorded, "the log does not record it")
	}
	if s.What == "" {
		s.Says, err = headlineOf(body)
		doubt(err != nil, "%v", err)
	}
	s.Holds = s.What == "" && !s.Unsigned
	return s, nil
}

// Lines are what the statement says, for a screen.
func (s StatementCheck) Lines() (lines [][2]string) {
	name := fmt.Sprintf("%-*s", len(s.Statement), "says") // as wide as the first line's, which its lines stand beside
	for _, text := range s.Says {
		lines = append(lines, [2]string{name, text})
		name = ""
	}
	return lines
}

// headlineOf derives the headline of a statement from its parts. Whoever wrote it may have left parts out.
func headlineOf(body []byte) (lines []string, err error) {
	var r Report
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("it is not as this program writes one: %w", err)
	}
	kindless := func(f Finding) bool { return len(f.Kinds) == 0 }
	if slices.ContainsFunc(r.Findings, kindless) || slices.Contains(r.Posts, nil) || slices.Contains(r.Scope.Files, nil) {
		return nil, errors.New("a finding of it has no kind, or a post or file is null")
	}
	return r.Headline(), nil
}

//go:embed audit.html
var files embed.FS

var auditPage = page.Parse(files, "audit.html")

// WritePage writes the report as a page for people: one file that opens from disk, without scripts.
func (r Report) WritePage(w io.Writer, digest, proof string) error {
	return page.Write(w, auditPage, struct {
		Report
		Digest string // the SHA-256 of the statement, by which the log names it
		Proof  string // what vouches for the report
	}{r, digest, proof})
}
