package features

import (
	"bufio"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"rehydrate/dedupe"
	"rehydrate/internal/userfile"
	"rehydrate/internal/word"
)

// A Dictionary sorts words into categories.
type Dictionary struct {
	Name       string   `json:"name"`       // before the category in the name of a column: liwc, emolex, or what its user calls it
	SHA256     string   `json:"sha256"`     // of the file
	Form       string   `json:"form"`       // how its file is laid out: dic, dicx, emolex, emolex-wide, emolex-one
	Categories []string `json:"categories"` // in the order of the file
	Entries    int      `json:"entries"`    // words, phrases and beginnings, each once
	Skipped    []Skip   `json:"skipped"`    // what the file has beside them, by why
	// Union makes a token count for every entry that it matches, not only for the exact one or the longest beginning.
	Union bool `json:"union"`

	exact, begins map[string][]int // categories by the tokens of an entry, joined by a space; begins are those before a *
	longest       int              // tokens of an entry
}

// A Skip counts lines of one kind that were not read.
type Skip struct {
	Why   string `json:"why"`
	Lines int    `json:"lines"`
	First int    `json:"first"` // line
}

// The limits of a dictionary that is read. LIWC 2015 has 6,500 entries, EmoLex 14,182 words in 141,820 lines.
const (
	maxDictionaryLine = 1 << 20
	maxEntries        = 200_000
	maxCategories     = 1_000
)

// ReadDictionary reads LIWC's .dic or .dicx, or EmoLex by word and category, in many languages, or of one category, and
// tells them apart by what they begin with. Text is UTF-8 or windows-1252. What its lines hold beside entries is
// skipped and counted. Its error names the line; name is how the file is called.
func ReadDictionary(r io.Reader, name string) (*Dictionary, error) {
	d := &Dictionary{exact: map[string][]int{}, begins: map[string][]int{}}
	digest := sha256.New()
	in := &lines{scan: bufio.NewScanner(userfile.Text(io.TeeReader(r, digest)))}
	in.scan.Buffer(nil, maxDictionaryLine)
	err := d.read(in, strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)))
	if errors.Is(in.scan.Err(), bufio.ErrTooLong) {
		err = fmt.Errorf("it is longer than %d bytes", maxDictionaryLine)
		in.n++
	} else if in.scan.Err() != nil {
		err = in.scan.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("read the dictionary %s, line %d: %w", name, in.n, err)
	}
	if len(d.Categories) == 0 || d.Entries == 0 {
		return nil,
			fmt.Errorf("read the dictionary %s: it has no entries: give a LIWC .dic or .dicx, or a file of EmoLex", name)
	}
	d.SHA256 = hex.EncodeToString(digest.Sum(nil))
	return d, nil
}

func (d *Dictionary) read(in *lines, stem string) error {
	first, ok := in.next()
	for ok && strings.TrimSpace(first) == "" {
		first, ok = in.next()
	}
	head, _, _ := strings.Cut(first, "\t")
	comma, _, _ := strings.Cut(first, ",")
	switch {
	case strings.TrimSpace(first) == "%":
		d.Name, d.Form = "liwc", "dic"
		return d.readDic(in)
	case comma == "DicTerm" || comma == "Entry":
		d.Name, d.Form = "liwc", "dicx"
		return d.readDicx(in, first)
	case head == "English Word":
		d.Name, d.Form = "emolex", "emolex-wide"
		return d.readWide(in, strings.Split(first, "\t"))
	}
	d.Name, d.Form = "emolex", "emolex"
	return d.readPairs(in, first, stem)
}

// readDic reads the head, numbers and names of categories between two lines of %, and then the entries.
func (d *Dictionary) readDic(in *lines) error {
	categories := map[int]int{} // by number
	for {
		line, ok := in.next()
		if !ok {
			return errors.New("the head does not end: a second line of % is missing")
		}
		if strings.TrimSpace(line) == "%" {
			break
		}
		// Editions of 2015 indent them, as a tree.
		number, name, _ := strings.Cut(strings.Join(strings.Fields(line), " "), " ")
		n, err := strconv.Atoi(number)
		if err != nil || name == "" {
			if strings.TrimSpace(line) != "" {
				d.skip(in, "a line of the head without number and name")
			}
			continue
		}
		i, err := d.category(name)
		if err != nil {
			return err
		}
		categories[n] = i
	}
	for {
		line, ok := in.next()
		if !ok {
			return nil
		}
		if err := d.dicEntry(in, line, categories); err != nil {
			return err
		}
	}
}

