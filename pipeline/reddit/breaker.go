package reddit

import (
	"fmt"
	"net/http"
	"time"

	"rehydrate/manifest"
)

const (
	// maxFailures is how many calls in a row may fail at a host before it is left alone.
	// With the pauses between them (4, 16, 64 and 256 s, the first only for a rate limit) and
	// the repetitions in them that is 20 requests in six minutes: longer than passing trouble
	// lasts, and few enough to send to a host that refuses or is down.
	maxFailures = 5
	// A failed call weighs so much, and at maxFailures times the weight of a plain one the
	// host is left alone. A 5xx from an image host, or a 403 that does not say why, can be the
	// trouble of the one image that was asked for, so that twice as many in a row are needed,
	// and less is made of each.
	plainFailure = 2
	imageFailure = 1
	// restFor is how long a host is left alone then. It is longer than Reddit's window.
	restFor = maxWait
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

// Unreachable is the error of an Ask when a host has failed several calls in a row, each
// repeated and further and further apart: with 429 or another rate limit, 5xx, answers that
// are of no use (HTML, half a JSON document), or no answer at all. It stops the run. Until a
// quarter of an hour later every Ask has it at once, without a request.
type Unreachable struct {
	Host   string
	Reason manifest.Reason // of the last failure: http_429, http_503, html, timeout, dns, ...
	Detail string          // what the host said, short and printable
	Hint   string          // what to do
}

// Error says which host failed, how, and what to do.
func (e *Unreachable) Error() string {
	return fmt.Sprintf("%s failed %d times in a row, the last time with %s; %s",
		e.Host, maxFailures, withDetail(e.Reason, e.Detail), e.Hint)
}

// A breaker weighs the calls in a row that failed at one host. Its lane's lock guards it.
type breaker struct {
	count int          // of failures, by their weights
	why   *Unreachable // of the last failure, once there were too many
	until time.Time    // the host is left alone before this
}

// answered ends a row of failures.
func (b *breaker) answered() {
	b.count, b.why = 0, nil
}

// failed counts a failure of a call that began after before failures, and returns the new
// count, or 0 when it adds nothing: calls that were open together fail of the same trouble.
func (b *breaker) failed(before, weight int, why *Unreachable, now time.Time) int {
	if b.count != before {
		return 0
	}
	b.count += weight
	if b.count >= maxFailures*plainFailure {
		b.why, b.until = why, now.Add(restFor)
	}
	return b.count
}

// conclude tells the breaker how a call ended, and lets the host rest before the next one
// when that was a failure. It returns an *Unreachable when this was one too many. What would
// be the same however long one waits, and the end of the context, count for nothing.
func (k *call) conclude(err error) error {
	l := k.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	forImage, again := k.validate == nil, repeatable(k.got.status, k.got.header)
	if err == nil && !again && !useless(k.refused) && !(forImage && turnedAway(l.host, k.got)) {
		l.breaker.answered()
		return nil
	}
	if err != nil && permanent(err) && (forImage || !isTooLarge(err)) {
		return nil
	}
	why, reason := &Unreachable{Host: l.host, Hint: uselessHint}, waitServer
	if err != nil {
		why.Reason, why.Detail = trouble(err)
		if !is[*Unanswered](err) && !isTooLarge(err) { // no answer came at all
			why.Hint, reason = networkHint, waitNetwork
		}
	} else {
		why.Reason, why.Detail = status("http_", k.got.status), k.c.said(k.got)
		switch s := k.got.status; {
		case !again:
		case s >= 500, s == http.StatusRequestTimeout:
			why.Hint = serverHint
		default:
			why.Hint, reason = limitHint, waitRateLimit
		}
	}
	weight := plainFailure
	if forImage && reason == waitServer {
		weight = imageFailure
	}
	now := time.Now()
	n := l.breaker.failed(k.before, weight, why, now)
	switch rows := n / plainFailure; {
	case rows >= maxFailures:
		return why
	case rows > 1, rows == 1 && reason == waitRateLimit:
		l.pauseUntil(now.Add(min(k.c.retryWait<<(2*rows), maxWait)), reason)
	}
	return nil
}

func isTooLarge(err error) bool { return is[*tooLarge](err) || isHeadersTooLarge(err) }
