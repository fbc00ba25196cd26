package csvcell

import "testing"

func TestCell(t *testing.T) {
	tests := map[string]string{"": "", "plain": "plain", "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@x": "'@x", "\tx": "'\tx", "\rx": "'\rx",
		"'=1": "''=1", "''-": "'''-", "'plain": "'plain", "'": "'", "a=1": "a=1"}
	for text, want := range tests {
		if got := Cell(text); got != want || FromCell(got) != text {
			t.Errorf("Cell(%q) = %q, want %q; FromCell of that = %q", text, got, want, FromCell(got))
		}
	}
}
