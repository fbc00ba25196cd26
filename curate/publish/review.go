package publish

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"rehydrate/manifest"
	"rehydrate/manifest/guess"
	"rehydrate/manifest/value"
	"rehydrate/study"
)

// A Review is all that would be published, for a person to read: no rule can tell every name of somebody from a word.
type Review struct {
	Path    string `json:"path"`
	Name    string `json:"name"`
	Version string `json:"version"`
	Entries int    `json:"entries"`
	Posts   int    `json:"posts"`
	Unknown int    `json:"unknown,omitempty"` // annotated entries that the release does not have
	Items   []Item `json:"items"`             // those with Looks first
	Next    string `json:"next"`              // the command that publishes it
	Signed  bool   `json:"-"`                 // whether that command signs
	Removals

	// Missing are words for a missing value in place of annotators' answers.
	Missing []study.MissingWords `json:"missing_words,omitempty"`
}

// An Item is a part of the release: a category, a column, a text.
type Item struct {
	What      string `json:"what"`      // such as "category tone"
	Holds     string `json:"holds"`     // such as "labels"
	Different int    `json:"different"` // values
	// Values are all labels and names, 2,000 of text, and of other values the first ones, with the ends of numbers.
	Values []string `json:"values"`
	Others string   `json:"others,omitempty"` // the file to read for the text that is not among Values
	Looks  []Look   `json:"looks"`            // what to look at first, at most 20 of a column
}

// A Look is a reason to look at a part of the release.
type Look struct {
	Value string `json:"value"` // "" for the whole part
	Like  string `json:"like"`  // to go on from the value, such as "looks like the name of an account"
}

const (
	maxDifferent = 2000 // values of a column of text that are shown
	maxShown     = 20   // values of another column, of which more are counted
	maxLooks     = 20
)

// Examine makes no folder, and says what Publish would put there. The error is that of Publish, so that what is refused
// is known before a person reads the rest.
func Examine(ctx context.Context, c Config) (Review, error) {
	p, review := newPublishing(c), Review{}
	err := p.build(ctx, p.annotate, p.accompany, p.check, func(ctx context.Context) error {
		items, err := p.items(ctx)
		review = Review{Path: p.To, Name: p.Name, Version: p.Version, Entries: p.Entries, Posts: p.Posts,
			Unknown: p.Unknown, Missing: p.Missing, Items: items, Signed: p.Signed, Removals: p.Removals}
		return err
	})
	return review, err
}

// items are the parts of the release, those to look at first before the others.
func (p *publishing) items(ctx context.Context) ([]Item, error) {
	items := p.texts()
	figSIM, unchanged := manifest.BuiltIn().Schema, false
	for _, c := range p.written.Schema.Categories {
		items = append(items, p.category(c))
		texts := p.descriptions(c)
		switch {
		case len(texts.Values) == 0:
		case slices.ContainsFunc(figSIM.Categories, func(own manifest.Category) bool { return sayTheSame(own, c) }):
			unchanged = true
		default:
			items = append(items, texts)
		}
	}
	if unchanged {
		items = append(items, Item{What: "descriptions", Holds: "texts", Different: 1,
			Values: []string{"FigSIM's own descriptions, unchanged"}, Looks: []Look{}})
	}
	more, err := p.values(ctx)
	items = slices.Concat(items, more)
	if names := p.batches(); names != nil {
		items = append(items, named("names of batches", "in agreement.json", names, guess.LooksOfSplits(names,
			p.known)))
	}
	copied, failed := p.copied()
	items, err = append(items, copied...), errors.Join(err, failed)
	if answers := p.answered(); answers.Different > 0 {
		items = append(items, answers)
	}
	slices.SortStableFunc(items, func(a, b Item) int { return cmp.Compare(a.rank(), b.rank()) })
	return items, err
}

// rank is the place of the item: those that may name somebody stand before those with words that are not known, and
// these before the others.
func (item Item) rank() int {
	switch {
	case len(item.Looks) == 0:
		return 2
	case slices.ContainsFunc(item.Looks, func(l Look) bool { return l.Like != guess.NoWord }):
		return 0
	}
	return 1
}

