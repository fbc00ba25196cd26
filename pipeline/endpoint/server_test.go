package endpoint_test

import (
	"testing"

	"rehydrate/pipeline/endpoint"
	"rehydrate/pipeline/endpoint/endpointtest"
)

func open(t *testing.T, url string) *endpoint.Server {
	t.Helper()
	s, err := endpoint.Open(endpoint.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestChat(t *testing.T) {
	server := endpointtest.New(t, "vllm")
	server.Answer = func(endpointtest.Request) string { return `{"severity":"SS2"}` }
	r, err := open(t, server.URL).Chat(t.Context(), endpoint.Chat{Model: "m", Messages: []endpoint.Message{{Role: "user", Text: "a",
		Image: &endpoint.Image{Type: "image/png", Data: []byte("x")}}}})
	if err != nil || r.Outcome != endpoint.OK || r.Text != `{"severity":"SS2"}` || r.Model != "m" || r.Usage.Completion == 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
