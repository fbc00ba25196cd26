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
	return s.is("content_filter", "content_policy_violation", "moderation_blocked", "invalid_prompt",
		"data_inspection_failed")
}

// tooLong is what vLLM says of it, the second and third of prompts with pictures; then what Ollama and others say.
var tooLong = regexp.MustCompile(`(?i)maximum context length|longer than the maximum model length|` +
	`too long to fit into the model|` +
	`exceeds? (?:the |\w+'s )?(?:available |maximum |model's )*context (?:length|size|window)|prompt is too long`)

// isContext: a request that is longer than the model reads. vLLM and Ollama have no name for it.
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
func (s *Server) answered(response *http.Response, sent []string, read func(map[string]any) Reply) (Reply, error) {
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return Reply{}, err
	}
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")) // some gateways begin with a byte order mark
	// A server can repeat the key in what it says.
	body = []byte(s.o.Scrubber.Scrub(string(body)))
	e := readSaid(body)
	status, says := response.StatusCode, fmt.Sprintf("answers %s", response.Status)
	if e.message != "" {
		says += ": " + e.message
	}
	says = s.o.Scrubber.Printable(says)
	unusable := func(o Outcome) (Reply, error) {
		reply := Reply{Outcome: o, Detail: "the server " + says, Raw: s.raw(body), Page: isPage(response.Header, body)}
		return reply.counted(body), nil
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
		return Reply{}, s.unreachable("sends requests on to another address, which they do not follow: "+
			s.o.Scrubber.Printable(host), true, nil)
	case status == http.StatusRequestEntityTooLarge, e.isContext():
		return unusable(TooLarge)
	case e.isPolicy():
		return unusable(Refused)
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return Reply{}, &Denied{s.base.Host + " " + says,
			"is the key in " + KeyName + " or " + KeyName + "_FILE the one for this server?"}
	case status == http.StatusPaymentRequired, e.isQuota():
		return Reply{}, &Denied{s.base.Host + " " + says,
			"the account has nothing left to spend; what was answered is kept, and the same command goes on"}
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return Reply{},
			s.unreachable(says+": is the model there, and does the base end as the server's documentation says, "+
				"mostly in /v1?", true, nil)
	case status == http.StatusBadRequest, status == http.StatusUnprocessableEntity:
		if name := e.refuses(sent); name != "" {
			return Reply{}, &Unsupported{name, s.o.Scrubber.Printable(e.message)}
		}
	case s.http.Repeatable(status) && pause > polite.MaxWait:
		return Reply{},
			s.unreachable(fmt.Sprintf("asks to wait %v, more than the %v that a run waits; nothing is lost: run the same command again then",
				pause.Round(time.Second), polite.MaxWait), false, nil)
	}
	return unusable(Failed)
}
