package guess

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"rehydrate/manifest"
	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// A markKind is a way in which a column says that a row is about a comment.
type markKind int

const (
	byValue     markKind = iota // it has a value: what the comment stands under
	byKind                      // the value is a comment's kind: comment, t1
	byYes                       // is_comment
	byNo                        // is_submission
	byAddress                   // the row's own address, or fullname, is a comment's
	byOwnID                     // it is the address of a comment whose id, or whose post's id, is that of the row
	byComment                   // it is the fullname or own address of a comment
	byCommentID                 // it is that or the id of a comment, by the column's name
	byOther                     // it names another post than the row's id does
	byDepth                     // it counts the comments above: 1 is a comment under a post
	byRowID                     // it has the ids of rows, which are comments as well
	byTurn                      // it counts the utterances of a conversation, the first of which is the post
)

// A mark is a column by which rows about comments are known.
type mark struct {
	column string
	kind   markKind
	ids    string // the column of ids
	chosen bool   // --id names it, so that it has those of posts whatever the rows are about
	first  int    // the number of a conversation's first utterance
}

type commentMarks []mark

// Columns that have a value where a row is about a comment: what it stands under. Other names are those of labels as
// well: they count where a value can be nothing but the id of a post or comment, or all can be one and few are words.
const (
	markNames = "linked_submission_id parent_id parentid parent_comment_id comment_id commentid link_id linkid thread_id " +
		"threadid root_id in_reply_to_id"
	parentNames = "parent parents thread submission root link_fullname in_reply_to replied_to reply_to op_post conversation conversation_id"
)

// beside are words in the names of columns that name another post, of which the row's post is a copy or neighbour.
var beside = set(`best copy crosspost crossposted duplicate duplicates matched near nearest neighbor neighbour next original
	prev previous related repost reposted similar source top`)

// under reports whether the column's name says that it holds what a comment stands under.
func (c *surveyed) under() bool { return c.namedAs(markNames) || c.namedAs(parentNames) }

// betweenPosts reports whether the column's name says that it holds a post beside that of the row.
func (c *surveyed) betweenPosts() bool {
	return slices.ContainsFunc(value.Words(c.name), func(word string) bool { return beside[word] })
}

// depths are columns that say how deep a comment stands below a post.
var depths = set("depth comment_depth reply_depth thread_depth nest_level nesting nesting_depth nesting_level")

// turnForm is the number of an utterance in its conversation: 3, u3, utt_3, abc123_3.
var turnForm = pattern(`(?i)^(?:.*[-_.:/#])?(?:u|utt|utterance|t|turn)?([0-9]{1,6})$`)

func turnOf(text string) (n int, ok bool) {
	found := turnForm().FindStringSubmatch(strings.TrimSuffix(strings.TrimSpace(text), ".0"))
	if found == nil {
		return 0, false
	}
	n, err := strconv.Atoi(found[1])
	return n, err == nil
}

// ordinals are words for a number behind the name of what is numbered.
var ordinals = set("id idx index no nr num number order pos position")

// namedTurn reports whether the column's name says that it counts or names utterances of a conversation.
func (c *surveyed) namedTurn() bool {
	words := value.Words(c.name)
	if n := len(words); n > 1 && ordinals[words[n-1]] {
		words = words[:n-1]
	}
	return len(words) > 0 && slices.Contains([]string{"turn", "utt", "utterance"}, words[len(words)-1])
}

// firstTurn gives the number of the first utterance of conversations, where the column numbers utterances in them.
func (c *surveyed) firstTurn() (first int, ok bool) {
	if c.lists || c.odd || len(c.cells) == 0 || !c.namedTurn() {
		return 0, false
	}
	first = math.MaxInt
	for _, cell := range c.cells {
		n, ok := turnOf(cell[0])
		if !ok {
			return 0, false
		}
		first = min(first, n)
	}
	return first, true
}

