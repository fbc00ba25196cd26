package dataset

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"rehydrate/labels"
)

// A bar is one line of a bar chart.
type bar struct {
	label  string
	n      int     // entries; charts of shares use share instead
	share  float64 // percent
	second float64 // of the other set, in charts of pairs
	note   string  // what stands behind the bar; n when ""
}

// A barChart shows bars from left to right, one below the other.
type barChart struct {
	title string
	unit  string
	of    int // what a bar of full length means; the longest bar when 0
	bars  []bar
	pairs [2]string // names of the two sets where each line has two bars
}

// The measures of charts, in units of the picture.
const (
	chartWidth  = 760
	labelWidth  = 280
	noteWidth   = 120
	lineHeight  = 24
	mostLetters = 38 // of a label, before it is cut
)

// barChart draws a chart. A screen reader gets its title and the lines as text.
func (p *page) barChart(c barChart) {
	paired := c.pairs[0] != ""
	top := 4
	if paired {
		top = lineHeight + 4
	}
	p.figure(c.title, chartWidth, top+lineHeight*len(c.bars)+4, c.describe())
	if paired {
		for i, class := range []string{"bar", "other"} {
			x := labelWidth + i*140
			p.rect(class, x, 4, 12, 12)
			p.svgText(c.pairs[i], x+18, 15, "start")
		}
	}
	full := float64(c.of)
	for _, b := range c.bars {
		full = max(full, b.length(c), b.second)
	}
	scale := float64(chartWidth-labelWidth-noteWidth) / max(full, 1e-9)
	for i, b := range c.bars {
		y := top + i*lineHeight
		p.svgText(cutLabel(b.label), labelWidth-10, y+16, "end")
		width := int(b.length(c)*scale + .5)
		end := width
		if paired {
			p.rect("bar", labelWidth, y+3, width, 8)
			second := int(b.second*scale + .5)
			p.rect("other", labelWidth, y+12, second, 8)
			end = max(width, second)
		} else {
			p.rect("bar", labelWidth, y+4, width, lineHeight-8)
		}
		p.svgText(b.text(), labelWidth+end+6, y+16, "start")
	}
	p.endFigure()
}

func (b bar) length(c barChart) float64 {
	if c.unit == "" {
		return float64(b.n)
	}
	return b.share
}

func (b bar) text() string {
	if b.note != "" {
		return b.note
	}
	return strconv.Itoa(b.n)
}

// describe is the chart in words.
func (c barChart) describe() string {
	var lines []string
	for _, b := range c.bars {
		lines = append(lines, b.label+": "+b.text())
	}
	if c.pairs[0] != "" {
		return fmt.Sprintf("For each label %s, then %s. %s", c.pairs[0], c.pairs[1], strings.Join(lines, "; "))
	}
	return strings.Join(lines, "; ")
}

// figure begins a chart with its caption; endFigure ends it.
func (p *page) figure(title string, width, height int, description string) {
	p.begin("figure")
	p.el("figcaption", title)
	p.begin("div", at("class", "scroll"))
	p.begin("svg", at("viewBox", fmt.Sprintf("0 0 %d %d", width, height)), at("width", strconv.Itoa(width)), at("height", strconv.Itoa(height)),
		at("role", "img"), at("aria-label", title+". "+description))
}

func (p *page) endFigure() {
	p.end()
	p.end()
	p.end()
}

func (p *page) rect(class string, x, y, width, height int) {
	p.el("rect", "", at("class", class), at("x", strconv.Itoa(x)), at("y", strconv.Itoa(y)), at("width", strconv.Itoa(width)), at("height", strconv.Itoa(height)))
}

func (p *page) svgText(text string, x, y int, anchor string) {
	p.el("text", text, at("x", strconv.Itoa(x)), at("y", strconv.Itoa(y)), at("text-anchor", anchor))
}

// cutLabel shortens a label that is longer than its place. The text beside the chart has it whole.
func cutLabel(s string) string {
	if utf8.RuneCountInString(s) <= mostLetters {
		return s
	}
	return string([]rune(s)[:mostLetters-1]) + "…"
}

// A heatmap shows how often the labels of two categories stand together.
type heatmap struct {
	title         string
	pair          labels.Pair
	rows, columns []string // codes
}

// The measures of heatmaps.
const (
	cellWidth  = 58
	cellHeight = 28
	headWidth  = 60
)

// heatmap draws a heatmap, and its numbers as a table below for those who do not see it.
func (p *page) heatmap(h heatmap) {
	shares := h.pair.Shares()
	p.figure(h.title, headWidth+cellWidth*len(h.columns)+4, cellHeight*(len(h.rows)+1)+4, "The table below has the numbers")
	for j, code := range h.columns {
		p.svgText(cutCode(code), headWidth+j*cellWidth+cellWidth/2, 18, "middle")
	}
	for i, code := range h.rows {
		y := (i + 1) * cellHeight
		p.svgText(cutCode(code), headWidth-8, y+19, "end")
		for j := range h.columns {
			x := headWidth + j*cellWidth
			p.begin("g")
			p.el("title", fmt.Sprintf("%s with %s: %d entries, %.0f %%", code, h.columns[j], h.pair.Counts[i][j], 100*shares[i][j]))
			p.el("rect", "", at("class", "cell"), at("x", strconv.Itoa(x)), at("y", strconv.Itoa(y)), at("width", strconv.Itoa(cellWidth)), at("height", strconv.Itoa(cellHeight)),
				at("fill-opacity", strconv.FormatFloat(.7*shares[i][j], 'f', 2, 64)))
			p.el("text", fmt.Sprintf("%.0f %%", 100*shares[i][j]), at("class", "halo"), at("text-anchor", "middle"),
				at("x", strconv.Itoa(x+cellWidth/2)), at("y", strconv.Itoa(y+19)))
			p.end()
		}
	}
	p.endFigure()
	columns := []column{{head: ""}}
	for _, code := range h.columns {
		columns = append(columns, column{code, true})
	}
	p.begin("details")
	p.el("summary", "The numbers as a table")
	p.table(h.title+", entries", columns, func(yield func([]string) bool) {
		for i, code := range h.rows {
			row := []string{code}
			for _, n := range h.pair.Counts[i] {
				row = append(row, strconv.Itoa(n))
			}
			if !yield(row) {
				return
			}
		}
	})
	p.end()
}

// cutCode shortens a label's code to its place.
func cutCode(s string) string {
	if utf8.RuneCountInString(s) <= 7 {
		return s
	}
	return string([]rune(s)[:6]) + "…"
}
