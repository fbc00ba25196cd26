package language

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/internal/word"
	"rehydrate/manifest"
)

const policyThreshold = .6

func newFilter(t testing.TB) *Filter {
	t.Helper()
	f, err := New()
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return f
}

// read makes words of a text as a faultless OCR would.
func read(text string) []word.Word {
	var words []word.Word
	for _, w := range strings.Fields(text) {
		words = append(words, word.Word{Text: w, Confidence: 95})
	}
	return words
}

func TestJudge(t *testing.T) {
	f := newFilter(t)
	passes := manifest.Outcome("")
	for _, test := range []struct {
		text    string
		outcome manifest.Outcome
		reason  manifest.Reason
	}{
		{"", passes, ReasonNoText},
		{"?! 2020 -- 100%", passes, ReasonNoText},
		{"WOW", passes, ReasonNoText},
		{"good dogs", passes, ""},                       // eight letters, two words
		{"THE DOG ATE THE HOT DOG", passes, ""},         // three letters a word
		{"Donaudampfschifffahrt", passes, ReasonNoText}, // a word alone, however long
		{"O M G I A M S O H A P P Y", passes, ReasonNoText},
		{"U.S.A.F. N.A.S.A.", passes, ReasonNoText}, // letters enough, but no token
		{"When you finally get the joke", passes, ""},
		{"WHEN YOU FINALLY GET THE JOKE", passes, ""},
		{"DON’T YOU `EVER' DO THAT", passes, ""},
		{"presidential debate", passes, ""},
		// Two Spanish function words, and dictionary and model both for English.
		{"LA LA LAND garden house window picture table blorp", passes, ""},
		{"café société for everyone", passes, ""},
		{"yall gonna yeet dat bruh but you and the squad are not", passes, ""}, // slang, carried by function words
		{"LMAO NGL BRUH", passes, ""},
		// slang that no dictionary has: the model alone
		{"SOOOOO TIRED", passes, ""},
		{"NOOOOO MY PIZZA PLEEEEASE", passes, ""},
		// Three words and a split vote are kept, four or no vote are not.
		{"la fiesta grande", passes, ReasonShort},
		{"la fiesta muy grande", manifest.NotEnglish, ReasonForeignWords},
		{"zwlszcz brknt", manifest.Unreadable, ReasonLowHit},
		// A pattern that was read as letters.
		{"EE EEE OE SEE EE EES EEE", passes, ReasonNoText},
		{"TT OE SEA ON AN WAN RY IT", passes, ReasonNoText},
		{"LA LA LAND", passes, ReasonNoText},
		{"Cuando no entiendes nada de lo que dice el profesor", manifest.NotEnglish, ReasonForeignWords},
		{"CUANDO NO ENTIENDES NADA DE LO QUE DICE EL PROFESOR", manifest.NotEnglish, ReasonForeignWords},
		{"QU'EST-CE QUE C'EST", manifest.NotEnglish, ReasonForeignWords},
		{"Когда ты наконец понял шутку", manifest.NotEnglish, ReasonOtherScript},
		{"Όταν επιτέλους καταλαβαίνεις", manifest.NotEnglish, ReasonOtherScript},
		{"当你终于 明白了这个笑话的意思", manifest.NotEnglish, ReasonOtherScript},
		{"rtfj klwpx zzqv mnbw qqrt", manifest.Unreadable, ReasonLowHit},
		// A quarter of the tokens in the dictionary is not noise, less is.
		{"rtfj klwpx zzqv house", manifest.NotEnglish, ReasonLowHit},
		{"rtfj klwpx zzqv mnbw house", manifest.Unreadable, ReasonLowHit},
		{"rtfj klwpx zzqv mnbw house door", manifest.NotEnglish, ReasonLowHit},
	} {
		got := f.Judge(read(test.text), policyThreshold)
		if got.Outcome != test.outcome || got.Reason != test.reason {
			t.Errorf("Judge(%q) = %+v, want outcome %q, reason %q", test.text, got, test.outcome, test.reason)
		}
	}
}

