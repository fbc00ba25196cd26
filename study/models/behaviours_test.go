package models

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/internal/testkit/modelserver"
	"rehydrate/manifest"
	"rehydrate/study/endpoint"
)

// The right answer in the tests below, and the one that must never be a prediction. Right is of the class SS4+SS5.
const right, wrong = `{"severity":"Suicide death"}`, `{"severity":"Suicide ideation"}`

// A behaviour is how a server answers a question about severity, and what comes of it: the prediction SS4+SS5, or the
// outcome of an answer that is none, or for what ends the command the status of its end.
type behaviour struct {
	name     string
	play     modelserver.Play
	want     string
	thinkEnd string
	prose    bool
}

// withProse says that words around the object are expected.
func withProse(b behaviour) behaviour {
	b.prose = true
	return b
}

// saying answers with these words, and then stops.
func saying(name, want, words string) behaviour {
	return behaviour{name: name, want: want, play: modelserver.Says(words, "stop")}
}

// sending answers with a body.
func sending(name, want, body string, headers ...string) behaviour {
	return behaviour{name: name, want: want, play: modelserver.Status(http.StatusOK, body, headers...)}
}

// failing answers with an error.
func failing(name, want string, status int, body string, headers ...string) behaviour {
	return behaviour{name: name, want: want, play: modelserver.Status(status, body, headers...)}
}

// chat is the body of an answer whose message has these fields.
func chat(fields string) string {
	return `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant",` + fields + `}}]}`
}

func quoted(text string) string {
	b, _ := json.Marshal(text) // a string always can be
	return string(b)
}

// TestBehaviours: however a server answers, no label is a prediction but the one that the model gives. Each of the
// others has an outcome or ends the command, with a reason.
func TestBehaviours(t *testing.T) {
	tasks, err := Tasks(manifest.FigSIM(), []string{"severity"}, "")
	testkit.OK(t, err)
	ws := rows(t, 2) // one of the split test
	all := slicesOf(readable(), unreadable(), unusable())
	predictions, reasons := 0, 0
	for i, b := range all {
		model := modelserver.New(t, "vllm")
		model.Play = b.play
		server, err := endpoint.Open(endpoint.Options{URL: model.URL})
		testkit.OK(t, err)
		task := tasks[0]
		task.ThinkEnd, task.Prose = b.thinkEnd, b.prose
		c := &Classification{Server: server, Pictures: &Pictures{Store: ws.store()}, Tasks: []Task{task}, Split: "test",
			Runs: 1,
			Seed: int64(i), Warn: func(string) {}, Chat: endpoint.Chat{Model: "m", Dialect: endpoint.VLLM,
				Decoding: endpoint.Decoding{MaxTokens: 128, Temperature: new(0.0)}}}
		w := &Work{Store: ws.store(), Model: "m", Now: newDesk(ws).Now, Split: "test", Questions: c.Questions,
			Concurrency: 1}
		done, err := w.Do(t.Context(), nil)
		if err != nil {
			reasons++
			if got := kindOf(err); got != b.want || err.Error() == "" {
				t.Errorf("%s: it ends with %s (%v), want %s", b.name, got, err, b.want)
			}
			continue
		}
		var line struct{ Severity *string }
		testkit.OK(t, json.Unmarshal([]byte(written(t, c, done)["predictions.jsonl"]), &line))
		a, _ := done.Answer(done.Questions[0], done.Rows[0])
		got := a.Outcome
		if line.Severity != nil {
			got = *line.Severity
		}
		if a.Outcome == string(endpoint.Failed) {
			reasons++
		} else {
			predictions++
		}
		if got != b.want || (a.Detail == "") != (line.Severity != nil) {
			t.Errorf("%s: %s (%s), want %s", b.name, got, a.Detail, b.want)
		}
	}
	t.Logf("%d behaviours: %d end with a prediction or its outcome, %d with a reason", len(all), predictions, reasons)
	if predictions < 64 || reasons < 28 {
		t.Errorf("%d and %d behaviours, want 64 and 28", predictions, reasons)
	}
}

