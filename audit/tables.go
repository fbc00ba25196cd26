package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"rehydrate/audit/caption"
	"rehydrate/internal/sqlitefile"
	"rehydrate/internal/userfile"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset/scan"
	"rehydrate/pipeline/state"
)

const (
	maxColumns    = 10_000     // that are told apart; JSON whose keys are values has more
	maxCell       = 64 << 10   // bytes of a cell that is searched for captions with the others of its column
	columnsMemory = 32 << 20   // bytes that those of a table take together; the cells of others are searched one by one
	maxLevels     = 200        // of a JSON, each of which has its path in memory
	ourDatabase   = 0x72687964 // the application id of state.db
)

// ScanColumns names the columns of a table that another program wrote. An empty name means this tool's own name
// or a usual one. All other columns are looked at whatever they are called.
type ScanColumns struct {
	ID, PHash string
}

// namesIDs reports whether a column's name, as manifest.FoldColumn writes it, says that the column holds post ids.
func namesIDs(name string) bool {
	// A url is most often that of an image: a column of addresses of posts shows by its values.
	return slices.Contains(manifest.IDColumns(manifest.NameOfID, manifest.NameWithID, manifest.NameInDumps), name)
}

// scanValue hands a value of a table to the matcher: a text, bytes or a number. Others say nothing.
func (w walker) scanValue(t *table, c *column, row int64, value any) {
	p := t.at(row, c)
	var content []byte
	switch v := value.(type) {
	case int64:
		c.numbers = true
		// Post ids are numbers in base 36, and databases keep them so. Others are the digits of an id.
		id := strconv.FormatInt(v, 36)
		if w.posts[manifest.PostID(id)] == nil {
			id = strconv.FormatInt(v, 10)
		}
		c.matchID(w, p, id, true)
		if c.phash && !t.lists {
			w.matchHash(p, uint64(v))
		}
	case float64:
		w.scanValue(t, c, row, int64(v)) // whole numbers of a column with gaps, as pandas has them
	case string:
		content = []byte(v)
	case []byte:
		content = v
	}
	w.gather(t, c, row, content)
	n := len(content)
	// in CSV, those numbers are texts
	if n == 0 || n <= 256 && c.matchID(w, p, strings.TrimSuffix(string(content), ".0"), false) {
		return
	}
	if w.digestCell(p, content) {
		return
	}
	w.depth++
	switch {
	case n < 64:
		w.search(p, content, true, true)
	// Handing a small value to another core costs more than looking at it.
	case n < 4<<10:
		w.scan(p, section(content))
	default:
		w.spawn(func(w walker) { w.scan(p, section(content)) })
	}
}

// gather adds a value to the text of its column: a program that reads pictures writes a word into each row.
func (w walker) gather(t *table, c *column, row int64, content []byte) {
	if len(content) == 0 || len(content) > maxCell || !w.captions() || hasNoText(content) {
		return
	}
	if c.text == nil {
		if t.searched*(caption.TextMemory+w.gone.captions.Len()*caption.TextMemoryEach) > columnsMemory {
			return
		}
		t.searched++
		c.text = w.gone.captions.NewText()
	}
	c.text.Cell(row, unescaped(content))
}

// digestCell compares a value that is a digest or a perceptual hash, in hex or as bytes. It reports whether it can be
// nothing else.
func (w walker) digestCell(p place, value []byte) bool {
	raw := value
	if n := len(value); n == 64 || n == 16 && p.col.phash {
		raw, _ = hex.DecodeString(string(value)) // what is in hex
	}
	switch {
	case p.lists():
	// Whatever the column is called. One of an image that may stay is never a finding, and there are as many as rows.
	case len(raw) == 32 && !w.gone.stays(digest(raw)):
		w.record(&sighting{place: p, what: "its sha256", digests: []digest{digest(raw)}})
	case len(raw) == 8 && p.col.phash:
		w.matchHash(p, binary.BigEndian.Uint64(raw))
	}
	return len(value) == 64 && len(raw) == 32
}

