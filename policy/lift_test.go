package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"rehydrate/manifest"
)

const testLift = `{
  "v": 1,
  "type": "rehydrate-lift",
  "release": {"name": "Test", "digest": "` + testDigest + `"},
  "tombstones": [{"id": "abc123", "time": "2026-06-01T08:00:00Z"}, {"id": "zz9", "time": "2026-06-02T08:00:00Z"}],
  "why": "the author asked for both posts to come back",
  "asserted": "2026-06-09T12:00:00Z"
}
`

func TestOpenLift(t *testing.T) {
	key, other := testKey(t, "a"), testKey(t, "other")
	good := signedFile(t, "lift.json", testLift, key, LiftNamespace)
	got, signer, fault := OpenLift(good, pinned(t, key), testRelease, testNow)
	if fault != nil {
		t.Fatal(fault)
	}
	want := Lift{Release: testRelease, Why: "the author asked for both posts to come back",
		Tombstones: []NamedTombstone{
			{ID: "abc123", Time: time.Date(2026, 6, 1, 8, 0, 0, 0, time.UTC)},
			{ID: "zz9", Time: time.Date(2026, 6, 2, 8, 0, 0, 0, time.UTC)},
		},
		Asserted: time.Date(2026, 6, 9, 12, 0, 0, 0, time.UTC)}
	if diff := cmp.Diff(want, got); diff != "" || signer.Fingerprint != ssh.FingerprintSHA256(key.PublicKey()) {
		t.Errorf("signed by %s (-want +got):\n%s", signer.Fingerprint, diff)
	}

	edit := func(old, new string) SignedFile {
		return signedFile(t, "lift.json", strings.Replace(testLift, old, new, 1), key, LiftNamespace)
	}
	unsigned := good
	unsigned.Signature = nil
	tampered := good
	tampered.Body = []byte(strings.Replace(testLift, "zz9", "zz8", 1))
	for _, c := range []struct {
		name    string
		file    SignedFile
		signers []Signer
		want    manifest.Reason
	}{
		{"no signer", good, nil, "no_signer"},
		{"unsigned", unsigned, pinned(t, key), "unsigned"},
		{"tampered", tampered, pinned(t, key), "bad_signature"},
		{"somebody else's", good, pinned(t, other), "unknown_signer"},
		{"signed as a grant", signedFile(t, "lift.json", testLift, key, GrantNamespace), pinned(t, key), "wrong_namespace"},
		{"a grant", signedFile(t, "lift.json", testGrant, key, LiftNamespace), pinned(t, key), "malformed"},
		{"no tombstone",
			edit(`[{"id": "abc123", "time": "2026-06-01T08:00:00Z"}, {"id": "zz9", "time": "2026-06-02T08:00:00Z"}]`, `[]`),
			pinned(t, key), "malformed"},
		{"one twice", edit(`"zz9", "time": "2026-06-02T08:00:00Z"`, `"abc123", "time": "2026-06-01T10:00:00+02:00"`),
			pinned(t, key), "malformed"},
		{"an id as t3_", edit(`"zz9"`, `"t3_zz9"`), pinned(t, key), "malformed"},
		{"no time", edit(`, "time": "2026-06-02T08:00:00Z"`, ``), pinned(t, key), "malformed"},
		{"a part of a second", edit(`08:00:00Z"}]`, `08:00:00.5Z"}]`), pinned(t, key), "malformed"},
		{"ids alone", edit(`"tombstones"`, `"ids": ["abc123"], "tombstones"`), pinned(t, key), "malformed"},
		{"another release", edit(`"Test"`, `"Tests"`), pinned(t, key), "wrong_release"},
		{"another digest", edit(testDigest, strings.Repeat("0", 64)), pinned(t, key), "wrong_release"},
		{"from the future", edit("2026-06-09", "2026-06-11"), pinned(t, key), "asserted_in_future"},
		{"from the future, of another edition", signedFile(t, "lift.json", strings.NewReplacer("2026-06-09", "2026-06-11",
			testDigest, strings.Repeat("0", 64)).Replace(testLift), key, LiftNamespace), pinned(t, key), "asserted_in_future"},
	} {
		l, _, fault := OpenLift(c.file, c.signers, testRelease, testNow)
		if fault == nil || fault.Reason != c.want {
			t.Errorf("%s: %v (%v), want %s", c.name, l, fault, c.want)
		}
	}
}
