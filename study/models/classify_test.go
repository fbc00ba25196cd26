package models

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/internal/testkit/modelserver"
	"rehydrate/internal/word"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
	"rehydrate/study/endpoint"
)

// labelled are records with labels of a category's place.
func labelled(place int, labels ...[]int) []workspace.Record {
	var all []workspace.Record
	for i, l := range labels {
		e := testRow(i)
		e.Labels = make([][]int, 5)
		e.Labels[place] = l
		all = append(all, workspace.Record{Entry: e})
	}
	return all
}

// TestChoose: examples show every class before they repeat one, by a rank that other rows do not move.
func TestChoose(t *testing.T) {
	tasks := figsim(t)
	ids := func(chosen []workspace.Record) (all []string) {
		for _, rec := range chosen {
			all = append(all, string(rec.ID))
		}
		return all
	}
	severity := labelled(1, []int{0}, []int{0}, []int{0}, []int{1}, []int{2}, []int{3}, []int{4}, []int{5}, []int{2},
		nil, []int{})
	chosen, missing := tasks[1].choose(severity, 6, "1")
	classes := map[int]int{}
	for _, rec := range chosen {
		classes[tasks[1].ClassesOf(rec.Labels)[0]]++
	}
	if len(chosen) != 6 || len(classes) != 5 || missing != nil {
		t.Errorf("examples %q with classes %v, missing %q", ids(chosen), classes, missing)
	}
	backwards := slices.Clone(severity)
	slices.Reverse(backwards)
	again, _ := tasks[1].choose(backwards, 6, "1")
	testkit.Same(t, "in another order", ids(chosen), ids(again))
	other, _ := tasks[1].choose(severity, 6, "2")
	if slices.Equal(ids(chosen), ids(other)) {
		t.Errorf("two seeds choose %q", ids(other))
	}
	// The pictures of one post have their own order.
	gallery := labelled(1, []int{0}, []int{0}, []int{0}, []int{0}, []int{0}, []int{0})
	for i := range gallery {
		gallery[i].Key = manifest.Key{ID: "row00", Image: i}
	}
	for range 2 {
		shown, _ := tasks[1].choose(gallery, 3, "1")
		var images []int
		for _, rec := range shown {
			images = append(images, rec.Key.Image)
		}
		testkit.Same(t, "pictures of one post", []int{0, 1, 2}, images)
		slices.Reverse(gallery)
	}
	_, missing = tasks[1].choose(severity, 2, "1")
	if len(missing) != 3 {
		t.Errorf("two examples lack %q, want three classes", missing)
	}
	few, missing := tasks[1].choose(severity[:4], 6, "1")
	testkit.Same(t, "of four rows", "Suicide attempts/Suicide death, Suicide ideation, Suicide planning",
		strings.Join(missing, ", "))
	testkit.Same(t, "of four rows", 4, len(few))

	all, _ := tasks[1].choose(severity, len(severity), "1")
	testkit.Same(t, "rows that have an answer to show", 9, len(all))

	// Of several labels: a row with none is one of those that have to be there. None alone does not count as a label.
	several, missing := tasks[0].choose(labelled(0, []int{0, 1}, []int{2}, []int{2}, []int{2}, []int{3}, nil), 3, "1")
	testkit.Same(t, "missing", []string(nil), missing)
	_, lack := tasks[0].choose(labelled(0, []int{0, 1}, []int{2}), 2, "1")
	testkit.Same(t, "missing, where every row has a label", []string{"no label"}, lack)
	var answers []string
	for _, rec := range several {
		answers = append(answers, tasks[0].answer(rec))
	}
	slices.Sort(answers)
	testkit.Same(t, "answers", []string{`{"figurative":["Irony/Sarcasm"]}`,
		`{"figurative":["Metaphor","Pun/Double meaning"]}`, `{"figurative":[]}`}, answers)
}

