package guess

import (
	"fmt"
	"strings"
	"testing"

	"rehydrate/manifest"
)

// TestSplitsNameNobody: what may name somebody is no split; other words than the usual ones are taken and said.
func TestSplitsNameNobody(t *testing.T) {
	for _, test := range []struct {
		column, values string
		taken          bool
		says           string // a part of a warning; "" for no warning
	}{
		{"set", "anna ben clara", false, `column "set" would be the split, but the value at`},
		{"subset", "Hans_Meier J_Smith Kowalski", false, `column "subset" would be the split`},
		{"split", "cyXie jkim545 mw_1987", false, `column "split" would be the split`},
		{"split", "Kowalski Nowak train", false,
			`may name somebody (--keep "split" takes it as the split): it was left out`},
		{"set", "pilot_anna pilot_ben", false, `column "set" would be the split`},
		{"split", "train_anna train_ben", false, `column "split" would be the split`},
		// In a dictionary that has names as well.
		{"split", "jana train test", false, `column "split" would be the split`},
		{"set", "schmidt miller", false, `column "set" would be the split`},
		{"set", "annaschmidt train", false, `column "set" would be the split`},
		{"set", "white king", true, `but "white" is no usual name of one`},
		{"set", "J_other test", false, `column "set" would be the split`},
		{"split", "First train test", false, `column "split" would be the split, but the value at`},
		{"split", "First Train Test", true, `column "split" was taken for the split, but "First" is no usual name`},
		{"split", "first train test", true, `but "first" is no usual name of one`},
		{"set", "first second", true, `column "set" was taken for the split, but "first" is no usual name of one`},
		{"set", "A B", true, `but "A" is no usual name of one`},
		{"split", "train val test", true, ""}, {"split", "train_1 dev2 test-unseen", true, ""}, {"split",
			"Train TEST", true, ""},
		{"set", "fold0 fold1 holdout", true, ""}, {"partition", "0 1 2", true, ""}, {"split",
			"validation testing heldOut", true, ""},
	} {
		values := strings.Fields(strings.ReplaceAll(test.values, "-", "_"))
		in := "id,mood," + test.column + "\n"
		for i := range 12 {
			in += fmt.Sprintf("1n6oi%d,%s,%s\n", i%10+10*(i/10), []string{"joy", "anger"}[i%2], values[i%len(values)])
		}
		d, err := initFiles(t, Options{Options: manifest.Options{Known: lexicon}}, file(t, "a.csv", in))
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Join(d.Warnings, "\n")
		if taken := strings.Contains(strings.Join(d.Example[0], ","), "split"); taken != test.taken ||
			test.says == "" && said != "" || !strings.Contains(said, test.says) {
			t.Errorf("%s with %s: the columns are %v; it says %q", test.column, test.values, d.Example[0], said)
		}
		if all := string(d.Settings) + said + strings.Join(d.Notes, "\n"); !test.taken &&
			strings.Contains(all, values[0]) {
			t.Errorf("%s with %s: a value stands in\n%s", test.column, test.values, all)
		}
	}
	d, err := initFiles(t, Options{Options: manifest.Options{Known: english}, Keep: []string{"set"}},
		file(t, "a.csv", "id,mood,set\nabc,joy,anna\nabd,anger,ben\n"))
	if err != nil || strings.Join(d.Example[0], ",") != "id,split,mood" ||
		!strings.Contains(strings.Join(d.Warnings, "\n"), "because --keep names it") {
		t.Errorf("%v, %v: %v", d.Example, err, d.Warnings)
	}
}

// TestNamedParts: the line does not repeat the name.
func TestNamedParts(t *testing.T) {
	got := NamedParts("split", []string{"train", "Anna_Kowalski", "fold_2"}, english)
	if also := NamedParts("split", []string{"train", "Second", "anna"}, english); len(also) != 2 {
		t.Errorf("of a word written as a name, and of a name: %q", also)
	}
	if want := "the name of split 2 of 3 (13 letters) may name somebody"; len(got) != 1 || got[0] != want {
		t.Errorf("%q, want %q", got, want)
	}
}
