package audit

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/text/encoding/unicode"

	"rehydrate/internal/picture"
	"rehydrate/internal/printable"
	"rehydrate/internal/scratch"
	"rehydrate/internal/unpack"
	"rehydrate/internal/userfile"
	"rehydrate/manifest"
	"rehydrate/pipeline/copies"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// Limits of what an audit reads. Anything larger is a gap, and never a PASS.
const (
	maxImage   = 64 << 20 // an image
	maxHeld    = 8 << 20  // what is held in memory; anything larger is unpacked into a file without a name
	maxMembers = 200_000  // of one archive
	maxDepth   = 6        // containers in containers
	maxRows    = 2_000_000
)

var errDeep = fmt.Errorf("containers in containers, more than %d deep", maxDepth)

// scanAll looks at every source, and then at what was seen in all of them together.
func (a *audit) scanAll(ctx context.Context) error {
	if err := a.gone.indexCaptions(); err != nil {
		return err
	}
	a.gone.index()
	a.indexIDs()
	crew := &errgroup.Group{}
	// Decoding takes the time, so more goroutines than processors would only take memory.
	crew.SetLimit(runtime.GOMAXPROCS(0))
	look := func(s *source) {
		s.file = &AuditedFile{Name: s.where, Size: s.size, in: len(a.report.Scope.Looked) - 1}
		if s.open != nil {
			a.report.Scope.Files = append(a.report.Scope.Files, s.file)
		}
		w := walker{audit: a, ctx: ctx, crew: crew, left: &atomic.Int64{}, found: &atomic.Bool{},
			opened: &atomic.Bool{}}
		w.left.Store(budgetOf(s.size, max(1, len(a.report.Scope.Files))))
		open := func(w walker) { w.lost(place{src: s, path: s.where}, w.source(s)) }
		// A large file spreads its own members over the processors: several at once would fill the memory.
		if s.size > maxHeld {
			open(w)
		} else {
			w.spawn(open)
		}
	}
	var err error
	if a.Workspace != nil {
		a.enter(InWorkspace, a.Workspace.Dir())
		err = errors.Join(a.inWorkspace(ctx, look), a.inCopies(ctx, look))
	}
	for _, name := range a.Files {
		if l := a.lookedAtWith(name); l != nil {
			where := map[PlaceKind]string{InCopy: "registered copy", InWorkspace: "workspace"}[l.Kind]
			a.note("%s lies in the %s %s, and is looked at there", name, where, l.Where)
			continue
		}
		a.enter(InNamed, filepath.ToSlash(name))
		err = errors.Join(err, a.inNamed(ctx, name, look))
	}
	if err := errors.Join(err, crew.Wait()); err != nil {
		return cmp.Or(ctx.Err(), err)
	}
	a.checkColumns()
	return a.resolve(ctx)
}

// checkColumns opens the audit where no table has a column that the auditor named: a slip of the pen must not pass for
// a search of it.
func (a *audit) checkColumns() {
	for flag, c := range map[string]struct {
		name string
		has  bool
	}{"--id-column": {a.Columns.ID, a.hasID.Load()}, "--phash-column": {a.Columns.PHash, a.hasPHash.Load()}} {
		if c.name != "" && !c.has && len(a.Files) > 0 {
			a.open(filepath.ToSlash(manifest.List(a.Files)), "name the column as it stands there, or leave out "+flag,
				"no table in it has a column %s, which %s names", c.name, flag)
		}
	}
}

// lookedAtWith returns the workspace or the registered copy that was looked at and that has a named file or folder; nil
// for none. Where the auditor says what columns mean, a named file is looked at by itself.
func (a *audit) lookedAtWith(name string) *Looked {
	if a.Columns != (ScanColumns{}) {
		return nil
	}
	named, err := realPath(name)
	for _, l := range a.report.Scope.Looked {
		dir, wrong := realPath(l.Where)
		if l.Kind != InNamed && err == nil && wrong == nil && (named == dir ||
			strings.HasPrefix(named, dir+string(filepath.Separator))) {
			return &l
		}
	}
	return nil
}

// realPath is a whole path without links.
func realPath(name string) (string, error) {
	whole, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(whole)
}

// enter notes the place in which the files lie that are looked at next.
func (a *audit) enter(kind PlaceKind, where string) {
	a.report.Scope.Looked = append(a.report.Scope.Looked, Looked{Where: printable.Line(where), Kind: kind})
}

