// Systems type-checks rehydrate, as it is without cgo, for other systems than this one: what a build would say of files
// that only they have, in a tenth of its time.
//
//	go -C tools build -o ../bin/ ./systems && bin/systems OS/ARCHITECTURE...
//
// The exit status is 1 where one of them does not type-check. scripts/check full builds and links for each.
package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	for _, system := range os.Args[1:] {
		if err := check(system); err != nil {
			fmt.Fprintf(os.Stderr, "systems: %s: %v\n", system, err)
			os.Exit(1)
		}
	}
}

// check prints what is wrong for a system, such as windows/amd64.
func check(system string) error {
	goos, goarch, _ := strings.Cut(system, "/")
	c := packages.Config{Mode: packages.NeedName | packages.NeedImports | packages.NeedDeps,
		Env: append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)}
	program, err := packages.Load(&c, "./cmd/rehydrate")
	if err != nil {
		return err
	}
	own := map[string]bool{} // whose functions are checked, too
	packages.Visit(program, func(p *packages.Package) bool {
		own[p.PkgPath] = strings.HasPrefix(p.PkgPath, "rehydrate/")
		return true
	}, nil)
	maps.DeleteFunc(own, func(_ string, is bool) bool { return !is })
	c.Mode |= packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedSyntax | packages.NeedTypes |
		packages.NeedTypesInfo | packages.NeedTypesSizes
	loaded, err := packages.Load(&c, slices.Sorted(maps.Keys(own))...)
	if err != nil {
		return err
	}
	if n := packages.PrintErrors(loaded); n > 0 || len(loaded) < 20 {
		return fmt.Errorf("%d errors in %d packages", n, len(loaded))
	}
	return nil
}
