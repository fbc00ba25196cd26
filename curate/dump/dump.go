// Package dump chooses candidates for a dataset from dumps of Reddit submissions that the user already holds: lines of JSON, as
// Pushshift and its successors write them (RS_2020-06.zst). Ids, months and subreddits come out, never a title, an author, a
// text, a URL or a picture. It opens no connection: what is gone since the dump, a run finds out before it fetches anything.
package dump

import (
	"bufio"
	"bytes"
	"cmp"
	"container/heap"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"rehydrate/internal/draw"
	"rehydrate/internal/unpack"
	"rehydrate/internal/userfile"
	"rehydrate/manifest"
)

// maxLine bounds a line, in bytes. Submissions with long texts and previews have some hundred kilobytes.
const maxLine = 16 << 20

// A Wish says which posts are wanted.
type Wish struct {
	Subreddits []string // whichever case; empty for all
	From, To   Month    // To included; the zero value bounds nothing
	// Host reports whether images of a host may be fetched.
	Host func(name string) bool
	N    int    // how many to choose; 0 for all
	Seed string // of the choice
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
	Lines      int `json:"lines"`
	Damaged    int `json:"damaged"`         // no JSON, no id, no date, or too long
	First      int `json:"first_damaged"`   // line of its file; 0 for none
	Other      int `json:"other_subreddit"` // than those that are wanted, and all profiles
	Outside    int `json:"other_month"`
	Removed    int `json:"removed"`  // the dump itself says so
	NoImage    int `json:"no_image"` // text, video, or a link elsewhere than to a gallery or a host that the policy allows
	Twice      int `json:"twice"`
	Candidates int `json:"candidates"`
	Chosen     int `json:"chosen"`
}

// A Chooser chooses among the lines of dumps.
type Chooser struct {
	Funnel Funnel
	wish   Wish
	folded map[string]bool // subreddits
	seen   map[manifest.PostID]bool
	chosen sample
}

// New returns a chooser that has seen nothing yet.
func New(w Wish) *Chooser {
	c := &Chooser{wish: w, folded: map[string]bool{}, seen: map[manifest.PostID]bool{}}
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
	Self       bool            `json:"is_self"`
	Video      bool            `json:"is_video"`
	Gallery    bool            `json:"is_gallery"`
	Link       string          `json:"link_id"` // of a comment
	Category   any             `json:"removed_by_category"`
	By         any             `json:"removed_by"`
	BannedBy   any             `json:"banned_by"` // these two in dumps of before 2019
	Reason     any             `json:"removal_reason"`
	Meta       struct {
		Deleted bool   `json:"was_deleted_later"`
		Removal string `json:"removal_type"`
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
	if len(c.folded) > 0 && !c.mentions(line) {
		c.Funnel.Other++
		return true, nil
	}
	var s submission
	err = json.Unmarshal(line, &s)
	// A field of another type than expected does not spoil the others.
	if _, otherType := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !otherType {
		return false, nil
	}
	if s.Link != "" {
		return false, ErrComments
	}
	id, problem := manifest.ParsePostID(s.ID)
	created, err := strconv.ParseFloat(strings.Trim(string(s.Created), `"`), 64)
	if problem != nil || err != nil || !(created > 0 && created < 1e11) {
		return false, nil
	}
	when := time.Unix(int64(created), 0).UTC()
	month := Month{when.Year(), when.Month()}
	f := &c.Funnel
	subreddit := manifest.Subreddit(s.Subreddit)
	switch {
	case subreddit == "": // a profile, whose name would be that of a person
		f.Other++
	case len(c.folded) > 0 && !c.folded[fold(s.Subreddit)]:
		f.Other++
	case c.wish.From != Month{} && month.compare(c.wish.From) < 0, c.wish.To != Month{} && month.compare(c.wish.To) > 0:
		f.Outside++
	case s.removed():
		f.Removed++
	case s.Self || s.Video || !s.Gallery && !c.fetchable(cmp.Or(s.Overridden, s.URL)):
		f.NoImage++
	case c.seen[id]:
		f.Twice++
	default:
		c.seen[id] = true
		f.Candidates++
		c.chosen.offer(Candidate{id, month, subreddit}, c.wish.N, c.wish.Seed)
		f.Chosen = len(c.chosen)
	}
	return true, nil
}

// subredditKey stands before a subreddit, with any space before the colon and behind it.
var subredditKey = []byte(`"subreddit"`)

// mentions reports whether a line has a wanted subreddit under the key, wherever: that of the post a crosspost shows, too.
func (c *Chooser) mentions(line []byte) bool {
	for {
		_, rest, found := bytes.Cut(line, subredditKey)
		if !found {
			return false
		}
		line = rest
		value, isKey := bytes.CutPrefix(bytes.TrimLeft(rest, " \t"), []byte(":"))
		name, _, ends := bytes.Cut(bytes.TrimLeft(value, " \t\""), []byte(`"`))
		if isKey && ends && c.folded[fold(string(name))] {
			return true
		}
	}
}

// removed reports whether the dump itself says that the post was taken down, by whomever.
func (s *submission) removed() bool {
	mark := func(text string) bool {
		return text == "[deleted]" || text == "[removed]" || text == "[deleted by user]"
	}
	for _, by := range []any{s.Category, s.By, s.BannedBy, s.Reason} {
		if by != nil && by != "" && by != false {
			return true
		}
	}
	return s.Meta.Deleted || s.Meta.Removal != "" || mark(s.Author) || mark(s.Title) || mark(s.Text)
}

// fetchable reports whether a link leads to a gallery of Reddit's, or to a host whose images may be fetched.
func (c *Chooser) fetchable(link string) bool {
	u, err := url.Parse(link)
	if err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	reddit := host == "reddit.com" || strings.HasSuffix(host, ".reddit.com")
	return c.wish.Host(host) || reddit && strings.HasPrefix(u.Path, "/gallery/")
}

// Chosen returns the candidates that were chosen, in the order of the sample: the first k of n are the sample of k.
func (c *Chooser) Chosen() []Candidate {
	var list []Candidate
	for _, d := range slices.SortedFunc(slices.Values(c.chosen), func(a, b drawn) int { return a.rank.Compare(b.rank) }) {
		list = append(list, d.Candidate)
	}
	return list
}

// Sample returns the n posts of lowest rank, lowest first.
func Sample(ids []manifest.PostID, n int, seed string) []manifest.PostID {
	rank := func(a, b manifest.PostID) int { return draw.RankOf(seed, a).Compare(draw.RankOf(seed, b)) }
	return slices.SortedFunc(slices.Values(ids), rank)[:min(n, len(ids))]
}

// A sample is a heap of the posts of lowest rank, the highest of them first.
type sample []drawn

type drawn struct {
	Candidate
	rank draw.Rank
}

func (s sample) Len() int           { return len(s) }
func (s sample) Less(i, j int) bool { return s[i].rank.Compare(s[j].rank) > 0 }
func (s sample) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *sample) Push(x any)        { *s = append(*s, x.(drawn)) }
func (s *sample) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

// offer takes a candidate if it is among the n of lowest rank; 0 takes all.
func (s *sample) offer(c Candidate, n int, seed string) {
	heap.Push(s, drawn{c, draw.RankOf(seed, c.ID)})
	if n > 0 && len(*s) > n {
		heap.Pop(s)
	}
}
