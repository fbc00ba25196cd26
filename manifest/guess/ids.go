package guess

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rehydrate/manifest"
	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// guessID takes the column of post ids. Where a person has to decide, it says what about, and where if that is in one
// row.
func (d *guesser) guessID() (at place, message, hint string) {
	if d.ID != "" {
		c := d.column(d.ID)
		if c == nil {
			return at, "--id names column " + table.Quote(d.ID) + ", which is not there", "name a column of the file"
		}
		d.takeID(c)
		return at, "", ""
	}
	var sure, likely, numbers []int
	names := manifest.FieldID.Names()
	for _, name := range append(names, "") { // the last are columns with another name
		for i, c := range d.columns {
			n, comments, posts := c.items, c.forms[formComment]+c.forms[formTooNew], c.forms[formID]+c.forms[formGallery]
			isNamed := name != "" || d.bare
			if d.PostsOnly && isNamed && posts > 0 { // the comments go, however many they are
				n, comments = n-comments, 0
			}
			mostly := 2*posts > n
			switch {
			case c.lists || c.odd || manifest.FieldColumn(c.name) != name &&
				(name != "" || slices.Contains(names, manifest.FieldColumn(c.name))):
			case comments > 0 && 2*c.forms[formComment] > n, isNamed && 2*comments > n:
				d.leave(c, fmt.Sprintf("%d of %d values are ids of comments, not of posts", comments, n))
				d.commentIDs = cmp.Or(d.commentIDs, c)
			case !mostly || name == "" && !c.onlyIDs() && !(d.bare && c.plainIDs()):
			case c.rowNumbers():
				d.leave(c, fmt.Sprintf("it numbers the rows (%s, %s and on), so it is not the id of a post",
					c.cells[0][0], c.cells[1][0]))
			case c.all(formDigits):
				numbers = append(numbers, i)
			case 2*c.forms[formPost] > n:
				sure = append(sure, i)
			default:
				likely = append(likely, i)
			}
		}
	}
	switch {
	case len(sure) == 0 && len(likely) == 0 && len(numbers) > 0:
		c := d.columns[numbers[0]]
		return at, fmt.Sprintf("column %s holds nothing but digits, which post ids seldom do", table.Quote(c.name)),
			"if they are post ids, say so: rehydrate init --id " + c.name
	case len(sure) == 0 && len(likely) == 0:
		message, hint = d.noIDs()
		return at, message, hint
	}
	for _, i := range numbers {
		d.leave(d.columns[i], "it holds nothing but digits, and another column has post ids")
	}
	found := d.likeliest(slices.Concat(sure, likely))
	best := d.columns[found[0]]
	if best.under() && d.commentIDs != nil {
		return at, "the rows are about comments", ""
	}
	for _, i := range found { // the plain id rather than the address that holds it
		if c := d.columns[i]; len(sure) > 0 && slices.Contains(likely, i) && i < best.place && !d.differ.has(best, c) {
			best = c
		}
	}
	for _, i := range found {
		if at := d.differ.at(best, d.columns[i]); at.line > 0 && !d.leads(d.columns[i], best) {
			names := table.Quote(best.name) + " and " + table.Quote(d.columns[i].name)
			return at, "columns " + names + " name different posts here",
				"say which has the ids of the posts: rehydrate init --id COLUMN"
		}
	}
	if other, at := d.sideBySide(best); other != nil {
		return at, fmt.Sprintf("columns %s and %s name different posts here", table.Quote(best.name),
				table.Quote(other.name)),
			"write each id on a line of its own, or say which column has the ids of the posts: rehydrate init --id COLUMN"
	}
	d.takeID(best)
	return at, "", ""
}

