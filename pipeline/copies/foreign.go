package copies

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// others returns the paths of the other registered copies that are not closed.
func others(all []workspace.Copy, c workspace.Copy) (paths []string) {
	for _, other := range all {
		if other.Path != c.Path && state.StateOfCopy(other) != state.CopyClosed {
			paths = append(paths, other.Path)
		}
	}
	return paths
}

// noForeign fails when something lies in the folder of a copy that is not part of it. No reader can say of any file
// what is in it, so none is taken for free of the rows that went. An empty file holds nothing, and the other registered
// copies are looked at by themselves.
func noForeign(root *os.Root, c workspace.Copy, others []string) error {
	own := map[string]bool{}
	for _, f := range c.Files {
		own[f.Name] = true
		own[path.Join(path.Dir(f.Name), tempName(f.Name))] = true // a killed purge left it, and the next one removes it
	}
	apart := map[string]bool{}
	for _, other := range others {
		apart[other], apart[unfinishedPath(other)] = true, true
	}
	var found []string
	err := fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && apart[filepath.Join(c.Path, filepath.FromSlash(name))]:
			return fs.SkipDir
		case e.IsDir() || own[name]:
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() || info.Size() > 0 {
			found = append(found, name)
		}
		return nil
	})
	const most = 3
	n := len(found)
	switch {
	case err != nil || n == 0:
		return err
	case n == 1:
		return fmt.Errorf("%s, which is not part of the copy (any more), may hold a row that went: move it out of the copy, or delete it", found[0])
	case n > most:
		found = append(found[:most:most], fmt.Sprintf("%d more", n-most))
	}
	return fmt.Errorf("%s, which are not part of the copy (any more), may hold rows that went: move them out of the copy, "+
		"or delete them", strings.Join(found[:len(found)-1], ", ")+" and "+found[len(found)-1])
}