// texts are what release.toml says of the whole release.
func (p *publishing) texts() (items []Item) {
	r := p.written
	text := func(what, text string) {
		if text == "" {
			return
		}
		item := Item{What: what, Holds: "text", Different: 1, Values: []string{text}, Looks: []Look{}}
		item.look(text, guess.LookOfText(text, p.known))
		items = append(items, item)
	}
	text("name", r.Name)
	text("version", r.Version)
	text("homepage", r.Homepage)
	text("license", r.License)
	text("citation", r.Citation)
	var signers []string
	for _, s := range r.Signers {
		signers = append(signers, s.Name)
	}
	if signers != nil {
		items = append(items, named("names of signers", "text", signers, guess.LooksOfValues(signers, p.known)))
	}
	return items
}

// named is an item of names, each with what it looks like.
func named(what, holds string, names, looks []string) Item {
	item := Item{What: what, Holds: holds, Different: len(names), Values: names, Looks: []Look{}}
	for i, look := range looks {
		item.look(names[i], look)
	}
	return item
}

// category is a category with all its labels, whether an entry has them or not.
func (p *publishing) category(c manifest.Category) Item {
	item := Item{What: "category " + c.Name, Holds: "labels", Different: len(c.Labels), Looks: []Look{}}
	item.look(c.Name, guess.LookOfName(c.Name, p.known))
	item.look("", guess.LookOfLabels(c, p.written.Schema, p.known))
	if c.Title != c.Name {
		item.Holds = fmt.Sprintf("labels of %q", c.Title)
		item.look(c.Title, guess.LookOfText(c.Title, p.known))
	}
	var codes, names []string
	for _, l := range c.Labels {
		codes, names = append(codes, l.Code), append(names, l.Name)
	}
	ofCodes, ofNames := guess.LooksOfValues(codes, p.known), guess.LooksOfValues(names, p.known)
	for i, l := range c.Labels {
		shown := l.Code
		if l.Name != l.Code {
			shown = fmt.Sprintf("%s (%s)", l.Code, l.Name)
			item.look(l.Name, ofNames[i])
		}
		item.Values = append(item.Values, shown)
		item.look(l.Code, ofCodes[i])
	}
	return item
}

// sayTheSame reports whether two categories and their labels have the same names and descriptions.
func sayTheSame(a, b manifest.Category) bool {
	return a.Name == b.Name && a.Description == b.Description && slices.EqualFunc(a.Labels, b.Labels,
		func(x, y manifest.Label) bool {
			return x.Code == y.Code && x.Name == y.Name && x.Description == y.Description
		})
}

// descriptions are those of a category and of its labels.
func (p *publishing) descriptions(c manifest.Category) Item {
	item := Item{What: "descriptions of " + c.Name, Holds: "texts", Looks: []Look{}}
	add := func(text string) {
		if text != "" {
			item.Values = append(item.Values, fmt.Sprintf("%q", text))
			item.look(text, guess.LookOfText(text, p.known))
		}
	}
	add(c.Description)
	for _, l := range c.Labels {
		add(l.Description)
	}
	item.Different = len(item.Values)
	return item
}

// look adds a reason to look at the item, if there is one.
func (item *Item) look(value, like string) {
	if like != "" && len(item.Looks) < maxLooks {
		item.Looks = append(item.Looks, Look{value, like})
	}
}

// different counts the values of a column, and has the first ones in the order of the rows.
type different struct {
	seen   map[[16]byte]bool // by their digests: a column can have a million
	values []string
	// Of numbers: the smallest and the largest, and those with as many digits as a telephone number has.
	least, most string
	long        []string
}

// measure notes a number that stands out among those of its column.
func (d *different) measure(text string) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return
	}
	// What was noted is a number.
	if least, _ := strconv.ParseFloat(d.least, 64); d.least == "" || n < least {
		d.least = text
	}
	if most, _ := strconv.ParseFloat(d.most, 64); d.most == "" || n > most {
		d.most = text
	}
	if phone := strings.TrimPrefix(text, "+"); value.IsDigits(phone) && len(phone) >= 10 && len(phone) <= 15 {
		d.long = append(d.long, text)
	}
}