// TestPrepare: a JPEG goes as it is, whatever else as an upright PNG over white.
func TestPrepare(t *testing.T) {
	img := image.NewNRGBA(image.Rect(0, 0, 40, 20))
	img.Set(0, 0, color.NRGBA{R: 255, A: 255})
	var asPNG, asJPEG, asGIF bytes.Buffer
	testkit.OK(t, png.Encode(&asPNG, img))
	testkit.OK(t, jpeg.Encode(&asJPEG, img, nil))
	second := image.NewPaletted(img.Rect, color.Palette{color.White, color.Black})
	testkit.OK(t, gif.EncodeAll(&asGIF, &gif.GIF{Image: []*image.Paletted{second, second}, Delay: []int{0, 0}}))
	exif := []byte("\xff\xe1\x00\x22Exif\x00\x00II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00")
	exif = append(binary.LittleEndian.AppendUint32(exif, 6), 0, 0, 0, 0) // turned by a quarter
	turned := slices.Concat(asJPEG.Bytes()[:2], exif, asJPEG.Bytes()[2:])
	for _, tt := range []struct {
		name, format string
		body         []byte
		most         int
		kind, size   string
	}{
		{"JPEG", "jpeg", asJPEG.Bytes(), 0, "image/jpeg", "40x20"},
		{"JPEG that is small enough", "jpeg", asJPEG.Bytes(), 40, "image/jpeg", "40x20"},
		{"JPEG made smaller", "jpeg", asJPEG.Bytes(), 10, "image/png", "10x5"},
		{"JPEG on its side", "jpeg", turned, 0, "image/png", "20x40"},
		{"PNG", "png", asPNG.Bytes(), 0, "image/png", "40x20"},
		{"PNG made smaller", "png", asPNG.Bytes(), 1, "image/png", "1x1"},
		{"GIF", "gif", asGIF.Bytes(), 0, "image/png", "40x20"},
	} {
		out, err := prepare(tt.body, tt.format, tt.most)
		testkit.OK(t, err)
		got, kind, err := image.Decode(bytes.NewReader(out.Data))
		testkit.OK(t, err)
		size := got.Bounds().Size()
		if out.Type != tt.kind || "image/"+kind != out.Type ||
			strings.ReplaceAll(strings.Trim(size.String(), "()"), ",", "x") != tt.size {
			t.Errorf("%s: %s of %v", tt.name, out.Type, size)
		}
		if out.Type == "image/jpeg" && !bytes.Equal(out.Data, tt.body) {
			t.Errorf("%s: it was changed", tt.name)
		}
	}
	out, err := prepare(asPNG.Bytes(), "png", 0)
	testkit.OK(t, err)
	over, err := png.Decode(bytes.NewReader(out.Data))
	testkit.OK(t, err)
	if r, g, b, a := over.At(5, 5).RGBA(); r&g&b&a != 0xffff {
		t.Errorf("a transparent pixel is %d %d %d %d, want white", r, g, b, a)
	}
	for name, want := range map[string]uint32{"black": 0, "white": 0xffff} { // as everybody else sees it
		body, err := os.ReadFile("../../internal/picture/testdata/" + name + ".webp")
		testkit.OK(t, err)
		out, err := prepare(body, "webp", 0)
		testkit.OK(t, err)
		sent, err := png.Decode(bytes.NewReader(out.Data))
		testkit.OK(t, err)
		if r, g, b, _ := sent.At(5, 5).RGBA(); r != want || g != want || b != want {
			t.Errorf("a %s pixel of a WebP is %d %d %d", name, r, g, b)
		}
	}
}

