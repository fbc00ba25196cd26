package audit

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"compress/bzip2"
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"

	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// Limits of what an audit reads. Anything larger is a gap, and never a PASS.
const (
	maxImage   = 64 << 20 // an image
	maxHeld    = 8 << 20  // what is held in memory; anything larger is unpacked into a file without a name
	maxMembers = 200_000  // of one archive
	maxRatio   = 100      // what a source of more than 10 MiB may unpack to, as a multiple of its size
	minUnpack  = 1 << 30
	maxDepth   = 6 // containers in containers
	maxRows    = 2_000_000
)

// scanAll looks at every source, and then at what was seen in all of them together.
func (a *audit) scanAll(ctx context.Context) error {
	a.gone.index()
	if a.Workspace != nil {
		if err := a.checkState(ctx); err != nil {
			return err
		}
	}
	crew := &errgroup.Group{}
	crew.SetLimit(runtime.GOMAXPROCS(0))
	err := a.scanSources(walker{audit: a, ctx: ctx, crew: crew})
	if err := errors.Join(err, crew.Wait()); err != nil {
		return cmp.Or(ctx.Err(), err)
	}
	return a.resolve(ctx)
}

func (a *audit) scanSources(w walker) error {
	for _, part := range []iter.Seq2[*source, error]{a.inWorkspace(w.ctx), a.inCopies(w.ctx), a.named(w.ctx)} {
		for s, err := range part {
			if err != nil {
				return err
			}
			a.sources = append(a.sources, s)
			w.left = &atomic.Int64{}
			w.left.Store(max(minUnpack, maxRatio*s.size))
			if s.size > maxHeld {
				err = w.source(s)
			} else {
				err = w.spawn(func(w walker) error { return w.source(s) })
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// source looks at one file.
func (w walker) source(s *source) error {
	if err := w.stopped(w.ctx); err != nil {
		return err
	}
	r, err := s.open()
	if err != nil {
		if s.name != "" && errors.Is(err, fs.ErrNotExist) {
			return nil // a run that is under way has taken it away
		}
		w.gap("", s.where, "it could not be read: %v", err)
		return nil
	}
	defer r.Close()
	var all io.ReaderAt = r
	sum := sha256.New()
	if s.size <= maxHeld {
		body, err := readAll(r, s.size, maxHeld)
		if err != nil {
			w.gap("", s.where, "it could not be read: %v", err)
			return nil
		}
		all = bytes.NewReader(body)
		_, _ = sum.Write(body)
	} else if _, err := io.Copy(sum, io.NewSectionReader(r, 0, s.size)); err != nil {
		w.gap("", s.where, "it could not be read: %v", err)
		return nil
	}
	s.file = AuditedFile{Name: s.where, SHA256: hex.EncodeToString(sum.Sum(nil)), Size: s.size}
	kind, err := sniff(all, s.size)
	if err == nil && w.accountFor(s, kind, all) {
		return nil
	}
	p := place{src: s, path: s.where, own: w.entryNamed(s.rel)}
	w.names(p, s.rel, kind)
	return w.look(p, all, s.size)
}

// inWorkspace yields the files of the workspace.
func (a *audit) inWorkspace(ctx context.Context) iter.Seq2[*source, error] {
	return func(yield func(*source, error) bool) {
		if a.Workspace == nil {
			return
		}
		for f, err := range a.Workspace.Walk(ctx, ".") {
			if err != nil {
				yield(nil, err)
				return
			}
			s := &source{where: f.Name, name: f.Name, rel: f.Name, size: f.Size, mayName: a.mayName(f.Name),
				open: func() (reader, error) { return a.Workspace.OpenFile(f.Name) }}
			s.ours = s.mayName || f.Name == state.LogKeyFile && f.Size < 300
			switch {
			case !f.Mode.IsRegular():
				a.gap("", f.Name, "it is not a regular file (%s), so its target was not checked: take it away", f.Mode.Type())
				continue
			case f.Name == state.JournalFile:
				a.gap("", f.Name, "a writer is at work, or was killed: the content of its journal was not checked; audit again, after a run if need be")
				continue
			case f.Name == state.StateFile:
				s.ours = true
			}
			if !yield(s, nil) {
				return
			}
		}
	}
}

// inCopies yields the files of the registered copies that can be reached.
func (a *audit) inCopies(ctx context.Context) iter.Seq2[*source, error] {
	return func(yield func(*source, error) bool) {
		if a.Workspace == nil {
			return
		}
		copies, err := a.Workspace.Copies(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, c := range copies {
			if _, err := os.Lstat(c.Path); err != nil {
				a.unreachable(c)
				continue
			}
			missing := map[string]string{}
			for _, f := range c.Files {
				missing[f.Name] = f.SHA256
			}
			prepare := func(s *source) {
				s.inCopy, s.recorded = true, missing[s.rel]
				delete(missing, s.rel)
			}
			if !a.eachBelow(ctx, c.Path, prepare, yield) {
				return
			}
			// A file that somebody moved away may be anywhere, with rows that a purge cannot reach.
			for _, name := range slices.Sorted(maps.Keys(missing)) {
				a.changedCopy(path.Join(filepath.ToSlash(c.Path), name), "it is no longer there")
			}
		}
	}
}

// named yields the files that the auditor named, and the files in the folders that the auditor named.
func (a *audit) named(ctx context.Context) iter.Seq2[*source, error] {
	return func(yield func(*source, error) bool) {
		for _, name := range a.Files {
			if !a.eachBelow(ctx, name, func(s *source) { s.columns = a.Columns }, yield) {
				return
			}
		}
	}
}

// eachBelow yields a file, or the files of a folder, in byte order of their names, and reports whether to go on. A
// file that cannot be read is a gap.
func (a *audit) eachBelow(ctx context.Context, root string, prepare func(*source), yield func(*source, error) bool) (more bool) {
	more = true
	_ = filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			more = yield(nil, ctx.Err())
			return fs.SkipAll
		}
		if err == nil && e.IsDir() {
			return nil
		}
		s := &source{where: filepath.ToSlash(name)}
		if err == nil {
			err = s.find(root, name)
		}
		// The walk continues after an error: one bad link must not hide the files behind it.
		if err != nil {
			a.gap("", s.where, "it could not be read: %v", err)
			return nil
		}
		prepare(s)
		more = yield(s, nil)
		if !more {
			return fs.SkipAll
		}
		return nil
	})
	return more
}

// find makes s the file of that name below root, which may be a link to it.
func (s *source) find(root, name string) error {
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
	s.rel, s.size, s.open = filepath.ToSlash(rel), info.Size(), func() (reader, error) { return os.Open(name) }
	return nil
}

// unreachable notes a registered copy that cannot be looked at.
func (a *audit) unreachable(c workspace.Copy) {
	where := fmt.Sprintf("%s (%s)", c.Path, c.Note)
	what := "a registered copy that cannot be reached from here"
	if c.Told != "" {
		what += "; what was said of it: " + c.Told
	}
	// It is owed until the operator says what became of it. The trouble that a purge noted of it closes nothing.
	if c.Told != "" && !c.Open {
		a.report.Notes = append(a.report.Notes, state.PrintableLine(where+": "+what))
		return
	}
	a.obligation(where, nil, "%s", what)
	a.gap("", where, "%s: its content could not be checked", what)
}

// Kinds of leaves and containers by their first bytes.
const (
	isParquet  = "parquet"
	isImage    = "image"
	isDatabase = "database"
	isGzip     = "gzip"
	isZstd     = "zstd"
	isBzip2    = "bzip2"
	isZip      = "zip"
	isTar      = "tar"
	isPDF      = "pdf"
	isUTF16    = "utf16"
	isOpaque   = "opaque" // compressed or packed in a way that is not read here
	isOther    = ""
)

// magics are the first bytes of the containers that are read, and of formats that are not, with their names. Those in
// plain letters are believed only of bytes that are no text.
var magics = []struct{ magic, kind, name string }{
	{"PAR1", isParquet, ""}, {"PARE", isParquet, ""}, {"SQLite format 3\x00", isDatabase, ""}, {"\x1f\x8b", isGzip, ""},
	{"\x28\xb5\x2f\xfd", isZstd, ""}, {"BZh", isBzip2, ""}, {"PK\x03\x04", isZip, ""}, {"PK\x05\x06", isZip, ""}, {"%PDF-", isPDF, ""},
	{"\xff\xfe", isUTF16, ""}, {"\xfe\xff", isUTF16, ""},
	{"\xfd7zXZ\x00", isOpaque, "xz"}, {"7z\xbc\xaf\x27\x1c", isOpaque, "7-Zip"}, {"Rar!\x1a\x07", isOpaque, "RAR"}, {"\x04\x22\x4d\x18", isOpaque, "LZ4"},
	{"LZIP", isOpaque, "lzip"}, {"\x1f\x9d", isOpaque, "compress"}, {"ARROW1", isOpaque, "Arrow"}, {"\xff\xff\xff\xff", isOpaque, "an Arrow stream"},
	{"Obj\x01", isOpaque, "Avro"}, {"ORC", isOpaque, "ORC"}, {"\x89HDF\r\n\x1a\n", isOpaque, "HDF5"}, {"\x93NUMPY", isOpaque, "NumPy"}, {"PK\x07\x08", isOpaque, "a zip in parts"},
	{"age-encryption.org/", isOpaque, "age"}, {"-----BEGIN AGE ", isOpaque, "age"}, {"-----BEGIN PGP MESSAGE", isOpaque, "OpenPGP"},
	{"BM", isOpaque, "a BMP image"}, {"II*\x00", isOpaque, "a TIFF image"}, {"MM\x00*", isOpaque, "a TIFF image"}, {"\x00\x00\x01\x00", isOpaque, "an icon"},
	{"\xff\x0a", isOpaque, "a JPEG XL image"}, {"\x80\x04\x95", isOpaque, "a Python pickle"}, {"\x80\x05\x95", isOpaque, "a Python pickle"},
}

// sniff returns the kind of a leaf by its bytes: anyone can choose its name.
func sniff(r io.ReaderAt, size int64) (string, error) {
	kind, _, err := sniffName(r, size)
	return kind, err
}

func sniffName(r io.ReaderAt, size int64) (kind, name string, err error) {
	head := make([]byte, min(size, 1024))
	if n, err := r.ReadAt(head, 0); err != nil && !(errors.Is(err, io.EOF) && n == len(head)) {
		return "", "", err
	}
	if policy.ImageFormat(head[:min(len(head), policy.SniffBytes)]) != "" {
		return isImage, "", nil
	}
	text := !bytes.ContainsFunc(head, noText)
	for _, m := range magics {
		if bytes.HasPrefix(head, []byte(m.magic)) && (!text || m.kind == isPDF || bytes.HasPrefix(head, []byte("-----")) || bytes.HasPrefix(head, []byte("age-"))) {
			return m.kind, m.name, nil
		}
	}
	if len(head) >= 512 && (bytes.HasPrefix(head[257:], []byte("ustar")) || oldTarHeader(head)) {
		return isTar, "", nil
	}
	if len(head) >= 12 && string(head[4:8]) == "ftyp" {
		return isOpaque, "a film, or an image as AVIF or HEIC", nil
	}
	return isOther, "", nil
}

// oldTarHeader reports whether the bytes are the header of a tar without a magic number, by its checksum.
func oldTarHeader(head []byte) bool {
	if head[0] == 0 {
		return false
	}
	want, err := strconv.ParseInt(strings.Trim(string(head[148:156]), " \x00"), 8, 32)
	sum := int64(8 * ' ') // the sum of all bytes, with those of the checksum counted as spaces
	for i, b := range head[:512] {
		if i < 148 || i >= 156 {
			sum += int64(b)
		}
	}
	return err == nil && sum == want
}

// lookInto is look for bytes of any kind.
func (w walker) lookInto(p place, r io.ReaderAt, size int64) error {
	if p.table == nil {
		w.lookedAt.Add(1)
	}
	kind, name, err := sniffName(r, size)
	if err != nil {
		return err
	}
	if kind == isOther || kind == isUTF16 {
		return w.loose(p, r, size, kind)
	}
	if kind == isImage {
		body, err := readAll(r, size, maxImage)
		if err != nil {
			return err
		}
		return w.image(p, body)
	}
	// What is packed in a way that is not read here cannot be found, so it is a gap, not a text without findings.
	if kind == isOpaque {
		part := p
		part.label = true
		if err := w.bytes(part, r, size); err != nil {
			return err
		}
		return fmt.Errorf("it is %s, which is not read here: unpack or convert it, and name what comes out", name)
	}
	if w.depth == maxDepth {
		return fmt.Errorf("containers in containers, more than %d deep", maxDepth)
	}
	w.depth++
	all := io.NewSectionReader(r, 0, size)
	switch kind {
	case isParquet:
		return w.parquet(p, r, size)
	case isDatabase:
		return w.database(p, all)
	case isGzip:
		return w.gzip(p, all)
	case isZstd:
		z, err := zstd.NewReader(all, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
		if err != nil {
			return err
		}
		defer z.Close()
		return errors.Join(w.member(p.in("zstd"), z), w.skippable(p, r, size))
	case isBzip2:
		return w.member(p.in("bzip2"), bzip2.NewReader(all))
	case isZip:
		return w.zip(p, r, size)
	case isTar:
		return w.tar(p, all)
	}
	return w.pdf(p, all)
}

// member looks at bytes that are unpacked from a container.
func (w walker) member(p place, r io.Reader) error {
	all, size, err := w.unpack(r)
	if err != nil {
		return err
	}
	return w.spawn(func(w walker) error {
		defer all.Close()
		return w.look(p, all, size)
	})
}

type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error { return nil }

// unpack reads everything into memory, or into a file without a name if it is much.
func (w walker) unpack(r io.Reader) (reader, int64, error) {
	body, err := io.ReadAll(io.LimitReader(r, maxHeld))
	if err == nil {
		err = w.unpacked(int64(len(body)))
	}
	if err != nil || len(body) < maxHeld {
		return inMemory{bytes.NewReader(body)}, int64(len(body)), err
	}
	f, err := os.CreateTemp("", "rehydrate-audit-")
	if err != nil {
		return nil, 0, err
	}
	// It may hold erased content: without a name, the disk frees it however this process ends.
	err = os.Remove(f.Name())
	if err == nil {
		_, err = f.Write(body)
	}
	size := int64(len(body))
	for block := int64(1); err == nil && block > 0; size += block {
		block, err = io.CopyN(f, r, maxHeld)
		if errors.Is(err, io.EOF) {
			size, err = size+block, w.unpacked(block)
			break
		}
		err = errors.Join(err, w.unpacked(block), w.stopped(w.ctx))
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, size, nil
}

// gzip looks at each member by itself: a reader of many sees neither their names nor what follows the last.
func (w walker) gzip(p place, r *io.SectionReader) error {
	in := bufio.NewReader(r)
	z, err := gzip.NewReader(in)
	for n := 0; err == nil; n++ {
		z.Multistream(false)
		w.words(p.in("header"), strings.Join([]string{z.Name, z.Comment, string(z.Extra)}, "\n"))
		part := p.in("gzip")
		if n > 0 {
			part = p.in("gzip " + strconv.Itoa(n))
		}
		if err := w.member(part, z); err != nil {
			return err
		}
		if _, err := in.Peek(1); errors.Is(err, io.EOF) {
			return nil
		}
		err = z.Reset(in)
		if n == maxMembers {
			return fmt.Errorf("more than %d members", n)
		}
	}
	rest, at := new(bytes.Buffer), r.Size()
	// The header that could not be read is lost from the buffer; what is left of it is looked at all the same.
	if _, err := rest.ReadFrom(io.LimitReader(in, maxHeld)); err != nil {
		return err
	}
	if err := w.behind(p, rest.Bytes(), at-int64(rest.Len())); err != nil {
		return err
	}
	return fmt.Errorf("something other than gzip follows its end: %w", err)
}

// behind looks at bytes that no member of a container accounts for.
func (w walker) behind(p place, rest []byte, at int64) error {
	if len(bytes.Trim(rest, "\x00")) == 0 {
		return nil
	}
	return w.look(p.in(fmt.Sprintf("bytes from %d", at)), bytes.NewReader(rest), int64(len(rest)))
}

// skippable looks at what a zstd file has that decompressing it passes over.
func (w walker) skippable(p place, r io.ReaderAt, size int64) error {
	block := make([]byte, 1<<20)
	for at := int64(0); at < size; at += int64(len(block)) - 8 {
		n, err := r.ReadAt(block[:min(int64(len(block)), size-at)], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		for i := 1; ; i++ {
			next := bytes.Index(block[i:n], []byte("\x2a\x4d\x18"))
			if next < 0 {
				break
			}
			i += next
			if block[i-1]&0xf0 != 0x50 || i+7 > n {
				continue
			}
			from := at + int64(i) + 7
			length := min(int64(binary.LittleEndian.Uint32(block[i+3:])), size-from, maxHeld)
			if err := w.look(p.in(fmt.Sprintf("bytes from %d", from)), io.NewSectionReader(r, from, length), length); err != nil {
				return err
			}
		}
	}
	return nil
}

// zip looks at the members, and at members that its directory does not name.
func (w walker) zip(p place, r io.ReaderAt, size int64) error {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return errors.Join(err, w.bytes(p, r, size))
	}
	if len(z.File) > maxMembers {
		return fmt.Errorf("%d members, and at most %d are read", len(z.File), maxMembers)
	}
	z.RegisterDecompressor(12, func(r io.Reader) io.ReadCloser { return io.NopCloser(bzip2.NewReader(r)) })
	z.RegisterDecompressor(93, zstd.ZipDecompressor(zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20)))
	w.words(p.in("comment"), z.Comment)
	claimed := []span{}
	for _, f := range z.File {
		at, err := f.DataOffset()
		if err != nil {
			return err
		}
		claimed = append(claimed, span{at - 30 - int64(len(f.Name)), at + int64(f.CompressedSize64)})
		w.words(p.in(f.Name), f.Comment+"\n"+string(f.Extra))
		if f.FileInfo().IsDir() {
			w.names(p.in(f.Name), f.Name, isOther)
			continue
		}
		if f.Flags&1 != 0 {
			w.gap("", p.in(f.Name).String(), "it is encrypted: unpack the archive, and name what comes out")
			continue
		}
		body, err := f.Open()
		if err != nil {
			w.gap("", p.in(f.Name).String(), "it could not be read: %v", err)
			continue
		}
		if err := errors.Join(w.namedMember(p, f.Name, body), body.Close()); err != nil {
			return err
		}
	}
	return w.hiddenMembers(p, r, size, claimed)
}

// A span is a part of a file, from its first byte to behind its last.
type span struct{ from, to int64 }

// hiddenMembers looks at what lies between the members: headers of more of them, and anything before and behind.
func (w walker) hiddenMembers(p place, r io.ReaderAt, size int64, claimed []span) error {
	slices.SortFunc(claimed, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	pos := int64(0)
	for _, c := range append(claimed, span{size, size}) {
		from, to := pos, c.from
		pos = max(pos, c.to)
		if to-from < 1 {
			continue
		}
		rest, err := readAll(io.NewSectionReader(r, from, to-from), to-from, maxHeld)
		if err != nil {
			return err
		}
		at := bytes.Index(rest, []byte("PK\x03\x04"))
		for ; at >= 0 && len(rest)-at > 30; at = bytes.Index(rest, []byte("PK\x03\x04")) {
			head := rest[at:]
			name, extra := int(binary.LittleEndian.Uint16(head[26:])), int(binary.LittleEndian.Uint16(head[28:]))
			method, data := binary.LittleEndian.Uint16(head[8:]), head[min(len(head), 30+name+extra):]
			rest = data
			if n := int(binary.LittleEndian.Uint32(head[18:])); n > 0 && n <= len(data) {
				data, rest = data[:n], data[n:]
			}
			var body io.Reader = bytes.NewReader(data)
			if method == zip.Deflate {
				body = flate.NewReader(body)
			}
			if err := w.namedMember(p, string(head[30:min(len(head), 30+name)]), body); err != nil {
				return err
			}
		}
		rest = behindDirectory(rest)
		if len(rest) <= 24 { // the lengths of a member that were not known before
			w.residueIDs(p, rest)
		} else if err := w.behind(p, rest, to-int64(len(rest))); err != nil {
			return err
		}
	}
	return nil
}

// behindDirectory returns what follows the descriptors and the directory of a zip.
func behindDirectory(b []byte) []byte {
	for len(b) > 46 || len(b) > 16 && b[2] != 1 {
		at := func(i int) int { return int(binary.LittleEndian.Uint16(b[i:])) }
		n := 0
		switch {
		case bytes.HasPrefix(b, []byte("PK\x01\x02")):
			n = 46 + at(28) + at(30) + at(32)
		case bytes.HasPrefix(b, []byte("PK\x05\x06")) && len(b) >= 22:
			n = 22 + at(20)
		case bytes.HasPrefix(b, []byte("PK\x06\x06")) && len(b) >= 56:
			n = 56
		case bytes.HasPrefix(b, []byte("PK\x06\x07")):
			n = 20
		case bytes.HasPrefix(b, []byte("PK\x07\x08")):
			n = 16
		default:
			return b
		}
		b = b[min(n, len(b)):]
	}
	return b
}

// tar looks at the members, at what their headers say, and at what lies behind the end.
func (w walker) tar(p place, all *io.SectionReader) error {
	z := tar.NewReader(all)
	for n := 0; ; n++ {
		head, err := z.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if n == maxMembers {
			return fmt.Errorf("more than %d members", n)
		}
		w.words(p.in(head.Name), strings.Join([]string{head.Linkname, head.Uname, head.Gname}, "\n"))
		for key, value := range head.PAXRecords {
			if key != "path" && key != "linkpath" {
				w.words(p.in(head.Name), key+"\n"+value)
			}
		}
		if err := w.namedMember(p, head.Name, z); err != nil {
			return err
		}
	}
	// Programs stop reading at the end marker, so content can be hidden behind it.
	at, err := all.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	for block := make([]byte, 512); at < all.Size(); at += 512 {
		n, err := all.ReadAt(block, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(bytes.Trim(block[:n], "\x00")) > 0 {
			return w.look(p.in(fmt.Sprintf("bytes from %d", at)), io.NewSectionReader(all, at, all.Size()-at), all.Size()-at)
		}
	}
	return nil
}

// namedMember looks at a member of an archive, and at its name.
func (w walker) namedMember(p place, name string, r io.Reader) error {
	all, size, err := w.unpack(r)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	part := p.in(name)
	part.own = w.entryNamed(name)
	return w.spawn(func(w walker) error {
		defer all.Close()
		kind, _ := sniff(all, size)
		w.names(part, name, kind)
		return w.look(part, all, size)
	})
}

// readAll reads up to limit bytes of a file; more is an error.
func readAll(r io.ReaderAt, size, limit int64) ([]byte, error) {
	if size > limit {
		return nil, fmt.Errorf("%d bytes, and at most %d are read", size, limit)
	}
	body := make([]byte, size)
	_, err := io.ReadFull(io.NewSectionReader(r, 0, size), body)
	return body, err
}

// isTombstones reports whether a whole file is a list of tombstones. It names posts that are gone, and is meant
// to be handed on.
func isTombstones(r io.ReaderAt, size int64) bool {
	if size > maxImage {
		return false
	}
	_, err := manifest.ReadTombstones(io.NewSectionReader(r, 0, size))
	return err == nil
}
