// Package guess finds out what the columns of annotations mean that anybody wrote, and makes a release of them: which
// column has the ids of posts, the split, the digests, which have labels, and which pass through (Files). It reads
// every row first.
//
//   - Each guess is told, with its reason, in the draft and in the release.toml that it writes.
//   - Where a wrong guess would be dangerous, such as between two columns of ids, a person decides: the error names the flag.
//   - A column with words, addresses or people is left out unless it is named. Unfit holds a release against the same rules.
//   - A column that could have been labels or the split and is not, and a value that is not as it was, is a warning.
//   - What Draft.Write writes, manifest.Open and Check accept. After an error nothing of it is left.
//   - Memory does not grow with the rows: of a column, at most some 2,000 different values are kept.
//
// Package manifest does not know this one: it takes a column for what release.toml or the column's usual name says.
package guess
