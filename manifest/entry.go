package manifest

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
	// Digests of the image that the maintainers had, in lower-case hex, or "": of the file, of the file without metadata, of
	// the pixels, and the perceptual hash (16 digits). See docs/formats.md, Digests of an image.
	SHA256, StrippedSHA256, PixelsSHA256, PHash string
	// Subreddit is where the post was made, "" where the manifest does not tell: the
	// subreddit column, or the permalink that the id was given as. See Subreddit.
	Subreddit string
}

// A Schema is the label schema of a release: its categories in column order.
type Schema struct {
	Name       string
	Categories []Category
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
	Name   string       `toml:"name"`
	Title  string       `toml:"title"`
	Kind   CategoryKind `toml:"kind"`
	Labels []Label      `toml:"labels"`
}

// A Label is one label of a category. The order of Category.Labels is the order of
// the ClassLabel names; for an Ordinal category it runs from lowest to highest.
type Label struct {
	Code      string `toml:"code"`      // the release's short code: F1
	Name      string `toml:"name"`      // the name that people read: Metaphor
	Exclusive bool   `toml:"exclusive"` // may not stand beside another label of its category (None)
}
