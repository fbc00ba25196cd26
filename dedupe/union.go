package dedupe

import "sync/atomic"

// A union says which of some numbers are connected. Several goroutines may join and ask
// at a time. A number's parent is never greater than itself, so that the root of a
// component is its smallest number whatever the order of the joins was.
type union struct{ parent []atomic.Uint32 }

func newUnion(n int) *union {
	u := &union{parent: make([]atomic.Uint32, n)}
	for i := range u.parent {
		u.parent[i].Store(uint32(i))
	}
	return u
}

// find returns the root of a number, and shortens the way to it.
func (u *union) find(n uint32) uint32 {
	for {
		parent := u.parent[n].Load()
		if parent == n {
			return n
		}
		above := u.parent[parent].Load()
		u.parent[n].CompareAndSwap(parent, above) // no matter if another was quicker
		n = above
	}
}

// joined reports whether two numbers are known to be connected.
func (u *union) joined(a, b uint32) bool { return u.find(a) == u.find(b) }

// join connects two numbers.
func (u *union) join(a, b uint32) {
	for {
		a, b = u.find(a), u.find(b)
		if a == b {
			return
		}
		if a > b {
			a, b = b, a
		}
		if u.parent[b].CompareAndSwap(b, a) {
			return
		}
	}
}
