// Package labels computes what a dataset's paper prints of its labels: counts, cardinality and
// co-occurrence, a stratified split, the agreement of annotators and the scores of predictions.
package labels
