package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"rehydrate/manifest"
)

// Namespaces of the signatures (ssh-keygen's -n), which are also the types that the files name. A signature made for
// one purpose is worth nothing for another.
const (
	GrantNamespace       = "rehydrate-grant"
	RevocationsNamespace = "rehydrate-revocations"
	LiftNamespace        = "rehydrate-lift"
)

// A Grant is the signed statement of a release's maintainers that a named holder may rehydrate the release, for a
// stated purpose, until a date. It says what its file says; OpenGrant and SignedGrant.Judge decide whether it counts.
type Grant struct {
	ID     string `json:"id"`
	Holder struct {
		Name         string `json:"name"`
		Organization string `json:"organization"`
		ROR          string `json:"ror,omitempty"` // the organization in the Research Organization Registry
	} `json:"holder"`
	Release GrantedRelease `json:"release"`
	Purpose struct {
		Statement  string `json:"statement"`
		Academic   bool   `json:"academic"`
		Commercial bool   `json:"commercial"`
	} `json:"purpose"`
	Ethics struct { // the review of the holder's study
		Body      string `json:"body"`
		Reference string `json:"reference"`
	} `json:"ethics"`
	Approval struct { // Reddit's, of the holder's use, as the maintainers saw it
		Program   string    `json:"program"`
		Reference string    `json:"reference"`
		Expires   time.Time `json:"expires"`
	} `json:"platform_approval"`
	Asserted  time.Time `json:"asserted"` // when the maintainers wrote it
	NotBefore time.Time `json:"not_before"`
	Expires   time.Time `json:"expires"`
}

// A GrantedRelease is what a grant is for: these very bytes of release.toml and manifest.
type GrantedRelease struct {
	Name   string `json:"name"`
	Digest string `json:"digest"` // manifest.Release.Digest
}

// Revocations is the list of grants that a release's maintainers took back.
type Revocations struct {
	Release    string       `json:"release"`
	Serial     int64        `json:"serial"` // grows with every list
	Issued     time.Time    `json:"issued"`
	NextUpdate time.Time    `json:"next_update"` // after it, the list may hide a revocation
	Revoked    []Revocation `json:"revoked"`
}

