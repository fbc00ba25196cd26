// Package hostile is the emulator of package redditemu as tests need it: it notes what was asked,
// changes posts while they are being asked about, plants metadata in pictures, answers as imgur's API, and spoils
// answers. Each armed fault counts how
// often it fired. [Images] and [Answers] are the corpus of files and answers that are meant to do
// harm, each with what a correct client makes of it; large ones are made while they are sent.
//
// Only tests import it.
package hostile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/redditemu"
)

// Canaries lists every canary of the emulator, for a test that searches for all of them.
func Canaries() []string {
	return []string{redditemu.CanaryAuthor, redditemu.CanaryFullname, redditemu.CanaryTitle, redditemu.CanaryPermalink,
		redditemu.CanarySelftext, redditemu.CanaryFlair, CanaryMetadata}
}

// A Server is a running emulator with a log of requests and faults. Its methods are safe for
// concurrent use.
type Server struct {
	*redditemu.Server
	opt redditemu.Options

	mu       sync.Mutex
	armed    []*Armed      // mu
	places   int           // mu: faults that were ever armed
	requests []Request     // mu
	observer func(Request) // mu
}

// Start is redditemu.Start.
func Start(o redditemu.Options) (*Server, error) {
	s := &Server{opt: o}
	if s.opt.Now == nil {
		s.opt.Now = time.Now
	}
	if s.opt.RequestsPerWindow == 0 {
		s.opt.RequestsPerWindow = 1000
	}
	o.Around, o.Plant = s.around, Plant
	s.mu.Lock() // a request waits until the server is there
	defer s.mu.Unlock()
	core, err := redditemu.Start(o)
	if err != nil {
		return nil, err
	}
	s.Server = core
	return s, nil
}

// A Request is one request as the emulator saw it, with the status it answered.
type Request struct {
	Time      time.Time
	Host      string // without port
	Client    string // the client's end of the connection
	Method    string
	Path      string
	Query     string
	IDs       []manifest.PostID // asked of /api/info, in order, well-formed ones only
	UserAgent string
	Auth      string // none, basic, bearer, client-id or other: the kind of Authorization header
	Referer   string
	Cookie    string
	Status    int // 0 when the connection was cut before an answer
	Bytes     int // of the body that was meant to be sent
	Fault     string
}

// around answers a request, with the fault that is due, and notes it.
func (s *Server) around(r *http.Request, next func() *redditemu.Reply) *redditemu.Reply {
	q := s.describe(r)
	s.mu.Lock()
	observer := s.observer
	s.mu.Unlock()
	if observer != nil {
		observer(q)
	}
	var rep *redditemu.Reply
	fault := s.due(q, r)
	switch {
	case fault != nil && fault.Kind.make != nil:
		rep = fault.Kind.make(s, r)
	case q.Host == "api.imgur.com":
		rep = s.imgurAPI(r)
	default:
		rep = next()
	}
	if fault != nil {
		q.Fault = fault.Kind.name
		if fault.Kind.change != nil {
			fault.Kind.change(s, r, rep)
		}
	}
	q.Status = rep.Status
	if q.Status != 0 {
		q.Bytes = len(rep.Body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, q)
	return rep
}

// describe makes the log entry of a request before it is answered.
func (s *Server) describe(r *http.Request) Request {
	q := Request{Time: s.opt.Now(), Host: redditemu.HostOf(r), Client: r.RemoteAddr, Method: r.Method, Path: r.URL.Path,
		Query:     r.URL.RawQuery,
		UserAgent: r.UserAgent(), Referer: r.Referer(), Cookie: r.Header.Get("Cookie"), Auth: "none"}
	if kind, _, _ := strings.Cut(r.Header.Get("Authorization"), " "); kind != "" {
		switch k := strings.ToLower(kind); k {
		case "basic", "bearer", "client-id":
			q.Auth = k
		default:
			q.Auth = "other"
		}
	}
	if q.Host == apiHost && r.URL.Path == "/api/info" {
		q.IDs, _ = redditemu.AskedIDs(r.URL.Query().Get("id"))
	}
	return q
}

// Requests returns what was asked so far, oldest first. A request is in it before the
// first byte of its answer is sent.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ForgetRequests empties the log.
func (s *Server) ForgetRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

// OnRequest has f called once for every request that arrives, before it is answered
// (Status and Bytes are 0). f may call Update, Put and Remove: so a test makes a post
// vanish between two steps of a client.
func (s *Server) OnRequest(f func(Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observer = f
}

// Update changes a post under the server's feet. Its images stay where they were,
// also when the post is deleted: what a real content network does. f must not call
// methods of the server.
func (s *Server) Update(id manifest.PostID, f func(*redditemu.Post)) (err error) {
	s.With(func(w *redditemu.World) {
		old, ok := w.Posts[id]
		if !ok {
			err = fmt.Errorf("update post %s: the emulator does not have it", id)
			return
		}
		p := old
		f(&p)
		p.ID = id
		if p.Condition != old.Condition && p.Want == old.Want {
			p.Want = "" // follows the condition, unless f set it
		}
		w.Put(p)
	})
	return err
}

// Remove makes Reddit forget posts. Their images stay on the image hosts.
func (s *Server) Remove(ids ...manifest.PostID) {
	s.With(func(w *redditemu.World) {
		for _, id := range ids {
			delete(w.Posts, id)
		}
	})
}

// Posts returns the ids of the posts it has, in no order.
func (s *Server) Posts() (ids []manifest.PostID) {
	s.With(func(w *redditemu.World) { ids = slices.Collect(maps.Keys(w.Posts)) })
	return ids
}

// Post returns a post as the emulator has it now.
func (s *Server) Post(id manifest.PostID) (p redditemu.Post, ok bool) {
	s.With(func(w *redditemu.World) { p, ok = w.Posts[id] })
	return p, ok
}

// Tokens returns the bearer tokens that are good or were until they ran out, in no order. A
// test searches for them.
func (s *Server) Tokens() (all []string) {
	s.With(func(w *redditemu.World) { all = slices.Collect(maps.Keys(w.Tokens)) })
	return all
}

// imgurAPI answers for api.imgur.com: /3/image/ID.
func (s *Server) imgurAPI(r *http.Request) *reply {
	answer := func(status int, data map[string]any) *reply {
		// plain values
		b, _ := json.Marshal(map[string]any{"data": data, "success": status == http.StatusOK, "status": status})
		return redditemu.NewReply(status, "application/json", b)
	}
	if r.Header.Get("Authorization") != "Client-ID "+s.ImgurClientID {
		return answer(http.StatusForbidden, map[string]any{"error": "Invalid client_id"})
	}
	id := path.Base(r.URL.Path)
	// The id of an image is its name at i.imgur.com.
	var a *redditemu.Asset
	s.With(func(w *redditemu.World) { a = w.Asset("i.imgur.com", "/"+id) })
	if a == nil || a.Image().NoAPI {
		return answer(http.StatusNotFound, map[string]any{"error": "Unable to find an image with the id, " + id})
	}
	ext := path.Ext(a.URL)
	kind := cmp.Or(map[string]string{".jpg": "image/jpeg", ".mp4": "video/mp4"}[ext], "image/"+ext[1:])
	w, h := a.Image().Spec.Size()
	return answer(http.StatusOK, map[string]any{"id": id, "title": redditemu.CanaryTitle, "type": kind,
		"animated": ext == ".gif" || ext == ".mp4",
		"width":    w, "height": h, "account_url": redditemu.CanaryAuthor, "link": a.URL})
}
