package audit

import (
	"cmp"
	"context"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"rehydrate/audit/caption"
	"rehydrate/internal/page"
	"rehydrate/internal/safely"
	"rehydrate/manifest"
	"rehydrate/policy"
)

// A source is a file that an audit looks at: one of the workspace, of a registered copy, or one that was named.
type source struct {
	where string // for people
	name  string // in the workspace; empty elsewhere
	rel   string // its name below the folder that was named
	size  int64
	open  func() (*os.File, error) // nil for a folder with nothing in it: only its name is judged

	columns  ScanColumns // what the auditor says of its columns
	known    bool        // it is a file of the workspace of which a purge takes rows and images out
	copied   bool        // it lies in a registered copy
	again    bool        // this was closed and stands there again, or was never finished: a purge takes all of it
	recorded string      // the digest that this has of it; empty for none
	next     string      // that of the file by which a removal was replacing it; empty for none
	mayName  bool        // it may name posts that are gone, as lists of outcomes do
	list     bool        // so it may, by all that is in it
	ours     bool        // a record accounts for its words: none of them is of unknown origin

	file *AuditedFile
}

// ofRelease reports whether the file lies where files of the release do: in the workspace or a registered copy.
func (s *source) ofRelease() bool { return s.name != "" || s.copied }

// rowMark stands before the number of a row.
const rowMark = " > row "

// ofNoRow stands in place of a row, for what a table keeps beside its rows.
const ofNoRow = "values that no row has"

// What is said of an id that is found.
const (
	itsRow = "its row"
	itsID  = "its id"
)

// A place says where a leaf lies: file > member > row 17 > column a.b[] > part. Rows count from 1 for people. A value
// that a table keeps, and that is in none of its rows, has a row below 0 of its own.
type place struct {
	src   *source
	path  string // file > member
	table *table // nil outside of tables
	row   int64
	col   *column
	part  string
	label bool   // it names things, and counts not as a text of unknown origin
	again bool   // what stands there stands in a row or member as well, which says whose it is
	text  bool   // it is the whole text of a table, with what is in no row of it
	list  bool   // all in it is a list that may name posts that are gone
	own   string // the entry that the name of a file or member claims; empty where the name may be any number or word
	// unclear says that the name has a number which does not say which image of its post it is.
	unclear bool
	kin     FindingKind
}

func (p place) String() string {
	s := p.path
	if p.table != nil {
		switch {
		case p.row < 0:
			s += " > " + ofNoRow
		case !p.table.whole(p.row):
			s += rowMark + strconv.FormatInt(p.table.shown(p.row)+1, 10)
		}
		if p.col != nil && p.col.name != "" {
			s += " > column " + p.col.shown()
		}
	}
	return s + p.part
}

// lists reports whether the place may name posts that are gone, and digests of their images.
func (p place) lists() bool {
	return (p.src.mayName || p.list) && (p.table == nil || !p.table.parquet) || p.table != nil && p.table.lists
}

// in is the place of a part of the leaf.
func (p place) in(part string) place {
	p.part += " > " + part
	return p
}

// rowHits returns the ids of the row in which a place lies, and the row.
func (p place) rowHits() (hits []hit, row place) {
	// The innermost row speaks first: a table may lie in a cell of another, as a record may in another.
	for ; p.table != nil && len(hits) == 0; p = p.table.outer {
		row = p.table.at(p.row, nil)
		hits = p.table.hitsAbout(p.row)
	}
	return hits, row
}

// hitsOf returns the ids in a row.
func (t *table) hitsOf(row int64) (hits []hit) {
	for _, c := range t.order {
		at, _ := slices.BinarySearchFunc(c.hits, row, func(h hit, row int64) int { return cmp.Compare(h.row, row) })
		for ; at < len(c.hits) && c.hits[at].row == row; at++ {
			hits = append(hits, c.hits[at])
		}
	}
	return hits
}

// claims returns the entries that the place says it is of: by its row, or by the name of its file.
func (p place) claims() (entries []string) {
	hits, _ := p.rowHits()
	for _, h := range hits {
		entries = append(entries, h.entry())
	}
	if len(entries) == 0 && p.own != "" {
		return []string{p.own}
	}
	return entries
}