// parquet looks at every column of a Parquet and at what its footer says beside. Bytes that it does not name are a gap.
func (w walker) parquet(p place, all *io.SectionReader) error {
	file, err := scan.Open(all, all.Size())
	if err != nil {
		return errors.Join(err, w.bytes(p, all))
	}
	for _, s := range file.Unclaimed() {
		if n, at := unclaimed(all, s.From, s.To); n > 0 {
			w.open(p.String(), "have it written again",
				"%d bytes from offset %d are not referenced by the footer: rows can be hidden there", n, at)
		}
	}
	t := newTable(p)
	t.parquet = true
	var names []string
	for _, column := range file.Columns {
		names = append(names, column.Name)
		if !column.Valued {
			continue
		}
		c := t.column(listName(column.Name))
		row := int64(0)
		for values, err := range file.Rows(column) {
			if row == maxRows { // what a row names is kept in memory until its images are judged
				err = fmt.Errorf("more than %d rows: the rest were not checked", maxRows)
			}
			if err := cmp.Or(err, w.ctx.Err()); err != nil {
				w.lost(p, err)
				break
			}
			list := byteList{all: len(values)}
			for nth, v := range values {
				data := column.Data(v)
				if n, is := data.(int64); is && len(values) >= fewBytes {
					list.add(n)
				}
				if strings.Contains(c.name, "[]") {
					c.in = element{c.number, int32(nth), int32(len(values))}
				}
				err = w.charge(costOf(data))
				if err != nil {
					break
				}
				w.scanValue(t, c, row, data)
			}
			if err := cmp.Or(err, w.list(t.at(row, c), list)); err != nil {
				w.lost(p, err)
				break
			}
			row++
		}
		t.rows, c.in = max(t.rows, row), element{}
		w.lost(p, w.unusedValues(t, c, file.Unused(column)))
	}
	w.words(p.in("names of columns"), strings.Join(names, "\n"))
	w.finish(t)
	noted := p
	noted.again = true // of a column they have the least value and the greatest one
	for note, err := range file.Notes() {
		if err := cmp.Or(err, w.ctx.Err(), w.charge(costOf(note))); err != nil {
			w.lost(p, err)
			break
		}
		w.words(noted, note)
	}
	if p.part == "" {
		p.src.file.Rows = int(t.rows)
	}
	for _, kv := range file.KeyValues() {
		if kv.Key != "ARROW:schema" { // names of columns as bytes
			w.scan(p.in("key "+kv.Key), section([]byte(kv.Value)))
		}
	}
	return nil
}

// unusedValues looks at the values of a column that the file keeps, and no row has.
func (w walker) unusedValues(t *table, c *column, values iter.Seq2[any, error]) error {
	for data, err := range values {
		if err := cmp.Or(err, w.ctx.Err(), w.charge(rowCost+costOf(data))); err != nil {
			return err
		}
		w.scanValue(t, c, t.unused(), data)
	}
	return nil
}

// listName is the name of a column as people write it: a.b[] for the elements of a list.
func listName(name string) string {
	return strings.NewReplacer(".list.element", "[]", ".list.item", "[]", ".bag.array_element", "[]", ".array",
		"[]").Replace(name)
}

// database looks at every table of a SQLite file. In our own nothing may lie in the free pages or behind the end; of
// another all bytes are searched.
func (w walker) database(p place, all *io.SectionReader) error {
	ours, own := false, p.src.name == state.StateFile && p.part == ""
	err := sqlitefile.Read(w.ctx, all, func(db *sqlitefile.Database) error {
		what, err := db.Unused(w.ctx)
		id, wrong := db.ApplicationID(w.ctx)
		tables, unlisted := db.Tables(w.ctx)
		err, ours = errors.Join(err, wrong, unlisted), id == ourDatabase
		switch {
		case what != "" && own:
			w.changed("", p.String(), doExplain, "%s", what)
		case what != "" && ours:
			w.open(p.String(), "delete it, or VACUUM a copy of it and name that", "%s", what)
		}
		for i, t := range append(tables, sqlitefile.SchemaTable) {
			// What state.db has in its own tables, checkState judges by the records, which have no answers of models.
			// A state database of any workspace names erased posts in its tombstones by right.
			lists := ours && slices.Contains(naming, t.Name) ||
				own && t.Name != "answer" && !slices.Contains(w.foreign, "table "+t.Name)
			err = errors.Join(err, w.databaseTable(p, db, t, i+1, lists))
		}
		return err
	})
	if ours && p.src.name == "" || err == nil && p.src.name == state.StateFile {
		return err
	}
	p.src.mayName = p.src.mayName || own // a damaged one has the same tombstones
	w.raw(p, all)                        // what is left between the rows of its pages
	return err
}

