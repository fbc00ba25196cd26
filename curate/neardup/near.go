// Package neardup finds near-duplicates among the pictures of any folder or Parquet file, and writes them down as
// tables and a contact sheet. No workspace takes part, and nothing is asked of the network.
package neardup

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"image"
	"slices"
	"sync"

	"rehydrate/dedupe"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset/pictures"
	"rehydrate/policy"
)

// A Config says which pictures are compared, how, and where the answer goes.
type Config struct {
	Path    string           // a folder, searched to the bottom, or a Parquet file
	Columns pictures.Columns // of the Parquet; the zero value finds them
	Texts   string           // file of texts; "" for none
	Rule    dedupe.Rule      // ImageOnly leaves out all text
	Images  policy.Images    // what may be decoded
	Workers int              // pictures hashed at once, at least 1
	// Hidden reports whether a picture is left out, as pictures.Without has it; may be nil.
	Hidden func(file, id string) (bool, error)

	Out      string // the folder of the answer
	Force    bool   // replace an earlier answer
	Pictures int    // pictures on the contact sheet at most; 0 for no sheet

	// Progress is called after every picture, one call at a time; may be nil.
	Progress func(Progress)
}

// A Progress is how far a search is.
type Progress struct {
	Stage       string // hash or draw
	Done, Total int    // pictures
}

// A Search is a set of pictures that is ready to be compared.
type Search struct {
	Config
	source    *pictures.Source
	texts     *texts       // nil without a file of texts
	textsFrom string       // where the texts come from, for people; "" for nowhere
	textRoom  int64        // bytes of text that the column may still have
	all       []*scanned   // by place in the source
	groups    [][]*scanned // the kept one first, groups and members in order
	mu        sync.Mutex   // held while Progress is called
}

// A Summary is what a search found.
type Summary struct {
	Source     string         `json:"source"`
	Files      int            `json:"files"`              // pictures, those that could not be read among them
	Unreadable int            `json:"unreadable"`         // of Files
	Reasons    map[string]int `json:"reasons"`            // of Unreadable
	Skipped    int            `json:"skipped"`            // other files, links, pipes: at most their first bytes were read
	Hidden     int            `json:"left_out,omitempty"` // pictures that Config.Hidden names
	Groups     int            `json:"groups"`             // kept pictures with duplicates
	Duplicates int            `json:"duplicates"`         // pictures that are near a kept one
	Classes    map[string]int `json:"classes"`            // of Duplicates
	Spared     int            `json:"would_spare"`        // of Duplicates: what the guard would keep
	Mode       string         `json:"mode"`               // image or image_and_text
	Radius     int            `json:"radius"`
	Words      int            `json:"words,omitempty"` // 0 where no text was compared
	Guard      bool           `json:"guard"`
	TextFrom   string         `json:"text_from,omitempty"`
	WithText   int            `json:"with_text"`     // readable pictures that have words
	NotFound   int            `json:"texts_unused"`  // texts of the file that belong to no picture
	NoText     int            `json:"texts_missing"` // readable pictures whose words the file does not tell
	Hash       string         `json:"hash"`
	Written    []string       `json:"written"`
	Shown      int            `json:"shown"`      // pictures on the contact sheet
	Dataset    bool           `json:"of_dataset"` // a rehydrated one: its pictures go when a post is removed
}

// The values of Summary.Mode.
const (
	ModeImage = "image"
	modeText  = "image_and_text"
)

// A scanned is what is known of one picture.
type scanned struct {
	name  string
	item  dedupe.Item
	fault *policy.Fault   // why it could not be read; nil when it was
	found dedupe.Decision // zero without an item
	of    *scanned        // the kept picture that it is near; nil when it is kept
	shown *shownPicture   // on the contact sheet; nil when it is not
	// noText says that it is not known which words it has; it is compared as one without any.
	noText bool
}

