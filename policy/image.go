package policy

import (
	"crypto/md5" // the hash under which a known placeholder was published, not a defence
	"crypto/sha256"
	"fmt"
	"strings"

	"rehydrate/internal/picture"
	"rehydrate/manifest"
)

// A Fault is an entry's trouble as data: the outcome it leads to, and why. Detail is for
// people; it never holds a URL, a user name or a title.
type Fault struct {
	Outcome manifest.Outcome
	Reason  manifest.Reason
	Detail  string
}

// Error makes a Fault an error, so that one can travel as such to where it is stored.
func (f *Fault) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("%s/%s: %s", f.Outcome, f.Reason, f.Detail), ": ")
}

// WidestImages has the widest limits that a policy can set: what any policy took, they take.
func WidestImages() Images {
	return Images{MaxBytes: 256 << 20, MaxPixels: 268402689, MaxSide: 65535}
}

// Limits returns what picture is to hold files to.
func (i Images) Limits() picture.Limits {
	return picture.Limits{MaxBytes: i.MaxBytes, MaxPixels: i.MaxPixels, MaxSide: i.MaxSide}
}

// MaxDecodedBytes returns the bound on the DecodedBytes of an image that InspectImage passes.
func (i Images) MaxDecodedBytes() int64 { return i.Limits().MaxDecodedBytes() }

// InspectImage decides from its bytes alone whether a downloaded body may be decoded: the checks of picture.Inspect
// within the policy's limits, and the known placeholders. The fault is nil exactly when the body may go to
// picture.Decode.
func (p Policy) InspectImage(body []byte) (picture.Info, *Fault) {
	info, broken := picture.Inspect(body, p.Images.Limits())
	// A placeholder has a reason of its own, so it counts before the limits that it breaks.
	if info.Format != "" {
		long, short := "", ""
		if p.mayBePlaceholder(len(body)) {
			long, short = fmt.Sprintf("%x", sha256.Sum256(body)), fmt.Sprintf("%x", md5.Sum(body))
		}
		if fault := p.PlaceholderOf(long, short, info, int64(len(body))); fault != nil {
			return picture.Info{}, fault
		}
	}
	if broken == nil {
		return info, nil
	}
	detail := broken.Detail
	if broken.Allowed != "" {
		detail += ", the policy allows " + broken.Allowed
	}
	return picture.Info{}, &Fault{manifest.Invalid, manifest.Reason(broken.Reason), detail}
}
