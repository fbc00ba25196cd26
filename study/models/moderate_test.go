package models

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/internal/testkit/modelserver"
	"rehydrate/manifest"
	"rehydrate/pipeline/workspace"
	"rehydrate/study/endpoint"
)

// TestPictureUnused: a service can say that no category looked at the picture.
func TestPictureUnused(t *testing.T) {
	for answer, want := range map[string]bool{
		`{"results":[{"flagged":false,"category_applied_input_types":{"self-harm":["text"],"hate":[]}}]}`:               true,
		`{"results":[{"flagged":false,"category_applied_input_types":{"self-harm":["text","image"],"hate":["text"]}}]}`: false,
		`{"results":[{"flagged":false}]}`: false,
		`{"results":[]}`:                  false,
		`safe`:                            false,
	} {
		if pictureUnused(answer) != want {
			t.Errorf("%s: %t", answer, !want)
		}
	}
}

// TestVerdict: an answer of a moderation is one where it gives a verdict, in the form that was asked for; what is none
// says why.
func TestVerdict(t *testing.T) {
	for _, test := range []struct {
		name   string
		guard  bool
		answer string
		want   endpoint.Outcome
		detail string
	}{
		{"flagged", false, `{"results":[{"flagged":true,"categories":{"self-harm":true}}]}`, endpoint.OK, ""},
		{"no verdict", false, `{"status":500}`, UnknownLabel, "the answer has no verdict"},
		{"two verdicts", false, `{"results":[{"flagged":false,"categories":{"hate":true}}]}`, UnknownLabel,
			"the answer has no meaning: "},
		{"no JSON", false, `safe`, UnknownLabel, "the answer has no meaning: "},
		{"safe", true, "safe", endpoint.OK, ""},
		{"unsafe", true, "unsafe\nS11", endpoint.OK, ""},
		{"prose", true, "I cannot tell.", UnknownLabel, "the answer is neither safe alone nor unsafe with codes"},
	} {
		m := &Moderation{Guard: test.guard}
		if got, detail := m.read(test.answer); got != test.want || !strings.HasPrefix(detail, test.detail) ||
			(detail == "") != (test.detail == "") {
			t.Errorf("%s: %s %q, want %s %q", test.name, got, detail, test.want, test.detail)
		}
	}
}

