package audit

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"slices"
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
// digest, the signature is good, and the signer's certificate is one for time-stamping alone, leads to one of roots and
// was valid at the time that the stamp names.
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
		if err := isOfAuthority(token, signer); err != nil {
			return err
		}
		return token.VerifyWithOpts(x509.VerifyOptions{Roots: roots, Intermediates: intermediates,
			CurrentTime: stamped.Time,
			KeyUsages:   []x509.ExtKeyUsage{x509.ExtKeyUsageTimeStamping}})
	}); err != nil {
		return Stamp{}, fmt.Errorf("the time stamp's signature does not hold: %w", err)
	}
	return Stamp{Time: stamped.Time.UTC(), Authority: signer.Subject.String()}, nil
}

// isOfAuthority fails unless what is signed is the content of a time stamp, and the signer's certificate is for nothing
// else than signing such, as RFC 3161 requires in sections 2.4.2 and 2.3: any other certificate of the same root could
// sign what is taken for a stamp.
func isOfAuthority(token *pkcs7.PKCS7, signer *x509.Certificate) error {
	tstInfo, extKeyUsage := asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 16, 1, 4}, asn1.ObjectIdentifier{2, 5, 29, 37}
	var kind asn1.ObjectIdentifier
	if err := token.UnmarshalSignedAttribute(pkcs7.OIDAttributeContentType, &kind); err != nil || !kind.Equal(tstInfo) {
		return errors.New("what it signs is no time stamp")
	}
	alone := slices.Equal(signer.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageTimeStamping}) &&
		len(signer.UnknownExtKeyUsage) == 0
	if !alone || !slices.ContainsFunc(signer.Extensions, func(e pkix.Extension) bool {
		return e.Id.Equal(extKeyUsage) && e.Critical
	}) {
		return errors.New("its certificate is not one for time stamps alone")
	}
	return nil
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
