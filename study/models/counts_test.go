package models

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/study/endpoint"
)

// TestPictureTokens: a picture costs a token for 28 by 28 pixels of what is sent, and one.
func TestPictureTokens(t *testing.T) {
	for _, test := range []struct{ most, width, height, want int }{
		{0, 8, 8, 1}, {0, 28, 28, 2}, {0, 280, 560, 201}, {560, 280, 560, 201}, {280, 280, 560, 51}, {280, 560, 280, 51},
		{1000, 280, 560, 201}, {14, 5000, 20, 1},
	} {
		p := &Pictures{MaxSide: test.most}
		if got := p.tokens(workspace.Image{Width: test.width, Height: test.height}); got != test.want {
			t.Errorf("%+v: %d", test, got)
		}
	}
	const how = "upright JPEG as stored, else PNG of the first frame, upright, over white"
	testkit.Same(t, "as they are", how, (&Pictures{}).How())
	testkit.Same(t, "smaller", how+"; the longer side at most 7 pixels", (&Pictures{MaxSide: 7}).How())
}

// TestPictureThatIsNone: a picture that cannot be read is an error.
func TestPictureThatIsNone(t *testing.T) {
	for _, body := range []string{"", "no picture", "\x89PNG\r\n\x1a\n"} {
		if out, err := prepare([]byte(body), "png", 0); err == nil || out.Data != nil {
			t.Errorf("%q: %+v, %v", body, out, err)
		}
	}
	at := rows(t, 1)
	p := &Pictures{Store: at.store()}
	at.in(t, func(ws *workspace.Workspace) error {
		body := []byte("no picture")
		err := ws.StoreImage(t.Context(), testRow(0).Key, body,
			workspace.Image{Format: "png", Width: 8, Height: 8, OriginalSHA256: state.SHA256(body)})
		for rec, err := range ws.Records(t.Context(), workspace.Select{}) {
			testkit.OK(t, err)
			if out, err := p.readFrom(t.Context(), ws, rec); err == nil || out.Data != nil ||
				!strings.Contains(err.Error(), "prepare the picture of row00") {
				t.Errorf("of a workspace: %+v, %v", out, err)
			}
		}
		return err
	})
}

// TestCounted: what a server did not count costs the estimate, 100 and 10 here, and so does each request that was
// repeated; what was an estimate is stored below 0.
func TestCounted(t *testing.T) {
	estimate := func(workspace.Record) (in, out int) { return 100, 10 }
	noPrompt := func(workspace.Record) (in, out int) { return 0, 10 }
	noAnswer := func(workspace.Record) (in, out int) { return 100, 0 }
	for _, test := range []struct {
		name    string
		tokens  func(workspace.Record) (in, out int)
		reply   endpoint.Reply
		in, out int
		stored  endpoint.Usage
	}{
		{"both counted", estimate, reply("x", 7, 3, 1), 7, 3, endpoint.Usage{Prompt: 7, Completion: 3}},
		{"the prompt not", estimate, reply("x", 0, 3, 1), 100, 3, endpoint.Usage{Prompt: -100, Completion: -3}},
		{"the answer not", estimate, reply("x", 7, 0, 1), 7, 10, endpoint.Usage{Prompt: -7, Completion: -10}},
		{"an answer without text", estimate, reply("", 7, 0, 1), 7, 0, endpoint.Usage{Prompt: 7}},
		{"neither", estimate, reply("", 0, 0, 1), 100, 10, endpoint.Usage{Prompt: -100, Completion: -10}},
		{"a prompt of none", noPrompt, reply("x", 0, 3, 1), 0, 3, endpoint.Usage{Completion: 3}},
		{"an answer of none", noAnswer, reply("x", 7, 0, 1), 7, 0, endpoint.Usage{Prompt: 7}},
		{"no estimate", nil, reply("x", 0, 0, 3), 0, 0, endpoint.Usage{}},
		{"an estimate of before", estimate, reply("x", -7, -3, 1), 7, 3, endpoint.Usage{Prompt: -7, Completion: -3}},
		{"one of before of the prompt", estimate, reply("x", -7, 0, 1), 7, 0, endpoint.Usage{Prompt: -7}},
		{"one of before of the answer", estimate, reply("x", 0, -3, 1), 0, 3, endpoint.Usage{Completion: -3}},
		{"sent twice", estimate, reply("x", 7, 3, 2), 107, 13, endpoint.Usage{Prompt: -107, Completion: -13}},
		{"sent three times", estimate, reply("x", 7, 3, 3), 207, 23, endpoint.Usage{Prompt: -207, Completion: -23}},
		{"counted in two ways", estimate, contradicting(reply("x", 7, 3, 1)), 7, 3,
			endpoint.Usage{Prompt: -7, Completion: -3}},
	} {
		in, out, stored := Question{Tokens: test.tokens}.cost(workspace.Record{}, test.reply)
		if in != test.in || out != test.out || stored != test.stored {
			t.Errorf("%s: %d, %d, %+v, want %d, %d, %+v", test.name, in, out, stored, test.in, test.out, test.stored)
		}
	}
}

