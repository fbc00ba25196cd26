package study

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	"rehydrate/internal/jsonscan"
	"rehydrate/internal/userfile"
	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/manifest/table"
	"rehydrate/study/endpoint"
)

// A scoreLine is a line of a file: the answer in this form, or as the service gave it, under response.
type scoreLine struct {
	ID       string `json:"id"`
	CustomID string `json:"custom_id"` // as OpenAI's batches have it
	labels.Verdict
	failure
	Response json.RawMessage          `json:"response"`
	beside   map[string]manifest.Cell // fields that say what it is about, or that it is no answer
}

// UnmarshalJSON reads a line, and what stands beside the answer by the rules of other tables.
func (l *scoreLine) UnmarshalJSON(text []byte) error {
	type plain scoreLine // without this method
	var all map[string]json.RawMessage
	err := errors.Join(json.Unmarshal(text, (*plain)(l)), json.Unmarshal(text, &all))
	l.beside = map[string]manifest.Cell{}
	for name, value := range all {
		isID := slices.Contains([]string{"id", "custom_id"}, name) // which key reads
		if manifest.ImageNamed(name) || manifest.AnswerNamed(name) || manifest.AboutNamed(name) && !isID {
			l.beside[name] = table.JSONCell(string(value))
		}
	}
	return err
}

// isNone reports whether the line says that it has no answer.
func (l *scoreLine) isNone() bool {
	for name, cell := range l.beside {
		if manifest.AnswerNamed(name) && manifest.NoAnswer(name, cell) {
			return true
		}
	}
	return false
}

// named are the fields with names for which is is true.
func (l *scoreLine) named(is func(name string) bool) iter.Seq2[string, manifest.Cell] {
	return func(yield func(string, manifest.Cell) bool) {
		for _, name := range slices.Sorted(maps.Keys(l.beside)) {
			if is(name) && !yield(name, l.beside[name]) {
				return
			}
		}
	}
}

// A failure is how services and the lines of batches say that there is no answer.
type failure struct {
	Error      any `json:"error"`
	StatusCode any `json:"status_code"` // of HTTP, a number or its text
	CamelCode  any `json:"statusCode"`
}

// failed reports whether it says that there is none: with an error, or a status other than 200. What stands beside
// such a status can look like an answer, and is not one to count.
func (f failure) failed() bool {
	return f.Error != nil && f.Error != "" && f.Error != false && f.Error != 0.0 || isBad(f.StatusCode) ||
		isBad(f.CamelCode)
}

func isBad(status any) bool { return status != nil && fmt.Sprint(status) != "200" }

// ReadVerdict reads what OpenAI's moderations, Azure AI Content Safety or Llama Guard answer, the last as a JSON
// string, and reports whether there is an answer in it. The error of an answer that says two things, or what cannot be,
// says why. It judges the answers that are asked for and those that stand in files alike.
func ReadVerdict(response json.RawMessage) (v labels.Verdict, answered bool, err error) {
	if err := once(response); err != nil {
		return v, false, err
	}
	l := scoreLine{Response: response}
	answered, err = l.unwrap()
	return l.Verdict, answered && err == nil, err
}

// once refuses JSON in which an object has a key twice, in whichever case: which of the two counts would be chance.
func once(text []byte) error {
	v, err := jsonscan.Decode(text)
	if err != nil {
		return err
	}
	return onceIn(v)
}

