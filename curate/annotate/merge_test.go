package annotate

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit"
	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/study"
)

const moods = `[[category]]
name = "mood"
kind = "ordinal"
labels = [{code = "L", name = "Low"}, {code = "H", name = "High"}]
[[category]]
name = "tags"
kind = "multi"
labels = [{code = "X", name = "Ex"}, {code = "Y", name = "Why"}, {code = "N", name = "None", exclusive = true}]
`

// A round is a folder with a release of the entries aaaa to eeee, and the answers of annotators.
type round struct {
	t   *testing.T
	dir string
	Merging
}

func newRound(t *testing.T, answers ...string) *round {
	t.Helper()
	r := &round{t: t, dir: t.TempDir()}
	r.write("release.toml", "name = \"Set\"\nmanifest = \"ids.csv\"\n")
	r.write("ids.csv", "id\naaaa\nbbbb\ncccc\ndddd\neeee\n")
	r.write("moods.toml", moods)
	var err error
	r.Release, err = manifest.Open(r.dir, manifest.Options{})
	testkit.OK(t, err)
	r.Scheme, err = Scheme(filepath.Join(r.dir, "moods.toml"), r.Release)
	testkit.OK(t, err)
	r.Batch, r.Decides = BatchName, labels.LastOfThree
	for i, text := range answers {
		r.Files = append(r.Files, r.write(labels.Annotator(i)+".jsonl", text))
	}
	return r
}

