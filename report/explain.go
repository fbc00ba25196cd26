package report

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"rehydrate/dedupe"
	"rehydrate/internal/printable"
	"rehydrate/manifest"
	"rehydrate/pipeline/language"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// An Explanation is everything that a workspace knows of one entry. Nil parts are not known.
type Explanation struct {
	ID      string              `json:"id"`
	Line    int                 `json:"line"` // in the manifest
	Split   string              `json:"split"`
	Labels  map[string][]string `json:"labels"`            // codes by category
	Columns []KeptColumn        `json:"columns,omitempty"` // those that pass through, in the order of the release
	Outcome state.Conclusion    `json:"outcome"`
	// Last is the outcome of the last completed run where that is another one.
	Last      *state.Conclusion `json:"last,omitempty"`
	Post      PostStory         `json:"post"`
	Heard     *HeardStory       `json:"heard,omitempty"` // where an audit heard it is gone, and no job asked since
	Tombstone *TombstoneStory   `json:"tombstone,omitempty"`
	Image     *ImageStory       `json:"image,omitempty"`
	Trouble   *state.Conclusion `json:"trouble,omitempty"` // why there is no image
	Reading   *ReadingStory     `json:"ocr,omitempty"`
	Language  *LanguageStory    `json:"language,omitempty"`
	Near      []Near            `json:"near"`
	History   []Evidence        `json:"history"`              // of the post, from the audit log, oldest first
	LogBroken string            `json:"log_broken,omitempty"` // where the log does not hold: History ends before that
	rec       *workspace.Record // what it was made of
	gone      state.GoneSet     // MustHideNow
}

// A KeptColumn is a column of the annotations that passes through, with the entry's values: one, a list, or one for each
// row about the image, "" where that row has none. Nothing in it moves a terminal's cursor.
type KeptColumn struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
	Hidden bool     `json:"hidden,omitempty"` // Values are left out: the post is gone, or may be
}

// A PostStory is what Reddit said of a post. Nil times are never. Live is by the log, to the second of the record, where
// the post left the manifest since and came back.
type PostStory struct {
	State     manifest.PostState `json:"state"` // "" when never asked
	Reason    manifest.Reason    `json:"reason"`
	Asked     *time.Time         `json:"asked"`
	Live      *time.Time         `json:"live"`
	Absent    *time.Time         `json:"absent"` // for the first time; confirmed if the state is unavailable
	Subreddit string             `json:"subreddit"`
	Withheld  bool               `json:"withheld"`
	Unseen    bool               `json:"unseen"` // since its image was fetched
	Stale     bool               `json:"stale"`  // last seen live too long ago to be exported
}

// A HeardStory is what Reddit answered an audit.
type HeardStory struct {
	state.Conclusion
	Time time.Time `json:"time"`
}

// A TombstoneStory is what keeps a post out.
type TombstoneStory struct {
	State      manifest.PostState `json:"state"`
	Time       time.Time          `json:"time"`
	Reason     manifest.Reason    `json:"reason"`
	Readmitted bool               `json:"readmitted"`
}

// An ImageStory describes a stored image.
type ImageStory struct {
	File           string `json:"file"` // in the workspace
	Format         string `json:"format"`
	Width          int    `json:"width"`
	Height         int    `json:"height"`
	Bytes          int64  `json:"bytes"`
	SHA256         string `json:"sha256"`
	OriginalSHA256 string `json:"original_sha256"` // as it was downloaded
	PHash          string `json:"phash,omitempty"` // "" where the text is hidden
	Flat           bool   `json:"flat"`            // of one colour
	HashKind       string `json:"hash_kind"`
}

// A ReadingStory is what OCR made of an image. Nothing in it moves a terminal's cursor.
type ReadingStory struct {
	Fingerprint string            `json:"fingerprint"`
	Failed      *state.Conclusion `json:"failed,omitempty"`
	Text        string            `json:"text"`
	Confidence  float64           `json:"confidence"` // mean of the words in the text
	Masked      int               `json:"masked"`     // names that were masked
	Words       []ReadWord        `json:"words"`
	Hidden      bool              `json:"hidden,omitempty"` // Text and Words are left out: the post is gone, or may be
}

// A ReadWord is one word that OCR saw, in the text or not.
type ReadWord struct {
	Text       string  `json:"text"`
	Confidence float64 `json:"confidence"`
	Accepted   bool    `json:"accepted"` // it stands in the text
	Line       int     `json:"line"`
	Box        [4]int  `json:"box"` // x, y, width, height in pixels
}

