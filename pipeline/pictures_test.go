package pipeline

import (
	"testing"

	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// TestAnyDigestMakesTheSamePicture: any one of the three digests makes two images the same picture.
func TestAnyDigestMakesTheSamePicture(t *testing.T) {
	down := state.RemovedPictures{"file": "aaa", "stripped": "aaa", "pixels": "aaa"}
	for _, tt := range []struct {
		id   manifest.PostID
		img  workspace.Image
		same bool
	}{
		{"bbb", workspace.Image{OriginalSHA256: "file", SHA256: "x", PixelsSHA256: "y"}, true},
		{"bbb", workspace.Image{OriginalSHA256: "x", SHA256: "stripped", PixelsSHA256: "y"}, true},
		{"bbb", workspace.Image{OriginalSHA256: "x", SHA256: "y", PixelsSHA256: "pixels"}, true},
		{"bbb", workspace.Image{OriginalSHA256: "x", SHA256: "y"}, false},
		{"aaa", workspace.Image{SHA256: "stripped"}, false},
		{"free", workspace.Image{SHA256: "stripped"}, false},
	} {
		p := policy.Policy{Images: policy.Images{AllowSame: []manifest.PostID{"free"}}}
		if f := down.Refuses(p, tt.id, tt.img); (f != nil) != tt.same {
			t.Errorf("%s with %+v: %v, want the same %v", tt.id, tt.img, f, tt.same)
		}
	}
}