// saysKind reports whether the column says of each row whether it is about a post or a comment, and whether it is of a
// comment anywhere.
func (c *surveyed) saysKind() (says, comments bool) {
	if c.lists || c.odd || len(c.cells) == 0 || len(c.cells) > 20 {
		return false, false
	}
	has := func(kinds ...manifest.RowKind) func([]string) bool {
		return func(cell []string) bool {
			return slices.ContainsFunc(kinds, func(of manifest.RowKind) bool { return of.Has(cell[0]) })
		}
	}
	only := func(kinds ...manifest.RowKind) bool {
		is := has(kinds...)
		return !slices.ContainsFunc(c.cells, func(cell []string) bool { return !is(cell) })
	}
	comments = slices.ContainsFunc(c.cells, has(manifest.Comments, manifest.Replies))
	posts := slices.ContainsFunc(c.cells, has(manifest.Posts))
	letter := func(cell []string) bool { return manifest.LetterOfComments.Is(cell[0]) }
	other := func(cell []string) bool { return !letter(cell) && !manifest.LettersOfPosts.Is(cell[0]) }
	if c.namedKind() && !c.kept && !slices.ContainsFunc(c.cells, other) {
		return true, slices.ContainsFunc(c.cells, letter)
	}
	name := strings.Join(value.Words(c.name), "_")
	switch {
	case manifest.MarkOf(name) == manifest.MarkKind:
		return only(manifest.Comments, manifest.Replies, manifest.Posts) ||
			comments && (posts || only(manifest.Comments, manifest.Replies, manifest.TypesOfPosts)), comments
	case namedAs(name, "unit source level origin object entity item element granularity"):
		return only(manifest.Comments, manifest.Replies, manifest.Posts) && comments, comments
	case only(manifest.Comments, manifest.Posts):
		return comments && posts, comments
	default: // reply and thread are labels in other datasets
		return only(manifest.Replies, manifest.SurePosts) && comments && posts, comments
	}
}

// namedKind reports whether the column's name says that it holds kinds of rows: type, post_or_comment, p/c.
func (c *surveyed) namedKind() bool {
	words := value.Words(c.name)
	has := func(of, letters manifest.RowKind) bool {
		return slices.ContainsFunc(words, func(word string) bool { return of.Is(word) || letters.Is(word) })
	}
	return manifest.MarkOf(strings.Join(words, "_")) == manifest.MarkKind ||
		has(manifest.Posts, manifest.LettersOfPosts) && has(manifest.Comments, manifest.LetterOfComments)
}

// markOf gives the way in which a column says that rows are about comments. leaves says that it says nothing else.
func (d *guesser) markOf(c *surveyed) (kind markKind, found, leaves bool) {
	id := d.column(d.columnOf("id"))
	name := strings.Join(value.Words(c.name), "_")
	ofPosts := id.all(formPost) || d.confirmed(id) // any of their rows can say what it stands under, or leads to
	says, comments := c.saysKind()
	named := manifest.MarkOf(name)
	byIDs := c.forms[formID]+c.forms[formComment]+c.forms[formTooNew] > 0 && !c.all(formDigits)
	_, isTurn := c.firstTurn()
	isFlag := c.allFlags()
	switch {
	case c == id:
	case says:
		return byKind, comments, true
	case named == manifest.MarkYes && (isFlag && !slices.Contains(d.Keep, c.name) || strings.HasPrefix(name, "is_")):
		return byYes, true, true
	case named == manifest.MarkNo:
		return byNo, true, true
	case depths[name] && c.all(formInteger) && (c.has("0") || c.has("1")):
		return byDepth, true, true
	case isTurn && !c.rowNumbers():
		return byTurn, true, d.ID == ""
	case named == manifest.MarkAddress && c.forms[formComment] > 0:
		return byAddress, true, false
	case (named == manifest.MarkID || named == manifest.MarkAddress && strings.HasPrefix(name, "comment")) && byIDs:
		return byCommentID, true, d.PostsOnly
	case c.holdsCommentIDs():
		return byRowID, true, d.PostsOnly
	case ofPosts || c.betweenPosts():
		return byOwnID, c.forms[formComment] > 0 && !c.lists, false
	case c.namedAs(markNames) && byIDs,
		c.namedAs(parentNames) && (c.forms[formPost]+c.forms[formComment] > 0 || c.plainIDs()):
		return byValue, true, d.PostsOnly
	case c.forms[formComment] > 0 && !c.lists:
		return byComment, true, false
	case d.ID == "" && !c.namedWords && 2*c.forms[formPost] > c.items && d.differ.has(id, c):
		return byOther, true, false
	}
	return byValue, false, false
}

// guessMarks finds the columns by which rows about comments are known, and keeps those that say only that from being
// labels.
func (d *guesser) guessMarks() {
	id := d.column(d.columnOf("id"))
	for _, c := range d.columns {
		kind, found, leaves := d.markOf(c)
		if found {
			first, _ := c.firstTurn()
			d.marks = append(d.marks, mark{c.name, kind, id.name, d.ID != "", first})
		}
		isKept := c.used || slices.Contains(d.Keep, c.name)
		switch {
		case isKept || !leaves:
		case kind == byValue:
			d.leave(c, "it says what a comment stands under")
		default:
			d.leave(c, "it says whether a row is about a post or a comment")
		}
	}
	d.lookAtCommentFields()
}