// inNamed looks at a file or folder that the auditor named. That there is nothing in it is open: it may be a disk that
// is not mounted, or a download that broke off.
func (a *audit) inNamed(ctx context.Context, name string, look func(*source)) error {
	size, unread := int64(0), true
	files, err := a.eachBelow(ctx, name, func(s *source) {
		size, unread = size+s.size, unread && s.open == nil
		s.columns = a.Columns
		look(s)
	})
	if err == nil && (files == 0 || files == 1 && size == 0 && !unread && !mayBeEmpty(name)) {
		a.open(filepath.ToSlash(name), "find out where its content is; if it is meant to be empty, leave it out",
			"there is nothing in it")
	}
	return cmp.Or(err, a.checkBeside(name))
}

// checkBeside opens the audit where a database was named without the log that lies beside it: what SQLite shows of the
// database is in both. In a folder that was named, the log is looked at by itself.
func (a *audit) checkBeside(name string) error {
	file, size, err := userfile.Open(name)
	if err != nil {
		return nil // a folder, or what could not be read, which the walk says
	}
	defer file.Close()
	if sniff(io.NewSectionReader(file, 0, size)) != isDatabase {
		return nil
	}
	place, err := filepath.EvalSymlinks(name) // where SQLite looks for it
	if err != nil {
		return err
	}
	for _, log := range []string{place + "-wal", place + "-journal"} {
		info, err := os.Stat(log)
		if err != nil || info.Size() == 0 {
			continue
		}
		named, err := a.isNamed(log)
		if err != nil {
			return err
		}
		if !named {
			a.open(filepath.ToSlash(name), "join a copy of both, sqlite3 COPY \"VACUUM INTO 'whole.db'\", and audit whole.db",
				"%s lies beside it, and has rows of it that were not checked", filepath.Base(log))
		}
	}
	return nil
}

// isNamed reports whether a file was named, or a folder that it lies in.
func (a *audit) isNamed(file string) (bool, error) {
	place, err := realPath(file)
	for _, name := range a.Files {
		named, wrong := realPath(name)
		if err := cmp.Or(err, wrong); err != nil {
			return false, err
		}
		if place == named || strings.HasPrefix(place, named+string(filepath.Separator)) {
			return true, nil
		}
	}
	return false, err
}

// mayBeEmpty reports whether files of such a name often have nothing in them: marks that hold a folder, locks, modules
// and labels of pictures on which there is nothing.
func mayBeEmpty(name string) bool {
	base := filepath.Base(name)
	return strings.HasPrefix(base, ".") ||
		slices.Contains([]string{"", ".py", ".typed", ".txt", ".log", ".md", ".lock"}, filepath.Ext(base))
}

func (w walker) source(s *source) error {
	if s.open == nil {
		w.names(w.placeNamed(place{src: s, path: s.where}, s.rel), s.rel, "")
		return nil
	}
	r, err := s.open()
	switch {
	case s.name != "" && errors.Is(err, fs.ErrNotExist):
		return nil // a run that is under way has taken it away
	case err != nil:
		return err
	}
	defer r.Close()
	all := io.NewSectionReader(r, 0, s.size)
	sum := sha256.New()
	// What is small is read once, and hashed and searched in memory.
	if s.size <= maxHeld {
		body, err := readAll(all, maxHeld)
		if err != nil {
			return err
		}
		all = section(body)
		sum.Write(body) // without the buffer of io.Copy, which is larger than many an image
	} else if _, err := io.Copy(sum, io.NewSectionReader(all, 0, s.size)); err != nil {
		return err
	}
	s.file.SHA256 = SHA256(sum.Sum(nil))
	kind := sniff(all)
	if w.accountFor(s, kind, all) {
		return nil
	}
	p := w.placeNamed(place{src: s, path: s.where, label: gitOwn.MatchString(s.where), list: s.list}, s.rel)
	if rec := w.storedAs(p); rec != nil && kind != isImage {
		w.stray(rec.name, s.where, doFetch, "it is not the image that was stored there: it is no image")
	}
	// The name is judged beside the content: bytes that match nothing may lie under the id of an erased post.
	w.names(p, s.rel, kind)
	w.scan(p, all)
	return nil
}