// A walker turns a source into leaves and hands each to the matcher. A leaf that is looked at on another core gets its
// own.
type walker struct {
	*audit
	ctx    context.Context
	crew   *errgroup.Group // nil for a walker that is at work in it
	left   *atomic.Int64   // what is left of the budget of the source
	found  *atomic.Bool    // the source has a finding
	opened *atomic.Bool    // something of it is open
	depth  int
	carved map[carved]bool // images of a text that were looked at; nil where each is looked at once
	// inexact are those of them that would still be pictures if they had not been read as they were written.
	inexact *[]*sighting
}

// spawn looks at a leaf on a free core; within a leaf, at once. A leaf that waits must own its bytes.
func (w walker) spawn(look func(walker)) {
	crew := w.crew
	w.crew = nil
	if crew != nil {
		crew.Go(func() error { look(w); return nil })
	} else {
		look(w) // a worker that waited for a free worker could wait for ever
	}
}

// scan scans a leaf, whatever it is. What goes wrong with it is a gap. Once the audit ends, nothing is looked at.
func (w walker) scan(p place, all *io.SectionReader) {
	if w.ctx.Err() == nil {
		// A mistake of this program, or of a decoder, costs one leaf.
		w.lost(p, safely.Do(func() error { return w.scanInto(p, all) }))
	}
}

// lost notes what could not be read of a leaf.
func (w walker) lost(p place, err error) {
	if err != nil && w.ctx.Err() == nil {
		w.open(unreadable(p.String(), err))
	}
}

// A column is a column of a table: of a Parquet, a CSV, a database, or a key of JSON.
type column struct {
	name    string
	number  int32                 // of the table's columns, from 1
	ids     bool                  // its name says that it holds post ids
	asked   bool                  // the auditor says so
	ours    bool                  // it is of the workspace, or of a copy
	phash   bool                  // its name, or the auditor, says that it holds perceptual hashes
	numbers bool                  // it has whole numbers
	foreign int                   // values that can be ids of posts of which nothing is known
	telling int                   // of these, those that are built as ids of posts are
	unread  int                   // values that are no ids
	unnamed int                   // of these, those of rows
	first   int64                 // the first row of those
	hits    []hit                 // the other values, by row; once the table is read, those that name its rows
	text    *caption.Text[*known] // of all values, in which captions are searched for; nil for none
	reddit  bool                  // its name says that its ids are Reddit's
	place   bool                  // its name says that it has the places of images in their galleries
	places  []imageAt             // those above 0, and of a list all
	apart   bool                  // of JSON, whose objects say which places belong to which ids
	in      element               // of the value that is being looked at
	also    []hit                 // of hits that name several images, those of all but the first
	whole   int                   // values that are whole numbers
	damaged values                // that a spreadsheet may have made of ids: 12e45 is a number to it
	base36  values                // digits that are the id of a removed post in base 36, as databases keep ids
}

// values counts values of a column of which the same is to be said.
type values struct {
	n     int
	row   int64 // the first
	value string
}

