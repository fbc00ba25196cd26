package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"rehydrate/manifest"
	"rehydrate/manifest/guess"
	"rehydrate/pipeline/state"
	"rehydrate/policy"
)

// plainLine is a line that says nothing of anybody: a table, or a key with a number or a flag, of TOML; or a part of an
// SSH signature.
var plainLine = regexp.MustCompile(`^(?:\[\[?[a-z_.]+\]?\]|[a-z_.]+ *= *(?:[\d._]+|true|false)|` +
	`-----(?:BEGIN|END) SSH SIGNATURE-----)?$`)

// base64Line is a line of an SSH signature between its first and its last.
var base64Line = regexp.MustCompile(`^[A-Za-z0-9+/]+={0,2}$`)

// quoted is what stands between quotes, and is judged by itself.
var quoted = regexp.MustCompile(`"[^"]*"|'[^']*'`)

// copied are the files that hold what somebody wrote and no other item shows, each with all of it but the program's own
// lines. A file that nothing is known of is shown line by line.
func (p *publishing) copied() (items []Item, err error) {
	for _, f := range p.Files {
		switch f.Name {
		case p.table, manifest.SettingsName, manifest.TombstonesName, AgreementName, DatasheetName:
			// Written from what is shown.
			continue
		}
		text, err := os.ReadFile(filepath.Join(p.temp, f.Name))
		if err != nil {
			return nil, err
		}
		item := Item{What: f.Name, Holds: "lines that are not the program's", Looks: []Look{}}
		var tree any
		if f.Name == manifest.RevocationsName && json.Unmarshal(text, &tree) == nil {
			item.Holds, item.Values = "texts", jsonTexts(tree)
		} else {
			item.Values = othersLines(text, strings.HasSuffix(f.Name, manifest.SignatureSuffix))
		}
		item.Different = len(item.Values)
		if f.Name == manifest.RevocationsName {
			item.look("", p.distrusted)
		}
		if item.Different+len(item.Looks) == 0 {
			continue
		}
		if f.Name != PolicyName { // which most releases have, and few lines of it are of anybody
			item.look("", "is copied as somebody wrote it")
		}
		for _, value := range item.Values {
			item.look(value, p.lookOfLine(value))
		}
		items = append(items, item)
	}
	return items, nil
}

// distrust says why no grant will count beside the list of revocations, or without one; "" where one can.
func (p *publishing) distrust(ctx context.Context) (why string, err error) {
	var seen int64
	if p.Workspace != nil {
		seen, err = state.SeenRevocations(ctx, p.Workspace, p.Release.Name)
		if err != nil {
			return "", err
		}
	}
	var list *policy.SignedFile
	if p.Release.RevocationsPath != "" {
		body, err := os.ReadFile(filepath.Join(p.temp, manifest.RevocationsName))
		if err != nil {
			return "", err
		}
		// A signature that is missing is none.
		signature, _ := os.ReadFile(filepath.Join(p.temp, manifest.RevocationsName+manifest.SignatureSuffix))
		list = &policy.SignedFile{Name: manifest.RevocationsName, Body: body, Signature: signature}
	}
	signers, err := policy.ParseSigners(p.Release.Signers)
	if err != nil && list != nil {
		return "makes every grant invalid: no signer can be read", nil
	}
	if fault := policy.CheckRevocations(list, signers, p.Release.Name, seen, p.Now); fault != nil {
		return "makes every grant invalid: " + fault.Detail, nil
	}
	return "", nil
}

// lookOfLine judges a line and each text in quotes that it has.
func (p *publishing) lookOfLine(line string) string {
	for _, part := range append(quoted.FindAllString(line, -1), line) {
		if look := guess.LookOfText(strings.Trim(part, `"'# `), p.known); look != "" {
			return look
		}
	}
	return ""
}

// othersLines are the lines of a text that the program did not write and that say something.
func othersLines(text []byte, signature bool) (lines []string) {
	own := map[string]bool{}
	for _, text := range [][]byte{policy.DefaultTOML(), policy.CautiousTOML()} {
		for line := range bytes.Lines(text) {
			own[string(bytes.TrimSpace(line))] = true
			if _, comment, has := strings.Cut(string(line), "#"); has {
				own["#"+strings.TrimSpace(comment)] = true
			}
		}
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(strings.TrimPrefix(line, "\ufeff"))
		setting, comment, has := strings.Cut(line, "#")
		isPlain := plainLine.MatchString(strings.TrimSpace(setting)) && (!has || own["#"+strings.TrimSpace(comment)])
		if own[line] || isPlain || signature && base64Line.MatchString(line) {
			continue
		}
		own[line] = true // once is enough
		lines = append(lines, line)
	}
	return lines
}

// jsonTexts are the different texts and keys of a list of revocations, but for times and the keys that every list has.
func jsonTexts(tree any) (texts []string) {
	met := map[string]bool{"": true}
	add := func(text string) {
		_, err := time.Parse(time.RFC3339, text)
		if err != nil && !met[text] {
			met[text], texts = true, append(texts, text)
		}
	}
	known := []string{"release", "serial", "issued", "next_update", "revoked", "id", "at", "reason"}
	var walk func(any)
	walk = func(node any) {
		switch v := node.(type) {
		case string:
			add(v)
		case []any:
			for _, of := range v {
				walk(of)
			}
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				if !slices.Contains(known, key) {
					add(key)
				}
				walk(v[key])
			}
		}
	}
	walk(tree)
	return texts
}
