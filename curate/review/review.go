// Package review serves the annotation page: one image at a time, to one person, on 127.0.0.1. It promises:
//
//   - Only the page itself, opened by its URL, is answered: the Host is the address it listens on, the path begins with a random
//     token, a request from another site is refused, and a change needs the page's own Origin.
//   - Each request reads the workspace without a lock and judges the post again: what a run or purge took out is not shown at the
//     next one, and the page asks every few seconds.
//   - Nothing of an image is written anywhere, and no answer lets a browser keep it.
//   - An answer is on the disk when the page says so.
package review

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"rehydrate/curate/annotate"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// A Config says what is annotated, by whom, and where the answers go.
type Config struct {
	Workspace string // its folder
	Scheme    manifest.Schema
	annotate.Pick
	Batches   []int // as of an export; nil for none
	Annotator string
	Answers   string // the file
	Now       func() time.Time
}

// A Server is a page that is open.
type Server struct {
	Config
	Absent   *annotate.Absent // nil for none
	listener net.Listener
	token    string

	mu      sync.Mutex // guards what follows
	posts   []manifest.Key
	asked   map[manifest.Key]bool // the same
	batches map[manifest.Key]string
	journal *journal
	again   *answer   // the one that was taken back or gone back to, to change it
	rested  time.Time // of the last break, or the beginning
}

// Open finds the images, reads the answers that are there and begins to listen. Serve answers, and ends it.
func Open(ctx context.Context, c Config) (*Server, error) {
	s := &Server{Config: c, token: rand.Text(), asked: map[manifest.Key]bool{}, batches: map[manifest.Key]string{},
		rested: c.Now()}
	err := s.inWorkspace(ctx, func(ws *workspace.Workspace) error {
		posts, absent, err := annotate.Posts(ctx, ws, c.Pick)
		s.Absent = absent
		for _, p := range posts {
			s.posts = append(s.posts, p.Key)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	at := 0
	for i, n := range c.Batches {
		for range n {
			if at < len(s.posts) {
				s.batches[s.posts[at]] = fmt.Sprint(i + 1)
				at++
			}
		}
	}
	if len(c.Batches) > 0 {
		s.posts = s.posts[:at]
	}
	for _, key := range s.posts {
		s.asked[key] = true
	}
	s.journal, err = openJournal(c.Answers, c.Scheme)
	if err == nil {
		s.listener, err = net.Listen("tcp4", "127.0.0.1:0")
	}
	return s, err
}

func (s *Server) inWorkspace(ctx context.Context, do func(*workspace.Workspace) error) error {
	ws, err := workspace.Open(ctx, s.Workspace, workspace.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	err = ws.CheckCurrent(ctx)
	if err == nil {
		err = do(ws)
	}
	return errors.Join(err, ws.Close())
}

// URL is where the page is. Whoever knows it can read and answer.
func (s *Server) URL() string { return s.origin() + "/" + s.token + "/" }

func (s *Server) origin() string { return "http://" + s.listener.Addr().String() }

// A Summary is how far the annotator got.
type Summary struct {
	Images   int `json:"images"`
	Answered int `json:"answered"`
	Skipped  int `json:"skipped"`
	Care     int `json:"care"`
}

// Summary counts the answers.
func (s *Server) Summary() Summary {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.summary()
}

func (s *Server) summary() Summary {
	sum := Summary{Images: len(s.posts)}
	for _, a := range s.journal.list {
		if !s.asked[a.Key] { // of an earlier session with more batches
			continue
		}
		switch a.Status {
		case answered:
			sum.Answered++
		case skipped:
			sum.Skipped++
		}
		if a.Care {
			sum.Care++
		}
	}
	return sum
}

// Serve answers until the context ends.
func (s *Server) Serve(ctx context.Context) error {
	server := &http.Server{Handler: s.guard(s.routes()), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: log.New(io.Discard, "", 0)}
	stop := context.AfterFunc(ctx, func() {
		server.Close() // an answer that is being saved is whole on the disk, or not there
	})
	defer stop()
	err := server.Serve(s.listener)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

//go:embed review.html review.css review.js icon.svg
var files embed.FS

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	at := "/" + s.token + "/"
	mux.HandleFunc("GET "+at+"{$}", s.page)
	for _, name := range []string{"review.css", "review.js", "icon.svg"} {
		mux.HandleFunc("GET "+at+name, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, files, name) })
	}
	mux.HandleFunc("GET "+at+"scheme", func(w http.ResponseWriter, _ *http.Request) { give(w, s.Scheme.Categories, nil) })
	mux.HandleFunc("GET "+at+"image/{id}/{image}", s.image)
	mux.HandleFunc("GET "+at+"state", func(w http.ResponseWriter, r *http.Request) { s.answerWith(w, r, nil) })
	mux.HandleFunc("POST "+at+"answer", func(w http.ResponseWriter, r *http.Request) { s.answerWith(w, r, s.take) })
	mux.HandleFunc("POST "+at+"undo", func(w http.ResponseWriter, r *http.Request) { s.answerWith(w, r, s.undo) })
	mux.HandleFunc("POST "+at+"back", func(w http.ResponseWriter, r *http.Request) { s.answerWith(w, r, s.back) })
	mux.HandleFunc("POST "+at+"rest", func(w http.ResponseWriter, r *http.Request) {
		s.answerWith(w, r, func(*http.Request) error { s.rested = s.Now(); return nil })
	})
	return mux
}

// page gives the page to somebody who opens it, with the answers that are in the file by then.
func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	there, err := openJournal(s.Answers, s.Scheme)
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	if !bytes.Equal(there.bytes, s.journal.bytes) {
		s.journal, s.again = there, nil
	}
	http.ServeFileFS(w, r, files, "review.html")
}

// contentPolicy lets the page load its own files, and nothing else anything.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard lets only requests of the page itself pass.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		for key, value := range map[string]string{"Content-Security-Policy": contentPolicy, "Cache-Control": "no-store",
			"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
			"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin"} {
			h.Set(key, value)
		}
		token, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		site := r.Header.Get("Sec-Fetch-Site")
		change := r.Method != http.MethodGet
		switch {
		case r.Host != s.listener.Addr().String(): // a name that another site made lead here
		case subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1:
		// none: the user opened the URL. Browsers that send no such header send the Origin with each change.
		case !slices.Contains([]string{"", "same-origin", "none"}, site):
		case change && (r.Header.Get("Origin") != s.origin() || r.Header.Get("Content-Type") != "application/json"):
		default:
			r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
			next.ServeHTTP(w, r)
			return
		}
		http.Error(w, "not from here", http.StatusForbidden)
	})
}

