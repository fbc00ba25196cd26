// Package cluster spreads the reading of images over processes that share a file system, and nothing else: no network,
// no database, no lock. `cluster split` splits what has to be read into shards (Split), `cluster work` reads one
// (Work), and `cluster merge` takes in what they read (Merge). Any engine that runs one command per index serves; Slurm
// and plain processes are at hand (Follow).
//
// The folder shards/ of a workspace holds
//
//	plan.json             how many shards there are, and what they are read by
//	work-00003.jsonl      what shard 3 has to read: an Item a line, in manifest order
//	result-00003.jsonl    what it read: a Result a line, in the same order
//	result-00003.json     its sidecar, written last: with it, the shard is done
//
// What it promises:
//
//   - A post is in the shard that SHA-256 of its id names, whatever the manifest, the host and the time.
//   - Equal images, engine and policy give equal bytes of a result. A shard may run twice, or twice at once.
//   - A final name means a whole file. What was killed is done again from the start.
//   - Merge takes all shards or none, and none that another engine or another version of the tool read.
//   - What a purge or a run finds gone leaves the lists and the results (Drop), and a merge leaves nothing in the folder.
package cluster

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"strconv"

	"golang.org/x/sync/errgroup"

	"rehydrate/internal/fileversion"
	"rehydrate/internal/safely"
	"rehydrate/manifest"
	"rehydrate/pipeline/ocr"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

const (
	// Format is the version of the files in the folder (docs/files.md).
	Format = 1
	// MaxShards bounds how many files a split keeps open.
	MaxShards = 500
	planName  = "plan.json"
	maxPlan   = 1 << 20 // bytes of plan.json and of a sidecar
)

// A Plan says how the work was split, and by what it is to be read.
type Plan struct {
	Format   int           `json:"format"`
	Shards   int           `json:"shards"`
	Release  string        `json:"release"`  // digest of the release
	Manifest string        `json:"manifest"` // digest of the annotations file
	Tool     string        `json:"tool"`     // version of rehydrate: what reads must be the same
	Policy   policy.Policy `json:"policy"`
}

// equal reports whether shards of one plan are good for another.
func (p Plan) equal(q Plan) bool {
	return p.Format == q.Format && p.Shards == q.Shards && p.Release == q.Release && p.Manifest == q.Manifest &&
		p.Tool == q.Tool &&
		p.Policy.Digest() == q.Policy.Digest()
}

// An Item is one image to read.
type Item struct {
	ID    manifest.PostID `json:"id"`
	Image int             `json:"image"`
	File  string          `json:"file"` // slash-separated, relative to the workspace
	// Stored is what the workspace knows of the file, Last its reading without the words, if it was read before.
	Stored workspace.Image    `json:"stored"`
	Last   *workspace.Reading `json:"last,omitempty"`
}

func (i Item) key() manifest.Key { return manifest.Key{ID: i.ID, Image: i.Image} }

// A Result is what became of an item that was not read by the same engine before.
type Result struct {
	ID      manifest.PostID    `json:"id"`
	Image   int                `json:"image"`
	Stored  workspace.Image    `json:"stored"` // with the hash of the present kind
	Reading workspace.Reading  `json:"reading"`
	Fault   *workspace.Trouble `json:"fault,omitempty"` // why the image could not be read at all: the file is damaged
}

// Key names the entry.
func (r Result) Key() manifest.Key { return manifest.Key{ID: r.ID, Image: r.Image} }

// A Sidecar says that a shard is done, and what made it.
type Sidecar struct {
	Format      int        `json:"format"`
	Shard       int        `json:"shard"`
	Shards      int        `json:"shards"`
	Plan        string     `json:"plan"` // SHA-256 of plan.json
	Tool        string     `json:"tool"`
	Engine      ocr.Engine `json:"engine"`
	Fingerprint string     `json:"fingerprint"` // of the readings
	SHA256      string     `json:"sha256"`      // of the results
	Read        int        `json:"read"`        // images that were read
	Current     int        `json:"current"`     // images whose last reading is by the same engine
	Failed      int        `json:"failed"`      // images that could not be read: their entries can be retried
}

func workName(shard int) string    { return fmt.Sprintf("work-%05d.jsonl", shard) }
func resultName(shard int) string  { return fmt.Sprintf("result-%05d.jsonl", shard) }
func sidecarName(shard int) string { return fmt.Sprintf("result-%05d.json", shard) }

