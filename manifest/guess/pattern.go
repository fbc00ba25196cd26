package guess

import (
	"regexp"
	"sync"
)

// pattern is a regular expression that is compiled when it is first asked for: most commands guess nothing, and to
// compile all of this package would take a sixth of their start.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
