package audit

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	"rehydrate/manifest"
)

// A table says which image of a post a row is about by the place of the image in its gallery, as a manifest does. In a
// flat row id and place stand beside each other. JSON, and the nested columns of Parquet and Arrow, have objects and
// lists: this says which of their places belong to which ids. In doubt an id names all images that it may mean: none
// that must be gone is overlooked.

// An element says from which list in its row or object a value comes, 0 for none, and as which of its elements. Of an
// object whose keys count, nth is the key, and of the number of keys below 0.
type element struct{ list, nth, of int32 }

type (
	// An apartID is an id that has no place yet: a hit of a column.
	apartID struct {
		column *column
		hit    int32
		key    bool // of an object, whose value is about it
		element
	}
	// An apartPlace is the place of an image that has no id yet.
	apartPlace struct {
		image   int32
		bare    bool // it was an element itself, and of no object
		taken   bool // only keys can still have it
		foreign bool // its object has the id of a post that is not known
		element
	}
)

// mostImages is how many images Reddit allows in a gallery: a longer list of numbers beside an id is a picture.
const mostImages = 20

// wantsPlace reports whether a hit names a post, whose images something else tells apart.
func (c *column) wantsPlace(h hit) bool { return h.image == 0 && (c.ids || h.clear && !h.named) }

// match gives ids the places that belong to them. Two lists of the same length belong together element by element, and
// of one list only what is of the same element does.
func (w walker) match(ids []apartID, places []apartPlace) error {
	var runs []placesOfList
	for len(places) > 0 {
		n := 1
		for n < len(places) && places[n].list == places[0].list {
			n++
		}
		byKey := func(p, q apartPlace) int { return cmp.Compare(p.nth, q.nth) }
		if !slices.IsSortedFunc(places[:n], byKey) { // of an object whose keys are in no order
			slices.SortStableFunc(places[:n], byKey)
		}
		runs = append(runs, placesOfList{places: places[:n]})
		places = places[n:]
	}
	for _, id := range ids {
		var own []int32
		doubt := false // whether it is about the first image all the same
		for i := range runs {
			r := &runs[i]
			list := r.places[0].element
			switch {
			case list.list > 0 && id.list > 0 && (list.list == id.list || list.of == id.of):
				own = append(own, r.at(id)...)
			case r.places[0].bare && max(list.of, -list.of) > mostImages:
			default:
				all := r.all(id)
				own = append(own, all...)
				several := id.list > 0 && (id.of > 1 || id.of < -1 || list.list == 0)
				doubt = doubt || len(all) > 0 && (r.foreign || several)
			}
			if err := w.charge(valueCost * int64(1+len(own))); err != nil {
				return err
			}
		}
		if doubt {
			own = append(own, 0)
		}
		if err := id.column.placeHit(w, int(id.hit), distinct(own)); err != nil {
			return err
		}
	}
	return nil
}

// placesOfList are places that came from one list, in its order, or from none.
type placesOfList struct {
	places   []apartPlace
	distinct []int32 // all, once they were asked for
	untaken  []int32
	foreign  bool // some are
}

// at are the places of the element from which an id comes.
func (r *placesOfList) at(id apartID) (own []int32) {
	n, _ := slices.BinarySearchFunc(r.places, id.nth, func(p apartPlace, nth int32) int { return cmp.Compare(p.nth, nth) })
	for ; n < len(r.places) && r.places[n].nth == id.nth; n++ {
		if id.key || !r.places[n].taken {
			own = append(own, r.places[n].image)
		}
	}
	return own
}

// all are all places that an id can have.
func (r *placesOfList) all(id apartID) []int32 {
	if r.distinct == nil {
		for _, p := range r.places {
			r.distinct = append(r.distinct, p.image)
			r.foreign = r.foreign || p.foreign
			if !p.taken {
				r.untaken = append(r.untaken, p.image)
			}
		}
		r.distinct, r.untaken = distinct(r.distinct), distinct(r.untaken)
	}
	if id.key {
		return r.distinct
	}
	return r.untaken
}

func distinct(places []int32) []int32 {
	slices.Sort(places)
	return slices.Compact(places)
}

// placeHit has a hit name the images at these different places.
func (c *column) placeHit(w walker, at int, places []int32) error {
	if len(places) == 0 || !c.wantsPlace(c.hits[at]) {
		return nil
	}
	c.hits[at].image = places[0]
	for _, place := range places[1:] {
		if err := w.charge(hitCost); err != nil {
			return err
		}
		h := c.hits[at]
		h.image = place
		c.also = append(c.also, h)
	}
	return nil
}

