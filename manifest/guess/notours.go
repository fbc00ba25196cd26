package guess

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rehydrate/manifest"
	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// shareForm is a share link of Reddit's; imageForm is the address of an image.
var (
	shareForm = pattern(`(?i)reddit\.com/(?:(?:r|u|user)/[^/\s]+/)?s/\w`)
	imageForm = pattern(`(?i)^(?:https?:)?//(?:(?:i|preview|external-preview)\.redd\.it/|i\.imgur\.com/|` +
		`\S+\.(?:jpe?g|png|gifv?|webp|bmp|avif)(?:[?#]\S*)?$)`)
)

func isShare(text string) bool { return strings.Contains(text, "/s/") && shareForm().MatchString(text) }

func isImageAddress(text string) bool {
	return strings.Contains(text, "//") && !strings.Contains(text, "/comments/") && imageForm().MatchString(text)
}

// notOurs says of a file without ids of posts what it is, and which tool or column would serve; nil where that is not
// known.
func (d *guesser) notOurs() error {
	if c := d.mostly(formShare); c != nil {
		return c.is(formShare, isShare, "share links of Reddit's (/s/)",
			": such a link does not hold the id of its post, and only a request to Reddit says where it leads",
			"open each and copy the address that the browser then shows; rehydrate asks Reddit about ids alone")
	}
	for _, c := range d.columns {
		if several, comments := c.severalIDs(); several {
			return c.severally(comments)
		}
	}
	if d.commentIDs != nil {
		return d.areComments()
	}
	if c := d.mostly(formImage); c != nil {
		return c.is(formImage, isImageAddress, "addresses of images",
			", and no column has ids of posts: such a list is what img2dataset downloads",
			"an image's address does not name the post that it stood in, so nobody could ask Reddit whether the "+
				"post was deleted: use img2dataset, or add a column with the ids or permalinks of the posts")
	}
	return nil
}

// mostly gives the first column of which more than half of the values have a form, nil for none.
func (d *guesser) mostly(form int) *surveyed {
	i := slices.IndexFunc(d.columns, func(c *surveyed) bool { return c.items > 0 && 2*c.forms[form] > c.items })
	if i < 0 {
		return nil
	}
	return d.columns[i]
}

// first gives the place of the first cell with a text that is of a kind, that of the first cell where none is.
func (c *surveyed) first(is func(text string) bool) place {
	return c.places[max(0, slices.IndexFunc(c.cells, func(cell []string) bool { return slices.ContainsFunc(cell, is) }))]
}

// is makes the error of a column that has so many values of a form, of which has tells.
func (c *surveyed) is(form int, has func(text string) bool, what, why, hint string) error {
	at := c.first(has)
	return table.One(&manifest.Problem{File: at.file, Line: at.line, Column: at.column, Hint: hint,
		Message: fmt.Sprintf("column %s has %s, here and in %d of %d rows%s", table.Quote(c.name), what,
			c.forms[form], c.filled, why)})
}

// severally is the error of a column that has several ids in a cell.
func (c *surveyed) severally(comments bool) error {
	at := c.places[0]
	p := &manifest.Problem{File: at.file, Line: at.line, Column: at.column,
		Message: fmt.Sprintf("column %s has several ids in a cell", table.Quote(c.name)),
		Hint:    "write a row for each id, and repeat what is said of it"}
	if comments {
		p.Message = fmt.Sprintf("column %s has several ids of comments in a cell", table.Quote(c.name))
		p.Hint = "a release is made of posts: write a row for each, with the id of the post that the comments stand under"
	}
	return table.One(p)
}

// areComments is the error of a file whose ids are those of comments. It names the column of the posts that they stand
// under, where there is one.
func (d *guesser) areComments() error {
	c := d.commentIDs
	n := c.forms[formComment] + c.forms[formTooNew]
	at := c.first(func(text string) bool {
		id, strong := manifest.PostForm(text)
		return id == "" && strong || id != "" && manifest.PostID(id).TooNew(d.Today)
	})
	p := &manifest.Problem{File: at.file, Line: at.line, Column: at.column,
		Message: fmt.Sprintf("column %s has ids of comments, not of posts, here and in %d of %d rows",
			table.Quote(c.name), n, c.filled),
		Hint: "a release is made of posts: name the column with the ids of the posts that the comments stand under, " +
			"rehydrate init --id COLUMN"}
	posts := slices.IndexFunc(d.columns, func(o *surveyed) bool {
		return o != c && o.all(formID) && (o.under() || o.all(formPost) || o.mayHoldIDs()) &&
			!slices.ContainsFunc(o.values(),
				value.IsDigits)
	})
	addresses := slices.IndexFunc(d.columns, (*surveyed).leadsToComments)
	switch {
	case posts >= 0:
		p.Hint = fmt.Sprintf("a release is made of posts: --id %s takes those that the comments stand under, and "+
			"--many several rows about one",
			strconv.Quote(d.columns[posts].name))
	case len(d.columns) == 1:
		p.Hint = "a release is made of posts: write the ids of those that the comments stand under (link_id in " +
			"Reddit's data)"
	case addresses >= 0:
		p.Hint = fmt.Sprintf("a release is made of posts, whose ids stand in column %s behind /comments/: write them into "+
			"a column of their own, name it with --id, and give --many where a post has several rows",
			table.Quote(d.columns[addresses].name))
	}
	if c.forms[formID] > 0 {
		p.Hint += "; --posts-only leaves the rows about comments out"
	}
	return table.One(p)
}

// leadsToComments reports whether most values of the column are addresses of comments.
func (c *surveyed) leadsToComments() bool {
	return 2*c.forms[formComment] > c.items && slices.ContainsFunc(c.values(), func(text string) bool {
		_, _, isAddress := manifest.CommentAddress(value.FoldASCII(text))
		return isAddress
	})
}
