package manifest

import (
	"cmp"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

const maxIDLength = 13 // a 64-bit number in base 36

// ParsePostID reads a post id in any form in which people keep one: the id in either case, t3_ and the id, a
// permalink or its path, a gallery address, redd.it/ID. The error is a *Problem without a file, whose hint says what
// the value seems to be. An id such as 1e5 passes; 1E+05, 123.0 and 1-Jan can only come from a spreadsheet.
func ParsePostID(s string) (PostID, error) {
	text := strings.TrimSpace(s)
	if text == "" {
		return "", &Problem{Message: "the post id is empty",
			Hint: "every entry needs the id of its post, such as t3_abc123"}
	}
	id := value.FoldASCII(text)
	if len(id) > 3 && id[0] == 't' && value.IsDigit(id[1]) && id[2] == '_' {
		if id[1] != '3' {
			return notID(text, "is the id of "+cmp.Or(things[id[1]], "something else")+", not of a post",
				"posts have ids that start with t3_")
		}
		id = id[3:]
	}
	if validID(id) {
		return PostID(id), nil
	}
	if strings.ContainsRune(text, '/') { // no other form has a slash
		return parseAddress(text)
	}
	// After the ids, because 1e5 can be one.
	if damaged.MatchString(id) {
		return notID(text, "is not a post id but a number or day as a spreadsheet writes it",
			"the spreadsheet damaged this id when it saved the file: take the original file, or import the column as text")
	}
	hint := "a post id is 1 to 13 letters a-z and digits, such as abc123, t3_abc123 or a permalink"
	if len(id) > maxIDLength && validID(id[:maxIDLength]) {
		hint = "a post id has at most 13 characters"
	}
	return notID(text, "is not a post id", hint)
}

func notID(text, problem, hint string) (PostID, error) {
	return "", &Problem{Message: table.Quote(text) + " " + problem, Hint: hint}
}

// Valid reports whether the id is one as ParsePostID makes it.
func (id PostID) Valid() bool { return validID(string(id)) }

// validID reports whether id is a whole post id: ^[0-9a-z]{1,13}$.
func validID(id string) bool {
	return id != "" && len(id) <= maxIDLength && strings.Trim(id, value.Digits+value.Lower) == ""
}

// things are what Reddit's type prefixes tN_ stand for.
var things = map[byte]string{'1': "a comment", '2': "an account", '4': "a message", '5': "a subreddit", '6': "an award"}

// damaged is what a spreadsheet makes of ids: a decimal, or an exponent with a sign, in either decimal mark (of 1e5);
// a day or a month (of 1jan).
var damaged = regexp.MustCompile(`^(\d+([.,]\d+(e[+-]*\d+)?|e[+-]+\d+)` +
	`|(\d{1,4}-)*(jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)(-\d{1,4})*)$`)

// Paths of posts, folded and without slashes at their ends.
var (
	postPath    = regexp.MustCompile(`^((r|u|user)/[^/]*/)?(comments|gallery)/([0-9a-z]{1,13})(/|$)`)
	commentPath = regexp.MustCompile(`^(?:(?:r|u|user)/[^/]*/)?comments/([0-9a-z]{1,13})/` +
		`(?:(?:[^/]*/)?t1_|[^/]*/)([0-9a-z]{1,13})(?:/?\.[a-z]+)?$`)
	// commentPart is a comment behind a #, where anchors of the page stand as well: its fullname, an id with a digit of
	// at least six signs, or one of six or seven letters, as comments have.
	commentPart = regexp.MustCompile(`^(?:(?:thing_)?t1_([0-9a-z]{1,13})|([0-9a-z]*[0-9][0-9a-z]*|[a-z]{6,7}))$`)
	anchors     = []string{"comment", "content", "footer", "gallery", "header", "replies", "sidebar", "thread"}
	sharePath   = regexp.MustCompile(`^((r|u|user)/[^/]*/)?s/`)
)

// parseAddress reads the id out of a permalink, a gallery address or a short link.
func parseAddress(text string) (PostID, error) {
	host, u, ok := splitAddress(text)
	if !ok {
		return notID(text, "is not an address that can be read", "give the post's id or its permalink")
	}
	path := strings.Trim(value.FoldASCII(u.Path), "/")
	hint := "a permalink has /comments/ and then the id"
	id, number, _ := strings.Cut(value.FoldASCII(text), "/")
	if validID(strings.TrimPrefix(id, "t3_")) && value.IsDigits(number) {
		hint = "the first image of a post has the post's id alone; a column image, or ID/1 in answers, names another one"
	}
	switch host {
	case "redd.it":
		// redd.it/r/NAME is a subreddit, and these words alone are pages.
		if validID(path) && !slices.Contains([]string{"r", "u", "user", "comments", "gallery", "s"}, path) {
			return PostID(path), nil
		}
		hint = "a short link is redd.it/ and then the id alone; other addresses need /comments/ before it"
	case "reddit.com", "www.reddit.com", "old.reddit.com", "new.reddit.com", "np.reddit.com", "m.reddit.com",
		"sh.reddit.com":
		if sharePath.MatchString(path) {
			return notID(text, "is a share link, which does not hold the post's id: only a request to Reddit says "+
				"where it leads",
				"open it and copy the address that the browser then shows")
		}
	case "i.redd.it", "preview.redd.it", "external-preview.redd.it", "v.redd.it", "imgur.com", "i.imgur.com":
		return notID(text, "is the address of an image, not of a post",
			"an image's address does not name the post it stood in: use the post's id or permalink")
	default:
		return notID(text, "is not an address on Reddit",
			"give the post's id, its permalink on www.reddit.com, or redd.it/ID")
	}
	if _, _, is := CommentAddress(text); is {
		return notID(text, "is the permalink of a comment, not of a post",
			"the part before the comment's id is that of its post: decide which is meant")
	}
	if found := postPath.FindStringSubmatch(path); found != nil {
		return PostID(found[4]), nil
	}
	return notID(text, "does not name a post", hint)
}

// IsComment reports whether a text is the fullname or the permalink of a comment.
func IsComment(text string) bool {
	text = value.FoldASCII(strings.TrimSpace(text))
	if id, ok := strings.CutPrefix(text, "t1_"); ok {
		return validID(id)
	}
	_, _, is := CommentAddress(text)
	return is
}

// CommentAddress gives the post and the comment that the address of a comment names, in lower case: its permalink, also
// with .json or the comment's fullname, or the address of the post with the comment behind ?comment=, ?comment_id=
// or #.
func CommentAddress(text string) (post PostID, comment string, ok bool) {
	if !strings.Contains(text, "omments") { // which most texts do not
		return "", "", false
	}
	_, u, ok := splitAddress(strings.TrimSpace(text))
	if !ok {
		return "", "", false
	}
	path := strings.Trim(value.FoldASCII(u.Path), "/")
	if found := commentPath.FindStringSubmatch(path); found != nil {
		return PostID(found[1]), found[2], true
	}
	found := postPath.FindStringSubmatch(path)
	if found == nil {
		return "", "", false
	}
	query := u.Query()
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if key := strings.Join(value.Words(name), ""); key == "comment" || key == "commentid" {
			comment = cmp.Or(comment, strings.TrimPrefix(value.FoldASCII(query.Get(name)), "t1_"))
		}
	}
	if part := commentPart.FindStringSubmatch(value.FoldASCII(u.Fragment)); comment == "" && part != nil &&
		(part[1] != "" || len(part[2]) >= shortestComment && !slices.Contains(anchors, part[2])) {
		comment = part[1] + part[2]
	}
	return PostID(found[4]), comment, validID(comment)
}

