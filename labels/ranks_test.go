package labels

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// rankTest tests groups of numbers.
func rankTest(t *testing.T, groups [][]float64) GroupTest {
	t.Helper()
	var codes []string
	var entries []manifest.Entry
	f := Feature{Name: "f"}
	for g, values := range groups {
		codes = append(codes, fmt.Sprint("G", g+1))
		for _, v := range values {
			entries = append(entries, manifest.Entry{Labels: [][]int{{g}}})
			f.Values = append(f.Values, v)
		}
	}
	tests, err := CompareGroups(oneCategory(manifest.Single, strings.Join(codes, " ")), "c", entries, []Feature{f})
	testkit.OK(t, err)
	return tests[0]
}

// parseGroups reads groups of numbers, parted by semicolons.
func parseGroups(t *testing.T, text string) (groups [][]float64) {
	t.Helper()
	for group := range strings.SplitSeq(text, ";") {
		values := []float64{}
		for field := range strings.FieldsSeq(group) {
			v, err := strconv.ParseFloat(field, 64)
			testkit.OK(t, err)
			values = append(values, v)
		}
		groups = append(groups, values)
	}
	return groups
}

func yesNo(yes, of int) (values []float64) {
	for i := range of {
		v := 0.0
		if i < yes {
			v = 1
		}
		values = append(values, v)
	}
	return values
}