func reply(text string, in, out, sent int) endpoint.Reply {
	return endpoint.Reply{Text: text, Usage: endpoint.Usage{Prompt: in, Completion: out}, Sent: sent}
}

func contradicting(r endpoint.Reply) endpoint.Reply {
	r.Contradicts = true
	return r
}

// TestLimits: which limit ended a work, and which was passed and by how much.
func TestLimits(t *testing.T) {
	const next, total = ", and the next answer could go beyond ", "--max-cost-total"
	for _, test := range []struct {
		name          string
		limits        Limits
		asked         int
		cost, spent   float64
		limit, passed string
		raise         string
	}{
		{"requests", Limits{Requests: 3, Cost: 1}, 3, 0.5, 0, "3 requests are made", "", ""},
		{"cost before requests", Limits{Requests: 3, Cost: 1}, 2, 0.5, 0, "0.5000 is spent" + next + "1.0000", "", ""},
		{"total", Limits{Total: 2}, 2, 0.5, 1.5, "1.5000 is spent by all commands" + next + "2.0000", "", total},
		{"less is left of the total", Limits{Cost: 1, Total: 2}, 2, 0.5, 1.75,
			"1.7500 is spent by all commands" + next + "2.0000", "", total},
		{"less is left of the cost", Limits{Cost: 1, Total: 2}, 2, 0.5, 1, "0.5000 is spent" + next + "1.0000", "", ""},
		{"as much is left of both, and the total stays reached", Limits{Cost: 1, Total: 2}, 2, 0.5, 1.5,
			"1.5000 is spent by all commands" + next + "2.0000", "", total},
		{"the cost is reached", Limits{Cost: 1}, 2, 1, 1, "1.0000 is spent" + next + "1.0000", "", ""},
		{"the cost is passed", Limits{Cost: 1}, 2, 1.25, 9, "1.2500 is spent" + next + "1.0000",
			"the limit of 1.0000 for this command is passed: 1.2500 is spent, 0.2500 more", ""},
		{"the cost is less than one answer's", Limits{Cost: 0.000012345}, 0, 0, 9,
			"0.0000 is spent" + next + "0.00001234", "", "--max-cost"},
		{"the total is passed", Limits{Total: 2}, 2, 0.5, 2.5, "2.5000 is spent by all commands" + next + "2.0000",
			"the limit of 2.0000 for all commands is passed: 2.5000 is spent, 0.5000 more", total},
		{"the total was passed before", Limits{Total: 2}, 0, 0, 2.5, "2.5000 is spent by all commands" + next + "2.0000",
			"", total},
	} {
		w := &Work{Limits: test.limits, progress: Progress{Asked: test.asked, Cost: test.cost}, requests: test.asked,
			spent: test.spent}
		limit, raise := w.limit()
		testkit.Same(t, test.name+": the limit", test.limit, limit)
		testkit.Same(t, test.name+": to raise", test.raise, raise)
		testkit.Same(t, test.name+": passed", test.passed, w.passed())
	}
	testkit.Same(t, "a price of a million tokens", 3.5, Limits{PriceIn: 1, PriceOut: 5}.cost(1_000_000, 500_000))
}

