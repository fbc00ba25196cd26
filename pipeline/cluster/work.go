package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"rehydrate/internal/durable"
	"rehydrate/internal/picture"
	"rehydrate/internal/safely"
	"rehydrate/manifest"
	"rehydrate/pipeline/reading"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A Job is one shard to be read.
type Job struct {
	Workspace     string // its folder
	Shard, Shards int    // from 0; the number of all stands in the plan too, and must be the same
	Tool          string // version of rehydrate
	OCR           reading.Engine
	Workers       int                   // how many images are read at once
	Progress      func(done, items int) // on every item; one call at a time
}

// ErrOtherPlan says that the work was split again while a shard was read, or was split for another version or number.
var ErrOtherPlan = errors.New("the work was split otherwise")

// Work reads one shard. A shard that is done already, by the same engine, is left as it is, unless a file that was
// damaged then is whole now.
func Work(ctx context.Context, j Job) (Sidecar, error) {
	root, err := os.OpenRoot(j.Workspace)
	if err != nil {
		return Sidecar{}, err
	}
	defer root.Close()
	if err := workspace.CheckFolders(ctx, root); err != nil {
		return Sidecar{}, err
	}
	dir := root.FS()
	plan, digest, err := readPlan(dir)
	switch {
	case err != nil:
		return Sidecar{}, err
	case j.Shards != plan.Shards:
		return Sidecar{}, fmt.Errorf("%w: into %d shards, not %d", ErrOtherPlan, plan.Shards, j.Shards)
	case j.Tool != plan.Tool:
		return Sidecar{}, fmt.Errorf("%w: by rehydrate %s, and this is %s: use one version for all shards", ErrOtherPlan,
			plan.Tool, j.Tool)
	}
	w := &worker{Job: j, dir: dir, plan: plan, reader: reading.New(j.OCR, plan.Policy), listed: map[manifest.Key]bool{}}
	for _, err := range readLines[struct{}](dir, workName(j.Shard)) {
		if err != nil {
			return Sidecar{}, fmt.Errorf("read the work of shard %d: %w", j.Shard, err)
		}
		w.items++
	}
	want := Sidecar{Format: Format, Shard: j.Shard, Shards: j.Shards, Plan: digest, Tool: j.Tool,
		Engine: j.OCR.Engine(), Fingerprint: w.reader.Fingerprint}
	have, err := readSidecar(dir, j.Shard)
	if err == nil && have.Shard == j.Shard && have.Plan == want.Plan && have.Fingerprint == want.Fingerprint &&
		have.Tool == want.Tool && whole(dir, have) == nil {
		again, err := w.mended(have)
		if err != nil || !again {
			return have, err
		}
	}
	files := durable.In(root)
	// The sidecar of older results goes first: it must not vouch for the new ones.
	if err := files.Remove(ctx, path.Join(state.ShardsDir, sidecarName(j.Shard))); err != nil {
		return Sidecar{}, err
	}
	var random [8]byte
	rand.Read(random[:])
	name := path.Join(state.ShardsDir, resultName(j.Shard))
	// Two copies of a shard at once write two files, each whole.
	part := partPrefix + fmt.Sprintf("%05d-%x", j.Shard, random)
	made, err := workspace.WriteFile(ctx, files, name, part,
		func(out io.Writer) error {
			err := w.readAll(ctx, out, &want)
			if errors.As(err, new(*away)) { // what was taken out of the list was erased
				err = cmp.Or(w.stillListed(digest), err)
			}
			return err
		},
		func(io.ReaderAt, workspace.File) error { return w.stillListed(digest) })
	if err != nil {
		return Sidecar{}, fmt.Errorf("read shard %d of %d: %w", j.Shard, j.Shards, err)
	}
	want.SHA256 = made.SHA256
	_, err = workspace.WriteFile(ctx, files, path.Join(state.ShardsDir, sidecarName(j.Shard)), "",
		func(out io.Writer) error { return json.NewEncoder(out).Encode(want) }, nil)
	return want, err
}

// A worker reads the items of one shard.
type worker struct {
	Job
	dir    fs.FS
	plan   Plan
	reader *reading.Reader
	items  int                   // in the list when it began
	listed map[manifest.Key]bool // the items that it reads
	away   atomic.Int32          // how many files were not there
}

// mended reports whether the file of an image that was damaged when its shard was read is whole now.
func (w *worker) mended(have Sidecar) (bool, error) {
	if have.Failed == 0 {
		return false, nil
	}
	damaged := map[manifest.Key]bool{}
	for r, err := range matched(w.dir, have) {
		if err != nil {
			return false, err
		}
		if r.Fault != nil && r.Fault.Reason == state.ReasonDamaged {
			damaged[r.Key()] = true
		}
	}
	for item, err := range readLines[Item](w.dir, workName(w.Shard)) {
		if err != nil {
			return false, err
		}
		if !damaged[item.key()] {
			continue
		}
		if _, err := w.file(item); err == nil {
			return true, nil
		}
	}
	return false, nil
}

