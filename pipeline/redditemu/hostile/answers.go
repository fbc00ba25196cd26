package hostile

import (
	"bytes"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/redditemu"
)

// A Case is one case of the hostile corpus: an image file, or a way to answer, that is
// meant to do harm. It has Write or Kind.
type Case struct {
	Name  string                // lower_case_words, unique in the corpus
	Write func(io.Writer) error // an image file, made as it is written: the same bytes each time
	Kind  FaultKind             // an answer, for every request to a host of its own

	// What a correct client makes of it under the default policy.
	Outcome manifest.Outcome
	Reason  manifest.Reason
}

// textless is the reason of a picture that is kept: none of the corpus holds text.
const textless manifest.Reason = "no_text"

// Answers returns the answers of the corpus. trap is the address, HOST:PORT, of a
// listener that no client may connect to: some of the answers lead there.
func Answers(trap string) []Case {
	all := []Case{
		{Name: "gzip_bomb", Kind: GzipBomb(1 << 30), Outcome: manifest.Failed, Reason: "content_encoding"},
		{Name: "endless_chunks", Kind: Endless(), Outcome: manifest.Invalid, Reason: "too_large"},
		{Name: "one_byte_a_second", Kind: OnPicture(OneByteASecond()), Outcome: manifest.Failed, Reason: "timeout"},
		{Name: "never_answers", Kind: Hang(), Outcome: manifest.Failed, Reason: "timeout"},
		{Name: "header_of_10_mb", Kind: OnPicture(HugeHeader(10 << 20)), Outcome: manifest.Failed,
			Reason: "headers_too_large"},
		{Name: "redirect_loop", Kind: RedirectLoop(), Outcome: manifest.Failed, Reason: "too_many_redirects"},
		{Name: "ten_hops", Kind: RedirectHops(10), Outcome: manifest.Failed, Reason: "too_many_redirects"},
		{Name: "three_hops", Kind: RedirectHops(3), Outcome: manifest.Kept, Reason: textless},
		{Name: "set_cookie", Kind: SetCookies(RedirectHops(1)), Outcome: manifest.Kept, Reason: textless},
		{Name: "length_too_long", Kind: OnPicture(WrongLength(100)), Outcome: manifest.Failed, Reason: "truncated"},
		{Name: "length_too_short", Kind: OnPicture(WrongLength(-100)), Outcome: manifest.Invalid, Reason: "bad_container"},
		{Name: "cut_halfway", Kind: OnPicture(TruncatedBody()), Outcome: manifest.Failed, Reason: "truncated"},
		{Name: "no_body", Kind: OnPicture(EmptyBody()), Outcome: manifest.Failed, Reason: "empty_body"},
		{Name: "empty_reply", Kind: EmptyReply(), Outcome: manifest.Failed, Reason: "connection"},
		{Name: "reset", Kind: Reset(), Outcome: manifest.Failed, Reason: "connection"},
		{Name: "not_http", Kind: NotHTTP(), Outcome: manifest.Failed, Reason: "connection"},
		{Name: "partial_content", Kind: OnPicture(withStatus(http.StatusPartialContent)), Outcome: manifest.Failed,
			Reason: "http_206"},
		{Name: "picture_with_404", Kind: OnPicture(withStatus(http.StatusNotFound)), Outcome: manifest.Gone,
			Reason: "http_404"},
		{Name: "redirect_without_location", Kind: Status(http.StatusFound, nil, nil), Outcome: manifest.Failed,
			Reason: "bad_redirect"},
	}
	for _, target := range hostileTargets(trap) {
		all = append(all, Case{Name: "redirect_to_" + target.name, Kind: RedirectTo(target.url),
			Outcome: manifest.Refused, Reason: "redirect_" + target.reason})
	}
	return all
}

// A hostileTarget is where a redirect of the corpus leads, and what is wrong with it first.
type hostileTarget struct {
	name, url string
	reason    manifest.Reason
}

// hostileTargets lead off the policy's hosts, or to addresses that are not public in one of
// their spellings.
func hostileTargets(trap string) []hostileTarget {
	port := trap[strings.LastIndex(trap, ":")+1:]
	return []hostileTarget{
		{"loopback", "https://127.0.0.1:" + port + "/trap.jpg", "url_port"},
		{"loopback_443", "https://127.0.0.1/trap.jpg", "host_not_allowed"},
		{"mapped_loopback_443", "https://[::ffff:127.0.0.1]/trap.jpg", "host_not_allowed"},
		{"hex_loopback", "https://0x7f.0.0.1/trap.jpg", "host_not_allowed"},
		{"localhost", "https://localhost/trap.jpg", "host_not_allowed"},
		{"metadata_service", "https://169.254.169.254/latest/meta-data/", "host_not_allowed"},
		{"nat64_loopback", "https://[64:ff9b::7f00:1]/trap.jpg", "host_not_allowed"},
		{"file", "file:///etc/passwd", "not_https"},
		{"data", "data:image/png;base64,iVBORw0KGgo=", "bad_url"},
		{"http", "http://i.redd.it/trap.jpg", "not_https"},
		{"another_host", "https://example.com/trap.jpg", "host_not_allowed"},
		{"userinfo", "https://user:word@i.redd.it/trap.jpg", "url_userinfo"},
		{"schemeless_trap", "//" + trap + "/trap.jpg", "url_port"},
		{"reddit_api", "https://oauth.reddit.com/api/info?id=t3_trap1", "host_not_allowed"},
		{"backslashes", `https:\\127.0.0.1:` + port + `\trap.jpg`, "bad_url"},
	}
}