// TestAmount: a sum of money is never written as 0, and no digit is written that says nothing.
func TestAmount(t *testing.T) {
	for _, test := range []struct {
		sum      float64
		decimals int
		want     string
	}{{0, 4, "0.0000"}, {1e-7, 4, "0.0000001"}, {0.00063 + 1e-12, 4, "0.00063"}, {0.0123456, 4, "0.01235"},
		{0.05, 4, "0.0500"}, {0.5, 4, "0.5000"}, {12.34567, 4, "12.3457"}, {0.0013, 2, "0.0013"}, {0.00999, 2, "0.01"},
		{0.099, 2, "0.099"}, {1.999, 2, "2.00"}} {
		testkit.Same(t, fmt.Sprint(test.sum, ", ", test.decimals), test.want, Amount(test.sum, test.decimals))
	}
}

// TestEnough: answers are stored when they are a hundred, or their text is 8 MiB.
func TestEnough(t *testing.T) {
	for _, test := range []struct {
		name   string
		length int // of each text
		n      int // the first answer with which it is enough
	}{{"many", 1, 100}, {"long", 4 << 20, 2}, {"longer", 9 << 20, 1}} {
		w := &Work{Now: func() time.Time { return noon }, full: make(chan struct{}, 1)}
		text := strings.Repeat("x", test.length)
		for i := range test.n {
			testkit.Same(t, fmt.Sprintf("%s: enough before answer %d", test.name, i+1), false, w.enough() || len(w.full) > 0)
			w.hold(asking{rec: workspace.Record{Image: &workspace.Image{}}}, endpoint.Reply{Text: text})
		}
		if !w.enough() || len(w.full) != 1 {
			t.Errorf("%s: %d answers are not enough", test.name, test.n)
		}
		w.hold(asking{rec: workspace.Record{Image: &workspace.Image{}}}, endpoint.Reply{Text: text}) // and does not block
	}
}

