package guess

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"rehydrate/manifest"
	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// A markKind is a way in which a column says that a row is about a comment.
type markKind int

const (
	byValue   markKind = iota // it has a value: what the comment stands under
	byKind                    // the value is a comment's kind: comment, t1
	byYes                     // is_comment
	byNo                      // is_submission
	byAddress                 // the row's own address, or fullname, is a comment's
)

// A mark is a column by which rows about comments are known.
type mark struct {
	column string
	kind   markKind
}

type commentMarks []mark

// markNames are columns that have a value where a row is about a comment: what it stands under.
const markNames = "linked_submission_id parent_id comment_id parent_comment_id link_id"

// ownAddresses are columns of the row's own address or fullname. url and link are not among them: a post can lead to a
// comment.
var ownAddresses = set("comment_permalink full_link fullname name permalink post_permalink post_url")

// Columns that say yes or no: of a comment, and of a post.
var (
	yesOfComments = set("is_comment is_reply")
	yesOfPosts    = set("is_post is_submission is_thread")
)

// readFlag reads a yes or no as anybody writes one in a cell.
func readFlag(text string) (yes, ok bool) {
	switch value.Fold(text) {
	case "true", "t", "yes", "y":
		return true, true
	case "false", "f", "no", "n":
		return false, true
	}
	n, ok := value.Number(strings.TrimSpace(text))
	return n == 1, ok && (n == 0 || n == 1)
}

// The kinds of rows, as dumps and exports name them.
var (
	kindsOfComments = set("comment comments reply t1")
	kindsOfPosts    = set("post posts submission submissions t3 thread")
	// typesOfPosts can stand beside comment, and are labels without it.
	typesOfPosts = set("gallery image link poll self text video")
)

// saysKind reports whether the column says of each row whether it is about a post or a comment, and whether it is of a
// comment anywhere.
func (c *surveyed) saysKind() (says, comments bool) {
	if c.lists || c.odd || len(c.cells) == 0 || len(c.cells) > 20 {
		return false, false
	}
	has := func(kinds map[string]bool) func([]string) bool {
		return func(cell []string) bool { return kinds[value.Fold(cell[0])] }
	}
	comments = slices.ContainsFunc(c.cells, has(kindsOfComments))
	only := func(kinds ...map[string]bool) bool {
		return !slices.ContainsFunc(c.cells, func(cell []string) bool {
			return !slices.ContainsFunc(kinds, func(kind map[string]bool) bool { return has(kind)(cell) })
		})
	}
	switch name := strings.Join(wordsOf(c.name), "_"); {
	case namedAs(name, "kind type"):
		return only(kindsOfComments, kindsOfPosts) || comments && only(kindsOfComments, kindsOfPosts, typesOfPosts), comments
	default: // reply and thread are labels in other datasets
		return only(set("comment comments t1"), kindsOfPosts) && comments && slices.ContainsFunc(c.cells, has(kindsOfPosts)), comments
	}
}

// guessMarks finds the columns by which rows about comments are known, and keeps those that say only that from being
// labels.
func (d *guesser) guessMarks() {
	id := d.column(d.columnOf("id"))
	for _, c := range d.columns {
		name := strings.Join(wordsOf(c.name), "_")
		says, comments := c.saysKind()
		found, kind := true, byValue
		switch {
		case c == id:
			continue
		case says:
			found, kind = comments, byKind
		case yesOfComments[name]:
			kind = byYes
		case yesOfPosts[name]:
			kind = byNo
		case ownAddresses[name] && c.forms[formComment] > 0:
			kind = byAddress
		default:
			// Under ids that are written as those of posts alone, any row can say what it stands under.
			found = !id.all(formPost) && c.namedAs(markNames) && c.forms[formID]+c.forms[formComment] > 0
		}
		if found {
			d.marks = append(d.marks, mark{c.name, kind})
		}
		unread := func(cell []string) bool { _, ok := readFlag(cell[0]); return !ok }
		if (kind == byYes || kind == byNo) && (c.odd || c.lists || slices.ContainsFunc(c.cells, unread)) {
			d.lookAt("column %s says of some rows neither yes nor no: they are taken for posts", table.Quote(c.name))
		}
		switch isKept := c.used || slices.Contains(d.Keep, c.name); {
		case isKept:
		case says, kind == byYes, kind == byNo:
			d.leave(c, "it says whether a row is about a post or a comment")
		case found && kind == byValue && d.PostsOnly:
			d.leave(c, "it says what a comment stands under")
		}
	}
}

