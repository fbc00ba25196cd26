// Package diff compares two datasets row by row, and says what differs and, where the outcomes are known, why.
//
// Both sides are read at the same time, and a row is held, without its image, until that of the other side comes: where
// both have the same order, hardly more than their ids is in memory. Files may come from anybody: nothing in them is
// believed before it is checked.
package diff

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"rehydrate/internal/printable"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/state"
)

// A Change is one entry that differs between two datasets.
type Change struct {
	ID string `json:"id"`
	// Kind is gained or lost where only one side has the row, changed where both have it and it is another,
	// outcome where neither has it and its outcome is another.
	Kind string `json:"kind"`
	// Old and New are the outcomes; nil where the side has no outcomes, or not this entry.
	Old    *state.Conclusion      `json:"old_outcome,omitempty"`
	New    *state.Conclusion      `json:"new_outcome,omitempty"`
	Split  *[2]string             `json:"split,omitempty"` // old and new, where they differ
	Image  *ImageChange           `json:"image,omitempty"`
	Text   *WordChange            `json:"text,omitempty"`
	Labels map[string]LabelChange `json:"labels,omitempty"`
	// Hidden says that a workspace does not show the row now: Text, Labels and Image.Distance are left out.
	Hidden bool `json:"hidden,omitempty"`
}

// An ImageChange is an image that is another now.
type ImageChange struct {
	Old      string `json:"old_sha256"`
	New      string `json:"new_sha256"`
	Distance *int   `json:"phash_distance"` // differing bits of the 64; nil where a side has no hash
}

// A WordChange says which words of a text came and went. Words that only moved are neither.
type WordChange struct {
	Gained []string `json:"gained"`
	Lost   []string `json:"lost"`
}

// A LabelChange is the labels of one category, before and after; nil is none given.
type LabelChange struct {
	Old []string `json:"old"`
	New []string `json:"new"`
}

// A SideCount says what a side holds.
type SideCount struct {
	Path      string `json:"path"`
	Rows      int    `json:"rows"`
	Entries   int    `json:"entries"`    // of its outcomes
	Repeated  int    `json:"repeated"`   // rows whose id an earlier row has; they are not compared
	WithoutID int    `json:"without_id"` // rows without an id; they are not compared
}

// A KeyChange is something said of a dataset as a whole that is another now.
type KeyChange struct {
	Key string `json:"key"`
	Old string `json:"old"`
	New string `json:"new"`
}

// A WhyCount counts the entries whose outcome went from Old to New; nil where the side does not tell.
type WhyCount struct {
	Old   *state.Conclusion `json:"old_outcome"`
	New   *state.Conclusion `json:"new_outcome"`
	Count int               `json:"count"`
}

// A Report is what differs between two datasets.
type Report struct {
	Changes []Change `json:"changes"` // rows of the old side in its order, rows gained in the new one's, then outcomes
	Summary Summary  `json:"summary"`
}

// A Summary counts the differences between two datasets.
type Summary struct {
	Old        SideCount   `json:"old"`
	New        SideCount   `json:"new"`
	Changed    bool        `json:"changed"` // there is any difference below
	Gained     int         `json:"gained"`
	Lost       int         `json:"lost"`
	Images     int         `json:"images_changed"`
	Texts      int         `json:"texts_changed"`
	Labels     int         `json:"labels_changed"`
	Splits     int         `json:"splits_changed"`
	Outcomes   int         `json:"outcomes_changed"` // of entries that are rows of neither side
	WhyGained  []WhyCount  `json:"why_gained"`
	WhyLost    []WhyCount  `json:"why_lost"`
	WhyElse    []WhyCount  `json:"why_outcomes"`
	Schema     []KeyChange `json:"schema"`
	Provenance []KeyChange `json:"provenance"`
	// Besides has the number of tombstones of releases, each one that came, went or has another state, and the policy: a
	// new version may not be needed for them.
	Besides []KeyChange `json:"besides,omitempty"`
	// Step is Croissant's: major where rows went or changed, minor where rows or columns came, patch where only the
	// file is another, none also where tombstones or the policy of a release alone are others: its digest is the same.
	Step        string   `json:"version_step"`
	NotCompared []string `json:"not_compared"` // what could not be compared, and why
}