func (a *audit) inWorkspace(ctx context.Context, look func(*source)) error {
	for f, err := range a.Workspace.Walk(ctx, ".") {
		if err != nil {
			return err
		}
		s := &source{where: f.Name, name: f.Name, rel: f.Name, size: f.Size, next: a.next[f.Name],
			open: func() (*os.File, error) { return a.Workspace.OpenFile(f.Name) }}
		s.mayName = slices.Contains([]string{manifest.OutcomesName, manifest.TombstonesName, manifest.ListName,
			workspace.ReportName}, f.Name) ||
			strings.HasPrefix(f.Name, state.AuditDir+"/") || a.exported[f.Name] != ""
		// The key is a short text of a known kind; anything longer under its name is searched like any file.
		s.ours = s.mayName || f.Name == state.StateFile || f.Name == state.LogKeyFile && f.Size < 300
		s.known = s.ours || strings.HasPrefix(f.Name, state.ImagesDir+"/")
		switch {
		case f.Link != "":
			a.open(f.Name, "move what it points to into its place, and audit again",
				"it is a symbolic link to %s: what that has was not checked, and no removal reaches it", f.Link)
		case !f.Mode.IsRegular():
			a.open(f.Name, "take it away", "it is not a regular file (%s), so its target was not checked",
				f.Mode.Type())
		case f.Name == state.JournalFile:
			a.open(f.Name, "audit again, after a run if need be",
				"a writer is at work, or was killed: the content of its journal was not checked")
		default:
			look(s)
		}
	}
	empty, err := a.Workspace.EmptyFolders(ctx)
	for _, name := range empty {
		look(&source{where: name, name: name, rel: name})
		a.note("%s is an empty folder that no command makes: delete it", name)
	}
	return err
}

