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

// ScanColumns names the columns of a Parquet that another program wrote. An empty name means this tool's own name
// or a usual one. Only the ids are needed.
type ScanColumns struct {
	ID, Image, SHA256, PHash, Text string
}

// usual returns the possible names of each column.
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
	ids     []string          // the columns that may hold post ids; entries is read from the first
	entries []string          // by row: the name of the entry, empty if no post id can be read
	besides []rowOf           // more posts of a row: from another column, or from a list
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
		return // scanTable reports it
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

// chooseIDs finds the columns that may hold post ids.
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
	// Text comes before numbers: those mostly number the rows.
	tab.ids = append(tab.ids, numbers...)
	tab.columns[columnID] = tab.ids[0]
}

// rowEntry reads the id of a row in any usual form, with /n behind it for a later image of a gallery.
func (a *audit) rowEntry(v scan.Value) (manifest.PostID, string) {
	text := string(v.Bytes)
	if v.IsNumber {
		// A number is an id read in base 36 if that gives a known post, else the id's own digits.
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

// each calls f with the values of a column that the file has. A value that cannot be read is a gap, and ends the
// column, not the audit.
func (a *audit) each(ctx context.Context, t *table, r io.ReaderAt, name string, f func(row int64, v scan.Value)) error {
	if name == "" {
		return nil
	}
	scan, err := scan.Open(r, t.size)
	if err != nil {
		return nil // readTable could open it, so it is being changed; scanTable reports it
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
			a.gap("", t.where, "more than %d rows: the rest were not checked", maxAuditRows)
			return nil
		}
		f(v.Row, v)
	}
	return nil
}

// entry returns the entry of a row, or an empty string if its id cannot be read.
func (t *table) entry(row int64) string {
	if row < int64(len(t.entries)) {
		return t.entries[row]
	}
	return ""
}

// postOf returns the evidence on the post of a row, or nil.
func (a *audit) postOf(entry string) *evidence {
	return a.posts[dataset.PostOf(entry)]
}

// learn reads the digests, hashes and texts of the rows that must be gone.
func (a *audit) learn(ctx context.Context, t *table) error {
	if !slices.ContainsFunc(t.entries, func(entry string) bool { e := a.postOf(entry); return e != nil && e.MustGo }) {
		return nil
	}
	r, err := t.open()
	if err != nil {
		return nil // scanThing reports it
	}
	defer r.Close()
	// Only rows that must go: the content of the others identifies nothing.
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

// digestText returns a digest as hex; some files have its 32 bytes.
func digestText(v scan.Value) string {
	if len(v.Bytes) == sha256.Size {
		return hex.EncodeToString(v.Bytes)
	}
	return strings.ToLower(string(v.Bytes))
}

// hashValue reads a perceptual hash from 16 hex digits, 8 bytes or a number.
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

// scanTable judges a Parquet: each row by its id, then the others by what they hold.
func (a *audit) scanTable(ctx context.Context, t thing, r io.ReaderAt) error {
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
		for _, id := range a.order[before:] { // Reddit was not asked about them
			a.judgePost(a.posts[id])
		}
	}
	if tab.columns[columnID] == "" {
		a.gap("", t.where, "no column of post ids has a known name: name it with --id-column")
	}
	if err := a.checkRows(ctx, tab, r); err != nil {
		return err
	}
	a.report.Scope.Files = append(a.report.Scope.Files, AuditedFile{Name: t.where, SHA256: sum, Rows: len(tab.entries)})
	return a.checkValues(ctx, tab, r)
}

// accountFor compares a file of the dataset with the records of its export.
func (a *audit) accountFor(ctx context.Context, t thing, digest string) {
	if t.name == "" || strings.HasPrefix(path.Base(t.name), ".tmp-") {
		return
	}
	noted, ok := a.stored.dataset[t.name]
	logged, inLog := a.stored.logged[t.name]
	switch {
	case ok && noted == digest && inLog && logged == digest: // state and log agree
	case a.exportedSince(ctx, t.name, digest):
		a.gap("", t.where, "a run has written it during the audit: audit again")
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

// exportedSince reports whether a run has exported the file with this digest since the audit began.
func (a *audit) exportedSince(ctx context.Context, name, digest string) bool {
	files, err := lastExport(ctx, a.Workspace)
	return err == nil && files[name] == digest && a.stored.dataset[name] != digest
}

// checkRows judges the rows by their ids.
func (a *audit) checkRows(ctx context.Context, t *table, r io.ReaderAt) error {
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
	// The ids are read once more, to report the errors that readTable did not.
	for _, column := range t.ids {
		if err := a.each(ctx, t, r, column, func(int64, scan.Value) {}); err != nil {
			return err
		}
	}
	return nil
}

func (t *table) row(row int64) string { return t.where + " row " + strconv.FormatInt(row, 10) }

// checkValues judges the rows of posts that may stay by their content.
func (a *audit) checkValues(ctx context.Context, t *table, r io.ReaderAt) error {
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
	columns, err := t.valueColumns(r)
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
			// checkRows reported the row of a post that must be gone: its content is not a second finding.
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

// valueColumns returns the columns to judge and the kind of content in each; empty for a column that may hold
// anything.
func (t *table) valueColumns(r io.ReaderAt) (map[string]string, error) {
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

// looksLike returns the kind of content that a value is judged as.
func looksLike(v scan.Value) string {
	switch {
	case policy.ImageFormat(v.Bytes[:min(len(v.Bytes), policy.SniffBytes)]) != "":
		return columnImage
	case len(v.Bytes) == sha256.Size, len(v.Bytes) == 2*sha256.Size:
		return columnSHA256
	}
	return columnText
}

// accountForPart compares a file of the dataset that is not a Parquet with its record.
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