// Compare reads two sides and compares them. A side is a Parquet file, the folder of a dataset, a workspace, a release,
// or an outcomes.csv. Of a row whose id an earlier row has, and of one without an id, only the number is told. hides
// reports whether the workspace that a file lies in does not show a row: then neither side's words and labels are told.
func Compare(ctx context.Context, older, newer string, hides func(file, row string) (bool, error)) (Report, error) {
	c := comparison{hides: hides, ids: map[string]known{}, waiting: map[string]row{}, changed: map[int32]Change{},
		outcomes: map[int32]Change{},
		met:      map[state.Conclusion]*state.Conclusion{}, why: map[[5]string]int{}, report: Report{Changes: []Change{}}}
	releases := isRelease(older) && isRelease(newer)
	for i, name := range [2]string{older, newer} {
		s, err := openSide(ctx, name, !releases)
		if err != nil {
			return Report{}, err
		}
		defer s.close()
		c.sides[i] = s
	}
	err := c.readRows(ctx)
	for i := range c.sides {
		if err == nil { // after the rows, for which they stand in where there are none
			err = c.readOutcomes(ctx, i)
		}
	}
	if err != nil {
		return Report{}, err
	}
	if err := c.changes(); err != nil {
		return Report{}, err
	}
	c.sum()
	return c.report, nil
}

// The places of the old and the new side in what is kept of both.
const (
	before = iota
	after
)

// maxHeld bounds the memory of a comparison, in bytes: some two million memes with their texts, should all of a side
// wait.
const maxHeld = 1 << 30

// A comparison is one call of Compare.
type comparison struct {
	sides    [2]*side
	hides    func(file, row string) (bool, error)
	ids      map[string]known
	waiting  map[string]row   // by id, while the other side's may come
	held     int              // bytes of ids and waiting, about
	changed  map[int32]Change // by the number of the old row
	outcomes map[int32]Change // by the number of the new outcome
	met      map[state.Conclusion]*state.Conclusion
	why      map[[5]string]int // of kind, old outcome and reason, new outcome and reason
	report   Report
}

// A known is what each side has of an id.
type known struct {
	row     [2]int32             // the number of its first row, from 1 on; 0 without one
	outcome [2]*state.Conclusion // each once in memory
}

// tables reports whether both sides have Parquet files.
func (c *comparison) tables() bool {
	return c.sides[before].table != nil && c.sides[after].table != nil
}

// common returns the label columns of both sides: one that a side lacks is a difference of the schema, not of every
// row.
func (c *comparison) common() []string {
	if !c.tables() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.sides[before].table.labels),
		func(column string) bool { return !c.sides[after].table.has[column] })
}

// readRows reads the Parquet files of both sides, a row of each in turn.
func (c *comparison) readRows(ctx context.Context) error {
	for more := true; more; {
		more = false
		for i, s := range c.sides {
			r, err := s.next()
			if err == io.EOF {
				continue
			}
			more = true
			if err == nil {
				err = c.add(i, r)
			}
			if err := cmp.Or(err, ctx.Err()); err != nil {
				return err
			}
		}
	}
	return nil
}

// add takes a row of a side in, unless it cannot be compared.
func (c *comparison) add(i int, r row) error {
	s := c.sides[i]
	s.count.Rows++
	k := c.ids[r.id]
	switch {
	case r.id == "":
		s.count.WithoutID++
		return nil
	case k.row[i] > 0:
		s.count.Repeated++
		return nil
	}
	k.row[i] = int32(s.count.Rows)
	if err := c.know(i, r.id, k); err != nil {
		return err
	}
	if other, waits := c.waiting[r.id]; waits {
		delete(c.waiting, r.id)
		c.held -= other.size()
		pair := [2]*row{&other, &other}
		pair[i] = &r
		c.compare(pair[before], pair[after])
		return nil
	}
	if c.sides[1-i].over {
		return nil
	}
	c.waiting[r.id] = r
	return c.hold(i, r.size())
}

// know keeps what is known of an id, of which a side has told something.
func (c *comparison) know(i int, id string, k known) error {
	n := len(c.ids)
	c.ids[id] = k
	return c.hold(i, (len(c.ids)-n)*(100+len(id)))
}

// hold counts memory that a side takes.
func (c *comparison) hold(i, size int) error {
	c.held += size
	if c.held > maxHeld {
		return fmt.Errorf("compare: %s is too large: what is held of both sides may take %d MiB of memory, without images",
			c.sides[i].count.Path, maxHeld>>20)
	}
	return nil
}

