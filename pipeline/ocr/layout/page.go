package layout

import (
	"image"

	"rehydrate/internal/word"
)

// Rules say how a page is read, in addition to the constants of this package. The zero value reads the whole text
// without a dictionary.
type Rules struct {
	// Dictionary reports whether a word that was read, with its punctuation, is a word of the language. It may be called
	// from many goroutines. Without one, words are accepted by their confidence alone, which is much worse.
	Dictionary   func(word string) bool
	DictionaryID string // digest of Dictionary
	// DecisionOnly stops reading as soon as the text is certainly of the dictionary's language.
	DecisionOnly bool
}

func (r Rules) lexicon() lexicon { return lexicon{knows: r.Dictionary, id: r.DictionaryID} }

// A Page is an image in which lines of text were searched. It is not changed by reading it.
type Page struct {
	rules Rules
	image image.Image
	luma  *image.Gray // at full size
	queue *queue      // as it is before anything is read
}

// Find searches an image, which must not be empty, for lines of text.
func Find(img image.Image, r Rules) *Page {
	views := newPlanes(img)
	return &Page{rules: r, image: img, luma: views.luma, queue: newQueue(views)}
}

// Recognize asks an engine to read pictures, and returns the words of each. whole says that there is one picture, of a
// page whose text may be anywhere; otherwise each picture is a strip with one line of black text on white.
type Recognize func(pictures []*image.Gray, whole bool) ([][]word.Raw, error)

// Words are what an engine read of a page. To make a Reading of them takes no engine.
type Words struct {
	page   *Page
	merged []candidate
}

// The whole page is read as sparse text if its lines gave fewer letters of this confidence. Lines are searched again
// before that.
const (
	againBelow       = 24
	sparseBelow      = 12
	sparseConfidence = 60
	// PageSide is the longer side of the picture of a whole page at most, in pixels.
	PageSide = 1000
)

// Read reads the page line by line, and calls recognize as often as it takes. The first error of recognize ends it, and
// is returned as it is; the page can be read again.
func (p *Page) Read(recognize Recognize) (Words, error) {
	r := &reader{page: p, queue: p.queue.again(), recognize: recognize}
	merged, err := r.read()
	if err != nil {
		return Words{}, err
	}
	return Words{p, merged}, nil
}

// A reader is one call of Page.Read.
type reader struct {
	page      *Page
	queue     *queue
	recognize Recognize
	heard     []candidate // the words of all strips so far, noise too
}

// read reads the page and puts in what the merge of its lines has lost.
func (r *reader) read() ([]candidate, error) {
	merged, err := r.readLines()
	lexicon := r.page.rules.lexicon()
	if err != nil || r.page.rules.DecisionOnly || lexicon.knows == nil {
		return merged, err
	}
	merged, err = r.fill(merged)
	if err != nil {
		return nil, err
	}
	return lexicon.choose(merged, r.heard), nil
}

// readLines reads the lines of the page, and the whole page where they hold little.
func (r *reader) readLines() ([]candidate, error) {
	all, err := r.readQueue()
	if err != nil || r.decided(all) || sureLetters(merge(all)) >= againBelow {
		return merge(all), err
	}
	var colours map[string]*image.Gray
	if !r.page.rules.DecisionOnly { // a decision stays as quick as without them
		colours = colourPlanes(r.page.image)
	}
	r.queue.searchAgain(colours)
	more, err := r.readQueue()
	all = append(all, more...)
	if err != nil || sureLetters(merge(all)) >= sparseBelow {
		return merge(all), err
	}
	gray := scale(r.page.luma, PageSide)
	answers, err := r.recognize([]*image.Gray{gray}, true)
	if err != nil {
		return nil, err
	}
	words := r.collect(answers[0], nil, len(r.queue.layers), gray.Rect.Size())
	r.heard = append(r.heard, words...)
	return merge(append(all, words...)), nil
}

// readQueue reads the lines of the queue, and no more than it has to if only the decision counts.
func (r *reader) readQueue() ([]candidate, error) {
	var all []candidate
	most := BatchSize
	if r.page.rules.DecisionOnly {
		most = batchFew
	}
	for batch := r.queue.next(most); len(batch) > 0; batch = r.queue.next(most) {
		words, err := r.readBatch(batch)
		if err != nil {
			return nil, err
		}
		all = append(all, words...)
		if r.decided(all) {
			break
		}
	}
	return all, nil
}

// decided reports whether only the decision counts, and these words are enough for it.
func (r *reader) decided(words []candidate) bool {
	return r.page.rules.DecisionOnly && enough(merge(words))
}

// readBatch reads lines of the queue and records there what was read.
func (r *reader) readBatch(batch []textLine) ([]candidate, error) {
	strips := make([]strip, len(batch))
	pictures := make([]*image.Gray, len(batch))
	for i, t := range batch {
		strips[i] = r.queue.layers[t.layer].cut(t)
		pictures[i] = strips[i].gray
	}
	answers, err := r.recognize(pictures, false)
	if err != nil {
		return nil, err
	}
	var all []candidate
	for i, t := range batch {
		placed, ink := strips[i].place(answers[i], t, len(r.queue.places))
		words := r.collect(placed, ink, t.layer, r.queue.size())
		r.queue.record(t, words)
		r.heard = append(r.heard, words...)
		if !noise(words) {
			all = append(all, words...)
		}
	}
	return all, nil
}

// collect is the function collect with the page's size and lexicon.
func (r *reader) collect(words []word.Raw, ink []spaces, look int, scaled image.Point) []candidate {
	return collect(words, ink, look, scaled, r.queue.original, r.page.rules.lexicon())
}

// What has to be read if only the decision counts: so many words of the dictionary, and this share of all words.
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