// shortestComment is the least number of signs of a comment's id behind a #, where anchors stand as well.
const shortestComment = 6

// splitAddress gives the host and the parts of an address with or without scheme, or of a path on Reddit.
func splitAddress(text string) (host string, u *url.URL, ok bool) {
	first, _, _ := strings.Cut(text, "/")
	switch {
	case strings.Contains(text, "://"):
	case strings.HasPrefix(text, "//"):
		text = "https:" + text
	case strings.Contains(first, "."):
		text = "https://" + text
	default:
		text = "https://reddit.com/" + strings.TrimPrefix(text, "/")
	}
	u, err := url.Parse(text)
	// A port or a user name is never part of an address of Reddit's, and can hide which site it leads to.
	if err != nil || u.User != nil || u.Port() != "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", nil, false
	}
	return value.FoldASCII(u.Host), u, true
}

// Subreddit returns the lower-case form of a subreddit's name, at most 21 letters, digits and underscores. It is empty
// where s is not one, and for a user's profile (u_NAME).
func Subreddit(s string) string {
	// The profile's name would be that of a person.
	if !value.IsWord(s, 21) || IsProfile(s) {
		return ""
	}
	return value.FoldASCII(s)
}

// SubredditCell returns the name in a cell of a column of subreddits, which may have r/ before it.
func SubredditCell(text string) string {
	return strings.TrimPrefix(strings.Trim(strings.TrimSpace(text), "/"), "r/")
}

// IsProfile reports whether the name is that of a user's profile, which stands where a subreddit does: u_NAME or
// u/NAME.
func IsProfile(name string) bool {
	name = value.FoldASCII(name)
	return strings.HasPrefix(name, "u_") || strings.HasPrefix(name, "u/") || strings.HasPrefix(name, "user/")
}
