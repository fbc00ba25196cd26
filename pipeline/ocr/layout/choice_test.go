package layout

import (
	"image"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/internal/word"
)

// TestChoose has a line that was merged, and what other strips read.
func TestChoose(t *testing.T) {
	l := testLexicon("THE BOARD WILL DECIDE AFTER PEOPLE CAN TO IN UNDERWEAR PANICS")
	at := func(look int, text string, confidence float64, x0, x1 int) candidate {
		c := newWord(look, look, text, confidence, x0, 100, x1, 120)
		c.listed = l.listed(text)
		return c
	}
	line := []candidate{at(0, "THE", 95, 0, 60), at(0, "BOARD", 95, 70, 170), at(0, "WILL", 95, 300, 380)}
	for _, tt := range []struct {
		name   string
		merged []candidate // after the line
		others []candidate
		want   string
	}{
		{"nothing else", nil, nil, "THE BOARD WILL"},
		{"a word where none is", nil, []candidate{at(2, "AFTER", 58, 180, 290)}, "THE BOARD AFTER WILL"},
		{"an unsure one", nil, []candidate{at(2, "AFTER", 57, 420, 530)}, "THE BOARD WILL"},
		{"an unsure one that two looks agree on", nil,
			[]candidate{at(2, "AFTER", 50, 420, 530), at(3, "AFTER", 50, 420, 530)},
			"THE BOARD WILL AFTER"},
		{"a long one, even less sure", nil, []candidate{at(2, "UNDERWEAR", 10, 420, 530),
			at(3, "UNDERWEAR", 5, 420, 530)},
			"THE BOARD WILL UNDERWEAR"},
		{"an unsure one next to a word", nil, []candidate{at(2, "TO", 20, 180, 220)}, "THE BOARD TO WILL"},
		{"away from all words", nil, []candidate{at(2, "TO", 20, 401, 430)}, "THE BOARD WILL"},
		{"not in the dictionary", nil, []candidate{at(2, "XYZZY", 95, 420, 530)}, "THE BOARD WILL"},
		{"where a word is", nil, []candidate{at(2, "PEOPLE", 95, 70, 170)}, "THE BOARD WILL"},
		{"in the place of one that was not accepted", []candidate{at(1, "Aftr", 70, 420, 530)},
			[]candidate{at(2, "AFTER", 80, 420, 530)},
			"THE BOARD WILL AFTER"},
		{"in the place of one that the dictionary lacks", []candidate{at(1, "PEOPUE", 86, 420, 530)},
			[]candidate{at(2, "PEOPLE", 40, 420, 530)},
			"THE BOARD WILL PEOPLE"},
		{"but not of one that was read well", []candidate{at(1, "PEOPUE", 99, 420, 530)},
			[]candidate{at(2, "PEOPLE", 15, 420, 530)},
			"THE BOARD WILL PEOPUE"},
		{"nor with letters less", []candidate{at(1, "PEOPUEX", 86, 420, 530)},
			[]candidate{at(2, "PEOPLE", 95, 420, 530)},
			"THE BOARD WILL PEOPUEX"},
		{"in the place of two", []candidate{at(1, "Ait", 90, 420, 480), at(1, "Cr", 90, 485, 530)},
			[]candidate{at(2, "AFTER", 80, 420, 530)},
			"THE BOARD WILL AFTER"},
		{"a listed word stays", []candidate{at(1, "CAN", 90, 420, 480), at(1, "xq", 90, 485, 530)},
			[]candidate{at(2, "PANICS", 95, 420, 530)},
			"THE BOARD WILL CAN xq"},
		{"a long word that the dictionary lacks, read alike", nil,
			[]candidate{at(1, "XYZZYS", 40, 420, 530), at(2, "XYZZYS", 1, 420, 530)},
			"THE BOARD WILL XYZZYS"},
		{"by looks that see the same", nil, []candidate{at(0, "XYZZYS", 60, 420, 530), at(1, "XYZZYS", 60, 420, 530)},
			"THE BOARD WILL"},
		{"a shorter one", nil, []candidate{at(1, "XYZZY", 60, 420, 530), at(2, "XYZZY", 60, 420, 530)},
			"THE BOARD WILL"},
		{"a year", nil, []candidate{at(0, "2020!", 40, 420, 530), at(1, "2020", 1, 420, 530)}, "THE BOARD WILL 2020!"},
		{"a number of three digits", nil, []candidate{at(0, "202", 70, 420, 530), at(1, "202", 70, 420, 530)},
			"THE BOARD WILL"},
		{"the best of two", nil, []candidate{at(2, "WILL", 60, 420, 530), at(3, "AFTER", 80, 420, 530)},
			"THE BOARD WILL AFTER"},
	} {
		merged := append(line[:3:3], tt.merged...)
		r := newReading(l.choose(merged, append(merged[:len(merged):len(merged)], tt.others...)), image.Point{}, l)
		testkit.Same(t, tt.name, tt.want, r.Text)
	}
}

// TestRepairs: a word that no single reading gave as it is says so, and has its readings.
func TestRepairs(t *testing.T) {
	l := testLexicon("PEOPLE THE WILL IT HAS")
	at := func(look int, text string, confidence float64, x0, x1 int) []candidate {
		return collect([]word.Raw{{Text: text, Confidence: confidence, Box: image.Rect(x0, 0, x1, 20), Block: look}},
			nil, look,
			image.Pt(900, 100), image.Pt(900, 100), l)
	}
	var heard []candidate
	for _, words := range [][]candidate{at(0, "THE", 95, 0, 60), at(0, "PEOPUE", 90, 70, 180),
		at(0, "ITHAS", 90, 300, 380)} {
		heard = append(heard, words...)
	}
	merged := heard[:len(heard):len(heard)]
	for _, words := range [][]candidate{at(1, "PEOPLE", 60, 72, 180), at(2, "WILL", 80, 190, 290),
		at(3, "VVILL", 80, 190, 290)} {
		heard = append(heard, words...)
	}
	type repair struct {
		Text     string
		Repair   word.Repair
		Readings []string
	}
	var got []repair
	for _, w := range newReading(l.choose(merged, heard), image.Point{}, l).Words {
		got = append(got, repair{w.Text, w.Repair, w.Readings})
	}
	want := []repair{{"THE", "", nil}, {"PEOPLE", word.Mended, []string{"PEOPUE", "PEOPLE"}},
		{"WILL", word.Filled, []string{"WILL", "VVILL"}}, {"IT", word.Mended, []string{"ITHAS"}},
		{"HAS", word.Mended, []string{"ITHAS"}}}
	testkit.Same(t, "repairs", want, got)
}
