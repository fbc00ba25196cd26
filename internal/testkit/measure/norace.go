//go:build !race

package measure

// Raced says that the race detector is on, with which a process takes several times the memory and the time.
const Raced = false