// conditions are parts of an entry that depend on the words around it: <of>131/125 and (02 134)125/464.
var conditions = regexp.MustCompile(`<[^>]*>\S*|\([^)]*\)\S*`)

func (d *Dictionary) dicEntry(in *lines, line string, categories map[int]int) error {
	plain := conditions.ReplaceAllString(line, " ")
	if plain != line {
		d.skip(in, "a category on a condition")
	}
	entry, rest, tabs := strings.Cut(plain, "\t")
	fields := strings.Fields(rest)
	if !tabs { // the numbers are what stands at the end
		words := strings.Fields(plain)
		at := len(words)
		for at > 1 && isNumber(words[at-1]) {
			at--
		}
		entry, fields = strings.Join(words[:at], " "), words[at:]
	}
	var list []int
	for _, field := range fields {
		n, err := strconv.Atoi(field)
		if i, ok := categories[n]; err == nil && ok {
			list = append(list, i)
		} else {
			d.skip(in, "a category that the head lacks")
		}
	}
	return d.add(in, entry, list)
}

func isNumber(s string) bool { _, err := strconv.Atoi(s); return err == nil }

// readDicx reads a CSV with a column for each category, in which any mark but 0 means that the entry belongs to it.
func (d *Dictionary) readDicx(in *lines, first string) error {
	row := func(line string) ([]string, error) { return csv.NewReader(strings.NewReader(line)).Read() }
	head, err := row(first)
	if err != nil {
		return err
	}
	for _, name := range head[1:] {
		if _, err := d.category(strings.TrimSpace(name)); err != nil {
			return err
		}
	}
	if len(d.Categories) != len(head)-1 {
		return errors.New("two columns have one name")
	}
	return d.table(in, func(line string) ([]string, bool) {
		cells, err := row(line)
		return cells, err == nil && len(cells) <= len(head)
	})
}

// readWide reads tab-separated rows: the word, the categories, translations.
func (d *Dictionary) readWide(in *lines, head []string) error {
	for _, name := range head[1:] {
		if !slices.Contains(emotions, strings.ToLower(name)) {
			break // the translations begin
		}
		if _, err := d.category(strings.ToLower(name)); err != nil {
			return err
		}
	}
	most := 1 + len(d.Categories)
	return d.table(in, func(line string) ([]string, bool) {
		cells := strings.Split(line, "\t")
		return cells[:min(most, len(cells))], len(cells) >= most
	})
}

// emotions are EmoLex' categories.
var emotions = []string{"anger", "anticipation", "disgust", "fear", "joy", "negative", "positive", "sadness",
	"surprise", "trust"}

// table reads rows of an entry and a cell for each category.
func (d *Dictionary) table(in *lines, cellsOf func(string) ([]string, bool)) error {
	for {
		line, ok := in.next()
		if !ok {
			return nil
		}
		cells, ok := cellsOf(line)
		if !ok || len(cells) == 0 {
			if line != "" {
				d.skip(in, "a line that does not fit the head")
			}
			continue
		}
		var list []int
		for i, cell := range cells[1:] {
			if cell := strings.TrimSpace(cell); cell != "" && cell != "0" {
				list = append(list, i)
			}
		}
		if err := d.add(in, cells[0], list); err != nil {
			return err
		}
	}
}

// readPairs reads lines of a word, a category and 0 or 1, or of a word and 0 or 1, whose category is the file's name.
func (d *Dictionary) readPairs(in *lines, line, stem string) error {
	for ok := true; ok; line, ok = in.next() {
		cells := strings.Split(strings.TrimSpace(line), "\t")
		last := cells[len(cells)-1]
		if len(cells) < 2 || len(cells) > 3 || last != "0" && last != "1" {
			if strings.TrimSpace(line) != "" {
				d.skip(in, "a line that is not a word, a category and 0 or 1")
			}
			continue
		}
		category := stem
		if len(cells) == 3 {
			category = strings.ToLower(cells[1])
		} else {
			d.Form = "emolex-one"
		}
		i, err := d.category(category)
		if err != nil {
			return err
		}
		// A word that belongs nowhere is not an entry.
		if last == "0" {
			continue
		}
		if err := d.add(in, cells[0], []int{i}); err != nil {
			return err
		}
	}
	return nil
}

