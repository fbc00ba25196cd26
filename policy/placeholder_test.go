package policy

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"rehydrate/internal/picture"
	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// TestBuiltInPlaceholders holds that each built-in placeholder is found by each of its marks.
func TestBuiltInPlaceholders(t *testing.T) {
	p, found := Default(), map[string]bool{}
	for _, k := range builtIn() {
		found[k.Name] = true
		if f := p.PlaceholderOf(k.SHA256, "", picture.Info{}, -1); k.SHA256 != "" && (f == nil || f.Detail != k.Meaning) {
			t.Errorf("%s by its hash: %v", k.Name, f)
		}
		if f := p.PlaceholderOf("", "", picture.Info{Format: k.Format, Width: k.Width, Height: k.Height},
			int64(k.Bytes)); k.Format != "" && (f == nil || f.Detail != k.Meaning) {
			t.Errorf("%s by its figures: %v", k.Name, f)
		}
		if !p.mayBePlaceholder(k.Bytes) || k.SHA256+k.MD5 != "" && k.Bytes == 0 {
			t.Errorf("%s: no file of its length is hashed", k.Name)
		}
		host, path, _ := strings.Cut(k.URL, "/")
		if f := p.FinalURLPlaceholder(&url.URL{Host: host, Path: "/" + path}); k.URL != "" &&
			(f == nil || f.Detail != k.Meaning) {
			t.Errorf("%s by its URL: %v", k.Name, f)
		}
	}
	for _, name := range []string{"reddit_missing", "reddit_card", "imgur_removed", "imgur_region",
		"flickr_unavailable"} {
		if !found[name] {
			t.Errorf("%s is not built in", name)
		}
	}
}

// TestPlaceholderByBody holds the marks of a body, with entries of the policy's own: the
// recorded pictures themselves cannot be shipped.
func TestPlaceholderByBody(t *testing.T) {
	body := encodePNG(t, drawn(21, 13))
	long, short := sha256.Sum256(body), md5.Sum(body)
	marks := map[string]string{
		"sha256": "sha256 = '" + hex.EncodeToString(long[:]) + "'",
		"md5":    "md5 = '" + hex.EncodeToString(short[:]) + "'",
		"size":   fmt.Sprintf("format = 'png'\nwidth = 21\nheight = 13\nbytes = %d", len(body)),
	}
	for mark, text := range marks {
		p, err := Parse([]byte("[[images.placeholder]]\nname = 'x'\nmeaning = 'nothing here'\nsource = 's'\noutcome = 'failed'\n"+text), "p")
		testkit.OK(t, err)
		if _, f := p.InspectImage(body); f == nil || *f != (Fault{manifest.Failed, "region_block", "nothing here"}) {
			t.Errorf("by its %s: %v", mark, f)
		}
		if _, f := p.InspectImage(encodePNG(t, drawn(21, 12))); f != nil {
			t.Errorf("another picture, by the %s: %v", mark, f)
		}
	}
	if _, f := Default().InspectImage(body); f != nil {
		t.Errorf("without an entry: %v", f)
	}
}

// TestPlaceholderOf: of a stored image its hash and its four figures count, all four together.
func TestPlaceholderOf(t *testing.T) {
	p := Default()
	p.Images.Placeholders = []Placeholder{{Name: "own", Meaning: "m", SHA256: "abc", Outcome: manifest.Failed},
		{Name: "none", Meaning: "m", MD5: "def"}}
	grey := picture.Info{Format: "png", Width: 130, Height: 60}
	for _, test := range []struct {
		sha256 string
		info   picture.Info
		length int64
		want   manifest.Reason
	}{
		{"f00", grey, 1048, "known_placeholder"},
		{"f00", grey, 1049, ""},
		{"f00", picture.Info{Format: "gif", Width: 130, Height: 60}, 1048, ""},
		{"f00", picture.Info{Format: "png", Width: 131, Height: 60}, 1048, ""},
		{"f00", picture.Info{Format: "png", Width: 130, Height: 61}, 1048, ""},
		{"abc", picture.Info{Format: "jpeg", Width: 5, Height: 5}, 5, "region_block"},
		{"def", picture.Info{Format: "jpeg", Width: 5, Height: 5}, 5, ""},
		{"", picture.Info{Format: "jpeg", Width: 5, Height: 5}, 5, ""},
	} {
		if f := p.PlaceholderOf(test.sha256, "", test.info, test.length); (f == nil) != (test.want == "") ||
			f != nil && f.Reason != test.want {
			t.Errorf("%+v is %v, want %q", test, f, test.want)
		}
	}
}

