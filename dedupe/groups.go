package dedupe

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"maps"
	"slices"
)

// Groups is a set of items with the decision on each: at any time what KeepFirst decides
// on the items that are in it, in the order of their places, whatever the order was in
// which they came and went.
//
// Add and Remove decide again only on the items that the change reaches: those near it,
// those near what changes by it, and so on, later in the order each time. They ask an
// Index for the near ones instead of holding the edges, so that memory is linear in the
// items. The memory of what was removed is not given back: make the groups anew for that.
//
// A Groups is not for several goroutines at a time.
type Groups struct {
	c *comparison

	// A class is a node of the comparison with the items that it stands for; it goes by
	// the number of its first item in the comparison.
	members map[uint32][]uint32 // by class: the items that are in, in order
	of      map[uint32]uint32   // by class: the class that its items are dropped for; kept ones are not in
	place   []int               // by item
	at      map[int]uint32      // by place: the item that is in

	index *Index              // of the classes that are not flat
	nodes []uint32            // by number in the index: the class
	flat  map[string][]uint32 // by content: the classes of flat items
}

// Compare decides on the items as KeepFirst does and returns the groups, in which item i
// has the place i. Errors are those of KeepFirst. The items are not changed.
func Compare(ctx context.Context, items []Item, rule Rule) (*Groups, error) {
	if err := checkRule(rule, len(items)); err != nil {
		return nil, err
	}
	c, err := newComparison(ctx, items, rule)
	if err != nil {
		return nil, err
	}
	index, err := NewIndex(rule.Radius)
	if err != nil {
		return nil, err
	}
	g := &Groups{c: c, members: map[uint32][]uint32{}, of: map[uint32]uint32{}, at: map[int]uint32{},
		index: index, flat: map[string][]uint32{}}
	for i := range items {
		g.enter(uint32(i), i)
	}
	if rule.never() {
		return g, ctx.Err()
	}
	decisions := undecided(len(items))
	if err := c.decide(ctx, decisions); err != nil {
		return nil, err
	}
	for _, n := range c.nodes {
		if of := decisions[n].Of; of >= 0 {
			g.of[n] = c.first[of]
		}
	}
	return g, nil
}

// enter puts an item that the comparison has taken in at a place.
func (g *Groups) enter(n uint32, place int) {
	class := g.c.first[n]
	g.place = append(g.place, place)
	g.at[place] = n
	if class == n {
		if it := &g.c.items[n]; it.Hash.Flat {
			g.flat[it.Content] = append(g.flat[it.Content], n)
		} else {
			g.index.Add(it.Hash.Bits)
			g.nodes = append(g.nodes, n)
		}
	}
	i, _ := g.find(class, place)
	g.members[class] = slices.Insert(g.members[class], i, n)
}

// find returns where the member of that place stands, or would stand, in its class.
func (g *Groups) find(class uint32, place int) (int, bool) {
	return slices.BinarySearchFunc(g.members[class], place, func(n uint32, place int) int { return cmp.Compare(g.place[n], place) })
}

// Len returns the number of items.
func (g *Groups) Len() int { return len(g.at) }

// Places returns the places of the items, in order.
func (g *Groups) Places() []int { return slices.Sorted(maps.Keys(g.at)) }

// Add puts an item in at a place of the order, before the items of greater places and
// after those of smaller ones, and returns the places of the items whose decision is
// another one now, in order, the new one's among them. The error says that the place is
// taken.
func (g *Groups) Add(place int, item Item) (changed []int, err error) {
	if _, taken := g.at[place]; taken {
		return nil, fmt.Errorf("near-duplicates: there is an item at place %d already", place)
	}
	n := uint32(len(g.c.items))
	g.c.items = append(g.c.items, item)
	g.c.take(n)
	class := g.c.first[n]
	before := g.front(class)
	g.enter(n, place)
	return g.elect(class, before, place), nil
}

