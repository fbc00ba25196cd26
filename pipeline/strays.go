package pipeline

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"rehydrate/manifest"
	"rehydrate/pipeline/reddit"
	"rehydrate/policy"
)

// A host in trouble sends a page, or nothing, in place of every image, and no entry may be lost for that. So such an
// answer is failed, and the next run asks again, unless the host gives an image after it. Where images.suspect_after
// URLs have the same body, it has to come in two runs.

// A stray is an answer without an image.
type stray struct {
	job    fetchJob
	source string       // of its trouble
	fault  policy.Fault // if it is final
	body   string       // digest
}

// strays are what image hosts sent in place of images in this run, by host.
type strays struct {
	mu     sync.Mutex
	byHost map[string]*hostStrays
}

type hostStrays struct {
	witness       reddit.Candidate // an image that the host gave, in this run or an earlier one
	open, settled []stray          // since the host last gave an image, and before that
}

// on changes what is known of a host.
func (s *strays) on(host string, change func(*hostStrays)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byHost[host] == nil {
		s.byHost[host] = &hostStrays{}
	}
	change(s.byHost[host])
}

// gave notes that a host gave an image, now or in an earlier run.
func (s *strays) gave(c reddit.Candidate, now bool) {
	s.on(c.Host, func(h *hostStrays) {
		h.witness = c
		if now {
			h.open, h.settled = nil, append(h.settled, h.open...)
		}
	})
}

// add notes an answer without an image, and returns the fault that it is for now.
func (s *strays) add(t stray) *policy.Fault {
	s.on(t.job.candidate.Host, func(h *hostStrays) { h.open = append(h.open, t) })
	return &policy.Fault{Outcome: manifest.Failed, Reason: t.fault.Reason, Detail: t.fault.Detail}
}

// settleStrays makes the answers final that are about an image, and not trouble of its host.
func (g *gatherer) settleStrays(ctx context.Context) error {
	for _, host := range slices.Sorted(maps.Keys(g.strays.byHost)) {
		h := g.strays.byHost[host]
		if len(h.open) > 0 && h.witness.URL != "" && g.access() == nil {
			// One image more, whose post is live, says whether the host works. A 404 says so, too.
			_, err := g.Reddit.Download(ctx, h.witness)
			f, ok := errors.AsType[*policy.Fault](err)
			if err != nil && !ok {
				return err
			}
			if !ok || f.Outcome == manifest.Gone {
				g.strays.gave(h.witness, true)
			}
		}
		urls := map[string]map[string]bool{} // by body
		for _, t := range slices.Concat(h.settled, h.open) {
			if urls[t.body] == nil {
				urls[t.body] = map[string]bool{}
			}
			urls[t.body][t.job.source] = true
		}
		for _, t := range h.settled {
			if n := g.Policy.Images.SuspectAfter; n > 0 && len(urls[t.body]) >= n && t.job.before != t.fault.Reason {
				continue
			}
			if err := g.setTrouble(ctx, t.job.entry.Key, t.source, &t.fault); err != nil {
				return err
			}
		}
	}
	return nil
}
