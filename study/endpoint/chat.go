package endpoint

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// An Outcome is what became of one request.
type Outcome string

// The outcomes of a request.
const (
	OK        Outcome = "ok"
	Refused   Outcome = "refused"   // by the model, a content filter or a content policy
	Truncated Outcome = "truncated" // the answer has as many tokens as were allowed
	Empty     Outcome = "empty"     // an answer without text
	TooLarge  Outcome = "too_large" // the answer, or the request for the model's context
	Failed    Outcome = "failed"    // no usable answer: it is worth to ask again later
)

// A Reply is what came of one request.
type Reply struct {
	Outcome Outcome
	Detail  string          // why it is not ok; printable, without secrets
	Text    string          // of a chat, the model's words
	Raw     json.RawMessage // the whole answer, without secrets; nil where it was not JSON
	Model   string          // that the server says has answered
	Usage   Usage
	// Contradicts reports that the server counted a part of Usage as larger than its whole. Usage is the larger
	// reading.
	Contradicts bool
	// Sent is how many requests were sent for it that may have cost something: repetitions too, but none that was
	// answered with 429. Beside the error of a context that ended, those that nothing came back for.
	Sent int
	Page bool // the answer is a web page, so that something else than a server of models may have sent it
}

// Usage is what a server counted of a request.
type Usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
}

// An Image is a picture as it is sent.
type Image struct {
	Type string // "image/jpeg" or "image/png", which every server takes
	Data []byte
}

func (i Image) part() part {
	link := "data:" + i.Type + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
	return part{Type: "image_url", URL: &imageURL{link}}
}

// A Message is one turn of a conversation: text, a picture, or a text before a picture.
type Message struct {
	Role  string // "system", "user" or "assistant"
	Text  string
	Image *Image // nil for none; for a user's turn only
}

// A Schema is the JSON Schema of the answer that is asked for.
type Schema struct {
	Name string
	JSON json.RawMessage
}

// Decoding are the parameters of a request by the names of OpenAI's API. The zero value of a pointer, number or list
// leaves it out.
type Decoding struct {
	Temperature *float64
	TopP        *float64
	MaxTokens   int // max_completion_tokens for OpenAI
	Stop        []string
	Seed        *int64
}

// A Chat is a request for one answer of a model.
type Chat struct {
	Model    string
	Messages []Message
	Schema   *Schema // nil asks for no form
	Decoding Decoding
	Dialect  Dialect
	Omit     []string // of Parameters
}

type chatBody struct {
	Model               string        `json:"model"`
	Messages            []chatMessage `json:"messages"`
	Temperature         *float64      `json:"temperature,omitempty"`
	TopP                *float64      `json:"top_p,omitempty"`
	MaxTokens           int           `json:"max_tokens,omitempty"`
	MaxCompletionTokens int           `json:"max_completion_tokens,omitempty"`
	Stop                []string      `json:"stop,omitempty"`
	Seed                *int64        `json:"seed,omitempty"`
	Format              *format       `json:"response_format,omitempty"`
}

type chatMessage struct {
	Role    string `json:"role"`
	Content any    `json:"content"` // a string, or parts
}

type part struct {
	Type string    `json:"type"`
	Text string    `json:"text,omitempty"`
	URL  *imageURL `json:"image_url,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

// A format is in the nested form: llama.cpp reads no other, and says nothing where it ignores one.
type format struct {
	Type   string       `json:"type"`
	Schema formatSchema `json:"json_schema"`
}

type formatSchema struct {
	Name   string          `json:"name"`
	Strict bool            `json:"strict"`
	Schema json.RawMessage `json:"schema"`
}

// nameForm is what OpenAI does not take in the name of a schema.
var nameForm = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// Body returns the request as it is sent, byte by byte: the same Chat gives the same body.
func (c Chat) Body() ([]byte, error) {
	b := chatBody{Model: c.Model, Temperature: c.Decoding.Temperature, TopP: c.Decoding.TopP, Stop: c.Decoding.Stop,
		Seed: c.Decoding.Seed}
	for _, m := range c.Messages {
		sent := chatMessage{Role: m.Role, Content: m.Text}
		if m.Image != nil {
			parts := []part{m.Image.part()}
			if m.Text != "" {
				parts = []part{{Type: "text", Text: m.Text}, parts[0]}
			}
			sent.Content = parts
		}
		b.Messages = append(b.Messages, sent)
	}
	if c.Dialect == OpenAI {
		b.MaxCompletionTokens = c.Decoding.MaxTokens
	} else {
		b.MaxTokens = c.Decoding.MaxTokens
	}
	if s := c.Schema; s != nil {
		name := nameForm.ReplaceAllString(s.Name, "_")
		b.Format = &format{"json_schema", formatSchema{cmp.Or(name[:min(len(name), 64)], "answer"), true, s.JSON}}
	}
	for _, name := range c.Omit {
		switch name {
		case "temperature":
			b.Temperature = nil
		case "top_p":
			b.TopP = nil
		case "max_tokens":
			b.MaxTokens, b.MaxCompletionTokens = 0, 0
		case "stop":
			b.Stop = nil
		case "seed":
			b.Seed = nil
		case "response_format":
			b.Format = nil
		default:
			return nil, fmt.Errorf("no parameter is called %q", name)
		}
	}
	return encode(b)
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("write the request: %w", err)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// Chat asks a model for one answer. The trouble of a single answer is its outcome; an error is the trouble of the whole
// run: ErrNotLocal, a *Denied, an *Unsupported, an *Unreachable, or ctx's.
func (s *Server) Chat(ctx context.Context, c Chat) (Reply, error) {
	if tag := strings.ToLower(c.Model[strings.LastIndex(c.Model, ":")+1:]); !s.o.ThirdParty &&
		(tag == "cloud" || strings.HasSuffix(tag, "-cloud")) {
		// Ollama on this machine hands such a request on to its maker, in any case of the name.
		return Reply{}, fmt.Errorf("%s runs the model %s elsewhere: %w", s.base.Host, c.Model, ErrNotLocal)
	}
	body, err := c.Body()
	if err != nil {
		return Reply{}, err
	}
	pictures := slices.ContainsFunc(c.Messages, func(m Message) bool { return m.Image != nil })
	return s.ask(ctx, "/chat/completions", body, func(fields map[string]any) Reply {
		return readChat(fields, look{pictures: pictures, stops: c.Decoding.Stop})
	})
}

// A Moderation asks a moderation model about a text, a picture, or both.
type Moderation struct {
	Model string
	Text  string
	Image *Image // nil for none
}

// Body returns the request as it is sent, byte by byte.
func (m Moderation) Body() ([]byte, error) {
	body := struct {
		Model string `json:"model"`
		Input any    `json:"input"`
	}{m.Model, m.Text}
	if m.Image != nil {
		parts := []part{{Type: "text", Text: m.Text}, m.Image.part()}
		if m.Text == "" {
			parts = parts[1:]
		}
		body.Input = parts
	}
	return encode(body)
}

// Moderate asks a moderation model. Outcomes and errors are those of Chat; the scores stand in Raw.
func (s *Server) Moderate(ctx context.Context, m Moderation) (Reply, error) {
	body, err := m.Body()
	if err != nil {
		return Reply{}, err
	}
	return s.ask(ctx, "/moderations", body, func(fields map[string]any) Reply {
		return readModeration(fields, m.Image != nil)
	})
}

// parametersOf are those that body holds, for the advice on a parameter that a server refuses.
func parametersOf(body []byte) []string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(body, &fields) // it is our own
	var names []string
	for name := range fields {
		if name == "max_completion_tokens" || slices.Contains(Parameters, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
