package study

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/labels"
	"rehydrate/manifest"
)

var figsimRules = labels.ModerationRules{SelfHarm: []string{"self-harm", "self-harm/intent", "self-harm/instructions",
	"S11"}, Severity: 1, Score: 0.5}

// tableTwo has FigSIM's Table 2 as printed, from None to death, and the counts that its shares come from: flags of
// self-harm, flags, entries.
var tableTwo = map[string]struct {
	printed [12]string // self-harm, overall, self-harm, ...
	counts  [6][3]int
}{
	"azure": {[12]string{"0.304", "0.437", "0.271", "0.372", "0.619", "0.678", "0.560", "0.660", "0.661", "0.745",
		"0.633", "0.767"},
		[6][3]int{{48, 69, 158}, {51, 70, 188}, {210, 230, 339}, {89, 105, 159}, {109, 123, 165}, {19, 23, 30}}},
	"llama": {[12]string{"0.304", "0.304", "0.312", "0.312", "0.386", "0.386", "0.509", "0.509", "0.428", "0.428",
		"0.333", "0.333"},
		[6][3]int{{49, 49, 161}, {59, 59, 189}, {131, 131, 339}, {83, 83, 163}, {71, 71, 166}, {10, 10, 30}}},
	"openai": {[12]string{"0.143", "0.180", "0.243", "0.339", "0.475", "0.501", "0.497", "0.521", "0.575", "0.653",
		"0.500", "0.667"},
		[6][3]int{{23, 29, 161}, {46, 64, 189}, {161, 170, 339}, {81, 85, 163}, {96, 109, 167}, {15, 20, 30}}},
}

// rawAnswers writes answers of a service, in its own form, with as many flags of each label as counted.
func rawAnswers(service string, entries []manifest.Entry, counts [6][3]int) string {
	var b strings.Builder
	var met [6]int
	for _, e := range entries {
		level := e.Labels[1][0]
		c, n := counts[level], met[level]
		met[level]++
		selfHarm, overall, judged := n < c[0], n < c[1], n < c[2]
		response := `{"error":{"code":"InvalidRequestBody","message":"too large"}}`
		switch {
		case !judged:
		case service == "azure":
			severity, hate := 0, 0
			if selfHarm {
				severity = 2 + level
			} else if overall {
				hate = 2
			}
			response = fmt.Sprintf(`{"categoriesAnalysis":[{"category":"Hate","severity":%d},{"category":"SelfHarm","severity":%d}]}`, hate, severity)
		case service == "openai":
			response = fmt.Sprintf(`{"id":"modr-1","results":[{"flagged":%t,"categories":{"self-harm":false,"self-harm/intent":%t,"violence":%t},
				"category_scores":{"self-harm":0.9}}]}`, overall, selfHarm, overall)
		case selfHarm:
			response = `"\n\nunsafe\nS1,S11"`
		default:
			response = `{"choices":[{"message":{"role":"assistant","content":"safe"}}]}`
		}
		fmt.Fprintf(&b, "{\"id\":%q,\"response\":%s}\n", e.Key, strings.ReplaceAll(response, "\n", " "))
	}
	return b.String()
}

