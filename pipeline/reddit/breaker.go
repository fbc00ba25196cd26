package reddit

import (
	"fmt"
	"net/http"
	"time"

	"rehydrate/internal/polite"
)

const (
	// maxFailures is how many calls in a row may fail at Reddit. With the pauses between them (4, 16, 64 and 256 s) and
	// their repetitions that is 20 requests in six minutes: longer than passing trouble lasts, and not too many.
	maxFailures = 5
	// plainFailure is what a failed call weighs, and imageFailure what one weighs that can be the trouble of one image.
	plainFailure, imageFailure = 2, 1
	// restFor is how long a host is left alone then. It is longer than Reddit's window.
	restFor = polite.MaxWait
)

// What to do about Reddit when it fails.
const (
	uselessHint = "it sends something else than the answers of Reddit's API, as in an outage or behind a proxy: " +
		"start again later"
	networkHint = "see that the network and its name service work, then start again"
	serverHint  = "the host has trouble of its own: start again later"
	limitHint   = "the host limits this client or network: see that nothing else uses the same credentials, " +
		"and start again in an hour"
)

// conclude weighs how a call ended. It returns an *Unreachable when this was one failure of Reddit too many in a row.
func (k *call) conclude(err error) error {
	l := k.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	failed := k.inTrouble(err)
	switch {
	case err == nil && !failed:
		l.failures = 0
		l.Open()
		return nil
	case !failed, l.failures != k.before:
		return nil // calls that were open together fail of the same trouble, which counts once
	}
	reason, detail, rest, paused := k.failure(err)
	l.failures += plainFailure
	if k.forImage() && paused == waitServer {
		// A 5xx, or a 403 that does not say why, can be the trouble of the one image that was asked for. So it takes
		// twice as many in a row, and less is made of each.
		l.failures += imageFailure - plainFailure
	}
	now, rows := time.Now(), l.failures/plainFailure
	if k.forImage() { // weigh gives it up; the last pause ends when it may
		rows = min(rows, maxFailures-1)
	}
	pause := min(k.c.o.retryWait<<(2*rows), polite.MaxWait)
	if left := giveUpAfter - l.lasts(now); k.forImage() && left > 0 {
		pause = min(pause, left)
	}
	switch {
	case rows >= maxFailures:
		shut := &Unreachable{l.Host, reason, now.Add(rest),
			fmt.Sprintf("failed %d times in a row, the last time with %s; %s",
				maxFailures, withDetail(reason, detail), k.hint(err))}
		l.Shut(now.Add(restFor), paused, shut)
		return shut
	case rows > 1, rows == 1 && paused == waitRateLimit:
		// One failure passes by itself most often, but for a rate limit, which only a pause ends.
		l.Pause(now.Add(pause), paused)
	}
	return nil
}

// hint is what to do about a call that failed.
func (k *call) hint(err error) string {
	s := k.got.status
	switch {
	case err != nil && !is[*Unanswered](err): // no answer came at all
		return networkHint
	case err != nil || !saysLater(s, k.got.header):
		return uselessHint
	case s >= 500 || s == http.StatusRequestTimeout:
		return serverHint
	}
	return limitHint
}