// outliers are the numbers that can be telephone numbers: where many are as long, they are times, ids or counts.
func (d *different) outliers() []string {
	if 10*len(d.long) > len(d.seen) {
		return nil
	}
	return d.long
}

func (d *different) add(text string) {
	sum := sha256.Sum256([]byte(text))
	digest := [16]byte(sum[:16])
	if text == "" || d.seen[digest] {
		return
	}
	if d.seen == nil {
		d.seen = make(map[[16]byte]bool)
	}
	d.seen[digest] = true
	d.measure(text)
	if len(d.values) < maxDifferent {
		d.values = append(d.values, text)
	}
}

// values reads the entries for what fields and columns hold.
func (p *publishing) values(ctx context.Context) (items []Item, err error) {
	r := p.written
	fields := map[manifest.Field]*different{manifest.FieldSplit: {}, manifest.FieldSubreddit: {}}
	columns := make([]different, len(r.Schema.Columns))
	for e, err := range r.Entries(ctx) {
		if err != nil {
			return nil, err
		}
		for field, d := range fields {
			d.add(field.Of(e))
		}
		for i, values := range e.Values {
			for _, text := range values {
				columns[i].add(text)
			}
		}
	}
	splits, subreddits := fields[manifest.FieldSplit].values, fields[manifest.FieldSubreddit].values
	items = append(items, named("split", "names", splits, guess.LooksOfSplits(splits, p.known)))
	if len(subreddits) > 0 {
		item := named("subreddit", "names", subreddits, nil).short()
		item.Different = len(fields[manifest.FieldSubreddit].seen)
		items = append(items, item)
	}
	for i, c := range r.Schema.Columns {
		items = append(items, p.column(c, columns[i]))
	}
	rest := Item{What: "posts and images", Holds: "ids and digests in columns", Looks: []Look{}}
	for _, field := range manifest.Fields() {
		if fields[field] == nil && slices.Contains(p.facts.Columns, field.String()) {
			rest.Values = append(rest.Values, field.String())
		}
	}
	rest.Different = len(rest.Values)
	return append(items, rest), nil
}

// column is a column that passes through.
func (p *publishing) column(c manifest.Column, d different) Item {
	item := Item{What: "column " + c.Name, Holds: c.String(), Different: len(d.seen), Values: d.values, Looks: []Look{}}
	item.look(c.Name, guess.LookOfName(c.Name, p.known))
	if c.Type != manifest.TypeText && c.Type != manifest.TypeJSON {
		for _, number := range d.outliers() {
			item.look(number, "has as many digits as a telephone number, and the others have fewer or more")
		}
		item = item.short()
		for _, end := range []string{d.least, d.most} {
			if end != "" && !slices.Contains(item.Values, end) {
				item.Values = append(item.Values, end)
			}
		}
		return item
	}
	if len(d.values) < len(d.seen) {
		item.Others = p.table
	}
	item.look("", "is text that passes through as somebody wrote it")
	for i, look := range guess.LooksOfValues(d.values, p.known) {
		item.look(d.values[i], look)
	}
	return item
}

// short has the first values of a long list.
func (item Item) short() Item {
	item.Values = slices.Clip(item.Values[:min(len(item.Values), maxShown)])
	return item
}

// answered are the questions of the datasheet with the answers of the maintainers.
func (p *publishing) answered() Item {
	item := Item{What: "answers of the datasheet", Holds: "texts of the maintainers", Looks: []Look{}}
	for _, section := range slices.Sorted(maps.Keys(p.Answers)) {
		for _, name := range slices.Sorted(maps.Keys(p.Answers[section])) {
			if text := strings.TrimSpace(p.Answers[section][name]); text != "" {
				item.Values = append(item.Values, fmt.Sprintf("%s.%s %q", section, name, text))
				item.look(section+"."+name, guess.LookOfText(text, p.known))
			}
		}
	}
	item.Different = len(item.Values)
	return item
}
