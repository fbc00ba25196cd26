package manifest

import (
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// A table that is no manifest says by the names of its columns alone what stands beside ids and labels: which image
// of a post a row is about, and that a row is no answer. The rules are here, for tables, lines of JSON and exports
// alike.

// Images reads which image of its post each row of one file is about, from its columns called image, image_index,
// image_number or gallery_index. A column without any number is about something else, such as the names of files.
type Images struct{ columns []*imageColumn }

type imageColumn struct {
	name   string
	number bool     // it holds a number
	word   *Problem // where it first holds something else; nil for nowhere
}

// ImageNamed reports whether a column can say which image a row is about.
func ImageNamed(column string) bool { return slices.Contains(FieldImage.Names(), FoldColumn(column)) }

// Key gives the entry of a row, whose id may be ID/N. fields are those of the row for which ImageNamed is true. The
// problem, at the given place, is that of a row that names two images.
func (m *Images) Key(key Key, fields iter.Seq2[string, Cell], at Problem) (Key, *Problem) {
	named := ""
	if key.Image > 0 {
		named = "the id"
	}
	for name, cell := range fields {
		n, ok := m.read(name, cell, at)
		switch {
		case !ok:
		case named != "" && n != key.Image:
			at.Message, at.Hint = twoImages(named, key, name, n)
			return key, &at
		default:
			key.Image, named = n, table.Quote(name)
		}
	}
	return key, nil
}

// twoImages says that one field of a row names the image of the key, and a column image n of the same post.
func twoImages(named string, key Key, column string, n int) (message, hint string) {
	return fmt.Sprintf("%s names image %d of post %s, and %s image %d",
		named, key.Image, key.ID, table.Quote(column), n), "keep one of them, or correct it"
}

// read gives the number in a cell; false for none.
func (m *Images) read(name string, cell Cell, at Problem) (n int, ok bool) {
	i := slices.IndexFunc(m.columns, func(c *imageColumn) bool { return c.name == name })
	if i < 0 {
		i = len(m.columns)
		m.columns = append(m.columns, &imageColumn{name: name})
	}
	text := cell.Plain()
	n, ok = ParseImage(strings.TrimSuffix(text, ".0")) // programs that know no missing integer write 1.0
	other := cell.Nested || len(cell.List) > 1 || cell.Fault != "" || text != "" && !value.Absent(text)
	c := m.columns[i]
	switch {
	case ok:
		c.number = true
	case other && c.word == nil:
		at.Message = fmt.Sprintf("column %s holds numbers of images and something else", table.Quote(name))
		at.Hint = "it is the image's place in the post's gallery, from 0; call a column of something else by another name"
		c.word = &at
	}
	return n, ok
}

// Mixed gives the problems of columns that have numbers of images and something else, once all rows were read: which of
// the rows are about another image cannot be told.
func (m *Images) Mixed() (all []Problem) {
	for _, c := range m.columns {
		if c.number && c.word != nil {
			all = append(all, *c.word)
		}
	}
	return all
}

// A saying is how a column says that a row is no answer.
type saying int

const (
	saysNothing saying = iota
	byState            // a word for a state
	byEnd              // the reason for which a model's answer ended
	byError            // what went wrong, also in a number
	byWords            // what went wrong: a number is how far something is off
	byFault            // yes
	byFaultWord        // yes in words: a number is how many
	byNoSuccess        // no
)

// flags are the columns that say by yes or no that a row is no answer, without what parts the words.
var flags = map[saying][]string{
	byFault: {"cancelled", "canceled", "draft", "discarded", "skipped", "failed", "refused", "refusal", "rejected",
		"reject",
		"truncated", "incomplete", "unfinished", "invalid", "timedout", "timeout", "aborted", "expired", "excluded",
		"ignored", "fallback", "unanswered"},
	byNoSuccess: {"finished", "submitted", "valid", "validjson", "jsonvalid", "success", "successful", "succeeded",
		"completed", "complete", "answered", "approved", "accepted", "parsed", "ok"},
}

// whatFailed are the words that begin or end the name of a column that says by yes that something failed: parse_failed,
// failed_attention_check. hate.rejected can be a label.
var whatFailed = []string{"failed", "refused", "rejected", "excluded", "discarded", "skipped", "truncated"}

// answerParts are words before such a name: response.cancelled. validity.invalid can be a label.
var answerParts = []string{"answer", "assignment", "completion", "response", "result"}

// asks are the words before the name of a column that says yes or no.
var asks = []string{"is", "has", "was", "had"}

// The last words of the other columns' names, which stand in lower case with a space between them. Programs also write
// some of them as one word.
var (
	stateForm = regexp.MustCompile(`(?:^| )(?:state|outcome)$|status$`)
	endForm   = regexp.MustCompile(`(?:finish|stop|done) ?reason$`)
	errorForm = regexp.MustCompile(`^(?:(?:api|request|response|server|model|validation|parse|parsing|json|last) ?)?` +
		`(?:errors?|exception)(?: ?(?:message|code))?$`)
	wordsForm = regexp.MustCompile(`(?:^| )(?:errors?|exception)` +
		`(?: (?:message|msg|code|type|name|class|details?|text|info))?$`)
	// Names of columns whose numbers are statuses of HTTP: a marital_status can have numbers of its own.
	ofRequests = regexp.MustCompile(`^status$|\b(?:http|https|response|request|api|server|call|` +
		`llm|model|prediction|completion|answer|assignment|annotation|result|run|job|task|batch)\b`)
	// An error of these kinds is one in the post, or in a measurement.
	otherErrors = regexp.MustCompile(`(?:^| )(?:grammar|grammatical|spelling|typing|language|punctuation|logical|` +
		`factual|standard|std|mean|absolute|squared|rounding) errors?$`)
)

// namesCount reports whether the words of a name are of something that is counted: num_skipped, failed_attempts.
func namesCount(words []string) bool {
	last := words[len(words)-1]
	counts := []string{"n", "no", "nr", "num", "number", "count", "total", "times", "sum"}
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(counts, w) }) ||
		strings.HasSuffix(last, "s") && !strings.HasSuffix(last, "ss")
}

