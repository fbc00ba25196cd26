// Package verify checks that every file of a workspace is whole. It never writes, and takes no lock.
package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"rehydrate/internal/durable"
	"rehydrate/internal/fileversion"
	"rehydrate/internal/page"
	"rehydrate/internal/printable"
	"rehydrate/internal/sqlitefile"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/cluster"
	"rehydrate/pipeline/dataset/scan"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// A Damage is a file of a workspace that was changed, is missing or should not be there.
type Damage struct {
	Where string `json:"where"`
	What  string `json:"what"`
	Mend  string `json:"mend"` // what to run
}

// A Report is the result of reading every byte of a workspace.
type Report struct {
	Workspace string     `json:"workspace"`
	Whole     bool       `json:"whole"`
	Damage    []Damage   `json:"damage"`
	Sealed    bool       `json:"sealed"` // false while a run is at work, and after one that was killed
	SealedAt  *time.Time `json:"sealed_at"`
	Files     int        `json:"files"` // that were read whole
	Images    int        `json:"images"`
	Rows      int        `json:"rows"` // of the dataset
	Records   int64      `json:"log_records"`
	Notes     []string   `json:"notes"`
}

// How to mend damage. mendRead is for whatever cannot be read: it may be whole.
const (
	mendRead = "keep it, and make it readable: check the rights of the file and of its folders, and the disk; " +
		"then rehydrate verify again"
	mendFolder = "keep it, and make it readable: check the rights of the folder, and whether its disk is mounted; " +
		"then rehydrate verify again"
	mendRun   = "rehydrate run RELEASE: it fetches or writes it again"
	mendImage = "delete the file, then rehydrate run RELEASE: it fetches the image again"
	mendGone  = "rehydrate recheck RELEASE: its post is gone, so that no run fetches it again"
	mendState = "move state.db away, and a state.db-journal with it, which would change another state.db; " +
		"put back state.db from a backup, leave audit/ as it is, then rehydrate run RELEASE; without a backup " +
		"the run takes the images back and reads them again"
	mendLog    = "put back audit/ from a backup; if there is none keep it as it is and tell your auditor: a log is not mended"
	mendLoose  = "rehydrate run RELEASE: it takes the file back if the log says that it was fetched, and removes it if not"
	mendKey    = "put back log.key from a backup; without one delete it: the next command that writes makes another key, and the log records it"
	mendStray  = "move it out of the workspace, or delete it"
	mendEmpty  = "delete it"
	mendShard  = "rehydrate recheck RELEASE: it takes it away"
	mendWork   = "rehydrate cluster work --shard %d/%d: it reads the shard again"
	mendLink   = "move what it points to into its place, or delete the link if that is not of this workspace"
	mendReport = "rehydrate report: it writes it again"
	mendLeft   = "rehydrate recheck RELEASE: it takes it out"
	mendStones = "move it out of the workspace, then rehydrate recheck RELEASE: it writes it again from state.db; if " +
		"somebody put it there, or state.db came from a backup, remove its posts with it from its new place: " +
		"rehydrate purge RELEASE --offline --tombstones FILE"
	mendList = "rehydrate run LIST with the list that you keep: it writes it again; without one put the file back from " +
		"a backup"
	mendPolicy = "rehydrate run RELEASE --policy FILE with the policy that you keep: it writes it again; without one " +
		"put the file back from a backup"
)

// Workspace reads every file of the workspace in a folder and reports files that are damaged, missing or unexpected.
// It writes nothing and takes no lock. In a sealed workspace it finds one flipped bit anywhere but in the lock;
// without a seal it compares the files with the state and the log. A file or folder that cannot be read is reported as
// damage, and nothing is said of what is in it. The error is ErrNoWorkspace, *fileversion.Other, the context's or one
// of the disk, and ErrInUse when a file looks damaged and a command was at work on it meanwhile, or when nothing is
// damaged and a command is at work that may finish a removal.
func Workspace(ctx context.Context, dir string) (Report, error) {
	first, sealed, err := look(ctx, dir)
	if err != nil || first.Whole || sealed {
		return first, err
	}
	// Without a seal a command may be at work, and then another file is half written at the next look.
	second, sealed, err := look(ctx, dir)
	if err == nil && !second.Whole && !sealed && !slices.Equal(first.Damage, second.Damage) {
		err = fmt.Errorf("verify %s: %w: a command is changing it", first.Workspace, workspace.ErrInUse)
	}
	return second, err
}

