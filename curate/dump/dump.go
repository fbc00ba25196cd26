// Package dump chooses candidates for a dataset from dumps of Reddit submissions that the user already holds: lines of
// JSON, as Pushshift and its successors write them (RS_2020-06.zst). Ids, months and subreddits come out, never a
// title, an author, a text, a URL or a picture. It opens no connection: what is gone since the dump, a run finds out
// before it fetches anything.
package dump

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"rehydrate/internal/draw"
	"rehydrate/internal/jsonscan"
	"rehydrate/internal/unpack"
	"rehydrate/internal/userfile"
	"rehydrate/manifest"
	"rehydrate/manifest/value"
	"rehydrate/policy"
)

// maxLine bounds a line, in bytes. Submissions with long texts and previews have some hundred kilobytes.
const maxLine = 16 << 20

// A Wish says which posts are wanted.
type Wish struct {
	Subreddits []string // whichever case; empty for all
	From, To   Month    // To included; the zero value bounds nothing
	// Host reports whether images of a host may be fetched.
	Host  func(name string) bool
	N     int       // how many to choose; 0 for all
	Seed  string    // of the choice
	Today time.Time // by which manifest.PostID.TooNew tells ids of comments; zero where it is not known
}

// A Month is a month of UTC, as in 2018-04.
type Month struct {
	Year  int
	Month time.Month
}

// ParseMonth reads YYYY-MM.
func ParseMonth(text string) (Month, error) {
	t, err := time.Parse("2006-01", text)
	if err != nil {
		return Month{}, fmt.Errorf("%q is not a month: write it as 2018-04", text)
	}
	return Month{t.Year(), t.Month()}, nil
}

func (m Month) String() string { return fmt.Sprintf("%04d-%02d", m.Year, m.Month) }

func (m Month) compare(o Month) int {
	return cmp.Or(cmp.Compare(m.Year, o.Year), cmp.Compare(m.Month, o.Month))
}

// A Candidate is a post that was chosen.
type Candidate struct {
	ID        manifest.PostID
	Month     Month
	Subreddit string // in lower case
}

// A Funnel counts what each filter left. Lines are all of it; each line is in exactly one of the others, in this order.
type Funnel struct {
	Lines     int `json:"lines"`
	Damaged   int `json:"damaged"`         // no JSON, no id, no date, too long, or with the name or address of another post
	First     int `json:"first_damaged"`   // line of its file; 0 for none
	Other     int `json:"other_subreddit"` // than those that are wanted, all profiles, and lines that name none
	Outside   int `json:"other_month"`
	Removed   int `json:"removed"`           // the line says so
	Elsewhere int `json:"removed_elsewhere"` // another line of the post says so
	// NoImage are text, video, and links elsewhere than to a gallery or a host that the policy allows.
	NoImage    int `json:"no_image"`
	Twice      int `json:"twice"`
	Candidates int `json:"candidates"`
	Chosen     int `json:"chosen"`
}

// A Chooser chooses among the lines of dumps.
type Chooser struct {
	Funnel Funnel
	wish   Wish
	folded map[string]bool // subreddits
	found  map[manifest.PostID]Candidate
	names  map[string]string // one copy of each subreddit's name
	gone   map[uint64]bool   // posts that a line says are removed, by the number that an id writes
	later  map[uint64]later  // of other posts, by the same
}

// later are lines of a post in filters behind that of posts that another line says are removed, which may still come.
type later struct{ noImage, twice int32 }

// New returns a chooser that has seen nothing yet.
func New(w Wish) *Chooser {
	c := &Chooser{wish: w, folded: map[string]bool{}, found: map[manifest.PostID]Candidate{},
		names: map[string]string{}, gone: map[uint64]bool{}, later: map[uint64]later{}}
	for _, name := range w.Subreddits {
		c.folded[fold(name)] = true
	}
	return c
}

// fold makes one name of SuicideMeme, suicidememe and r/suicidememe.
func fold(subreddit string) string { return strings.TrimPrefix(strings.ToLower(subreddit), "r/") }

// ErrNoDump says that a file has no line that could be one of a dump.
var ErrNoDump = errors.New("it is not a dump of submissions: no line of it is a JSON object")

// errCut says that a plain dump ends within a line.
var errCut = errors.New("the dump ends within this line: is the file whole?")