// give writes JSON, or the trouble.
func give(w http.ResponseWriter, v any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusConflict)
		v = map[string]string{"error": err.Error()}
	}
	_ = json.NewEncoder(w).Encode(v) // who went away needs no answer
}

// answerWith makes a change, if any, and gives the state that follows.
func (s *Server) answerWith(w http.ResponseWriter, r *http.Request, change func(*http.Request) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if change != nil {
		err = change(r)
	}
	var now *status
	if err == nil {
		now, err = s.status(r.Context())
	}
	give(w, now, err)
}

// restAfter is how long somebody annotates before a break is suggested.
const restAfter = 30 * time.Minute

// A status is what the page shows.
type status struct {
	Summary
	Annotator string   `json:"annotator"`
	Post      *shown   `json:"post"`  // nil when all is answered
	Stale     int      `json:"stale"` // images that wait for a run, because their posts were last seen live too long ago
	Gone      int      `json:"gone"`  // images without an answer that may not be shown any more
	Rest      bool     `json:"rest"`
	Undo      bool     `json:"undo"`
	Done      []string `json:"done"` // ids of the images that have an answer, in the order of the answers
}

type shown struct {
	ID     string              `json:"id"`
	Source string              `json:"source"` // of the image, below the page
	Batch  string              `json:"batch"`
	Text   string              `json:"text"`
	Given  map[string][]string `json:"given"` // of an answer that was taken back or gone back to
	Care   bool                `json:"care"`
}

func (s *Server) status(ctx context.Context) (*status, error) {
	now := &status{Summary: s.summary(), Annotator: s.Annotator, Undo: len(s.journal.list) > 0,
		Rest: s.Now().Sub(s.rested) >= restAfter}
	now.Done = s.done()
	order := s.posts
	if s.again != nil {
		order = append([]manifest.Key{s.again.Key}, order...)
	}
	return now, s.judging(ctx, func(ws *workspace.Workspace, j state.Judge) error {
		for _, key := range order {
			again := s.again != nil && s.again.Key == key
			if now.Post != nil || s.journal.find(key) != nil && !again {
				continue
			}
			rec, why, err := allowed(ctx, ws, j, key)
			switch {
			case err != nil:
				return err
			case why == "not_rechecked", why == "absent_once":
				now.Stale++
			case why != "":
				now.Gone++
			default:
				now.Post = s.show(j, rec)
			}
		}
		return nil
	})
}

func (s *Server) show(j state.Judge, rec *workspace.Record) *shown {
	p := &shown{ID: rec.Key.String(), Source: fmt.Sprintf("image/%s/%d", rec.ID, rec.Key.Image),
		Batch: s.batches[rec.Key],
		Text:  state.ShownReading(*rec.Reading, j.Policy).Text, Given: map[string][]string{}}
	if s.again != nil && s.again.Key == rec.Key {
		p.Care = s.again.Care
		for i, c := range s.Scheme.Categories {
			if s.again.Labels != nil {
				p.Given[c.Name] = c.Codes(s.again.Labels[i])
			}
		}
	}
	return p
}

