// Package redditemu is an emulator of Reddit and of the image hosts its posts name.
//
// It owns one TLS listener on 127.0.0.1 that answers as the hosts of Reddit and imgur, by the Host of each request,
// under a certificate authority made in memory. A client reaches it as any mirror: by connect-to rules and one more
// root certificate. Nothing in the client is special to it.
//
// It promises the behaviour that was recorded of the real service, from its rate-limit headers to the stand-in
// images of the image hosts. Package hostile spoils its answers, for tests.
//
// Every answer carries canaries in author, title, permalink and selftext: a test searches a workspace for them to show
// that none of it reached the disk. Package hostile puts another into the metadata of the pictures.
//
// Pictures are drawn by the program ([Draw]), are harmless, and follow from their [Spec] alone.
//
// # Limitations
//
// HTTP/1.1 only. Of OAuth2 only client credentials. preview.redd.it sends what is stored, never WebP in its place.
// /api/info answers as with raw_json=1. The three known stand-in images have
// the right size and type, not the right bytes. Where a behaviour of Reddit was never recorded (duplicate ids, the
// status of a deleted image) one answer was chosen.
package redditemu

// The canaries. None of them may ever be found in what a client stores.
const (
	CanaryAuthor    = "canary_author_zq81"
	CanaryFullname  = "t2_canaryzq82"
	CanaryTitle     = "Canary title zq83"
	CanaryPermalink = "canary_permalink_zq84"
	CanarySelftext  = "Canary selftext zq85"
	CanaryFlair     = "canary flair zq86"
)
