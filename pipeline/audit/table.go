package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/dataset/scan"
	"rehydrate/pipeline/state"
	"rehydrate/policy"
)

// ScanColumns names the columns of a Parquet that another program wrote; "" is what this tool calls
// them, or a usual name. Only the ids are needed.
type ScanColumns struct {
	ID, Image, SHA256, PHash, Text string
}

// usual are the names under which a column is looked for.
func (c ScanColumns) usual() map[string][]string {
	pick := func(named string, names ...string) []string {
		if named != "" {
			return []string{named}
		}
		return names
	}
	return map[string][]string{
		columnID:     pick(c.ID, "id", "post_id", "reddit_id", "submission_id", "fullname", "permalink", "post"),
		columnImage:  pick(c.Image, "image", "image_bytes", "img", "bytes", "jpg", "png"),
		columnSHA256: pick(c.SHA256, "sha256", "image_sha256"),
		columnPHash:  pick(c.PHash, "phash"),
		columnText:   pick(c.Text, "ocr_text", "text", "caption"),
	}
}

const (
	columnID     = "id"
	columnImage  = "image"
	columnSHA256 = "sha256"
	columnPHash  = "phash"
	columnText   = "text"
)

// A table is a Parquet file whose ids were read.
type table struct {
	thing
	columns map[string]string // the file's name of each column that it has
	ids     []string          // the columns that may hold post ids, the one that entries is of first
	entries []string          // by row: the entry's name, "" where no post id can be read
	besides []rowOf           // further posts of a row: of another column, or of a list
}

// A rowOf is a row and an entry that it names.
type rowOf struct {
	row   int64
	entry string
}

// readTable reads the ids of a Parquet.
func (a *audit) readTable(ctx context.Context, t thing, r io.ReaderAt) {
	scan, err := scan.Open(r, t.size)
	if err != nil {
		return // lookAtTable says so
	}
	tab := &table{thing: t, columns: map[string]string{}}
	names := ScanColumns{}
	if t.name == "" {
		names = a.Columns
	}
	for column, usual := range names.usual() {
		tab.columns[column] = scan.Find(usual...)
	}
	if a.tables == nil {
		a.tables = map[string]*table{}
	}
	a.tables[t.where] = tab
	if tab.columns[columnID] == "" {
		return
	}
	a.chooseIDs(ctx, tab, scan, names.usual()[columnID])
	for v, err := range scan.Values(ctx, tab.ids[0]) {
		if err != nil || v.Row >= maxAuditRows {
			break
		}
		for int64(len(tab.entries)) <= v.Row {
			tab.entries = append(tab.entries, "")
		}
		id, entry := a.rowEntry(v)
		if id == "" {
			continue
		}
		a.post(id)
		if tab.entries[v.Row] == "" {
			tab.entries[v.Row] = entry
		} else {
			tab.besides = append(tab.besides, rowOf{v.Row, entry})
		}
	}
	for _, column := range tab.ids[1:] {
		for v, err := range scan.Values(ctx, column) {
			if err != nil || v.Row >= maxAuditRows {
				break
			}
			// This column was not declared to hold ids; only ids known from elsewhere count.
			if id, entry := a.rowEntry(v); a.posts[id] != nil && entry != tab.entry(v.Row) {
				tab.besides = append(tab.besides, rowOf{v.Row, entry})
			}
		}
	}
}

// chooseIDs finds the columns that may hold post ids. One of text comes before one of numbers, which mostly
// are those of the rows.
func (a *audit) chooseIDs(ctx context.Context, tab *table, scan *scan.File, names []string) {
	var numbers []string
	for _, name := range names {
		column := scan.Find(name)
		if column == "" || slices.Contains(tab.ids, column) || slices.Contains(numbers, column) {
			continue
		}
		number := false
		for v, err := range scan.Values(ctx, column) {
			number = err == nil && v.IsNumber
			break
		}
		if number {
			numbers = append(numbers, column)
		} else {
			tab.ids = append(tab.ids, column)
		}
	}
	tab.ids = append(tab.ids, numbers...)
	tab.columns[columnID] = tab.ids[0]
}

