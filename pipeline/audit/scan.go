package audit

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// Limits of what an audit reads. Anything larger is a gap, and never a PASS.
const (
	maxAuditImage   = 64 << 20  // an image
	maxAuditCopy    = 1 << 30   // a database
	maxAuditMember  = 256 << 20 // a member of an archive, or what is compressed
	maxAuditMembers = 200_000   // of one archive
	maxAuditRatio   = 100       // what a zip of more than 1 GiB may decompress to, as a multiple of its size
	maxAuditDepth   = 3         // archives in archives
	maxAuditRows    = 2_000_000
	scanBlock       = 1 << 20
	scanOverlap     = 64 << 10 // the longest text or image address that two blocks share
)

// A thing is a file, or a member of an archive, that an audit scans.
type thing struct {
	where string // for people
	name  string // in the workspace; empty elsewhere
	rel   string // its name below the folder that was named
	size  int64
	open  func() (reader, error)

	database bool // its rows were checked
}

// A reader gives the bytes of a thing from any place.
type reader interface {
	io.ReaderAt
	io.Closer
}

type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error { return nil }

// scanAll scans the state, the files of the workspace, its registered copies and the files that the auditor named.
func (a *audit) scanAll(ctx context.Context) error {
	// Digests, hashes and texts of rows that must be gone are learnt from all Parquet files first, and indexed
	// again: the same image may be in another file under another id.
	a.gone.index()
	for _, where := range slices.Sorted(maps.Keys(a.tables)) {
		if err := a.learn(ctx, a.tables[where]); err != nil {
			return err
		}
	}
	a.gone.index()
	if a.Workspace != nil {
		if err := a.checkState(ctx); err != nil {
			return err
		}
	}
	for t, err := range a.things(ctx) {
		if err != nil {
			return err
		}
		if err := a.scanThing(ctx, t, 0); err != nil {
			return err
		}
	}
	return nil
}

// things yields everything to scan, in a fixed order.
func (a *audit) things(ctx context.Context) iter.Seq2[thing, error] {
	return func(yield func(thing, error) bool) {
		for _, part := range []iter.Seq2[thing, error]{a.inWorkspace(ctx), a.inCopies(ctx), a.named(ctx)} {
			for t, err := range part {
				if !yield(t, err) || err != nil {
					return
				}
			}
		}
	}
}

// inWorkspace yields the files of the workspace but state.db: checkState checks its rows.
func (a *audit) inWorkspace(ctx context.Context) iter.Seq2[thing, error] {
	return func(yield func(thing, error) bool) {
		if a.Workspace == nil {
			return
		}
		for f, err := range a.Workspace.Walk(ctx) {
			if err != nil {
				yield(thing{}, err)
				return
			}
			if f.Name == state.StateFile { // the lock is scanned: anything can be kept in it
				continue
			}
			if f.Name == state.JournalFile {
				a.gap("", f.Name, "a writer is at work, or was killed: the content of its journal was not checked; audit again, after a run if need be")
				continue
			}
			t := thing{where: f.Name, name: f.Name, rel: f.Name, size: f.Size, open: func() (reader, error) { return a.Workspace.OpenFile(f.Name) }}
			if !f.Mode.IsRegular() {
				a.gap("", f.Name, "it is not a regular file (%s), so its target was not checked: take it away", f.Mode.Type())
				continue
			}
			if !yield(t, nil) {
				return
			}
		}
	}
}

// inCopies yields the files of the registered copies that can be reached.
func (a *audit) inCopies(ctx context.Context) iter.Seq2[thing, error] {
	return func(yield func(thing, error) bool) {
		if a.Workspace == nil {
			return
		}
		copies, err := a.Workspace.Copies(ctx)
		if err != nil {
			yield(thing{}, err)
			return
		}
		for _, c := range copies {
			if _, err := os.Lstat(c.Path); err != nil {
				a.unreachable(c)
				continue
			}
			if !a.eachBelow(ctx, c.Path, yield) {
				return
			}
		}
	}
}

// eachBelow yields the files of a folder, or a file, and reports whether to go on. A file that cannot be
// read is a gap.
func (a *audit) eachBelow(ctx context.Context, root string, yield func(thing, error) bool) bool {
	for t, err := range below(ctx, root) {
		if ctx.Err() != nil {
			yield(thing{}, ctx.Err())
			return false
		}
		if err != nil {
			a.gap("", t.where, "it could not be read: %v", err)
			continue
		}
		if !yield(t, nil) {
			return false
		}
	}
	return true
}