// placeImages gives the ids of a table the places in their rows. JSON has given them when its objects ended.
func (t *table) placeImages(w walker) error {
	at := slices.IndexFunc(t.order, func(c *column) bool { return len(c.places) > 0 })
	if at < 0 {
		return nil
	}
	for _, c := range t.order {
		all := t.order[at].places
		for i := 0; i < len(c.hits); {
			row := c.hits[i].row
			var ids []apartID
			for ; i < len(c.hits) && c.hits[i].row == row; i++ {
				ids = append(ids, apartID{column: c, hit: int32(i), element: c.hits[i].in})
			}
			var places []apartPlace
			for len(all) > 0 && all[0].row <= row {
				if all[0].row == row {
					places = append(places, all[0].apartPlace)
				}
				all = all[1:]
			}
			if err := w.match(ids, places); err != nil {
				return err
			}
		}
	}
	return nil
}

// A namedImage is a later image of a post, by the name of a file in a column.
type namedImage struct {
	column *column
	image  int32
}

// postOfRow is a post in a row.
type postOfRow struct {
	row  int64
	post *evidence
}

// noteUnclear notes a name in a table whose number does not say which image of a post it means: nor does then the id of
// the post beside it.
func (w walker) noteUnclear(p place, id manifest.PostID) {
	w.openUnclear(p)
	if w.charge(valueCost) == nil {
		p.table.unclear = append(p.table.unclear, postOfRow{p.row, w.posts[id]})
	}
}

// unclearRows are those of the table with such a name, and the records around them.
func (t *table) unclearRows() map[postOfRow]bool {
	rows := map[postOfRow]bool{}
	for _, u := range t.unclear {
		for ; u.row >= 0 && !rows[u]; u.row, _ = t.around(u.row) {
			rows[u] = true
		}
	}
	return rows
}

// nameImages has an id without a place stand for the images of its post that its row, or a record in it, names in other
// columns. Where they name the first one, or the table says by places which image a row is of, it stands for that.
func (t *table) nameImages(w walker) error {
	if slices.ContainsFunc(t.order, func(c *column) bool { return c.place && c.whole > 0 }) {
		return nil
	}
	named := map[postOfRow][]namedImage{}
	err := t.eachNamed(w, func(c *column, of postOfRow, image int32) error {
		if image == 0 {
			return nil
		}
		named[of] = append(named[of], namedImage{c, image})
		return w.charge(placeCost)
	})
	if err != nil || len(named) == 0 {
		return err
	}
	err = t.eachNamed(w, func(_ *column, of postOfRow, image int32) error {
		if image == 0 {
			delete(named, of)
		}
		return nil
	})
	name := func(c *column, i int, row int64) {
		var images []int32
		beside := named[postOfRow{row, c.hits[i].post}]
		for _, n := range beside {
			if n.column != c { // names in its own stand beside it, as other posts do
				images = append(images, n.image)
			}
		}
		err = cmp.Or(err, w.charge(valueCost*int64(len(beside))), c.placeHit(w, i, distinct(images)))
	}
	for _, c := range t.order {
		for i := 0; i < len(c.hits) && err == nil; i++ {
			name(c, i, c.hits[i].row)
		}
	}
	for i := 0; i < len(t.lent) && err == nil; i++ {
		name(t.lent[i].column, int(t.lent[i].hit), t.lent[i].row)
	}
	return err
}

