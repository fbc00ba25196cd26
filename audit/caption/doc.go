// Package caption recognises the captions of removed posts in text of any kind: prose, source, markup, a column of a
// table, a list of words, what an OCR program wrote.
//
// # The rule
//
// A caption of n words is recognised in a text if, within 2n words of the text, at least .6n of the caption's words
// occur in order, at least five, and together carry enough rarity. Of a long caption twelve words within forty are
// enough. The rarity of a word is the logarithm of how many texts there are for each one that has the word, by a
// short table of common words (Words); what is not listed counts as the rarest word that is. So a caption that is all
// stock phrase is not recognised anywhere, nor is one of fewer than five words: the Index says how many there are of
// each (Kind).
//
// # What equals what
//
// Words are letters and digits. Upper and lower case, accents, and other forms of the same letter (full width,
// ligatures) are equal. Apostrophes, soft hyphens and characters without width are not there: don't is dont. Numbers
// are not there either, in captions and in texts, so that coordinates, times and scores between words do not count.
// Everything else only parts words, whether punctuation, line breaks or tags. Of a tag, values that a reader sees or
// an OCR program read are words: CONTENT, alt, title, and the like. In Chinese, Japanese, Thai, and other scripts
// without spaces each character is a word. Up to half of the words of a match may have one letter missing, added or
// misread, if they have five letters or more and are not words that are known themselves. The escapes \n, \r and \t
// are white space; the caller resolves others, and entities.
//
// # What it does not tell
//
// A text that is at least as close to the caption of a post that stays is that one's: two memes on one template
// differ in few words. The table is of English words, with the small words of some other languages in Latin script.
// In other languages more words count as rare, so that their stock phrases may be recognised where English ones are
// not.
//
// # Use
//
// New, Add and Build make an Index, which any number of goroutines may search at a time. NewText begins a text, which
// gets its pieces by Write or its cells by Cell, and ends with End. A text is read once and not kept; the time is
// that of reading its bytes, and some for each place where several rare words of one caption are near each other.
package caption