func TestFinalURLPlaceholder(t *testing.T) {
	p, err := Parse([]byte("[[images.placeholder]]\nname='own'\nmeaning='not in this region'\nurl='img.example.org/away'\noutcome='failed'\nsource='s'\n"), "p")
	testkit.OK(t, err)
	const known, region = "placeholder/known_placeholder", "failed/region_block"
	for raw, want := range map[string]string{
		"https://i.imgur.com/removed.png":                                   known,
		"https://I.IMGUR.COM./removed.png?1":                                known,
		"http://i.imgur.com:80/removed.png#x":                               known,
		"https://i.redd.it/o0h58lzmax6a1.png":                               known,
		"https://s.yimg.com/pw/images/en-us/photo_unavailable.png":          known,
		"https://s.yimg.com/pw/images/en-us/photo_unavailable_l.png":        known,
		"https://img.example.org/away.gif":                                  region,
		"https://i.imgur.com/aRemoved.png":                                  "",
		"https://i.imgur.com/x/removed.png":                                 "",
		"https://i.imgur.com.example.org/removed.png":                       "",
		"https://example.org/i.imgur.com/removed.png":                       "",
		"https://i.redd.it/removed.png":                                     "",
		"https://s.yimg.com/pw/images/en-us/other.png":                      "",
		"https://user@i.redd.it/abc.png":                                    "",
		"https://i.imgur.com":                                               "",
		"mailto:removed.png":                                                "",
		"https://[::1]/removed.png":                                         "",
		"https://img.example.org/gone":                                      "",
		"https://preview.redd.it/x.png?url=https://i.imgur.com/removed.png": "",
	} {
		u, err := url.Parse(raw)
		testkit.OK(t, err)
		f := p.FinalURLPlaceholder(u)
		switch {
		case want == "" && f != nil, want != "" && f == nil:
			t.Errorf("FinalURLPlaceholder(%s) = %v, want %q", raw, f, want)
		case f != nil && (string(f.Outcome)+"/"+string(f.Reason) != want || f.Detail == "" ||
			strings.Contains(f.Detail, "/")):
			t.Errorf("FinalURLPlaceholder(%s) = %v, want %q and a detail without a URL", raw, f, want)
		}
	}
}

