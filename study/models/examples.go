package models

import (
	"cmp"
	"context"
	"slices"

	"rehydrate/dedupe"
	"rehydrate/internal/draw"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// choose takes examples of a task from rows, by the rank that the seed gives their ids: first those that show a class
// that no earlier one shows, a row without a label among them where several can be given, then the next ones. It
// returns the names of the classes that none shows.
func (t *Task) choose(rows []workspace.Record, shots int, seed string) (chosen []workspace.Record, missing []string) {
	rank := func(a, b workspace.Record) int {
		return cmp.Or(draw.RankOf(seed, a.ID).Compare(draw.RankOf(seed, b.ID)), a.Key.Image-b.Key.Image)
	}
	rows = slices.SortedFunc(slices.Values(rows), rank)
	const noLabel = -1
	need := map[int]string{}
	if t.Kind == manifest.Multi {
		need[noLabel] = "no label"
	}
	for i, c := range t.Classes {
		need[i] = c.Name
	}
	var others []workspace.Record
	for _, rec := range rows {
		classes := t.ClassesOf(rec.Labels)
		if classes == nil || t.Kind != manifest.Multi && len(classes) == 0 {
			continue // it has no answer to show
		}
		if len(classes) == 0 {
			classes = []int{noLabel}
		}
		shows := false
		for _, c := range classes {
			_, wanted := need[c]
			shows = shows || wanted
		}
		if !shows || len(chosen) == shots {
			others = append(others, rec)
			continue
		}
		for _, c := range classes {
			delete(need, c)
		}
		chosen = append(chosen, rec)
	}
	chosen = append(chosen, others[:min(shots-len(chosen), len(others))]...)
	slices.SortFunc(chosen, rank)
	for _, name := range need {
		missing = append(missing, name)
	}
	slices.Sort(missing)
	return chosen, missing
}

// nearOf finds rows of a split that are near-duplicates of examples, as "row (example)". Their answers may be copied.
func nearOf(ctx context.Context, ws *workspace.Workspace, p policy.Policy, split string,
	examples []workspace.Record) ([]string, error) {
	of := map[manifest.Key]bool{}
	for _, rec := range examples {
		of[rec.Key] = true
	}
	// The rule keeps the first of a group: the examples come first, so that the others are told by them.
	var first, then []dedupe.Item
	var firstKeys, thenKeys []manifest.Key
	for rec, err := range ws.Records(ctx, workspace.Select{WithWords: true}) {
		switch {
		case err != nil:
			return nil, err
		case rec.Image == nil || rec.Reading == nil || rec.Result == nil || rec.Result.Outcome != manifest.Kept:
		case of[rec.Key]:
			first, firstKeys = append(first, state.NearItem(rec)), append(firstKeys, rec.Key)
		case split == "" || rec.Split == split:
			then, thenKeys = append(then, state.NearItem(rec)), append(thenKeys, rec.Key)
		}
	}
	decisions, err := dedupe.KeepFirst(ctx, append(first, then...), state.NearRule(p))
	if err != nil {
		return nil, err
	}
	var near []string
	keys := append(firstKeys, thenKeys...)
	for i, d := range decisions {
		if i >= len(firstKeys) && d.Of >= 0 && d.Of < len(firstKeys) {
			near = append(near, keys[i].String()+" ("+keys[d.Of].String()+")")
		}
	}
	return near, nil
}
