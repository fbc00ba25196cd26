package models

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/internal/testkit/modelserver"
	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/study/endpoint"
)

func figsim(t testing.TB) []Task {
	t.Helper()
	tasks, err := Tasks(manifest.FigSIM(), []string{AllTasks}, "")
	if err != nil {
		t.Fatal(err)
	}
	return tasks
}

// TestRead: what a model's words mean, and never a label that they do not say.
func TestRead(t *testing.T) {
	tasks := figsim(t)
	const figurative, severity, related = 0, 1, 2
	for _, tt := range []struct {
		task int
		text string
		want string
	}{
		{figurative, `{"figurative": ["Metaphor", "Irony/Sarcasm"]}`, "ok 0 2"},
		{figurative, `{"figurative": []}`, "ok"},
		{figurative, `{"figurative": ["Irony/sarcasm","irony/SARCASM ","f3"]}`, "ok 2"}, // as Table 11 spells it, and twice
		{figurative, `{"figurative": "Metaphor"}`, "ok 0"},
		{figurative, `{"figurative": ["None"]}`, "ok"},
		{figurative, `{"figurative": ["None", "Metaphor"]}`, "unknown_label"},
		{figurative, `{"figurative": ["Hyperbole"]}`, "unknown_label"},
		{figurative, `{"figurative": ["Metaphor", "Hyperbole"]}`, "unknown_label"},
		{figurative, `{"figurative": [3]}`, "unknown_label"},
		{figurative, `{"figurative": null}`, "unknown_label"},
		{figurative, `{"figurative": {"Metaphor": true}}`, "unknown_label"},
		{figurative, `{"Figurative": ["Metaphor"], "reason": "{]"}`, "not_json"},
		{figurative, `{"Figurative": ["Metaphor"]}`, "ok 0"},
		{figurative, `{"FIGURATIVE": ["Irony/Sarcasm"], "figurative": ["Metaphor"]}`, "not_json"},
		{figurative, `{"FIGURATIVE": ["Irony/Sarcasm"], "Figurative": ["Metaphor"]}`, "not_json"},
		// which one it is would be chance
		{figurative, `{"labels": ["Metaphor"]}`, "not_json"},
		{figurative, "```json\n{\"figurative\": [\"Metaphor\"]}\n```", "ok 0"},
		{figurative, `The meme is a metaphor: {"figurative": ["Metaphor"]}. I hope {this} helps.`,
			"not_json, with prose ok 0"},
		{figurative, `{"figurative": ["Metaphor"]`, "ok 0"},    // the stop sequence took the brace
		{figurative, `{"figurative": ["Metaphor"`, "not_json"}, // of which there may be more
		{figurative, "```json\n{\"figurative\": [\"Metaphor\"]\n", "ok 0"},
		{figurative, `{"figurative": ["Metaphor", "Irony/Sarcasm"]} {"figurative": ["F3", "F1"]}`,
			"not_json, with prose ok 0 2"}, // the same set
		{figurative, `{"figurative": ["Metaphor", "Irony/Sarcasm"]} {"figurative": ["F3"]}`, "not_json"},
		{figurative, `{"figurative": ["Metaphor", "Ir`, "not_json"},
		{figurative, `{"figurative": ["Metaphor",`, "not_json"},
		{figurative, `{"figurative": [`, "not_json"},
		{figurative, `Metaphor`, "not_json"},
		{figurative, `I'm sorry, I can't help with that.`, "not_json"},
		{figurative, `<think>It could be {"figurative": ["Metaphor"]}</think> {"figurative": []}`, "ok"},
		{figurative, `<think>It could be {"figurative": ["Metaphor"]}`, "not_json"},
		{figurative, ``, "not_json"},
		{figurative, `{}`, "not_json"},
		{figurative, `[{"figurative": []}]`, "not_json, with prose ok"},
		{figurative, `I am sorry, I cannot help with that. {"figurative": []}`, "not_json, with prose ok"}, // which is why it has to be asked for
		{figurative, `{"figurative":[],"note":"I cannot view images"}`, "not_json"},
		{figurative, `The picture: {"figurative":[],"note":"I cannot view images"}`, "not_json"},
		{severity, `{"severity": "Suicide ideation"}`, "ok 2"},
		{severity, `{"severity": "Suicide attempts/Suicide death"}`, "ok 4"},
		{severity, `{"severity": "suicide death"}`, "ok 4"},
		{severity, `{"severity": "SS4"}`, "ok 4"},
		{severity, `{"severity": "None"}`, "ok 0"},
		{severity, `{"severity": ["Suicide planning"]}`, "ok 3"},
		{severity, `{"severity": ["Suicide planning", "Suicide ideation"]}`, "unknown_label"},
		{severity, `{"severity": []}`, "unknown_label"},
		{severity, `{"severity": ""}`, "unknown_label"},
		{severity, `{"severity": "Suicide planning or ideation"}`, "unknown_label"},
		{related, `{"related_content": ["Harmful factors"]}`, "ok 3"},
		{related, `{"related_content": ["Third-person description"]}`, "unknown_label"}, // it is not asked for
	} {
		want, withProse, differs := strings.Cut(tt.want, ", with prose ")
		if !differs {
			withProse = want
		}
		for prose, want := range map[bool]string{false: want, true: withProse} {
			task := tasks[tt.task]
			task.Prose = prose
			classes, outcome, why := task.Read(tt.text)
			got := string(outcome)
			if outcome == endpoint.OK {
				got = strings.TrimSpace(got + " " + strings.Trim(fmt.Sprint(classes), "[]"))
			}
			if got != want || (why == "") != (outcome == endpoint.OK) {
				t.Errorf("Read(%s), prose %t = %s (%s), want %s", tt.text, prose, got, why, want)
			}
		}
	}
}

