package guess

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"rehydrate/manifest"
	"rehydrate/manifest/value"
)

// The forms of what tells who somebody is. An account's page is one on a site of accounts, or under a path that sites
// give them.
var (
	mailForm       = pattern(`[^\s@,;|<>()"'\[\]]+@[^\s@,;|<>()"'\[\]]+\.[\pL\d-]{2,}`)
	hiddenMailForm = pattern(`[\pL\d]\s*[(\[{]at[)\]}]\s*[\pL\d]`)
	phoneForm      = pattern(`(?:^|[^\pL\d+])\+[1-9](?:[ ()./-]*\d){7,14}(?:[^\pL\d]|$)`)
	pageForm       = pattern(`(?i)(?:^|[^\pL\d.-])(?:(?:www|m|mobile|old|new|[a-z]{2})\.)?(?:twitter\.com|x\.com|instagram\.com|instagr\.am|facebook\.com|fb\.com|` +
		`github\.com|gitlab\.com|linkedin\.com/(?:in|pub)|tiktok\.com|t\.me|vk\.com|weibo\.com|threads\.net|bsky\.app|tumblr\.com|snapchat\.com|` +
		`flickr\.com|pinterest\.com|twitch\.tv|patreon\.com|medium\.com|quora\.com|orcid\.org|researchgate\.net|scholar\.google\.com|wa\.me|discord\.gg|` +
		`steamcommunity\.com/(?:id|profiles)|onlyfans\.com|ko-fi\.com|soundcloud\.com|xing\.com/profile)/\S`)
	pathForm = pattern(`(?i)(?:[\pL\d-]\.[a-z]{2,}(?::\d+)?|^)/(?:[^\s?#]*/)?(?:@|~|(?:u|user|users|profile|profiles|people|author|authors|member|members|channel)/)[\pL\d]|` +
		`^(?:u|user)/[\pL\d_-]`)
	orcidForm  = pattern(`^\d{4}-\d{4}-\d{4}-\d{3}[\dXx]$`)
	uuidForm   = pattern(`^[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$`)
	surveyForm = pattern(`^R_[A-Za-z0-9]{11,17}$`) // of Qualtrics
	turkerForm = pattern(`^A[A-Z0-9]{12,13}$`)

	// Numbers as people write them down: (555) 123-4567, 0049 170 1234567, 0171 1234567, 06 12 34 56 78.
	nationalForm = pattern(`^(?:1[ .-])?(?:\(\d{3}\) ?|\d{3}[ .-])\d{3}[ .-]\d{4}$|^00[1-9]\d{0,2}[ /.-]\(?\d[\d ()/.-]{6,16}$|` +
		`^\(?0\d{1,4}\)?[ /-]\d{5,8}$|^\(?0\d{1,4}\)? ?/? ?\d{2,4}(?: \d{2,4}){1,4}$`)
	addressForm = pattern(`^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:[:/]\d{1,5})?$|` +
		`^(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}$|^(?:[0-9a-f]{1,4}:){0,6}[0-9a-f]{0,4}::(?:[0-9a-f]{1,4}:){0,6}[0-9a-f]{0,4}$`)
	deviceForm   = pattern(`^(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}$`)
	securityForm = pattern(`^\d{3}-\d{2}-\d{4}$`)
	bareORCID    = pattern(`^(?:0000000[1-3]\d{7}|0009000\d{8})[\dXx]$`)
	ibanForm     = pattern(`^[A-Z]{2}\d{2}[A-Z0-9]{11,30}$`)

	// A latitude and a longitude in decimals: 52.52, 13.40 and POINT(13.40 52.52).
	placeForm = pattern(`(?i)^(?:point ?)?[(\[]?\s*([-+]?\d{1,3}\.\d+)°?\s*[nsew]?\s*[,; ]\s*` +
		`([-+]?\d{1,3}\.\d+)°?\s*[nsew]?\s*[)\]]?$`)

	// Names of accounts: @anna, anna@cluster, anna#1234, anna.bsky.social, insta: anna.
	accountForms = pattern(`(?i)^@[\pL\d_][\pL\d_.-]{1,29}$|^[\pL\d._+-]+@[\pL\d-]+$|^[\pL\d_.][^\s@#:]{1,31}#\d{4}$|` +
		`^@?[a-z\d][a-z\d.-]*\.bsky\.(?:social|team)$|^(?:ig|insta|instagram|tg|telegram|snap|snapchat|skype|kik|whatsapp) ?[:=] ?@?[\pL\d_.+-]{3,}$`)

	// titleForm is a name behind the title that a person is called by: Herr Meier, Dr. Meier, Mrs Smith; in small
	// letters one word behind a title that is nothing else.
	titleForm = pattern(`(?:^|[|;,/] ?)(?:(?:Mr|Mrs|Ms|Mx|Dr|Prof|Professor|Herr|Herrn|Frau|Fräulein|Monsieur|Madame|Mademoiselle|Mme|Mlle|` +
		`Señor|Señora|Señorita|Sra|Srta|Senhor|Senhora|Signor|Signora|Signorina|Dott|Dott\.ssa|Dottor|Meneer|Mevrouw|Dhr|Mevr|Pani|` +
		`Господин|Госпожа|Доктор|Κύριος|Κυρία)\.?[ \x{a0}]+|(?:Hr|Fr|Sr|Sig|Mag|Ing|Dipl)\. ?)+(?:\p{Lu}\.? )*\p{Lu}[\pL'’-]+(?: \p{Lu}[\pL'’.-]*){0,3}$|` +
		`^(?:mr|mrs|ms|dr|prof|herr|frau|monsieur|madame|mme|señor|señora|signor|signora|mevrouw|meneer)\.? [\pL'’-]{3,}$`)
	// In Chinese, Japanese and Korean the title stands behind.
	titleBehind = pattern(`^[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]{1,5} ?(?:先生|女士|小姐|さん|様|さま|君|ちゃん|교수님|선생님|씨|님)$`)
)