// rowEntry reads the id of a row in any of the forms in which people keep one, with /n behind it for a
// later image of a gallery. A number is what the id means in base 36 where that is a post that is known of,
// and else its digits.
func (a *audit) rowEntry(v scan.Value) (manifest.PostID, string) {
	text := string(v.Bytes)
	if v.IsNumber {
		text = strconv.FormatInt(v.Number, 10)
		if id := manifest.PostID(strconv.FormatInt(v.Number, 36)); a.posts[id] != nil {
			text = string(id)
		}
	}
	if head, number, ok := strings.Cut(text, "/"); ok {
		if n, err := strconv.Atoi(number); err == nil && n >= 0 {
			if id, err := manifest.ParsePostID(head); err == nil {
				return id, manifest.Key{ID: id, Image: n}.String()
			}
		}
	}
	id, err := manifest.ParsePostID(text)
	if err != nil {
		return "", ""
	}
	return id, string(id)
}

// each calls f with the values of a column that the file has. What cannot be read is a gap, and the
// other columns are read all the same.
func (a *audit) each(ctx context.Context, t *table, r io.ReaderAt, name string, f func(row int64, v scan.Value)) error {
	if name == "" {
		return nil
	}
	scan, err := scan.Open(r, t.size)
	if err != nil {
		return nil // readTable could open it, so it is being changed; lookAtTable says so
	}
	for v, err := range scan.Values(ctx, name) {
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			a.gap("", t.where, "%v", err)
			return nil
		}
		if v.Row >= maxAuditRows {
			a.gap("", t.where, "more than %d rows: those behind were not looked at", maxAuditRows)
			return nil
		}
		f(v.Row, v)
	}
	return nil
}

// entry is the entry of a row, "" where its id cannot be read.
func (t *table) entry(row int64) string {
	if row < int64(len(t.entries)) {
		return t.entries[row]
	}
	return ""
}

// postOf is the evidence on the post of a row, nil for none.
func (a *audit) postOf(entry string) *evidence {
	return a.posts[dataset.PostOf(entry)]
}

