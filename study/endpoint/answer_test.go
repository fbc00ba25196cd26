package endpoint_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"rehydrate/internal/secret"
	"rehydrate/internal/testkit"
	"rehydrate/study/endpoint"
)

// answer is an answer of HTTP with a body and headers, each a name and a value.
func answer(status int, body string, headers ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return &http.Response{StatusCode: status, Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), Header: h,
		Body: io.NopCloser(strings.NewReader(body))}
}

// TestErrorForms: what a server says of an error is read in each form that servers have, and names what is to be done:
// nothing, leave a parameter out (stop and temperature were sent), look at the key, or at the URL.
func TestErrorForms(t *testing.T) {
	s := open(t, endpoint.Options{URL: "http://127.0.0.1:1/v1"})
	long := strings.Repeat("x", 300)
	for _, test := range []struct {
		name   string
		answer *http.Response
		want   string // the outcome, or what stops the run
		detail string // in it
	}{
		{"OpenAI's object", answer(400, `{"error":{"message":"bad","type":"t"}}`), "failed",
			"answers 400 Bad Request: bad"},
		{"Gemini's list of one", answer(400, `[{"error":{"message":"bad","code":400}}]`), "failed", ": bad"},
		{"an empty list", answer(400, `[]`), "failed", "answers 400 Bad Request"},
		{"a bare text", answer(400, `{"error":"bad"}`), "failed", ": bad"},
		{"without an outer object", answer(400, `{"message":"bad"}`), "failed", ": bad"},
		{"FastAPI's detail", answer(422, `{"detail":[{"msg":"bad"}]}`), "failed", `: [{"msg":"bad"}]`},
		{"a message beside the detail", answer(422, `{"message":"bad","detail":"no"}`), "failed", ": bad"},
		{"a byte order mark", answer(400, "\xef\xbb\xbf"+`{"error":"bad"}`), "failed", ": bad"},
		{"no JSON", answer(400, `bad`), "failed", "answers 400 Bad Request"},

		{"a policy by its type", answer(400, `{"error":{"type":"content_filter"}}`), "refused", "400"},
		{"DashScope's policy", answer(400, `{"code":"data_inspection_failed","message":"no"}`), "refused", ": no"},
		{"a policy in words alone", answer(400, `{"error":"against the content policy"}`), "failed", "policy"},
		{"a policy with status 200", answer(200, `{"error":{"code":"content_filter","message":"no"}}`), "refused", "no"},
		{"a policy with status 200 that says nothing", answer(200, `{"error":{"code":"content_filter"}}`),
			"refused", "a content policy"},
		{"an error with status 200 that says nothing", answer(200, `{"error":{"code":7}}`), "failed", "reports an error"},
		{"a message in place of an answer", answer(200, `{"message":"loading"}`), "failed", "loading"},
		{"a message beside an answer", answer(200, `{"message":"hello","choices":[{"message":{"content":"x"}}]}`), "ok",
			""},

		{"Ollama's long prompt", answer(400, `{"error":"the input exceeds the model's context length"}`), "too_large", ""},
		{"another long prompt", answer(400, `{"error":"Prompt is too long: 9 > 8"}`), "too_large", "too long"},
		{"long by its type", answer(400, `{"error":{"type":"exceed_context_size_error"}}`), "too_large", "400"},
		{"larger than is taken", answer(413, `x`), "too_large", "413"},

		{"a key", answer(401, `{"error":"no"}`), "denied", "answers 401 Unauthorized: no"},
		{"nothing left", answer(402, ``), "denied", "402"},
		{"a quota by its type", answer(403, `{"error":{"type":"billing_hard_limit_reached"}}`), "denied", "403"},
		{"a quota with another status", answer(500, `{"error":{"code":"insufficient_quota"}}`), "denied", "500"},
		{"no such path", answer(404, `{"error":"no such model"}`), "nobody", "no such model: is the model there"},
		{"no such method", answer(405, ``), "nobody", "405"},
		{"a redirect", answer(301, ``, "Location", "https://other.example/x"), "nobody", "follow: other.example"},
		{"no other redirect", answer(399, ``), "nobody", "another address"},
		{"a long pause", answer(429, ``, "Retry-After", "901"), "unreachable", "asks to wait 15m1s, more than the 15m0s"},
		{"a pause that a run waits", answer(429, ``, "Retry-After", "900"), "failed", "429"},
		{"a long pause after what is not asked again", answer(501, ``, "Retry-After", "901"), "failed", "501"},

		{"a parameter by its name", answer(400, `{"error":{"message":"no","param":"stop"}}`), "stop", "no"},
		{"a parameter that was not sent", answer(400, `{"error":{"message":"no","param":"seed"}}`), "failed", ": no"},
		{"a parameter in words", answer(422, `{"error":"temperature is not permitted"}`), "temperature", "permitted"},
		{"a part of a word", answer(400, `{"error":"stopping is not supported"}`), "failed", "stopping"},
		{"words that refuse nothing", answer(400, `{"error":"stop was read"}`), "failed", "stop was read"},
		{"a prompt that is repeated", answer(400, `{"error":"invalid: `+long+` stop"}`), "failed", "invalid"},
		{"another status", answer(500, `{"error":{"message":"stop is not supported","param":"stop"}}`), "failed", "500"},
	} {
		r, err := s.Answered(test.answer, false)
		got, detail := string(r.Outcome), r.Detail
		if err != nil {
			got, detail = stopped(err), err.Error()
		}
		if got != test.want || !strings.Contains(detail, test.detail) {
			t.Errorf("%s: %s %q, want %s %q", test.name, got, detail, test.want, test.detail)
		}
	}
	broken, bad := answer(200, ""), errors.New("broken")
	broken.Body = io.NopCloser(iotest.ErrReader(bad))
	if r, err := s.Answered(broken, false); !errors.Is(err, bad) {
		t.Errorf("a body that breaks: %+v, %v", r, err)
	}
}

