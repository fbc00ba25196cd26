package manifest

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

const maxIDLength = 13 // a 64-bit number in base 36

// ParsePostID reads a post id in any form in which people keep one: the id itself in
// either case, t3_ and the id, a permalink (with or without scheme, on the www, old,
// new, np, m or sh host, or only its path), a gallery address, redd.it/ID.
//
// The error is a *Problem without a file. Its hint says what the value seems to be:
// another kind of thing (t1_ a comment), an image's address, a share link, or a number
// or day that a spreadsheet made of it. An id such as 1e5 is possible and passes; 1E+05,
// 123.0 and 1-Jan have no other origin than a spreadsheet.
func ParsePostID(s string) (PostID, error) {
	text := strings.TrimSpace(s)
	if text == "" {
		return "", &Problem{Message: "the post id is empty", Hint: "every entry needs the id of its post, such as t3_abc123"}
	}
	id := foldASCII(text)
	if len(id) > 3 && id[0] == 't' && isDigit(id[1]) && id[2] == '_' {
		if id[1] != '3' {
			return "", &Problem{Message: fmt.Sprintf("%s is the id of %s, not of a post", quote(text), thing(id[1])), Hint: "posts have ids that start with t3_"}
		}
		id = id[3:]
	}
	if validID(id) {
		return PostID(id), nil
	}
	if strings.ContainsRune(text, '/') {
		return parseAddress(text)
	}
	if kind := damage(id); kind != "" {
		return "", &Problem{
			Message: fmt.Sprintf("%s is not a post id but a %s as a spreadsheet writes it", quote(text), kind),
			Hint:    "the spreadsheet damaged this id when it saved the file: take the original file, or import the column as text",
		}
	}
	return "", &Problem{Message: fmt.Sprintf("%s is not a post id", quote(text)), Hint: idHint(id)}
}

func idHint(id string) string {
	if len(id) > maxIDLength && validID(id[:maxIDLength]) {
		return "a post id has at most 13 characters"
	}
	return "a post id is 1 to 13 letters a-z and digits, such as abc123, t3_abc123 or a permalink"
}

