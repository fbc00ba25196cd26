package policy

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"rehydrate/manifest"
)

// A SignedFile is a file and its detached signature, as they lie on disk.
type SignedFile struct {
	Name      string // for messages
	Body      []byte
	Signature []byte // nil when there is none
}

// A SignedGrant is a grant that one of the release's signers signed, and the release's revocation list, signed too.
type SignedGrant struct {
	Grant
	Signer      Signer
	Revocations *Revocations // nil when the release has none
}

// OpenGrant verifies and reads a grant and, unless it is nil, the release's list of revocations.
func OpenGrant(grant SignedFile, revocations *SignedFile, signers []Signer) (*SignedGrant, *GrantFault) {
	var s SignedGrant
	var fault *GrantFault
	s.Grant, s.Signer, fault = open(grant, GrantNamespace, signers, askAgain, ParseGrant)
	if fault != nil {
		return nil, fault
	}
	if revocations == nil {
		return &s, nil
	}
	list, _, fault := open(*revocations, RevocationsNamespace, signers, getCurrent, parseRevocations)
	if fault != nil {
		return nil, refuse("revocations_bad", getCurrent, "the revocation list cannot be trusted (%s): %s",
			fault.Reason, fault.Detail)
	}
	s.Revocations = &list
	return &s, nil
}

// CheckRevocations says why every grant is refused beside a release's list of revocations, nil for none, at a time, or
// returns nil. seenSerial is as for SignedGrant.Judge.
func CheckRevocations(list *SignedFile, signers []Signer, release string, seenSerial int64, now time.Time) *GrantFault {
	if list == nil {
		return (*Revocations)(nil).judge(release, seenSerial, now)
	}
	r, _, fault := open(*list, RevocationsNamespace, signers, getCurrent, parseRevocations)
	if fault != nil {
		return fault
	}
	return r.judge(release, seenSerial, now)
}

// OpenLift reads a statement and decides whether it counts for a release at a time: one of the signers signed these
// very bytes for this purpose, and it names this release and no future time. A clock may be wrong by five minutes. One
// for another release or edition (wrong_release) comes with its fault: its signature holds.
func OpenLift(file SignedFile, signers []Signer, release GrantedRelease, now time.Time) (Lift, Signer, *GrantFault) {
	l, signer, fault := open(file, LiftNamespace, signers, askForLift, parseLift)
	switch {
	case fault != nil:
	case l.Asserted.After(now.Add(ClockSkew)):
		fault = refuse("asserted_in_future", checkClock, "the statement was written in the future, on %s",
			stamp(l.Asserted))
	case l.Release != release: // or a statement could be used again for another release with the same posts
		fault = refuse(WrongRelease, "name the release that it was written for, or "+askForLift,
			"the statement is for the release %q with the digest %s, this one is %q with %s",
			l.Release.Name, l.Release.Digest, release.Name, release.Digest)
	}
	if fault != nil && fault.Reason != WrongRelease {
		return Lift{}, signer, fault
	}
	return l, signer, fault
}

// OfOtherEdition reports whether OpenLift's fault is only that the statement is for another edition of the release.
func (l Lift) OfOtherEdition(fault *GrantFault, release string) bool {
	return fault != nil && fault.Reason == WrongRelease && l.Release.Name == release
}

// open verifies a file and reads it; again says what to ask for when it is malformed. Only the signers' own keys
// count, never the key that a signature brings along.
func open[T any](file SignedFile, namespace string, signers []Signer, again string,
	parse func([]byte, string) (T, error)) (v T, signer Signer, fault *GrantFault) {
	if len(signers) == 0 {
		return v, signer, refuse("no_signer",
			"its maintainers add a [[signer]] to release.toml; a bare annotations file has none",
			"the release pins no signer, so no signature can be checked")
	}
	// The signature comes first: unsigned bytes are not even parsed.
	signer, fault = verifySignature(file, namespace, signers)
	if fault != nil {
		return v, signer, fault
	}
	v, err := parse(file.Body, file.Name)
	if err != nil {
		return v, signer, refuse("malformed", again, "%v", err)
	}
	return v, signer, nil
}

var (
	grantIDForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	rorForm     = regexp.MustCompile(`^https://ror\.org/0[a-z0-9]{6}[0-9]{2}$`)
)

