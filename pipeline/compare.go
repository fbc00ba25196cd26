package pipeline

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"iter"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/state"
)

// maxDiffRows bounds the rows of a side, and so the memory that their ids take.
const maxDiffRows = 20_000_000

// maxPending bounds the old texts that are held until the new ones come by, in bytes. Where more changed,
// the new side is read once more for each such batch.
const maxPending = 16 << 20

// A comparison is one call of CompareDatasets.
type comparison struct {
	older, newer *DiffSide
	visit        func(Change) error
	old, new     sideSeen
	rows         map[string]*rowDigest // of the new side
	order        []string              // its ids
	common       []string              // label columns of both sides
	pending      map[string]*pendingRow
	held         int // bytes of pending
	why          map[string]map[[4]string]int
	diff         Diff
}

// A sideSeen is what was seen of a side.
type sideSeen struct {
	count      SideCount
	verdicts   map[string]verdict
	columns    map[string]string
	labels     []string
	names      map[string][]string
	provenance map[string]string
	has        map[string]bool
}

type verdict struct {
	outcome manifest.Outcome
	reason  manifest.Reason
}

// A rowDigest is what is kept of a row of the new side.
type rowDigest struct {
	text, labels [16]byte
	sha256       string
	phash        string
	split        string
	matched      bool
}

// A pendingRow is a changed row of the old side that waits for the new one.
type pendingRow struct {
	change Change
	row    dataset.TableRow
	text   bool // the texts differ
	labels bool // the labels differ
}

func digest(parts ...string) (sum [16]byte) {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	copy(sum[:], h.Sum(nil))
	return sum
}

// labelDigest is of the columns that both sides have.
func (c *comparison) labelDigest(s *sideSeen, r *dataset.TableRow) [16]byte {
	var parts []string
	for _, column := range c.common {
		values := labelsOf(s, r, column)
		parts = append(parts, strconv.FormatBool(values == nil))
		parts = append(parts, strconv.Itoa(len(values)))
		parts = append(parts, values...)
	}
	return digest(parts...)
}

func labelsOf(s *sideSeen, r *dataset.TableRow, column string) []string {
	if i := slices.Index(s.labels, column); i >= 0 && i < len(r.Labels) {
		return r.Labels[i]
	}
	return nil
}

// look reads what is said of a side as a whole: its outcomes, its columns, its provenance.
func (c *comparison) look(ctx context.Context, s *DiffSide) (sideSeen, error) {
	seen := sideSeen{count: SideCount{Path: s.name}, verdicts: map[string]verdict{}, names: map[string][]string{}, provenance: map[string]string{}, has: map[string]bool{}}
	if s.outcomes != nil {
		for res, err := range s.results(ctx) {
			if err != nil {
				return seen, err
			}
			if seen.count.Entries++; seen.count.Entries > maxDiffRows {
				return seen, fmt.Errorf("compare: %s has more than %d entries", s.outcomes.name, maxDiffRows)
			}
			seen.verdicts[strings.Clone(res.Key.String())] = verdict{res.Outcome, manifest.Reason(strings.Clone(string(res.Reason)))}
		}
	}
	for i, f := range s.tables {
		if err := seen.lookAt(f, i == 0); err != nil {
			return seen, err
		}
	}
	return seen, nil
}

func (s *sideSeen) lookAt(f namedFile, first bool) error {
	file, err := f.open()
	if err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	t, err := dataset.OpenTable(file)
	if err != nil {
		file.Close()
		return err
	}
	defer t.Close()
	if !first {
		if !maps.Equal(s.columns, t.Columns()) {
			return fmt.Errorf("compare: %s has other columns than the other files of its dataset: compare them one by one", f.name)
		}
		for key, value := range t.Provenance() {
			if s.provenance[key] != value {
				s.provenance[key] = "(not the same in all files)"
			}
		}
		return nil
	}
	s.columns, s.labels, s.provenance = t.Columns(), t.Labels(), t.Provenance()
	for _, column := range []string{"sha256", "phash", "ocr_text"} {
		s.has[column] = t.Has(column)
	}
	for _, column := range s.labels {
		s.names[column] = t.LabelNames(column)
	}
	return nil
}