// TestRankVectors has the examples of SciPy's and R's documentation, of Zar's book, and values worked by hand. A pair
// is its groups, z, p and p after Bonferroni; 9 stands for what the source does not have.
func TestRankVectors(t *testing.T) {
	const skip = 9
	sprays := "10 7 20 14 14 12 10 23 17 20 14 13; 11 17 21 11 16 14 17 17 19 21 7 13; 0 1 7 2 3 1 2 1 3 0 1 4;" +
		"3 5 12 6 4 3 5 5 5 5 2 4; 3 5 3 5 3 6 1 1 3 2 6 4; 11 9 15 22 15 16 13 10 26 26 24 13"
	ponds := "7.68 7.69 7.70 7.70 7.72 7.73 7.73 7.76; 7.71 7.73 7.74 7.74 7.78 7.78 7.80 7.81; 7.74 7.75 7.77 7.78 7.80 7.81 7.84;" +
		"7.71 7.71 7.74 7.79 7.81 7.85 7.87 7.91"
	type pair struct{ a, b, z, p, bonferroni float64 }
	for name, c := range map[string]struct {
		groups       [][]float64
		h, freedom   float64
		p, tolerance float64 // of p; relative for the others
		epsilon, eta float64
		pairs        []pair
	}{
		"SciPy, kruskal 1": {parseGroups(t, "1 3 5 7 9; 2 4 6 8 10"), 0.2727272727272734, 1, 0.6015081344405895, 1e-12,
			skip, skip, nil},
		"SciPy, kruskal 2": {parseGroups(t, "1 1 1; 2 2 2; 2 2"), 7, 2, 0.0301973834223185, 1e-12, skip, skip, nil},
		"SciPy, mstats.kruskal": {parseGroups(t, "6.3 5.4 5.7 5.2 5.0; 6.9 7.0 6.1 7.9; 7.2 6.9 6.1 6.5"),
			7.113812154696133, 2, 0.028526948491942164, 1e-12, skip, skip,
			[]pair{{1, 2, -2.437355, skip, .0443854}, {1, 3, -2.053520, skip, .120067}, {2, 3, 0.364138, skip, 1}}},
		"R, kruskal.test": {parseGroups(t, "2.9 3.0 2.5 2.6 3.2; 3.8 2.7 4.0 2.4; 2.8 3.4 3.7 2.2 2.0"), 0.7714285714, 2,
			0.6799647736, 1e-9, skip, skip,
			[]pair{{1, 2, -0.641427, skip, skip}, {1, 3, 0.226779, skip, skip}, {2, 3, 0.855236, skip, skip}}},
		"Zar's ponds": {parseGroups(t, ponds), 11.943539277024662, 3, 0.007579094973, 1e-11, skip, skip,
			[]pair{{1, 2, -2.137006, .0325975, .195585}, {1, 3, -2.949349, .00318444, .0191067},
				{1, 4, -2.991809, .00277330, .0166398},
				{2, 3, -0.884805, .376262, 1}, {2, 4, -0.854803, .392660, 1}, {3, 4, 0.058987, .952962, 1}}},
		"R, InsectSprays": {parseGroups(t, sprays), 54.691344622371, 5, 1.51084444e-10, 1e-17, skip, skip,
			[]pair{{1, 2, skip, skip, 1}, {1, 3, skip, skip, 2.70799e-05}, {1, 4, skip, skip, .0273527},
				{1, 5, skip, skip, .0017679}, {1, 6, skip, skip, 1},
				{2, 3, skip, skip, 5.462e-06}, {2, 4, skip, skip, .00904373}, {2, 5, skip, skip, .000470584},
				{2, 6, skip, skip, 1}, {3, 4, skip, skip, 1},
				{3, 5, skip, skip, 1}, {3, 6, skip, skip, 3.33446e-06}, {4, 5, skip, skip, 1}, {4, 6, skip, skip, .00639694},
				{5, 6, skip, skip, .000312019}}},
		"yes or no, by FigSIM's severity": {[][]float64{yesNo(40, 161), yesNo(50, 189), yesNo(110, 339), yesNo(45, 163),
			yesNo(35, 167), yesNo(6, 30)},
			9.279964555889, 5, 0.098405010238, 1e-11, .008854928, .004103513,
			[]pair{{3, 5, 2.727954, .006373, .095593}, {1, 3, -1.783091, .074572, 1}}},
		"many ties": {parseGroups(t, "0 0 1 1 2; 0 1 1 2 2 3; 2 2 3 3 3"), 7.145833333333, 2, 0.028073852084, 1e-11,
			.476388889, .395833333,
			[]pair{{1, 2, -1.046124, skip, .886511}, {1, 3, -2.644191, skip, .0245659}, {2, 3, -1.715643, skip, .258682}}},
	} {
		got := rankTest(t, c.groups).Result
		near := func(what string, got, want, tolerance float64) {
			if want != skip && math.Abs(got-want) > tolerance {
				t.Errorf("%s: %s = %.15g, want %.15g", name, what, got, want)
			}
		}
		near("H", got.H, c.h, 1e-9)
		near("degrees of freedom", float64(got.Freedom), c.freedom, 0)
		near("p", got.P, c.p, c.tolerance)
		near("epsilon squared", got.EpsilonSquared, c.epsilon, 1e-9)
		near("eta squared", *got.EtaSquared, c.eta, 1e-9)
		for _, want := range c.pairs {
			for _, p := range got.Pairs {
				if p.A == fmt.Sprint("G", want.a) && p.B == fmt.Sprint("G", want.b) {
					near("z of "+p.A+p.B, p.Z, want.z, 1e-6)
					near("p of "+p.A+p.B, p.P, want.p, 1e-6)
					near("Bonferroni of "+p.A+p.B, p.PBonferroni, want.bonferroni, want.bonferroni*1e-5+1e-12)
				}
			}
		}
	}
}

// TestRanksOfPython holds 1,000 random tables, with ties and empty groups, against the definitions in
// testdata/ranks.py.
func TestRanksOfPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		testkit.Lacking(t, "python3", err)
	}
	random := rand.New(rand.NewPCG(1, 1))
	var tables [][][]float64
	for range 1000 {
		groups := make([][]float64, 2+random.IntN(6))
		different := 2 + random.IntN(30) // values, so that some tables have few ties
		for g := range groups {
			groups[g] = []float64{}
			for range random.IntN(12) {
				groups[g] = append(groups[g], float64(random.IntN(different))/8-1)
			}
		}
		groups[0], groups[1] = append(groups[0], -2), append(groups[1], 7) // which makes each a table that can be tested
		tables = append(tables, groups)
	}
	in, err := json.Marshal(tables)
	testkit.OK(t, err)
	cmd := exec.CommandContext(t.Context(), python, "testdata/ranks.py")
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	testkit.OK(t, err)
	var want [][]float64
	testkit.OK(t, json.Unmarshal(out, &want))
	for i, groups := range tables {
		r := rankTest(t, groups).Result
		got := []float64{r.H, r.P, r.EpsilonSquared}
		for _, p := range r.Pairs {
			got = append(got, p.Z, p.P)
		}
		if len(got) != len(want[i]) {
			t.Fatalf("table %d has %d numbers, Python %d", i, len(got), len(want[i]))
		}
		for j := range got {
			if math.Abs(got[j]-want[i][j]) > 1e-9 {
				t.Fatalf("table %d, number %d = %v, Python has %v: %v", i, j, got[j], want[i][j], groups)
			}
		}
	}
}