// naming are the tables of a state database that may name posts that are gone; image and reading hold their content.
var naming = []string{"meta", "entry", "post", "tombstone", "former_image", "erased_image", "trouble", "result",
	"earlier_result", "log_queue", "copy"}

func (w walker) databaseTable(p place, db *sqlitefile.Database, from sqlitefile.Table, nth int, lists bool) error {
	name := from.Name
	schema := name == sqlitefile.SchemaTable.Name
	ofRelease := p.src.ofRelease() && isOneWord.MatchString(name)
	if !schema && !ofRelease && !isUsual(manifest.FoldColumn(name)) { // as of columns
		name = strconv.Itoa(nth)
	}
	t := newTable(p.in("table " + name))
	t.database, t.label, t.lists = true, schema, lists
	defer w.finish(t)
	err := w.databaseRows(t, from.Columns, db.Rows(w.ctx, from), rowCost)
	if err != nil {
		return fmt.Errorf("table %s: %w", name, err)
	}
	if len(from.Computed) > 0 {
		if err := w.databaseRows(t, from.Computed, db.RowsComputed(w.ctx, from), computedCost); err != nil &&
			w.ctx.Err() == nil {
			var names []string
			for _, name := range from.Computed {
				names = append(names, t.column(name).shown())
			}
			w.open(t.String(), "look at them by hand", "columns that SQLite computes could not be read (%s): %v",
				strings.Join(names, ", "), err)
		}
	}
	return nil
}

// databaseRows looks at some columns of all rows, each of which costs so much beside its values.
func (w walker) databaseRows(t *table, columns []string, rows iter.Seq2[[]any, error], cost int64) error {
	row := int64(0)
	for values, err := range rows {
		if err == nil {
			err = w.ctx.Err()
		}
		if err == nil {
			err = w.charge(cost)
		}
		for i := 0; i < len(values) && err == nil; i++ {
			// A long default of a column that was added later stands once in the file, and in every row.
			err = w.charge(costOf(values[i]))
			if err == nil {
				w.scanValue(t, t.column(columns[i]), row, values[i])
			}
		}
		if err != nil {
			return err
		}
		row++
		t.rows = max(t.rows, row)
	}
	return nil
}

// costOf returns what a value of a table is charged with.
func costOf(value any) int64 {
	switch v := value.(type) {
	case string:
		return valueCost + int64(len(v))
	case []byte:
		return valueCost + int64(len(v))
	}
	return valueCost
}

// loose looks at bytes that are no container: tables of text, texts, and anything else.
func (w walker) loose(p place, all *io.SectionReader) error {
	head, err := readAll(io.NewSectionReader(all, 0, min(all.Size(), 64<<10)), maxHeld)
	if err != nil {
		return err
	}
	if hasNoText(head) {
		return w.bytes(p, all)
	}
	w.depth++
	start, again := bytes.TrimSpace(userfile.Unmarked(head)), userfile.Text(io.NewSectionReader(all, 0, all.Size()))
	switch {
	// Of a list only texts and images can be wrong, which are found in its bytes.
	case !p.lists() && len(start) > 1 && (start[0] == '{' || start[0] == '[') && w.depth <= maxDepth &&
		w.json(p, again) == nil:
		// It was looked at, but what a program writes as a list of lines is whole only in the file.
		p.label, p.again, p.text = true, true, true
	case !p.lists() && p.table == nil &&
		w.csv(p, userfile.Text(io.NewSectionReader(all, 0, all.Size())), w.separator(p, all)) == nil:
		if noUTF8(head) > int64(len(head)/3) {
			return errEncoding
		}
		written, err := mayBeWritten(all)
		if err != nil || !written && !mayBePacked(bufio.NewReaderSize(io.NewSectionReader(all, 0, all.Size()), 64<<10)) {
			return err
		}
		p.label, p.again, p.text = true, true, true // what lies over lines is whole only in the file, whatever separates them
	}
	return w.bytes(p, all)
}

