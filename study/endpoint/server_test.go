package endpoint_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rehydrate/internal/secret"
	"rehydrate/internal/testkit"
	"rehydrate/internal/testkit/modelserver"
	"rehydrate/study/endpoint"
)

const canary = "CANARY-key-5d1f77"

func open(t *testing.T, o endpoint.Options) *endpoint.Server {
	t.Helper()
	s, err := endpoint.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func picture(t testing.TB) *endpoint.Image {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 4, 4))); err != nil {
		t.Fatal(err)
	}
	return &endpoint.Image{Type: "image/png", Data: b.Bytes()}
}

func ptr[T any](v T) *T { return &v }

// full is a request with all that one can hold.
func full(t testing.TB, d endpoint.Dialect) endpoint.Chat {
	return endpoint.Chat{Model: "m", Dialect: d, Omit: d.Omits(),
		Messages: []endpoint.Message{{Role: "system", Text: "You label."},
			{Role: "user", Text: "an example", Image: picture(t)},
			{Role: "assistant", Text: `{"severity":"SS1"}`}, {Role: "user", Text: "prompt <&>", Image: picture(t)}},
		Schema: &endpoint.Schema{Name: "related content",
			JSON: json.RawMessage(`{"type":"object","properties":{"severity":{"enum":["SS1"]}},"required":["severity"],"additionalProperties":false}`)},
		Decoding: endpoint.Decoding{Temperature: ptr(0.0), TopP: ptr(1.0), MaxTokens: 128, Stop: []string{"}"},
			Seed: ptr(int64(7))}}
}

// TestDialects: what is sent to each kind of server is what OpenAI's specification allows, which the test server
// checks, and each kind of answer is understood.
func TestDialects(t *testing.T) {
	for _, d := range endpoint.Dialects {
		server := modelserver.New(t, string(d))
		server.Answer = func(r modelserver.Request) string {
			if r.Path == "/v1/moderations" {
				return `{"self-harm":0.91}`
			}
			return `{"severity":"SS1"}`
		}
		s := open(t, endpoint.Options{URL: server.URL})
		r, err := s.Chat(t.Context(), full(t, d))
		want := `{"severity":"SS1"` // the stop sequence cuts the brace
		if d == endpoint.OpenAI {
			want = `{"severity":"SS1"}`
		}
		if err != nil || r.Outcome != endpoint.OK || r.Text != want || !strings.HasPrefix(r.Model, "m") ||
			r.Usage.Completion == 0 || r.Usage.Prompt == 0 {
			t.Errorf("%s: %+v, %v", d, r, err)
		}
		if err := modelserver.CheckAnswer("/v1/chat/completions", r.Raw); d == endpoint.OpenAI && err != nil {
			t.Errorf("%s: the test server's answer: %v", d, err)
		}
		got := string(server.Requests()[0].Body)
		for _, tt := range []struct {
			part string
			in   bool
		}{{`"temperature":0,"top_p":1,`, d != endpoint.OpenAI}, {`"stop":["}"]`, d != endpoint.OpenAI},
			{`"max_tokens":128`, d != endpoint.OpenAI},
			{`"max_completion_tokens":128`, d == endpoint.OpenAI}, {`"seed":7`, true}, {`prompt <&>`, true},
			{`"response_format":{"type":"json_schema","json_schema":{"name":"related_content","strict":true,"schema":{"type":"object",`, true}} {
			if strings.Contains(got, tt.part) != tt.in {
				t.Errorf("%s: %s in the request: %v, want %v", d, tt.part, !tt.in, tt.in)
			}
		}

		server.Lax = d != endpoint.OpenAI // the others have no such path
		r, err = s.Moderate(t.Context(), endpoint.Moderation{Model: "omni", Text: "words", Image: picture(t)})
		var unreachable *endpoint.Unreachable
		if d != endpoint.OpenAI {
			if !errors.As(err, &unreachable) || !strings.Contains(err.Error(), "404") {
				t.Errorf("%s: moderation: %+v, %v", d, r, err)
			}
			continue
		}
		if err != nil || r.Outcome != endpoint.OK || !strings.Contains(string(r.Raw), `"self-harm":0.91`) ||
			r.Model != "omni" {
			t.Errorf("moderation: %+v, %v", r, err)
		}
		if err := modelserver.CheckAnswer("/v1/moderations", r.Raw); err != nil {
			t.Errorf("the test server's answer: %v", err)
		}
		for _, m := range []endpoint.Moderation{{Model: "omni", Text: "words"}, {Model: "omni", Image: picture(t)}} {
			if r, err := s.Moderate(t.Context(), m); err != nil || r.Outcome != endpoint.OK {
				t.Errorf("moderation of one part: %+v, %v", r, err)
			}
		}
	}
}