func (a *audit) inCopies(ctx context.Context, look func(*source)) error {
	list, err := a.Workspace.Copies(ctx)
	if err != nil {
		return err
	}
	a.compareCopies(list)
	reports, err := copies.Glance(ctx, a.Workspace)
	if err != nil {
		return err
	}
	for owing, c := range state.Reported(reports, list) {
		left := copies.Leftover(ctx, c)
		if left != "" {
			if err := a.inLeftover(ctx, left, *owing, look); err != nil {
				return err
			}
		}
		// Lstat: a link in place of a copy is looked through like a folder, but one that leads nowhere is still there.
		if _, err := os.Lstat(c.Path); err != nil || c.Format == state.ThirdParty {
			if left == "" {
				a.outOfReach(c, owing.Owed)
			}
			continue
		}
		a.report.Scope.Copies++
		a.enter(InCopy, c.Path)
		if left == "" && owing.State != state.CopyGood && owing.State != state.CopyClosed {
			a.stillOpen(*owing)
		}
		missing := map[string]string{}
		for _, f := range c.Files {
			missing[f.Name] = f.SHA256
		}
		_, err := a.eachBelow(ctx, c.Path, func(s *source) {
			s.copied, s.recorded, s.next = true, missing[s.rel], c.Next[s.rel]
			s.again = c.Was != nil
			delete(missing, s.rel)
			look(s)
		})
		// A file that somebody moved away may be anywhere, with rows that a purge cannot reach.
		for name := range missing {
			a.changedCopy(filepath.ToSlash(filepath.Join(c.Path, name)), "it is no longer there")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// inLeftover looks at the folder that a killed export left: no name and no digest in it is on record.
func (a *audit) inLeftover(ctx context.Context, left string, c state.CopyReport, look func(*source)) error {
	a.report.Scope.Copies++
	a.enter(InCopy, left)
	if c.State == state.CopyOpen {
		a.stillOpen(c)
	} else {
		a.note("the export of the copy %s (%s) was never finished: the next rehydrate purge deletes %s", c.Path, c.Note,
			left)
	}
	_, err := a.eachBelow(ctx, left, func(s *source) {
		s.copied, s.again = true, true
		look(s)
	})
	return err
}

// stillOpen notes a registered copy that is there and owes a removal: a purge has not got to it, or could not do it.
func (a *audit) stillOpen(c state.CopyReport) {
	what := fmt.Sprintf("the copy %s (%s) is an open obligation", c.Path, c.Note)
	if n := len(c.Owed); n > 0 {
		what += fmt.Sprintf(": %d of its rows must go: %s", n, some(c.Owed))
	}
	if c.Told != "" {
		what += "; " + c.Told
	}
	a.duty(Duty{Kind: DutyCopy, Where: c.Path, What: what, Posts: c.Owed, Late: true,
		Do: "put it in order and purge, or say what became of it: " + doClose})
}

// eachBelow looks at a file, or at the files of a folder in byte order of their names, and at its folders in which
// there are none. One that cannot be read is a gap. It returns how many files there are.
func (a *audit) eachBelow(ctx context.Context, root string, look func(*source)) (files int, err error) {
	err = filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && e.IsDir() {
			a.folder(root, name, look)
			return nil
		}
		files++
		var info fs.FileInfo
		if err == nil {
			info, err = os.Stat(name) // through links
		}
		// A fifo or a device could hang the audit, or never end.
		if err == nil && !info.Mode().IsRegular() {
			err = errors.New("it is neither a regular file nor a link to one")
		}
		// The walk continues after an error: one bad link must not hide the files behind it.
		if err != nil {
			a.unread(filepath.ToSlash(name), err)
			return nil
		}
		rel, err := below(root, name)
		look(&source{where: filepath.ToSlash(name), rel: rel, size: info.Size(), open: func() (*os.File, error) {
			f, _, err := userfile.Open(name) // it may have become a fifo
			return f, err
		}})
		return err
	})
	return files, err
}

// folder looks at the name of a folder that has nothing in it, or that was named itself: any other is part of the names
// of what it has.
func (a *audit) folder(root, name string, look func(*source)) {
	in, err := os.ReadDir(name)
	rel, wrong := below(root, name)
	if err := cmp.Or(err, wrong); err != nil {
		return // the walk says so
	}
	if len(in) == 0 || name == root {
		look(&source{where: filepath.ToSlash(name), rel: rel})
	}
}

// below is the name of a file or folder below the folder that was named, or its own if it was named itself.
func below(root, name string) (string, error) {
	rel, err := filepath.Rel(root, name)
	if rel == "." {
		rel = filepath.Base(name)
	}
	return filepath.ToSlash(rel), err
}

// outOfReach notes a registered copy that cannot be looked at, until the operator says what became of it.
func (a *audit) outOfReach(c workspace.Copy, owed []string) {
	third := c.Format == state.ThirdParty
	if third {
		for _, row := range c.Rows {
			if e := a.postOf(row); e != nil && e.MustGo && !slices.Contains(owed, row) {
				owed = append(owed, row)
			}
		}
		slices.Sort(owed)
	}
	what := fmt.Sprintf("the copy %s (%s) is not there", c.Path, c.Note)
	if third {
		what = fmt.Sprintf("%d rows were sent to a third party, out of reach of audit and purge: %s (%s)",
			len(c.Rows), c.Path, c.Note)
	}
	if len(owed) > 0 {
		what += fmt.Sprintf(", and %d of its rows must be gone: %s", len(owed), some(owed))
	}
	if c.Told != "" {
		what += "; what was said of it: " + c.Told
	}
	do := "say what became of it: " + doClose
	if third {
		do = "have them deleted there, then say so: " + doClose
	}
	switch {
	case c.Told != "" && !c.Open: // the trouble that a purge noted of a copy closes nothing
		a.note("%s", what)
	case len(owed) > 0:
		a.duty(Duty{Kind: DutyCopy, Where: c.Path, What: what, Do: do, Posts: owed, Late: true})
	case third:
		a.elsewhere = append(a.elsewhere, what)
	default:
		a.open(c.Path, do, "%s", what)
	}
}

// Kinds of bytes that more than one place asks for. The others are in magics alone.
const (
	isImage    = "an image"
	isParquet  = "Parquet"
	isDatabase = "SQLite"
	isIcon     = "an icon"
	isNumPy    = "NumPy"
	isPickle   = "a Python pickle"
	isUTF16    = "UTF-16"
)

// mostOfKey is the length, in bytes, of more than a key, a digest or a signature with the number of its key.
const mostOfKey = 96

// magics are the first bytes of formats, of those that are read here and of those that are not. Those in plain letters
// are believed only of bytes that are no text, but for the last four.
var magics = []struct{ magic, kind string }{
	{"PAR1", isParquet}, {"PARE", isParquet}, {"SQLite format 3\x00", isDatabase}, {"\x1f\x8b\x08", "gzip"},
	{"\x28\xb5\x2f\xfd", "zstd"},
	{"BZh", "bzip2"}, {"PK\x03\x04", "zip"}, {"PK\x05\x06", "zip"}, {"\xff\xfe", isUTF16}, {"\xfe\xff", isUTF16},
	{"\xfd7zXZ\x00", "xz"}, {"7z\xbc\xaf\x27\x1c", "7-Zip"}, {"Rar!\x1a\x07", "RAR"}, {"\x04\x22\x4d\x18", "LZ4"},
	{"LZIP", "lzip"}, {"\x1f\x9d", "compress"}, {arrowMagic, arrowFile}, {"\xff\xff\xff\xff", arrowStream},
	{"Obj\x01", "Avro"}, {"ORC", "ORC"}, {"\x93NUMPY", isNumPy}, {"PK\x07\x08", "a zip in parts"},
	{picture.MagicBMP, "a BMP image"}, {picture.MagicTIFF, "a TIFF image"}, {picture.MagicTIFFBE, "a TIFF image"},
	{picture.MagicICO, isIcon}, {picture.MagicJXL, "a JPEG XL image"},
	{"PACK\x00\x00\x00", gitPack}, {"DIRC\x00\x00\x00", gitList}, {"\xfftOc\x00\x00\x00",
		gitList}, {"RIDX\x00\x00\x00", gitList},
	{"MIDX\x01", gitList}, {"CGPH\x01", gitList}, {"BITM\x00\x01", gitList}, {"MTME\x00\x00\x00", gitList},
	{"\x89HDF\r\n\x1a\n", "HDF5"}, {"\x1aE\xdf\xa3", "a Matroska or WebM film"}, {"\x00\x00\x00\x0cjP  \r\n",
		"a JPEG 2000 image"}, {"\xff\x4f\xff\x51", "a JPEG 2000 image"},
	{"P5\n", "a PGM image"}, {"P6\n", "a PPM image"}, {"P6 ", "a PPM image"}, {"P5 ", "a PGM image"}, {"8BPS",
		"a Photoshop image"},
	{"\x7fELF", "a program"}, {"MZ", "a program"}, {"\xcf\xfa\xed\xfe", "a program"}, {"\x00\x01\x00\x00\x00",
		"a font"}, {"OTTO", "a font"},
	{"true\x00", "a font"}, {"wOFF", "a font"}, {"wOF2", "a font"}, {"ttcf", "a font"}, {"hsqs",
		"squashfs"}, {"bplist00", "a binary property list"},
	{"MATLAB 5.0 MAT-file", "a MATLAB file"}, {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
		"an old Office file"}, {"mozLz40\x00", "LZ4 of Firefox"}, {"!<arch>\n", "an ar archive"},
	{"RIFF", "a sound or a film"}, {"ID3", "a sound"}, {"OggS", "a sound"}, {"fLaC", "a sound"}, {"MSCF",
		"a cabinet"}, {"xar!", "an xar archive"},
	{"%PDF-", "PDF"}, {"age-encryption.org/", "age"}, {"-----BEGIN AGE ", "age"}, {"-----BEGIN PGP MESSAGE", "OpenPGP"},
}

// sniff returns the kind of a leaf by its bytes, since anyone can choose its name; empty for texts and unknown bytes.
func sniff(all *io.SectionReader) string {
	kind, _ := sniffed(all)
	return kind
}

// sniffed is sniff, and returns the first bytes by which a format was known; none where there is more to know it by.
func sniffed(all *io.SectionReader) (kind, magic string) {
	// A tar shows its mark at byte 257, and all others earlier.
	head, _ := readAll(io.NewSectionReader(all, 0, min(all.Size(), 1024)), 1024)
	if picture.Format(head[:min(len(head), picture.SniffBytes)]) != "" {
		return isImage, ""
	}
	text := !hasNoText(head)
	for i, m := range magics {
		// Keys, digests and signatures begin with any two bytes.
		few := len(m.magic) <= 2 && m.kind != isUTF16 && all.Size() < mostOfKey
		if bytes.HasPrefix(head, []byte(m.magic)) && (!text || i >= len(magics)-4) && !few {
			return m.kind, m.magic
		}
	}
	switch {
	case len(head) >= 512 && bytes.HasPrefix(head[257:], []byte("ustar")):
		return "tar", ""
	case len(head) >= 12 && string(head[4:8]) == "ftyp":
		return "a film, or an image as AVIF or HEIC", ""
	case gitLoose(head):
		return gitObject, ""
	case pickled(head, all):
		return isPickle, ""
	case len(head) > 10 && head[8] == '{' && head[7] == 0 && binary.LittleEndian.Uint64(head) < uint64(all.Size()):
		return "safetensors", ""
	}
	return "", ""
}

// pickled reports whether bytes are a pickle of a Python object, of protocols 2 to 5 by their mark; those before are
// text, or look like it.
func pickled(head []byte, all *io.SectionReader) bool {
	end := make([]byte, 1)
	_, _ = all.ReadAt(end, max(0, all.Size()-1))
	if len(head) < 4 || end[0] != '.' {
		return false
	}
	opens := func(mark string) bool { return bytes.HasPrefix(head, []byte(mark)) }
	return head[0] == 0x80 && head[1] >= 2 && head[1] <= 5 ||
		slices.ContainsFunc([]string{"]q\x00", "}q\x00", "(lp0", "(dp0"}, opens) ||
		opens("ccopy_reg") && hasNoText(head)
}

// section makes bytes in memory a leaf.
func section(b []byte) *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b)))
}

