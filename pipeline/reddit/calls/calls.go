// Package calls has the counts of the requests of a run. It lies apart from the network client that counts, so that the
// packages which keep and show the counts do not link it.
package calls

import "time"

// Counts are the requests of a client that were sent, unanswered ones and repetitions included.
type Counts struct {
	Info     int `json:"info"`      // of /api/info: one for up to policy.MaxAsk posts
	About    int `json:"about"`     // of /r/NAME/about
	Token    int `json:"token"`     // of the token endpoint
	Images   int `json:"images"`    // of image hosts, each redirect one more
	ImageAPI int `json:"image_api"` // of an image host's API
	Retries  int `json:"retries"`
	// Waited is the time in which some host was waited for. Waits side by side count once, so that no run waits longer
	// than it takes.
	Waited time.Duration `json:"waited"`
	// WaitedFor is what the longest of all waits were for, by host and reason: "i.redd.it: it is in trouble".
	WaitedFor string `json:"waited_for"`
}
