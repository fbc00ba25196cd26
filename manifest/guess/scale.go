package guess

import (
	"math"
	"slices"
	"strings"

	"rehydrate/manifest"
	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// scaleWords are labels of which each is more or less than the others.
var scaleWords = strings.Fields("none low mid medium moderate high mild severe extreme " +
	"never rarely sometimes often always")

// IsScale reports whether labels may be the steps of a scale: three or more whole numbers, or words such as low, medium
// and high. Of the numbers from the lowest to the highest half at least are labels, for somebody may have given none of
// the others.
func IsScale(labels []string) bool {
	if len(labels) < 3 {
		return false
	}
	lowest, highest, words := math.Inf(1), math.Inf(-1), 0
	for _, label := range labels {
		n, isNumber := value.Number(label)
		switch {
		case slices.Contains(scaleWords, strings.TrimPrefix(value.Fold(label), "very ")):
			words++
		case !isNumber || n != math.Trunc(n) || isCode(label):
			return false
		default:
			lowest, highest = min(lowest, n), max(highest, n)
		}
	}
	return words == len(labels) || words == 0 && highest-lowest <= float64(2*(len(labels)-1))
}

// lookAtScale asks about a category with one label a cell whose labels may have an order, which no column says.
func (d *guesser) lookAtScale(c *surveyed, category *manifest.Category) {
	labels := codes(category.Labels)
	if category.Kind != manifest.Single || !IsScale(labels) {
		return
	}
	order := ""
	if _, isNumber := value.Number(labels[0]); !isNumber {
		order = ", and write its labels from the lowest to the highest"
	}
	d.lookAt(`column %s has the labels %s: if they are a scale, set kind = "ordinal" in release.toml%s`,
		table.Quote(c.name), manifest.List(labels), order)
}
