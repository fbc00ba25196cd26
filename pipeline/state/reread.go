package state

import (
	"context"

	"rehydrate/manifest"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A Reread is what a re-reading changed, against the readings and outcomes before it began.
type Reread struct {
	Read    int `json:"read"`    // images that were read again since it began
	Changed int `json:"changed"` // those with a different text now
	Gained  int `json:"words_gained"`
	Lost    int `json:"words_lost"`
	// Every changed text and every entry with a different outcome now, in manifest order.
	Texts    []TextChange    `json:"texts"`
	Outcomes []OutcomeChange `json:"outcomes"`
	Summary  Summary         `json:"summary"`
}

// A TextChange says which words of a row's text came and went. Words that only moved are neither.
type TextChange struct {
	ID     string   `json:"id"`
	Gained []string `json:"gained"`
	Lost   []string `json:"lost"`
}

// An OutcomeChange is an entry whose outcome or reason changed.
type OutcomeChange struct {
	ID  string     `json:"id"`
	Old Conclusion `json:"old"` // without detail
	New Conclusion `json:"new"`
}

// CompareReadings makes the report of a re-reading, but for its summary, from what is stored.
func CompareReadings(ctx context.Context, ws *workspace.Workspace, p policy.Policy) (Reread, error) {
	report := Reread{Texts: []TextChange{}, Outcomes: []OutcomeChange{}}
	hidden, err := MustHideNow(ctx, ws)
	if err != nil {
		return Reread{}, err
	}
	for rec, err := range ws.Records(ctx, workspace.Select{WithEarlier: true}) {
		if err != nil {
			return Reread{}, err
		}
		if rec.Earlier.Read && rec.Reading != nil {
			report.Read++
			old := rec.Earlier.Text
			// An old text can be from a time when names were not masked yet.
			if p.Text.MaskNames {
				old = MaskText(old)
			}
			// A run in between can have found the post gone or held: its words are not shown then.
			shown := rec.Post.State == manifest.StateLive && !hidden.HasRow(rec.Key.String())
			if shown && old != rec.Reading.Text {
				change := TextChange{ID: rec.Key.String()}
				change.Gained, change.Lost = DiffWords(old, rec.Reading.Text)
				report.Changed++
				report.Gained += len(change.Gained)
				report.Lost += len(change.Lost)
				report.Texts = append(report.Texts, change)
			}
		}
		was := rec.Earlier
		if now := rec.Result; now != nil && was.Outcome != "" && (now.Outcome != was.Outcome || now.Reason != was.Reason) {
			report.Outcomes = append(report.Outcomes, OutcomeChange{ID: rec.Key.String(),
				Old: Conclusion{Outcome: was.Outcome, Reason: was.Reason}, New: NewConclusion(*now)})
		}
	}
	return report, nil
}
