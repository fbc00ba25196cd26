package manifest

import (
	"slices"
	"time"
)

// A PostID is a Reddit link id: base 36, lower case, 1 to 13 characters, without
// the t3_ prefix. Make one with ParsePostID.
type PostID string

// Fullname returns the id as Reddit's API names it, "t3_" first.
func (id PostID) Fullname() string { return "t3_" + string(id) }

// A Key names an entry: a post and which of its images. No two entries share one.
type Key struct {
	ID    PostID
	Image int // 0-based place in the post's gallery; 0 for a post with one image
}

// An Entry is one row of the manifest.
type Entry struct {
	Key
	Ordinal int    // 0-based place in the manifest: the order of everything that follows
	Line    int    // 1-based line (CSV, JSONL) or row (Parquet), for messages
	Split   string // "train" where the manifest has no split column
	// Labels holds, per category of the schema and in its order, the labels as indexes
	// into Category.Labels, in released order. A single-label category has at most one.
	// An empty non-nil slice is an empty list, nil means that no label was given.
	Labels [][]int
	// Digests of the image that the maintainers had, in lower-case hex, or "": of the file, of the file without
	// metadata, of the pixels, and the perceptual hash (16 digits). See docs/files.md, Digests of an image.
	SHA256, StrippedSHA256, PixelsSHA256, PHash string
	// Values holds, per column of the schema and in its order, the values as Column writes them: one, or those of a list.
	// An empty non-nil slice is an empty list, nil no value.
	Values [][]string
	// Subreddit is where the post was made, "" where the manifest does not tell: the
	// subreddit column, or the permalink that the id was given as. See Subreddit.
	Subreddit string
}

// A Schema is the label schema of a release: its categories in column order, and the columns that it passes through.
type Schema struct {
	Name       string     `toml:"name"`
	Categories []Category `toml:"category"`
	Columns    []Column   `toml:"column" json:",omitempty"`
	// Many says that several rows may be about one image, such as sentences or annotators. See Joined.
	Many bool `toml:"-" json:",omitempty"`
}

// Joined is the schema of a dataset, which has a row for each image: where the manifest has many, each category and
// column is a list of what its rows say, in their order.
func (s Schema) Joined() Schema {
	if !s.Many {
		return s
	}
	s.Categories, s.Columns = slices.Clone(s.Categories), slices.Clone(s.Columns)
	for i := range s.Categories {
		s.Categories[i].Kind = Multi
	}
	for i := range s.Columns {
		s.Columns[i].List = true
	}
	return s
}

// Named reports whether a digest of its file or its pixels says which image is meant.
func (e Entry) Named() bool { return e.SHA256 != "" || e.StrippedSHA256 != "" || e.PixelsSHA256 != "" }

// RowValues gives the values of a row that is one of several about an image: a list of one for each column, of NoValue
// where the row has none. Joined, the lists of an image have a place for each row.
func (e Entry) RowValues() [][]string {
	all := slices.Clone(e.Values)
	for i, values := range all {
		if len(values) == 0 {
			all[i] = []string{NoValue}
		}
	}
	return all
}

// A CategoryKind says how many labels of a category an entry can have.
type CategoryKind string

// The kinds of category.
const (
	Single  CategoryKind = "single"
	Ordinal CategoryKind = "ordinal" // single, and the labels stand from lowest to highest
	Multi   CategoryKind = "multi"
)

// A Category is one label category. Its Name is its column name in the Parquet.
type Category struct {
	Name        string       `toml:"name"`
	Title       string       `toml:"title"`
	Description string       `toml:"description" json:",omitempty"` // for annotators: what the category is about
	Kind        CategoryKind `toml:"kind"`
	Labels      []Label      `toml:"labels"`
}

// A Label is one label of a category. The order of Category.Labels is the order of
// the ClassLabel names; for an Ordinal category it runs from lowest to highest.
type Label struct {
	Code      string `toml:"code"`      // the release's short code: F1
	Name      string `toml:"name"`      // the name that people read: Metaphor
	Exclusive bool   `toml:"exclusive"` // may not stand beside another label of its category (None)
	// Description says when the label is to be given, for annotators.
	Description string `toml:"description" json:",omitempty"`
}

// A Reason is the machine-readable detail of an outcome or a post state:
// lower case, words joined by underscores (moderator, http_404, host_not_allowed).
type Reason string

// A PostState is what Reddit says of a post now.
type PostState string

// The post states.
const (
	StateLive        PostState = "live"
	StateRemoved     PostState = "removed"
	StateDeleted     PostState = "deleted"
	StateUnavailable PostState = "unavailable"
	StateHeld        PostState = "held"    // reachable, but the policy holds it (quarantine)
	StateUnknown     PostState = "unknown" // no well-formed answer: evidence of nothing
)

// Gone reports whether a post in this state must not be in the dataset; a tombstone has one of these states.
func (s PostState) Gone() bool {
	return s == StateRemoved || s == StateDeleted || s == StateUnavailable
}

// A Result is the outcome of one entry as outcomes.csv and `status` show it.
type Result struct {
	Key
	Split   string
	Outcome Outcome
	Reason  Reason // "" where the outcome says it all
	Detail  string // for people; never a user name, title or permalink
	// DuplicateOf names the kept entry that this one is near, when Outcome is Duplicate
	// (or when a flagged row is kept all the same). Zero otherwise.
	DuplicateOf Key
}

// Flagged reports whether the entry is kept although a filter would have dropped it (flag
// mode). Its Reason is then the outcome that it would have had.
func (r Result) Flagged() bool {
	return r.Outcome == Kept && Outcome(r.Reason).Fate() == FateFiltered
}

// A Tombstone marks a post that must not come back.
type Tombstone struct {
	ID    PostID
	State PostState // StateRemoved, StateDeleted or StateUnavailable
	Time  time.Time // UTC, to the second
}

// A ReasonedTombstone is one of a workspace's own list, which tells why the post went.
type ReasonedTombstone struct {
	Tombstone
	Reason Reason // "" where it is not known
}

// OutcomesName is the file in a workspace that holds the outcome of every entry.
const OutcomesName = "outcomes.csv"
