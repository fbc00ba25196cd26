package dataset

import (
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"
)

// RereadData is what a re-reading changed. All of its texts are escaped as they are written.
type RereadData struct {
	Release string
	Tool    string    // version of the program
	Made    time.Time // when the page was
	Read    int       // images that were read again
	Gained  int       // words, over all texts
	Lost    int
	// Texts has every changed text, Outcomes every entry whose outcome is another now, both in
	// manifest order.
	Texts    []RereadText
	Outcomes []RereadOutcome
}

// A RereadText says which words of an entry's text came and went: none where they only moved.
type RereadText struct {
	ID           string
	Gained, Lost []string
}

// A RereadOutcome is an entry whose outcome or reason changed, each with its reason.
type RereadOutcome struct{ ID, Before, After string }

// WriteReread writes what a re-reading changed as one HTML page that opens from disk: no script,
// nothing beside it and nothing asked for. It holds words of posts, which no purge finds there.
func WriteReread(w io.Writer, d RereadData) error {
	p := newPage(w, "What reading again changed: "+d.Release)
	p.el("p", "This file holds words of posts as they were when it was made. A later purge does not reach it: delete it when it has been read.", at("class", "notice"))
	p.begin("p")
	p.textf("Read again: %s. Changed texts: %d; words gained %d, lost %d. Entries with another outcome: %d.",
		counted(d.Read, "image"), len(d.Texts), d.Gained, d.Lost, len(d.Outcomes))
	p.end()
	p.el("p", fmt.Sprintf("Made %s by rehydrate %s.", d.Made.UTC().Format("2006-01-02 15:04 MST"), d.Tool), at("class", "quiet"))
	p.part("outcomes", "Entries with another outcome", func() { p.rereadOutcomes(d.Outcomes) })
	p.part("texts", "Changed texts", func() { p.rereadTexts(d.Texts) })
	if err := p.close(); err != nil {
		return fmt.Errorf("write what reading again changed: %w", err)
	}
	return nil
}

// part writes a section with a heading.
func (p *page) part(id markup, title string, write func()) {
	p.begin("section", at("id", string(id)), at("aria-labelledby", string(id)+"-title"))
	p.el("h2", title, at("id", string(id)+"-title"))
	write()
	p.end()
}

func (p *page) rereadOutcomes(changes []RereadOutcome) {
	if len(changes) == 0 {
		p.el("p", "None.")
		return
	}
	type way struct{ before, after string }
	count := map[way]int{}
	var ways []way // in the order of their first entry
	for _, c := range changes {
		w := way{c.Before, c.After}
		if count[w] == 0 {
			ways = append(ways, w)
		}
		count[w]++
	}
	p.table("By outcome", []column{{head: "before"}, {head: "now"}, {"entries", true}}, func(yield func([]string) bool) {
		for _, w := range ways {
			if !yield([]string{w.before, w.after, strconv.Itoa(count[w])}) {
				return
			}
		}
	})
	p.table("Each entry", []column{{head: "entry"}, {head: "before"}, {head: "now"}}, func(yield func([]string) bool) {
		for _, c := range changes {
			if !yield([]string{c.ID, c.Before, c.After}) {
				return
			}
		}
	})
}

func (p *page) rereadTexts(texts []RereadText) {
	if len(texts) == 0 {
		p.el("p", "None.")
		return
	}
	p.el("p", "Words that only moved are neither gained nor lost.", at("class", "quiet"))
	p.table("Words of each text that came and went", []column{{head: "entry"}, {head: "lost"}, {head: "gained"}}, rereadRows(texts))
}

func rereadRows(texts []RereadText) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for _, t := range texts {
			if !yield([]string{t.ID, strings.Join(t.Lost, " "), strings.Join(t.Gained, " ")}) {
				return
			}
		}
	}
}
