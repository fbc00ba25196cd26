package endpoint

import (
	"net/http"
	"time"

	"rehydrate/internal/polite"
)

// reset reads how long a server asks to be left alone: retry-after-ms, Retry-After, or the headers of OpenAI's rate
// limits, as "6m0s".
func reset(h http.Header, now time.Time) (d time.Duration, named bool) {
	if d, ok := polite.Span(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d, true
	}
	if d, ok := polite.RetryAfter(h, now); ok {
		return d, true
	}
	for _, kind := range []string{"Requests", "Tokens"} {
		// A limit that is not used up says nothing of when the other is.
		if left := h.Get("X-Ratelimit-Remaining-" + kind); left != "" && left != "0" {
			continue
		}
		name := "X-Ratelimit-Reset-" + kind
		one, ok := polite.Span(h.Get(name), time.Second)
		ok = ok && one < 24*time.Hour // else it is a date in seconds, of which dialect is not known
		if parsed, err := time.ParseDuration(h.Get(name)); err == nil && parsed >= 0 {
			one, ok = parsed, true
		}
		if ok {
			d, named = max(d, one), true
		}
	}
	return d, named
}