// FuzzRead: no text makes trouble, and the outcome is one of the list. An answer that is read says the same with its
// thoughts and its fence around it, and no second answer beside it, cut or whole, goes unseen.
func FuzzRead(f *testing.F) {
	for _, b := range slicesOf(readable(), unreadable()) {
		w := httptest.NewRecorder()
		if strings.HasPrefix(b.name, "1 GB") || !b.play(w, modelserver.Request{}) {
			continue
		}
		var body struct {
			Choices []struct{ Message struct{ Content any } }
		}
		if json.Unmarshal(w.Body.Bytes(), &body) == nil && len(body.Choices) > 0 {
			f.Add(fmt.Sprint(body.Choices[0].Message.Content))
		}
	}
	f.Add(`{"figurative": ["Metaphor"]}`)
	tasks := figsim(f)
	f.Fuzz(func(t *testing.T, text string) {
		for i := range 2 * len(tasks) {
			task := &tasks[i/2]
			task.Prose = i%2 == 1
			classes, outcome, why := task.Read(text)
			switch {
			case !slices.Contains([]endpoint.Outcome{endpoint.OK, NotJSON, UnknownLabel}, outcome):
				t.Fatalf("outcome %s", outcome)
			case (outcome != endpoint.OK) == (why == ""), outcome != endpoint.OK && classes != nil:
				t.Fatalf("%s with the reason %q and classes %v", outcome, why, classes)
			case outcome != endpoint.OK:
				continue
			case task.Kind != manifest.Multi && len(classes) != 1:
				t.Fatalf("classes %v", classes)
			}
			for _, c := range classes {
				if l := task.label(c); l < 0 || task.ClassOf(l) != c {
					t.Fatalf("class %d has the label %d", c, l)
				}
			}
			other := 0
			if slices.Equal(classes, []int{0}) {
				other = 1
			}
			second := fmt.Sprintf(`{%q:%q}`, task.Category, task.Classes[other].Name)
			again, outcome, _ := task.Read("<think>" + second + "</think>" + text)
			// Behind a thought the text's own end of one is a second end, between which and the first may be an answer.
			rest, _ := endpoint.Spoken(text, "")
			if outcome == endpoint.OK && !slices.Equal(again, classes) || outcome != endpoint.OK && rest == text {
				t.Fatalf("after a thought: %v, %s, want %v", again, outcome, classes)
			}
			for _, beside := range []string{second + text, second[:len(second)-1] + "," + text, "<think>" + text} {
				if got, outcome, _ := task.Read(beside); outcome == endpoint.OK && !slices.Equal(got, classes) {
					t.Fatalf("Read(%q) = %v, and %q alone is %v", beside, got, text, classes)
				}
			}
		}
	})
}

