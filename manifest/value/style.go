package value

import (
	"regexp"
	"strconv"
	"strings"
)

// A Style is how the numbers of a column are written. Its zero value has met none.
type Style struct {
	values    int
	plain     int // numbers without a sign that says how decimals are parted: 902, 1,131
	whole     int // of these, 902 and -7
	commas    int // 1,5
	pointed   int // 1.5
	thousands int // of these, 1.131
	noMeans   int // bit n is set: some of these are not the mean of n whole numbers
	decimals  int // the most digits behind the point
	fewest    int // and the fewest
	zeros     bool
	numbers   int // values that are numbers, also with commas between thousands
	grouped   int // those with such commas: 1,500 or 1,500.00
}

var (
	commaForm     = regexp.MustCompile(`^[-+]?(?:[0-9]+|[1-9][0-9]{0,2}(?:\.[0-9]{3})+),[0-9]+$`)
	wholeForm     = regexp.MustCompile(`^[-+]?[0-9]+$`)
	threeForm     = regexp.MustCompile(`^[-+]?[1-9][0-9]{0,2}(?:,[0-9]{3})+$`)
	thousandsForm = regexp.MustCompile(`^[-+]?[1-9][0-9]{0,2}\.[0-9]{3}$`)
	pointForm     = regexp.MustCompile(`^[-+]?[0-9]*\.[0-9]*(?:[eE][-+]?[0-9]+)?$`)
)

// Add adds a value.
func (s *Style) Add(text string) {
	s.values++
	s.addDecimals(text)
	if _, ok := Number(text); ok {
		s.numbers++
	} else if IsGrouped(text) {
		s.numbers, s.grouped = s.numbers+1, s.grouped+1
	}
	switch {
	case text == "" || !IsDigit(text[0]) && !strings.ContainsRune("+-.", rune(text[0])): // most texts
	case wholeForm.MatchString(text):
		s.plain, s.whole = s.plain+1, s.whole+1
	case threeForm.MatchString(text):
		s.plain++
	case commaForm.MatchString(text):
		s.commas++
	case thousandsForm.MatchString(text):
		s.pointed, s.thousands = s.pointed+1, s.thousands+1
		s.addMean(text)
	case pointForm.MatchString(text):
		s.pointed++
	}
}

// addDecimals notes how many digits a number has behind its point.
func (s *Style) addDecimals(text string) {
	n := decimalsOf(text)
	if n == 0 {
		return
	}
	if s.decimals == 0 {
		s.fewest = n
	}
	s.decimals, s.fewest = max(s.decimals, n), min(s.fewest, n)
	s.zeros = s.zeros || EndsInZero(text)
}

func decimalsOf(text string) int {
	mantissa, _, _ := strings.Cut(FoldASCII(text), "e")
	_, decimals, _ := strings.Cut(mantissa, ".")
	return len(decimals)
}

// EndsInZero reports whether a number has a zero behind its point that says nothing of its value, as 1.10 has. The zero
// of 4.0 is how programs write a whole number.
func EndsInZero(number string) bool {
	mantissa, _, _ := strings.Cut(FoldASCII(number), "e")
	return decimalsOf(number) > 1 && strings.HasSuffix(mantissa, "0")
}

// MayBeCodes reports whether numbers with a point end in zeros and do not all have the same number of decimals: 1.1 and
// 1.10 can be two codes, which are one number.
func (s *Style) MayBeCodes() bool { return s.zeros && s.fewest < s.decimals }

// groupedForm is a number with commas between thousands.
var groupedForm = regexp.MustCompile(`^[-+]?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]*)?$`)

// IsGrouped reports whether a number has commas that may part thousands.
func IsGrouped(text string) bool { return strings.Contains(text, ",") && groupedForm.MatchString(text) }

// Grouped reports whether all values are numbers, and commas stand between thousands alone.
func (s *Style) Grouped() bool { return s.grouped > 0 && s.numbers == s.values }

// DecimalComma reports whether all values are numbers, and some have a decimal comma.
func (s *Style) DecimalComma() bool { return s.commas > 0 && s.commas+s.plain == s.values }

// MayPartThousands reports whether some values have a point, and each with three digits behind it, as a point between
// thousands has. It is one where other numbers of the file have a decimal comma.
func (s *Style) MayPartThousands() bool { return s.pointed > 0 && s.pointed == s.thousands }

// PartsThousands reports whether the values are such numbers and whole ones. Decimals would have another number of
// digits somewhere, or three in all values, or be means of a few whole numbers without zeros at their ends.
func (s *Style) PartsThousands() bool {
	return s.MayPartThousands() && s.pointed+s.whole == s.values && s.whole > 0 && (s.zeros || !s.areMeans())
}

// ThreeDigits reports whether the values are such numbers alone, which can be decimals as well.
func (s *Style) ThreeDigits() bool {
	return s.MayPartThousands() && s.pointed == s.values && !s.areMeans()
}

// mostRatings is of how many whole numbers a mean is known.
const mostRatings = 12

// addMean notes of how many whole numbers a number with three digits behind its point cannot be the mean, as 1.333 and
// 1.667 are of three.
func (s *Style) addMean(text string) {
	part, _ := strconv.Atoi(text[len(text)-3:])
	for n := 2; n <= mostRatings; n++ {
		k := (part*n + 500) / 1000
		if rounded := (2000*k + n) / (2 * n); k == 0 || k == n || part != rounded && part != 1000*k/n {
			s.noMeans |= 1 << n
		}
	}
}

// areMeans reports whether all numbers with three digits behind their points can be means of as many whole numbers.
func (s *Style) areMeans() bool { return s.noMeans != 1<<(mostRatings+1)-1<<2 }

// IsThousands reports whether a number may have a point between thousands.
func IsThousands(text string) bool { return thousandsForm.MatchString(text) }
