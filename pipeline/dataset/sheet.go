package dataset

import (
	"fmt"
	"io"
	"iter"
	"strconv"
)

// A Sheet is the contact sheet of near-duplicates: what stands above the groups. All of it is
// text, escaped as it is written.
type Sheet struct {
	Source                                 string // the folder or file that was looked at
	Rule                                   string // when two pictures count as near, in a sentence
	Files, Unreadable, Groups, Duplicates  int
	ShownGroups, ShownPictures, TotalInAll int // TotalInAll: the pictures of all groups
}

// A SheetGroup is a picture that is kept with those that are near it.
type SheetGroup struct {
	Number   int
	Pictures []SheetPicture // the one that is kept first
	More     int            // pictures of the group that are not shown
}

// A SheetPicture is one picture of a group.
type SheetPicture struct {
	Name    string
	Near    string // how it is near the one that is kept; "" for that one
	Thumb   Thumbnail
	Trouble string // why there is no thumbnail; "" when there is one
}

// WriteSheet writes the contact sheet as one HTML page that opens from disk: no script, nothing
// beside it and nothing asked for. Every picture is blurred until it is clicked, or focused and
// opened with Enter. It writes group by group and holds none.
func WriteSheet(w io.Writer, s Sheet, groups iter.Seq2[SheetGroup, error]) error {
	p := newPage(w, "Near-duplicates")
	s.head(p)
	for g, err := range groups {
		if err != nil {
			return fmt.Errorf("write the contact sheet: %w", err)
		}
		p.sheetGroup(g)
		if p.err != nil {
			break
		}
	}
	if err := p.close(); err != nil {
		return fmt.Errorf("write the contact sheet: %w", err)
	}
	return nil
}

func (s Sheet) head(p *page) {
	p.begin("div", at("class", "notice"), at("role", "note"))
	p.begin("p")
	p.el("strong", "The pictures can be distressing, offensive or adult.")
	p.text(" Nobody has reviewed them. Each is blurred until you click it, or go to it with Tab and press Enter; the same again blurs it.")
	p.end()
	p.end()
	p.begin("p")
	p.el("code", s.Source)
	p.textf(": %s, %d of them unreadable; %s, which hold %s.", counted(s.Files, "picture"), s.Unreadable,
		counted(s.Groups, "group"), counted(s.Duplicates, "duplicate"))
	p.end()
	p.el("p", s.Rule)
	if s.Groups == 0 {
		p.el("p", "No picture is near another one.")
		return
	}
	p.begin("p", at("class", "quiet"))
	p.textf("Shown: %d of %s in %d of %s, each as a small copy without metadata. All of them are in ", s.ShownPictures,
		counted(s.TotalInAll, "grouped picture"), s.ShownGroups, counted(s.Groups, "group"))
	p.el("code", "groups.csv")
	p.text(". The first picture of a group is the one that is kept; the others are near it, and need not be near one another.")
	p.end()
}

func (p *page) sheetGroup(g SheetGroup) {
	title := "group-" + strconv.Itoa(g.Number)
	p.begin("section", at("aria-labelledby", title))
	p.el("h2", "Group "+strconv.Itoa(g.Number), at("id", title))
	p.begin("ul", at("class", "sheet"))
	for _, picture := range g.Pictures {
		p.begin("li")
		p.sheetPicture(picture)
		p.end()
	}
	p.end()
	if g.More > 0 {
		p.el("p", "And "+counted(g.More, "more picture")+" that this page does not show.", at("class", "quiet"))
	}
	p.end()
}

func (p *page) sheetPicture(s SheetPicture) {
	p.begin("figure")
	if s.Trouble == "" {
		p.thumbnail(s.Thumb)
	} else {
		p.el("p", "no picture: "+s.Trouble, at("class", "bad"))
	}
	p.begin("figcaption")
	p.el("code", s.Name)
	p.void("br")
	if s.Near == "" {
		p.el("strong", "kept")
	} else {
		p.text(s.Near)
	}
	p.end()
	p.end()
}

// counted is n things in words.
func counted(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}
