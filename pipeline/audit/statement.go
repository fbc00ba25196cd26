package audit

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/endpoint"
	"rehydrate/pipeline/given"
	"rehydrate/pipeline/state"
	"rehydrate/policy"
)

// StampSuffix is the end of the name of a statement's time stamp, as authorities name their answers.
const StampSuffix = ".tsr"

// WriteJSON writes the statement: what encoding/json makes of the report, with an indent of two spaces and a line break at its end.
// Files and posts are written one by one, for those of a large release fill the memory.
func (r Report) WriteJSON(w io.Writer) error {
	files, posts := r.Scope.Files, r.Posts
	r.Scope.Files, r.Posts = nil, nil
	frame, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	head, rest, _ := strings.Cut(string(frame), `"files": null`) // as a text it would have \"
	out.WriteString(head + `"files": `)
	err = writeList(out, files, "    ")
	head, rest, _ = strings.Cut(rest, `"posts": null`)
	out.WriteString(head + `"posts": `)
	err = cmp.Or(err, writeList(out, posts, "  "))
	out.WriteString(rest + "\n")
	return cmp.Or(err, out.Flush())
}

// writeList writes what json.MarshalIndent makes of a list.
func writeList[T any](out *bufio.Writer, list []T, indent string) error {
	between := "["
	for _, v := range list {
		text, err := json.MarshalIndent(v, indent+"  ", "  ")
		if err != nil {
			return err
		}
		out.WriteString(between + "\n  " + indent)
		out.Write(text)
		between = ","
	}
	if len(list) == 0 {
		indent = "["
	} else {
		indent = "\n" + indent
	}
	_, err := out.WriteString(indent + "]") // it remembers the first error
	return err
}

// A StatementCheck says what holds of a statement that was handed on.
type StatementCheck struct {
	Statement string          `json:"statement"`
	SHA256    string          `json:"sha256"`
	Verdict   Verdict         `json:"verdict"`
	Time      time.Time       `json:"time"`
	Key       string          `json:"key_fingerprint"` // that signed it; empty without a signature
	Stamp     *endpoint.Stamp `json:"time_stamp,omitempty"`
	Recorded  any             `json:"recorded,omitempty"` // a bool, where a log was looked at
	Holds     bool            `json:"holds"`
	What      string          `json:"what"` // what does not hold
}

// CheckStatement checks a statement, with the signature and the time stamp beside it, and that the log in a folder records it,
// if one is named. roots gives what the time stamp must lead to.
func CheckStatement(ctx context.Context, file, log string, roots func() (*x509.CertPool, error)) (s StatementCheck, err error) {
	body, err := given.Read(file)
	if err != nil {
		return s, given.Wrong("--check: %w", err)
	}
	var r struct { // not the posts, of which there may be many
		Format  string
		Verdict Verdict
		Time    time.Time
	}
	if err := json.Unmarshal(body, &r); err != nil || r.Format != StatementFormat {
		return s, given.Wrong("--check: %s is not a statement of the format %s", file, StatementFormat)
	}
	s = StatementCheck{Statement: file, SHA256: state.SHA256(body), Verdict: r.Verdict, Time: r.Time, Holds: true}
	doubt := func(format string, args ...any) {
		if s.Holds { // the first doubt is the one to look into
			s.Holds, s.What = false, fmt.Sprintf(format, args...)
		}
	}
	signature, err := given.Read(file + manifest.SignatureSuffix)
	if err == nil {
		s.Key, err = policy.CheckStatement(signature, body)
	}
	if err != nil {
		doubt("its signature: %v", err)
	}
	// A statement need not have a time stamp.
	if stamp, err := given.Read(file + StampSuffix); !errors.Is(err, fs.ErrNotExist) {
		trusted, wrong := roots()
		if err := cmp.Or(err, wrong); err != nil {
			doubt("its time stamp: %v", err)
		} else if checked, err := endpoint.CheckStamp(stamp, sha256.Sum256(body), trusted); err != nil {
			doubt("its time stamp: %v", err)
		} else {
			s.Stamp = &checked
		}
	}
	if log == "" {
		return s, nil
	}
	found, err := auditlog.CheckFolder(ctx, log, nil)
	if err != nil {
		return s, err
	}
	recorded := slices.Contains(found.Statements, s.SHA256)
	s.Recorded = recorded
	if !found.Log.Consistent {
		doubt("the log: %s", found.What)
	} else if !recorded {
		doubt("the log does not record it")
	}
	return s, nil
}