// mayBePacked reports whether a text has a run of letters that is as long as a line of base64, since words are shorter,
// or escapes, a soft break, at which its lines do not end, or what a terminal acts on, with separators of columns in
// it.
func mayBePacked(in io.ByteReader) bool {
	const manyEscapes = 64
	last, escapes := byte(0), 0
	for letters := 0; letters < minLine && escapes < manyEscapes; {
		b, err := in.ReadByte()
		if err != nil {
			return false
		}
		if last == '=' && (b == '\n' || b == '\r') || b == escapeKey || b == backspace {
			return true
		}
		if last == '\\' && (isOctal[b] || b == 'x' || b == 'u') || b == 0xc2 { // which half of the bytes are as letters
			escapes++
		}
		last = b
		letters++
		if !isPacked[b] {
			letters = 0
		}
	}
	return true
}

// separator returns what separates the columns of a text if its name or its first records say that it is a table,
// else 0, by which no reader of tables reads.
func (w walker) separator(p place, all *io.SectionReader) rune {
	const enough = 64 << 10
	most := p.atOnce(maxImage)
	in := bufio.NewReaderSize(userfile.Text(io.NewSectionReader(all, 0, min(all.Size(), most))), enough)
	return separatorOf(path.Ext(p.path), outlines(in, enough, all.Size() <= most))
}

// outlines returns the first records of a text, however long they are, with the first bytes of each cell and nothing of
// what is quoted. It reads so many bytes, and more for the first records; whole says that the text ends where its
// reader does.
func outlines(in io.ByteReader, enough int, whole bool) (records []string) {
	const cellLen, first, most = 64, 5, 50
	var line []byte
	quoted, begins, cell := false, true, 0
	for n := 0; len(records) < most && (n < enough || len(records) < first); n++ {
		c, err := in.ReadByte()
		switch {
		case err != nil && whole && !quoted:
			return append(records, string(line))
		case err != nil:
			return records
		case c == '"' && (quoted || begins): // one that is doubled ends a part, and begins the next
			quoted, begins = !quoted, quoted
		case quoted:
		case c == '\n':
			records, line, begins, cell = append(records, string(line)), line[:0], true, 0
		case strings.IndexByte(separators, c) >= 0:
			line, begins, cell = append(line, c), true, 0
		default:
			begins = false
			cell++
			if cell <= cellLen {
				line = append(line, c)
			}
		}
	}
	return records
}

const separators = ",\t;|"

// isDataAddress finds the beginning of an image as an address has it, in which nothing separates columns.
var isDataAddress = regexp.MustCompile(`data:[a-z]+/[a-z0-9.+-]+;base64,`)

// separatorOf returns what separates the columns of a text with these first records, in a file of a name that ends so:
// what the first record has and no later one has less of. A file that is a table by its name may have titles above it.
func separatorOf(ext string, records []string) rune {
	ext = strings.ToLower(ext)
	isTable := slices.Contains([]string{".csv", ".tsv", ".tab"}, ext)
	lines := make([]string, len(records))
	for i, l := range records {
		lines[i] = isDataAddress.ReplaceAllString(l, "")
	}
	first := slices.IndexFunc(lines, func(l string) bool { return !isEmpty(l) })
	if isTable && ext != ".tsv" && first >= 0 && !strings.ContainsAny(lines[first], separators+" ") {
		return ',' // of one column
	}
	if isTable {
		lines = slices.DeleteFunc(lines, func(l string) bool { return !strings.ContainsAny(l, separators) })
	}
	for _, titles := range []bool{false, isTable} {
		for _, comma := range separators {
			if separates(comma, lines, titles) {
				return comma
			}
		}
	}
	if ext == ".tsv" && len(lines) == 0 && first >= 0 && !strings.Contains(records[first], " ") {
		return '\t' // of one column
	}
	return 0
}

