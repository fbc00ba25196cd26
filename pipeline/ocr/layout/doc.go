// Package layout finds the lines of text in an image, has an OCR engine read them one by one, and makes one reading of
// all answers. It knows nothing of the engine but a function that it calls with pictures, and decides everything else
// between pixels and text: what is cut out, in which order, what is read again, and which words are certain enough.
//
// For each image:
//
//	planes: luma and the smallest channel, scaled; six ramps that make text black on white
//	components: shapes of ink; lines: rows of shapes like letters, slanted ones in planes turned level
//	queue: the most promising lines first, each cut out as a strip, many in one request; what is
//	    read for certain is not read again
//	mend and merge the words; with too few letters: lines that are
//	    brighter or darker than what is around them, or stand out by colour, then the whole page, merge again
//	gaps: places in a row of accepted words that have shapes like letters and no word, cut out and read again
//	choose single words that the merge of whole lines has lost
//	order the merged words as a person reads them; accept those that are certain enough
//
// # Promises
//
//   - The same pixels, rules and answers give the same reading on every machine. All arithmetic on pixels is in
//     integers, and scores of lines are rounded before they are compared.
//   - Rules.Parameters names everything that can change a reading. Readings with the same parameters, made by the same
//     engine, can be compared.
//   - A strip is at most StripWidth x StripHeight pixels, and a request has at most BatchSize strips. The picture of a
//     whole page has at most PageSide pixels on each side.
//   - The image is not changed, and a Page can be read again after the engine failed.
//   - Text that was read has no white space, control or format characters, and each box is inside the image.
//
// # Limitations
//
// Lines are searched at slopes up to about one in two; steeper text is left to the engine's reading of the whole page.
// Answers are taken as they are: the caller checks that boxes are inside their picture and confidences from 0 to 100.
package layout
