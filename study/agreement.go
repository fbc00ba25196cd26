package study

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"rehydrate/internal/userfile"
	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/manifest/guess"
	"rehydrate/study/argilla"
)

// An Agreement is how far annotators agree.
type Agreement struct {
	labels.Agreement
	LeftOut int `json:"left_out,omitempty"` // answers that are drafts, were discarded, or otherwise say that they are none
	Unknown int `json:"unknown,omitempty"`  // entries that were annotated and that the release does not have
	// Missing are words for a missing value in place of answers.
	Missing []MissingWords `json:"missing_words,omitempty"`
	// Of an Argilla export only.
	Records *int     `json:"records,omitempty"`
	Ignored []string `json:"ignored,omitempty"` // questions that are no category
	// Order is what the numbers of the annotators follow. Own says that their labels are no release's.
	Order string `json:"-"`
	Own   bool   `json:"-"`
	// Scales are categories whose labels look like a scale, and have no order; SeveralSign is the sign between labels in
	// cells that were taken for one label. Both ask for a release that says what these labels are.
	Scales      []string `json:"scales,omitempty"`
	SeveralSign string   `json:"several_sign,omitempty"`
	// AsOne are the labels of columns, without a release, that have several spellings.
	AsOne []Spellings `json:"counted_as_one,omitempty"`
	// Twins are annotators who gave the same answers to the same entries, to all of them and to fewTwins at least.
	Twins []string `json:"twins,omitempty"`
	// Where batches were named.
	Batches []labels.BatchAgreement `json:"batches,omitempty"`
	// WithoutBatch counts the entries that were compared and are of no batch, OtherBatch those of which a later file
	// names another batch than the first one that names any.
	WithoutBatch int `json:"without_batch,omitempty"`
	OtherBatch   int `json:"other_batch,omitempty"`
}

// Distances say by which distance the alpha of each category was computed.
func (a Agreement) Distances() (all []string) {
	of := map[string][]string{}
	for _, c := range a.Categories {
		if c.Entries > 0 {
			of[c.Alpha.Distance] = append(of[c.Alpha.Distance], c.Name)
		}
	}
	for _, distance := range slices.Sorted(maps.Keys(of)) {
		all = append(all, distance+" for "+strings.Join(of[distance], ", "))
	}
	return all
}

// Uncompared names the categories without an entry that both annotated.
func (a Agreement) Uncompared() []string {
	var names []string
	for _, ca := range a.Categories {
		if ca.Entries == 0 {
			names = append(names, ca.Name)
		}
	}
	return names
}

// AsOneText lists the spellings that count as one label, each with its cells.
func (a Agreement) AsOneText() string {
	var all []string
	for _, s := range a.AsOne {
		all = append(all, s.String())
	}
	return manifest.List(all)
}

// Annotations say whose answers are compared.
type Annotations struct {
	Files    []string // one for each annotator, one Argilla export, or one with Columns
	Columns  []string // of the file, one for each annotator, all for one category; none for other files
	Category string   // of Columns; "" for the only one that has their labels
	Release  string   // whose labels they have; "" for FigSIM's, and with Columns for those that the columns have
	Batch    string   // the column of the files, or the metadata of the export, that names batches; "" for none
	Decides  string   // the annotator who decided where others differed, such as A3, whose answers are left out; "" for nobody
	Seed     uint64   // of the resamples that intervals are made of
}