// stopped says which error stops the run.
func stopped(err error) string {
	if _, ok := errors.AsType[*endpoint.Denied](err); ok {
		return "denied"
	}
	if e, ok := errors.AsType[*endpoint.Unsupported](err); ok {
		return e.Parameter
	}
	e, ok := errors.AsType[*endpoint.Unreachable](err)
	switch {
	case !ok:
		return "another"
	case e.Nobody:
		return "nobody"
	}
	return "unreachable"
}

// TestKeptAnswer: what is kept of an answer is its JSON as it was sent, without the key in any spelling; what is no
// JSON, or holds a key twice, is not taken for an answer.
func TestKeptAnswer(t *testing.T) {
	s := open(t, endpoint.Options{URL: "http://127.0.0.1:1/v1", Key: secret.New(canary)})
	spelled := strings.Replace(canary, "C", `\u0043`, 1)
	const content = `"choices":[{"message":{"content":"x"}}]`
	for _, test := range []struct{ name, body, raw, detail string }{
		{"numbers as they were", `{"n":1.50,"m":12345678901234567890,` + content + `}`,
			`{"choices":[{"message":{"content":"x"}}],"m":12345678901234567890,"n":1.50}`, ""},
		{"signs as they were", `{"a":"<&>",` + content + `}`, `{"a":"<&>",` + content + `}`, ""},
		{"the key spelled otherwise", `{"a":"` + spelled + `",` + content + `}`, `{"a":"[redacted]",` + content + `}`, ""},
		{"no JSON", `hello`, ``, "not that of a chat"},
		{"JSON and more", `{} {}`, ``, "not that of a chat"},
		{"a key twice", `{"a":1,"a":2}`, ``, "cannot be read"},
		{"a list", `[]`, `[]`, "not that of a chat"},
	} {
		r, err := s.Answered(answer(200, test.body), false)
		if err != nil || string(r.Raw) != test.raw || !strings.Contains(r.Detail, test.detail) ||
			(r.Detail == "") != (test.detail == "") {
			t.Errorf("%s: %s, %q, %v, want %s, %q", test.name, r.Raw, r.Detail, err, test.raw, test.detail)
		}
	}
	body := `{"model":"` + spelled + `","choices":[{"message":{"content":"my ` + spelled + `"}}]}`
	r, err := s.Answered(answer(200, body), false)
	if err != nil || r.Text != "my [redacted]" || r.Model != "[redacted]" {
		t.Errorf("the key in the words: %+v, %v", r, err)
	}
}