func TestJudgeNumbers(t *testing.T) {
	f := newFilter(t)
	words := []word.Word{
		{Text: "WHEN", Confidence: 96}, {Text: "you're", Confidence: 60}, {Text: "a", Confidence: 99},
		{Text: "two-faced", Confidence: 88}, {Text: "brrrrt", Confidence: 75}, {Text: "él", Confidence: 80},
		{Text: "QUE", Confidence: 80}, {Text: "dropped", Confidence: 59.9}, {Text: "dropped", Confidence: math.NaN()},
		{Text: "dropped", Confidence: -1},
	}
	want := Verdict{Letters: 28, Words: 6, Tokens: 7, Hit: 4. / 7, English: 2, Foreign: 2, Language: "es",
		Score: 8.3125, Votes: Votes{Dictionary: VoteEnglish, Model: VoteEnglish}}
	got := f.Judge(words, 4./7) // the threshold is included
	testkit.Same(t, "Judge", want, got)
	if v := f.Judge(words, .58); v.Votes.Dictionary != VoteOther {
		t.Errorf("above the share of words that it has, the dictionary votes %q", v.Votes.Dictionary)
	}
	slices.Reverse(words)
	testkit.Same(t, "the order of the words changes the verdict", got, f.Judge(words, 4./7))
}

// TestMost: of languages with as many function words it is the one with the lower code, whatever the
// order of the map is.
func TestMost(t *testing.T) {
	for range 20 {
		if n, code := most(map[string]int{"pt": 2, "es": 2, "de": 1, "it": 2, "fr": 2}); n != 2 || code != "es" {
			t.Fatalf("most = %d of %s, want 2 of es", n, code)
		}
	}
}

// TestVotes holds how the three votes are counted.
func TestVotes(t *testing.T) {
	const en, no, none = VoteEnglish, VoteOther, VoteNone
	for _, test := range []struct {
		votes   Votes // dictionary, model, function words
		english bool
		against manifest.Reason
	}{
		{Votes{en, en, en}, true, ""}, {Votes{en, en, none}, true, ""}, {Votes{en, en, no}, true, ""},
		{Votes{en, no, en}, true, ""}, {Votes{no, en, en}, true, ""}, {Votes{no, en, none}, true, ""},
		{Votes{en, no, none}, false, ReasonForeignSpelling}, {Votes{en, no, no}, false, ReasonForeignWords},
		{Votes{no, en, no}, false, ReasonForeignWords}, {Votes{no, no, en}, false, ReasonLowHit},
		{Votes{no, no, none}, false, ReasonLowHit}, {Votes{no, no, no}, false, ReasonForeignWords},
	} {
		if got := test.votes.english(); got != test.english {
			t.Errorf("%+v for English: %v, want %v", test.votes, got, test.english)
		}
		if got := test.votes.against(); !test.english && got != test.against {
			t.Errorf("%+v: reason %q, want %q", test.votes, got, test.against)
		}
	}
}

// TestCast holds the bars of the votes, each at its edge.
func TestCast(t *testing.T) {
	const en, no = VoteEnglish, VoteOther
	for v, want := range map[Verdict]Votes{
		{Hit: .6, Score: -1}:                       {en, en, VoteNone},
		{Hit: .59, Score: -1.01}:                   {no, no, VoteNone},
		{Hit: 1, Score: 1, English: 2, Foreign: 1}: {en, en, en},
		{Hit: 0, Score: 1, English: 1, Foreign: 2}: {no, en, no},
		{Hit: 0, Score: 1, English: 2, Foreign: 2}: {no, en, VoteNone},
	} {
		if got := v.cast(policyThreshold); got != want {
			t.Errorf("%+v casts %+v, want %+v", v, got, want)
		}
	}
}

