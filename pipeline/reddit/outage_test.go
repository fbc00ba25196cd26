package reddit

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rehydrate/manifest"
)

// hostOptions are those of a real run, but for the rates of the hosts.
func hostOptions() Options {
	o := imgurOptions()
	o.retryWait = time.Second
	return o
}

// fetchAll downloads images of a host side by side, as many at a time as the policy allows, and counts the faults.
func fetchAll(t *testing.T, c *Client, host string, n int) (faults map[string]int) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	faults = map[string]int{}
	for i := range n {
		wg.Go(func() {
			_, err := c.Download(t.Context(), Candidate{URL: fmt.Sprintf("https://%s/%d.png", host, i)})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				faults[strings.SplitN(err.Error(), ":", 2)[0]]++
			}
		})
	}
	wg.Wait()
	return faults
}

// TestGivenUp: a host that fails for everything is given up after ten minutes without an image from it, whatever it
// does. Each further image of it has its fault at once, and other hosts are asked all the while. In the same run it is
// asked again when it is worth it, and the next run asks at once.
func TestGivenUp(t *testing.T) {
	hang := answer{err: os.ErrDeadlineExceeded, held: headerTimeout}
	for name, tt := range map[string]struct {
		answer answer
		reason manifest.Reason
		rest   time.Duration
		within time.Duration // after the ten minutes
	}{
		"503":             {reply(503, ""), "http_503", restFor, time.Second},
		"500 with a page": {reply(500, "<html>"), "http_500", restFor, time.Second},
		"429":             {reply(429, ""), "http_429", afterLimit, time.Second},
		"403 with a page": {reply(403, "<html>blocked"), "http_403", restFor, time.Second},
		"cut":             {answer{err: io.ErrUnexpectedEOF}, "truncated", restFor, time.Second},
		"no connection":   {answer{err: io.EOF}, "connection", restFor, time.Second},
		"hangs":           {hang, "timeout", restFor, headerTimeout + time.Second},
		"trickles": {answer{err: errDeadline, held: attemptTimeout}, "timeout", restFor,
			attemptTimeout + time.Second},
		"asks for 5 min": {reply(503, "", "Retry-After", "300"), "http_503", 5 * time.Minute, 3 * time.Second},
		"asks for 15 min": {reply(429, "", "Retry-After", "899"), "http_429", 899 * time.Second,
			5*time.Minute + time.Second},
		"asks for a day": {reply(503, "", "Retry-After", "86400"), reasonTooLong, 24 * time.Hour,
			time.Second - giveUpAfter},
		"slow and of no use": {answer{status: 502, held: 15 * time.Second}, "http_502", restFor, 16 * time.Second},
	} {
		bubble(t, name, func(t *testing.T) {
			body := string(pngBytes(t))
			var mu sync.Mutex
			well := false
			s := &script{play: func(_ int, r *http.Request) answer {
				mu.Lock()
				defer mu.Unlock()
				if well || r.URL.Hostname() != "i.redd.it" {
					return reply(200, body)
				}
				return tt.answer
			}}
			c := s.client(t, hostOptions())
			start := time.Now()
			var others sync.WaitGroup
			others.Go(func() {
				if faults := fetchAll(t, c, "i.imgur.com", 200); len(faults) > 0 || time.Since(start) > time.Minute {
					t.Errorf("another host: %v in %v", faults, time.Since(start))
				}
			})
			const images = 200
			faults := fetchAll(t, c, "i.redd.it", images)
			others.Wait()
			took := time.Since(start)
			if took < giveUpAfter+min(tt.within, 0)-time.Second || took > giveUpAfter+tt.within {
				t.Errorf("given up after %v, want ten minutes and at most %v", took, tt.within)
			}
			left := "failed/" + string(ReasonGivenUp)
			if tt.reason == reasonTooLong {
				left = "failed/" + reasonTooLong
			}
			asked := len(s.times("i.redd.it", start))
			if asked > images || faults[left] < images/2 {
				t.Errorf("asked %d times; %v", asked, faults)
			}
			want := []HostTrouble{{Host: "i.redd.it", Since: start, Until: time.Now().Add(tt.rest), Reason: tt.reason}}
			if err := tt.answer.err; err != nil {
				_, want[0].Detail = trouble(err)
			}
			if diff := cmp.Diff(want, c.GivenUp(), cmpopts.EquateApproxTime(time.Second)); diff != "" {
				t.Errorf("GivenUp (-want +got):\n%s", diff)
			}

			// At once, and without a request, until the rest is over.
			time.Sleep(tt.rest - time.Second)
			again := time.Now()
			download(t, c, "https://i.redd.it/a.png", left)
			if n := len(s.times("i.redd.it", start)); n != asked || time.Since(again) > 0 {
				t.Errorf("%d more requests in %v", n-asked, time.Since(again))
			}
			time.Sleep(2 * time.Second)
			again = time.Now()
			if faults := fetchAll(t, c, "i.redd.it", images); faults[left] != images || time.Since(again) > 2*time.Minute {
				t.Errorf("the same after a rest: %v in %v", faults, time.Since(again))
			}
			time.Sleep(25 * time.Hour)
			mu.Lock()
			well = true
			mu.Unlock()
			download(t, s.client(t, hostOptions()), "https://i.redd.it/a.png", "") // another run
			download(t, c, "https://i.redd.it/a.png", "")
			if got := c.GivenUp(); got != nil {
				t.Errorf("GivenUp = %v after an image", got)
			}
		})
	}
}

