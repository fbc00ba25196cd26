package main

import (
	"os"
	"testing"
)

// asProgram makes the test binary the program itself, so that pools in tests start real
// workers.
const asProgram = "REHYDRATE_TEST_OCR_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}