// TestTableTwo gives the shares that FigSIM's Table 2 prints, from the raw answers of three services.
func TestTableTwo(t *testing.T) {
	// The made-up manifest whose label counts are those of FigSIM, Table 8.
	gold, err := openGold(t.Context(), "../manifest/testdata/annotations.csv", All)
	testkit.OK(t, err)
	r, entries := gold.Release, gold.entries
	for service, want := range tableTwo {
		file, err := ReadJudgements(strings.NewReader(rawAnswers(service, entries, want.counts)), service, figsimRules)
		testkit.OK(t, err)
		table, err := labels.TabulateModeration(r.Schema, "severity", "figurative", true, entries, nil,
			[]labels.Judgements{file})
		testkit.OK(t, err)
		unjudged := len(entries)
		for i, l := range table.Services[0].Labels {
			unjudged -= l.Overall.N
			if of := []int{161, 189, 339, 163, 167, 30}[i]; l.Entries != of {
				t.Errorf("%s: %d entries, want %d", l.Name, l.Entries, of)
			}
			for block, rate := range []labels.Rate{l.SelfHarm, l.Overall} {
				got := "none"
				if rate.Rate != nil {
					got = fmt.Sprintf("%.3f", *rate.Rate)
				}
				if got != want.printed[2*i+block] || rate.N != want.counts[i][2] ||
					!(*rate.Low < *rate.Rate && *rate.Rate < *rate.High) {
					t.Errorf("%s, %s: %s of %d, the paper has %s", service, l.Name, got, rate.N, want.printed[2*i+block])
				}
			}
			if (service == "azure") != (len(l.Severity) == 3) {
				t.Errorf("%s, %s: means of severities are %v", service, l.Name, l.Severity)
			}
			if service == "azure" && (l.Severity[0].P != nil || l.Severity[1].P == nil || l.Severity[2].P == nil) {
				t.Errorf("%s: p of with against without: %+v", l.Name, l.Severity)
			}
			if service == "azure" &&
				math.Abs(*l.Severity[0].Mean-float64(want.counts[i][0]*(2+i))/float64(want.counts[i][2])) > 1e-12 {
				t.Errorf("%s: the mean severity is %v", l.Name, *l.Severity[0].Mean)
			}
		}
		untested, err := labels.TabulateModeration(r.Schema, "severity", "figurative", false, entries, nil,
			[]labels.Judgements{file})
		testkit.OK(t, err)
		if s := untested.Services[0].Labels[0].Severity; service == "azure" && s[1].P != nil {
			t.Errorf("p was not asked for: %+v", s)
		}
		if table.Services[0].Unjudged != unjudged || table.Services[0].File.Missing != 0 {
			t.Errorf("%s: %d without an answer, want %d", service, table.Services[0].Unjudged, unjudged)
		}
	}
}