// TestNotGivenUp: an image begins the ten minutes anew; neither do they run while nobody wants anything of the host,
// nor for a few failures among answers that say that images are gone.
func TestNotGivenUp(t *testing.T) {
	image := reply(200, string(pngBytes(t)))
	for name, tt := range map[string]struct {
		every time.Duration // one download
		play  func(n int) answer
	}{
		"an image every nine minutes": {time.Second, func() func(int) answer {
			var last time.Time
			return func(int) answer {
				if now := time.Now(); now.Sub(last) >= 9*time.Minute {
					last = now
					return image
				}
				return reply(503, "")
			}
		}()},
		"seldom wanted": {time.Hour, func(n int) answer {
			if n%(retries+2) == retries+1 {
				return image
			}
			return reply(503, "")
		}},
		"gone but for a few": {time.Second, func(n int) answer {
			if n%10 == 0 {
				return reply(503, "")
			}
			return reply(404, "")
		}},
	} {
		bubble(t, name, func(t *testing.T) {
			c := (&script{play: func(n int, _ *http.Request) answer { return tt.play(n) }}).client(t, hostOptions())
			for start := time.Now(); time.Since(start) < max(2*time.Hour, 20*tt.every); time.Sleep(tt.every) {
				_, err := c.Download(t.Context(), Candidate{URL: "https://i.redd.it/a.png"})
				if strings.Contains(fmt.Sprint(err), string(ReasonGivenUp)) || c.GivenUp() != nil {
					t.Fatalf("after %v: %v, %v", time.Since(start), err, c.GivenUp())
				}
			}
		})
	}
}

// TestGivenUpAPI: imgur's API is given up as a host of images is, and its files are asked for all the same.
func TestGivenUpAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{play: func(_ int, r *http.Request) answer {
			if r.URL.Hostname() == imgurAPIHost {
				return reply(503, "")
			}
			return reply(200, string(pngBytes(t)))
		}}
		c := s.client(t, hostOptions())
		for start := time.Now(); time.Since(start) < giveUpAfter; {
			_, _ = c.Download(t.Context(), Candidate{URL: "https://imgur.com/abcdefg"})
		}
		download(t, c, "https://imgur.com/abcdefg", "failed/host_given_up")
		download(t, c, "https://i.imgur.com/abcdefg.png", "")
		if up := c.GivenUp(); len(up) != 1 || up[0].Host != imgurAPIHost {
			t.Errorf("GivenUp = %v", up)
		}
	})
}