// Read takes all lines of a dump, plain or packed. Damaged lines are counted. The error says that the dump itself
// ends too early, or is damaged, and after which line; what came before it has been taken. A file without a line of
// JSON is ErrNoDump.
func (c *Chooser) Read(r io.Reader) error {
	lines, damaged := c.Funnel.Lines, c.Funnel.Damaged
	err := c.readLines(r)
	if (err == nil || errors.Is(err, errCut)) && c.Funnel.Lines-lines == c.Funnel.Damaged-damaged {
		return ErrNoDump
	}
	return err
}

func (c *Chooser) readLines(r io.Reader) error {
	packed, err := unpack.NewWideReader(r)
	if err != nil {
		return err
	}
	defer packed.Close()
	in := bufio.NewReaderSize(packed, 1<<20)
	userfile.SkipMark(in)
	var long []byte
	for n := 1; ; n++ {
		line, tooLong, end := readLine(in, &long)
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")) // a byte order mark
		}
		if len(bytes.TrimSpace(line)) > 0 || tooLong {
			whole := false
			if !tooLong {
				whole, err = c.take(line)
				if err != nil {
					return fmt.Errorf("line %d: %w", n, err)
				}
			}
			c.count(n, whole)
		}
		// What ends a dump without the end of a line is whole, or the download of the dump was cut.
		if errors.Is(end, io.EOF) && len(bytes.TrimSpace(line)) > 0 && (tooLong || !json.Valid(line)) {
			return fmt.Errorf("line %d: %w", n, errCut)
		}
		if errors.Is(end, io.EOF) {
			return nil
		}
		if end != nil {
			return fmt.Errorf("after line %d: %w", n-1, end)
		}
	}
}

func (c *Chooser) count(n int, whole bool) {
	c.Funnel.Lines++
	if whole {
		return
	}
	c.Funnel.Damaged++
	if c.Funnel.First == 0 {
		c.Funnel.First = n
	}
}

// readLine returns the next line, which is valid until the next call. One that is too long is passed over.
func readLine(in *bufio.Reader, long *[]byte) (line []byte, tooLong bool, err error) {
	line, err = in.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		return line, false, err
	}
	*long = append((*long)[:0], line...)
	for err == bufio.ErrBufferFull {
		line, err = in.ReadSlice('\n')
		if len(*long) <= maxLine {
			*long = append(*long, line...)
		}
	}
	return *long, len(*long) > maxLine, err
}

// A submission has the fields that are looked at. Fields differ over the years, and dates may be strings.
type submission struct {
	ID         string          `json:"id"`
	Subreddit  string          `json:"subreddit"`
	Created    json.RawMessage `json:"created_utc"`
	Author     string          `json:"author"`
	Title      string          `json:"title"`
	Text       string          `json:"selftext"`
	URL        string          `json:"url"`
	Overridden string          `json:"url_overridden_by_dest"`
	Self       any             `json:"is_self"`
	Video      any             `json:"is_video"`
	Gallery    any             `json:"is_gallery"`
	Name       string          `json:"name"` // with t1_ that of a comment
	Permalink  string          `json:"permalink"`
	Link       any             `json:"link_id"` // these three only a comment has
	Parent     any             `json:"parent_id"`
	Body       any             `json:"body"`
	Category   any             `json:"removed_by_category"`
	By         any             `json:"removed_by"`
	BannedBy   any             `json:"banned_by"` // these two in dumps of before 2019
	Reason     any             `json:"removal_reason"`
	BannedAt   any             `json:"banned_at_utc"`
	Gone       any             `json:"removed"` // these three as moderators see a post
	Spam       any             `json:"spam"`
	Deleted    any             `json:"deleted"`
	Meta       struct {
		Deleted any `json:"was_deleted_later"`
		Removal any `json:"removal_type"`
	} `json:"_meta"`
}

// ErrComments says that a dump has comments, whose ids would be taken for those of posts.
var ErrComments = errors.New("it has comments (RC_...): give a dump of submissions (RS_...)")

