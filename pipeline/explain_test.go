package pipeline

import (
	"strings"
	"testing"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/ocr"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// TestExplainHides: of a post that is not live, or has a tombstone that holds, no word is told, and no
// name of a reading that was made before the policy masked names.
func TestExplainHides(t *testing.T) {
	masking, open := policy.Default(), policy.Default()
	open.Text.MaskNames = false
	buried := map[manifest.PostID]workspace.Tombstone{"few000": {}}
	tests := []struct {
		name   string
		post   workspace.Post
		judge  judge
		text   string // "" = hidden
		masked int
	}{
		{"live", workspace.Post{State: manifest.StateLive}, judge{policy: open}, "ask u/somebody", 0},
		{"live, masked since", workspace.Post{State: manifest.StateLive}, judge{policy: masking}, "ask [user]", 1},
		{"live, absent once", workspace.Post{State: manifest.StateLive, AbsentAt: time.Unix(1, 0)}, judge{policy: open}, "ask u/somebody", 0},
		{"withheld", workspace.Post{State: manifest.StateRemoved, Withheld: true}, judge{policy: open}, "", 0},
		{"held", workspace.Post{State: manifest.StateHeld}, judge{policy: open}, "", 0},
		{"came back under a tombstone", workspace.Post{State: manifest.StateLive}, judge{policy: open, tombstones: buried}, "", 0},
	}
	for _, tt := range tests {
		stored := &workspace.Reading{Fingerprint: "older", Text: "ask u/somebody", Confidence: 80,
			Words: []workspace.Word{{Text: "ask", Confidence: 80, Accepted: true}, {Text: "u/somebody", Confidence: 80, Accepted: true}}}
		x := Explanation{rec: &workspace.Record{Entry: manifest.Entry{Key: manifest.Key{ID: "few000"}}, Post: tt.post, Reading: stored}}
		x.tellReading(tt.judge)
		words := []string{}
		for _, w := range x.Reading.Words {
			words = append(words, w.Text)
		}
		if got := x.Reading; got.Text != tt.text || strings.Join(words, " ") != tt.text || got.Hidden != (tt.text == "") || got.Masked != tt.masked {
			t.Errorf("%s: %+v", tt.name, got)
		}
		if stored.Words[1].Text != "u/somebody" {
			t.Errorf("%s: telling changed what is stored", tt.name)
		}
	}
}

// TestShownReading leaves alone what is masked by the present rules.
func TestShownReading(t *testing.T) {
	p := policy.Default()
	r := workspace.Reading{Fingerprint: readingFingerprint(ocr.Engine{}, p), Text: "ask u/somebody"}
	if got := shownReading(r, p).Text; got != r.Text {
		t.Errorf("a reading of the present rules is shown as %q", got)
	}
	r.Fingerprint = ocr.Engine{}.Fingerprint()
	for _, masked := range []int{0, 1} { // 1: by older rules, and its words are not at hand
		r.Masked, r.Confidence = masked, 80
		if got := shownReading(r, p); got.Text != "ask [user]" || got.Confidence != 80 {
			t.Errorf("a reading of other rules is shown as %q, %v", got.Text, got.Confidence)
		}
	}
}
