package models

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/study/endpoint"
)

// A Classification asks a model for the labels of pictures.
type Classification struct {
	Server   *endpoint.Server // nil where nothing is asked
	Pictures *Pictures
	Tasks    []Task
	Chat     endpoint.Chat // the model, and how it is asked; Messages, Schema and the seed are set for each task
	Shots    int           // examples before the question; 0 for none
	// of the first run, for the choice of examples and for the server; the next run has the next one
	Seed  int64
	Runs  int
	Split string // that is asked about, "" for all
	Warn  func(text string)

	parts []*part // of the last call of Questions
}

// A part is a task in one run.
type part struct {
	Question
	task     *Task
	chat     endpoint.Chat // without the picture that is asked about
	examples []workspace.Record
	digest   string // of all that decides the answers but the picture
}

// Questions makes a question for each task and run, as Work.Questions wants it.
func (c *Classification) Questions(
	ctx context.Context, ws *workspace.Workspace, examples []workspace.Record,
) ([]Question, error) {
	c.parts = nil
	var questions []Question
	var used []workspace.Record
	for run := range c.Runs {
		for i := range c.Tasks {
			p, err := c.newPart(ctx, ws, &c.Tasks[i], run, examples)
			if err != nil {
				return nil, err
			}
			used, c.parts, questions = append(used, p.examples...), append(c.parts, p), append(questions, p.Question)
		}
	}
	if len(used) == 0 {
		return questions, nil
	}
	judge, err := state.StoredJudge(ctx, ws, time.Time{}) // for its policy
	if err != nil {
		return nil, err
	}
	near, err := nearOf(ctx, ws, judge.Policy, c.Split, used)
	if len(near) > 0 {
		c.Warn(fmt.Sprintf("%d rows are near-duplicates of an example, and their answers may be copied from it: %s",
			len(near), strings.Join(near[:min(len(near), 5)], ", ")))
	}
	return questions, err
}

func (c *Classification) newPart(
	ctx context.Context, ws *workspace.Workspace, t *Task, run int, rows []workspace.Record,
) (*part, error) {
	seed := c.Seed + int64(run)
	p := &part{task: t, chat: c.Chat}
	p.chat.Decoding.Seed, p.chat.Schema = &seed, &endpoint.Schema{Name: t.Category, JSON: t.schema()}
	if c.Shots > 0 {
		var missing []string
		p.examples, missing = t.choose(rows, c.Shots, strconv.FormatInt(seed, 10))
		switch {
		case len(p.examples) < c.Shots:
			return nil, fmt.Errorf("%d rows can be examples of %s, and %d are wanted", len(p.examples), t.Category, c.Shots)
		case len(missing) > 0:
			c.Warn(fmt.Sprintf("no example of %s shows: %s", t.Category, strings.Join(missing, ", ")))
		}
	}
	pictures := []endpoint.Image{}
	for _, rec := range p.examples {
		picture, err := c.Pictures.readFrom(ctx, ws, rec)
		if err != nil {
			return nil, err
		}
		pictures = append(pictures, picture)
	}
	p.chat.Messages = p.messages(pictures)
	if err := p.describe(run, c.Pictures.How()); err != nil {
		return nil, err
	}
	tokens := len(t.Prompt) / 4 // about what English text has
	var with []manifest.Key
	for _, rec := range p.examples {
		with = append(with, rec.Key)
		tokens += c.Pictures.tokens(*rec.Image) + len(t.answer(rec))/4
	}
	p.Question = Question{Task: t.Category, Run: run + 1, Digest: p.digestOf, With: with,
		Ask: func(ctx context.Context, rec workspace.Record, check func(sent int) error) (endpoint.Reply, error) {
			return c.ask(ctx, p, rec, check)
		},
		Read: func(text string) (endpoint.Outcome, string) {
			_, outcome, detail := t.Read(text)
			return outcome, detail
		},
		Tokens: func(rec workspace.Record) (in, out int) {
			return tokens + c.Pictures.tokens(*rec.Image), c.Chat.Decoding.MaxTokens
		}}
	return p, nil
}