func TestUnstretched(t *testing.T) {
	f := newFilter(t)
	for stretched, as := range map[string]string{"NOOOOO THE PIZZAAAA": "NO THE PIZZA",
		"SOOOO COOOOOL TODAYYY": "SO COOL TODAY"} {
		if got, want := f.Judge(read(stretched), 1).Votes,
			f.Judge(read(as), 1).Votes; got != want || got.Dictionary != VoteEnglish {
			t.Errorf("%s: %+v; %s: %+v, want the same votes", stretched, got, as, want)
		}
	}
	for token, want := range map[string]string{
		"SOOOOO": "SO", "COOOOL": "COOL", "PLEEEEEASE": "PLEASE", "NOOO": "NO", "GOOOOOD": "GOOD", "YEEEEESSSSS": "YES",
		"EEE": "EEE", "ZZZZBRRR": "ZZZZBRRR", "GOOD": "GOOD", "ÉÉÉ": "ÉÉÉ", "": "",
	} {
		if got := f.unstretched(token); got != want {
			t.Errorf("unstretched(%q) = %q, want %q", token, got, want)
		}
	}
}

// TestTokenScore holds which way the model leans, on words that no other list decides.
func TestTokenScore(t *testing.T) {
	for _, word := range []string{"LMAO", "DOGGO", "COULDVE", "SHOWERTHOUGHTS", "HOMEWORK", "FRIENDZONED"} {
		if got := tokenScore(Plain(word)); got <= 0 {
			t.Errorf("tokenScore(%s) = %d, want English", word, got)
		}
	}
	for _, word := range []string{"VOITURE", "GEBURTSTAG", "ŁADOWARKĘ", "ZAMANLAR", "KESEHATAN", "MAKARAAN", "COZINHA",
		"FLYGPLATS", "XKQZVW", "OIUAEI"} {
		if got := tokenScore(Plain(word)); got >= 0 {
			t.Errorf("tokenScore(%s) = %d, want another language, or none", word, got)
		}
	}
}

func TestKnows(t *testing.T) {
	f := newFilter(t)
	for _, w := range []string{"house", "House,", "DON'T", "don\u2019t", "\"HELLO!\"", "two-faced", "and/or", "x-ray",
		"(...why?)", "is"} {
		if !f.Knows(w) {
			t.Errorf("Knows(%q) = false", w)
		}
	}
	for _, w := range []string{"", "-", "?!", "a", "X", "'", "hous", "h0use", "house2", "2house", "two-fcaed", "ho|use",
		"дом", "\xff", "a-b"} {
		if f.Knows(w) {
			t.Errorf("Knows(%q) = true", w)
		}
	}
}

func TestLists(t *testing.T) {
	f := newFilter(t)
	if len(f.dictionary) != 88_356 || !slices.IsSorted(f.dictionary) ||
		len(slices.Compact(slices.Clone(f.dictionary))) != len(f.dictionary) {
		t.Errorf("the dictionary has %d words, want 88356, sorted, none twice", len(f.dictionary))
	}
	codes := map[string]int{}
	for w, languages := range f.languages {
		if w != strings.ToUpper(plain.Replace(w)) || len(Tokens(w)) != 1 {
			t.Errorf("function word %q of %v is no plain token", w, languages)
		}
		for _, code := range languages {
			codes[code]++
		}
	}
	if least := slices.Min(slices.Collect(maps.Values(codes))); len(codes) != 15 || least < 30 {
		t.Errorf("function words of %d languages, want 15, and 30 of each: %v", len(codes), codes)
	}
	for _, digest := range []string{DictionaryDigest, functionWordsDigest, weightsDigest} {
		if !strings.Contains(Fingerprint(), digest) {
			t.Errorf("Fingerprint() = %q lacks %s", Fingerprint(), digest)
		}
	}
}

func TestDamagedLists(t *testing.T) {
	for _, test := range []struct {
		name, want    string
		packed        []byte
		functionWords string
		weights       []byte
	}{
		{"no dictionary", "the dictionary has", nil, functionWordList, weights},
		{"a dictionary that is not packed", "the dictionary has", []byte("THE\nOF\n"), functionWordList, weights},
		{"half a dictionary", "the dictionary has", englishList[:len(englishList)/2], functionWordList, weights},
		{"another language", "the list of function words has", englishList, functionWordList + "xx: AA\n", weights},
		{"no weights", "the n-gram model has", englishList, functionWordList, make([]byte, Slots)},
	} {
		if f, err := load(test.packed, test.functionWords, test.weights); f != nil || err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want an error with %q", test.name, err, test.want)
		}
	}
}