// stillListed fails where the plan is no longer that of a digest, or an item was taken out of the list while it was
// read: its text must not stay. A post can stay that lost one of its images.
func (w *worker) stillListed(plan string) error {
	_, now, err := readPlan(w.dir)
	if err != nil {
		return err
	}
	if now != plan {
		return ErrOtherPlan
	}
	for key, err := range readLines[manifest.Key](w.dir, workName(w.Shard)) {
		if err != nil {
			return err
		}
		delete(w.listed, key)
	}
	if len(w.listed) > 0 {
		return errors.New("images that it was reading have gone: start it again")
	}
	return nil
}

// readAll reads all items with j.Workers at once and writes what became of them, in their order.
func (w *worker) readAll(ctx context.Context, out io.Writer, sum *Sidecar) error {
	type slot struct {
		item Item
		done chan *Result
	}
	group, running := errgroup.WithContext(ctx)
	// Results wait for those before them, in a queue that bounds how many are held.
	jobs, order := make(chan slot), make(chan slot, 4*w.Workers)
	safely.Go(group, func() error {
		defer close(jobs)
		defer close(order)
		for item, err := range readLines[Item](w.dir, workName(w.Shard)) {
			if err != nil {
				return err
			}
			w.listed[item.key()] = true
			s := slot{item, make(chan *Result, 1)}
			for _, queue := range []chan slot{order, jobs} {
				select {
				case queue <- s:
				case <-running.Done():
					return running.Err()
				}
			}
		}
		return nil
	})
	for range max(w.Workers, 1) {
		safely.Go(group, func() error {
			for s := range jobs {
				r, err := w.read(running, s.item)
				if err != nil {
					return fmt.Errorf("%s: %w", s.item.key(), err)
				}
				s.done <- r
			}
			return nil
		})
	}
	safely.Go(group, func() error {
		lines, n := json.NewEncoder(out), 0
		for s := range order {
			var r *Result
			select {
			case r = <-s.done:
			case <-running.Done():
				return running.Err()
			}
			n++
			w.Progress(n, w.items)
			switch {
			case r == nil:
				sum.Current++
				continue
			case r.Fault != nil || r.Reading.Failed != nil:
				sum.Failed++
			default:
				sum.Read++
			}
			if err := lines.Encode(r); err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}

// read reads one item. It returns nil where its last reading is of the present engine.
func (w *worker) read(ctx context.Context, item Item) (*Result, error) {
	if w.reader.Current(item.Stored, item.Last) {
		return nil, nil
	}
	r := &Result{ID: item.ID, Image: item.Image, Stored: item.Stored}
	body, err := w.file(item)
	if errors.Is(err, fs.ErrNotExist) {
		err = w.isAway()
	}
	var info picture.Info
	if err == nil {
		var fault *policy.Fault
		info, fault = w.plan.Policy.InspectImage(body)
		if fault != nil {
			err = fault
		}
	}
	var pic *reading.Picture
	if err == nil {
		pic, err = w.reader.Decode(ctx, info, body)
	}
	if fault, ok := errors.AsType[*policy.Fault](err); ok {
		r.Fault = &workspace.Trouble{Outcome: fault.Outcome, Reason: fault.Reason, Detail: fault.Detail}
		return r, nil
	}
	if err == nil {
		r.Reading, err = w.reader.Read(ctx, &r.Stored, pic)
	}
	return r, err
}

// file reads the image of an item. A *policy.Fault says that it is not the one that was fetched, fs.ErrNotExist that it
// is not there. A disk that fails is the shard's own trouble.
func (w *worker) file(item Item) ([]byte, error) {
	f, err := w.dir.Open(item.File)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	body, err := io.ReadAll(io.LimitReader(f, item.Stored.Bytes+1))
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != item.Stored.SHA256 {
		return nil, damagedFile()
	}
	return body, nil
}

// isAway is the error of an item whose file is not there: the entry's, or of the shard where its disk must be away.
func (w *worker) isAway() error {
	n := int(w.away.Add(1))
	if !state.TooManyMissing(n, w.items) {
		return damagedFile()
	}
	return &away{n, w.items}
}

// away is the error of a shard that does not see so many of its images that their disk must be away.
type away struct{ missing, items int }

func (e *away) Error() string {
	return fmt.Sprintf("%d or more of the %d "+
		"image files of the shard are not there: is the disk mounted that holds images/? "+
		"If posts were just removed, start it again. If the files are lost, rehydrate cluster split has them again",
		e.missing, e.items)
}

func damagedFile() *policy.Fault {
	return &policy.Fault{Outcome: manifest.Failed, Reason: state.ReasonDamaged, Detail: "fetched again by the next run"}
}
