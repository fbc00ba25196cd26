package value

import (
	"regexp"
	"strings"
)

// A Style is how the numbers of a column are written. Its zero value has met none.
type Style struct {
	values    int
	plain     int // numbers without a sign that says how decimals are parted: 902, 1,131
	commas    int // 1,5
	pointed   int // 1.5
	thousands int // of these, 1.131
	decimals  int // the most digits behind the point
	fewest    int // and the fewest
	zeros     bool
	numbers   int // values that are numbers, also with commas between thousands
	grouped   int // those with such commas: 1,500 or 1,500.00
}

var (
	commaForm     = regexp.MustCompile(`^[-+]?(?:[0-9]+|[1-9][0-9]{0,2}(?:\.[0-9]{3})+),[0-9]+$`)
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
	case IsDigits(text), threeForm.MatchString(text):
		s.plain++
	case commaForm.MatchString(text):
		s.commas++
	case thousandsForm.MatchString(text):
		s.pointed, s.thousands = s.pointed+1, s.thousands+1
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

// IsThousands reports whether a number may have a point between thousands.
func IsThousands(text string) bool { return thousandsForm.MatchString(text) }