// A LanguageStory is the verdict of the English filter with all that it rests on.
type LanguageStory struct {
	language.Verdict
	Passes    bool        `json:"passes"`
	Threshold float64     `json:"threshold"`   // share of known words from which the dictionary votes for English
	Filter    string      `json:"fingerprint"` // of the filter
	Mode      policy.Mode `json:"mode"`        // what becomes of a row that does not pass
	Decided   bool        `json:"decides"`     // the row's outcome is the filter's
}

// A Near is another entry that is a near-duplicate.
type Near struct {
	ID    string `json:"id"`
	Kept  bool   `json:"kept"` // the other one was kept and this one is its duplicate; else the other way round
	Class string `json:"class"`
	Bits  int    `json:"bits"`  // that differ, of the hashes' 64
	Words int    `json:"words"` // that differ
	Holds bool   `json:"holds"` // they are near by the words and hashes of now; else the numbers are 0
}

// An UnknownEntry is the error of Explain for an entry that the manifest does not have.
type UnknownEntry struct {
	ID     string
	Others []string // entries of the same post
}

func (e *UnknownEntry) Error() string {
	return fmt.Sprintf("there is no post %s in this workspace", e.ID)
}

// Explain returns everything that a workspace knows of one entry. It only reads, and sends no request.
func Explain(ctx context.Context, ws *workspace.Workspace, filter *language.Filter, k manifest.Key,
	now time.Time) (Explanation, error) {
	b, bound, err := ws.Binding(ctx)
	if err != nil {
		return Explanation{}, err
	}
	if !bound {
		return Explanation{}, workspace.ErrNoWorkspace
	}
	rec, err := oneRecord(ctx, ws, k)
	if err != nil {
		return Explanation{}, err
	}
	j, err := state.StoredJudge(ctx, ws, now)
	if err != nil {
		return Explanation{}, err
	}
	gone, err := state.MustHideNow(ctx, ws)
	if err != nil {
		return Explanation{}, err
	}
	heard, err := state.ReadNote[state.HeardNote](ctx, ws)
	if err != nil {
		return Explanation{}, err
	}
	x := Explanation{ID: k.String(), Line: rec.Line, Split: rec.Split, Labels: map[string][]string{}, Near: []Near{},
		rec: &rec, gone: gone}
	for i, c := range b.Schema.Categories[:min(len(b.Schema.Categories), len(rec.Labels))] {
		for _, l := range rec.Labels[i] {
			x.Labels[c.Name] = append(x.Labels[c.Name], c.Labels[l].Code)
		}
	}
	known := j.Known(rec)
	// By what is known now; the outcome of the last run may be older than the posts' states.
	x.Outcome = state.NewConclusion(known)
	if last := rec.Result; last != nil && (last.Outcome != known.Outcome || last.Reason != known.Reason) {
		was := state.NewConclusion(*last)
		x.Last = &was
	}
	p := rec.Post
	x.Post = PostStory{State: p.State, Reason: p.Reason, Asked: at(p.CheckedAt), Live: at(p.LiveAt),
		Absent:    at(p.AbsentAt),
		Subreddit: p.Subreddit, Withheld: p.Withheld, Unseen: p.Unseen,
		Stale: p.State == manifest.StateLive && j.Policy.Stale(p.LiveAt, j.Now)}
	if c, at, is := heard.Answer(rec); is {
		x.Heard = &HeardStory{c, at}
	}
	// All of them, not only those that hold: a post that was let in again has one, too.
	stones, err := ws.Tombstones(ctx)
	if err != nil {
		return Explanation{}, err
	}
	for _, stone := range stones {
		if stone.ID == k.ID {
			x.Tombstone = &TombstoneStory{State: stone.State, Time: stone.Time, Reason: stone.Reason,
				Readmitted: stone.Readmitted}
		}
	}
	x.tellColumns(b.Schema.Columns)
	x.Trouble = troubleStory(rec.Trouble)
	if img := rec.Image; img != nil {
		x.Image = &ImageStory{File: ws.ImageName(k, img.Format), Format: img.Format, Width: img.Width, Height: img.Height,
			Bytes: img.Bytes, SHA256: img.SHA256, OriginalSHA256: img.OriginalSHA256,
			Flat: img.Flat, HashKind: img.HashKind}
		if !x.hidden() {
			x.Image.PHash = fmt.Sprintf("%016x", img.PHash)
		}
	}
	x.tellReading(j)
	x.tellLanguage(filter, j.Policy)
	if err := x.tellHistory(ctx, ws, k.ID); err != nil {
		return Explanation{}, err
	}
	return x, x.findNear(ctx, ws, j.Policy)
}

// oneRecord reads one entry with its words.
func oneRecord(ctx context.Context, ws *workspace.Workspace, k manifest.Key) (workspace.Record, error) {
	unknown := &UnknownEntry{ID: k.String()} // with what the person may have meant
	for rec, err := range ws.Records(ctx, workspace.Select{IDs: []manifest.PostID{k.ID}, WithWords: true}) {
		if err != nil || rec.Key == k {
			return rec, err
		}
		unknown.Others = append(unknown.Others, rec.Key.String())
	}
	return workspace.Record{}, unknown
}

