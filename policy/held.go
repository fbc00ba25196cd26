package policy

import (
	"fmt"
	"slices"
	"strings"

	"rehydrate/internal/picture"
)

// ImageLimits is what the policy allows of images, in a form that a workspace keeps beside each image that was held
// against it.
func (p Policy) ImageLimits() string {
	im := p.Images
	limits := fmt.Sprint(im.MaxBytes, im.MaxPixels, im.MaxSide)
	for _, h := range im.Hosts {
		limits += " " + h.Name
	}
	for _, k := range im.Placeholders {
		limits += k.limit()
	}
	return limits
}

func (k Placeholder) limit() string { return fmt.Sprintf(" %+v", k) }

// A HeldImage is what is on record of an image that was held against limits.
type HeldImage struct {
	Limits string // ImageLimits of that time
	Info   picture.Info
	Bytes  int64  // as downloaded
	SHA256 string // of that, lower-case hex
}

// Admits reports whether the policy is known to take an image. Of a host nobody knows which images came from it, so
// that none is taken that was held against limits with a host which the policy does not name any more; and of a
// placeholder that is told by more than its size and SHA-256, none that was not held against it.
func (p Policy) Admits(img HeldImage) bool {
	im, limits := p.Images, p.ImageLimits()
	if img.Limits == limits {
		return true
	}
	isOut := func(host string) bool { _, named := p.Host(host); return !named }
	unlike := func(k Placeholder) bool { return k.MD5+k.URL != "" && !strings.Contains(img.Limits, k.limit()) }
	return img.Bytes <= im.MaxBytes && max(img.Info.Width, img.Info.Height) <= im.MaxSide &&
		int64(img.Info.Width)*int64(img.Info.Height) <= im.MaxPixels &&
		p.PlaceholderOf(img.SHA256, "", img.Info, img.Bytes) == nil &&
		!slices.ContainsFunc(hostsIn(img.Limits), isOut) && !slices.ContainsFunc(im.Placeholders, unlike)
}

// hostsIn are the hosts that limits name, between the three numbers and the placeholders.
func hostsIn(limits string) []string {
	before, _, _ := strings.Cut(limits, " {")
	words := strings.Fields(before)
	return words[min(3, len(words)):]
}