// take counts a line in the first filter that it does not pass, or as a candidate. It reports false for a damaged line.
func (c *Chooser) take(line []byte) (whole bool, err error) {
	line = bytes.TrimSpace(line)
	if line[0] != '{' || line[len(line)-1] != '}' {
		return false, nil
	}
	// Most lines of a dump are of other subreddits. Decoding them would take ten times as long as this look.
	if len(c.folded) > 0 && !c.mayBeOf(line) {
		c.Funnel.Other++
		return true, nil
	}
	var s submission
	err = json.Unmarshal(line, &s)
	// A field of another type than expected does not spoil the others.
	if _, otherType := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !otherType {
		return false, nil
	}
	id, problem := manifest.ParsePostID(s.ID)
	if s.ofComment() || problem == nil && id.TooNew(c.wish.Today) {
		return false, ErrComments
	}
	if problem != nil || !s.isOf(id) {
		return false, nil
	}
	number, _ := strconv.ParseUint(string(id), 36, 64) // an id that is too long is too new
	isWanted := len(c.folded) == 0 || c.folded[fold(s.Subreddit)]
	if s.removed() && (isWanted || strings.TrimSpace(s.Subreddit) == "") {
		c.withdraw(id, number)
	}
	month, ok := s.month()
	if !ok {
		return false, nil
	}
	f := &c.Funnel
	subreddit := manifest.Subreddit(s.Subreddit)
	_, twice := c.found[id]
	switch {
	case subreddit == "" || !isWanted: // that of a profile would be the name of a person
		f.Other++
	case c.wish.From != Month{} && month.compare(c.wish.From) < 0, c.wish.To != Month{} && month.compare(c.wish.To) > 0:
		f.Outside++
	case s.removed():
		f.Removed++
	case c.gone[number]:
		f.Elsewhere++
	case says(s.Self) || says(s.Video) || !says(s.Gallery) && !c.fetchable(cmp.Or(s.Overridden, s.URL)):
		f.NoImage++
		c.later[number] = later{c.later[number].noImage + 1, c.later[number].twice}
	case twice:
		f.Twice++
		c.later[number] = later{c.later[number].noImage, c.later[number].twice + 1}
	case !isOnce(line):
		return false, nil
	default:
		name := cmp.Or(c.names[subreddit], strings.Clone(subreddit))
		c.names[name] = name
		c.found[id] = Candidate{id, month, name}
		f.Candidates++
	}
	f.Chosen = c.most()
	return true, nil
}

// withdraw notes that a post is removed, whatever other lines say of it, and takes it from the candidates. Lines of it
// that later filters did not let pass belong here.
func (c *Chooser) withdraw(id manifest.PostID, number uint64) {
	c.gone[number] = true
	lines := c.later[number]
	delete(c.later, number)
	c.Funnel.NoImage -= int(lines.noImage)
	c.Funnel.Twice -= int(lines.twice)
	c.Funnel.Elsewhere += int(lines.noImage + lines.twice)
	if _, found := c.found[id]; found {
		delete(c.found, id)
		c.Funnel.Candidates--
		c.Funnel.Elsewhere++
		c.Funnel.Chosen = c.most()
	}
}

// most is how many of the candidates are chosen.
func (c *Chooser) most() int {
	if c.wish.N > 0 {
		return min(c.wish.N, len(c.found))
	}
	return len(c.found)
}

// removals are the keys under which a dump says that a post was taken down.
var removals = [][]byte{[]byte(`"removed_by_category"`), []byte(`"removed_by"`), []byte(`"banned_by"`),
	[]byte(`"banned_at_utc"`),
	[]byte(`"removal_reason"`), []byte(`"removed"`), []byte(`"spam"`), []byte(`"deleted"`), []byte(`"_meta"`),
	[]byte(`"was_deleted_later"`), []byte(`"removal_type"`), []byte(`"author"`), []byte(`"title"`), []byte(`"selftext"`)}

// isOnce reports whether no object of a line has a key twice: a removal under the first of two would go unseen. Few
// lines have such a key in several objects, and reading them all again would take as long as the rest.
func isOnce(line []byte) bool {
	several := func(key []byte) bool { return bytes.Count(line, key) > 1 }
	if !slices.ContainsFunc(removals, several) {
		return true
	}
	_, err := jsonscan.Decode(line)
	return err == nil
}

// ofComment reports whether a line is about a comment: by its fullname or address, or by a field that only comments
// have.
func (s *submission) ofComment() bool {
	for _, text := range []string{s.ID, s.Name, s.Permalink} {
		if manifest.IsComment(text) {
			return true
		}
	}
	return says(s.Link) || says(s.Parent) || says(s.Body)
}

// isOf reports whether fullname and address, where a line has them, are those of the post: a line about two posts says
// of neither that it is there.
func (s *submission) isOf(id manifest.PostID) bool {
	if name := strings.TrimSpace(s.Name); name != "" && !strings.EqualFold(name, "t3_"+string(id)) {
		return false
	}
	_, rest, ok := strings.Cut(s.Permalink, "/comments/")
	other, _, _ := strings.Cut(rest, "/")
	return !ok || strings.EqualFold(other, string(id))
}