// separates reports whether a sign separates the columns of all lines, or if there are titles, of all from the first
// one on that has it.
func separates(comma rune, lines []string, titles bool) bool {
	count := func(l string) int { return strings.Count(l, string(comma)) }
	most := 0
	for _, l := range lines {
		most = max(most, count(l))
	}
	lines = slices.DeleteFunc(slices.Clone(lines), func(l string) bool {
		allQuoted := comma == '\t' && count(l) == most // and nothing but tabs between
		return isEmpty(l) && !allQuoted
	})
	if titles {
		lines = lines[max(0, slices.IndexFunc(lines, func(l string) bool { return count(l) > 0 })):]
	}
	return len(lines) > 1 && count(lines[0]) > 0 &&
		!slices.ContainsFunc(lines, func(l string) bool { return count(l) < count(lines[0]) })
}

func isEmpty(l string) bool { return strings.TrimSpace(l) == "" }

// csv looks at a table of text. A first line of known ids is a row, else it has the names of the columns.
func (w walker) csv(p place, r io.Reader, comma rune) error {
	pieces := &piecemeal{Reader: newQuotesReader(r, byte(comma)), most: p.atOnce(maxImage)}
	pieces.renew()
	in := csv.NewReader(pieces)
	in.Comma, in.LazyQuotes, in.FieldsPerRecord, in.ReuseRecord = comma, true, -1, true
	t := newTable(p)
	t.typed = false
	var columns []*column
	// Of the cells, row by row: a table can have a word of a text in each column, and a text without quotes is cut at its
	// commas.
	var across *caption.Text[*known]
	if w.captions() {
		across = w.gone.captions.NewText()
	}
	named := func(v string) bool { return namesIDs(manifest.FoldColumn(v)) }
	known := func(v string) bool { key, _ := manifest.ParseKey(strings.TrimSpace(v)); return w.posts[key.ID] != nil }
	for record, err := in.Read(); !errors.Is(err, io.EOF); record, err = in.Read() {
		if err := cmp.Or(err, w.spent(), w.ctx.Err()); err != nil {
			return err
		}
		pieces.renew()
		// Titles may stand before the names of the columns, and lists of ids often have none.
		late := t.rows < 10 && slices.ContainsFunc(record, named) &&
			!slices.ContainsFunc(columns, func(c *column) bool { return c.ids })
		if late || columns == nil && !slices.ContainsFunc(record, known) {
			columns = nil
			for _, name := range record {
				columns = append(columns, t.column(strings.TrimSpace(name)))
			}
			w.words(p.in("names of columns"), strings.Join(record, "\n"))
			continue
		}
		for i, value := range record {
			if i == len(columns) {
				columns = append(columns, t.column(strconv.Itoa(i+1)))
			}
			w.scanValue(t, columns[i], t.rows, strings.TrimSpace(value))
			if across != nil && len(value) <= maxCell {
				across.Cell(t.rows, unescaped([]byte(value)))
			}
		}
		t.rows++
	}
	if across != nil {
		w.recordCaptions(t.at(0, nil), across)
	}
	w.finish(t)
	if t.rows == 0 {
		return errors.New("it has no rows, and so may be any text")
	}
	return nil
}

// json looks at JSON and JSON Lines: each path of keys is a column, each record a row.
func (w walker) json(p place, r io.Reader) (err error) {
	pieces := &piecemeal{Reader: r, most: p.atOnce(maxImage)}
	d := &jsonPieces{json.NewDecoder(pieces), pieces}
	// A float64 would round large numbers, and ids in base 36 are large.
	d.UseNumber()
	t := newTable(p)
	t.json = true
	for ; err == nil && d.More(); t.values++ {
		t.rows++
		t.ids, t.places, t.ended = t.ids[:0], t.places[:0], 0
		err = w.beginRecord(t, -1, t.values, true, false)
		if err == nil {
			_, err = w.value(t, d, "", 0, false)
		}
	}
	if _, end := d.Token(); err != nil || !errors.Is(end, io.EOF) {
		return cmp.Or(err, end)
	}
	t.rows-- // the id of a single object is hardly that of a post
	w.finish(t)
	return nil
}

