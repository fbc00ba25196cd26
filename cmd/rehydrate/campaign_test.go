package main

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// fullVar set to "full" makes every campaign take all its points: kills, failing calls, flipped bits, secrets, the day,
// FigSIM. Without it each takes a sample (docs/testing.md). scripts/check full sets it.
const fullVar = "REHYDRATE_TEST"

// seedVar repeats the sample and the random moments of an earlier run, which printed its seed.
const seedVar = "REHYDRATE_TEST_SEED"

// full reports whether campaigns take every point.
func full() bool { return os.Getenv(fullVar) == "full" }

// long leaves a test out of -short.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes too long for -short; scripts/test runs it")
	}
}

// often is all of a campaign, or a sample of it.
func often(all, sample int) int {
	if full() {
		return all
	}
	return sample
}

// chance is the randomness of a campaign; the seed is printed.
func chance(t *testing.T) (random *rand.Rand, seed uint64) {
	t.Helper()
	seed = uint64(time.Now().UnixNano())
	if text := os.Getenv(seedVar); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedVar, err)
		}
	}
	t.Logf("seed %d (repeat with %s=%d)", seed, seedVar, seed)
	return rand.New(rand.NewPCG(seed, 0)), seed
}