func TestPlaceholderErrors(t *testing.T) {
	const head = "[[images.placeholder]]\nname = 'a'\nmeaning = 'b'\noutcome = 'placeholder'\nsource = 'c'\n"
	tests := []struct{ name, text, want string }{
		{"no key", "\n[[images.placeholder]]\n", `p:2:3: images.placeholder[0].name is ""; it must be lower-case words`},
		{"no mark", head, `p:2:1: images.placeholder[0].name is "a"; it must be followed by sha256, md5, url`},
		{"a name with blanks", "[[images.placeholder]]\nname = 'A b'\n", `p:2:1: images.placeholder[0].name is "A b"`},
		{"a name twice", head + "url = 'a.b/c'\n" + head + "url = 'a.b/d'\n",
			`p:8:1: images.placeholder[1].name is "a"; it must be a name that is not in the list already`},
		{"no meaning", "[[images.placeholder]]\nname = 'a'\nurl = 'a.b/c'\noutcome = 'failed'\nsource = 'c'\n",
			`p:1:3: images.placeholder[0].meaning is ""`},
		{"a meaning of two lines", strings.Replace(head, "'b'", `"b\nb"`, 1), "p:3:1: images.placeholder[0].meaning is"},
		{"a URL as the meaning", strings.Replace(head, "'b'", "'see https://a.b'", 1),
			"p:3:1: images.placeholder[0].meaning is"},
		{"an endless meaning", strings.Replace(head, "'b'", "'"+strings.Repeat("b", 201)+"'", 1),
			"p:3:1: images.placeholder[0].meaning is"},
		{"half a SHA-256", head + "sha256 = 'abc'\n", `p:6:1: images.placeholder[0].sha256 is "abc"; it must be 64`},
		{"a SHA-256 in capitals", head + "sha256 = '" + strings.Repeat("A", 64) + "'\n",
			"p:6:1: images.placeholder[0].sha256 is"},
		{"half an MD5", head + "md5 = 'abc'\n", `p:6:1: images.placeholder[0].md5 is "abc"; it must be 32`},
		{"a format alone", head + "format = 'png'\n", "p:1:3: images.placeholder[0].width is 0; it must be more than 0"},
		{"a length alone", head + "bytes = 10\n", `p:1:3: images.placeholder[0].format is ""`},
		{"another format", head + "format = 'bmp'\nwidth = 1\nheight = 1\nbytes = 1\n",
			`p:6:1: images.placeholder[0].format is "bmp"`},
		{"a negative height", head + "format = 'png'\nwidth = 1\nheight = -1\nbytes = 1\n",
			"p:8:1: images.placeholder[0].height is -1"},
		{"no length", head + "format = 'png'\nwidth = 1\nheight = 1\n", "p:1:3: images.placeholder[0].bytes is 0"},
		{"a whole host", head + "url = 'i.imgur.com/'\n", `p:6:1: images.placeholder[0].url is "i.imgur.com/"`},
		{"a host alone", head + "url = 'i.imgur.com'\n", "p:6:1: images.placeholder[0].url is"},
		{"a URL with its scheme", head + "url = 'https://i.imgur.com/removed.png'\n",
			"p:6:1: images.placeholder[0].url is"},
		{"a URL with a port", head + "url = 'i.imgur.com:443/removed.png'\n", "p:6:1: images.placeholder[0].url is"},
		{"a URL with a query", head + "url = 'i.imgur.com/a?b'\n", "p:6:1: images.placeholder[0].url is"},
		{"another outcome", strings.Replace(head, "'placeholder'", "'gone'", 1),
			`p:4:1: images.placeholder[0].outcome is "gone"; it must be "placeholder", or "failed"`},
		{"no source", strings.Replace(head, "'c'", "''", 1), `p:5:1: images.placeholder[0].source is ""`},
	}
	for _, tt := range tests {
		_, err := Parse([]byte(tt.text), "p")
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Parse = %v, want an error with %q", tt.name, err, tt.want)
		}
	}
}

// TestPlaceholderDigest: each key counts, the order of the tables does not.
func TestPlaceholderDigest(t *testing.T) {
	base := Placeholder{Name: "a", Meaning: "b", SHA256: "c", MD5: "d", Format: "png", Width: 1, Height: 2, Bytes: 3,
		URL: "e", Outcome: manifest.Failed, Source: "f"}
	digest := func(list ...Placeholder) string {
		p := Default()
		p.Images.Placeholders = list
		return p.Digest()
	}
	seen := map[string]bool{Default().Digest(): true, digest(base): true}
	for i := range reflect.TypeFor[Placeholder]().NumField() {
		k := base
		if field := reflect.ValueOf(&k).Elem().Field(i); field.Kind() == reflect.String {
			field.SetString("z")
		} else {
			field.SetInt(9)
		}
		seen[digest(k)] = true
		if digest(base, k) != digest(k, base) && k.Name != base.Name {
			t.Errorf("the digest depends on the order of %v and %v", base, k)
		}
	}
	if want := 2 + 11; len(seen) != want {
		t.Errorf("%d digests for %d lists", len(seen), want)
	}
}