// unreachable notes a registered copy that cannot be scanned.
func (a *audit) unreachable(c workspace.Copy) {
	where := fmt.Sprintf("%s (%s)", c.Path, c.Note)
	what := "a registered copy that cannot be reached from here"
	if c.Told != "" {
		what += "; what was said of it: " + c.Told
	}
	for _, o := range a.report.Obligations {
		if o.Where == state.PrintableLine(where) {
			return
		}
	}
	a.report.Obligations = append(a.report.Obligations, Obligation{Where: state.PrintableLine(where), What: state.PrintableLine(what)})
	// It is a gap until the operator says what became of it. The trouble that a purge noted of it closes nothing.
	if c.Told == "" || c.Open {
		a.gap("", where, "%s: its content could not be checked", what)
	}
}

// named yields the files that the auditor named, and the files in the folders that the auditor named.
func (a *audit) named(ctx context.Context) iter.Seq2[thing, error] {
	return func(yield func(thing, error) bool) {
		for _, name := range a.Files {
			if !a.eachBelow(ctx, name, yield) {
				return
			}
		}
	}
}

// below yields a file, or the files of a folder, in byte order of their names. A file that cannot be read is
// yielded with an error.
func below(ctx context.Context, root string) iter.Seq2[thing, error] {
	return func(yield func(thing, error) bool) {
		_ = filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
			if err == nil {
				err = ctx.Err()
			}
			t := thing{where: filepath.ToSlash(name)}
			if err == nil && e.IsDir() {
				return nil
			}
			if err == nil {
				err = t.find(root, name)
			}
			// The walk continues after an error: one bad link must not hide the files behind it.
			if !yield(t, err) {
				return fs.SkipAll
			}
			return nil
		})
	}
}

// find makes t the file of that name below root, which may be a link to it.
func (t *thing) find(root, name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is neither a regular file nor a link to one")
	}
	rel, err := filepath.Rel(root, name)
	if err != nil {
		return err
	}
	if rel == "." {
		rel = filepath.Base(name)
	}
	t.rel, t.size, t.open = filepath.ToSlash(rel), info.Size(), func() (reader, error) { return os.Open(name) }
	return nil
}

// Kinds of things by their first bytes.
const (
	isParquet  = "parquet"
	isImage    = "image"
	isDatabase = "database"
	isGzip     = "gzip"
	isZip      = "zip"
	isTar      = "tar"
	isOpaque   = "opaque" // compressed or packed in a way that is not read here
	isOther    = ""
)

// opaque are the first bytes of formats that are not read, with their names.
var opaque = []struct{ magic, name string }{
	{"\x28\xb5\x2f\xfd", "Zstandard"}, {"\xfd7zXZ\x00", "xz"}, {"BZh", "bzip2"}, {"7z\xbc\xaf\x27\x1c", "7-Zip"}, {"Rar!\x1a\x07", "RAR"},
	{"\x04\x22\x4d\x18", "LZ4"}, {"LZIP", "lzip"}, {"\x1f\x9d", "compress"}, {"%PDF-", "PDF"}, {"ARROW1", "Arrow"}, {"Obj\x01", "Avro"}, {"ORC", "ORC"},
	{"\x89HDF\r\n\x1a\n", "HDF5"}, {"age-encryption.org/", "age"}, {"-----BEGIN AGE ", "age"}, {"-----BEGIN PGP MESSAGE", "OpenPGP"}, {"PK\x05\x06", "an empty zip"}, {"PK\x07\x08", "a zip in parts"},
}

// opaqueName names the opaque format of the bytes, and is empty for none.
func opaqueName(head []byte) string {
	for _, o := range opaque {
		if bytes.HasPrefix(head, []byte(o.magic)) {
			return o.name
		}
	}
	return ""
}

// sniff returns the kind of a thing by its bytes: anyone can choose its name.
func sniff(r io.ReaderAt, size int64) (string, error) {
	head := make([]byte, min(size, 512))
	if n, err := r.ReadAt(head, 0); err != nil && !(errors.Is(err, io.EOF) && n == len(head)) {
		return "", err
	}
	has := func(at int, magic string) bool { return bytes.HasPrefix(head[min(at, len(head)):], []byte(magic)) }
	switch {
	case has(0, "PAR1"), has(0, "PARE"):
		return isParquet, nil
	case policy.ImageFormat(head[:min(len(head), policy.SniffBytes)]) != "":
		return isImage, nil
	case has(0, "SQLite format 3\x00"):
		return isDatabase, nil
	case has(0, "\x1f\x8b"):
		return isGzip, nil
	case has(0, "PK\x03\x04"):
		return isZip, nil
	case has(257, "ustar"), oldTarHeader(head):
		return isTar, nil
	case opaqueName(head) != "":
		return isOpaque, nil
	}
	return isOther, nil
}