// Agree compares annotators. Of a release it compares the answers for its entries, and counts the others.
func Agree(ctx context.Context, a Annotations) (out Agreement, err error) {
	how, files, batch := labels.Comparing{Seed: a.Seed}, a.Files, a.Batch
	if a.Decides != "" {
		how.Decider, err = labels.ParseDecider(a.Decides)
		if err != nil {
			return out, userfile.Wrong("--decides: %w", err)
		}
	}
	if err := distinct(files); err != nil {
		return out, err
	}
	like, err := like(ctx, a.Release)
	if err != nil {
		return out, err
	}
	var annotators []labels.Answers
	var batches Batches
	switch {
	case len(a.Columns) > 0:
		read, err := readColumns(ctx, a, like)
		if err != nil {
			return out, err
		}
		like, annotators, out.LeftOut, out.SeveralSign = read.like, read.answers, read.leftOut, read.several
		out.Missing, out.AsOne = read.missing, read.asOne
		out.Order, out.Own = "of --columns", a.Release == ""
	case len(files) == 1:
		export, err := readExport(ctx, files[0], batch, like)
		if err != nil {
			return out, err
		}
		annotators, out.Order = export.Annotators, "in which the export has them"
		batches.Add(export.Batches)
		out.Records, out.LeftOut, out.Ignored = &export.Records, export.LeftOut, export.Ignored
	default:
		out.Order = "of the files"
		for i, file := range files {
			read, err := ReadAnswers(ctx, file, like)
			if err != nil {
				return out, err
			}
			out.LeftOut += read.LeftOut
			out.Missing = append(out.Missing, read.MissingOf(i)...)
			annotators = append(annotators, read.Answers)
		}
	}
	if batch != "" && (len(files) > 1 || len(a.Columns) > 0) {
		var lacking []error
		for _, file := range files {
			lacks, err := batches.Read(ctx, file, batch)
			if err != nil {
				return out, userfile.Faulty(err)
			}
			if lacks != nil {
				lacking = append(lacking, lacks)
			}
		}
		if len(lacking) == len(files) {
			return out, userfile.Faulty(lacking[0])
		}
	}
	if a.Release != "" {
		out.Unknown, err = leaveUnknown(ctx, like, annotators, batches.Of())
		if err != nil {
			return out, err
		}
	}
	if batch != "" && len(batches.Of()) == 0 {
		return out, userfile.Wrong("--batch %s: no entry of %s has a value there", batch, manifest.List(files))
	}
	out.Scales, out.Twins = scalesOf(like.Schema), twins(annotators)
	out.Agreement, err = labels.Agree(like.Schema, annotators, how)
	if err != nil {
		return out, userfile.Faulty(err)
	}
	by, err := labels.AgreeByBatch(like.Schema, annotators, batches.Of(), how)
	if err != nil {
		return out, userfile.Wrong("--batch %s: %w", batch, err)
	}
	out.SetBatches(by, batches)
	return out, nil
}

// fewTwins is how many equal answers two people give by chance or because the task is easy.
const fewTwins = 10

// twins names the annotators who have an equal before them: one of two may be a copy of the other's file.
func twins(annotators []labels.Answers) (names []string) {
	same := func(a, b [][]int) bool { return slices.EqualFunc(a, b, slices.Equal) }
	for i, a := range annotators {
		equal := func(b labels.Answers) bool { return maps.EqualFunc(a, b, same) }
		if k := slices.IndexFunc(annotators[:i], equal); k >= 0 && len(a) >= fewTwins {
			names = append(names, labels.Annotator(k)+" and "+labels.Annotator(i))
		}
	}
	return names
}

// scalesOf names the categories whose labels look like a scale, but have no order.
func scalesOf(s manifest.Schema) (names []string) {
	for _, c := range s.Categories {
		var codes []string
		for _, l := range c.Labels {
			codes = append(codes, l.Code)
		}
		if c.Kind == manifest.Single && guess.IsScale(codes) {
			names = append(names, c.Name)
		}
	}
	return names
}

// leaveUnknown leaves out the answers for what is no entry of the release, and counts those entries. It is an error
// where no other is left.
func leaveUnknown(ctx context.Context, r *manifest.Release, annotators []labels.Answers,
	batches map[manifest.Key]string) (int, error) {
	has, known, unknown := make(map[manifest.Key]bool), make(map[manifest.Key]bool), make(map[manifest.Key]bool)
	for e, err := range r.Entries(ctx) {
		if err != nil {
			return 0, userfile.Faulty(err)
		}
		has[e.Key] = true
	}
	for _, answers := range annotators {
		for key := range answers {
			if has[key] {
				known[key] = true
			} else {
				unknown[key] = true
			}
		}
		maps.DeleteFunc(answers, func(key manifest.Key, _ [][]int) bool { return !has[key] })
	}
	maps.DeleteFunc(batches, func(key manifest.Key, _ string) bool { return !has[key] })
	if len(unknown) > 0 && len(known) == 0 {
		least := slices.MinFunc(slices.Collect(maps.Keys(unknown)), func(a, b manifest.Key) int {
			return strings.Compare(a.String(), b.String())
		})
		return 0,
			userfile.Wrong("no annotated entry is in the release (%d are not, such as %s): name the release that was annotated",
				len(unknown), least)
	}
	return len(unknown), nil
}

func readExport(ctx context.Context, file, batch string, like *manifest.Release) (out argilla.Export, err error) {
	if strings.ToLower(filepath.Ext(file)) != ".json" {
		return out, userfile.Wrong("%s alone is no export of Argilla (.json): name a table for each annotator, or the "+
			"columns of annotators in one table (--columns NAME,NAME)", file)
	}
	f, _, err := userfile.Open(file)
	if err == nil {
		defer f.Close()
		reader := argilla.New(batch, like)
		err = reader.Read(ctx, f, file)
		out = reader.Export()
	}
	if err != nil {
		return out, userfile.Faulty(err)
	}
	return out, nil
}
