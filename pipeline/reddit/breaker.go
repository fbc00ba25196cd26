package reddit

import (
	"fmt"
	"net/http"
	"time"

	"rehydrate/internal/polite"
)

const (
	// maxFailures is how many calls in a row may fail at a host. With the pauses between them (4, 16, 64 and 256 s) and
	// their repetitions that is 20 requests in six minutes: longer than passing trouble lasts, and not too many.
	maxFailures = 5
	// plainFailure is what a failed call weighs, and imageFailure what one weighs that can be the trouble of one image.
	plainFailure, imageFailure = 2, 1
	// restFor is how long a host is left alone then. It is longer than Reddit's window.
	restFor = polite.MaxWait
)

// What to do about a host that fails.
const (
	uselessHint = "it sends something else than the answers of Reddit's API, as in an outage or behind a proxy: " +
		"start again later"
	networkHint = "see that the network and its name service work, then start again"
	serverHint  = "the host has trouble of its own: start again later"
	limitHint   = "the host limits this client or network: see that nothing else uses the same credentials, " +
		"and start again in an hour"
)

// conclude weighs how a call ended. It returns an *Unreachable when this was one failure too many in a row.
func (k *call) conclude(err error) error {
	l := k.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	forImage, again := k.validate == nil, repeatable(k.got.status, k.got.header)
	switch {
	case err == nil && !again && !useless(k.refused) && !(forImage && turnedAway(l.Host, k.got)):
		l.failures = 0
		l.Open()
		return nil
	case err != nil && permanent(err) && (forImage || !is[*Unanswered](err)):
		return nil // it would be the same however long one waits
	case l.failures != k.before:
		return nil // calls that were open together fail of the same trouble, which counts once
	}
	s := k.got.status
	reason, said, hint, paused := status("http_", s), "", uselessHint, waitServer
	switch {
	case err != nil:
		reason, said = trouble(err)
		if !is[*Unanswered](err) { // no answer came at all
			hint, paused = networkHint, waitNetwork
		}
	case again && (s >= 500 || s == http.StatusRequestTimeout):
		hint = serverHint
	case again:
		hint, paused = limitHint, waitRateLimit
	}
	l.failures += plainFailure
	if forImage && paused == waitServer {
		// A 5xx, or a 403 that does not say why, can be the trouble of the one image that was asked for. So it takes
		// twice as many in a row, and less is made of each.
		l.failures += imageFailure - plainFailure
	}
	switch rows := l.failures / plainFailure; {
	case rows >= maxFailures:
		shut := &Unreachable{l.Host, reason, fmt.Sprintf("failed %d times in a row, the last time with %s; %s",
			maxFailures, withDetail(reason, said), hint)}
		l.Shut(time.Now().Add(restFor), paused, shut)
		return shut
	case rows > 1, rows == 1 && paused == waitRateLimit:
		// One failure passes by itself most often, but for a rate limit, which only a pause ends.
		l.Pause(time.Now().Add(min(k.c.o.retryWait<<(2*rows), polite.MaxWait)), paused)
	}
	return nil
}
