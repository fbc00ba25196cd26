package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"rehydrate/manifest"
	"rehydrate/pipeline/ocr"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// Check returns the engine that read the shards of a plan. Its error says which are not done, or what does not fit:
// another plan, engine or version.
func Check(ws *workspace.Workspace, want Plan) (engine ocr.Engine, shards int, err error) {
	dir := os.DirFS(ws.Dir())
	plan, digest, err := readPlan(dir)
	if err != nil {
		return engine, 0, err
	}
	want.Shards = plan.Shards
	if !plan.equal(want) {
		return engine, 0,
			fmt.Errorf("%w: for another release, policy or version of rehydrate (%s): split it again with rehydrate cluster split", ErrOtherPlan, plan.Tool)
	}
	var missing []string
	var why error // of the first
	var first *Sidecar
	for i := range plan.Shards {
		side, err := readSidecar(dir, i)
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.New("no result")
		}
		if err == nil && (side.Plan != digest || side.Shard != i) {
			err = errors.New("its results are of another plan")
		}
		if err == nil {
			err = whole(dir, side)
		}
		if err != nil {
			missing, why = append(missing, strconv.Itoa(i)), cmp.Or(why, err)
			continue
		}
		first = cmp.Or(first, &side)
		if side.Fingerprint != first.Fingerprint || side.Tool != first.Tool {
			return engine, 0, fmt.Errorf("shards %d and %d were read by different engines (%s; %s): read one of them again",
				first.Shard, i, first.Engine, side.Engine)
		}
	}
	n := len(missing)
	switch {
	case n == 0:
		return first.Engine, plan.Shards, nil
	case n > 10:
		missing = append(missing[:10], "...")
		fallthrough
	default:
		return engine, 0,
			fmt.Errorf("%d of %d shards are not done: %s (%w); for each: rehydrate cluster work --shard I/%[2]d", n,
				plan.Shards, strings.Join(missing, ", "), why)
	}
}

// whole reports what a shard lacks.
func whole(dir fs.FS, side Sidecar) error {
	for _, err := range matched(dir, side) {
		if err != nil {
			return err
		}
	}
	return nil
}

// Results yields what was read in a shard that Check has found whole.
func Results(ws *workspace.Workspace, shard int) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		dir := os.DirFS(ws.Dir())
		side, err := readSidecar(dir, shard)
		if err != nil {
			yield(Result{}, err)
			return
		}
		matched(dir, side)(yield)
	}
}

// matched yields the results of a shard that its list names. It ends with an error where one that is due is missing, or
// the results are not those of the sidecar.
func matched(dir fs.FS, side Sidecar) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		type image struct {
			sha256 [sha256.Size]byte // of the digest in hex, which takes three times the room
			read   bool              // by this engine, before
		}
		due := map[manifest.Key]image{}
		for item, err := range readLines[Item](dir, workName(side.Shard)) {
			if err != nil {
				yield(Result{}, err)
				return
			}
			last := item.Last
			due[item.key()] = image{sha256.Sum256([]byte(item.Stored.SHA256)),
				last != nil && last.Fingerprint == side.Fingerprint &&
					last.ImageSHA256 == item.Stored.SHA256 && last.Failed == nil}
		}
		if err := named(dir, side); err != nil {
			yield(Result{}, err)
			return
		}
		for r, err := range readLines[Result](dir, resultName(side.Shard)) {
			if err != nil {
				yield(r, err)
				return
			}
			item, listed := due[r.Key()]
			if !listed || item.sha256 != sha256.Sum256([]byte(r.Stored.SHA256)) { // gone, or fetched again, since it was read
				continue
			}
			delete(due, r.Key())
			if !yield(r, nil) {
				return
			}
		}
		for key, item := range due {
			if !item.read {
				yield(Result{}, fmt.Errorf("%s is not among its results", key))
				return
			}
		}
	}
}

// named returns an error where the results of a shard are not those that its sidecar names.
func named(dir fs.FS, side Sidecar) error {
	f, err := dir.Open(path.Join(state.ShardsDir, resultName(side.Shard)))
	if err != nil {
		return err
	}
	made, err := workspace.Digest(context.Background(), f, resultName(side.Shard))
	f.Close()
	if err == nil && made.SHA256 != side.SHA256 {
		err = fmt.Errorf("%s/%s is not what its sidecar names", state.ShardsDir, resultName(side.Shard))
	}
	return err
}

// An Unsound shard was read, and what is there is not what its worker wrote: Work reads it again.
type Unsound struct {
	Shard, Of int
	File      string // of the workspace, by its name there
	Err       error
}