// TestTasks: every task has a prompt that names all its labels and its key, by files of a folder where there are any, and
// answers that Read reads back.
func TestTasks(t *testing.T) {
	other := manifest.Schema{Categories: []manifest.Category{
		{Name: "mood", Title: "Mood", Kind: manifest.Ordinal, Labels: []manifest.Label{
			{Code: "L", Name: "low & <blue>", Description: "Sad."}, {Code: "H", Name: "high"}}},
		{Name: "topic", Title: "Topic", Kind: manifest.Multi, Labels: []manifest.Label{{Code: "A", Name: "Apples"}, {Code: "N", Name: "None", Exclusive: true}}}}}
	names := map[string][]string{"figsim": {"figurative", "severity", "related_content"}, "other": {"mood", "topic"}}
	for name, schema := range map[string]manifest.Schema{"figsim": manifest.FigSIM(), "other": other} {
		tasks, err := Tasks(schema, []string{AllTasks}, t.TempDir())
		testkit.OK(t, err)
		var got []string
		for i, task := range tasks {
			of, err := labels.NewTask(schema, schema.Tasks()[i])
			testkit.Same(t, task.Category+": as it is scored", fmt.Sprintf("%+v", of), fmt.Sprintf("%+v", task.Task), err)
			got = append(got, task.Category)
			for _, word := range append(task.names(), `{"`+task.Category+`": `) {
				if !strings.Contains(task.Prompt, word) {
					t.Errorf("the prompt for %s does not hold %q:\n%s", task.Category, word, task.Prompt)
				}
			}
			defined := false
			for _, l := range task.category.Labels {
				if l.Description == "" || task.ClassOf(slices.IndexFunc(task.category.Labels,
					func(of manifest.Label) bool { return of.Name == l.Name })) < 0 {
					continue
				}
				defined = true
				if text := strings.TrimSuffix(l.Description, "."); !strings.Contains(task.Prompt, text) {
					t.Errorf("the prompt for %s does not define %s:\n%s", task.Category, l.Name, task.Prompt)
				}
			}
			testkit.Same(t, task.Category+": definitions", defined, strings.Contains(task.Prompt, "DEFINITIONS:"))
			for i, class := range task.names() {
				text := string(compact(map[string]string{task.Category: class}))
				if classes, outcome, _ := task.Read(text); outcome != endpoint.OK || !slices.Equal(classes, []int{i}) {
					t.Errorf("Read(%s) = %v, %s", text, classes, outcome)
				}
			}
			if !json.Valid(task.schema()) || task.From != "built-in" {
				t.Errorf("%s: schema %s, prompt from %s", task.Category, task.schema(), task.From)
			}
		}
		testkit.Same(t, name, names[name], got)
	}
	topic, err := Tasks(other, []string{"topic"}, "")
	testkit.Same(t, "the schema of several labels", `{"additionalProperties":false,"properties":{"topic":`+
		`{"items":{"enum":["Apples"],"type":"string"},"type":"array"}},"required":["topic"],"type":"object"}`,
		string(topic[0].schema()), err)
	tasks, err := Tasks(manifest.FigSIM(), []string{"modality"}, "")
	if err != nil || !strings.Contains(tasks[0].Prompt, "TASK: Modality. Which part of the meme") {
		t.Errorf("a category that is not a task: %v, %+v", err, tasks)
	}
	for _, names := range [][]string{{"colour"}, {"severity", "severity"}} {
		if _, err := Tasks(manifest.FigSIM(), names, ""); err == nil {
			t.Errorf("tasks %q were taken", names)
		}
	}
}

// TestReadPrompt: an editor's byte order mark is not sent to a model.
func TestReadPrompt(t *testing.T) {
	name := filepath.Join(t.TempDir(), "severity.txt")
	testkit.OK(t, os.WriteFile(name, []byte("\ufeffHow severe?\n"), 0o600))
	got, err := readPrompt(name)
	testkit.OK(t, err)
	testkit.Same(t, "the prompt", "How severe?\n", got)
}

