package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// tomlText writes s as a TOML string.
func tomlText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// toml writes release.toml for the guess, with the reason beside each setting.
func (g *guess) toml(name, source, manifest string) []byte {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# A release, made by `rehydrate init` of %s.", quote(source))
	line("# What stands below was guessed from that file: read it, correct it, then publish.")
	for _, w := range g.warnings {
		line("# Look at this: %s.", w)
	}
	line("")
	line("name = %s", tomlText(name))
	line(`version = "0.1.0"`)
	for _, unset := range []string{"date = 2025-12-31", `homepage = ""`, `license = ""`, `citation = ""`} {
		line("# %s", unset)
	}
	line("")
	line("manifest = %s", tomlText(manifest))
	line("")
	g.writeSchema(line)
	g.writeColumns(line)
	line("")
	line("[labels]")
	line("# What parts the labels of a cell. A table [labels.CATEGORY] maps spelling = \"code\".")
	line("separator = %s", tomlText(separators[g.separator]))
	return []byte(b.String())
}

func (g *guess) writeSchema(line func(string, ...any)) {
	if g.isFigSIM {
		line("# The labels are FigSIM's: every category was found in the file.")
		line(`schema = "figsim"`)
		line("")
		return
	}
	line("# One [[category]] for each column that looks like labels. kind is \"single\", \"multi\"")
	line("# (several labels a cell) or \"ordinal\" (single, labels ordered from lowest to highest);")
	line("# a label with exclusive = true may not stand beside another. name is what people read.")
	for _, c := range g.categories {
		line("")
		line("# %s", c.why)
		line("[[category]]")
		line("name = %s", tomlText(c.category.Name))
		line("title = %s", tomlText(c.category.Title))
		line("kind = %s", tomlText(string(c.category.Kind)))
		line("labels = [")
		for _, l := range c.category.Labels {
			exclusive := ""
			if l.Exclusive {
				exclusive = ", exclusive = true"
			}
			line("  {code = %s, name = %s%s},", tomlText(l.Code), tomlText(l.Name), exclusive)
		}
		line("]")
	}
	line("")
}

func (g *guess) writeColumns(line func(string, ...any)) {
	line("[columns]")
	for field, f := range g.fields {
		if f.column != "" || f.off {
			line("%s = %s # %s", fieldNames[field], tomlText(f.column), f.why)
		}
	}
	if g.fields[fieldSplit].column == "" {
		line("# There is no split column: every entry is in the split train.")
	}
	for _, c := range g.categories {
		if c.oneHot == nil {
			line("%s = %s # %s", c.category.Name, tomlText(c.column), c.why)
			continue
		}
		var pairs []string
		for label, column := range c.oneHot {
			if column != "" {
				pairs = append(pairs, tomlText(c.category.Labels[label].Code)+" = "+tomlText(column))
			}
		}
		line("%s = {%s} # %s", c.category.Name, strings.Join(pairs, ", "), c.why)
	}
	for _, left := range slices.Compact(slices.Clone(g.leftOut)) {
		line("# Not used: %s.", left)
	}
}

// notes are the guesses for a person to read, one a line.
func (g *guess) notes() []string {
	var notes []string
	for field, f := range g.fields {
		switch {
		case f.column != "":
			notes = append(notes, fmt.Sprintf("%s is column %s: %s", fieldNames[field], quote(f.column), f.why))
		case f.off:
			notes = append(notes, fmt.Sprintf("%s has no column: %s", fieldNames[field], f.why))
		}
	}
	for _, c := range g.categories {
		columns := []string{c.column}
		if c.oneHot != nil {
			columns = c.oneHot
		}
		quoted := make(map[string]bool)
		for _, column := range columns {
			if column != "" {
				quoted[quote(column)] = true
			}
		}
		notes = append(notes, fmt.Sprintf("category %s (%s) is %s: %s", c.category.Name, c.category.Kind, list(slices.Sorted(maps.Keys(quoted))), c.why))
	}
	for _, left := range g.leftOut {
		notes = append(notes, "not used: "+left)
	}
	return notes
}
