package pipeline

import (
	"fmt"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// TestSamePictureTwiceInAGallery: two items of a gallery can show the same picture. It is each entry's own, whenever it
// comes.
func TestSamePictureTwiceInAGallery(t *testing.T) {
	for _, mode := range []string{"flag", "drop"} {
		for _, kind := range []string{"7", "own:7"} {
			start := newWorld(t, append(numbered(3), "g*2")...).do("policy " + mode + "; serve " + kind + " g g/1")
			once := start.copied(t).do("run").ok().checkSound()
			for _, late := range []string{"g", "g/1"} {
				w := start.copied(t).do("serve 503 " + late + "; run; serve " + kind + " " + late + "; run").ok()
				what := mode + ", " + kind + ", " + late + " comes later"
				s := w.checkSound()
				for _, row := range []string{"g", "g/1"} {
					testkit.Same(t, row+", "+what, once.outcome(row), s.outcome(row))
				}
				testkit.Same(t, "files, "+what, once.files, s.files)
			}
		}
	}
}

// TestDigestOfTheReleaseDecidesInAGallery: the image that the release means is the entry's own, whatever others have or
// had, and from whichever item.
func TestDigestOfTheReleaseDecidesInAGallery(t *testing.T) {
	for _, steps := range []string{
		"serve 7 g g/1; names 7 g g/1; serve 503 g/1; run; serve 7 g/1; run",
		"serve 7 g; serve 404 g/1; run; names 6 g; names 7 g/1; serve 7 g/1; run confirm",
		"serve 7 g; serve 503 g/1; run; names 6 g; names 7 g/1; list g 0 0; run confirm",
	} {
		w := newWorld(t, append(numbered(3), "g*2")...).do("policy flag; " + steps).ok()
		got := w.checkSound().outcome("g/1")
		testkit.Same(t, steps, "kept/", strings.Replace(got, "duplicate", "", 1))
	}
}

// TestFormerImageOfItsOwnInAGallery: an image that an entry had comes back to it, also where one beside it shows the
// same picture.
func TestFormerImageOfItsOwnInAGallery(t *testing.T) {
	for _, kind := range []string{"20", "own:20"} {
		for _, mode := range []string{"flag", "drop"} {
			start := newWorld(t, append(numbered(12), "g*2")...).do("policy " + mode + "; serve " + kind + " g g/1; run").ok()
			want := start.checkSound().outcome("g/1")
			w := start.copied(t)
			w.lose("LOSE g/1")
			w.lose("LOSE dataset")
			w.do("run").ok()
			testkit.Same(t, kind+", "+mode+": lost", want, w.checkSound().outcome("g/1"))
			w = start.copied(t).do("image left g/1; recheck; image ok g/1; run retry=gallery_item_deleted").ok()
			testkit.Same(t, kind+", "+mode+": taken out, and back", want, w.checkSound().outcome("g/1"))
		}
	}
}

// TestRefusedImageGetsNoItemOfAnother: what lies in the place of an image that the policy does not take is not that of
// another entry, also where that one was lost.
func TestRefusedImageGetsNoItemOfAnother(t *testing.T) {
	for _, lost := range []bool{false, true} {
		w := newWorld(t, append(numbered(12), "g*2")...).do("run").ok()
		if lost {
			w.lose("LOSE g/1")
			w.lose("LOSE dataset")
		}
		w.policy.Images.Placeholders = append(w.policy.Images.Placeholders,
			policy.Placeholder{Name: "any", SHA256: state.SHA256(drawn("12")), Outcome: "placeholder"})
		w.do("list g 1; run confirm; run").ok()
		s := w.checkSound()
		testkit.Same(t, "g", "placeholder/known_placeholder", s.outcome("g"))
		testkit.Same(t, "g has its image", state.SHA256(drawn("12")), s.records["g"].Image.OriginalSHA256)
	}
}

// TestItemOfAnotherIsNotNotedAsItsOwn: where the item of another entry has its place, and shows the same picture, an
// entry is still that of its own item: a mark counts for that one.
func TestItemOfAnotherIsNotNotedAsItsOwn(t *testing.T) {
	w := newWorld(t, append(numbered(12), "g*2")...).do("policy flag; serve 7 g g/1; run; list g 1; run; list g").ok()
	own := w.copied(t).do("image left g; recheck").ok().checkSound()
	testkit.Same(t, "its own is marked", "gone/gallery_item_deleted", own.outcome("g"))
	testkit.Same(t, "and the other one stays", true, own.imageOf("g/1"))
	other := w.do("image left g/1; recheck").ok().checkSound()
	testkit.Same(t, "the other one is marked", "gone/gallery_item_deleted", other.outcome("g/1"))
	testkit.Same(t, "and its own stays", true, other.imageOf("g"))
}

// TestBytesTellWhereNoItemIsKnown: where it is not known from which item the image beside came, as of a log of an
// earlier version, the bytes tell whose it is.
func TestBytesTellWhereNoItemIsKnown(t *testing.T) {
	at := func(media string) reddit.Candidate {
		return reddit.Candidate{URL: "https://i.redd.it/" + media + ".png", Host: "i.redd.it", Media: media}
	}
	key := func(i int) manifest.Key { return manifest.Key{ID: "g", Image: i} }
	img := workspace.Image{OriginalSHA256: "a", SHA256: "b", PixelsSHA256: "c"}
	item := func(i int, digests, media string) workspace.ItemImage {
		d := workspace.Digests{File: digests[:1], Stripped: digests[1:2], Pixels: digests[2:]}
		if media == "" {
			return workspace.ItemImage{Key: key(i), Digests: d}
		}
		return workspace.ItemImage{Key: key(i), Digests: d, Source: at(media).Source()}
	}
	for _, c := range []struct {
		name    string
		named   string
		gallery []workspace.ItemImage
		want    string
	}{
		{"nothing is known", "", nil, ""},
		{"the same file of no known item", "", []workspace.ItemImage{item(1, "abc", "")}, "g/1"},
		{"the same picture of no known item", "", []workspace.ItemImage{item(1, "xyc", "")}, "g/1"},
		{"another picture of no known item", "", []workspace.ItemImage{item(1, "xyz", "")}, ""},
		{"the same file of another item", "", []workspace.ItemImage{item(1, "abc", "other")}, ""},
		{"other bytes of the same item", "", []workspace.ItemImage{item(1, "xyz", "media")}, "g/1"},
		{"one of two that it had", "", []workspace.ItemImage{item(1, "abc", "other"), item(1, "xyz", "media")}, "g/1"},
		{"its own before", "", []workspace.ItemImage{item(0, "xyc", ""), item(1, "abc", "")}, ""},
		{"its own behind", "", []workspace.ItemImage{item(1, "abc", ""), item(2, "abc", ""), item(0, "abx", "other")}, ""},
		{"its own item", "", []workspace.ItemImage{item(1, "abc", ""), item(0, "xyz", "media")}, ""},
		{"named", "a", []workspace.ItemImage{item(1, "abc", "media")}, ""},
		{"another one is named", "f", []workspace.ItemImage{item(1, "abc", "media")}, "g/1"},
	} {
		j := fetchJob{entry: manifest.Entry{Key: key(0), SHA256: c.named}, candidate: at("media"), gallery: c.gallery}
		got := ""
		if of, ok := j.ofAnother(img); ok {
			got = of.String()
		}
		testkit.Same(t, c.name, c.want, got)
	}
}

// TestShiftedGalleryOfABackup: state.db and log of before images of a gallery came say nothing of their items. Where
// Reddit has dropped an item since, the bytes that come in other places tell them, before one of them is marked.
func TestShiftedGalleryOfABackup(t *testing.T) {
	backup := newWorld(t, append(numbered(20), "g*4")...).do("without g/1 g/2 g/3; run").ok()
	ran := backup.copied(t).do("without; run").ok()
	for _, c := range []struct{ list, marked string }{
		{"1 2 3", "g/1"}, {"1 2 3", "g/2"}, {"1 2 3", "g/3"}, {"0 2 3", "g/2"}, {"1 3 2", "g/3"}, {"3 2 1 0", "g/1"},
	} {
		for _, then := range []string{"recheck", "run", "run; recheck"} {
			w := ran.copied(t)
			w.putBack(backup, "state.db", "audit")
			s := w.do("list g " + c.list + "; run; image left " + c.marked + "; " + then).ok().checkSound()
			var gone []string
			for _, row := range []string{"g", "g/1", "g/2", "g/3"} {
				if s.records[row].Image == nil {
					gone = append(gone, row)
				}
			}
			testkit.Same(t, fmt.Sprint(c, " ", then), []string{c.marked}, gone)
		}
	}
}

// TestStandInGetsNoOtherItem: another item of the gallery takes no place of a stand-in, wherever Reddit lists it.
func TestStandInGetsNoOtherItem(t *testing.T) {
	for _, c := range []struct{ list, want string }{
		{"0 1 2", "kept/"}, {"1 2", "placeholder/suspected_placeholder"}, {"2 0 1", "placeholder/suspected_placeholder"},
	} {
		for _, retry := range []string{"run", "run retry=placeholder"} {
			w := newWorld(t, append(numbered(20), "g*3")...).do("without g/1 g/2; serve small:70 g p00 p01 p02 p03; run").ok()
			s := w.do("serve 20 g; serve 0 p00; serve 1 p01; serve 2 p02; serve 3 p03; list g " + c.list + "; " + retry +
				"; run retry=placeholder").ok().inspect()
			testkit.Same(t, c.list+"; "+retry, c.want, s.outcome("g"))
		}
	}
}

// TestMarkOfAnEntryThatLeft: what was taken out of a gallery, and was that of an entry which the manifest dropped, is not
// that of another entry in whose place it lies for now.
func TestMarkOfAnEntryThatLeft(t *testing.T) {
	w := newWorld(t, append(numbered(12), "g*3")...).do("without g/1; run").ok()
	w.do("without g/2; list g 0 2; image left g/2; run confirm").ok()
	testkit.Same(t, "while it lies there", "changed/another_image", w.inspect().outcome("g/1"))
	w.do("image ok g/2; list g; run; run").ok()
	testkit.Same(t, "in the end", "kept/", w.checkSound().outcome("g/1"))
}
