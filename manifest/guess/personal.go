package guess

import (
	"regexp"
	"strings"

	"rehydrate/manifest/value"
)

// The forms of what tells who somebody is. An account's page is one on a site of accounts, or under a path that sites give them.
var (
	mailForm  = regexp.MustCompile(`[^\s@,;|<>()"'\[\]]+@[^\s@,;|<>()"'\[\]]+\.[\pL\d-]{2,}|[\pL\d]\s*[(\[{]at[)\]}]\s*[\pL\d]`)
	phoneForm = regexp.MustCompile(`(?:^|[^\pL\d+])\+[1-9](?:[ ()./-]*\d){7,14}(?:[^\pL\d]|$)`)
	pageForm  = regexp.MustCompile(`(?i)(?:^|[^\pL\d.-])(?:(?:www|m|mobile|old|new|[a-z]{2})\.)?(?:twitter\.com|x\.com|instagram\.com|facebook\.com|fb\.com|` +
		`github\.com|gitlab\.com|linkedin\.com/(?:in|pub)|tiktok\.com|t\.me|vk\.com|weibo\.com|threads\.net|bsky\.app|tumblr\.com|` +
		`flickr\.com|pinterest\.com|twitch\.tv|patreon\.com|medium\.com|quora\.com|orcid\.org|researchgate\.net|scholar\.google\.com|wa\.me|discord\.gg)/\S`)
	pathForm   = regexp.MustCompile(`(?i)(?:[\pL\d-]\.[a-z]{2,}(?::\d+)?|^)/(?:[^\s?#]*/)?(?:@|~|(?:u|user|users|profile|profiles|people|author|authors|member|members|channel)/)[\pL\d]|^u/[\pL\d_-]`)
	orcidForm  = regexp.MustCompile(`^\d{4}-\d{4}-\d{4}-\d{3}[\dXx]$`)
	uuidForm   = regexp.MustCompile(`^[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$`)
	turkerForm = regexp.MustCompile(`^A[A-Z0-9]{12,13}$`)
)

// personalValue says what in a text tells who somebody is, "" for nothing: a mail address, a telephone number in international
// form, the page of an account, or an id of the form that ORCID, Prolific or Mechanical Turk gives people.
func personalValue(text string) string {
	// The expressions are slow, and most values have none of their signs.
	switch {
	case strings.ContainsAny(text, "@([{") && mailForm.MatchString(text):
		return "a mail address"
	case strings.Contains(text, "+") && phoneForm.MatchString(text):
		return "a telephone number"
	case strings.Contains(text, "/") && (pageForm.MatchString(text) || pathForm.MatchString(text)):
		return "the page of an account"
	case len(text) < 13: // the shortest id
		return ""
	}
	for id := range strings.FieldsFuncSeq(text, func(r rune) bool { return r > 'z' || !value.IsWord(string(r), 1) && r != '-' }) {
		switch hasDigit := strings.ContainsAny(id, value.Digits); {
		case !hasDigit: // ADVERTISEMENT is a word
		case orcidForm.MatchString(id):
			return "an ORCID"
		case uuidForm.MatchString(id):
			return "a UUID"
		case turkerForm.MatchString(id):
			return "an id as Mechanical Turk gives workers"
		case len(id) == 24 && value.IsHex(value.FoldASCII(id), 24):
			return "an id as Prolific gives participants"
		}
	}
	return ""
}
