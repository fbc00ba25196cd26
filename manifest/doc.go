// Package manifest owns the release: the folder (or bare annotations file) that a dataset's maintainers publish, and
// the two tables kept beside it, outcomes.csv and tombstones.csv. It turns manifest rows into entries under a label
// schema and says exactly where a file is wrong.
//
//   - Nothing is guessed in silence: an unknown key, column, label or id form is a Problem with file, line, column
//     (in bytes, from 1; for Parquet row and number of the column) and a hint.
//   - Memory does not grow with the rows, except for one small record per post, which finds duplicates.
//   - Bad input never panics and never hangs; a check of a whole file is linear in it.
//   - Labels leave as they were released: same labels, same order, no correction.
//   - A release folder's files are opened inside the folder only, symlinks included.
//   - A file that is rewritten while it is read is noticed at its end (by digest), not before.
//
// The package reads no clock and no network and starts no process.
package manifest
