package endpoint_test

import (
	"strconv"
	"strings"
	"testing"

	"rehydrate/study/endpoint"
)

// TestMarks: wherever and by whichever name an answer says that it was refused, cut or not made, it is none; what says
// nothing of it stays out of the way.
func TestMarks(t *testing.T) {
	tests := []struct {
		outer, choice, message string // fields that are added
		want                   endpoint.Outcome
	}{
		{`"stop_reason":"refusal"`, ``, ``, refused},
		{`"promptFeedback":{"blockReason":"SAFETY"}`, ``, ``, refused},
		{`"prompt_feedback":{"block_reason":"OTHER","block_reason_message":"no"}`, ``, ``, refused},
		{``, `"finish_details":{"type":"refusal"}`, ``, refused},
		{``, `"logprobs":{"content":[],"refusal":[{"token":"I"}]}`, ``, refused},
		{``, ``, `"stop_reason":"refusal"`, refused},
		{``, ``, `"annotations":[{"type":"refusal"}]`, refused},
		{`"is_refusal":true`, ``, ``, refused},
		{`"moderation":{"flagged":true,"blocked":true}`, ``, ``, refused},
		{``, `"safety_ratings":[{"blocked":true}]`, ``, refused},
		{`"incomplete_details":{"reason":"content_filter"}`, ``, ``, refused},
		{``, `"finish_details":{"type":"max_tokens"}`, ``, truncated},
		{`"incomplete_details":{"reason":"max_output_tokens"}`, ``, ``, truncated},
		{`"done":false`, ``, ``, truncated},
		{`"partial":true`, ``, ``, truncated},
		{`"stop_reason":"max_tokens"`, ``, ``, truncated},
		{`"truncated":"true"`, ``, ``, truncated},
		{`"meta":{"prompt_truncated":true}`, ``, ``, truncated},
		{`"warning":"prompt truncated"`, ``, ``, truncated},
		{`"warnings":["image dropped: model has no vision"]`, ``, ``, truncated},
		{`"warnings":[{"message":"the input image is ignored"}]`, ``, ``, truncated},
		{`"amazon-bedrock-guardrailAction":"INTERVENED"`, ``, ``, refused},
		{`"moderation":{"flagged":true,"action":"blocked"}`, ``, ``, refused},
		{``, `"safety":{"category":"self_harm","action":"BLOCK"}`, ``, refused},
		{`"verdict":"denied"`, ``, ``, refused},
		{`"censored":true`, ``, ``, refused},
		{`"policy_violation":true`, ``, ``, refused},
		{`"violations":["self-harm"]`, ``, ``, refused},
		{`"input_sensitive":false,"output_sensitive":true,"base_resp":{"status_code":1027}`, ``, ``, refused},
		{`"status":"blocked"`, ``, ``, refused},
		{`"stop_type":"limit"`, ``, ``, truncated},
		{`"__verbose":{"stop_type":"limit","truncated":false}`, ``, ``, truncated},
		{`"stopped_limit":true`, ``, ``, truncated},
		{``, `"limit_reached":true`, ``, truncated},
		{``, `"eos_reached":false`, ``, truncated},
		{`"context_shift":true`, ``, ``, truncated},
		{`"tokens_truncated":12`, ``, ``, truncated},
		{`"dropped_messages":1`, ``, ``, truncated},
		{`"usage":{"prompt_tokens":10,"truncated_tokens":400}`, ``, ``, truncated},
		{`"images_dropped":1`, ``, ``, truncated},
		{`"ignored_images":["image-1"]`, ``, ``, truncated},
		{`"dropped_params":["messages.0.content.image_url"]`, ``, ``, truncated},
		{`"warnings":["image could not be decoded"]`, ``, ``, truncated},
		{`"warnings":[{"detail":"failed to fetch the picture"}]`, ``, ``, truncated},
		{`"message":"images are not supported by this model and were stripped from the prompt"`, ``, ``, truncated},
		{``, ``, `"notes":["this model has no vision; the image was removed"]`, truncated},
		{`"cancelled":true`, ``, ``, failed},
		{``, `"interrupted":true`, ``, failed},
		{`"timed_out":"true"`, ``, ``, failed},
		{`"success":false,"message":"internal error"`, ``, ``, failed},
		{`"ok":false`, ``, ``, failed},
		{`"code":500,"message":"internal error"`, ``, ``, failed},
		{`"code":"1305"`, ``, ``, failed},
		{`"base_resp":{"status_code":1000,"status_msg":"unknown error"}`, ``, ``, failed},
		{``, ``, `"error":{"message":"upstream"}`, failed},
		{`"state":"aborted"`, ``, ``, failed},
		{`"status":"in_progress"`, ``, ``, failed},
		{`"object":"error","code":500`, ``, ``, failed},

		{`"amazon-bedrock-guardrailAction":"NONE","moderation":{"flagged":false,"action":"allow"}`, ``, ``, ok},
		{`"input_sensitive":false,"output_sensitive":false,"input_sensitive_type":0,"base_resp":{"status_code":0,"status_msg":""}`, ``, ``, ok},
		{`"success":true,"ok":true,"code":200,"message":"success","status":"success"`, ``, ``, ok},
		{`"code":20000,"message":"Ok","status":true`, ``, ``, ok},
		{`"code":0,"msg":"ok","errors":[],"error_code":0,"error_message":""`, ``, ``, ok},
		{`"images_dropped":0,"num_images_processed":1,"tokens_truncated":0,"context_shift":false,"cancelled":false,"cancelled_at":null`, ``, ``, ok},
		{`"dropped_params":["seed","top_p"],"warnings":["the image was resized to 1024 x 768"],"knowledge_cutoff":"2025-06"`, ``, ``, ok},
		{`"__verbose":{"index":0,"stop":true,"truncated":false,"stop_type":"eos","stopping_word":"","has_new_line":true,"generation_settings":` +
			`{"n_discard":0,"ignore_eos":false,"context_shift":true,"timeout":300},"timings":{"prompt_n":1,"cache_n":0}}`,
			``, ``, ok},
		{`"stopped_eos":false,"stopped_word":true,"stopped_limit":false`, ``, ``, ok},
		{`"usage":{"prompt_tokens":7,"truncated_tokens":0,"prompt_tokens_details":{"image_tokens":0,"cached_tokens":0}},"service_tier":"default"`,
			`"stop_reason":null,"token_ids":null,"matched_stop":151645,"native_finish_reason":"STOP"`,
			`"annotations":[],"audio":null,"function_call":null,"tool_calls":[]`, ok},
		{`"stats":{"stop_reason":"eosFound"},"x_groq":{"id":"req_1"},"provider":"x","is_byok":false,"timeout":300`, ``,
			``, ok},
		{`"truncation":"disabled","incomplete_details":null,"done":true,"warnings":[]`, ``, ``, ok},
		{`"warnings":["the parameter seed is ignored","max_tokens is deprecated"]`, ``, ``, ok},
		{`"promptFeedback":{"blockReason":"BLOCK_REASON_UNSPECIFIED"},"is_refusal":"false"`, ``, ``, ok},
		{`"kv_transfer_params":{"block_size":16,"remote_block_ids":[1,2]}`, ``, ``, ok},
		{`"usage":{"completion_tokens_details":{"rejected_prediction_tokens":7}}`, ``, ``, ok},
		{``, `"stop_reason":"}","finish_details":{"type":"stop"},"logprobs":{"content":[{"token":"refusal"}],"refusal":null}`, ``, ok},
		{``, ``, `"refusal":"","reasoning_content":"it is truncated","annotations":[{"type":"url_citation"}]`, ok},
		{``, `"content_filter_results":{"error":{"code":"content_filter_error"},"custom_blocklists":{"filtered":false}}`,
			``, ok},
	}
	for _, test := range tests {
		joined := func(fields ...string) string { return strings.Trim(strings.Join(fields, ","), ",") }
		for _, end := range []string{`"finish_reason":"stop"`, `"finish_reason":null`, ``} {
			body := `{` + joined(test.outer, `"choices":[{`+joined(test.choice, end, `"message":{`+
				joined(test.message, `"role":"assistant","content":"said"`)+`}`)+`}]`) + `}`
			body = strings.ReplaceAll(body, ",,", ",")
			if r := endpoint.ReadChat([]byte(body)); r.Outcome != test.want || test.want != ok && r.Detail == "" {
				t.Errorf("%s: %s %q, want %s", body, r.Outcome, r.Detail, test.want)
			}
		}
	}
}