// oldTarHeader reports whether the bytes are the header of a tar without a magic number, by its checksum.
func oldTarHeader(head []byte) bool {
	if len(head) < 512 || head[0] == 0 {
		return false
	}
	want, err := strconv.ParseInt(strings.Trim(string(head[148:156]), " \x00"), 8, 32)
	sum := int64(8 * ' ') // the sum of all bytes, with those of the checksum counted as spaces
	for i, b := range head {
		if i < 148 || i >= 156 {
			sum += int64(b)
		}
	}
	return err == nil && sum == want
}

// scanThing scans one thing. An error with it is a gap.
func (a *audit) scanThing(ctx context.Context, t thing, depth int) error {
	if err := a.stopped(ctx); err != nil {
		return err
	}
	a.report.Scope.LookedAt++
	r, err := t.open()
	if err != nil {
		if t.name != "" && errors.Is(err, fs.ErrNotExist) {
			return nil // a run that is under way has taken it away
		}
		a.gap("", t.where, "it could not be read: %v", err)
		return nil
	}
	defer r.Close()
	kind, err := sniff(r, t.size)
	if err == nil {
		a.checkName(t, kind)
		err = a.scanAs(ctx, t, kind, r, depth)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, state.ErrInterrupted) {
		a.gap("", t.where, "it could not be read: %v", err)
		return nil
	}
	return err
}

func (a *audit) scanAs(ctx context.Context, t thing, kind string, r reader, depth int) error {
	switch kind {
	case isParquet:
		return a.scanTable(ctx, t, r)
	case isImage:
		body, err := readAll(r, t.size, maxAuditImage)
		if err != nil {
			return err
		}
		a.checkImage(ctx, t, body)
		return nil
	case isDatabase:
		return a.scanDatabase(ctx, t, r)
	}
	if depth < maxAuditDepth {
		switch kind {
		case isGzip:
			return a.scanGzip(ctx, t, r, depth)
		case isZip:
			return a.scanZip(ctx, t, r, depth)
		case isTar:
			return a.scanTar(ctx, t, r, depth)
		}
	} else if kind != isOther && kind != isOpaque {
		return errors.New("archives in archives, too deep")
	}
	// Text inside an unknown packing cannot be found, so it is a gap, not a text without findings.
	if kind == isOpaque {
		return errors.New("it is packed, compressed or encrypted in a way that is not read here: unpack it, and name what comes out")
	}
	if t.name == manifest.OutcomesName {
		return a.checkOutcomes(t, r)
	}
	if t.name == "" && isTombstones(t, r) {
		return nil
	}
	if err := a.accountForPart(ctx, t, r); err != nil {
		return err
	}
	return a.scanText(ctx, t, r)
}

// isTombstones reports whether a whole file is a list of tombstones. It names posts that are gone, and is meant
// to be handed on.
func isTombstones(t thing, r io.ReaderAt) bool {
	if t.size > maxAuditImage {
		return false
	}
	_, err := manifest.ReadTombstones(io.NewSectionReader(r, 0, t.size))
	return err == nil
}

// checkName judges a file by its path: the bytes of few003/1.jpg may match nothing that is known.
func (a *audit) checkName(t thing, kind string) {
	if _, ok := a.stored.files[t.name]; t.name != "" && (ok || a.mayName(t.name)) { // its record decides
		return
	}
	found := FoundRow
	if kind == isImage {
		found = FoundImage
		if id, _ := entryOf(t.where); a.posts[id] != nil && a.posts[id].MustGo {
			return // checkImage reports it
		}
	}
	a.searchIDs(t, []byte(t.rel), true, found, "it is named after a post that must be gone")
}

// entryOf returns the entry that a file is named after: 1n6oiw.jpg, 1n6oiw-1.jpg.
func entryOf(name string) (id manifest.PostID, entry string) {
	stem, _, _ := strings.Cut(path.Base(name), ".")
	text, number, later := strings.Cut(stem, "-")
	id, err := manifest.ParsePostID(text)
	if err != nil {
		return "", ""
	}
	if later {
		return id, string(id) + "/" + number
	}
	return id, string(id)
}