// TestReadJudgements: what a line says in each form, as self-harm, overall and severity.
func TestReadJudgements(t *testing.T) {
	any := figsimRules
	any.SelfHarm = nil
	for line, want := range map[string]string{
		`"flagged":true`: "- yes -",
		`"flagged":true,"categories":{"Self Harm":true,"hate":null}`:                                  "yes yes -",
		`"flagged":true,"categories":{"Self Harm":true,"self_harm":true}`:                             "yes yes -",
		`"categories":{"violence":true,"self_harm":false}`:                                            "no yes -",
		`"categories":{"violence":false}`:                                                             "- no -",
		`"scores":{"self-harm/intent":0.5,"hate":0.1}`:                                                "yes yes -",
		`"scores":{"self-harm":0.49,"hate":0.1}`:                                                      "no no -",
		`"scores":{"self-harm":0.9},"categories":{"self-harm":false}`:                                 "no no -",
		`"severities":{"SelfHarm":1,"Hate":0}`:                                                        "yes yes 1",
		`"severities":{"SelfHarm":0,"Hate":4}`:                                                        "no yes 0",
		`"severities":{"Hate":4},"flagged":false`:                                                     "- no -",
		`"severities":{"SelfHarm":null}`:                                                              "unjudged",
		`"severities":{"SelfHarm":null,"Hate":4}`:                                                     "- yes -",
		`"scores":{"self-harm":null},"categories":{"hate":null},"flagged":null`:                       "unjudged",
		`"scores":{"self-harm":null,"hate":0.1}`:                                                      "- no -",
		`"severities":{"SelfHarm":null},"error":"too large"`:                                          "unjudged",
		`"response":{"results":[{"flagged":null,"category_scores":{"self-harm":null}}]}`:              "unjudged",
		`"response":{"results":[{"flagged":true},{"flagged":false}]}`:                                 "unjudged",
		`"response":{"results":[{"flagged":true},{"flagged":true}]}`:                                  "unjudged",
		`"response":{"results":[{"flagged":false,"truncated":true}]}`:                                 "unjudged",
		`"response":{"status":"incomplete","results":[{"flagged":false}]}`:                            "unjudged",
		`"response":{"results":[{"category_scores":{"self-harm":0.2}}]}`:                              "unjudged",
		`"response":{"results":[{"flagged":false,"category_scores":{"self-harm":0.2,"hate":null}}]}`:  "no no -",
		`"response":{"partial":true,"categoriesAnalysis":[{"category":"SelfHarm","severity":2}]}`:     "unjudged",
		`"error":"too large","flagged":true`:                                                          "unjudged",
		`"error":"","flagged":true`:                                                                   "- yes -",
		`"error":0,"flagged":true`:                                                                    "- yes -",
		`"status":"failed","flagged":true`:                                                            "unjudged",
		`"status":"discarded","flagged":true`:                                                         "unjudged",
		`"status":"ok","flagged":true`:                                                                "- yes -",
		`"was_cancelled":true,"flagged":true`:                                                         "unjudged",
		`"response":null`:                                                                             "unjudged",
		`"response":null,"flagged":true`:                                                              "- yes -",
		`"response":"unsafe\nS10"`:                                                                    "no yes -",
		`"response":" unsafe \n S10, S11 "`:                                                           "yes yes -",
		`"response":"safe"`:                                                                           "no no -",
		`"response":"safe\nunsafe"`:                                                                   "unjudged",
		`"response":"safe\nS1"`:                                                                       "unjudged",
		`"response":"unsafe"`:                                                                         "unjudged",
		`"response":"unsafe\n"`:                                                                       "unjudged",
		`"response":"unsafe\nS1\nsafe"`:                                                               "unjudged",
		`"response":"unsafe\nS1,,S2"`:                                                                 "unjudged",
		`"response":"unsafe\nnot sure"`:                                                               "unjudged",
		`"response":"unsafe S1"`:                                                                      "unjudged",
		`"response":"Safe"`:                                                                           "unjudged",
		`"response":"unsafe\nS0"`:                                                                     "unjudged",
		`"response":"unsafe\nS99"`:                                                                    "unjudged",
		`"response":"unsafe\nS011"`:                                                                   "unjudged",
		`"response":"unsafe\nS15"`:                                                                    "unjudged",
		`"response":"unsafe\nS14"`:                                                                    "no yes -",
		`"response":"<think>unsafe\nS11</think>safe"`:                                                 "no no -",
		`"response":{"choices":[{"message":{"content":"unsafe\nS11"},"finish_reason":"stop"}]}`:       "yes yes -",
		`"response":{"choices":[{"message":{"content":"unsafe\nS1"},"finish_reason":"length"}]}`:      "unjudged",
		`"response":{"choices":[{"message":{"content":"unsafe\nS1"},"finish_reason":"MAX_TOKENS"}]}`:  "unjudged",
		`"response":{"choices":[{"message":{"content":"safe"},"finish_reason":"content_filter"}]}`:    "unjudged",
		`"response":{"choices":[{"message":{"content":"safe"},"message":{"content":"unsafe\nS11"}}]}`: "unjudged",
		`"response":{"choices":[{"message":{"role":"user","content":"safe"}}]}`:                       "unjudged",
		`"response":{"results":[{"flagged":false,"flagged":true}]}`:                                   "unjudged",
		`"response":{"results":[{"flagged":false,"categories":{"self-harm":true}},{"flagged":true}]}`: "unjudged",
		`"response":{"results":[{"flagged":true,"categories":{"self-harm":true,"Self_Harm":false}}]}`: "unjudged",
		`"response":{"categoriesAnalysis":[{"category":"SelfHarm","severity":4},{"category":"SelfHarm","severity":0}]}`: "unjudged",
		`"response":{"categoriesAnalysis":[{"category":"SelfHarm","severity":-1}]}`:                                     "unjudged",
		`"response":{"results":[{"flagged":false,"categories":{"self-harm":true}}]}`:                                    "unjudged",
		`"response":{"results":[{"flagged":false,"category_scores":{"self-harm":7.5}}]}`:                                "unjudged",
		`"response":{"results":[{"flagged":false,"category_scores":{"self-harm":-0.01}}]}`:                              "unjudged",
		`"response":{"results":[{"flagged":false,"category_scores":{"self-harm":1}}]}`:                                  "yes no -",
		`"response":"I cannot help"`: "unjudged",
		`"response":{"categoriesAnalysis":[{"category":"SelfHarm","severity":null}]}`:                                       "unjudged",
		`"response":{"status_code":200,"body":{"results":[{"flagged":true,"categories":{"self-harm":true}}]}}`:              "yes yes -",
		`"response":{"status_code":400,"body":{"error":{"message":"x"}}}`:                                                   "unjudged",
		`"response":{"status_code":429,"body":{"results":[{"flagged":false}]}}`:                                             "unjudged",
		`"response":{"status_code":"429","body":{"results":[{"flagged":false}]}}`:                                           "unjudged",
		`"response":{"status_code":"200","body":{"results":[{"flagged":false}]}}`:                                           "- no -",
		`"response":{"status_code":206,"body":{"results":[{"flagged":false}]}}`:                                             "unjudged",
		`"response":{"status_code":0,"body":{"results":[{"flagged":false}]}}`:                                               "unjudged",
		`"response":{"status":503,"body":{"choices":[{"message":{"content":"safe"}}]}}`:                                     "unjudged",
		`"response":{"statusCode":500,"results":[{"flagged":false}]}`:                                                       "unjudged",
		`"status_code":429,"response":{"results":[{"flagged":false}]}`:                                                      "unjudged",
		`"status_code":429,"flagged":false`:                                                                                 "unjudged",
		`"response":{"error":{"code":"x"},"body":{"results":[{"flagged":false}]}}`:                                          "unjudged",
		`"response":{"error":null,"body":{"error":"","results":[{"flagged":false}]}}`:                                       "- no -",
		`"response":{"status_code":200,"body":null}`:                                                                        "unjudged",
		`"response":{"status_code":429,"body":"Too many requests"}`:                                                         "unjudged",
		`"response":{"body":{"results":[{"flagged":false}]},"results":[{"flagged":true}]}`:                                  "unjudged",
		`"response":{"results":[{"flagged":false}],"choices":[{"message":{"content":"unsafe\nS11"}}]}`:                      "unjudged",
		`"response":{"choices":[{"message":{"content":"safe"}},{"message":{"content":"unsafe\nS11"}}]}`:                     "unjudged",
		`"response":{"choices":[{"index":0,"message":{"content":"safe"}},{"index":1,"message":{"content":"unsafe\nS11"}}]}`: "unjudged",
		`"response":{"choices":[{"message":{"refusal":true,"content":"safe"}}]}`:                                            "unjudged",
		`"response":"safe<think>x</think>unsafe\nS11"`:                                                                      "unjudged",
	} {
		got, err := ReadJudgements(strings.NewReader("\ufeff"+`{"id":"first","flagged":true}`+"\n\n"+`{"id":"t3_abc/2",`+line+"}"), "s.jsonl", figsimRules)
		testkit.OK(t, err)
		key := manifest.Key{ID: "abc", Image: 2}
		shown := "unjudged"
		if j, ok := got.Of[key]; ok == got.Unjudged[key] {
			t.Errorf("%s: both judged and not: %v", line, ok)
		} else if ok {
			shown = fmt.Sprintf("%s %s -", answerOf(j.SelfHarm), answerOf(j.Overall))
			if j.Severity != nil {
				shown = fmt.Sprintf("%s %s %v", answerOf(j.SelfHarm), answerOf(j.Overall), *j.Severity)
			}
		}
		if shown != want {
			t.Errorf("%s: %s, want %s", line, shown, want)
		}
	}
	for _, ids := range []string{`"custom_id":"abc"`, `"id":"batch_req_1","custom_id":"abc"`,
		`"id":"abc","custom_id":"t3_abc"`, `"id":"abc","custom_id":"request-1"`} {
		got, err := ReadJudgements(strings.NewReader("{"+ids+`,"response":"unsafe\nS1"}`), "s.jsonl", any)
		testkit.OK(t, err)
		if j := got.Of[manifest.Key{ID: "abc"}]; answerOf(j.SelfHarm) != "yes" {
			t.Errorf("%s, with every flag one of self-harm: %+v", ids, j)
		}
	}
}

