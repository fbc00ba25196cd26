package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"database/sql"
	"encoding/binary"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	_ "modernc.org/sqlite" // the driver of databases that are looked at

	"rehydrate/pipeline/dataset/scan"
	"rehydrate/pipeline/state"
)

// ScanColumns names the columns of a table that another program wrote. An empty name means this tool's own name
// or a usual one. Only the ids are needed.
type ScanColumns struct {
	ID, Image, SHA256, PHash, Text string
}

var usualColumns = map[string]string{"id": holdsID, "post_id": holdsID, "postid": holdsID, "reddit_id": holdsID, "submission_id": holdsID, "fullname": holdsID,
	"permalink": holdsID, "full_link": holdsID, "link_id": holdsID, "post": holdsID, "t3": holdsID, "image": holdsImage, "sha256": holdsSHA256, "image_sha256": holdsSHA256,
	"phash": holdsPHash, "ocr_text": holdsText, "text": holdsText, "caption": holdsText}

// holds returns what a column of these names holds, and whether the auditor says so.
func (s ScanColumns) holds(names ...string) (holds string, asked bool) {
	for _, name := range names {
		for want, kind := range map[string]string{s.ID: holdsID, s.Image: holdsImage, s.SHA256: holdsSHA256, s.PHash: holdsPHash, s.Text: holdsText} {
			if want != "" && (want == name || want == strings.TrimSuffix(name, "[]") || want+".bytes" == name) {
				return kind, true
			}
		}
	}
	last := strings.TrimSuffix(names[0][strings.LastIndexByte(names[0], '.')+1:], "[]")
	holds = usualColumns[strings.ToLower(last)]
	if holds == holdsID && s.ID != "" {
		holds = ""
	}
	return holds, false
}

// cell hands the value of a column to the matcher.
func (w walker) cell(t *table, c *column, row int64, value []byte) error {
	if len(value) == 0 {
		return nil
	}
	p := t.at(row, c)
	text := len(value) <= 256
	if text && c.saw(w.audit, row, string(value)) && c.holds != holdsSHA256 {
		return nil
	}
	if c.holds == holdsPHash || len(value) == 32 || len(value) == 64 || c.holds == holdsSHA256 {
		w.digestCell(p, c, value)
	}
	if len(value) < 64 && text {
		w.word(p, value)
		return nil
	}
	w.depth++
	if len(value) < 4<<10 {
		return w.look(p, bytes.NewReader(value), int64(len(value)))
	}
	own := bytes.Clone(value)
	return w.spawn(func(w walker) error { return w.look(p, bytes.NewReader(own), int64(len(own))) })
}

// digestCell compares a value that is a digest or a perceptual hash in hex or as bytes.
func (w walker) digestCell(p place, c *column, value []byte) {
	s := &sighting{place: p, what: "its sha256"}
	switch {
	case c.holds == holdsPHash && len(value) == 8:
		s.hashes, s.what = []uint64{binary.BigEndian.Uint64(value)}, "its phash"
	case c.holds == holdsPHash && len(value) == 16:
		h, err := strconv.ParseUint(string(value), 16, 64)
		if err != nil {
			return
		}
		s.hashes, s.what = []uint64{h}, "its phash"
	case len(value) == 32:
		s.digests = []string{hex.EncodeToString(value)}
	case len(value) == 64:
		s.digests = []string{strings.ToLower(string(value))}
	}
	if !p.lists() {
		w.saw(s)
	}
}

// parquet looks at every column of a Parquet, at what its footer says beside, and at bytes that it does not name.
func (w walker) parquet(p place, r io.ReaderAt, size int64) error {
	file, err := scan.Open(r, size)
	if err != nil {
		return errors.Join(err, w.bytes(p, r, size))
	}
	spans, err := file.Unclaimed()
	if err != nil {
		return err
	}
	for _, s := range spans {
		part := p.in(fmt.Sprintf("bytes from %d", s.From))
		w.gap("", p.String(), "%d bytes from offset %d are not referenced by the footer: rows can be hidden there", s.To-s.From, s.From)
		if err := w.bytes(part, io.NewSectionReader(r, s.From, s.To-s.From), s.To-s.From); err != nil {
			return err
		}
	}
	t, numbers := newTable(p), map[*column]bool{}
	t.parquet = true
	for _, name := range file.Columns() {
		c := t.column(listName(name), name)
		for v, err := range file.Values(w.ctx, name) {
			if err == nil && v.Row >= maxRows {
				err = fmt.Errorf("more than %d rows: the rest were not checked", maxRows)
			}
			if err != nil {
				if w.ctx.Err() != nil {
					return w.ctx.Err()
				}
				w.gap("", p.String(), "%v", err)
				break
			}
			t.rows = max(t.rows, v.Row+1)
			if v.IsNumber {
				numbers[c] = true
				w.number(t, c, v.Row, v.Number)
			} else if err := w.cell(t, c, v.Row, v.Bytes); err != nil {
				return err
			}
		}
	}
	w.finish(t, numbers)
	if p.part == "" {
		p.src.file.Rows = int(t.rows)
	}
	for name, note := range file.Notes() {
		part := p.in(name)
		switch {
		case name == "created_by", name == "key of the footer":
			part.label = true
			w.words(part, string(note))
		case t.named[string(note)]: // a bound that is the value of a row
		case strings.HasPrefix(name, "bound "): // cut off anywhere
			w.residueIDs(part, note)
		case name == "key ARROW:schema": // names of columns as bytes
			if err := w.residue(part, note); err != nil {
				return err
			}
		default:
			if err := w.look(part, bytes.NewReader(note), int64(len(note))); err != nil {
				return err
			}
		}
	}
	return nil
}

