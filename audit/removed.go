package audit

import (
	"context"
	"slices"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// Images can be removed from posts that stay. The engine takes such removals over from the log into state.db, and
// refuses the same picture as one that was taken down; an audit goes by the same log and the same digests, whatever
// state.db says: it may be older, or changed.

// findRemoved adds to the removed images of live posts those that state.db does not have as removed.
func (a *audit) findRemoved(ctx context.Context) error {
	for k, reason := range a.removals.Entries {
		if name := k.String(); a.removed[name] == nil {
			a.removed[name] = a.post(k.ID).withoutImage(reason, "log")
		}
	}
	down := a.takenDown()
	var same []*known // entries of other posts that had such a picture, or have it
	for _, m := range a.gone.marks {
		if down[m.is] && !m.of.MustGo && !slices.Contains(a.Policy.Images.AllowSame, m.of.ID) {
			same = append(same, m.of)
		}
	}
	shown, err := a.shown(ctx, same)
	if err != nil {
		return err
	}
	for _, k := range same {
		// What took the place of such a picture is its own.
		now, stored := shown[k.name]
		if a.removed[k.name] == nil && (!stored || slices.ContainsFunc(now, func(d digest) bool { return down[d] })) {
			a.removed[k.name] = k.evidence.withoutImage(policy.SameAsRemoved, "workspace")
		}
	}
	return nil
}

// takenDown are the digests of images of posts whose tombstone is about the picture.
func (a *audit) takenDown() map[digest]bool {
	logged := map[manifest.PostID]auditlog.Tombstone{}
	for _, t := range a.removals.Tombstones {
		logged[t.ID] = t
	}
	down := map[digest]bool{}
	for _, m := range a.gone.marks {
		e := a.posts[m.of.ID] // and not that on the entry, whose image may have been removed alone
		if !e.MustGo {
			continue
		}
		state, reason := e.goneAs, manifest.Reason("")
		t, inLog := logged[e.ID]
		switch {
		case e.Because == "tombstone" && e.stone != nil:
			reason = e.stone.Reason
		case e.Because == "log" && inLog:
			state, reason = t.State, t.Reason
		case e.Because != "release" && e.Because != "tombstone":
			continue // an answer of Reddit alone: the next run gives it a tombstone
		}
		if policy.TakenDown(state, reason) {
			down[m.is] = true
		}
	}
	return down
}

// shown are the digests of the images that the workspace has of entries, by their names.
func (a *audit) shown(ctx context.Context, of []*known) (map[string][]digest, error) {
	shown := map[string][]digest{}
	if a.Workspace == nil || len(of) == 0 {
		return shown, nil
	}
	var ids []manifest.PostID
	for _, k := range of {
		ids = append(ids, k.ID)
	}
	for rec, err := range a.Workspace.Records(ctx, workspace.Select{Bare: true, IDs: ids}) {
		if err != nil {
			return nil, err
		}
		if img := rec.Image; img != nil {
			shown[rec.Key.String()] = []digest{parseDigest(img.OriginalSHA256), parseDigest(img.SHA256),
				parseDigest(img.PixelsSHA256)}
		}
	}
	return shown, nil
}
