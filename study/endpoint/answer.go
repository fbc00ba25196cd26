package endpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"rehydrate/internal/polite"
)

// A said is what a server says of an error.
type said struct{ message, kind, param, code string }

// readSaid reads an error in the forms that servers have for it: OpenAI's object, vLLM's older one without the outer
// object, a bare string, FastAPI's detail, and Gemini's list of one.
func readSaid(body []byte) said {
	var value any
	_ = json.Unmarshal(body, &value) // nothing is said by what has another form
	if list, ok := value.([]any); ok && len(list) > 0 {
		value = list[0]
	}
	fields, _ := value.(map[string]any)
	switch inner := fields["error"].(type) {
	case map[string]any:
		fields = inner
	case string:
		return said{message: inner}
	}
	text := func(name string) string {
		switch v := fields[name].(type) {
		case string:
			return v
		case float64:
			return fmt.Sprint(v)
		}
		return ""
	}
	s := said{text("message"), text("type"), text("param"), text("code")}
	if detail, ok := fields["detail"]; ok && s.message == "" {
		b, _ := json.Marshal(detail) // it was JSON
		s.message = string(b)
	}
	return s
}

// is reports whether the error has one of the names, as its code or its type.
func (s said) is(names ...string) bool {
	return slices.Contains(names, s.code) || slices.Contains(names, s.kind)
}

func (s said) isQuota() bool { return s.is("insufficient_quota", "billing_hard_limit_reached") }

// isPolicy: OpenAI's, Azure's and DashScope's names. Words of a message decide nothing.
func (s said) isPolicy() bool {
	return s.is("content_filter", "content_policy_violation", "moderation_blocked", "invalid_prompt", "data_inspection_failed")
}

// tooLong is what vLLM says of it; the last two of prompts with pictures.
var tooLong = regexp.MustCompile(`maximum context length|longer than the maximum model length|too long to fit into the model`)

// isContext: a request that is longer than the model reads. vLLM has no name for it.
func (s said) isContext() bool {
	return s.is("context_length_exceeded", "exceed_context_size_error") || tooLong.MatchString(s.message)
}

var refusing = regexp.MustCompile(`(?i)not support|n't support|unsupported|unrecognized|unknown|unexpected|extra|not permitted|not allowed|invalid|cannot`)

// refuses is the parameter of Parameters, one of those that were sent, that the error is about; "" for none.
func (s said) refuses(sent []string) string {
	// A longer message may repeat the prompt.
	about := s.message[:min(len(s.message), 300)]
	for _, name := range sent {
		if s.param == name || refusing.MatchString(about) && regexp.MustCompile(`\b`+name+`\b`).MatchString(about) {
			if name == "max_completion_tokens" {
				return "max_tokens"
			}
			return name
		}
	}
	return ""
}

// answered says what an answer means.
func (s *Server) answered(response *http.Response, sent []string, read func([]byte) Reply) (Reply, error) {
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return Reply{}, err
	}
	// A server can repeat the key in what it says.
	body = []byte(s.o.Scrubber.Scrub(string(body)))
	e := readSaid(body)
	status, says := response.StatusCode, fmt.Sprintf("answers %s", response.Status)
	if e.message != "" {
		says += ": " + e.message
	}
	says = s.o.Scrubber.Printable(says)
	unusable := func(o Outcome) (Reply, error) {
		return Reply{Outcome: o, Detail: "the server " + says, Raw: s.raw(body)}, nil
	}
	pause, _ := reset(response.Header, time.Now())
	switch {
	case status == http.StatusOK:
		return s.read(response.Header, body, read), nil
	case status >= 300 && status < 400:
		to, _ := url.Parse(response.Header.Get("Location"))
		host := ""
		if to != nil {
			host = to.Host
		}
		return Reply{}, s.unreachable("sends requests on to another address, which they do not follow: "+s.o.Scrubber.Printable(host), nil)
	case status == http.StatusRequestEntityTooLarge, e.isContext():
		return unusable(TooLarge)
	case e.isPolicy():
		return unusable(Refused)
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return Reply{}, &Denied{s.base.Host + " " + says, "is the key in " + KeyName + " or " + KeyName + "_FILE the one for this server?"}
	case status == http.StatusPaymentRequired, e.isQuota():
		return Reply{}, &Denied{s.base.Host + " " + says, "the account has nothing left to spend; what was answered is kept, and the same command goes on"}
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return Reply{}, s.unreachable(says+": is the model there, and does the base end as the server's documentation says, mostly in /v1?", nil)
	case status == http.StatusBadRequest, status == http.StatusUnprocessableEntity:
		if name := e.refuses(sent); name != "" {
			return Reply{}, &Unsupported{name, s.o.Scrubber.Printable(e.message)}
		}
	case s.http.Repeatable(status) && pause > polite.MaxWait:
		return Reply{}, s.unreachable(fmt.Sprintf("asks to wait %v, more than the %v that a run waits; nothing is lost: run the same command again then",
			pause.Round(time.Second), polite.MaxWait), nil)
	}
	return unusable(Failed)
}

// read reads an answer that says it is a good one.
func (s *Server) read(header http.Header, body []byte, read func([]byte) Reply) Reply {
	if strings.HasPrefix(header.Get("Content-Type"), "text/event-stream") {
		return Reply{Outcome: Failed, Detail: "the server streams its answer, which was not asked for"}
	}
	r := read(body)
	if e := readSaid(body); r.Outcome == Failed && e.message != "" {
		r.Detail = e.message // some gateways report errors with status 200
	}
	var more struct {
		Model any
		Usage map[string]any
	}
	_ = json.Unmarshal(body, &more) // without them the answer is as good
	model, _ := more.Model.(string)
	// Once more: in JSON the key can be spelled in ways that its body did not show.
	r.Text, model = s.o.Scrubber.Scrub(r.Text), s.o.Scrubber.Scrub(model)
	r.Detail, r.Model, r.Raw = s.o.Scrubber.Printable(r.Detail), model, s.raw(body)
	r.Usage = Usage{count(more.Usage["prompt_tokens"]), count(more.Usage["completion_tokens"])}
	return r
}

// raw is a body that is JSON, without secrets.
func (s *Server) raw(body []byte) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber() // as it was sent
	var v any
	if !json.Valid(body) || d.Decode(&v) != nil {
		return nil
	}
	// Written once more: an escape such as \u0061 hides the key in the body, but not from who reads the JSON.
	again, err := encode(v)
	if err != nil {
		return nil
	}
	return json.RawMessage(s.o.Scrubber.Scrub(string(again)))
}

// count is a number of tokens that a server names. One that cannot be is none, so that sums stay sound.
func count(v any) int {
	if n, ok := v.(float64); ok && n >= 0 && n <= 1e9 {
		return int(n)
	}
	return 0
}
