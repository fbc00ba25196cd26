package guess

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"rehydrate/manifest"
	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

//go:embed platforms.txt
var platformsText string

// A platform is one where people are paid or asked, with the columns of its exports.
type platform struct {
	name  string
	sure  map[string]bool // by names that hardly another file has
	usual map[string]bool
}

var platforms = func() (all []platform) {
	for line := range strings.Lines(platformsText) {
		name, columns, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		at := slices.IndexFunc(all, func(p platform) bool { return p.name == name })
		if at < 0 {
			at, all = len(all), append(all, platform{name, make(map[string]bool), make(map[string]bool)})
		}
		columns, sure := strings.CutPrefix(columns, "! ")
		for column := range strings.SplitSeq(columns, ", ") {
			if sure {
				all[at].sure[column] = true
			} else {
				all[at].usual[column] = true
			}
		}
	}
	return all
}()

// has reports whether the column has a name of the platform's exports.
func (p platform) has(c *surveyed) bool { return p.sure[spaced(c.name)] || p.usual[spaced(c.name)] }

func spaced(name string) string { return strings.Join(value.Words(name), " ") }

// leastOfPlatform is how many columns of a platform make a file its export.
const leastOfPlatform = 3

// leavePlatform leaves out the columns of the platform whose export the file is, if it is one: they tell of the people
// who answered, each alone or all together. guessColumns then takes no numbers, times and flags either.
func (d *guesser) leavePlatform() {
	for _, p := range platforms {
		sure, all := 0, 0
		for _, c := range d.columns {
			if p.sure[spaced(c.name)] {
				sure++
			}
			if p.has(c) {
				all++
			}
		}
		if sure == 0 || all < leastOfPlatform {
			continue
		}
		d.platform = p.name
		for _, c := range d.columns {
			if !c.used && !slices.Contains(d.Keep, c.name) && c.filled > 0 && (p.has(c) || c.ofGivers()) &&
				c.private() == "" {
				what := fmt.Sprintf("is one of %s's exports, beside the answers", p.name)
				d.leaveLookAt(c, "it "+what+"; --keep "+table.Quote(c.name)+" publishes it", what)
			}
		}
		return
	}
}

// leaveBeside leaves out what is no label in the export of a platform, and reports whether it did.
func (d *guesser) leaveBeside(c *surveyed, kind manifest.ColumnType) bool {
	if d.platform == "" || kind == manifest.TypeText {
		return false
	}
	what := fmt.Sprintf("may tell of the people who answered, because the file is an export of %s", d.platform)
	d.leaveLookAt(c, "it "+what+"; --keep "+table.Quote(c.name)+" publishes it", what)
	return true
}