// checkImage judges an image: by its record, by its name, by its bytes and by how it looks.
func (a *audit) checkImage(ctx context.Context, t thing, body []byte) {
	// Its record or its name decides first: then the image need not be decoded.
	id, entry := entryOf(t.where)
	if rec, ok := a.stored.files[t.name]; t.name != "" && ok {
		e := a.posts[rec.ID]
		if a.mustBeGone(e) {
			a.finding(FoundImage, rec.Key.String(), t.where, "an image of a post that must be gone: %s", e.why())
			return
		}
		entry = rec.Key.String()
	} else if e := a.posts[id]; e != nil && e.MustGo {
		a.finding(FoundImage, entry, t.where, "a file named after a post that must be gone: %s", e.why())
		return
	}
	own := ""
	if a.gone.stays(entry) != nil {
		own = entry
	}
	if k, how := a.imageKnown(t.where, body, own); k != nil {
		a.finding(FoundImage, k.name, t.where, "the image of %s (%s), which must be gone: %s", k.name, how, a.posts[k.id].why())
		return
	}
	// It matches no erased image. In the workspace it must also be one that the state has on record, or that a run
	// has stored since the records were read.
	if rec, ok := a.stored.files[t.name]; t.name != "" && ok {
		if digest := state.SHA256(body); digest != rec.Image.SHA256 && !a.onRecord(ctx, rec, digest) {
			a.finding(FoundImage, entry, t.where, "it is not the image that was stored there: cannot tell which post it belongs to")
		}
		return
	}
	if t.name == "" || a.byRecord(body) || a.underWay(ctx, t) {
		return
	}
	a.finding(FoundImage, "", t.where, "an image in the workspace that no record accounts for: cannot tell which post it belongs to")
}

// byRecord reports whether these bytes are a stored image of a post that may stay.
func (a *audit) byRecord(body []byte) bool {
	digest := state.SHA256(body)
	for _, rec := range a.stored.files {
		if rec.Image.SHA256 == digest {
			return !a.mustBeGone(a.posts[rec.ID])
		}
	}
	return false
}

// onRecord reports whether a run that is at work has stored another image of the entry since the records
// were read.
func (a *audit) onRecord(ctx context.Context, was workspace.Record, digest string) bool {
	for rec, err := range a.Workspace.Records(ctx, workspace.Select{ID: was.ID}) {
		if err != nil {
			return false
		}
		if rec.Key == was.Key && rec.Image != nil && rec.Image.SHA256 == digest {
			return true
		}
	}
	return false
}

// underWay reports whether a run that is at work has stored the image since the records were read.
func (a *audit) underWay(ctx context.Context, t thing) bool {
	id, _ := entryOf(t.name)
	for rec, err := range a.Workspace.Records(ctx, workspace.Select{ID: id}) {
		if id != "" && err == nil && rec.Image != nil && a.Workspace.ImageName(rec.Key, rec.Image.Format) == t.name {
			return true
		}
		if id == "" || err != nil {
			return false
		}
	}
	return strings.HasPrefix(path.Base(t.name), ".tmp-")
}

// scanDatabase judges a database: the posts that it has, in any layout, and its bytes as text.
func (a *audit) scanDatabase(ctx context.Context, t thing, r reader) error {
	body, err := readAll(r, t.size, maxAuditCopy)
	if err != nil {
		return err
	}
	if t.name != "" {
		a.finding(FoundCopy, "", t.where, "a database in the workspace that no record accounts for: move it away, or out of backups that the posts of today have outlived")
	}
	known := 0
	for p, err := range workspace.ReadCopy(ctx, body) {
		if err != nil {
			a.gap("", t.where, "it could not be read: %v", err)
			break
		}
		known++
		e := a.posts[p.Key.ID]
		if e == nil || !e.MustGo {
			continue
		}
		if p.Image {
			a.finding(FoundImage, p.Key.String(), t.where, "a copy of the database has the description of an image of a post that must be gone: %s", e.why())
		}
		if p.Text != "" {
			a.finding(FoundText, p.Key.String(), t.where, "a copy of the database has text read off a post that must be gone: %s", e.why())
		}
	}
	t.database = true
	return a.scanText(ctx, t, r)
}

