// Package labels computes what a dataset's paper prints of its labels: counts, cardinality and co-occurrence (Count), a
// stratified split (Split), the agreement of annotators (Agree), the scores of predictions (Score) and what training
// takes (Weights, Task.Tune), whether two sets of labels differ (Compare), whether numbers differ between labels
// (CompareGroups), and how often moderation services flag them (TabulateModeration).
//
//   - It is pure: values in, tables out. It opens no file, reads no format, and asks neither clock nor network; package study
//     reads the files. The same input gives the same numbers on any machine.
//   - Nothing is dropped in silence: entries that are missing, unknown, without an answer or left out are counted.
//   - What is undefined is said to be, with the reason; no result is NaN.
//   - The ids of annotators are kept nowhere and stand in no error.
//
// Split, Agree, Score and CompareGroups hold one small record an entry in memory; Count does not.
package labels