// Open finds the pictures, reads the texts and makes sure that an answer can be written. Its errors are about what the
// user asked for, unless they are the context's.
func Open(ctx context.Context, c Config) (*Search, error) {
	s := &Search{Config: c}
	if pictures.InWorkspace(c.Out) {
		return nil,
			fmt.Errorf("write into %s: it lies in a workspace, which holds what its runs write and nothing else: name another folder with --out DIR", c.Out)
	}
	// Now: when all pictures have been hashed it is too late to learn that nothing can be written.
	if err := cmp.Or(vacant(c.Out, c.Force), writable(c.Out)); err != nil {
		return nil, err
	}
	var err error
	s.source, err = pictures.Open(ctx, c.Path, c.Columns, c.Images, pictures.Without{Folder: c.Out, Hidden: c.Hidden})
	if err != nil {
		return nil, err
	}
	column := s.source.TextColumn
	switch {
	case s.Rule.ImageOnly:
	case s.Texts != "":
		s.textsFrom = s.Texts
		s.texts, err = readTexts(s.Texts)
		if err != nil {
			return nil, err
		}
		s.texts.fit(s.source.Names, c.Path)
	case column != "":
		s.textsFrom, s.textRoom = "column "+column, mostText+s.source.Size
	case s.Rule.Guard:
		return nil, errors.New("the guard compares texts, and there are none: give them with --text or --text-column")
	default:
		s.Rule.ImageOnly = true
	}
	return s, nil
}

// Find hashes every picture, finds those that are near an earlier one by name or row, and writes the answer, which is a
// function of pictures, texts and rule; without any picture it writes nothing. An error leaves the earlier answer as it
// was. One that comes while the complete files get their names, or a kill at that time, leaves a folder without
// groups.csv.
func (s *Search) Find(ctx context.Context) (Summary, error) {
	if err := s.each(ctx, "hash", s.source.Most, func(p pictures.Picture) (*scanned, error) {
		tokens, known, err := s.tokensOf(p)
		s.all = append(s.all, &scanned{name: p.Name, item: dedupe.Item{Tokens: tokens}, noText: !known})
		return s.all[p.Index], err
	}, s.scan); err != nil {
		return Summary{}, err
	}
	if len(s.all) == 0 { // an answer without pictures would say nothing
		sum := s.summary(0)
		sum.Written = []string{}
		return sum, nil
	}
	spared, err := s.compare(ctx)
	if err != nil {
		return Summary{}, err
	}
	sheet, err := s.drawSheet(ctx, s.summary(spared))
	if err != nil {
		return Summary{}, err
	}
	sheet.Written, err = s.write(ctx, sheet)
	if err != nil {
		return Summary{}, fmt.Errorf("write the answer into %s: %w", s.Out, err)
	}
	return sheet.Summary, nil
}

