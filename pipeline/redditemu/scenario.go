package redditemu

import (
	"cmp"
	"crypto/sha256"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"rehydrate/manifest"
)

// Scenario makes a post for every id, a realistic mixture, with what a correct run makes of each under the default
// policy. A post depends on seed, its place in ids and its id alone, so a shorter list gives the same beginning.
// English captions are distinct up to Captions() places.
func Scenario(ids []manifest.PostID, seed uint64) []Post {
	posts := make([]Post, len(ids))
	rest := restOf()
	next := int(Hash64(fmt.Sprint(seed), "rest") % uint64(len(rest)))
	for place, id := range ids {
		b := casting{seed: seed, place: place, rng: rand.New(rand.NewPCG(seed, uint64(place)))}
		var p Post
		n := Hash64(fmt.Sprint(seed), "class", fmt.Sprint(place)) % 100
		switch {
		case n < 80:
			p = b.live()
		case n < 83:
			p = post(manifest.Kept, Spec{Seed: b.rng.Uint64(), Style: StyleBare})
		case n < 86:
			p = post(manifest.NotEnglish, Spec{Seed: b.rng.Uint64(), Language: languages[b.rng.IntN(len(languages))]})
		case n < 89:
			p = b.copy(posts[:place])
		default: // everything else, in turn
			p = rest[next%len(rest)]
			next++
			b.dress(&p)
		}
		p.ID = id
		posts[place] = p.normalized()
	}
	return posts
}

// Rehearsal is a Scenario in which a post that has images has as many as the release names of it, in a gallery.
func Rehearsal(ids []manifest.PostID, images map[manifest.PostID]int, seed uint64) []Post {
	posts := Scenario(ids, seed)
	// The captions go on where those of the posts end.
	b := casting{seed: seed, place: len(ids), rng: rand.New(rand.NewPCG(seed, uint64(len(ids))))}
	for i := range posts {
		p := &posts[i]
		if len(p.Images) == 0 || p.Images[0].Serve != "" || p.Images[0].Status != "" || p.Set != nil {
			continue // what ails it is the post's own
		}
		for len(p.Images) < images[p.ID] {
			p.Kind, p.Parent = KindGallery, nil
			p.Images = append(p.Images, Image{Spec: b.spec()})
			b.place++
		}
	}
	return posts
}

// A casting makes the post of one place.
type casting struct {
	seed  uint64
	place int
	rng   *rand.Rand
}

// post is a live post of one image.
func post(o manifest.Outcome, s Spec) Post {
	return Post{Images: []Image{{Spec: s}}, WantOutcome: o}
}

// spec is the drawing of this place: a caption that no other place has.
func (b casting) spec() Spec {
	first := Hash64(fmt.Sprint(b.seed), "caption") % uint64(Captions())
	s := Spec{
		Seed: b.rng.Uint64(), Caption: Caption(int(first) + b.place), Quality: 70 + b.rng.IntN(24),
		Style: []Style{StyleOutline, StyleOutline, StyleOutline, StylePanel, StyleScreenshot}[b.rng.IntN(5)],
	}
	n := b.rng.IntN(100)
	switch {
	case n < 8:
		s.Format = "png"
	case n < 9:
		s.Format = "gif"
	case n < 11:
		s.Format = "webp" // under .jpg
	}
	return s
}

// live is a meme in English. Of a hundred places four share one photograph, with
// different captions.
func (b casting) live() Post {
	s := b.spec()
	if b.place%25 == 7 {
		s.Style, s.Template = StyleOutline, Hash64(fmt.Sprint(b.seed), "template", fmt.Sprint(b.place/100))
	}
	p := post(manifest.Kept, s)
	n := b.rng.IntN(100)
	switch {
	case n < 4:
		p.Kind = KindGallery
		p.Images[0].TitleSlug = n < 2
		p.Images = append(p.Images, Image{Spec: Spec{Seed: s.Seed + 1, Style: StyleBare}})
	case n < 6:
		p.Kind = KindCrosspost
	case n < 8:
		p.Over18 = true
	}
	return p
}

// copy recompresses the image of one of the 40 posts before. Without a plain meme among them it is a meme itself.
func (b casting) copy(earlier []Post) Post {
	earlier = earlier[max(0, len(earlier)-40):]
	earlier = slices.DeleteFunc(slices.Clone(earlier), func(p Post) bool { return !p.plain() })
	if len(earlier) == 0 {
		return b.live()
	}
	return copyOf(earlier[b.rng.IntN(len(earlier))], 45+b.rng.IntN(30), 0.75+0.25*b.rng.Float64())
}

