package neardup

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"rehydrate/dedupe"
	"rehydrate/internal/userfile"
	"rehydrate/internal/word"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset/pictures"
)

// texts are the words of a file of texts.
type texts struct {
	tokens map[string][]string // by the cleaned name of the picture
	unread map[string]bool     // likewise, those whose text could not be read
	used   map[string]bool
	call   func(pictures.Picture) []string // what the texts may call a picture, the first that they have counts
}

// allWords are the words of a text that comes without confidences: all count.
func allWords(text string) []string {
	return dedupe.Tokens([]word.Word{{Text: text, Confidence: 100}})
}

// cleanName makes one name of ./a.jpg and a.jpg.
func cleanName(file string) string { return filepath.ToSlash(filepath.Clean(file)) }

// fit settles what the texts call the pictures of a folder: their names below it or their paths, whichever finds more
// texts. It is one way for all pictures: in a/a/x.jpg below a, one picture's name is the other one's path.
func (t *texts) fit(names []string, folder string) {
	below, paths := 0, 0
	for _, name := range names {
		if t.has(name) {
			below++
		}
		if t.has(filepath.Join(folder, name)) {
			paths++
		}
	}
	t.call = func(p pictures.Picture) []string {
		switch {
		case names == nil: // rows of a Parquet
			return []string{p.Name, p.Path}
		case paths > below:
			return []string{p.Path}
		}
		return []string{p.Name}
	}
}

// of returns the words of a picture: those of the first of its names that has some. known is false where the file does
// not say which words it has.
func (t *texts) of(p pictures.Picture) (words []string, known bool) {
	for _, key := range t.call(p) {
		if t.has(key) {
			t.used[cleanName(key)] = true
			return t.tokens[cleanName(key)], !t.unread[cleanName(key)]
		}
	}
	return nil, false
}

func (t *texts) has(key string) bool {
	_, ok := t.tokens[cleanName(key)]
	return ok && key != ""
}

// unused is how many texts belong to no picture.
func (t *texts) unused() int { return len(t.tokens) - len(t.used) }

func (t *texts) add(file string, tokens []string) error {
	if file == "" {
		return errors.New("it names no file")
	}
	// Which of two texts counts would depend on their order.
	file = cleanName(file)
	if _, twice := t.tokens[file]; twice {
		return fmt.Errorf("%q stands there twice", file)
	}
	t.tokens[file] = tokens
	return nil
}

// readTexts reads a file of texts: lines of JSON with file and text, as `ocr --json` prints them, or a CSV with
// the columns file and text. Where a line has words, those count from the confidence that a run asks for; else
// all words of the text do.
func readTexts(path string) (*texts, error) {
	f, _, err := userfile.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the texts: %w", err)
	}
	defer f.Close()
	return parseTexts(f, path)
}

func parseTexts(r io.Reader, path string) (*texts, error) {
	t := &texts{tokens: map[string][]string{}, used: map[string]bool{}, unread: map[string]bool{}}
	in := bufio.NewReader(r)
	userfile.SkipMark(in)
	head, err := in.Peek(1024)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("read the texts: %s: %w", path, err)
	}
	read := t.readCSV
	if bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")) {
		read = t.readJSON
	}
	if line, err := read(in); err != nil { // the line is the error's
		return nil, &manifest.Problem{File: path, Line: line, Message: "not a file of texts: " + err.Error(),
			Hint: "give lines of JSON with file and text, as ocr --json prints them, or a CSV with the columns file and text"}
	}
	return t, nil
}

func (t *texts) readCSV(r io.Reader) (line int, err error) {
	in := csv.NewReader(r)
	in.ReuseRecord = true
	header, err := in.Read()
	if err != nil && err != io.EOF {
		return 1, err
	}
	column := func(name string) int {
		return slices.IndexFunc(header, func(s string) bool { return strings.EqualFold(strings.TrimSpace(s), name) })
	}
	file, text := column("file"), column("text")
	if file < 0 || text < 0 {
		return 1, errors.New("it is empty, or its first line does not name the columns file and text")
	}
	for {
		record, err := in.Read()
		if err == io.EOF {
			return 0, nil
		}
		if bad, ok := errors.AsType[*csv.ParseError](err); ok {
			return bad.Line, bad.Err
		}
		if err == nil {
			line, _ = in.FieldPos(0)
			err = t.add(record[file], allWords(record[text]))
		}
		if err != nil {
			return line, err
		}
	}
}

// A lineWord is what counts of a word in a line of `ocr --json`. Its other fields are not read, because other programs
// may write other values there.
type lineWord struct {
	Text       string  `json:"text"`
	Confidence float64 `json:"confidence"`
}

func (t *texts) readJSON(r io.Reader) (line int, err error) {
	const longest = 16 << 20 // ocr writes some kilobytes for a picture
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longest)
	for lines.Scan() {
		line++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		// A line of `ocr --json`, or one that has no more than file and text.
		var l struct {
			File  string      `json:"file"`
			Text  *string     `json:"text"`
			Error *string     `json:"error"` // ocr could not read the picture
			Words *[]lineWord `json:"words"`
		}
		err := json.Unmarshal(lines.Bytes(), &l)
		switch {
		case err != nil:
		case l.Words != nil:
			words := make([]word.Word, len(*l.Words))
			for i, w := range *l.Words {
				words[i] = word.Word{Text: w.Text, Confidence: w.Confidence}
			}
			err = t.add(l.File, dedupe.Tokens(words))
		case l.Text != nil:
			err = t.add(l.File, allWords(*l.Text))
		case l.Error != nil:
			err = t.add(l.File, nil)
			t.unread[cleanName(l.File)] = true
		default:
			err = errors.New("it has no text")
		}
		if err != nil {
			return line, err
		}
	}
	return line + 1, lines.Err()
}
