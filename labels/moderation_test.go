package labels

import (
	"math"
	"testing"
)

// TestWilson has the interval of 81 of 263 that Newcombe (1998) prints, and the ends.
func TestWilson(t *testing.T) {
	for _, c := range []struct {
		flagged, n int
		low, high  float64
	}{{81, 263, .2553, .3662}, {15, 148, .0624, .1605}, {0, 20, 0, .1611}, {1, 29, .0061, .1718}} {
		r := NewRate(c.flagged, c.n)
		if math.Abs(*r.Low-c.low) > 5e-5 || math.Abs(*r.High-c.high) > 5e-5 {
			t.Errorf("%d of %d: %v to %v, want %v to %v", c.flagged, c.n, *r.Low, *r.High, c.low, c.high)
		}
	}
	for n := 1; n < 500; n++ {
		if all, none := NewRate(n, n), NewRate(0, n); *all.High != 1 || *none.Low != 0 {
			t.Errorf("of %d: all to %v, none from %v", n, *all.High, *none.Low)
		}
	}
}
