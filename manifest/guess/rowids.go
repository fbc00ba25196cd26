package guess

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"rehydrate/manifest"
	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// namesOfSums are the names that spreadsheets and statistics give rows, which have the form of ids.
var namesOfSums = set(`total totals subtotal sum mean average avg median mode min max std stdev count n total1 grandtotal
	test header
	summe gesamt gesamtsumme mittelwert mittel durchschnitt anzahl totale moyenne somme suma media promedio soma total gemiddelde totaal srednia`)

// namesRow reports whether a text of the column is its own name or that of a row of sums.
func (c *surveyed) namesRow(text string) bool {
	return len(text) < 16 && (namesOfSums[value.FoldASCII(text)] || value.FoldASCII(text) == value.FoldASCII(c.name))
}

// refuseRows judges the ids that were taken: a header that stands again, as where files were put behind each other, and
// rows of sums are an error, for old posts can have such ids. What looks like ids of something else is said.
func (d *guesser) refuseRows(ctx context.Context, source *manifest.Source) error {
	id := d.column(d.columnOf("id"))
	if err := d.judgeNames(id); err != nil {
		return err
	}
	if images := id.all(formGallery); images { // none is that of the first image, which an id alone means
		d.lookAt("the images in the ids of column %s never are 0: images are counted from 0 here", table.Quote(id.name))
	}
	if id.forms[formRow] == 0 {
		return nil
	}
	rows, numbered := 0, 0 // ids with a digit
	headers, sums := new(manifest.Problems), new(manifest.Problems)
	without := d.without()
	err := eachRow(ctx, source, func(in *manifest.Rows, cells []table.Cell) {
		if without.Is != nil && without.Is(without.Texts(in.Columns(), cells)) {
			return
		}
		at := slices.Index(in.Columns(), id.name)
		text := strings.TrimSpace(cells[at].Plain())
		rows++
		if strings.ContainsAny(text, value.Digits) {
			numbered++
		}
		var p manifest.Problem
		p.File, p.Line, p.Column = in.Place(at)
		switch {
		case !d.bare && !d.NoHeader &&
			value.FoldASCII(text) == value.FoldASCII(id.name): // a file without a header can repeat none
			p.Message, p.Hint = "the row repeats the header",
				"take it out of the file; several files can be named with several --manifest"
			headers.Add(p)
			sums.Add(p)
		case id.namesRow(text):
			p.Message = table.Quote(text) + " seems to be the name of a row, such as one of sums, and not the id of a post"
			p.Hint = "take the row out of the file; if it is a post, write its id as t3_" + value.FoldASCII(text)
			sums.Add(p)
		}
	})
	if err != nil {
		return err
	}
	if 2*numbered > rows { // else words may be the ids of the first posts
		return sums.Err()
	}
	return headers.Err()
}

// counterForm is a word and a number: user1, img_001.
var counterForm = pattern(`^(?:t3_)?([a-z]+)([0-9]+)$`)

// namesOfRows are words that people count rows, images and people by.
var namesOfRows = set(`answer caption case comment data doc document entry example file id image img index instance item label meme no nr num number obs
	photo pic picture post q question record row s sample subject text tweet u user video`)

// judgeNames says where ids look like those of something else than posts. Ids that count rows or images are an error,
// unless --id names their column.
func (d *guesser) judgeNames(id *surveyed) error {
	const least = 12 // ids of which a form in all of them is no chance
	words, all := make(map[string]bool), id.values()
	steps, last, mixed := 0, 0, ""
	for _, text := range all {
		found := counterForm().FindStringSubmatch(value.FoldASCII(text))
		if found == nil {
			words[""] = true
		} else {
			words[found[1]] = true
			n, _ := strconv.Atoi(found[2])
			if n == last+1 {
				steps++
			}
			last = n
		}
		if isMixed(text) && mixed == "" {
			mixed = text
		}
	}
	var word string
	for word = range words {
	}
	counted := len(words) == 1 && word != "" && len(all) > 2
	name := table.Quote(id.name)
	switch {
	case counted && namesOfRows[word] && d.ID == "":
		at := id.places[0]
		return table.One(&manifest.Problem{File: at.file, Line: at.line, Column: at.column,
			Message: fmt.Sprintf("column %s has names of rows, such as %s, and not ids of posts", name,
				table.Quote(all[0])),
			Hint: "name the column of the ids or permalinks of the posts: rehydrate init --id COLUMN"})
	case counted && (namesOfRows[word] || len(word) > 3 && len(all) >= least && steps >= len(all)-1):
		d.lookAt("ids of column %s look like names of rows, such as %s: they were taken for ids of posts", name,
			table.Quote(all[0]))
	case mixed != "":
		d.lookAt("ids of column %s mix capital and small letters, such as %s, as those of Imgur do and those of posts do not: "+
			"they were taken in small letters", name, table.Quote(mixed))
	case len(all) >= 2*least && !slices.ContainsFunc(all,
		func(text string) bool { return !value.IsHex(value.FoldASCII(text), 6) }):
		d.lookAt("ids of column %s have nothing but the digits of hex, such as %s: they were taken for ids of posts",
			name, table.Quote(all[0]))
	}
	return nil
}

// isMixed reports whether a plain id has capital and small letters.
func isMixed(text string) bool {
	return manifest.PostID(value.FoldASCII(text)).Valid() && strings.IndexFunc(text, unicode.IsUpper) >= 0 &&
		strings.IndexFunc(text, unicode.IsLower) >= 0
}
