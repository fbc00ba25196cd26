package main

import (
	"fmt"
	"os"
	"testing"
)

// TestMain makes the test binary the program where it is started as one, so that pools
// in tests have real workers.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "worker":
			main()
		case "stray-output":
			strayOutput()
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

// strayOutput writes to stdout in both ways after it has been reserved.
func strayOutput() {
	frames, err := reserveStdout(os.Stdout)
	if err != nil {
		panic(err)
	}
	fmt.Println("stray")
	fmt.Fprint(frames, "frame")
}