// TestEnds: of the fields that say how an answer ended, the words that mean a whole one are a closed list; a stop
// sequence is no such word.
func TestEnds(t *testing.T) {
	for _, test := range []struct {
		outer, choice, message string
		want                   endpoint.Outcome
	}{
		{`"stats":{"stop_reason":"contextLengthReached"}`, ``, ``, truncated},
		{`"stats":{"stop_reason":"maxPredictedTokensReached"}`, ``, ``, truncated},
		{`"stats":{"stop_reason":"userStopped"}`, ``, ``, failed},
		{`"stats":{"stopReason":"modelUnloaded"}`, ``, ``, failed},
		{``, `"stop_reason":"pause_turn"`, ``, failed}, {`"done_reason":"unload"`, ``, ``, failed},
		{``, `"native_finish_reason":"LANGUAGE"`, ``, failed}, {`"stop_type":"none"`, ``, ``, failed},
		{``, `"meta_info":{"finish_reason":{"type":"paused"}}`, ``, failed},
		{`"context_overflow":true`, ``, ``, truncated},
		{`"status":"partial"`, ``, ``, failed}, {`"status":"requires_action"`, ``, ``, failed},
		{`"state":"preempted"`, ``, ``, failed},
		{`"status":"stopped_early"`, ``, ``, failed}, {`"response_status":"Processing"`, ``, ``, failed},
		{``, `"status":"unfinished"`, ``, failed}, {``, ``, `"status":"killed"`, failed},
		{``, `"status":"ALTERNATIVE_STATUS_TOOL"`, ``, failed},

		{`"stats":{"stop_reason":"eosFound"}`, ``, ``, ok}, {`"stats":{"stop_reason":"stopStringFound"}`, ``, ``, ok},
		{``, `"stop_reason":"</answer>"`, ``, ok}, {``, `"stop_reason":"END"`, ``, ok},
		{``, `"stop_reason":151645`, ``, ok},
		{`"stop_type":"word","stop_reason":"None"`, `"native_finish_reason":"FINISH_REASON_STOP"`, ``, ok},
		{`"status":"succeeded","state":"DONE","job_status":"200"`, `"status":"ALTERNATIVE_STATUS_FINAL"`,
			`"status":"completed"`, ok},
		{`"status":"","cache":{"status":"miss"},"metadata":{"status":"mine"},"moderation":{"status":"passed"},"overflow_policy":"rolling"`, ``, ``, ok},
	} {
		body := strings.NewReplacer("{,", "{", ",,", ",").Replace(`{` + test.outer + `,"choices":[{` + test.choice +
			`,"finish_reason":"stop","message":{` + test.message + `,"content":"said"}}]}`)
		if got := endpoint.ReadAnswer(body, false, "END"); got != test.want {
			t.Errorf("%s: %s, want %s", body, got, test.want)
		}
	}
}

