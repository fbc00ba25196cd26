package guess

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// lexicon is a dictionary that has names of people among its words, as large ones do.
func lexicon(word string) bool {
	return english(word) ||
		slices.Contains(strings.Fields(`jana tom lin baker carter low vs checked rock skim twang high medium mild sad strong
		valence arousal dominance final overall text sentiment toxicity insult threat trust shame cat dog hidden
		schmidt hernandez jackson kim miller garcia king brown white fisher walker grace hope
		ilka black long young love grant`), word)
}

// sheet is a file whose columns have these labels as often as each other, and not in the same rows.
func sheet(header, labels string) string {
	var b strings.Builder
	b.WriteString("id," + header + "\n")
	all := strings.Fields(labels)
	for i := range 40 {
		fmt.Fprintf(&b, "1ab%02d", i)
		for j := range strings.Split(header, ",") {
			b.WriteString("," + all[(i+j+i/len(all)*j)%len(all)])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestAnnotators: columns with the same labels are those of annotators where their names are a person's or no words;
// columns of yes and no, and those whose names are words for labels, stay.
func TestAnnotators(t *testing.T) {
	const coder, mood = "hate none offensive", "anger joy fear"
	for _, test := range []struct {
		header, labels string
		columns        string // of the release
		left           string // the columns that were taken for those of annotators
		asked          string // the columns that init asks about
	}{
		{"Jana Novak,Thomas Okafor,Mei Lin,final", coder, "final", "Jana Novak,Thomas Okafor,Mei Lin", ""},
		{"Jana,Tom,Mei", coder, "", "Jana,Tom,Mei", ""},
		{"label_jana,label_tomasz,label_mei", "1 2 3", "", "label_jana,label_tomasz,label_mei", ""},
		{"Jana Novak,Mei Okafor,gold_label", coder, "gold_label", "Jana Novak,Mei Okafor", ""},
		{"jana,mei,sentiment", "low high", "sentiment", "jana,mei", ""},
		{"Lucía,Íñigo,Martínez,etiqueta", coder, "etiqueta", "Lucía,Íñigo,Martínez", ""},
		{"Jürgen,Müller,Endlabel", coder, "endlabel", "Jürgen,Müller", ""},
		{"Анна,Борис,итог", coder, "", "Анна,Борис", ""},
		{"JN,TO,ML", coder, "", "JN,TO,ML", ""},
		{"Mark,Grace,Will", coder, "", "Mark,Grace,Will", ""},
		// By their names alone they would be left out as well.
		{"Annotator 1,Annotator 2,Annotator 3,mood", mood, "mood", "Annotator 1,Annotator 2,Annotator 3", ""},
		{"coder_A,coder_B", "0 1", "", "coder_A,coder_B", ""},
		{"rater1,mood", mood, "mood", "rater1", ""},
		// Yes and no.
		{"Jana,Tom,Mei", "0 1", "", "Jana,Tom,Mei", ""},
		{"label_jana,label_tomasz,label_mei,label_okafor,label_lin,label_baker", "True False", "",
			"label_jana,label_tomasz,label_mei,label_okafor,label_lin,label_baker", ""},
		{"funny,dank,sad,trust,Mei,Tom", "0 1", "funny,dank,sad,trust", "Mei,Tom", "funny,dank,sad,trust"},
		{"joy,anger,fear,schadenfreude", "0 1", "joy,anger,fear,schadenfreude", "", ""},
		{"hidden,tox,nsfw", "yes no", "hidden,tox,nsfw", "", ""},
		// Family names, which are in the dictionary as well.
		{"Schmidt,Hernandez,Jackson", "0 1", "", "Schmidt,Hernandez,Jackson", ""},
		{"Kim,Müller", "yes no", "", "Kim,Müller", ""},
		{"label_schmidt,label_garcia", "True False", "", "label_schmidt,label_garcia", ""},
		{"schmidt,miller", coder, "", "schmidt,miller", ""},
		{"schmidt,kim", "1 2 3 4", "", "schmidt,kim", ""},
		{"Kim,Brown,King,final", "0 1", "final", "Kim,Brown,King", ""},
		{"funny,dank,sad,trust,Schmidt,Garcia", "0 1", "funny,dank,sad,trust", "Schmidt,Garcia", "funny,dank,sad,trust"},
		{"Schmidt,funny,sad", "0 1", "schmidt,funny,sad", "", ""},
		{"Schmidt,joy,anger", "0 1", "schmidt,joy,anger", "", ""},
		{"King,Brown,White", "0 1", "king,brown,white", "", "King,Brown,White"},
		{"baker,fisher,walker", "0 1", "baker,fisher,walker", "", "baker,fisher,walker"},
		{"joy,grace,hope", "0 1", "joy,grace,hope", "", "joy,grace,hope"},
		{"joy,hope,anger,fear", "0 1", "joy,hope,anger,fear", "", ""},
		{"brown,white,cat", "0 1", "brown,white,cat", "", ""},
		// Words for labels that are names as well.
		{"Metaphor,Irony,Black,White,Long,Young,Love,Hope,Joy,Grant", "0 1",
			"metaphor,irony,black,white,long,young,love,hope,joy,grant", "", ""},
		{"Black,White,Long,Young,Love,Hope,Joy,Grant", "1 2 3 4", "black,white,long,young,love,hope,joy,grant", "",
			"Black,White,Long,Young,Love,Hope,Joy,Grant"},
		{"Black,White,cat", "1 2 3 4", "black,white,cat", "", "Black,White,cat"},
		{"joy,hope,anger", "1 2 3 4", "joy,hope,anger", "", "joy,hope,anger"},
		{"long,young", coder, "long,young", "", "long,young"},
		// Names that are words: a person is asked.
		{"ilka,lin,baker", coder, "ilka,lin,baker", "", "ilka,lin,baker"},
		{"lin_label,final_label", coder, "lin_label,final_label", "", "lin_label,final_label"},
		{"label_1,label_2,label_3", coder, "label_1,label_2,label_3", "", "label_1,label_2,label_3"},
		{"A,B", coder, "a,b", "", "A,B"},
		{"valence,arousal,dominance", "1 2 3 4 5", "valence,arousal,dominance", "", "valence,arousal,dominance"},
		{"joy,anger,fear,trust,schadenfreude", "0 1 2 3", "joy,anger,fear,trust,schadenfreude", "",
			"joy,anger,fear,trust,schadenfreude"},
		// What is no annotator's.
		{"text_sentiment,image_sentiment,meme_sentiment", "low medium high",
			"text_sentiment,image_sentiment,meme_sentiment", "", ""},
	} {
		o := Options{Options: manifest.Options{Known: lexicon}}
		d, err := initFiles(t, o, file(t, "a.csv", sheet(test.header, test.labels)))
		if err != nil {
			t.Errorf("%s: %v", test.header, err)
			continue
		}
		quoted := func(columns string) string { return manifest.QuotedList(strings.Split(columns, ",")) }
		var want, said []string
		left := quoted(test.left)
		switch {
		case strings.Contains(test.left, ","):
			want = append(want, "columns "+left+" have the same labels, and were taken for the answers of annotators: "+
				"they were left out of the release's annotations")
		case test.left != "":
			want = append(want, "column "+left+" has the labels of other columns, and was taken for the answers of an "+
				"annotator: it was left out of the release's annotations")
		}
		if test.asked != "" {
			want = append(want, "columns "+quoted(test.asked)+" have the same labels: are they the answers of annotators? "+
				"Their names are published")
		}
		for _, line := range d.Warnings {
			if strings.Contains(line, "labels of") || strings.Contains(line, "same labels") {
				said = append(said, line)
			}
		}
		columns := strings.Join(d.Example[0][1:], ",")
		if diff := cmp.Diff(append(want, test.columns), append(said, columns)); diff != "" {
			t.Errorf("%s of %s: what it says, and the columns (-want +got):\n%s", test.header, test.labels, diff)
		}
	}
}

// TestAnnotatorsAreKept: --keep makes a category again of a column that was taken for an annotator's, and passes one
// through that is called after a person. release.toml names no column that was left out.
func TestAnnotatorsAreKept(t *testing.T) {
	o := Options{Options: manifest.Options{Known: lexicon}, Keep: []string{"Nkiru Okafor", "Thomas Lin"}}
	d, err := initFiles(t, o, file(t, "a.csv", sheet("Jana Novak,Nkiru Okafor,Thomas Lin,Anna Baker", "low medium high")))
	if err != nil {
		t.Fatal(err)
	}
	r := written(t, d, manifest.Options{})
	if len(r.Schema.Columns) != 1 || len(r.Schema.Categories) != 1 || r.Schema.Categories[0].Title != "Nkiru Okafor" ||
		r.Schema.Columns[0].Name != "thomas_lin" {
		t.Errorf("%+v", r.Schema)
	}
	for _, name := range []string{"Novak", "Baker"} {
		if strings.Contains(string(d.Settings), name) {
			t.Errorf("release.toml names %s:\n%s", name, d.Settings)
		}
	}
}

// TestSurnames: labels that are mostly capitalised words which are in no dictionary are not taken in silence.
func TestSurnames(t *testing.T) {
	for values, want := range map[string]bool{"Kvamsdal Nkemelu Lin": true, "Kvamsdal Joy Fear": false,
		"Anger Joy Fear":       false,
		"kvamsdal nkemelu lin": false, "NSFW SFW": false, "F1 F2 Kvamsdal": false} {
		d, err := initFiles(t, Options{Options: manifest.Options{Known: lexicon}},
			file(t, "a.csv", sheet("hidden", values)))
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Join(d.Warnings, "\n")
		if strings.Contains(said, "but most of them are capitalised words") != want {
			t.Errorf("%s: look at %q", values, d.Warnings)
		}
	}
}

// TestBritishWords: British spellings, words made of others and words of the field are words.
func TestBritishWords(t *testing.T) {
	known := withField(func(word string) bool {
		return slices.Contains([]string{"humor", "organized", "colorful", "analyze"}, word)
	})
	for word, want := range map[string]bool{"humour": true, "Organised": true, "colourful": true, "analyse": true,
		"subreddit": true, "upvotes": true, "seymour": false, "denise": false} {
		if known(word) != want {
			t.Errorf("%s is known: %v", word, !want)
		}
	}
}

// TestSameLabels: what the answers of two columns share, by how often each label was given.
func TestSameLabels(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"irony irony pun none", "irony pun none none", true},
		{"irony irony pun none", "irony none", true}, // the second never saw a pun
		{"irony pun", "irony simile", false},
		{"irony irony irony irony irony pun pun pun pun simile", "irony irony irony irony pun pun pun pun pun trope", true},
		{"1 2 3", "1 2 3 4 5", false}, // a longer scale
		{"1 2 3", "3 2 1", true},
		{"none none", "none none", false}, // one label
		{"none mild", "low high", false},
	} {
		count := func(text string) map[string]int {
			counts := make(map[string]int)
			for label := range strings.FieldsSeq(text) {
				counts[label]++
			}
			return counts
		}
		if a, b := count(test.a), count(test.b); haveSameLabels(a, b) != test.want || haveSameLabels(b, a) != test.want {
			t.Errorf("%s and %s have the same labels: want %v", test.a, test.b, test.want)
		}
	}
}

// TestLabelGroups: columns of yes and no are no group with those that have another answer as well.
func TestLabelGroups(t *testing.T) {
	in := "id,seen,jana,mei,final\n"
	for i := range 12 {
		say := func(j int) string { return []string{"yes", "no", "unsure"}[(i+j+i/3*j)%3] }
		in += fmt.Sprintf("1ab%02d,%s,%s,%s,%s\n", i, []string{"yes", "no"}[i%2], say(0), say(1), say(2))
	}
	d, err := initFiles(t, Options{Options: manifest.Options{Known: lexicon}}, file(t, "a.csv", in))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"id", "seen", "final"}
	if diff := cmp.Diff(want, d.Example[0]); diff != "" || len(d.Annotators) != 1 {
		t.Errorf("annotators %v; columns (-want +got):\n%s", d.Annotators, diff)
	}
}

// TestSameNumber: spellings of one number are one label, and numbers that a float64 cannot tell apart are not.
func TestSameNumber(t *testing.T) {
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{"1", "1.0", true}, {"1", "1.000000000000000000", true}, {"1e3", "1000", true}, {"0", "-0.0", true},
		{"1234567890123456788", "1234567890123456789", false}, {"9007199254740992", "9007199254740993", false},
		{"0.1", "0.10000000000000000001", false}, {"1e-400", "0", false}, {"123456789012345", "123456789012345.0", true},
	} {
		testkit.Same(t, test.a+" and "+test.b, test.same, sameLabel(test.a, test.b))
		testkit.Same(t, test.a+" and "+test.b+" in several columns", test.same, SharedLabel(test.a) == SharedLabel(test.b))
	}
}
