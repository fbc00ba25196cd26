package page

import (
	"fmt"
	"strconv"
	"strings"
)

// A Chart is a figure of a page, {{template "chart" .}}: drawings one below the other, and behind them the table of
// their numbers. Labels are text of the page, and drawings are as wide as the page leaves room: places across are in
// percent, heights in pixels, so that no screen and no paper makes letters smaller. Counts and Spans make charts of
// numbers.
type Chart struct {
	Caption string   // what it shows
	Key     []string // names of the series, in the order of their colours; nil for one series
	Rows    []Row
	Table   Table // all numbers that are drawn
}

// A Row is one drawing of a chart with a label at its left and numbers at its right. A row with a Name and no Label is
// as wide as the chart.
type Row struct {
	Label, Value string // a line of Value for each bar; both are empty where the drawing needs none
	Name         string // what is drawn, for those who do not see it; empty where the text says all of it
	Height       float64
	Marks        []Mark // later ones cover earlier ones
}

// A Mark is a rectangle, a line where W or H is 0, or a text, with its style in page.css.
type Mark struct {
	Class string  // "s1" to "s7", the colours of series; "axis"; for texts "start", "middle" or "end": what stands at X
	X, W  float64 // percent of the width
	Y, H  float64 // pixels from the top; of a text Y is the line that it stands on
	Text  string
}

// A Table is the numbers behind a chart.
type Table struct {
	Head []string
	Rows [][]string // the first cell is the name of the row, the others are numbers
}

// Counts are whole numbers to draw: of some groups, each with one number for each series.
type Counts struct {
	Caption string
	Of      string   // what the groups are: "split"
	Series  []string // what is counted: "entries"
	Groups  []Group
	Edges   []string // of a histogram: the bounds between groups, both ends among them; nil for other charts
}

// A Group is one line of Counts.
type Group struct {
	Label  string
	Counts []int // by series
	All    []int // by series: what the whole length stands for; nil stands for the sum of the counts
}

// share is a number's part of the whole length, in percent.
func (g Group) share(series int) float64 {
	if g.All == nil {
		return Share(g.Counts[series], g.sum())
	}
	return Share(g.Counts[series], g.All[series])
}

func (g Group) sum() (n int) {
	for _, count := range g.Counts {
		n += count
	}
	return n
}

// lineHeight is the height of a line of text beside a bar, in pixels, as page.css has it: a bar has one line.
const lineHeight = 18.0

// Bars draws a bar for each number, its share of the group's All, those of a group one below the other.
func (c Counts) Bars() Chart {
	return c.lines(func(g Group) (row Row) {
		var values []string
		for i, n := range g.Counts {
			share := g.share(i)
			row.bar(i, 0, float64(i)*lineHeight+2, share, lineHeight-4)
			values = append(values, strings.TrimSpace(fmt.Sprintf("%s %d (%.1f\u00a0%%)", c.named(i), n, share)))
		}
		row.Value, row.Height = strings.Join(values, "\n"), float64(len(g.Counts))*lineHeight
		return row
	})
}

// Stacked draws one bar for each group, and in it the share of each number.
func (c Counts) Stacked() Chart {
	return c.lines(func(g Group) Row {
		row, left, names := Row{Value: strconv.Itoa(g.sum()), Height: lineHeight}, 0.0, []string{}
		for i, n := range g.Counts {
			share := g.share(i)
			row.bar(i, left, 1, share, lineHeight-2)
			left += share
			if n > 0 {
				names = append(names, fmt.Sprintf("%s %d", c.Series[i], n))
			}
		}
		row.Name = strings.Join(names, ", ")
		return row
	})
}

func (c Counts) lines(draw func(Group) Row) Chart {
	chart := c.chart()
	for _, g := range c.Groups {
		row := draw(g)
		row.Label = g.Label
		chart.Rows = append(chart.Rows, row)
	}
	return chart
}

// The height of Columns, in pixels: the largest number, and the lines of text above and below.
const columnHeight, textHeight = 140.0, 18.0

// Columns draws upright bars side by side, in each the numbers of a group one on the other: a histogram where there is
// one series, and a course of time where the groups are months.
func (c Counts) Columns() Chart {
	most, width, base := 1, 100/float64(max(len(c.Groups), 1)), textHeight+columnHeight
	for _, g := range c.Groups {
		most = max(most, g.sum())
	}
	row := Row{Name: c.Caption, Height: base + textHeight}
	few := len(c.Groups) <= 12 // numbers have room
	if !few {
		row.Marks = append(row.Marks, Mark{Class: "axis", Y: textHeight, W: 100},
			Mark{Class: "start", Y: textHeight - 4, Text: strconv.Itoa(most)})
	}
	for i, g := range c.Groups {
		left, top := float64(i)*width, base
		for series, n := range g.Counts {
			high := columnHeight * float64(n) / float64(most)
			top -= high
			row.bar(series, left+width/20, top, width*.9, high)
		}
		if few {
			row.Marks = append(row.Marks, Mark{Class: "middle", X: left + width/2, Y: top - 4, Text: strconv.Itoa(g.sum())})
		}
	}
	row.Marks = append(row.Marks, Mark{Class: "axis", Y: base, W: 100})
	row.ticks(c, width, base+textHeight-4)
	chart := c.chart()
	chart.Rows = []Row{row}
	return chart
}

// ticks writes below the columns what they are: all bounds of a histogram, of other groups no more than a telephone has
// room for.
func (r *Row) ticks(c Counts, width, y float64) {
	for i, edge := range c.Edges {
		class := "middle"
		switch i {
		case 0:
			class = "start"
		case len(c.Edges) - 1:
			class = "end"
		}
		r.Marks = append(r.Marks, Mark{Class: class, X: float64(i) * width, Y: y, Text: edge})
	}
	for i := 0; c.Edges == nil && i < len(c.Groups); i += (len(c.Groups) + 4) / 5 {
		r.Marks = append(r.Marks, Mark{Class: "start", X: (float64(i) + .05) * width, Y: y, Text: c.Groups[i].Label})
	}
}

// bar adds a rectangle in the colour of a series, unless there is nothing of it.
func (r *Row) bar(series int, x, y, w, h float64) {
	if w > 0 && h > 0 {
		r.Marks = append(r.Marks, Mark{Class: seriesClass(series), X: x, Y: y, W: w, H: h})
	}
}

// seriesClass is the style of a series: page.css has seven colours.
func seriesClass(i int) string { return "s" + strconv.Itoa(i%7+1) }

// named is the name of a series where there are several.
func (c Counts) named(series int) string {
	if len(c.Series) == 1 {
		return ""
	}
	return c.Series[series]
}

func (c Counts) chart() Chart {
	chart := Chart{Caption: c.Caption, Table: Table{Head: append([]string{c.Of}, c.Series...)}}
	if len(c.Series) > 1 {
		chart.Key = c.Series
	}
	for _, g := range c.Groups {
		cells := []string{g.Label}
		for _, n := range g.Counts {
			cells = append(cells, strconv.Itoa(n))
		}
		chart.Table.Rows = append(chart.Table.Rows, cells)
	}
	return chart
}

// A Heatmap is a table, {{template "heatmap" .}}, in which a cell is the darker the larger its share is.
type Heatmap struct {
	Caption       string
	Rows, Columns []string
	Counts        [][]int     // by row and column
	Shares        [][]float64 // 0 to 1
}
