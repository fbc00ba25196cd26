package reddit

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

var titleForm = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)

// said is what an answer says of itself: a few fields of a JSON object, the title of a page, nothing of any other.
func (c *Client) said(e exchange) string {
	if looksLikeHTML(e) {
		if m := titleForm.FindSubmatch(e.body); m != nil {
			return c.printable(string(m[1]))
		}
		return ""
	}
	var fields map[string]any
	_ = json.Unmarshal(e.body, &fields) // nothing is said by what has another form
	var parts []string
	for _, name := range []string{"message", "error", "reason", "error_description"} {
		switch v := fields[name].(type) {
		case string, float64:
			if v != "" {
				parts = append(parts, fmt.Sprint(v))
			}
		}
	}
	return c.printable(strings.Join(parts, ", "))
}

// printable turns text that came from outside into a line that may be shown: without what the scrubber must let stand
// in ordinary words, and without the user's name.
func (c *Client) printable(text string) string {
	return c.o.Scrubber.Printable(text, c.o.ClientID, c.o.ClientSecret.Reveal(), c.o.Username, c.o.ImgurClientID.Reveal())
}
