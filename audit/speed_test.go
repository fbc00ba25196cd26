package audit

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/policy"
)

// textBesides is much text as people have it: the sources of this program.
func textBesides(b *testing.B) (all [][]byte, size int64) {
	for _, where := range []string{"../*/*.go", "../*/*/*.go"} {
		names, err := filepath.Glob(where)
		testkit.OK(b, err)
		for _, name := range names {
			body, err := os.ReadFile(name)
			testkit.OK(b, err)
			all, size = append(all, body), size+int64(len(body))
		}
	}
	return all, size
}

// BenchmarkHashed is what BenchmarkText is compared with.
func BenchmarkHashed(b *testing.B) {
	all, size := textBesides(b)
	b.SetBytes(size)
	for b.Loop() {
		for _, body := range all {
			sha256.Sum256(body)
		}
	}
}

// BenchmarkText searches text for a hundred removed posts.
func BenchmarkText(b *testing.B) {
	all, size := textBesides(b)
	a := newAudit(Config{Policy: policy.Default()})
	for i := range 100 {
		id := "1" + string(rune('a'+i%26)) + "q" + string(rune('a'+i/26)) + "zk"
		k := a.known(a.post(manifest.PostID(id)).ID, id)
		k.Standing = Standing{MustGo: true}
		a.gone.read = append(a.gone.read, clue[string]{goneText + " said number " + id, k})
	}
	a.report.Known.MustGo = 100
	testkit.OK(b, a.gone.indexCaptions())
	a.gone.index()
	a.indexIDs()
	b.SetBytes(size)
	for b.Loop() {
		for _, body := range all {
			w := walker{audit: a, ctx: b.Context(), left: &atomic.Int64{}, found: &atomic.Bool{},
				opened: &atomic.Bool{}}
			w.left.Store(1 << 40)
			w.scan(place{src: &source{where: "f", rel: "f", file: &AuditedFile{}}, path: "f"}, section(body))
		}
	}
}
