// Package near finds near-duplicates among the pictures of any folder or Parquet file, and writes them down as
// tables and a contact sheet. No workspace takes part, and nothing is asked of the network.
package near

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"rehydrate/dedupe"
	"rehydrate/pipeline/contain"
	"rehydrate/pipeline/dataset"
	"rehydrate/policy"
)

// A Config says which pictures are compared, how, and where the answer goes.
type Config struct {
	Path    string                 // a folder, looked through to the bottom, or a Parquet file
	Columns dataset.PictureColumns // of the Parquet; the zero value finds them
	Texts   string                 // file of texts; "" for none
	Rule    dedupe.Rule            // ImageOnly leaves out all text
	Images  policy.Images          // what may be decoded
	Workers int                    // pictures hashed at once, at least 1

	Out      string // the folder of the answer
	Force    bool   // write over an earlier answer
	Pictures int    // pictures on the contact sheet at most; 0 for no sheet

	// Progress is told of every picture, by one call at a time; may be nil.
	Progress func(Progress)
}

// A Progress is how far Find is.
type Progress struct {
	Stage       string // what is going on, for people
	Done, Total int    // pictures
}

// A Search is a set of pictures that is ready to be compared.
type Search struct {
	Config
	source  pictureSource
	texts   *pictureTexts
	textsBy string              // where the texts come from, for people; "" for nowhere
	memory  *semaphore.Weighted // bytes of decoded pictures at once
	list    []*looked           // by place in the source
	telling sync.Mutex          // one call of Progress at a time
}

// A Summary is what Find found.
type Summary struct {
	Source     string         `json:"source"`
	Files      int            `json:"files"`       // pictures, those that could not be read among them
	Unreadable int            `json:"unreadable"`  // of Files
	Reasons    map[string]int `json:"reasons"`     // of Unreadable
	Skipped    int            `json:"skipped"`     // other files, links, pipes: looked at by their first bytes at most
	Groups     int            `json:"groups"`      // kept pictures with duplicates
	Duplicates int            `json:"duplicates"`  // pictures that are near a kept one
	Classes    map[string]int `json:"classes"`     // of Duplicates
	Spared     int            `json:"would_spare"` // of Duplicates: what the guard would keep
	Mode       string         `json:"mode"`        // image or image_and_text
	Radius     int            `json:"radius"`
	Words      int            `json:"words,omitempty"` // 0 where no text was compared
	Guard      bool           `json:"guard"`
	TextFrom   string         `json:"text_from,omitempty"`
	WithText   int            `json:"with_text"`    // readable pictures that have words
	NotFound   int            `json:"texts_unused"` // texts of the file that belong to no picture
	Hash       string         `json:"hash"`
	Written    []string       `json:"written"`
	Shown      int            `json:"shown"` // pictures on the contact sheet
	// Dataset says that the pictures are those of a rehydrated dataset, which must be forgotten
	// where a post is removed.
	Dataset bool `json:"of_dataset"`
}

// The values of Summary.Mode.
const (
	ModeImage = "image"
	ModeText  = "image_and_text"
)

// looked is what is known of one picture once it was looked at.
type looked struct {
	name  string
	item  dedupe.Item
	fault *policy.Fault // why it could not be read; nil for one that was
}

// Open finds the pictures, reads the texts and makes sure that an answer can be written.
// It opens no picture beyond the bytes that tell its format. Its errors are about what the
// user asked for, unless they are the context's. Close the folder.
func Open(ctx context.Context, c Config) (*Search, error) {
	f := &Search{Config: c, memory: semaphore.NewWeighted(2 * c.Images.MaxDecodedBytes())}
	if inWorkspace(c.Out) {
		return nil, fmt.Errorf("write into %s: it lies in a workspace, which holds what its runs write and nothing else: name another folder with --out DIR", c.Out)
	}
	if err := vacant(c.Out, c.Force); err != nil {
		return nil, err
	}
	if err := writable(c.Out); err != nil {
		return nil, err
	}
	var err error
	if f.source, err = openSource(ctx, c); err != nil {
		return nil, err
	}
	if err := f.openTexts(); err != nil {
		f.source.Close()
		return nil, err
	}
	return f, nil
}

// openTexts decides where the text comes from: the file of texts, else the column of text,
// else nowhere, and then pictures are compared as pictures alone.
func (f *Search) openTexts() (err error) {
	column := f.source.textColumn()
	switch {
	case f.Rule.ImageOnly:
	case f.Texts != "":
		f.textsBy = f.Texts
		if f.texts, err = readTexts(f.Texts); err == nil {
			f.source.fit(f.texts)
		}
	case column != "":
		f.textsBy = "column " + column
	case f.Rule.Guard:
		return errors.New("the guard compares texts, and there are none: give them with --text or --text-column")
	default:
		f.Rule.ImageOnly = true
	}
	return err
}

// Close closes what was open.
func (f *Search) Close() error { return f.source.Close() }

