package guess

import (
	"fmt"
	"strings"
	"testing"

	"rehydrate/manifest"
)

// TestPersonalValues: what in a value tells who somebody is, and what only looks alike.
func TestPersonalValues(t *testing.T) {
	for text, want := range map[string]string{
		"a.meier@uni-x.de": "a mail address", "Anna <anna@x.org>": "a mail address", "x@müller.de": "a mail address",
		"anna [at] x.org": "a mail address",
		"+49 151 2345678": "a telephone number", "tel:+1 (555) 010-9999": "a telephone number",
		"+4915123456789":      "a telephone number",
		"0000-0002-1825-0097": "an ORCID", "https://orcid.org/0000-0002-1825-009X": "the page of an account",
		"5f2b9c1e8d3a4b0012ab34cd":             "an id as Prolific gives participants",
		"5F2B9C1E8D3A4B0012AB34CD":             "an id as Prolific gives participants",
		"A1B2C3D4E5F6G7":                       "an id as Mechanical Turk gives workers",
		"pos|A3UFAKEWORKER":                    "an id as Mechanical Turk gives workers",
		"123e4567-e89b-12d3-a456-426614174000": "a UUID",
		"twitter.com/annasmith":                "the page of an account",
		"https://www.instagram.com/anna":       "the page of an account", "github.com/anna/x": "the page of an account",
		"https://mastodon.social/@anna": "the page of an account", "example.org/users/anna": "the page of an account",
		"/user/anna":              "the page of an account",
		"https://uni-x.de/~meier": "the page of an account", "u/anna": "the page of an account",
		`CORP\aschmidt`: "the name of an account", `CORP\a.schmidt`: "the name of an account", `\alpha`: "", `and\or`: "",
		`A\B`: "", "aschmidt.github.io": "the page of an account",
		"aschmidt.github.io/memes": "the page of an account", "meier.tumblr.com": "the page of an account",
		"github.io": "", "annas-macbook.local": "the address of a device",
		"node7.lan": "the address of a device", "PID5f3c1a2b9d8e7f6a5b4c3d2e": "an id as Prolific gives participants",
		"p_5f3c1a2b9d8e7f6a5b4c3d2e": "an id as Prolific gives participants",
		"label_A2XJ8K3L9M0PQR":       "an id as Mechanical Turk gives workers",
		"by A2XJ8K3L9M0PQR":          "an id as Mechanical Turk gives workers",
		"aschmidt%40uni.edu":         "a mail address", "aschmidt AT uni DOT edu": "a mail address",
		"aschmidt at uni dot edu": "a mail address", "looking at a dot on paper": "",
		"ip-10-1-2-3": "the address of a device",
		"91.12.44.*":  "the address of a device", "91.12.44.x": "the address of a device",
		"user=kvamsdal_9": "the name of an account", "worker: kvamsdal": "the name of an account",
		"CN=aschmidt,OU=Lab": "the name of an account",
		"uid=1001(aschmidt)": "the name of an account", "user: 5": "", "rating=5": "",
		"4.2.1.*": "the address of a device", "1.2.*": "", "by=default": "", "annotator=1": "",

		"52.52, 13.40": "the coordinates of a place", "40.71,-74.00": "the coordinates of a place",
		"(52.5200 13.405)": "the coordinates of a place",
		"[48.13; 11.57]":   "the coordinates of a place", "52.52° N, 13.40° E": "the coordinates of a place",
		"POINT(13.40 52.52)": "the coordinates of a place",
		"0.25, 0.75":         "", "1.5, 2.5": "", "152.52, 113.40": "", "52, 13": "", "52.52": "", "1.25, 2.75, 3.75": "",

		"t2_abc12": "Reddit's id of an account", "t2_": "", "t2_weighted_scan": "",

		"T2_ABC12": "Reddit's id of an account", "user/anna": "the page of an account",
		"steamcommunity.com/id/anna": "the page of an account",
		"＠anna":                      "the name of an account", "a.meier＠uni-x.de": "a mail address",
		"a@\u200bx.de":   "a mail address",
		"anna@localhost": "the name of an account",
		"@anna":          "the name of an account", "anna.bsky.social": "the name of an account",
		"anna#1234": "the name of an account", "ig: anna.meier": "the name of an account",
		"Herr Meier": "the name of a person", "Dr. Meier": "the name of a person", "Mrs Smith": "the name of a person",
		"Prof. Dr. Anna Meier": "the name of a person",
		"herr meier":           "the name of a person", "dr. meier": "the name of a person",
		"Fr. Meier": "the name of a person",
		"Fr Rep":    "", "PhD Student": "",
		"Señora García": "the name of a person", "Mme. d'Arc": "", "Mme Dupont": "the name of a person",
		"pos|Frau Müller": "the name of a person",
		"田中さん":            "the name of a person", "王先生": "the name of a person", "김민수 씨": "the name of a person",
		"Госпожа Иванова": "the name of a person",
		"(555) 123-4567":  "a telephone number", "555-123-4567": "a telephone number",
		"1-555-123-4567": "a telephone number", "0049 170 1234567": "a telephone number",
		"0171 1234567": "a telephone number", "030/1234567": "a telephone number", "06 12 34 56 78": "a telephone number",
		"(030) 123 456": "a telephone number",
		"10.0.0.1":      "the address of a device", "192.168.1.20:8080": "the address of a device",
		"2001:db8::1": "the address of a device", "::1": "the address of a device",
		"fe80:0:0:0:1:2:3:4": "the address of a device", "00:1a:2b:3c:4d:5e": "the address of a device",
		"123-45-6789":      "a social security number",
		"0000000218250097": "an ORCID", "DE89370400440532013000": "the number of an account",
		"DE89 3704 0044 0532 0130 00": "the number of an account",

		"1.2.3": "", "1.2.3.400": "", "12:30:45": "", "12:30": "", "2020-01-01": "", "2020-01-01 10:00": "", "00211": "",
		"0.5 0.25": "", "100 200 300": "", "1-2-3": "",
		"0 1 2": "", "Mr": "", "Dr.": "", "mr and mrs": "", "dr": "", "ms a": "", "Ms Word": "the name of a person",
		"Drama": "", "Fr, Sa": "", "C#": "", "#metoo": "", "topic#1": "", "ratio: 3": "",
		"DE89370400440532013001": "", "insta": "", "instagram": "", "::": "", "a::b": "", "10:20:30": "", "9.9.2020": "",
		"先生": "", "悲しい": "", "0000000000000000": "",
		"": "", "positive": "", "@": "", "a @ b": "", "C++": "", "+1": "", "-10000000": "", "10000000000": "", "+3.5": "",
		"twitter.com": "", "netflix.com/watch": "",
		"i.redd.it": "", "knowyourmeme.com/memes/pepe": "", "ADVERTISEMENT": "", "AUTHORITARIAN": "", "ANTISEMITISM": "",
		"2020-01-01T10:00:00Z": "",
		"0001-0002-0003":       "", "0123456789abcdef": "", strings.Repeat("0a", 32): "", "deadbeef": "", "and/or": "",
		"1/2": "", "n/a": "", "x.y": "", "A": "",
		"gpt-4o-mini-2024-07-18": "", "and/user": "", "male/female": "",
	} {
		if got := personalValue(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestInitLeavesPersonalValuesOut: one value is enough, in a list as well, whatever the column is called and however
// few or many values are there; a person is told, and the value itself stands nowhere.
func TestInitLeavesPersonalValuesOut(t *testing.T) {
	for _, value := range []string{"anna.meier@x.org", "+49 151 2345678", "0000-0002-1825-0097",
		"5f2b9c1e8d3a4b0012ab34cd", "A1B2C3D4E5F6G7",
		"123e4567-e89b-12d3-a456-426614174000", "twitter.com/annasmith"} {
		for form, in := range map[string]string{"csv": "id,mood,source\n", "json": ""} {
			for i := range 30 {
				mood, source := []string{"sad", "glad"}[i%2], []string{"web", "film"}[i%2]
				if i == 17 {
					source = value
				}
				if form == "csv" {
					in += fmt.Sprintf("a%d,%s,%s\n", i, mood, source)
				} else {
					in += fmt.Sprintf(`{"id":"a%d","mood":%q,"source":["print",%q]}`+"\n", i, mood, source)
				}
			}
			name := map[string]string{"csv": "a.csv", "json": "a.jsonl"}[form]
			d, err := initText(t, name, in)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(d.Example[0], ","); got != "id,mood" {
				t.Errorf("%s, %s: the columns are %s", form, value, got)
			}
			said := strings.Join(d.Warnings, "\n")
			if !strings.Contains(said, `column "source" may hold personal data (`) ||
				strings.Contains(said+string(d.Settings), value) {
				t.Errorf("%s, %s: it says\n%s", form, value, said)
			}
			written(t, d, manifest.Options{})
		}
	}
}

// TestInitLeavesOut holds which columns are left out, beside those of TestColumnsOfPeople, and the line that says so.
func TestInitLeavesOut(t *testing.T) {
	var sixty strings.Builder
	sixty.WriteString("id,tag,mood\n")
	for i := range 300 {
		fmt.Fprintf(&sixty, "a%d,tag%d,sad\n", i, i%60)
	}
	sum, other := strings.Repeat("0a", 32), strings.Repeat("0b", 32)
	for _, test := range []struct{ name, in, columns, look string }{
		{"a name in other letters", "id,情感,mood\nabc,x,sad\nabd,y,glad\n", "id,mood",
			`column "情感" has a name that nobody can read`},
		{"a name without letters", "id,0,mood\nabc,x,sad\nabd,y,glad\n", "id,mood",
			`column "0" has a name that nobody can read`},
		{"a number under a name in other letters", "id,得分,mood\nabc,1.5,sad\nabd,2.5,glad\n", "id,mood",
			`column "得分" has a name that nobody can read`},
		{"a letter that looks Latin", "id,\u0430uthor,mood\nabc,x,sad\nabd,y,glad\n", "id,mood",
			"column \"\u0430uthor\" has a name that nobody can read"},
		{"people in other letters", "id,作者,mood\nabc,x,sad\nabd,y,glad\n", "id,mood", `column "作者" may hold personal data`},
		{"votes with names", "id,votes,mood\nabc,clara:pos,sad\nabd,clara:neg,glad\nabe,bert:pos,sad\n", "id,mood",
			`column "votes" may hold pairs of a person and a label`},
		{"topics and subtopics", "id,topic,mood\nabc,sport:golf,sad\nabd,sport:chess,glad\nabe,art:film,sad\n",
			"id,topic,mood", ""},
		{"ratios", "id,ratio,mood\nabc,1:1,sad\nabd,2:1,glad\n", "id,ratio,mood", ""},
		{"hashes of names", "id,worker_hash,mood\nabc," + sum + ",sad\nabd," + other + ",glad\n", "id,mood",
			`column "worker_hash" may hold personal data`},
		{"addresses without a scheme",
			"id,site,mood\nabc,example.org/a,sad\nabd,example.org/a,glad\nabe,other,glad\nabf,other,sad\nabg,other,sad\n",
			"id,mood", ""},
		{"a label twice", "id,tags,mood\nabc,x|y,sad\nabd,x,glad\nabe,y|y,glad\n", "id,tags,mood",
			`cells of column "tags" seem to hold several labels, but the value at a.csv:4:5 has one label twice`},
		{"a label twice in a list",
			`{"id":"abc","tags":["x","y"],"mood":"sad"}` + "\n" + `{"id":"abd","tags":["x","x"],"mood":"sad"}` + "\n" + `{"id":"abe","tags":["y"],"mood":"sad"}` + "\n", "id,mood",
			`column "tags" would hold labels, but the value at a.jsonl:2:20 has one label twice`},
		{"an object among labels",
			`{"id":"abc","tag":"x","mood":"sad"}` + "\n" + `{"id":"abd","tag":"y","mood":"sad"}` + "\n" + `{"id":"abe","tag":{},"mood":"sad"}` + "\n", "id,mood",
			`column "tag" would hold labels, but the value at a.jsonl:3:19 is an object`},
		{"a long value among labels", "id,tag,mood\nabc,x,sad\nabd,y,glad\nabe," + strings.Repeat("z", 65) + ",glad\n",
			"id,mood", `column "tag" would hold labels, but the value at a.csv:4:5 is not one line of at most 64 bytes`},
		{"labels in two cases", "id,tag,mood\nabc,C,sad\nabd,c,glad\nabe,P,glad\nabf,p,sad\n", "id,tag,mood",
			`labels of column "tag" that differ in case alone count as one: "C" and "c", "P" and "p"`},
		{"half characters",
			`{"id":"abc","tag":"\ud83d","mood":"sad"}` + "\n" + `{"id":"abd","tag":"\ud83e","mood":"sad"}` + "\n",
			"id,mood", `column "tag" has a value that cannot be used, at a.jsonl:1:19: it has half of a character`},
		{"decimal commas", "id;confidence;mood\nabc;0,67;sad\nabd;1,00;glad\nabe;0,67;sad\n", "id,mood",
			`column "confidence" has numbers with a decimal comma`},
		{"thousands", "id;views;contrast;mood\nabc;902;1,50;sad\nabd;1.131;2,25;glad\nabe;3.193;4,50;sad\n", "id,mood",
			`column "views" has numbers whose points may part thousands, such as "1.131" at a.csv:3:5, for others have a decimal comma`},
		{"three digits behind a point",
			"id;views;contrast;mood\nabc;902;1,50;sad\nabd;1.131;2,25;glad\nabe;3.19;4,50;sad\n",
			"id,mood,views", `column "contrast" has numbers with a decimal comma`},
		{"rounded times", "id,created_utc,mood\nabc,1.59E+09,sad\nabd,1591234567,glad\n", "id,mood",
			`column "created_utc" holds times that a spreadsheet rounded, such as "1.59E+09" at a.csv:2:5`},
		{"numbers of JSON, whose points part decimals",
			`{"id":"abc","rating":3,"mood":"sad"}` + "\n" + `{"id":"abd","rating":1.014,"mood":"glad"}`, "id,mood,rating", ""},
		{"means of three", "id,rating,mood\nabc,1.333,sad\nabd,1.667,glad\nabe,2,sad\n", "id,mood,rating", ""},
		{"places", "id,place,mood\nabc,\"52.52, 13.40\",sad\nabd,\"48.13, 11.57\",glad\nabe,\"52.52, 13.40\",sad\n",
			"id,mood",
			`column "place" may hold personal data (the coordinates of a place)`},
		{"places in lists",
			`{"id":"abc","place":[52.52,13.405],"mood":"sad"}` + "\n" + `{"id":"abd","place":[48.13,11.57],"mood":"glad"}` + "\n",
			"id,mood", `column "place" may hold personal data (the coordinates of a place)`},
		{"parts of a place", "id,x_coord,y_coord,mood\nabc,52.521,13.401,sad\nabd,52.522,13.402,glad\n", "id,mood",
			`column "x_coord" may hold personal data`},
		{"places in an image", "id,x_coord,box_coords,mood\nabc,521,0.521,sad\nabd,522,0.902,glad\n",
			"id,x_coord,mood,box_coords", ""},
		{"names, surname first",
			"id,note,mood\nabc,\"Meier, Hans\",sad\nabd,\"Schmidt, Anna\",glad\nabe,\"Garcia, Maria\",sad\n", "id,mood",
			`column "note" may hold names of people`},
		{"commas in labels", "id,stage,mood\nabc,\"attempt, past\",sad\nabd,none,glad\n", "id,stage,mood",
			`cells of column "stage" are cut at each comma into several labels, such as "attempt, past" at a.csv:2:5`},
		{"accounts in brackets",
			"id,votes,mood\nabc,sad (jkim545),sad\nabd,funny (cyXie),glad\nabe,sad (jkim545),sad\nabf,funny (cyXie),glad\n",
			"id,mood", `column "votes" may hold names of accounts`},
		{"accounts behind a sign", "id,votes,mood\nabc,sad/jkim545,sad\nabd,cyXie=sad,glad\nabe,class,sad\n", "id,mood",
			`column "votes" may hold names of accounts`},
		{"accounts of a letter and a family name", "id,pass,mood\nabc,a_schmidt,sad\nabd,t_miller,glad\nabe,a_schmidt,sad\n", "id,mood",
			`column "pass" may hold names of accounts`},
		{"one account of a letter and a family name", "id,pass,mood\nabc,first,sad\nabd,t.miller,glad\nabe,other,sad\n", "id,pass,mood",
			`column "pass" was taken for labels, but one of them may name an account, at a.csv:3:5`},
		{"university accounts", "id,code,mood\nabc,tl772,sad\nabd,kn199,glad\nabe,tl772,sad\n", "id,mood",
			`column "code" may hold names of accounts`},
		{"one account among labels", "id,decided,mood\nabc,first,sad\nabd,second,glad\nabe,jkim545,glad\nabf,other,sad\n",
			"id,decided,mood",
			`column "decided" was taken for labels, but one of them may name an account, at a.csv:4:5`},
		{"one id among labels", "id,decided,mood\nabc,first,sad\nabd,second,glad\nabe,2s5ti,glad\nabf,other,sad\n",
			"id,decided,mood",
			`column "decided" was taken for labels, but one of them is a code, which can be an id or the name of an account, at a.csv:4:5`},
		{"ids", "id,sub,mood\nabc,2s5ti,sad\nabd,2qh1i,glad\nabe,2s5ti,glad\n", "id,mood",
			`column "sub" may hold codes, which can be ids or names of accounts`},
		{"colours", "id,label,mood\nabc,#2b2e3a,sad\nabd,#ffffff,glad\nabe,#2b2e3a,glad\n", "id,label,mood", ""},
		{"one account in brackets",
			"id,decided,mood\nabc,first,sad\nabd,second,glad\nabe,done (jkim545),glad\nabf,first,sad\nabg,second,sad\nabh,first,sad\n", "id,decided,mood",
			`column "decided" was taken for labels, but one of them may name an account, at a.csv:4:5`},
		{"two names that are words",
			"id,sheet,mood\nabc,Mark Grace,sad\nabd,Will Rose,glad\nabe,Mark Grace,sad\nabf,Will Rose,glad\n", "id,mood",
			`column "sheet" may hold names of people`},
		{"American names", "id,sheet,mood\nabc,Jayden,sad\nabd,Kaitlyn,glad\n", "id,mood",
			`column "sheet" may hold names of people`},
		{"a domain login", "id,tag,mood\nabc,x,sad\nabd,CORP\\aschmidt,glad\nabe,x,glad\n", "id,mood",
			`column "tag" may hold personal data (the name of an account)`},
		{"a worker for each column",
			"id,label_A2XJ8K3L9M0PQR,label_5f3c1a2b9d8e7f6a5b4c3d2e,Prof_Schmidt,mood\nabc,x,y,x,sad\nabd,y,x,y,glad\n",
			"id,mood",
			`column "label_A2XJ8K3L9M0PQR" may hold personal data`},
		{"a person for each column", "id,Dr. Schmidt,kvamsdal@uni.edu,mood\nabc,x,y,sad\nabd,y,x,glad\n", "id,mood",
			`column "Dr. Schmidt" may hold personal data`},
		{"an account for a column", "id,ASchmidt,label_aschmidt23,mood\nabc,x,y,sad\nabd,y,x,glad\n",
			"id,mood", `columns "ASchmidt", "label_aschmidt23" have the same labels, and were taken for the answers of`},
		{"an account for one column", "id,ASchmidt,mood\nabc,x,sad\nabd,y,glad\n", "id,aschmidt,mood",
			`column "ASchmidt" has a name that may be somebody's`},
		{"a family name in a column", "id,mood_schmidt,mood\nabc,x,sad\nabd,y,glad\n", "id,mood_schmidt,mood",
			`column "mood_schmidt" has a name that may be somebody's`},
		{"a family name for a column", "id,Müller,mood\nabc,0,sad\nabd,1,glad\n", "id,muller,mood",
			`column "Müller" has a name that may be somebody's: it was taken for labels`},
		{"a family name for a column of true and false", "id,schmidt,mood\nabc,True,sad\nabd,False,glad\n",
			"id,mood,schmidt", `column "schmidt" has a name that may be somebody's: it passes through`},
		{"an account in a column", "id,a.schmidt rating,mood\nabc,x,sad\nabd,y,glad\n", "id,a_schmidt_rating,mood",
			`column "a.schmidt rating" has a name that may be somebody's`},
		{"a column by somebody", "id,label_by_kvamsdal,mood\nabc,x,sad\nabd,y,glad\n", "id,label_by_kvamsdal,mood",
			`column "label_by_kvamsdal" has a name that may be somebody's`},
		{"by chance", "id,label_by_vote,first2class,mood\nabc,x,y,sad\nabd,y,x,glad\n",
			"id,label_by_vote,first2class,mood", `columns "label_by_vote", "first2class" have the same labels: are they`},
		{"names of months", "id,month,mood\nabc,April,sad\nabd,May,glad\n", "id,month,mood", ""},
		{"months in digits", "id,month,mood\nabc,2021-03,sad\nabd,2021-04,glad\n", "id,mood",
			`column "month" holds months or dates, which are no labels`},
		{"one name among labels", "id,tag,mood\nabc,x,sad\nabd,y,glad\nabe,Anna,glad\nabf,z,sad\n", "id,tag,mood",
			`column "tag" was taken for labels, but one of them may name a person, at a.csv:4:5`},
		{"one sentence in Chinese", "id,tag,mood\n" + manyTags("今天我很难过我不知道该怎么办才好啊"), "id,tag,mood",
			`column "tag" was taken for labels, but one of them looks like a sentence, at a.csv:3:4`},
		{"sentences in Chinese", "id,note,mood\nabc,今天我很难过我不知道该怎么办才好啊,sad\nabd,我真的很高兴因为明天放假了,glad\n", "id,mood", ""},
		{"sentences in Chinese that repeat",
			"id,note,mood\n" + strings.ReplaceAll(manyTags("今天我很难过我不知道该怎么办才好啊"), ",x,", ",我真的很高兴因为明天放假了,"), "id,mood",
			`column "note" holds sentences or addresses that repeat as labels do`},
		{"sentences in Thai", "id,note,mood\nabc,วันนี้ฉันเศร้ามากไม่รู้จะทำอย่างไรดี,sad\nabd,x,glad\n", "id,mood",
			""},
		{"sentences with hyphens",
			"id,note,mood\nabc,my-cat-is-very-sad-today,sad\nabd,this_has_six_words_in_it,glad\n", "id,mood", ""},
		{"digests that repeat",
			"id,key,mood\nabc,5f4dcc3b5aa765d61d8327deb882cf99,sad\nabd,5f4dcc3b5aa765d61d8327deb882cf99,glad\nabe,6f4dcc3b5aa765d61d8327deb882cf99,glad\n",
			"id,mood", `column "key" holds digests, which can stand for people where they repeat`},
		{"60 labels", sixty.String(), "id,mood",
			`column "tag" has 60 different values that repeat, and at most 50 are taken for labels`},
	} {
		name := "a.csv"
		if strings.HasPrefix(test.in, "{") {
			name = "a.jsonl"
		}
		path := file(t, name, test.in)
		d, err := initFiles(t, Options{Options: manifest.Options{Known: english}}, path)
		if err != nil {
			t.Fatal(err)
		}
		said := strings.ReplaceAll(strings.Join(d.Warnings, "\n"), path, name)
		if got := strings.Join(d.Example[0], ","); got != test.columns || !strings.HasPrefix(said, test.look) ||
			(said == "") != (test.look == "") {
			t.Errorf("%s: columns %s, want %s; it says %q", test.name, got, test.columns, said)
		}
	}
}

// manyTags are 20 rows, of which the second has the text in place of x.
func manyTags(text string) string {
	var b strings.Builder
	for i := range 20 {
		fmt.Fprintf(&b, "b%d,%s,sad\n", i, map[bool]string{true: text, false: "x"}[i == 1])
	}
	return b.String()
}
