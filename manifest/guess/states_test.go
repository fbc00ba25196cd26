package guess

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestStates: init says which values of a column of states it does not know, and which rows are no answer.
func TestStates(t *testing.T) {
	const unknown, all = "has values that are in no list of states", ": these rows were taken as all others"
	for _, test := range []struct {
		column string
		values string // of the rows
		keep   []string
		want   []string
	}{
		{"status", "submitted archived archived withdrawn", nil,
			[]string{`column "status" ` + unknown + `, in 3 of 4 rows ("archived", "withdrawn")` + all}},
		{"Status", "submitted discarded Done -", nil,
			[]string{`column "Status" says of 1 of 3 rows that they are no answer ("discarded")` + all}},
		{"status", "a b c d e g h", nil,
			[]string{`column "status" ` + unknown + `, in 7 of 7 rows ("a", "b", "c", "d", "e" and 2 others)` + all}},
		{"status", "submitted ok COMPLETED", nil, nil},
		{"status", "archived held", []string{"status"}, nil},
		{"state", "CA TX CA", nil, nil},
		{"state", "CA draft CA", nil, []string{
			`column "state" says of 1 of 3 rows that they are no answer ("draft")` + all,
			`column "state" ` + unknown + `, in 2 of 3 rows ("CA")` + all}},
		{"removed_by_category", "moderator - anti_evil_ops deleted", nil, nil},
		{"removed_by_category", "moderator - new_team deleted", nil,
			[]string{`column "removed_by_category" ` + unknown + `, in 1 of 3 rows ("new_team")` + all}},
		{"is_removed", "yes no maybe", nil,
			[]string{`column "is_removed" ` + unknown + `, in 1 of 3 rows ("maybe")` + all}},
		{"post_status", "live gone [deleted]", nil, nil},
		{"removal_reason", "anna@example.org bert@example.org", nil, []string{`column "removal_reason" ` + unknown +
			", in 2 of 2 rows" + all}},
		{"mood", "archived held", nil, nil},
	} {
		in := "id," + test.column + "\n"
		for i, v := range strings.Fields(test.values) {
			in += fmt.Sprintf("1abcd%d,%s\n", i, strings.TrimPrefix(v, "-"))
		}
		d, err := initFiles(t, Options{Keep: test.keep}, file(t, "a.csv", in))
		if err != nil {
			t.Errorf("%s %s: %v", test.column, test.values, err)
			continue
		}
		got := slices.DeleteFunc(slices.Clone(d.Warnings),
			func(line string) bool { return !strings.HasSuffix(line, all) })
		if diff := cmp.Diff(test.want, got); diff != "" && len(got)+len(test.want) > 0 {
			t.Errorf("%s %s (-want +got):\n%s", test.column, test.values, diff)
		}
	}
}