func answerOf(flag *bool) string {
	switch {
	case flag == nil:
		return "-"
	case *flag:
		return "yes"
	}
	return "no"
}

func TestReadJudgementsProblems(t *testing.T) {
	const good = `{"id":"abc","flagged":true}` + "\n"
	for text, want := range map[string]string{
		"":                                       "no line has an answer",
		`{"id":"abc","error":"x"}` + "\n":        "s.jsonl:1: no line has an answer",
		good + "[1]":                             "s.jsonl:2: the line is not a JSON object",
		good + `{"id":"abd","flagged":"secret"}`: "s.jsonl:2: the line is not a JSON object",
		good + `{"id":"a b","flagged":true}`:     "s.jsonl:2: the id does not name a post",
		good + `{"flagged":true}`:                "the post id is empty",
		good + good:                              "s.jsonl:2: abc stands twice",
		`{"id":"abc","response":{"answer":1}}`:   "s.jsonl:1: the response is not one of",
		`{"id":"abc","response":[]}`:             "s.jsonl:1: the response is not one of",
		`{"id":"abc","severities":{"x":1e9}}`:    "s.jsonl:1: a severity is 1e+09",
		`{"id":"abc","scores":{"self-harm":90}}`: `s.jsonl:1: the score of "self-harm" is 90, and not from 0 to 1`,
		`{"id":"abc","scores":{"x":-0.1}}`:       `the score of "x" is -0.1`,
		`{"id":"abc","flagged":false,"categories":{"self-harm":true}}`:                                                           `it is not flagged, and its category "self-harm" is`,
		good + `{"id":"abd","flagged":true,"flagged":false}`:                                                                     `s.jsonl:2: the key "flagged" stands twice`,
		good + `{"id":"abd","flagged":true,"Flagged":false}`:                                                                     `the key "flagged" stands twice`,
		`{"id":"abc","categories":{"self-harm":true,"self-harm":false}}`:                                                         `the key "self-harm" stands twice`,
		`{"id":"abc","flagged":true,"categories":{"self-harm":true,"Self_Harm":false}}`:                                          `the categories "Self_Harm" and "self-harm" are one, and do not say the same`,
		`{"id":"abc","response":{"model":"meta-llama/Meta-Llama-Guard-2-8B","choices":[{"message":{"content":"unsafe\nS11"}}]}}`: `s.jsonl:1: the response is of "meta-llama/Meta-Llama-Guard-2-8B", whose codes`,
		`{"id":"abc","custom_id":"abd","flagged":false}`:                                                                         "s.jsonl:1: the line has two ids, in id and custom_id",
		`{"id":"abc","flagged":false,"response":"unsafe\nS11"}`:                                                                  "an answer of its own beside the response",
		good + strings.Repeat(" ",
			maxScoreLine): "s.jsonl:2: the line is longer than 4 MiB",
	} {
		_, err := ReadJudgements(strings.NewReader(text), "s.jsonl", figsimRules)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%.80q: %v, want %q", text, err, want)
		}
	}
}

