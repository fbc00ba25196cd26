package state

import (
	"slices"
	"strconv"
	"strings"

	"rehydrate/internal/word"
	"rehydrate/pipeline/language"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// ReadingFingerprint names what makes a stored reading: the engine and, where names are masked, the rules for that.
func ReadingFingerprint(engine string, p policy.Policy) string {
	// The text as it was before masking is not kept, so a reading by other rules can only be made again.
	if !p.Text.MaskNames {
		return engine
	}
	return engine + masking()
}

// masking is how the fingerprint of a reading ends whose names are masked by the present rules.
func masking() string { return masked + strconv.Itoa(language.MaskVersion) }

const masked = " names masked "

// MaskedOtherwise reports whether the names of a stored reading were masked by other rules than those of the policy, so
// that a run reads the image again.
func MaskedOtherwise(r workspace.Reading, p policy.Policy) bool {
	engine, _, _ := strings.Cut(r.Fingerprint, masked)
	return r.Fingerprint != ReadingFingerprint(engine, p)
}

// ShownReading is a stored reading as it may be shown.
func ShownReading(r workspace.Reading, p policy.Policy) workspace.Reading {
	if !p.Text.MaskNames || strings.HasSuffix(r.Fingerprint, masking()) {
		return r
	}
	// One from before the policy masked names, or before the present rules, is masked as the next one will be.
	stored := r
	r.Words = slices.Clone(r.Words)
	MaskReading(&r)
	if r.Masked == stored.Masked { // the words show none, or are not at hand
		r.Text, r.Confidence = MaskText(stored.Text), stored.Confidence
	}
	return r
}

// MaskReading masks the names in the words of a reading and makes its text of what is left.
func MaskReading(r *workspace.Reading) {
	// A stray mark between two halves of a name hides it from the words with it, or from those without.
	for {
		n := maskWords(r.Words, true) + maskWords(r.Words, false)
		if n == 0 {
			break
		}
		r.Masked += n
	}
	if r.Masked == 0 {
		return
	}
	r.Words = slices.DeleteFunc(r.Words, func(w word.Word) bool { return w.Text == "" })
	r.Text, r.Confidence = word.Join(r.Words)
}

// maskWords masks names in words, line by line, and returns how many it found. The rest of a name becomes "".
func maskWords(words []word.Word, acceptedOnly bool) int {
	var lines [][]string
	var index [][]int
	last := -1
	for i, w := range words {
		if acceptedOnly && !w.Accepted {
			continue
		}
		if w.Line != last {
			lines, index, last = append(lines, nil), append(index, nil), w.Line
		}
		at := len(lines) - 1
		lines[at], index[at] = append(lines[at], w.Text), append(index[at], i)
	}
	masked, n := language.MaskNames(lines)
	for l, line := range masked {
		for k, text := range line {
			words[index[l][k]].Text = text
		}
	}
	return n
}

// MaskText masks the names in a text whose words are not at hand.
func MaskText(text string) string {
	var lines [][]string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, strings.Fields(line))
	}
	masked, _ := language.MaskNames(lines)
	out := make([]string, len(masked))
	for i, words := range masked {
		out[i] = strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
	}
	return strings.Join(out, "\n")
}