// TestVerdicts: of a moderation, another verdict on the whole contradicts it, and a part that is flagged where the
// whole is not; a number is a verdict where it is 0 or 1.
func TestVerdicts(t *testing.T) {
	for body, want := range map[string]endpoint.Outcome{
		`{"flagged":0,"results":[{"flagged":true}]}`:                                            failed,
		`{"flagged":1,"results":[{"flagged":true}]}`:                                            ok,
		`{"flagged":1,"results":[{"flagged":false}]}`:                                           failed,
		`{"flagged":0,"results":[{"flagged":false}]}`:                                           ok,
		`{"is_flagged":2,"results":[{"flagged":true}]}`:                                         ok,
		`{"results":[{"flagged":true,"inputs":[{"flagged":0},{"flagged":false}]}]}`:             ok,
		`{"results":[{"flagged":false,"inputs":[{"flagged":false},{"flagged":true}]}]}`:         failed,
		`{"results":[{"flagged":false,"inputs":[{"flagged":true},{"flagged":false}]}]}`:         failed,
		`{"results":[{"flagged":false,"inputs":{"a":{"b":{"has_been_flagged":"yes"}}}}]}`:       failed,
		`{"results":[{"flagged":false,"note":"{\"flagged\":true}"}]}`:                           failed,
		`{"results":[{"flagged":false,"content":"{\"flagged\":true}"}]}`:                        ok,
		`{"results":[{"flagged":false}],"messages":[{"role":"user","flagged":true}]}`:           ok,
		`{"results":[{"flagged":false}],"list":[{"role":"x","flagged":true},{"role":"model"}]}`: ok,
		`{"results":`: failed,
		`{"status":"deny","results":[{"flagged":true}]}`:    ok,
		`{"status":"unsafe","results":[{"flagged":true}]}`:  ok,
		`{"status":"waiting","results":[{"flagged":true}]}`: failed,
	} {
		if r := endpoint.ReadModeration([]byte(body)); r.Outcome != want || (r.Detail == "") != (want == ok) {
			t.Errorf("%s: %s %q, want %s", body, r.Outcome, r.Detail, want)
		}
	}
}

// TestAnswersBeside: an answer that is written a second time is another one if its objects, its words or its parsed
// form are.
func TestAnswersBeside(t *testing.T) {
	for _, test := range []struct {
		name, content, message string
		want                   endpoint.Outcome
	}{
		{"parsed under another key", `{\"a\":\"x\"}`, `"parsed":{"b":"x"}`, failed},
		{"an object about something else", `{\"a\":\"x\"}`, `"output":{"b":"x"}`, ok},
		{"an object with one of its keys", `{\"a\":\"x\",\"b\":\"y\"}`, `"output":{"b":"z","c":1}`, failed},
		{"parsed, of words", `said`, `"parsed":{"a":"x"}`, failed},
		{"the words with blanks", `said`, `"answer":" said\n"`, ok},
		{"other words", `said`, `"answer":"other"`, failed},
		{"one of two objects is another", `{\"a\":1}`, `"answer":"{\"a\":1} {\"a\":2}"`, failed},
		{"each object once more", `{\"a\":1} {\"a\":2}`, `"answer":"{\"a\":2}"`, ok},
		{"after a thought", `{\"a\":1}`, `"answer":"<think>{\"a\":2}</think>{\"a\":1}"`, ok},
		{"words under a key that has others", `said`, `"result":"other"`, ok},
		{"an object under such a key", `{\"a\":1}`, `"result":"{\"a\":2}"`, failed},
		{"the content of a message", `said`, `"output":[{"type":"message","id":"1","content":[{"text":"other"}]}]`, failed},
		{"a message without content", `said`, `"output":[{"type":"message","role":"assistant","id":"1"}]`, ok},
		{"after braces that are none", `{\"a\":1}`, `"answer":"{not} {\"a\":2}"`, failed},
		{"the last brace is cut away", `{\"a\":\"x\"`, `"answer":"{\"a\":\"x\"}"`, ok},
		{"blank", `said`, `"answer":" ","output":[],"response":null`, ok},
	} {
		body := `{"choices":[{"message":{"content":"` + test.content + `",` + test.message + `}}]}`
		if r := endpoint.ReadChat([]byte(body)); r.Outcome != test.want || test.want != ok && r.Detail == "" {
			t.Errorf("%s: %s %q, want %s", test.name, r.Outcome, r.Detail, test.want)
		}
	}
}

