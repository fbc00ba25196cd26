package dedupe

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// decisionsOf are the decisions on all items of the groups, in order.
func decisionsOf(g *Groups) []Decision {
	var all []Decision
	for _, place := range g.Places() {
		d, ok := g.Decision(place)
		if !ok {
			panic("an item without a decision")
		}
		all = append(all, d)
	}
	return all
}

// fresh is what KeepFirst decides on the items at those places, Of as a place.
func fresh(t interface{ Fatal(...any) }, items []Item, places []int, rule Rule) []Decision {
	var live []Item
	for _, p := range places {
		live = append(live, items[p])
	}
	decisions, err := KeepFirst(context.Background(), live, rule)
	if err != nil {
		t.Fatal(err)
	}
	for i := range decisions {
		if of := decisions[i].Of; of >= 0 {
			decisions[i].Of = places[of]
		}
	}
	if len(decisions) == 0 {
		return nil
	}
	return decisions
}

// TestGroupsElect: whatever has come and gone, the groups say what a fresh pass over the
// items that are in says, and name every item whose decision a step changed, and no other.
func TestGroupsElect(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items, rule := drawItems(t), drawRule(t)
		whole := rapid.IntRange(0, len(items)).Draw(t, "compared as a whole")
		g, err := Compare(context.Background(), items[:whole], rule)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(fresh(t, items, g.Places(), rule), decisionsOf(g)); diff != "" {
			t.Fatalf("Compare differs from KeepFirst (-want +got):\n%s", diff)
		}
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			if len(items) == 0 {
				return
			}
			before := map[int]Decision{}
			for _, p := range g.Places() {
				before[p], _ = g.Decision(p)
			}
			p := rapid.IntRange(0, len(items)-1).Draw(t, "place")
			var changed, want []int
			if _, in := before[p]; in {
				changed, err = g.Remove(p)
			} else {
				changed, err = g.Add(p, items[p])
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(fresh(t, items, g.Places(), rule), decisionsOf(g)); diff != "" {
				t.Fatalf("after a step at %d the groups differ from a fresh pass (-want +got):\n%s", p, diff)
			}
			for _, q := range g.Places() {
				now, _ := g.Decision(q)
				if was, in := before[q]; !in || now != was {
					want = append(want, q)
				}
			}
			if !slices.Equal(changed, want) {
				t.Fatalf("a step at %d says that the decisions at %v changed, but those at %v did", p, changed, want)
			}
		}
	})
}

// TestGroupsRelation: Near is the whole relation, and components are its transitive
// closure.
func TestGroupsRelation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items, rule := drawItems(t), drawRule(t)
		g, err := Compare(context.Background(), items, rule)
		if err != nil {
			t.Fatal(err)
		}
		gone := map[int]bool{}
		for i := range items {
			if rapid.IntRange(0, 4).Draw(t, "removed") == 0 {
				gone[i] = true
				if _, err := g.Remove(i); err != nil {
					t.Fatal(err)
				}
			}
		}
		component := map[int]int{}
		edges := map[int][]Edge{}
		for i := range items {
			if !gone[i] {
				component[i] = i
			}
		}
		for j := range items {
			for i := range j {
				if gone[i] || gone[j] {
					continue
				}
				class := ""
				if rule.Words > 0 || rule.ImageOnly {
					class = near(items[i], items[j], rule)
				}
				if class == "" {
					continue
				}
				d := decisionOf(items, j, i, class, rule)
				e := Edge{Place: i, Other: j, HashDistance: d.HashDistance, WordDistance: d.WordDistance, Class: class}
				edges[i], edges[j] = append(edges[i], e), append(edges[j], e)
				low, high := min(component[i], component[j]), max(component[i], component[j])
				for k, c := range component {
					if c == high {
						component[k] = low
					}
				}
			}
		}
		for i := range items {
			if diff := cmp.Diff(edges[i], g.Near(i)); diff != "" {
				t.Errorf("Near(%d) differs from the definition (-want +got):\n%s", i, diff)
			}
		}
		got, err := g.Components(context.Background())
		if diff := cmp.Diff(component, got); diff != "" || err != nil {
			t.Errorf("error %v; components differ (-want +got):\n%s", err, diff)
		}
	})
}

// TestGroupsCopies: taking out what 200,000 copies were dropped for must not decide on
// each of them.
func TestGroupsCopies(t *testing.T) {
	items := make([]Item, 200_000)
	for i := range items {
		items[i] = Item{Hash: Hash{Bits: 7}, Tokens: []string{"same", "few", "words"}}
	}
	g, err := Compare(t.Context(), items, Rule{Radius: 8, Words: 3})
	if err != nil {
		t.Fatal(err)
	}
	for place := range 3 {
		if _, err := g.Remove(place); err != nil {
			t.Fatal(err)
		}
		d, _ := g.Decision(199_999)
		if first, _ := g.Decision(place + 1); !first.Kept() || d.Of != place+1 {
			t.Fatalf("without items 0 to %d the next is %+v and the last %+v", place, first, d)
		}
	}
}

func TestGroupsRefuse(t *testing.T) {
	g, err := Compare(t.Context(), corpus(3), Rule{Radius: 8, Words: 3})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Add(2, Item{}); err == nil {
		t.Error("Add at a place that is taken succeeds")
	}
	if _, err := g.Remove(3); err == nil {
		t.Error("Remove of what is not there succeeds")
	}
	if _, ok := g.Decision(3); ok || g.Near(3) != nil || g.Len() != 3 {
		t.Error("there is an item at place 3 of 0 to 2")
	}
	if _, err := Compare(t.Context(), nil, Rule{Radius: 65}); err == nil {
		t.Error("Compare by a radius of 65 succeeds")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Compare(ctx, corpus(100), Rule{Radius: 8, Words: 3}); !errors.Is(err, context.Canceled) {
		t.Errorf("Compare, cancelled: %v", err)
	}
}
