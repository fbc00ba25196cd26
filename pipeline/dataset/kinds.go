package dataset

import (
	"path"
	"slices"
)

// The formats of copies that are made from a dataset and have rows of their own.
const (
	Argilla Format = "argilla"   // an annotation round: RecordsName and the settings of .argilla, see WriteRecords
	Numbers Format = NumbersName // features.csv or features.parquet, see WriteNumbers
	Answers Format = "answers"   // of models: predictions, scores and examples as JSON Lines
)

// describing are the names of the files that describe the rows of a copy, of whatever format, and hold none.
var describing = []string{"README.md", "croissant.json", "settings.json", "dataset.json", NumbersName + ".json",
	"run.json"}

// Describes reports whether a file of a copy is named as one that describes its rows, and holds none.
func Describes(name string) bool {
	base := path.Base(name)
	return slices.Contains(describing, base) &&
		(path.Base(path.Dir(name)) == ".argilla") == (base == "settings.json" || base == "dataset.json")
}

// FormatOf returns the format of a copy whose files have these names: Parquet if none of them shows another one.
func FormatOf(names []string) Format {
	for _, kind := range []struct {
		format Format
		shows  func(name string) bool
	}{
		{Folder, func(name string) bool { return ImageID(name) != "" }},
		{WebDataset, func(name string) bool { return path.Ext(name) == ".tar" }},
		{Argilla, func(name string) bool { return path.Base(name) == RecordsName }},
		{Numbers, func(name string) bool { return path.Base(name) == NumbersName+path.Ext(name) && Holds(name) }},
		{Answers, func(name string) bool { return isAnswers(path.Base(name)) }},
	} {
		if slices.ContainsFunc(names, kind.shows) {
			return kind.format
		}
	}
	return Parquet
}
