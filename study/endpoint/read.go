package endpoint

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"rehydrate/internal/jsonscan"
)

// read reads an answer that says it is a good one, without trusting it.
func (s *Server) read(header http.Header, body []byte, read func(map[string]any) Reply) Reply {
	if strings.HasPrefix(header.Get("Content-Type"), "text/event-stream") {
		return Reply{Outcome: Failed, Detail: "the server streams its answer, which was not asked for"}
	}
	v, err := jsonscan.Decode(body)
	if _, twice := errors.AsType[*jsonscan.Twice](err); twice {
		// Which of the two counts would be chance.
		return Reply{Outcome: Failed, Detail: s.o.Scrubber.Printable("the answer cannot be read: " + err.Error())}
	}
	fields, _ := v.(map[string]any) // none where the answer has another form
	r := read(fields)
	e, told := readSaid(body), says(fields["error"])
	switch { // some gateways report errors with status 200
	case told && e.isPolicy():
		r.Outcome, r.Detail = Refused, cmp.Or(e.message, "a content policy")
	case told:
		r.Outcome, r.Detail = Failed, cmp.Or(e.message, "the server reports an error in its answer")
	case e.message != "" && r.Outcome == Failed:
		r.Detail = e.message
	}
	r.Page = isPage(header, body)
	model, _ := fields["model"].(string)
	// Once more: in JSON the key can be spelled in ways that its body did not show.
	r.Text, model = s.o.Scrubber.Scrub(r.Text), s.o.Scrubber.Scrub(model)
	r.Detail, r.Model, r.Raw = s.o.Scrubber.Printable(r.Detail), model, s.raw(body)
	r.Usage, r.Contradicts = usageOf(fields)
	return r
}

// The names of counts of tokens, in the folded form: OpenAI's, Anthropic's and those of OpenAI's Responses, Ollama's,
// Gemini's and llama.cpp's. Anthropic counts what it read from a cache, or wrote to it, beside the rest of the prompt.
var (
	promptCounts     = []string{"prompttokens", "inputtokens", "promptevalcount", "prompttokencount", "promptn"}
	cacheCounts      = []string{"cachecreationinputtokens", "cachereadinputtokens"}
	completionCounts = []string{"completiontokens", "outputtokens", "evalcount", "candidatestokencount", "predictedn"}
	totalCounts      = []string{"totaltokens", "totaltokencount"}
)

// The parts of counts that stand beside them, in the folded form; and the objects that hold more of them.
var (
	promptParts       = []string{"imagetokens", "cachedtokens", "cachedcontenttokencount", "promptcachehittokens"}
	completionParts   = []string{"reasoningtokens", "thoughtstokencount"}
	promptDetails     = key(`^(?:prompt|input)tokens?details$`)
	completionDetails = key(`^(?:completion|output)tokens?details$`)
	kinds             = []string{"texttokens", "imagetokens", "audiotokens", "videotokens"} // none is in two
)

// usageOf is what an answer says that it took, in the first place where it counts something. contradicts reports that a
// part is larger than its whole: then it counts beside it.
func usageOf(fields map[string]any) (u Usage, contradicts bool) {
	groq, _ := fields["x_groq"].(map[string]any)
	for _, place := range []any{fields["usage"], groq["usage"], fields["usageMetadata"], fields, fields["timings"]} {
		counts, _ := place.(map[string]any)
		u, contradicts = usageAt(counts)
		if u != (Usage{}) {
			break
		}
	}
	return u, contradicts
}

// usageAt is what the counts of one object come to.
func usageAt(counts map[string]any) (u Usage, contradicts bool) {
	u = Usage{Prompt: countOf(counts, promptCounts), Completion: countOf(counts, completionCounts)}
	cached, whole := 0, false
	for name, value := range counts {
		key := folded(name)
		whole = whole || key == promptCounts[0]
		if slices.Contains(cacheCounts, key) {
			cached += count(value)
		}
	}
	if !whole { // prompt_tokens has them
		u.Prompt += cached
	}
	// Gemini counts thoughts beside the answer.
	if candidates := countOf(counts, []string{"candidatestokencount"}); candidates == u.Completion {
		u.Completion += countOf(counts, []string{"thoughtstokencount"})
	}
	prompt := u.Prompt
	if u.Prompt > 0 { // else the estimate is nearer than a part of what was sent
		u.Prompt = withParts(u.Prompt, max(cached, countOf(counts, promptParts)), counts, promptDetails)
	}
	// Some servers count thoughts in the sum alone: what is in no part was answered, and has the answer's price.
	u.Completion = max(u.Completion, countOf(counts, totalCounts)-u.Prompt)
	completion := u.Completion
	u.Completion = withParts(u.Completion, countOf(counts, completionParts), counts, completionDetails)
	return u, u.Prompt > prompt || u.Completion > completion
}