func onceIn(value any) error {
	switch v := value.(type) {
	case []any:
		for _, of := range v {
			if err := onceIn(of); err != nil {
				return err
			}
		}
	case map[string]any:
		met := map[string]bool{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			folded := strings.ToLower(name)
			if met[folded] {
				return &jsonscan.Twice{Key: name}
			}
			met[folded] = true
			if err := onceIn(v[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

const maxScoreLine = 4 << 20 // bytes; an answer has some 2,000

// An unsound answer of a service is none: it says two things, or what cannot be.
type unsound struct{ error }

// ReadJudgements reads JSON Lines: a line an entry, with id and flagged, categories, scores or severities, or the raw
// answer of OpenAI's moderations, Azure AI Content Safety or Llama Guard under response. The error is
// *manifest.Problems.
func ReadJudgements(in io.Reader, file string, rules labels.ModerationRules) (labels.Judgements, error) {
	out := labels.Judgements{File: file, Of: map[manifest.Key]labels.Judgement{}, Unjudged: map[manifest.Key]bool{}}
	lines := bufio.NewScanner(userfile.Text(in))
	lines.Buffer(nil, maxScoreLine)
	n := 0
	of := about{file: file}
	fail := func(message, hint string) error {
		return &manifest.Problems{List: []manifest.Problem{{File: file, Line: n, Message: message, Hint: hint}}}
	}
	for lines.Scan() {
		n++
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		key, verdict, answered, err := readLine(lines.Bytes(), &of, n)
		if p, has := table.AsProblem(err); has && p.Line > 0 { // one of an id alone has no place
			return out, table.One(p)
		}
		if err != nil {
			return out, fail(err.Error(), scoreForm)
		}
		_, judged := out.Of[key]
		switch {
		case judged || out.Unjudged[key]:
			return out, fail(fmt.Sprintf("%s stands twice", key), "keep one line for each entry")
		case answered:
			out.Of[key] = rules.Judge(verdict)
		default:
			out.Unjudged[key] = true
		}
	}
	err := lines.Err()
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		n++ // it was not read
		return out, fail("the line is longer than 4 MiB", "keep ids and answers, leave out pictures")
	case err != nil:
		return out, fmt.Errorf("read %s: %w", file, err)
	case len(out.Of) == 0:
		n = 1 // it is about the whole file
		return out, fail("no line has an answer", scoreForm)
	}
	return out, of.problems()
}

// about is what the lines of one file say of the entries that they are about.
type about struct {
	file   string
	images manifest.Images
	beside manifest.Beside
}

// key gives the entry of a line, or what is wrong with it.
func (a *about) key(l *scoreLine, n int) (manifest.Key, error) {
	key, err := l.key()
	if err != nil {
		return key, err
	}
	at := manifest.Problem{File: a.file, Line: n}
	key, p := a.images.Key(key, l.named(manifest.ImageNamed), at)
	if p == nil {
		p = a.beside.Judge(key.ID, l.named(manifest.AboutNamed), at)
	}
	if p != nil {
		return key, p
	}
	return key, nil
}

// problems are those that only all lines tell.
func (a *about) problems() error {
	all := a.beside.Comments()
	all.Add(a.images.Mixed()...)
	return all.Err()
}

const scoreForm = `write one object a line: {"id": "abc123", "flagged": true, "categories": {"self-harm": true}, "severities": {"SelfHarm": 4}}, ` +
	`or the service's own answer: {"id": "abc123", "response": ...}`

// readLine reads a line. What is wrong with a person's own line is an error; an answer of a service that cannot be
// one is none.
func readLine(line []byte, of *about, n int) (key manifest.Key, v labels.Verdict, answered bool,
	err error) {
	var l scoreLine
	if err := json.Unmarshal(line, &l); err != nil {
		// Not the decoder's words, which can hold the text in which the fault was found.
		return key, v, false, errors.New("the line is not a JSON object of the form that is read here")
	}
	key, err = of.key(&l, n)
	if err != nil {
		return key, v, false, err
	}
	response := isThere(l.Response)
	own := l.hasAnswer()
	answered, err = l.unwrap()
	if twice := once(line); err == nil && twice != nil {
		answered, err = false, unsound{twice}
		if !response {
			err = twice
		}
	}
	switch {
	case errors.As(err, new(unsound)):
		return key, v, false, nil
	case err != nil:
		return key, v, false, err
	case response && own:
		return key, v, false, errors.New("the line has an answer of its own beside the response")
	case !response && answered:
		err = l.Verdict.Sound()
	}
	return key, l.Verdict, answered, err
}

// key is the entry that a line is about. A line of a batch also has an id of its own, which names no post.
func (l *scoreLine) key() (manifest.Key, error) {
	key, err := manifest.ParseCellKey(l.ID)
	custom, otherErr := manifest.ParseCellKey(l.CustomID)
	switch {
	case err == nil && otherErr == nil && key != custom:
		return key, errors.New("the line has two ids, in id and custom_id: keep the one of the post")
	case err != nil && (otherErr == nil || l.ID == ""):
		key, err = custom, otherErr
	}
	if err != nil {
		return key, fmt.Errorf("the id does not name a post: %w", err)
	}
	return key, nil
}

// A rawAnswer is what the services answer: OpenAI's moderations, Azure AI Content Safety, a chat with Llama Guard, and
// the envelope of a batch.
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
	Choices json.RawMessage `json:"choices"`
	Body    json.RawMessage `json:"body"`
	Model   any             `json:"model"`
	Status  any             `json:"status"` // of HTTP where it is a number, else a word of the service
	failure
}

// failed reports whether the service says that there is no answer.
func (r *rawAnswer) failed() bool {
	status, isNumber := r.Status.(float64)
	return r.failure.failed() || isNumber && isBad(status)
}

// answers is how many answers there are, which may differ.
func (r *rawAnswer) answers() (n int) {
	for _, has := range []bool{len(r.Results) > 0, len(r.Analysis) > 0, isThere(r.Choices), isThere(r.Body)} {
		if has {
			n++
		}
	}
	return n
}

func isThere(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// unwrap brings a raw answer into the form of the line, and reports whether there is an answer.
func (l *scoreLine) unwrap() (answered bool, err error) {
	maps.DeleteFunc(l.Categories, isNull)
	maps.DeleteFunc(l.Scores, isNull)
	maps.DeleteFunc(l.Severities, isNull)
	if l.failed() || l.isNone() {
		return false, nil
	}
	if !isThere(l.Response) {
		return l.hasAnswer(), nil
	}
	var text string
	if json.Unmarshal(l.Response, &text) == nil {
		return l.guard(text), nil
	}
	return l.unwrapRaw(l.Response, true)
}

// unwrapRaw reads a service's own answer. envelope says that it may stand in the body of a line of a batch.
func (l *scoreLine) unwrapRaw(whole json.RawMessage, envelope bool) (answered bool, err error) {
	var raw rawAnswer
	err = json.Unmarshal(whole, &raw)
	switch {
	case err != nil:
		return false, errNoService
	case raw.failed():
		return false, nil
	case raw.answers() > 1:
		return false, unsound{errors.New("the response has several answers")}
	case envelope && isThere(raw.Body):
		return l.unwrapRaw(raw.Body, false)
	case envelope && len(raw.Body) > 0: // null
		return false, nil
	case isThere(raw.Choices) && HasOtherCodes(fmt.Sprint(raw.Model)):
		return false, fmt.Errorf("the response is of %.60q, whose codes are not those of Llama Guard 3 and 4",
			raw.Model)
	case isThere(raw.Choices):
		reply := endpoint.ReadChat(whole)
		if reply.Outcome != endpoint.OK {
			return false, unsound{errors.New(reply.Detail)}
		}
		return l.guard(reply.Text), nil
	}
	reply := endpoint.Reply{Outcome: endpoint.OK}
	switch {
	case len(raw.Results) > 0:
		reply = endpoint.ReadModeration(whole)
	case len(raw.Analysis) > 0:
		reply.Outcome, reply.Detail = endpoint.Marked(whole)
	}
	if reply.Outcome != endpoint.OK {
		return false, unsound{errors.New(reply.Detail)}
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
	case len(raw.Results) > 0: // one, as ReadModeration found
		r := raw.Results[0]
		maps.DeleteFunc(r.Categories, isNull)
		maps.DeleteFunc(r.Scores, isNull)
		l.Flagged, l.Categories, l.Scores = r.Flagged, r.Categories, r.Scores
		if err := (labels.Verdict{Flagged: r.Flagged, Categories: r.Categories, Scores: r.Scores}).Sound(); err != nil {
			return false, unsound{err}
		}
		return l.hasAnswer(), nil
	case len(raw.Analysis) > 0:
		l.Severities = map[string]*float64{}
		for _, a := range raw.Analysis {
			if old := l.Severities[a.Category]; old != nil && a.Severity != nil && *old != *a.Severity {
				return false, unsound{fmt.Errorf("the category %.40q has two severities", a.Category)}
			}
			if a.Severity != nil {
				l.Severities[a.Category] = a.Severity
			}
		}
		if err := (labels.Verdict{Severities: l.Severities}).Sound(); err != nil {
			return false, unsound{err}
		}
		return len(l.Severities) > 0, nil
	}
	return false, errNoService
}

// otherGuards are models that write as Llama Guard 3 does, and whose codes mean something else: in Llama Guard 2, S10
// is self-harm and S11 is not; the first Llama Guard, and Aegis after it, have O1 to O13.
var otherGuards = regexp.MustCompile(`(?i)llama-?guard-?2(?:[^0-9]|$)|llama-?guard-?7b|aegis`)

// HasOtherCodes reports whether a model, by its name, is one that writes as Llama Guard 3 and 4 do and means others.
func HasOtherCodes(model string) bool { return otherGuards.MatchString(model) }

// guardCode is a code that Llama Guard has: its versions 3 and 4 have S1 to S14, of which S11 is self-harm.
var guardCode = regexp.MustCompile(`^S(?:[1-9]|1[0-4])$`)

// guard reads what Llama Guard writes, after thoughts: safe alone, or unsafe and one line of codes. Anything else is
// not an answer.
func (l *scoreLine) guard(text string) bool {
	text, why := endpoint.Spoken(text, "")
	if why != "" {
		return false
	}
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
