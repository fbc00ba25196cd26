package guess

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"rehydrate/manifest"
	"rehydrate/manifest/table"
)

// nameless takes out of the comments of release.toml what only the person who made it should read, for the folder may
// be handed out as it is: the names and folders of the files, and names of columns that may be a person's.
func (d *guesser) nameless(files []manifest.SourceFile) *strings.Replacer {
	var pairs []string
	say := func(name, instead string) {
		if name != "" {
			pairs = append(pairs, name, instead)
		}
	}
	for i, file := range files {
		say(file.Path+":", fmt.Sprintf("file %d:", i+1)) // before a line
		say(table.Quote(filepath.Base(file.Path)), fmt.Sprintf("file %d", i+1))
	}
	for _, name := range d.skipped {
		say(table.Quote(name), "a file")
	}
	for _, c := range d.columns {
		isAnnotator := slices.ContainsFunc(d.annotators, func(left []string) bool { return slices.Contains(left, c.name) })
		if isAnnotator || d.namesSomebody(c.name) {
			say("--keep "+table.Quote(c.name), "--keep with its name") // as a command it cannot be typed without
			say(table.Quote(c.name), fmt.Sprintf("number %d (its name may name somebody)", c.place+1))
		}
	}
	return strings.NewReplacer(pairs...)
}

// namesSomebody reports whether the name of a column may be that of a person or account. The names of this program's
// own columns, such as sha256, are nobody's.
func (d *guesser) namesSomebody(name string) bool {
	if manifest.Reserved(manifest.FoldColumn(name)) {
		return false
	}
	return LookOfText(name, d.Known) != "" || LookOfText(strings.ReplaceAll(name, "_", " "), d.Known) != ""
}
