package modelserver

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
)

// A Play answers a request in its own way, or returns false.
type Play func(w http.ResponseWriter, r Request) bool

// First plays for the first n requests of a server, and behaves well after them.
func First(n int, p Play) Play {
	return func(w http.ResponseWriter, r Request) bool { return r.N < n && p(w, r) }
}

// Status answers with a status, a body, and headers that are given in pairs.
func Status(status int, body string, headers ...string) Play {
	return func(w http.ResponseWriter, _ Request) bool {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
		return true
	}
}

// Error answers with a status and OpenAI's form of an error.
func Error(status int, message, code string, headers ...string) Play {
	body, _ := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": "invalid_request_error",
		"param": nil, "code": code}})
	return Status(status, string(body), headers...)
}

// Says answers a chat with words, and the reason for which they end.
func Says(words, finish string) Play {
	return func(w http.ResponseWriter, _ Request) bool {
		s := &Server{dialect: "vllm"}
		body, _ := json.Marshal(s.completion("m", words, finish, 9, 9))
		return Status(http.StatusOK, string(body))(w, Request{})
	}
}

// Refusal answers as OpenAI's models do that refuse.
func Refusal(w http.ResponseWriter, _ Request) bool {
	return Status(http.StatusOK,
		`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop","logprobs":null,`+
			`"message":{"role":"assistant","content":null,"refusal":"I'm sorry, I can't help with that."}}]}`)(w, Request{})
}

// Stream answers with events, which were not asked for.
func Stream(w http.ResponseWriter, _ Request) bool {
	return Status(http.StatusOK,
		"data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"{\"}}]}\n\ndata: [DONE]\n\n",
		"Content-Type", "text/event-stream; charset=utf-8")(w, Request{})
}

// Huge answers with a good beginning and n bytes more, and counts those that were taken; with its length told first
// where told is set.
func Huge(n int64, told bool, taken *atomic.Int64) Play {
	return func(w http.ResponseWriter, _ Request) bool {
		const begin = `{"choices":[{"message":{"content":"`
		w.Header().Set("Content-Type", "application/json")
		if told {
			w.Header().Set("Content-Length", strconv.FormatInt(n+int64(len(begin)), 10))
		}
		_, _ = io.WriteString(w, begin)
		n, _ := io.Copy(w, io.LimitReader(spaces{}, n))
		taken.Add(n)
		return true
	}
}

// Bomb answers with a few bytes that unfold into n.
func Bomb(n int64) Play {
	return func(w http.ResponseWriter, r Request) bool {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.Copy(z, io.LimitReader(spaces{}, n))
		_ = z.Close()
		return true
	}
}

type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	return copy(p, strings.Repeat(" ", min(len(p), 32<<10))), nil
}

// Break closes the connection in the middle of an answer.
func Break(w http.ResponseWriter, _ Request) bool {
	w.Header().Set("Content-Length", "100")
	_, _ = io.WriteString(w, `{"choices":[`)
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// Hang answers nothing until over is closed.
func Hang(over <-chan struct{}) Play {
	return func(http.ResponseWriter, Request) bool {
		<-over
		panic(http.ErrAbortHandler)
	}
}
