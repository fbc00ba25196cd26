package endpoint_test

import (
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
		{`"status":"in_progress"`, ``, ``, failed},
		{`"object":"error","code":500`, ``, ``, failed},

		{`"truncation":"disabled","incomplete_details":null,"done":true,"warnings":[]`, ``, ``, ok},
		{`"warnings":["the parameter seed is ignored","max_tokens is deprecated"]`, ``, ``, ok},
		{`"promptFeedback":{"blockReason":"BLOCK_REASON_UNSPECIFIED"},"is_refusal":"false"`, ``, ``, ok},
		{`"kv_transfer_params":{"block_size":16,"remote_block_ids":[1,2]}`, ``, ``, ok},
		{`"usage":{"completion_tokens_details":{"rejected_prediction_tokens":7}}`, ``, ``, ok},
		{``, `"stop_reason":"}","finish_details":{"type":"stop"},"logprobs":{"content":[{"token":"refusal"}],"refusal":null}`, ``, ok},
		{``, ``, `"refusal":"","reasoning_content":"it is truncated","annotations":[{"type":"url_citation"}]`, ok},
		{``, `"content_filter_results":{"error":{"code":"content_filter_error"},"custom_blocklists":{"filtered":false}}`, ``, ok},
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
