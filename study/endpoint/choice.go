package endpoint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rehydrate/manifest/value"
)

// readChat reads the answer to a Chat. It is OK only if it can be read in one way: all its choices say the same, no
// other answer stands beside them, and nothing in it says that it was refused, filtered, cut or not finished, or that a
// picture that was sent was not seen.
func readChat(fields map[string]any, l look) Reply {
	choices, ok := fields["choices"].([]any)
	if !ok {
		return failed("the answer is not that of a chat")
	}
	first, why := firstChoice(choices)
	if why == "" {
		why = spelledTwice(fields)
	}
	if why != "" {
		return failed("%s", why)
	}
	r := l.choice(first)
	for _, c := range choices {
		other, _ := c.(map[string]any)
		r = agreed(r, l.choice(other))
	}
	mark, why := l.marked(fields)
	switch {
	case r.Outcome == Refused:
	case mark == Refused:
		r.Outcome, r.Detail = Refused, why
	case mark == Truncated && (r.Outcome == OK || r.Outcome == Empty), mark == Failed && r.Outcome == OK:
		r.Outcome, r.Detail = mark, why
	case r.Outcome == OK && fields["object"] == "error":
		r.Outcome, r.Detail = Failed, "the server says that its answer is an error"
	case r.Outcome == OK:
		if name := cmp.Or(otherAnswer(fields, r.Text), secondAnswer(fields, r.Text)); name != "" {
			r.Outcome, r.Detail = Failed, otherwise(name)
		}
	}
	return r
}

// agreed is what two choices of one answer come to: a refusal is one whatever the other says.
func agreed(a, b Reply) Reply {
	switch {
	case a.Outcome == b.Outcome && a.Text == b.Text, a.Outcome == Refused:
		return a
	case b.Outcome == Refused:
		return b
	}
	return failed("the answer holds several choices, and they do not say the same")
}

// choice reads one choice of an answer.
func (l look) choice(choice map[string]any) Reply {
	message, _ := choice["message"].(map[string]any)
	text, refusal, why := contentOf(message["content"])
	if message == nil {
		why = "the answer is not that of a chat"
	}
	for _, of := range []map[string]any{choice, message} {
		refusal += refusalIn(of)
		why = cmp.Or(why, spelledTwice(of))
	}
	delta, _ := choice["delta"].(map[string]any)
	for _, other := range []any{choice["text"], delta["content"]} { // of other interfaces
		if says(other) && other != text {
			why = "the choice has two texts, and they do not say the same"
		}
	}
	r := Reply{Text: text}
	ended, finish := endOf(choice["finish_reason"])
	mark, reason := l.marked(choice)
	switch {
	case refusal != "":
		r.Outcome, r.Detail = Refused, strings.TrimSpace(refusal)
	case ended == Refused:
		r.Outcome, r.Detail = Refused, "finish_reason "+finish
	case mark == Refused:
		r.Outcome, r.Detail = Refused, reason
	case ended == Truncated:
		r.Outcome, r.Detail = Truncated, "the answer has as many tokens as were allowed"
	case mark == Truncated:
		r.Outcome, r.Detail = Truncated, reason
	case finish == "error", says(choice["error"]):
		r = failed("the server reports an error in its answer")
	case why != "":
		r = failed("%s", why)
	case strings.TrimSpace(text) == "":
		r.Outcome, r.Detail = Empty, "finish_reason "+finish
	case ended != OK: // the text stays in this and the next ones: it may have been paid for
		r.Outcome = Failed
		r.Detail = fmt.Sprintf("the answer ends for the reason %.40q, which does not say that it is whole", finish)
	case !isAssistant(message["role"]):
		r.Outcome = Failed
		r.Detail = fmt.Sprintf("the answer is not the model's: its role is %.40q", fmt.Sprint(message["role"]))
	case calls(message["tool_calls"]) || calls(message["function_call"]):
		r.Outcome, r.Detail = Failed, "the answer calls a tool, and none was offered"
	default:
		r.Outcome = OK
		if name := otherAnswer(message, text); name != "" {
			r.Outcome, r.Detail = Failed, otherwise(name)
		}
	}
	return r
}

// says reports whether a field says something: null, false, zero, an empty or blank text, list or object do not.
func says(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case json.Number:
		n, err := v.Float64()
		return err != nil || n != 0
	case string:
		return strings.TrimSpace(v) != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}

// refusalIn is the refusal that an object of an answer has, "" for none. One that is no text is one, too.
func refusalIn(object map[string]any) string {
	refusal := object["refusal"]
	text, _ := refusal.(string)
	if says(refusal) && text == "" {
		return "the answer has a refusal that is no text"
	}
	return strings.TrimSpace(text)
}

// spelledTwice says that an object has a key in two spellings: a reader that takes either case would read the other.
func spelledTwice(object map[string]any) string {
	names := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		folded := strings.ToLower(name)
		if names[folded] {
			return fmt.Sprintf("the answer cannot be read: it has the key %.40q in two spellings", name)
		}
		names[folded] = true
	}
	return ""
}

// The reasons for which answers end, in lower case, by what they mean: those of OpenAI's API and of servers that pass
// on their own (vLLM, TGI, Anthropic, Gemini, Cohere, Mistral, Together, Ollama). An answer that ends for another may
// not be whole: value.IsWholeEnd has those of whole ones.
var (
	cut = []string{"length", "limit", "max_tokens", "max_output_tokens", "max_completion_tokens", "max_new_tokens",
		"max_length", "token_limit", "context_length", "model_length", "model_context_window_exceeded", "truncated",
		"contextlengthreached", "maxpredictedtokensreached"}
	refuses = []string{"content_filter", "content_filtered", "safety", "image_safety", "refusal", "recitation",
		"blocklist", "prohibited_content", "spii", "sensitive", "error_toxic", "guardrail_intervened", "blocked",
		"refused",
		"rejected", "denied", "censored", "policy_violation", "content_policy_violation"}
)

// endOf tells what a finish_reason says of an answer: OK where it is whole, Truncated, Refused, or Failed for anything
// else.
func endOf(reason any) (Outcome, string) {
	text, ok := reason.(string)
	text = strings.ToLower(strings.TrimSpace(text))
	switch {
	case reason != nil && !ok:
		return Failed, fmt.Sprint(reason)
	case value.IsWholeEnd(text):
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
		refused += refusalIn(part)
		switch {
		case (kind == "text" || kind == "output_text") && isText:
			text += words
		case kind == "refusal":
			refused += " (refusal)"
		case kind == "thinking", kind == "reasoning", kind == "redacted_thinking":
		default:
			return "", "", fmt.Sprintf("the answer has a part of the type %.40q, which is not text", kind)
		}
	}
	return text, refused, ""
}