// partPrefix begins the name of results that are being written, logPrefix of what a shard printed. Runs take durable's
// temporary files away; parts stay, since shards are read while runs ask Reddit.
const partPrefix, logPrefix = "part-", "log-"

// ShardOf is the shard of a post, of n: the first 8 bytes of SHA-256 of its id, a big-endian number, modulo n.
func ShardOf(id manifest.PostID, n int) int {
	sum := sha256.Sum256([]byte(id))
	return int(binary.BigEndian.Uint64(sum[:8]) % uint64(n))
}

// A Waiting says how many shards a workspace is split into that no merge took in, and how many of them were read.
type Waiting struct{ Shards, Read int }

// WaitingIn are the shards of the workspace in a folder; none where there is no plan that can be read.
func WaitingIn(dir string) Waiting {
	files := os.DirFS(dir)
	plan, digest, err := readPlan(files)
	if err != nil {
		return Waiting{}
	}
	w := Waiting{Shards: plan.Shards}
	for i := range plan.Shards {
		if side, err := readSidecar(files, i); err == nil && side.Plan == digest && side.Shard == i {
			w.Read++
		}
	}
	return w
}

// An Unmerged says that another split would delete what shards read that a merge can take in.
type Unmerged struct{ Waiting }

func (e *Unmerged) Error() string {
	return fmt.Sprintf("%d of %d shards were read and wait for a merge, and another number of shards would lose that",
		e.Read, e.Shards)
}

// CheckSplit returns an *Unmerged where a split by this plan would delete results that are good for it but for the
// number of shards.
func CheckSplit(ws *workspace.Workspace, p Plan) error {
	old, _, err := readPlan(os.DirFS(ws.Dir()))
	if err != nil || old.Shards == p.Shards {
		return nil // what is damaged is split again
	}
	p.Shards = old.Shards
	if w := WaitingIn(ws.Dir()); w.Read > 0 && old.equal(p) {
		return &Unmerged{w}
	}
	return nil
}

// Split writes the plan and the work lists of a workspace: every image of a live post. Results by an equal plan stay,
// others go. The error can be that of CheckSplit.
func Split(ctx context.Context, ws *workspace.Workspace, p Plan, stones state.Holding) (items int, err error) {
	if p.Shards < 1 || p.Shards > MaxShards {
		return 0, fmt.Errorf("%d shards: from 1 to %d are possible", p.Shards, MaxShards)
	}
	if err := CheckSplit(ws, p); err != nil {
		return 0, err
	}
	if old, _, err := readPlan(os.DirFS(ws.Dir())); err != nil || !old.equal(p) {
		if err := clear(ctx, ws); err != nil {
			return 0, err
		}
	}
	if err := state.ClearNote[state.MergedNote](ctx, ws); err != nil {
		return 0, err
	}
	items, err = writeLists(ctx, ws, p.Shards, stones)
	if err != nil {
		return 0, err
	}
	// The plan comes last: with it, all lists are there.
	return items, replace(ctx, ws, planName, func(w io.Writer) error { return json.NewEncoder(w).Encode(p) })
}

// writeLists writes each image into the list of its shard, all lists at once: those of many posts have no place in
// memory.
func writeLists(ctx context.Context, ws *workspace.Workspace, shards int, stones state.Holding) (items int, err error) {
	group, ctx := errgroup.WithContext(ctx)
	lists := make([]chan Item, shards)
	for i := range lists {
		lists[i] = make(chan Item)
		safely.Go(group, func() error {
			return replace(ctx, ws, workName(i), func(w io.Writer) error { return encodeAll(ctx, w, lists[i]) })
		})
	}
	safely.Go(group, func() error {
		for item, err := range itemsOf(ctx, ws, stones) {
			if err != nil {
				return err
			}
			select {
			case lists[ShardOf(item.ID, shards)] <- item:
				items++
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		for _, list := range lists { // not after an error: half a list must not get its name
			close(list)
		}
		return nil
	})
	err = group.Wait()
	return items, err
}

// encodeAll writes items as lines of JSON, until there are no more.
func encodeAll(ctx context.Context, w io.Writer, list <-chan Item) error {
	out := json.NewEncoder(w)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case item, more := <-list:
			if !more {
				return nil
			}
			if err := out.Encode(item); err != nil {
				return err
			}
		}
	}
}

