package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"rehydrate/pipeline/endpoint"
)

// stampSuffix is the end of the name of a statement's time stamp, as authorities name their answers.
const stampSuffix = ".tsr"

// stampFlags are the flags of a time stamp.
type stampFlags struct {
	url string
	ca  string
}

// roots returns the certificates that a time stamp must lead to: the system's, unless a file names others.
func (f stampFlags) roots() (*x509.CertPool, error) {
	if f.ca == "" {
		return x509.SystemCertPool()
	}
	pem, err := readRegular(f.ca)
	if err != nil {
		return nil, usageError("--timestamp-ca: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, usageError("--timestamp-ca: %s holds no PEM certificate", f.ca)
	}
	return roots, nil
}

// stamp writes the time stamp of a statement beside it, if one is asked for. It follows the statement and its signature: a
// service that does not answer must not cost them.
func (c *command) stamp(ctx context.Context, statement string, body []byte, f stampFlags) error {
	if f.url == "" {
		return nil
	}
	roots, err := f.roots()
	if err != nil {
		return err
	}
	answer, stamp, err := endpoint.RequestStamp(ctx, nil, f.url, body, roots)
	if err != nil {
		return err
	}
	if err := writeOwn(ctx, "time stamp", statement+stampSuffix, answer); err != nil {
		return err
	}
	fmt.Fprintf(c.stderr, "rehydrate: time stamp of %s, %s\n", oneTerminalLine(stamp.Authority), stamp.Time.Format(time.RFC3339))
	return nil
}

// checkStamp reads the time stamp beside a statement; nil without one.
func checkStamp(statement string, body []byte, f stampFlags) (*endpoint.Stamp, error) {
	answer, err := readRegular(statement + stampSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	roots, err := f.roots()
	if err != nil {
		return nil, err
	}
	stamp, err := endpoint.CheckStamp(answer, body, roots)
	if err != nil {
		return nil, err
	}
	return &stamp, nil
}