const digestWanted = "a SHA-256 in 64 lower-case hexadecimal digits"

// A header says what kind of file it is and in which version.
type header struct {
	Version int64  `json:"v"`
	Type    string `json:"type"`
}

// readSigned reads a file of a type into v, whose header is h.
func readSigned(b []byte, file string, v any, h *header, kind string) (checker, error) {
	d, err := manifest.DecodeJSON(file, b, v)
	if err != nil {
		return checker{}, err
	}
	if h.Version > 1 {
		d.Add("v", fmt.Sprintf("v is %d; this version of rehydrate reads 1", h.Version), "a newer rehydrate may read it")
	}
	f := checker{d}
	f.wantForm("type", h.Type == kind, fmt.Sprintf("%q", kind))
	return f, nil
}

func (c checker) wantForm(key string, ok bool, form string) {
	if !ok {
		c.Add(key, key+" is not "+form, "")
	}
}

func (c checker) wantID(key, id string) {
	c.wantForm(key, grantIDForm.MatchString(id) && !strings.Contains(id, ".."),
		"1 to 64 letters, digits, dots, _ and -, a letter or digit first")
}

// ParseGrant reads a grant.json strictly: an unknown key, one that stands twice, a missing or malformed value,
// anything after the object is a problem with its place. The error is *manifest.Problems. It says nothing of who wrote
// the bytes; OpenGrant does. The file name is used in messages only.
func ParseGrant(b []byte, file string) (Grant, error) {
	var doc struct {
		header
		Grant
	}
	f, err := readSigned(b, file, &doc, &doc.header, GrantNamespace)
	if err != nil {
		return Grant{}, err
	}
	g := doc.Grant
	f.wantID("id", g.ID)
	f.wantForm("holder.ror", g.Holder.ROR == "" || rorForm.MatchString(g.Holder.ROR),
		"an address of the form https://ror.org/012345678")
	f.wantForm("release.digest", digestForm.MatchString(g.Release.Digest), digestWanted)
	f.wantForm("not_before", g.NotBefore.Before(g.Expires), "before expires")
	f.wantForm("asserted", g.Asserted.Before(g.Expires), "before expires")
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
	f, err := readSigned(b, file, &doc, &doc.header, RevocationsNamespace)
	if err != nil {
		return Revocations{}, err
	}
	r := doc.Revocations
	r.Release, r.Issued, r.NextUpdate = doc.Release.Name, r.Issued.UTC(), r.NextUpdate.UTC()
	f.wantForm("issued", r.Issued.Before(r.NextUpdate), "before next_update")
	seen := map[string]bool{}
	for i := range r.Revoked {
		x, at := &r.Revoked[i], fmt.Sprintf("revoked[%d]", i)
		x.At = x.At.UTC()
		f.wantID(at+".id", x.ID)
		if seen[x.ID] {
			f.Add(at, fmt.Sprintf("the grant %s is revoked twice", x.ID), "keep one of the entries")
		}
		seen[x.ID] = true
	}
	return r, f.Err()
}

// parseLift reads a lift.json as strictly as ParseGrant reads a grant.
func parseLift(b []byte, file string) (Lift, error) {
	var doc struct {
		header
		Lift
	}
	f, err := readSigned(b, file, &doc, &doc.header, LiftNamespace)
	if err != nil {
		return Lift{}, err
	}
	l := doc.Lift
	l.Asserted = l.Asserted.UTC()
	f.wantForm("release.digest", digestForm.MatchString(l.Release.Digest), digestWanted)
	f.wantForm("tombstones", len(l.Tombstones) > 0, `a list of one or more, [{"id": ..., "time": ...}, ...]`)
	seen := map[NamedTombstone]bool{}
	for i, t := range l.Tombstones {
		at := fmt.Sprintf("tombstones[%d]", i)
		f.wantForm(at+".id", t.ID.Valid(), "a post id, in lower case without t3_")
		name := NameTombstone(t.ID, t.Time)
		f.wantForm(at+".time", !t.Time.IsZero() && name.Time.Equal(t.Time),
			"the tombstone's time, as 2025-12-31T23:59:59Z")
		if seen[name] {
			f.Add(at, fmt.Sprintf("the tombstone of %s stands twice", t.ID), "keep one of them")
		}
		seen[name] = true
		l.Tombstones[i] = name
	}
	return l, f.Err()
}
