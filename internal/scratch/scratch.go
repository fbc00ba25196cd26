// Package scratch makes temporary files for content that may have to be erased: no name of theirs outlives the process,
// however it ends. Windows keeps the name of a file as long as the file is open.
package scratch

import "os"

// File returns an empty temporary file that is gone when it is closed. Its name begins with prefix while it has one.
func File(prefix string) (*os.File, error) { return nameless(prefix) }

// Unname takes the name of an open file away, where the system can. Elsewhere it does nothing, and the caller's removal
// after closing takes it.
func Unname(name string) error { return unname(name) }