// sideBySide finds a column that has ids of other posts than the column of ids, and where it does, in a file whose
// columns have no names. Its values are all different, and most have a digit before a letter, as few labels do.
func (d *guesser) sideBySide(id *surveyed) (c *surveyed, at place) {
	posts := make(map[string]bool)
	for _, text := range id.values() {
		post, _ := manifest.PostForm(text)
		posts[post] = true
	}
	for _, c := range d.columns {
		if !d.bare || c == id || len(c.cells) < c.filled || !c.plainIDs() {
			continue
		}
		mixed, other := 0, -1
		for i, text := range c.values() {
			if digitInside().MatchString(text) {
				mixed++
			}
			if post, _ := manifest.PostForm(text); other < 0 && !posts[post] {
				other = i
			}
		}
		if other >= 0 && 2*mixed > len(c.cells) {
			return c, c.places[other]
		}
	}
	return nil, place{}
}

// digitInside finds what ids of posts have and counted words (fold2) have not.
var digitInside = pattern(`[0-9][a-z]`)

// onlyIDs reports whether all values are ids of posts, and more than half in a form that nothing else has.
func (c *surveyed) onlyIDs() bool { return c.all(formID) && 2*c.forms[formPost] > c.items }

// likeliest gives those of some columns of ids that have the likeliest names: of ids, of addresses, others, and last of
// what a comment stands under and of posts beside the row's. Columns of other addresses stand last among those of ids.
func (d *guesser) likeliest(columns []int) []int {
	rank := func(i int) int {
		c := d.columns[i]
		switch {
		case c.under() || c.betweenPosts():
			return 2
		case !c.namedID:
			return 1
		}
		return 0
	}
	isAddress := func(i int) int {
		if d.columns[i].namedAddress() {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(columns, func(a, b int) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(isAddress(a), isAddress(b)))
	})
	return slices.DeleteFunc(columns, func(i int) bool { return rank(i) > rank(columns[0]) })
}

func (c *surveyed) namedAddress() bool {
	return slices.Contains(manifest.IDColumns(manifest.NameOfAddress), manifest.FieldColumn(c.name))
}

// leads reports whether a column of addresses leads from the post of another one, as links do. That one has to be
// confirmed.
func (d *guesser) leads(c, id *surveyed) bool {
	return c.namedAddress() && d.confirmed(id)
}

// confirmed reports whether another column names the same posts as ids, in a form that nothing else has.
func (d *guesser) confirmed(id *surveyed) bool {
	return slices.ContainsFunc(d.columns, func(c *surveyed) bool {
		return c != id && c.all(formPost) && c.filled == id.filled && !d.differ.has(c, id)
	})
}

func (d *guesser) takeID(c *surveyed) {
	c.used, d.idNote = true, len(d.notes)
	d.take(columnGuess{Name: "id", Column: c.name, Why: d.whyID(c)})
}

func (d *guesser) whyID(c *surveyed) string {
	if d.ID != "" {
		return "--id names it"
	}
	return fmt.Sprintf("%d of %d values are post ids", c.forms[formID]+c.forms[formGallery], c.items)
}

// noIDs says that no column has ids of posts, what one with a name of ids has instead, and which column may have them
// under another name.
func (d *guesser) noIDs() (message, hint string) {
	message = "no column looks like post ids"
	if !slices.ContainsFunc(d.columns, func(c *surveyed) bool { return c.filled > 0 }) {
		return "the file has no rows: nothing is below its header", "give the file that has the posts"
	}
	for _, c := range d.columns {
		if c.holdsCommentIDs() || c.namesComments() {
			d.commentIDs = cmp.Or(d.commentIDs, c)
		}
		if c.namedID && len(c.cells) > 0 && len(c.cells[0]) == 1 && c.private() == "" &&
			personalValue(c.cells[0][0]) == "" {
			message = fmt.Sprintf("no column looks like post ids: %s has values such as %s, and no ids",
				table.Quote(c.name), table.Quote(c.cells[0][0]))
			break
		}
	}
	if i := slices.IndexFunc(d.columns, (*surveyed).mayHoldIDs); i >= 0 {
		return message, fmt.Sprintf("if column %s has them, say so: rehydrate init --id %s",
			table.Quote(d.columns[i].name), strconv.Quote(d.columns[i].name))
	}
	return message, "a release is made of posts: add a column with their ids or permalinks, or name the one that has " +
		"them, rehydrate init --id COLUMN"
}