// itemsOf yields what there is to read of a workspace.
func itemsOf(ctx context.Context, ws *workspace.Workspace, stones state.Holding) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for rec, err := range ws.Records(ctx, workspace.Select{}) {
			if err == nil && (rec.Image == nil || rec.Post.State != manifest.StateLive || stones.Has(rec.ID) ||
				rec.Trouble != nil && rec.Trouble.Withheld()) {
				continue
			}
			var item Item
			if err == nil {
				item = Item{ID: rec.ID, Image: rec.Key.Image, File: ws.ImageName(rec.Key, rec.Image.Format),
					Stored: *rec.Image}
			}
			if r := rec.Reading; err == nil && r != nil { // its text has no place in a list
				item.Last = &workspace.Reading{Fingerprint: r.Fingerprint, ImageSHA256: r.ImageSHA256, Failed: r.Failed}
			}
			if !yield(item, err) {
				return
			}
		}
	}
}

func replace(ctx context.Context, ws *workspace.Workspace, name string, write func(io.Writer) error) error {
	_, err := ws.Replace(ctx, path.Join(state.ShardsDir, name), write, nil)
	return err
}

// ErrNoPlan says that a workspace has no shards.
var ErrNoPlan = errors.New("no work was split into shards here: rehydrate cluster split RELEASE --shards N does that")

// readPlan reads the plan of a workspace, and its digest.
func readPlan(dir fs.FS) (p Plan, digest string, err error) {
	body, err := readSmall(dir, planName)
	if errors.Is(err, fs.ErrNotExist) {
		return p, "", ErrNoPlan
	}
	if err == nil {
		err = json.Unmarshal(body, &p)
	}
	if err == nil {
		err = checkFormat("the plan", p.Format, "split again: rehydrate cluster split")
	}
	if err == nil && (p.Shards < 1 || p.Shards > MaxShards) {
		err = fmt.Errorf("%d shards: from 1 to %d are possible", p.Shards, MaxShards)
	}
	if err != nil {
		return p, "", fmt.Errorf("read %s/%s: %w", state.ShardsDir, planName, err)
	}
	return p, state.SHA256(body), nil
}

// errLong says that a plan or a sidecar is longer than any is.
var errLong = fmt.Errorf("it is longer than %d bytes", maxPlan)

// hasPlan reports whether a workspace has a plan, of whichever version. Another file with its name is none.
func hasPlan(dir fs.FS) (bool, error) {
	body, err := readSmall(dir, planName)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errLong) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", PlanFile, err)
	}
	var p Plan
	return json.Unmarshal(body, &p) == nil && p.Format > 0, nil
}

func checkFormat(what string, have int, again string) error {
	return fileversion.Check(what, strconv.Itoa(have), strconv.Itoa(Format), again)
}

// readSidecar reads the sidecar of a shard. fs.ErrNotExist says that the shard is not done.
func readSidecar(dir fs.FS, shard int) (s Sidecar, err error) {
	body, err := readSmall(dir, sidecarName(shard))
	if err == nil {
		err = json.Unmarshal(body, &s)
	}
	if err == nil {
		err = checkFormat("the result", s.Format, "read the shard again: rehydrate cluster work")
	}
	if err != nil {
		return s, fmt.Errorf("read %s/%s: %w", state.ShardsDir, sidecarName(shard), err)
	}
	return s, nil
}

func readSmall(dir fs.FS, name string) ([]byte, error) {
	f, err := dir.Open(path.Join(state.ShardsDir, name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	body, err := io.ReadAll(io.LimitReader(f, maxPlan+1))
	if err == nil && len(body) > maxPlan {
		err = fmt.Errorf("%s: %w", name, errLong)
	}
	return body, err
}

// readLines yields the values of a file of JSON Lines in the folder of the shards.
func readLines[T any](dir fs.FS, name string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		f, err := dir.Open(path.Join(state.ShardsDir, name))
		if err != nil {
			yield(none, err)
			return
		}
		defer f.Close()
		in := json.NewDecoder(bufio.NewReaderSize(f, 64<<10))
		for n := 1; ; n++ {
			var v T
			err := in.Decode(&v)
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(none, fmt.Errorf("%s/%s, line %d: %w", state.ShardsDir, name, n, err))
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}
