package guess

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rehydrate/manifest"
)

// TestFilesAndHomes: which texts name a file, and which name whose it is.
func TestFilesAndHomes(t *testing.T) {
	for text, want := range map[string]string{
		"/home/anna/memes/x0.jpg": "file home", `C:\Users\Anna.Schmidt\memes\x0.jpg`: "file home",
		`D:\annotations\akowalski\batch0`:       "file",
		"/data/local-files/?d=home/jdoe/x0.jpg": "file home", "/Users/jdoe/x0": "file home",
		"~akowalski/b0.csv": "file home", "~/memes": "file",
		"/content/drive/MyDrive/kowalski_thesis/b0.csv": "file home", "drive/MyDrive/kowalski": "home",
		`\\server\anna`:                 "file",
		"file:///home/akowalski/b0.csv": "file home", "c:/users/anna/x": "file home", "gs://kowalski-bucket/x": "file",
		"home/jdoe/x":         "home",
		"KowalskiPL_Mood.jpg": "file", "img/0001.PNG": "file", "x.jpg?width=640": "file", "/data/upload/1/x0.jpg": "file",
		"and/or": "", "n/a": "", "/pol/": "", "/r/memes": "", "/r/memes/x": "", "text/image": "", "~10": "",
		"~5 / 10": "", "home/garden": "", "0.5": "", ".jpg": "",
		"jpg": "", "i.redd.it": "", "v1.2": "", "a:b": "", "St. Louis": "", "U.S.": "", "hate speech": "", "1/2": "",
		"a/b/c": "", "": "", "users/groups": "",
	} {
		var got []string
		if isFile(text) {
			got = append(got, "file")
		}
		if isHome(text) {
			got = append(got, "home")
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q is %v, want %q", text, got, want)
		}
	}
}

// TestInitLeavesFilesOut: names of files, paths and titles are no labels, whatever stands between the words. Paths on
// somebody's computer and what repeats as labels do are said.
func TestInitLeavesFilesOut(t *testing.T) {
	for _, test := range []struct {
		values []string
		says   string
	}{
		{[]string{"/home/anna/x0.jpg", "/home/anna/x1.jpg", "/home/ben/x2.jpg"}, "a path on somebody's computer"},
		{[]string{`C:\Users\Anna.Schmidt\x0`, `C:\Users\Anna.Schmidt\x1`}, "a path on somebody's computer"},
		{[]string{"~akowalski/b0.csv", "~akowalski/b1.csv"}, "a path on somebody's computer"},
		{[]string{"drive/MyDrive/kowalski_thesis/b0", "drive/MyDrive/kowalski_thesis/b1"},
			"a path on somebody's computer"},
		{[]string{"KowalskiPL_Mood.jpg", "deadinside_Monday.jpg"}, "holds names of files"},
		{[]string{"i-want-to-die-every-dog-0.png", "i-want-to-die-every-cat-1.png"}, "holds names of files"},
		{[]string{"i.want.to.die.every.dog.and.you", "i.want.to.die.every.cat.and.you"}, "repeat as labels do"},
		{[]string{"i%20want%20to%20die%20every%20dog", "i%20want%20to%20die%20every%20cat"}, "repeat as labels do"},
		{[]string{"i+want+to+die+every+dog", "i+want+to+die+every+cat"}, "repeat as labels do"},
	} {
		in := "id\tmood\tx\n"
		for i := range 12 {
			in += fmt.Sprintf("1n6oi%d\t%s\t%s\n", i, []string{"joy", "anger"}[i%2], test.values[i%len(test.values)])
		}
		d, err := initFiles(t, Options{Options: manifest.Options{Known: english}}, file(t, "a.tsv", in))
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Join(d.Warnings, "\n")
		if slices.Contains(d.Example[0], "x") || !strings.Contains(said, `column "x"`) ||
			!strings.Contains(said, test.says) {
			t.Errorf("%s: the columns are %v; it says %q", test.values[0], d.Example[0], said)
		}
	}
}