// TestModeration: by what is sent of a row, and to which kind of model, what is asked, estimated and written.
func TestModeration(t *testing.T) {
	const flagged = `{"results":[{"flagged":true,"categories":{"self-harm":true},"category_scores":{"self-harm":0.5},` +
		`"category_applied_input_types":{"self-harm":["text"]}}]}`
	for _, test := range []struct {
		name, kind string
		send       []string
		plays      []string // the answers to the first rows; then nothing more is asked
		in, out    int      // tokens of one row, by estimate
		scores     string
		report     Report // but for tasks
	}{
		{"text and picture", "scores", []string{SendImage, SendText}, []string{flagged,
			`{"results":[{"flagged":false}]}`}, 3, 0,
			`{"id":"row00","flagged":true,"categories":{"self-harm":true},"scores":{"self-harm":0.5}}` + "\n" +
				`{"id":"row02","flagged":false}` + "\n" + `{"id":"row04","error":"not_asked"}` + "\n",
			Report{Rows: 3, In: 6, Estimated: 2, Flagged: new(1), TextOnly: 1, Cost: 6}},
		{"text alone", "scores", []string{SendText}, []string{flagged, `{"results":[{"flagged":null}]}`}, 2, 0,
			`{"id":"row00","flagged":true,"categories":{"self-harm":true},"scores":{"self-harm":0.5}}` + "\n" +
				`{"id":"row02","error":"failed"}` + "\n" + `{"id":"row04","error":"not_asked"}` + "\n",
			Report{Rows: 3, In: 4, Estimated: 2, Flagged: new(1), Cost: 4}},
		{"pictures alone, over chat", "guard", []string{SendImage}, []string{
			`{"choices":[{"message":{"content":"unsafe\nS11"}}],"usage":{"prompt_tokens":70,"completion_tokens":8}}`,
			`{"choices":[{"message":{"content":"hello"}}],"usage":{"prompt_tokens":70,"completion_tokens":8}}`}, 2, 128,
			`{"id":"row00","flagged":true,"categories":{"S11":true}}` + "\n" + `{"id":"row02","error":"unknown_label"}` + "\n" +
				`{"id":"row04","error":"not_asked"}` + "\n",
			Report{Rows: 3, In: 140, Out: 16, Flagged: new(1), Cost: 172}},
	} {
		at := rows(t, 6)
		w, server := at.job(t, test.kind, func(out http.ResponseWriter, r modelserver.Request) bool {
			_, err := io.WriteString(out, test.plays[r.N])
			return err == nil
		})
		open, err := endpoint.Open(endpoint.Options{URL: server.URL})
		testkit.OK(t, err)
		m := &Moderation{Server: open, Pictures: &Pictures{Store: at.store()}, Guard: test.kind == "guard", Send: test.send,
			Split: "test",
			Chat:  endpoint.Chat{Model: "m", Dialect: endpoint.VLLM, Decoding: endpoint.Decoding{MaxTokens: 128}}}
		w.Questions = m.Questions
		plan, err := w.Plan(t.Context())
		testkit.Same(t, test.name+": planned", Estimate{Rows: 3, Requests: 3, In: 3 * test.in, Out: 3 * test.out}, plan,
			err)
		w.Limits.Requests = len(test.plays)
		done, err := w.Do(t.Context(), nil)
		testkit.OK(t, err)
		for _, r := range server.Requests() {
			for part, what := range map[string]string{"base64": SendImage, `"text"`: SendText} {
				if has := bytes.Contains(r.Body, []byte(part)); has != m.sends(what) && !(part == `"text"` && m.Guard) {
					t.Errorf("%s: %s was sent: %t: %s", test.name, what, has, r.Body)
				}
			}
		}
		r, err := m.Report(done, manifest.FigSIM(), Limits{PriceIn: 1e6, PriceOut: 2e6})
		testkit.OK(t, err)
		test.report.Model, test.report.Server, test.report.Split, test.report.Sent = "m", "vllm", "test", test.send
		test.report.Pictures, test.report.Parameters = m.Pictures.How(), r.Parameters
		tasks := r.Tasks
		r.Tasks = nil
		testkit.Same(t, test.name+": the report", test.report, r)
		parameters := map[bool]string{true: `{"max_tokens":128}`, false: `{}`}[m.Guard]
		testkit.Same(t, test.name+": the parameters", parameters, string(r.Parameters))
		task := map[bool]string{true: "moderation/chat", false: "moderation/scores"}[m.Guard]
		if len(tasks) != 1 || tasks[0].Task != task || tasks[0].Outcomes[NotAsked] != 1 || tasks[0].Asked != m.digest {
			t.Errorf("%s: the tasks are %+v", test.name, tasks)
		}
		files := map[string]string{}
		ids, err := m.Write(func(name string, write func(io.Writer) error) error {
			var b bytes.Buffer
			err := write(&b)
			files[name] = b.String()
			return err
		}, done, r)
		testkit.Same(t, test.name+": ids", []string{"row00", "row02", "row04"}, ids, err)
		testkit.Same(t, test.name+": scores", test.scores, files[ScoresName])
		run := files[RunName]
		if !json.Valid([]byte(run)) || !strings.HasPrefix(run, "{\n  \"tool\": ") || strings.Contains(run, "row0") {
			t.Errorf("%s: run.json is %s", test.name, run)
		}
	}
}

// TestModerationDigest: what decides an answer is part of its question, and a row of which nothing would be sent is
// left out.
func TestModerationDigest(t *testing.T) {
	row := func(image, text string) workspace.Record {
		return workspace.Record{Image: &workspace.Image{SHA256: image}, Reading: &workspace.Reading{Text: text}}
	}
	digest := func(m *Moderation, rec workspace.Record) string {
		m.Pictures = &Pictures{}
		rows(t, 2).in(t, func(ws *workspace.Workspace) error { _, err := m.Questions(t.Context(), ws, nil); return err })
		return m.digestOf(rec)
	}
	both := []string{SendImage, SendText}
	plain := digest(&Moderation{Send: both}, row("1", "words"))
	testkit.Same(t, "the same", plain, digest(&Moderation{Send: both}, row("1", "words")))
	for name, other := range map[string]string{
		"another picture": digest(&Moderation{Send: both}, row("2", "words")),
		"another text":    digest(&Moderation{Send: both}, row("1", "word")),
		"no picture":      digest(&Moderation{Send: []string{SendText}}, row("1", "words")),
		"another model":   digest(&Moderation{Send: both, Chat: endpoint.Chat{Model: "n"}}, row("1", "words")),
		"over chat":       digest(&Moderation{Send: both, Guard: true}, row("1", "words")),
	} {
		if other == plain || other == "" {
			t.Errorf("%s: the digest is %q", name, other)
		}
	}
	testkit.Same(t, "nothing to send", "", digest(&Moderation{Send: []string{SendText}}, row("1", "")))
	testkit.Same(t, "no reading", "", digest(&Moderation{Send: []string{SendText}},
		workspace.Record{Image: &workspace.Image{SHA256: "1"}}))
}
