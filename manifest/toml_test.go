package manifest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type tomlHost struct {
	Name  string  `toml:"name"`
	Rate  float64 `toml:"rate"`
	Ports []int   `toml:"ports"`
}

type tomlDocument struct {
	Title  string `toml:"title"`
	Secure bool   `toml:"secure"`
	Reddit struct {
		Minutes float64 `toml:"minutes"`
		Retries int64   `toml:"retries"`
	} `toml:"reddit"`
	Images struct {
		Host []tomlHost `toml:"host"`
	} `toml:"images"`
	Words map[string]string `toml:"words"`
	Free  map[string]any    `toml:"free"`
	Day   any               `toml:"day"`
}

func TestDecodeTOML(t *testing.T) {
	const text = "title = 'a'\nday = 2025-01-02\n[reddit]\nminutes = 1\n[[images.host]]\nname = \"b\"\n[[images.host]]\nports = [1, 2]\n[words]\n\"x.y\" = \"z\"\n[free]\na = [[1], {b = 2}]\n"
	got := tomlDocument{Secure: true}
	doc, err := DecodeTOML("a.toml", []byte(text), &got)
	if err != nil || doc.Err() != nil {
		t.Fatal(err, doc.Err())
	}
	want := tomlDocument{Title: "a", Secure: true, Words: map[string]string{"x.y": "z"}}
	want.Reddit.Minutes = 1
	want.Images.Host = []tomlHost{{Name: "b"}, {Ports: []int{1, 2}}}
	got.Free, got.Day = nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
	for key, place := range map[string]string{
		"reddit.minutes": "4:1", "reddit.retries": "3:2", "images.host[1].ports[1]": "8:13", "images.host[1].name": "7:3", "images.host[0]": "5:3",
		`words."x.y"`: "10:1", tomlKey("words", "q.r"): "9:2", "free.a[0][0]": "12:7", "free.a[1].b": "12:12", "none": "1", "day": "2:1", "free.a[0]": "12:1",
	} {
		doc.problems = nil
		doc.Add(key, "x", "")
		if got := doc.Err().Error(); got != "a.toml:"+place+": x" {
			t.Errorf("%s is at %q, want %s", key, got, place)
		}
	}
}

func TestDecodeTOMLRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"tittle = 'a'\nsecure = false": "a.toml:1:1: unknown key \"tittle\"\n  hint: did you mean title?",
		"Title = 'a'":                  "a.toml:1:1: unknown key \"Title\"\n  hint: did you mean title?",
		"[nowhere]\na.b = 1\n[nowhere.c]\n[[images.host]]\nimages.host = 1": "a.toml:1:2: unknown key \"nowhere\"\n  hint: the keys here are title, secure, reddit, images, words, free, day\n" +
			"a.toml:5:1: unknown key \"images\" in [images.host]\n  hint: the keys here are name, rate, ports",
		"images.host = [{name = 'a', port = 1}]": "a.toml:1:29: unknown key \"port\" in [images.host]\n  hint: did you mean ports?",
		"title = 1\nsecure = 'x'\nwords = {a = 1}": "a.toml:1:1: title is not a text\n  hint: write title = \"...\"\n" +
			"a.toml:2:1: secure is not true or false\n  hint: write secure = true\na.toml:3:10: a is not a text\n  hint: write a = \"...\"",
		"reddit = 1":                           "a.toml:1:1: reddit is not a table\n  hint: write [reddit] on a line, and its keys below",
		"[images.host]\nname = 1":              "a.toml:1:9: host is not a list of tables\n  hint: write host = [{...}, {...}]",
		"[[reddit]]\nminutes = 1":              "a.toml:1:3: reddit is not a table",
		"reddit.minutes = 2025-01-02":          "a.toml:1:8: minutes is not a number\n  hint: write minutes = 1",
		"reddit.retries = 1.5":                 "a.toml:1:8: retries is not a number",
		"title = {a = 1}":                      "a.toml:1:1: title is not a text",
		"title = [1]":                          "a.toml:1:1: title is not a text",
		"images.host = [1]":                    "a.toml:1:16: host[0] is not a table",
		"reddit.retries = 9999999999999999999": "a.toml:1:18: not valid TOML: decimal number is too large",
		"title = 'a'\ntitle = 'b'":             "a.toml:2:1: not valid TOML: ",
		"[free]\na = " + strings.Repeat("[", 11) + "1" + strings.Repeat("]", 11): "a.toml:2:1: the file has too many keys, or a key is too long",
		"x = [1,\n":                        "a.toml:1:8: not valid TOML: array is incomplete",
		"x = \"\xff\"":                     "a.toml:1:6: not valid TOML: ",
		"\xef\xbb\xbftitle = 'a'":          "a.toml:1:1: the file starts with a byte order mark",
		strings.Repeat("#\n", maxTOML/2+1): "a.toml:1: the file is larger than 512 KiB",
	} {
		var v tomlDocument
		doc, err := DecodeTOML("a.toml", []byte(text), &v)
		if err == nil {
			err = doc.Err()
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

// Files of the greatest size that cost the library, or the table of keys, the most.
func TestDecodeTOMLHostile(t *testing.T) {
	fill := func(s string) string { return strings.Repeat(s, maxTOML/len(s)-1) }
	keys := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < maxTOML-700; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"dotted":     fill("a.") + "a = 1",
		"brackets":   "x = " + fill("[")[4:],
		"headers":    keys("[h%d]\n"),
		"lists":      fill("[[a]]\nb.c.d=1\n"),
		"items":      "x = [" + fill("1,")[10:] + "]",
		"nested":     fill("x = " + strings.Repeat("{a=", 9000) + "1" + strings.Repeat("}", 9000) + "\n"),
		"long table": "[" + fill("a")[:maxTOML-10] + "]\n",
		"unknown":    keys("[[images.host]]\nk%d=1\n"),
	} {
		start := time.Now()
		var v tomlDocument
		doc, err := DecodeTOML("a.toml", []byte(text), &v)
		if err == nil {
			err = doc.Err()
		}
		if took := time.Since(start); err == nil || took > 10*time.Second {
			t.Errorf("%s: %.200v after %v", name, err, took)
		}
	}
}
