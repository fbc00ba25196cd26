// Command ocr is the ocr program of package fakeocr.
package main

import "rehydrate/cmd/rehydrate/testdata/fakeocr"

func main() { fakeocr.Main() }
