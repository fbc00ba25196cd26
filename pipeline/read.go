package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"rehydrate/internal/picture"
	"rehydrate/internal/safely"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// startReaders starts one reader for each OCR worker, none where shards read.
func (g *gatherer) startReaders(running context.Context, group *errgroup.Group) {
	for range g.Workers {
		safely.Go(group, func() error { return work(running, g.run, g.read, g.readImage) })
	}
}

// readEach reads the images of the records that find sends.
func (g *gatherer) readEach(ctx context.Context, find func(ctx context.Context,
	send func(workspace.Record) error) error) error {
	g.read = make(chan readJob, queueLength)
	group, running := errgroup.WithContext(ctx)
	safely.Go(group, func() error {
		defer close(g.read)
		return find(running, func(rec workspace.Record) error {
			return send(running, g.run, g.read,
				readJob{Record: rec})
		})
	})
	g.startReaders(running, group)
	return group.Wait()
}

// readMore reads the images of posts that were stored when the others had been read.
func (g *gatherer) readMore(ctx context.Context, ids []manifest.PostID) error {
	if len(ids) == 0 || g.OCR == nil { // or shards read them
		return nil
	}
	return g.readEach(ctx, func(ctx context.Context, send func(workspace.Record) error) error {
		for rec, err := range g.Workspace.Records(ctx, workspace.Select{IDs: ids}) {
			if err != nil {
				return err
			}
			if rec.Image == nil || g.reader.Current(*rec.Image, rec.Reading) {
				continue
			}
			if err := send(rec); err != nil {
				return err
			}
		}
		return nil
	})
}

// readImage reads the text of one stored image.
func (g *gatherer) readImage(ctx context.Context, job readJob) error {
	rec, pic := job.Record, job.picture
	if pic == nil {
		body, info, err := g.load(ctx, rec)
		if err == nil {
			pic, err = g.reader.Decode(ctx, info, body)
		}
		if fault, ok := errors.AsType[*policy.Fault](err); ok {
			return g.refuse(ctx, rec, fault)
		}
		if err != nil {
			return err
		}
	}
	kind := rec.Image.HashKind
	read, err := g.reader.Read(ctx, rec.Image, pic)
	if err != nil {
		return fmt.Errorf("read the image of %s: %w", rec.Key.ID, err)
	}
	if err := g.Workspace.SetReadings(ctx, g.newReading(rec, read)); err != nil {
		return err
	}
	// After the reading: killed in between, the older kind of hash has the image read once more.
	if rec.Image.HashKind != kind {
		if err := g.Workspace.SetHash(ctx, rec.Key, *rec.Image); err != nil {
			return err
		}
	}
	if read.Failed != nil {
		g.settled(rec.Key, manifest.Result{Outcome: read.Failed.Outcome, Reason: read.Failed.Reason})
		return nil
	}
	g.Log.Debug("image read", "id", rec.Key.ID, "image", rec.Key.Image, "words", len(read.Words))
	g.Progress.read()
	return nil
}

// refuse settles an entry whose stored image cannot be read. One whose image was removed while it waited to be read has
// its outcome.
func (g *gatherer) refuse(ctx context.Context, rec workspace.Record, f *policy.Fault) error {
	if f.Reason == state.ReasonDamaged {
		now, err := g.stored(ctx, rec.Key)
		if err != nil {
			return err
		}
		if t := now.Trouble; t != nil && slices.Contains(policy.ImageRemovals(), t.Reason) && !t.Withheld() {
			return nil
		}
	}
	g.settled(rec.Key, manifest.Result{Outcome: f.Outcome, Reason: f.Reason})
	return g.note(ctx, rec, g.terms.refused(rec, "", f))
}

// newReading is a reading to store, in a re-reading beside the text of the one it replaces.
func (g *gatherer) newReading(rec workspace.Record, read workspace.Reading) workspace.NewReading {
	n := workspace.NewReading{Key: rec.Key, Reading: read}
	if g.keepTexts && rec.Reading != nil {
		text := rec.Reading.Text
		if g.Policy.Text.MaskNames {
			text = state.MaskText(text)
		}
		n.Old = &text
	}
	return n
}

// load reads a stored image from its file. A *policy.Fault says why it may not be used.
func (g *gatherer) load(ctx context.Context, rec workspace.Record) ([]byte, picture.Info, error) {
	body, err := g.readStored(ctx, rec)
	if _, damaged := errors.AsType[*workspace.Damaged](err); damaged {
		err = damagedFile()
	}
	if err != nil {
		return nil, picture.Info{}, err
	}
	info, fault := g.Policy.InspectImage(body)
	if fault != nil {
		return nil, info, fault
	}
	return body, info, nil
}

// damagedFile is the trouble of an entry whose stored image is not what it was.
func damagedFile() *policy.Fault {
	return &policy.Fault{Outcome: manifest.Failed, Reason: state.ReasonDamaged, Detail: "fetched again by the next run"}
}