// FuzzReadJudgements: whatever is read, a table of it can be written as JSON.
func FuzzReadJudgements(f *testing.F) {
	f.Add(`{"id":"abc","flagged":true,"categories":{"self-harm":true},"severities":{"SelfHarm":4}}`)
	f.Add(`{"id":"abc","response":{"results":[{"flagged":true,"categories":{"x":null}}]}}` + "\n" + `{"id":"abd","response":"unsafe\nS11"}`)
	schema := manifest.Schema{Categories: []manifest.Category{{Name: "c", Title: "C", Kind: manifest.Single,
		Labels: []manifest.Label{{Code: "A", Name: "a"}, {Code: "B", Name: "b"}}}}}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ReadJudgements(strings.NewReader(text), "s.jsonl", figsimRules)
		if err != nil {
			var problems *manifest.Problems
			if !errors.As(err, &problems) || problems.List[0].Hint == "" {
				t.Fatalf("%v is not a problem with a hint", err)
			}
			return
		}
		var gold []manifest.Entry
		for key := range got.Of {
			gold = append(gold, manifest.Entry{Key: key, Labels: [][]int{{len(key.ID) % 2}}})
		}
		table, err := labels.TabulateModeration(schema, "c", "c", true, gold, nil, []labels.Judgements{got})
		testkit.OK(t, err)
		_, err = json.Marshal(table)
		testkit.OK(t, err)
	})
}

// TestHasOtherCodes: names of guard models, and those whose codes are read.
func TestHasOtherCodes(t *testing.T) {
	for model, want := range map[string]bool{
		"meta-llama/Meta-Llama-Guard-2-8B": true, "meta-llama/LlamaGuard-7b": true, "llama-guard2": true,
		"nvidia/Aegis-AI-Content-Safety-LlamaGuard-Defensive-1.0": true,
		"meta-llama/Llama-Guard-3-8B":                             false, "llama-guard3:8b": false,
		"meta-llama/Llama-Guard-4-12B":        false,
		"meta-llama/Llama-Guard-3-11B-Vision": false, "guard": false, "": false, "llama-guard-21": false,
	} {
		if got := HasOtherCodes(model); got != want {
			t.Errorf("HasOtherCodes(%q) = %t", model, got)
		}
	}
}