// without says which rows are about comments, by the ids in a column and by the marks.
func (m commentMarks) without(id string, today time.Time) manifest.Without {
	columns := []string{id}
	for _, of := range m {
		columns = append(columns, of.column)
	}
	return manifest.Without{Columns: columns, Is: func(texts []string) bool {
		post, strong := idForm(texts[0])
		if post == "" || manifest.PostID(post).TooNew(today) {
			return strong || post != ""
		}
		return !strong && m.ofComment(post, texts[1:])
	}}
}

// ofComment reports whether marks say that a row with an id is about a comment. Where one says that the id is that of
// the post which the comment stands under, the row counts as one about that post.
func (m commentMarks) ofComment(id string, texts []string) (comment bool) {
	for i, of := range m {
		text := texts[i]
		switch of.kind {
		case byKind:
			comment = comment || kindsOfComments[value.Fold(text)]
		case byYes, byNo:
			yes, ok := readFlag(text)
			comment = comment || ok && yes == (of.kind == byYes)
		case byValue:
			if post, _ := idForm(text); post == id {
				return false
			}
			comment = comment || text != ""
		case byAddress:
			found := commentAddress.FindStringSubmatch(value.FoldASCII(text))
			if found != nil && found[1] == id {
				return false
			}
			post, strong := idForm(text)
			comment = comment || post == "" && strong
		}
	}
	return comment
}

// commentAddress has the ids of the post in a comment's address.
var commentAddress = regexp.MustCompile(`(?:^|/)comments/([0-9a-z]+)/[^/]*/[0-9a-z]+`)

// refuseComments reads the rows again where some may be about comments, and says which are. Of --posts-only, it counts
// them.
func (d *guesser) refuseComments(ctx context.Context, source *manifest.Source) error {
	name := d.columnOf("id")
	id := d.column(name)
	if len(d.marks) == 0 && id.forms[formComment]+id.forms[formTooNew] == 0 {
		return nil
	}
	in, err := source.Rows()
	if err != nil {
		return err
	}
	defer in.Close()
	without, problems, rows, left := d.marks.without(name, d.Today), new(manifest.Problems), 0, 0
	texts := make([]string, len(without.Columns))
	for ctx.Err() == nil {
		cells, err := in.Next()
		if err == io.EOF {
			break
		}
		if _, isProblem := table.AsProblem(err); isProblem {
			continue // which the reading of the draft will say
		}
		if err != nil {
			return err
		}
		rows++
		for i, column := range without.Columns {
			texts[i] = ""
			if at := slices.Index(in.Columns(), column); at >= 0 {
				texts[i] = cells[at].Plain()
			}
		}
		if !without.Is(texts) {
			continue
		}
		left++
		column, message := d.marks.reason(texts)
		p := manifest.Problem{Message: message,
			Hint: "rehydrate init --posts-only leaves such rows out; --id COLUMN names another column of ids"}
		p.File, p.Line, p.Column = in.Place(slices.Index(in.Columns(), without.Columns[column]))
		problems.Add(p)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.PostsOnly {
		d.notes = append(d.notes, fmt.Sprintf("--posts-only leaves out the rows about comments: %d of %d", left, rows))
		return nil
	}
	return problems.Err()
}

// reason says why a row is about a comment, and which of its texts, the id first, says so.
func (m commentMarks) reason(texts []string) (text int, message string) {
	id, _ := idForm(texts[0])
	for i, of := range m {
		if (commentMarks{of}).ofComment(id, texts[i+1:]) {
			return i + 1, fmt.Sprintf("column %s says that this row is about a comment, so its id is not that of a post",
				table.Quote(of.column))
		}
	}
	if id == "" {
		return 0, table.Quote(texts[0]) + " is the id of a comment, not of a post"
	}
	return 0, table.Quote(texts[0]) + " is not the id of a post: none has so high an id yet, and comments do"
}

// areComments is the error of a file whose ids are those of comments.
func (c *surveyed) areComments() error {
	n, problems := c.forms[formComment]+c.forms[formTooNew], new(manifest.Problems)
	p := manifest.Problem{File: c.places[0].file, Line: c.places[0].line, Column: c.places[0].column}
	p.Message = fmt.Sprintf("column %s has ids of comments, not of posts, here and in %d of %d rows",
		table.Quote(c.name), n, c.filled)
	p.Hint = "a release is made of posts: name the column with the ids of the posts that the comments stand under, " +
		"rehydrate init --id COLUMN"
	problems.Add(p)
	return problems
}
