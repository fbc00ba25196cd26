package endpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"rehydrate/internal/strictjson"
)

// read reads an answer that says it is a good one, without trusting it.
func (s *Server) read(header http.Header, body []byte, read func(map[string]any) Reply) Reply {
	if strings.HasPrefix(header.Get("Content-Type"), "text/event-stream") {
		return Reply{Outcome: Failed, Detail: "the server streams its answer, which was not asked for"}
	}
	v, err := strictjson.Decode(body)
	if _, twice := errors.AsType[*strictjson.Twice](err); twice {
		// Which of the two counts would be chance.
		return Reply{Outcome: Failed, Detail: s.o.Scrubber.Printable("the answer cannot be read: " + err.Error())}
	}
	fields, _ := v.(map[string]any) // none where the answer has another form
	r := read(fields)
	if e := readSaid(body); e.message != "" && (r.Outcome == Failed || fields["error"] != nil) {
		r.Outcome, r.Detail = Failed, e.message // some gateways report errors with status 200
	}
	r.Page = isPage(header, body)
	usage, _ := fields["usage"].(map[string]any)
	model, _ := fields["model"].(string)
	// Once more: in JSON the key can be spelled in ways that its body did not show.
	r.Text, model = s.o.Scrubber.Scrub(r.Text), s.o.Scrubber.Scrub(model)
	r.Detail, r.Model, r.Raw = s.o.Scrubber.Printable(r.Detail), model, s.raw(body)
	r.Usage = Usage{count(usage["prompt_tokens"]), count(usage["completion_tokens"])}
	// Some servers count thoughts in the sum alone: what is in no part was answered, and has the answer's price.
	r.Usage.Completion = max(r.Usage.Completion, count(usage["total_tokens"])-r.Usage.Prompt)
	return r
}

// isPage reports whether an answer is a web page, as something that is no server of models sends.
func isPage(header http.Header, body []byte) bool {
	return strings.HasPrefix(header.Get("Content-Type"), "text/html") || bytes.HasPrefix(bytes.TrimSpace(body), []byte("<"))
}

func failed(format string, args ...any) Reply {
	return Reply{Outcome: Failed, Detail: fmt.Sprintf(format, args...)}
}

// ReadChat reads the body of an answer to a Chat that somebody kept, by the rules of Server.Chat.
func ReadChat(body []byte) Reply {
	v, err := strictjson.Decode(body)
	if err != nil {
		return failed("the answer cannot be read: %s", err)
	}
	fields, _ := v.(map[string]any)
	return readChat(fields)
}

// readChat reads the answer to a Chat.
func readChat(fields map[string]any) Reply {
	choices, ok := fields["choices"].([]any)
	if !ok {
		return failed("the answer is not that of a chat")
	}
	choice, why := firstChoice(choices)
	if why != "" {
		return failed("%s", why)
	}
	message, _ := choice["message"].(map[string]any)
	refusal, _ := message["refusal"].(string)
	text, refused, why := contentOf(message["content"])
	if message == nil {
		why = "the answer is not that of a chat"
	}
	r := Reply{Text: text}
	refusal += refused
	ended, finish := endOf(choice["finish_reason"])
	switch {
	case refusal != "":
		r.Outcome, r.Detail = Refused, refusal
	case ended == Refused:
		r.Outcome, r.Detail = Refused, "finish_reason "+finish
	case ended == Truncated:
		r.Outcome, r.Detail = Truncated, "the answer has as many tokens as were allowed"
	case finish == "error", choice["error"] != nil:
		r = failed("the server reports an error in its answer")
	case why != "":
		r = failed("%s", why)
	case strings.TrimSpace(text) == "":
		r.Outcome, r.Detail = Empty, "finish_reason "+finish
	case ended != OK: // the text stays in this and the next ones: it may have been paid for
		r.Outcome, r.Detail = Failed, fmt.Sprintf("the answer ends for the reason %.40q, which does not say that it is whole", finish)
	case !isAssistant(message["role"]):
		r.Outcome, r.Detail = Failed, fmt.Sprintf("the answer is not the model's: its role is %.40q", fmt.Sprint(message["role"]))
	case calls(message["tool_calls"]) || calls(message["function_call"]):
		r.Outcome, r.Detail = Failed, "the answer calls a tool, and none was offered"
	default:
		r.Outcome = OK
	}
	return r
}