// plainSigns makes plain signs of wide ones, and leaves out those that nobody sees.
func plainSigns(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) < 0 {
		return text
	}
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, norm.NFKC.String(text))
}

// personalValue says what in a text tells who somebody is, "" for nothing: a name behind a title, the address of a
// mailbox, a device, the page of an account or a home folder, the name of an account, a number of a telephone or of a
// person, or an id of the form that ORCID, Prolific, Qualtrics or Mechanical Turk gives people.
func personalValue(text string) string {
	text = strings.ReplaceAll(plainSigns(text), "%40", "@")
	// The expressions are slow, and most values have none of their signs.
	switch {
	case strings.Contains(text, "@") && mailForm().MatchString(text),
		strings.Contains(text, "at") && hiddenMailForm().MatchString(text):
		return "a mail address"
	case strings.Contains(text, "+") && phoneForm().MatchString(text):
		return "a telephone number"
	case strings.Contains(text, "/") && (pageForm().MatchString(text) || pathForm().MatchString(text)):
		return "the page of an account"
	case isHome(text):
		return "a path on somebody's computer"
	case len(text) > 3 && value.FoldASCII(text[:3]) == "t2_" && manifest.PostID(value.FoldASCII(text[3:])).Valid():
		return "Reddit's id of an account"
	}
	if kind := cmp.Or(shortPersonal(text), accountOrDevice(text)); kind != "" {
		return kind
	}
	for from := 0; from+shortestID <= len(text); from++ {
		size, hasDigit := 0, false
		for ; from+size < len(text) && inID[text[from+size]]; size++ {
			hasDigit = hasDigit || value.IsDigit(text[from+size])
		}
		if hasDigit && size >= shortestID { // ADVERTISEMENT is a word
			id := text[from : from+size]
			if kind := cmp.Or(idOfPerson(id), idInside(id)); kind != "" {
				return kind
			}
		}
		from += size
	}
	return ""
}