// jsonPieces reads JSON whose tokens are each no longer than a piece.
type jsonPieces struct {
	*json.Decoder
	pieces *piecemeal
}

func (d *jsonPieces) More() bool {
	d.pieces.renew()
	return d.Decoder.More()
}

func (d *jsonPieces) Token() (json.Token, error) {
	d.pieces.renew()
	return d.Decoder.Token()
}

// value looks at the next value of a JSON and all in it, and returns it if it is no list or object. Unless it is listed
// in another, its elements are those of the outermost list.
func (w walker) value(t *table, d *jsonPieces, path string, level int, listed bool) (json.Token, error) {
	token, err := d.Token()
	err = cmp.Or(err, w.spent(), w.ctx.Err())
	part := t.piece
	t.piece = false
	switch v := token.(type) {
	case string:
		err = cmp.Or(err, w.scanMember(t, t.column(path), v, v))
	case json.Number:
		text := plainNumber(string(v))
		if n, wrong := strconv.ParseInt(text, 10, 64); wrong == nil { // ids have no fraction
			err = cmp.Or(err, w.scanMember(t, t.column(path), text, n))
		}
	case nil: // null
		if err == nil && t.column(path).ids && t.listed() {
			err = w.strange(t)
		}
	case json.Delim:
		if level == maxLevels {
			return nil, errors.New("nested too deep")
		}
		if v == '[' {
			return nil, w.elements(t, d, path, level, listed)
		}
		row, held, lends := t.row, t.holds, len(t.lends)
		t.holds = false
		if part {
			err = w.beginRecord(t, row, 0, false, true)
		}
		strangers := len(t.strangers)
		err = cmp.Or(err, w.members(t, d, path, level, listed), w.lend(t, lends, row))
		if part && isPost.MatchString(path) && slices.Contains(t.strangers[strangers:], t.row) { // what is beside it is of it
			t.row = row
			err = cmp.Or(err, w.strange(t))
		}
		t.row, t.holds = row, t.holds || held
		return nil, err
	}
	return token, err
}

// members is value for the members of an object. All of them are in its record, but where the keys count: each value
// under one is a record of its own, as an element of a list.
func (w walker) members(t *table, d *jsonPieces, path string, level int, listed bool) (err error) {
	around, columns := t.other, t.mapped
	t.other = false
	row, allIDs, allPlaces := t.row, len(t.ids), len(t.places)
	var own mapped   // where its members are columns
	var column count // where it is one
	for err == nil && d.More() {
		var token json.Token
		token, err = d.Token()
		key, _ := token.(string)
		ids, places := len(t.ids), len(t.places)
		keys := t.column(path + "{}")
		known := len(keys.hits)
		err = cmp.Or(err, w.scanMember(t, keys, key, key))
		t.mapped = nil
		switch {
		case err != nil:
		case len(keys.hits) > known: // what is in the value is of that post
			err = w.beginRecord(t, row, 0, false, false)
			keys.hits[known].row, keys.hits[known].key = t.row, true
			t.lends = t.lends[:len(t.lends)-1]
			if len(t.ids) > ids {
				t.ids[ids].key = true
			}
			t.keyed++
			if err == nil {
				_, err = w.value(t, d, memberPath(path, key), level+1, listed)
			}
			t.keyed--
			t.row = row
			err = cmp.Or(err, w.unite(t, ids, places, false))
		case isOther(key):
			err = w.beginRecord(t, row, 0, false, false)
			err = cmp.Or(err, w.strange(t))
			if err == nil {
				_, err = w.value(t, d, memberPath(path, key), level+1, listed)
			}
			t.row = row
		case isCount.MatchString(key):
			err = w.counted(t, d, path, level, listed, key, columns, &column)
			t.row = row
		default:
			t.mapped, t.piece = &own, true
			_, err = w.value(t, d, memberPath(path, key), level+1, listed)
		}
	}
	t.mapped = columns
	if column.n > 0 {
		t.countEnds(allIDs, allPlaces, column)
	}
	if columns != nil && columns.n == 0 && column.plain {
		*columns = mapped{column.first, int64(column.n)}
	}
	_, end := d.Token()
	other := t.other
	t.other = around
	return cmp.Or(err, end, w.unite(t, allIDs, allPlaces, other))
}