// lookAtCommentFields says which columns only comments have, where all rows with an id have a value there: they may
// be about comments. Of the two that stand in dumps both are wanted.
func (d *guesser) lookAtCommentFields() {
	filled := d.column(d.columnOf("id")).filled
	var found []string
	dumps := 0
	for _, c := range d.columns {
		name := strings.Join(value.Words(c.name), "_")
		if c.filled < filled || filled == 0 {
			continue
		}
		switch name {
		case "comment_text", "comment_body", "comment_created_utc", "comment_created", "comment_index", "comment_score":
			found = append(found, c.name)
		case "controversiality", "is_submitter":
			dumps++
		}
	}
	if dumps == 2 {
		found = append(found, "controversiality", "is_submitter")
	}
	if len(found) > 0 && len(d.marks) == 0 {
		d.lookAt("every row has a value of %s, which comments have and posts have not: are the rows about posts?",
			manifest.QuotedList(found))
	}
}

// plainIDs reports whether all values can be ids of posts and most are no words: 1abcde.
func (c *surveyed) plainIDs() bool {
	ids := 0
	for _, text := range c.values() {
		if len(text) > 4 && strings.ContainsAny(text, value.Digits) && !value.IsDigits(text) {
			ids++
		}
	}
	return c.forms[formID]+c.forms[formTooNew] == c.items && 2*ids > len(c.values())
}

// allFlags reports whether all values are yes or no, also in numbers.
func (c *surveyed) allFlags() bool { return !c.odd && !c.lists && c.flags() }

// without says which rows are about comments, by the ids in a column and by the marks.
func (m commentMarks) without(id string, today time.Time) manifest.Without {
	columns := []string{id}
	for _, of := range m {
		columns = append(columns, of.column)
	}
	return manifest.Without{Columns: columns, Is: func(texts []string) bool {
		post, strong := manifest.PostForm(texts[0])
		if post == "" || manifest.PostID(post).TooNew(today) {
			return strong || post != ""
		}
		return m.ofComment(post, strong, texts[1:])
	}}
}

// namesPosts reports whether the mark goes by which post or comment its column names, or its ids are those that
// somebody chose.
func (of mark) namesPosts() bool {
	return of.chosen || !slices.Contains([]markKind{byKind, byYes, byNo, byDepth, byTurn, byRowID}, of.kind)
}

// ofComment reports whether marks say that a row with an id is about a comment. Where one says that the id is that of
// the post which the comment stands under, the row counts as one about that post. strong says that the id can be
// nothing but a post's: then only a mark counts that says what the row is about.
func (m commentMarks) ofComment(id string, strong bool, texts []string) (comment bool) {
	for i, of := range m {
		if strong && of.namesPosts() {
			continue
		}
		is, ofPost := of.says(id, texts[i])
		if ofPost {
			return false
		}
		comment = comment || is
	}
	return comment
}

// says reports whether the text of the mark's column says that the row with the id is about a comment, and whether the
// id is that of the post which the comment stands under.
func (of mark) says(id, text string) (comment, ofPost bool) {
	post, strong := manifest.PostForm(text)
	under, own, isAddress := manifest.CommentAddress(value.FoldASCII(text))
	ofPost = isAddress && string(under) == id && of.chosen
	switch of.kind {
	case byKind:
		return manifest.OfComment(text) || manifest.LetterOfComments.Is(text), false
	case byYes, byNo:
		yes, ok := value.YesNo(text)
		return text != "" && (!ok || yes == (of.kind == byYes)), false // what is neither yes nor no may be a comment
	case byDepth:
		n, ok := value.Number(strings.TrimSpace(text))
		return ok && n > 0, false
	case byRowID:
		isOwn := post == "" && strong || isCommentID(text)
		return isOwn && !of.chosen, isOwn && of.chosen // the row's own id stands here, so the chosen one is its post's
	case byTurn:
		n, ok := turnOf(text)
		return ok && n > of.first && !of.chosen, false
	case byValue:
		return text != "" && post != id, post == id
	case byAddress:
		return post == "" && strong, ofPost
	case byOwnID:
		return isAddress && (own == id || string(under) == id && !of.chosen), false
	case byComment, byCommentID: // elsewhere an address can lead to a comment
		isName := post == "" && strong || of.kind == byCommentID && post != "" && post != id
		if isAddress {
			isName = string(under) == id
		}
		return isAddress && own == id || isName && !of.chosen, ofPost || isName && of.chosen && of.kind == byCommentID
	}
	return post != "" && strong && post != id, false
}