// shortPersonal says so of a text that is nothing else.
func shortPersonal(text string) string {
	const longest = 80
	folded, points := value.FoldASCII(text), strings.Count(text, ".")
	switch {
	case len(text) < 4 && text != "::1" || len(text) > longest || value.IsDigits(text) && len(text) < 16:
		return ""
	case (strings.ContainsAny(text, "@#") || strings.Contains(folded, ".bsky.") ||
		strings.ContainsAny(text, ":=") && !strings.Contains(text, "//")) && accountForms().MatchString(text):
		return "the name of an account"
	case mayHaveTitle(text) && titleForm().MatchString(text), text[0] >= utf8.RuneSelf && titleBehind().MatchString(text):
		return "the name of a person"
	case points == 2 && isPlace(text):
		return ofPlace
	case strings.IndexByte("0123456789(", text[0]) >= 0 && (strings.ContainsAny(text, " -/)") || points > 1) &&
		nationalForm().MatchString(text):
		return "a telephone number"
	case (points == 3 || strings.Count(text, ":") > 1) && strings.ContainsAny(text, value.Digits) &&
		addressForm().MatchString(folded):
		return "the address of a device"
	case len(text) == 17 && deviceForm().MatchString(folded):
		return "the address of a device"
	case len(text) == 11 && securityForm().MatchString(text):
		return "a social security number"
	case len(text) == 16 && bareORCID().MatchString(text):
		return "an ORCID"
	case isIBAN(text):
		return "the number of an account"
	}
	return ""
}

// ofPlace is what a column of places holds.
const ofPlace = "the coordinates of a place"

// isPlace reports whether a text is a latitude and a longitude in decimals, in either order. Two shares of 1, and two
// numbers with one digit behind the point, are none.
func isPlace(text string) bool {
	found := placeForm().FindStringSubmatch(text)
	if found == nil || len(found[1])+len(found[2])-strings.Index(found[1], ".")-strings.Index(found[2], ".") < 5 {
		return false
	}
	a, _ := value.Number(found[1])
	b, _ := value.Number(found[2])
	low, high := min(math.Abs(a), math.Abs(b)), max(math.Abs(a), math.Abs(b))
	return low <= 90 && high <= 180 && high > 1
}

// partOfPlace reports whether the column holds latitudes or longitudes, as x_coord can: numbers with three digits
// behind the point or more. Whole numbers, and shares of 1, are places in an image.
func (c *surveyed) partOfPlace(words []string) bool {
	const least = 3 // of the digits behind the point, of some value: about 100 m
	if !slices.ContainsFunc(words, func(word string) bool { return slices.Contains(coordinates, word) }) {
		return false
	}
	fine, above := false, false
	for _, text := range c.values() {
		n, isNumber := value.Number(text)
		if !isNumber || math.Abs(n) > 180 {
			return false
		}
		_, decimals, _ := strings.Cut(text, ".")
		fine, above = fine || len(decimals) >= least, above || math.Abs(n) > 1
	}
	return fine && above
}

var coordinates = []string{"coord", "coords", "coordinate", "coordinates"}

// mayHaveTitle tells texts that titleForm need not look at: most.
func mayHaveTitle(text string) bool {
	const longest = 12 // of the titles, in bytes
	end := strings.IndexAny(text, ". \u00a0|;,/")
	isASCII := text[0] < utf8.RuneSelf
	return end > 1 && (!isASCII || end <= longest &&
		(text[end] != ' ' || titleStarts[value.FoldASCII(text[:2])] || strings.ContainsAny(text, "|;,/")))
}

// titleStarts are the first letters of the titles in plain letters.
var titleStarts = set("mr ms mx dr pr he fr mo ma mm ml se sr si do me dh pa hr in di")

// isIBAN reports whether a text is the number of a bank account, with its check digits.
func isIBAN(text string) bool {
	text = strings.ReplaceAll(text, " ", "")
	if len(text) < 15 || !ibanForm().MatchString(text) {
		return false
	}
	rest := 0
	for _, c := range []byte(text[4:] + text[:4]) {
		if value.IsDigit(c) {
			rest = (10*rest + int(c-'0')) % 97
		} else {
			rest = (100*rest + int(c-'A') + 10) % 97
		}
	}
	return rest == 1
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
	case len(id) == 19 && orcidForm().MatchString(id):
		return "an ORCID"
	case len(id) == 36 && uuidForm().MatchString(id):
		return "a UUID"
	case strings.HasPrefix(id, "R_") && surveyForm().MatchString(id):
		return "an id as Qualtrics gives respondents"
	case id[0] == 'A' && turkerForm().MatchString(id):
		return "an id as Mechanical Turk gives workers"
	case len(id) == 24 && value.IsHex(value.FoldASCII(id), 24):
		return "an id as Prolific gives participants"
	}
	return ""
}
