package policy

import (
	"fmt"
	"regexp"
	"strings"
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

const grantIDWant = "1 to 64 letters, digits, dots, _ and -, a letter or digit first"

// ParseGrant reads a grant.json strictly: an unknown key, one that stands twice, a missing
// or malformed value, anything after the object is a problem with its line. The error is
// *manifest.Problems. It says nothing of who wrote the bytes; OpenGrant does. The file name
// is used in messages only.
func ParseGrant(b []byte, file string) (Grant, error) {
	f, top, ok := parseJSON(b, file)
	if !ok {
		return Grant{}, f.err()
	}
	var g Grant
	readKind(top, grantType)
	g.ID = top.form("id", grantIDWant, grantID)
	g.Holder = readHolder(top.sub("holder"))
	release := top.sub("release")
	g.Release = GrantedRelease{Name: release.text("name"),
		Digest: release.form("digest", "a SHA-256 in 64 lower-case hexadecimal digits", digestForm.MatchString)}
	release.done()
	purpose := top.sub("purpose")
	g.Purpose = Purpose{Statement: purpose.text("statement"), Academic: purpose.flag("academic"), Commercial: purpose.flag("commercial")}
	purpose.done()
	ethics := top.sub("ethics")
	g.Ethics = Ethics{Body: ethics.text("body"), Reference: ethics.text("reference")}
	ethics.done()
	approval := top.sub("platform_approval")
	g.Approval = PlatformApproval{Program: approval.text("program"), Reference: approval.text("reference"), Expires: approval.time("expires")}
	approval.done()
	g.Asserted, g.NotBefore, g.Expires = top.time("asserted"), top.time("not_before"), top.time("expires")
	top.ordered("not_before", "expires", g.NotBefore, g.Expires)
	top.ordered("asserted", "expires", g.Asserted, g.Expires)
	top.done()
	if err := f.err(); err != nil {
		return Grant{}, err
	}
	return g, nil
}

func readHolder(o *jsonObject) Holder {
	o.optional = []string{"ror"}
	h := Holder{Name: o.text("name"), Organization: o.text("organization"),
		ROR: o.form("ror", "an address of the form https://ror.org/012345678", rorForm.MatchString)}
	o.done()
	return h
}

// readKind reads what kind of file it is and in which version.
func readKind(o *jsonObject, want string) {
	if n := o.number("v"); n > 1 {
		o.file.add(o.line, fmt.Sprintf("v is %d; this version of rehydrate reads 1", n), "a newer rehydrate may read it")
	}
	o.form("type", fmt.Sprintf("%q", want), func(s string) bool { return s == want })
}

// ParseRevocations reads a revocations.json as strictly as ParseGrant reads a grant.
func ParseRevocations(b []byte, file string) (Revocations, error) {
	f, top, ok := parseJSON(b, file)
	if !ok {
		return Revocations{}, f.err()
	}
	var r Revocations
	readKind(top, revocationsType)
	release := top.sub("release")
	r.Release = release.text("name")
	release.done()
	r.Serial = top.number("serial")
	r.Issued, r.NextUpdate = top.time("issued"), top.time("next_update")
	top.ordered("issued", "next_update", r.Issued, r.NextUpdate)
	r.Revoked = []Revocation{}
	seen := map[string]bool{}
	for _, o := range top.objects("revoked") {
		o.optional = []string{"reason"}
		x := Revocation{ID: o.form("id", grantIDWant, grantID), At: o.time("at"), Reason: o.text("reason")}
		o.done()
		if seen[x.ID] && x.ID != "" {
			o.file.add(o.line, fmt.Sprintf("the grant %s is revoked twice", x.ID), "keep one of the entries")
		}
		seen[x.ID] = true
		r.Revoked = append(r.Revoked, x)
	}
	top.done()
	if err := f.err(); err != nil {
		return Revocations{}, err
	}
	return r, nil
}