func copyOf(p Post, quality int, scale float64) Post {
	copy := post(manifest.Duplicate, Spec{CopyOf: &p.Images[0].Spec, Quality: quality, Scale: scale})
	copy.CopyOf = p.ID
	return copy
}

// plain reports whether the post is a meme that a copy can be made of.
func (p Post) plain() bool {
	if cmp.Or(p.Kind, KindImage) != KindImage || cmp.Or(p.Condition, Live) != Live || len(p.Images) != 1 {
		return false
	}
	// A copy of one meme on a shared photograph could as well be one of another.
	s := p.Images[0].Spec
	return p.WantOutcome == manifest.Kept && s.Caption != "" && s.Template == 0
}

// dress gives a post of the rest a meme to have, so that what a client must not ask
// for is there to be asked for.
func (b casting) dress(p *Post) {
	var img Image
	if len(p.Images) > 0 {
		img = p.Images[0]
	}
	img.Spec = b.spec()
	img.Spec.Format = ""
	switch p.Kind {
	case "", KindImage, KindImgur:
		p.Images = []Image{img}
	case KindGallery:
		p.Images = []Image{img, {Spec: Spec{Seed: img.Spec.Seed + 1, Style: StyleBare}}}
	}
}

// restOf lists what else can become of a post: every removal, deletion and absence,
// every way to have no image, every ill answer of an image host.
func restOf() []Post {
	var all []Post
	add := func(o manifest.Outcome, by []string, conditions ...Condition) {
		for _, c := range conditions {
			for _, by := range by {
				all = append(all, Post{Condition: c, RemovedBy: by, WantOutcome: o})
			}
		}
	}
	usual := []string{""}
	add(manifest.Removed, []string{"moderator", "automod_filtered", "reddit", "content_takedown", "copyright_takedown",
		"trademark_takedown", "legal_operations", "some_new_category"}, Removed)
	add(manifest.Removed, []string{"anti_evil_ops", "community_ops"}, RemovedAdmin)
	add(manifest.Removed, usual, RemovedModView, RemovedTitle, RemovedSelftext, RemovedLegal)
	add(manifest.Deleted, []string{"deleted", "author"}, Deleted)
	add(manifest.Deleted, usual, DeletedNoCategory, DeletedOld)
	add(manifest.Unavailable, usual, Absent, AbsentBanned, AbsentPrivate, AbsentQuarantined, AbsentGated)
	add(manifest.Refused, usual, Quarantined)
	add(manifest.Kept, usual, LiveNotIndexable, LiveAccountDeleted)
	all = append(all,
		Post{Kind: KindSelf, WantOutcome: manifest.NoMedia},
		Post{Kind: KindVideo, WantOutcome: manifest.NoMedia},
		Post{Kind: KindLink, Link: "https://pictures.example/weather.jpg", WantOutcome: manifest.Refused},
		Post{Kind: KindGallery, Images: []Image{{Status: "failed"}}}, // NoMedia or Gone: the client's to say
		Post{Kind: KindGallery, Images: []Image{{}}, Set: map[string]any{"gallery_data": nil, "media_metadata": nil},
			WantOutcome: manifest.NoMedia},
		Post{Kind: KindImgur, WantOutcome: manifest.Kept},
		Post{Kind: KindImgur, Images: []Image{{Serve: ServeImgurChain}}, WantOutcome: manifest.Placeholder},
	)
	for _, s := range []Serve{ServeNotFound, ServeForbidden, ServePlaceholder} {
		all = append(all, Post{Images: []Image{{Serve: s}}, WantOutcome: manifest.Gone})
	}
	for _, s := range []Serve{ServeHTML, ServeEmpty, ServeCut, ServeGarbage} {
		all = append(all, Post{Images: []Image{{Serve: s}}, WantOutcome: manifest.Invalid})
	}
	return all
}

// Demo makes a small release and the posts it names: about 60 entries in FigSIM's columns, over three splits, in which
// every outcome occurs that a finished run can end in. Labels are random; the column sha256 is empty but for an entry
// whose image has changed since and one whose image has not.
func Demo(seed uint64) (annotations []byte, posts []Post) {
	posts = demoCast(Hash64(fmt.Sprint(seed), "template"))
	rng := rand.New(rand.NewPCG(seed, 0x64656d6f))
	rng.Shuffle(len(posts), func(i, j int) { posts[i], posts[j] = posts[j], posts[i] })
	for i := range posts {
		p := &posts[i]
		p.ID = manifest.PostID(fmt.Sprintf("1%s", base36(Hash64(fmt.Sprint(seed), "demo", fmt.Sprint(i)), 5)))
		b := casting{seed: seed, place: i, rng: rand.New(rand.NewPCG(seed, uint64(i)))}
		// What is drawn in a way of its own is dressed already, and a copy gets its image below.
		if p.Images == nil || len(p.Images) > 0 && p.Images[0].Spec == (Spec{}) {
			b.dress(p)
		}
	}
	placeCopies(posts)
	for i, p := range posts {
		posts[i] = p.normalized()
	}
	return demoAnnotations(posts, rng), posts
}

