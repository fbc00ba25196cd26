package study

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"rehydrate/internal/userfile"
	"rehydrate/labels"
	"rehydrate/manifest"
)

// A scoreLine is a line of a file: the answer in this form, or as the service gave it, under response.
type scoreLine struct {
	ID       string `json:"id"`
	CustomID string `json:"custom_id"` // as OpenAI's batches have it
	labels.Verdict
	Error    any             `json:"error"`
	Response json.RawMessage `json:"response"`
}

// ReadVerdict reads what OpenAI's moderations, Azure AI Content Safety or Llama Guard answer, the last as a JSON string, and
// reports whether there is an answer in it. The error of an answer that says two things, or what cannot be, says why.
func ReadVerdict(response json.RawMessage) (v labels.Verdict, answered bool, err error) {
	l := scoreLine{Response: response}
	answered, err = l.unwrap()
	if err == nil && answered {
		err = sound(l.Verdict)
	}
	return l.Verdict, answered && err == nil, err
}

const (
	maxScoreLine = 4 << 20 // bytes; an answer has some 2,000
	maxSeverity  = 100     // Azure's go to 7
)

// ReadJudgements reads JSON Lines: a line an entry, with id and flagged, categories, scores or severities, or the raw
// answer of OpenAI's moderations, Azure AI Content Safety or Llama Guard under response. The error is *manifest.Problems.
func ReadJudgements(in io.Reader, file string, rules labels.ModerationRules) (labels.Judgements, error) {
	out := labels.Judgements{File: file, Of: map[manifest.Key]labels.Judgement{}, Unjudged: map[manifest.Key]bool{}}
	lines := bufio.NewScanner(userfile.Text(in))
	lines.Buffer(nil, maxScoreLine)
	n := 0
	fail := func(message, hint string) error {
		return &manifest.Problems{List: []manifest.Problem{{File: file, Line: n, Message: message, Hint: hint}}}
	}
	for lines.Scan() {
		n++
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		var l scoreLine
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			// Not the decoder's words, which can hold the text in which the fault was found.
			return out, fail("the line is not a JSON object of the form that is read here", scoreForm)
		}
		if l.ID == "" {
			l.ID = l.CustomID
		}
		key, err := manifest.ParseKey(l.ID)
		if err != nil {
			return out, fail("the id does not name a post: "+err.Error(), scoreForm)
		}
		_, judged := out.Of[key]
		if judged || out.Unjudged[key] {
			return out, fail(fmt.Sprintf("%s stands twice", key), "keep one line for each entry")
		}
		answered, err := l.unwrap()
		if len(l.Response) > 0 && sound(l.Verdict) != nil {
			answered = false // a person's own line may mean something by it
		}
		for _, v := range l.Severities { // a mean of wild numbers is not one
			if err == nil && (*v < 0 || *v > maxSeverity) {
				err = fmt.Errorf("a severity is %v, and not from 0 to %d", *v, maxSeverity)
			}
		}
		switch {
		case err != nil:
			return out, fail(err.Error(), scoreForm)
		case answered:
			out.Of[key] = rules.Judge(l.Verdict)
		default:
			out.Unjudged[key] = true
		}
	}
	n++
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return out, fail("the line is longer than 4 MiB", "keep ids and answers, leave out pictures")
	case err != nil:
		return out, fmt.Errorf("read %s: %w", file, err)
	case len(out.Of) == 0:
		return out, fail("no line has an answer", scoreForm)
	}
	return out, nil
}

const scoreForm = `write one object a line: {"id": "abc123", "flagged": true, "categories": {"self-harm": true}, "severities": {"SelfHarm": 4}}, ` +
	`or the service's own answer: {"id": "abc123", "response": ...}`