// look is one look at all files of a workspace, and reports whether it is sealed.
func look(ctx context.Context, dir string) (r Report, sealed bool, err error) {
	files, err := workspace.Open(ctx, dir, workspace.Options{ReadOnly: true, FilesOnly: true})
	if err != nil {
		return Report{}, false, err
	}
	defer files.Close()
	v := &verification{files: files, report: Report{Workspace: files.Dir(), Damage: []Damage{}, Notes: []string{}},
		present: map[string]workspace.Found{}, asSealed: map[string]bool{}, unread: map[string]bool{},
		remnants: map[string]bool{},
		// These four belong to a workspace in any state of it.
		accounted: map[string]bool{state.StateFile: true, state.JournalFile: true, state.LockFile: true,
			state.LogKeyFile: true}}
	seal, sealed, unsealed := files.ReadSeal(ctx)
	// Tests open the workspace here, between the seal and the files.
	if err := durable.Step(ctx, "verify", state.SealFile); err != nil {
		return Report{}, false, err
	}
	if err := v.list(ctx); err != nil {
		return Report{}, false, err
	}
	v.seal(ctx, seal, sealed, unsealed)
	v.key()
	v.tombstones()
	if err := v.state(ctx, dir); err != nil {
		return Report{}, false, err
	}
	v.strays()
	// A writer that came or went meanwhile explains any damage: the seal is read again to know.
	later, still, err := files.ReadSeal(ctx)
	if ctx.Err() != nil {
		return Report{}, false, ctx.Err()
	}
	r = v.report
	if len(r.Damage) > 0 && (still != sealed || later.Sum != seal.Sum || (err == nil) != (unsealed == nil)) {
		return Report{}, false, fmt.Errorf("verify %s: %w: a command opened or closed it meanwhile", r.Workspace,
			workspace.ErrInUse)
	}
	if len(r.Damage) == 0 && v.waits != "" {
		return Report{}, false, fmt.Errorf("verify %s: %w: %s", r.Workspace, workspace.ErrInUse, v.waits)
	}
	slices.SortStableFunc(r.Damage, func(a, b Damage) int {
		return cmp.Or(cmp.Compare(a.Where, b.Where),
			cmp.Compare(a.What, b.What))
	})
	// Notes are not damage: they say what the next run mends by itself.
	r.Whole = len(r.Damage) == 0
	return r, sealed, nil
}

// A verification is one look. What it finds after its context has ended does not count.
type verification struct {
	files     *workspace.Workspace // without state.db
	report    Report
	present   map[string]workspace.Found // everything but folders
	empty     []string                   // folders with nothing in them
	accounted map[string]bool            // files that belong there
	asSealed  map[string]bool            // files that are as the last writer left them
	unread    map[string]bool            // files that may be whole, and could not be read
	closed    []string                   // folders that could not be read, with a slash at their ends
	remnants  map[string]bool            // files that have something which must go: all is said of them
	waits     string                     // what a command at work may still take out, "" for nothing
	blind     bool                       // state.db or the seal could not be read, so it is not known what belongs there
}

// fault is damage for an error. One that only says that the file was not read gives nothing up, but for an image that
// must go in any case.
func (v *verification) fault(where, mend, format string, err error) {
	if workspace.Unread(err) && mend != mendGone {
		mend, v.unread[where] = mendRead, true
	}
	v.damage(where, mend, format, err)
}

func (v *verification) damage(where, mend, format string, args ...any) {
	d := Damage{Where: printable.Line(where), What: printable.Line(fmt.Sprintf(format, args...)), Mend: mend}
	if !slices.Contains(v.report.Damage, d) {
		v.report.Damage = append(v.report.Damage, d)
	}
}

func (v *verification) note(format string, args ...any) {
	v.report.Notes = append(v.report.Notes, printable.Line(fmt.Sprintf(format, args...)))
}

