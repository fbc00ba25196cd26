package workspace

import (
	"fmt"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
)

// BenchmarkClose closes a workspace whose run fetched b.N images, and opens it again.
func BenchmarkClose(b *testing.B) {
	w, err := Open(b.Context(), b.TempDir(), Options{})
	testkit.OK(b, err)
	digest := strings.Repeat("0123456789abcdef", 4)
	for stored := 0; stored < b.N; stored += 1000 {
		var events []auditlog.Event
		for i := stored; i < min(stored+1000, b.N); i++ {
			events = append(events, auditlog.Event{Kind: auditlog.Fetch,
				Posts:  []auditlog.Post{{ID: manifest.PostID(fmt.Sprintf("1s%07d", i))}},
				SHA256: digest, Original: digest, Pixels: digest})
		}
		testkit.OK(b, w.Note(b.Context(), events...))
	}
	b.ResetTimer()
	testkit.OK(b, w.Close())
	closed := b.Elapsed()
	w, err = Open(b.Context(), w.Dir(), Options{Existing: true})
	testkit.OK(b, err)
	b.StopTimer()
	testkit.OK(b, w.Close())
	b.ReportMetric(closed.Seconds(), "close-s")
	b.ReportMetric((b.Elapsed() - closed).Seconds(), "open-s")
}