// TestSummaryOfGroups: quartiles are NumPy's of 1 2 3 4 and whiskers end at values; what is missing is counted, and
// what cannot be tested says why.
func TestSummaryOfGroups(t *testing.T) {
	nan := math.NaN()
	got := rankTest(t, [][]float64{{4, nan, 1, 3, 2}, {9, 9, 9, 9, 100, nan, nan}, {}})
	eta := (got.Result.H - 1) / 7
	want := GroupTest{Feature: "f", N: 9, Missing: 3, Groups: []Group{
		{"G1", "g1", 4, 1, true, &Summary{2.5, 2.5, 1, 1.75, 2.5, 3.25, 4, 1, 4}},
		{"G2", "g2", 5, 2, false, &Summary{27.2, 7, 9, 9, 9, 9, 100, 9, 9}},
		{"G3", "g3", 0, 0, true, nil}},
		Result: &RankResult{H: got.Result.H, Freedom: 1, P: got.Result.P, PHolm: got.Result.P,
			EpsilonSquared: got.Result.H / 8, EtaSquared: &eta,
			Pairs: []PairTest{{"G1", "G2", got.Result.Pairs[0].Z, got.Result.P, got.Result.P}}}}
	// Of two groups Dunn's test is Kruskal's and Wallis's.
	if z := got.Result.Pairs[0].Z; math.Abs(z*z-got.Result.H) > 1e-12 || z > 0 ||
		math.Abs(got.Result.Pairs[0].P-got.Result.P) > 1e-12 {
		t.Errorf("z = %v, H = %v, p = %v and %v", z, got.Result.H, got.Result.Pairs[0].P, got.Result.P)
	}
	want.Result.Pairs[0].P, want.Result.Pairs[0].PBonferroni = got.Result.Pairs[0].P, got.Result.Pairs[0].PBonferroni
	testkit.Same(t, "test", want, got)
	for untested, groups := range map[string][][]float64{"fewer than two groups have values": {{1, 2, 3}, {nan}},
		"all values are equal": {{1, 1}, {1}}} {
		if got := rankTest(t, groups); got.Untested != untested || got.Result != nil {
			t.Errorf("%v: %q, %v", groups, got.Untested, got.Result)
		}
	}
	if got := rankTest(t, [][]float64{{1}, {2}}); got.Result.EtaSquared != nil || !got.Groups[0].Few {
		t.Errorf("a value each: %+v", got)
	}
	// A count that is 0 or 1 in this sample is a count all the same.
	for _, yesNo := range []bool{false, true} {
		tests, err := CompareGroups(oneCategory(manifest.Single, "A B"), "c", golden([]int{0}, []int{1}),
			[]Feature{{"f", []float64{0, 1}, yesNo}})
		if err != nil || tests[0].YesNo != yesNo {
			t.Errorf("declared %t: %+v, %v", yesNo, tests, err)
		}
	}
}