// messages are the turns of a conversation: the prompt, then a picture and its answer for each example, then a place
// for the picture that is asked about.
func (p *part) messages(pictures []endpoint.Image) (turns []endpoint.Message) {
	prompt := p.task.Prompt
	for i, rec := range p.examples {
		turns = append(turns, endpoint.Message{Role: "user", Text: prompt, Image: &pictures[i]},
			endpoint.Message{Role: "assistant", Text: p.task.answer(rec)})
		prompt = ""
	}
	return append(turns, endpoint.Message{Role: "user", Text: prompt})
}

// describe makes the digest: of the request as it is sent, with digests in place of pictures.
func (p *part) describe(run int, how string) error {
	var names []endpoint.Image
	for _, rec := range p.examples {
		names = append(names, endpoint.Image{Type: "sha256", Data: []byte(rec.Image.SHA256)})
	}
	chat := p.chat
	chat.Messages = p.messages(names)
	body, err := chat.Body()
	// one prompt can serve several tasks
	p.digest = state.SHA256(fmt.Appendf(nil, "%d\n%s\n%s\n%s", run, p.task.Category, how, body))
	return err
}

func (p *part) digestOf(rec workspace.Record) string {
	return state.SHA256([]byte(p.digest + "\n" + rec.Image.SHA256))
}

// ask asks for the labels of one picture. Its text is read by Question.Read.
func (c *Classification) ask(ctx context.Context, p *part, rec workspace.Record,
	check func(sent int) error) (endpoint.Reply, error) {
	picture, err := c.Pictures.Read(ctx, rec)
	if err != nil {
		return endpoint.Reply{}, err
	}
	chat := p.chat
	chat.Messages = slices.Clone(chat.Messages)
	chat.Messages[len(chat.Messages)-1].Image = &picture
	return c.Server.Checked(check).Chat(ctx, chat)
}

// schema is the JSON Schema of an answer.
func (t *Task) schema() json.RawMessage {
	type object = map[string]any
	value := object{"type": "string", "enum": t.names()}
	if t.Kind == manifest.Multi {
		value = object{"type": "array", "items": value}
	}
	return compact(object{"type": "object", "properties": object{t.Category: value}, "required": []string{t.Category},
		"additionalProperties": false})
}

// answer is the right answer about a row, as the prompt asks for it.
func (t *Task) answer(rec workspace.Record) string {
	names := []string{}
	for _, c := range t.ClassesOf(rec.Labels) {
		names = append(names, t.Classes[c].Name)
	}
	if t.Kind == manifest.Multi {
		return string(compact(map[string][]string{t.Category: names}))
	}
	return string(compact(map[string]string{t.Category: names[0]}))
}

// compact writes a value of strings on one line, < and & as they are.
func compact(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // maps and lists of strings always can be
	}
	return bytes.TrimSpace(b.Bytes())
}

// score scores the answers by the rows' own labels.
func (c *Classification) score(done *Done, schema manifest.Schema) labels.Scores {
	var gold []manifest.Entry
	for _, rec := range done.Rows {
		gold = append(gold, rec.Entry)
	}
	var tasks []labels.Task
	for _, t := range c.Tasks {
		tasks = append(tasks, t.Task)
	}
	var files []labels.Predictions
	for run := range c.Runs {
		p := labels.Predictions{File: runName(run + 1), Labels: labels.Answers{}}
		for _, rec := range done.Rows {
			p.Labels[rec.Key] = make([][]int, len(schema.Categories))
		}
		for _, part := range c.parts {
			if part.Run != run+1 {
				continue
			}
			place := slices.IndexFunc(schema.Categories, func(of manifest.Category) bool { return of.Name == part.Task })
			for _, rec := range done.Rows {
				p.Labels[rec.Key][place] = part.given(done, rec)
			}
		}
		files = append(files, p)
	}
	scores, _ := labels.Score(schema, tasks, gold, nil, files) // it fails where there is nothing to score
	return scores
}

// runName is what scores call a run.
func runName(run int) string { return fmt.Sprintf("run %d", run) }

// given are the labels that a model gave a row; nil for no answer.
func (p *part) given(done *Done, rec workspace.Record) []int {
	a, ok := done.Answer(p.Question, rec)
	if !ok || a.Outcome != string(endpoint.OK) {
		return nil
	}
	classes, outcome, _ := p.task.Read(a.Text)
	if outcome != endpoint.OK {
		return nil
	}
	given := []int{}
	for _, class := range classes {
		given = append(given, p.task.label(class))
	}
	slices.Sort(given)
	return given
}
