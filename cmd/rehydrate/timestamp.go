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

type stampFlags struct{ url, ca string }

// roots are the certificates that a time stamp must lead to.
func (f stampFlags) roots() (*x509.CertPool, error) {
	if f.ca == "" {
		return x509.SystemCertPool()
	}
	return readRoots("--timestamp-ca", f.ca)
}

// stamp writes the time stamp of a statement beside it, if one is asked for.
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
		return nil, nil // a statement need not have one
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