// sayingOf gives how a column says that a row is no answer: by the last words of its name.
func sayingOf(column string) saying {
	words := value.Words(column)
	name := strings.Join(words, " ")
	if len(words) > 1 && slices.Contains(answerParts, words[0]) {
		words = words[1:]
	}
	flag := strings.Join(words, "")
	for how, names := range flags {
		if slices.Contains(names, flag) {
			return how
		}
	}
	for _, ask := range asks {
		asked, is := strings.CutPrefix(flag, ask)
		switch {
		case !is:
		case slices.Contains(flags[byFault], asked), errorForm.MatchString(asked):
			return byFault
		case slices.Contains(flags[byNoSuccess], asked):
			return byNoSuccess
		}
	}
	own := value.Words(column[strings.LastIndex(column, ".")+1:])
	fails := len(own) > 1 && (slices.Contains(whatFailed, own[0]) || slices.Contains(whatFailed, own[len(own)-1]))
	switch {
	case stateForm.MatchString(name), name == "answer": // Prodigy's: accept, reject or ignore
		return byState
	case fails && namesCount(own):
		return byFaultWord
	case fails:
		return byFault
	case endForm.MatchString(name):
		return byEnd
	case errorForm.MatchString(name):
		return byError
	case wordsForm.MatchString(name) && !otherErrors.MatchString(name):
		return byWords
	}
	return saysNothing
}

// unanswered are states in which a row is no answer: of people's (Argilla, Label Studio, Prolific, MTurk, Prodigy, the
// page of annotate review), of requests to models, and the outcomes of classify and moderate. Letters alone, in lower
// case.
var unanswered = []string{"draft", "discard", "pending", "skip", "reject", "ignore", "returned", "timedout",
	"awaitingreview", "inprogress", "incomplete", "unfinished", "queued", "running", "empty", "notjson", "unknownlabel",
	"toolarge", "notasked", "noanswer", "unanswered", "ratelimit", "ratelimited", "ratelimitexceeded", "quotaexceeded",
	"toomanyrequests", "throttled", "overloaded", "badrequest", "internalservererror", "badgateway", "serviceunavailable"}

// httpStatus is a failure's status of HTTP that says so: HTTP 500, HTTP/1.1 429 Too Many Requests.
var httpStatus = regexp.MustCompile(`(?i)^http(?:/[0-9.]+)?[ _:-]*[45][0-9]{2}\b`)

// unansweredWords are words of which one says so beside any others, as in parse_error.
var unansweredWords = []string{"discarded", "skipped", "rejected", "ignored", "excluded", "invalid", "timeout",
	"failed",
	"failure", "error", "errored", "cancelled", "canceled", "aborted", "expired", "refused", "refusal", "truncated",
	"blocked", "filtered"}