// foreign returns the captions of testdata/foreign.txt by purpose, dev or test. Rules may be tuned on dev.
func foreign(t *testing.T) map[string][]string {
	t.Helper()
	captions := map[string][]string{}
	for _, p := range pictures(t) {
		if p.kind != english && p.kind != "blank" {
			captions[p.split] = append(captions[p.split], p.name)
		}
	}
	return captions
}

// TestForeign holds what was reached: of foreign captions read without a fault, at most
// 3 % pass, written properly or in capitals without accents. What is tuned on is dev.
func TestForeign(t *testing.T) {
	f := newFilter(t)
	for purpose, captions := range foreign(t) {
		for style, as := range map[string]func(string) string{
			"as written":       func(s string) string { return s },
			"capitals":         strings.ToUpper,
			"without accents":  func(s string) string { return strings.ToLower(plain.Replace(strings.ToUpper(s))) },
			"capitals, no acc": func(s string) string { return plain.Replace(strings.ToUpper(s)) },
		} {
			passed := 0
			for _, s := range captions {
				if v := f.Judge(read(as(s)), policyThreshold); v.Outcome == "" {
					passed++
					t.Logf("passes: %q %+v", as(s), v)
				}
			}
			t.Logf("%s, %s: %d of %d foreign captions pass", purpose, style, passed, len(captions))
			if 100*passed > 3*len(captions) {
				t.Errorf("%s, %s: %d of %d foreign captions pass, want 3 %% at most", purpose, style, passed, len(captions))
			}
		}
	}
}

func FuzzJudge(f *testing.F) {
	for _, s := range []string{"", "WHEN YOU FINALLY GET IT", "\xff\xfe when", "ǅ İ ß ﬁ", "Qu’est-ce", "'''` ``",
		"Я не понимаю this"} {
		f.Add(s, 90., .6)
	}
	f.Add("not a number", math.NaN(), math.Inf(1))
	filter, err := New()
	testkit.OK(f, err)
	f.Fuzz(func(t *testing.T, text string, confidence, threshold float64) {
		words := []word.Word{{Text: text, Confidence: confidence}}
		for _, w := range strings.Split(text, " ") {
			words = append(words, word.Word{Text: w, Confidence: confidence})
		}
		v := filter.Judge(words, threshold)
		if !slices.Contains([]manifest.Outcome{"", manifest.NotEnglish, manifest.Unreadable}, v.Outcome) ||
			v.Outcome != "" && v.Reason == "" {
			t.Errorf("Judge(%q) = %+v, want an outcome of the filter, and a reason with a rejection", text, v)
		}
		if !(v.Hit >= 0 && v.Hit <= 1) || v.English+v.Foreign > v.Tokens || (v.Foreign > 0) != (v.Language != "") {
			t.Errorf("Judge(%q) has numbers that cannot be: %+v", text, v)
		}
		if (v.Votes == Votes{}) != (v.Reason == ReasonNoText) || math.Abs(v.Score) > float64(wordLimit*v.Tokens) {
			t.Errorf("Judge(%q) = %+v: votes without text or none with it, or a score that cannot be", text, v)
		}
		if again := filter.Judge(words, threshold); again != v {
			t.Errorf("Judge(%q) = %+v, then %+v", text, v, again)
		}
	})
}

func ExampleFilter_Judge() {
	f, err := New()
	if err != nil {
		fmt.Println(err)
		return
	}
	words := []word.Word{
		{Text: "QUAND", Confidence: 91}, {Text: "TU", Confidence: 93}, {Text: "OUVRES", Confidence: 88},
		{Text: "LE", Confidence: 95}, {Text: "FRIGO", Confidence: 90},
	}
	v := f.Judge(words, .6)
	fmt.Println(v.Outcome, v.Reason, v.Language)
	// Output: not_english foreign_words fr
}
