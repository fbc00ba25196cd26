package models

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
	"rehydrate/study"
	"rehydrate/study/endpoint"
)

// A Moderation asks a moderation endpoint about rows, or over chat a model that moderates, such as Llama Guard.
type Moderation struct {
	Server   *endpoint.Server // nil where nothing is asked
	Pictures *Pictures
	Chat     endpoint.Chat // the model, and how it is asked over chat
	Guard    bool          // over chat
	Send     []string      // of a row: SendImage, SendText or both
	Split    string        // that is asked about, "" for all

	question Question // of the last call of Questions
	policy   policy.Policy
	digest   string // of all that decides the answers but the row
}

// What of a row a moderation can send. Names in the text are masked where the policy says so.
const SendImage, SendText = "image", "text"

func (m *Moderation) sends(what string) bool { return slices.Contains(m.Send, what) }

// Questions makes the one question, as Work.Questions wants it.
func (m *Moderation) Questions(ctx context.Context, ws *workspace.Workspace, _ []workspace.Record) ([]Question, error) {
	judge, err := state.StoredJudge(ctx, ws, time.Time{}) // for its policy
	if err != nil {
		return nil, err
	}
	body, err := m.body()
	if err != nil {
		return nil, err
	}
	m.policy, m.digest = judge.Policy, state.SHA256(fmt.Appendf(nil, "%t %s\n%s", m.sends(SendImage), m.Pictures.How(),
		body))
	m.question = Question{Task: "moderation/scores", Run: 1, Digest: m.digestOf, Ask: m.ask, Read: m.read,
		Tokens: m.tokens}
	if m.Guard { // no category has a slash in its name
		m.question.Task = "moderation/chat"
	}
	return []Question{m.question}, nil
}

// body is a request without what a row decides.
func (m *Moderation) body() ([]byte, error) {
	if m.Guard {
		return m.Chat.Body()
	}
	return endpoint.Moderation{Model: m.Chat.Model}.Body()
}

// text is what is sent of a row's text.
func (m *Moderation) text(rec workspace.Record) string {
	if !m.sends(SendText) || rec.Reading == nil {
		return ""
	}
	return state.ShownReading(*rec.Reading, m.policy).Text
}

func (m *Moderation) digestOf(rec workspace.Record) string {
	text := m.text(rec)
	if text == "" && !m.sends(SendImage) {
		return ""
	}
	return state.SHA256(fmt.Appendf(nil, "%s\n%s\n%s", m.digest, rec.Image.SHA256, text))
}

func (m *Moderation) tokens(rec workspace.Record) (in, out int) {
	in = len(m.text(rec))/4 + 1 // about what English text has
	if m.sends(SendImage) {
		in += m.Pictures.tokens(*rec.Image)
	}
	if m.Guard {
		out = m.Chat.Decoding.MaxTokens
	}
	return in, out
}

// ask asks about one row.
func (m *Moderation) ask(ctx context.Context, rec workspace.Record, check func(sent int) error) (reply endpoint.Reply,
	err error) {
	var picture *endpoint.Image
	if m.sends(SendImage) {
		read, err := m.Pictures.Read(ctx, rec)
		if err != nil {
			return reply, err
		}
		picture = &read
	}
	server := m.Server.Checked(check)
	if !m.Guard {
		reply, err = server.Moderate(ctx, endpoint.Moderation{Model: m.Chat.Model, Text: m.text(rec), Image: picture})
		if reply.Outcome == endpoint.OK { // of another the detail is enough
			reply.Text = string(reply.Raw)
		}
		return reply, err
	}
	chat := m.Chat
	chat.Messages = []endpoint.Message{{Role: "user", Text: m.text(rec), Image: picture}}
	return server.Chat(ctx, chat)
}

// read finds what an answer comes to: one that cannot be a verdict is none.
func (m *Moderation) read(text string) (outcome endpoint.Outcome, detail string) {
	_, problem := m.verdict(text)
	if problem != "" {
		return UnknownLabel, problem
	}
	return endpoint.OK, ""
}

// verdict reads an answer, and says why it is none.
func (m *Moderation) verdict(text string) (v labels.Verdict, problem string) {
	response := json.RawMessage(text)
	if m.Guard {
		response = compact(text)
	}
	v, answered, err := study.ReadVerdict(response)
	switch {
	case err != nil:
		problem = "the answer has no meaning: " + err.Error()
	case !answered && m.Guard:
		problem = "the answer is neither safe alone nor unsafe with codes"
	case !answered:
		problem = "the answer has no verdict"
	}
	return v, problem
}

// A score is the line of a row: what study.ReadJudgements reads.
type score struct {
	ID string `json:"id"`
	labels.Verdict
	Error endpoint.Outcome `json:"error,omitempty"`
}

func (m *Moderation) score(done *Done, rec workspace.Record) score {
	line := score{ID: rec.Key.String()}
	a, ok := done.Answer(m.question, rec)
	switch {
	case ok && a.Outcome == string(endpoint.OK):
		line.Verdict, _ = m.verdict(a.Text) // Question.Read found it good
	case ok:
		line.Error = endpoint.Outcome(a.Outcome)
	default:
		line.Error = NotAsked
	}
	return line
}

// Report sums up the answers of a moderation.
func (m *Moderation) Report(done *Done, _ manifest.Schema, prices Limits) (Report, error) {
	r := Report{Model: m.Chat.Model, Server: string(m.Chat.Dialect), Pictures: m.Pictures.How(), Split: m.Split,
		Rows: len(done.Rows), Sent: m.Send}
	body, err := m.body()
	if err == nil {
		r.Parameters, err = parameters(body)
	}
	t := TaskReport{Task: m.question.Task, Run: 1, Asked: m.digest}
	t.count(done, m.question)
	r.Tasks, r.In, r.Out, r.Estimated = []TaskReport{t}, t.In, t.Out, t.Estimated
	r.Cost, r.Flagged = prices.cost(t.In, t.Out), new(0)
	for _, rec := range done.Rows {
		if flagged := m.score(done, rec).Flagged; flagged != nil && *flagged {
			*r.Flagged++
		}
		if a, ok := done.Answer(m.question, rec); ok && m.sends(SendImage) && a.Outcome == string(endpoint.OK) &&
			pictureUnused(a.Text) {
			r.TextOnly++
		}
	}
	return r, err
}

// pictureUnused reports whether an answer of a moderation says to which inputs each category applied, and names the
// picture for none.
func pictureUnused(answer string) bool {
	var read struct {
		Results []struct {
			Types map[string][]string `json:"category_applied_input_types"`
		} `json:"results"`
	}
	if json.Unmarshal([]byte(answer), &read) != nil || len(read.Results) == 0 || len(read.Results[0].Types) == 0 {
		return false
	}
	for _, inputs := range read.Results[0].Types {
		if slices.Contains(inputs, "image") {
			return false
		}
	}
	return true
}

// ScoresName is the name of the file of a moderation's scores. A purge knows it (package dataset).
const ScoresName = "scores.jsonl"

// Write writes the scores and the report, and returns the ids that the files have.
func (m *Moderation) Write(sink Sink, done *Done, r Report) (ids []string, err error) {
	err = sink(ScoresName, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		for _, rec := range done.Rows {
			ids = append(ids, rec.Key.String())
			if err := e.Encode(m.score(done, rec)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ids, writeReport(sink, r)
}
