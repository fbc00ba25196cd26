// Package fileversion says of a file whose format has another version than this program reads what to do.
package fileversion

import (
	"fmt"
	"strconv"
)

// An Other says that a file is in another version of its format than this program reads. Versions are whole numbers.
type Other struct {
	File  string // that was read, or what it is
	Have  string // its version, as it stands there
	Reads string // the version that this program reads
	Again string // how to have the file in that version, to go on from "or": "start another workspace"
}

// Check fails with *Other where have is not the version that this program reads.
func Check(file, have, reads, again string) error {
	if have == reads {
		return nil
	}
	return &Other{file, have, reads, again}
}

func (e *Other) Error() string {
	said := fmt.Sprintf("%s has version %.20q of its format, and this program reads version %s: ", e.File, e.Have, e.Reads)
	have, err := strconv.Atoi(e.Have)
	if err != nil || have < 0 {
		return said + "it is damaged, or another program wrote it"
	}
	said = fmt.Sprintf("%s has version %d of its format, and this program reads version %s: ", e.File, have, e.Reads)
	if reads, err := strconv.Atoi(e.Reads); err == nil && have < reads {
		return said + "use the older rehydrate that wrote it, or " + e.Again
	}
	return said + "use a rehydrate as new as the one that wrote it, or " + e.Again
}
