package ocr

import "image"

// Where lines gave fewer letters of this confidence, lines are looked for again, or the whole picture is read, as sparse text.
const (
	againBelow       = 24
	sparseBelow      = 12
	sparseConfidence = 60
	sparseLong       = 1000 // pixels of its longer side
)

// readLines reads an image on one worker, line by line.
func (p *Pool) readLines(w *worker, views planes, q *queue) ([]candidate, error) {
	all, err := p.readQueue(w, q)
	if err != nil || p.decided(all) || sureLetters(merge(all)) >= againBelow {
		return merge(all), err
	}
	q.lookAgain()
	more, err := p.readQueue(w, q)
	all = append(all, more...)
	if err != nil || sureLetters(merge(all)) >= sparseBelow {
		return merge(all), err
	}
	gray := scale(views.luma, sparseLong)
	answers, err := w.recognize([]*image.Gray{gray}, pageMode)
	if err != nil {
		return nil, err
	}
	return merge(append(all, collect(answers[0], len(q.layers), gray.Rect.Size(), q.original, p.lexicon())...)), nil
}

// readQueue reads the lines of a queue, and no more than it has to where only the decision is wanted.
func (p *Pool) readQueue(w *worker, q *queue) ([]candidate, error) {
	var all []candidate
	most := batchMost
	if p.config.DecisionOnly {
		most = batchFew
	}
	for batch := q.next(most); len(batch) > 0; batch = q.next(most) {
		words, err := p.readBatch(w, q, batch)
		if err != nil {
			return nil, err
		}
		all = append(all, words...)
		if p.decided(all) {
			break
		}
	}
	return all, nil
}

// decided reports whether only the decision is wanted, and stands.
func (p *Pool) decided(words []candidate) bool { return p.config.DecisionOnly && enough(merge(words)) }

// readBatch reads lines of the queue and tells it what they say.
func (p *Pool) readBatch(w *worker, q *queue, batch []textLine) ([]candidate, error) {
	strips := make([]strip, len(batch))
	pictures := make([]*image.Gray, len(batch))
	for i, t := range batch {
		strips[i] = q.layers[t.layer].cut(t)
		pictures[i] = strips[i].gray
	}
	answers, err := w.recognize(pictures, lineMode)
	if err != nil {
		return nil, err
	}
	var all []candidate
	for i, t := range batch {
		words := collect(strips[i].place(answers[i], t, len(q.places)), t.layer, q.size(), q.original, p.lexicon())
		q.record(t, words)
		if !noise(words) {
			all = append(all, words...)
		}
	}
	return all, nil
}

// What has to be read where only the decision is wanted: so many words of the dictionary, and this share of all.
const (
	enoughWords      = 4
	enoughLetters    = 3
	enoughPct        = 70
	enoughConfidence = 60
)

// enough reports whether words show by themselves that there is text and it is English.
func enough(words []candidate) bool {
	all, listed, evident := 0, 0, 0
	for _, w := range words {
		n := letters(w.Text)
		if w.Confidence < enoughConfidence || n < 2 { // noise is mostly single letters
			continue
		}
		all++
		if w.listed {
			listed++
			if n >= enoughLetters {
				evident++
			}
		}
	}
	return evident >= enoughWords && 100*listed >= enoughPct*all
}
