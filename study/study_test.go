package study

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/internal/userfile"
	"rehydrate/manifest"
)

// release writes a bare annotations file with a split for each of its rows.
func release(t *testing.T, splits ...string) string {
	t.Helper()
	text := "id,split,figurative,severity,related_content,modality,context\n"
	for i, split := range splits {
		text += "few00" + string(rune('0'+i)) + "," + split + ",F1|F3,SS6,SR3,M1,C1\n"
	}
	file := filepath.Join(t.TempDir(), "annotations.csv")
	testkit.OK(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// TestGold: without a name the split is the only one, or test in any spelling; the other entries are known as those of
// other splits. Where none of several splits is test, what was trained on is not scored in silence.
func TestGold(t *testing.T) {
	tests := []struct {
		splits          []string
		of, want        string
		entries, others int
	}{
		{[]string{"train", "test", "test"}, "", "test", 2, 1},
		{[]string{"Train", "TEST", "TEST"}, "", "TEST", 2, 1},
		{[]string{"train", "testing"}, "", "testing", 1, 1},
		{[]string{"Train", "Test"}, "train", "Train", 1, 1},
		{[]string{"training", "Dev"}, "validation", "Dev", 1, 1},
		{[]string{"gold", "gold"}, "", All, 2, 0},
		{[]string{"train", "other"}, All, All, 2, 0},
		{[]string{"train", "test"}, All, All, 2, 0},
		{[]string{"train", "test"}, "train", "train", 1, 1},
	}
	for _, test := range tests {
		g, err := openGold(t.Context(), release(t, test.splits...), test.of)
		testkit.OK(t, err)
		if g.split != test.want || len(g.entries) != test.entries || len(g.others) != test.others {
			t.Errorf("%q of %q: split %s with %d entries and %d others", test.of, test.splits, g.split, len(g.entries),
				len(g.others))
		}
	}
	var fault *userfile.Fault
	if _, err := openGold(t.Context(), release(t, "train"), "tset"); !errors.As(err, &fault) || !fault.Flag ||
		!strings.Contains(err.Error(), `no split "tset"; it has train`) {
		t.Errorf("a split that is not there: %v", err)
	}
	for _, splits := range [][]string{{"train", "other"}, {"test1", "test2"}, {"testing", "Test"}, {"fold0", "fold1"}} {
		if _, err := openGold(t.Context(), release(t, splits...), ""); !errors.As(err, &fault) ||
			!strings.Contains(err.Error(), "name the one to score with --split") {
			t.Errorf("%q: %v", splits, err)
		}
	}
	if _, err := openGold(t.Context(), filepath.Join(t.TempDir(), "none.csv"), ""); !errors.As(err, &fault) ||
		fault.Flag {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestShards: the files of a dataset count only when all are there and of one export.
func TestShards(t *testing.T) {
	name := func(split, part, of string) string { return split + "-0000" + part + "-of-0000" + of + ".parquet" }
	train, test := name("train", "0", "1"), name("test", "0", "1")
	croissant := `{"distribution": [{"contentUrl": "data/` + train + `"}, {"contentUrl": "data/` + test +
		`"}, {"includes": "data/*.parquet"}]}`
	card := "---\nconfigs:\n- config_name: default\n  data_files:\n  - split: \"train\"\n    path: \"data/train-*\"\n" +
		"  - split: test\n---\n  - split: other\n"
	tests := []struct {
		files           []string
		croissant, card string
		want            int
		says            string
	}{
		{nil, "", "", 0, ""},
		{[]string{"notes.txt"}, "", "", 0, ""},
		{[]string{name("train", "0", "2"), name("train", "1", "2"), test, "notes.txt"}, "", "", 3, ""},
		{[]string{name("train", "0", "2")}, "", "", 0, "1 of the 2 files of split train"},
		{[]string{train, name("train", "1", "2")}, "", "", 0, "two exports"},
		{[]string{name("train", "2", "2"), name("train", "0", "2")}, "", "", 0, "two exports"},
		{[]string{train, test}, croissant, card, 2, ""},
		{[]string{train}, croissant, card, 0, "lacks " + test + ", which its croissant.json lists"},
		{[]string{train, test, name("extra", "0", "1")}, croissant, card, 0, "is not one of the files"},
		{[]string{train, test}, "", card, 2, ""},
		{[]string{train}, "", card, 0, "lacks test, which its README.md lists"},
		{[]string{train, name("extra", "0", "1"), test}, "", card, 0, "is not one of the files"},
		{[]string{train, test}, "{", card, 0, "is not JSON"},
		{[]string{train, "test (1).parquet"}, "", "", 0, "does not say of which split"},
	}
	for _, test := range tests {
		dir := t.TempDir()
		for _, file := range test.files {
			testkit.OK(t, os.MkdirAll(filepath.Join(dir, "data"), 0o700),
				os.WriteFile(filepath.Join(dir, "data", file), nil, 0o600))
		}
		for name, text := range map[string]string{"croissant.json": test.croissant, "README.md": test.card} {
			if text != "" {
				testkit.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
		}
		shards, err := shardsOf(dir)
		if err == nil && len(shards) != test.want || (err == nil) != (test.says == "") || err != nil &&
			!strings.Contains(err.Error(), test.says) {
			t.Errorf("%q: %d files, %v", test.files, len(shards), err)
		}
	}
}

// TestTasks: flags replace what the schema says of a task, and one that does not fit is a fault.
func TestTasks(t *testing.T) {
	set := func(flags string) func(string) bool {
		return func(flag string) bool { return strings.Contains(flags, flag) }
	}
	tests := []struct {
		name string
		f    Tasks
		want string // the classes of each task; else a part of the error
	}{
		{"the schema's", Tasks{}, "figurative 3, severity 5, related_content 4"},
		{"one", Tasks{Names: []string{"modality"}}, "modality 3"},
		{"no merging", Tasks{Names: []string{"severity"}, Merge: []string{""}, Overrides: set("merge")}, "severity 6"},
		{"another merging", Tasks{Names: []string{"severity"}, Merge: []string{"SS1+SS2+SS3"}, Overrides: set("merge")},
			"severity 4"},
		{"twice", Tasks{Names: []string{"severity", "severity"}}, "stands twice"},
		{"an unknown code", Tasks{LeaveOut: []string{"SR55"}, Overrides: set("leave-out")}, `the code "SR55"`},
		{"of a category that is not scored", Tasks{Names: []string{"modality"}, LeaveOut: []string{"SS1"},
			Overrides: set("leave-out")}, "severity is not scored"},
		{"by no category", Tasks{By: "weather", Overrides: set("by")}, `no category "weather"`},
	}
	for _, test := range tests {
		tasks, err := test.f.of(manifest.FigSIM())
		got := ""
		for i, task := range tasks {
			if i > 0 {
				got += ", "
			}
			got += task.Category + " " + string(rune('0'+len(task.Classes)))
		}
		var fault *userfile.Fault
		if err == nil && got != test.want || err != nil &&
			(!errors.As(err, &fault) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %q, %v, want %q", test.name, got, err, test.want)
		}
	}
}

// TestOwnClass: predictions may name a class that a task makes of several labels, by code or name, or one of those
// labels.
func TestOwnClass(t *testing.T) {
	dir := t.TempDir()
	gold, predicted := filepath.Join(dir, "gold.csv"), filepath.Join(dir, "predicted.csv")
	testkit.OK(t,
		os.WriteFile(gold,
			[]byte("id,severity,figurative,related_content,modality,context\naaaa1,SS4,F1,SR1,M1,C1\naaaa2,SS5,F1,SR1,M1,C1\n"+
				"aaaa3,SS4,F1,SR1,M1,C1\naaaa4,SS5,F1,SR1,M1,C1\naaaa5,SS1,F1,SR1,M1,C1\n"), 0o600),
		os.WriteFile(predicted,
			[]byte("id,severity\naaaa1,SS4+SS5\naaaa2,Suicide attempts/Suicide death\naaaa3,suicide ATTEMPTS/suicide death\naaaa4,SS4\naaaa5,Wish to be dead\n"), 0o600))
	scores, err := Score(t.Context(), []string{predicted}, Scoring{Gold: gold})
	testkit.OK(t, err)
	for _, l := range scores.Task("severity").Labels {
		if want := map[string]float64{"SS4+SS5": 1, "SS1": 1}[l.Code]; l.F1.Mean != want {
			t.Errorf("%s: F1 %v, want %v", l.Code, l.F1.Mean, want)
		}
	}
	testkit.Same(t, "classes that are not told apart", 0, len(scores.Mapped))
	// Where its labels are told apart, the class means the first of them, and the scores say so.
	unmerged := Scoring{Gold: gold, Tasks: Tasks{Merge: []string{""},
		Overrides: func(flag string) bool { return flag == "merge" }}}
	scores, err = Score(t.Context(), []string{predicted}, unmerged)
	testkit.OK(t, err)
	testkit.Same(t, "a class whose labels are told apart",
		[]Mapped{{File: predicted, Category: "severity", Class: "SS4+SS5", Name: "Suicide attempts/Suicide death",
			Code: "SS4", Rows: 3}}, scores.Mapped)
	other := Scoring{Gold: gold, Tasks: Tasks{Merge: []string{"SS3+SS4+SS5"}, Overrides: unmerged.Overrides}}
	scores, err = Score(t.Context(), []string{predicted}, other)
	testkit.OK(t, err)
	testkit.Same(t, "a class within another", 0, len(scores.Mapped))
}

// TestAmbiguousPredictions: where a second column holds labels of a category, or is called after predictions, the
// column of the category may be the truth. It is chosen by name.
func TestAmbiguousPredictions(t *testing.T) {
	gold := release(t, "test", "test", "test")
	rows := func(header, second string) string {
		return header + "\nfew000,SS6," + second + "\nfew001,SS6," + second + "\nfew002,SS6,\n"
	}
	for text, says := range map[string]string{
		"id,severity,pred\nfew000,SS6,1\n":            `has the column "pred"`,
		"id,severity,Predicted_label\nfew000,SS6,1\n": `has the column "Predicted_label"`,
		rows("id,severity,severity_hat",
			"SS1"): `the columns "severity" and "severity_hat" both hold labels of severity`,
		rows("id,severity,gpt4", "wish to be dead"):                         `the columns "severity" and "gpt4" both`,
		rows("id,severity,y_hat", "SS4+SS5"):                                `the columns "severity" and "y_hat" both`,
		rows("id,severity,note", "SS1 or worse"):                            "",
		rows("id,severity,modality", "M1"):                                  "",
		rows("id,severity,note", "None"):                                    "",
		"id,severity,note\nfew000,SS6,SS1\nfew001,SS6,x\nfew002,SS6,y\n":    "",
		`{"id":"few000","severity":"SS6","model":{"a":1},"answer":["SS1"]}`: `the columns "severity" and "answer" both`,
		`{"id":"few000","figurative":["F1","F3"],"truth":["F3"]}`:           `the columns "figurative" and "truth" both`,
	} {
		_, err := Score(t.Context(), files(t, text), Scoring{Gold: gold})
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
	predicted := files(t, rows("id,severity,severity_hat", "SS1"))
	for column, want := range map[string]float64{"severity_hat": 0, "severity": 1, "severity=severity_hat": 0,
		"severity=severity": 1} {
		scores, err := Score(t.Context(), predicted,
			Scoring{Gold: gold, Tasks: Tasks{Names: []string{"severity"}}, Columns: []string{column}})
		testkit.OK(t, err)
		testkit.Same(t, "F1 of the column "+column, want, scores.Task("severity").WeightedF1.Mean)
	}
	for column, says := range map[string]string{
		"severity_hat": "--column severity_hat: say of which category", "severity=nope": `has no column "nope"`,
	} {
		if _, err := Score(t.Context(), predicted, Scoring{Gold: gold, Columns: []string{column}}); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("--column %s: %v", column, err)
		}
	}
}

// files writes files into a folder, and returns their names in the order of the texts.
func files(t *testing.T, texts ...string) (names []string) {
	t.Helper()
	dir := t.TempDir()
	for i, text := range texts {
		name := filepath.Join(dir, string(rune('a'+i))+".csv")
		if strings.HasPrefix(text, "{") {
			name = filepath.Join(dir, string(rune('a'+i))+".jsonl")
		}
		testkit.OK(t, os.WriteFile(name, []byte(text), 0o600))
		names = append(names, name)
	}
	return names
}

// TestImageColumn: answers, predictions and numbers about another image of a post are not joined with those about the
// first.
func TestImageColumn(t *testing.T) {
	first := "id,image,severity\nfew000,0,SS1\nfew001,0,SS3\nfew002,0,SS3\n"
	second := "id,image,severity\nfew000,1,SS1\nfew001,1,SS3\nfew002,0,SS3\n"
	a, err := Agree(t.Context(), Annotations{Files: files(t, first, second)})
	testkit.OK(t, err)
	testkit.Same(t, "answered by both", 1, a.Pairs[0].Both)
	gold := release(t, "test", "test", "test")
	scores, err := Score(t.Context(), files(t, second), Scoring{Gold: gold})
	testkit.OK(t, err)
	testkit.Same(t, "scored, and about images that the release lacks", [2]int{1, 2},
		[2]int{scores.Files[0].Predicted, scores.Files[0].Unknown})
	groups, err := TestGroups(t.Context(), files(t, "id,image,x\nfew000,1,1\nfew001,1,2\nfew002,0,3\n")[0],
		Grouping{Gold: gold, Alpha: .05})
	testkit.OK(t, err)
	testkit.Same(t, "tested", 1, groups.File.Predicted)
}

// TestLeftOut: rows that say that they are no answer are left out and counted, by each reader of answers.
func TestLeftOut(t *testing.T) {
	drafts := "id,severity,status\nfew000,SS6,discarded\nfew001,SS6,draft\nfew002,SS6,submitted\nfew002,SS1,draft\n"
	all := "id,severity\nfew000,SS6\nfew001,SS6\nfew002,SS6\n"
	a, err := Agree(t.Context(), Annotations{Files: files(t, drafts, all), Batch: "status"})
	testkit.OK(t, err)
	testkit.Same(t, "answered by both, and left out", [2]int{1, 3}, [2]int{a.Pairs[0].Both, a.LeftOut})
	gold := release(t, "test", "test", "test")
	failures := `{"id":"few000","severity":"SS6","error":"truncated"}` + "\n" + `{"id":"few001","severity":"SS6","error":null}` + "\n"
	scores, err := Score(t.Context(), files(t, drafts, failures), Scoring{Gold: gold})
	testkit.OK(t, err)
	for i, want := range [][2]int{{1, 3}, {1, 1}} {
		f := scores.Files[i]
		testkit.Same(t, "scored, and left out", want, [2]int{f.Predicted, f.LeftOut})
	}
	columns, values := "id,status", ""
	for _, code := range []string{"SS1", "SS2", "SS3", "SS4", "SS5", "SS6"} {
		columns, values = columns+",severity."+code, values+",0"
	}
	values = strings.TrimSuffix(values, "0") + "1"
	probabilities := columns + "\nfew000,ok" + values + "\nfew001,failed" + values + "\n"
	scores, err = Score(t.Context(), files(t, probabilities),
		Scoring{Gold: release(t, "test", "test", "validation"), Probabilities: true, TuneOn: "validation"})
	testkit.OK(t, err)
	testkit.Same(t, "scored by probabilities, and left out", [2]int{1, 1},
		[2]int{scores.Files[0].Predicted, scores.Files[0].LeftOut})
}

// TestMissingWords: a word for a missing value is no answer, and counted, by each reader of tables of answers; a label
// that is called so is one.
func TestMissingWords(t *testing.T) {
	none := func(annotator, file, category string, cells int, as string) MissingWords {
		return MissingWords{annotator, file, category, cells, as}
	}
	// F4 of the first is an answer: it is all of its line that is not missing.
	first := "id,severity,figurative\nfew000,NA,F4\nfew001,#N/A,n/a\nfew002,SS1,F1\n"
	second := "id,severity\nfew000,SS1\nfew001,SS1\nfew002,null\n"
	third := `{"id":"few000","severity":"NaN"}` + "\n" + `{"id":"few001","severity":null}` + "\n" +
		`{"id":"few002","severity":"SS1"}` + "\n"
	all := files(t, first, second, third)
	a, err := Agree(t.Context(), Annotations{Files: all})
	testkit.OK(t, err)
	testkit.Same(t, "of files", []MissingWords{none("A1", "", "severity", 2, "NA"), none("A1", "", "figurative", 1, "n/a"),
		none("A2", "", "severity", 1, "null"), none("A3", "", "severity", 1, "NaN")}, a.Missing)
	testkit.Same(t, "answered by the first two", 1, a.Pairs[0].Both)

	sheet := files(t, "id,One,Two\nfew000,SS1,SS1\nfew001,NA,SS2\nfew002,SS2,n/a\nfew003, na ,SS2\n")
	for _, of := range []Annotations{{}, {Release: release(t, "test", "test", "test")}} {
		of.Files, of.Columns = sheet, []string{"One", "Two"}
		a, err := Agree(t.Context(), of)
		testkit.OK(t, err)
		category := a.Categories[0].Name
		testkit.Same(t, "of columns", []MissingWords{none("A1", "", category, 2, "NA"), none("A2", "", category, 1, "n/a")},
			a.Missing)
	}

	gold := release(t, "test", "test", "test")
	scores, err := Score(t.Context(), all, Scoring{Gold: gold, Tasks: Tasks{Names: []string{"severity"}}})
	testkit.OK(t, err)
	testkit.Same(t, "of predictions", []MissingWords{none("", all[0], "severity", 2, "NA"),
		none("", all[1], "severity", 1, "null"), none("", all[2], "severity", 1, "NaN")}, scores.Missing)
	testkit.Same(t, "without an answer", []int{2, 1, 2}, scores.Tasks[0].NoAnswer)

	like := manifest.WithLabels(manifest.Schema{Categories: []manifest.Category{{Name: "country",
		Kind: manifest.Single, Labels: []manifest.Label{{Code: "NA"}, {Code: "DE"}}}}})
	read, err := ReadAnswers(t.Context(), files(t, "id,country\nfew000,NA\nfew001,nan\nfew002,DE\n")[0], like)
	testkit.OK(t, err)
	testkit.Same(t, "beside a label of that name", []MissingWords{none("", "", "country", 1, "nan")}, read.Missing)
	testkit.Same(t, "answers", 2, len(read.Answers))
}

// TestSkippedLines: a line of only empty cells is no answer to any category, for those who are compared and for what is
// scored, where an answer would have a label. Where the file has but lists of labels without None it means no label.
func TestSkippedLines(t *testing.T) {
	write := writer(t)
	gold := filepath.Dir(write("r/release.toml", "name = \"r\"\nmanifest = \"m.jsonl\"\n[[category]]\nname = \"sev\"\n"+
		"kind = \"single\"\nlabels = [{code = \"S0\"}, {code = \"S1\"}]\n[[category]]\nname = \"top\"\nkind = \"multi\"\n"+
		"labels = [{code = \"P0\"}, {code = \"P1\"}]\n"))
	write("r/m.jsonl", `{"id":"abc1","sev":"S0","top":["P1"]}`+"\n"+`{"id":"abc2","sev":"S1","top":[]}`+"\n"+
		`{"id":"abc3","sev":"S1","top":["P0"]}`+"\n")
	for _, test := range []struct {
		name, text string
		answered   int
		scored     []int // by task
	}{
		{"a.csv", "id,sev,top\nabc1,S0,P1\nabc2,S1,\nabc3,,\n", 2, []int{2, 2}},
		{"a.tsv", "id\tsev\ttop\nabc1\tS0\tP1\nabc2\tS1\t\nabc3\tNA\t\n", 2, []int{2, 2}},
		{"a.jsonl", `{"id":"abc1","sev":"S0","top":["P1"]}` + "\n" + `{"id":"abc2","sev":"S1","top":[]}` + "\n" +
			`{"id":"abc3","sev":null,"top":null}` + "\n", 2, []int{2, 2}},
		{"b.jsonl", `{"id":"abc1","sev":"S0","top":["P1"]}` + "\n" + `{"id":"abc3","sev":null,"top":[]}` + "\n", 2,
			[]int{1, 2}},
		{"top.csv", "id,top\nabc1,P1\nabc2,\nabc3,\n", 3, []int{3}},
	} {
		file := write(test.name, test.text)
		opened, err := manifest.Open(gold, manifest.Options{})
		testkit.OK(t, err)
		read, err := ReadAnswers(t.Context(), file, opened)
		testkit.OK(t, err)
		testkit.Same(t, test.text+"answers", test.answered, len(read.Answers))
		scores, err := Score(t.Context(), []string{file}, Scoring{Gold: gold})
		testkit.OK(t, err)
		var scored []int
		for _, of := range scores.Tasks {
			scored = append(scored, of.Scored...)
		}
		testkit.Same(t, test.text+"scored", test.scored, scored)
	}
}

// TestFeaturesLeftOut: rows of numbers that say in words that they are none are left out and counted; numbers and yes
// or no are values.
func TestFeaturesLeftOut(t *testing.T) {
	for text, want := range map[string][2]int{
		"id,x,status\nfew000,1,ok\nfew001,0,failed\nfew002,3,ok\n":                 {2, 1},
		"id,x,face_error\nfew000,1,\nfew001,0,cannot be opened\nfew002,3,none\n":   {2, 1},
		"id,x,error,truncated\nfew000,1,404,yes\nfew001,0,12,no\nfew002,3,0,yes\n": {3, 0},
	} {
		groups, err := TestGroups(t.Context(), files(t, text)[0],
			Grouping{Gold: release(t, "test", "test", "test"), Alpha: .05})
		testkit.OK(t, err)
		testkit.Same(t, text, want, [2]int{groups.File.Predicted, groups.File.LeftOut})
	}
}

// TestAgreeBatches: every file can name the batch of an entry, and the first that does counts. What has no batch is
// counted, and so is what a later file puts into another one.
func TestAgreeBatches(t *testing.T) {
	named := []string{
		"id,severity,batch\nfew000,SS1,one\nfew001,SS2,one\nfew002,SS1,\nother0,SS3,\n",
		"id,severity\nfew000,SS1\nfew002,SS2\nfew003,SS1\n",
		"id,severity,batch\nfew001,SS2,two\nfew002,SS3,two\nfew003,SS2,two\nother0,SS3,\n",
	}
	a, err := Agree(t.Context(), Annotations{Files: files(t, named...), Batch: "batch"})
	testkit.OK(t, err)
	got := map[string]int{}
	for _, b := range a.Batches {
		got[b.Batch] = b.Agreement.Entries
	}
	testkit.Same(t, "entries by batch", map[string]int{"one": 2, "two": 2}, got)
	testkit.Same(t, "compared, of no batch, of another", [3]int{5, 1, 1}, [3]int{a.Entries, a.WithoutBatch, a.OtherBatch})
	_, err = Agree(t.Context(), Annotations{Files: files(t, named[1], named[1]+"few004,SS1\n"), Batch: "batch"})
	if err == nil || !strings.Contains(err.Error(), `a.csv:1: it lacks the column "batch"`) {
		t.Errorf("no file names batches: %v", err)
	}
}

// TestAgreeUnknown: entries that the release does not have are compared with nothing, and counted; without a release
// nothing is known of them.
func TestAgreeUnknown(t *testing.T) {
	first := "id,severity,batch\nfew000,SS1,one\nfew001,SS3,one\nother1,SS3,two\nother2,SS3,two\n"
	second := "id,severity\nfew000,SS1\nfew001,SS6\nother1,SS3\nother3,SS1\n"
	gold := release(t, "test", "test", "test")
	a, err := Agree(t.Context(), Annotations{Files: files(t, first, second), Release: gold, Batch: "batch"})
	testkit.OK(t, err)
	testkit.Same(t, "answered by both, and unknown", [2]int{2, 3}, [2]int{a.Pairs[0].Both, a.Unknown})
	testkit.Same(t, "batches", 1, len(a.Batches))
	a, err = Agree(t.Context(), Annotations{Files: files(t, first, second)})
	testkit.OK(t, err)
	testkit.Same(t, "without a release", [2]int{3, 0}, [2]int{a.Pairs[0].Both, a.Unknown})
	twice := files(t, "id,Severity,severity\nfew000,SS1,SS2\n", first)
	_, err = Agree(t.Context(), Annotations{Files: twice, Release: gold})
	if err == nil || !strings.Contains(err.Error(), `:1: columns "severity" and "Severity" could both be severity`) {
		t.Errorf("two columns of one category: %v", err)
	}
	_, err = Agree(t.Context(), Annotations{Files: files(t, "id,severity\nother1,SS1\n", "id,severity\nother1,SS1\n"),
		Release: gold})
	if err == nil || !strings.Contains(err.Error(),
		"no annotated entry is in the release (1 are not, such as other1)") {
		t.Errorf("of no entry of the release: %v", err)
	}
}