// category returns the place of a category, a new one if need be.
func (d *Dictionary) category(name string) (int, error) {
	if i := slices.Index(d.Categories, name); i >= 0 {
		return i, nil
	}
	if len(d.Categories) == maxCategories {
		return 0, fmt.Errorf("it has more than %d categories", maxCategories)
	}
	d.Categories = append(d.Categories, name)
	return len(d.Categories) - 1, nil
}

// add takes an entry: a word or a phrase, with a * at its end the beginning of one. Twice is once, with all categories.
func (d *Dictionary) add(in *lines, entry string, categories []int) error {
	begin, isBegin := strings.CutSuffix(strings.TrimSpace(entry), "*")
	tokens := tokensOf(begin)
	if strings.TrimSpace(entry) == "" {
		return nil
	}
	if len(categories) == 0 || len(tokens) == 0 {
		d.skip(in, "an entry without letters, or in no category")
		return nil
	}
	if d.Entries == maxEntries {
		return fmt.Errorf("it has more than %d entries", maxEntries)
	}
	set := d.exact
	if isBegin {
		set = d.begins
	}
	key := strings.Join(tokens, " ")
	if set[key] == nil {
		d.Entries++
	}
	set[key] = slices.Compact(slices.Sorted(slices.Values(append(set[key], categories...))))
	d.longest = max(d.longest, len(tokens))
	return nil
}

func tokensOf(text string) []string {
	return dedupe.Tokens([]word.Word{{Text: text, Confidence: 100}})
}

func (d *Dictionary) skip(in *lines, why string) {
	i := slices.IndexFunc(d.Skipped, func(s Skip) bool { return s.Why == why })
	if i < 0 {
		i = len(d.Skipped)
		d.Skipped = append(d.Skipped, Skip{Why: why, First: in.n})
	}
	d.Skipped[i].Lines++
}

// count returns how many tokens belong to each category, and marks those that belong to any. The longest run of tokens
// that is an entry counts, with all its tokens.
func (d *Dictionary) count(tokens []string, inAny []bool) []int {
	counts := make([]int, len(d.Categories))
	for at := 0; at < len(tokens); {
		step := 1
		for n := min(d.longest, len(tokens)-at); n > 0; n-- {
			if found := d.match(tokens[at:][:n]); found != nil {
				for _, c := range found {
					counts[c] += n
				}
				for k := range n {
					inAny[at+k] = true
				}
				step = n
				break
			}
		}
		at += step
	}
	return counts
}

// match returns the categories of a run of tokens; nil for no entry.
func (d *Dictionary) match(tokens []string) []int {
	key := strings.Join(tokens, " ")
	found := map[int]bool{}
	take := func(list []int) bool {
		for _, c := range list {
			found[c] = true
		}
		return len(list) > 0 && !d.Union
	}
	done := take(d.exact[key])
	// The beginning of the last token: of at least one letter, the longest first.
	shortest := len(key) - len(tokens[len(tokens)-1])
	for end := len(key); end > shortest && !done && len(d.begins) > 0; end-- {
		done = take(d.begins[key[:end]])
	}
	if len(found) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(found))
}

// lines reads a text line by line, in UTF-8 or windows-1252, without its byte order mark.
type lines struct {
	scan *bufio.Scanner
	n    int
}

func (l *lines) next() (string, bool) {
	if !l.scan.Scan() {
		return "", false
	}
	l.n++
	b := l.scan.Bytes()
	if !utf8.Valid(b) {
		// Every byte is a character there: it cannot fail.
		b, _ = charmap.Windows1252.NewDecoder().Bytes(b)
	}
	return strings.TrimRight(string(b), "\r"), true
}
