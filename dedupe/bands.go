package dedupe

import (
	"math"
	"math/bits"
)

// A band is a run of adjacent bits of the hash. Two hashes are compared by way of a band when they differ in at most
// reach of its bits.
type band struct {
	shift, width, reach int
}

func (b band) of(h uint64) uint64 { return h >> b.shift & (1<<b.width - 1) }

// metBefore reports whether one of the bands has brought together hashes that differ in the bits of diff.
func metBefore(diff uint64, bands []band) bool {
	for _, b := range bands {
		if bits.OnesCount64(b.of(diff)) <= b.reach {
			return true
		}
	}
	return false
}

// planBands returns the bands by which n hashes are compared with m the soonest. Hashes that no band brings together
// differ in reach+1 bits of each or more, and the sum of reach+1 over all bands is radius+1: none within the radius is
// lost. None compare each with each.
func planBands(n, m, radius int) []band {
	if n*m <= 1<<18 { // planning would take longer
		return nil
	}
	best, least := []band(nil), float64(n)*float64(m)
	bands := make([]band, 0, 8)
	for count := 1; count <= min(cap(bands), radius+1); count++ {
		far := radius%count + 1 // so many bands reach one bit further than the others
		for wide := 1; wide <= min(64/far, maxWidth); wide++ {
			bands = bands[:0]
			cost, shift := 0.0, 0
			for i := range count {
				b := band{shift: shift, width: wide, reach: radius / count}
				if i >= far {
					b.width, b.reach = min((64-shift)/(count-i), maxWidth), radius/count-1
				}
				shift += b.width
				bands = append(bands, b)
				cost += b.cost(n, m)
			}
			if cost < least {
				best, least = append(best[:0], bands...), cost
			}
		}
	}
	return best
}

// maxWidth is the largest width of a band, whose table has four bytes for each value.
const maxWidth = 20

// cost is the time that a band takes of uniform hashes, in comparisons.
func (b band) cost(n, m int) float64 {
	values, near, choose := math.Ldexp(1, b.width), 0.0, 1.0
	for k := range b.reach + 1 {
		near += choose
		choose *= float64(b.width-k) / float64(k+1)
	}
	return 10*float64(n+m) + values + near*(8*min(float64(n), values)+float64(n)*float64(m)/values)
}

// flipsWithin lists the values of width bits with at most reach ones, except 0.
func flipsWithin(width, reach int) []uint32 {
	var flips []uint32
	for v := uint32(1); v < 1<<width; v++ {
		if bits.OnesCount32(v) <= reach {
			flips = append(flips, v)
		}
	}
	return flips
}
