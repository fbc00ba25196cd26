package main

import (
	"testing"
	"time"

	"rehydrate/internal/testkit"
)

// TestLasts: a time that is shortened is never shorter than what it takes.
func TestLasts(t *testing.T) {
	const hour = time.Hour
	for d, want := range map[time.Duration]string{
		59 * time.Second:        "less than a minute",
		61 * time.Second:        "2 min",
		47*hour + 5*time.Minute: "47.1 h",
		48 * hour:               "48 h",
		48*hour + 1:             "2.1 days",
		50 * hour:               "2.1 days",
		72 * hour:               "3.0 days",
		300_000 * time.Second:   "3.5 days",
		240_000 * hour:          "10,000.0 days",
	} {
		testkit.Same(t, d.String(), want, lasts(d))
	}
}
