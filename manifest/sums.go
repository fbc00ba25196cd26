package manifest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"rehydrate/internal/userfile"
	"rehydrate/manifest/table"
)

// SumsName is the file with the SHA-256 of every file of a published release folder, as sha256sum prints them.
const SumsName = "SHA256SUMS"

// maxSums is more than the digests of a release need, which has maxFiles files of annotations at most.
const maxSums = 4 << 20

// sums are what the SHA256SUMS of a release folder says; nil where none counts. It says nothing of files that it does
// not list. What no Release reads, such as a datasheet, may have been changed or left out.
type sums struct {
	dir  string
	list map[string]string // by name below the folder, with slashes: SHA-256 in lower-case hex
}

// readSums reads the SHA256SUMS of a release folder; nil where it has none. The error is *Problems where the file is no
// list of digests.
func readSums(dir string) (*sums, error) {
	text, err := readSmall(dir, SumsName, maxSums)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := &sums{dir: dir, list: map[string]string{}}
	return s, s.parse(text)
}

func (s *sums) parse(text []byte) error {
	var problems Problems
	n := 0
	wrong := func(message string) { problems.Add(s.problem(SumsName, n, message)) }
	if len(text) > maxSums {
		text = nil
		wrong("the file is larger than 4 MiB")
	}
	for line := range bytes.Lines(userfile.Unmarked(text)) {
		n++
		line, ended := bytes.CutSuffix(line, []byte("\n"))
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 0 || line[0] == '#' { // sha256sum passes over these, too
			continue
		}
		name, sum, ok := sumOf(string(line))
		inside := path.Clean(name)
		above, twice := s.list[inside]
		switch {
		case !ended:
			wrong("the line is cut off")
		case !ok:
			wrong("the line is not a digest and a name, as sha256sum prints them")
		case !filepath.IsLocal(name):
			wrong(table.Quote(name) + " is not in the release folder")
		case twice && above != sum:
			wrong(table.Quote(name) + " has another digest in a line above")
		default:
			s.list[inside] = sum
		}
	}
	if len(s.list)+problems.Count() == 0 {
		wrong("it lists no file")
	}
	return problems.Err()
}

var (
	sumLine = regexp.MustCompile(`^(\\?)([0-9A-Fa-f]{64}) [ *](.+)$`)
	tagLine = regexp.MustCompile(`^(\\?)SHA256 \((.+)\) = ([0-9A-Fa-f]{64})$`)
	escapes = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r")
)

// sumOf reads a line of sha256sum, also one of its --tag. A backslash before the line says that the name has escapes.
func sumOf(line string) (name, sum string, ok bool) {
	escaped := ""
	if m := sumLine.FindStringSubmatch(line); m != nil {
		escaped, sum, name = m[1], m[2], m[3]
	} else if m := tagLine.FindStringSubmatch(line); m != nil {
		escaped, name, sum = m[1], m[2], m[3]
	}
	if escaped != "" {
		name = escapes.Replace(name)
	}
	return name, strings.ToLower(sum), name != ""
}

// problem is about a file of the folder. All have the same hint, so that it is said once.
func (s *sums) problem(name string, line int, message string) Problem {
	return Problem{File: filepath.Join(s.dir, name), Line: line, Message: message,
		Hint: "get the release again as it was published; if you changed it on purpose, delete " +
			filepath.Join(s.dir, SumsName) + " first"}
}

// has reports whether a file is listed.
func (s *sums) has(name string) bool {
	if s == nil {
		return false
	}
	_, listed := s.list[name]
	return listed
}

func (s *sums) missing(name string) Problem {
	return s.problem(name, 0, "the file is missing: SHA256SUMS lists it")
}

// compare adds a problem for a file that is listed with another digest than sum.
func (s *sums) compare(problems *Problems, name, sum string) {
	if s.has(name) && s.list[name] != sum {
		problems.Add(s.problem(name, 0, "the file is not as it was published: its digest is not the one in SHA256SUMS"))
	}
}

// checkSettings returns *Problems for a release.toml that is not as it is listed.
func (s *sums) checkSettings(text []byte) error {
	var problems Problems
	sum := sha256.Sum256(text)
	s.compare(&problems, SettingsName, hex.EncodeToString(sum[:]))
	return problems.Err()
}

// checkFiles returns *Problems for files that r reads and that are listed, where they are missing or have another
// digest. The annotations are digested by readHeader, so that here they only have to be there.
func (s *sums) checkFiles(r *Release) error {
	if s == nil {
		return nil
	}
	var problems Problems
	for _, name := range slices.Sorted(maps.Keys(s.list)) {
		isManifest := r.isManifest(name)
		if !isManifest && !r.isBeside(name) {
			continue
		}
		in := inputFile{path: filepath.Join(s.dir, name), inside: name}
		f, err := r.open(in)
		if errors.Is(err, fs.ErrNotExist) {
			problems.Add(s.missing(name))
		}
		if err != nil { // another one is for findFiles to say
			continue
		}
		f.Close()
		if isManifest {
			continue
		}
		sum, err := r.sum(in)
		if err != nil {
			return err
		}
		s.compare(&problems, name, sum)
	}
	return problems.Err()
}

// checkManifest returns *Problems for annotations that are not as they are listed, by the digests of r.
func (s *sums) checkManifest(r *Release) error {
	var problems Problems
	for _, in := range r.files {
		s.compare(&problems, filepath.ToSlash(in.inside), in.sum)
	}
	return problems.Err()
}

// isManifest reports whether a name below the folder is that of annotations, whether the file is there or not: what
// expand gives of the files that are there.
func (r *Release) isManifest(name string) bool {
	return slices.ContainsFunc(r.namedFiles(), func(file manifestFile) bool {
		at := path.Clean(filepath.ToSlash(file.Path))
		matches, _ := path.Match(at, name) // a pattern that is wrong was said
		_, p := table.FormatOf(name)
		return name == at || matches || path.Dir(name) == at && p == nil
	})
}

// isBeside reports whether a name below the folder is that of a file that r reads beside release.toml and annotations.
func (r *Release) isBeside(name string) bool {
	return slices.ContainsFunc(r.beside(), func(file besideFile) bool {
		at := path.Clean(filepath.ToSlash(file.name))
		return name == at || file.signed && name == at+SignatureSuffix
	})
}