// list lists the files.
func (v *verification) list(ctx context.Context) error {
	for f, err := range v.files.Walk(ctx, ".") {
		switch {
		case err == nil:
			v.present[f.Name] = f
		case !workspace.Unread(err) || f.Name == ".":
			return err
		case f.Mode.IsDir():
			v.closedFolder(f.Name, err)
		default:
			v.fault(f.Name, mendRead, "it cannot be read: %v", err)
		}
	}
	empty, err := v.files.EmptyFolders(ctx)
	if err != nil {
		return err
	}
	v.empty = empty
	_, stored := v.present[state.StateFile]
	_, sealed := v.present[state.SealFile]
	if !stored && !sealed {
		return fmt.Errorf("open workspace %s: %w: it has no %s", v.files.Dir(), workspace.ErrNoWorkspace, state.StateFile)
	}
	return nil
}

// closedFolder notes that a folder cannot be read. Of what is in it nothing is said.
func (v *verification) closedFolder(name string, err error) {
	if v.isClosed(name + "/") {
		return
	}
	v.closed = append(v.closed, name+"/")
	v.damage(name, mendFolder, "this folder cannot be read, so nothing in it was checked: %v", err)
}

// isClosed reports whether a file is in a folder that cannot be read.
func (v *verification) isClosed(name string) bool {
	return slices.ContainsFunc(v.closed, func(folder string) bool { return strings.HasPrefix(name, folder) })
}

// mendOf says how to mend a file, and whether a file of that name belongs into a workspace at all: a seal lists a
// stray file too.
func mendOf(name string) (mend string, belongs bool) {
	in := func(folder string) bool { return strings.HasPrefix(name, folder+"/") }
	switch {
	case name == state.StateFile || name == state.JournalFile:
		return mendState, true
	case name == state.LogKeyFile:
		return mendKey, true
	case in(state.AuditDir) && name != state.SealFile:
		return mendLog, true
	case name == workspace.ReportName:
		return mendReport, true
	case name == manifest.ListName:
		return mendList, true
	case name == state.PolicyFile:
		return mendPolicy, true
	}
	ours := []string{state.SealFile, state.LockFile, manifest.OutcomesName, manifest.TombstonesName}
	return mendRun, slices.Contains(ours, name) || in(state.DatasetDir) || in(state.ImagesDir)
}

// seal compares every file with the digest that the last writer noted when it closed.
func (v *verification) seal(ctx context.Context, s workspace.Seal, sealed bool, err error) {
	v.accounted[state.SealFile] = true
	switch {
	case workspace.Unread(err):
		v.blind = true
		if v.isClosed(state.SealFile) {
			return
		}
		v.fault(state.SealFile, mendRun, "it cannot be read: %v", err)
		return
	case err != nil:
		v.fault(state.SealFile, mendRun, "the seal is damaged: %v", err)
		return
	case !sealed:
		v.note("the workspace is not sealed: a run is at work on it, the last one was killed or could not write, or somebody took the seal away; the next run continues and seals it")
		return
	}
	v.report.Sealed, v.report.SealedAt = true, new(s.Time.UTC())
	// A seal without state.db would let any state pass.
	if !slices.ContainsFunc(s.Files, func(f workspace.File) bool { return f.Name == state.StateFile }) {
		v.damage(state.SealFile, mendRun, "the seal does not list %s", state.StateFile)
	}
	for _, want := range s.Files {
		// The record of the export accounts for dataset/: a seal lists whatever was there.
		v.accounted[want.Name] = !strings.HasPrefix(want.Name, state.DatasetDir+"/")
		mend, _ := mendOf(want.Name)
		if _, there := v.present[want.Name]; there && want.Name == manifest.TombstonesName {
			mend = mendStones // no job believes it
		}
		if v.compare(ctx, want, mend, "as it was sealed", false) {
			v.asSealed[want.Name] = true
			v.report.Files++
		}
	}
	if _, left := v.present[state.JournalFile]; left {
		v.damage(state.JournalFile, mendState,
			"a sealed workspace has no journal: someone put it there, and opening %s would apply it", state.StateFile)
	}
}

// listOfTombstones reads tombstones.csv, if there is one, and returns what is wrong with it.
func (v *verification) listOfTombstones() error {
	f, err := v.files.OpenFile(manifest.TombstonesName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		defer f.Close()
		_, err = state.ReadTombstones(f)
	}
	return err
}