// number hands a whole number to the matcher.
func (w walker) number(t *table, c *column, row, n int64) {
	c.sawNumber(w.audit, row, n)
	if c.holds == holdsPHash && !t.lists {
		w.saw(&sighting{place: t.at(row, c), what: "its phash", hashes: []uint64{uint64(n)}})
	}
}

// listName is the name of a column as people write it: a.b[] for the elements of a list.
func listName(name string) string {
	for _, inner := range []string{".list.element", ".list.item", ".bag.array_element", ".array"} {
		name = strings.ReplaceAll(name, inner, "[]")
	}
	return name
}

// database looks at every table of a SQLite file, opened from a private copy, and at its free pages and tail.
func (w walker) database(p place, all *io.SectionReader) error {
	dir, err := os.MkdirTemp("", "rehydrate-audit-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "copy.db")
	copied, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer copied.Close()
	if _, err := io.Copy(copied, all); err != nil {
		return err
	}
	unused, what, err := unusedPages(copied, all.Size())
	if err != nil {
		return err
	}
	if what != "" && p.src.name == state.StateFile && p.part == "" {
		w.finding(FoundCopy, "", p.String(), "%s", what)
	}
	if err := w.residue(p.in("free pages"), unused); err != nil {
		return err
	}
	at := url.URL{Scheme: "file", Path: name, RawQuery: url.Values{"mode": {"ro"}, "immutable": {"1"},
		"_pragma": {"trusted_schema(OFF)", "query_only(ON)", "temp_store(MEMORY)", "cell_size_check(ON)"}}.Encode()}
	db, err := sql.Open("sqlite", at.String())
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	tables, ours, err := w.schema(p, db)
	for _, name := range tables {
		err = errors.Join(err, w.databaseTable(p, db, name, ours))
	}
	if ours && p.src.name == "" || err == nil && p.src.name == state.StateFile {
		return err
	}
	p.label = true // what is left between the rows of its pages
	return errors.Join(err, w.bytes(p, copied, all.Size()))
}

// ourDatabase is the application id of state.db.
const ourDatabase = 0x72687964

// schema looks at the texts of a schema and returns the tables that have rows, and whether it is a state database.
func (w walker) schema(p place, db *sql.DB) (tables []string, ours bool, err error) {
	var id int64
	if err := db.QueryRowContext(w.ctx, "PRAGMA application_id").Scan(&id); err != nil {
		return nil, false, err
	}
	rows, err := db.QueryContext(w.ctx, "SELECT type, name, coalesce(sql, ''), rootpage FROM sqlite_schema ORDER BY rowid")
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	for rows.Next() {
		var kind, name, text string
		var root int64
		if err := rows.Scan(&kind, &name, &text, &root); err != nil {
			return nil, false, err
		}
		part := p.in("schema")
		part.label = len(text) < 2000
		w.words(part, text)
		if kind == "table" && root > 0 { // a virtual table keeps its rows in others
			tables = append(tables, name)
		}
	}
	return tables, id == ourDatabase, rows.Err()
}

// naming are the tables of a state database that may name posts that are gone; image and reading hold their content.
var naming = []string{"meta", "entry", "post", "tombstone", "erased_image", "trouble", "result", "result_next", "earlier_result", "log_queue", "copy"}

func (w walker) databaseTable(p place, db *sql.DB, name string, ours bool) error {
	rows, err := db.QueryContext(w.ctx, `SELECT * FROM "`+strings.ReplaceAll(name, `"`, `""`)+`"`)
	if err != nil {
		return err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	own := p.src.name == state.StateFile && p.part == ""
	t, numbers := newTable(p.in("table "+name)), map[*column]bool{}
	// What state.db has in its own tables, checkState judges by the records.
	t.lists = ours && slices.Contains(naming, name) || own && !slices.Contains(w.foreign, "table "+name)
	values, into := make([]any, len(names)), make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	for ; rows.Next(); t.rows++ {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		for i, v := range values {
			c := t.column(names[i])
			switch v := v.(type) {
			case int64:
				numbers[c] = true
				w.number(t, c, t.rows, v)
			case string:
				err = w.cell(t, c, t.rows, []byte(v))
			case []byte:
				err = w.cell(t, c, t.rows, v)
			}
			if err != nil {
				return err
			}
		}
	}
	w.finish(t, numbers)
	return rows.Err()
}

// unusedPages returns what lies in the pages of a database that no table uses, and behind its last page, and says how
// much of it there is; nothing where all of it is zero.
func unusedPages(r io.ReaderAt, size int64) (unused []byte, what string, err error) {
	read := func(at, n int64) []byte {
		block, wrong := readAll(io.NewSectionReader(r, at, n), n, maxHeld)
		err = errors.Join(err, wrong)
		return block
	}
	head := read(0, 100)
	if err != nil {
		return nil, "", fmt.Errorf("its header: %w", err)
	}
	page := int64(binary.BigEndian.Uint16(head[16:]))
	if page == 1 {
		page = 64 << 10
	}
	pages, trunk := int64(binary.BigEndian.Uint32(head[28:])), int64(binary.BigEndian.Uint32(head[32:]))
	if page < 512 || pages*page > size {
		return nil, "", errors.New("its header names more pages than there are")
	}
	used := 0
	keep := func(block []byte) {
		if len(bytes.Trim(block, "\x00")) > 0 && len(unused) < maxHeld {
			used++
			unused = append(unused, block...)
		}
	}
	for n := int64(0); trunk > 0 && trunk <= pages && n < pages && err == nil; n++ {
		list := read((trunk-1)*page, page)
		if err != nil {
			break
		}
		leaves := min(int64(binary.BigEndian.Uint32(list[4:])), page/4-2)
		// SQLite leaves the numbers of pages that it took back into use behind the end of the list.
		rest := list[8+4*leaves:]
		for ; len(rest) >= 4; rest = rest[4:] {
			if int64(binary.BigEndian.Uint32(rest)) <= pages {
				clear(rest[:4])
			}
		}
		keep(list[8+4*leaves:])
		for i := range leaves {
			leaf := int64(binary.BigEndian.Uint32(list[8+4*i:]))
			if leaf < 1 || leaf > pages {
				return nil, "", errors.New("its list of free pages is damaged")
			}
			keep(read((leaf-1)*page, page))
		}
		trunk = int64(binary.BigEndian.Uint32(list))
	}
	tail := size - pages*page
	if tail > 0 && pages > 0 {
		unused = append(unused, read(pages*page, min(tail, maxHeld))...)
	}
	if used > 0 || len(unused) > 0 {
		what = fmt.Sprintf("something that no table accounts for lies in %d of its free pages and in %d bytes behind its last", used, tail)
	}
	return unused, what, err
}

// loose looks at bytes that are no container: tables of text, texts, and anything else.
func (w walker) loose(p place, r io.ReaderAt, size int64, kind string) error {
	if kind == isUTF16 {
		return w.utf16(p, r, size)
	}
	head := make([]byte, min(size, 64<<10))
	if _, err := io.ReadFull(io.NewSectionReader(r, 0, size), head); err != nil {
		return err
	}
	switch {
	case p.part == "" && p.src.name == "" && isTombstones(r, size):
		return nil
	case bytes.ContainsFunc(head, noText):
		return w.bytes(p, r, size)
	}
	w.depth++
	all := func() *io.SectionReader { return io.NewSectionReader(r, 0, size) }
	start := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	if len(start) > 1 && (start[0] == '{' || start[0] == '[') && w.depth <= maxDepth {
		err := w.json(p, all())
		if err == nil {
			return nil
		}
		if w.ctx.Err() != nil {
			return err
		}
	}
	if comma := separator(head, int64(len(head)) == size); comma != 0 && p.table == nil && !p.src.mayName {
		if err := w.csv(p, all(), comma); err == nil || w.ctx.Err() != nil {
			return err
		}
	}
	return w.bytes(p, r, size)
}

// separator returns what separates the columns of a text if it is a table, a line break for a table of one column.
func separator(head []byte, whole bool) rune {
	lines := strings.Split(string(head), "\n")
	if !whole && len(lines) > 1 {
		lines = lines[:len(lines)-1]
	}
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.TrimSpace(l) == "" })
	if len(lines) == 0 {
		return 0
	}
	lines = lines[:min(len(lines), 50)]
	for _, comma := range ",\t;|" {
		n := strings.Count(lines[0], string(comma))
		if n > 0 && len(lines) > 1 && !slices.ContainsFunc(lines, func(l string) bool { return strings.Count(l, string(comma)) < n }) {
			return comma
		}
	}
	if slices.ContainsFunc(lines, func(l string) bool { return len(strings.Fields(l)) > 1 || len(l) > 39 }) {
		return 0
	}
	return '\n'
}

