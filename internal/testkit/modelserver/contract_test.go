package modelserver

import "testing"

// TestContract: the specification refuses what it should, so that a request which passes says something.
func TestContract(t *testing.T) {
	chat, moderation := "/v1/chat/completions", "/v1/moderations"
	for _, tt := range []struct {
		path, body string
		good       bool
	}{
		{chat, `{"model":"m","messages":[{"role":"user","content":"x"}]}`, true},
		{chat,
			`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}],"stop":["}"]}`, true},
		{chat,
			`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":"data:image/png;base64,AA=="}]}]}`, false},
		{chat, `{"model":"m","messages":[]}`, false},
		{chat, `{"messages":[{"role":"user","content":"x"}]}`, false},
		{chat, `{"model":"m","messages":[{"role":"nobody","content":"x"}]}`, false},
		{chat, `{"model":"m","messages":[{"role":"user","content":"x"}],"temperature":3}`, false},
		{chat, `{"model":"m","messages":[{"role":"user","content":"x"}],"temperatur":1}`, false},
		{chat,
			`{"model":"m","messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema","schema":{}}}`,
			false},
		{chat,
			`{"model":"m","messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{}}}}`, true},
		{moderation, `{"model":"m","input":"x"}`, true},
		{moderation,
			`{"model":"m","input":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}`, true},
		{moderation, `{"model":"m"}`, false},
		{moderation, `{"model":"m","input":[{"type":"image","text":"x"}]}`, false},
		{"/v1/models", `{}`, false},
	} {
		if err := CheckRequest(tt.path, []byte(tt.body)); (err == nil) != tt.good {
			t.Errorf("%s %s: %v", tt.path, tt.body, err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	for b.Loop() {
		_ = CheckRequest("/v1/chat/completions",
			[]byte(`{"model":"m","messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{}}}}`))
	}
}