// TestExamplesThatCannotBeHad: too few examples, and one whose picture is damaged, end the work before it asks.
func TestExamplesThatCannotBeHad(t *testing.T) {
	at := rows(t, 6) // three of them of train
	for _, test := range []struct {
		shots   int
		damaged bool
		want    string
	}{
		{3, false, ""}, {4, false, "3 rows can be examples of severity, and 4 are wanted"}, {3, true, "row01"},
	} {
		w, model := at.job(t, "classify", nil)
		server, err := endpoint.Open(endpoint.Options{URL: model.URL})
		testkit.OK(t, err)
		tasks, err := Tasks(manifest.FigSIM(), []string{"severity"}, "")
		testkit.OK(t, err)
		c := &Classification{Server: server, Shots: test.shots, Runs: 1, Split: "test", Tasks: tasks, Warn: func(string) {},
			Pictures: &Pictures{Store: at.store()},
			Chat: endpoint.Chat{Model: "m", Dialect: endpoint.VLLM,
				Decoding: endpoint.Decoding{MaxTokens: 128}}}
		w.Questions, w.Examples = c.Questions, "train"
		if test.damaged {
			at.in(t, func(ws *workspace.Workspace) error {
				return os.Remove(filepath.Join(ws.Dir(), ws.ImageName(testRow(1).Key, "png")))
			})
		}
		if test.want == "" {
			with, err := w.Plan(t.Context())
			testkit.OK(t, err)
			answers := 0
			for _, p := range c.parts {
				for _, rec := range p.examples {
					answers += len(p.task.answer(rec)) / 4
				}
			}
			c.Shots = 0
			without, err := w.Plan(t.Context())
			testkit.OK(t, err)
			c.Shots = test.shots
			// The prompt at four bytes a token, and a picture of one token.
			testkit.Same(t, "tokens without examples", 3*(len(tasks[0].Prompt)/4+1), without.In)
			// Each of three questions has three examples, each with a picture of one token and its answer.
			testkit.Same(t, "tokens of examples", 3*(3+answers), with.In-without.In)
		}
		_, err = w.Do(t.Context(), nil)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%d examples: %v, want %q", test.shots, err, test.want)
		}
		if asked := len(model.Requests()) > 0; asked != (test.want == "") {
			t.Errorf("%d examples: it was asked: %t", test.shots, asked)
		}
	}
}

// TestWarnings: it is said which class no example shows, and which rows are near-duplicates of one, and nothing else.
func TestWarnings(t *testing.T) {
	at := rows(t, 24) // with one text and almost one picture; those of train show every class
	for _, test := range []struct {
		name, split string
		shots       int
		want        []string // what each warning begins with
	}{
		{"no examples", "test", 0, nil},
		{"every class, and no row to be near", "val", 5, nil},
		{"too few for every class", "val", 4, []string{"no example of severity shows: "}},
		{"near every row", "test", 5, []string{"12 rows are near-duplicates of an example, and their answers may be " +
			"copied from it: row00 (row"}},
		{"near every row of all splits but themselves", "", 5, []string{"19 rows are near-duplicates"}},
	} {
		w, _ := at.job(t, "classify", nil)
		tasks, err := Tasks(manifest.FigSIM(), []string{"severity"}, "")
		testkit.OK(t, err)
		var warned []string
		c := &Classification{Shots: test.shots, Runs: 1, Split: test.split, Tasks: tasks,
			Pictures: &Pictures{Store: at.store()}, Warn: func(text string) { warned = append(warned, text) }}
		w.Questions, w.Examples, w.Split = c.Questions, "train", test.split
		plan, err := w.Plan(t.Context())
		testkit.Same(t, test.name+": rows", map[string]int{"": 24, "test": 12}[test.split], plan.Rows, err)
		if !slices.EqualFunc(warned, test.want, strings.HasPrefix) {
			t.Errorf("%s: warned of %q, want %q", test.name, warned, test.want)
		}
		for _, text := range warned {
			if near, names := strings.CutPrefix(text, "12 rows"); names && strings.Count(near, " (row") != 5 {
				t.Errorf("%s: of twelve rows five are named: %s", test.name, text)
			}
		}
	}
}

