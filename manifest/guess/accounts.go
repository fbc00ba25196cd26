package guess

import (
	"slices"
	"strings"
	"unicode"

	"rehydrate/manifest/value"
)

// Forms of accounts, pages of one's own and devices, as computers and networks write them.
var (
	// loginForm is an account in a domain of Windows: CORP\aschmidt.
	loginForm = pattern(`^[A-Z][A-Z0-9-]{1,14}\\[\w.$-]{2,}$`)
	// keyForm is an account behind a word that says so: user=anna, CN=anna,OU=Lab, uid=1001(anna).
	keyForm = pattern(`(?i)(?:^|[\s,;(/|])(?:user|username|usr|login|account|acct|worker|annotator|rater|coder|participant|reviewer|uid|cn|` +
		`samaccountname)\s*[=:]\s*[\pL_][\pL\d_.@-]{2,}|(?:^|\s)uid=\d+\(\pL`)
	// siteForm is a page of one's own on a site that gives people names: anna.github.io.
	siteForm = pattern(`(?i)(?:^|[^\pL\d.-])([a-z\d][a-z\d-]*)\.(?:git(?:hub|lab)\.io|tumblr\.com|blogspot\.[a-z.]{2,6}|wordpress\.com|` +
		`substack\.com|deviantart\.com|livejournal\.com|carrd\.co|neocities\.org|itch\.io|artstation\.com)(?:[/:?#]|$)`)
	notSites = set("www m media static assets cdn old new")
	// hostForm is a device in somebody's network, or a part of its address.
	hostForm = pattern(`(?i)^[a-z\d][a-z\d_-]*\.(?:local|lan|localdomain|home\.arpa)$|^ip(?:-\d{1,3}){4}$|^(?:\d{1,3}\.){3}[*x]$|^(?:\d{1,3}\.){2}[*x]\.[*x]$`)
	// spokenMail is a mail address in words: anna at uni dot edu.
	spokenMail = pattern(`(?i)[\pL\d]\s+at\s+[\pL\d-]+(?:\s+dot\s+[\pL\d-]+)*\s+dot\s+(?:com|org|net|edu|gov|ac|de|fr|uk|es|nl|pl|ch|io|eu|ca|au|jp|cn|br|se|dk)\b`)
)

// accountOrDevice says what a text is by these forms, "" for nothing.
func accountOrDevice(text string) string {
	switch {
	case strings.Contains(text, `\`) && loginForm().MatchString(text), strings.ContainsAny(text, "=:") &&
		keyForm().MatchString(text):
		return "the name of an account"
	case strings.Count(text, ".") > 1 && isSite(text):
		return "the page of an account"
	case strings.ContainsAny(text, ".-") && hostForm().MatchString(text):
		return "the address of a device"
	case strings.Count(text, " ") > 3 && spokenMail().MatchString(text):
		return "a mail address"
	}
	return ""
}

func isSite(text string) bool {
	found := siteForm().FindStringSubmatch(text)
	return found != nil && !notSites[value.FoldASCII(found[1])]
}

// idInside says whose form a part of an id has, between _ and - or behind other letters: label_A2XJ8K3L9M0PQR, PID and
// an id of Prolific; "" for none.
func idInside(id string) string {
	for part := range strings.FieldsFuncSeq(id, func(r rune) bool { return r == '_' || r == '-' }) {
		if len(part) == len(id) || !strings.ContainsAny(part, value.Digits) {
			continue
		}
		if kind := idOfPerson(part); kind != "" {
			return kind
		}
	}
	const size = 24 // of an id of Prolific, in small letters
	if at := len(id) - size; at > 0 && strings.Trim(id[at:], value.Digits+"abcdef") == "" && strings.Trim(id[at-1:at],
		value.Digits+"abcdef") != "" {
		return idOfPerson(id[at:])
	}
	return ""
}

// personalName judges the name of a column as a value, "" for nothing: a column for each annotator is called after
// them.
func personalName(name string) string {
	if kind := personalValue(name); kind != "" {
		return kind
	}
	return personalValue(strings.ReplaceAll(name, "_", " "))
}

// initialAndName is a name behind the first letter of another, as people name themselves: ASchmidt.
var initialAndName = pattern(`^\p{Lu}\p{Lu}\p{Ll}{2,}$`)

// mayNameSomebody reports whether the name of a column may be that of a person or account by a family name, or by words
// that are in no dictionary: schmidt, mood_schmidt, ASchmidt, label_aschmidt23, label_by_kvamsdal. known is that of
// Options.
func mayNameSomebody(name string, known func(word string) bool) bool {
	if known == nil {
		return false
	}
	if slices.ContainsFunc(value.Words(name), isSurname) || namesDoer(name, known) {
		return true
	}
	return slices.ContainsFunc(strings.FieldsFunc(name, betweenWords), func(part string) bool {
		words := value.Words(part)
		return initialAndName().MatchString(part) && len(words) == 2 && isStrange(words[1], 4, known) ||
			len(words) == 2 && isStrange(words[0], 4, known) && value.IsDigits(words[1]) && len(words[1]) > 1
	})
}

// isStrange reports whether a word has so many letters at least and is in no dictionary.
func isStrange(word string, least int, known func(word string) bool) bool {
	return isUnknown(word, least, known) && strings.IndexFunc(word, unicode.IsLetter) >= 0
}

// namesDoer reports whether a word that is in no dictionary stands behind "by": label_by_kvamsdal, done by okafor.
func namesDoer(text string, known func(word string) bool) bool {
	words := value.Words(text)
	at := slices.Index(words, "by")
	return at >= 0 && slices.ContainsFunc(words[at+1:], func(word string) bool { return isStrange(word, 3, known) })
}

func isSurname(word string) bool { return peopleWords["surname"][word] }

func betweenWords(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
