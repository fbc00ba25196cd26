package near

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"rehydrate/dedupe"
	"rehydrate/manifest"
	"rehydrate/policy"
)

// look hashes one picture. Whatever is wrong with it is a fault; the error is the context's.
func (f *Search) look(ctx context.Context, p picture, into *looked) error {
	into.item.Tokens = f.tokensOf(p)
	body, fault := p.encoded()
	if into.fault = fault; fault != nil {
		return nil
	}
	into.fault = f.decoded(ctx, body, func(img image.Image) error { return f.hash(img, body, into) })
	return ctx.Err()
}

// decoded decodes a picture when there is memory for it, and hands it on.
func (f *Search) decoded(ctx context.Context, body []byte, use func(image.Image) error) *policy.Fault {
	info, fault := policy.Policy{Images: f.Images}.InspectImage(body)
	if fault != nil {
		return fault
	}
	// Hashing makes a copy of four bytes a pixel.
	weight := min(info.DecodedBytes+4*int64(info.Width)*int64(info.Height), 2*f.Images.MaxDecodedBytes())
	if f.memory.Acquire(ctx, weight) != nil {
		return nil // the caller sees that ctx is done
	}
	defer f.memory.Release(weight)
	img, err := policy.DecodeImage(body)
	if err == nil {
		err = use(img)
	}
	if err != nil {
		return &policy.Fault{Outcome: manifest.Invalid, Reason: "undecodable", Detail: err.Error()}
	}
	return nil
}

// hash fills in what the rule compares. The wide hash costs more than the other one, and only
// pictures without words need it.
func (f *Search) hash(img image.Image, body []byte, into *looked) (err error) {
	if into.item.Hash, err = dedupe.HashImage(img); err != nil {
		return err
	}
	if into.item.Hash.Flat {
		sum := sha256.Sum256(body)
		into.item.Content = hex.EncodeToString(sum[:])
		return nil
	}
	if !f.Rule.ImageOnly && len(into.item.Tokens) == 0 {
		wide, err := dedupe.HashImage256(img)
		if err != nil {
			return err
		}
		into.item.Wide = &wide
	}
	return nil
}

// tokensOf are the words of a picture's text.
func (f *Search) tokensOf(p picture) []string {
	switch {
	case f.Rule.ImageOnly:
		return nil
	case f.texts != nil:
		return f.texts.of(p.keys)
	}
	return allWords(p.text)
}

// allWords are the words of a text that comes without confidences: all count.
func allWords(text string) []string {
	return dedupe.Tokens([]dedupe.Word{{Text: text, Confidence: 100}})
}

// pictureTexts are the words of a file of texts, by the name of the picture.
type pictureTexts struct {
	tokens map[string][]string

	mu   sync.Mutex // guards what follows
	used map[string]bool
}

// of returns the words of a picture that goes by several names.
func (t *pictureTexts) of(keys []string) []string {
	for _, key := range keys {
		if !t.has(key) {
			continue
		}
		key = cleanName(key)
		tokens := t.tokens[key]
		t.mu.Lock()
		defer t.mu.Unlock()
		t.used[key] = true
		return tokens
	}
	return nil
}

func (t *pictureTexts) has(key string) bool {
	_, ok := t.tokens[cleanName(key)]
	return ok && key != ""
}

// cleanName makes one name of ./a.jpg and a.jpg.
func cleanName(file string) string { return filepath.ToSlash(filepath.Clean(file)) }

// unused is how many texts belong to no picture.
func (t *pictureTexts) unused() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.tokens) - len(t.used)
}

func (t *pictureTexts) add(file string, tokens []string) error {
	if file == "" {
		return errors.New("it names no file")
	}
	file = cleanName(file)
	if _, twice := t.tokens[file]; twice {
		return fmt.Errorf("%q stands there twice", file)
	}
	t.tokens[file] = tokens
	return nil
}

// maxTextLine bounds a line of a file of texts: ocr writes some kilobytes for a picture.
const maxTextLine = 16 << 20

// readTexts reads a file of texts: lines of JSON with file and text, as `ocr --json` prints
// them, or a CSV with the columns file and text. Where a line has words, those count from the
// confidence that a run asks for; else all words of the text do.
func readTexts(path string) (*pictureTexts, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		return nil, fmt.Errorf("read the texts: %s: %w", path, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the texts: %w", err)
	}
	defer f.Close()
	return parseTexts(f, path)
}

func parseTexts(r io.Reader, path string) (*pictureTexts, error) {
	t := &pictureTexts{tokens: map[string][]string{}, used: map[string]bool{}}
	in := bufio.NewReader(r)
	head, err := in.Peek(1024)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("read the texts: %s: %w", path, err)
	}
	if bytes.HasPrefix(head, []byte(byteOrderMark)) {
		head = head[len(byteOrderMark):]
		_, _ = in.Discard(len(byteOrderMark)) // they were peeked at
	}
	read := t.readCSV
	if bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")) {
		read = t.readJSON
	}
	if line, err := read(in); err != nil {
		return nil, &manifest.Problem{File: path, Line: line, Message: "not a file of texts: " + err.Error(),
			Hint: "give lines of JSON with file and text, as ocr --json prints them, or a CSV with the columns file and text"}
	}
	return t, nil
}

// byteOrderMark stands first in files of some spreadsheet programs.
const byteOrderMark = "\xef\xbb\xbf"

// readCSV gives the line of an error.
func (t *pictureTexts) readCSV(r io.Reader) (line int, err error) {
	in := csv.NewReader(r)
	in.ReuseRecord = true
	header, err := in.Read()
	if err == io.EOF {
		err = errors.New("it is empty")
	}
	if err != nil {
		return 1, err
	}
	file, text := -1, -1
	for i, name := range header {
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "file":
			file = i
		case "text":
			text = i
		}
	}
	if file < 0 || text < 0 {
		return 1, errors.New("its first line does not name the columns file and text")
	}
	for {
		record, err := in.Read()
		if err == io.EOF {
			return 0, nil
		}
		var bad *csv.ParseError
		if errors.As(err, &bad) {
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

// A textLine is a line of `ocr --json`, or one that has no more than file and text.
type textLine struct {
	File  string  `json:"file"`
	Text  *string `json:"text"`
	Error *string `json:"error"`
	Words *[]struct {
		Text       string  `json:"text"`
		Confidence float64 `json:"confidence"`
	} `json:"words"`
}

// readJSON gives the line of an error.
func (t *pictureTexts) readJSON(r io.Reader) (line int, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxTextLine)
	for lines.Scan() {
		line++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := t.addLine(lines.Bytes()); err != nil {
			return line, err
		}
	}
	return line + 1, lines.Err()
}

func (t *pictureTexts) addLine(b []byte) error {
	var l textLine
	if err := json.Unmarshal(b, &l); err != nil {
		return err
	}
	switch {
	case l.Words != nil:
		var words []dedupe.Word
		for _, w := range *l.Words {
			words = append(words, dedupe.Word{Text: w.Text, Confidence: w.Confidence})
		}
		return t.add(l.File, dedupe.Tokens(words))
	case l.Text != nil:
		return t.add(l.File, allWords(*l.Text))
	case l.Error != nil: // ocr could not read the picture
		return t.add(l.File, nil)
	}
	return errors.New("it has no text")
}
