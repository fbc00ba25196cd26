package manifest

import "testing"

// TestOutcomesHaveWords holds that nobody reads of an outcome without a word for it, and of no empty fate.
func TestOutcomesHaveWords(t *testing.T) {
	known := map[Fate]bool{}
	for _, fate := range Fates() {
		known[fate] = true
		if len(OutcomesOf(fate)) == 0 {
			t.Errorf("no outcome is %q", fate)
		}
	}
	for _, w := range outcomes {
		if !known[w.fate] {
			t.Errorf("the fate of %s is %q, which Fates does not list", w.outcome, w.fate)
		}
		if w.why == "" && w.outcome != Kept {
			t.Errorf("no page says why %s", w.outcome)
		}
	}
	later := Outcome("melted")
	if later.Fate() != "melted" || later.Why() != "" {
		t.Errorf("an outcome of a later version is said as %q, %q", later.Fate(), later.Why())
	}
}