// scanInto is scan for bytes of any kind.
func (w walker) scanInto(p place, all *io.SectionReader) error {
	if p.table == nil {
		w.lookedAt.Add(1)
	}
	all = io.NewSectionReader(all, 0, all.Size()) // whoever read it before, it begins here
	kind := sniff(all)
	switch {
	case w.depth > maxDepth+1: // the bytes of the innermost container are looked at, too
		return errDeep
	case kind == "":
		return w.loose(p, all)
	case kind == isImage:
		return w.image(p, all)
	case w.depth >= maxDepth:
		return errDeep
	}
	w.depth++
	switch kind {
	case isParquet:
		return w.parquet(p, all)
	case isDatabase:
		return w.database(p, all)
	case arrowFile, arrowStream:
		return w.arrow(p, kind, all)
	case "zip":
		return w.zip(p, all)
	case "tar":
		return w.tar(p, all)
	case "PDF":
		// The words on its pages are numbers of signs in its fonts, and it may be encrypted, so it is a gap in any case.
		body, err := readAll(all, p.atOnce(2*maxImage))
		w.search(p, body, true, true)
		w.carve(p, body)
		return cmp.Or(err,
			error(&unreadFormat{"it is a PDF: only its JPEGs and plain words were compared", "look at its pages"}))
	}
	switch kind {
	case gitObject:
		return w.gitObject(p, all)
	case gitPack:
		return w.gitPack(p, all)
	case gitList:
		body, err := readAll(all, p.atOnce(2*maxImage))
		w.words(p, string(body))
		return err
	case isNumPy:
		return w.numpy(p, all)
	}
	w.raw(p, all)
	switch kind {
	case isIcon:
		if smallIcon(all) {
			return nil
		}
	case isUTF16:
		w.member(p.in(kind), "", unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder().Reader(all))
		return nil
	case "gzip", "bzip2", "zstd":
		err := w.chargeWindow(all)
		if err != nil {
			return err
		}
		z, err := unpack.NewReader(all)
		defer z.Close()
		if err == nil {
			w.member(p.in(kind), "", z)
		}
		return err
	}
	// What is packed in a way that is not read here cannot be found, so it is a gap, not a text without findings.
	return &unreadFormat{fmt.Sprintf("it is %s, which is not read here", kind),
		cmp.Or(todo[kind], "unpack or convert it, and name what comes out; or delete it")}
}

