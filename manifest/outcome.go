package manifest

import "slices"

// An Outcome says what became of an entry. Every entry has exactly one, always; the list is closed.
type Outcome string

// The outcomes. All but Failed and Pending are answers; those two mean "run again".
const (
	Kept        Outcome = "kept"        // in the dataset
	Duplicate   Outcome = "duplicate"   // near-duplicate of an earlier kept entry
	NotEnglish  Outcome = "not_english" // has text, and it is not English
	Unreadable  Outcome = "unreadable"  // has text that OCR cannot read
	Removed     Outcome = "removed"     // the post was removed by a moderator, Reddit or the law
	Deleted     Outcome = "deleted"     // the post was deleted by its author
	Unavailable Outcome = "unavailable" // Reddit no longer knows the post
	NoMedia     Outcome = "no_media"    // the post has no image
	Gone        Outcome = "gone"        // the post is live, its image is not
	Placeholder Outcome = "placeholder" // the host sent a stand-in for a missing image
	Invalid     Outcome = "invalid"     // not an image, or not a safe one
	Changed     Outcome = "changed"     // not the image that the manifest's digest names
	Refused     Outcome = "refused"     // the policy does not allow it
	Failed      Outcome = "failed"      // trouble that may pass: try again
	Pending     Outcome = "pending"     // not reached yet
)

// A Fate is the one word that people read for outcomes that are alike to them.
type Fate string

// The fates.
const (
	FateKept        Fate = "kept"
	FateDeleted     Fate = "deleted"
	FateUnavailable Fate = "unavailable"
	FateFiltered    Fate = "filtered"
	FateLost        Fate = "lost"
	FateNotAllowed  Fate = "not allowed"
	FateRetry       Fate = "to retry"
)

// Fates lists every fate in the order in which people read them.
func Fates() []Fate {
	return []Fate{FateKept, FateDeleted, FateUnavailable, FateFiltered, FateLost, FateNotAllowed, FateRetry}
}

// outcomeWords are the words in which people read an outcome.
type outcomeWords struct {
	outcome    Outcome
	fate       Fate
	short, why string // see Short and Why
}

// outcomes has every outcome, in the order of tables.
var outcomes = []outcomeWords{
	{Kept, FateKept, "", ""},
	{Duplicate, FateFiltered, "near-duplicates", "nearly the same image and text as an earlier row, which is kept"},
	{NotEnglish, FateFiltered, "not English", "has text, and it is not English"},
	{Unreadable, FateFiltered, "unreadable text", "has text that OCR cannot read"},
	{Removed, FateDeleted, "", "the post was removed by a moderator, by Reddit, for legal reasons or on request"},
	{Deleted, FateDeleted, "by their authors", "the post was deleted by its author"},
	{Unavailable, FateUnavailable, "not in Reddit's answers", "Reddit no longer knows the post"},
	{NoMedia, FateLost, "no image in the post", "the post has no image"},
	{Gone, FateLost, "image no longer there", "the post is there, its image is not"},
	{Placeholder, FateLost, "placeholder instead", "the image host sent a stand-in for a missing image"},
	{Invalid, FateLost, "not a safe image", "what the host sent is not an image, or not a safe one"},
	{Changed, FateLost, "not the labelled image", "the image is not the one that the release describes"},
	{Refused, FateNotAllowed, "by the release's rules", "the policy of the release does not allow it"},
	{Failed, FateRetry, "", "could not be fetched or read; another run may succeed"},
	{Pending, FateRetry, "", "was not reached; another run goes on"},
}

// Outcomes lists every outcome in the order in which tables show them.
func Outcomes() []Outcome { return OutcomesOf(Fates()...) }

// OutcomesOf lists the outcomes of some fates, in the order of tables.
func OutcomesOf(fates ...Fate) (list []Outcome) {
	for _, w := range outcomes {
		if slices.Contains(fates, w.fate) {
			list = append(list, w.outcome)
		}
	}
	return list
}

// Retryable reports whether another run can change the outcome without anything having changed at the source.
func (o Outcome) Retryable() bool { return o == Failed || o == Pending }

// Fate is the word for people; an outcome of a later version has its own name.
func (o Outcome) Fate() Fate { return o.words().fate }

// Short says what became of several entries in a few words, "" where their reason or their fate says it.
func (o Outcome) Short() string { return o.words().short }

// Why says what happened to an entry that was not kept.
func (o Outcome) Why() string { return o.words().why }

func (o Outcome) words() outcomeWords {
	i := slices.IndexFunc(outcomes, func(w outcomeWords) bool { return w.outcome == o })
	if i < 0 {
		return outcomeWords{outcome: o, fate: Fate(o)}
	}
	return outcomes[i]
}