// results yields the entries of a side's outcomes.csv.
func (s *DiffSide) results(ctx context.Context) iter.Seq2[manifest.Result, error] {
	return func(yield func(manifest.Result, error) bool) {
		f, err := s.outcomes.open()
		if err != nil {
			yield(manifest.Result{}, fmt.Errorf("compare: %w", err))
			return
		}
		defer f.Close()
		for res, err := range manifest.ReadOutcomes(f) {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				err = fmt.Errorf("compare %s: %w", s.outcomes.name, err)
			}
			if !yield(res, err) || err != nil {
				return
			}
		}
	}
}

// each yields the rows of a side: of its Parquet files, or the entries that its outcomes say are kept.
func (s *DiffSide) each(ctx context.Context) iter.Seq2[dataset.TableRow, error] {
	return func(yield func(dataset.TableRow, error) bool) {
		if len(s.tables) == 0 {
			for res, err := range s.results(ctx) {
				if err == nil && res.Outcome != manifest.Kept {
					continue
				}
				if !yield(dataset.TableRow{ID: res.Key.String(), Split: res.Split}, err) || err != nil {
					return
				}
			}
			return
		}
		for _, f := range s.tables {
			if !f.each(ctx, yield) {
				return
			}
		}
	}
}

// each yields the rows of one Parquet file, and returns false when no more are wanted.
func (f namedFile) each(ctx context.Context, yield func(dataset.TableRow, error) bool) bool {
	file, err := f.open()
	if err != nil {
		yield(dataset.TableRow{}, fmt.Errorf("compare: %w", err))
		return false
	}
	t, err := dataset.OpenTable(file)
	if err != nil {
		file.Close()
		yield(dataset.TableRow{}, err)
		return false
	}
	defer t.Close()
	for {
		row, err := t.Next()
		if err == io.EOF {
			return true
		}
		if err == nil {
			err = ctx.Err()
		}
		row.Split = cmp.Or(row.Split, f.split)
		if !yield(row, err) || err != nil {
			return false
		}
	}
}

// start looks at both sides, then reads the rows of the new one.
func (c *comparison) start(ctx context.Context) (err error) {
	if c.old, err = c.look(ctx, c.older); err != nil {
		return err
	}
	if c.new, err = c.look(ctx, c.newer); err != nil {
		return err
	}
	for _, column := range c.old.labels {
		if slices.Contains(c.new.labels, column) {
			c.common = append(c.common, column)
		}
	}
	splits := map[string]string{}
	for row, err := range c.newer.each(ctx) {
		if err != nil {
			return err
		}
		fresh, err := c.new.admit(row.ID, func() bool { return c.rows[row.ID] != nil })
		if err != nil {
			return err
		}
		if !fresh {
			continue
		}
		if _, ok := splits[row.Split]; !ok {
			splits[strings.Clone(row.Split)] = strings.Clone(row.Split)
		}
		id := strings.Clone(row.ID)
		c.rows[id] = &rowDigest{text: digest(row.Text), labels: c.labelDigest(&c.new, &row), split: splits[row.Split],
			sha256: strings.Clone(row.SHA256), phash: strings.Clone(row.PHash)}
		c.order = append(c.order, id)
	}
	return nil
}

// admit counts a row and tells whether it is compared.
func (s *sideSeen) admit(id string, known func() bool) (bool, error) {
	if s.count.Rows++; s.count.Rows > maxDiffRows {
		return false, fmt.Errorf("compare: %s has more than %d rows", s.count.Path, maxDiffRows)
	}
	switch {
	case id == "":
		s.count.WithoutID++
	case known():
		s.count.Repeated++
	default:
		return true, nil
	}
	return false, nil
}

// readOld reads the old side, and tells what went and what changed.
func (c *comparison) readOld(ctx context.Context) error {
	c.pending = map[string]*pendingRow{}
	lost := map[string]bool{}
	for row, err := range c.older.each(ctx) {
		if err != nil {
			return err
		}
		now := c.rows[row.ID]
		fresh, err := c.old.admit(row.ID, func() bool { return lost[row.ID] || now != nil && now.matched })
		if err != nil {
			return err
		}
		if !fresh {
			continue
		}
		if now == nil {
			lost[strings.Clone(row.ID)] = true
			c.diff.Lost++
			if err := c.tell(Change{ID: row.ID, Kind: "lost"}); err != nil {
				return err
			}
			continue
		}
		now.matched = true
		if err := c.compare(ctx, row, now); err != nil {
			return err
		}
	}
	return c.flush(ctx)
}

