package language

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
)

// englishList is the dictionary: american-english of the Debian package wamerican
// 2020.12.07-2. data/NOTICE says how it was made, and has its licence.
//
//go:embed data/english.txt.gz
var englishList []byte

// functionWordList has, for each language, its commonest small words.
//
//go:embed data/function-words.txt
var functionWordList string

// The SHA-256 of the plain dictionary, in which Knows looks words up, and of the list of function words.
const (
	DictionaryDigest    = "d682f66d20c54c1f3c8c9a22a0b10db23b4b98fd2dad4cab6841edef16c6c440"
	functionWordsDigest = "aa401f53e84581746e0621809f40cd52bdd52ead9d71157c7387c1ebb59c4c5c"
)

// New unpacks the lists: make one Filter for a run. The error says that they are not those this package was built for.
func New() (*Filter, error) {
	// It takes some 20 ms and 4 MB, so a program that judges nothing should not pay for it at its start.
	return load(englishList, functionWordList, weights)
}

// load reads the packed dictionary, and lines of "code: WORD WORD..." where those that start with # are comments.
func load(packed []byte, functionWords string, weights []byte) (*Filter, error) {
	var dictionary []byte
	if r, err := gzip.NewReader(bytes.NewReader(packed)); err == nil {
		dictionary, _ = io.ReadAll(r) // what is cut short has another digest
	}
	for _, list := range []struct {
		name    string
		content []byte
		want    string
	}{
		{"dictionary", dictionary, DictionaryDigest},
		{"list of function words", []byte(functionWords), functionWordsDigest},
		{"n-gram model", weights, weightsDigest},
	} {
		if got := fmt.Sprintf("%x", sha256.Sum256(list.content)); got != list.want {
			return nil, fmt.Errorf("english filter: the %s has digest %s, want %s: build again from a clean checkout",
				list.name, got, list.want)
		}
	}
	f := &Filter{strings.Fields(string(dictionary)), map[string][]string{}}
	for line := range strings.Lines(functionWords) {
		code, words, _ := strings.Cut(line, ":")
		for w := range strings.FieldsSeq(words) { // none in a comment: it has no colon
			f.languages[w] = append(f.languages[w], code)
		}
	}
	return f, nil
}

// Knows reports whether a word that OCR read is English by the dictionary, whatever its case, with the punctuation
// around it left away: DON'T, "Hello," and x-ray are. Where hyphens or slashes join several, all must be.
func (f *Filter) Knows(word string) bool {
	// Digits are not trimmed, so that no word with one is known.
	around := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	word = strings.TrimFunc(apostrophes.Replace(word), around)
	longest := 0
	for part := range strings.FieldsFuncSeq(strings.ToUpper(word), func(r rune) bool { return r == '-' || r == '/' }) {
		if !f.has(part) {
			return false
		}
		longest = max(longest, len(part))
	}
	return longest > 1 // the dictionary has every single letter, and OCR reads them into anything
}

// has looks a token up.
func (f *Filter) has(token string) bool {
	_, found := slices.BinarySearch(f.dictionary, token)
	return found
}

// english is the code of English in the list of function words.
const english = "en"

// Plain takes the accents off a token of Tokens: the function words and the model's n-grams are written so.
func Plain(token string) string { return plain.Replace(token) }

// plain takes the accents off upper-case letters, as the function words are written.
// Memes in capitals mostly lack them, and OCR with an English model does not read them.
var plain = strings.NewReplacer(accents(
	"A", "ÁÀÂÃÄÅĂĄẢẠẤẦẨẪẬẮẰẲẴẶ", "AE", "Æ", "C", "ÇĆČ", "D", "ĐÐ", "E", "ÉÈÊËĘĚẺẼẸẾỀỂỄỆ", "G", "Ğ",
	"I", "ÍÌÎÏİĨỈỊ", "L", "Ł", "N", "ÑŃŇ", "O", "ÓÒÔÕÖØŐỎỌỐỒỔỖỘƠỚỜỞỠỢ", "OE", "Œ", "S", "ŚŞȘŠ",
	"T", "ŢȚŤ", "U", "ÚÙÛÜŰŨỦỤƯỨỪỬỮỰ", "Y", "ÝỲŶỶỸỴ", "Z", "ŹŻŽ")...)

// accents turns pairs of a plain letter and its accented ones into pairs of old and new.
func accents(pairs ...string) []string {
	var oldNew []string
	for i := 0; i < len(pairs); i += 2 {
		for _, r := range pairs[i+1] {
			oldNew = append(oldNew, string(r), pairs[i])
		}
	}
	return oldNew
}
