package reddit

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"rehydrate/internal/polite"
	"rehydrate/manifest"
)

const (
	// giveUpAfter is for how long an image host may be asked, and fail, without one image from it.
	giveUpAfter = 10 * time.Minute
	// afterLimit is how long a host is left alone that limits this client and does not say for how long.
	afterLimit = time.Hour
)

// ReasonGivenUp is the reason of the Fault of an image whose host is given up.
const ReasonGivenUp manifest.Reason = "host_given_up"

// A HostTrouble says that an image host was given up: for ten minutes it was asked, and gave no image; or it asks for a
// longer pause than a run makes; or the proxy does not lead to it.
type HostTrouble struct {
	Host   string
	Since  time.Time       // the first request that failed after the last image
	Until  time.Time       // when it is worth asking again: by the host's own word, if it had one
	Reason manifest.Reason // of the last failure: http_503, timeout, proxy, retry_after_too_long, ...
	Detail string          // more of it, or "": of fixed texts, but for the address of a proxy
}

// GivenUp returns the image hosts that are given up, by their names. A host that gives an image later, when Until has
// passed, is no longer among them. It may be called at any time.
func (c *Client) GivenUp() []HostTrouble {
	var all []HostTrouble
	for _, host := range slices.Sorted(maps.Keys(c.pace.lanes)) {
		l := c.pace.lanes[host]
		l.mu.Lock()
		if l.givenUp != nil {
			all = append(all, *l.givenUp)
		}
		l.mu.Unlock()
	}
	return all
}

// An outage is the time in which requests to an image host failed and it gave no image. The zero value is none.
type outage struct {
	since         time.Time     // when the first attempt that failed was made
	idle          time.Duration // since then, while nobody wanted anything of the host
	asked, failed int           // attempts since then
	open          int           // calls
	closed        time.Time     // when the last call ended
	givenUp       *HostTrouble
}

// lasts is for how long the host was asked in vain.
func (o *outage) lasts(now time.Time) time.Duration {
	if o.since.IsZero() {
		return 0
	}
	return now.Sub(o.since) - o.idle
}

// begin notes that a call begins.
func (l *lane) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == 0 && !l.since.IsZero() {
		l.idle += time.Since(l.closed)
	}
	l.open++
}

// end notes that a call has ended.
func (l *lane) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	l.closed = time.Now()
}

// gave notes that the host gave an image, which alone proves that it is well.
func (l *lane) gave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outage = outage{open: l.open}
	l.Open()
}

// inTrouble reports whether the last attempt, or its error, speaks of trouble of the host, and not of what was asked
// for.
func (k *call) inTrouble(err error) bool {
	if err != nil {
		// What is permanent would be the same however long one waits.
		return !permanent(err) || k.validate != nil && is[*Unanswered](err)
	}
	return saysLater(k.got.status, k.got.header) || useless(k.refused) || k.forImage() && turnedAway(k.lane.Host, k.got)
}

// forImage reports whether the call is not of Reddit's API.
func (k *call) forImage() bool { return k.validate == nil }

// weigh takes in an attempt at an image host. It returns an *Unreachable when the host is given up for it; pause is
// what the host asks for, 0 for nothing.
func (k *call) weigh(err error, pause time.Duration) error {
	if !k.forImage() || is[*Unreachable](err) { // nothing was sent
		return nil
	}
	l, now := k.lane, time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if is[*polite.ProxyError](err) && permanent(err) { // it does not lead to this host, and will not
		if l.givenUp == nil || !now.Before(l.givenUp.Until) { // else it is what the first one found
			reason, detail, rest, paused := k.failure(err)
			l.giveUp(reason, detail, rest, paused, err)
		}
		return nil
	}
	trouble := k.inTrouble(err)
	if trouble && l.since.IsZero() {
		l.since, l.idle, l.asked, l.failed = k.sent, 0, 0, 0
	}
	l.asked++
	if !trouble {
		return nil
	}
	l.failed++
	lasts := l.lasts(now)
	// Whoever asks for a pause gets it, but not when the ten minutes have begun before, and end well within it.
	if lasts > attemptTimeout {
		lasts = max(lasts, lasts+pause-attemptTimeout)
	}
	// Most attempts have to have failed: of images that are gone for good a host says so, and gives none.
	if pause <= polite.MaxWait && (lasts < giveUpAfter || 2*l.failed <= l.asked) {
		return nil
	}
	reason, detail, rest, paused := k.failure(err)
	if pause > 0 {
		rest, paused = pause, waitRetryAfter
	}
	shut := &Unreachable{l.Host, ReasonGivenUp, now.Add(rest), "gave no image in ten minutes"}
	if pause > polite.MaxWait {
		reason, detail, shut = reasonTooLong, "", tooLong(l.Host, rest)
	}
	l.giveUp(reason, detail, rest, paused, shut)
	return shut
}

// giveUp has each request fail with shut until the rest is over. It needs mu.
func (l *lane) giveUp(reason manifest.Reason, detail string, rest time.Duration, paused string, shut error) {
	now := time.Now()
	l.givenUp = &HostTrouble{l.Host, l.since, now.Add(rest), reason, detail}
	if l.since.IsZero() {
		l.givenUp.Since = now
	}
	l.Shut(now.Add(rest), paused, shut)
}

// tooLong is the error of a pause that is longer than a run waits.
func (k *call) tooLong(d time.Duration) error {
	shut := tooLong(k.lane.Host, d)
	if k.forImage() {
		k.lane.mu.Lock()
		defer k.lane.mu.Unlock()
		k.lane.giveUp(reasonTooLong, "", d, waitRateLimit, shut)
	}
	return shut
}

// failure says how an attempt failed: why, for how long its host is left alone when it is given up, and the reason of
// that pause for people.
func (k *call) failure(err error) (reason manifest.Reason, detail string, rest time.Duration, paused string) {
	s := k.got.status
	switch {
	case err != nil && !is[*Unanswered](err): // no answer came at all
		reason, detail = trouble(err)
		return reason, detail, restFor, waitNetwork
	case err != nil:
		reason, detail = trouble(err)
		return reason, detail, restFor, waitServer
	case saysLater(s, k.got.header) && s < 500 && s != http.StatusRequestTimeout:
		return status("http_", s), "", afterLimit, waitRateLimit
	}
	return status("http_", s), "", restFor, waitServer
}
