package page

import (
	"bytes"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var shapes = regexp.MustCompile(`<(rect|line|text) class="(s\d|axis|start|middle|end)" ([^>]*?)/?>([^<]*)`)

// TestCharts: what is drawn is as long, as high and at the place that its numbers say, and the numbers stand in a
// table.
func TestCharts(t *testing.T) {
	c := Counts{Caption: "C", Of: "group", Series: []string{"one", "two"},
		Groups: []Group{{Label: "a", Counts: []int{3, 1}, All: []int{4, 10}},
			{Label: "b", Counts: []int{0, 2}, All: []int{4, 0}}}}
	shares := c
	shares.Groups = []Group{{Label: "a", Counts: []int{3, 1}}, {Label: "b", Counts: []int{0, 2}},
		{Label: "none", Counts: []int{0, 0}}}
	histogram := Counts{Caption: "C", Of: "group", Series: []string{"one"}, Edges: []string{"0", "5", "more"},
		Groups: []Group{{Label: "a", Counts: []int{10}}, {Label: "b", Counts: []int{5}}}}
	months := Counts{Of: "month", Series: []string{"one"}}
	for range 20 {
		months.Groups = append(months.Groups, Group{Label: "m", Counts: []int{7}})
	}
	tests := []struct {
		name  string
		chart Chart
		want  []string // parts of the text of the page
		drawn []string
	}{
		{"bars", c.Bars(), []string{"a one 3 (75.0 %) two 1 (10.0 %)", "b one 0 (0.0 %) two 2 (200.0 %)",
			"group one two a 3 1 b 0 2"}, []string{
			`rect s1 x="0.00%" y="2.0" width="75.00%" height="14.0"`,
			`rect s2 x="0.00%" y="20.0" width="10.00%" height="14.0"`,
			`rect s2 x="0.00%" y="20.0" width="200.00%" height="14.0"`}},
		{"stacked", shares.Stacked(), []string{"a 4", "b 2", "none 0"}, []string{
			`rect s1 x="0.00%" y="1.0" width="75.00%" height="16.0"`,
			`rect s2 x="75.00%" y="1.0" width="25.00%" height="16.0"`,
			`rect s2 x="0.00%" y="1.0" width="100.00%" height="16.0"`}},
		{"columns", histogram.Columns(), []string{"group one a 10 b 5"}, []string{
			`rect s1 x="2.50%" y="18.0" width="45.00%" height="140.0"`, `text middle x="25.00%" y="14.0"10`,
			`rect s1 x="52.50%" y="88.0" width="45.00%" height="70.0"`, `text middle x="75.00%" y="84.0"5`,
			`line axis x1="0.00%" y1="158.0" x2="100.00%" y2="158.0"`,
			`text start x="0.00%" y="172.0"0`, `text middle x="50.00%" y="172.0"5`, `text end x="100.00%" y="172.0"more`}},
		{"columns on columns", shares.Columns(), []string{"C one two"}, []string{
			`rect s1 x="1.67%" y="53.0" width="30.00%" height="105.0"`,
			`rect s2 x="1.67%" y="18.0" width="30.00%" height="35.0"`, `text middle x="16.67%" y="14.0"4`,
			`rect s2 x="35.00%" y="88.0" width="30.00%" height="70.0"`, `text middle x="50.00%" y="84.0"2`,
			`text middle x="83.33%" y="154.0"0`,
			`line axis x1="0.00%" y1="158.0" x2="100.00%" y2="158.0"`,
			`text start x="1.67%" y="172.0"a`, `text start x="35.00%" y="172.0"b`, `text start x="68.33%" y="172.0"none`}},
		{"nothing", Counts{Series: []string{"one"}}.Columns(), nil,
			[]string{`line axis x1="0.00%" y1="158.0" x2="100.00%" y2="158.0"`}},
	}
	tmpl := Parse(parse(`{{template "chart" .}}`), "x.html")
	write := func(c Chart) string {
		var b bytes.Buffer
		if err := Write(&b, tmpl, c); err != nil {
			t.Fatal(err)
		}
		_, body, _ := strings.Cut(b.String(), "<main>")
		return body
	}
	for _, test := range tests {
		body := write(test.chart)
		text := html.UnescapeString(strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(body,
			" ")), " "))
		for _, want := range test.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in %q", test.name, want, text)
			}
		}
		var drawn []string
		_, body, _ = strings.Cut(body, "<div") // after the key
		for _, m := range shapes.FindAllStringSubmatch(body, -1) {
			drawn = append(drawn, strings.Join(m[1:4], " ")+strings.TrimSpace(m[4]))
		}
		if diff := cmp.Diff(test.drawn, drawn); diff != "" {
			t.Errorf("%s (-want +drawn):\n%s", test.name, diff)
		}
	}
	// Each drawing has a name, or a text beside it that says the same.
	if body := write(shares.Stacked()); !strings.Contains(body, `role="img" aria-label="one 3, two 1"`) ||
		!strings.Contains(body, `<rect class="s2" width="12"`) {
		t.Errorf("the parts of a bar are not named:\n%s", body)
	}
	if body := write(histogram.Columns()); !strings.Contains(body, `role="img" aria-label="C"`) ||
		strings.Contains(body, `class="key"`) {
		t.Errorf("the histogram has no name, or a key without a choice:\n%s", body)
	}
	// Of twenty months no more are written than a narrow page has room for, and the largest number stands at its line.
	if body := write(months.Columns()); strings.Count(body, ">m</text>") != 5 || strings.Count(body, ">7</text>") != 1 {
		t.Errorf("the axis of twenty months:\n%s", body)
	}
}

// TestHeatmap: a cell is as dark as its share.
func TestHeatmap(t *testing.T) {
	var b bytes.Buffer
	h := Heatmap{Caption: "C", Rows: []string{"r"}, Columns: []string{"a", "b"}, Counts: [][]int{{1, 3}},
		Shares: [][]float64{{.25, .75}}}
	if err := Write(&b, Parse(parse(`{{template "heatmap" .}}`), "x.html"), h); err != nil ||
		!strings.Contains(b.String(), `style="--share: 0.75">75 % <small>3</small>`) {
		t.Errorf("%v\n%s", err, b.String())
	}
}
