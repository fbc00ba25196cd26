package language

import (
	_ "embed"
	"strings"
	"unicode/utf8"
)

// weights are what each n-gram of letters says about its word: a signed byte a slot, positive for English.
// data/train.go makes them; data/NOTICE says of what.
//
//go:generate go run ./data
//go:embed data/ngrams.bin
var weights []byte

// weightsDigest is the SHA-256 of the weights.
const weightsDigest = "20f6ee772c6daf484730244498b894a6cc8553dc5607d6ed89870350cf087964"

const (
	// Slots is the number of weights, a power of two. n-grams share slots: with a quarter
	// as many, twice as many foreign texts of four words pass.
	Slots = 1 << 17
	// Scale is the weight of one unit of log-odds.
	Scale = 32
	// longestGram: with n-grams of up to 4 letters 1.8 times as many pass, of up to 3 letters 5 times.
	longestGram = 5
	// wordLimit is what one word can say, in units of log-odds. A single name does not prove a language.
	wordLimit = 4
)

// Features returns the slots of a plain token: those of its n-grams, with marks for
// where the word begins and ends, and that of the word as a whole.
func Features(token string) []uint32 {
	s := "^" + token + "$"
	var slots []uint32
	for n := 1; n <= longestGram; n++ {
		for i := 0; i+n <= len(s); i++ {
			slots = append(slots, slot(s[i:i+n]))
		}
	}
	if len(s) > longestGram { // a shorter word is an n-gram itself
		slots = append(slots, slot(s))
	}
	return slots
}

// slot is FNV-1a, folded.
func slot(gram string) uint32 {
	h := uint32(2166136261)
	for i := range len(gram) {
		h = (h ^ uint32(gram[i])) * 16777619
	}
	return (h ^ h>>15) % Slots
}

// tokenScore is the log-odds of a plain token being English, in units of 1/Scale.
func tokenScore(token string) int {
	sum := 0 // of whole numbers, so that every machine gives the same
	for _, s := range Features(token) {
		sum += int(int8(weights[s]))
	}
	return min(max(sum, -wordLimit*Scale), wordLimit*Scale)
}

// unstretched brings NOOOOO and SOOO back to words of the dictionary, where cutting their runs of three and more equal
// letters to two or one gives any.
func (f *Filter) unstretched(token string) string {
	for _, short := range []string{token, cutRuns(token, 2), cutRuns(token, 1)} { // GOOOOD is GOOD before GOD
		if len(short) > 1 && f.has(short) {
			return short
		}
	}
	return token
}

// cutRuns cuts runs of three and more equal letters to keep.
func cutRuns(token string, keep int) string {
	var out strings.Builder
	for token != "" {
		letter, _ := utf8.DecodeRuneInString(token)
		rest := strings.TrimLeft(token, string(letter))
		run := token[:len(token)-len(rest)]
		if size := utf8.RuneLen(letter); len(run) > 2*size { // two stay: English has GOOD and FALL
			run = run[:keep*size]
		}
		out.WriteString(run)
		token = rest
	}
	return out.String()
}