// TestPaperPrompt: the paper's one prompt is for the task that it asks for, word for word, and the others have their own.
func TestPaperPrompt(t *testing.T) {
	tasks, err := Tasks(manifest.FigSIM(), []string{AllTasks}, PaperPrompts)
	testkit.OK(t, err)
	var from []string
	for _, task := range tasks {
		from = append(from, task.From)
	}
	testkit.Same(t, "prompts", []string{"paper", "built-in", "built-in"}, from)
	// The digest is that of the table's lines, as they stand in the paper.
	testkit.Same(t, "sha256", "ef972fcda39ad87f9ce7e5bd61e24ba31a75dc330f2181145239dc83339085ab", state.SHA256([]byte(tasks[0].Prompt)))
	for _, label := range paperLabels {
		classes, outcome, why := tasks[0].Read(`{"figurative": ["` + label + `"]}`)
		if outcome != endpoint.OK || len(classes) != 1 || !strings.Contains(tasks[0].Prompt, "\n- "+label+"\n") {
			t.Errorf("%s: %v, %s %s", label, classes, outcome, why)
		}
	}
	if _, err := Tasks(manifest.FigSIM(), []string{"severity"}, PaperPrompts); err == nil {
		t.Error("severity has a prompt of the paper")
	}
	// A folder of this name is not looked into.
	t.Chdir(t.TempDir())
	testkit.OK(t, os.Mkdir(PaperPrompts, 0o700),
		os.WriteFile(filepath.Join(PaperPrompts, "severity.txt"), []byte("How severe?"), 0o600))
	tasks, err = Tasks(manifest.FigSIM(), []string{AllTasks}, PaperPrompts)
	testkit.Same(t, "the prompt of another task", "built-in", tasks[1].From, err)
	var same []manifest.Label
	for i, label := range paperLabels {
		same = append(same, manifest.Label{Code: fmt.Sprint("P", i), Name: label})
	}
	for what, c := range map[string]manifest.Category{
		"other labels": {Name: "figurative", Kind: manifest.Multi, Labels: []manifest.Label{{Code: "A", Name: "Allegory"}}},
		"another name": {Name: "figures", Kind: manifest.Multi, Labels: same},
		"one label":    {Name: "figurative", Kind: manifest.Single, Labels: same},
	} {
		other := manifest.Schema{Categories: []manifest.Category{c}}
		if _, err := Tasks(other, []string{AllTasks}, PaperPrompts); err == nil {
			t.Errorf("a task with %s has the prompt of the paper", what)
		}
	}
}

// TestWordsBeside: a word beside the object is one in a fence or in a mark, too, unless it is a language or begins or
// ends a turn of the model's.
func TestWordsBeside(t *testing.T) {
	tasks, err := Tasks(manifest.FigSIM(), []string{"severity"}, "")
	testkit.OK(t, err)
	read := func(want endpoint.Outcome, text string) {
		t.Helper()
		if _, got, why := tasks[0].Read(text); got != want {
			t.Errorf("%q: %s (%s), want %s", text, got, why, want)
		}
	}
	for want, words := range map[endpoint.Outcome][]string{
		endpoint.OK: {"", "json", "JSON", "jsonc", "json5", "text", "none"},
		NotJSON:     {"incorrect", "wrong", "refused", "example", "no", "not", "python", "diff", "json not"},
	} {
		for _, word := range words {
			for _, form := range []string{"```%s %s```", "```%s\n%s\n```", "~~~%s %s~~~", "~~~%s\n%s\n~~~"} {
				read(want, fmt.Sprintf(form, word, right))
			}
		}
	}
	for _, word := range []string{"not", "refusal", "unsafe", "content_filter", "draft", "tool_call", "python_tag", "user",
		"system", "observation", "wrong", "truncated", "no"} {
		read(NotJSON, "<|"+word+"|>"+right)
		read(NotJSON, right+"<|"+word+"|>")
	}
	for _, text := range []string{"<|im_start|>user\n" + right + "<|im_end|>", right + "<|im_end|>\n<|im_start|>user",
		"<|start_header_id|>user<|end_header_id|>\n\n" + right, "<response>" + right + "</answer>", "<|eot_id|>" + right} {
		read(NotJSON, text)
	}
	for _, text := range []string{"<|im_start|>assistant\n" + right + "<|im_end|>", "<|assistant|>\n" + right + "<|endoftext|>",
		"<|start_header_id|>assistant<|end_header_id|>\n\n" + right + "<|eot_id|>", "<answer>" + right + "</answer>",
		"<|START_RESPONSE|>" + right + "<|END_RESPONSE|>", "<answer>" + right, right + "</answer>"} {
		read(endpoint.OK, text)
	}
}