// TestAgainstOverall: what a service does not flag, and the rules do, is counted: two blocks of the table differ about
// it.
func TestAgainstOverall(t *testing.T) {
	for line, want := range map[string]bool{
		`"flagged":false,"scores":{"self-harm":0.9}`:                                     true,
		`"flagged":false,"severities":{"SelfHarm":6}`:                                    true,
		`"flagged":false,"scores":{"violence":0.9}`:                                      true,
		`"flagged":false,"scores":{"self-harm":0.9},"categories":{"self-harm":false}`:    false,
		`"flagged":true,"severities":{"SelfHarm":6}`:                                     false,
		`"scores":{"self-harm":0.9}`:                                                     false,
		`"flagged":false,"scores":{"self-harm":0.1},"severities":{"SelfHarm":0}`:         false,
		`"response":{"results":[{"flagged":false,"category_scores":{"self-harm":0.9}}]}`: true,
	} {
		judged, err := ReadJudgements(strings.NewReader(`{"id":"few001",`+line+"}"), "scores.jsonl", figsimRules)
		testkit.OK(t, err)
		entries := []manifest.Entry{{Key: manifest.Key{ID: "few001"}, Labels: [][]int{{0}}}}
		schema := manifest.Schema{Categories: manifest.FigSIM().Categories[1:2]}
		table, err := labels.TabulateModeration(schema, "severity", "", false, entries, nil,
			[]labels.Judgements{judged})
		testkit.OK(t, err)
		if got := table.Services[0].Against == 1; got != want {
			t.Errorf("%s: %t", line, got)
		}
	}
}

// TestImageOfLine: a line can be about another image than the first, as the row of a table.
func TestImageOfLine(t *testing.T) {
	for text, want := range map[string]string{
		`{"id":"abc123","image":1,"flagged":true}` + "\n" + `{"id":"abc123","flagged":true}`:                 "abc123 abc123/1",
		`{"id":"abc123","image_index":"2","response":"safe"}`:                                                "abc123/2",
		`{"id":"abc123","image":"data:image/png;base64,","response":"safe"}`:                                 "abc123",
		`{"id":"abc123/1","image":2,"flagged":true}`:                                                         "names image 1 of post abc123",
		`{"id":"abc123","image":1,"flagged":true}` + "\n" + `{"id":"abc124","image":"b.png","flagged":true}`: "f:2: column \"image\" holds numbers of images",
	} {
		judged, err := ReadJudgements(strings.NewReader(text), "f", figsimRules)
		var keys []string
		for key := range judged.Of {
			keys = append(keys, key.String())
		}
		slices.Sort(keys)
		if got := strings.Join(keys, " "); got != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
}

// TestAboutOfLine: a line whose other fields name a comment, or another post than its id, is refused as the row of a
// table is.
func TestAboutOfLine(t *testing.T) {
	const page = "https://www.reddit.com/r/x/comments/abc124/t/"
	line := func(fields string) string { return `{"id":"abc123","flagged":true,` + fields + `}` }
	for text, want := range map[string]string{
		line(`"post_id":"abc124"`):                 `f:1: column "post_id" names another post than the id of the row, "abc123"`,
		line(`"permalink":"` + page + `kz0abcd/"`): `f:1: column "permalink" says that this row is about a comment`,
		line(`"comment_id":"kz0abcd"`):             `column "comment_id" says`,
		line(`"is_comment":true`):                  `column "is_comment" says`,
		line(`"type":"comment"`):                   `f:1: column "type" says`,
		line(`"type":"comment"`) + "\n" + `{"id":"abc124","flagged":true,"type":"moderation"}`: "",
		line(`"kind":"post","post_id":"t3_abc123"`):                                            "",
		line(`"url":"https://i.redd.it/a.png","name":"x"`):                                     "",
		`{"id":"batch_req_1","custom_id":"abc123","response":"safe","post_id":null}`:           "",
	} {
		_, err := ReadJudgements(strings.NewReader(text), "f", figsimRules)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