// sound returns why a verdict cannot be one, or nil: it is not flagged, and a category of it is, or a score is no
// share.
func sound(v labels.Verdict) error {
	for _, name := range slices.Sorted(maps.Keys(v.Categories)) {
		if yes := v.Categories[name]; yes != nil && *yes && v.Flagged != nil && !*v.Flagged {
			return fmt.Errorf("it is not flagged, and its category %.40q is", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.Scores)) {
		if score := v.Scores[name]; score != nil && !(*score >= 0 && *score <= 1) {
			return fmt.Errorf("the score of %.40q is %v, and not from 0 to 1", name, *score)
		}
	}
	return nil
}

// A rawAnswer is what the services answer: OpenAI's moderations, Azure AI Content Safety, a chat with Llama Guard, and the
// envelope of a batch.
type rawAnswer struct {
	Results []struct {
		Flagged    *bool               `json:"flagged"`
		Categories map[string]*bool    `json:"categories"`
		Scores     map[string]*float64 `json:"category_scores"`
	} `json:"results"`
	Analysis []struct {
		Category string   `json:"category"`
		Severity *float64 `json:"severity"`
	} `json:"categoriesAnalysis"`
	Choices []struct {
		Message struct {
			Content string `json:"content"`
		} `json:"message"`
	} `json:"choices"`
	Body  json.RawMessage `json:"body"`
	Error any             `json:"error"`
}

// unwrap brings a raw answer into the form of the line, and reports whether there is an answer.
func (l *scoreLine) unwrap() (answered bool, err error) {
	maps.DeleteFunc(l.Categories, isNull)
	maps.DeleteFunc(l.Scores, isNull)
	maps.DeleteFunc(l.Severities, isNull)
	if l.Error != nil && l.Error != "" && l.Error != false {
		return false, nil
	}
	if len(l.Response) == 0 || string(l.Response) == "null" {
		return l.hasAnswer(), nil
	}
	var text string
	if json.Unmarshal(l.Response, &text) == nil {
		return l.guard(text), nil
	}
	var raw, body rawAnswer
	err = json.Unmarshal(l.Response, &raw)
	if err == nil && len(raw.Body) > 0 { // the envelope of a batch
		err = json.Unmarshal(raw.Body, &body)
		raw = body
	}
	if err != nil {
		return false, errNoService
	}
	return l.fromRaw(raw)
}

func isNull[V any](_ string, v *V) bool { return v == nil }

func (l *scoreLine) hasAnswer() bool {
	return l.Flagged != nil || len(l.Categories)+len(l.Scores)+len(l.Severities) > 0
}

var errNoService = errors.New("the response is not one of OpenAI, Azure or Llama Guard")

func (l *scoreLine) fromRaw(raw rawAnswer) (answered bool, err error) {
	switch {
	case raw.Error != nil:
		return false, nil
	case len(raw.Results) > 0: // one for each input; an entry is flagged where any of its inputs is
		l.Flagged, l.Categories, l.Scores = nil, map[string]*bool{}, map[string]*float64{}
		for _, r := range raw.Results {
			if r.Flagged != nil && (l.Flagged == nil || *r.Flagged) {
				l.Flagged = r.Flagged
			}
			for name, v := range r.Categories {
				if old := l.Categories[name]; v != nil && (old == nil || *v) {
					l.Categories[name] = v
				}
			}
			for name, v := range r.Scores {
				if old := l.Scores[name]; v != nil && (old == nil || *v > *old) {
					l.Scores[name] = v
				}
			}
		}
		return l.hasAnswer(), nil
	case len(raw.Analysis) > 0:
		l.Severities = map[string]*float64{}
		for _, a := range raw.Analysis {
			if a.Severity != nil {
				l.Severities[a.Category] = a.Severity
			}
		}
		return len(l.Severities) > 0, nil
	case len(raw.Choices) > 0:
		return l.guard(raw.Choices[0].Message.Content), nil
	}
	return false, errNoService
}

// guardCode is the form of the codes of Llama Guard's categories.
var guardCode = regexp.MustCompile(`^[A-Z][A-Z0-9]{0,7}$`)

// guard reads what Llama Guard writes: safe alone, or unsafe and one line of codes. Anything else is not an answer.
func (l *scoreLine) guard(text string) bool {
	verdict, codes, _ := strings.Cut(strings.TrimSpace(text), "\n")
	flagged := strings.TrimSpace(verdict) == "unsafe"
	yes, categories := true, map[string]*bool{"S11": new(bool)}
	switch {
	case !flagged && (strings.TrimSpace(verdict) != "safe" || codes != ""):
		return false
	case flagged:
		for code := range strings.SplitSeq(codes, ",") {
			code = strings.TrimSpace(code)
			if !guardCode.MatchString(code) {
				return false
			}
			categories[code] = &yes
		}
	}
	l.Flagged, l.Categories = &flagged, categories
	return true
}