// judging calls do with the workspace as it is now.
func (s *Server) judging(ctx context.Context, do func(*workspace.Workspace, state.Judge) error) error {
	return s.inWorkspace(ctx, func(ws *workspace.Workspace) error {
		j, err := state.StoredJudge(ctx, ws, s.Now())
		if err != nil {
			return err
		}
		return do(ws, j)
	})
}

// allowed returns what is known of an image that may be shown now, or why it may not.
func allowed(ctx context.Context, ws *workspace.Workspace, j state.Judge, key manifest.Key) (*workspace.Record,
	manifest.Reason, error) {
	for rec, err := range ws.Records(ctx, workspace.Select{IDs: []manifest.PostID{key.ID}}) {
		switch {
		case err != nil:
			return nil, "", err
		case rec.Key != key:
			continue
		case rec.Result == nil || rec.Result.Outcome != manifest.Kept:
			return nil, "gone", nil
		}
		res := j.HandedOut(rec)
		if res.Outcome == state.Candidate {
			return &rec, "", nil
		}
		return nil, cmp.Or(res.Reason, "gone"), nil
	}
	return nil, "gone", nil
}

// image gives the bytes of an image that may be shown now.
func (s *Server) image(w http.ResponseWriter, r *http.Request) {
	key, err := manifest.ParseKey(r.PathValue("id") + "/" + r.PathValue("image"))
	if r.PathValue("image") == "0" {
		key, err = manifest.ParseKey(r.PathValue("id"))
	}
	var body []byte
	if err == nil {
		err = s.judging(r.Context(), func(ws *workspace.Workspace, j state.Judge) error {
			rec, why, err := allowed(r.Context(), ws, j, key)
			switch {
			case err != nil:
				return err
			case why != "":
				return errors.New("the image may not be shown")
			}
			w.Header().Set("Content-Type", "image/"+rec.Image.Format)
			body, err = ws.ReadImage(r.Context(), key, *rec.Image)
			return err
		})
	}
	if err != nil {
		http.Error(w, "the image may not be shown", http.StatusNotFound)
		return
	}
	_, _ = w.Write(body)
}

// take stores an answer.
func (s *Server) take(r *http.Request) error {
	var got struct {
		ID     string
		Skip   bool
		Care   bool
		Labels map[string][]string
	}
	if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
		return errors.New("the answer is not JSON")
	}
	key, err := manifest.ParseKey(got.ID)
	if err != nil {
		return err
	}
	a := answer{Key: key, Batch: s.batches[key], Status: skipped, Care: got.Care}
	if !got.Skip {
		a.Status = answered
		a.Labels, err = labelsOf(s.Scheme, got.Labels)
	}
	switch {
	case err != nil:
		return err
	case !s.asked[key]:
		return fmt.Errorf("%s is not asked for", key)
	case s.journal.find(key) != nil && (s.again == nil || s.again.Key != key):
		return fmt.Errorf("%s has an answer already: take it back first", key)
	}
	// A purge while the image was on the screen: nothing of it is kept.
	if err := s.judging(r.Context(), func(ws *workspace.Workspace, j state.Judge) error {
		_, why, err := allowed(r.Context(), ws, j, key)
		if err == nil && why != "" {
			err = fmt.Errorf("%s may not be shown any more: its answer is not kept", key)
		}
		return err
	}); err != nil {
		return err
	}
	list := slices.Clone(s.journal.list)
	if i := slices.IndexFunc(list, func(b answer) bool { return b.Key == key }); i >= 0 {
		list[i] = a
	} else {
		list = append(list, a)
	}
	if err := s.journal.save(r.Context(), list); err != nil {
		return err
	}
	s.again = nil
	return nil
}

// done are the ids of the images that have an answer.
func (s *Server) done() []string {
	ids := []string{}
	for _, a := range s.journal.list {
		if s.asked[a.Key] {
			ids = append(ids, a.Key.String())
		}
	}
	return ids
}

// back shows an image again that has an answer. The answer stays until another one is given.
func (s *Server) back(r *http.Request) error {
	var got struct{ ID string }
	if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
		return errors.New("the request is not JSON")
	}
	key, err := manifest.ParseKey(got.ID)
	if err != nil {
		return err
	}
	given := s.journal.find(key)
	if given == nil || !s.asked[key] {
		return fmt.Errorf("%s has no answer to go back to", key)
	}
	again := *given
	s.again = &again
	return nil
}

// undo takes the last answer back and shows its image again.
func (s *Server) undo(r *http.Request) error {
	n := len(s.journal.list)
	if n == 0 {
		return errors.New("there is no answer to take back")
	}
	last := s.journal.list[n-1]
	if !s.asked[last.Key] {
		return fmt.Errorf("the last answer is of %s, which is not asked for in these batches", last.Key)
	}
	if err := s.journal.save(r.Context(), slices.Clone(s.journal.list[:n-1])); err != nil {
		return err
	}
	s.again = &last
	return nil
}