// month is when the post was made, false for a date that cannot be.
func (s *submission) month() (m Month, ok bool) {
	created, err := strconv.ParseFloat(strings.Trim(string(s.Created), `"`), 64)
	if err != nil || !(created > 0 && created < 1e11) {
		return m, false
	}
	when := time.Unix(int64(created), 0).UTC()
	return Month{when.Year(), when.Month()}, true
}

// says reports whether a field says something: null, false, 0 and an empty text do not, nor a text that means one of
// these.
func says(v any) bool {
	text, isText := v.(string)
	if !isText {
		return v != nil && v != false && v != 0.0
	}
	yes, isFlag := value.Flag(text)
	return !value.Absent(text) && (yes || !isFlag)
}

// subredditKey stands before a subreddit, with any space before the colon and behind it; crosspostKey before posts that
// a post shows, each with a subreddit of its own.
var subredditKey, crosspostKey = []byte(`"subreddit"`), []byte(`"crosspost_parent_list"`)

// mayBeOf reports whether a line may be of a wanted subreddit, or of none: one of none may say that a post of any
// subreddit is removed. The key can be that of a post that the line shows.
func (c *Chooser) mayBeOf(line []byte) bool {
	named := 0
	for rest, found := line, true; found; {
		_, rest, found = bytes.Cut(rest, subredditKey)
		value, isKey := bytes.CutPrefix(bytes.TrimLeft(rest, " \t\r"), []byte(":"))
		if !isKey {
			continue
		}
		quoted, isText := bytes.CutPrefix(bytes.TrimLeft(value, " \t\r"), []byte(`"`))
		name, _, _ := bytes.Cut(quoted, []byte(`"`))
		isPlain := isText && len(bytes.TrimSpace(name)) > 0 && !bytes.Contains(name, []byte(`\`))
		if !isPlain || c.folded[fold(string(name))] {
			return true
		}
		named++
	}
	return named <= bytes.Count(line, crosspostKey)
}

// removed reports whether the dump itself says that the post was taken down, by whomever.
func (s *submission) removed() bool {
	return slices.ContainsFunc([]string{s.Author, s.Title, s.Text}, isMark) ||
		slices.ContainsFunc([]any{s.Category, s.By, s.BannedBy, s.BannedAt, s.Reason, s.Gone, s.Spam, s.Deleted,
			s.Meta.Deleted, s.Meta.Removal}, says)
}

// isMark reports whether a text is what Reddit, or a dump, puts in place of one that is gone.
func isMark(text string) bool {
	if len(text) > 120 { // longer than all marks
		return false
	}
	text = strings.ToLower(strings.TrimSpace(strings.ReplaceAll(text, `\`, "")))
	inside, opens := strings.CutPrefix(text, "[")
	inside, closes := strings.CutSuffix(inside, "]")
	inside = strings.TrimSpace(inside)
	return opens && closes &&
		(slices.Contains(marks, inside) || strings.HasPrefix(inside, "removed by reddit on account of "))
}

var marks = []string{"deleted", "removed", "deleted by user", "removed by reddit", "removed by moderator"}

// fetchable reports whether a link leads to a gallery of Reddit's, or to a host whose images may be fetched.
func (c *Chooser) fetchable(link string) bool {
	u, err := url.Parse(link)
	if err != nil {
		return false
	}
	if policy.IsVideo(u.Path) {
		return false
	}
	host := strings.ToLower(u.Hostname())
	reddit := host == "reddit.com" || strings.HasSuffix(host, ".reddit.com")
	return c.wish.Host(host) || reddit && strings.HasPrefix(u.Path, "/gallery/")
}

// Chosen returns the candidates that were chosen, in the order of the sample: the first k of n are the sample of k.
func (c *Chooser) Chosen() []Candidate {
	var list []Candidate
	for _, id := range Sample(slices.Collect(maps.Keys(c.found)), c.most(), c.wish.Seed) {
		list = append(list, c.found[id])
	}
	return list
}

// Sample returns the n posts of lowest rank, lowest first.
func Sample(ids []manifest.PostID, n int, seed string) []manifest.PostID {
	type ranked struct {
		id   manifest.PostID
		rank draw.Rank
	}
	all := make([]ranked, len(ids))
	for i, id := range ids {
		all[i] = ranked{id, draw.RankOf(seed, id)}
	}
	slices.SortFunc(all, func(a, b ranked) int { return a.rank.Compare(b.rank) })
	chosen := make([]manifest.PostID, min(n, len(ids)))
	for i := range chosen {
		chosen[i] = all[i].id
	}
	return chosen
}