// validID reports whether id is a whole post id: ^[0-9a-z]{1,13}$.
func validID(id string) bool {
	if len(id) < 1 || len(id) > maxIDLength {
		return false
	}
	for i := range len(id) {
		if c := id[i]; !isDigit(c) && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// foldASCII lowers A-Z only: Unicode folding would turn look-alikes (the Kelvin sign)
// into letters.
func foldASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// thing names what Reddit's type prefix tN_ stands for.
func thing(kind byte) string {
	switch kind {
	case '1':
		return "a comment"
	case '2':
		return "an account"
	case '4':
		return "a message"
	case '5':
		return "a subreddit"
	case '6':
		return "an award"
	}
	return "something else"
}

// damage tells what a spreadsheet made of an id, "" for nothing that is known.
func damage(s string) string {
	switch {
	case damagedNumber(s):
		return "number"
	case damagedDay(s):
		return "day"
	}
	return ""
}

// damagedDay reports whether s is a day or month as Excel shows one by itself: 1-jan,
// jan-01, 1-jan-24. Ids such as 1jan and jan1 become that.
func damagedDay(s string) bool {
	parts := strings.Split(s, "-")
	months := 0
	for _, part := range parts {
		switch part {
		case "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec":
			months++
		default:
			if !digits(part) || len(part) > 4 {
				return false
			}
		}
	}
	return months == 1 && (len(parts) == 2 || len(parts) == 3)
}

// damagedNumber reports whether a spreadsheet made s: a decimal or an exponent with a
// sign, in either decimal mark.
func damagedNumber(s string) bool {
	mantissa, exponent, hasExponent := strings.Cut(s, "e")
	whole, fraction, hasFraction := strings.Cut(strings.Replace(mantissa, ",", ".", 1), ".")
	signed := strings.HasPrefix(exponent, "+") || strings.HasPrefix(exponent, "-")
	if !digits(whole) || hasFraction && !digits(fraction) || hasExponent && !digits(strings.TrimLeft(exponent, "+-")) {
		return false
	}
	return hasFraction || signed
}

func digits(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return s != ""
}

// parseAddress reads the id out of a permalink, a gallery address or a short link.
func parseAddress(text string) (PostID, error) {
	host, path, err := splitAddress(text)
	if err != nil {
		return "", err
	}
	parts := strings.Split(strings.Trim(foldASCII(path), "/"), "/")
	if host == "redd.it" {
		return parseShort(text, parts)
	}
	if host != "" && !redditHost(host) {
		return "", wrongHost(text, host)
	}
	if len(parts) > 2 && (parts[0] == "r" || parts[0] == "u" || parts[0] == "user") {
		parts = parts[2:]
	}
	switch {
	case len(parts) > 1 && (parts[0] == "comments" || parts[0] == "gallery") && validID(parts[1]):
		return PostID(parts[1]), nil
	case len(parts) > 1 && parts[0] == "s":
		return "", &Problem{
			Message: fmt.Sprintf("%s is a share link, which does not hold the post's id", quote(text)),
			Hint:    "open it and copy the address that the browser then shows",
		}
	}
	return "", &Problem{
		Message: fmt.Sprintf("%s names no post", quote(text)),
		Hint:    "a permalink has /comments/ and then the id",
	}
}

// parseShort reads the id out of the path of an address on redd.it: the id alone, or a
// permalink's path. Anything else leads elsewhere (redd.it/r/NAME is a subreddit).
func parseShort(text string, parts []string) (PostID, error) {
	id := parts[0]
	switch {
	case len(parts) > 3 && parts[0] == "r" && parts[2] == "comments":
		id = parts[3]
	case len(parts) > 1 && parts[0] == "comments":
		id = parts[1]
	case len(parts) > 1 || slices.Contains([]string{"r", "u", "user", "comments", "gallery", "s"}, id):
		id = ""
	}
	if !validID(id) {
		return "", &Problem{
			Message: fmt.Sprintf("%s names no post", quote(text)),
			Hint:    "a short link is redd.it/ and then the id alone; other addresses need /comments/ before it",
		}
	}
	return PostID(id), nil
}

// splitAddress gives host and path; the host is "" for a bare path.
func splitAddress(text string) (host, path string, err error) {
	bad := &Problem{Message: fmt.Sprintf("%s is not an address that can be read", quote(text)), Hint: "give the post's id or its permalink"}
	if !strings.Contains(text, "://") {
		first, _, _ := strings.Cut(strings.TrimPrefix(text, "//"), "/")
		if !strings.HasPrefix(text, "//") && !strings.Contains(first, ".") {
			path, _, _ = strings.Cut(text, "?")
			path, _, _ = strings.Cut(path, "#")
			return "", path, nil
		}
		text = "https://" + strings.TrimPrefix(text, "//")
	}
	u, parseErr := url.Parse(text)
	if parseErr != nil || u.User != nil || u.Port() != "" || u.Host == "" {
		return "", "", bad
	}
	if scheme := u.Scheme; scheme != "http" && scheme != "https" {
		return "", "", bad
	}
	return foldASCII(u.Hostname()), u.Path, nil
}

func redditHost(host string) bool {
	switch host {
	case "reddit.com", "www.reddit.com", "old.reddit.com", "new.reddit.com", "np.reddit.com", "m.reddit.com", "sh.reddit.com":
		return true
	}
	return false
}

func wrongHost(text, host string) *Problem {
	for _, image := range []string{"i.redd.it", "preview.redd.it", "external-preview.redd.it", "v.redd.it", "imgur.com", "i.imgur.com"} {
		if host == image {
			return &Problem{
				Message: fmt.Sprintf("%s is the address of an image, not of a post", quote(text)),
				Hint:    "an image's address does not name the post it stood in: use the post's id or permalink",
			}
		}
	}
	return &Problem{
		Message: fmt.Sprintf("%s is not an address on Reddit", quote(text)),
		Hint:    "give the post's id, its permalink on www.reddit.com, or redd.it/ID",
	}
}

// Subreddit returns the lower-case form of a subreddit's name, and whether s is one: 2 to 21
// letters, digits and underscores. A user's profile (u_NAME) is refused: it names a person.
func Subreddit(s string) (string, bool) {
	if len(s) < 2 || len(s) > 21 {
		return "", false
	}
	name := foldASCII(s)
	for i := range len(name) {
		if c := name[i]; !isDigit(c) && (c < 'a' || c > 'z') && c != '_' {
			return "", false
		}
	}
	if strings.HasPrefix(name, "u_") {
		return "", false
	}
	return name, true
}