func slicesOf(lists ...[]behaviour) (all []behaviour) {
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

// kindOf names the error that ends a command.
func kindOf(err error) string {
	var denied *endpoint.Denied
	var unsupported *endpoint.Unsupported
	var unreachable *endpoint.Unreachable
	switch {
	case errors.As(err, &denied):
		return "denied"
	case errors.As(err, &unsupported):
		return "unsupported " + unsupported.Parameter
	case errors.As(err, &unreachable) && unreachable.Nobody:
		return "nobody there"
	case errors.As(err, &unreachable):
		return "unreachable"
	}
	return fmt.Sprintf("%T", err)
}

// readable are answers that say one thing.
func readable() []behaviour {
	const ok = "SS4+SS5"
	think := func(begin, end string) string {
		return begin + "It could be " + wrong + ", or " + wrong + "?" + end + "\n" + right
	}
	custom := saying("a mark of the user's", ok, think("", "<<DONE>>"))
	custom.thinkEnd = "<<DONE>>"
	twice := saying("a mark of the user's before a known one", ok, wrong+"<<DONE>><think>"+wrong+"</think>"+right)
	twice.thinkEnd = "<<DONE>>"
	return []behaviour{
		saying("plain", ok, right),
		saying("on several lines", ok, "{\n  \"severity\" : \"Suicide death\"\n}\n"),
		saying("a label in lower case", ok, `{"severity":"suicide death"}`),
		saying("a label in upper case, with spaces", ok, `{"severity":" SUICIDE DEATH "}`),
		saying("a code", ok, `{"severity":"SS5"}`),
		saying("the name of the class", ok, `{"severity":"Suicide attempts/Suicide death"}`),
		saying("the other label of the class", ok, `{"severity":"Suicide attempts"}`),
		saying("the key in upper case", ok, `{"SEVERITY":"Suicide death"}`),
		saying("a list of one", ok, `{"severity":["Suicide death"]}`),
		saying("a list of one twice", ok, `{"severity":["Suicide death","SS5"]}`),
		saying("escapes", ok, `{"sever\u0069ty":"Suicide\u0020death"}`),
		saying("a fence", ok, "```json\n"+right+"\n```"),
		saying("a fence without a language", ok, "```\n"+right+"\n```\n"),
		withProse(saying("words around a fence", ok, "Here it is:\n```\n"+right+"\n```\nThat is all.")),
		saying("a fence without line ends", ok, "```json "+right+"```"),
		saying("marks of a format", ok, "<|begin_of_box|>"+right+"<|end_of_box|></s>"),
		saying("a fence of text", ok, "```text\n"+right+"\n```"),
		saying("a fence in upper case", ok, "```JSON\n"+right+"\n```"),
		saying("the marks of a turn", ok, "<|im_start|>assistant\n"+right+"<|im_end|>"),
		saying("the mark of a turn alone", ok, "<|assistant|>\n"+right+"<|endoftext|>"),
		saying("Llama's marks", ok, "<|start_header_id|>assistant<|end_header_id|>\n\n"+right+"<|eot_id|>"),
		saying("Command A with its answer's marks", ok,
			think("<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>")+"<|END_RESPONSE|>"),
		saying("tags of an answer", ok, "<think>x</think>\n<answer>\n"+right+"\n</answer>"),
		sending("a role", ok,
			`{"choices":[{"finish_reason":"STOP","message":{"role":"Assistant","tool_calls":[],"content":`+quoted(right)+`}}]}`),
		{name: "end_turn", want: ok, play: modelserver.Says(right, "end_turn")},
		{name: "eos", want: ok, play: modelserver.Says(right, "eos")},
		{name: "COMPLETE", want: ok, play: modelserver.Says(right, "COMPLETE")},
		withProse(saying("prose before and after", ok, "Here it is: "+right+" I hope it helps.")),
		withProse(saying("prose with braces before", ok, "The set {a, b} of {severity} labels: "+right)),
		withProse(saying("prose with braces after", ok, right+" I hope {this} helps.")),
		saying("a byte order mark", ok, "\ufeff"+right),
		saying("without its last brace", ok, `{"severity":"Suicide death"`),
		saying("without its last brace, and a line end", ok, "```json\n{\"severity\": \"Suicide death\"\n"),
		withProse(saying("in a list", ok, "["+right+"]")),
		withProse(saying("in another object", ok, `{"answer":`+right+`}`)),
		withProse(saying("the same twice", ok, right+" As I said: "+right)),
		withProse(saying("the same in two spellings", ok, right+` {"Severity":["ss5"]}`)),
		withProse(saying("after another object", ok, `{"picture":"a rope"} `+right)),
		saying("<think>", ok, think("<think>", "</think>")),
		saying("</think> alone", ok, think("", "</think>")),
		saying("[THINK]", ok, think("[THINK]", "[/THINK]")),
		saying("◁think▷", ok, think("◁think▷", "◁/think▷")),
		saying("<thinking>", ok, think("<thinking>", "</thinking>")),
		saying("<reasoning>", ok, think("<reasoning>", "</reasoning>")),
		saying("<seed:think>", ok, think("<seed:think>", "</seed:think>")),
		saying("<THINK>", ok, think("<THINK>", "</THINK>")),
		saying("harmony", ok, think("<|channel|>analysis<|message|>",
			"<|end|><|start|>assistant<|channel|>final<|message|>")+"<|return|>"),
		saying("harmony from its start", ok, think("<|start|>assistant<|channel|>analysis<|message|>",
			"<|end|><|start|>assistant<|channel|>final<|message|>")),
		saying("harmony with a constraint", ok, think("<|channel|>analysis<|message|>",
			"<|end|><|channel|>final <|constrain|>json<|message|>")),
		custom, twice,
		sending("a byte order mark before the body", ok, "\ufeff"+chat(`"content":`+quoted(right))),
		sending("parts", ok, chat(`"content":[{"type":"text","text":`+quoted(right)+`}]`)),
		sending("parts that belong together", ok,
			chat(`"content":[{"type":"text","text":"{\"severity\":"},{"type":"text","text":"\"SS5\"}"}]`)),
		sending("parts with a thought", ok,
			chat(`"content":[{"type":"thinking","thinking":[{"type":"text","text":`+quoted(wrong)+`}]},{"type":"text","text":`+quoted(right)+`}]`)),
		sending("thoughts in a field of their own", ok,
			chat(`"reasoning_content":`+quoted(wrong)+`,"reasoning":`+quoted(wrong)+`,"content":`+quoted(right))),
		sending("choices that agree, out of order", ok,
			`{"choices":[{"index":1,"message":{"content":`+quoted(right)+`}},`+
				`{"index":0,"message":{"content":`+quoted(right)+`}}]}`),
		{name: "done", want: ok, play: modelserver.Says(right, "done")},
		saying("a fence of tildes", ok, "~~~json\n"+right+"\n~~~"),
		saying("a long fence", ok, "````json5\n"+right+"\n````"),
		saying("Granite", ok, "<think>"+wrong+"</think><response>"+right+"</response>"),
		saying("Gemma's channel", ok, think("<|channel>thought\n", "<channel|>")+"<turn|>"),
		saying("Gemma's channel without a thought", ok, "<|channel>thought\n<channel|>"+right),
		saying("MedGemma", ok, think("<unused94>thought\n", "<unused95>")),
		saying("Command A", ok, think("<|START_THINKING|>", "<|END_THINKING|>")+"<|END_RESPONSE|>"),
		saying("marks that begin and end", ok, think("<|think_start|>", "<|think_end|>")),
		saying("Apertus", ok, think("<|inner_prefix|>", "<|inner_suffix|>")),
		saying("two thoughts", ok, "<think>"+wrong+"</think>\n<think>"+wrong+"</think>"+right),
		sending("a text beside the message that agrees", ok,
			`{"choices":[{"text":`+quoted(right)+`,"delta":{"content":""},"message":{"content":`+
				quoted(right)+`}}]}`),
		sending("fields that say nothing", ok,
			`{"error":null,"status":"completed","truncated":false,"prompt_filter_results":[{"content_filter_results":`+
				`{"hate":{"filtered":false,"severity":"safe"}}}],"choices":[{"index":0,"finish_reason":"stop","stop_reason":128009,`+
				`"native_finish_reason":"STOP","content_filter_results":{"self_harm":{"filtered":false,"severity":"high"}},`+
				`"message":{"refusal":false,"content":`+quoted(right)+`}}]}`),
		sending("a choice without an index", ok, `{"choices":[{"message":{"content":`+quoted(right)+`}}]}`),
		sending("another model, no usage", ok,
			`{"model":7,"usage":[],"error":null,"choices":[{"index":0,"finish_reason":null,"message":{"content":`+quoted(right)+`}}]}`),
		sending("as plain text", ok, chat(`"content":`+quoted(right)), "Content-Type", "text/plain"),
		sending("a lone surrogate beside the answer", ok, chat(`"content":`+quoted(right)+`,"note":"\ud800"`)),
	}
}

// unreadable are answers that say nothing, something else, or more than one thing.
func unreadable() []behaviour {
	const unknown, notJSON = string(UnknownLabel), string(NotJSON)
	ends := saying("a mark of the user's that never comes", notJSON, right)
	ends.thinkEnd = "<<DONE>>"
	var taken atomic.Int64
	return []behaviour{
		saying("a wrong label", unknown, `{"severity":"Very severe"}`),
		saying("a part of a label", unknown, `{"severity":"Suicide"}`),
		saying("more than a label", unknown, `{"severity":"Suicide death or ideation"}`),
		saying("a label in German", unknown, `{"severity":"Suizidgedanken"}`),
		saying("two labels", unknown, `{"severity":["None","Suicide death"]}`),
		saying("a right and a wrong label", unknown, `{"severity":["Suicide death","Very severe"]}`),
		saying("no label", unknown, `{"severity":[]}`),
		saying("an empty label", unknown, `{"severity":""}`),
		saying("null", unknown, `{"severity":null}`),
		saying("a number", unknown, `{"severity":5}`),
		saying("labels as keys", unknown, `{"severity":{"Suicide death":true}}`),
		saying("a lone surrogate in the label", unknown, `{"severity":"Suicide death\ud800"}`),
		sending("bad UTF-8 in the label", unknown, chat(`"content":"{\"severity\":\"Suicide death`+"\xff"+`\"}"`)),
		saying("NaN", notJSON, `{"severity":NaN}`),
		saying("NaN beside it", notJSON, `{"severity":"Suicide ideation","score":NaN}`),
		saying("prose around the object", notJSON, "Here it is: "+wrong+" I hope it helps."),
		saying("a refusal before the object", notJSON, "I am sorry, I cannot help with that. "+wrong),
		saying("a refusal after the object", notJSON, wrong+"\nI cannot view images."),
		saying("a refusal before a fence", notJSON, "I cannot do it.\n```json\n"+wrong+"\n```"),
		saying("the form in a refusal", notJSON, "I cannot do it. The format would be "+wrong),
		saying("a denial", notJSON, "I would NOT say "+wrong+". The right answer is None."),
		saying("a refusal as another key", notJSON, `{"severity":"Suicide ideation","note":"I cannot view images"}`),
		withProse(saying("a refusal as another key, with words around it", notJSON,
			`So: {"severity":"Suicide ideation","note":"I cannot view images"}`)),
		saying("with other keys", notJSON, `{"reason":"a noose {]","severity":"Suicide ideation","confidence":0.9}`),
		saying("the same twice, and no words", notJSON, wrong+wrong),
		saying("an object in a list", notJSON, "["+wrong+"]"),
		saying("an object in another", notJSON, `{"answer":`+wrong+`}`),
		saying("prose", notJSON, "The severity is Suicide death."),
		saying("a refusal in words", notJSON, "I'm sorry, but I can't help with that."),
		saying("another key", notJSON, `{"label":"Suicide death"}`),
		saying("second thoughts", notJSON, "At first I thought "+wrong+". On reflection the answer is "+right),
		saying("third thoughts", notJSON, right+wrong+right),
		saying("a key twice", notJSON, `{"severity":"Suicide ideation","severity":"Suicide death"}`),
		saying("a key twice, once in escapes", notJSON, `{"severity":"Suicide ideation","\u0073everity":"Suicide death"}`),
		saying("a key in two spellings", notJSON, `{"severity":"Suicide ideation","Severity":"Suicide death"}`),
		saying("another answer inside", notJSON, `{"severity":"Suicide ideation","final":`+right+`}`),
		saying("two of a list", notJSON, "["+wrong+","+right+"]"),
		saying("cut in a list", notJSON, `{"severity":["Suicide ideation"`),
		saying("cut in a label", notJSON, `{"severity":"Suicide ideation`),
		saying("cut after a comma", notJSON, `{"severity":"Suicide ideation",`),
		saying("cut two levels deep", notJSON, `{"answer":{"severity":"Suicide ideation"`),
		saying("a second answer that is cut", notJSON, wrong+` No: {"severity":"Suicide d`),
		saying("a thought after it", notJSON, wrong+"<think>No, that is not it"),
		saying("<think> without an end", notJSON, "<think>"+wrong),
		saying("[THINK] without an end", notJSON, "[THINK]"+wrong),
		saying("◁think▷ without an end", notJSON, "◁think▷"+wrong),
		saying("<thinking> without an end", notJSON, "<thinking>"+wrong),
		saying("a second thought without an end", notJSON, "<think>x</think><think>"+wrong),
		saying("an end of thoughts twice", notJSON, "<think>"+wrong+"</think>"+right+"</think>"+right),
		saying("another answer between two ends", notJSON, "<think>a</think>"+wrong+"</think>"+right),
		saying("an answer between two ends that have no beginning", notJSON, wrong+"</think>"+wrong+"</think>"+right),
		saying("another answer between two thoughts", notJSON, "<think>a</think>"+wrong+"<think>b</think>"+right),
		saying("another answer before a thought", notJSON, wrong+"<think>b</think>"+right),
		withProse(saying("another answer between two thoughts, with prose", notJSON,
			"<think>a</think>"+wrong+"<think>b</think>"+right)),
		saying("a second thought after an answer, and no second answer", notJSON,
			wrong+"<think>no, that is not it</think>\n"),
		saying("two final channels", notJSON,
			"<|channel|>final<|message|>"+wrong+"<|end|><|start|>assistant<|channel|>final<|message|>"+right),
		saying("Gemma's channel without an end", notJSON, "<|channel>thought\n"+wrong),
		saying("MedGemma without an end", notJSON, "<unused94>thought\n"+wrong),
		saying("Command A without an end", notJSON, "<|START_THINKING|>"+wrong),
		saying("a thought in marks, and no answer", notJSON, "<|think_start|>"+wrong+"<|think_end|>"),
		saying("a thought in marks of an unknown form", notJSON, "<|my_thought_opens|>"+wrong+"<|my_thought_closes|>"),
		saying("Command A without an answer", notJSON, "<|START_THINKING|>"+wrong+"<|END_THINKING|>"),
		saying("two tags of answers", notJSON, "<response>"+wrong+"</response><response>"+right+"</response>"),
		saying("two fences of tildes", notJSON, "~~~\n"+wrong+"\n~~~\n~~~\n"+right+"\n~~~"),
		saying("a word in a fence", notJSON, "```incorrect "+wrong+"```"),
		saying("the mark of another role", notJSON, "<|user|>"+wrong),
		saying("a mark that denies it", notJSON, wrong+"<|wrong|>"),
		saying("words after a fence of tildes", notJSON, "~~~\n"+wrong+"\n~~~\nBut I cannot see it."),
		saying("harmony without a final channel", notJSON, "<|channel|>analysis<|message|>"+wrong),
		ends,
		saying("Python", notJSON, `{'severity': 'Suicide ideation'}`),
		saying("Python, then JSON", notJSON, `{'severity': 'Suicide death'} or `+wrong),
		saying("without quotes", notJSON, `{severity: Suicide ideation}`),
		saying("a comma at the end", notJSON, `{"severity":"Suicide ideation",}`),
		saying("a comment", notJSON, `{"severity":"Suicide ideation" // "Suicide death" otherwise`+"\n}"),
		saying("JSON in a string", notJSON, `{"answer":`+quoted(wrong)+`}`),
		saying("the schema before it", notJSON, `{"properties":{"severity":{"type":"string"}}} `+wrong),
		saying("the prompt before it", notJSON, `{"severity": "label"} `+wrong),
		saying("many braces", notJSON, strings.Repeat("{", 1<<16)+wrong),
		saying("many beginnings", notJSON, strings.Repeat(`{"a":`, 1<<14)+wrong),
		sending("a list of parts that ends early", notJSON,
			chat(`"content":[{"type":"text","text":"{\"severity\":[\"Suicide ideation\""}]`)),
		{name: "as many tokens as were allowed", want: string(endpoint.Truncated), play: modelserver.Says(wrong, "length")},
		{name: "LENGTH", want: string(endpoint.Truncated), play: modelserver.Says(wrong, "LENGTH")},
		{name: "max_tokens", want: string(endpoint.Truncated), play: modelserver.Says(wrong, "max_tokens")},
		{name: "MAX_TOKENS", want: string(endpoint.Truncated), play: modelserver.Says(wrong, "MAX_TOKENS")},
		{name: "model_length", want: string(endpoint.Truncated), play: modelserver.Says(wrong, "model_length")},
		{name: "SAFETY", want: string(endpoint.Refused), play: modelserver.Says(wrong, "SAFETY")},
		{name: "refusal", want: string(endpoint.Refused), play: modelserver.Says(wrong, "refusal")},
		{name: "Content_Filter", want: string(endpoint.Refused), play: modelserver.Says(wrong, "Content_Filter")},
		{name: "cut at 128 tokens", want: string(endpoint.Truncated),
			play: modelserver.Says(`{"severity":"Suicide d`, "length")},
		{name: "a refusal", want: string(endpoint.Refused), play: modelserver.Refusal},
		sending("a refusal beside an answer", string(endpoint.Refused), chat(`"refusal":"no","content":`+quoted(wrong))),
		sending("a refusal as a part", string(endpoint.Refused), chat(`"content":[{"type":"refusal","refusal":"no"},{"type":"text","text":`+quoted(wrong)+`}]`)),
		sending("a refusal that is true", string(endpoint.Refused), chat(`"refusal":true,"content":`+quoted(wrong))),
		sending("a refusal that is an object", string(endpoint.Refused),
			chat(`"refusal":{"reason":"no"},"content":`+quoted(wrong))),
		sending("a refusal of the choice", string(endpoint.Refused),
			`{"choices":[{"refusal":"no","message":{"content":`+quoted(wrong)+`}}]}`),
		sending("a refusal in a part of text", string(endpoint.Refused),
			chat(`"content":[{"type":"text","text":`+quoted(wrong)+`,"refusal":"no"}]`)),
		sending("a filter of the answer", string(endpoint.Refused),
			`{"choices":[{"finish_reason":"stop","content_filter_results":`+
				`{"self_harm":{"filtered":true,"severity":"high"}},"message":{"content":`+quoted(wrong)+`}}]}`),
		sending("a filter of the prompt", string(endpoint.Refused),
			`{"prompt_filter_results":[{"prompt_index":0,"content_filter_results":`+
				`{"jailbreak":{"filtered":true,"detected":true}}}],"choices":[{"message":{"content":`+quoted(wrong)+`}}]}`),
		sending("a filter's list of words", string(endpoint.Refused), `{"choices":[{"content_filter_results":`+
			`{"custom_blocklists":[{"filtered":"true","id":"x"}]},"message":{"content":`+quoted(wrong)+`}}]}`),
		sending("a content policy as 200", string(endpoint.Refused),
			`{"error":{"message":"flagged","code":"content_filter"}}`),
		sending("one of two choices refuses", string(endpoint.Refused),
			`{"choices":[{"index":0,"message":{"content":`+quoted(wrong)+`}},`+
				`{"index":1,"finish_reason":"content_filter","message":{"content":""}}]}`),
		sending("another reason that refuses", string(endpoint.Refused),
			`{"choices":[{"finish_reason":"stop","stop_reason":"refusal","message":{"content":`+
				quoted(wrong)+`}}]}`),
		sending("the model's own reason that refuses", string(endpoint.Refused),
			`{"choices":[{"finish_reason":"stop","native_finish_reason":"SAFETY",`+
				`"message":{"content":`+quoted(wrong)+`}}]}`),
		sending("the model's own reason that cuts", string(endpoint.Truncated),
			`{"choices":[{"finish_reason":"stop","native_finish_reason":"MAX_TOKENS",`+
				`"message":{"content":`+quoted(wrong)+`}}]}`),
		sending("another reason that cuts", string(endpoint.Truncated),
			`{"done_reason":"length","choices":[{"finish_reason":"stop","message":{"content":`+
				quoted(wrong)+`}}]}`),
		sending("a mark that it is cut", string(endpoint.Truncated),
			`{"truncated":true,"choices":[{"message":{"content":`+quoted(wrong)+`}}]}`),
		{name: "a content filter", want: string(endpoint.Refused), play: modelserver.Says(wrong, "content_filter")},
		{name: "a content policy", want: string(endpoint.Refused), play: modelserver.Error(400, "flagged", "content_policy_violation")},
		saying("nothing", string(endpoint.Empty), ""),
		saying("white space", string(endpoint.Empty), " \n\t"),
		sending("no content", string(endpoint.Empty), chat(`"reasoning_content":`+quoted(wrong))),
		sending("parts that are thoughts alone", string(endpoint.Empty), chat(`"content":[{"type":"thinking","thinking":`+quoted(wrong)+`}]`)),
		sending("a tool call", string(endpoint.Empty), chat(`"content":null,"tool_calls":[{"function":{"name":"label","arguments":`+quoted(wrong)+`}}]`)),
		{name: "1 GB", want: string(endpoint.TooLarge), play: modelserver.Huge(1<<30, false, &taken)},
		{name: "1 GB, packed", want: string(endpoint.TooLarge), play: modelserver.Bomb(64 << 20)},
		failing("413", string(endpoint.TooLarge), 413, ""),
		failing("too long for Ollama", string(endpoint.TooLarge), 400, `{"error":"the input length exceeds the context length"}`),
		failing("too long for Anthropic", string(endpoint.TooLarge), 400, `{"error":{"message":"prompt is too long: 208310 tokens > 200000 maximum","type":"invalid_request_error"}}`),
		failing("too long for a gateway", string(endpoint.TooLarge), 400, `{"error":{"message":"Your input exceeds the context window of this model."}}`),
	}
}

// unusable are answers that are no chat, and servers that cannot be asked.
func unusable() []behaviour {
	const failed, denied, nobody = string(endpoint.Failed), "denied", "nobody there"
	content := `"content":` + quoted(wrong)
	return []behaviour{
		sending("content twice", failed, chat(content+`,"content":`+quoted(right))),
		sending("message twice", failed, `{"choices":[{"message":{`+content+`},"message":{`+content+`}}]}`),
		sending("choices twice", failed, `{"choices":[{"message":{`+content+`}}],"choices":[]}`),
		sending("two first choices", failed, `{"choices":[{"index":0,"message":{`+content+`}},{"index":0,"message":{`+content+`}}]}`),
		sending("two choices that differ", failed, `{"choices":[{"index":0,"message":{"content":`+quoted(wrong)+`}},`+
			`{"index":1,"message":{"content":`+quoted(right)+`}}]}`),
		sending("one of two choices is cut", failed, `{"choices":[{"index":0,"message":{"content":`+quoted(wrong)+`}},`+
			`{"index":1,"finish_reason":"length","message":{"content":`+quoted(wrong)+`}}]}`),
		sending("a text beside the message that differs", failed,
			`{"choices":[{"text":`+quoted(right)+`,"message":{`+content+`}}]}`),
		sending("a delta beside the message that differs", failed,
			`{"choices":[{"delta":{"content":`+quoted(right)+`},"message":{`+content+`}}]}`),
		sending("a choice that is none", failed,
			`{"choices":[{"index":0,"message":{"content":`+quoted(wrong)+`}},null]}`),
		sending("content in two spellings", failed, chat(content+`,"Content":`+quoted(right))),
		sending("choices in two spellings", failed, `{"Choices":[],"choices":[{"message":{`+content+`}}]}`),
		sending("a status that is not whole", failed, `{"status":"incomplete","choices":[{"message":{`+content+`}}]}`),
		sending("no first choice", failed, `{"choices":[{"index":1,"message":{`+content+`}}]}`),
		sending("two choices without an index", failed, `{"choices":[{"message":{`+content+`}},{"message":{`+content+`}}]}`),
		sending("content that is a number", failed, chat(`"content":5`)),
		sending("content that is an object", failed, chat(`"content":`+wrong)),
		sending("a part that is no text", failed, chat(`"content":[{"type":"image_url"},{"type":"text","text":`+quoted(wrong)+`}]`)),
		sending("a choice without a message", failed, `{"choices":[{"index":0,"text":`+quoted(wrong)+`}]}`),
		sending("no choice", failed, `{"choices":[]}`),
		sending("no choices", failed, `{"choices":null}`),
		sending("keys in upper case", failed, `{"Choices":[{"Message":{"Content":`+quoted(wrong)+`}}]}`),
		sending("an error as 200", failed, `{"error":{"message":"upstream is down","code":502}}`),
		sending("an error beside an answer", failed, `{"error":{"message":"upstream is down"},"choices":[{"message":{`+content+`}}]}`),
		sending("an error without a message", failed, `{"error":{"code":500},"choices":[{"message":{`+content+`}}]}`),
		sending("an error that is a number", failed, `{"error":500,"choices":[{"message":{`+content+`}}]}`),
		{name: "abort", want: failed, play: modelserver.Says(wrong, "abort")},
		{name: "a reason that nobody knows", want: failed, play: modelserver.Says(wrong, "insufficient_system_resource")},
		sending("a reason that is no text", failed, `{"choices":[{"finish_reason":7,"message":{`+content+`}}]}`),
		sending("the role of a tool", failed, `{"choices":[{"message":{"role":"tool",`+content+`}}]}`),
		sending("the role of the user", failed, `{"choices":[{"message":{"role":"user",`+content+`}}]}`),
		sending("a role that is no text", failed, `{"choices":[{"message":{"role":7,`+content+`}}]}`),
		sending("a tool call beside an answer", failed, chat(content+`,"tool_calls":[{"function":{"name":"label","arguments":"{}"}}]`)),
		sending("a function call beside an answer", failed, chat(content+`,"function_call":{"name":"label","arguments":"{}"}`)),
		sending("an answer that ends with an error", failed, `{"choices":[{"finish_reason":"error","message":{`+content+`}}]}`),
		sending("a web page", failed, "<html>hello"),
		sending("nothing at all", failed, ""),
		sending("cut JSON", failed, `{"choices":[{"message":{`+content),
		sending("NaN in the server's JSON", failed, `{"logprobs":NaN,"choices":[{"message":{`+content+`}}]}`),
		sending("two values", failed, chat(content)+chat(content)),
		sending("deep JSON", failed, strings.Repeat("[", 1<<20)),
		sending("UTF-16", failed, "\xff\xfe{\x00}\x00"),
		{name: "a stream", want: failed, play: modelserver.Stream},
		failing("a bad picture", failed, 400, `{"error":{"message":"cannot identify image file"}}`),
		failing("501", failed, 501, ""),
		failing("418", failed, 418, ""),
		failing("401", denied, 401, `{"error":{"message":"no such key"}}`),
		failing("403", denied, 403, ""),
		failing("402", denied, 402, ""),
		failing("a quota", denied, 429, `{"error":{"message":"no more","code":"insufficient_quota"}}`),
		failing("a parameter", "unsupported temperature", 400, `{"error":{"message":"temperature is not supported","param":"temperature"}}`),
		failing("404", nobody, 404, "404 page not found"),
		failing("405", nobody, 405, ""),
		failing("a redirect", nobody, 302, "", "Location", "https://elsewhere.example/v1"),
		failing("a wait of two hours", "unreachable", 429, "", "Retry-After", "7200"),
	}
}
