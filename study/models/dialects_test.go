package models

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/internal/testkit/modelserver"
	"rehydrate/manifest"
	"rehydrate/study/endpoint"
)

// TestDialects classifies with each kind of server, without and with examples. The test server holds every request
// against OpenAI's specification, and refuses what the server that it plays refuses.
func TestDialects(t *testing.T) {
	ws := rows(t, 12)
	tasks, err := Tasks(manifest.FigSIM(), []string{"figurative", "severity"}, "")
	testkit.OK(t, err)
	for i, d := range endpoint.Dialects {
		model := modelserver.New(t, string(d))
		model.Answer = func(r modelserver.Request) string {
			if strings.Contains(string(r.Body), `"name":"severity"`) {
				return `{"severity":"Suicide death"}`
			}
			return `{"figurative":["Irony/Sarcasm"]}`
		}
		server, err := endpoint.Open(endpoint.Options{URL: model.URL})
		testkit.OK(t, err)
		for _, shots := range []int{0, 6} {
			zero, one := 0.0, 1.0
			c := &Classification{Server: server, Pictures: &Pictures{Workspace: ws}, Tasks: tasks, Split: "test", Runs: 1, Seed: int64(i), Shots: shots, Warn: func(string) {},
				Chat: endpoint.Chat{Model: "m", Dialect: d, Omit: d.Omits(),
					Decoding: endpoint.Decoding{Temperature: &zero, TopP: &one, MaxTokens: 128, Stop: []string{"}"}}}}
			w := &Work{Workspace: ws, Now: newDesk(ws).Now, Split: "test", Examples: "train", Questions: c.Questions, Concurrency: 2}
			done, err := w.Do(t.Context())
			testkit.OK(t, err)
			testkit.Same(t, string(d)+": asked", 12, done.Asked)
			if line, _, _ := strings.Cut(written(t, c, done)["predictions.jsonl"], "\n"); line != `{"id":"row00","figurative":["F3"],"severity":"SS4"}` {
				t.Errorf("%s, %d examples: %s", d, shots, line)
			}
		}
	}
}

// TestMisbehaviours: what a server does in place of an answer ends in its outcome, stored; a parameter that it does not
// take ends the work.
func TestMisbehaviours(t *testing.T) {
	var taken atomic.Int64
	tasks, err := Tasks(manifest.FigSIM(), []string{"severity"}, "")
	testkit.OK(t, err)
	ws := rows(t, 2) // one in test
	says := modelserver.Says
	for i, tt := range []struct {
		name string
		play modelserver.Play
		want endpoint.Outcome
	}{
		{"stop cut the brace", says(`{"severity":"Suicide death"`, "stop"), endpoint.OK},
		{"stop cut the brackets", says(`{"severity":["Suicide death"`, "stop"), endpoint.OK},
		{"a fence", says("```json\n{\"severity\": \"suicide death\"}\n```", "stop"), endpoint.OK},
		{"prose before it", says(`Here it is: {"severity": "Suicide death"} I hope it helps.`, "stop"), endpoint.OK},
		{"prose", says("The severity is Suicide death.", "stop"), NotJSON},
		{"a refusal in words", says("I'm sorry, but I can't help with that.", "stop"), NotJSON},
		{"another key", says(`{"label":"Suicide death"}`, "stop"), NotJSON},
		{"a wrong label", says(`{"severity":"Very severe"}`, "stop"), UnknownLabel},
		{"two labels where one is asked for", says(`{"severity":["None","Suicide death"]}`, "stop"), UnknownLabel},
		{"refusal", modelserver.Refusal, endpoint.Refused},
		{"content filter", says("", "content_filter"), endpoint.Refused},
		{"content policy", modelserver.Error(400, "flagged", "content_policy_violation"), endpoint.Refused},
		{"truncated at 128 tokens", says(`{"severity":"Suicide d`, "length"), endpoint.Truncated},
		{"empty", says("", "stop"), endpoint.Empty},
		{"1 GB", modelserver.Huge(1<<30, false, &taken), endpoint.TooLarge},
		{"a stream", modelserver.Stream, endpoint.Failed},
		{"a bad picture", modelserver.Error(400, "cannot decode", "invalid_image"), endpoint.Failed},
		{"a parameter", modelserver.Error(400, "stop is not supported", "unsupported_parameter"), ""},
	} {
		model := modelserver.New(t, "vllm")
		model.Play = tt.play
		server, err := endpoint.Open(endpoint.Options{URL: model.URL})
		testkit.OK(t, err)
		c := &Classification{Server: server, Pictures: &Pictures{Workspace: ws}, Tasks: tasks, Split: "test", Runs: 1, Seed: int64(i), Warn: func(string) {},
			Chat: endpoint.Chat{Model: "m", Dialect: endpoint.VLLM, Decoding: endpoint.Decoding{MaxTokens: 128, Stop: []string{"}"}}}}
		w := &Work{Workspace: ws, Now: newDesk(ws).Now, Split: "test", Questions: c.Questions, Concurrency: 1}
		done, err := w.Do(t.Context())
		if tt.want == "" {
			if unsupported, ok := errors.AsType[*endpoint.Unsupported](err); !ok || unsupported.Parameter != "stop" {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		testkit.OK(t, err)
		report, err := c.Report(done, manifest.FigSIM(), Limits{})
		testkit.OK(t, err)
		if got := fmt.Sprint(report.Tasks[0].Outcomes); got != fmt.Sprintf("map[%s:1]", tt.want) {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		prediction := written(t, c, done)["predictions.jsonl"]
		if want := map[bool]string{true: `{"id":"row00","severity":"SS4"}`, false: `{"id":"row00","severity":null}`}[tt.want == endpoint.OK]; strings.TrimSpace(prediction) != want {
			t.Errorf("%s: %s", tt.name, prediction)
		}
	}
}
