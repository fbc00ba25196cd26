package polite

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRepeatable(t *testing.T) {
	for status, want := range map[int]bool{200: false, 302: false, 403: false, 404: false, 408: true, 409: false,
		414: false, 425: true, 429: true, 500: true, 501: false, 502: true, 503: true, 504: true, 529: true} {
		if got := Repeatable(status); got != want {
			t.Errorf("Repeatable(%d) = %v, want %v", status, got, want)
		}
	}
	if !Repeatable(409, 403, 409) || Repeatable(414, 403, 409) {
		t.Error("Repeatable takes another status than those that the caller names")
	}
}

func TestPermanent(t *testing.T) {
	own := errors.New("not on this machine")
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{ErrTooLong, true},
		{own, true},
		{&tls.CertificateVerificationError{Err: errors.New("bad")}, true},
		{x509.UnknownAuthorityError{}, true},
		{x509.HostnameError{}, true},
		{x509.CertificateInvalidError{Reason: x509.Expired}, true},
		{tls.RecordHeaderError{}, false},
		{io.ErrUnexpectedEOF, false},
		{context.DeadlineExceeded, false},
	} {
		if got := Permanent(fmt.Errorf("ask: %w", tt.err), own); got != tt.want {
			t.Errorf("Permanent(%T %v) = %v, want %v", tt.err, tt.err, got, tt.want)
		}
	}
	if Permanent(own) {
		t.Error("an error is permanent that no caller named")
	}
}

func TestReadBody(t *testing.T) {
	for body, want := range map[string]error{"": nil, "123": nil, "1234": ErrTooLong, "123456789": ErrTooLong} {
		got, err := ReadBody(strings.NewReader(body), 3)
		if err != want || err == nil && string(got) != body || err != nil && got != nil {
			t.Errorf("ReadBody(%q) = %q, %v; want %v", body, got, err, want)
		}
	}
}

// A played server answers each attempt with the next of its statuses, 0 for a broken connection, and keeps what came.
type played struct {
	statuses []int
	location string
	at       []time.Time
	bodies   []string
}

var errBroken = errors.New("broken")

func (p *played) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = string(b)
	}
	status := p.statuses[len(p.at)]
	p.at, p.bodies = append(p.at, time.Now()), append(p.bodies, body)
	if status == 0 {
		return nil, errBroken
	}
	h := http.Header{"Location": {p.location}}
	return &http.Response{StatusCode: status, Header: h, Body: http.NoBody, Request: r}, nil
}

// retry repeats broken attempts and 503, three times at most, and waits 3, 6 and 9 s.
func retry(p *played, waits *Waits) Retry {
	return Retry{Attempt: p, Most: 3, Waits: waits,
		Again: func(_ context.Context, answer *http.Response, err error) (bool, error) {
			return err == errBroken || answer != nil && answer.StatusCode == 503, nil // == : it is bare
		},
		Wait: func(n int, _ *http.Response) Wait {
			return Wait{Host: "h", Reason: "it is in trouble", For: time.Duration(3*n) * time.Second}
		}}
}

// TestRetry: the request is sent whole in each attempt, each wait is told of and counted, and the last answer or error
// comes back.
func TestRetry(t *testing.T) {
	for _, tt := range []struct {
		name     string
		statuses []int
		at       []int // seconds
		err      bool
	}{
		{"at once", []int{200}, []int{0}, false},
		{"once more", []int{503, 404}, []int{0, 3}, false},
		{"in trouble for ever", []int{503, 0, 503, 503}, []int{0, 3, 9, 18}, false},
		{"broken for ever", []int{0, 0, 0, 0}, []int{0, 3, 9, 18}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []Wait
				waits := &Waits{Tell: func(w Wait) { told = append(told, w) }}
				p := &played{statuses: tt.statuses}
				form := strings.NewReader("form")
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://h/", form)
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				answer, err := retry(p, waits).Do(request)
				last := tt.statuses[len(tt.statuses)-1]
				if tt.err != errors.Is(err, errBroken) || err == nil && answer.StatusCode != last {
					t.Errorf("Do = %v, %v", answer, err)
				}
				var at []int
				for _, x := range p.at {
					at = append(at, int(x.Sub(start)/time.Second))
				}
				if diff := cmp.Diff(tt.at, at); diff != "" {
					t.Errorf("asked (-want +got):\n%s", diff)
				}
				if slices.ContainsFunc(p.bodies, func(b string) bool { return b != "form" }) {
					t.Errorf("sent %q", p.bodies)
				}
				total, longest := waits.Sum()
				want := time.Duration(tt.at[len(tt.at)-1]) * time.Second
				if len(told) != len(tt.at)-1 || total != want || longest.For != want || want > 0 && longest.Host != "h" {
					t.Errorf("told of %v; in sum %v, %+v", told, total, longest)
				}
			})
		})
	}
}

// TestRetryEnds: a wait gives way to the context at once, and counts as far as it was made.
func TestRetryEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		waits, start := new(Waits), time.Now()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://h/", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = retry(&played{statuses: []int{503, 200}}, waits).Do(request)
		total, _ := waits.Sum()
		if d := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || d != time.Second || total != d {
			t.Errorf("Do = %v after %v, %v of it waits", err, d, total)
		}
	})
}

// TestNoRedirect: a redirect is the answer, also one to nowhere, and nobody else is asked.
func TestNoRedirect(t *testing.T) {
	for location, kept := range map[string]bool{"https://elsewhere.example/": true, "::::": false, "": false} {
		p := &played{statuses: []int{302}, location: location}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://h/", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := retry(p, nil).Do(request)
		if err != nil || answer.StatusCode != 302 || len(p.at) != 1 || (answer.Header.Get("Location") != "") != kept {
			t.Errorf("to %q: %v, %v after %d requests", location, answer, err, len(p.at))
		}
	}
}