var (
	asNumber = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?[eE]\+?[0-9]+$`)
	// shownNumber is a whole number as programs show it.
	shownNumber = regexp.MustCompile(`^[+0]*([0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)(?:\.0*)?$`)
)

// plainNumber returns the digits of a whole number however it is shown; the text itself if it is none.
func plainNumber(text string) string {
	if m := shownNumber.FindStringSubmatch(text); m != nil {
		return strings.ReplaceAll(m[1], ",", "")
	}
	return text
}

func (v *values) add(row int64, text string) {
	if v.n == 0 {
		v.row, v.value = row, strings.Clone(text)
	}
	v.n++
}

var (
	asWhole = regexp.MustCompile(`^[0-9]+$`)
	// isAnyPath finds a path that is Reddit's, and that other sites have as well.
	isAnyPath = regexp.MustCompile(`(?i)^\s*/?(comments|gallery)/`)
)

// An imageAt is the place of a row's image in its gallery.
type imageAt struct {
	row int64
	apartPlace
}

// A hit is a value of a column that is the id of a known post.
type hit struct {
	row   int64
	in    element // of its row
	post  *evidence
	image int32
	text  bool // not a number
	clear bool // it is an id wherever it stands: a link, t3_, or letters and digits as no word has them
	shape bool // it is the name of an image, or a path as Reddit has them
	named bool // it is the name of an image, and says which one of its post
	alone bool // it can mean its post, which stays, and not the first image of it, which must be gone
	gone  bool // its image must be, or its post; known once the table is read
	lent  bool // a part of the record has it
	key   bool // it is the key under which the record stands
	doubt bool // and an image of its own, or what can be one
}

func (h hit) entry() string { return manifest.Key{ID: h.post.ID, Image: int(h.image)}.String() }

// A table collects what its columns say about posts, and decides at its end which of them hold ids.
type table struct {
	place    // of the table itself
	outer    place
	parquet  bool // its rows are judged as those of a dataset
	database bool // of SQLite
	lists    bool // it may name posts that are gone
	typed    bool // its numbers are not texts
	columns  map[string]*column
	order    []*column
	hasID    bool  // a column that the auditor names as that of the ids
	hasPHash bool  // and as that of the hashes
	searched int   // columns that are searched for captions
	rows     int64 // where there are some, an id that is not known is one of another release
	beside   int64 // values that no row has

	json      bool         // all that follows is of JSON alone
	values    int64        // outermost ones
	records   []records    // all, by row
	row       int64        // of what is being read
	next      int64        // of the next record
	mapped    *mapped      // the object around, where it can have columns
	piece     bool         // the next value, if it is an object, is a part of the record
	holds     bool         // the object has what can be an image
	noted     int          // how many ids, and records with other ones, were read
	lends     []lending    // the ids of the object that is being read, and of those around it
	lent      []lending    // those that parts lend, with the record that each is lent to
	strangers []int64      // the records with ids of posts that are not known
	unclear   []postOfRow  // images that names with unclear numbers may mean
	ids       []apartID    // for which no place of an image was found yet
	places    []apartPlace // for which no id was found yet
	ended     int32        // how many lists had some
	keyed     int          // how many of the objects around have a key that is an id
	other     bool         // the object has the id of a post that is not known
}

func newTable(p place) *table {
	return &table{place: place{src: p.src, path: p.String()}, outer: p, typed: true,
		lists:   p.table != nil && p.table.lists,
		columns: map[string]*column{}}
}

// column returns the column of that name. A nested one is known by its last name: post.id holds ids as id does.
func (t *table) column(name string) *column {
	c := t.columns[name]
	if c == nil {
		// The last column takes the values of all others: they are searched, but say no more which post a row is of.
		if len(t.order) == maxColumns {
			return t.order[maxColumns-1]
		}
		last := manifest.FoldColumn(strings.TrimSuffix(name[strings.LastIndexByte(name, '.')+1:], "[]"))
		last = strings.ReplaceAll(last, "ids", "id")
		says := t.src.columns
		asked := func(want string) bool {
			return want != "" && slices.Contains([]string{name, strings.TrimSuffix(name, "[]")}, listName(want))
		}
		c = &column{name: name, number: int32(len(t.order) + 1), apart: t.json, asked: asked(says.ID),
			ours: t.src.ofRelease(), phash: asked(says.PHash) || last == "phash"}
		t.hasID, t.hasPHash = t.hasID || c.asked, t.hasPHash || asked(says.PHash)
		c.place = slices.Contains(manifest.FieldImage.Names(), last)
		c.ids, c.reddit = c.asked || says.ID == "" && namesIDs(last), strings.Contains(last, "reddit")
		t.columns[name], t.order = c, append(t.order, c)
	}
	return c
}

// isOneWord finds what can be the name of a column where a header or a schema has it.
var isOneWord = regexp.MustCompile(`^[\pL\pN_()\[\]#:?-]{0,40}$`)

// usualNames are those of columns, as manifest.FoldColumn writes them, beside those of ids and of what an entry has.
var usualNames = []string{"", "annotations", "answers", "bytes", "caption", "captions", "columns", "comments",
	"content", "data", "entries", "features", "file", "file_name", "filename", "files", "images", "img", "item", "items",
	"label", "labels", "messages", "meta", "metadata", "name", "ocr_text", "path", "pic", "picture", "pictures", "post",
	"posts", "result", "results", "row", "rows", "src", "submission", "submissions", "test", "text", "texts", "title",
	"train", "url", "urls", "validation", "value", "values"}

// shown is the name of the column as a report has it, which is handed on. It can be the name of a person, such as one
// who labelled, and where a table has no header a text, an image or an address. So a column of an unusual name has its
// number instead, and such a key in JSON is a *.
func (c *column) shown() string {
	if c.asked || c.ours && isOneWord.MatchString(c.name) {
		return c.name
	}
	parts := strings.Split(c.name, ".")
	for i, part := range parts {
		word := strings.TrimRight(part, "[]{}")
		folded := manifest.FoldColumn(word)
		switch {
		case isUsual(folded) && (c.apart || len(parts) <= 4):
		case c.apart:
			parts[i] = "*" + part[len(word):]
		default:
			return strconv.Itoa(int(c.number))
		}
	}
	return strings.Join(parts, ".")
}

// isUsual reports whether a folded name is one that columns have wherever posts and their images are listed.
func isUsual(folded string) bool {
	return namesIDs(folded) || namesIDs(strings.ReplaceAll(folded, "ids", "id")) || slices.Contains(usualNames, folded) ||
		slices.Contains(manifest.FieldImage.Names(), folded) || slices.Contains(manifest.FieldPHash.Names(), folded) ||
		slices.Contains(manifest.FieldSHA256.Names(), folded)
}

// unused returns the row of a value that no row has.
func (t *table) unused() int64 {
	t.beside++
	return -t.beside
}

func (t *table) at(row int64, c *column) place {
	p := t.place
	p.table, p.row, p.col = t, row, c
	return p
}

// matchID notes a short value as what it may be: an id in any usual form, with /n behind it for a later image of a
// gallery, or the name of an image of a post. It reports whether it was an id, of which nothing else need be said.
func (c *column) matchID(w walker, p place, text string, number bool) (isID bool) {
	row := p.row
	key, err := manifest.Key{}, strconv.ErrSyntax
	if len(text) <= 40 || strings.ContainsRune(text, '/') { // of any other text the error would take time
		key, err = manifest.ParseKey(text)
	}
	// In CSV and JSON, numbers are texts.
	if plain := manifest.PostID(plainNumber(text)); c.ids && w.posts[key.ID] == nil && w.posts[plain] != nil {
		key, err = manifest.Key{ID: plain}, nil
	}
	named := false
	// So nobody writes a post alone, and other programs write an image.
	if at := strings.LastIndexAny(text, "/_-"); err != nil && at > 0 && (text[at] == '_' || text[at:] == "/0") {
		n, isNumber := manifest.ParseImage(text[at+1:])
		post, wrong := manifest.ParseKey(text[:at])
		if isNumber && wrong == nil && post.Image == 0 && w.posts[post.ID] != nil {
			if n > 0 && w.posts[post.ID].losesImages() {
				w.noteUnclear(p, post.ID)
				return false
			}
			key, err, named = manifest.Key{ID: post.ID, Image: n}, nil, true
		}
	}
	if err != nil && isImageName.MatchString(path.Ext(text)) {
		if name := w.entryNamed(text); name != "" {
			if w.isUnclear(text, name) && !strings.ContainsAny(text, ",;|") {
				w.noteUnclear(p, w.postOf(name).ID)
				return false
			}
			key, _ = manifest.ParseKey(name)
			named = true
		}
	}
	if number || asWhole.MatchString(text) {
		c.whole++
	}
	if c.place && !c.apart {
		if n, ok := placeIn(text); ok && (n > 0 || c.in.list > 0) {
			c.places = append(c.places, imageAt{row,
				apartPlace{image: int32(n), bare: strings.HasSuffix(c.name, "[]"), element: c.in}})
		}
	}
	e := w.posts[key.ID]
	if e == nil && c.ids && !number {
		if asNumber.MatchString(text) {
			c.damaged.add(row, text)
		}
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			if e := w.posts[manifest.PostID(strconv.FormatInt(n, 36))]; e != nil && e.MustGo {
				c.base36.add(row, text)
			}
		}
	}
	switch {
	case err != nil && !named:
		if c.unnamed == 0 {
			c.first = row
		}
		c.unread++
		if row >= 0 {
			c.unnamed++
		}
	case e == nil:
		c.foreign++
		id := string(key.ID)
		if len(text) > len(id)+1 || len(id) >= 5 && len(id) <= 8 && telling(key.ID) {
			c.telling++
		}
	case w.charge(hitCost) != nil: // who reads the table ends it
	default:
		h := hit{row: row, in: c.in, post: e, image: int32(key.Image), text: !number, named: named}
		longer := !named && len(strings.TrimSpace(text)) > len(h.entry())
		h.shape = named || longer
		h.clear = telling(key.ID) && !number || longer && !isAnyPath.MatchString(text)
		c.hits = append(c.hits, h)
	}
	return err == nil
}

// holdsIDs reports whether the values of the column are ids: its name says so, or most are known ones; of numbers,
// both.
func (c *column) holdsIDs() bool {
	most := len(c.hits) > c.foreign+c.unread
	if c.numbers || c.ids {
		return c.ids && (!c.numbers || most || c.asked)
	}
	// One id many times over is rather a constant than a column of ids.
	posts := map[*evidence]bool{}
	for i := 0; i < len(c.hits) && len(posts) < 3; i++ {
		posts[c.hits[i].post] = true
	}
	return most && len(posts) == 3
}

// sure reports whether a value of the column is the id of its post, and not a word or a number that is one by chance:
// of one that tells nothing by itself, most other values of the column must be ids of the release. same is how many
// values the post has.
func (c *column) sure(t *table, h hit, ids bool, same int) bool {
	switch {
	case h.clear, h.shape && t.src.ofRelease():
		return true
	case !ids:
		return false
	// A number in base 36 is one of very many.
	case telling(h.post.ID), c.asked, c.reddit, t.src.ofRelease():
		return true
	}
	return len(c.hits)-same > c.foreign+c.unread
}

// counts reports whether the column holds whole numbers, most of which are no ids of the release: nothing is said of
// those that are.
func (c *column) counts() bool {
	others := c.foreign + c.unread
	return others > 1 && len(c.hits) <= others && 10*c.whole >= 9*(len(c.hits)+others)
}

// evidenceOn is that on an entry, or on its post; nil for none.
func (a *audit) evidenceOn(entry string) *evidence {
	e := a.postOf(entry)
	if lost := a.removed[entry]; lost != nil && !e.MustGo {
		return lost
	}
	return e
}

// sees notes that a post stands at a place.
func (a *audit) sees(p place, e *evidence) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.named[e] = a.named[e] || !p.lists() && !p.src.ofRelease() && p.src.recorded == ""
}

// ofSeveral reports whether a post has several images, or had when the first one was removed from it for a reason. The
// id of one that has a single image stands for that.
func (e *evidence) ofSeveral(gone manifest.Reason) bool {
	several := gone == policy.LeftGallery || slices.ContainsFunc(e.bare, func(image int) bool { return image > 0 })
	for k := e.content; k != nil && !several; k = k.next {
		several = k.name != string(e.ID)
	}
	return several
}

// ofImages reports whether the rows of a table are those of images, and not of posts: it is one of ours, or says by
// places which images they are of.
func (t *table) ofImages() bool {
	return t.src.ofRelease() || slices.ContainsFunc(t.order, func(c *column) bool { return c.place && c.whole > 0 })
}

// hasKeys reports whether the values of the column are ids of images, and not of posts: some have a number behind.
func (c *column) hasKeys() bool {
	return slices.ContainsFunc(c.hits, func(h hit) bool { return h.image > 0 && !h.named })
}

// namedRows are the rows of the table, and the records around them, that say which images of a post they are of: by the
// name of a file, or a number behind the id.
func (t *table) namedRows(w walker) (map[postOfRow]bool, error) {
	rows := map[postOfRow]bool{}
	return rows, t.eachNamed(w, func(_ *column, of postOfRow, _ int32) error {
		rows[of] = true
		return w.charge(valueCost)
	})
}

// finish judges the rows by the ids in them, and keeps which row names which entry.
func (w walker) finish(t *table) {
	keys := map[*column]bool{} // before other columns tell of which images the ids are
	for _, c := range t.order {
		keys[c] = c.hasKeys()
	}
	named, err := t.namedRows(w)
	if err := cmp.Or(err, t.placeImages(w), t.nameImages(w)); err != nil {
		w.lost(t.place, err)
	}
	t.lendHits()
	images, unclear := t.ofImages(), t.unclearRows()
	for _, c := range t.order {
		if c.text != nil {
			w.recordCaptions(t.at(0, c), c.text)
		}
		ids := c.holdsIDs()
		values, rows := map[*evidence]int{}, c.hits[:0:0]
		for _, h := range c.hits {
			if h.post.MustGo {
				values[h.post]++
			}
		}
		for _, h := range slices.Concat(c.hits, c.also) {
			p, e := t.at(h.row, c), w.evidenceOn(h.entry())
			sure := !e.MustGo || c.sure(t, h, ids, values[h.post])
			h.gone = e.MustGo
			about := ids || h.clear && strings.HasSuffix(c.name, "{}") // a key that is an id says whose value it has
			if h.lent {
				if sure && about {
					rows = append(rows, h)
				}
				continue
			}
			if ids {
				w.sees(p, h.post)
			}
			is := postOfRow{h.row, h.post}
			told := images || keys[c] || h.image > 0 || h.named || named[is]
			alone := !told || h.image == 0 && !h.named && unclear[is]
			h.alone = e.MustGo && !h.post.MustGo && alone && h.post.ofSeveral(e.imageGone)
			if sure && about {
				rows = append(rows, h)
			}
			switch {
			case p.lists():
			case h.alone:
				if sure && h.row >= 0 && len(t.order) > 1 { // or else nothing of an image is there
					add(w.audit, &w.alone, p)
				}
			case e.MustGo && sure && h.row < 0:
				w.finding(FoundRow, h.entry(), p, itsID)
			case e.MustGo && sure:
				w.finding(FoundRow, h.entry(), p, itsRow)
			// In CSV all numbers are texts, so only those under a name of ids may be some.
			case e.MustGo && !c.counts() && (ids || h.shape || h.text && (c.ids || t.typed)):
				w.openIDs(p)
			case !e.MustGo && h.row >= 0 && (ids || h.clear || h.shape) && t.parquet &&
				(t.src.name != "" || t.src.recorded != ""):
				w.holdsRow(e, t.src.copied)
			}
		}
		if c.ids && !t.src.ours && !t.lists && !c.numbers && 2*c.telling > c.foreign+c.unread &&
			(t.rows > 0 || c.asked) {
			w.open(t.String(), "ask whoever has it from where the ids are, and audit it with that release",
				"%d ids of another release in column %s: nobody asked Reddit about them", c.foreign, c.shown())
		}
		if n := c.base36; n.n > 0 && !t.lists {
			w.openIDs(t.at(n.row, c))
		}
		if d := c.damaged; d.n > 0 && !t.src.ours && !t.lists {
			w.open(t.at(d.row, c).String(), "look the ids up where the table came from, and import them as text",
				"%s in column %s can be ids that a spreadsheet took for numbers, the first is %s", page.Counted(d.n,
					"value"), c.shown(), d.value)
		}
		if ids && t.parquet && c.unnamed > 0 {
			w.open(t.String(), "look at these rows", "%d rows have no post id that can be read, the first is row %d",
				c.unnamed, c.first+1)
		}
		// What only happens to name a post does not say whose image the row has.
		slices.SortStableFunc(rows, func(a, b hit) int { return cmp.Compare(a.row, b.row) })
		c.hits = rows
	}
	if t.src.columns.ID != "" && t.parquet && !t.hasID {
		w.open(t.String(), "name another with --id-column", "it has no column %s", t.src.columns.ID)
		w.hasID.Store(true) // all is said
	}
	if t.hasID {
		w.hasID.Store(true)
	}
	if t.hasPHash {
		w.hasPHash.Store(true)
	}
}