// TestSameForm: an object with the one key of the answer is a second answer also where the key is one that stands
// everywhere; with other keys beside it, it is none.
func TestSameForm(t *testing.T) {
	for beside, want := range map[string]endpoint.Outcome{
		`"x":{"type":"b"}`: failed, `"x":{"type":"a"}`: ok, `"x":{"type":"b","n":1}`: ok, `"x":{"type":null}`: ok,
		`"x":{"n":1}`: ok, `"x":{}`: ok, `"x":[{"type":"a"},{"type":"b"}]`: failed, `"x":[{"type":"b"},7]`: failed,
	} {
		body := `{` + beside + `,"choices":[{"message":{"content":"{\"type\":\"a\"}"}}]}`
		if r := endpoint.ReadChat([]byte(body)); r.Outcome != want {
			t.Errorf("%s: %s %q, want %s", beside, r.Outcome, r.Detail, want)
		}
	}
}

// TestUnreachableCause: the error of a server that cannot be asked has its cause, which says why.
func TestUnreachableCause(t *testing.T) {
	s := open(t, endpoint.Options{URL: "http://127.0.0.1:1/v1"})
	s.Dial(func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	})
	_, err := s.Chat(t.Context(), hello)
	if !errors.Is(err, syscall.ECONNREFUSED) || stopped(err) != "nobody" ||
		!strings.HasPrefix(err.Error(), "127.0.0.1:1 cannot") {
		t.Errorf("a refused connection: %v", err)
	}
}

// TestUsageParts: the parts of a count, in whichever object they stand, are counted once; a total that is less than its
// parts says nothing.
func TestUsageParts(t *testing.T) {
	for counts, want := range map[string]endpoint.Usage{
		`"prompt_tokens":10,"prompt_tokens_details":{"text_tokens":4,"image_tokens":6}`:           {Prompt: 10},
		`"prompt_tokens":10,"prompt_tokens_details":{"text_tokens":5,"audio_tokens":6}`:           {Prompt: 11},
		`"prompt_tokens":10,"prompt_token_details":{"video_tokens":11}`:                           {Prompt: 21},
		`"prompt_tokens":10,"prompt_tokens_details":{"odd_tokens":11}`:                            {Prompt: 21},
		`"prompt_tokens":10,"prompt_tokens_details":{"odd":11},"other_details":{"odd_tokens":11}`: {Prompt: 10},
		`"prompt_tokens":10,"completion_tokens":5,"output_tokens_details":{"reasoning_tokens":6}`: {
			Prompt: 10, Completion: 11},
		`"prompt_tokens":1000000001,"completion_tokens":5`: {Completion: 5},
		`"prompt_tokens":1000000000,"completion_tokens":5`: {
			Prompt: 1e9, Completion: 5},
		`"promptTokenCount":10,"candidatesTokenCount":3,"completion_tokens":9,"thoughtsTokenCount":2`: {
			Prompt: 10, Completion: 9},
	} {
		u, _ := endpoint.UsageOf(`{"usage":{` + counts + `}}`)
		testkit.Same(t, counts, want, u)
	}
}