// each calls do from several goroutines for the pictures of the source for which pick, called in their order, has
// something to fill. An error ends it.
func (s *Search) each(ctx context.Context, stage string, total int, pick func(pictures.Picture) (*scanned, error),
	do func(context.Context, pictures.Picture, *scanned) error) error {
	done := 0
	return s.source.Each(ctx, s.Workers, func(ctx context.Context, p pictures.Picture) func() error {
		into, err := pick(p)
		switch {
		case err != nil:
			return func() error { return err }
		case into == nil:
			return nil
		}
		return func() error {
			if err := do(ctx, p, into); err != nil || s.Progress == nil {
				return err
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			done++
			s.Progress(Progress{Stage: stage, Done: done, Total: total})
			return nil
		}
	})
}

// mostText is how many bytes the texts of a Parquet may have beside those of the file. Its words are all in memory,
// where a byte of text takes up to 17, and some kilobytes of a file can repeat into gigabytes of text.
const mostText = 4 << 20

// tokensOf are the words of a picture's text; known is false where the file of texts has none for it. The error says
// that the texts are too long in all.
func (s *Search) tokensOf(p pictures.Picture) (words []string, known bool, err error) {
	switch {
	case s.Rule.ImageOnly:
		return nil, true, nil
	case s.texts != nil:
		words, known = s.texts.of(p)
		return words, known, nil
	}
	s.textRoom -= int64(len(p.Text))
	if s.textRoom < 0 {
		return nil, true, &manifest.Problem{File: s.Path,
			Message: fmt.Sprintf("the texts of %s are too long to compare: up to %s they have more than %d MB, "+
				"and more than the file", s.textsFrom, p.Name, mostText>>20),
			Hint: "name another column with --text-column, or compare images alone with --image-only"}
	}
	return allWords(p.Text), true, nil
}

// scan hashes one picture. Whatever is wrong with it is a fault; the error is the context's.
func (s *Search) scan(ctx context.Context, p pictures.Picture, into *scanned) error {
	body, fault := p.Read()
	if fault == nil {
		fault = s.source.Decode(ctx, body, func(img image.Image) error { return s.hash(img, body, &into.item) })
	}
	into.fault = fault
	return ctx.Err()
}

// hash fills in what the rule compares.
func (s *Search) hash(img image.Image, body []byte, into *dedupe.Item) (err error) {
	into.Hash, err = dedupe.HashImage(img)
	if err != nil {
		return err
	}
	// All pictures of one colour hash alike: their bytes are compared.
	if into.Hash.Flat {
		sum := sha256.Sum256(body)
		into.Content = hex.EncodeToString(sum[:])
		return nil
	}
	if s.Rule.ImageOnly || len(into.Tokens) > 0 {
		return nil
	}
	// The wide hash costs more than the other one, and only pictures without words need it.
	wide, err := dedupe.HashImage256(img)
	into.Wide = &wide
	return err
}

// compare makes the keep-first pass over the pictures that could be read, and counts those that the guard would keep.
func (s *Search) compare(ctx context.Context) (spared int, err error) {
	var items []dedupe.Item
	var read []*scanned
	// What could not be read is near nothing, and would shift the places that decisions name.
	for _, one := range s.all {
		if one.fault == nil {
			items, read = append(items, one.item), append(read, one)
		}
	}
	found, spared, err := dedupe.KeepAndSpare(ctx, items, s.Rule)
	if err != nil {
		return 0, fmt.Errorf("compare the pictures: %w", err)
	}
	groups := make([][]*scanned, len(read)) // by the kept one
	for i, d := range found {
		read[i].found = d
		kept := i
		if !d.Kept() {
			kept, read[i].of = d.Of, read[d.Of]
		}
		groups[kept] = append(groups[kept], read[i])
	}
	s.groups = slices.DeleteFunc(groups, func(g []*scanned) bool { return len(g) < 2 })
	return spared, nil
}

func (s *Search) summary(spared int) Summary {
	sum := Summary{Source: s.Path, Files: len(s.all), Reasons: map[string]int{}, Skipped: s.source.Skipped,
		Hidden: s.source.Hidden, Groups: len(s.groups), Classes: map[string]int{}, Spared: spared,
		Mode: modeText, Radius: s.Rule.Radius, Words: s.Rule.Words, Guard: s.Rule.Guard,
		TextFrom: s.textsFrom, Hash: dedupe.HashKind(), Dataset: s.source.OfDataset}
	if s.Rule.ImageOnly {
		sum.Mode, sum.Words, sum.Guard = ModeImage, 0, false
	}
	for _, one := range s.all {
		if one.fault != nil {
			sum.Unreadable++
			sum.Reasons[string(one.fault.Reason)]++
			continue
		}
		if len(one.item.Tokens) > 0 {
			sum.WithText++
		}
		if one.noText {
			sum.NoText++
		}
		if one.of != nil {
			sum.Duplicates++
			sum.Classes[one.found.Class]++
		}
	}
	if s.texts != nil {
		sum.NotFound = s.texts.unused()
	}
	return sum
}
