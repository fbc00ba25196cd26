package redditemu

// What tests outside of the package see of it.

func (p Post) Slug(i int) string                     { return p.slug(i) }
func (p Post) PreviewURL(i int, query string) string { return p.previewURL(i, query) }

// Signed is an address with its signature.
var Signed = signed