// TestOtherAnswers: an answer that stands in another place of the same body, and says something else, makes it one that
// cannot be read in one way.
func TestOtherAnswers(t *testing.T) {
	const said, other = `{"severity": "Suicide ideation"}`, `{"severity": []}`
	quoted := func(text string) string { return strconv.Quote(text) }
	for _, test := range []struct {
		content, outer, message string
		want                    endpoint.Outcome
	}{
		{said, ``, `"parsed":` + other, failed},
		{said, `"response":` + quoted(other), ``, failed},
		{said, `"message":{"role":"assistant","content":` + quoted(other) + `}`, ``, failed},
		{said, `"output":[{"type":"message","content":[{"type":"output_text","text":` + quoted(other) + `}]}]`, ``, failed},
		{said, `"output_text":` + quoted("```json\n"+other+"\n```"), ``, failed},
		{said, `"response":` + other, ``, failed},
		{said, `"output":{"choices":[{"text":` + quoted(other) + `}]}`, ``, failed},
		{"safe", `"response":"unsafe\nS11"`, ``, failed},

		{said, ``, `"parsed":{"severity":"Suicide ideation"}`, ok},
		{"<think>it may be " + other + "</think>" + said, ``, `"parsed":{"severity":"Suicide ideation"}`, ok},
		{said, `"response":` + quoted(" "+said+"\n") + `,"output_text":` + quoted("```json\n"+said+"\n```"), ``, ok},
		{said, `"message":{"role":"assistant","content":` + quoted(said) + `}`, `"parsed":null`, ok},
		{said, `"message":"ok","output":null,"response":"","result":"success"`, ``, ok},
		{said, `"output":{"latency":3},"result":{"rows":1},"response":{"headers":{}}`, ``, ok},
		{"safe", `"message":"done","response":"safe"`, ``, ok},
	} {
		fields := strings.Trim(test.outer+`,"choices":[{"message":{`+strings.Trim(test.message+`,"content":`+quoted(test.content), ",")+`}}]`, ",")
		if r := endpoint.ReadChat([]byte("{" + fields + "}")); r.Outcome != test.want || test.want != ok && r.Detail == "" {
			t.Errorf("{%s}: %s %q, want %s", fields, r.Outcome, r.Detail, test.want)
		}
	}
}