func troubleStory(t *workspace.Trouble) *state.Conclusion {
	if t == nil { // so that the JSON has no part for it
		return nil
	}
	return &state.Conclusion{Outcome: t.Outcome, Reason: t.Reason, Detail: t.Detail}
}

// at is a time that may be never.
func at(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// hidden reports whether what people wrote is not shown, nor what an image looks like: of what is gone, or may be, it
// waits in the workspace to be erased.
func (x *Explanation) hidden() bool {
	return x.gone.HasRow(x.rec.Key.String()) || x.rec.Post.State != manifest.StateLive
}

func (x *Explanation) tellColumns(columns []manifest.Column) {
	for i, c := range columns {
		kept := KeptColumn{Name: c.Name, Values: []string{}, Hidden: x.hidden()}
		var values []string
		if !kept.Hidden && i < len(x.rec.Values) { // of what is gone they were erased
			values = x.rec.Values[i]
		}
		for _, text := range values {
			text = strings.TrimSuffix(text, manifest.NoValue)
			kept.Values = append(kept.Values, printable.Text(text))
		}
		x.Columns = append(x.Columns, kept)
	}
}

func (x *Explanation) tellReading(j state.Judge) {
	if x.rec.Reading == nil {
		return
	}
	r := state.ShownReading(*x.rec.Reading, j.Policy)
	x.Reading = &ReadingStory{Fingerprint: r.Fingerprint, Failed: troubleStory(r.Failed), Confidence: r.Confidence,
		Masked: r.Masked, Words: []ReadWord{},
		Hidden: x.hidden()}
	if x.Reading.Hidden {
		return
	}
	x.Reading.Text = printable.Text(r.Text)
	for _, w := range r.Words {
		x.Reading.Words = append(x.Reading.Words,
			ReadWord{Text: printable.Text(w.Text), Confidence: w.Confidence, Accepted: w.Accepted,
				Line: w.Line, Box: [4]int{w.X, w.Y, w.W, w.H}})
	}
}

func (x *Explanation) tellLanguage(filter *language.Filter, p policy.Policy) {
	if r := x.rec.Reading; r == nil || r.Failed != nil || x.hidden() { // its votes tell of the text
		return
	}
	v := state.InEnglish(filter, p, *x.rec)
	// In flag mode a row that does not pass is kept, with the verdict as its reason.
	marked := x.Outcome.Outcome == manifest.Kept && x.Outcome.Reason == manifest.Reason(v.Outcome)
	x.Language = &LanguageStory{Verdict: v, Passes: v.Outcome == "", Threshold: p.Filter.EnglishThreshold,
		Filter: language.Fingerprint(), Mode: p.Filter.Mode,
		Decided: v.Outcome != "" && (x.Outcome.Outcome == v.Outcome || marked)}
}

// findNear finds the entry that this one was dropped for, or marked, and those that were for this one.
func (x *Explanation) findNear(ctx context.Context, ws *workspace.Workspace, p policy.Policy) error {
	key := x.rec.Key
	var of []manifest.Key
	// What was dropped for this entry is known only of those entries.
	for rec, err := range ws.Records(ctx, workspace.Select{}) {
		if err != nil {
			return err
		}
		last := rec.Result
		switch {
		case last == nil:
		case rec.Key == key && last.DuplicateOf.ID != "":
			of = append(of, last.DuplicateOf)
		case last.DuplicateOf == key:
			of = append(of, rec.Key)
		}
	}
	for _, k := range of {
		other, err := oneRecord(ctx, ws, k)
		if _, gone := errors.AsType[*UnknownEntry](err); gone { // from the manifest
			continue
		}
		if err != nil {
			return err
		}
		n := Near{ID: k.String(), Kept: x.rec.Result != nil && x.rec.Result.DuplicateOf == k}
		if x.rec.Image != nil && other.Image != nil && x.rec.Reading != nil && other.Reading != nil {
			// Words and hashes may have changed since the run that decided: the rule is applied again.
			found, err := dedupe.KeepFirst(ctx, []dedupe.Item{state.NearItem(*x.rec), state.NearItem(other)},
				state.NearRule(p))
			if err != nil {
				return fmt.Errorf("compare %s with %s: %w", x.ID, n.ID, err)
			}
			if d := found[1]; !d.Kept() {
				n.Class, n.Bits, n.Words, n.Holds = d.Class, d.HashDistance, d.WordDistance, true
			}
		}
		x.Near = append(x.Near, n)
	}
	return nil
}