// tombstones checks tombstones.csv where no seal lists it.
func (v *verification) tombstones() {
	if v.report.Sealed {
		return
	}
	err := v.listOfTombstones()
	if errors.As(err, new(*workspace.Linked)) { // strays says it of every link
		return
	}
	v.accounted[manifest.TombstonesName] = true
	switch {
	case workspace.Unread(err):
		v.fault(manifest.TombstonesName, mendRead, "it cannot be read: %v", err)
	case err != nil:
		v.damage(manifest.TombstonesName, mendStones, "it is no list of tombstones: %v", err)
	}
}

// key reads the key of the log, where no seal has said that it is another one: without it, whatever writes fails.
func (v *verification) key() {
	if _, there := v.present[state.LogKeyFile]; !there || v.report.Sealed && !v.asSealed[state.LogKeyFile] {
		return
	}
	text, err := v.files.LogKey()
	if err == nil {
		_, err = auditlog.ParseKey(text)
	}
	if err != nil && !errors.As(err, new(*workspace.Linked)) { // strays says it of every link
		v.fault(state.LogKeyFile, mendKey, "%v", err)
	}
}

// compare reports how a file differs from its record, and returns whether it may be read on. With soft set, a whole
// file of another time is not damage.
func (v *verification) compare(ctx context.Context, want workspace.File, mend, known string, soft bool) bool {
	if v.isClosed(want.Name) {
		return false
	}
	got, err := v.files.Stat(ctx, want.Name)
	switch {
	case errors.As(err, new(*workspace.Linked)): // strays says it of every link
	case errors.Is(err, fs.ErrNotExist):
		v.damage(want.Name, mend, "it is missing")
	case err != nil:
		v.fault(want.Name, mend, "it cannot be read: %v", err)
	case got != want && soft:
		v.note("%s is not %s; the last run ended while it wrote it", want.Name, known)
		return true
	case got != want:
		v.damage(want.Name, mend, "it is not %s: %d bytes with the sha256 %s, and it had %d with %s", known, got.Size,
			got.SHA256, want.Size, want.SHA256)
	default:
		return true
	}
	return false
}

// state compares the records in state.db with images, dataset, outcomes and log. An error in state.db itself is
// damage; the error is *fileversion.Other.
func (v *verification) state(ctx context.Context, dir string) error {
	if !v.readable(ctx, state.StateFile, state.JournalFile) {
		v.blind = true
		return nil
	}
	ws, err := workspace.Open(ctx, dir, workspace.Options{ReadOnly: true})
	if errors.Is(err, workspace.ErrEmpty) && !v.report.Sealed && v.justBegun() {
		v.note("nothing is stored yet: the run that made the workspace was killed at once; the next one starts over")
		return nil
	}
	if errors.As(err, new(*fileversion.Other)) && (!v.report.Sealed || v.asSealed[state.StateFile]) {
		return err // another version wrote it: only that one can check the rest
	}
	if err != nil {
		v.blind = true
		v.fault(state.StateFile, mendState, "it cannot be opened, so images and outcomes were not checked: %v", err)
		return nil
	}
	defer ws.Close()
	for _, check := range []struct {
		find func(context.Context) ([]string, error)
		says string
	}{{ws.CheckState, "%s"}, {ws.ForeignSchema, "it has the %s, which rehydrate does not make"}, {v.unused, "%s"}} {
		wrong, err := check.find(ctx)
		for _, what := range wrong {
			v.damage(state.StateFile, mendState, check.says, what)
		}
		if err != nil {
			v.fault(state.StateFile, mendState, "%v", err)
		}
	}
	for _, part := range []func(context.Context, *workspace.Workspace) error{v.records, v.removals, v.dataset, v.log} {
		if err := part(ctx, ws); err != nil {
			v.blind = true
			v.fault(state.StateFile, mendState, "it cannot be read: %v", err)
		}
	}
	return nil
}