// csv looks at a table of text. A first line of known ids is a row, else it has the names of the columns.
func (w walker) csv(p place, r io.Reader, comma rune) error {
	next := lineReader(r)
	if comma != '\n' {
		in := csv.NewReader(r)
		in.Comma, in.LazyQuotes, in.FieldsPerRecord, in.ReuseRecord = comma, true, -1, true
		next = in.Read
	}
	t := newTable(p)
	var columns []*column
	for {
		record, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if columns == nil {
			first := slices.ContainsFunc(record, func(v string) bool { id, _ := rowEntry(v); return w.posts[id] != nil })
			for i, name := range record {
				if first {
					name = strconv.Itoa(i + 1)
				}
				columns = append(columns, t.column(strings.TrimPrefix(name, "\xef\xbb\xbf")))
			}
			if !first {
				names := p.in("names of columns")
				names.label = true
				w.words(names, strings.Join(record, "\n"))
				continue
			}
		}
		for i, value := range record {
			if i == len(columns) {
				columns = append(columns, t.column(strconv.Itoa(i+1)))
			}
			if err := w.cell(t, columns[i], t.rows, []byte(value)); err != nil {
				return err
			}
		}
		t.rows++
		if err := w.stopped(w.ctx); err != nil {
			return err
		}
	}
	w.finish(t, nil)
	return nil
}

