package study

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"

	"rehydrate/internal/userfile"
	"rehydrate/labels"
)

// Flagging says how the answers of moderation services are counted.
type Flagging struct {
	Gold, Split string
	By          string // a category; empty for the first that is a scale
	Beside      string // the category with and without a label of which severities have means; empty for the schema's
	labels.ModerationRules
	Test bool // whether severities differ with and without a label of Beside
}

// AnySelfHarm as a category counts every flag as one of self-harm.
const AnySelfHarm = "any"

// DefaultRules count as the paper does, with the categories of self-harm of OpenAI, Azure and Llama Guard.
func DefaultRules() labels.ModerationRules {
	return labels.ModerationRules{SelfHarm: []string{"self-harm", "self-harm/intent", "self-harm/instructions", "S11"},
		Severity: 1, Score: 0.5}
}

// A Moderation is how often services flag entries, by label.
type Moderation struct {
	Split  string             `json:"split"`
	Differ []labels.Differing `json:"rows_differ,omitempty"`
	labels.ModerationTable
}

// Blocks are the two halves of the table.
func (m Moderation) Blocks() []string { return []string{"self-harm", "overall"} }

// WithSeverity are the services that tell severities.
func (m Moderation) WithSeverity() []labels.ServiceRow {
	return slices.DeleteFunc(slices.Clone(m.Services), func(s labels.ServiceRow) bool {
		return !slices.ContainsFunc(s.Labels, func(l labels.LabelRate) bool { return l.Severity != nil })
	})
}

// Moderate counts the answers in files, one for each service.
func Moderate(ctx context.Context, files []string, f Flagging) (out Moderation, err error) {
	if err := distinct(files); err != nil {
		return out, err
	}
	gold, err := openGold(ctx, f.Gold, f.Split)
	if err != nil {
		return out, err
	}
	by, err := gold.category(f.By)
	if err != nil {
		return out, err
	}
	category := gold.Schema.Categories[by].Name
	for _, t := range gold.Schema.Tasks() {
		if f.Beside == "" && t.Category == category {
			f.Beside = t.By
		}
	}
	if slices.Contains(f.SelfHarm, AnySelfHarm) {
		f.SelfHarm = nil
	}
	var all []labels.Judgements
	for _, file := range files {
		judged, err := readJudgements(file, f.ModerationRules)
		if err != nil {
			return out, userfile.Faulty(err)
		}
		all = append(all, judged)
	}
	out.Split, out.Differ = gold.split, gold.differing(category, cmp.Or(f.Beside, category))
	out.ModerationTable, err = labels.TabulateModeration(gold.Schema, category, f.Beside, f.Test, gold.entries,
		gold.others, all)
	if err != nil {
		return out, userfile.Faulty(err)
	}
	// A file's name without its ending names its column, as long as that tells files apart, or the name of its folder
	// does.
	short := func(file string) string { return strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)) }
	folder := func(file string) string { return filepath.Base(filepath.Dir(file)) }
	names, folders := make(map[string]int), map[string]bool{".": true}
	for _, s := range out.Services {
		names[short(s.Name)]++
		folders[folder(s.Name)] = true
	}
	for i, s := range out.Services {
		switch {
		case names[short(s.Name)] == 1:
			out.Services[i].Name = short(s.Name)
		case len(folders) == len(out.Services)+1:
			out.Services[i].Name = folder(s.Name)
		}
	}
	return out, nil
}

func readJudgements(file string, rules labels.ModerationRules) (judged labels.Judgements, err error) {
	f, _, err := userfile.Open(file)
	if err != nil {
		return judged, err
	}
	defer f.Close()
	return ReadJudgements(f, file, rules)
}
