package table

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"rehydrate/manifest/value"
)

// A Literal is what a text says that a program wrote in place of a list or object, as pandas does with a list in a
// cell.
type Literal int

// The literals.
const (
	NoLiteral     Literal = iota
	ListLiteral           // of texts or numbers: ['a', "b"], [1, 2], {'a'}, ['a' 'b'], array(['a'])
	BareList              // of words without quotes: [a, b], {a, b}
	ObjectLiteral         // {'a': 1}, a list in a list, or one with null in it
)

// wrapped is a list as Python writes one that is no plain list.
var wrapped = regexp.MustCompile(`(?s)^(?:np\.|numpy\.)?(?:array|list|set|frozenset|tuple|Index)\((.*?)(?:,\s*dtype=[^)]*)?\)$`)

// ParseLiteral tells what a text says in place of a list or object, in Python's or JSON's form, and gives the items of
// a list.
func ParseLiteral(text string) ([]string, Literal) {
	text = strings.TrimSpace(text)
	if len(text) > 2 && text[len(text)-1] == ')' {
		if found := wrapped.FindStringSubmatch(text); found != nil {
			text = strings.TrimSpace(found[1])
		}
	}
	if len(text) < 2 || !strings.Contains("[] () {}", text[:1]+text[len(text)-1:]) {
		return nil, NoLiteral
	}
	open, inside := text[0], strings.TrimSpace(text[1:len(text)-1])
	if inside == "" {
		return nil, map[byte]Literal{'[': ListLiteral, '(': NoLiteral, '{': ObjectLiteral}[open]
	}
	items, kind := quotedItems(inside)
	hasQuotes := strings.ContainsAny(inside, `'"`)
	switch {
	case kind != NoLiteral && (open == '[' || hasQuotes):
		return items, kind
	case open == '(' || hasQuotes || strings.ContainsAny(inside, "[]{}"):
		return nil, NoLiteral
	}
	items = nil
	for item := range strings.SplitSeq(inside, ",") {
		items = append(items, strings.TrimSpace(item))
	}
	return items, BareList
}

// quotedItems reads texts in quotes and numbers, with commas or spaces between them. It is an ObjectLiteral where
// something else that Python or JSON writes stands among them.
func quotedItems(rest string) (items []string, kind Literal) {
	kind = ListLiteral
	for rest != "" {
		item, length, ok := literalItem(rest)
		switch {
		case !ok:
			return nil, NoLiteral
		case item == nil:
			kind = ObjectLiteral
		default:
			items = append(items, *item)
		}
		between := strings.TrimLeft(rest[length:], " \t\r\n")
		if strings.HasPrefix(between, ":") && rest[length-1] != ':' {
			kind, between = ObjectLiteral, ","+between[1:]
		}
		if between == rest[length:] && between != "" && between[0] != ',' { // 'a''b' is one text of another writer
			return nil, NoLiteral
		}
		rest = strings.TrimLeft(strings.TrimPrefix(between, ","), " \t\r\n")
	}
	return items, kind
}

// literalItem reads the item at the beginning of a text. It is nil for null, and for what is no plain value.
func literalItem(text string) (item *string, length int, ok bool) {
	if text[0] == '[' || text[0] == '{' || text[0] == '(' {
		return nil, nested(text), nested(text) > 0
	}
	start := 0
	if len(text) > 1 && (text[0] == 'u' || text[0] == 'b') && strings.IndexByte(`'"`, text[1]) >= 0 {
		start = 1
	}
	if quote := text[start]; quote == '\'' || quote == '"' {
		said, size, ok := unquote(text[start:])
		return &said, start + size, ok
	}
	word := text
	if end := strings.IndexAny(text, " ,:\t\r\n"); end > 0 {
		word = text[:end]
	}
	switch word {
	case "None", "null", "nan", "NaN":
		return nil, len(word), true
	case "True", "False", "true", "false":
		return &word, len(word), true
	}
	_, isNumber := value.Number(word)
	return &word, len(word), isNumber
}

// nested gives the length of the bracket at the beginning of a text with all that is in it, 0 where it does not close.
func nested(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '[', '{', '(':
			depth++
		case ']', '}', ')':
			depth--
		case '\'', '"':
			_, size, ok := unquote(text[i:])
			if !ok {
				return 0
			}
			i += size - 1
		}
		if depth == 0 {
			return i + 1
		}
	}
	return 0
}

// unquote reads the text in quotes at the beginning of another, with the escapes of Python and JSON, and gives the
// bytes that it took there. Half of a pair of \u escapes is no text.
func unquote(quoted string) (text string, size int, ok bool) {
	var b strings.Builder
	quote, rest := quoted[0], quoted[1:]
	for rest != "" {
		switch {
		case rest[0] == quote:
			return b.String(), len(quoted) - len(rest) + 1, true
		case rest[0] != '\\':
			_, n := utf8.DecodeRuneInString(rest)
			b.WriteString(rest[:n])
			rest = rest[n:]
			continue
		case len(rest) > 1 && rest[1] == '/': // JSON's
			rest = rest[1:]
			continue
		case len(rest) > 11 && rest[1] == 'u' && rest[6:8] == `\u`: // perhaps a pair, as JSON writes emojis
			if pair, err := strconv.Unquote(`"\U` + surrogates(rest[2:6], rest[8:12]) + `"`); err == nil {
				b.WriteString(pair)
				rest = rest[12:]
				continue
			}
		}
		r, _, tail, err := strconv.UnquoteChar(rest, quote)
		if err != nil && len(rest) > 1 && rest[1] != 'u' && rest[1] != 'U' && rest[1] != 'x' { // Python keeps the sign
			b.WriteByte('\\')
			rest = rest[1:]
			continue
		}
		if err != nil || r == utf8.RuneError && !strings.HasPrefix(rest, `\ufffd`) {
			return "", 0, false
		}
		b.WriteRune(r)
		rest = tail
	}
	return "", 0, false
}

// surrogates gives the 8 hex digits of the character that a pair of \u escapes means, "" for none.
func surrogates(high, low string) string {
	h, err := strconv.ParseUint(high, 16, 32)
	l, err2 := strconv.ParseUint(low, 16, 32)
	if err != nil || err2 != nil || h>>10 != 0xd800>>10 || l>>10 != 0xdc00>>10 {
		return ""
	}
	digits := strconv.FormatUint((h-0xd800)<<10+(l-0xdc00)+0x10000, 16)
	return strings.Repeat("0", 8-len(digits)) + digits
}

// ReadList gives the cell as the list that its text stands for, and as it is where its text stands for none.
func (c Cell) ReadList() Cell {
	if c.IsList || c.Null || c.Nested || c.Fault != "" {
		return c
	}
	if items, kind := ParseLiteral(c.Text); kind == ListLiteral || kind == BareList {
		return Cell{IsList: true, List: items}
	}
	return c
}
