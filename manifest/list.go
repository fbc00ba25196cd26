package manifest

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"rehydrate/internal/unpack"
	"rehydrate/internal/userfile"
	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// ListName is the copy of a list in the workspace of its run.
const ListName = "ids.txt"

// listSuffix ends the name of every list, so that no workspace takes a list for a release of the same name.
const listSuffix = " (list of ids)"

// IsListName reports whether a name is that of a list, as OpenList gives it.
func IsListName(name string) bool { return strings.HasSuffix(name, listSuffix) }

// OpenList opens a list of posts, one id or link a line, as a release with one split, no label and no policy. Behind
// its name stands what it is, where that is not there. The first line may be a header with a usual name of ids. Its
// ManifestDigest is that of what WriteList writes: links, comments and blank lines do not count. It is refused with
// *InFolder where a release.toml lies beside it. What is wrong with its lines is for Check to say. The error is
// *Problems, or the file cannot be read.
func OpenList(ctx context.Context, path, name string, o Options) (*Release, error) {
	if err := alone(path); err != nil {
		return nil, err
	}
	if !IsListName(name) {
		name += listSuffix
	}
	r := newRelease(o)
	r.Name, r.ManifestPath, r.files = name, path, []inputFile{{path: path, format: table.List}}
	r.setSchema(Schema{Name: name})
	for _, field := range fieldNames {
		r.columns[field] = ""
	}
	r.columns["id"], r.numbered = FieldID.String(), true
	if _, err := r.readHeader(nil); err != nil {
		return nil, err
	}
	sum := sha256.New()
	err := r.WriteList(ctx, sum)
	if problems := (*Problems)(nil); errors.As(err, &problems) {
		return r, nil // of a faulty list nothing is stored; a removal need not wait until it is correct
	}
	r.setDigest(nil, hex.EncodeToString(sum.Sum(nil)))
	return r, err
}

// IsList reports whether the release is a list of posts that belongs to no release (OpenList).
func (r *Release) IsList() bool {
	return r.Dir == "" && len(r.files) == 1 && r.files[0].format == table.List
}

// WriteList writes the ids of a list, one a line, as they stand in its copy in a workspace: id, or id/N for an image
// other than the first. No link and no comment of the list is in it, which can hold titles and names.
func (r *Release) WriteList(ctx context.Context, w io.Writer) error {
	for e, err := range r.Entries(ctx) {
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(w, e.Key); err != nil {
			return err
		}
	}
	return nil
}

// IsList reports whether a file is a list of posts, one a line: it has one column, and ids or links in it. A file
// .txt is one whatever it holds, unless that is a table.
func IsList(path string) bool {
	format, known := textFormat(path)
	if !known {
		return false
	}
	found, err := sniff(path, path, format)
	return err == nil && found == table.List
}

// textFormat gives the format that the ending of a text file says, "" for .txt; false for other files.
func textFormat(path string) (f Format, ok bool) {
	if strings.EqualFold(filepath.Ext(table.UnpackedName(path)), ".txt") {
		return "", true
	}
	f, p := table.FormatOf(path)
	return f, p == nil && (f == CSV || f == TSV)
}

// sniff tells the format of a text file from its first two lines with a value, where its name says so or nothing
// (""). A list has one column, in which the second line, or the only one, is an id or a link. at is the file to open.
func sniff(path, at string, named Format) (Format, error) {
	f, _, err := userfile.Open(at)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := unpack.NewReader(f)
	if err != nil {
		return "", &Problem{File: path, Line: 1, Message: err.Error(), Hint: damagedFile}
	}
	defer text.Close()
	in := bufio.NewReaderSize(text, table.MaxLine)
	userfile.SkipMark(in)
	start, _ := in.Peek(table.MaxLine) // an error comes again when the rows are read
	first, last := firstValues(start)
	isJSON := strings.HasPrefix(first, "{") || strings.HasPrefix(first, "[")
	switch {
	case named == "" && isJSON:
		return JSON, nil
	case strings.Contains(first, "\t") && named != CSV:
		return TSV, nil
	case strings.ContainsAny(first, ",;\t"):
		return cmp.Or(named, CSV), nil
	case named == "" || NamesPost(last) && (NamesPost(first) || IsIDHeader(first)):
		return table.List, nil
	}
	return named, nil
}

// firstValues gives the first two values of a list that begins with these bytes; the only one twice.
func firstValues(start []byte) (first, last string) {
	for line := range bytes.Lines(start) {
		value, found := table.ListValue(line)
		switch {
		case !found:
		case first == "":
			first, last = value, value
		default:
			return first, value
		}
	}
	return first, last
}

// NamesPost reports whether a text may stand for a post, or for what people take for one: an id, in any form, also one
// of a comment or one that a spreadsheet damaged, or an address.
func NamesPost(text string) bool {
	_, err := ParsePostID(text)
	return err == nil || IsComment(text) || strings.Contains(text, "://") || strings.Contains(text, "reddit.com/") ||
		damaged.MatchString(value.FoldASCII(text))
}

// IsIDHeader reports whether a text is a usual name of a column of ids or links, in the plural as well.
func IsIDHeader(text string) bool {
	names := append(IDColumns(NameOfID, NameWithID, NameOfAddress, NameInDumps), "name")
	folded := FoldColumn(text)
	return slices.Contains(names, folded) || slices.Contains(names, strings.TrimSuffix(folded, "s"))
}

// isListHeader says whether the first line of a list is its header. A usual name of ids is one, an id is none; of a
// word of the dictionary that could be either, somebody has to decide.
func (o Options) isListHeader(first string) (bool, *Problem) {
	switch {
	case IsIDHeader(first):
		return true, nil
	case o.Known == nil || strings.ContainsAny(first, value.Digits) || !o.Known(value.FoldASCII(first)):
		return false, nil
	}
	return false, &Problem{Message: fmt.Sprintf("the first line, %s, may be a header or the id of a post",
		table.Quote(first)),
		Hint: "write id in its place if it is a header, and t3_" + value.FoldASCII(first) + " if it is an id"}
}

// FirstRow gives the fields of the first line of a CSV, TSV or list that has some, as if it had no header.
func FirstRow(file SourceFile) ([]string, error) {
	file.Bare = true
	r := newRelease(Options{})
	r.files = []inputFile{file.input()}
	rows, err := r.Rows()
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	cells, err := rows.Next()
	return each(cells, func(c Cell) string { return strings.TrimSpace(strings.Clone(c.Text)) }), err
}

func commaOf(f Format) byte {
	if f == TSV {
		return '\t'
	}
	return ','
}