// denials beside such a word: not rejected, no error, error free.
var denials = []string{"no", "not", "non", "none", "never", "without", "un", "zero", "free"}

// AnswerNamed reports whether a column can say that a row is no answer.
func AnswerNamed(column string) bool { return sayingOf(column) != saysNothing }

// NoAnswer reports whether a field for which AnswerNamed is true says that its row is no answer.
func NoAnswer(column string, cell Cell) bool {
	text := cell.Plain()
	if cell.Null {
		return false
	}
	how := sayingOf(column)
	switch how {
	case byState:
		if code, err := strconv.Atoi(text); err == nil { // of HTTP, where the column is of requests
			return ofRequests.MatchString(strings.Join(value.Words(column), " ")) && code >= 400 && code < 600
		}
		return IsUnanswered(text)
	case byEnd:
		return !value.Absent(text) && !value.IsWholeEnd(text)
	case byFault, byFaultWord:
		yes, ok := yesOrNo(text)
		return yes && ok && (how == byFault || !value.IsDigits(text))
	case byNoSuccess:
		yes, ok := yesOrNo(text)
		return text != "" && !yes && ok
	}
	if text == "" { // an object, or a list of several
		return cell.Nested || len(cell.List) > 0
	}
	if yes, isFlag := yesOrNo(text); isFlag && !yes || value.Absent(text) {
		return false
	}
	// A number with digits after the point is how far something is off, and one of errors is how many there are.
	n, isNumber := value.Number(text)
	isCode := n == float64(int(n)) && how == byError && FoldColumn(column) != "errors"
	return !isNumber || isCode
}

// yesOrNo reads a flag as programs or people write it.
func yesOrNo(text string) (yes, ok bool) {
	if yes, ok := value.Flag(text); ok {
		return yes, true
	}
	return value.YesNo(text)
}

// answered are states in which a row is an answer, in the same spelling.
var answered = []string{"submitted", "complete", "completed", "done", "finished", "ok", "okay", "valid", "success",
	"successful", "succeeded", "accept", "accepted", "approved", "validated", "verified", "reviewed", "answered", "active",
	"final",
	"published", "open", "closed"}

// StateNamed reports whether a column says by a word for a state that a row is no answer.
func StateNamed(column string) bool { return sayingOf(column) == byState }

// IsUnanswered reports whether a state is that of an answer that was not given, or was taken back.
func IsUnanswered(state string) bool {
	words := value.Words(state)
	isIn := func(list []string) func(string) bool {
		return func(w string) bool { return slices.Contains(list, w) }
	}
	return slices.Contains(unanswered, stateLetters(state)) || httpStatus.MatchString(state) ||
		len(words) < 4 && slices.ContainsFunc(words, isIn(unansweredWords)) && !slices.ContainsFunc(words, isIn(denials))
}

// IsAnswered reports whether a state is that of an answer that was given.
func IsAnswered(state string) bool { return slices.Contains(answered, stateLetters(state)) }

// stateLetters are the letters of a state, in lower case.
func stateLetters(state string) string {
	letters := func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}
	return strings.Map(letters, value.Fold(state))
}

// asides are the columns beside ids and labels that the rows of a table have.
type asides struct {
	images, answers []aside
	about           []aside // that may name another thing than the post of the id
	chosen          bool    // somebody named the column of ids: another one says so only by what can be nothing else
	met             int     // columns that were looked at
	numbers         Images
}

type aside struct {
	name  string
	at    int // its place in a row
	kinds *kindsMet
}

// kindsMet are the rows of a column of kinds that are about comments. They count where all values are kinds: elsewhere
// the column is of something else.
type kindsMet struct {
	comments Problems
	other    bool
}

// meet looks at the columns that are new. taken says of a name that it is that of a field or a category.
func (a *asides) meet(columns []string, taken func(string) bool) {
	for at, name := range columns[a.met:] {
		it := aside{name: name, at: a.met + at}
		switch {
		case taken(name):
		case ImageNamed(name):
			a.images = append(a.images, it)
		case AnswerNamed(name):
			a.answers = append(a.answers, it)
		case AboutNamed(name):
			it.kinds = new(kindsMet)
			a.about = append(a.about, it)
		}
	}
	a.met = len(columns)
}

// A Beside judges what stands beside the ids of records that are no rows of a table, such as lines of JSON: which post
// they are about, by the rules of tables. Its zero value has met no record.
type Beside struct {
	fields asides
	names  []string // of the fields so far
}