// refuseComments reads the rows again where some may be about comments, and says which are. Of --posts-only, it counts
// them.
func (d *guesser) refuseComments(ctx context.Context, source *manifest.Source) error {
	name := d.columnOf("id")
	id := d.column(name)
	if len(d.marks) == 0 && id.forms[formComment]+id.forms[formTooNew] == 0 {
		return nil
	}
	without, problems, rows, left := d.marks.without(name, d.Today), new(manifest.Problems), 0, 0
	err := eachRow(ctx, source, func(in *manifest.Rows, cells []table.Cell) {
		rows++
		texts := without.Texts(in.Columns(), cells)
		if !without.Is(texts) {
			return
		}
		left++
		column, message, hint := d.marks.reason(texts)
		p := manifest.Problem{Message: message, Hint: hint}
		p.File, p.Line, p.Column = in.Place(slices.Index(in.Columns(), without.Columns[column]))
		problems.Add(p)
	})
	if err != nil {
		return err
	}
	if d.PostsOnly {
		d.notes = append(d.notes, fmt.Sprintf("--posts-only leaves out the rows about comments: %d of %d", left, rows))
		return nil
	}
	return problems.Err()
}

// byWeight gives the places of the marks, first those that name the row's comment: what they say leads to its post.
func (m commentMarks) byWeight() []int {
	var named, others []int
	for i, of := range m {
		if of.kind == byCommentID || of.kind == byRowID {
			named = append(named, i)
		} else {
			others = append(others, i)
		}
	}
	return append(named, others...)
}

// reason says why a row is about a comment, or may be, and which of its texts, the id first, says so.
func (m commentMarks) reason(texts []string) (text int, message, hint string) {
	const leaves = "rehydrate init --posts-only leaves such rows out; --id COLUMN names another column of ids"
	const choose = "say which column has the ids of posts: rehydrate init --id COLUMN; --posts-only leaves such rows out"
	id, _ := manifest.PostForm(texts[0])
	for _, i := range m.byWeight() {
		of := m[i]
		if is, _ := of.says(id, texts[i+1]); !is {
			continue
		}
		column := table.Quote(of.column)
		_, isFlag := value.YesNo(texts[i+1])
		switch {
		case of.kind == byOther:
			return i +
					1, fmt.Sprintf("column %s names another post than the id %s, which may be that of a comment under it",
					column, table.Quote(texts[0])), choose
		case (of.kind == byYes || of.kind == byNo) && !isFlag:
			return i + 1, "column " + column + " says neither yes nor no, so this row may be about a comment", leaves
		case of.kind == byTurn:
			return i + 1,
				"column " + column + " says that this row is a later utterance of a conversation, as comments " +
					"are, and not its post", "rehydrate init --posts-only leaves such rows out; --id " +
					strconv.Quote(of.ids) + " takes all rows for those of its posts"
		}
		hint = leaves
		if of.kind == byKind && manifest.LetterOfComments.Is(texts[i+1]) {
			hint += "; --keep " + strconv.Quote(of.column) + " takes its letters for labels"
		}
		if post, _ := manifest.PostForm(texts[i+1]); of.kind == byValue && post != "" {
			hint = "rehydrate init --posts-only leaves such rows out; --id " + strconv.Quote(of.column) +
				" takes the posts that comments stand under"
		}
		why := ", so its id is not that of a post"
		under, _, isAddress := manifest.CommentAddress(value.FoldASCII(texts[i+1]))
		if isAddress && string(under) == id || of.kind == byCommentID || of.kind == byRowID {
			why, hint = " and not about its post", "rehydrate init --posts-only leaves such rows out; --id "+
				strconv.Quote(of.ids)+" takes the posts that comments stand under"
		}
		return i + 1, "column " + column + " says that this row is about a comment" + why, hint
	}
	if id == "" {
		return 0, table.Quote(texts[0]) + " is the id of a comment, not of a post", leaves
	}
	return 0, table.Quote(texts[0]) + " is not the id of a post: none has so high an id yet, and comments do", leaves
}