// TestOmit: each parameter can be left out, alone and with all the others, and the rest of the request stays as it is.
func TestOmit(t *testing.T) {
	for _, d := range endpoint.Dialects {
		c := full(t, d)
		c.Omit = nil
		whole := fields(t, c)
		for _, name := range endpoint.Parameters {
			c.Omit = []string{name}
			got := fields(t, c)
			if name == "max_tokens" && d == endpoint.OpenAI {
				name = "max_completion_tokens"
			}
			if _, sent := whole[name]; !sent || len(got) != len(whole)-1 || got[name] != nil {
				t.Errorf("%s without %s: %d of %d", d, name, len(got), len(whole))
			}
		}
		c.Omit = endpoint.Parameters
		if got := fields(t, c); len(got) != 2 {
			t.Errorf("%s without all: %v", d, got)
		}
	}
	for list, want := range map[string]string{"": "[]", "temperature": "[temperature]", "stop, seed": "[stop seed]",
		"n": "error", "stop,": "error", "max_completion_tokens": "error"} {
		names, err := endpoint.ParseOmit(list)
		got := fmt.Sprint(names)
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("ParseOmit(%q) = %v, %v", list, names, err)
		}
	}
}

func fields(t *testing.T, c endpoint.Chat) map[string]json.RawMessage {
	t.Helper()
	body, err := c.Body()
	if err != nil {
		t.Fatal(err)
	}
	if err := modelserver.CheckRequest("/v1/chat/completions", body); err != nil {
		t.Error(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

// A misbehaviour is what a server does, and what comes of it.
type misbehaviour struct {
	name     string
	play     modelserver.Play
	outcome  endpoint.Outcome // "" where an error stops the run
	want     string           // in the detail, the text or the error
	attempts int
	waited   [2]time.Duration // at least, at most
}

const (
	ok, refused, truncated, empty, tooLarge, failed = endpoint.OK, endpoint.Refused, endpoint.Truncated, endpoint.Empty,
		endpoint.TooLarge, endpoint.Failed

	seconds = time.Second
)

func misbehaviours() []misbehaviour {
	atOnce := [2]time.Duration{}
	limit := func(headers ...string) modelserver.Play {
		return modelserver.First(1, modelserver.Error(429, "Rate limit reached", "rate_limit_exceeded", headers...))
	}
	once := func(p modelserver.Play) modelserver.Play { return modelserver.First(1, p) }
	says, status, fails := modelserver.Says, modelserver.Status, modelserver.Error
	return []misbehaviour{
		{"429, seconds", limit("Retry-After", "20"), ok, "{", 2, [2]time.Duration{20 * seconds, 22 * seconds}},
		{"429, date", limit("Retry-After", "Mon, 02 Jan 2006 15:04:35 GMT", "Date", "Mon, 02 Jan 2006 15:04:05 GMT"), ok,
			"{", 2, [2]time.Duration{30 * seconds, 32 * seconds}},
		{"429, date in the past", limit("Retry-After", "Mon, 02 Jan 2006 15:04:00 GMT", "Date",
			"Mon, 02 Jan 2006 15:04:05 GMT"), ok, "{", 2, [2]time.Duration{0, 2 * seconds}},
		{"429, milliseconds", limit("Retry-After-Ms", "2500", "Retry-After", "3"), ok, "{", 2,
			[2]time.Duration{2500 * time.Millisecond, 3 * seconds}},
		{"429, OpenAI's requests", limit("X-RateLimit-Reset-Requests", "6m0s", "X-RateLimit-Remaining-Requests", "0",
			"X-RateLimit-Reset-Tokens", "9m0s", "X-RateLimit-Remaining-Tokens", "5000"), ok, "{", 2,
			[2]time.Duration{6 * time.Minute, 361 * seconds}},
		{"429, OpenAI's tokens", limit("X-RateLimit-Reset-Tokens", "7.66s"), ok, "{", 2,
			[2]time.Duration{7660 * time.Millisecond, 9 * seconds}},
		{"429, date in seconds", limit("X-RateLimit-Reset-Requests", "1763800000"), ok, "{", 2,
			[2]time.Duration{0, 2 * seconds}},
		{"429, no header", limit(), ok, "{", 2, [2]time.Duration{seconds / 2, seconds}},
		{"429, nonsense", limit("Retry-After", "soon"), ok, "{", 2, [2]time.Duration{seconds / 2, seconds}},
		{"429, negative", limit("Retry-After", "-5"), ok, "{", 2, [2]time.Duration{seconds / 2, seconds}},
		{"429, too long", limit("Retry-After", "86400"), "", "asks to wait 24h0m0s, more than the 15m0s", 1, atOnce},
		{"429, without end", limit("Retry-After", "1e300"), "", "asks to wait", 1, atOnce},
		{"429 for ever", fails(429, "Rate limit reached", "rate_limit_exceeded"), failed,
			"429 Too Many Requests: Rate limit reached", 6, [2]time.Duration{15 * seconds, 31 * seconds}},
		{"insufficient_quota", fails(429, "You exceeded your current quota", "insufficient_quota", "Retry-After", "1"),
			"", "You exceeded your current quota the account has nothing left", 1, atOnce},
		{"402", fails(402, "Insufficient credits", ""), "", "nothing left to spend", 1, atOnce},
		{"500", once(status(500, `<html>`)), ok, "{", 2, [2]time.Duration{seconds / 2, seconds}},
		{"500 for ever", status(500, `{"error":"out of memory"}`), failed, "500 Internal Server Error: out of memory", 6,
			[2]time.Duration{15 * seconds, 31 * seconds}},
		{"503, loading", once(status(503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`,
			"Retry-After", "5")), ok, "{", 2, [2]time.Duration{5 * seconds, 6 * seconds}},
		{"529", once(status(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)), ok, "{",
			2, [2]time.Duration{seconds / 2, seconds}},
		{"408", once(status(408, "")), ok, "{", 2, [2]time.Duration{seconds / 2, seconds}},
		{"409", once(status(409, "")), ok, "{", 2, [2]time.Duration{seconds / 2, seconds}},
		{"501", status(501, ""), failed, "501 Not Implemented", 1, atOnce},
		{"broken connection", once(modelserver.Break), ok, "{", 2, [2]time.Duration{seconds / 2, seconds}},
		{"broken for ever", modelserver.Break, failed, "read the answer: unexpected EOF", 6,
			[2]time.Duration{15 * seconds, 31 * seconds}},

		{"refusal", modelserver.Refusal, refused, "I'm sorry, I can't help with that.", 1, atOnce},
		{"refusal in words", says("I'm sorry, but I can't help with that.", "stop"), ok, "I'm sorry, but", 1, atOnce},
		// never guessed
		{"content filter", says("", "content_filter"), refused, "content_filter", 1, atOnce},
		{"content filter, half an answer", says(`{"sev`, "content_filter"), refused, "content_filter", 1, atOnce},
		{"content policy", fails(400, "The response was filtered", "content_filter"), refused, "The response was filtered", 1, atOnce},
		{"usage policy", fails(400, "Invalid prompt: your prompt was flagged", "invalid_prompt"), refused, "flagged", 1, atOnce},
		{"403 content policy", fails(403, "flagged", "content_policy_violation"), refused, "flagged", 1, atOnce},
		{"truncated", says(`{"severity":"S`, "length"), truncated, "as many tokens", 1, atOnce},
		{"truncated while thinking", says("", "length"), truncated, "as many tokens", 1, atOnce},
		{"empty", says(" \n", "stop"), empty, "finish_reason stop", 1, atOnce},
		{"null", status(200, `{"choices":[{"finish_reason":"tool_calls","message":{"content":null,"tool_calls":[{}]}}]}`), empty, "tool_calls", 1, atOnce},
		{"stop cut the brace", says(`{"severity":"SS2"`, "stop"), ok, `{"severity":"SS2"`, 1, atOnce},
		{"prose", says("The severity is SS2.", "stop"), ok, "The severity is SS2.", 1, atOnce},
		{"fences", says("```json\n{\"severity\":\"SS2\"}\n```", "stop"), ok, "```json", 1, atOnce},
		{"wrong labels", says(`{"severity":"SS99"}`, "stop"), ok, "SS99", 1, atOnce},
		{"another model",
			status(200, `{"model":"other","choices":[{"finish_reason":"stop","message":{"content":"{}"}}]}`), ok, "{}", 1,
			atOnce},
		{"model that is not a text",
			status(200, `{"model":7,"usage":[],"choices":[{"finish_reason":"stop","message":{"content":"{}"}}]}`), ok, "{}",
			1, atOnce},
		{"a stream", modelserver.Stream, failed, "streams its answer", 1, atOnce},
		{"no choice", status(200, `{"choices":[]}`), failed, "no choice", 1, atOnce},
		{"bad gzip", status(200, "not packed", "Content-Encoding", "gzip"), failed, "gzip", 6,
			[2]time.Duration{15 * seconds, 31 * seconds}},
		{"an error as 200", status(200, `{"error":{"message":"upstream is down","code":502}}`), failed,
			"upstream is down", 1, atOnce},
		{"not JSON", status(200, `<html>hello`), failed, "not that of a chat", 1, atOnce},
		{"cut JSON", status(200, `{"choices":[{"message":`), failed, "not that of a chat", 1, atOnce},
		{"deep JSON", status(200, strings.Repeat("[", 1<<20)), failed, "not that of a chat", 1, atOnce},
		{"another shape", status(200, `{"choices":{"message":{"content":[1]}}}`), failed, "not that of a chat", 1, atOnce},

		{"too long for the model", fails(400, "This model's maximum context length is 8192 tokens.",
			"context_length_exceeded"), tooLarge, "maximum context", 1, atOnce},
		{"too long for vLLM",
			status(400,
				`{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"BadRequestError","param":null,"code":400}}`), tooLarge, "maximum context", 1, atOnce},
		{"too long with pictures for vLLM", status(400,
			`{"error":{"message":"The decoder prompt (length 12324) is longer than the maximum model length of 8192. Make sure that","code":400}}`), tooLarge, "maximum model length", 1, atOnce},
		{"too long with pictures for an older vLLM",
			status(400,
				`{"object":"error","message":"The prompt (total length 6287) is too long to fit into the model (context length 4096)."}`), tooLarge, "too long to fit", 1, atOnce},
		{"too long for llama.cpp",
			status(400,
				`{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`), tooLarge, "context size", 1, atOnce},
		{"413", status(413, ""), tooLarge, "413", 1, atOnce},
		{"bad picture", fails(400, "You uploaded an unsupported image", "invalid_image_format"), failed,
			"unsupported image", 1, atOnce},
		{"unknown parameter",
			status(400,
				`{"error":{"message":"Unsupported parameter: 'stop' is not supported with this model.","type":"invalid_request_error","param":"stop","code":"unsupported_parameter"}}`), "", "leave it out: --omit stop", 1, atOnce},
		{"unknown parameter without a name", status(422,
			`{"detail":[{"type":"extra_forbidden","loc":["body","seed"],"msg":"Extra inputs are not permitted"}]}`), "",
			"--omit seed", 1, atOnce},
		{"vLLM's older form",
			status(400,
				`{"object":"error","message":"[{'type': 'extra_forbidden', 'loc': ('body', 'top_p')}]","type":"BadRequestError","param":null,"code":400}`), "", "--omit top_p", 1, atOnce},
		{"two parameters at once",
			status(400,
				"{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"`temperature` and `top_p` cannot both be specified for this model.\"}}"), "", "--omit t", 1, atOnce},
		{"max_completion_tokens",
			status(400,
				`{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","param":"max_tokens","code":"unsupported_parameter"}}`), "", "--server openai", 1, atOnce},
		{"401", fails(401, "Incorrect API key provided: "+canary, "invalid_api_key"), "",
			"Incorrect API key provided: [redacted] is the key in ENDPOINT_API_KEY", 1, atOnce},
		{"403", fails(403, "Country not supported", "unsupported_country"), "", "Country not supported", 1, atOnce},
		{"404", fails(404, "The model `m` does not exist", "model_not_found"), "", "The model `m` does not exist", 1,
			atOnce},
		{"redirect", status(307, "", "Location", "https://elsewhere.example/v1/chat/completions?key="+canary), "",
			"do not follow: elsewhere.example", 1, atOnce},
		{"redirect to nowhere", status(302, "", "Location", "::::"), "", "another address", 1, atOnce},
	}
}

// TestMisbehaviours: whatever a server does ends in its outcome, or in the error that stops the run, after as many
// attempts and as long a wait as it should; the key is in none of it.
func TestMisbehaviours(t *testing.T) {
	for _, tt := range misbehaviours() {
		t.Run(tt.name, func(t *testing.T) {
			inMemory(t, func(t *testing.T, server *modelserver.Server, s *endpoint.Server) {
				server.Play = tt.play
				began := time.Now()
				c := full(t, endpoint.VLLM)
				r, err := s.Chat(t.Context(), c)
				if r.Outcome != tt.outcome || (tt.outcome == "") != (err != nil) {
					t.Errorf("%+v, %v; want %q", r, err, tt.outcome)
				}
				hint := ""
				if denied, ok := errors.AsType[*endpoint.Denied](err); ok {
					hint = denied.Hint
				}
				if unsupported, ok := errors.AsType[*endpoint.Unsupported](err); ok {
					hint = unsupported.Hint()
				}
				said := fmt.Sprintf("%s %s %s %v %s %#v", r.Outcome, r.Text, r.Detail, err, hint, err)
				if !strings.Contains(said, tt.want) || strings.Contains(said+string(r.Raw), "CANARY") {
					t.Errorf("%s; want %q in it", said, tt.want)
				}
				if err == nil && (r.Outcome == ok) != (r.Detail == "") {
					t.Errorf("%s with the detail %q", r.Outcome, r.Detail)
				}
				if n := len(server.Requests()); n != tt.attempts {
					t.Errorf("%d attempts, want %d", n, tt.attempts)
				}
				if d := time.Since(began); d < tt.waited[0] || d > tt.waited[1] {
					t.Errorf("took %v, want %v", d, tt.waited)
				}
				if r.Raw != nil && !json.Valid(r.Raw) {
					t.Errorf("raw %q", r.Raw)
				}
			})
		})
	}
}

// inMemory runs f in a bubble of synctest, with a server and its client.
func inMemory(t *testing.T, f func(*testing.T, *modelserver.Server, *endpoint.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, dial := modelserver.InMemory(t, string(endpoint.VLLM))
		s := open(t, endpoint.Options{URL: server.URL, Key: secret.New(canary), Timeout: time.Minute})
		s.Dial(dial)
		t.Cleanup(s.HangUp)
		f(t, server, s)
	})
}

var hello = endpoint.Chat{Model: "m", Messages: []endpoint.Message{{Role: "user", Text: "hello"}}}

// TestHang: a server that does not answer costs the time of one attempt, and does not hang the run.
func TestHang(t *testing.T) {
	inMemory(t, func(t *testing.T, server *modelserver.Server, s *endpoint.Server) {
		over := make(chan struct{})
		defer close(over)
		server.Play = modelserver.Hang(over)
		began := time.Now()
		r, err := s.Chat(t.Context(), hello)
		if err != nil || r.Outcome != failed || r.Detail != "no whole answer in time" || time.Since(began) != time.Minute {
			t.Errorf("%+v, %v after %v", r, err, time.Since(began))
		}
	})
	inMemory(t, func(t *testing.T, server *modelserver.Server, s *endpoint.Server) {
		server.Play = func(w http.ResponseWriter, _ modelserver.Request) bool {
			for range 70 { // a byte a second is no progress
				_, _ = w.Write([]byte(" "))
				_ = http.NewResponseController(w).Flush()
				time.Sleep(time.Second)
			}
			return true
		}
		began := time.Now()
		r, err := s.Chat(t.Context(), hello)
		if err != nil || r.Outcome != failed || time.Since(began) != time.Minute {
			t.Errorf("a trickle: %+v, %v after %v", r, err, time.Since(began))
		}
		time.Sleep(time.Minute) // the server ends as well
	})
}

// TestPace: requests go out no faster than asked, and all sit out the pause that one was told of.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, dial := modelserver.InMemory(t, "vllm")
		waits := map[string]int{}
		s := open(t, endpoint.Options{URL: server.URL, PerMinute: 6,
			OnWait: func(_ time.Duration, why string) { waits[why]++ }})
		s.Dial(dial)
		t.Cleanup(s.HangUp)
		var sent []time.Duration
		began := time.Now()
		server.Play = func(w http.ResponseWriter, r modelserver.Request) bool {
			sent = append(sent, time.Since(began).Round(time.Second))
			return r.N == 2 && modelserver.Error(429, "", "", "Retry-After", "60")(w, r)
		}
		for range 4 {
			if r, err := s.Chat(t.Context(), hello); err != nil || r.Outcome != ok {
				t.Errorf("%+v, %v", r, err)
			}
		}
		// The attempt after the pause takes its turn as any other.
		if want := fmt.Sprint([]time.Duration{0, 10 * seconds, 20 * seconds, 80 * seconds,
			81 * seconds}); fmt.Sprint(sent[:3]) != fmt.Sprint([]time.Duration{0, 10 * seconds, 20 * seconds}) ||
			sent[3] < 80*seconds || len(sent) != 5 {
			t.Errorf("sent at %v, want about %v", sent, want)
		}
		if waits["no more requests a minute are wanted"] == 0 || waits["the server asked for a pause"] != 1 {
			t.Errorf("waits: %v", waits)
		}
	})
}

// TestContext: a pause, and an attempt, end with the context.
func TestContext(t *testing.T) {
	for _, status := range []int{0, 429} {
		inMemory(t, func(t *testing.T, server *modelserver.Server, s *endpoint.Server) {
			over := make(chan struct{})
			defer close(over)
			server.Play = modelserver.Hang(over)
			if status != 0 {
				server.Play = modelserver.Error(status, "", "", "Retry-After", "600")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			began := time.Now()
			if _, err := s.Chat(ctx, hello); !errors.Is(err, context.DeadlineExceeded) ||
				time.Since(began) != 3*time.Second || len(server.Requests()) != 1 {
				t.Errorf("%v after %v, %d requests", err, time.Since(began), len(server.Requests()))
			}
		})
	}
}

// TestCheck: whether a question may be sent is asked when its turn has come, before each attempt.
func TestCheck(t *testing.T) {
	inMemory(t, func(t *testing.T, server *modelserver.Server, s *endpoint.Server) {
		server.Play = modelserver.Error(429, "", "", "Retry-After", "600")
		late, end := errors.New("too late"), time.Now().Add(15*time.Minute)
		checked := s.Checked(func(int) error {
			if time.Now().After(end) {
				return late
			}
			return nil
		})
		if r, err := checked.Chat(t.Context(), hello); !errors.Is(err, late) || len(server.Requests()) != 2 {
			t.Errorf("%+v, %v after %d requests", r, err, len(server.Requests()))
		}
	})
}

// TestRefusedConnection: a server that was never there is not waited for; one that has answered may be starting again.
func TestRefusedConnection(t *testing.T) {
	for _, met := range []bool{false, true} {
		inMemory(t, func(t *testing.T, server *modelserver.Server, s *endpoint.Server) {
			if met {
				if _, err := s.Chat(t.Context(), hello); err != nil {
					t.Fatal(err)
				}
				s.HangUp()
			}
			dials := 0
			s.Dial(func(context.Context, string, string) (net.Conn, error) {
				dials++
				return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
			})
			_, err := s.Chat(t.Context(), hello)
			if unreachable, ok := errors.AsType[*endpoint.Unreachable](err); !ok ||
				!strings.Contains(unreachable.Detail, "connection refused") || met != (dials == 6) || !met && dials != 1 {
				t.Errorf("%v after %d attempts", err, dials)
			}
		})
	}
}

// TestOwnName: a parameter that OpenAI calls otherwise is named as --omit knows it.
func TestOwnName(t *testing.T) {
	server := modelserver.New(t, "openai")
	server.Play = modelserver.Error(400, "max_completion_tokens is not supported", "unsupported_parameter")
	_, err := open(t, endpoint.Options{URL: server.URL}).Chat(t.Context(), full(t, endpoint.OpenAI))
	if unsupported, ok := errors.AsType[*endpoint.Unsupported](err); !ok || unsupported.Parameter != "max_tokens" ||
		unsupported.Hint() != "leave it out: --omit max_tokens" {
		t.Error(err)
	}
}

// TestRedirectsAreRefused: a redirect ends the run at once, whatever its Location holds.
func TestRedirectsAreRefused(t *testing.T) {
	for _, location := range []string{"https://elsewhere.example/", "/v1/other", "", "::::", "http://a b/",
		"http://x/\x01", "http://x/\x7f\x80", "%zz", strings.Repeat("x", 9000)} {
		inMemory(t, func(t *testing.T, _ *modelserver.Server, s *endpoint.Server) {
			dials := 0
			s.Dial(func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				dials++
				go func() {
					defer theirs.Close()
					r, err := http.ReadRequest(bufio.NewReader(theirs))
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, r.Body)
					_, _ = io.WriteString(theirs, "HTTP/1.1 302 Found\r\nLocation: "+location+"\r\nContent-Length: 0\r\n\r\n")
				}()
				return ours, nil
			})
			began := time.Now()
			_, err := s.Chat(t.Context(), hello)
			var unreachable *endpoint.Unreachable
			if !errors.As(err, &unreachable) || !strings.Contains(err.Error(), "sends requests on") &&
				!strings.Contains(err.Error(), "a header that is not one of HTTP") || !unreachable.Nobody || dials != 1 ||
				time.Since(began) != 0 {
				t.Errorf("%q: %v after %v and %d connections", location, err, time.Since(began), dials)
			}
			if strings.ContainsFunc(fmt.Sprint(err), func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Errorf("%q: the error is %q", location, err)
			}
		})
	}
}

// TestPictureIsSent: a picture stands in its turn, after the text of that turn.
func TestPictureIsSent(t *testing.T) {
	image := &endpoint.Image{Type: "image/png", Data: []byte("picture")}
	const url = `{"type":"image_url","image_url":{"url":"data:image/png;base64,cGljdHVyZQ=="}}`
	body, err := endpoint.Chat{Model: "m", Messages: []endpoint.Message{{Role: "user", Text: "what", Image: image},
		{Role: "assistant", Text: "this"},
		{Role: "user", Image: image}}}.Body()
	want := `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"what"},` + url +
		`]},{"role":"assistant","content":"this"},{"role":"user","content":[` + url + `]}]}`
	if err != nil || string(body) != want {
		t.Errorf("%s, %v, want %s", body, err, want)
	}
	for want, m := range map[string]endpoint.Moderation{
		`"words"`:       {Text: "words"},
		`[` + url + `]`: {Image: image},
		`[{"type":"text","text":"words"},` + url + `]`: {Text: "words", Image: image},
	} {
		body, err := m.Body()
		if want := `{"model":"","input":` + want + `}`; err != nil || string(body) != want {
			t.Errorf("%s, %v, want %s", body, err, want)
		}
	}
}

// TestPage: a web page in place of an answer is told from other trouble, whatever its status, as the URL may be wrong.
func TestPage(t *testing.T) {
	for _, tt := range []struct {
		status     int
		kind, body string
		want       bool
	}{
		{200, "application/json", " <!doctype html>", true},
		{200, "text/html; charset=utf-8", "hello", true},
		{200, "application/json", `{"choices":[]}`, false},
		{400, "text/html", "no", true},
		{400, "application/json", `{"error":"<b>no"}`, false},
	} {
		server := modelserver.New(t, "vllm")
		server.Play = modelserver.Status(tt.status, tt.body, "Content-Type", tt.kind)
		r, err := open(t, endpoint.Options{URL: server.URL}).Chat(t.Context(), hello)
		if err != nil || r.Outcome != failed || r.Page != tt.want {
			t.Errorf("%d %s %s: %+v, %v", tt.status, tt.kind, tt.body, r, err)
		}
	}
}

// TestSent: every request that reached the server counts, answered or not, but those that it did not take. So it does
// where the next attempt is checked.
func TestSent(t *testing.T) {
	for name, tt := range map[string]struct {
		play modelserver.Play
		sent int
	}{
		"an answer":           {modelserver.Says("x", "stop"), 1},
		"after a failure":     {modelserver.First(1, modelserver.Error(500, "", "")), 2},
		"failures alone":      {modelserver.Error(500, "", ""), 6},
		"after being refused": {modelserver.First(2, modelserver.Error(429, "", "")), 1},
		"a policy":            {modelserver.Error(400, "", "content_filter"), 1},
		"none in time":        {nil, 1},
	} {
		inMemory(t, func(t *testing.T, server *modelserver.Server, s *endpoint.Server) {
			server.Play = tt.play
			if tt.play == nil {
				over := make(chan struct{})
				defer close(over)
				server.Play = modelserver.Hang(over)
			}
			before := 0
			checked := s.Checked(func(sent int) error { before = sent; return nil })
			r, err := checked.Chat(t.Context(), full(t, endpoint.VLLM))
			testkit.Same(t, name, tt.sent, r.Sent, err)
			testkit.Same(t, name+": before the last", tt.sent-1, before)
		})
	}
	server := modelserver.New(t, "vllm")
	server.Play = modelserver.Status(422, `{"error":{"message":"x"},"usage":{"prompt_tokens":7,"completion_tokens":3}}`)
	r, err := open(t, endpoint.Options{URL: server.URL}).Chat(t.Context(), full(t, endpoint.VLLM))
	testkit.Same(t, "counted beside a failure", endpoint.Usage{Prompt: 7, Completion: 3}, r.Usage, err)
}

// TestModerationAnswers: what is not the one verdict of a moderation is no answer.
func TestModerationAnswers(t *testing.T) {
	for body, want := range map[string]endpoint.Outcome{
		`{"results":[{"flagged":false}]}`:                                                                    ok,
		`{"results":[{"flagged":true,"categories":{"a":true,"b":null}}]}`:                                    ok,
		`{"results":[{"flagged":false},{"flagged":true}]}`:                                                   failed,
		`{"results":[{"flagged":null}]}`:                                                                     failed,
		`{"results":[{"flagged":"no"}]}`:                                                                     failed,
		`{"results":[{"flagged":false,"categories":{"a":"yes"}}]}`:                                           failed,
		`{"results":[{"flagged":false,"categories":["a"]}]}`:                                                 failed,
		`{"results":[{"flagged":false,"flagged":true}]}`:                                                     failed,
		`{"results":[{"flagged":false,"categories":{"a":true,"a":false}}]}`:                                  failed,
		`{"results":[{"flagged":false,"category_scores":{"a":NaN}}]}`:                                        failed,
		`{"error":{"message":"down"},"results":[{"flagged":false}]}`:                                         failed,
		`{"error":{"code":500},"results":[{"flagged":false}]}`:                                               failed,
		`{"error":"","results":[{"flagged":false}]}`:                                                         ok,
		`{"error":{"code":"content_filter"},"results":[{"flagged":false}]}`:                                  endpoint.Refused,
		`{"truncated":true,"results":[{"flagged":false}]}`:                                                   endpoint.Truncated,
		`{"results":[{"flagged":false,"error":"timeout"}]}`:                                                  failed,
		`{"results":[{"flagged":false,"truncated":true}]}`:                                                   endpoint.Truncated,
		`{"results":[{"flagged":false,"skipped":true}]}`:                                                     failed,
		`{"status":"incomplete","results":[{"flagged":false}]}`:                                              endpoint.Failed,
		`{"warnings":["image ignored"],"results":[{"flagged":false}]}`:                                       endpoint.Truncated,
		`{"status":"completed","results":[{"flagged":false,"skipped":false,"categories":{"blocked":true}}]}`: ok,
		`{"results":[]}`:  failed,
		`{"results":[7]}`: failed,
	} {
		server := modelserver.New(t, "openai")
		server.Play = modelserver.Status(200, body)
		r, err := open(t, endpoint.Options{URL: server.URL}).Moderate(t.Context(),
			endpoint.Moderation{Model: "m", Text: "words"})
		if err != nil || r.Outcome != want {
			t.Errorf("%s: %+v, %v, want %s", body, r, err, want)
		}
	}
}

// TestUsage: what is in the sum of the tokens and in no part was answered; what cannot be is not counted. Servers have
// several names and places for the counts.
func TestUsage(t *testing.T) {
	for fields, want := range map[string]endpoint.Usage{
		`"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}`:      {10, 5},
		`"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":1000000}`: {10, 999990},
		`"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":3}`:       {10, 5},
		`"usage":{"prompt_tokens":10,"completion_tokens":5}`:                        {10, 5},
		`"usage":{"total_tokens":40}`:                                               {0, 40},
		`"usage":{"prompt_tokens":-1,"total_tokens":"x"}`:                           {},
		`"usage":null`: {},
		`"usage":{"input_tokens":10,"output_tokens":5}`:                                                                      {10, 5},
		`"usage":{"prompt_tokens":"10","completion_tokens":"5"}`:                                                             {10, 5},
		`"usage":{"inputTokens":10,"outputTokens":5.0}`:                                                                      {10, 5},
		`"usage":{"input_tokens":1,"cache_creation_input_tokens":4,"cache_read_input_tokens":5,"output_tokens":5}`:           {10, 5},
		`"usage":{"prompt_tokens":10,"input_tokens":10,"cache_read_input_tokens":5,"completion_tokens":5,"output_tokens":5}`: {10, 5},
		`"x_groq":{"usage":{"prompt_tokens":10,"completion_tokens":5}}`:                                                      {10, 5},
		`"prompt_eval_count":10,"eval_count":5`:                                                                              {10, 5},
		`"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":3,"thoughtsTokenCount":2,"totalTokenCount":15}`:       {10, 5},
		`"usage":{"prompt_tokens":0,"completion_tokens":0},"timings":{"prompt_n":10,"predicted_n":5}`:                        {10, 5},
	} {
		model := modelserver.New(t, "vllm")
		model.Play = modelserver.Status(http.StatusOK, `{`+fields+`,"choices":[{"message":{"content":"x"}}]}`)
		server, err := endpoint.Open(endpoint.Options{URL: model.URL})
		if err != nil {
			t.Fatal(err)
		}
		reply, err := server.Chat(t.Context(), endpoint.Chat{Model: "m",
			Messages: []endpoint.Message{{Role: "user", Text: "x"}}})
		if err != nil || reply.Usage != want {
			t.Errorf("%s: %+v, %v, want %+v", fields, reply.Usage, err, want)
		}
	}
}

// TestContradictingUsage: a part of a count that is larger than the whole counts beside it, and the reply says so. What
// a server counts apart by its documentation, or by its total, is no contradiction.
func TestContradictingUsage(t *testing.T) {
	for usage, want := range map[string]endpoint.Usage{
		`"prompt_tokens":10,"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":500}`:       {Prompt: 10, Completion: 505},
		`"input_tokens":10,"output_tokens":5,"output_tokens_details":{"reasoning_tokens":"500"}`:              {Prompt: 10, Completion: 505},
		`"prompt_tokens":10,"completion_tokens":5,"reasoning_tokens":500`:                                     {Prompt: 10, Completion: 505},
		`"prompt_tokens":10,"completion_tokens":5,"thoughtsTokenCount":500`:                                   {Prompt: 10, Completion: 505},
		`"prompt_tokens":10,"completion_tokens":0,"completion_tokens_details":{"reasoning_tokens":500}`:       {Prompt: 10, Completion: 500},
		`"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"image_tokens":700}`:               {Prompt: 710, Completion: 5},
		`"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"image_tokens":8,"text_tokens":9}`: {Prompt: 17, Completion: 5},
		`"prompt_tokens":10,"completion_tokens":5,"total_tokens":715,"image_tokens":700`:                      {Prompt: 710, Completion: 5},
		`"prompt_tokens":10,"completion_tokens":5,"cache_read_input_tokens":700`:                              {Prompt: 710, Completion: 5},
	} {
		u, contradicts := endpoint.UsageOf(`{"usage":{` + usage + `}}`)
		testkit.Same(t, usage, want, u)
		testkit.Same(t, usage+" contradicts", true, contradicts)
	}
	for usage, want := range map[string]endpoint.Usage{
		`"prompt_tokens":10,"completion_tokens":5,"total_tokens":515,"completion_tokens_details":{"reasoning_tokens":500}`:      {Prompt: 10, Completion: 505},
		`"prompt_tokens":10,"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":5}`:                           {Prompt: 10, Completion: 5},
		`"promptTokenCount":10,"candidatesTokenCount":5,"thoughtsTokenCount":500`:                                               {Prompt: 10, Completion: 505},
		`"promptTokenCount":10,"thoughtsTokenCount":500`:                                                                        {Prompt: 10, Completion: 500},
		`"input_tokens":1,"cache_read_input_tokens":700,"output_tokens":5,"prompt_tokens_details":{"cached_tokens":700}`:        {Prompt: 701, Completion: 5},
		`"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":9,"image_tokens":5,"text_tokens":5}`: {Prompt: 10, Completion: 5},
		`"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":9}`:                                                     {Completion: 5},
	} {
		u, contradicts := endpoint.UsageOf(`{"usage":{` + usage + `}}`)
		testkit.Same(t, usage, want, u)
		testkit.Same(t, usage+" contradicts", false, contradicts)
	}
}
