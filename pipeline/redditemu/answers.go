package redditemu

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// A Reply is one answer before it is sent.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte

	// Stream, when not nil, writes the body in place of Body, in chunks, without a length. Its error
	// cuts the connection.
	Stream func(io.Writer) error

	// Send, when not nil, answers in place of all of this.
	Send func(http.ResponseWriter, *http.Request)
}

// NewReply makes a reply.
func NewReply(status int, contentType string, body []byte) *Reply {
	return &Reply{Status: status, Header: http.Header{"Content-Type": {contentType}}, Body: body}
}

// With sets headers, given as names and values in turn.
func (r *Reply) With(kv ...string) *Reply {
	for i := 0; i < len(kv); i += 2 {
		r.Header.Set(kv[i], kv[i+1])
	}
	return r
}

// JSONReply makes a reply of JSON.
func JSONReply(status int, body string) *Reply {
	return NewReply(status, "application/json; charset=UTF-8", []byte(body))
}

// HTMLReply makes a reply of a page with a title and a text.
func HTMLReply(status int, title, text string) *Reply {
	page := "<!doctype html>\n<html>\n  <head>\n    <title>" + title + "</title>\n  </head>\n  <body>\n    <h1>" +
		title + "</h1>\n    <p>" + text + "</p>\n  </body>\n</html>\n"
	return NewReply(status, "text/html; charset=UTF-8", []byte(page))
}

// RedirectReply makes a 302.
func RedirectReply(to string) *Reply {
	return NewReply(http.StatusFound, "text/html; charset=utf-8", nil).With("Location", to)
}

// apiError is an error of Reddit's API without a reason.
func apiError(status int) *Reply {
	return JSONReply(status, fmt.Sprintf(`{"message": %q, "error": %d}`, http.StatusText(status), status))
}

// Blocked is the 403 page titled "Blocked".
func Blocked() *Reply {
	return HTMLReply(http.StatusForbidden, "Blocked",
		"whoa there, pardner! Your request has been blocked due to a network policy. "+
			"If you're running a script or application, please register or sign in with your developer credentials, and make sure "+
			"your User-Agent is not empty and is something unique and descriptive.")
}

// ServerError is an HTML page with a 408 or 5xx status.
func ServerError(code int) *Reply {
	text := http.StatusText(code)
	if text == "" {
		text = "Error" // 520 and 522 are Cloudflare's own
	}
	return HTMLReply(code, strconv.Itoa(code)+" "+text, "Our CDN was unable to reach our servers")
}

// Unauthorized is the 401 of the API for a token that does not hold.
func Unauthorized() *Reply {
	return apiError(http.StatusUnauthorized).With("WWW-Authenticate", `Bearer realm="reddit", error="invalid_token"`)
}