// todo says what to do with a format, where that is more than to unpack it.
var todo = map[string]string{
	isPickle:                  "save what it holds as Parquet or CSV, and name that; or delete it",
	"safetensors":             "delete it if it was made of removed posts: it holds numbers alone",
	"HDF5":                    "save its tables and images as Parquet or files, and name those; or delete it",
	"a Matroska or WebM film": "look at it", "a film, or an image as AVIF or HEIC": "look at it",
	"a sound or a film": "look at it", "a sound": "listen to it",
	"a program":          "see that it is one that you know",
	"a font":             "see that it is one that you know",
	"a MATLAB file":      "save what it holds as CSV, and name that; or delete it",
	"an old Office file": "save it in today's format, and name that; or delete it",
	"Avro":               "save it as Parquet, and name that; or delete it",
	"ORC":                "save it as Parquet, and name that; or delete it",
	isNumPy:              "save it as CSV, or its pictures as files, and name those; or delete it",
	"a JPEG 2000 image":  "save it as PNG, and name that; or delete it",
	"a PPM image":        "save it as PNG, and name that; or delete it",
	"a PGM image":        "save it as PNG, and name that; or delete it",
	"a TIFF image":       "save it as PNG, and name that; or delete it",
	"a BMP image":        "save it as PNG, and name that; or delete it",
	"a JPEG XL image":    "save it as PNG, and name that; or delete it",
	"a Photoshop image":  "save it as PNG, and name that; or delete it",
}

// smallIcon reports whether no picture of an icon is larger than one that is known by nobody.
func smallIcon(all *io.SectionReader) bool {
	head, err := readAll(io.NewSectionReader(all, 0, min(all.Size(), 6+16*100)), 1<<12)
	if err != nil || len(head) < 22 {
		return false
	}
	n := int(binary.LittleEndian.Uint16(head[4:]))
	for i := range n {
		at := 6 + 16*i
		if at+16 > len(head) || head[at] == 0 || head[at] > iconSide || head[at+1] == 0 || head[at+1] > iconSide {
			return false
		}
	}
	return n > 0
}

