// Package build says what a program was built from.
package build

import (
	"runtime/debug"
	"strings"
)

// Version is the version of the program, without the v: the tag that it was built at, or what Go makes of the commit
// behind it. Outside a clone it is "devel", for then nothing knows.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return strings.TrimPrefix(info.Main.Version, "v")
}