// UnsoundIn are the unsound shards of the workspace in a folder; none where there is no plan that can be read.
func UnsoundIn(dir string) (all []Unsound) {
	files := os.DirFS(dir)
	plan, digest, err := readPlan(files)
	if err != nil {
		return nil
	}
	for i := range plan.Shards {
		side, err := readSidecar(files, i)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			all = append(all, Unsound{i, plan.Shards, state.ShardsDir + "/" + sidecarName(i), err})
		case side.Plan == digest && side.Shard == i:
			err := named(files, side)
			// A worker takes the sidecar away before it writes other results.
			if later, gone := readSidecar(files, i); err != nil && gone == nil && later == side {
				all = append(all, Unsound{i, plan.Shards, state.ShardsDir + "/" + resultName(i), err})
			}
		}
	}
	return all
}

// Drop takes rows that must go out of the lists and results of a workspace, and those of images that it has no longer,
// as of entries that left the manifest. What is damaged goes whole, and is read again; so does what a shard printed, if
// it names a post that must go, and whatever is not of a cluster: without a plan, everything.
func Drop(ctx context.Context, ws *workspace.Workspace, gone func(row string) bool) error {
	names, err := ws.Files(ctx, state.ShardsDir)
	if err != nil || len(names) == 0 {
		return err
	}
	held, err := withImage(ctx, ws)
	if err != nil {
		return err
	}
	goes := func(row string) bool { return gone(row) || !held[row] }
	planned, err := hasPlan(os.DirFS(ws.Dir())) // without one nothing here is of a cluster
	if err != nil {
		return err
	}
	// The lists first: a shard that is being read compares them before its part becomes its results, so that either it
	// sees the row missing, or the row stands in what is looked for next.
	for _, prefix := range []string{"work-", partPrefix, "result-", logPrefix, ""} {
		names, err := ws.Files(ctx, state.ShardsDir)
		if err != nil {
			return err
		}
		for _, name := range names {
			base := path.Base(name)
			switch {
			case !(planned && Owns(name)) && prefix == "":
				err = ws.RemoveFile(ctx, name)
			case !planned || !Owns(name) || prefix == "" || !strings.HasPrefix(base, prefix) ||
				strings.HasSuffix(base, ".json"):
			case prefix == logPrefix: // any words stand in it, and only those of posts that are gone say something
				err = dropLog(ctx, ws, name, gone)
			default:
				err = drop(ctx, ws, base, goes)
			}
			if err != nil {
				return fmt.Errorf("take posts that are gone out of the shards: %w", err)
			}
		}
	}
	return nil
}

// withImage returns the rows whose images the workspace has.
func withImage(ctx context.Context, ws *workspace.Workspace) (map[string]bool, error) {
	held := map[string]bool{}
	for rec, err := range ws.Records(ctx, workspace.Select{}) {
		if err != nil {
			return nil, err
		}
		if rec.Image != nil {
			held[rec.Key.String()] = true
		}
	}
	return held, nil
}

// ofCluster finds the names of files that Split, Work and the engines write.
var ofCluster = regexp.MustCompile(`^(plan\.json|work-\d{5}\.jsonl|result-\d{5}\.jsonl?|part-\d{5}-[0-9a-f]+|log-\d{5}\.txt)$`)

// PlanFile is the plan of a workspace, by its name there. Without it there is no cluster.
const PlanFile = state.ShardsDir + "/" + planName

// Owns reports whether a file of the workspace, by its name there, is one that a cluster has to read or read, if there
// is a plan.
func Owns(name string) bool {
	return path.Dir(name) == state.ShardsDir && ofCluster.MatchString(path.Base(name))
}

// dropLog takes away what a shard printed, if it names a post that goes.
func dropLog(ctx context.Context, ws *workspace.Workspace, name string, gone func(row string) bool) error {
	if !names(os.DirFS(ws.Dir()), path.Base(name), gone) {
		return nil
	}
	return ws.RemoveFile(ctx, name)
}