// A Revocation takes one grant back.
type Revocation struct {
	ID     string    `json:"id"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
}

// A GrantFault is why a grant does not count, and what its holder can do.
type GrantFault struct {
	Reason manifest.Reason
	Detail string
	Hint   string
}

func (f *GrantFault) Error() string { return f.Detail }

func refuse(reason manifest.Reason, hint, detail string, args ...any) *GrantFault {
	return &GrantFault{reason, fmt.Sprintf(detail, args...), hint}
}

const (
	askAgain   = "ask the release's maintainers for a new grant"
	askForLift = "ask the release's maintainers for a new statement"
	getCurrent = "get the release's current revocation list from where the release is published"
	checkClock = "check this machine's clock"
)

// WrongRelease is the reason of a grant or statement for another release, or for other files of this one.
const WrongRelease manifest.Reason = "wrong_release"

// Judge returns why the grant does not count for the release at a time; nil means that it does. seenSerial is the
// highest serial of a revocation list seen before, 0 for none. A clock may be wrong by five minutes, always in the
// holder's favour.
func (g SignedGrant) Judge(release GrantedRelease, seenSerial int64, now time.Time) *GrantFault {
	// A revoked grant is over, whatever its dates say.
	return cmp.Or(g.fits(release), g.Revocations.judge(release.Name, seenSerial, now), g.Revocations.revokes(g.ID),
		g.Current(now))
}

// fits compares the grant with the release and with what any grant may allow.
func (g Grant) fits(r GrantedRelease) *GrantFault {
	switch {
	case g.Release.Name != r.Name:
		return refuse(WrongRelease, "name the release that the grant is for, or "+askAgain,
			"the grant is for the release %q, this one is %q", g.Release.Name, r.Name)
	case g.Release.Digest != r.Digest:
		return refuse(WrongRelease, askAgain,
			"the grant is for other files of the release %q: it names the digest %s, these have %s",
			r.Name, g.Release.Digest, r.Digest)
	case !g.Purpose.Academic || g.Purpose.Commercial:
		return refuse("purpose_not_allowed", "grants are for academic, non-commercial use only; "+askAgain,
			"the grant's purpose is not academic and non-commercial")
	}
	return nil
}

// Current returns why the grant does not count by its dates alone, nil when it does.
func (g Grant) Current(now time.Time) *GrantFault {
	begin := slices.MaxFunc([]time.Time{g.NotBefore, g.Asserted}, time.Time.Compare) // never before it was written
	switch {
	case now.Before(begin.Add(-ClockSkew)):
		return refuse("not_yet_valid", "wait until then, and "+checkClock, "the grant is not valid before %s", stamp(begin))
	case Ended(g.Expires, now):
		return refuse("expired", askAgain, "the grant expired on %s", stamp(g.Expires))
	case Ended(g.Approval.Expires, now):
		return refuse("approval_expired", "renew the approval with Reddit, then "+askAgain,
			"the platform's approval that the grant names expired on %s", stamp(g.Approval.Expires))
	}
	return nil
}

// Ended reports whether what held until a time has ended; the zero time never comes. A clock may be wrong by five
// minutes.
func Ended(until, now time.Time) bool { return !until.IsZero() && now.After(until.Add(ClockSkew)) }

// judge returns why the list cannot be relied on, nil when it can. A nil list does not exist.
func (r *Revocations) judge(release string, seenSerial int64, now time.Time) *GrantFault {
	switch {
	case r == nil && seenSerial > 0: // somebody may have taken it away, and with it a revocation
		return refuse("revocations_missing", getCurrent,
			"the release has no revocation list, but one with serial %d was seen before", seenSerial)
	case r == nil:
		return nil
	case r.Release != release:
		return refuse("revocations_bad", getCurrent, "the revocation list is for the release %q, this one is %q",
			r.Release, release)
	case r.Serial < seenSerial:
		return refuse("revocations_rolled_back", getCurrent,
			"the revocation list has serial %d, but one with serial %d was seen before", r.Serial, seenSerial)
	case now.Before(r.Issued.Add(-ClockSkew)):
		return refuse("revocations_bad", checkClock, "the revocation list was issued in the future, on %s", stamp(r.Issued))
	case now.After(r.NextUpdate.Add(ClockSkew)):
		return refuse("revocations_stale", getCurrent, "the revocation list was to be replaced by %s", stamp(r.NextUpdate))
	}
	return nil
}

// revokes returns a fault when the list takes the grant back.
func (r *Revocations) revokes(id string) *GrantFault {
	if r == nil {
		return nil
	}
	for _, x := range r.Revoked {
		if x.ID == id { // the time it names does not matter: a listed grant is over
			return refuse("revoked", "stop using the dataset, and ask the release's maintainers",
				"the grant was revoked on %s", strings.TrimSuffix(stamp(x.At)+": "+x.Reason, ": "))
		}
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// A Lift is the statement of a release's maintainers that certain tombstones no longer hold: what Reddit says of their
// posts decides again.
type Lift struct {
	Release    GrantedRelease   `json:"release"`
	Tombstones []NamedTombstone `json:"tombstones"`
	Why        string           `json:"why"`
	Asserted   time.Time        `json:"asserted"` // when the maintainers wrote it
}

// A NamedTombstone names one tombstone as tombstones.csv does, and no other of its post: a statement that was written
// for one list lifts no request that somebody else got.
type NamedTombstone struct {
	ID   manifest.PostID `json:"id"`
	Time time.Time       `json:"time"` // UTC, to the second
}

// NameTombstone names the tombstone of a post and a time.
func NameTombstone(id manifest.PostID, at time.Time) NamedTombstone {
	return NamedTombstone{ID: id, Time: at.UTC().Truncate(time.Second)}
}
