package models

import "testing"

// TestPictureUnused: a service can say that no category looked at the picture.
func TestPictureUnused(t *testing.T) {
	for answer, want := range map[string]bool{
		`{"results":[{"flagged":false,"category_applied_input_types":{"self-harm":["text"],"hate":[]}}]}`:               true,
		`{"results":[{"flagged":false,"category_applied_input_types":{"self-harm":["text","image"],"hate":["text"]}}]}`: false,
		`{"results":[{"flagged":false}]}`: false,
		`safe`:                            false,
	} {
		if pictureUnused(answer) != want {
			t.Errorf("%s: %t", answer, !want)
		}
	}
}
