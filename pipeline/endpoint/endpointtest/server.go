// Package endpointtest is a server for tests that speaks OpenAI's chat completions and moderations as the known servers
// do, and misbehaves when it is told to.
package endpointtest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// A Request is one that came.
type Request struct {
	N      int    // from 0, in the order in which they came
	Path   string // "/v1/chat/completions" or "/v1/moderations"
	Header http.Header
	Body   []byte
}

// A Server answers on 127.0.0.1 until the test ends. Answer and Play are set before it is asked.
type Server struct {
	URL string // the base, with /v1

	// Answer gives the model's words for a chat, and the scores by category for a moderation as a JSON object; nil
	// answers "{}".
	Answer func(Request) string
	// Play answers in place of the server where it returns true.
	Play func(http.ResponseWriter, Request) bool

	t        testing.TB
	dialect  string
	mu       sync.Mutex
	requests []Request
}

// New starts a server that answers as one of endpoint.Dialects does.
func New(t testing.TB, dialect string) *Server {
	s := &Server{t: t, dialect: dialect}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	s.URL = web.URL + "/v1"
	return s
}

// Requests are those that came, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Errorf("read a request: %v", err)
	}
	request := Request{Path: r.URL.Path, Header: r.Header, Body: body}
	s.mu.Lock()
	request.N = len(s.requests)
	s.requests = append(s.requests, request)
	s.mu.Unlock()
	if s.Play != nil && s.Play(w, request) {
		return
	}
	words := "{}"
	if s.Answer != nil {
		words = s.Answer(request)
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(s.answer(request, words)); err != nil {
		s.t.Logf("the client has gone: %v", err)
	}
}

// answer is a well-behaved answer.
func (s *Server) answer(r Request, words string) any {
	var asked struct{ Model string }
	if err := json.Unmarshal(r.Body, &asked); err != nil {
		s.t.Errorf("a request is not JSON: %v", err)
	}
	if r.Path == "/v1/moderations" {
		var scores map[string]float64
		if err := json.Unmarshal([]byte(words), &scores); err != nil {
			s.t.Errorf("Answer gave no scores: %v", err)
		}
		flagged := map[string]bool{}
		any1 := false
		for name, score := range scores {
			flagged[name] = score >= 0.5
			any1 = any1 || flagged[name]
		}
		return map[string]any{"id": "modr-1", "model": asked.Model, "results": []any{map[string]any{
			"flagged": any1, "categories": flagged, "category_scores": scores}}}
	}
	return map[string]any{"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": asked.Model,
		"choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "logprobs": nil,
			"message": map[string]any{"role": "assistant", "content": words, "refusal": nil}}},
		"usage": map[string]any{"prompt_tokens": len(r.Body) / 4, "completion_tokens": len(words)/4 + 1, "total_tokens": len(r.Body)/4 + len(words)/4 + 1}}
}