// demoCast lists the posts: the plain memes first, then one or more for every outcome.
func demoCast(template uint64) []Post {
	cast := slices.Repeat([]Post{{WantOutcome: manifest.Kept}}, 19)
	meme := func(s Spec, o manifest.Outcome) { cast = append(cast, post(o, s)) }
	for i := range 4 { // on one photograph
		meme(Spec{Seed: uint64(500 + i), Style: StyleOutline, Template: template, Caption: Caption(2000 + i)},
			manifest.Kept)
	}
	for i := range 3 {
		meme(Spec{Seed: uint64(100 + i), Style: StyleBare}, manifest.Kept)
	}
	for i, language := range []string{"es", "de", "fr"} {
		meme(Spec{Seed: uint64(200 + i), Style: StylePanel, Language: language}, manifest.NotEnglish)
	}
	for i := range 2 {
		meme(Spec{Seed: uint64(300 + i), Style: StylePanel, Language: "salad"}, manifest.Unreadable)
	}
	for i, format := range []string{"png", "gif", "webp"} {
		meme(Spec{Seed: uint64(400 + i), Format: format, Caption: Caption(1000 + i)}, manifest.Kept)
	}
	for range 3 {
		cast = append(cast, Post{Images: []Image{}, WantOutcome: manifest.Duplicate})
	}
	cast = append(cast,
		Post{WantOutcome: manifest.Changed},
		Post{WantOutcome: manifest.Kept},
		Post{Images: []Image{{Serve: ServeUnavailable}}, WantOutcome: manifest.Failed},
		Post{Kind: KindCrosspost, WantOutcome: manifest.Kept})
	// Of the rest, three of each sort are enough for people; the tests see them all.
	seen := map[manifest.Outcome]int{}
	for _, p := range restOf() {
		seen[p.WantOutcome]++
		if p.WantOutcome != "" && seen[p.WantOutcome] <= 3 {
			cast = append(cast, p)
		}
	}
	return cast
}

// placeCopies gives each copy the image of a plain meme that stands before it.
func placeCopies(cast []Post) {
	next := 0
	for i := range cast {
		if cast[i].WantOutcome != manifest.Duplicate || cast[i].CopyOf != "" {
			continue
		}
		for !cast[next].plain() {
			next++ // there are more plain memes than copies
		}
		original, copy := next, i
		if original > copy { // the first of two is the one that is kept
			cast[original], cast[copy] = cast[copy], cast[original]
			original, copy = copy, original
		}
		next++
		id := cast[copy].ID
		cast[copy] = copyOf(cast[original], 55, 0.85)
		cast[copy].ID = id
	}
}

// demoAnnotations writes the manifest: every label equally likely, a label that
// excludes the others alone.
func demoAnnotations(posts []Post, rng *rand.Rand) []byte {
	schema := manifest.FigSIM()
	var b strings.Builder
	w := csv.NewWriter(&b)
	header := []string{"id", "split"}
	for _, c := range schema.Categories {
		header = append(header, c.Name)
	}
	records := [][]string{append(header, "sha256")}
	unchanged := slices.IndexFunc(posts, Post.plain)
	for i, p := range posts {
		record := []string{string(p.ID), []string{"train", "train", "train", "validation", "test"}[i%5]}
		for _, c := range schema.Categories {
			record = append(record, randomLabels(c, rng))
		}
		sum := ""
		if i == unchanged {
			d, _ := Draw(p.Images[0].Spec) // a plain meme can be drawn
			sum = fmt.Sprintf("%x", sha256.Sum256(d.Body))
		} else if p.WantOutcome == manifest.Changed {
			sum = strings.Repeat("0123456789abcdef", 4)
		}
		records = append(records, append(record, sum))
	}
	_ = w.WriteAll(records) // a strings.Builder takes everything
	return []byte(b.String())
}

func randomLabels(c manifest.Category, rng *rand.Rand) string {
	first := rng.IntN(len(c.Labels))
	code, rest := c.Labels[first].Code, c.Labels[first+1:]
	if c.Kind == manifest.Multi && !c.Labels[first].Exclusive && rng.IntN(4) == 0 {
		if i := slices.IndexFunc(rest, func(l manifest.Label) bool { return !l.Exclusive }); i >= 0 {
			code += "|" + rest[i].Code
		}
	}
	return code
}
