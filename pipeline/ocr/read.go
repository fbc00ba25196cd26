package ocr

import "image"

// The whole picture is read, as sparse text, where its lines gave fewer letters of this confidence.
const (
	sparseBelow      = 12
	sparseConfidence = 60
	sparseLong       = 1000 // pixels of its longer side
)

// readLines reads an image on one worker, line by line.
func (p *Pool) readLines(w *worker, views planes, q *queue) ([]candidate, error) {
	var all []candidate
	most := batchMost
	if p.config.DecisionOnly {
		most = batchFew
	}
	for batch := q.next(most); len(batch) > 0; batch = q.next(most) {
		words, err := p.readBatch(w, q, batch, views.luma.Rect.Size())
		if err != nil {
			return nil, err
		}
		all = append(all, words...)
		if p.config.DecisionOnly && enough(merge(all)) {
			return merge(all), nil
		}
	}
	if sureLetters(merge(all)) >= sparseBelow {
		return merge(all), nil
	}
	gray := scale(views.luma, sparseLong)
	answers, err := w.recognize([]*image.Gray{gray}, pageMode)
	if err != nil {
		return nil, err
	}
	return merge(append(all, collect(answers[0], len(q.layers), gray.Rect.Size(), views.luma.Rect.Size(), p.lexicon())...)), nil
}

// readBatch reads lines of the queue and tells it what they say.
func (p *Pool) readBatch(w *worker, q *queue, batch []textLine, original image.Point) ([]candidate, error) {
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
		words := collect(strips[i].place(answers[i], t, len(q.places)), t.layer, q.size(), original, p.lexicon())
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