// TestSecondAnswers: an object of the form that the answer has, under whichever key, is a second answer if it gives
// other labels. One of the thoughts, of the request, of a filter or of a count is none.
func TestSecondAnswers(t *testing.T) {
	const said, other = `{"severity":"SS1"}`, `{"severity":"SS2"}`
	for _, test := range []struct {
		outer, choice, message string
		want                   endpoint.Outcome
	}{
		{`"outputs":[` + strconv.Quote(other) + `]`, ``, ``, failed},
		{`"candidates":[{"content":{"role":"model","parts":[{"text":` + strconv.Quote(other) + `}]}}]`, ``, ``, failed},
		{`"result":` + other, ``, ``, failed},
		{`"structured_output":` + other, ``, ``, failed},
		{`"structured_output":{"severity":["SS1","SS2"]}`, ``, ``, failed},
		{`"anything":{"severity":[]}`, ``, ``, failed},
		{`"data":{"inner":[{"Severity":"SS2","confidence":0.9}]}`, ``, ``, failed},
		{`"data":` + strconv.Quote(`{"deep":`+other+`}`), ``, ``, failed},
		{`"data":` + strconv.Quote("```json\n"+other+"\n```"), ``, ``, failed},
		{`"severity":"SS2"`, ``, ``, failed},
		{``, `"severity":"SS2"`, ``, failed},
		{``, ``, `"severity":"SS2"`, failed},
		{``, ``, `"json":` + other, failed},
		{``, ``, `"final":` + strconv.Quote(other), failed},
		{``, `"messages":[{"role":"user","content":"{}"},{"role":"assistant","content":` + strconv.Quote(other) + `}]`,
			``, failed},

		{`"outputs":[` + strconv.Quote(said) + `],"result":` + said + `,"severity":" ss1 "`, ``,
			`"json":{"Severity":["SS1"]}`, ok},
		{`"__verbose":{"content":` + strconv.Quote("<think>"+other+"</think>"+said) + `,"prompt":` + strconv.Quote(other) + `}`, ``, ``, ok},
		{``, ``, `"reasoning":` + strconv.Quote(other) + `,"thoughts":[` + strconv.Quote(other) + `]`, ok},
		{``, ``, `"analysis":` + strconv.Quote(other), ok},
		{``, `"parts":[{"type":"thinking","text":` + strconv.Quote(other) + `}]`, ``, ok},
		{`"request":{"severity":"x"},"input":` + strconv.Quote(other) + `,"tools":[` + other + `]`, ``, ``, ok},
		{`"conversation":[{"role":"user","content":` + strconv.Quote(other) + `},{"role":"assistant","content":` + strconv.Quote(other) +
			`},{"role":"user","content":"?"}]`, ``, ``, ok},
		{`"messages":[{"role":"assistant","content":` + strconv.Quote(other) + `},{"role":"user","content":"?"},` +
			`{"role":"assistant","content":` + strconv.Quote(said) + `}]`, ``, ``, ok},
		{`"response_format":{"schema":{"properties":` + other + `}}`, ``, ``, ok},
		{``, `"content_filter_results":{"self_harm":{"filtered":false,"severity":"safe"}}`, ``, ok},
		{`"safety_ratings":[{"category":"x","severity":"LOW"}],"log":[{"severity":"INFO"}]`, ``, ``, ok},
		{`"severity":3,"meta":{"severity":{"a":1}},"stats":{"severity":null}`, ``, ``, ok},
		{`"other":{"topic":"x"},"note":"{severity}"`,
			`"logprobs":{"content":[{"token":` + strconv.Quote(other) + `}]}`, ``, ok},
	} {
		joined := func(fields ...string) string { return strings.Trim(strings.Join(fields, ","), ",") }
		for _, content := range []string{strconv.Quote(said), `[{"type":"text","text":` + strconv.Quote(said) + `}]`} {
			body := `{` + joined(test.outer, `"choices":[{`+joined(test.choice, `"message":{`+
				joined(test.message, `"role":"assistant","content":`+content)+`}`)+`}]`) + `}`
			if r := endpoint.ReadChat([]byte(body)); r.Outcome != test.want || test.want != ok && r.Detail == "" {
				t.Errorf("%s: %s %q, want %s", body, r.Outcome, r.Detail, test.want)
			}
		}
	}
}