// raw searches the bytes of a container as they are: what its reader passes over is found only there.
func (w walker) raw(p place, all *io.SectionReader) {
	p.label, p.again = true, true
	w.lost(p, w.bytes(p, all))
}

// member looks at a member of a container, and at its name; an empty one says nothing. It returns what cut it off.
func (w walker) member(p place, name string, r io.Reader) (cut error) {
	if name != "" {
		p = w.placeNamed(p.in(name), name)
	}
	all, end, cut := w.unpack(r)
	w.lost(p, cut)
	// What came out of a member that is cut off is looked at all the same.
	w.spawn(func(w walker) {
		defer end.Close()
		w.packed(p, name, all)
	})
	return cut
}

// packed looks at a file that lies in another one, and at its name; an empty one says nothing. What names removed posts
// by right does so wherever it lies.
func (w walker) packed(p place, name string, all *io.SectionReader) {
	kind := sniff(all)
	if kind != isImage {
		sum := sha256.New()
		_, err := io.Copy(sum, io.NewSectionReader(all, 0, all.Size()))
		w.lost(p, err)
		if w.Release.HasFile(hex.EncodeToString(sum.Sum(nil))) {
			return
		}
	}
	p.list = p.src.name == "" && kind == "" && w.isOwnList(p, all, false)
	if name != "" {
		w.names(p, name, kind)
	}
	w.scan(p, all)
}

// unpack reads all up to an error, into memory or, if it is much, into a file without a name.
func (w walker) unpack(r io.Reader) (all *io.SectionReader, end io.Closer, err error) {
	r = io.TeeReader(r, meter{w})
	body, err := io.ReadAll(io.LimitReader(r, maxHeld))
	if err != nil || len(body) < maxHeld {
		return section(body), io.NopCloser(nil), err
	}
	f, err := scratch.File() // it may hold erased content
	if err != nil {
		return section(body), io.NopCloser(nil), err
	}
	n, err := io.Copy(f, io.MultiReader(bytes.NewReader(body), r))
	return io.NewSectionReader(f, 0, n), f, err
}

// unclaimed returns how many bytes of a part of a container are left from the first that is not zero, and where that
// is.
func unclaimed(all *io.SectionReader, from, to int64) (n, at int64) {
	in := bufio.NewReaderSize(io.NewSectionReader(all, from, to-from), 64<<10)
	for ; from < to; from++ {
		if b, err := in.ReadByte(); b != 0 || err != nil {
			break
		}
	}
	return to - from, from
}

// zip looks at the members that the directory of a zip names. That there is more than they and the directory is a gap.
func (w walker) zip(p place, all *io.SectionReader) error {
	z, err := zip.NewReader(all, all.Size())
	if err == nil && len(z.File) > maxMembers {
		err = fmt.Errorf("more than %d members", maxMembers)
	}
	if err != nil {
		w.raw(p, all)
		return err
	}
	w.words(p, z.Comment)
	for _, f := range z.File {
		w.words(p.in(f.Name), f.Comment+"\n"+string(f.Extra))
		w.lost(p.in(f.Name), w.zipped(p, all, f))
	}
	return cmp.Or(w.ctx.Err(), w.zipGaps(p, all, z))
}

// zipGaps looks at what lies between the members that the directory of a zip names. More behind them than the directory
// is a gap.
func (w walker) zipGaps(p place, all *io.SectionReader, z *zip.Reader) error {
	const record, entry, end, end64 = 30, 46, 22, 56 + 20
	unlisted := &unreadFormat{"it has more or fewer bytes than the members that it lists", "have it packed again"}
	type member struct {
		*zip.File
		from int64 // of its bytes
	}
	var members []member
	directory := int64(end + len(z.Comment))
	for _, f := range z.File {
		from, err := f.DataOffset()
		if err != nil {
			return nil // that it cannot be read is said of it
		}
		members = append(members, member{f, from})
		directory += int64(entry + len(f.Name) + len(f.Extra) + len(f.Comment))
	}
	slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.from, b.from) })
	at, last := int64(0), (*zip.File)(nil)
	for _, m := range members {
		if m.from >= at { // several names may be of the same bytes
			between, err := readAll(io.NewSectionReader(all, at, m.from-at), p.atOnce(maxImage))
			if err != nil {
				return err
			}
			begins := len(between) - record
			for ; begins >= 0; begins-- {
				b := between[begins:]
				rest := int(binary.LittleEndian.Uint16(b[26:])) + int(binary.LittleEndian.Uint16(b[28:]))
				if string(b[:4]) == "PK\x03\x04" && record+rest == len(b) {
					break
				}
			}
			if begins < 0 {
				return unlisted
			}
			// The name may be another one here, and what is behind it is not all in the directory.
			w.words(p.in(m.Name), strings.TrimPrefix(string(between[begins+record:]), m.Name))
			between = between[sizesBehind(last, between[:begins]):begins]
			if len(bytes.Trim(between, "\x00")) > 0 {
				w.scan(p.in("between its members"), section(between))
			}
		}
		at, last = max(at, m.from+int64(m.CompressedSize64)), m.File
	}
	behind, err := readAll(io.NewSectionReader(all, min(at, all.Size()), max(0, min(24, all.Size()-at))), 24)
	if err != nil {
		return err
	}
	at += int64(sizesBehind(last, behind))
	if more := all.Size() - at - directory; more != 0 && more != end64 {
		return unlisted
	}
	return nil
}

