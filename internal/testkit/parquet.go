package testkit

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"
)

// ForgePage changes bytes of an unpacked page of a Parquet where they stand first, and the checksum of that page.
func ForgePage(t testing.TB, file []byte, from, to string) []byte {
	t.Helper()
	const before, behind, longest = 32, 16, 64 << 10 // bytes of the page around them, and of its header
	at := bytes.Index(file, []byte(from))
	if at < 0 || len(from) != len(to) {
		t.Fatalf("no %q in the file", from)
	}
	checksum := func(page []byte) []byte { return binary.AppendVarint(nil, int64(int32(crc32.ChecksumIEEE(page)))) }
	forged := bytes.Clone(file)
	copy(forged[at:], to)
	for begin := max(0, at-before); begin <= at; begin++ {
		head := max(0, begin-longest)
		for end := at + len(from); end < min(len(file), at+len(from)+behind); end++ {
			sum := checksum(file[begin:end])
			if where := head + bytes.LastIndex(file[head:begin], sum); len(sum) > 3 && where >= head {
				now := checksum(forged[begin:end])
				if len(now) != len(sum) {
					t.Fatalf("%q: the checksum is of another length: change other bytes", from)
				}
				copy(forged[where:], now)
				return forged
			}
		}
	}
	t.Fatal("no page of the file has these bytes")
	return nil
}