// readable reads files to their ends, and reports whether all that are there let it. SQLite says of a disk that fails
// what it says of a database that is damaged.
func (v *verification) readable(ctx context.Context, names ...string) bool {
	all := true
	for _, name := range names {
		if _, there := v.present[name]; !there || v.asSealed[name] {
			continue
		}
		if _, err := v.files.Stat(ctx, name); workspace.Unread(err) {
			v.fault(name, mendState, "it cannot be read, so images and outcomes were not checked: %v", err)
			all = false
		}
	}
	return all
}

// unused says what lies in the free pages of state.db, and behind its end.
func (v *verification) unused(ctx context.Context) (wrong []string, err error) {
	f, err := v.files.OpenFile(state.StateFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := io.NewSectionReader(f, 0, v.present[state.StateFile].Size)
	err = sqlitefile.Read(ctx, all, func(db *sqlitefile.Database) error {
		what, err := db.Unused(ctx)
		if what != "" {
			wrong = []string{what}
		}
		return err
	})
	return wrong, err
}

// justBegun reports whether there is nothing but the files of a first writer that has stored nothing yet.
func (v *verification) justBegun() bool {
	for name := range v.present {
		if name == state.LogKeyFile || !v.accounted[name] && !durable.IsTemp(path.Base(name)) {
			return false
		}
	}
	return true
}

// records compares the images and outcomes.csv with the records of the entries.
func (v *verification) records(ctx context.Context, ws *workspace.Workspace) error {
	stones, err := state.StoredTombstones(ctx, ws) // tombstones.csv can be what is damaged
	if err != nil {
		return err
	}
	p, err := state.LastPolicy(ctx, ws)
	if err != nil {
		return err
	}
	erased, err := state.MustErase(ctx, ws, stones, p)
	if err != nil {
		return err
	}
	results, unwritten := map[manifest.Key]manifest.Outcome{}, 0
	for rec, err := range ws.Records(ctx, workspace.Select{}) {
		if err != nil {
			return err
		}
		if rec.Result != nil {
			results[rec.Key] = rec.Result.Outcome
		}
		if state.IsUnwritten(rec) {
			unwritten++
		}
		if rec.Image == nil {
			continue
		}
		name := ws.ImageName(rec.Key, rec.Image.Format)
		v.accounted[name] = true
		if v.isClosed(name) {
			continue
		}
		v.report.Images++
		_, there := v.present[name]
		mend := mendImage
		switch {
		case !there && erased.HasRow(rec.Key.String()):
			continue // an erasure removes the file before the row; removals tells of the row
		case stones.Has(rec.ID) || rec.Post.State.Gone():
			mend = mendGone
		case !there:
			mend = mendRun
		}
		if v.compare(ctx, workspace.File{Name: name, SHA256: rec.Image.SHA256, Size: rec.Image.Bytes}, mend,
			"the image that was stored", false) {
			v.report.Files++
		}
	}
	// A file of the dataset that was lost is on no record once a job has written the others again: its rows are. Before
	// the first dataset is whole none is lost.
	last, err := state.ReadNote[state.ExportNote](ctx, ws)
	if err != nil {
		return err
	}
	if unwritten > 0 && last.Card == nil {
		v.note("there is no dataset yet: the run that was to write its %s could not", page.Counted(unwritten, "row"))
	} else if unwritten > 0 {
		v.damage(state.DatasetDir, mendRun, "%v", &state.Unwritten{Rows: unwritten})
	}
	v.outcomes(ws, results)
	return nil
}

// removals reports what must go and is still there: of a removal that was not finished, or in a file that somebody put
// into the dataset's folder. While a command is at work, nobody knows yet whether that one finishes the removal.
func (v *verification) removals(ctx context.Context, ws *workspace.Workspace) error {
	stones, err := state.StoredTombstones(ctx, ws) // tombstones.csv can be what is damaged
	if err != nil {
		return err
	}
	p, err := state.LastPolicy(ctx, ws)
	if err != nil {
		return err
	}
	unfinished, strays, err := state.Remnants(ctx, ws, stones, p)
	if err != nil {
		return err
	}
	atWork, _ := ws.Holder() // a lock that cannot be read is of none
	for _, r := range unfinished {
		switch {
		case atWork != "":
			v.waits = cmp.Or(v.waits, fmt.Sprintf("%s is at work, and %s must go and is still in %s", atWork, r.What(), r.File))
		case r.File == state.StateFile && !v.report.Sealed: // of an erasure that was killed before it came to the row
			v.note("%s must go and is still in %s: the next run or purge goes on", r.What(), r.File)
		default:
			v.damage(r.File, mendLeft, "%s must go, and is still in it: a removal was not finished", r.What())
		}
	}
	for _, r := range strays {
		v.remnants[r.File] = true
		v.damage(r.File, mendStray, "%s must go, and is in this file, which no run wrote", r.What())
	}
	return nil
}

// outcomes compares outcomes.csv with the results of the last run.
func (v *verification) outcomes(ws *workspace.Workspace, want map[manifest.Key]manifest.Outcome) {
	const name = manifest.OutcomesName
	f, err := ws.OpenFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		if len(want) > 0 { // the seal lists one that was there
			v.note("there is no %s yet: the last run ended before it wrote it", name)
		}
		return
	}
	what, rows := "", 0
	if err == nil {
		defer f.Close()
		v.accounted[name] = true
		for r, wrong := range manifest.ReadOutcomes(f) {
			rows, err = rows+1, cmp.Or(err, wrong)
			if want[r.Key] != r.Outcome {
				what = cmp.Or(what, fmt.Sprintf("%s is %s there, and the state says otherwise", r.Key.String(), r.Outcome))
			}
		}
	}
	switch {
	case err != nil:
		v.fault(name, mendRun, "it cannot be read: %v", err)
		return
	case what == "" && rows != len(want):
		what = fmt.Sprintf("it has %d rows, and the state %d results", rows, len(want))
	case what == "":
		return
	}
	// The last writer may have left the file so, or was killed between two files: the next run writes it again.
	if v.report.Sealed && !v.asSealed[name] {
		v.damage(name, mendRun, "%s", what)
		return
	}
	v.note("%s: %s; the last run ended before it wrote it", name, what)
}

