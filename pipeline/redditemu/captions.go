package redditemu

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed embedded/captions.txt
var captionLines string

// captions holds, for each language, upper texts and then as many lower ones. Any two English ones of one half differ
// by at least four words: only planted copies are near-duplicates.
var captions = sync.OnceValue(func() map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(captionLines) {
		language, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[language] = append(all[language], text)
	}
	return all
})

// Captions returns how many different English captions there are.
func Captions() int {
	half := len(captions()["en"]) / 2
	return half * half
}

// Caption returns English caption i, counted round: 8 to 14 words, a line break between its two halves.
func Caption(i int) string {
	all, n := captions()["en"], Captions()
	half := len(all) / 2
	i = (i%n + n) % n
	// Both halves move with i, so that neighbours share neither.
	return all[i%half] + "\n" + all[half+(i+i/half)%half]
}

// languages are those besides English that there are captions in.
var languages = []string{"de", "es", "fr", "it", "pt", "ru"}

// captionIn picks a caption by seed.
func captionIn(language string, seed uint64) (string, error) {
	switch {
	case language == "" || language == "en":
		return Caption(int(Hash64("caption", fmt.Sprint(seed)) % uint64(Captions()))), nil
	case language == "salad":
		return salad(seed), nil
	case !slices.Contains(languages, language):
		return "", fmt.Errorf("no captions in language %q; there are en, salad, %s", language,
			strings.Join(languages, ", "))
	}
	all := captions()[language]
	h, half := Hash64("caption", language, fmt.Sprint(seed)), uint64(len(all)/2)
	return all[h%half] + "\n" + all[half+h/half%half], nil
}

// salad is text that an engine can read letter by letter and that no dictionary holds.
func salad(seed uint64) string {
	// Without vowels no run of letters is a word.
	var words []string
	for i := range 8 {
		h := Hash64("salad", fmt.Sprint(seed), fmt.Sprint(i))
		word := ""
		for range 6 {
			word += string("bcdfghkmnpqrtvwxz"[h%17])
			h /= 17
		}
		words = append(words, word)
	}
	return strings.Join(words[:4], " ") + "\n" + strings.Join(words[4:], " ")
}
