package guess

import (
	"fmt"
	"slices"
	"strings"

	"rehydrate/manifest"
	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// removals are names of columns that say whether a post was removed, or by whom, as wordsOf parts them.
var removals = set(`removed is_removed was_removed deleted is_deleted was_deleted removed_by_category removal_reason
	removal_status removed_status deletion_status deleted_status post_status submission_status reddit_status availability
	available is_available`)

// removalWords are what dumps and people write there, without what stands between words.
var removalWords = set(`removed deleted live active ok online present available unavailable visible public private
	restricted quarantined banned gone notfound moderator moderators mod mods automod automoderator automodfiltered
	author user op self reddit admin admins spam spamfilter antievilops contenttakedown copyrighttakedown communityops
	kept approved`)

// A stateKind says which state of a row a column tells by its name.
type stateKind int

const (
	noState    stateKind = iota
	ofAnswer             // status: whether the row is an answer
	maybe                // state, outcome, relationship_status: this, where one value is a known one
	ofThePosts           // whether the post is there
)

// answerStatus is a name by which a column can tell nothing else.
var answerStatus = pattern(`^(?:(?:response|answer|annotation|assignment|record|review|request)_?)?status$`)

func stateOf(column string) stateKind {
	name := strings.Join(value.Words(column), "_")
	switch {
	case removals[name]:
		return ofThePosts
	case answerStatus().MatchString(name):
		return ofAnswer
	case manifest.StateNamed(column):
		return maybe
	}
	return noState
}

// knows reports whether a value is one of those that columns of the kind have.
func (k stateKind) knows(text string) bool {
	if _, isFlag := value.YesNo(text); isFlag {
		return true
	}
	if k == ofThePosts {
		return removalWords[strings.Join(value.Words(text), "")]
	}
	return manifest.IsUnanswered(text) || manifest.IsAnswered(text)
}

// lookAtStates says what columns of states have that nobody here knows, and which rows say that they are no answer: all
// rows are taken.
func (d *guesser) lookAtStates() {
	for _, c := range d.columns {
		kind, all := stateOf(c.name), 0
		var unknown, none []string
		unknownRows, noneRows := 0, 0
		if c.lists || c.odd || slices.Contains(d.Keep, c.name) {
			continue
		}
		for _, cell := range c.cells {
			text, n := cell[0], c.states[cell[0]]
			all += n
			switch {
			case !kind.knows(text):
				unknown, unknownRows = append(unknown, table.Quote(text)), unknownRows+n
			case kind != ofThePosts && manifest.IsUnanswered(text):
				none, noneRows = append(none, table.Quote(text)), noneRows+n
			}
		}
		if kind == noState || kind == maybe && len(unknown) == len(c.cells) {
			continue
		}
		if len(none) > 0 {
			d.lookAt("column %s says of %d of %d rows that they are no answer%s: these rows were taken as all others",
				table.Quote(c.name), noneRows, all, d.example(c, none))
		}
		if len(unknown) > 0 {
			d.lookAt("column %s has values that are in no list of states, in %d of %d rows%s: these rows were taken as "+
				"all others", table.Quote(c.name), unknownRows, all, d.example(c, unknown))
		}
	}
}

// example lists some values of a column, unless the column was left out, for then they may name somebody.
func (d *guesser) example(c *surveyed, values []string) string {
	const most = 5
	isLeft := d.whyLeft[c.name] != ""
	switch {
	case isLeft:
		return ""
	case len(values) > most:
		return fmt.Sprintf(" (%s and %d others)", strings.Join(values[:most], ", "), len(values)-most)
	}
	return " (" + strings.Join(values, ", ") + ")"
}
