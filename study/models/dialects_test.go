package models

import (
	"strings"
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
			c := &Classification{Server: server, Pictures: &Pictures{Store: ws.store()}, Tasks: tasks, Split: "test",
				Runs: 1, Seed: int64(i), Shots: shots, Warn: func(string) {},
				Chat: endpoint.Chat{Model: "m", Dialect: d, Omit: d.Omits(),
					Decoding: endpoint.Decoding{Temperature: &zero, TopP: &one, MaxTokens: 128, Stop: []string{"}"}}}}
			w := &Work{Store: ws.store(), Model: "m", Now: newDesk(ws).Now, Split: "test", Examples: "train",
				Questions: c.Questions, Concurrency: 2}
			done, err := w.Do(t.Context(), nil)
			testkit.OK(t, err)
			testkit.Same(t, string(d)+": asked", 12, done.Asked)
			if line, _, _ := strings.Cut(written(t, c, done)["predictions.jsonl"],
				"\n"); line != `{"id":"row00","figurative":["F3"],"severity":"SS4+SS5"}` {
				t.Errorf("%s, %d examples: %s", d, shots, line)
			}
		}
	}
}