// Find looks at every picture, finds those that are near an earlier one, and writes the
// answer: groups.csv, unreadable.csv and the contact sheet groups.html. The order is that of
// the names in a folder, by bytes, and of the rows in a Parquet; the answer is a function of
// pictures, texts and rule, whatever the number of workers. A picture that cannot be read is a
// row of unreadable.csv. Memory beyond the hashes is bounded by what the policy lets two
// pictures take decoded, and one encoded picture for each worker.
//
// An error leaves the earlier answer as it was; one while the complete files get their names, or a
// kill then, leaves a folder without groups.csv, never files of two answers beside one.
func (f *Search) Find(ctx context.Context) (Summary, error) {
	if err := f.lookAtAll(ctx); err != nil {
		return Summary{}, err
	}
	near, err := f.compare(ctx)
	if err != nil {
		return Summary{}, err
	}
	s := f.summary(near)
	sheet, err := f.drawSheet(ctx, near)
	if err != nil {
		return Summary{}, err
	}
	s.Shown = len(sheet.thumbs)
	s.Written, err = f.write(ctx, near, sheet, s)
	return s, err
}

// lookAtAll hashes every picture of the source, several at a time.
func (f *Search) lookAtAll(ctx context.Context) error {
	add := func(p picture) *looked {
		f.list = append(f.list, &looked{name: p.name})
		return f.list[len(f.list)-1]
	}
	return f.each(ctx, walk{stage: "hash", total: f.source.most(), slot: add, do: f.look})
}

// A walk is a way through the pictures of the source.
type walk struct {
	stage  string
	total  int
	wanted func(index int) bool                                // nil for all
	slot   func(picture) *looked                               // what is known of a picture; called in order
	do     func(context.Context, picture, *looked) (err error) // called by several workers; an error ends the walk
}

// each goes through the pictures of the source, several at a time.
func (f *Search) each(ctx context.Context, w walk) error {
	type job struct {
		picture
		slot *looked
	}
	group, ctx := errgroup.WithContext(ctx)
	jobs := make(chan job)
	contain.Go(group, func() error {
		defer close(jobs)
		return f.source.pictures(ctx, w.wanted, func(p picture) error {
			select {
			case jobs <- job{p, w.slot(p)}:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	done := 0
	for range max(f.Workers, 1) {
		contain.Go(group, func() error {
			for j := range jobs {
				if err := w.do(ctx, j.picture, j.slot); err != nil {
					return err
				}
				f.progress(w.stage, &done, w.total)
			}
			return nil
		})
	}
	return group.Wait()
}

// progress tells of one picture more.
func (f *Search) progress(stage string, done *int, total int) {
	f.telling.Lock()
	defer f.telling.Unlock()
	*done++
	if f.Progress != nil {
		f.Progress(Progress{Stage: stage, Done: *done, Total: total})
	}
}

// nearGroups are the decisions, and the groups that they come to.
type nearGroups struct {
	decisions []dedupe.Decision // by place in list; one that could not be read is near no other
	groups    [][]int           // places in list, the kept one first, groups and members in order
	spared    int
}

// compare makes the keep-first pass over the pictures that could be read.
func (f *Search) compare(ctx context.Context) (nearGroups, error) {
	var items []dedupe.Item
	var places []int
	for i := range f.list {
		if f.list[i].fault == nil {
			items, places = append(items, f.list[i].item), append(places, i)
		}
	}
	found, err := dedupe.KeepFirst(ctx, items, f.Rule)
	if err != nil {
		return nearGroups{}, fmt.Errorf("compare the pictures: %w", err)
	}
	near := nearGroups{decisions: make([]dedupe.Decision, len(f.list))}
	for i := range near.decisions {
		near.decisions[i].Of = -1
	}
	members := map[int][]int{}
	for n, d := range found {
		if !d.Kept() {
			d.Of = places[d.Of]
			members[d.Of] = append(members[d.Of], places[n])
		}
		near.decisions[places[n]] = d
	}
	for kept, others := range members {
		near.groups = append(near.groups, append([]int{kept}, others...))
	}
	slices.SortFunc(near.groups, func(a, b []int) int { return a[0] - b[0] })
	if near.spared, err = dedupe.Spared(ctx, items, f.Rule, found); err != nil {
		return nearGroups{}, fmt.Errorf("compare the pictures under the guard: %w", err)
	}
	return near, nil
}

func (f *Search) summary(near nearGroups) Summary {
	s := Summary{Source: f.Path, Files: len(f.list), Reasons: map[string]int{}, Skipped: f.source.skipped(),
		Groups: len(near.groups), Classes: map[string]int{}, Spared: near.spared,
		Mode: ModeText, Radius: f.Rule.Radius, Words: f.Rule.Words, Guard: f.Rule.Guard,
		TextFrom: f.textsBy, Hash: dedupe.HashKind(), Dataset: f.source.ofDataset()}
	if f.Rule.ImageOnly {
		s.Mode, s.Words, s.Guard = ModeImage, 0, false
	}
	for i := range f.list {
		switch one := f.list[i]; {
		case one.fault != nil:
			s.Unreadable++
			s.Reasons[string(one.fault.Reason)]++
			continue
		case len(one.item.Tokens) > 0:
			s.WithText++
		}
		if d := near.decisions[i]; !d.Kept() {
			s.Duplicates++
			s.Classes[d.Class]++
		}
	}
	if f.texts != nil {
		s.NotFound = f.texts.unused()
	}
	return s
}
