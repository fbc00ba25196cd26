package near

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"

	"rehydrate/dedupe"
	"rehydrate/pipeline/dataset"
)

// mostOfGroup bounds the pictures of one group on the contact sheet, so that a large group leaves room for the
// others.
const mostOfGroup = 24

// A sheet is what the contact sheet shows.
type sheet struct {
	groups [][]int // the places of the pictures that are shown, group by group
	thumbs map[int]dataset.SheetPicture
}

// drawSheet reads the pictures again that the contact sheet shows, and makes them small.
func (s *Search) drawSheet(ctx context.Context, g grouping) (sheet, error) {
	sh := sheet{thumbs: map[int]dataset.SheetPicture{}}
	wanted := map[int]bool{}
	for _, group := range g.groups {
		room := s.Pictures - len(wanted)
		if room < 2 { // a group shows the kept picture and another one
			break
		}
		shown := group[:min(len(group), room, mostOfGroup)]
		sh.groups = append(sh.groups, shown)
		for _, place := range shown {
			wanted[place] = true
		}
	}
	if len(wanted) == 0 {
		return sh, nil
	}
	draw := func(ctx context.Context, p picture, was *scanned) error {
		shown := s.draw(ctx, p, was, g.decisions[p.index])
		s.mu.Lock()
		defer s.mu.Unlock()
		sh.thumbs[p.index] = shown
		return ctx.Err()
	}
	return sh, s.each(ctx, "draw", len(wanted), wanted, draw)
}

// draw makes a picture small. It may have changed since it was hashed, or be gone.
func (s *Search) draw(ctx context.Context, p picture, was *scanned, d dedupe.Decision) dataset.SheetPicture {
	shown := dataset.SheetPicture{Name: ShownName(was.name), Near: nearness(d)}
	body, fault := p.read()
	if fault == nil {
		fault = s.decoded(ctx, body, func(img image.Image) error {
			hash, err := dedupe.HashImage(img)
			if err == nil && hash != was.item.Hash {
				err = errors.New("it changed while it was looked at")
			}
			if err == nil {
				shown.Thumb, err = dataset.NewThumbnail(img, shown.Name)
			}
			return err
		})
	}
	if fault != nil {
		shown.Trouble = fault.Detail
	}
	return shown
}

// classWords say of a class why a picture is near the one that is kept, where texts were compared.
var classWords = map[string]string{
	dedupe.ClassSameText: "same text",
	dedupe.ClassNearText: "nearly the same text",
	dedupe.ClassNoText:   "neither has text",
	dedupe.ClassOneEmpty: "one has no text",
	dedupe.ClassFlat:     "one colour, the same bytes",
}

// nearness says in words how near a picture is to the one that is kept; "" of the kept one.
func nearness(d dedupe.Decision) string {
	if d.Kept() {
		return ""
	}
	s := fmt.Sprintf("%d of 64 bits differ", d.HashDistance)
	if words, ok := classWords[d.Class]; ok {
		s += fmt.Sprintf(", %d words: %s", d.WordDistance, words)
	}
	return s
}

func (s *Search) writeSheet(w io.Writer, g grouping, sh sheet, sum Summary) error {
	head := dataset.Sheet{Source: ShownName(s.Path), Rule: ruleWords(s.Rule), Files: sum.Files, Unreadable: sum.Unreadable, Groups: sum.Groups,
		Duplicates: sum.Duplicates, ShownGroups: len(sh.groups), ShownPictures: len(sh.thumbs), TotalInAll: sum.Groups + sum.Duplicates}
	return dataset.WriteSheet(w, head, func(yield func(dataset.SheetGroup, error) bool) {
		for i, places := range sh.groups {
			shown := dataset.SheetGroup{Number: i + 1, More: len(g.groups[i]) - len(places)}
			for _, place := range places {
				shown.Pictures = append(shown.Pictures, sh.thumbs[place])
			}
			if !yield(shown, nil) {
				return
			}
		}
	})
}
