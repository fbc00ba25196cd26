package pipeline

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"rehydrate/policy"
)

// TestDesk: what is parked gives way to who needs the room, takes half of it at most, and is not parked while
// somebody waits: readers that all wait would wait for ever.
func TestDesk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(100)
		place := func(bytes int64) *picture {
			p, err := d.place(t.Context(), policy.ImageInfo{DecodedBytes: bytes})
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		small, large := place(40), place(60)
		small.park()
		large.park()
		if large.claim() || !small.claim() {
			t.Error("an image of more than half of the room was parked, or one of less was not")
		}
		small.park()

		all := place(1000) // more than there is: it takes all of it
		if small.claim() {
			t.Error("a parked image did not give way")
		}
		var waiting *picture
		go func() { waiting = place(30) }()
		synctest.Wait()
		if waiting != nil {
			t.Error("there was room beside an image that takes all of it")
		}
		all.park()
		synctest.Wait()
		if all.claim() || waiting == nil {
			t.Error("an image was parked while somebody waited")
		}
		rest := place(70)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := d.place(ended, policy.ImageInfo{DecodedBytes: 1}); !errors.Is(err, context.Canceled) {
			t.Errorf("a run that has ended got room: %v", err)
		}
		rest.free()
		if next := place(50); d.wanted != 0 {
			t.Errorf("%d wait for room", d.wanted)
		} else if next.park(); !next.claim() {
			t.Error("an image is no longer parked after somebody gave up waiting")
		}
	})
}
