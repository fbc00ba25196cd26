package manifest

import (
	"slices"
	"strconv"
	"strings"

	"rehydrate/manifest/value"
)

// A Field is what a column of a manifest says of an entry, other than labels and what passes through.
type Field int

// The fields.
const (
	FieldID Field = iota
	FieldSplit
	FieldImage
	FieldSHA256
	FieldStripped // the SHA-256 of the file without metadata
	FieldPixels   // the SHA-256 of the pixels
	FieldPHash
	FieldSubreddit
)

// The keys of [columns] that are not categories, in the order of messages.
var fieldNames = [...]string{"id", "split", "image", "sha256", "sha256_stripped", "sha256_pixels", "phash", "subreddit"}

// Fields lists the fields in the order of messages.
func Fields() []Field {
	fields := make([]Field, len(fieldNames))
	for i := range fields {
		fields[i] = Field(i)
	}
	return fields
}

// String gives the field's key in [columns] of release.toml, which is its column in a manifest that this program
// writes.
func (f Field) String() string { return fieldNames[f] }

// Digits is the number of hex digits of a digest, 0 for a field that is none.
func (f Field) Digits() int {
	switch f {
	case FieldSHA256, FieldStripped, FieldPixels:
		return 64
	case FieldPHash:
		return 16
	}
	return 0
}

// Of gives what an entry says of the field, as a manifest has it; "" for nothing.
func (f Field) Of(e Entry) string {
	switch f {
	case FieldID:
		return string(e.ID)
	case FieldSplit:
		return e.Split
	case FieldImage:
		return strconv.Itoa(e.Image)
	case FieldSHA256:
		return e.SHA256
	case FieldStripped:
		return e.StrippedSHA256
	case FieldPixels:
		return e.PixelsSHA256
	case FieldPHash:
		return e.PHash
	}
	return e.Subreddit
}

// Names gives the names under which people keep the field in their files, the likeliest first, as FoldColumn writes
// them.
func (f Field) Names() []string {
	switch f {
	case FieldID:
		// A dump that has one of the other names has an id as well, and what other people call post is often its words.
		return IDColumns(NameOfID, NameWithID, NameOfAddress)
	case FieldSplit:
		return []string{"split", "set", "subset", "partition"}
	case FieldImage:
		return []string{"image", "image_index", "image_number", "gallery_index"}
	case FieldSHA256:
		return []string{"sha256", "image_sha256"}
	case FieldPHash:
		return []string{"phash", "image_phash", "perceptual_hash"}
	case FieldSubreddit:
		return []string{"subreddit", "subreddit_name"}
	}
	return []string{f.String()}
}

// A NameKind says how far the name of a column tells that the column holds ids of posts.
type NameKind int

// The kinds of names.
const (
	// NameOfID is a name that people give to the id of a post, and to little else.
	NameOfID NameKind = iota
	// NameWithID is a name of the post's address, or of an id that elsewhere is that of another thing: link_id is the
	// post under which a comment was written, image_id is an image's own id in many datasets.
	NameWithID
	// NameOfAddress is a name of any address, most often an image's. Only its values tell whether it leads to a post.
	NameOfAddress
	// NameInDumps is a name in dumps, databases and other programs' tables.
	NameInDumps
)

// IDColumns lists the names of these kinds under which anybody keeps ids of posts, the likeliest first, as FoldColumn
// writes them. It is the only such list: each reader of files says which kinds it takes.
func IDColumns(kinds ...NameKind) []string {
	var names []string
	for _, n := range [...]struct {
		name string
		kind NameKind
	}{
		{"id", NameOfID},
		{"post_id", NameOfID},
		{"postid", NameOfID},
		{"submission_id", NameOfID},
		{"submissionid", NameOfID},
		{"image_id", NameWithID},
		{"reddit_id", NameOfID},
		{"redditid", NameOfID},
		{"link_id", NameWithID},
		{"fullname", NameWithID},
		{"permalink", NameWithID},
		{"post_url", NameWithID},
		{"url", NameOfAddress},
		{"link", NameOfAddress},
		{"full_link", NameInDumps},
		{"post", NameInDumps},
		{"t3", NameInDumps},
	} {
		if slices.Contains(kinds, n.kind) {
			names = append(names, n.name)
		}
	}
	return names
}

// UsualSplit gives what a name of a split means, where it is a usual one: train, validation or test; "" for another.
func UsualSplit(name string) string {
	switch value.Fold(name) {
	case "train", "training":
		return "train"
	case "val", "valid", "validate", "validation", "dev":
		return "validation"
	case "test", "testing":
		return "test"
	}
	return ""
}

// SplitNamed gives the split that a name means, of those that there are: the one that is called so, else the only one
// that is a usual name of the same, such as Test for test; "" for none.
func SplitNamed(splits []string, name string) string {
	if slices.Contains(splits, name) {
		return name
	}
	means := UsualSplit(name)
	var same []string
	for _, split := range splits {
		if strings.EqualFold(split, name) || means != "" && UsualSplit(split) == means {
			same = append(same, split)
		}
	}
	if len(same) != 1 {
		return ""
	}
	return same[0]
}

// IDNamed reports whether a column has a name under which people keep ids of posts.
func IDNamed(column string) bool { return slices.Contains(FieldID.Names(), FieldColumn(column)) }

// FieldColumn gives the name by which a column is compared with Names: as FoldColumn writes it, and of a path into a
// nested record (post_metadata.post_id, data.id, subreddit.name), as tables made of JSON have them, what names the
// field. An id is a post's only where its path says so: subreddit.id is not.
func FieldColumn(name string) string {
	path := strings.Split(FoldColumn(name), ".")
	if len(path) == 1 {
		return path[0]
	}
	parent, last := path[len(path)-2], path[len(path)-1]
	ofPost := slices.Contains([]string{"data", "post", "submission"}, parent)
	names := append(IDColumns(NameOfID), FieldSubreddit.Names()...)
	if last != "id" && slices.Contains(append(names, "permalink"), last) || last == "id" && ofPost {
		return last
	}
	return parent + "_" + last
}

// FoldColumn is how names of columns are compared: in lower case, without spaces at the ends, with _ between the words.
func FoldColumn(name string) string {
	return strings.NewReplacer(" ", "_", "-", "_").Replace(value.Fold(name))
}

// Reserved reports whether a category or column may not have the name: it is another column of the Parquet, or another
// key where names of categories are keys in release.toml.
func Reserved(name string) bool {
	return slices.Contains([]string{"id", "split", "image", "sha256", "sha256_stripped", "sha256_pixels", "phash",
		"ocr_text", "ocr_confidence", "width", "height", "filter", "file_name", "separator"}, name)
}
