package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rehydrate/manifest"
	"rehydrate/pipeline/workspace"
)

// An UnknownRetry says that a word of Config.Retry is neither an outcome nor a reason with which
// a download ended: most likely it is misspelt.
type UnknownRetry struct {
	Word  string
	Known []string // the reasons that entries of the workspace have now
}

func (e *UnknownRetry) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("there is nothing to retry for %q: no download has failed in this workspace", e.Word)
	}
	return fmt.Sprintf("there is nothing to retry for %q: no download ended so; reasons here are %s", e.Word, strings.Join(e.Known, ", "))
}

// checkRetry refuses a word of Config.Retry that would do nothing because it is misspelt. Outcomes
// are a closed list, and each is taken even where no entry has it; reasons are not, so that one
// counts only where some entry has it.
func checkRetry(ctx context.Context, ws *workspace.Workspace, words []string) error {
	outcomes := manifest.Outcomes()
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return slices.Contains(outcomes, manifest.Outcome(w)) })
	if len(words) == 0 {
		return nil
	}
	reasons := map[string]bool{}
	for rec, err := range ws.Records(ctx, workspace.Select{}) {
		if err != nil {
			return err
		}
		if rec.Trouble != nil && rec.Trouble.Reason != "" {
			reasons[string(rec.Trouble.Reason)] = true
		}
	}
	for _, w := range words {
		if !reasons[w] {
			return &UnknownRetry{Word: w, Known: slices.Sorted(maps.Keys(reasons))}
		}
	}
	return nil
}