// Judge says what the fields of a record, of which those count for which AboutNamed is true, say against its id: nil
// for nothing. at is the place of the problem.
func (b *Beside) Judge(id PostID, fields iter.Seq2[string, Cell], at Problem) (p *Problem) {
	cells := make([]Cell, len(b.names))
	for name, cell := range fields {
		i := slices.Index(b.names, name)
		if i < 0 {
			i = len(b.names)
			b.names, cells = append(b.names, name), append(cells, cell)
		}
		cells[i] = cell
	}
	b.fields.meet(b.names, func(string) bool { return false })
	b.fields.judge(id, cells, func(int) Problem { return at }, func(found Problem) {
		if p == nil {
			p = &found
		}
	})
	return p
}

// Comments gives the problems of records that are about comments by fields of kinds, once all were read.
func (b *Beside) Comments() Problems { return b.fields.ofComments() }

// AboutNamed reports whether a column can say that a row is about another thing than the post of its id. One called
// comment can hold anything.
func AboutNamed(column string) bool {
	mark := MarkOf(column)
	return IDNamed(column) || mark != NoMark && (mark != MarkYes || strings.Contains(FoldColumn(column), "is_"))
}

// judge reports what the fields of a row say against its id: that the row is about a comment, or another post.
func (a *asides) judge(id PostID, cells []Cell, place func(cell int) Problem, report func(Problem)) {
	if id == "" { // which was reported
		return
	}
	for _, of := range a.about {
		text := cells[of.at].Plain()
		if text == "" || value.Absent(text) {
			continue
		}
		p := place(of.at)
		p.Message = "column " + table.Quote(of.name) + " says that this row is about a comment, and not about its post"
		p.Hint = "keep the rows about posts; a column of something else goes by another name"
		yes, isFlag := value.YesNo(text)
		mark := MarkOf(of.name)
		switch {
		case mark == MarkKind && (OfComment(text) || LetterOfComments.Is(text)):
			of.kinds.comments.Add(p)
		case mark == MarkKind:
			of.kinds.other = of.kinds.other || !Posts.Has(text) && !TypesOfPosts.Has(text) && !LettersOfPosts.Is(text)
		case mark == MarkYes && isFlag && yes, mark == MarkNo && isFlag && !yes, mark == MarkAddress && IsComment(text),
			mark == MarkID && namesOther(id, text, true):
			report(p)
		case a.namesPost(of, id, cells) && namesOther(id, text, !a.chosen && slices.Contains(IDColumns(NameOfID),
			FoldColumn(of.name))):
			p.Message = "column " + table.Quote(of.name) + " names another post than the id of the row, " + table.Quote(string(id))
			p.Hint = "keep the column that has the ids of the posts, or correct the row"
			report(p)
		}
	}
}

// namesPost reports whether a column has a name of ids, and its address is that of the row's own post: one under url or
// link can lead elsewhere where another column confirms the id.
func (a *asides) namesPost(of aside, id PostID, cells []Cell) bool {
	leads := slices.Contains(IDColumns(NameOfAddress), FoldColumn(of.name))
	return IDNamed(of.name) && !(leads && slices.ContainsFunc(a.about, func(other aside) bool {
		named, strong := PostForm(cells[other.at].Plain())
		return strong && named == string(id)
	}))
}

// namesOther reports whether a text names a post or comment other than the id. plain says that also a text does that
// could be something else; digits alone number rows.
func namesOther(id PostID, text string, plain bool) bool {
	named, strong := PostForm(text)
	return named != string(id) && (strong || plain && named != "" && !value.IsDigits(text))
}

// ofComments gives the rows that columns of kinds say are about comments, once all rows were read.
func (a *asides) ofComments() (all Problems) {
	for _, of := range a.about {
		if !of.kinds.other {
			all.Add(of.kinds.comments.List...)
			all.More += of.kinds.comments.More
		}
	}
	return all
}

// isNone reports whether a row says that it is no answer.
func (a *asides) isNone(cells []Cell) bool {
	return slices.ContainsFunc(a.answers, func(of aside) bool { return NoAnswer(of.name, cells[of.at]) })
}

// imageFields are the fields of a row that name its image.
func (a *asides) imageFields(cells []Cell) iter.Seq2[string, Cell] {
	return func(yield func(string, Cell) bool) {
		for _, of := range a.images {
			if !yield(of.name, cells[of.at]) {
				return
			}
		}
	}
}