func (c *comparison) compare(ctx context.Context, row dataset.TableRow, now *rowDigest) error {
	p := &pendingRow{change: Change{ID: strings.Clone(row.ID), Kind: "changed"}, row: row}
	if row.Split != "" && now.split != "" && row.Split != now.split {
		p.change.Split = &[2]string{row.Split, now.split}
		c.diff.Splits++
	}
	if c.both("sha256") && row.SHA256 != now.sha256 {
		p.change.Image = &ImageChange{Old: state.Printable(row.SHA256), New: state.Printable(now.sha256), Distance: hashDistance(row.PHash, now.phash)}
		c.diff.Images++
	}
	if p.text = c.both("ocr_text") && digest(row.Text) != now.text; p.text {
		c.diff.Texts++
	}
	if p.labels = c.labelDigest(&c.old, &row) != now.labels; p.labels {
		c.diff.Labels++
	}
	switch {
	case p.text || p.labels:
		c.pending[p.change.ID] = p
		c.held += len(row.Text) + 500
	case p.change.Split != nil || p.change.Image != nil:
		return c.tell(p.change)
	}
	if c.held < maxPending {
		return nil
	}
	return c.flush(ctx)
}

func (c *comparison) both(column string) bool { return c.old.has[column] && c.new.has[column] }

// hashDistance is how many bits of two hashes differ, nil where one is none.
func hashDistance(a, b string) *int {
	x, errA := strconv.ParseUint(a, 16, 64)
	y, errB := strconv.ParseUint(b, 16, 64)
	if len(a) != 16 || len(b) != 16 || errA != nil || errB != nil {
		return nil
	}
	n := bits.OnesCount64(x ^ y)
	return &n
}

// flush reads the new side for the rows that wait for it, and tells of them in its order.
func (c *comparison) flush(ctx context.Context) error {
	if len(c.pending) == 0 {
		return nil
	}
	for row, err := range c.newer.each(ctx) {
		if err != nil {
			return err
		}
		p := c.pending[row.ID]
		if p == nil {
			continue
		}
		delete(c.pending, row.ID)
		if p.text {
			p.change.Text = &WordChange{}
			p.change.Text.Gained, p.change.Text.Lost = state.DiffWords(p.row.Text, row.Text)
		}
		if p.labels {
			p.change.Labels = map[string]LabelChange{}
			for _, column := range c.common {
				was, is := labelsOf(&c.old, &p.row, column), labelsOf(&c.new, &row, column)
				if (was == nil) != (is == nil) || !slices.Equal(was, is) {
					p.change.Labels[state.Printable(column)] = LabelChange{printableAll(was), printableAll(is)}
				}
			}
		}
		if err := c.tell(p.change); err != nil {
			return err
		}
		if len(c.pending) == 0 {
			break
		}
	}
	c.pending, c.held = map[string]*pendingRow{}, 0
	return nil
}

func printableAll(list []string) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = state.Printable(s)
	}
	return out
}

// tellRest tells the rows that the new side alone has, and the outcomes that changed of entries that are
// rows of neither.
func (c *comparison) tellRest(ctx context.Context) error {
	for _, id := range c.order {
		if c.rows[id].matched {
			continue
		}
		c.diff.Gained++
		if err := c.tell(Change{ID: id, Kind: "gained"}); err != nil {
			return err
		}
	}
	if c.newer.outcomes == nil || c.older.outcomes == nil {
		return nil
	}
	for res, err := range c.newer.results(ctx) {
		if err != nil {
			return err
		}
		id := res.Key.String()
		was, known := c.old.verdicts[id]
		if known && c.rows[id] == nil && was.outcome != manifest.Kept && was != c.new.verdicts[id] {
			c.diff.Outcomes++
			if err := c.tell(Change{ID: id, Kind: "outcome"}); err != nil {
				return err
			}
		}
	}
	return nil
}

