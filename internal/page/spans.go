package page

import "strconv"

// Spans are numbers with their spread, all on one scale: box plots, or points with their intervals.
type Spans struct {
	Caption  string
	Series   []string
	Groups   []SpanGroup
	From, To float64 // the scale; from the least to the greatest number where both are equal
	Table    Table
}

// A SpanGroup is one line of Spans.
type SpanGroup struct {
	Label, Value string  // the text beside the drawing, which says all of it: a line of Value for each span
	Spans        []*Span // by series; nil draws nothing
}

// A Span is a line from Low to High with a box from Q1 to Q3 and a mark at Middle; a box without a width is a point.
type Span struct{ Low, Q1, Middle, Q3, High float64 }

const pointWidth = 0.8 // percent

// Chart draws the spans of a group one below the other, and the ends of the scale below all of them.
func (s Spans) Chart() Chart {
	chart := Chart{Caption: s.Caption, Table: s.Table}
	if len(s.Series) > 1 {
		chart.Key = s.Series
	}
	from, to := s.scale()
	place := func(v float64) float64 { return 100 * (v - from) / (to - from) }
	for _, g := range s.Groups {
		row := Row{Label: g.Label, Value: g.Value, Height: lineHeight * float64(len(g.Spans))}
		for i, span := range g.Spans {
			if span == nil {
				continue
			}
			top := lineHeight * float64(i)
			row.Marks = append(row.Marks, Mark{Class: "axis", X: place(span.Low), Y: top + lineHeight/2,
				W: place(span.High) - place(span.Low)})
			left, width := place(span.Q1), place(span.Q3)-place(span.Q1)
			if width < pointWidth {
				left, width = min(max(place(span.Middle)-pointWidth/2, 0), 100-pointWidth), pointWidth
			}
			row.bar(i, left, top+2, width, lineHeight-4)
			if width > pointWidth {
				row.Marks = append(row.Marks, Mark{Class: "mid", X: place(span.Middle), Y: top + 2, H: lineHeight - 4})
			}
		}
		chart.Rows = append(chart.Rows, row)
	}
	ends := Row{Height: textHeight, Marks: []Mark{{Class: "axis", Y: 1, W: 100},
		{Class: "start", Y: textHeight - 4, Text: strconv.FormatFloat(from, 'g', 4, 64)},
		{Class: "end", X: 100, Y: textHeight - 4, Text: strconv.FormatFloat(to, 'g', 4, 64)}}}
	chart.Rows = append(chart.Rows, ends)
	return chart
}

func (s Spans) scale() (from, to float64) {
	if s.From != s.To {
		return s.From, s.To
	}
	first := true
	for _, g := range s.Groups {
		for _, span := range g.Spans {
			switch {
			case span == nil:
			case first:
				from, to, first = span.Low, span.High, false
			default:
				from, to = min(from, span.Low), max(to, span.High)
			}
		}
	}
	if from == to { // one number: in the middle
		return from - 1, to + 1
	}
	return from, to
}