func drop(ctx context.Context, ws *workspace.Workspace, name string, goes func(row string) bool) error {
	dir := os.DirFS(ws.Dir())
	found, damaged := false, false
	for stays, err := range without(dir, name, goes) {
		found, damaged = found || stays == nil, damaged || err != nil
	}
	switch {
	case !found && !damaged:
		return nil
	// Who writes a part fails without it, and the shard is read again.
	case damaged || strings.HasPrefix(name, partPrefix):
		return ws.RemoveFile(ctx, path.Join(state.ShardsDir, name))
	}
	stay := func(w io.Writer) error {
		out := json.NewEncoder(w)
		for line, err := range without(dir, name, goes) {
			if err == nil && line != nil {
				err = out.Encode(line)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if strings.HasPrefix(name, "work-") {
		return replace(ctx, ws, name, stay)
	}
	return dropResults(ctx, ws, dir, name, stay)
}

// names reports whether what a shard printed names a post that goes, or cannot be read.
func names(dir fs.FS, name string, gone func(row string) bool) bool {
	text, err := readSmall(dir, name)
	plain := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	ids := strings.FieldsFunc(string(text), func(r rune) bool { return !plain(r) })
	// id/n for a later image of a gallery
	rows := strings.FieldsFunc(string(text), func(r rune) bool { return !plain(r) && r != '/' })
	return err != nil || slices.ContainsFunc(append(ids, rows...), gone)
}

// without yields the lines of a file as they are, and nil for those of posts that go.
func without(dir fs.FS, name string, gone func(row string) bool) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		for line, err := range readLines[json.RawMessage](dir, name) {
			var entry struct {
				ID    manifest.PostID
				Image int
			}
			if err == nil {
				err = json.Unmarshal(line, &entry)
			}
			if gone(manifest.Key{ID: entry.ID, Image: entry.Image}.String()) {
				line = nil
			}
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// dropResults writes results again, under their sidecar if they have one.
func dropResults(ctx context.Context, ws *workspace.Workspace, dir fs.FS, name string,
	stay func(io.Writer) error) error {
	sidecar := strings.TrimSuffix(name, "l")
	body, err := readSmall(dir, sidecar)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Without its sidecar the shard is not done: killed in between, it is read again.
	if err := ws.RemoveFile(ctx, path.Join(state.ShardsDir, sidecar)); err != nil {
		return err
	}
	made, err := ws.Replace(ctx, path.Join(state.ShardsDir, name), stay, nil)
	if err != nil || body == nil {
		return err
	}
	var side Sidecar
	if err := json.Unmarshal(body, &side); err != nil {
		return nil // as good as none
	}
	side.SHA256 = made.SHA256
	return replace(ctx, ws, sidecar, func(w io.Writer) error { return json.NewEncoder(w).Encode(side) })
}

// Merged reports whether a merge has nothing left to do: the shards of the release were taken in, none were split
// since, and every image of a live post was read.
func Merged(ctx context.Context, ws *workspace.Workspace, release, annotations string) (bool, error) {
	note, err := state.ReadNote[state.MergedNote](ctx, ws)
	if err != nil || note != (state.MergedNote{Release: release, Manifest: annotations}) {
		return false, err
	}
	if _, _, err := readPlan(os.DirFS(ws.Dir())); !errors.Is(err, ErrNoPlan) {
		return false, err
	}
	return allRead(ctx, ws, true)
}

// allRead reports whether every image of a live post was read. With failed, one at which its engine failed counts, too.
func allRead(ctx context.Context, ws *workspace.Workspace, failed bool) (bool, error) {
	for rec, err := range ws.Records(ctx, workspace.Select{}) {
		if err != nil {
			return false, err
		}
		if rec.Image == nil || rec.Post.State != manifest.StateLive {
			continue
		}
		r := rec.Reading
		if r == nil || r.ImageSHA256 != rec.Image.SHA256 || r.Failed != nil && !failed {
			return false, nil
		}
	}
	return true, nil
}

// Overtake ends the shards of a workspace after a run that read all images without them. Where an image is not read, or
// its engine failed, the results of the shards stay for a merge: they may have what this run has not.
func Overtake(ctx context.Context, ws *workspace.Workspace) error {
	if _, _, err := readPlan(os.DirFS(ws.Dir())); errors.Is(err, ErrNoPlan) {
		return nil
	}
	if read, err := allRead(ctx, ws, false); err != nil || !read {
		return err
	}
	return Clear(ctx, ws)
}

// Clear ends a merge: it removes the plan, the lists and the results, and Merged holds from then on.
func Clear(ctx context.Context, ws *workspace.Workspace) error {
	if p, _, err := readPlan(os.DirFS(ws.Dir())); err == nil {
		if err := state.WriteNote(ctx, ws, state.MergedNote{Release: p.Release, Manifest: p.Manifest}); err != nil {
			return err
		}
	}
	return clear(ctx, ws)
}

// clear removes the plan, the lists and the results.
func clear(ctx context.Context, ws *workspace.Workspace) error {
	names, err := ws.Files(ctx, state.ShardsDir)
	if err != nil {
		return err
	}
	// The plan first: without it no shard is begun, and none that is being read is finished.
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	for _, name := range names {
		if err := ws.RemoveFile(ctx, name); err != nil {
			return fmt.Errorf("remove the shards: %w", err)
		}
	}
	return nil
}

func rank(name string) string {
	if path.Base(name) == planName {
		return ""
	}
	return name
}