// dataset compares the files of the last export with its note, and reads each Parquet.
func (v *verification) dataset(ctx context.Context, ws *workspace.Workspace) error {
	last, err := state.ReadNote[state.ExportNote](ctx, ws)
	for _, want := range last.Files {
		v.accounted[want.Name] = true
		// A sealed file that is not the one on record is as the last writer left it.
		soft := !v.report.Sealed || v.asSealed[want.Name]
		if v.compare(ctx, want, mendRun, "the file that was exported", soft) && path.Ext(want.Name) == ".parquet" {
			if err := v.parquet(ctx, ws, want.Name); err != nil {
				v.fault(want.Name, mendRun, "it cannot be read as a Parquet of this program: %v", err)
			}
		}
	}
	return err
}

// parquet reads the ids of a Parquet of the dataset, and counts them.
func (v *verification) parquet(ctx context.Context, ws *workspace.Workspace, name string) error {
	f, err := ws.OpenFile(name)
	if err != nil {
		return err
	}
	defer f.Close()
	scan, err := scan.Open(f, v.present[name].Size)
	if err != nil {
		return err
	}
	if _, ok := scan.Footer("rehydrate.manifest_digest"); !ok {
		return errors.New("its footer does not name its manifest")
	}
	// Reading one column checks the pages of it; the digest has judged the rest.
	ids := scan.Named("id")
	if ids == nil {
		return errors.New("it has no column id")
	}
	for _, err := range scan.Rows(ids) {
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		v.report.Rows++
	}
	return nil
}

func (v *verification) log(ctx context.Context, ws *workspace.Workspace) error {
	if v.isClosed(state.AuditDir + "/") {
		return nil
	}
	// Without a seal nothing else lists the files of the log.
	for name := range v.present {
		if strings.HasPrefix(name, state.AuditDir+"/") && !v.report.Sealed {
			v.accounted[name] = true // Verify of the log reports what does not belong to it
		}
	}
	l, err := ws.LogReader(ctx)
	if err == nil {
		v.report.Records = l.Size()
		err = l.Verify(ctx)
	}
	if err == nil {
		err = v.changedBefore(ctx, l)
	}
	if errors.Is(err, auditlog.ErrNoLog) {
		v.note("there is no audit log yet")
	} else if err != nil {
		v.fault(state.AuditDir, mendLog, "%v", err)
	}
	return nil
}

