package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
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
	entries []string          // by row: the entry's name, "" where no post id can be read
}

// readTable reads the ids of a Parquet.
func (a *audit) readTable(ctx context.Context, t thing, r io.ReaderAt) {
	scan, err := dataset.OpenScan(r, t.size)
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
	for v, err := range scan.Values(ctx, tab.columns[columnID]) {
		if err != nil || v.Row >= maxAuditRows {
			return
		}
		for int64(len(tab.entries)) <= v.Row {
			tab.entries = append(tab.entries, "")
		}
		if id, entry := rowEntry(v); id != "" {
			tab.entries[v.Row] = entry
			a.post(id)
		}
	}
}

// rowEntry reads the id of a row in any of the forms in which people keep one, with /n behind it for a
// later image of a gallery.
func rowEntry(v dataset.ScanValue) (manifest.PostID, string) {
	text := string(v.Bytes)
	if v.IsNumber {
		text = strconv.FormatInt(v.Number, 10)
	}
	if head, number, ok := strings.Cut(text, "/"); ok {
		if n, err := strconv.Atoi(number); err == nil && n >= 0 {
			if id, err := manifest.ParsePostID(head); err == nil {
				return id, entryName(manifest.Key{ID: id, Image: n})
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
func (a *audit) each(ctx context.Context, t *table, r io.ReaderAt, column string, f func(row int64, v dataset.ScanValue)) error {
	name := t.columns[column]
	if name == "" {
		return nil
	}
	scan, err := dataset.OpenScan(r, t.size)
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
	for column, take := range map[string]func(*known, dataset.ScanValue){
		columnSHA256: func(k *known, v dataset.ScanValue) { k.digests = append(k.digests, digestText(v)) },
		columnPHash: func(k *known, v dataset.ScanValue) {
			if h, ok := hashValue(v); ok {
				k.hash(h)
			}
		},
		columnText: func(k *known, v dataset.ScanValue) { k.read(string(v.Bytes)) },
		columnImage: func(k *known, v dataset.ScanValue) {
			sum := sha256.Sum256(v.Bytes)
			k.digests = append(k.digests, hex.EncodeToString(sum[:]))
		},
	} {
		if err := a.each(ctx, t, r, column, func(row int64, v dataset.ScanValue) {
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
func digestText(v dataset.ScanValue) string {
	if len(v.Bytes) == sha256.Size {
		return hex.EncodeToString(v.Bytes)
	}
	return strings.ToLower(string(v.Bytes))
}

// hashValue is a perceptual hash that was kept as 16 hex digits, 8 bytes or a number.
func hashValue(v dataset.ScanValue) (uint64, bool) {
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
	a.accountFor(t, sum)
	if _, err := dataset.OpenScan(r, t.size); err != nil {
		a.report.Scope.Files = append(a.report.Scope.Files, AuditedFile{Name: t.where, SHA256: sum})
		return err
	}
	tab := a.tables[t.where]
	if tab == nil { // a member of an archive
		a.readTable(ctx, t, r)
		if tab = a.tables[t.where]; tab == nil {
			return nil
		}
		for _, entry := range tab.entries {
			if e := a.postOf(entry); e != nil {
				e.weigh(a.policy, a.now)
			}
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

// accountFor holds a Parquet of the workspace against the records of what was exported.
func (a *audit) accountFor(t thing, digest string) {
	if t.name == "" {
		return
	}
	noted, ok := a.stored.dataset[t.name]
	logged, inLog := a.stored.logged[t.name]
	switch {
	case !ok && !inLog:
		a.finding(FoundCopy, "", t.where, "a Parquet in the workspace that no record accounts for")
	case ok && noted != digest:
		a.finding(FoundExport, "", t.where, "it is not the file that was exported under this name: restore it with `rehydrate run`")
	case inLog && logged != digest:
		a.finding(FoundExport, "", t.where, "it is not the file that the log says was exported last under this name")
	case a.report.Log.Present && a.report.Log.Consistent && !inLog:
		a.finding(FoundExport, "", t.where, "no record of the log tells of its export")
	}
}

// lookAtRows judges the rows by their ids.
func (a *audit) lookAtRows(ctx context.Context, t *table, r io.ReaderAt) error {
	nameless, first := 0, int64(-1)
	for row, entry := range t.entries {
		e := a.postOf(entry)
		if e == nil {
			if nameless++; first < 0 {
				first = int64(row)
			}
			continue
		}
		if kind, what := e.exported(); kind != "" {
			a.finding(kind, entry, t.row(int64(row)), "%s", what)
		}
	}
	if nameless > 0 {
		a.gap("", t.where, "%d rows have no post id that can be read, the first is row %d", nameless, first)
	}
	// The ids are read once more, for the trouble that readTable kept to itself.
	return a.each(ctx, t, r, columnID, func(int64, dataset.ScanValue) {})
}

func (t *table) row(row int64) string { return t.where + " row " + strconv.FormatInt(row, 10) }

// lookAtValues judges the rows of posts that may stay by their content.
func (a *audit) lookAtValues(ctx context.Context, t *table, r io.ReaderAt) error {
	if len(a.gone.digests)+len(a.gone.hashes)+len(a.gone.texts) == 0 {
		return nil
	}
	checks := map[string]func(own string, v dataset.ScanValue) (FindingKind, *known, string){
		columnSHA256: func(own string, v dataset.ScanValue) (FindingKind, *known, string) {
			k := a.gone.digests[digestText(v)]
			if mine := a.stored.own[own]; k != nil && mine != nil && mine.has(digestText(v)) {
				k = nil
			}
			return FoundImage, k, "by its sha256"
		},
		columnPHash: func(own string, v dataset.ScanValue) (FindingKind, *known, string) {
			h, ok := hashValue(v)
			mine := a.stored.own[own]
			if !ok || own != "" && mine == nil {
				// Of a post that is live nobody here knows the own image: a template is shared by many.
				return FoundImage, nil, ""
			}
			k, how := a.hashKnown(h, mine)
			return FoundImage, k, "by its phash, " + how
		},
		columnText: func(own string, v dataset.ScanValue) (FindingKind, *known, string) {
			k := a.gone.texts[sameText(string(v.Bytes))]
			if mine := a.stored.own[own]; k != nil && mine != nil && mine.text == k.text {
				k = nil
			}
			return FoundText, k, "its text"
		},
		columnImage: func(own string, v dataset.ScanValue) (FindingKind, *known, string) {
			k, how := a.imageKnown(v.Bytes, own)
			if mine := a.stored.own[own]; own != "" && mine == nil && how != "byte for byte" {
				k = nil
			}
			return FoundImage, k, how
		},
	}
	for _, column := range slices.Sorted(maps.Keys(checks)) {
		check := checks[column]
		err := a.each(ctx, t, r, column, func(row int64, v dataset.ScanValue) {
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
