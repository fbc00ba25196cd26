// Package modelserver is a server for tests that speaks OpenAI's chat completions and moderations as the known servers
// do, holds each request against OpenAI's specification, and misbehaves when it is told to.
package modelserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
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

// A Server answers until the test ends. A request that OpenAI's specification does not allow fails the test. Answer and
// Play are set before it is asked.
type Server struct {
	URL string // the base, with /v1

	// Answer gives the model's words for a chat, before they are cut at a stop sequence or the most tokens, and the
	// scores by category for a moderation as a JSON object; nil answers "{}".
	Answer func(Request) string
	// Play answers in place of the server where it returns true.
	Play Play
	// Lax lets requests pass that the specification does not allow.
	Lax bool

	t        testing.TB
	dialect  string
	mu       sync.Mutex
	requests []Request
}

// New starts a server on 127.0.0.1 that answers as one of endpoint.Dialects does.
func New(t testing.TB, dialect string) *Server {
	s := &Server{t: t, dialect: dialect}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	s.URL = web.URL + "/v1"
	return s
}

// InMemory is New without a socket, so that a synctest bubble can hold it; dial connects to it whatever the address.
func InMemory(t testing.TB, dialect string) (s *Server,
	dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	s = &Server{t: t, dialect: dialect, URL: "http://127.0.0.1:1/v1"}
	l := &listener{conns: make(chan net.Conn), closed: make(chan struct{})}
	web := &http.Server{Handler: s}
	go func() { _ = web.Serve(l) }()
	t.Cleanup(func() { _ = web.Close() })
	return s, l.dial
}

type listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (l *listener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
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
	if err := CheckRequest(request.Path, body); err != nil && !s.Lax {
		s.t.Errorf("request %d to %s: %v\n%.300s", request.N, request.Path, err, body)
	}
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		s.t.Errorf("request %d: %s with %v", request.N, r.Method, r.Header)
	}
	if s.Play != nil && s.Play(w, request) {
		return
	}
	words := "{}"
	if s.Answer != nil {
		words = s.Answer(request)
	}
	s.answer(w, request, words)
}

// asked is what a server reads of a chat.
type asked struct {
	Model       string
	Temperature *float64
	MaxTokens   *int `json:"max_tokens"`
	Most        *int `json:"max_completion_tokens"`
	Stop        []string
	Messages    []struct {
		Content any
	}
}

// answer is a well-behaved answer.
func (s *Server) answer(w http.ResponseWriter, r Request, words string) {
	var a asked
	if err := json.Unmarshal(r.Body, &a); err != nil {
		s.t.Errorf("request %d: %v", r.N, err)
	}
	if r.Path == "/v1/moderations" {
		if s.dialect != "openai" {
			http.Error(w, "404 page not found", http.StatusNotFound) // none of the others has it
			return
		}
		s.write(w, moderation(s.t, a.Model, words))
		return
	}
	if refused := s.refuses(a); refused != nil {
		refused(w, r)
		return
	}
	finish := "stop"
	for _, stop := range a.Stop {
		words, _, _ = strings.Cut(words, stop)
	}
	for _, most := range []*int{a.MaxTokens, a.Most} {
		if most != nil && len(words) > *most*4 {
			words, finish = words[:*most*4], "length"
		}
	}
	s.write(w, s.completion(a.Model, words, finish, len(r.Body)/4, len(words)/4+1))
}

func (s *Server) write(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		s.t.Logf("the client has gone: %v", err)
	}
}

// completion is an answer to a chat in the form of a dialect.
func (s *Server) completion(model, words, finish string, prompt, completion int) map[string]any {
	message := map[string]any{"role": "assistant", "content": words}
	choice := map[string]any{"index": 0, "finish_reason": finish, "logprobs": nil, "message": message}
	usage := map[string]any{"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
	all := map[string]any{"id": "chatcmpl-1", "object": "chat.completion", "created": 1763800000, "model": model,
		"choices": []any{choice}, "usage": usage}
	switch s.dialect {
	case "openai":
		message["refusal"], message["annotations"] = nil, []any{}
		all["model"], all["service_tier"] = model+"-2025-08-07", "default"
		usage["completion_tokens_details"] = map[string]any{"reasoning_tokens": 0}
	case "vllm":
		message["refusal"], message["reasoning_content"], message["tool_calls"] = nil, nil, []any{}
		choice["stop_reason"], usage["prompt_tokens_details"], all["kv_transfer_params"] = nil, nil, nil
	case "ollama":
		all["system_fingerprint"] = "fp_ollama"
		delete(choice, "logprobs")
	case "llama.cpp":
		delete(choice, "logprobs")
		all["system_fingerprint"], all["timings"] = "b6900-1", map[string]any{"prompt_ms": 31.5}
	}
	return all
}

// refuses is what a dialect answers to a request that it does not take, or nil.
func (s *Server) refuses(a asked) Play {
	if s.dialect == "openai" { // as its GPT-5 models
		switch {
		case a.Temperature != nil && *a.Temperature != 1:
			return Status(400,
				`{"error":{"message":"Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.","type":"invalid_request_error","param":"temperature","code":"unsupported_value"}}`)
		case len(a.Stop) > 0:
			return Status(400,
				`{"error":{"message":"Unsupported parameter: 'stop' is not supported with this model.","type":"invalid_request_error","param":"stop","code":"unsupported_parameter"}}`)
		case a.MaxTokens != nil:
			return Status(400,
				`{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}`)
		}
	}
	for _, m := range a.Messages {
		parts, _ := m.Content.([]any)
		for _, p := range parts {
			fields, _ := p.(map[string]any)
			image, _ := fields["image_url"].(map[string]any)
			link, _ := image["url"].(string)
			if fields["type"] == "image_url" && !isPicture(link) {
				return Status(400,
					`{"error":{"message":"invalid image input","type":"invalid_request_error","param":null,"code":null}}`)
			}
		}
	}
	return nil
}

// isPicture reports whether a data URL holds a JPEG or a PNG that it names as such: every dialect takes those.
func isPicture(link string) bool {
	for kind, magic := range map[string]string{"image/jpeg": "\xff\xd8\xff", "image/png": "\x89PNG\r\n\x1a\n"} {
		if data, ok := strings.CutPrefix(link, "data:"+kind+";base64,"); ok {
			b, err := base64.StdEncoding.DecodeString(data)
			return err == nil && strings.HasPrefix(string(b), magic)
		}
	}
	return false
}

// categories are those of OpenAI's moderation models.
var categories = []string{"harassment", "harassment/threatening", "hate", "hate/threatening", "illicit",
	"illicit/violent", "self-harm",
	"self-harm/instructions", "self-harm/intent", "sexual", "sexual/minors", "violence", "violence/graphic"}

func moderation(t testing.TB, model, words string) map[string]any {
	var scores map[string]float64
	if err := json.Unmarshal([]byte(words), &scores); err != nil {
		t.Errorf("Answer gave no scores: %v", err)
	}
	flagged, names, all, applied := false, map[string]bool{}, map[string]float64{}, map[string][]string{}
	for _, name := range categories {
		all[name], names[name], applied[name] = scores[name], scores[name] >= 0.5, []string{"text"}
		flagged = flagged || names[name]
	}
	return map[string]any{"id": "modr-1", "model": model, "results": []any{map[string]any{
		"flagged": flagged, "categories": names, "category_scores": all, "category_applied_input_types": applied}}}
}
