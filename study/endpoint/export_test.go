package endpoint

import (
	"context"
	"net"
	"net/http"

	"rehydrate/internal/jsonscan"
)

// Dial replaces the lowest layer of a Server.
func (s *Server) Dial(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	s.http.Transport.(refused).RoundTripper.(*http.Transport).DialContext = dial
}

// HangUp closes the connections that are kept.
func (s *Server) HangUp() {
	s.http.Transport.(refused).RoundTripper.(*http.Transport).CloseIdleConnections()
}

// Answered is the Reply to a chat, or to a moderation, that an answer gives.
func (s *Server) Answered(response *http.Response, moderation bool) (Reply, error) {
	return s.answered(response, []string{"stop", "temperature"}, func(fields map[string]any) Reply {
		if moderation {
			return readModeration(fields, true)
		}
		return readChat(fields, look{pictures: true})
	})
}

const MaxAnswer = maxAnswer

// ReadAnswer is the outcome of the answer to a chat, with or without a picture in it.
// stops are the stop sequences of the request.
func ReadAnswer(body string, picture bool, stops ...string) Outcome {
	return outcomeOf(body, picture, func(fields map[string]any, pictures bool) Reply {
		return readChat(fields, look{pictures: pictures, stops: stops})
	})
}

// ReadJudgement is that of the answer to a moderation.
func ReadJudgement(body string, picture bool) Outcome {
	return outcomeOf(body, picture, readModeration)
}

func outcomeOf(body string, picture bool, read func(map[string]any, bool) Reply) Outcome {
	v, err := jsonscan.Decode([]byte(body))
	if err != nil {
		return Failed
	}
	fields, _ := v.(map[string]any)
	return read(fields, picture).Outcome
}

// UsageOf is what a body says that it took, and whether its counts contradict each other.
func UsageOf(body string) (Usage, bool) {
	r := Reply{}.counted([]byte(body))
	return r.Usage, r.Contradicts
}