func (r *round) write(name, text string) string {
	path := filepath.Join(r.dir, name)
	testkit.OK(r.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// said is a line of an annotator's file: - for skipped, else the mood and the tags.
func said(id, mood string, tags ...string) string {
	if mood == "-" {
		return `{"id":"` + id + `","mood":null,"tags":null,"status":"skipped"}` + "\n"
	}
	return `{"id":"` + id + `","mood":"` + mood + `","tags":["` + strings.Join(tags,
		`","`) + `"],"status":"answered"}` + "\n"
}

// TestMergeRules: what stands of the answers to one entry, who decided it, and what is open.
func TestMergeRules(t *testing.T) {
	for _, c := range []struct {
		name    string
		decides labels.Decider
		answers []string // of one entry, by annotator
		mood    string   // agreed, decided, open
		tags    string
		stands  string // the line of the manifest
		decided string // who, for each question
	}{
		{"two alike, in any order of labels", labels.LastOfThree,
			[]string{said("aaaa", "L", "X", "Y"), said("aaaa", "L", "Y", "X")}, "agreed", "agreed",
			`{"id":"aaaa","mood":"L","tags":["X","Y"]}`, ""},
		{"two that differ", labels.LastOfThree, []string{said("aaaa", "L", "X"), said("aaaa", "H", "N")},
			"open: differ L H", "open: differ X N", "", ""},
		{"one alone", labels.LastOfThree, []string{said("aaaa", "L", "X")}, "open: too_few L", "open: too_few X", "", ""},
		{"one skipped", labels.LastOfThree, []string{said("aaaa", "L", "X"), said("aaaa", "-")}, "open: too_few L ",
			"open: too_few X ", "", ""},
		{"one skipped, a third agrees", labels.LastOfThree,
			[]string{said("aaaa", "L", "X"), said("aaaa", "-"), said("aaaa", "L", "X")}, "agreed", "agreed",
			`{"id":"aaaa","mood":"L","tags":["X"]}`, ""},
		{"one skipped, a third differs", labels.LastOfThree,
			[]string{said("aaaa", "L", "X"), said("aaaa", "-"), said("aaaa", "H", "X")},
			"open: differ L  H", "agreed", "", ""},
		{"the last of three decides", labels.LastOfThree,
			[]string{said("aaaa", "L", "X"), said("aaaa", "H", "X"), said("aaaa", "H", "Y")}, "decided", "agreed",
			`{"id":"aaaa","mood":"H","tags":["X"]}`, "A3"},
		{"with an answer of nobody else's", labels.LastOfThree,
			[]string{said("aaaa", "L", "X"), said("aaaa", "H", "N"), said("aaaa", "H", "Y")}, "decided", "decided",
			`{"id":"aaaa","mood":"H","tags":["Y"]}`, "A3 A3"},
		{"who was named decides", 1, []string{said("aaaa", "L", "X"), said("aaaa", "H", "X"), said("aaaa", "H", "Y")},
			"agreed", "decided",
			`{"id":"aaaa","mood":"H","tags":["X"]}`, "A1"},
		{"nobody decides", labels.Nobody, []string{said("aaaa", "L", "X"), said("aaaa", "H", "X"),
			said("aaaa", "H", "X")}, "open: differ L H H", "agreed", "", ""},
		{"nobody decides of four by default", labels.LastOfThree,
			[]string{said("aaaa", "L", "X"), said("aaaa", "L", "X"), said("aaaa", "L", "X"), said("aaaa", "H", "X")},
			"open: differ L L L H", "agreed", "", ""},
	} {
		r := newRound(t, c.answers...)
		r.Decides = c.decides
		m, err := Merge(t.Context(), r.Merging)
		testkit.OK(t, err)
		found := map[string]string{}
		for _, tally := range m.Categories {
			for what, n := range map[string]int{"agreed": tally.Agreed, "decided": tally.Decided} {
				if n == 1 {
					found[tally.Category] = what
				}
			}
		}
		for _, o := range m.Open {
			found[o.Category] = "open: " + o.Why + " " + strings.Join(o.Answers, " ")
		}
		var decided []string
		for _, a := range m.Annotators {
			for range a.Decided {
				decided = append(decided, a.Name)
			}
		}
		name, err := m.Write(t.Context(), filepath.Join(r.dir, "merged.jsonl"))
		testkit.OK(t, err)
		body, err := os.ReadFile(name)
		testkit.OK(t, err)
		stands := strings.TrimSpace(string(body))
		if strings.HasSuffix(name, ".open.csv") {
			stands = ""
		}
		want := []string{c.mood, c.tags, c.stands, c.decided}
		if diff := cmp.Diff(want, []string{found["mood"], found["tags"], stands,
			strings.Join(decided, " ")}); diff != "" || m.Asked != 1 || m.Unasked != 4 {
			t.Errorf("%s: %d asked, %d not (-want +got)\n%s", c.name, m.Asked, m.Unasked, diff)
		}
	}
}

// TestMergeNoLabel: an empty list is an answer, null is none, in the merge as in the agreement. Of cells a line without
// any answer was skipped.
func TestMergeNoLabel(t *testing.T) {
	const both = `{"id":"bbbb","mood":"L","tags":["X"]}` + "\n" + `{"id":"cccc","mood":"H","tags":["Y"]}` + "\n"
	r := newRound(t, `{"id":"aaaa","mood":"L","tags":["X"]}`+"\n"+both, `{"id":"aaaa","mood":null,"tags":[]}`+"\n"+both,
		`{"id":"aaaa","mood":"L","tags":["X"]}`+"\n"+both)
	r.Decides = labels.Nobody
	m, err := Merge(t.Context(), r.Merging)
	testkit.OK(t, err)
	if len(m.Open) != 1 || m.Annotators[1].Entries != 3 || strings.Join(m.Open[0].Answers, " ") != "X N X" {
		t.Errorf("open %+v, annotators %+v", m.Open, m.Annotators)
	}
	if m.Agreement.Categories[1].Alpha.Value == nil || *m.Agreement.Categories[1].Alpha.Value == 1 {
		t.Errorf("the answers of tags differ, and alpha is %+v", m.Agreement.Categories[1].Alpha)
	}

	csv := newRound(t)
	csv.Decides = labels.Nobody
	for i, line := range []string{"aaaa,L,X", "aaaa,,", "aaaa,L,X"} {
		csv.Files = append(csv.Files, csv.write(labels.Annotator(i)+".csv", "id,mood,tags\n"+line+"\nbbbb,L,X\n"))
	}
	m, err = Merge(t.Context(), csv.Merging)
	testkit.OK(t, err)
	if len(m.Open) != 0 || m.Annotators[1].Entries != 1 {
		t.Errorf("a line of empty cells: open %+v, annotators %+v", m.Open, m.Annotators)
	}

	// Without None, who said that no label applies is told as well.
	r = newRound(t, `{"id":"aaaa","mood":"L","tags":[]}`, `{"id":"aaaa","mood":"L","tags":["X"]}`)
	r.write("moods.toml", strings.Replace(moods, `, {code = "N", name = "None", exclusive = true}`, "", 1))
	r.Scheme, err = Scheme(filepath.Join(r.dir, "moods.toml"), r.Release)
	testkit.OK(t, err)
	m, err = Merge(t.Context(), r.Merging)
	testkit.OK(t, err)
	name, err := m.Write(t.Context(), filepath.Join(r.dir, "merged.jsonl"))
	testkit.OK(t, err)
	body, err := os.ReadFile(name)
	testkit.OK(t, err)
	if !strings.Contains(string(body), "A1: no label; A2: X") {
		t.Errorf("open questions: %s", body)
	}

	// That no label applies is an answer in the manifest, and null would be none.
	r = newRound(t, `{"id":"aaaa","mood":"L","tags":[]}`, `{"id":"aaaa","mood":"L","tags":[]}`)
	r.write("moods.toml", strings.Replace(moods, `, {code = "N", name = "None", exclusive = true}`, "", 1))
	r.Scheme, err = Scheme(filepath.Join(r.dir, "moods.toml"), r.Release)
	testkit.OK(t, err)
	m, err = Merge(t.Context(), r.Merging)
	testkit.OK(t, err)
	name, err = m.Write(t.Context(), filepath.Join(r.dir, "merged.jsonl"))
	testkit.OK(t, err)
	body, err = os.ReadFile(name)
	testkit.OK(t, err)
	if !strings.Contains(string(body), `"tags":[]`) {
		t.Errorf("the manifest: %s", body)
	}
}

// TestMergeAgreement: the one who decides is left out of the agreement altogether, also where one of the others skipped
// the entry.
func TestMergeAgreement(t *testing.T) {
	r := newRound(t,
		said("aaaa", "L", "X")+said("bbbb", "H", "X")+said("cccc", "-")+said("dddd", "L", "X"),
		said("aaaa", "L", "X")+said("bbbb", "L", "X")+said("cccc", "H", "X")+said("dddd", "L", "X"),
		said("bbbb", "H", "X")+said("cccc", "H", "X"))
	m, err := Merge(t.Context(), r.Merging)
	testkit.OK(t, err)
	a := m.Agreement
	testkit.Same(t, "who decides", []string{"A3"}, a.Deciders)
	testkit.Same(t, "pairs", []labels.AnnotatorPair{{A: "A1", B: "A2", Both: 3, OnlyB: 1}}, a.Pairs)
	testkit.Same(t, "observed", 2./3, *a.Categories[0].Observed)
	testkit.Same(t, "the bootstrap", &labels.Bootstrap{Resamples: 2000, Seed: 1, Level: .95}, a.Bootstrap)

	r.Decides = labels.Nobody
	m, err = Merge(t.Context(), r.Merging)
	testkit.OK(t, err)
	if a := m.Agreement; len(a.Deciders) != 0 || len(a.Pairs) != 3 {
		t.Errorf("nobody decides: %v left out, %d pairs", a.Deciders, len(a.Pairs))
	}
	r = newRound(t, said("aaaa", "L", "X"))
	m, err = Merge(t.Context(), r.Merging)
	testkit.OK(t, err)
	testkit.Same(t, "why there is none", "agreement takes two annotators, and there is 1", m.Without)
}

// TestMergeNobody: a question that nobody answered is told apart from one that is not open.
func TestMergeNobody(t *testing.T) {
	const half = `{"id":"aaaa","mood":null,"tags":["X"]}` + "\n"
	r := newRound(t, half, half)
	m, err := Merge(t.Context(), r.Merging)
	testkit.OK(t, err)
	name, err := m.Write(t.Context(), filepath.Join(r.dir, "merged.jsonl"))
	testkit.OK(t, err)
	open, err := os.ReadFile(name)
	testkit.OK(t, err)
	testkit.Same(t, "the open questions", "id,batch,mood,tags\naaaa,,no answer,\n", string(open))
}

// TestMergeOpen: the open questions are a table, an entry a line, which the next merge replaces, and which goes when
// they are answered. One that somebody else wrote or changed stays.
func TestMergeOpen(t *testing.T) {
	r := newRound(t, said("aaaa", "L", "X")+said("bbbb", "L", "X"), said("aaaa", "H", "N")+said("bbbb", "L", "Y"))
	to := filepath.Join(r.dir, "merged.jsonl")
	merge := func() (string, error) {
		m, err := Merge(t.Context(), r.Merging)
		testkit.OK(t, err)
		name, err := m.Write(t.Context(), to)
		return filepath.Base(name), err
	}
	write := func() string {
		name, err := merge()
		testkit.OK(t, err)
		return name
	}
	const table = "id,batch,mood,tags\naaaa,,A1: L; A2: H,A1: X; A2: N\nbbbb,,,A1: X; A2: Y\n"
	const other = "id,batch,mood,tags\nbbbb,2,no answer,\ncccc,,A12: H,A2: X|Y; A3: no label\n"
	for _, earlier := range []string{"", table, other} {
		if earlier != "" {
			r.write("merged.open.csv", earlier)
		}
		testkit.Same(t, "what is written", "merged.open.csv", write())
		open, err := os.ReadFile(OpenName(to))
		testkit.OK(t, err)
		testkit.Same(t, "the open questions", table, string(open))
	}
	if _, err := os.Stat(to); err == nil {
		t.Error("a manifest with open questions")
	}
	notes := []string{
		"",
		"my notes\n",
		strings.ReplaceAll(table, "\n", ",decided\n"),
		strings.Replace(table, "A1: L; A2: H", "L", 1),
		strings.Replace(table, "A1: L; A2: H", "A1: L; A2: H; both now say L", 1),
		strings.Replace(table, "A1: L; A2: H", "A1: L, sure", 1),
		strings.Replace(table, "bbbb,,,", "bbbb,,L,", 1),
		table + "the rest is for Monday\n",
	}
	stays := func(text string) {
		t.Helper()
		if there, err := os.ReadFile(OpenName(to)); string(there) != text || err != nil {
			t.Errorf("of a file of somebody's own, %q, is left %q, %v", text, there, err)
		}
	}
	for _, text := range notes {
		r.write("merged.open.csv", text)
		const want = "merged.open.csv is not as annotate merge wrote it"
		if _, err := merge(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("over %q: %v", text, err)
		}
		stays(text)
	}
	r.write("merged.open.csv", table)
	r.Files = append(r.Files, r.write("A3.jsonl", said("aaaa", "L", "X")+said("bbbb", "L", "X")))
	testkit.Same(t, "what is written", "merged.jsonl", write())
	if _, err := os.Stat(OpenName(to)); err == nil {
		t.Error("the open questions stay, although they are answered")
	}
	for _, text := range notes {
		r.write("merged.open.csv", text)
		write()
		stays(text)
	}
}

// TestMergeRefuses: each fault is an error that names the annotator or record, and nothing comes of the merge.
func TestMergeRefuses(t *testing.T) {
	for want, change := range map[string]func(*round){
		"A2 answered for zzzz, which is not an entry": func(r *round) {
			r.Files = append(r.Files,
				r.write("b.jsonl", said("zzzz", "L", "X")))
		},
		"are one file: an annotator answers once": func(r *round) { r.Files = append(r.Files, r.Files[0]) },
		"--decides A2: there are 1 annotators":    func(r *round) { r.Decides = 2 },
		`"sad" is not a label of category mood`: func(r *round) {
			r.Files = []string{r.write("b.jsonl",
				said("aaaa", "sad", "X"))}
		},
		"stands beside another": func(r *round) {
			r.Files = []string{r.write("b.jsonl",
				said("aaaa", "L", "X", "N"))}
		},
		"the files hold no answer for an entry": func(r *round) {
			r.Files = []string{r.write("b.jsonl",
				said("aaaa", "-"))}
		},
		"mood is a column of the release and a category":  func(r *round) { r.Release.Schema.Columns = []manifest.Column{{Name: "mood"}} },
		"record 1: one user answered for category mood t": func(r *round) { r.Files = []string{r.write("b.json", twice)} },
	} {
		r := newRound(t, said("aaaa", "L", "X"))
		change(r)
		if _, err := Merge(t.Context(), r.Merging); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

const twice = `[{"id":"aaaa","responses":{"mood":[{"value":"L","user_id":"u"},{"value":"H","user_id":"u"}]}}]`

// TestMergeBeside: an answer about another image is one about another entry, and one that says that it is none is not
// read.
func TestMergeBeside(t *testing.T) {
	r := newRound(t, `{"id":"aaaa","image":1,"mood":"L","tags":["X"]}`, said("aaaa", "L", "X"))
	if _, err := Merge(t.Context(), r.Merging); err == nil ||
		!strings.Contains(err.Error(), "A1 answered for aaaa/1, which is not an entry") {
		t.Errorf("an image that the release does not have: %v", err)
	}
	r = newRound(t,
		`{"id":"aaaa","mood":"H","tags":["Y"],"status":"draft"}`+"\n"+`{"id":"aaaa","mood":"L","tags":["X"],"status":"submitted"}`,
		`{"id":"aaaa","mood":"L","tags":["X"]}`+"\n"+`{"id":"bbbb","mood":"L","tags":["X"],"status":"discarded"}`)
	m, err := Merge(t.Context(), r.Merging)
	testkit.OK(t, err)
	testkit.Same(t, "asked, open and left out", [3]int{1, 0, 2}, [3]int{m.Asked, len(m.Open), m.LeftOut})
}

// TestMergeMissing: words for a missing value are no answers, and counted by annotator, tables behind exports.
func TestMergeMissing(t *testing.T) {
	r := newRound(t, said("aaaa", "L", "X")+said("bbbb", "L", "X"))
	r.Files = append(r.Files, r.write("b.csv", "id,mood,tags\naaaa,NA,X\nbbbb,N/A,null\ncccc,L,nan\n"),
		r.write("a.json", `[{"id":"aaaa","responses":{"mood":[{"value":"L","user_id":"u"}]}}]`))
	m, err := Merge(t.Context(), r.Merging)
	testkit.OK(t, err)
	testkit.Same(t, "words", []study.MissingWords{{Annotator: "A3", Category: "mood", Cells: 2, As: "NA"},
		{Annotator: "A3", Category: "tags", Cells: 2, As: "null"}}, m.Missing)
	testkit.Same(t, "entries with an answer", []int{1, 2, 2},
		[]int{m.Annotators[0].Entries, m.Annotators[1].Entries, m.Annotators[2].Entries})
}

// TestMergeBatches: an open question says of which batch its entry is, as tables and Argilla exports name it.
func TestMergeBatches(t *testing.T) {
	table := func(mood string) string { return "id,batch,mood,tags\naaaa,2," + mood + ",X\n" }
	argilla := func(mood string) string {
		return `{"id":"aaaa","metadata":{"batch":"3"},"responses":{"mood":[{"value":"` + mood + `","user_id":"u` + mood +
			`"}],"tags":[{"value":["X"],"user_id":"u` + mood + `"}]}}`
	}
	for _, test := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"tables", map[string]string{"a.csv": table("L"), "b.csv": table("H")}, "2"},
		{"tables without batches", map[string]string{"a.jsonl": said("aaaa", "L", "X"), "b.jsonl": said("aaaa", "H", "X")}, ""},
		{"a table, and then an export", map[string]string{"a.csv": table("L"), "b.json": "[" + argilla("H") + "]"}, "2"},
		{"an export and a table", map[string]string{"a.json": "[" + argilla("L") + "]", "b.jsonl": said("aaaa", "H", "X")}, "3"},
	} {
		r := newRound(t)
		r.Decides = labels.Nobody
		for _, name := range slices.Sorted(maps.Keys(test.files)) {
			r.Files = append(r.Files, r.write(name, test.files[name]))
		}
		m, err := Merge(t.Context(), r.Merging)
		testkit.OK(t, err)
		if len(m.Open) != 1 || m.Open[0].Batch != test.want || m.Open[0].Category != "mood" {
			t.Errorf("%s: open are %+v, want batch %q", test.name, m.Open, test.want)
		}
	}
}

// TestMergeManifest: a manifest has the image and the split of each entry where one is not the usual, and no field that
// no entry has.
func TestMergeManifest(t *testing.T) {
	for _, test := range []struct{ name, ids, want string }{
		{"ids alone", "id\naaaa\n", `{"id":"aaaa","mood":"L","tags":["X"]}`},
		{"the usual split", "id,split\naaaa,train\n", `{"id":"aaaa","mood":"L","tags":["X"]}`},
		{"another split", "id,split\naaaa,dev\n", `{"id":"aaaa","split":"dev","mood":"L","tags":["X"]}`},
		{"a digest", "id,phash\naaaa,00112233445566ff\n", `{"id":"aaaa","mood":"L","tags":["X"],"phash":"00112233445566ff"}`},
		{"a subreddit", "id,subreddit\naaaa,memes\n", `{"id":"aaaa","subreddit":"memes","mood":"L","tags":["X"]}`},
	} {
		r := newRound(t, said("aaaa", "L", "X"), said("aaaa", "L", "X"))
		r.write("ids.csv", test.ids)
		var err error
		r.Release, err = manifest.Open(r.dir, manifest.Options{})
		testkit.OK(t, err)
		m, err := Merge(t.Context(), r.Merging)
		testkit.OK(t, err)
		name, err := m.Write(t.Context(), filepath.Join(r.dir, "merged.jsonl"))
		testkit.OK(t, err)
		body, err := os.ReadFile(name)
		testkit.Same(t, test.name, test.want+"\n", string(body), err)
	}
}

// TestMergeRows: of a release with several rows about an image, the image is asked about and counted, once, and the
// manifest has a list of what its rows have in a column.
func TestMergeRows(t *testing.T) {
	r := newRound(t, said("aaaa", "L", "X")+said("bbbb", "L", "X"), said("aaaa", "L", "X")+said("bbbb", "L", "X"))
	r.write("release.toml", `name = "Set"
manifest = "ids.csv"
rows = "many"
[[column]]
name = "rater"
type = "text"
[[column]]
name = "meta"
type = "json"
`)
	r.write("ids.csv", `id,rater,meta
aaaa,ann,"{""a"":1}"
bbbb,ann,
aaaa,,"[2]"
cccc,ann,
aaaa,ben,
cccc,ben,
`)
	var err error
	r.Release, err = manifest.Open(r.dir, manifest.Options{})
	testkit.OK(t, err)
	m, err := Merge(t.Context(), r.Merging)
	testkit.OK(t, err)
	testkit.Same(t, "asked and unasked", [2]int{2, 1}, [2]int{m.Asked, m.Unasked})
	name, err := m.Write(t.Context(), filepath.Join(r.dir, "merged.jsonl"))
	testkit.OK(t, err)
	body, err := os.ReadFile(name)
	testkit.OK(t, err)
	testkit.Same(t, "the manifest", `{"id":"aaaa","mood":"L","tags":["X"],"rater":["ann",null,"ben"],"meta":[{"a":1},[2],null]}
{"id":"bbbb","mood":"L","tags":["X"],"rater":["ann"],"meta":[null]}
`, string(body))
}
