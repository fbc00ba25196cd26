package endpoint_test

import (
	"strings"
	"testing"

	"rehydrate/internal/testkit/modelserver"
	"rehydrate/study/endpoint"
)

// TestChoices: an answer counts only where its choices, and the parts of each, can be read in one way, and end whole.
func TestChoices(t *testing.T) {
	const said = `"message":{"content":"said"}`
	for _, test := range []struct {
		name, body string
		want       endpoint.Outcome
		detail     string // in it
	}{
		{"no choice", `{"choices":[]}`, failed, "holds no choice"},
		{"choices that are no list", `{"choices":{}}`, failed, "not that of a chat"},
		{"a choice that is no object", `{"choices":[7]}`, failed, "of the 1 choices of the answer, 0 are the first"},
		{"no message", `{"choices":[{}]}`, failed, "not that of a chat"},
		{"one without an index", `{"choices":[{` + said + `}]}`, ok, ""},
		{"one that is not the first", `{"choices":[{"index":1,` + said + `}]}`, failed, "1 choices of the answer, 0"},
		{"two without an index", `{"choices":[{` + said + `},{` + said + `}]}`, failed, "2 choices of the answer, 0"},
		{"two first ones", `{"choices":[{"index":0,` + said + `},{"index":0,` + said + `}]}`, failed, "2 are the first"},
		{"two that say the same", `{"choices":[{"index":1,` + said + `},{"index":0,` + said + `}]}`, ok, ""},
		{"two that say other things", `{"choices":[{"index":0,` + said + `},{"index":1,"message":{"content":"no"}}]}`,
			failed, "do not say the same"},
		{"the first is refused", `{"choices":[{"index":0,"message":{"refusal":"no"}},{"index":1,` + said + `}]}`,
			refused, "no"},
		{"the second is refused", `{"choices":[{"index":0,` + said + `},{"index":1,"message":{"refusal":"no"}}]}`,
			refused, "no"},
		{"one of two is cut", `{"choices":[{"index":0,` + said + `},{"index":1,"finish_reason":"length",` + said + `}]}`,
			failed, "do not say the same"},

		{"another text beside the message", `{"choices":[{"text":"no",` + said + `}]}`, failed, "two texts"},
		{"another text of a stream", `{"choices":[{"delta":{"content":"no"},` + said + `}]}`, failed, "two texts"},
		{"the same text twice", `{"choices":[{"text":"said","delta":{"content":"said"},` + said + `}]}`, ok, ""},
		{"empty texts beside it", `{"choices":[{"text":" ","delta":{"content":""},` + said + `}]}`, ok, ""},

		{"the choice has an error", `{"choices":[{"error":{"message":"down"},` + said + `}]}`, failed, "reports an error"},
		{"it ends with an error", `{"choices":[{"finish_reason":"error",` + said + `}]}`, failed, "reports an error"},
		{"the error of the choice is none", `{"choices":[{"error":{},` + said + `}]}`, ok, ""},
		{"the answer is an error", `{"object":"error","choices":[{` + said + `}]}`, failed, "its answer is an error"},

		{"an unknown end", `{"choices":[{"finish_reason":"Pause_Turn",` + said + `}]}`, failed, `the reason "pause_turn"`},
		{"an end that is no word", `{"choices":[{"finish_reason":7,` + said + `}]}`, failed, `the reason "7"`},
		{"an end in another spelling", `{"choices":[{"finish_reason":" STOP ",` + said + `}]}`, ok, ""},
		{"cut by another name", `{"choices":[{"finish_reason":"MAX_TOKENS",` + said + `}]}`, truncated, "as many tokens"},
		{"a filter by a longer name", `{"choices":[{"finish_reason":"content_filter_image",` + said + `}]}`,
			refused, "content_filter_image"},
		{"blank and cut", `{"choices":[{"finish_reason":"length","message":{"content":" "}}]}`, truncated, "tokens"},
		{"blank", `{"choices":[{"finish_reason":"stop","message":{"content":" \n"}}]}`, empty, "finish_reason stop"},
		{"blank, in parts", `{"choices":[{"message":{"content":[]}}]}`, empty, "finish_reason"},

		{"the user's words", `{"choices":[{"message":{"role":"user","content":"said"}}]}`, failed, `role is "user"`},
		{"a role that is no word", `{"choices":[{"message":{"role":7,"content":"said"}}]}`, failed, `role is "7"`},
		{"Gemini's role", `{"choices":[{"message":{"role":"MODEL","content":"said"}}]}`, ok, ""},
		{"an empty role", `{"choices":[{"message":{"role":"","content":"said"}}]}`, ok, ""},
		{"a call of a tool", `{"choices":[{"message":{"content":"said","tool_calls":[{}]}}]}`, failed, "calls a tool"},
		{"a call of a function", `{"choices":[{"message":{"content":"said","function_call":{"name":"f"}}}]}`,
			failed, "calls a tool"},

		{"a refusal beside the words", `{"choices":[{"message":{"content":"said","refusal":" I will not "}}]}`,
			refused, "I will not"},
		{"a refusal of the choice", `{"choices":[{"refusal":"I will not",` + said + `}]}`, refused, "I will not"},
		{"a refusal that is no text", `{"choices":[{"message":{"content":"said","refusal":["no"]}}]}`,
			refused, "a refusal that is no text"},
		{"a blank refusal", `{"choices":[{"refusal":0,"message":{"content":"said","refusal":" "}}]}`, ok, ""},

		{"a key twice", `{"Choices":[],"choices":[{` + said + `}]}`, failed, `the key "choices" in two spellings`},
		{"a key of the choice twice", `{"choices":[{"Message":{},` + said + `}]}`, failed, `"message" in two spellings`},
		{"a key of the message twice", `{"choices":[{"message":{"Content":"no","content":"said"}}]}`,
			failed, `"content" in two spellings`},

		{"content that is a number", `{"choices":[{"message":{"content":7}}]}`, failed, "neither text nor parts"},
		{"a part that is a picture",
			`{"choices":[{"message":{"content":[{"type":"text","text":"said"},{"type":"image_url"}]}}]}`,
			failed, `the type "image_url", which is not text`},
		{"a part whose text is none", `{"choices":[{"message":{"content":[{"type":"text","text":7}]}}]}`,
			failed, `the type "text", which is not text`},
		{"a part that is a refusal",
			`{"choices":[{"message":{"content":[{"type":"text","text":"said"},{"type":"refusal"}]}}]}`,
			refused, "(refusal)"},
		{"a refusal of a part", `{"choices":[{"message":{"content":[{"type":"text","text":"said","refusal":"no"}]}}]}`,
			refused, "no"},

		{"cut, and refused beside it", `{"stop_reason":"refusal","choices":[{"finish_reason":"length",` + said + `}]}`,
			refused, "a refusal"},
		{"empty, and cut beside it", `{"truncated":true,"choices":[{"message":{"content":""}}]}`, truncated, "cut"},
		{"cut, and an error beside it", `{"errors":["down"],"choices":[{"finish_reason":"length",` + said + `}]}`,
			truncated, "as many tokens"},
		{"not the model's, and cut beside it", `{"truncated":true,"choices":[{"message":{"role":"user","content":"x"}}]}`,
			failed, "not the model's"},
		{"a filter that held it back", `{"choices":[{"content_filter_results":{"hate":{"filtered":true}},` + said + `}]}`,
			refused, "held back"},
		{"not JSON", `{"choices":`, failed, "cannot be read"},
	} {
		r := endpoint.ReadChat([]byte(test.body))
		if r.Outcome != test.want || !strings.Contains(r.Detail, test.detail) || (r.Detail == "") != (test.want == ok) {
			t.Errorf("%s: %s %q, want %s %q", test.name, r.Outcome, r.Detail, test.want, test.detail)
		}
	}
}

