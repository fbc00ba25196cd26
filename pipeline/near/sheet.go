package near

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"image"
	"io"
	"iter"

	"rehydrate/dedupe"
	"rehydrate/pipeline/page"
)

// mostOfGroup bounds the pictures of one group on the contact sheet, so that a large group leaves room for the
// others.
const mostOfGroup = 24

// A sheet is what the contact sheet shows.
type sheet struct {
	groups [][]int // the places of the pictures that are shown, group by group
	thumbs map[int]shownPicture
}

// drawSheet reads the pictures again that the contact sheet shows, and makes them small.
func (s *Search) drawSheet(ctx context.Context, g grouping) (sheet, error) {
	sh := sheet{thumbs: map[int]shownPicture{}}
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
func (s *Search) draw(ctx context.Context, p picture, was *scanned, d dedupe.Decision) shownPicture {
	shown := shownPicture{Name: ShownName(was.name), Near: nearness(d)}
	body, fault := p.read()
	if fault == nil {
		fault = s.decoded(ctx, body, func(img image.Image) error {
			hash, err := dedupe.HashImage(img)
			if err == nil && hash != was.item.Hash {
				err = errors.New("it changed while it was looked at")
			}
			if err == nil {
				shown.Thumb, err = page.NewThumbnail(img, shown.Name)
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

//go:embed sheet.html
var files embed.FS

var sheetPage = page.Parse(files, "sheet.html")

// A contactSheet is what sheet.html shows: text above the groups, then the groups one after the other.
type contactSheet struct {
	Source string // the folder or file that was searched
	Rule   string // when two pictures count as near, in a sentence
	Summary
	ShownGroups, ShownPictures, Grouped int // Grouped: the pictures of all groups
	All                                 iter.Seq[shownGroup]
}

// A shownGroup is a picture that is kept with those that are near it.
type shownGroup struct {
	Number   int
	Pictures []shownPicture // the one that is kept first
	More     int            // pictures of the group that are not shown
}

// A shownPicture is one picture of a group.
type shownPicture struct {
	Name    string
	Near    string // how it is near the one that is kept; "" for that one
	Thumb   page.Thumbnail
	Trouble string // why there is no thumbnail; "" when there is one
}

func (s *Search) writeSheet(w io.Writer, g grouping, sh sheet, sum Summary) error {
	return contactSheet{Source: ShownName(s.Path), Rule: ruleWords(s.Rule), Summary: sum,
		ShownGroups: len(sh.groups), ShownPictures: len(sh.thumbs), Grouped: sum.Groups + sum.Duplicates,
		All: func(yield func(shownGroup) bool) {
			for i, places := range sh.groups {
				shown := shownGroup{Number: i + 1, More: len(g.groups[i]) - len(places)}
				for _, place := range places {
					shown.Pictures = append(shown.Pictures, sh.thumbs[place])
				}
				if !yield(shown) {
					return
				}
			}
		}}.write(w)
}

// write writes the contact sheet as one HTML page that opens from disk. Every picture is blurred until it is
// clicked, or focused and opened with Enter.
func (c contactSheet) write(w io.Writer) error {
	if err := page.Write(w, sheetPage, c); err != nil {
		return fmt.Errorf("write the contact sheet: %w", err)
	}
	return nil
}
