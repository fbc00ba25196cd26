package reddit

import (
	"encoding/json"
	"html"
	"regexp"
	"strings"
)

// maxSaid is the most bytes of an answer that an error or a log line shows.
const maxSaid = 160

var (
	titleForm = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)
	// What may be somebody's name or a key, whoever's it is: addresses, users, and runs of
	// characters longer than a word.
	privateForm = regexp.MustCompile(`(?i)https?://\S*|\bu(?:ser)?/[0-9a-z_-]+|[0-9a-z_+/=.%~-]{32,}`)
)

// said returns what an answer says of itself, in one short printable line: a few fields of
// a JSON object, the title of a page, and nothing of any other body. An answer can echo its
// request, so the operator's credentials, the tokens and further are left out.
func (c *Client) said(e exchange, further ...string) string {
	if looksLikeHTML(e) {
		if m := titleForm.FindSubmatch(e.body); m != nil {
			return c.printable(string(m[1]), further...)
		}
		return ""
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(e.body, &fields) != nil {
		return ""
	}
	var parts []string
	for _, name := range []string{"message", "error", "reason", "error_description"} {
		var text string
		var number json.Number
		switch raw := fields[name]; {
		case json.Unmarshal(raw, &text) == nil && text != "":
			parts = append(parts, text)
		case json.Unmarshal(raw, &number) == nil && number != "":
			parts = append(parts, number.String())
		}
	}
	return c.printable(strings.Join(parts, ", "), further...)
}

// printable makes of text that came from outside a line that may be shown. Secrets go before
// tags do: one may hold what looks like a tag, and its rest would not be known again.
func (c *Client) printable(text string, further ...string) string {
	line := c.withoutSecrets(html.UnescapeString(text), further)
	line = privateForm.ReplaceAllString(plain(line), redacted)
	if len(line) > maxSaid {
		line = line[:maxSaid] + "..."
	}
	return line
}

// withoutSecrets takes out all that an answer must not repeat, in each form in which a request
// could have held it, and in any case: Reddit's user names have none.
func (c *Client) withoutSecrets(text string, further []string) string {
	id, secret := c.credentials.ClientID, c.credentials.ClientSecret.reveal()
	all := append([]string{id + ":" + secret, secret, id, c.credentials.Username, c.imgurID.reveal()}, c.token.known()...)
	out, _ := newForms(true, append(all, further...)...).redact([]byte(text), true)
	return string(out)
}

// plain drops tags, control characters and anything that is no ASCII.
func plain(text string) string {
	var b strings.Builder
	tag, space := false, false
	for _, r := range text {
		switch {
		case r == '<':
			tag, space = true, true
		case r == '>' && tag:
			tag = false
		case tag:
		case r <= ' ' || r > '~':
			space = true
		default:
			if space && b.Len() > 0 {
				b.WriteByte(' ')
			}
			space = false
			b.WriteRune(r)
		}
	}
	return b.String()
}