// GzipBomb is a body of zeros or, for the API, of blanks, packed with gzip, which unfolds to
// n bytes.
func GzipBomb(n int64) FaultKind {
	return FaultKind{name: "gzip bomb", make: func(_ *Server, r *http.Request) *reply {
		rep := redditemu.NewReply(http.StatusOK, "image/jpeg", nil)
		fill := byte(0)
		if redditemu.HostOf(r) == apiHost {
			rep, fill = redditemu.JSONReply(http.StatusOK, ""), ' '
		}
		rep.Stream = func(w io.Writer) error { return gzipBomb(w, fill, n) }
		return rep.With("Content-Encoding", "gzip")
	}}
}

// Endless is a body in chunks that goes on until the client leaves: the start of a JPEG, or of
// a redditemu.Listing, and blanks.
func Endless() FaultKind {
	return FaultKind{name: "endless", make: func(_ *Server, r *http.Request) *reply {
		rep, head := redditemu.NewReply(http.StatusOK, "image/jpeg", nil), "\xff\xd8\xff\xe0"
		if redditemu.HostOf(r) == apiHost {
			rep, head = redditemu.JSONReply(http.StatusOK, ""), `{"kind": "Listing", "data": `
		}
		blanks := bytes.Repeat([]byte{' '}, 64<<10)
		rep.Stream = func(w io.Writer) error {
			_, err := io.WriteString(w, head)
			for err == nil {
				_, err = w.Write(blanks)
			}
			return err
		}
		return rep
	}}
}

// OneByteASecond sends the right body at that pace.
func OneByteASecond() FaultKind {
	return changing("one byte a second", func(rep *reply) {
		n := len(rep.Body)
		sendBody(rep, n, n, n, time.Duration(n)*time.Second)
	})
}

// HugeHeader adds a header of n bytes.
func HugeHeader(n int) FaultKind {
	return changing("huge header", func(rep *reply) { rep.With("X-Padding", strings.Repeat("a", n)) })
}

// RobotsTag adds an X-Robots-Tag to what is sent.
func RobotsTag(directives string) FaultKind {
	return changing("robots tag", func(rep *reply) { rep.With("X-Robots-Tag", directives) })
}

// RedirectLoop redirects every request to itself.
func RedirectLoop() FaultKind {
	return FaultKind{name: "redirect loop", make: func(_ *Server, r *http.Request) *reply {
		return redditemu.RedirectReply("https://" + redditemu.HostOf(r) + r.URL.RequestURI())
	}}
}

// RedirectHops leads over n redirects, each to a path of its own, to a picture.
func RedirectHops(n int) FaultKind {
	const at = "/hop"
	return FaultKind{name: "redirect hops", make: func(s *Server, r *http.Request) *reply {
		hop := 0
		if digits, ok := strings.CutPrefix(r.URL.Path, at); ok {
			hop, _ = strconv.Atoi(digits)
		}
		if hop == n {
			return servePicture(r)
		}
		return redditemu.RedirectReply(at + strconv.Itoa(hop+1))
	}}
}

// SetCookies answers as another kind does, and sets a cookie each time.
func SetCookies(k FaultKind) FaultKind {
	return FaultKind{name: "set cookies", make: k.make, change: func(s *Server, r *http.Request, rep *reply) {
		if k.change != nil {
			k.change(s, r, rep)
		}
		rep.With("Set-Cookie", "session="+redditemu.CanaryFlair+"; Path=/; Secure")
	}}
}

// WrongLength announces a body longer than it is by extra bytes, or shorter where extra is
// negative: then the rest of it never gets out.
func WrongLength(extra int) FaultKind {
	return changing("wrong length", func(rep *reply) {
		sendBody(rep, len(rep.Body)+extra, len(rep.Body)+min(extra, 0),
			1, 0)
	})
}

// EmptyReply closes the connection in good order, without an answer.
func EmptyReply() FaultKind {
	return instead("empty reply", func() *reply { return &reply{Send: closing(nil, false)} })
}

// NotHTTP answers with bytes that are not HTTP, and closes the connection.
func NotHTTP() FaultKind {
	return instead("not http", func() *reply { return &reply{Send: closing([]byte("SSH-2.0-OpenSSH_9.2\r\n"), false)} })
}

// Unasked answers with the start of a file, and sends more behind its announced end.
func Unasked(more string) FaultKind {
	answer := "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nGIF8" + more
	return instead("unasked", func() *reply { return &reply{Send: closing([]byte(answer), false)} })
}

func withStatus(code int) FaultKind {
	return changing("status "+strconv.Itoa(code), func(rep *reply) { rep.Status = code })
}

// OnPicture makes a kind that changes an answer change that of a picture, where the emulator
// has nothing of its own to send.
func OnPicture(k FaultKind) FaultKind {
	return FaultKind{name: k.name, change: k.change,
		make: func(s *Server, r *http.Request) *reply { return servePicture(r) }}
}

// servePicture serves a picture that follows from the host's name and the file's.
func servePicture(r *http.Request) *reply {
	return redditemu.NewReply(http.StatusOK, "image/jpeg",
		pictureJPEG(redditemu.Hash64(redditemu.HostOf(r), path.Base(r.URL.Path))))
}