// TestNearOf: of rows that are near-duplicates of each other those alone are named that are near an example.
func TestNearOf(t *testing.T) {
	at := rows(t, 8) // with one text and almost one picture
	at.in(t, func(ws *workspace.Workspace) error {
		for _, i := range []int{2, 4} {
			key, body := testRow(i).Key, pngOf(t, 100+i)
			testkit.OK(t, ws.StoreImage(t.Context(), key, body, workspace.Image{Format: "png", Width: 8, Height: 8,
				PHash: 0xf0f0f0f0f0f0f0f0, OriginalSHA256: state.SHA256(body)}),
				ws.SetReadings(t.Context(), workspace.NewReading{Key: key, Reading: workspace.Reading{Fingerprint: "f",
					ImageSHA256: state.SHA256(body), Text: "something else",
					Words: []word.Word{{Text: "something", Confidence: 90, Accepted: true},
						{Text: "else", Confidence: 90, Accepted: true}}}}))
		}
		examples := []workspace.Record{{Entry: testRow(1)}, {Entry: testRow(3)}}
		near, err := nearOf(t.Context(), ws, policy.Default(), "test", examples)
		testkit.Same(t, "near", []string{"row00 (row01)", "row06 (row01)"}, near, err)
		return nil
	})
}

// TestSeeds: the first run has the seed that was given, and each of the others the next one.
func TestSeeds(t *testing.T) {
	at := rows(t, 2) // one of the split test
	w, model := at.job(t, "classify", nil)
	server, err := endpoint.Open(endpoint.Options{URL: model.URL})
	testkit.OK(t, err)
	tasks, err := Tasks(manifest.FigSIM(), []string{"severity"}, "")
	testkit.OK(t, err)
	c := &Classification{Server: server, Runs: 3, Seed: 5, Split: "test", Tasks: tasks,
		Pictures: &Pictures{Store: at.store()},
		Chat:     endpoint.Chat{Model: "m", Dialect: endpoint.VLLM, Decoding: endpoint.Decoding{MaxTokens: 128}}}
	w.Questions = c.Questions
	_, err = w.Do(t.Context(), nil)
	testkit.OK(t, err)
	var seeds []int
	for _, r := range model.Requests() {
		var body struct{ Seed int }
		testkit.OK(t, json.Unmarshal(r.Body, &body))
		seeds = append(seeds, body.Seed)
	}
	testkit.Same(t, "seeds", []int{5, 6, 7}, seeds)
	at.in(t, func(ws *workspace.Workspace) error {
		questions, err := c.Questions(t.Context(), ws, nil)
		testkit.OK(t, err)
		for rec, err := range ws.Records(t.Context(), workspace.Select{}) {
			testkit.OK(t, err)
			_, err = questions[0].Ask(t.Context(), rec, func(int) error { return nil })
			testkit.OK(t, err)
		}
		// Others that are asked at the same time would get it.
		if turns := c.parts[0].chat.Messages; turns[len(turns)-1].Image != nil {
			t.Error("a question keeps the picture of a row")
		}
		return nil
	})
}

// TestGiven: a label is taken from an answer that is ok alone, whatever the text of another one says.
func TestGiven(t *testing.T) {
	task := &figsim(t)[1]
	p := &part{task: task}
	p.Digest = func(rec workspace.Record) string { return string(rec.ID) }
	for _, test := range []struct {
		name, outcome, text string
		want                []int
	}{
		{"ok", "ok", right, []int{4}},
		{"cut, with an object", "truncated", right, nil},
		{"refused", "refused", right, nil},
		{"ok, by rules of before", "ok", "no object", nil},
		{"no answer", "", "", nil},
	} {
		done := &Done{answers: map[string]workspace.Answer{}}
		if test.outcome != "" {
			done.answers["row00"] = workspace.Answer{Outcome: test.outcome, Text: test.text}
		}
		testkit.Same(t, test.name, test.want, p.given(done, workspace.Record{Entry: testRow(0)}))
	}
}