// eachNamed hands on each image that a file's name says, or the number behind an id, with its row and each record
// around that.
func (t *table) eachNamed(w walker, see func(c *column, of postOfRow, image int32) error) error {
	for _, c := range t.order {
		for _, h := range c.hits {
			for row := h.row; (h.named || h.image > 0) && row >= 0; row, _ = t.around(row) {
				if err := cmp.Or(w.charge(valueCost), see(c, postOfRow{row, h.post}, h.image)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// strange notes that the record which is being read has the id of a post that is not known, or had one.
func (w walker) strange(t *table) error {
	t.noted++
	t.strangers = append(t.strangers, t.row)
	return w.charge(valueCost)
}

// listed reports whether the record that is being read is an element of a list in another record. Where it has no id,
// but a place for one, as after somebody blanked it, the id of that other record is not its own.
func (t *table) listed() bool {
	around, part := t.around(t.row)
	return around >= 0 && !part
}

// isName reports whether the values of the column are names, as Reddit gives them to posts.
func (c *column) isName() bool { return strings.HasSuffix(c.name, "name") }

var (
	// isMarked finds such a name.
	isMarked = regexp.MustCompile(`^(?i:t3_)[0-9A-Za-z]{1,13}$`)
	isBlank  = regexp.MustCompile(`(?i)^\W*(null|none|nan|n/a|removed|deleted|)\W*$`)
)

// scanMember is scanValue for a value of JSON, of which ids and places are noted until their object ends.
func (w walker) scanMember(t *table, c *column, text string, value any) error {
	hits, telling := len(c.hits), c.telling
	w.scanValue(t, c, t.row, value)
	t.holds = t.holds || len(text) > manyLetters && mayBePacked(strings.NewReader(text))
	for n := hits; n < len(c.hits); n++ {
		t.noted++
		t.lends = append(t.lends, lending{column: c, hit: int32(n), row: t.row})
	}
	_, isText := value.(string)
	none := len(c.hits) == hits && isText
	blanked := c.ids && isBlank.MatchString(text) && t.listed()
	other := c.ids && c.telling > telling || none && c.isName() && isMarked.MatchString(text)
	other = other || none && isImageName.MatchString(path.Ext(text)) && isOther(strings.TrimSuffix(text, path.Ext(text)))
	ofParent := strings.Contains(c.name[strings.LastIndexByte(c.name, '.')+1:], "parent")
	if other && !ofParent || none && blanked {
		if err := w.strange(t); err != nil {
			return err
		}
	}
	for n := hits; n < len(c.hits); n++ {
		if c.wantsPlace(c.hits[n]) {
			t.ids = append(t.ids, apartID{column: c, hit: int32(n)})
		}
	}
	t.other = t.other || c.ids && c.telling > telling
	if !c.place {
		return nil
	}
	n, ok := placeIn(text)
	if !ok {
		return nil
	}
	t.places = append(t.places, apartPlace{image: int32(n), bare: strings.HasSuffix(c.name, "[]")})
	if len(t.places) > manyPlaces {
		return w.charge(placeCost)
	}
	return nil
}

const (
	manyPlaces = 1 << 16 // without an id
	placeCost  = 64      // of each more
)

// unite gives the ids of an object that ends the places in it: those behind the first so many. What has no counterpart
// stays for the object around it: whether places of a post that is not known are of another one is in doubt.
func (w walker) unite(t *table, ids, places int, other bool) error {
	switch {
	case len(t.ids) == ids && other:
		for i := range t.places[places:] {
			t.places[places:][i].foreign = true
		}
		return nil
	case len(t.ids) == ids || len(t.places) == places:
		return nil
	}
	if err := w.match(t.ids[ids:], t.places[places:]); err != nil {
		return err
	}
	t.ids = t.ids[:ids]
	if t.keyed == 0 {
		t.places = t.places[:places]
	}
	for i := range t.places[places:] {
		t.places[places:][i].taken = true
	}
	return w.charge(valueCost * int64(len(t.places)-places))
}

// placeIn is manifest.ParseImage for a value in a column of places, which others write: 2.0 and 02 as well.
func placeIn(text string) (int, bool) {
	text = strings.TrimSuffix(text, ".0")
	if zeros := len(text) - len(strings.TrimLeft(text, "0")); zeros > 0 {
		text = text[min(zeros, len(text)-1):]
	}
	return manifest.ParseImage(text)
}

// elementEnds notes of what the nth element of a list left that it is from there. The list has a number already, or 0.
func (t *table) elementEnds(ids, places int, list int32, nth int) {
	for i := range t.ids[ids:] {
		t.ids[ids:][i].nth, t.ids[ids:][i].list = int32(nth), list
	}
	for i := range t.places[places:] {
		t.places[places:][i].nth, t.places[places:][i].list = int32(nth), list
	}
}

// countEnds notes how many members an object has whose keys count, of what they left. A list of as many elements may
// count otherwise.
func (t *table) countEnds(ids, places int, c count) {
	for i := range t.ids[ids:] {
		if id := &t.ids[ids:][i]; id.list == c.list {
			id.of = -int32(c.n)
		}
	}
	for i := range t.places[places:] {
		if place := &t.places[places:][i]; place.list == c.list {
			place.of = -int32(c.n)
		}
	}
}

// listEnds notes of what a list of so many elements left that it is from there.
func (t *table) listEnds(ids, places, of int) {
	if len(t.ids) == ids && len(t.places) == places {
		return
	}
	t.ended++
	for i := range t.ids[ids:] {
		t.ids[ids:][i].list, t.ids[ids:][i].of = t.ended, int32(of)
	}
	for i := range t.places[places:] {
		t.places[places:][i].list, t.places[places:][i].of = t.ended, int32(of)
	}
}
