package guess

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest"
)

// TestOneHot takes columns of yes or no with a common prefix for one category, and its labels for what was yes.
func TestOneHot(t *testing.T) {
	for _, test := range []struct {
		header, first, second string
		o                     Options
		want                  []string // the categories
		entry                 string   // the codes of the first row, of each category
	}{
		{"emotion_joy,emotion_Anger,emotion_fear,emotion_very_sad,emotion_x", "1,0,1,0,0", "0,0,0,1,0", Options{},
			[]string{"emotion multi joy,Anger,fear,very_sad,x"}, "joy|fear"},
		{"Post Type: image,Post Type: video,Post Type: text,Post Type: poll,Post Type: link",
			"False,True,False,False,False", "True,False,False,False,False", Options{},
			[]string{"post_type multi image,video,text,poll,link"}, "video"},
		{"subreddit_a1,subreddit_b1,subreddit_c1,subreddit_d1,subreddit_e1", "1,0,1,0,0", "0,0,0,1,0", Options{},
			[]string{"subreddit_label multi a1,b1,c1,d1,e1"}, "a1|c1"},
		{"emotion_joy,emotion_anger,emotion_fear,emotion_sad,emotion_x", "1,0,1,0,0", "0,0,0,1,0",
			Options{Keep: []string{"emotion_x"}},
			[]string{"emotion_joy single 0,1", "emotion_anger single 0", "emotion_fear single 0,1",
				"emotion_sad single 0,1"}, "1 0 1 0"},
		{"a.tactic.urgency,a.tactic.fear,a.tactic.reward,a.use.training,a.use.test", "1,0,1,0,0", "0,1,0,1,1", Options{},
			[]string{"a_tactic_urgency single 0,1", "a_tactic_fear single 0,1", "a_tactic_reward single 0,1",
				"a_use_training single 0,1", "a_use_test single 0,1"}, "1 0 1 0 0"},
		{"a.mood.joy,a.mood.anger,a.mood.fear,a.mood.sad,a.mood.very_sad", "1,0,1,0,0", "0,1,0,1,1", Options{},
			[]string{"a_mood multi joy,anger,fear,sad,very_sad"}, "joy|fear"},
		{"p_joy,p_fear,p_anger,p_trust,p_hope,p_sad,p_love,p_pride,p_shame,p_grief",
			"0.6,0.2,0.1,0.1,0.3,0.0,0.0,0.0,0.0,0.0",
			"0.3,0.4,0.2,0.2,0.1,0.0,0.0,0.0,0.0,0.0", Options{}, nil, ""},
		{"is_a,is_b,is_c,is_d,is_e", "1,0,1,0,0", "0,1,0,1,1", Options{}, []string{"is_a single 0,1",
			"is_b single 0,1", "is_c single 0,1", "is_d single 0,1", "is_e single 0,1"}, "1 0 1 0 0"},
		{"vote_1,vote_2,vote_3,vote_4,vote_5", "1,0,1,0,0", "0,1,0,1,1", Options{},
			[]string{"vote_1 single 0,1", "vote_2 single 0,1", "vote_3 single 0,1", "vote_4 single 0,1",
				"vote_5 single 0,1"}, "1 0 1 0 0"},
		{"label_anna,label_bert,label_clara,label_hans,label_maria", "1,0,1,0,0", "0,1,0,1,1", Options{}, nil, ""},
		{"emotion_joy,emotion_anger,emotion_fear,emotion_sad,emotion_x", "1,0,1,0,", "0,1,0,1,1", Options{},
			[]string{"emotion_joy single 0,1", "emotion_anger single 0,1", "emotion_fear single 0,1",
				"emotion_sad single 0,1", "emotion_x single 1"}, "1 0 1 0 "},
	} {
		in := "id," + test.header + "\n"
		for i := range 24 {
			in += fmt.Sprintf("1abc%02d,%s\n", i, []string{test.first, test.second}[i%2])
		}
		d, err := initFiles(t, test.o, file(t, "a.csv", in))
		if err != nil {
			t.Errorf("%s: %v", test.header, err)
			continue
		}
		r := written(t, d, manifest.Options{})
		var got []string
		list, err := entries(t, r, nil)
		for i, c := range r.Schema.Categories {
			got = append(got, strings.Join(c.Codes(list[0].Labels[i]), "|"))
		}
		if diff := cmp.Diff(test.want, shown(r.Schema)); diff != "" || err != nil || strings.Join(got,
			" ") != test.entry {
			t.Errorf("%s: the first row has %q (%v), categories (-want +got):\n%s", test.header, got, err, diff)
		}
		said := strings.Contains(strings.Join(d.Warnings, "\n"), "5 columns of yes or no, from ")
		if said != (len(test.want) == 1) {
			t.Errorf("%s: look at %q", test.header, d.Warnings)
		}
	}
}

// TestOneHotAsks asks about a label that is called after somebody.
func TestOneHotAsks(t *testing.T) {
	d, err := initFiles(t, Options{Options: manifest.Options{Known: lexicon}}, file(t, "a.csv",
		"id,by_schmidt,by_joy,by_cat,by_dog,by_text\nabc,1,0,1,0,1\nabd,0,1,0,1,0\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := `column "by_schmidt" has a name that may be somebody's: it was taken for labels`
	if said := strings.Join(d.Warnings, "\n"); strings.Count(said, "may be somebody's") != 1 ||
		!strings.Contains(said, want) {
		t.Errorf("look at %q", d.Warnings)
	}
}

// TestManyOneHot takes more labels than a column of them would have.
func TestManyOneHot(t *testing.T) {
	header, row := "id,2_way_label", "0"
	for i := range 60 {
		header, row = header+fmt.Sprintf(",emotion_e%dx", i), row+","+fmt.Sprint(i%2)
	}
	in := header + "\n"
	for i := range 30 {
		in += fmt.Sprintf("1abc%02d,%s\n", i, row)
	}
	d, err := initText(t, "a.csv", in)
	if err != nil {
		t.Fatal(err)
	}
	s := written(t, d, manifest.Options{}).Schema
	if len(s.Categories) != 2 || s.Categories[0].Name != "emotion" || len(s.Categories[0].Labels) != 60 ||
		s.Categories[1].Name != "2_way_label" {
		t.Errorf("categories %q", shown(s))
	}
}

// TestOneHotNames leaves out columns of yes or no for each of some people.
func TestOneHotNames(t *testing.T) {
	in := "id,mood,annotator_jkim545,annotator_cyXie,annotator_Lil_SpazJoekp,annotator_Watchful1,annotator_Jupin210\n"
	for i := range 24 {
		in += fmt.Sprintf("1xyz%02d,%s,1,0,1,0,1\n", i, []string{"joy", "anger"}[i%2])
	}
	d, err := initFiles(t, Options{Options: manifest.Options{Known: english}}, file(t, "a.csv", in))
	if err != nil {
		t.Fatal(err)
	}
	r := written(t, d, manifest.Options{})
	if len(r.Schema.Categories) != 1 || len(d.Warnings) != 5 {
		t.Errorf("categories %q; look at %q", shown(r.Schema), d.Warnings)
	}
}
