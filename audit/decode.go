package audit

import (
	"bytes"
	"encoding/binary"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// wideTexts returns the texts in UTF-16 of either order that lie in bytes of any kind, each on a line: those that begin
// with four letters of an alphabet of Europe, digits or signs.
func wideTexts(held []byte) (texts []byte) {
	const least, lastLetter = 4, 0x5ff
	// The mark of a text in Exif ends as a letter in UTF-16 does.
	held = bytes.ReplaceAll(held, []byte("UNICODE\x00"), []byte("UNICODE\a"))
	end := func(order binary.ByteOrder, at int) int {
		for n := 0; at+1 < len(held); n++ {
			r := rune(order.Uint16(held[at:]))
			if n < least && r > lastLetter || !unicode.IsPrint(r) && !unicode.IsSpace(r) &&
				!utf16.IsSurrogate(r) && !unicode.Is(unicode.Cf, r) {
				break
			}
			at += 2
		}
		return at
	}
	done := 0
	for at := 0; at+2*least <= len(held); {
		// Most bytes begin no text: the upper byte of its second and third letter stands at the same place of both, and
		// the second letter is not zero.
		second := held[at+2 : at+5]
		big, little := max(second[0], second[2]), max(second[1], held[at+5])
		if min(big, little) > lastLetter>>8 || second[0]|second[1]|second[2] == 0 {
			at++
			continue
		}
		// Latin letters of one order read the same in the other, a byte later; other signs do not.
		from, to, order := at, end(binary.BigEndian, at), binary.ByteOrder(binary.BigEndian)
		if to-from < 2*least || end(binary.LittleEndian, at+1) > to+1 {
			for _, start := range []int{at, at + 1} {
				if n := end(binary.LittleEndian, start); n-start > to-from {
					from, to, order = start, n, binary.LittleEndian
				}
			}
		}
		if to-from < 2*least {
			at++
			continue
		}
		// A word that the bytes cut off stays cut off.
		if from > 1 {
			texts = append(texts, '\n')
		}
		var units []uint16
		for ; from < to; from += 2 {
			units = append(units, order.Uint16(held[from:]))
		}
		texts = append(texts, string(utf16.Decode(units))...)
		at, done = to, to
	}
	if done < len(held)-1 {
		texts = append(texts, '\n')
	}
	return texts
}

const (
	escapeKey = '\x1b'
	backspace = '\b'
)

// onTerminal returns a text as a terminal shows it: without colours and titles, and without letters that others are
// written over.
func onTerminal(text []byte) []byte {
	at := bytes.IndexAny(text, "\x1b\b")
	if at < 0 {
		return text
	}
	out := bytes.Clone(text[:at])
	for at < len(text) {
		switch c := text[at]; c {
		case escapeKey:
			at += terminalSize(text[at:])
		case backspace:
			if r, size := utf8.DecodeLastRune(out); r != '\n' {
				out = out[:len(out)-size]
			}
			at++
		default:
			out = append(out, c)
			at++
		}
	}
	return out
}

// terminalSize returns the size of the control sequence of ECMA-48 that a text begins with.
func terminalSize(text []byte) int {
	const longest = 64 // bytes of a sequence without a text in it
	if len(text) < 2 {
		return len(text)
	}
	ends := func(at int, is func(b byte) bool) int {
		for ; at < min(len(text), longest); at++ {
			if b := text[at]; !is(b) {
				if b >= '0' && b <= '~' {
					return at + 1
				}
				break
			}
		}
		return 1
	}
	switch text[1] {
	case '[':
		return ends(2, func(b byte) bool { return b >= ' ' && b <= '?' })
	case ']', 'P', 'X', '^', '_': // a text up to its mark
		end := 2 + bytes.IndexAny(text[2:], "\a\x1b\n")
		switch {
		case end < 2 || text[end] == '\n':
			return 2
		case text[end] == escapeKey && end+1 < len(text) && text[end+1] == '\\':
			return end + 2
		case text[end] == escapeKey:
			return end
		default:
			return end + 1
		}
	}
	return ends(1, func(b byte) bool { return b >= ' ' && b <= '/' })
}