// lineReader reads a table of one column.
func lineReader(r io.Reader) func() ([]string, error) {
	lines := bufio.NewScanner(r)
	return func() ([]string, error) {
		if !lines.Scan() {
			return nil, cmp.Or(lines.Err(), io.EOF)
		}
		return []string{strings.TrimSpace(lines.Text())}, nil
	}
}

// json looks at JSON and JSON Lines: each path of keys is a column, each value or element of the outermost list a row.
func (w walker) json(p place, r io.Reader) error {
	d := json.NewDecoder(bufio.NewReaderSize(r, 1<<20))
	d.UseNumber()
	j := &jsonTable{walker: w, t: newTable(p), numbers: map[*column]bool{}, d: d}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			j.t.records = j.t.rows > 1
			w.finish(j.t, j.numbers)
			return nil
		}
		if err == nil {
			err = j.value(token, "", 0)
		}
		if err != nil {
			return err
		}
		j.t.rows++
	}
}

type jsonTable struct {
	walker
	t       *table
	numbers map[*column]bool
	d       *json.Decoder
	row     bool // the elements of a list are the rows, and it has begun
}

// value looks at the value that a token begins.
func (j *jsonTable) value(token json.Token, path string, depth int) error {
	if depth > 200 {
		return errors.New("nested too deep")
	}
	c := j.t.column(path)
	switch v := token.(type) {
	case string:
		return j.cell(j.t, c, j.t.rows, []byte(v))
	case json.Number:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			j.numbers[c] = true
			j.number(j.t, c, j.t.rows, n)
		}
	case json.Delim:
		rows := v == '[' && !j.row
		j.row = j.row || rows
		for j.d.More() {
			inner, err := j.d.Token()
			if err != nil {
				return err
			}
			below := path + "[]"
			if key, ok := inner.(string); v == '{' {
				if !ok {
					return errors.New("a key that is not a text")
				}
				if err := j.cell(j.t, j.t.column(path+"{}"), j.t.rows, []byte(key)); err != nil {
					return err
				}
				below = strings.TrimPrefix(path+"."+key, ".")
				inner, err = j.d.Token()
				if err != nil {
					return err
				}
			}
			if err := j.value(inner, below, depth+1); err != nil {
				return err
			}
			if rows {
				j.t.rows++
			}
		}
		if rows {
			j.row = false
			j.t.rows = max(j.t.rows-1, 0)
		}
		_, err := j.d.Token()
		return errors.Join(err, j.stopped(j.ctx))
	}
	return nil
}
