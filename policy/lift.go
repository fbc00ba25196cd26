package policy

import (
	"fmt"
	"time"

	"rehydrate/manifest"
)

// LiftNamespace is the namespace of the signature under a Lift (ssh-keygen's -n).
const LiftNamespace = "rehydrate-lift"

// liftType is the type of the file, so that none is taken for another.
const liftType = "rehydrate-lift"

// A Lift is the statement of a release's maintainers that the tombstones of certain posts no longer hold:
// what Reddit says of those posts decides again.
type Lift struct {
	Release  GrantedRelease    `json:"release"`
	IDs      []manifest.PostID `json:"ids"`
	Why      string            `json:"why"`
	Asserted time.Time         `json:"asserted"` // when the maintainers wrote it
}

// LiftWrongTime is the reason of a GrantFault for a statement from the future.
const LiftWrongTime manifest.Reason = "asserted_in_future"

const askForLift = "ask the release's maintainers for a new statement"

// parseLift reads a lift.json as strictly as ParseGrant reads a grant.
func parseLift(b []byte, file string) (Lift, error) {
	var doc struct {
		header
		Lift
	}
	f, err := readSigned(b, file, &doc, &doc.header, liftType)
	if err != nil {
		return Lift{}, err
	}
	l := doc.Lift
	l.Asserted = l.Asserted.UTC()
	f.want("release.digest", digestForm.MatchString(l.Release.Digest), digestWant)
	f.want("ids", len(l.IDs) > 0, "a list of one text or more, [ ... ]")
	seen := map[manifest.PostID]bool{}
	for i, id := range l.IDs {
		at := fmt.Sprintf("ids[%d]", i)
		if parsed, err := manifest.ParsePostID(string(id)); err != nil || parsed != id {
			f.want(at, false, "a post id, in lower case without t3_")
		}
		if seen[id] {
			f.Add(at, fmt.Sprintf("the post %s stands twice in ids", id), "keep one of them")
		}
		seen[id] = true
	}
	return l, f.Err()
}

// OpenLift reads a statement and decides whether it counts for a release at a time: one of the
// signers signed these very bytes for this purpose, and it names this release and no future
// time. A clock may be wrong by five minutes.
func OpenLift(file SignedFile, signers []Signer, release GrantedRelease, now time.Time) (Lift, Signer, *GrantFault) {
	if len(signers) == 0 {
		return Lift{}, Signer{}, &GrantFault{GrantNoSigner, "the release pins no signer, so no statement can be checked",
			"its maintainers add a [[signer]] to release.toml; a bare annotations file has none"}
	}
	// The signature comes first: unsigned bytes are not even parsed.
	signer, fault := verifySignature(file, LiftNamespace, signers)
	if fault != nil {
		return Lift{}, signer, fault
	}
	l, err := parseLift(file.Body, file.Name)
	switch {
	case err != nil:
		return Lift{}, signer, &GrantFault{GrantMalformed, err.Error(), askForLift}
	case l.Release != release:
		return Lift{}, signer, &GrantFault{GrantWrongRelease, fmt.Sprintf("the statement is for the release %q with the digest %s, this one is %q with %s",
			l.Release.Name, l.Release.Digest, release.Name, release.Digest), "name the release that it was written for, or " + askForLift}
	case l.Asserted.After(now.Add(clockSkew)):
		return Lift{}, signer, &GrantFault{LiftWrongTime, "the statement was written in the future, on " + stamp(l.Asserted), "check this machine's clock"}
	}
	return l, signer, nil
}