// TestStoreFails: answers that cannot be stored are an error that says how many are lost, beside what had halted the
// work.
func TestStoreFails(t *testing.T) {
	full, halt := errors.New("no space left"), errors.New("halted")
	const lost = "2 answers could not be stored; they are lost, and the next command asks and pays for them again: "
	for _, test := range []struct {
		name string
		halt error
		want string
	}{
		{"nothing halted it", nil, lost + "no space left"},
		{"a limit", errLimit, lost + "no space left"},
		{"rows that became too old", errStale, lost + "no space left"},
		{"trouble", halt, "halted; " + lost + "no space left"},
	} {
		w := &Work{halt: test.halt, held: make([]workspace.Answer, 2),
			Store: Store{Write: func(context.Context, func(*workspace.Workspace) error) error { return full }}}
		err := w.storeRest(t.Context())
		if !errors.Is(err, full) || err.Error() != test.want || errors.Is(err, halt) != (test.halt == halt) {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
	}
}

// TestReportCounts: a report says what answers came to, which models gave them, when, and how many tokens are an
// estimate.
func TestReportCounts(t *testing.T) {
	q := Question{Digest: func(rec workspace.Record) string { return string(rec.ID) },
		Tokens: func(workspace.Record) (in, out int) { return 100, 10 }}
	done := &Done{answers: map[string]workspace.Answer{
		"row00": {Outcome: "ok", Text: "x", Model: "m", In: 7, Out: 3, At: noon},
		"row01": {Outcome: "failed", Model: "n", In: -5, Out: -2, At: noon.Add(-time.Hour)},
		"row02": {Outcome: "ok", Text: "x", At: noon.Add(time.Hour)}}}
	for i := range 4 {
		done.Rows = append(done.Rows, workspace.Record{Entry: testRow(i)})
	}
	var report TaskReport
	report.count(done, q)
	want := TaskReport{Models: map[string]int{"m": 1, "n": 1},
		Outcomes: map[endpoint.Outcome]int{"ok": 2, "failed": 1, "not_asked": 1}, In: 112, Out: 15, Estimated: 2,
		First: noon.Add(-time.Hour), Last: noon.Add(time.Hour)}
	testkit.Same(t, "the counts", want, report)
	testkit.Same(t, "ok", 2, report.OK())
	testkit.Same(t, "not ok", map[string]int{"failed": 1, "not_asked": 1}, report.NotOK())
	testkit.Same(t, "other models", []string{"n"}, Report{Model: "m", Tasks: []TaskReport{report}}.OtherModels())
	testkit.Same(t, "no other", []string(nil), Report{Model: "m"}.OtherModels())
}

// TestStill: a row that was planned is sent only while it is kept, has its picture, and its post was seen live lately.
func TestStill(t *testing.T) {
	planned := workspace.Record{Image: &workspace.Image{SHA256: "1"}}
	at := rows(t, 4)
	var judge state.Judge
	var now workspace.Record
	at.in(t, func(ws *workspace.Workspace) (err error) {
		for rec, err := range ws.Records(t.Context(), workspace.Select{}) {
			testkit.OK(t, err)
			now = rec
		}
		judge, err = state.StoredJudge(t.Context(), ws, noon)
		return err
	})
	planned.Image.SHA256 = now.Image.SHA256
	for name, tt := range map[string]struct {
		change func(*workspace.Record)
		later  time.Duration
		want   error
	}{
		"as it was":  {func(*workspace.Record) {}, 0, nil},
		"no picture": {func(r *workspace.Record) { r.Image = nil }, 0, errGone},
		"no result":  {func(r *workspace.Record) { r.Result = nil }, 0, errGone},
		"not kept":   {func(r *workspace.Record) { r.Result = &manifest.Result{Outcome: "duplicate"} }, 0, errGone},
		"gone":       {func(r *workspace.Record) { r.Post.State = manifest.StateRemoved }, 0, errGone},
		"another picture": {func(r *workspace.Record) {
			img := *r.Image
			img.SHA256 = "2"
			r.Image = &img
		}, 0, errStale},
		"seen long ago": {func(*workspace.Record) {}, 1000 * time.Hour, errStale},
	} {
		rec, later := now, judge
		tt.change(&rec)
		later.Now = noon.Add(tt.later)
		if got := still(later, planned, rec); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// TestDefinitions: a class of several labels is defined by each that has a definition, and is called by any of their
// names; a word for two classes is none.
func TestDefinitions(t *testing.T) {
	category := manifest.Category{Name: "c", Kind: manifest.Ordinal, Labels: []manifest.Label{
		{Code: "A", Name: "low", Description: "little."}, {Code: "B", Name: "mid", Description: "some."},
		{Code: "C", Name: "high"}, {Code: "low", Name: "top"}, {Code: "E", Name: "far"}, {Code: "F", Name: "out"}}}
	of, err := labels.NewTask(manifest.Schema{Categories: []manifest.Category{category}}, manifest.Task{Category: "c",
		Merge: [][]string{{"B", "C"}, {"E", "F"}}})
	testkit.OK(t, err)
	task := &Task{Task: of, category: category}
	var definitions []string
	for i := range task.Classes {
		definitions = append(definitions, task.definition(i))
	}
	testkit.Same(t, "definitions", []string{"little.", "mid (some); high.", "", ""}, definitions)
	for text, want := range map[string]string{"LOW": "unknown_label", "a": "[0] ok", "high": "[1] ok", "b": "[1] ok",
		"Top": "[2] ok", "B+C": "[1] ok"} {
		classes, outcome, _ := task.Read(`{"c":"` + text + `"}`)
		got := string(outcome)
		if outcome == endpoint.OK {
			got = fmt.Sprint(classes, " ", outcome)
		}
		testkit.Same(t, text, want, got)
	}
	testkit.Same(t, "the label of a class", 1, task.label(1))
	testkit.Same(t, "no class", -1, task.label(9))
}

// TestPromptFiles: the prompt of a folder is text in UTF-8 of at most 64 KiB; where it has none, the built-in one is
// taken, and what cannot be one is an error that names the file.
func TestPromptFiles(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       string // in the error, or the prompt's source
	}{
		{"a prompt", "How severe?", "severity.txt"},
		{"as long as it may be", strings.Repeat("x", maxPrompt), "severity.txt"},
		{"too long", strings.Repeat("x", maxPrompt+1), "is not a file of at most 65536 bytes"},
		{"blank", " \n", "does not hold text in UTF-8"},
		{"a mark alone", "\ufeff", "does not hold text in UTF-8"},
		{"another encoding", "caf\xe9", "does not hold text in UTF-8"},
		{"a folder", "", "is not a file"},
		{"none", "", "built-in"},
	} {
		folder := t.TempDir()
		name := filepath.Join(folder, "severity.txt")
		switch test.name {
		case "none":
		case "a folder":
			testkit.OK(t, os.Mkdir(name, 0o700))
		default:
			testkit.OK(t, os.WriteFile(name, []byte(test.text), 0o600))
		}
		tasks, err := Tasks(manifest.FigSIM(), []string{"severity"}, folder)
		got := fmt.Sprint(err)
		if err == nil {
			got = tasks[0].From
		}
		if !strings.Contains(got, test.want) || test.want == "severity.txt" &&
			(err != nil || tasks[0].Prompt != test.text) ||
			err != nil && !strings.Contains(got, name) {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// TestReasons: an answer that is none says why.
func TestReasons(t *testing.T) {
	task := &figsim(t)[1]
	for text, want := range map[string]string{
		"":                                   "it holds no JSON object",
		"None":                               "it holds no JSON object",
		right[:len(right)-2]:                 "its JSON object is cut",
		`{severity: "None"}`:                 "its JSON object cannot be read",
		"It is " + right:                     "it is not the JSON object alone",
		right + " or so":                     "it is not the JSON object alone",
		"<answer>" + right + "</response>":   "it is not the JSON object alone",
		`{"severity":"None","severity":"x"}`: "its JSON object cannot be read: ",
		`{"severity":"None","SEVERITY":"x"}`: `its JSON object has several keys that spell "severity"`,
		`{"severity":"None","x":1}`:          `its JSON object does not have the key "severity" alone`,
		`{"x":1}`:                            `its JSON object does not have the key "severity" alone`,
		`{"x":{"severity":"None"}}`:          `its JSON object has no key "severity"`,
		`{"x":[{"severity":"a","y":1}]}`:     `its JSON object does not have the key "severity" alone`,
		`{"severity":"high"}`:                `"high" is not a label of severity`,
		`{"severity":7}`:                     "a label of severity is a text",
		`{"severity":["SS1","SS2"]}`:         "2 labels, where one is asked for",
		`{"severity":[]}`:                    "0 labels, where one is asked for",
	} {
		if _, outcome, why := task.Read(text); outcome == endpoint.OK || !strings.HasPrefix(why, want) {
			t.Errorf("%s: %s %q, want %q", text, outcome, why, want)
		}
	}
}

// TestProse: with words around them, all objects of an answer have to say the same; one that stands deeper counts, and
// braces that begin none are prose, unless they give the key a value.
func TestProse(t *testing.T) {
	task := figsim(t)[1]
	task.Prose = true
	const one, other = `{"severity":"Suicide ideation"}`, `{"severity":"Suicide planning"}`
	for _, test := range []struct {
		name, text string
		want       endpoint.Outcome
		why        string // in it
	}{
		{"words around", "Here it is: " + one + ". Done.", endpoint.OK, ""},
		{"twice", one + " so " + one, endpoint.OK, ""},
		{"two that differ", one + " or " + other, NotJSON, "2 JSON objects"},
		{"deeper", `{"answer":[{"x":1},` + one + `]}`, endpoint.OK, ""},
		{"deeper, with another key", `{"answer":[{"severity":"Suicide ideation","x":1}]}`, NotJSON,
			"the key \"severity\" alone"},
		{"in an object, with another key", `{"a":{"severity":"Suicide ideation","x":1}}`, NotJSON,
			"the key \"severity\" alone"},
		{"the key in two spellings", `{"severity":"Suicide ideation","Severity":"x"}`, NotJSON, "several keys"},
		{"another key alone", `{"x":1}`, NotJSON, `no key "severity"`},
		{"no object", "It is {unclear}.", NotJSON, "it holds no JSON object"},
		{"braces of prose", "I {think} it is " + one, endpoint.OK, ""},
		{"braces that give the key a value", "{severity: high} " + one, NotJSON, "cannot be read"},
		{"as many braces as may be", strings.Repeat("{x} ", 100) + one, endpoint.OK, ""},
		{"a brace more", strings.Repeat("{x} ", 101) + one, NotJSON, "cannot be read"},
		{"the last brace is cut away", "It is " + one[:len(one)-1], endpoint.OK, ""},
		{"more is cut away", "It is " + one[:len(one)-2], NotJSON, "is cut"},
		{"one that is no label", `It is {"severity":"high"}`, UnknownLabel, "is not a label"},
		{"one of two is no label", one + ` {"severity":"high"}`, NotJSON, "do not say the same"},
	} {
		_, got, why := task.Read(test.text)
		if got != test.want || !strings.Contains(why, test.why) || (why == "") != (got == endpoint.OK) {
			t.Errorf("%s: %s %q, want %s %q", test.name, got, why, test.want, test.why)
		}
	}
}

// TestWriteFails: a file that cannot be written is an error, whichever it is.
func TestWriteFails(t *testing.T) {
	at, full := rows(t, 4), errors.New("no space left")
	tasks := figsim(t)
	c := &Classification{Pictures: &Pictures{Store: at.store()}, Tasks: tasks[1:2], Runs: 2, Shots: 1,
		Warn: func(string) {}}
	m := &Moderation{Pictures: &Pictures{Store: at.store()}, Send: []string{SendImage}}
	done := &Done{}
	at.in(t, func(ws *workspace.Workspace) error {
		for rec, err := range ws.Records(t.Context(), workspace.Select{}) {
			testkit.OK(t, err)
			done.Rows = append(done.Rows, rec)
		}
		_, err := c.Questions(t.Context(), ws, done.Rows)
		_, otherErr := m.Questions(t.Context(), ws, nil)
		return errors.Join(err, otherErr)
	})
	for _, test := range []struct {
		name  string
		write func(Sink, *Done, Report) ([]string, error)
	}{{"predictions-1.jsonl", c.Write}, {"predictions-2.jsonl", c.Write}, {ExamplesName, c.Write}, {RunName, c.Write},
		{ScoresName, m.Write}, {RunName, m.Write}} {
		broken := func(name string, write func(io.Writer) error) error {
			if name == test.name {
				return write(noRoom{full})
			}
			return write(io.Discard)
		}
		if _, err := test.write(broken, done, Report{}); !errors.Is(err, full) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// A noRoom writes nothing.
type noRoom struct{ err error }

func (f noRoom) Write([]byte) (int, error) { return 0, f.err }
