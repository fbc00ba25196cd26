package manifest

import (
	"strconv"
	"strings"
	"time"
)

// Reddit numbers posts with one counter, written in base 36, and comments with another that is far ahead: comments have
// had seven characters from c on since 2007 (t1_c0299an under t3_5yba3, 2007-10-15). So an id that no post can have yet
// is a comment's.
//
// Posts on record: 2018-03-14 84anfy, 2019-12-29 ehalr1, 2021-11-23 qzzsf5, 2026-04-13 1sklidt, 2026-05-27 1tp51gf,
// which is 3,972,527,007. The counter grew by 1.4 million a day from 2021 to 2026, and by 1.6 million in the last
// weeks. The bound starts half as high again and grows twice as fast, so it refuses no post even if the growth doubles.
// The counter of comments began at c000000, 26,121,388,032, which the bound reaches in 2044; from then on the oldest
// comments pass for posts, and the constants need newer records. Ids of earlier comments can be as short as those of
// posts, and then pass.
const (
	firstComment = 12 * 36 * 36 * 36 * 36 * 36 * 36
	newestBound  = 6_000_000_000 // on newestDay
	newestPerDay = 3_000_000
)

var newestDay = time.Date(2026, time.June, 1, 0, 0, 0, 0, time.UTC)

// TooNew reports whether no post has so high an id by a day. A day that is not known (zero), or that lies before
// 2026-06-01 and so comes from a wrong clock, leaves the ids that seven characters from c on write.
func (id PostID) TooNew(day time.Time) bool {
	bound := uint64(firstComment - 1)
	if days := day.Sub(newestDay) / (24 * time.Hour); !day.Before(newestDay) {
		bound = newestBound + newestPerDay*uint64(days)
	}
	n, err := strconv.ParseUint(strings.ToLower(string(id)), 36, 64)
	return err != nil || n > bound // 13 characters can be too large for a number
}
