package workspace

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// A run that is killed in a commit leaves a journal beside state.db, and SQLite would roll it
// back by writing to state.db. A read-only workspace does the same on a copy in memory. The
// format is fixed by https://sqlite.org/fileformat2.html#the_rollback_journal.

const (
	journalMagic  = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
	journalHeader = 28 // bytes of a journal header that mean something
)

// isHotJournal reports whether a read failed because a journal has to be rolled back first:
// SQLite says so when it may write the database, and that it cannot open when it may not.
func isHotJournal(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code() == sqlite3.SQLITE_READONLY_ROLLBACK || e.Code()&0xff == sqlite3.SQLITE_CANTOPEN)
}

// openRolledBack opens a copy of state.db in memory with its journal rolled back. Empty means that
// nothing is left then, and nothing was opened: the tables were being made.
func (w *Workspace) openRolledBack(ctx context.Context) (empty bool, err error) {
	image, err := w.readRolledBack(ctx)
	if err != nil || len(image) == 0 {
		return err == nil, err
	}
	w.db, err = openInMemory(ctx, image)
	return false, err
}

// readRolledBack reads state.db and its journal and applies the one to the other. A run that
// starts meanwhile rolls back on disk and removes the journal; then the reading is repeated.
func (w *Workspace) readRolledBack(ctx context.Context) ([]byte, error) {
	for range 10 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		before, err := w.readJournal()
		if err != nil {
			return nil, err
		}
		db, err := fs.ReadFile(w.root.FS(), stateName)
		if err != nil {
			return nil, err
		}
		after, err := w.readJournal()
		if err != nil {
			return nil, err
		}
		if bytes.Equal(before, after) {
			return rollBack(db, before)
		}
	}
	return nil, errors.New("the journal keeps changing: a run is at work, try again")
}

func (w *Workspace) readJournal() ([]byte, error) {
	b, err := fs.ReadFile(w.root.FS(), journalName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// rollBack writes the old pages that journal holds back into db and cuts db to its old size.
// As in SQLite, the first record whose checksum is wrong ends the journal: it was not synced,
// so its page was not yet overwritten in db.
func rollBack(db, journal []byte) ([]byte, error) {
	var pageSize int
	oldPages := -1
	for off := 0; len(journal)-off >= journalHeader && string(journal[off:off+8]) == journalMagic; {
		field := func(i int) int { return int(binary.BigEndian.Uint32(journal[off+i:])) }
		count, nonce, sector := field(8), uint32(field(12)), field(20)
		if oldPages < 0 {
			oldPages, pageSize = field(16), field(24)
		}
		if pageSize < 512 || pageSize > 65536 || sector < 32 || sector > 65536 || field(24) != pageSize {
			return nil, fmt.Errorf("%s has page size %d and sector size %d: it is damaged", journalName, field(24), sector)
		}
		if int64(oldPages)*int64(pageSize) > int64(len(db))+int64(len(journal)) {
			return nil, fmt.Errorf("%s tells of more pages than there are: it is damaged", journalName)
		}
		off += sector
		record := 4 + pageSize + 4
		if fit := max(0, len(journal)-off) / record; count > fit {
			count = fit
		}
		for ; count > 0; count, off = count-1, off+record {
			page, data := int(binary.BigEndian.Uint32(journal[off:])), journal[off+4:off+4+pageSize]
			if page == 0 || binary.BigEndian.Uint32(journal[off+4+pageSize:]) != journalSum(nonce, data) {
				return cut(db, oldPages, pageSize)
			}
			if page > oldPages {
				continue // made by the transaction itself
			}
			if end := page * pageSize; end > len(db) {
				db = append(db, make([]byte, end-len(db))...)
			}
			copy(db[(page-1)*pageSize:], data)
		}
		off = (off + sector - 1) / sector * sector
	}
	if oldPages < 0 {
		return db, nil // no journal, or one whose header was never synced
	}
	return cut(db, oldPages, pageSize)
}

func cut(db []byte, pages, pageSize int) ([]byte, error) {
	if len(db) < pages*pageSize {
		return nil, fmt.Errorf("%s is shorter than its journal says: it is damaged", stateName)
	}
	return db[:pages*pageSize], nil
}

// journalSum is SQLite's checksum of a journal record: every 200th byte from the end.
func journalSum(nonce uint32, data []byte) uint32 {
	for i := len(data) - 200; i > 0; i -= 200 {
		nonce += uint32(data[i])
	}
	return nonce
}