// TestSameKeys: what every answer has beside its message is no second answer of a task that is called as it.
func TestSameKeys(t *testing.T) {
	for _, key := range []string{"model", "id", "type", "status", "object", "role"} {
		body := `{"id":"x","object":"chat.completion","model":"m","type":"chat","status":"completed","choices":[{"message":` +
			`{"role":"assistant","content":` + strconv.Quote(`{"`+key+`":"a"}`) + `}}]}`
		if r := endpoint.ReadChat([]byte(body)); r.Outcome != ok {
			t.Errorf("%s: %s %s", body, r.Outcome, r.Detail)
		}
	}
}

// TestTwoVerdicts: what contradicts the verdict of a moderation, wherever it stands, leaves none.
func TestTwoVerdicts(t *testing.T) {
	for body, want := range map[string]endpoint.Outcome{
		`{"flagged":true,"results":[{"flagged":false}]}`:                                           failed,
		`{"flagged":false,"results":[{"flagged":true}]}`:                                           failed,
		`{"results":[{"flagged":false,"is_flagged":true}]}`:                                        failed,
		`{"results":[{"flagged":true,"isFlagged":"false"}]}`:                                       failed,
		`{"results":[{"flagged":false}],"summary":{"was_flagged":1}}`:                              failed,
		`{"results":[{"flagged":false,"inputs":[{"type":"image","flagged":true}]}]}`:               failed,
		`{"results":[{"flagged":true,"inputs":[{"flagged":true},{"flagged":false}]}]}`:             ok,
		`{"flagged":true,"is_flagged":"true","results":[{"flagged":true}]}`:                        ok,
		`{"flagged":null,"results":[{"flagged":false,"flagged_at":"x"}]}`:                          ok,
		`{"request":{"flagged":true},"results":[{"flagged":false,"categories":{"flagged":true}}]}`: ok,
	} {
		if r := endpoint.ReadModeration([]byte(body)); r.Outcome != want || want != ok && r.Detail == "" {
			t.Errorf("%s: %s %q, want %s", body, r.Outcome, r.Detail, want)
		}
	}
}

// TestPictureCounts: that no picture was read says something only where one was sent.
func TestPictureCounts(t *testing.T) {
	for fields, want := range map[string]endpoint.Outcome{
		`"num_images_processed":0`: truncated, `"image_used":false`: truncated, `"supports_vision":false`: truncated,
		`"num_images_processed":1`: ok, `"image_used":true`: ok,
	} {
		for _, picture := range []bool{true, false} {
			body := `{` + fields + `,"choices":[{"message":{"content":"said"}}]}`
			if !picture {
				want = ok
			}
			if got := endpoint.ReadAnswer(body, picture); got != want {
				t.Errorf("%s, with a picture %t: %s, want %s", body, picture, got, want)
			}
		}
	}
}

