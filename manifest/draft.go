package manifest

import (
	"encoding/json"
	"strings"
	"text/template"
)

// draftTemplate writes release.toml for a guess, with the reason beside each setting.
var draftTemplate = template.Must(template.New(SettingsName).Funcs(template.FuncMap{"text": tomlText, "quote": quote}).Parse(
	"# A release, made by `rehydrate init` of {{quote .Source}}." + `
# What stands below was guessed from that file: read it, correct it, then publish.
{{range .Warnings}}# Look at this: {{.}}.
{{end}}
name = {{text .Name}}
version = "0.1.0"
# date = 2025-12-31
# homepage = ""
# license = ""
# citation = ""

manifest = {{text .Manifest}}

{{if .IsFigSIM -}}
# The labels are FigSIM's: every category was found in the file.
schema = "figsim"
{{- else -}}
# One [[category]] for each column that looks like labels. kind is "single", "multi"
# (several labels a cell) or "ordinal" (single, labels ordered from lowest to highest);
# a label with exclusive = true may not stand beside another. name is what people read.
{{- range .Categories}}

# {{.Why}}
[[category]]
name = {{text .Name}}
title = {{text .Title}}
kind = {{text .Kind}}
labels = [
{{- range .Labels}}
  {code = {{text .Code}}, name = {{text .Name}}{{if .Exclusive}}, exclusive = true{{end}}},
{{- end}}
]
{{- end}}
{{- end}}

[columns]
{{range .Fields}}{{.Name}} = {{text .Column}} # {{.Why}}
{{end}}{{if .OneSplit}}# The file has no split column: every entry is in the split train.
{{end}}{{range .Categories}}{{.Name}} = {{text .Column}} # {{.Why}}
{{end}}{{range .LeftOut}}# Not used: {{.}}.
{{end}}
[labels]
# What separates the labels of a cell. A table [labels.CATEGORY] maps spelling = "code".
separator = {{text .Separator}}
`))

// tomlText writes a text as a TOML string, which is a JSON string but for one character.
func tomlText(text any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // of a string it does not fail
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007F`)
}
