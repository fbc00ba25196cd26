package endpoint

import (
	"context"
	"net"
	"net/http"
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
	read := readChat
	if moderation {
		read = readModeration
	}
	return s.answered(response, []string{"stop", "temperature"}, read)
}

const MaxAnswer = maxAnswer