// TestUsageMarks: what a usage says of loss counts as it does beside it, at any depth; what the usual servers count
// there says nothing. The pictures of the answer, of a cache and of a bill are not those that were sent.
func TestUsageMarks(t *testing.T) {
	for usage, want := range map[string]endpoint.Outcome{
		`"prompt_tokens":10,"truncated":true`:                                                truncated,
		`"num_images_processed":0`:                                                           truncated,
		`"images_used":false`:                                                                truncated,
		`"prompt_tokens_details":{"tokens_truncated":400}`:                                   truncated,
		`"completion_tokens_details":{"truncated":true}`:                                     truncated,
		`"prompt_tokens_details":{"image_tokens":0,"text_tokens":900}`:                       truncated,
		`"prompt_tokens":900,"prompt_tokens_details":{"image_tokens":0,"text_tokens":900}`:   truncated,
		`"input_tokens":"900","input_tokens_details":{"imageTokens":"0","textTokens":"900"}`: truncated,
		`"prompt_tokens":900,"image_tokens":0,"text_tokens":900`:                             truncated,
		`"details":[{"warning":"the image was dropped"}]`:                                    truncated,
		`"prompt_tokens":7,"truncated_tokens":0,"prompt_tokens_details":null`:                ok,
		`"prompt_tokens":900,"prompt_tokens_details":{"image_tokens":0,"text_tokens":0}`:     ok, // New API's
		`"prompt_tokens":900,"prompt_tokens_details":{"image_tokens":0,"cached_tokens":0}`:   ok,
		`"prompt_tokens":900,"prompt_tokens_details":{"image_tokens":0,"text_tokens":100}`:   ok,
		// 800 are not told
		`"prompt_tokens":900,"prompt_tokens_details":{"image_tokens":700,"text_tokens":200}`:  ok, // xAI's
		`"prompt_tokens":900,"prompt_tokens_details":{"text_tokens":900,"image_tokens":null}`: ok, // LiteLLM's
		`"completion_tokens_details":{"image_tokens":0,"text_tokens":9,"reasoning_tokens":0}`: ok,
		// OpenRouter's
		`"completion_tokens_details":{"accepted_prediction_tokens":0,"rejected_prediction_tokens":7}`: ok, // OpenAI's
		`"cost":0.1,"is_byok":false,"cost_details":{"image":0,"images_processed":0}`:                  ok,
		`"images":0,"num_sources_used":0,"output_images_included":0,"cache_read_image_tokens":0`:      ok,
		`"service_tier":"standard","server_tool_use":{"web_search_requests":0},"queue_time":0.1`:      ok,
	} {
		for _, body := range []string{
			`{"usage":{` + usage + `},"choices":[{"message":{"content":"said"}}]}`,
			`{"x_groq":{"usage":{` + usage + `}},"choices":[{"message":{"content":"said"}}]}`,
			`{"usageMetadata":{` + usage + `},"choices":[{"message":{"content":"said"}}]}`,
		} {
			if got := endpoint.ReadAnswer(body, true); got != want {
				t.Errorf("%s: %s, want %s", body, got, want)
			}
		}
		body := `{"usage":{` + usage + `},"results":[{"flagged":false}]}`
		if got := endpoint.ReadJudgement(body, true); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	const text = `{"usage":{"image_tokens":0,"text_tokens":9,"images_processed":0},"choices":[{"message":{"content":"said"}}]}`
	if got := endpoint.ReadAnswer(text, false); got != ok {
		t.Errorf("%s, without a picture: %s", text, got)
	}
}

// TestModerationMarks: a moderation's verdict is no mark, and what says that it was not made is.
func TestModerationMarks(t *testing.T) {
	for fields, want := range map[string]endpoint.Outcome{
		`"success":false`: failed, `"timed_out":true`: failed, `"code":500`: failed, `"cancelled":true`: failed,
		`"warnings":["image could not be fetched"]`: truncated, `"tokens_truncated":9`: truncated,
		`"images_dropped":2`: truncated,
		`"status":"partial"`: failed, `"state":"unfinished"`: failed, `"status":"flagged"`: ok, `"status":"Done"`: ok,
		`"policy_violation":true,"action":"block","decision":"reject"`: ok, `"flagged":true,"sensitive":true,"code":0`: ok,
	} {
		for _, body := range []string{
			`{` + fields + `,"results":[{"flagged":true,"categories":{"self-harm":true}}]}`,
			`{"results":[{` + strings.Replace(fields, `"flagged":true,`, ``, 1) + `,"flagged":true}]}`,
		} {
			if got := endpoint.ReadModeration([]byte(body)).Outcome; got != want {
				t.Errorf("%s: %s, want %s", body, got, want)
			}
		}
	}
}
