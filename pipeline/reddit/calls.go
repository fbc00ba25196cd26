package reddit

import (
	"net/http"
	"strings"
	"sync"
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
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	return c.calls.Calls
}

// counters are Calls in the making.
type counters struct {
	mu sync.Mutex
	Calls
}

// sent counts a request that has gone out.
func (n *counters) sent(req *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if callOf(req.Context()).attempt > 1 {
		n.Retries++
	}
	switch host := req.URL.Hostname(); {
	case host == tokenHost:
		n.Token++
	case host == apiHost && strings.HasSuffix(req.URL.Path, "/about"):
		n.About++
	case host == apiHost:
		n.Info++
	case host == imgurAPIHost:
		n.ImageAPI++
	default:
		n.Images++
	}
}

func (n *counters) waited(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.Waited += d
}
