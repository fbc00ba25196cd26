package audit

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/digitorus/pkcs7"
	"github.com/digitorus/timestamp"

	"rehydrate/internal/polite"
	"rehydrate/internal/safely"
)

// maxStamp bounds the answer of an authority, in bytes. One with its certificates has about 6,000.
const maxStamp = 1 << 20

// A Stamp says that an authority saw a document at a time.
type Stamp struct {
	Time      time.Time `json:"time"`      // UTC, by the authority's clock
	Authority string    `json:"authority"` // the subject of its certificate
}

// RequestStamp asks the time-stamping authority at url for a stamp of the document with a SHA-256 digest. The answer is
// a TimeStampResp in DER (RFC 3161, section 2.4.2), as `openssl ts -verify -in` reads it, that CheckStamp has accepted.
func RequestStamp(
	ctx context.Context, url string, digest [sha256.Size]byte, roots *x509.CertPool,
) ([]byte, Stamp, error) {
	var stamp Stamp
	answer, err := askStamp(ctx, url, digest)
	if err == nil {
		stamp, err = CheckStamp(answer, digest, roots)
	}
	if err != nil {
		return nil, Stamp{}, fmt.Errorf("time stamp of %s: %w", url, err)
	}
	return answer, stamp, nil
}

func askStamp(ctx context.Context, url string, digest [sha256.Size]byte) ([]byte, error) {
	// The authority does not see the document: the request holds its digest and a random number.
	nonce, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 64))
	if err != nil {
		return nil, err
	}
	query, err := (&timestamp.Request{HashAlgorithm: crypto.SHA256, HashedMessage: digest[:],
		Certificates: true, Nonce: nonce}).Marshal()
	if err != nil {
		return nil, err
	}
	answer, err := polite.Post(ctx, url, "application/timestamp-query", query, maxStamp)
	if refused, ok := errors.AsType[polite.Status](err); ok {
		return nil, fmt.Errorf("the authority %w", refused)
	}
	if err != nil {
		return nil, err
	}
	stamped, err := parseStamp(answer)
	if err != nil {
		return nil, err
	}
	// An answer to an older request would give a time at which this one was not made yet.
	if stamped.Nonce == nil || stamped.Nonce.Cmp(nonce) != 0 {
		return nil, errors.New("the answer is to another request")
	}
	return answer, nil
}

// CheckStamp reads an answer that RequestStamp returned. It fails unless the stamp is that of a document with the
// digest, the signature is good, and the signer's certificate leads to one of roots and was valid for time-stamping at
// the time that the stamp names.
func CheckStamp(answer []byte, digest [sha256.Size]byte, roots *x509.CertPool) (Stamp, error) {
	if roots == nil {
		return Stamp{}, errors.New("check a time stamp: no root certificates")
	}
	stamped, err := parseStamp(answer)
	if err != nil {
		return Stamp{}, err
	}
	if stamped.HashAlgorithm != crypto.SHA256 || !bytes.Equal(stamped.HashedMessage, digest[:]) {
		return Stamp{}, errors.New("the time stamp is one of another document")
	}
	var signer *x509.Certificate
	if err := safely.Do(func() error {
		token, err := pkcs7.Parse(stamped.RawToken)
		if err != nil {
			return err
		}
		signer = token.GetOnlySigner()
		if signer == nil {
			return errors.New("it does not have one signer with a certificate")
		}
		intermediates := x509.NewCertPool()
		for _, c := range token.Certificates {
			intermediates.AddCert(c)
		}
		return token.VerifyWithOpts(x509.VerifyOptions{Roots: roots, Intermediates: intermediates,
			CurrentTime: stamped.Time,
			KeyUsages:   []x509.ExtKeyUsage{x509.ExtKeyUsageTimeStamping}})
	}); err != nil {
		return Stamp{}, fmt.Errorf("the time stamp's signature does not hold: %w", err)
	}
	return Stamp{Time: stamped.Time.UTC(), Authority: signer.Subject.String()}, nil
}

// derSequence is the first byte of every TimeStampResp in DER.
const derSequence = 0x30

// parseStamp reads a TimeStampResp without trusting it.
func parseStamp(answer []byte) (stamped *timestamp.Timestamp, err error) {
	if len(answer) == 0 || answer[0] != derSequence {
		kind := "something else"
		if bytes.HasPrefix(bytes.TrimSpace(answer), []byte("<")) {
			kind = "a web page"
		}
		return nil,
			fmt.Errorf("the answer is no time stamp, but %s: is it the address of an authority's RFC 3161 service?", kind)
	}
	// The library's reader of BER is not made for hostile bytes.
	if err := safely.Do(func() (err error) {
		stamped, err = timestamp.ParseResponse(answer)
		return err
	}); err != nil {
		return nil, fmt.Errorf("read the time stamp: %w", err)
	}
	return stamped, nil
}