// The reasons for which answers end, in lower case, by what they mean: those of OpenAI's API and of servers that pass
// on their own (vLLM, TGI, Anthropic, Gemini, Cohere, Mistral, Together). An answer that ends for another may not be
// whole.
var (
	whole   = []string{"", "stop", "stop_sequence", "end_turn", "eos", "eos_token", "complete", "completed"}
	cut     = []string{"length", "max_tokens", "max_output_tokens", "max_completion_tokens", "model_length", "model_context_window_exceeded"}
	refuses = []string{"content_filter", "content_filtered", "safety", "image_safety", "refusal", "recitation", "blocklist", "prohibited_content",
		"spii", "sensitive", "error_toxic", "guardrail_intervened"}
)

// endOf tells what a finish_reason says of an answer: OK where it is whole, Truncated, Refused, or Failed for anything
// else.
func endOf(reason any) (Outcome, string) {
	text, ok := reason.(string)
	text = strings.ToLower(strings.TrimSpace(text))
	switch {
	case reason != nil && !ok:
		return Failed, fmt.Sprint(reason)
	case slices.Contains(whole, text):
		return OK, text
	case slices.Contains(cut, text):
		return Truncated, text
	case slices.Contains(refuses, text) || strings.HasPrefix(text, "content_filter"):
		return Refused, text
	}
	return Failed, text
}

// isAssistant reports whether a message is the model's. Some servers leave the role out.
func isAssistant(role any) bool {
	text, ok := role.(string)
	return role == nil || ok && slices.Contains([]string{"", "assistant", "model"}, strings.ToLower(text))
}

// calls reports whether a message calls tools.
func calls(v any) bool {
	list, isList := v.([]any)
	return v != nil && (!isList || len(list) > 0)
}

// firstChoice is the choice with the index 0: servers give several in any order. One alone need not have an index.
func firstChoice(choices []any) (first map[string]any, why string) {
	found := 0
	for _, c := range choices {
		choice, _ := c.(map[string]any)
		index, numbered := choice["index"].(json.Number)
		if choice != nil && (index == "0" || len(choices) == 1 && !numbered) {
			first = choice
			found++
		}
	}
	switch {
	case len(choices) == 0:
		return nil, "the answer holds no choice"
	case found != 1:
		return nil, fmt.Sprintf("of the %d choices of the answer, %d are the first", len(choices), found)
	}
	return first, ""
}

// contentOf is the text of a message's content: a string, or parts. Parts that hold thoughts are left out.
func contentOf(content any) (text, refused, why string) {
	var parts []any
	switch c := content.(type) {
	case nil:
		return "", "", ""
	case string:
		return c, "", ""
	case []any:
		parts = c
	default:
		return "", "", "the content of the answer is neither text nor parts"
	}
	for _, p := range parts {
		part, _ := p.(map[string]any)
		kind, _ := part["type"].(string)
		words, isText := part["text"].(string)
		switch {
		case (kind == "text" || kind == "output_text") && isText:
			text += words
		case kind == "refusal":
			refusal, _ := part["refusal"].(string)
			refused += strings.TrimSpace(refusal + " (refusal)")
		case kind == "thinking", kind == "reasoning", kind == "redacted_thinking":
		default:
			return "", "", fmt.Sprintf("the answer has a part of the type %.40q, which is not text", kind)
		}
	}
	return text, refused, ""
}

// readModeration reads the answer to a Moderation.
func readModeration(fields map[string]any) Reply {
	const other = "the answer is not that of a moderation"
	results, _ := fields["results"].([]any)
	if len(results) != 1 {
		return failed(other)
	}
	result, _ := results[0].(map[string]any)
	categories, ok := result["categories"].(map[string]any)
	if _, flags := result["flagged"].(bool); !flags || !ok && result["categories"] != nil {
		return failed(other)
	}
	for _, v := range categories {
		if _, ok := v.(bool); !ok && v != nil {
			return failed(other)
		}
	}
	return Reply{Outcome: OK}
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
	number, _ := v.(json.Number)
	if n, err := number.Float64(); err == nil && n >= 0 && n <= 1e9 {
		return int(n)
	}
	return 0
}
