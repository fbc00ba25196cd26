package polite

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxWait is the longest single pause that a run makes because a server asks for it. Reddit's own window is 10 min.
const MaxWait = 15 * time.Minute

// ceiling is the longest time that is read: a longer one is as good as this, and cannot overflow.
const ceiling = 365 * 24 * time.Hour

// RetryAfter reads the header Retry-After, which asks a client to stay away: a number of seconds, or a date, counted
// from the server's own Date where it has one. The time is from 0 to 365 days. named is false when there is no such
// header, or none that can be read.
func RetryAfter(h http.Header, now time.Time) (d time.Duration, named bool) {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if d, ok := Span(v, time.Second); ok {
		return d, true
	}
	t, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date // by the host's own clock: this machine's may be wrong
	}
	return min(max(t.Sub(now), 0), ceiling), true
}

// Span reads a number of units of time, which may have a fraction. A time of more than 365 days is 365 days. ok is
// false for text that is not a number, and for a negative one.
func Span(number string, unit time.Duration) (d time.Duration, ok bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !(n >= 0) {
		return 0, false
	}
	return time.Duration(math.Round(min(n*float64(unit), float64(ceiling)))), true
}