// Remove takes the item at a place out, and elects again where it stood for others. It
// returns the places of the items whose decision is another one now, in order. The error
// says that there is no such item.
func (g *Groups) Remove(place int) (changed []int, err error) {
	n, ok := g.at[place]
	if !ok {
		return nil, fmt.Errorf("near-duplicates: there is no item at place %d", place)
	}
	class := g.c.first[n]
	before := g.front(class)
	i, _ := g.find(class, place)
	g.members[class] = slices.Delete(g.members[class], i, i+1)
	delete(g.at, place)
	return g.elect(class, before, place), nil
}

// noPlace is the place of a class without items: after all others.
const noPlace = int(^uint(0) >> 1)

// front returns the place of a class: that of its first item.
func (g *Groups) front(class uint32) int {
	if m := g.members[class]; len(m) > 0 {
		return g.place[m[0]]
	}
	return noPlace
}

// Decision returns the decision on the item at a place; Of is a place. ok is false when
// there is none.
func (g *Groups) Decision(place int) (d Decision, ok bool) {
	n, ok := g.at[place]
	if !ok {
		return Decision{}, false
	}
	class := g.c.first[n]
	of, dropped := g.of[class]
	switch {
	case dropped:
	case g.members[class][0] == n || g.c.rule.never():
		return Decision{Of: -1}, true
	default:
		of = class
	}
	first := g.members[of][0]
	d = g.c.witness(int(n), int(first))
	d.Of = g.place[first]
	return d, true
}

// An Edge says that two items are near.
type Edge struct {
	Place, Other int // Place < Other
	HashDistance int // differing bits of the 64
	WordDistance int
	Class        string
}

// Near returns an edge for every item that the one at a place is near, kept or not, in
// order. All edges of all places are the whole relation, each seen from both ends; a
// picture that was posted k times has k*k of them.
func (g *Groups) Near(place int) []Edge {
	n, ok := g.at[place]
	if !ok || g.c.rule.never() {
		return nil
	}
	class := g.c.first[n]
	var edges []Edge
	add := func(other uint32) {
		for _, m := range g.members[other] {
			if m == n {
				continue
			}
			d := g.c.witness(int(n), int(m))
			edges = append(edges, Edge{Place: min(place, g.place[m]), Other: max(place, g.place[m]),
				HashDistance: d.HashDistance, WordDistance: d.WordDistance, Class: d.Class})
		}
	}
	add(class) // alone in it unless copies are near each other
	g.neighbours(class, add)
	slices.SortFunc(edges, func(a, b Edge) int { return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.Other, b.Other)) })
	return edges
}

// neighbours tells visit of every other class that is near one, those without items
// among them.
func (g *Groups) neighbours(class uint32, visit func(uint32)) {
	it := &g.c.items[class]
	if it.Hash.Flat {
		if it.Content == "" {
			return
		}
		for _, other := range g.flat[it.Content] {
			if other != class && (g.c.rule.ImageOnly || g.c.textNear(class, other)) {
				visit(other)
			}
		}
		return
	}
	for number := range g.index.Near(it.Hash.Bits) {
		if other := g.nodes[number]; other != class && g.c.picturesNear(class, other) {
			visit(other)
		}
	}
}

// elect decides again after a class has changed, by the item that has come to or gone
// from a place, and returns the places of the items whose decision is another one now.
//
// Classes wait in the order of their places, and the first is decided on. That is for
// good: what it decides reaches only those that come after it.
func (g *Groups) elect(class uint32, before, place int) (changed []int) {
	touched := map[int]bool{}
	if _, in := g.at[place]; in {
		touched[place] = true
	}
	if g.c.rule.never() {
		return slices.Sorted(maps.Keys(touched))
	}
	q := &queue{g: g, in: map[uint32]bool{}}
	now := g.front(class)
	if before != now {
		// It stands elsewhere in the order, or names another item, or is gone.
		if _, dropped := g.of[class]; !dropped {
			g.touch(class, touched)
			g.neighbours(class, func(other uint32) {
				if of, dropped := g.of[other]; dropped && of == class {
					g.touch(other, touched)
				}
				q.push(other)
			})
		}
		if now == noPlace {
			delete(g.of, class)
		} else {
			q.push(class)
		}
	}
	for q.Len() > 0 {
		g.decideOn(heap.Pop(q).(uint32), q, touched)
	}
	return slices.Sorted(maps.Keys(touched))
}