// checkOutcomes judges outcomes.csv.
func (a *audit) checkOutcomes(t thing, r reader) error {
	for res, err := range manifest.ReadOutcomes(io.NewSectionReader(r, 0, t.size)) {
		if err != nil {
			return err
		}
		e := a.posts[res.ID]
		if e == nil || res.Outcome != manifest.Kept && res.Outcome != manifest.Duplicate {
			continue
		}
		if e.MustGo {
			a.finding(FoundRow, res.Key.String(), t.where, "it says %s of a post that must be gone: %s", res.Outcome, e.why())
		}
	}
	return nil
}

func (a *audit) scanGzip(ctx context.Context, t thing, r reader, depth int) error {
	z, err := gzip.NewReader(io.NewSectionReader(r, 0, t.size))
	if err != nil {
		return err
	}
	return a.member(ctx, t, "", z, depth, nil)
}

func (a *audit) scanZip(ctx context.Context, t thing, r reader, depth int) error {
	z, err := zip.NewReader(r, t.size)
	if err != nil {
		return err
	}
	if len(z.File) > maxAuditMembers {
		return fmt.Errorf("%d members, and at most %d are read", len(z.File), maxAuditMembers)
	}
	left := max(1<<30, maxAuditRatio*t.size)
	for _, f := range z.File {
		if f.FileInfo().IsDir() {
			continue
		}
		body, err := f.Open()
		if err != nil {
			return err
		}
		err = a.member(ctx, t, f.Name, body, depth, &left)
		if err := errors.Join(err, body.Close()); err != nil {
			return err
		}
	}
	return nil
}

// scanTar judges the members of a tar: webdataset names them after the entry.
func (a *audit) scanTar(ctx context.Context, t thing, r reader, depth int) error {
	all := io.NewSectionReader(r, 0, t.size)
	z := tar.NewReader(all)
	for n := 0; ; n++ {
		head, err := z.Next()
		if errors.Is(err, io.EOF) {
			return onlyZeros(all)
		}
		if err != nil {
			return err
		}
		if n == maxAuditMembers {
			return fmt.Errorf("more than %d members", n)
		}
		if head.Size == 0 && head.Typeflag != tar.TypeReg { // a folder or a link
			continue
		}
		if err := a.member(ctx, t, head.Name, z, depth, nil); err != nil {
			return err
		}
	}
}

// onlyZeros fails when anything but zeros follows the end of a tar.
func onlyZeros(r io.Reader) error {
	// Programs stop reading at the end marker, so content can be hidden behind it.
	block := make([]byte, 64<<10)
	for {
		n, err := r.Read(block)
		if len(bytes.Trim(block[:n], "\x00")) > 0 {
			return errors.New("something lies behind its end")
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// member scans a member of an archive, in memory. left is how many bytes the archive may still decompress to; nil
// for an archive that is not compressed, or has one member.
func (a *audit) member(ctx context.Context, t thing, name string, r io.Reader, depth int, left *int64) error {
	body, err := io.ReadAll(io.LimitReader(r, maxAuditMember+1))
	if err != nil {
		return err
	}
	if left != nil {
		*left -= int64(len(body))
		if *left < 0 {
			return fmt.Errorf("it decompresses to more than %d times its size", maxAuditRatio)
		}
	}
	where := t.where
	if name != "" {
		where += "!" + name
	}
	if len(body) > maxAuditMember {
		return fmt.Errorf("%s has more than %d bytes", where, maxAuditMember)
	}
	inside := thing{where: where, rel: name, size: int64(len(body)), open: func() (reader, error) { return inMemory{bytes.NewReader(body)}, nil }}
	if id, entry := entryOf(name); name != "" && a.posts[id] != nil && a.posts[id].MustGo {
		a.finding(FoundRow, entry, where, "a member named after a post that must be gone: %s", a.posts[id].why())
		inside.rel = "" // its name is reported already
	}
	return a.scanThing(ctx, inside, depth+1)
}

// readIDs reads the ids of every Parquet.
func (a *audit) readIDs(ctx context.Context) error {
	for t, err := range a.things(ctx) {
		if err != nil {
			return err
		}
		r, err := t.open()
		if err != nil {
			continue // scanThing reports it
		}
		if kind, err := sniff(r, t.size); err == nil && kind == isParquet {
			a.readTable(ctx, t, r)
		}
		if err := a.stopped(ctx); err != nil {
			return errors.Join(err, r.Close())
		}
		if err := r.Close(); err != nil {
			return err
		}
	}
	return nil
}
