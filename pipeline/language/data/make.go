//go:build ignore

// Make turns the american-english list of Debian's package wamerican into
// english.txt.gz: upper case, apostrophes removed, sorted by bytes, no word twice, one
// a line. It logs the digest of the plain list for dictionaryDigest.
//
//	go run make.go LIST
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"log"
	"os"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: go run make.go LIST")
	}
	list, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	words := strings.Fields(strings.ToUpper(strings.ReplaceAll(string(list), "'", "")))
	slices.Sort(words)
	plain := []byte(strings.Join(slices.Compact(words), "\n") + "\n")

	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := w.Write(plain); err != nil {
		log.Fatal(err)
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("english.txt.gz", packed.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
	log.Printf("%d words, sha256 %x", bytes.Count(plain, []byte("\n")), sha256.Sum256(plain))
}
