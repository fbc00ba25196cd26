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

// ParseLift reads a lift.json as strictly as ParseGrant reads a grant.
func ParseLift(b []byte, file string) (Lift, error) {
	f, top, ok := parseJSON(b, file)
	if !ok {
		return Lift{}, f.err()
	}
	var l Lift
	readKind(top, liftType)
	release := top.sub("release")
	l.Release = GrantedRelease{Name: release.text("name"),
		Digest: release.form("digest", "a SHA-256 in 64 lower-case hexadecimal digits", digestForm.MatchString)}
	release.done()
	seen := map[manifest.PostID]bool{}
	for _, v := range top.texts("ids") {
		text, _ := v.value.(string)
		id, err := manifest.ParsePostID(text)
		switch {
		case err != nil || string(id) != text:
			f.add(v.line, fmt.Sprintf("%s in ids is not a post id", shown(fmt.Sprint(v.value))), "ids stand here in lower case without t3_")
		case seen[id]:
			f.add(v.line, fmt.Sprintf("the post %s stands twice in ids", id), "keep one of them")
		}
		seen[id] = true
		l.IDs = append(l.IDs, id)
	}
	l.Why, l.Asserted = top.text("why"), top.time("asserted")
	top.done()
	if err := f.err(); err != nil {
		return Lift{}, err
	}
	return l, nil
}

// OpenLift reads a statement and tells whether it counts for a release at a time: one of the
// signers signed these very bytes for this purpose, and it names this release and no future
// time. A clock may be wrong by five minutes.
func OpenLift(file SignedFile, signers []Signer, release GrantedRelease, now time.Time) (Lift, Signer, *GrantFault) {
	if len(signers) == 0 {
		return Lift{}, Signer{}, &GrantFault{GrantNoSigner, "the release pins no signer, so no statement can be checked",
			"its maintainers add a [[signer]] to release.toml; a bare annotations file has none"}
	}
	signer, fault := VerifySignature(file, LiftNamespace, signers)
	if fault != nil {
		return Lift{}, signer, fault
	}
	l, err := ParseLift(file.Body, file.Name)
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
