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
		case "program": // program ARG...
			os.Args = append(os.Args[:1], os.Args[2:]...)
			main()
		case "try-everything":
			tryEverything(os.Args[2], os.Args[3], os.Args[4])
			os.Exit(0)
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