// changes adds what the rows differ in, and the outcomes of the entries that are rows of neither side.
func (c *comparison) changes() error {
	gained := map[int32]Change{}
	for id, k := range c.ids {
		was, is := k.row[before], k.row[after]
		switch {
		case is == 0 && was > 0:
			c.changed[was] = Change{ID: id, Kind: "lost"}
		case was == 0 && is > 0:
			gained[is] = Change{ID: id, Kind: "gained"}
		}
	}
	for _, all := range []map[int32]Change{c.changed, gained, c.outcomes} {
		for _, place := range slices.Sorted(maps.Keys(all)) {
			if err := c.tell(all[place]); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare compares two rows of one id.
func (c *comparison) compare(was, is *row) {
	d, change := &c.report.Summary, Change{ID: was.id, Kind: "changed"}
	// A side that names no split has not moved the row.
	if was.split != "" && is.split != "" && was.split != is.split {
		d.Splits++
		change.Split = &[2]string{was.split, is.split}
	}
	if c.both("sha256") && was.sha256 != is.sha256 {
		d.Images++
		change.Image = &ImageChange{printable.Text(was.sha256), printable.Text(is.sha256),
			hashDistance(was.phash, is.phash)}
	}
	if c.both("ocr_text") && was.text != is.text {
		d.Texts++
		change.Text = &WordChange{}
		change.Text.Gained, change.Text.Lost = state.DiffWords(was.text, is.text)
	}
	for _, column := range c.common() {
		old, now := c.sides[before].labelsOf(was, column), c.sides[after].labelsOf(is, column)
		if c.sameLabels(column, old, now) {
			continue
		}
		if change.Labels == nil {
			d.Labels++
			change.Labels = map[string]LabelChange{}
		}
		change.Labels[printable.Text(column)] = LabelChange{printableAll(old), printableAll(now)}
	}
	if change.Split != nil || change.Image != nil || change.Text != nil || change.Labels != nil {
		c.changed[c.ids[was.id].row[before]] = change
	}
}

// sameLabels reports whether two cells of a column give the same labels. No label given is another answer than an empty
// list. Labels of a category are a set, unless they are those of several rows; what else a list holds has its order.
func (c *comparison) sameLabels(column string, old, now []string) bool {
	if (old == nil) != (now == nil) {
		return false
	}
	values := [2]*[]string{&old, &now}
	for i, s := range c.sides {
		names, other := s.table.names[column], c.sides[1-i].table
		// A dataset of another program may have codes, and no names of numbers.
		if names != nil && len(other.features[column].Labels()) == 0 {
			*values[1-i] = named(*values[1-i], names)
		}
	}
	isSet := func(s *side) bool { return len(s.table.features[column].Labels()) > 0 && !s.table.ordered }
	if isSet(c.sides[before]) && isSet(c.sides[after]) {
		old, now = slices.Sorted(slices.Values(old)), slices.Sorted(slices.Values(now))
	}
	return slices.Equal(old, now)
}

// named gives labels by their names where they are codes.
func named(list []string, names map[string]string) []string {
	out := slices.Clone(list)
	for i, code := range out {
		out[i] = cmp.Or(names[code], code)
	}
	return out
}

func (c *comparison) both(column string) bool {
	return c.tables() && c.sides[before].table.has[column] && c.sides[after].table.has[column]
}

// hashDistance is how many bits of two hashes differ.
func hashDistance(a, b string) *int {
	x, errA := strconv.ParseUint(a, 16, 64)
	y, errB := strconv.ParseUint(b, 16, 64)
	if len(a) != 16 || len(b) != 16 || errA != nil || errB != nil {
		return nil // a file of another origin may hold anything there
	}
	return new(bits.OnesCount64(x ^ y))
}

func printableAll(list []string) []string {
	out := slices.Clone(list) // of nil nil: no label was given
	for i, s := range out {
		out[i] = printable.Text(s)
	}
	return out
}

// tell adds the outcomes to a change, and takes it into the report, without what is not to be shown now.
func (c *comparison) tell(change Change) error {
	k, why := c.ids[change.ID], [5]string{change.Kind}
	post, _, _ := strings.Cut(change.ID, "/")
	for i, s := range c.sides {
		if k.outcome[i] == nil && k.row[i] == 0 { // the entry left the release
			k.outcome[i] = s.gone[manifest.PostID(post)]
		}
	}
	change.Old, change.New = k.outcome[before], k.outcome[after]
	for i, o := range k.outcome {
		if o != nil {
			why[1+2*i], why[2+2*i] = string(o.Outcome), string(o.Reason)
		}
	}
	c.why[why]++
	for _, s := range c.sides {
		hidden, err := c.hides(s.within, change.ID)
		if err != nil {
			return err
		}
		change.Hidden = change.Hidden || hidden && change.Kind == "changed"
	}
	if change.Hidden {
		change.Text, change.Labels = nil, nil
		if change.Image != nil {
			change.Image.Distance = nil
		}
	}
	change.ID = printable.Text(change.ID) // not before: outcomes are found by what it is
	c.report.Changes = append(c.report.Changes, change)
	return nil
}

// sum completes the summary.
func (c *comparison) sum() {
	d, old, now := &c.report.Summary, c.sides[before], c.sides[after]
	d.Old, d.New = old.count, now.count
	d.WhyGained, d.Gained = c.whyCounts("gained")
	d.WhyLost, d.Lost = c.whyCounts("lost")
	d.WhyElse, d.Outcomes = c.whyCounts("outcome")
	d.Schema, d.Provenance, d.NotCompared = []KeyChange{}, []KeyChange{}, []string{}
	if c.tables() {
		d.Schema = keyChanges(c.schema(old), c.schema(now))
		d.Provenance = keyChanges(old.provenance, now.provenance)
		if old.table.isRelease && now.table.isRelease {
			d.Besides = keyChanges(old.table.besides, now.table.besides)
		}
	} else {
		d.NotCompared = append(d.NotCompared,
			"images, texts, labels, schema and provenance: not both sides have Parquet files")
	}
	d.NotCompared = append(d.NotCompared, c.lacking()...)
	// Whoever relies on these rows cannot go on with the new ones.
	content := d.Lost+d.Images+d.Texts+d.Labels+d.Splits > 0
	d.Changed = content || d.Gained+d.Outcomes+len(d.Schema)+len(d.Provenance)+len(d.Besides) > 0
	switch {
	case content || slices.ContainsFunc(d.Schema, func(k KeyChange) bool { return k.Old != "" }):
		d.Step = "major"
	case d.Gained > 0 || len(d.Schema) > 0:
		d.Step = "minor"
	case len(d.Provenance) > 0:
		d.Step = "patch"
	default:
		d.Step = "none"
	}
}

// lacking says what could not be compared, for not both sides have it. Releases have neither images nor outcomes.
func (c *comparison) lacking() (all []string) {
	old, now := c.sides[before], c.sides[after]
	if c.tables() && old.table.isRelease && now.table.isRelease {
		return nil
	}
	for _, column := range []string{"sha256", "ocr_text"} {
		if c.tables() && !c.both(column) {
			all = append(all, column+": not both sides have the column")
		}
	}
	if old.outcomes == "" || now.outcomes == "" {
		all = append(all, "outcomes: not both sides have an outcomes.csv, so why a row went may not be known")
	}
	if !c.tables() {
		return all
	}
	return append(all, c.unread()...)
}

// unread says which columns of both sides are not compared, for their values cannot be read. Images are compared by
// their digests.
func (c *comparison) unread() (all []string) {
	told := map[string]bool{}
	for i, s := range c.sides {
		for _, u := range s.table.unread {
			both := c.sides[1-i].table.types[u.Name] != ""
			if both && u.Name != dataset.ImageName && s.table.standard[u.Name] == nil && !told[u.Name] {
				told[u.Name] = true
				all = append(all, printable.Text(u.Name)+": "+u.Why())
			}
		}
	}
	return all
}

// whyCounts gives the outcomes behind the changes of one kind, the most frequent first, and how many changes there are.
func (c *comparison) whyCounts(kind string) (all []WhyCount, sum int) {
	conclusion := func(outcome, reason string) *state.Conclusion {
		if outcome == "" {
			return nil
		}
		return &state.Conclusion{Outcome: manifest.Outcome(outcome), Reason: manifest.Reason(reason)}
	}
	all = []WhyCount{} // in JSON a list, not null
	for _, k := range slices.SortedFunc(maps.Keys(c.why), func(a, b [5]string) int {
		return cmp.Or(c.why[b]-c.why[a], slices.Compare(a[:], b[:]))
	}) {
		if k[0] == kind {
			all = append(all, WhyCount{conclusion(k[1], k[2]), conclusion(k[3], k[4]), c.why[k]})
			sum += c.why[k]
		}
	}
	return all, sum
}

// schema gives the columns of a side with their types, and the names of the labels of both sides' columns.
func (c *comparison) schema(s *side) map[string]string {
	all := map[string]string{}
	for column, kind := range s.table.types {
		all["column "+column] = kind
	}
	for _, column := range c.common() {
		all["labels of "+column] = strings.Join(s.table.features[column].Labels(), ", ")
	}
	return all
}

// keyChanges are the keys whose values differ, in the order of the keys.
func keyChanges(was, is map[string]string) []KeyChange {
	out := []KeyChange{}
	all := maps.Clone(was)
	maps.Copy(all, is)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if was[key] != is[key] {
			out = append(out, KeyChange{printable.Text(key), printable.Text(was[key]), printable.Text(is[key])})
		}
	}
	return out
}
