package neardup

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"image"
	"strconv"

	"rehydrate/dedupe"
	"rehydrate/internal/csvcell"
	"rehydrate/internal/page"
	"rehydrate/pipeline/dataset/pictures"
)

const mostOfGroup = 24 // pictures on the contact sheet, so that a large group leaves room for the others

//go:embed sheet.html
var files embed.FS

var sheetPage = page.Parse(files, "sheet.html")

// A contactSheet is what sheet.html shows.
type contactSheet struct {
	Summary
	Source  string // that of the summary, fit to be shown
	Grouped int    // the pictures of all groups
	All     []shownGroup
}

// Strip is the search in five numbers.
func (c contactSheet) Strip() []page.Figure {
	strip := []page.Figure{
		{Value: strconv.Itoa(c.Files), Label: "images"},
		{Value: strconv.Itoa(c.Groups), Label: "groups of near-duplicates", Tone: page.Open.If(c.Groups)},
		{Value: strconv.Itoa(c.Duplicates), Label: "near-duplicates", Tone: page.Open.If(c.Duplicates)},
		{Value: strconv.Itoa(c.Shown), Label: "images shown here"},
		{Value: strconv.Itoa(c.Unreadable), Label: "unreadable", Tone: page.Open.If(c.Unreadable)},
	}
	if len(c.All) > 0 {
		strip[1].Section, strip[3].Section = "group-1", "group-1"
	}
	return strip
}

// A shownGroup is a picture that is kept with those that are near it.
type shownGroup struct {
	Number   int
	Pictures []*shownPicture // the one that is kept first
	More     int             // pictures of the group that are not shown
}

// A shownPicture is one picture of a group.
type shownPicture struct {
	Name    string
	Near    string // how it is near the one that is kept; "" for that one
	Thumb   page.Thumbnail
	Trouble string // why the thumbnail is missing; empty if it is there
}

// drawSheet reads the pictures again that the contact sheet shows, and makes them small.
func (s *Search) drawSheet(ctx context.Context, sum Summary) (contactSheet, error) {
	sheet := contactSheet{Summary: sum, Source: csvcell.Shown(s.Path), Grouped: sum.Groups + sum.Duplicates}
	for i, group := range s.groups {
		room := s.Pictures - sheet.Shown
		if room < 2 { // a group shows the kept picture and another one
			break
		}
		show := shownGroup{Number: i + 1}
		for _, one := range group[:min(len(group), room, mostOfGroup)] {
			one.shown = &shownPicture{Name: csvcell.Shown(one.name), Near: nearness(one.found)}
			show.Pictures = append(show.Pictures, one.shown)
		}
		show.More = len(group) - len(show.Pictures)
		sheet.Shown += len(show.Pictures)
		sheet.All = append(sheet.All, show)
	}
	if sheet.Shown == 0 {
		return sheet, nil
	}
	return sheet, s.each(ctx, "draw", sheet.Shown, func(p pictures.Picture) (*scanned, error) {
		if s.all[p.Index].shown == nil {
			return nil, nil
		}
		return s.all[p.Index], nil
	}, s.draw)
}

// draw makes a picture small. The error is the context's.
func (s *Search) draw(ctx context.Context, p pictures.Picture, was *scanned) error {
	into := was.shown
	body, fault := p.Read()
	if fault == nil {
		fault = s.source.Decode(ctx, body, func(img image.Image) error {
			hash, err := dedupe.HashImage(img)
			// The sheet shows the pictures that were compared, and no other.
			if err == nil && hash != was.item.Hash {
				err = errors.New("it changed while it was looked at")
			}
			if err == nil {
				into.Thumb, err = page.NewThumbnail(img, into.Name)
			}
			return err
		})
	}
	if fault != nil {
		into.Trouble = fault.Detail
	}
	return ctx.Err()
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
