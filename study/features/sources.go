package features

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"rehydrate/internal/userfile"
)

// Sources returns the Parquet files of a dataset or a workspace, or else the folder or file itself.
func Sources(source string) ([]string, error) {
	for _, below := range []string{"dataset/data", "data", ""} {
		files, _ := filepath.Glob(filepath.Join(globless(source), below, "*.parquet")) // a bad pattern is its only error
		if len(files) > 0 {
			return files, nil
		}
	}
	_, err := os.Stat(source)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s: no such file or folder", source)
	}
	return []string{source}, err
}

// globless takes the meaning off the signs of a pattern.
func globless(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// OpenDictionaries reads dictionaries, each a path or NAME=path, and refuses columns that two of them have.
func OpenDictionaries(args []string, union bool) (list []*Dictionary, err error) {
	names := map[string]string{}
	for _, arg := range args {
		name, path, named := strings.Cut(arg, "=")
		if !named {
			name, path = "", arg
		}
		file, _, err := userfile.Open(path)
		if err != nil {
			return nil, err
		}
		d, err := ReadDictionary(file, path)
		file.Close()
		if err != nil {
			return nil, err
		}
		d.Name, d.Union = cmp.Or(name, d.Name), union
		for _, category := range d.Categories {
			column := d.Name + "." + category
			if names[column] != "" {
				return nil, fmt.Errorf("%s and %s both have %s: name one of them, as in --dictionary NAME=%s", names[column],
					path, column, path)
			}
			names[column] = path
		}
		list = append(list, d)
	}
	return list, nil
}