// TestWrongParameters: what no request can be made of is an error before anything is asked.
func TestWrongParameters(t *testing.T) {
	at := rows(t, 2)
	chat := endpoint.Chat{Omit: []string{"colour"}}
	c := &Classification{Pictures: &Pictures{Store: at.store()}, Tasks: figsim(t), Runs: 1, Chat: chat}
	m := &Moderation{Pictures: &Pictures{Store: at.store()}, Guard: true, Send: []string{SendText}, Chat: chat}
	at.in(t, func(ws *workspace.Workspace) error {
		_, byChat := c.Questions(t.Context(), ws, nil)
		_, byGuard := m.Questions(t.Context(), ws, nil)
		_, reported := m.Report(&Done{}, manifest.FigSIM(), Limits{})
		later := &Classification{Pictures: c.Pictures, Tasks: figsim(t), Runs: 1}
		_, err := later.Questions(t.Context(), ws, nil)
		testkit.OK(t, err)
		later.parts[0].chat = chat
		_, laterReported := later.Report(&Done{}, manifest.FigSIM(), Limits{})
		for name, err := range map[string]error{"classified": byChat, "moderated": byGuard, "reported": reported,
			"a classification reported": laterReported} {
			if err == nil || !strings.Contains(err.Error(), `no parameter is called "colour"`) {
				t.Errorf("%s: %v", name, err)
			}
		}
		return nil
	})
}

