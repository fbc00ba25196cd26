package guess

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"rehydrate/manifest/value"
)

// private says why a column does not belong in a release, as a sentence that begins with "it"; "" where it may be there. It is
// about people by its name, or tells of the account that collected the posts. Its values have a say only where they cannot be
// names.
func (c *surveyed) private() string {
	words := wordsOf(c.name)
	switch {
	case c.all(formPost), len(words) == 0: // Reddit calls the id of a post its name
		return ""
	case c.ofCollector(words):
		return "it tells of the account that collected the posts"
	case slices.ContainsFunc(c.values(), func(text string) bool { return strings.HasPrefix(text, "self.") }):
		// Reddit's domain of a text post. Of one on a profile it has the name of the profile's owner.
		return "it can name the person on whose profile a post stands (self.NAME)"
	case words[0] == "author", !c.counts(words) && !c.decides() && namesPeople(words):
		return "it is about people"
	}
	return ""
}

// wordsOf gives the words of a column's name in lower case: author_id, Author ID, author-id and authorID have the same ones.
func wordsOf(name string) []string {
	var words []string
	letters := []rune(name)
	is := func(i int, kind func(rune) bool) bool { return i >= 0 && i < len(letters) && kind(letters[i]) }
	from := 0
	for i := range len(letters) + 1 {
		inside := is(i, unicode.IsLetter) || is(i, unicode.IsDigit)
		begins := is(i, unicode.IsUpper) && (is(i-1, unicode.IsLower) || is(i-1, unicode.IsUpper) && is(i+1, unicode.IsLower)) ||
			is(i, unicode.IsDigit) != is(i-1, unicode.IsDigit)
		if inside && !begins {
			continue
		}
		if i > from {
			words = append(words, strings.ToLower(string(letters[from:i])))
		}
		from = i
		if !inside {
			from++
		}
	}
	return words
}

// set makes a set of words.
func set(words string) map[string]bool {
	all := make(map[string]bool)
	for word := range strings.FieldsSeq(words) {
		all[word] = true
	}
	return all
}

// The words by which a column is known to be about people.
var (
	people = set(`account annotator author coder commenter commentor email handle ip labeler labeller mod moderator nick op owner
		participant phone poster rater redditor respondent reviewer submitter uid uploader user worker`)
	// about are people of whom every column counts, whatever it says of them: user_karma, annotator_1.
	about = set("annotator author reviewer user")
	// identifies are words behind a person or "by", which then are still meant: owner_id, op_full_name, posted_by_link.
	identifies = set("address display flair full hash id key link list name number profile url uuid")
	// whole are names of columns that are about people although each of their words is about anything.
	whole = set("by display_name first_name full_name last_name login mention mentions name nickname real_name screen_name")
	// judged are words behind a person who gave labels, which then are meant: reviewer1_label, annotator_agreement.
	judged = set("agreement category class confidence label score")
	// arranged are words before "by" that have no person behind it.
	arranged = set("group grouped order ordered sort sorted split stand")
)

// doneBy finds postedby, which has no sign between its words.
var doneBy = regexp.MustCompile(`(ed|given|made|taken|written)by$`)

// namesPeople reports whether a column with these words in its name is about people.
func namesPeople(words []string) bool {
	first, last := person(words[0]), singular(words[len(words)-1])
	isAuthor := func(word string) bool { return person(word) == "author" }
	if about[first] && (first == "user" || !judged[last]) || slices.ContainsFunc(words, isAuthor) {
		return true
	}
	for {
		if name := strings.Join(words, "_"); whole[name] || strings.HasSuffix(name, "_screen_name") {
			return true
		}
		last = words[len(words)-1]
		if len(words) == 1 || !identifies[singular(last)] && !value.IsDigits(last) {
			break
		}
		words = words[:len(words)-1]
	}
	if last == "by" {
		return len(words) > 1 && !arranged[words[len(words)-2]]
	}
	return people[person(last)] || doneBy.MatchString(last)
}

// person takes what identifies a person off a word such as userid, opname or owners.
func person(word string) string {
	word = singular(word)
	for _, end := range []string{"", "name", "id"} {
		if found := singular(strings.TrimSuffix(word, end)); people[found] {
			return found
		}
	}
	if strings.HasPrefix(word, "user") || strings.HasSuffix(word, "username") || strings.HasSuffix(word, "screenname") {
		return "user"
	}
	return word
}

func singular(word string) string {
	if strings.HasSuffix(word, "ss") {
		return word
	}
	return strings.TrimSuffix(word, "s")
}

// counts reports whether a column holds numbers of people and not who they are: num_annotators, mentions.
func (c *surveyed) counts(words []string) bool {
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
var accountForm = regexp.MustCompile(`^@?[A-Za-z0-9_-]{3,20}$`)

// lookLikeAccounts reports whether labels look like names of accounts: most are no words, and one at least mixes cases or
// digits into a part that is no word, as few labels do. known reports whether a word is in the dictionary. Where it is nil
// nothing looks like an account.
func lookLikeAccounts(labels []string, known func(word string) bool) bool {
	if known == nil || areIDs(labels) {
		return false
	}
	j := accountJudge{known: known, shared: make(map[string]int)}
	for _, label := range labels {
		for _, word := range slices.Compact(slices.Sorted(slices.Values(wordsOf(label)))) {
			j.shared[word]++
		}
	}
	strange, sure := 0, 0
	for _, label := range labels {
		switch j.look(label) {
		case mixedWord:
			sure++
		case noWord:
			strange++
		}
		if value.FoldASCII(label) == "automoderator" { // which is in columns of moderators and authors alone
			return true
		}
	}
	return sure > 0 && 2*(sure+strange) > len(labels)
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
}

// leet finds digits that stand for letters.
var leet = regexp.MustCompile(`[a-z][0-9]+[a-z]`)

func (j *accountJudge) look(label string) accountLook {
	if !accountForm.MatchString(label) {
		return likeLabel
	}
	if label[0] == '@' {
		return mixedWord
	}
	look := likeLabel
	for _, part := range strings.FieldsFunc(label, func(r rune) bool { return r == '_' || r == '-' }) {
		words := wordsOf(part)
		foreign := slices.ContainsFunc(words, func(word string) bool {
			return len(word) > 2 && !value.IsDigits(word) && word != "reddit" && j.shared[word] < 2 && !j.known(word)
		})
		short := slices.ContainsFunc(words, func(word string) bool { return len(word) < 3 && !value.IsDigits(word) })
		switch isCode := strings.ToUpper(part) == part && len(words[0]) < 5; { // SS4, NSFW
		case isCode:
		case foreign && len(words) > 1, short && leet.MatchString(part):
			return mixedWord
		case foreign, len(words) == 2 && len(words[0]) > 2 && value.IsDigits(words[1]) && j.shared[words[0]] < 2:
			look = noWord
		}
	}
	return look
}
