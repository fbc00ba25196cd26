package guess

import (
	"cmp"
	"context"
	_ "embed"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"rehydrate/manifest"
	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// private says why a column does not belong in a release, as a sentence that begins with "it"; "" where it may be
// there. It is about people by its name or by a value, or tells of the account that collected the posts.
func (c *surveyed) private() string { return cmp.Or(c.privateName(), c.privateValue()) }

// privateName says so by the column's name. Its values have a say only where they cannot be names.
func (c *surveyed) privateName() string { return c.privateAs(c.name, c.ordinary) }

// privateAs says so of a column with that name. ordinary says that its values are a few words that name nobody, which
// lets names pass that are those of labels as well: victim, author_emotion.
func (c *surveyed) privateAs(name string, ordinary bool) string {
	words := value.Words(name)
	switch {
	case c.all(formPost): // Reddit calls the id of a post its name
		return ""
	case c.ofCollector(words):
		return "it tells of the account that collected the posts"
	case slices.ContainsFunc(c.values(), func(text string) bool { return strings.HasPrefix(text, "self.") }):
		// Reddit's domain of a text post. Of one on a profile it has the name of the profile's owner.
		return "it can name the person on whose profile a post stands (self.NAME)"
	case c.partOfPlace(words):
		return "it may hold " + ofPlace
	case personalName(name) != "":
		return "its name holds " + personalName(name)
	case len(words) == 0, ordinary && ofRole(words):
		return ""
	case c.flags() && !peopleWords["person"][singular(words[0])] &&
		(isAlone(words) || isRole(words) || isPlatform(words)):
		return ""
	case isAlone(words), isRole(words), isPlatform(words):
		return "it is about people"
	case asksWho(words):
		return "it asks people who they are"
	case words[0] == "who", hasInitials(name), namesGiver(words),
		slices.ContainsFunc(words, isGivenName): // anna, label_anna: a column for each annotator
		return "it is about people"
	case words[0] == "author", !c.counts(words) && !c.decides() && (namesPeople(words) || hasPart(name)):
		return "it is about people"
	}
	return ""
}

// hasInitials reports whether a name has the first letters of somebody's names behind a person: coder_LC.
func hasInitials(name string) bool {
	for _, found := range initialsBehind().FindAllStringSubmatch(name, -1) {
		if !peopleWords["abbreviation"][strings.ToLower(found[2])] &&
			peopleWords["person"][person(strings.ToLower(found[1]))] {
			return true
		}
	}
	return false
}

// initialsBehind finds a word and two or three capital letters behind it.
var initialsBehind = pattern(`(\pL\p{Ll}+|\p{Lu}{4,})[ _.:-]*(\p{Lu}{2,3})(?:[^\pL]|$)`)

// shortInitials are the first letters of the names of a person, without points.
var shortInitials = pattern(`^\p{Lu}{2,3}$`)

// namesGiver reports whether the words say whose a label is: sarahs_label.
func namesGiver(words []string) bool {
	return len(words) == 2 && peopleWords["label"][words[1]] && strings.HasSuffix(words[0], "s") &&
		isGivenName(singular(words[0]))
}

// checkers says what the values of a column look like that says who checked each row: initials, or words that are
// written as names and are not all in the dictionary; "" for other columns.
func (c *surveyed) checkers(known func(word string) bool) string {
	words := value.Words(c.name)
	if !slices.ContainsFunc(words, func(word string) bool { return peopleWords["checked"][word] }) || c.flags() ||
		c.ordinary {
		return ""
	}
	initials, names, unknown := 0, 0, false
	for _, text := range c.values() {
		switch {
		case shortInitials().MatchString(text):
			initials++
		case surnameForm().MatchString(text):
			names++
			unknown = unknown || unknownWord(text, known) != ""
		}
	}
	n := len(c.values())
	switch {
	case n > 1 && initials == n:
		return "the initials of people"
	case n > 1 && unknown && 2*(names+initials) > n:
		return "names of people"
	}
	return ""
}

// excused reports whether the column may have labels only because its values are a few ordinary words.
func (c *surveyed) excused() bool { return c.ordinary && c.privateAs(c.name, false) != "" }

// isAlone reports whether the words are one that names people alone: client, PhD.
func isAlone(words []string) bool {
	word := strings.Join(words, "")
	return len(words) < 3 && (peopleWords["alone"][word] || peopleWords["alone"][singular(word)])
}

// isGiver reports whether the column is about the people who were asked: workers, participants, annotators.
func (c *surveyed) isGiver() bool {
	return c.privateName() != "" && (asksWho(value.Words(c.name)) || slices.ContainsFunc(value.Words(c.name),
		func(word string) bool {
			return peopleWords["giver"][singular(word)] || peopleWords["giver"][person(word)]
		}))
}

// ofGivers reports whether the column, beside one of the people who were asked, tells of them: age, country of birth,
// student status. What is yes or no under the name of a trait is a label: religion 0 or 1.
func (c *surveyed) ofGivers() bool {
	t := tells(value.Words(c.name))
	return t.asked && !t.maybe || t.trait && !c.flagged()
}

// mayBeOfGivers reports whether the name is of what is told of the people who were asked, and of what an image shows as
// well: therapy, suicide attempts.
func (c *surveyed) mayBeOfGivers() bool {
	t := tells(value.Words(c.name))
	return t.maybe && !t.trait
}

// A told has the kinds of the words in a name of what is told of people, none for another name.
type told struct{ asked, trait, maybe bool }

// tells says what the words tell of people: each of them, all as one name, or those as one that are of a kind.
func tells(words []string) (t told) {
	is := func(kind, word string) bool { return peopleWords[kind][word] || peopleWords[kind][singular(word)] }
	note := func(word string) bool {
		asked, trait, maybe := is("asked", word), is("trait", word), is("maybe", word)
		t = told{t.asked || asked, t.trait || trait, t.maybe || maybe}
		return asked || trait || maybe
	}
	if note(strings.Join(words, "")) {
		return t
	}
	var rest []string
	for _, word := range words {
		if is("asked", word) || !peopleWords["filler"][word] && !peopleWords["you"][word] && !value.IsDigits(word) {
			rest = append(rest, word)
		}
	}
	if note(strings.Join(rest, "")) {
		return t
	}
	for _, word := range rest {
		if !note(word) {
			return told{}
		}
	}
	return t
}

// flagged reports whether all values are yes or no in words or numbers: f can be female.
func (c *surveyed) flagged() bool {
	isLetter := func(text string) bool { return len(text) == 1 && !value.IsDigits(text) }
	return c.flags() && !slices.ContainsFunc(c.values(), isLetter)
}

// givers says who was asked, by the first column about them or by the platform; "" where nothing tells of them.
func (d *guesser) givers() string {
	at := slices.IndexFunc(d.columns, (*surveyed).isGiver)
	switch {
	case at >= 0:
		return "the people in column " + table.Quote(d.columns[at].name)
	case d.platform != "":
		return "the people who answered"
	}
	return ""
}

// leaveGivers leaves out what tells of the people who were asked.
func (d *guesser) leaveGivers() {
	givers := d.givers()
	if givers == "" {
		return
	}
	for _, c := range d.columns {
		if !c.used && !slices.Contains(d.Keep, c.name) && c.filled > 0 && c.privateName() == "" && c.ofGivers() {
			d.leaveLookAt(c, "it may tell of "+givers+"; --keep "+table.Quote(c.name)+" publishes it",
				"may tell of "+givers)
		}
	}
}

// published are the columns that were taken as categories, or pass through, without --keep.
func (d *guesser) published() (columns []*surveyed) {
	for _, g := range d.guesses {
		c := d.column(g.Column)
		if c != nil && (g.Category != nil || g.Passed != nil) && !slices.Contains(d.Keep, c.name) {
			columns = append(columns, c)
		}
	}
	return columns
}

// lookAtGivers asks about what is published and may tell of the people who were asked.
func (d *guesser) lookAtGivers() {
	givers := d.givers()
	for _, c := range d.published() {
		if givers != "" && c.mayBeOfGivers() {
			d.lookAt("column %s may tell of %s, or of what the images show: where it tells of people, take it out of "+
				"your file, and init into a new folder", table.Quote(c.name), givers)
		}
	}
}

// lookAtManyRows asks the same of several rows about one image where no column is about the people who were asked, and
// such a column has several values in the rows of one of the first images.
func (d *guesser) lookAtManyRows(ctx context.Context, source *manifest.Source) error {
	var ask []*surveyed
	for _, c := range d.published() {
		if c.ofGivers() || c.mayBeOfGivers() {
			ask = append(ask, c)
		}
	}
	if !d.Many || d.givers() != "" || ask == nil {
		return nil
	}
	first, without := make(map[string][]string), d.without() // the values that ask has in the first row of an image
	return eachRow(ctx, source, func(in *manifest.Rows, cells []table.Cell) {
		if without.Is != nil && without.Is(without.Texts(in.Columns(), cells)) {
			return
		}
		at := func(name string) int {
			i := slices.Index(in.Columns(), name)
			if i >= len(cells) { // a record of JSON need not have it
				return -1
			}
			return i
		}
		text := func(i int) string {
			if i < 0 {
				return ""
			}
			return strings.TrimSpace(cells[i].Plain())
		}
		image := text(at(d.columnOf("id"))) + "\x00" + text(at(d.columnOf(manifest.FieldImage.String())))
		values, met := first[image]
		if !met {
			if len(first) == maxDifferent {
				return
			}
			values = make([]string, len(ask))
			first[strings.Clone(image)] = values
		}
		for i, c := range ask {
			found := text(at(c.name))
			switch {
			case found == "" || c.differs:
			case values[i] == "":
				values[i] = strings.Clone(found)
			case values[i] != found:
				var p place
				p.file, p.line, p.column = in.Place(at(c.name))
				c.differs = true
				d.lookAt("column %s is not the same in all rows about one image, such as at %s, and may tell of the "+
					"people who were asked: where it does, take it out of your file, and init into a new folder",
					table.Quote(c.name), p)
			}
		}
	})
}

// isRole reports whether the words are one for a role that people have in what is shown or told: victim.
func isRole(words []string) bool { return len(words) == 1 && peopleWords["role"][singular(words[0])] }

// isPlatform reports whether the words are a site where people have accounts, with or without what identifies them
// there.
func isPlatform(words []string) bool {
	for len(words) > 1 && identifies(words[len(words)-1]) {
		words = words[:len(words)-1]
	}
	return peopleWords["platform"][words[len(words)-1]]
}

// ofRole reports whether words name a role that people have in what is shown or told, or say something of an author or
// user: victim, author_emotion. A name, a number and a trait of the person are none.
func ofRole(words []string) bool {
	last := words[len(words)-1]
	if isRole(words) {
		return true
	}
	return len(words) > 1 && (words[0] == "author" || words[0] == "user") && !identifies(last) &&
		!peopleWords["trait"][singular(last)] && !peopleWords["person"][person(last)] && !peopleWords["by"][last]
}

// maxOrdinary is how many different values at most are a few words.
const maxOrdinary = 12

// isOrdinary reports whether the values are a few words of the dictionary that repeat, and none of them can be
// somebody's name. known is that of Options.
func (c *surveyed) isOrdinary(known func(word string) bool) bool {
	if known == nil || c.odd || len(c.cells) < 2 || len(c.cells) > maxOrdinary || 2*len(c.cells) > c.filled {
		return false
	}
	return !slices.ContainsFunc(c.values(), func(text string) bool {
		words := nameWords(text)
		return len(words) == 0 || len(words) > 4 || len(text) > maxGuessedText ||
			strings.ContainsAny(text, value.Digits+"@") || slices.ContainsFunc(words, func(word string) bool {
			return !known(word) || isGivenName(word) || isFamily(word)
		})
	}) && !c.mayBeNames()
}

// mayBeNames reports whether most of the values are words that are given names as well: Joy, Grace and Hope.
func (c *surveyed) mayBeNames() bool {
	values, names := c.values(), 0
	for _, text := range values {
		if slices.ContainsFunc(nameWords(text), func(word string) bool { return peopleWords["namelike"][word] }) {
			names++
		}
	}
	return 2*names > len(values)
}

// privateValue says so by one value, whatever the column is called.
func (c *surveyed) privateValue() string {
	if c.personal == "" {
		return ""
	}
	return "it holds " + c.personal + ", by which a person can be found"
}

// readable reports whether a column's name says what it is in Latin letters, as the names of a release's columns do.
// One with a letter that only looks Latin is not what it seems.
func readable(name string) bool {
	latin, others := 0, 0
	for _, word := range value.Words(name) {
		inWord, alike := 0, false
		for _, r := range word {
			switch {
			case unicode.Is(unicode.Latin, r):
				inWord++
			case unicode.IsLetter(r):
				others++
				alike = alike || unicode.In(r, unicode.Cyrillic, unicode.Greek)
			}
		}
		if inWord > 0 && alike {
			return false
		}
		latin += inWord
	}
	return latin > 0 && latin >= others
}

// set makes a set of words.
func set(words string) map[string]bool {
	all := make(map[string]bool)
	for word := range strings.FieldsSeq(words) {
		all[word] = true
	}
	return all
}

//go:embed people.txt
var peopleText string

// peopleWords are the words of people.txt by their kinds.
var peopleWords = func() map[string]map[string]bool {
	kinds := make(map[string]map[string]bool)
	for line := range strings.Lines(peopleText) {
		kind, words, _ := strings.Cut(strings.TrimSpace(line), " ")
		if kind == "" || kind == "#" {
			continue
		}
		if kinds[kind] == nil {
			kinds[kind] = make(map[string]bool)
		}
		for word := range strings.FieldsSeq(words) {
			kinds[kind][strings.ToLower(value.WithoutMarks(word))] = true
		}
	}
	return kinds
}()

var (
	// judged are words behind a person who gave labels, which then are meant: reviewer1_label, annotator_agreement.
	judged = set("agreement category class confidence label score")
	// arranged are words before "by" that have no person behind it.
	arranged = set("group grouped on order ordered sort sorted split stand sub")
)

// doneBy finds postedby, which has no sign between its words.
var doneBy = pattern(`(ed|given|made|taken|written)by$`)

// namesPeople reports whether a column with these words in its name is about people.
func namesPeople(words []string) bool {
	first, last := person(words[0]), singular(words[len(words)-1])
	isAuthor := func(word string) bool { return person(word) == "author" }
	if peopleWords["about"][first] && (first == "user" || !judged[last]) || slices.ContainsFunc(words, isAuthor) ||
		slices.ContainsFunc(words, isForeign) {
		return true
	}
	for front := words; ; front = front[:len(front)-1] { // without what identifies
		if name := strings.Join(front, ""); peopleWords["whole"][name] || strings.HasSuffix(name, "screenname") {
			return true
		}
		if endsInPerson(front, len(front) < len(words)) {
			return true
		}
		if len(front) == 1 || !identifies(front[len(front)-1]) {
			break
		}
	}
	// Of a person a trait is told as well, but not of "mentions" or "by".
	for i, word := range words[:len(words)-1] {
		if found := person(word); peopleWords["person"][found] && isTold(words[i+1:], peopleWords["giver"][found]) {
			return true
		}
	}
	return false
}

// isTold reports whether words behind a person are of what is told of people, with or without what identifies. Of one
// who was asked that is more.
func isTold(words []string, asked bool) bool {
	for _, words := range [][]string{words, slices.DeleteFunc(slices.Clone(words), identifies)} {
		if t := tells(words); t.trait || t.maybe || asked && t.asked {
			return true
		}
	}
	return false
}

// identifies reports whether the word stands behind a person who is meant all the same: owner_id, annotator_2, coder_A.
func identifies(word string) bool {
	return peopleWords["identifies"][singular(word)] || value.IsDigits(word) || len(word) == 1
}

// endsInPerson reports whether the last of the words is a person, or says who did something. identified says that
// something stood behind it that identifies.
func endsInPerson(words []string, identified bool) bool {
	n := len(words)
	last := words[n-1]
	if peopleWords["by"][last] {
		return n > 1 && !arranged[words[n-2]]
	}
	if n > 1 { // e-mail, m turk
		if joined := person(words[n-2] + last); peopleWords["person"][joined] {
			return true
		}
	}
	found := person(last)
	return peopleWords["person"][found] || identified && peopleWords["weak"][found] || doneBy().MatchString(last)
}

// person takes what identifies a person off a word such as userid, opname or owners.
func person(word string) string {
	word = singular(word)
	for _, end := range []string{"", "name", "id", "pid"} {
		if found := singular(strings.TrimSuffix(word, end)); peopleWords["person"][found] {
			return found
		}
	}
	if strings.HasPrefix(word, "user") || strings.HasSuffix(word, "username") || strings.HasSuffix(word, "screenname") {
		return "user"
	}
	return word
}

// Endings of words in other languages, and what stands behind a person without a sign between: Benutzername,
// autorenkennung.
var (
	foreignTails = []string{"", "name", "namen", "namn", "navn", "naam", "nev", "adi", "id", "kennung", "kuerzel",
		"kurzel", "konto", "nr",
		"nummer", "mail", "code", "kode", "kod", "koodi"}
	foreignEnds = []string{"", "s", "e", "n", "en", "es", "a", "as", "os", "i", "in", "innen", "ow", "owie", "y", "u",
		"lar", "ler"}
)

// isForeign reports whether a word says in another language than English that somebody is meant, alone, with an ending,
// or as the end of a longer word: autor, autoren, Benutzername, Kommentarautor.
func isForeign(word string) bool {
	const shortest = 5 // of a word that others can end in
	for _, tail := range foreignTails {
		for _, end := range foreignEnds {
			stem, found := strings.CutSuffix(word, tail)
			stem, ends := strings.CutSuffix(stem, end)
			if !found || !ends {
				continue
			}
			if peopleWords["foreign"][stem] {
				return true
			}
			for i := 1; i+shortest <= len(stem); i++ {
				if peopleWords["foreign"][stem[i:]] {
					return true
				}
			}
		}
	}
	return false
}

// hasPart reports whether a name in another script has a word for people in it: 用户名, имя_пользователя.
func hasPart(name string) bool {
	name = strings.ToLower(value.WithoutMarks(name))
	for part := range peopleWords["part"] {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

func singular(word string) string {
	if strings.HasSuffix(word, "ss") {
		return word
	}
	return strings.TrimSuffix(word, "s")
}

// counts reports whether a column holds numbers of people and not who they are: num_annotators, mentions.
func (c *surveyed) counts(words []string) bool {
	if n := len(words); n > 1 && words[n-1] == "number" && (peopleWords["person"][words[n-2]] ||
		peopleWords["weak"][words[n-2]]) {
		return false // student number: that of one
	}
	counting := func(word string) bool { return slices.Contains([]string{"n", "num", "number", "count", "total"}, word) }
	return c.all(formNumber) && (counting(words[0]) || counting(singular(words[len(words)-1])) ||
		words[0] == "mentions" || asks(words))
}

// asks reports whether the words of a name ask for yes or no: is_mod, has_owner.
func asks(words []string) bool {
	return slices.Contains([]string{"is", "has", "was", "can"}, words[0])
}

// decides reports whether all values are yes or no in words, which name nobody.
func (c *surveyed) decides() bool {
	return len(c.cells) > 0 && !slices.ContainsFunc(c.cells, func(cell []string) bool {
		return slices.ContainsFunc(cell, func(text string) bool {
			return !slices.Contains([]string{"true", "false", "yes", "no"}, value.FoldASCII(strings.TrimSpace(text)))
		})
	})
}

// flags reports whether all values are yes or no, also in numbers.
func (c *surveyed) flags() bool {
	return len(c.cells) > 0 && !slices.ContainsFunc(c.cells, func(cell []string) bool {
		return slices.ContainsFunc(cell, func(text string) bool { _, ok := value.YesNo(text); return !ok })
	})
}

// What Reddit's API says of a post to the account that asks, and what only a moderator of the subreddit is told.
var (
	ofCollector = set(`ban_note can_gild can_mod_post mod_note mod_notes mod_reports num_reports previous_visits report_reasons
		user_reports`)
	// ofVisitor are yes or no in the API; elsewhere their names can be those of labels and counts.
	ofVisitor = set("clicked hidden likes saved visited")
	yesOrNo   = set("true false 0 1 -1 0.0 1.0 -1.0")
)

// ofCollector reports whether the column tells of the account that collected the posts.
func (c *surveyed) ofCollector(words []string) bool {
	name := strings.Join(words, "_")
	if ofCollector[name] || strings.HasPrefix(name, "mod_note_") || strings.HasPrefix(name, "mod_reason_") {
		return true
	}
	return ofVisitor[name] && len(c.cells) > 0 && !slices.ContainsFunc(c.cells, func(cell []string) bool {
		return len(cell) != 1 || !yesOrNo[value.FoldASCII(cell[0])]
	})
}

// accountForm is what Reddit and many others take for the name of an account.
var accountForm = pattern(`^@?[A-Za-z0-9_-]{3,20}$`)

// lookLikeNames says what labels look like that may name people: names of accounts or people, codes that can be such
// names, or pairs of a person and a label; "" for labels. known is that of Options.
func lookLikeNames(labels []string, known func(word string) bool) string {
	switch {
	case arePairs(labels):
		return "pairs of a person and a label"
	case arePeople(labels):
		return "names of people"
	case !lookLikeAccounts(labels, known):
		return ""
	case areCodes(labels, known):
		return "codes, which can be ids or names of accounts"
	}
	return "names of accounts"
}

//go:embed givennames.txt
var givenNamesText string

var givenNames = func() map[string]bool {
	names := make(map[string]bool)
	for line := range strings.Lines(givenNamesText) {
		if !strings.HasPrefix(line, "#") {
			maps.Copy(names, set(value.WithoutMarks(line)))
		}
	}
	return names
}()

// isGivenName reports whether a word is a given name, or one with a family name: anna, annaschmidt.
func isGivenName(word string) bool {
	word = strings.ToLower(value.WithoutMarks(word))
	return givenNames[word] || isFullName(word)
}

// isFullName reports whether a word is a given name and a family name without a sign between them, in either order:
// annaschmidt, MeierAnna. The names have three letters at least, of which few make another word.
func isFullName(word string) bool {
	const shortest = 3
	for i := shortest; i <= len(word)-shortest; i++ {
		if a, b := word[:i], word[i:]; givenNames[a] && isFamily(b) || isFamily(a) && givenNames[b] {
			return true
		}
	}
	return false
}

// isFamily reports whether a word is a family name that many people have, and nothing else.
func isFamily(word string) bool { return isSurname(word) && !isWordToo(word) }

// nameWords gives the words of a text, in small letters and without marks: HansMeier has two.
func nameWords(text string) (words []string) {
	between := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }
	for _, word := range strings.FieldsFunc(text, between) {
		if strings.IndexFunc(word, func(r rune) bool { return r > unicode.MaxASCII }) >= 0 {
			words = append(words, strings.ToLower(value.WithoutMarks(word)))
		} else {
			words = append(words, value.Words(word)...)
		}
	}
	return words
}

// initialForm is a name with the first letters of its given names: H. Meier, Meier H.
var initialForm = pattern(`^\p{Lu}[\p{Ll}'’-]+,? (?:\p{Lu}\.[ -]?){1,3}$|` +
	`^(?:\p{Lu}\.[ -]?){1,3}(?:(?:van|von|de|der|la) )*\p{Lu}[\p{Ll}'’]+(?:-\p{Lu}\p{Ll}+)?$`)

// namesPerson reports whether a text of few words has a given name among them, or two words that can be names and are
// written as such: Mark Grace.
func namesPerson(text string) bool {
	words := nameWords(text)
	namelike := func(word string) bool { return peopleWords["namelike"][word] }
	return len(words) <= 4 && slices.ContainsFunc(words, isGivenName) ||
		len(words) == 2 && namelike(words[0]) && namelike(words[1]) && twoNames().MatchString(text)
}

var twoNames = pattern(`^\p{Lu}\p{Ll}+ \p{Lu}\p{Ll}+$`)

// namesFamily reports whether a text of few words has a family name among them, and no single letter, which makes an
// account of it. One such text alone may be a label, as that of a politician.
func namesFamily(text string) bool {
	words := nameWords(text)
	return len(words) <= 4 && slices.ContainsFunc(words, isFamily) &&
		!slices.ContainsFunc(words, func(word string) bool { return len(word) == 1 })
}

// mayNamePerson reports whether a text has a family name in few words, or is the first letters of somebody's names with
// points: J.S. It is less sure than namesPerson.
func mayNamePerson(text string) bool { return namesFamily(text) || pointedInitials().MatchString(text) }

// pointedInitials leaves out those of states: U.S., U.K.
var pointedInitials = pattern(`^[A-TV-Z]\. ?(?:\p{Lu}\. ?){1,2}$`)

// arePeople reports whether labels are names of people: two at least, and more than half, have a given or family name
// in few words, or are written as names are.
func arePeople(labels []string) bool {
	people := initialed(labels)
	for _, label := range labels {
		if namesPerson(label) || namesFamily(label) || initialForm().MatchString(label) || isEastAsian(label) {
			people++
		}
	}
	return people > 1 && 2*people > len(labels)
}

// bareInitials are family names beside the first letters of given names without points: Conway M, MConway.
var bareInitials = pattern(`^(\p{Lu}[\p{L}'’-]+),? \p{Lu}{1,2}$|^\p{Lu}(\p{Lu}\p{Ll}{2,})$`)

// initialed counts labels with bare initials. Those that share a word are counted by letters: Type A, Type B.
func initialed(labels []string) int {
	names := make(map[string]int)
	for _, label := range labels {
		if found := bareInitials().FindStringSubmatch(label); found != nil && !namesPerson(label) {
			names[value.Fold(found[1]+found[2])]++
		}
	}
	people := 0
	for _, n := range names {
		if n == 1 {
			people++
		}
	}
	return people
}

// Family names that few other words begin with, in Chinese, Japanese and Korean. There they stand before the given
// name.
var (
	familySign = set("王 李 张 張 刘 劉 陈 陳 杨 楊 赵 趙 吴 吳 徐 孙 孫 朱 郭 罗 羅 郑 鄭 韩 韓 冯 馮 董 萧 蕭 曹 袁 邓 鄧 沈 彭 吕 呂 卢 盧 蒋 蔣 " +
		"蔡 贾 賈 魏 薛 潘 姜 姚 谭 譚 廖 邹 鄒 陆 陸 郝 崔 邱 顾 顧 邵 龚 龔 김 박 최 윤 황")
	familySigns = pattern(`^(?:佐藤|鈴木|高橋|田中|伊藤|渡辺|山本|中村|小林|加藤|吉田|山田|佐々木|山口|松本|井上|木村|斎藤|清水|` +
		`欧阳|歐陽|司马|司馬|诸葛|諸葛)`)
)

// isEastAsian reports whether a text is as long as a name in Chinese, Japanese or Korean, and begins with a family
// name.
func isEastAsian(text string) bool {
	signs := []rune(text)
	if len(signs) < 2 || len(signs) > 5 || !unicode.In(signs[0], unicode.Han, unicode.Hangul) {
		return false
	}
	if unicode.Is(unicode.Hangul, signs[0]) && len(signs) != 3 { // of which two are words
		return false
	}
	return len(signs) <= 3 && familySign[string(signs[0])] || familySigns().MatchString(text)
}

// namesOne says what one of some values that may name somebody looks like, "" for none. Where there is text, one is
// enough.
func namesOne(values []string) string {
	for _, text := range values {
		switch oneName(text) {
		case aPair:
			return "pairs of a person and a label"
		case aPerson:
			return "names of people"
		}
	}
	return ""
}

const (
	aPair   = "a pair of a person and a label"
	aPerson = "the name of a person"
)

// oneName says what a value that may name somebody looks like, aPair or aPerson, "" for neither.
func oneName(text string) string {
	first, _, isPair := strings.Cut(strings.ReplaceAll(text, "=", ":"), ":")
	switch {
	case isPair && namesPerson(first):
		return aPair
	case namesPerson(text), initialForm().MatchString(text):
		return aPerson
	}
	return ""
}

// arePairs reports whether labels are pairs in which each of several first parts stands before the same second parts:
// clara:pos, clara:neg, bert:pos. So are votes written down. A topic:subtopic is none: its second parts are its own.
func arePairs(labels []string) bool {
	seconds := make(map[string]map[string]bool) // by first part
	for _, label := range labels {
		if _, isTime := value.Time(label, time.UTC); isTime {
			return false
		}
		first, second, ok := strings.Cut(label, ":")
		if !ok {
			first, second, ok = strings.Cut(label, "=")
		}
		first, second = value.Fold(first), value.Fold(second)
		if !ok || second == "" || strings.IndexFunc(first, unicode.IsLetter) < 0 { // 16:9, 12:30
			return false
		}
		if seconds[second] == nil {
			seconds[second] = make(map[string]bool)
		}
		seconds[second][first] = true
	}
	for _, firsts := range seconds {
		if len(firsts) > 1 {
			return true
		}
	}
	return false
}

// unfit reports whether the column may be about people, or nobody can tell by its name.
func (c *surveyed) unfit() bool { return c.private() != "" || !readable(c.name) }

// lookLikeAccounts reports whether labels look like names of accounts: most are no words, and one at least mixes cases
// or digits into a part that is no word, as few labels do. known reports whether a word is in the dictionary. Where it
// is nil nothing looks like an account.
func lookLikeAccounts(labels []string, known func(word string) bool) bool {
	if known == nil || areIDs(labels) {
		return false
	}
	j := newAccountJudge(labels, known)
	strange, sure, colours := 0, 0, 0
	for _, label := range labels {
		switch j.look(label) {
		case mixedWord:
			sure++
		case noWord:
			strange++
		}
		if colourForm().MatchString(label) { // beside accounts, it does not speak for labels
			colours++
		}
		if value.FoldASCII(label) == "automoderator" { // which is in columns of moderators and authors alone
			return true
		}
	}
	return sure > 0 && 2*(sure+strange) > len(labels)-colours
}

// colourForm is a colour as HTML writes it: #2b2e3a. The sign tells it from a name.
var colourForm = pattern(`^#(?:[0-9a-fA-F]{3,4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})$`)

var (
	// codeForm is an id in base 36, of Reddit's as well: 2s5ti, t5_2s5ti.
	codeForm = pattern(`^(?:t[1-6]_)?[a-z0-9]*[0-9][a-z][a-z0-9]*$`)
	// hexForm is the beginning of a digest, or a colour without its sign: d41d8cd, 2b2e3a, 0xff00ff.
	hexForm = pattern(`^(?:0x)?(?:[0-9a-f]{6,}|[0-9A-F]{6,})$`)
)

// isIDLike reports whether a text is written as a digest or an id: with a digit at its beginning, or behind t5_.
func isIDLike(text string) bool {
	digits := strings.ContainsAny(text, value.Digits)
	return digits && hexForm().MatchString(text) ||
		codeForm().MatchString(text) && (value.IsDigits(text[:1]) || strings.Contains(text, "_"))
}

// areCodes reports whether all labels that look like accounts are written as ids or digests are. So can accounts be:
// this only says what to call them.
func areCodes(labels []string, known func(word string) bool) bool {
	j := newAccountJudge(labels, known)
	likeFirst := func(label string) bool { return len(label) == len(labels[0]) && codeForm().MatchString(label) }
	sameLength := len(labels) > 1 && !slices.ContainsFunc(labels, func(l string) bool { return !likeFirst(l) })
	return sameLength || !slices.ContainsFunc(labels, func(label string) bool {
		return j.look(label) != likeLabel && !isIDLike(label) && !hexForm().MatchString(label)
	})
}

// areIDs reports whether labels look like ids of things: several of one length, in lower case and digits alone.
func areIDs(labels []string) bool {
	return len(labels) > 5 && !slices.ContainsFunc(labels, func(l string) bool {
		return len(l) != len(labels[0]) || strings.Trim(l, value.Lower+value.Digits) != ""
	})
}

// An accountLook says how far a label looks like the name of an account.
type accountLook int

const (
	likeLabel accountLook = iota // words and codes: HateSpeech, very_negative, SS4, en-US
	noWord                       // perhaps: bboe, Watchful1
	mixedWord                    // cases or digits in what is no word: cyXie, jkim545, kn0thing
)

// An accountJudge judges the labels of a column.
type accountJudge struct {
	known  func(word string) bool
	shared map[string]int // labels that have the word: what several have is part of a code
	coded  bool           // the letters before the labels' words number them (a_, b_) or are one
}

// initialLogin is an account as institutions give them, a letter and a family name: a_schmidt, t.miller2, aschmidt.
var initialLogin = pattern(`^(\pL)([_.-]?)(\pL{3,})\d{0,2}$`)

// areCoded reports whether the letters before the words of labels number them (a_lustig, b_traurig), are the same one
// before several, or begin the words (h_hate): then they stand for no given names.
func areCoded(labels []string) bool {
	seen, begins := make(map[string]bool), true
	n := 0
	for _, label := range labels {
		if found := initialLogin().FindStringSubmatch(strings.ToLower(label)); found != nil && found[2] != "" {
			n++
			seen[found[1]] = true
			begins = begins && strings.HasPrefix(found[3], found[1])
		}
	}
	inOrder := len(seen) == n
	for i := range n {
		inOrder = inOrder && seen[string(rune('a'+i))]
	}
	return n > 1 && (inOrder || begins || len(seen) == 1)
}

// isLogin reports whether a label is a letter and a word that is a common family name, or that is in no dictionary and
// that the letter does not number. Without a sign between them it is the family name that tells (aschmidt), unless both
// are one word (twang).
func (j *accountJudge) isLogin(label string) bool {
	found := initialLogin().FindStringSubmatch(value.FoldASCII(label))
	switch {
	case found == nil || j.shared[found[3]] > 1:
		return false
	case found[2] == "":
		return isFamily(found[3]) && !j.known(found[1]+found[3])
	}
	return isSurname(found[3]) || !j.coded && !j.known(found[3])
}

// staffForm is a name of an account as universities give them: tl772, kn1990.
var staffForm = pattern(`^[a-z]{2,4}[0-9]{3,5}$`)

// leet finds digits that stand for letters.
var leet = pattern(`[a-z][0-9]+[a-z]`)

// look judges a label by its words: sad (jkim545) looks as jkim545 does. Without a dictionary nothing is an account.
func (j *accountJudge) look(label string) accountLook {
	look := likeLabel
	if j.known == nil || colourForm().MatchString(label) {
		return look
	}
	isBetween := func(r rune) bool { return r != '.' && betweenAccounts(r) }
	if slices.ContainsFunc(strings.FieldsFunc(label, isBetween), j.isLogin) || namesDoer(label, j.known) {
		return mixedWord
	}
	for _, token := range strings.FieldsFunc(label, betweenAccounts) {
		look = max(look, j.lookOfToken(token))
	}
	return look
}

// betweenAccounts reports whether a sign is none of those that names of accounts have.
func betweenAccounts(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && r != '_' && r != '-' && r != '@'
}

func (j *accountJudge) lookOfToken(token string) accountLook {
	if !accountForm().MatchString(token) {
		return likeLabel
	}
	if token[0] == '@' {
		return mixedWord
	}
	look := likeLabel
	for _, part := range strings.FieldsFunc(token, func(r rune) bool { return r == '_' || r == '-' }) {
		words := value.Words(part)
		foreign := slices.ContainsFunc(words, func(word string) bool {
			return len(word) > 2 && !value.IsDigits(word) && word != "reddit" && j.shared[word] < 2 && !j.known(word)
		})
		short := slices.ContainsFunc(words, func(word string) bool { return len(word) < 3 && !value.IsDigits(word) })
		isCode := strings.ToUpper(part) == part && len(words[0]) < 5
		switch { // SS4, NSFW
		case isCode:
		case staffForm().MatchString(part) && j.shared[words[0]] < 2 && !j.known(words[0]):
			return mixedWord
		case foreign && len(words) > 1, short && leet().MatchString(part):
			return mixedWord
		case foreign, len(words) == 2 && len(words[0]) > 2 && value.IsDigits(words[1]) && j.shared[words[0]] < 2:
			look = noWord
		}
	}
	return look
}