// learn takes in, of the rows that must be gone, what tells their content from others: the same image
// may stand elsewhere under another id.
func (a *audit) learn(ctx context.Context, t *table) error {
	if !slices.ContainsFunc(t.entries, func(entry string) bool { e := a.postOf(entry); return e != nil && e.MustGo }) {
		return nil
	}
	r, err := t.open()
	if err != nil {
		return nil // lookAt says so
	}
	defer r.Close()
	goneRow := func(row int64) *known {
		e := a.postOf(t.entry(row))
		if e == nil || !e.MustGo {
			return nil
		}
		return a.gone.of(e.ID, t.entry(row))
	}
	for column, take := range map[string]func(*known, scan.Value){
		columnSHA256: func(k *known, v scan.Value) { k.digests = append(k.digests, digestText(v)) },
		columnPHash: func(k *known, v scan.Value) {
			if h, ok := hashValue(v); ok {
				k.hash(h)
			}
		},
		columnText: func(k *known, v scan.Value) { k.read(string(v.Bytes)) },
		columnImage: func(k *known, v scan.Value) {
			k.digests = append(k.digests, state.SHA256(v.Bytes))
		},
	} {
		if err := a.each(ctx, t, r, t.columns[column], func(row int64, v scan.Value) {
			if k := goneRow(row); k != nil {
				take(k, v)
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// digestText is a digest as hex: some keep its 32 bytes.
func digestText(v scan.Value) string {
	if len(v.Bytes) == sha256.Size {
		return hex.EncodeToString(v.Bytes)
	}
	return strings.ToLower(string(v.Bytes))
}

// hashValue is a perceptual hash that was kept as 16 hex digits, 8 bytes or a number.
func hashValue(v scan.Value) (uint64, bool) {
	switch {
	case v.IsNumber:
		return uint64(v.Number), true
	case len(v.Bytes) == 8:
		h, err := strconv.ParseUint(hex.EncodeToString(v.Bytes), 16, 64)
		return h, err == nil
	}
	h, err := strconv.ParseUint(string(v.Bytes), 16, 64)
	return h, err == nil && len(v.Bytes) == 16
}

// lookAtTable judges a Parquet: each row by its id, then the others by what they hold.
func (a *audit) lookAtTable(ctx context.Context, t thing, r io.ReaderAt) error {
	digest := sha256.New()
	if _, err := io.Copy(digest, io.NewSectionReader(r, 0, t.size)); err != nil {
		return err
	}
	sum := hex.EncodeToString(digest.Sum(nil))
	a.accountFor(ctx, t, sum)
	scan, err := scan.Open(r, t.size)
	if err != nil {
		a.report.Scope.Files = append(a.report.Scope.Files, AuditedFile{Name: t.where, SHA256: sum})
		return err
	}
	switch at, n, err := scan.Unclaimed(); {
	case err != nil:
		a.gap("", t.where, "%v", err)
	case n > 0:
		a.gap("", t.where, "%d bytes from offset %d are not referenced by the footer and were not checked", n, at)
	}
	tab := a.tables[t.where]
	if tab == nil { // a member of an archive
		before := len(a.order)
		a.readTable(ctx, t, r)
		tab = a.tables[t.where]
		if tab == nil {
			return nil
		}
		for _, id := range a.order[before:] { // nobody asked about them
			a.judgePost(a.posts[id])
		}
	}
	if tab.columns[columnID] == "" {
		a.gap("", t.where, "it has no column of post ids that is known by its name: name it with --id-column")
	}
	if err := a.lookAtRows(ctx, tab, r); err != nil {
		return err
	}
	a.report.Scope.Files = append(a.report.Scope.Files, AuditedFile{Name: t.where, SHA256: sum, Rows: len(tab.entries)})
	return a.lookAtValues(ctx, tab, r)
}

// accountFor holds a file of the dataset against the records of what was exported.
func (a *audit) accountFor(ctx context.Context, t thing, digest string) {
	if t.name == "" || strings.HasPrefix(path.Base(t.name), ".tmp-") {
		return
	}
	noted, ok := a.stored.dataset[t.name]
	logged, inLog := a.stored.logged[t.name]
	switch {
	case ok && noted == digest && inLog && logged == digest:
	case a.exportedSince(ctx, t.name, digest):
		a.gap("", t.where, "a run has written it while the audit was looking: audit again")
	case !ok && !inLog:
		a.finding(FoundCopy, "", t.where, "a Parquet in the workspace that no record accounts for")
	case ok && noted != digest:
		a.finding(FoundExport, "", t.where, "it is not the file that was exported under this name: restore it with `rehydrate run`")
	case inLog && logged != digest:
		a.finding(FoundExport, "", t.where, "it is not the file that the log says was exported last under this name")
	case a.report.Log.Present && a.report.Log.Consistent && !inLog:
		a.finding(FoundExport, "", t.where, "no record of the log names its export")
	}
}

// exportedSince reports whether the state has another digest of a file now than when the audit began, and
// this is it.
func (a *audit) exportedSince(ctx context.Context, name, digest string) bool {
	files, err := lastExport(ctx, a.Workspace)
	return err == nil && files[name] == digest && a.stored.dataset[name] != digest
}

// lookAtRows judges the rows by their ids.
func (a *audit) lookAtRows(ctx context.Context, t *table, r io.ReaderAt) error {
	nameless, first := 0, int64(-1)
	for row, entry := range t.entries {
		e := a.postOf(entry)
		if e == nil {
			nameless++
			if first < 0 {
				first = int64(row)
			}
			continue
		}
		if kind, what := e.exported(); kind != "" {
			a.finding(kind, entry, t.row(int64(row)), "%s", what)
		}
	}
	for _, b := range t.besides {
		if e := a.postOf(b.entry); e != nil {
			if kind, what := e.exported(); kind != "" {
				a.finding(kind, b.entry, t.row(b.row), "%s", what)
			}
		}
	}
	if nameless > 0 {
		a.gap("", t.where, "%d rows have no post id that can be read, the first is row %d", nameless, first)
	}
	// The ids are read once more, for the trouble that readTable kept to itself.
	for _, column := range t.ids {
		if err := a.each(ctx, t, r, column, func(int64, scan.Value) {}); err != nil {
			return err
		}
	}
	return nil
}

func (t *table) row(row int64) string { return t.where + " row " + strconv.FormatInt(row, 10) }

// lookAtValues judges the rows of posts that may stay by their content.
func (a *audit) lookAtValues(ctx context.Context, t *table, r io.ReaderAt) error {
	if len(a.gone.digests)+len(a.gone.hashes)+len(a.gone.texts) == 0 {
		return nil
	}
	checks := map[string]func(own string, v scan.Value) (FindingKind, *known, string){
		columnSHA256: func(own string, v scan.Value) (FindingKind, *known, string) {
			k := a.gone.digests[digestText(v)]
			if mine := a.gone.stays(own); k != nil && mine != nil && mine.has(digestText(v)) {
				k = nil
			}
			return FoundImage, k, "by its sha256"
		},
		columnPHash: func(own string, v scan.Value) (FindingKind, *known, string) {
			h, ok := hashValue(v)
			mine := a.gone.stays(own)
			if !ok || own != "" && (mine == nil || len(mine.hashes) == 0) {
				// We do not know the image of a live post: a template is shared by many.
				return FoundImage, nil, ""
			}
			k, how := a.hashKnown(h, mine)
			return FoundImage, k, "by its phash, " + how
		},
		columnText: func(own string, v scan.Value) (FindingKind, *known, string) {
			k := a.gone.texts[sameText(string(v.Bytes))]
			if mine := a.gone.stays(own); k != nil && mine != nil && mine.text == k.text {
				k = nil
			}
			return FoundText, k, "its text"
		},
		columnImage: func(own string, v scan.Value) (FindingKind, *known, string) {
			k, how := a.imageKnown(t.where, v.Bytes, own)
			if mine := a.gone.stays(own); own != "" && (mine == nil || len(mine.hashes) == 0) && how != "byte for byte" {
				k = nil
			}
			return FoundImage, k, how
		},
	}
	columns, err := t.checked(r)
	if err != nil {
		return err
	}
	for _, column := range slices.Sorted(maps.Keys(columns)) {
		check := checks[columns[column]]
		if check == nil {
			check = func(own string, v scan.Value) (FindingKind, *known, string) {
				return checks[looksLike(v)](own, v)
			}
		}
		err := a.each(ctx, t, r, column, func(row int64, v scan.Value) {
			entry := t.entry(row)
			if e := a.postOf(entry); e != nil && e.MustGo {
				return
			}
			if kind, k, how := check(entry, v); k != nil {
				a.finding(kind, k.name, t.row(row), "%s of %s (%s), which must be gone, in the row of %q: %s", kind, k.name, how, entry, a.posts[k.id].why())
			}
		})
		if err != nil {
			return fmt.Errorf("%s: %w", t.where, err)
		}
	}
	return nil
}

// checked are the columns of the file whose values are judged, with what they are known to hold; "" for one
// that nobody said anything of, which may hold anything.
func (t *table) checked(r io.ReaderAt) (map[string]string, error) {
	scan, err := scan.Open(r, t.size)
	if err != nil {
		return nil, err
	}
	columns := map[string]string{}
	for _, name := range scan.Columns() {
		columns[name] = ""
	}
	for _, name := range t.ids {
		delete(columns, name)
	}
	for _, holds := range []string{columnImage, columnSHA256, columnPHash, columnText} {
		if name := t.columns[holds]; name != "" {
			columns[name] = holds
		}
	}
	return columns, nil
}

// looksLike says what a value of any column is judged as.
func looksLike(v scan.Value) string {
	switch {
	case policy.ImageFormat(v.Bytes[:min(len(v.Bytes), policy.SniffBytes)]) != "":
		return columnImage
	case len(v.Bytes) == sha256.Size, len(v.Bytes) == 2*sha256.Size:
		return columnSHA256
	}
	return columnText
}

// accountForPart holds a file of the dataset that is not a Parquet against the record of it.
func (a *audit) accountForPart(ctx context.Context, t thing, r io.ReaderAt) error {
	if t.name == "" || a.stored.dataset[t.name] == "" {
		return nil
	}
	digest := sha256.New()
	if _, err := io.Copy(digest, io.NewSectionReader(r, 0, t.size)); err != nil {
		return err
	}
	a.accountFor(ctx, t, hex.EncodeToString(digest.Sum(nil)))
	return nil
}
