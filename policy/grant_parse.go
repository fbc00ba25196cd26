package policy

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"rehydrate/manifest"
)

// Types of the files, so that none is taken for another.
const (
	grantType       = "rehydrate-grant"
	revocationsType = "rehydrate-revocations"
)

var (
	grantIDForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	digestForm  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	rorForm     = regexp.MustCompile(`^https://ror\.org/0[a-z0-9]{6}[0-9]{2}$`)
)

func grantID(s string) bool { return grantIDForm.MatchString(s) && !strings.Contains(s, "..") }

const (
	grantIDWant = "1 to 64 letters, digits, dots, _ and -, a letter or digit first"
	digestWant  = "a SHA-256 in 64 lower-case hexadecimal digits"
)

// A header says what kind of file it is and in which version.
type header struct {
	Version int64  `json:"v"`
	Type    string `json:"type"`
}

// A signedJSON is a file that was read strictly, for what its struct cannot say.
type signedJSON struct{ *manifest.Document }

// readSigned reads a file of a type into v, whose header is h.
func readSigned(b []byte, file string, v any, h *header, kind string) (signedJSON, error) {
	d, err := manifest.DecodeJSON(file, b, v)
	if err != nil {
		return signedJSON{}, err
	}
	if h.Version > 1 {
		d.Add("v", fmt.Sprintf("v is %d; this version of rehydrate reads 1", h.Version), "a newer rehydrate may read it")
	}
	f := signedJSON{d}
	f.want("type", h.Type == kind, fmt.Sprintf("%q", kind))
	return f, nil
}

func (f signedJSON) want(key string, ok bool, form string) {
	if !ok {
		f.Add(key, key+" is not "+form, "")
	}
}

func (f signedJSON) before(early, late string, a, b time.Time) {
	if !a.Before(b) {
		f.Add(early, early+" is not before "+late, "")
	}
}

// ParseGrant reads a grant.json strictly: an unknown key, one that stands twice, a missing
// or malformed value, anything after the object is a problem with its place. The error is
// *manifest.Problems. It says nothing of who wrote the bytes; OpenGrant does. The file name
// is used in messages only.
func ParseGrant(b []byte, file string) (Grant, error) {
	var doc struct {
		header
		Grant
	}
	f, err := readSigned(b, file, &doc, &doc.header, grantType)
	if err != nil {
		return Grant{}, err
	}
	g := doc.Grant
	f.want("id", grantID(g.ID), grantIDWant)
	f.want("holder.ror", g.Holder.ROR == "" || rorForm.MatchString(g.Holder.ROR), "an address of the form https://ror.org/012345678")
	f.want("release.digest", digestForm.MatchString(g.Release.Digest), digestWant)
	f.before("not_before", "expires", g.NotBefore, g.Expires)
	f.before("asserted", "expires", g.Asserted, g.Expires)
	for _, t := range []*time.Time{&g.Approval.Expires, &g.Asserted, &g.NotBefore, &g.Expires} {
		*t = t.UTC()
	}
	return g, f.Err()
}

// parseRevocations reads a revocations.json as strictly as ParseGrant reads a grant.
func parseRevocations(b []byte, file string) (Revocations, error) {
	var doc struct {
		header
		Revocations
		Release struct {
			Name string `json:"name"`
		} `json:"release"` // in place of Revocations.Release
	}
	f, err := readSigned(b, file, &doc, &doc.header, revocationsType)
	if err != nil {
		return Revocations{}, err
	}
	r := doc.Revocations
	r.Release, r.Issued, r.NextUpdate = doc.Release.Name, r.Issued.UTC(), r.NextUpdate.UTC()
	f.before("issued", "next_update", r.Issued, r.NextUpdate)
	seen := map[string]bool{}
	for i := range r.Revoked {
		x, at := &r.Revoked[i], fmt.Sprintf("revoked[%d]", i)
		x.At = x.At.UTC()
		f.want(at+".id", grantID(x.ID), grantIDWant)
		if seen[x.ID] {
			f.Add(at, fmt.Sprintf("the grant %s is revoked twice", x.ID), "keep one of the entries")
		}
		seen[x.ID] = true
	}
	return r, f.Err()
}
