package copies

import (
	"bytes"
	"image"
	"image/png"
	"os"
	"slices"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// showsAnother has a post show another picture: it is stored in place of the one that a copy may hold.
func (s *site) showsAnother(id manifest.PostID, side int) {
	s.Helper()
	var b bytes.Buffer
	testkit.OK(s, png.Encode(&b, image.NewGray(image.Rect(0, 0, side, side))),
		s.ws.StoreImage(s.Context(), manifest.Key{ID: id}, b.Bytes(), workspace.Image{Format: "png", Width: side,
			Height: side, OriginalSHA256: digest("another", id), PixelsSHA256: digest("other pixels", id)}))
}

// drops takes the image of a post out of the workspace, as a job does.
func (s *site) drops(id manifest.PostID, reason manifest.Reason) {
	s.Helper()
	testkit.OK(s, s.ws.DropImage(s.Context(), manifest.Key{ID: id},
		workspace.Trouble{Outcome: manifest.Refused, Reason: reason}, true))
}

// deletes has the author of a post delete it.
func (s *site) deletes(id manifest.PostID) {
	s.Helper()
	testkit.OK(s, s.ws.AddTombstones(s.Context(), []workspace.Tombstone{{Tombstone: manifest.Tombstone{ID: id,
		State: manifest.StateDeleted, Time: now}}}), s.ws.Erase(s.Context(), id))
}

// TestCopyOwesAFormerPicture: a copy owes the row in which it holds a picture that must go, whatever the entry shows by
// now, until the row was taken out.
func TestCopyOwesAFormerPicture(t *testing.T) {
	same := func(s *site) { s.showsSame("few002", "few001") }
	for _, tt := range []struct {
		name   string
		before func(*site) // the copy is made, and out of reach
		then   func(*site)
		allow  manifest.PostID
		owes   bool
	}{
		{"dropped as the same, and another came", same, func(s *site) {
			s.deletes("few001")
			s.drops("few002", policy.SameAsRemoved)
			s.showsAnother("few002", 50)
		}, "", true},
		{"another came before the other post was deleted", same, func(s *site) {
			s.showsAnother("few002", 50)
			s.showsAnother("few002", 60)
			s.deletes("few001")
		}, "", true},
		{"taken out of its gallery", func(*site) {}, func(s *site) {
			s.drops("few002", policy.LeftGallery)
			s.showsAnother("few002", 50)
		}, "", true},
		{"the policy allows the same", same, func(s *site) {
			s.showsAnother("few002", 50)
			s.deletes("few001")
		}, "few002", false},
		{"another picture", func(*site) {}, func(s *site) {
			s.showsAnother("few002", 50)
			s.deletes("few001")
		}, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			tt.before(s)
			s.copy("x", "parquet")
			testkit.OK(t, os.Rename(s.dir+"/x", s.dir+"/away"))
			tt.then(s)
			p := policy.Default()
			p.Images.AllowSame = []manifest.PostID{tt.allow}
			testkit.OK(t, state.WriteNote(t.Context(), s.ws, state.PolicyNote{Policy: p}))
			purge := func() state.CopyReport {
				stones, err := state.HoldingTombstones(t.Context(), s.ws)
				testkit.OK(t, err)
				erased, err := state.MustErase(t.Context(), s.ws, stones, p)
				testkit.OK(t, err)
				reports, err := Purge(t.Context(), s.ws, erased, stones, p)
				testkit.OK(t, err)
				return find(t, reports, s.dir+"/x")
			}
			owed := func(r state.CopyReport) bool {
				for _, row := range append(r.Owed, r.Purged...) {
					if row == "few002" {
						return true
					}
				}
				return false
			}
			testkit.Same(t, "listed", tt.owes, owed(s.list("x")))
			testkit.Same(t, "owed by what is out of reach", tt.owes, owed(purge()))
			testkit.OK(t, os.Rename(s.dir+"/away", s.dir+"/x"))
			testkit.Same(t, "taken out", tt.owes, owed(purge()))
			testkit.Same(t, "state", state.CopyGood, s.list("x").State)
			testkit.Same(t, "on record", !tt.owes, s.record("x").Former["few002"].Stripped != "")
			if !tt.owes {
				return
			}
			testkit.Same(t, "again", false, owed(purge()))
			// A copy that is made now holds the other picture.
			for _, row := range s.record("x").Rows {
				testkit.Same(t, "a row that must go", false, row == "few002")
			}
		})
	}
}

// TestCopyOwesARepost: a copy owes the row of an image that was dropped as that of a post that was taken down, only
// while tombstones and policy refuse it.
func TestCopyOwesARepost(t *testing.T) {
	for _, tt := range []struct {
		name   string
		allow  manifest.PostID
		lifted bool
		owes   bool
	}{
		{"refused", "", false, true},
		{"the policy allows it", "few002", false, false},
		{"the other post is back", "", true, false},
	} {
		s := newSite(t)
		s.showsSame("few002", "few001")
		s.copy("x", "parquet")
		s.deletes("few001")
		s.drops("few002", policy.SameAsRemoved)
		if tt.lifted {
			testkit.OK(t, s.ws.LiftTombstones(t.Context(), digest("a statement", ""), "few001"))
		}
		p := policy.Default()
		p.Images.AllowSame = []manifest.PostID{tt.allow}
		stones, err := state.HoldingTombstones(t.Context(), s.ws)
		testkit.OK(t, err)
		erased, err := state.MustErase(t.Context(), s.ws, stones, p)
		testkit.OK(t, err)
		testkit.Same(t, tt.name+": erased", tt.owes, erased.HasRow("few002"))
		reports, err := Purge(t.Context(), s.ws, erased, stones, p)
		testkit.OK(t, err)
		testkit.Same(t, tt.name+": taken out", tt.owes, slices.Contains(find(t, reports, s.dir+"/x").Purged, "few002"))
	}
}

// TestFormerPictureIsBack: the same picture that a copy holds takes the note of it back.
func TestFormerPictureIsBack(t *testing.T) {
	s := newSite(t)
	s.copy("x", "parquet")
	var was workspace.Image
	var body []byte
	for rec, err := range s.ws.Records(t.Context(), workspace.Select{IDs: []manifest.PostID{"few002"}}) {
		testkit.OK(t, err)
		was = *rec.Image
		body, err = s.ws.ReadImage(t.Context(), rec.Key, was)
		testkit.OK(t, err)
	}
	s.drops("few002", policy.LeftGallery)
	s.showsAnother("few002", 50)
	testkit.Same(t, "noted", policy.LeftGallery, s.record("x").Former["few002"].Left)
	testkit.OK(t, s.ws.StoreImage(t.Context(), manifest.Key{ID: "few002"}, body, was))
	testkit.Same(t, "noted", 0, len(s.record("x").Former))
}
