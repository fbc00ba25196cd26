package polite

import (
	"math"
	"net/http"
	"strconv"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		after, date string
		want        time.Duration
		named       bool
	}{
		{"", "", 0, false},
		{"20", "", 20 * time.Second, true},
		{" 2.5 ", "", 2500 * time.Millisecond, true},
		{"0", "", 0, true},
		{"-5", "", 0, false},
		{"NaN", "", 0, false},
		{"soon", "", 0, false},
		{"1e300", "", ceiling, true},
		{"+Inf", "", ceiling, true},
		{"Fri, 02 Jan 2026 03:05:05 GMT", "", time.Minute, true},
		{"Friday, 02-Jan-26 03:05:05 GMT", "", time.Minute, true},
		{"Fri, 02 Jan 2026 03:04:00 GMT", "", 0, true},
		{"Fri, 31 Dec 9999 23:59:59 GMT", "", ceiling, true},
		{"Mon, 02 Jan 2006 15:04:35 GMT", "Mon, 02 Jan 2006 15:04:05 GMT", 30 * time.Second, true}, // by its own clock
		{"Fri, 02 Jan 2026 03:05:05 GMT", "today", time.Minute, true},
	} {
		h := http.Header{}
		h.Set("Retry-After", tt.after)
		h.Set("Date", tt.date)
		if got, named := RetryAfter(h, now); got != tt.want || named != tt.named {
			t.Errorf("RetryAfter(%q, Date %q) = %v, %v; want %v, %v", tt.after, tt.date, got, named, tt.want, tt.named)
		}
	}
}

// FuzzRetryAfter: whatever a server sends is a time from 0 to 365 days, and nothing when it cannot be read. A whole
// number is so many seconds.
func FuzzRetryAfter(f *testing.F) {
	f.Add("120", "")
	f.Add("-1", "")
	f.Add("1e999", "Mon, 02 Jan 2006 15:04:05 GMT")
	f.Add("Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 0001 00:00:00 GMT")
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f.Fuzz(func(t *testing.T, after, date string) {
		h := http.Header{"Retry-After": {after}, "Date": {date}}
		d, named := RetryAfter(h, now)
		if d < 0 || d > ceiling || !named && d != 0 {
			t.Errorf("RetryAfter(%q, Date %q) = %v, %v", after, date, d, named)
		}
		if n, err := strconv.ParseUint(after, 10, 32); err == nil {
			if want := time.Duration(min(float64(n)*1e9, float64(ceiling))); !named || d != want {
				t.Errorf("RetryAfter(%q) = %v, %v; want %v", after, d, named, want)
			}
		}
	})
}

func TestSpan(t *testing.T) {
	for _, tt := range []struct {
		number string
		unit   time.Duration
		want   time.Duration
		ok     bool
	}{
		{"2500", time.Millisecond, 2500 * time.Millisecond, true},
		{"0.1", time.Second, 100 * time.Millisecond, true},
		{strconv.FormatFloat(math.MaxFloat64, 'g', -1, 64), time.Millisecond, ceiling, true},
		{"-0.1", time.Second, 0, false},
		{"6m0s", time.Second, 0, false},
	} {
		if got, ok := Span(tt.number, tt.unit); got != tt.want || ok != tt.ok {
			t.Errorf("Span(%q, %v) = %v, %v; want %v, %v", tt.number, tt.unit, got, ok, tt.want, tt.ok)
		}
	}
}