// A count is of the members of an object whose keys count.
type count struct {
	n     int
	list  int32 // their number as that of a list
	first int64 // the record of the first one
	plain bool  // they are 0, 1 and on, and no lists or objects with ids
}

// counted is value for a member whose key counts. In the next column of an object of columns it is in the record that
// the first column has for the key.
func (w walker) counted(t *table, d *jsonPieces, path string, level int, listed bool, key string, columns *mapped,
	c *count) error {
	nth, err := strconv.ParseInt(key, 10, 32)
	ids, places := len(t.ids), len(t.places)
	if columns != nil && nth < columns.n {
		t.row = columns.first + nth
	} else {
		t.rows++
		err = cmp.Or(err, w.beginRecord(t, t.row, int64(c.n), !listed, false))
	}
	if c.n == 0 {
		t.ended++
		c.list, c.first, c.plain = t.ended, t.row, true
	}
	row, noted := t.row, t.noted
	var token json.Token
	if err == nil {
		token, err = w.value(t, d, path+"[]", level+1, true)
	}
	c.plain = c.plain && (token != nil || t.noted == noted) && nth == int64(c.n) && row == c.first+nth
	c.n++
	t.elementEnds(ids, places, c.list, int(nth))
	return err
}

// isOther reports whether a key that is the id of no known post can be that of another one: it has Reddit's mark, or
// begins with a digit and has letters as newer ids have, and is no size, as 640x480 is.
func isOther(key string) bool {
	key, _, _ = strings.Cut(strings.ToLower(key), "/")
	if id, number, cut := strings.Cut(key, "_"); cut && isCount.MatchString(number) {
		key = id
	}
	return isMarked.MatchString(key) || len(key) >= 6 && len(key) <= 8 && telling(manifest.PostID(key)) &&
		isNewer.MatchString(key) && !isSize.MatchString(key)
}

var (
	// isPost finds a part of a record that is the post which the record is about.
	isPost  = regexp.MustCompile(`(^|\.)(post|submission)$`)
	isNewer = regexp.MustCompile(`^[0-9][0-9a-z]*[a-z][0-9a-z]*[a-z][0-9a-z]*$`)
	isSize  = regexp.MustCompile(`^[0-9]+(x[0-9]+|[a-z]{1,3})$`)
)

var isCount = regexp.MustCompile(`^[0-9]{1,9}$`)

func memberPath(path, key string) string {
	return strings.TrimPrefix(path+"."+key[:min(len(key), maxKey)], ".")
}

// elements is value for the elements of a list. A long list of numbers that are bytes can be an image: so programs
// write one that know no other way.
func (w walker) elements(t *table, d *jsonPieces, path string, level int, listed bool) (err error) {
	var l byteList
	row, n := t.row, 0
	ids, places := len(t.ids), len(t.places)
	t.mapped = nil
	for ; err == nil && d.More(); n++ {
		if n > 0 && !listed {
			t.rows++
		}
		err = w.beginRecord(t, row, int64(n), !listed, false)
		ids, places := len(t.ids), len(t.places)
		var token json.Token
		if err == nil {
			token, err = w.value(t, d, path+"[]", level+1, true)
		}
		t.elementEnds(ids, places, 0, n)
		number, _ := token.(json.Number)
		digits := strings.TrimSuffix(string(number), ".0")
		if len(digits) == 0 || len(digits) > len("-128") {
			continue // the errors that say so take time
		}
		if n, wrong := strconv.ParseInt(digits, 10, 16); wrong == nil {
			l.add(n)
		}
	}
	t.row = row
	t.listEnds(ids, places, n)
	t.holds = t.holds || len(l.raw) >= fewBytes
	l.all = n
	_, end := d.Token()
	return cmp.Or(err, end, w.list(t.at(row, nil), l))
}