// TestClassification asks a server without and with examples: what is sent, what changes a question, and what is
// written.
func TestClassification(t *testing.T) {
	ctx := t.Context()
	ws := rows(t, 24)
	model := modelserver.New(t, "vllm")
	var mu sync.Mutex
	counts := map[string]int{}
	model.Answer = func(r modelserver.Request) string {
		mu.Lock()
		defer mu.Unlock()
		n := 0
		for _, name := range []string{`"name":"severity"`, `"name":"figurative"`} {
			if bytes.Contains(r.Body, []byte(name)) {
				counts[name]++
				n = counts[name]
			}
		}
		switch {
		case n == 2:
			return "I cannot say."
		case bytes.Contains(r.Body, []byte(`"name":"severity"`)):
			return `{"severity":"Suicide death"}`
		}
		return `{"figurative":["Irony/Sarcasm","Metaphor"]}`
	}
	server, err := endpoint.Open(endpoint.Options{URL: model.URL})
	testkit.OK(t, err)
	tasks, err := Tasks(manifest.FigSIM(), []string{"figurative", "severity"}, "")
	testkit.OK(t, err)
	var warned []string
	newWork := func(c Classification) (*Classification, *Work) {
		c.Server, c.Pictures, c.Tasks, c.Split = server, &Pictures{Store: ws.store()}, tasks, "test"
		c.Chat.Model, c.Chat.Decoding.MaxTokens = "m", 128
		c.Warn = func(text string) { warned = append(warned, text) }
		return &c, &Work{Store: ws.store(), Model: "m", Now: newDesk(ws).Now, Split: "test", Examples: "train",
			Questions: c.Questions, Concurrency: 1}
	}
	c, w := newWork(Classification{Runs: 1, Seed: 1})
	done, err := w.Do(ctx, nil)
	testkit.OK(t, err)
	testkit.Same(t, "asked", 24, done.Asked)
	files := written(t, c, done)
	lines := strings.Split(files["predictions.jsonl"], "\n")
	testkit.Same(t, "predictions", []string{`{"id":"row00","figurative":["F1","F3"],"severity":"SS4+SS5"}`,
		`{"id":"row02","figurative":null,"severity":null}`,
		`{"id":"row04","figurative":["F1","F3"],"severity":"SS4+SS5"}`}, lines[:3])
	testkit.Same(t, "files", []string{"predictions.jsonl", "run.json"}, slices.Sorted(maps.Keys(files)))
	report, err := c.Report(done, manifest.FigSIM(), Limits{})
	testkit.OK(t, err)
	for _, task := range report.Tasks {
		testkit.Same(t, task.Task+": outcomes", map[endpoint.Outcome]int{endpoint.OK: 11, NotJSON: 1}, task.Outcomes)
		testkit.Same(t, task.Task+": examples", "", task.Examples)
	}

	// What decides an answer is part of its question; what does not is not.
	for name, tt := range map[string]struct {
		c    Classification
		want int
	}{
		"the same":     {Classification{Runs: 1, Seed: 1}, 0},
		"a second run": {Classification{Runs: 2, Seed: 1}, 24},
		"another seed": {Classification{Runs: 1, Seed: 9}, 24},
		"a dialect that says it otherwise": {Classification{Runs: 1, Seed: 1,
			Chat: endpoint.Chat{Dialect: endpoint.OpenAI}}, 24},
		"examples": {Classification{Runs: 1, Seed: 1, Shots: 6}, 24},
	} {
		_, w := newWork(tt.c)
		plan, err := w.Plan(ctx)
		testkit.Same(t, name, tt.want, plan.Requests, err)
	}

	c, _ = newWork(Classification{Runs: 1, Chat: endpoint.Chat{Omit: []string{"response_format"}}})
	c.Tasks = slices.Clone(tasks)
	c.Tasks[0].Prompt, c.Tasks[1].Prompt = "Give all labels.", "Give all labels."
	var questions []Question
	ws.in(t, func(open *workspace.Workspace) (err error) { questions, err = c.Questions(ctx, open, nil); return err })
	rec := workspace.Record{Image: &workspace.Image{SHA256: "1"}}
	if questions[0].Digest(rec) == questions[1].Digest(rec) {
		t.Error("two tasks with one prompt share their answers")
	}

	warned = nil
	c, w = newWork(Classification{Runs: 2, Seed: 1, Shots: 6})
	before := len(model.Requests())
	done, err = w.Do(ctx, nil)
	testkit.OK(t, err)
	first := string(model.Requests()[before].Body)
	for what, want := range map[string]int{`"type":"image_url"`: 7, `"role":"user"`: 7, `"role":"assistant"`: 6,
		"You are annotating": 1} {
		if got := strings.Count(first, what); got != want {
			t.Errorf("a question with six examples has %d times %s, want %d: %.2000s", got, what, want, first)
		}
	}
	files = written(t, c, done)
	testkit.Same(t, "files", []string{"examples.jsonl", "predictions-1.jsonl", "predictions-2.jsonl", "run.json"},
		slices.Sorted(maps.Keys(files)))
	testkit.Same(t, "examples", 24, strings.Count(files["examples.jsonl"], "\n"))
	report, err = c.Report(done, manifest.FigSIM(), Limits{PriceIn: 1e6})
	testkit.OK(t, err)
	if len(report.Tasks) != 4 || len(report.Scores) != 2 || report.Tasks[0].Macro == nil ||
		report.Cost != float64(report.In) || len(report.OtherModels()) > 0 {
		t.Errorf("report: %+v", report)
	}
	testkit.Same(t, "parameters of the first run", `{"max_tokens":128,"seed":1}`, string(report.Parameters))
	var sum [3]int
	for _, task := range report.Tasks {
		sum[0], sum[1], sum[2] = sum[0]+task.In, sum[1]+task.Out, sum[2]+task.Estimated
		if len(task.Examples) != 64 {
			t.Errorf("the digest of the examples of %s is %q", task.Task, task.Examples)
		}
	}
	testkit.Same(t, "the sums of all tasks", sum, [3]int{report.In, report.Out, report.Estimated})
	if strings.Contains(files["run.json"], "row0") {
		t.Errorf("run.json names a row: %s", files["run.json"])
	}
	if !slices.ContainsFunc(warned, func(s string) bool { return strings.Contains(s, "near-duplicates of an example") }) {
		t.Errorf("the rows have one text and one picture, but for a pixel: warned of %q", warned)
	}
}

func written(t *testing.T, c *Classification, done *Done) map[string]string {
	t.Helper()
	files := map[string]string{}
	report, err := c.Report(done, manifest.FigSIM(), Limits{})
	testkit.OK(t, err)
	ids, err := c.Write(func(name string, write func(io.Writer) error) error {
		var b bytes.Buffer
		err := write(&b)
		files[name] = b.String()
		return err
	}, done, report)
	testkit.OK(t, err)
	if !slices.Contains(ids, "row00") || slices.Contains(ids, "row01") && c.Shots == 0 {
		t.Errorf("ids %q", ids)
	}
	return files
}