// changedBefore reports that state.db was changed or damaged at a time that the log names: the seals since then are of
// what that left. An older state.db that was put back ends it.
func (v *verification) changedBefore(ctx context.Context, l *auditlog.Log) error {
	var changed *auditlog.Event
	for e, err := range l.Records(ctx, 0) {
		if err != nil {
			return err
		}
		switch {
		case e.Kind == auditlog.Restored && e.Verdict == auditlog.RestoredChanged:
			changed = &e
		case e.Kind == auditlog.Restored && e.Verdict == auditlog.RestoredState:
			changed = nil
		}
	}
	if changed != nil {
		v.damage(state.StateFile, mendState, "it was changed or damaged before %s (record %d of the log)",
			changed.Time.Format(time.RFC3339), changed.Seq)
	}
	return nil
}

// maxLock is how many bytes a lock file has at most.
const maxLock = 32

// strays reports files that should not be there.
func (v *verification) strays() {
	for _, name := range v.empty {
		v.damage(name, mendEmpty, "it is an empty folder, and no command makes it")
	}
	_, planned := v.present[cluster.PlanFile]
	planned = planned && (v.accounted[cluster.PlanFile] || !v.report.Sealed) // a split seals the workspace with its plan
	unsound := map[string]bool{}
	for _, s := range cluster.UnsoundIn(v.files.Dir()) {
		if planned {
			unsound[s.File] = true
			v.fault(s.File, fmt.Sprintf(mendWork, s.Shard, s.Of), "%v", s.Err)
		}
	}
	for name, f := range v.present {
		_, belongs := mendOf(name)
		switch {
		case name == state.LockFile && f.Mode.IsRegular() && f.Size > maxLock:
			v.damage(name, mendStray, "it has %d bytes, and holds the number of a process and no more", f.Size)
		case v.accounted[name] && f.Mode.IsRegular() && belongs:
		case f.Link != "":
			v.damage(name, mendLink, "it is a symbolic link to %s, which no removal reaches", f.Link)
		case !f.Mode.IsRegular():
			v.damage(name, mendStray, "it is not a regular file (%s): nothing here makes one", f.Mode.Type())
		case durable.IsTemp(path.Base(name)) && v.report.Sealed:
			v.damage(name, mendStray, "an unfinished file in a sealed workspace")
		case durable.IsTemp(path.Base(name)):
			v.note("%s is an unfinished file: the next run takes it away", name)
		case v.unread[name]: // nothing is known of it, and that is damage
		case v.remnants[name]:
		case v.blind && belongs: // what would account for it was not read
		case name == cluster.PlanFile && !planned:
			v.damage(name, mendShard, "nothing on record accounts for it")
		case strings.HasPrefix(name, state.ShardsDir+"/") && !planned && v.report.Sealed:
			v.damage(name, mendShard, "there is no plan.json of a split beside it: no cluster has to read it, and none read it")
		case unsound[name]:
		case cluster.Owns(name) && planned:
			v.note("%s is work of shards: rehydrate cluster merge takes it in, and away", name)
		case strings.HasPrefix(name, state.ShardsDir+"/"):
			v.note("%s is not of a cluster: the next recheck, purge or run takes it away", name)
		case (v.asSealed[name] || !v.report.Sealed) && strings.HasPrefix(name, state.DatasetDir+"/") &&
			!state.IsOfDataset(name):
			v.note("%s is on no record of an export: find out what it is; no command takes it away", name)
		case v.asSealed[name] && strings.HasPrefix(name, state.DatasetDir+"/"):
			v.note("%s is on no record of an export: find out what it is; the next run that exports takes it away or writes it again", name)
		case !v.report.Sealed && belongs:
			v.note("%s is on no record: the next run takes it away or writes it again", name)
		case strings.HasPrefix(name, state.ImagesDir+"/"):
			v.damage(name, mendLoose, "nothing on record accounts for it")
		case name == manifest.TombstonesName: // somebody put it there, and no job believes it
			v.damage(name, mendStones, "nothing on record accounts for it")
		default:
			v.damage(name, mendStray, "nothing on record accounts for it")
		}
	}
}
