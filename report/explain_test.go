package report

import (
	"strings"
	"testing"
	"time"

	"rehydrate/internal/word"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// TestExplainHides: of a post that is not live, or has a tombstone that holds, no word is told, and no
// name of a reading that was made before the policy masked names.
func TestExplainHides(t *testing.T) {
	masking, open := policy.Default(), policy.Default()
	open.Text.MaskNames = false
	gone := state.GoneSet{Posts: map[manifest.PostID]state.GonePost{"few000": {}}}
	image := state.GoneSet{Entries: map[string]state.GonePost{"few000": {}}}
	tests := []struct {
		name   string
		post   workspace.Post
		judge  state.Judge
		gone   state.GoneSet
		text   string // "" = hidden
		masked int
	}{
		{"live", workspace.Post{State: manifest.StateLive}, state.Judge{Policy: open}, state.GoneSet{}, "ask u/somebody", 0},
		{"live, masked since", workspace.Post{State: manifest.StateLive}, state.Judge{Policy: masking}, state.GoneSet{},
			"ask [user]", 1},
		{"live, absent once", workspace.Post{State: manifest.StateLive, AbsentAt: time.Unix(1, 0)},
			state.Judge{Policy: open}, state.GoneSet{}, "ask u/somebody", 0},
		{"withheld", workspace.Post{State: manifest.StateRemoved, Withheld: true}, state.Judge{Policy: open},
			state.GoneSet{}, "", 0},
		{"held", workspace.Post{State: manifest.StateHeld}, state.Judge{Policy: open}, state.GoneSet{}, "", 0},
		{"came back under a tombstone", workspace.Post{State: manifest.StateLive},
			state.Judge{Policy: open}, gone, "", 0},
		{"live, its image gone", workspace.Post{State: manifest.StateLive}, state.Judge{Policy: open}, image, "", 0},
	}
	for _, tt := range tests {
		stored := &workspace.Reading{Fingerprint: "older", Text: "ask u/somebody", Confidence: 80,
			Words: []word.Word{{Text: "ask", Confidence: 80, Accepted: true},
				{Text: "u/somebody", Confidence: 80, Accepted: true}}}
		x := Explanation{rec: &workspace.Record{Entry: manifest.Entry{Key: manifest.Key{ID: "few000"}}, Post: tt.post,
			Reading: stored}, gone: tt.gone}
		x.tellReading(tt.judge)
		words := []string{}
		for _, w := range x.Reading.Words {
			words = append(words, w.Text)
		}
		if got := x.Reading; got.Text != tt.text || strings.Join(words, " ") != tt.text ||
			got.Hidden != (tt.text == "") || got.Masked != tt.masked {
			t.Errorf("%s: %+v", tt.name, got)
		}
		if stored.Words[1].Text != "u/somebody" {
			t.Errorf("%s: telling changed what is stored", tt.name)
		}
	}
}