// isID reports whether the column's name ends in id.
func (c *surveyed) isID() bool {
	words := value.Words(c.name)
	return len(words) > 0 && (words[len(words)-1] == "id" || words[len(words)-1] == "ids")
}

// others are what has ids that look like those of posts, and is none.
var others = set("author account channel community forum group sub subreddit user")

// ofOthers reports whether the column's name says that it holds ids of something else than posts: subreddit_id.
func (c *surveyed) ofOthers() bool {
	words := value.Words(c.name)
	return len(words) > 1 && others[words[len(words)-2]]
}

// mayHoldIDs reports whether a column with another name than those of ids has values that can be ids of posts: other
// sites, and accounts, have such ids as well.
func (c *surveyed) mayHoldIDs() bool {
	return c.isID() && !c.ofOthers() && !c.lists && !c.odd && c.all(formID) && c.plainIDs() && c.private() == "" &&
		!slices.ContainsFunc(c.values(), isMixed)
}

// isCommentID reports whether a text has the form of the ids that comments have had since 2007, which those of posts
// have not reached: seven signs, the first from c on. Some words have it as well.
func isCommentID(text string) bool {
	return len(text) == 7 && text[0] >= 'c' && text[0] <= 'z' && manifest.PostID(text).Valid()
}

// holdsCommentIDs reports whether the column, whose name ends in id, has nothing but ids of posts and comments, and
// some of comments: the ids of rows that are about both. What a comment stands under has names of its own.
func (c *surveyed) holdsCommentIDs() bool {
	if !c.isID() || c.under() || c.betweenPosts() || c.lists || c.odd || c.private() != "" ||
		c.forms[formID]+c.forms[formComment]+c.forms[formTooNew] < c.items {
		return false
	}
	comments, numbered, hex := 0, 0, true
	for _, text := range c.values() {
		id, strong := manifest.PostForm(text)
		switch {
		case strong && id != "", manifest.PostID(text).Valid() && len(text) < 7:
		case strong, isCommentID(text):
			comments++
			hex = hex && value.IsHex(text, len(text))
			if strings.ContainsAny(text, value.Digits) && !counterForm().MatchString(text) {
				numbered++
			}
		default:
			return false
		}
	}
	return 2*numbered > comments && !hex // else they are words, or count something: meme001
}

// namesComments reports whether the column's name and most of its values say that it names the comments of its rows.
func (c *surveyed) namesComments() bool {
	return manifest.MarkOf(c.name) == manifest.MarkID && !c.lists && !c.odd &&
		2*(c.forms[formComment]+c.forms[formTooNew]) > c.items
}

// numberForm is the number of an item in a list that somebody wrote down: 1. or 2).
var numberForm = pattern(`^[0-9]+[.)]$`)

// severalIDs reports whether the cells of a column with a name of ids have several ids each, one at least, and whether
// they are those of comments.
func (c *surveyed) severalIDs() (several, comments bool) {
	if !c.namedID || c.odd || len(c.cells) == 0 {
		return false, false
	}
	ids, ofComments, numbered := 0, 0, 0
	for _, cell := range c.cells {
		n := 0
		for _, text := range cell {
			parts := func(r rune) bool { return strings.ContainsRune(" \t\r\n,;|", r) }
			for _, word := range strings.FieldsFunc(text, parts) {
				id, strong := manifest.PostForm(word)
				switch {
				case numberForm().MatchString(word):
					continue
				case !strong && len(id) < 5:
					return false, false
				case strong && id == "", isCommentID(id):
					ofComments++
				}
				if strings.ContainsAny(word, value.Digits) && !value.IsDigits(word) {
					numbered++
				}
				n++
			}
		}
		several = several || n > 1
		ids += n
	}
	return several && 2*numbered > ids, 2*ofComments > ids
}
