package guess

import (
	"regexp"
	"strings"

	"rehydrate/manifest"
	"rehydrate/manifest/value"
)

// The forms of what tells who somebody is. An account's page is one on a site of accounts, or under a path that sites
// give them.
var (
	mailForm       = regexp.MustCompile(`[^\s@,;|<>()"'\[\]]+@[^\s@,;|<>()"'\[\]]+\.[\pL\d-]{2,}`)
	hiddenMailForm = regexp.MustCompile(`[\pL\d]\s*[(\[{]at[)\]}]\s*[\pL\d]`)
	phoneForm      = regexp.MustCompile(`(?:^|[^\pL\d+])\+[1-9](?:[ ()./-]*\d){7,14}(?:[^\pL\d]|$)`)
	pageForm       = regexp.MustCompile(`(?i)(?:^|[^\pL\d.-])(?:(?:www|m|mobile|old|new|[a-z]{2})\.)?(?:twitter\.com|x\.com|instagram\.com|facebook\.com|fb\.com|` +
		`github\.com|gitlab\.com|linkedin\.com/(?:in|pub)|tiktok\.com|t\.me|vk\.com|weibo\.com|threads\.net|bsky\.app|tumblr\.com|` +
		`flickr\.com|pinterest\.com|twitch\.tv|patreon\.com|medium\.com|quora\.com|orcid\.org|researchgate\.net|scholar\.google\.com|wa\.me|discord\.gg)/\S`)
	pathForm   = regexp.MustCompile(`(?i)(?:[\pL\d-]\.[a-z]{2,}(?::\d+)?|^)/(?:[^\s?#]*/)?(?:@|~|(?:u|user|users|profile|profiles|people|author|authors|member|members|channel)/)[\pL\d]|^u/[\pL\d_-]`)
	orcidForm  = regexp.MustCompile(`^\d{4}-\d{4}-\d{4}-\d{3}[\dXx]$`)
	uuidForm   = regexp.MustCompile(`^[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$`)
	turkerForm = regexp.MustCompile(`^A[A-Z0-9]{12,13}$`)
)

// personalValue says what in a text tells who somebody is, "" for nothing: a mail address, a telephone number in
// international form, the page of an account, or an id of the form that ORCID, Prolific or Mechanical Turk gives
// people.
func personalValue(text string) string {
	// The expressions are slow, and most values have none of their signs.
	switch {
	case strings.Contains(text, "@") && mailForm.MatchString(text), strings.Contains(text, "at") && hiddenMailForm.MatchString(text):
		return "a mail address"
	case strings.Contains(text, "+") && phoneForm.MatchString(text):
		return "a telephone number"
	case strings.Contains(text, "/") && (pageForm.MatchString(text) || pathForm.MatchString(text)):
		return "the page of an account"
	case strings.HasPrefix(text, "t2_") && manifest.PostID(text[len("t2_"):]).Valid():
		return "Reddit's id of an account"
	}
	for from := 0; from+shortestID <= len(text); from++ {
		size, hasDigit := 0, false
		for ; from+size < len(text) && inID[text[from+size]]; size++ {
			hasDigit = hasDigit || value.IsDigit(text[from+size])
		}
		if hasDigit && size >= shortestID { // ADVERTISEMENT is a word
			if kind := idOfPerson(text[from : from+size]); kind != "" {
				return kind
			}
		}
		from += size
	}
	return ""
}

const shortestID = 13

// inID are the bytes of ids.
var inID = func() (in [256]bool) {
	for _, c := range []byte(value.Digits + value.Lower + strings.ToUpper(value.Lower) + "_-") {
		in[c] = true
	}
	return in
}()

// idOfPerson says whose form an id has, "" for none.
func idOfPerson(id string) string {
	switch {
	case len(id) == 19 && orcidForm.MatchString(id):
		return "an ORCID"
	case len(id) == 36 && uuidForm.MatchString(id):
		return "a UUID"
	case id[0] == 'A' && turkerForm.MatchString(id):
		return "an id as Mechanical Turk gives workers"
	case len(id) == 24 && value.IsHex(value.FoldASCII(id), 24):
		return "an id as Prolific gives participants"
	}
	return ""
}
