package pipeline

import (
	"sync"

	"rehydrate/internal/polite"
	"rehydrate/manifest"
)

// A Progress counts what a run has done. It is safe for concurrent use.
type Progress struct {
	observe func(Snapshot)

	mu   sync.Mutex // guards what follows
	snap Snapshot
}

// A Snapshot is the state of a run at one moment.
type Snapshot struct {
	Stage   string // what is going on, for people
	Total   int    // entries in the manifest
	Done    int    // entries that need nothing more before dedupe
	Asked   int    // posts with an answer in this run
	Posts   int    // to ask about, in a stage that does nothing else; 0 in any other
	Fetched int    // images stored in this run
	Read    int    // images read in this run
	Gone    int    // entries whose post or image is not to be had
	Failed  int    // entries to try again
	Wait    *polite.Wait
}

// NewProgress returns a Progress that calls observe, one call at a time, on every change.
func NewProgress(observe func(Snapshot)) *Progress { return &Progress{observe: observe} }

// OnWait announces a wait; give it to reddit.Options.OnWait.
func (p *Progress) OnWait(w polite.Wait) { p.change(func(s *Snapshot) { s.Wait = &w }) }

func (p *Progress) change(f func(*Snapshot)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.snap)
	p.observe(p.snap)
	p.snap.Wait = nil // said once
}

func (p *Progress) begin(total int) {
	p.change(func(s *Snapshot) { *s = Snapshot{Total: total, Stage: "start"} })
}

func (p *Progress) stage(name string) { p.change(func(s *Snapshot) { s.Stage, s.Posts = name, 0 }) }

// asking begins a stage that only asks. After it no entry needs anything more.
func (p *Progress) asking(posts int) {
	p.change(func(s *Snapshot) { s.Stage, s.Posts, s.Done = "ask about every post", posts, s.Total })
}

func (p *Progress) asked(posts int) { p.change(func(s *Snapshot) { s.Asked += posts }) }

func (p *Progress) fetched() { p.change(func(s *Snapshot) { s.Fetched++ }) }

func (p *Progress) read() { p.change(func(s *Snapshot) { s.Read++; s.Done++ }) }

// settled counts an entry that needs nothing more, or nothing that this run can do.
func (p *Progress) settled(o manifest.Outcome) {
	p.change(func(s *Snapshot) {
		s.Done++
		switch {
		case o == "":
		case o.Retryable():
			s.Failed++
		default:
			s.Gone++
		}
	})
}