// sizesBehind returns how long the record is that stands behind a member and has its sum and sizes once more; 0 for
// none.
func sizesBehind(f *zip.File, behind []byte) int {
	if f == nil {
		return 0
	}
	sum := binary.LittleEndian.AppendUint32(nil, f.CRC32)
	for mark, sizes := range map[string][]int{"PK\x07\x08": {24, 16}, "": {20, 12}} {
		for _, size := range sizes {
			wide := size-len(mark) == 20
			if len(behind) < size || !bytes.HasPrefix(behind, append([]byte(mark), sum...)) {
				continue
			}
			packed := behind[len(mark)+4:]
			if wide && binary.LittleEndian.Uint64(packed) == f.CompressedSize64 ||
				!wide && binary.LittleEndian.Uint32(packed) == uint32(f.CompressedSize64) {
				return size
			}
		}
	}
	return 0
}

// zipped looks at a member of a zip.
func (w walker) zipped(p place, all *io.SectionReader, f *zip.File) error {
	from, err := f.DataOffset()
	in := io.NewSectionReader(all, from, int64(f.CompressedSize64))
	switch {
	case err != nil:
		return err
	case from+in.Size() > all.Size():
		return errors.New("it is cut off")
	// Its bytes say nothing without the password, and a guess would be a PASS.
	case f.Flags&1 != 0:
		w.open(p.in(f.Name).String(), "ask for the password, unpack it, and name what comes out", "it is encrypted")
	case f.Method == zip.Deflate:
		packed := bufio.NewReader(in)
		cut := w.member(p, f.Name, flate.NewReader(packed))
		if _, err := packed.ReadByte(); cut == nil && err == nil {
			return errors.New("there are bytes behind its end")
		}
	// Of any other method the bytes themselves say how they are packed.
	default:
		w.member(p, f.Name, in)
	}
	return nil
}

// tar looks at the members. That there is something behind its end, where programs stop reading, is a gap.
func (w walker) tar(p place, all *io.SectionReader) error {
	z := tar.NewReader(all)
	for range maxMembers {
		head, err := z.Next()
		if errors.Is(err, io.EOF) {
			at, err := all.Seek(0, io.SeekCurrent)
			if n, at := unclaimed(all, at, all.Size()); n > 0 {
				w.open(p.String(), "have it packed again", "%d bytes from offset %d lie behind its end", n, at)
			}
			return err
		}
		if err := cmp.Or(err, w.ctx.Err()); err != nil {
			return err
		}
		said := []string{head.Linkname, head.Uname, head.Gname}
		sparse := false
		for key, value := range head.PAXRecords {
			sparse = sparse || strings.HasPrefix(key, "GNU.sparse.")
			if key != "path" && key != "linkpath" {
				said = append(said, value)
			}
		}
		w.words(p.in(head.Name), strings.Join(said, "\n"))
		at, err := all.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		w.member(p, head.Name, z)
		// What fills the last block of a member is zero, but for programs that write what they had in memory.
		end := at + head.Size
		if full := min((end+511)/512*512, all.Size()); head.Typeflag == tar.TypeReg && !sparse && full > end {
			if n, from := unclaimed(all, end, full); n > 0 {
				w.scan(p.in(head.Name).in("behind its end"), io.NewSectionReader(all, from, n))
			}
		}
	}
	return fmt.Errorf("more than %d members", maxMembers)
}

// readAll reads up to limit bytes of a leaf; more is an error.
func readAll(all *io.SectionReader, limit int64) ([]byte, error) {
	if all.Size() > limit {
		return nil, fmt.Errorf("%d bytes, and at most %d are read", all.Size(), limit)
	}
	body := make([]byte, all.Size())
	_, err := io.ReadFull(io.NewSectionReader(all, 0, all.Size()), body)
	return body, err
}
