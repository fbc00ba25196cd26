package reddit

import (
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// Calls counts what a Client has done since New. The requests are those that were sent,
// repetitions and unanswered ones included; Retries says how many of them were repetitions.
type Calls struct {
	Info     int `json:"info"`      // of /api/info: one for up to MaxAsk posts
	About    int `json:"about"`     // of /r/NAME/about
	Token    int `json:"token"`     // of the token endpoint
	Images   int `json:"images"`    // of image hosts, each redirect one more
	ImageAPI int `json:"image_api"` // of an image host's API
	Retries  int `json:"retries"`
	// Waited is the sum of all waits, for a turn and between repetitions. Requests to several
	// image hosts wait side by side, so it can be longer than the Client's life.
	Waited time.Duration `json:"waited"`
}

// Calls returns the counts as they stand. It may be called at any time.
func (c *Client) Calls() Calls {
	n := &c.calls
	return Calls{
		Info: int(n.info.Load()), About: int(n.about.Load()), Token: int(n.token.Load()),
		Images: int(n.images.Load()), ImageAPI: int(n.imageAPI.Load()),
		Retries: int(n.retries.Load()), Waited: time.Duration(n.waited.Load()),
	}
}

// counters are what Calls is made from.
type counters struct{ info, about, token, images, imageAPI, retries, waited atomic.Int64 }

// sent counts a request that has gone out.
func (n *counters) sent(req *http.Request) {
	if callOf(req.Context()).attempt > 1 {
		n.retries.Add(1)
	}
	switch host := req.URL.Hostname(); {
	case host == tokenHost:
		n.token.Add(1)
	case host == apiHost && strings.HasSuffix(req.URL.Path, "/about"):
		n.about.Add(1)
	case host == apiHost:
		n.info.Add(1)
	case host == imgurAPIHost:
		n.imageAPI.Add(1)
	default:
		n.images.Add(1)
	}
}
