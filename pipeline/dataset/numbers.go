package dataset

import (
	"encoding/csv"
	"fmt"
	"io"
	"iter"
	"math"
	"path"
	"slices"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"rehydrate/internal/csvcell"
	"rehydrate/pipeline/dataset/scan"
)

// NumbersName is how a file of numbers is called, before its ending.
const NumbersName = "features"

// numbersKey is the key of a footer that says how the numbers of the file were made.
const numbersKey = "rehydrate.numbers"

// WriteNumbers writes a table of rows with an id and numbers: as CSV if name ends so, else as Parquet, whose footer has
// made, which says how they were made. A NaN is an empty cell.
func WriteNumbers(w io.Writer, name string, columns []string, made string, rows iter.Seq2[string, []float64]) error {
	if path.Ext(name) == ".csv" {
		return writeNumbersCSV(w, columns, rows)
	}
	var root group
	root.add("id", parquet.Optional(parquet.Encoded(parquet.String(), &parquet.Plain)))
	for _, c := range columns {
		root.add(c, parquet.Optional(parquet.Leaf(parquet.DoubleType)))
	}
	pw := numbersWriter(w, parquet.NewSchema("schema", root), made)
	for id, numbers := range rows {
		row := parquet.Row{parquet.ByteArrayValue([]byte(id)).Level(0, 1, 0)}
		for i, v := range numbers {
			if math.IsNaN(v) {
				row = append(row, parquet.NullValue().Level(0, 0, i+1))
			} else {
				row = append(row, parquet.DoubleValue(v).Level(0, 1, i+1))
			}
		}
		if _, err := pw.WriteRows([]parquet.Row{row}); err != nil {
			return fmt.Errorf("write the row of %s: %w", id, err)
		}
	}
	return pw.Close()
}

func numbersWriter(w io.Writer, schema *parquet.Schema, made string) *parquet.GenericWriter[any] {
	return parquet.NewGenericWriter[any](w, schema, parquet.Compression(&parquet.Zstd), parquet.DataPageVersion(1),
		parquet.CreatedBy("rehydrate", "", ""), parquet.KeyValueMetadata(numbersKey, made))
}

func writeNumbersCSV(w io.Writer, columns []string, rows iter.Seq2[string, []float64]) error {
	out := csv.NewWriter(w)
	err := out.Write(slices.Concat([]string{"id"}, columns))
	for id, numbers := range rows {
		cells := []string{csvcell.Name(id)} // a stranger named the file, perhaps for a spreadsheet or a terminal
		for _, v := range numbers {
			cell := ""
			if !math.IsNaN(v) {
				cell = strconv.FormatFloat(v, 'g', -1, 64)
			}
			cells = append(cells, cell)
		}
		if err == nil {
			err = out.Write(cells)
		}
	}
	out.Flush()
	if err == nil {
		err = out.Error()
	}
	return err
}

// numbersWithout writes a file of WriteNumbers once more, without rows.
func numbersWithout(w io.Writer, f *scan.File, made string, gone func(id string) (bool, error)) error {
	pw := numbersWriter(w, f.Schema(), made)
	for row, err := range f.Rows(f.Columns...) {
		drop := false
		if err == nil {
			drop, err = gone(string(row[0].ByteArray()))
		}
		if err == nil && !drop {
			_, err = pw.WriteRows([]parquet.Row{row})
		}
		if err != nil {
			return err
		}
	}
	return pw.Close()
}