// TestGroupsOfMulti sets the entries with a label beside those without it; Holm corrects over all tests.
func TestGroupsOfMulti(t *testing.T) {
	schema := oneCategory(manifest.Multi, "A B NONE")
	entries := golden([]int{0}, []int{0, 1}, []int{2}, []int{1}, nil)
	tests, err := CompareGroups(schema, "c", entries, []Feature{{Name: "f", Values: []float64{1, 2, 3, 4, 5}}})
	testkit.OK(t, err)
	var got []string
	for _, x := range tests {
		got = append(got, fmt.Sprintf("%s: %s %d %v, %s %d %v", x.Label, x.Groups[0].Code, x.Groups[0].N,
			x.Groups[0].Values.Mean,
			x.Groups[1].Code, x.Groups[1].N, x.Groups[1].Values.Mean))
	}
	testkit.Same(t, "groups", []string{"A: with A 2 1.5, without A 2 3.5", "B: with B 2 3, without B 2 2",
		"NONE: with NONE 1 3, without NONE 3 2.3333333333333335"}, got)
	if _, err := CompareGroups(schema, "d", entries, nil); err == nil {
		t.Error("a category that is not there was taken")
	}
	if _, err := CompareGroups(schema, "c", entries, []Feature{{Name: "f"}}); err == nil {
		t.Error("a feature without values was taken")
	}
	of := []GroupTest{{Result: &RankResult{P: .04}}, {}, {Result: &RankResult{P: .01}}, {Result: &RankResult{P: .03}},
		{Result: &RankResult{P: .9}}}
	holm(of) // R: p.adjust(c(.04, .01, .03, .9), "holm") = .09 .04 .09 .9
	for i, want := range map[int]float64{0: .09, 2: .04, 3: .09, 4: .9} {
		if !near(of[i].Result.PHolm, want) {
			t.Errorf("Holm's p of %v = %v, want %v", of[i].Result.P, of[i].Result.PHolm, want)
		}
	}
}

// TestGroupsOfFigSIM makes features for the labels of FigSIM's 1,049 memes: one whose planning memes lie 1.2 standard
// deviations higher, one that says yes more often for deaths, and one of noise. Over 200 seeds Dunn's test finds the
// pairs that differ, and a pair that does not in at most 5 of 100.
func TestGroupsOfFigSIM(t *testing.T) {
	r, entries := figsim(t)
	place, planning, death := 1, 3, 5
	found, wrong := map[string]int{}, map[string]int{}
	const seeds = 200
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(seed, 0))
		features := []Feature{{Name: "shifted"}, {Name: "yes"}, {Name: "noise"}}
		for _, e := range entries {
			shift, often := 0.0, 0.2
			switch e.Labels[place][0] {
			case planning:
				shift = 1.2
			case death:
				often = 0.7
			}
			answer := 0.0
			if random.Float64() < often {
				answer = 1
			}
			for i, v := range []float64{random.NormFloat64() + shift, answer, math.Round(random.NormFloat64() * 3)} {
				if random.IntN(20) == 0 {
					v = math.NaN()
				}
				features[i].Values = append(features[i].Values, v)
			}
		}
		tests, err := CompareGroups(r.Schema, "severity", entries, features)
		testkit.OK(t, err)
		for _, test := range tests {
			differs := map[string]string{"shifted": "SS3", "yes": "SS5"}[test.Feature]
			any := false
			for _, p := range test.Result.Differ(0.05) {
				if p.A == differs || p.B == differs {
					found[test.Feature+" "+p.A+"-"+p.B]++
				} else {
					any = true
				}
			}
			if any {
				wrong[test.Feature]++
			}
		}
	}
	t.Logf("found %v, wrong %v", found, wrong)
	if len(found) != 10 {
		t.Errorf("found %d pairs, want the 5 of planning and the 5 of death: %v", len(found), found)
	}
	for pair, n := range found {
		if n < seeds*95/100 {
			t.Errorf("%s was found with %d of %d seeds", pair, n, seeds)
		}
	}
	for feature, n := range wrong {
		if n > seeds*5/100 {
			t.Errorf("%s: a pair that does not differ was found with %d of %d seeds", feature, n, seeds)
		}
	}
}

// TestLargeNumbers: whole numbers that no 64-bit number tells apart are not said to be equal.
func TestLargeNumbers(t *testing.T) {
	for value, says := range map[float64]string{9007199254740992: "as numbers of 64 bits", 7: "all values are equal"} {
		got := testRanks([]float64{value, value, value}, make([]Group, 2), func(i int) int { return i % 2 })
		if !strings.Contains(got.Untested, says) || (value == 7) != (got.Untested == says) {
			t.Errorf("%v: %q", value, got.Untested)
		}
	}
}
