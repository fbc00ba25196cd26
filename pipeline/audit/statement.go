package audit

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
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
	var r Report
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
		} else if checked, err := endpoint.CheckStamp(stamp, body, trusted); err != nil {
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