// TestTexts: the words of an answer are those of its text parts in their order, without thoughts. What ended for an
// unknown reason keeps them: they may have been paid for.
func TestTexts(t *testing.T) {
	for body, want := range map[string]string{
		`{"choices":[{"message":{"content":[{"type":"text","text":"a"},{"type":"output_text","text":"b"}]}}]}`: "ab",
		`{"choices":[{"message":{"content":[{"type":"thinking"},{"type":"reasoning","text":"c"},` +
			`{"type":"redacted_thinking"},{"type":"text","text":"a"}]}}]}`: "a",
		`{"choices":[{"index":1,"message":{"content":"b"}},{"index":0,"message":{"content":"b"}}]}`: "b",
		`{"choices":[{"finish_reason":"pause_turn","message":{"content":"half"}}]}`:                 "half",
		`{"choices":[{"finish_reason":"length","message":{"content":"half"}}]}`:                     "half",
		`{"choices":[{"message":{"role":"tool","content":"half"}}]}`:                                "half",
		`{"choices":[{"message":{"content":7}}]}`:                                                   "",
	} {
		if r := endpoint.ReadChat([]byte(body)); r.Text != want {
			t.Errorf("%s: the text is %q, want %q", body, r.Text, want)
		}
	}
}

// TestValuesOfMarks: a mark says something only with a value that does.
func TestValuesOfMarks(t *testing.T) {
	for fields, want := range map[string]endpoint.Outcome{
		`"code":1`: ok, `"code":2`: failed, `"code":99`: failed, `"code":100`: ok, `"code":299`: ok, `"code":300`: failed,
		`"code":"20001"`: failed, `"code":-1`: failed, `"code":"A5"`: ok, `"code":" 500 "`: failed, `"code":[500]`: ok,
		`"errors":0`: ok, `"errors":2`: failed, `"errors":"0"`: ok, `"errors":1e999`: failed, `"errors":{}`: ok,
		`"errors":["down"]`: failed, `"error_message":" "`: ok, `"errors":{"a":"down"}`: failed, `"errors":"none"`: ok,
		`"truncated":1`: truncated, `"truncated":2`: truncated, `"truncated":0`: ok, `"truncated":-1`: ok,
		`"partial":2`: ok, `"partial":1`: truncated, `"truncated":"yes"`: truncated, `"truncated":"no"`: ok,
		`"overflow":true`: truncated, `"overflow":3`: truncated, `"overflow":0`: ok, `"overflow":"rolling"`: ok,
		`"done":"no"`: truncated, `"done":"FALSE"`: truncated, `"done":0`: ok, `"success":"false"`: failed,
		`"context_shifts":0`: ok, `"context_shifts":2`: truncated, `"context_shift":"twice"`: truncated,
		`"refusal_reason":7`: ok, `"refused":true`: refused, `"is_blocked":7`: refused, `"is_blocked":0`: ok,
		`"dropped":{"part":"the image"}`: truncated, `"dropped":{"part":"seed"}`: ok, `"dropped":["x","photo"]`: truncated,
		`"dropped":7`: ok, `"warning":7`: ok, `"warning":{"a":["the prompt was cut off"]}`: truncated,
		`"note":{"text":"the image was dropped"}`: ok, `"note":7`: ok,
		`"note":["hello","the image was dropped"]`:  truncated,
		`"x":[{"y":1},{"is_blocked":true},{"z":2}]`: refused, `"x":[{"is_blocked":true},{"truncated":true}]`: refused,
		`"a":{"truncated":true},"b":{"code":500}`: truncated, `"a":{"code":500},"b":{"truncated":true}`: truncated,
		`"settings":{"truncated":true}`: ok, `"skipped":"yes"`: failed, `"skipped":0`: ok,
	} {
		body := `{` + fields + `,"choices":[{"message":{"content":"said"}}]}`
		if got := endpoint.ReadAnswer(body, false); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

// TestMarked: what a moderation's answer that was kept says of itself, with the reason.
func TestMarked(t *testing.T) {
	for body, want := range map[string]endpoint.Outcome{
		`{}`: ok, `{"results":[{"flagged":true}]}`: ok, `[]`: ok, `{"results":[{"flagged":true,"action":"block"}]}`: ok,
		`{"truncated":true}`: truncated, `{"results":[{"skipped":true}]}`: failed, `{"refused":true}`: refused,
		`{"a":1,"a":2}`: failed, `{`: failed,
	} {
		if got, why := endpoint.Marked([]byte(body)); got != want || (why == "") != (want == ok) {
			t.Errorf("Marked(%s) = %s, %q, want %s", body, got, why, want)
		}
	}
}

// TestSpoken: what counts of an answer is what the model says outside its thoughts.
func TestSpoken(t *testing.T) {
	const thinking = "it ends while the model still thinks"
	for _, test := range []struct{ name, text, end, rest, why string }{
		{"no thought", "said", "", "said", ""},
		{"a thought first", "<think>it may be</think>said", "", "\nsaid", ""},
		{"a thought between", "first<think>it may be</think>then", "", "first\nthen", ""},
		{"a thought that the prompt began", "it may be</think>said", "", "said", ""},
		{"an end that has no beginning, twice", "one</think>two</think>said", "", "two\nsaid", ""},
		{"a thought, and another end", "<think>one</think>two</think>said", "", "\ntwo\nsaid", ""},
		{"it ends in a thought", "said<think>it may be", "", "", thinking},
		{"nothing after the thought", "said<think>it may be</think> \n", "", "", ""},
		{"the final channel", "<|channel|>analysis<|message|>hm<|start|>assistant<|channel|>final<|message|>said",
			"", "\nsaid", ""},
		{"words before the final channel", "hm<|channel|>final<|message|>said", "", "said", ""},
		{"words after a thought, before the final channel", "hm</think>first<|channel|>final<|message|>said",
			"", "first\nsaid", ""},
		{"any case", "<THINK>it may be</Think>said", "", "\nsaid", ""},
		{"the own end of a model", "it may be [over] no [over]said", "[over]", "said", ""},
		{"the own end is missing", "said", "[over]", "", thinking + `: it has no "[over]"`},
		{"the own end, then another thought", "a[over]<think>b</think>said", "[over]", "\nsaid", ""},
	} {
		if rest, why := endpoint.Spoken(test.text, test.end); rest != test.rest || why != test.why {
			t.Errorf("%s: %q, %q, want %q, %q", test.name, rest, why, test.rest, test.why)
		}
	}
}

// TestParseDialect: a server is named by one of the names that help lists.
func TestParseDialect(t *testing.T) {
	for _, d := range endpoint.Dialects {
		if got, err := endpoint.ParseDialect(string(d)); got != d || err != nil {
			t.Errorf("ParseDialect(%q) = %q, %v", d, got, err)
		}
	}
	for _, name := range []string{"", "OpenAI", "tgi"} {
		if got, err := endpoint.ParseDialect(name); err == nil || !strings.Contains(err.Error(), "openai, vllm") {
			t.Errorf("ParseDialect(%q) = %q, %v", name, got, err)
		}
	}
}

// TestNotAsked: a request that cannot be written, or that a server on this machine would hand on, is not sent.
func TestNotAsked(t *testing.T) {
	server := modelserver.New(t, "vllm")
	s := open(t, endpoint.Options{URL: server.URL})
	for name, tt := range map[string]struct {
		chat endpoint.Chat
		want string
	}{
		"a parameter that none is": {endpoint.Chat{Model: "m", Omit: []string{"n"}}, `no parameter is called "n"`},
		"a schema that is no JSON": {endpoint.Chat{Model: "m", Schema: &endpoint.Schema{JSON: []byte("{")}},
			"write the request"},
		"a model of Ollama's maker": {endpoint.Chat{Model: "x:120b-Cloud"}, "elsewhere"},
		"its plain tag":             {endpoint.Chat{Model: "x:cloud"}, "elsewhere"},
	} {
		if r, err := s.Chat(t.Context(), tt.chat); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if n := len(server.Requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}