// withParts is a count, or what its parts come to where they are more: one that is larger than the whole cannot be in
// it, and so is counted beside it. part is the largest that is known of them.
func withParts(whole, part int, counts map[string]any, details *regexp.Regexp) int {
	sum := 0
	for name, value := range counts {
		parts, _ := value.(map[string]any)
		if !details.MatchString(folded(name)) {
			continue
		}
		for of, n := range parts {
			key := folded(of)
			switch {
			case slices.Contains(kinds, key):
				sum += count(n)
				if key != kinds[0] {
					part = max(part, count(n))
				}
			case strings.HasSuffix(key, "tokens"):
				part = max(part, count(n))
			}
		}
	}
	if part > whole {
		return max(whole+part, sum)
	}
	return max(whole, sum)
}

// counted is the reply with what a body says that it took, which can stand beside an error.
func (r Reply) counted(body []byte) Reply {
	v, err := jsonscan.Decode(body)
	fields, _ := v.(map[string]any)
	if err == nil {
		r.Usage, r.Contradicts = usageOf(fields)
	}
	return r
}

// isPage reports whether an answer is a web page, as something that is no server of models sends.
func isPage(header http.Header, body []byte) bool {
	return strings.HasPrefix(header.Get("Content-Type"), "text/html") ||
		bytes.HasPrefix(bytes.TrimSpace(body), []byte("<"))
}

func failed(format string, args ...any) Reply {
	return Reply{Outcome: Failed, Detail: fmt.Sprintf(format, args...)}
}

// ReadChat reads the body of an answer to a Chat that somebody kept, by the rules of Server.Chat.
func ReadChat(body []byte) Reply {
	v, err := jsonscan.Decode(body)
	if err != nil {
		return failed("the answer cannot be read: %s", err)
	}
	fields, _ := v.(map[string]any)
	return readChat(fields, look{}) // whether a picture was sent is not known
}

// ReadModeration reads the body of an answer to a Moderation that somebody kept, by the rules of Server.Moderate.
func ReadModeration(body []byte) Reply {
	v, err := jsonscan.Decode(body)
	if err != nil {
		return failed("the answer cannot be read: %s", err)
	}
	fields, _ := v.(map[string]any)
	return readModeration(fields, false)
}

// readModeration reads the answer to a Moderation. It is OK only if it is one result, no other verdict
// contradicts it, and nothing in it says that the service did not judge, or not all that it was sent, such as a
// picture.
func readModeration(fields map[string]any, pictures bool) Reply {
	const other = "the answer is not that of a moderation"
	results, _ := fields["results"].([]any)
	if len(results) > 1 {
		return failed("the answer holds %d results, where one was asked for", len(results))
	}
	if len(results) == 0 {
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
	mark, why := (look{judges: true, pictures: pictures}).marked(fields)
	switch {
	case says(result["error"]) || says(fields["error"]):
		return failed("the server reports an error in its answer")
	case mark != OK:
		return Reply{Outcome: mark, Detail: why}
	}
	if why := otherVerdict(fields, result); why != "" {
		return failed("%s", why)
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

// count is a number of tokens that a server names, as a number or its text. One that cannot be is none, so that sums
// stay sound.
func count(v any) int {
	if n, ok := numeral(v); ok && n >= 0 && n <= 1e9 {
		return int(n)
	}
	return 0
}

// countOf is the largest count that an object has under one of the names, 0 for none.
func countOf(fields map[string]any, names []string) (n int) {
	for name, value := range fields {
		if slices.Contains(names, folded(name)) {
			n = max(n, count(value))
		}
	}
	return n
}