// tell adds the outcomes to a change, counts it and passes it on.
func (c *comparison) tell(change Change) error {
	conclude := func(s *sideSeen) *state.Conclusion {
		if v, ok := s.verdicts[change.ID]; ok {
			return &state.Conclusion{Outcome: v.outcome, Reason: v.reason}
		}
		return nil
	}
	change.Old, change.New = conclude(&c.old), conclude(&c.new)
	if change.Kind != "changed" {
		why := [4]string{}
		if o := change.Old; o != nil {
			why[0], why[1] = string(o.Outcome), string(o.Reason)
		}
		if n := change.New; n != nil {
			why[2], why[3] = string(n.Outcome), string(n.Reason)
		}
		if c.why[change.Kind] == nil {
			c.why[change.Kind] = map[[4]string]int{}
		}
		c.why[change.Kind][why]++
	}
	change.ID = state.Printable(change.ID)
	return c.visit(change)
}

// sum makes the report.
func (c *comparison) sum() Diff {
	d := c.diff
	d.Old, d.New = c.old.count, c.new.count
	d.WhyGained, d.WhyLost, d.WhyElse = c.whyCounts("gained"), c.whyCounts("lost"), c.whyCounts("outcome")
	d.Schema, d.Provenance, d.NotCompared = []KeyChange{}, []KeyChange{}, []string{}
	if len(c.older.tables) > 0 && len(c.newer.tables) > 0 {
		d.Schema = c.schemaChanges()
		d.Provenance = keyChanges(c.old.provenance, c.new.provenance)
		for _, column := range []string{"sha256", "ocr_text"} {
			if !c.both(column) {
				d.NotCompared = append(d.NotCompared, fmt.Sprintf("%s: not both sides have the column", column))
			}
		}
	} else {
		d.NotCompared = append(d.NotCompared, "images, texts, labels, schema and provenance: not both sides have Parquet files")
	}
	if c.older.outcomes == nil || c.newer.outcomes == nil {
		d.NotCompared = append(d.NotCompared, "outcomes: not both sides have an outcomes.csv, so why a row went may not be known")
	}
	content := d.Lost+d.Images+d.Texts+d.Labels+d.Splits > 0
	d.Changed = content || d.Gained+d.Outcomes+len(d.Schema)+len(d.Provenance) > 0
	added := slices.ContainsFunc(d.Schema, func(k KeyChange) bool { return k.Old == "" })
	other := slices.ContainsFunc(d.Schema, func(k KeyChange) bool { return k.Old != "" })
	switch {
	case content || other:
		d.Step = "major"
	case d.Gained > 0 || added:
		d.Step = "minor"
	case len(d.Provenance) > 0:
		d.Step = "patch"
	default:
		d.Step = "none"
	}
	return d
}

func (c *comparison) whyCounts(kind string) []WhyCount {
	out := []WhyCount{}
	conclude := func(outcome, reason string) *state.Conclusion {
		if outcome == "" {
			return nil
		}
		return &state.Conclusion{Outcome: manifest.Outcome(outcome), Reason: manifest.Reason(reason)}
	}
	keys := slices.SortedFunc(maps.Keys(c.why[kind]), func(a, b [4]string) int {
		return cmp.Or(c.why[kind][b]-c.why[kind][a], slices.Compare(a[:], b[:]))
	})
	for _, k := range keys {
		out = append(out, WhyCount{conclude(k[0], k[1]), conclude(k[2], k[3]), c.why[kind][k]})
	}
	return out
}

// schemaChanges compares columns with their types, and the names of labels.
func (c *comparison) schemaChanges() []KeyChange {
	was, is := map[string]string{}, map[string]string{}
	for column, kind := range c.old.columns {
		was["column "+column] = kind
	}
	for column, kind := range c.new.columns {
		is["column "+column] = kind
	}
	for _, column := range c.common {
		was["labels of "+column] = strings.Join(c.old.names[column], ", ")
		is["labels of "+column] = strings.Join(c.new.names[column], ", ")
	}
	return keyChanges(was, is)
}

// keyChanges are the keys whose values differ, in the order of the keys.
func keyChanges(was, is map[string]string) []KeyChange {
	out := []KeyChange{}
	all := maps.Clone(was)
	maps.Copy(all, is)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if was[key] != is[key] {
			out = append(out, KeyChange{state.Printable(key), state.Printable(was[key]), state.Printable(is[key])})
		}
	}
	return out
}