// decideOn decides on a class by those before it, and has the later ones wait that its
// decision reaches.
func (g *Groups) decideOn(class uint32, q *queue, touched map[int]bool) {
	delete(q.in, class)
	front := g.front(class)
	if front == noPlace {
		return
	}
	best, found := uint32(0), false
	g.neighbours(class, func(other uint32) {
		if _, dropped := g.of[other]; !dropped && g.front(other) < front && (!found || g.front(other) < g.front(best)) {
			best, found = other, true
		}
	})
	was, dropped := g.of[class]
	if found {
		g.of[class] = best
	} else {
		delete(g.of, class)
	}
	if found != dropped || found && was != best {
		g.touch(class, touched)
	}
	if found != dropped {
		g.neighbours(class, func(other uint32) {
			if g.front(other) > front {
				q.push(other)
			}
		})
	}
}

// touch notes that the decisions on the items of a class are others.
func (g *Groups) touch(class uint32, touched map[int]bool) {
	for _, n := range g.members[class] {
		touched[g.place[n]] = true
	}
}

// A queue holds classes that wait to be decided on, the first in the order first.
type queue struct {
	g       *Groups
	waiting []uint32
	in      map[uint32]bool
}

func (q *queue) push(class uint32) {
	if !q.in[class] && len(q.g.members[class]) > 0 {
		q.in[class] = true
		heap.Push(q, class)
	}
}

func (q *queue) Len() int           { return len(q.waiting) }
func (q *queue) Less(i, j int) bool { return q.g.front(q.waiting[i]) < q.g.front(q.waiting[j]) }
func (q *queue) Swap(i, j int)      { q.waiting[i], q.waiting[j] = q.waiting[j], q.waiting[i] }
func (q *queue) Push(x any)         { q.waiting = append(q.waiting, x.(uint32)) }
func (q *queue) Pop() any {
	last := q.waiting[len(q.waiting)-1]
	q.waiting = q.waiting[:len(q.waiting)-1]
	return last
}

// Components returns, by place, the smallest place that an item is connected with by near
// items, kept or not, itself at the least. Nothing is dropped by components: they chain
// what is not near. They tell whether a chain straddles the splits of a dataset. Two
// items have the same one whatever rule decides between them. The error is the context's.
func (g *Groups) Components(ctx context.Context) (map[int]int, error) {
	u := newUnion(len(g.c.items))
	if !g.c.rule.never() {
		if err := g.connect(ctx, u); err != nil {
			return nil, err
		}
	}
	smallest := map[uint32]int{}
	places := g.Places()
	for _, p := range places {
		root := u.find(g.root(p))
		if _, met := smallest[root]; !met {
			smallest[root] = p
		}
	}
	components := make(map[int]int, len(places))
	for _, p := range places {
		components[p] = smallest[u.find(g.root(p))]
	}
	return components, nil
}

// root is what stands for the item at a place in a union: its class, or itself where no
// item is near another.
func (g *Groups) root(place int) uint32 {
	if n := g.at[place]; g.c.rule.never() {
		return n
	}
	return g.c.first[g.at[place]]
}

// connect joins the near classes that have items. Pairs that are connected already are
// not compared.
func (g *Groups) connect(ctx context.Context, u *union) error {
	for content, classes := range g.flat {
		if content == "" {
			continue
		}
		for i, a := range classes {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			for _, b := range classes[i+1:] {
				if g.bothIn(a, b) && !u.joined(a, b) && (g.c.rule.ImageOnly || g.c.textNear(a, b)) {
					u.join(a, b)
				}
			}
		}
	}
	s, at := g.c.search()
	list := make([]uint32, len(at))
	for i := range list {
		list[i] = uint32(i)
	}
	return s.pairs(ctx, list, func(_ int, i, j uint32) {
		if a, b := at[i], at[j]; g.bothIn(a, b) && !u.joined(a, b) && g.c.picturesNear(a, b) {
			u.join(a, b)
		}
	})
}

func (g *Groups) bothIn(a, b uint32) bool { return len(g.members[a]) > 0 && len(g.members[b]) > 0 }
