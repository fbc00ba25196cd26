package policy

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"rehydrate/manifest"
)

// Bounds of policy.toml; a real one has a few kilobytes in short lines. The TOML parser
// needs memory that grows with the square of a dotted key's length, and such a key stands
// on one line.
const (
	maxFile = 64 << 10
	maxLine = 1000
)

// A fileError is a fault in a policy file. It reads "file:line: message (hint)".
type fileError struct {
	file    string
	line    int // 0 when unknown
	message string
	hint    string
}

func (e *fileError) Error() string {
	var b strings.Builder
	b.WriteString(e.file)
	if e.line > 0 {
		fmt.Fprintf(&b, ":%d", e.line)
	}
	b.WriteString(": " + e.message)
	if e.hint != "" {
		b.WriteString(" (" + e.hint + ")")
	}
	return b.String()
}

// The document is policy.toml as it is written. Pointers tell a missing key from a zero.
type document struct {
	Access struct {
		Grant *string `toml:"grant"`
	} `toml:"access"`
	Reddit struct {
		RequestsPerMinute *float64 `toml:"requests_per_minute"`
		RecheckWithin     *string  `toml:"recheck_within"`
		SecondLookAfter   *string  `toml:"second_look_after"`
		MassRemovalShare  *float64 `toml:"mass_removal_share"`
		Readmit           *string  `toml:"readmit"`
	} `toml:"reddit"`
	Images struct {
		MaxBytes     *int64                `toml:"max_bytes"`
		MaxPixels    *int64                `toml:"max_pixels"`
		MaxSide      *int                  `toml:"max_side"`
		SuspectAfter *int                  `toml:"suspect_after"`
		Host         []hostDocument        `toml:"host"`
		Placeholder  []placeholderDocument `toml:"placeholder"`
	} `toml:"images"`
	Text struct {
		MaskNames *bool `toml:"mask_names"`
	} `toml:"text"`
	Filter struct {
		Mode             *string  `toml:"mode"`
		EnglishThreshold *float64 `toml:"english_threshold"`
	} `toml:"filter"`
	Dedupe struct {
		HashRadius     *int  `toml:"hash_radius"`
		WordDifference *int  `toml:"word_difference"`
		Guard          *bool `toml:"guard"`
	} `toml:"dedupe"`
}

type hostDocument struct {
	Name              string   `toml:"name"`
	RequestsPerSecond *float64 `toml:"requests_per_second"`
	Concurrency       *int     `toml:"concurrency"`
}

// Parse reads a policy.toml. Keys that are missing take their values from Default; an
// unknown key, a wrong type or a value out of range is an error that names file, line
// and what to write instead. Unknown keys and values out of range are reported together,
// a line each, up to 20. The file name is used in messages only.
func Parse(b []byte, file string) (Policy, error) {
	var doc document
	found, where, err := decode(b, file, &doc)
	if err != nil {
		return Policy{}, err
	}
	p, bad := doc.policy()
	found = append(found, located(bad, file, where)...)
	if err := together(found, file); err != nil {
		return Policy{}, err
	}
	return p, nil
}

// decode reads a TOML file into doc, a pointer to a struct, and gives the keys that doc does
// not have and the lines of all keys. The error is for a file that cannot be read at all.
func decode(b []byte, file string, doc any) (unknown []*fileError, where map[string]int, err error) {
	if err := readable(b, file); err != nil {
		return nil, nil, err
	}
	meta, err := toml.Decode(string(b), doc)
	if err != nil {
		return nil, nil, syntaxError(err, file)
	}
	where = lines(b)
	for _, key := range meta.Undecoded() {
		unknown = append(unknown, unknownKey(key, file, where, reflect.TypeOf(doc).Elem()))
	}
	return unknown, where, nil
}

// readable refuses what is not text of a sensible size, before the parser sees it.
func readable(b []byte, file string) error {
	if len(b) > maxFile {
		return &fileError{file, 0, fmt.Sprintf("the policy is %d bytes long, more than %d", len(b), maxFile), "is this the right file?"}
	}
	if bytes.HasPrefix(b, []byte("\xef\xbb\xbf")) || bytes.HasPrefix(b, []byte("\xff\xfe")) || bytes.HasPrefix(b, []byte("\xfe\xff")) {
		return &fileError{file, 1, "the file starts with a byte order mark", `save it as "UTF-8", without BOM`}
	}
	if !utf8.Valid(b) {
		return &fileError{file, 0, "not valid UTF-8", "save the file as UTF-8 text"}
	}
	for i, line := range bytes.Split(b, []byte("\n")) {
		if len(line) > maxLine {
			return &fileError{file, i + 1, fmt.Sprintf("the line is %d bytes long, more than %d", len(line), maxLine), "is this the right file?"}
		}
	}
	return nil
}

// together makes one error of those found, in the order of their lines; nil of none.
func together(found []*fileError, file string) error {
	const most = 20
	slices.SortStableFunc(found, func(a, b *fileError) int { return a.line - b.line })
	found = slices.CompactFunc(found, func(a, b *fileError) bool { return *a == *b }) // of a key in several hosts
	var all []error
	for _, e := range found[:min(len(found), most)] {
		all = append(all, e)
	}
	if more := len(found) - most; more > 0 {
		all = append(all, &fileError{file, 0, fmt.Sprintf("%d more faults", more), ""})
	}
	return errors.Join(all...)
}

// A wrong type is reported as "toml: line 3 (last key "a.b"): incompatible types: ..."
var typeError = regexp.MustCompile(`^toml: line (\d+) \(last key "([^"]*)"\): (.*)$`)

func syntaxError(err error, file string) error {
	var pe toml.ParseError
	if errors.As(err, &pe) && pe.Message != "" {
		return &fileError{file, pe.Position.Line, pe.Message, ""}
	}
	if m := typeError.FindStringSubmatch(err.Error()); m != nil {
		line, _ := strconv.Atoi(m[1])
		return &fileError{file, line, m[2] + ": " + m[3], "the default policy shows the form of every key"}
	}
	return &fileError{file, 0, err.Error(), ""}
}

// A badValue is a setting at fault; the key has the form that lines uses.
type badValue struct{ key, message string }

// located makes errors of the settings at fault. A key that is missing has the line of its
// table.
func located(bad []badValue, file string, where map[string]int) []*fileError {
	var found []*fileError
	for _, v := range bad {
		line := where[v.key]
		if dot := strings.LastIndex(v.key, "."); line == 0 && dot >= 0 {
			line = where[v.key[:dot]]
		}
		found = append(found, &fileError{file, line, v.message, ""})
	}
	return found
}

// policy fills the gaps with defaults and checks every value.
func (d *document) policy() (Policy, []badValue) {
	p := Default()
	var bad []badValue
	if d.Access.Grant != nil {
		p.Access.GrantRequired = *d.Access.Grant == grantRequired
		if *d.Access.Grant != grantRequired && *d.Access.Grant != grantOptional {
			bad = append(bad, limit{"access.grant", false, fmt.Sprintf("%q", *d.Access.Grant), `"required" or "optional"`}.broken())
		}
	}
	bad = append(bad, d.reddit(&p.Reddit)...)
	set(&p.Images.MaxBytes, d.Images.MaxBytes)
	set(&p.Images.MaxPixels, d.Images.MaxPixels)
	set(&p.Images.MaxSide, d.Images.MaxSide)
	set(&p.Images.SuspectAfter, d.Images.SuspectAfter)
	if d.Images.Host != nil {
		p.Images.Hosts = nil
	}
	for _, h := range d.Images.Host {
		host := Host{Name: strings.ToLower(h.Name), RequestsPerSecond: 1, Concurrency: 1}
		set(&host.RequestsPerSecond, h.RequestsPerSecond)
		set(&host.Concurrency, h.Concurrency)
		p.Images.Hosts = append(p.Images.Hosts, host)
	}
	p.Images.Placeholders = placeholders(d.Images.Placeholder)
	set(&p.Text.MaskNames, d.Text.MaskNames)
	if d.Filter.Mode != nil {
		p.Filter.Mode = Mode(*d.Filter.Mode)
	}
	set(&p.Filter.EnglishThreshold, d.Filter.EnglishThreshold)
	set(&p.Dedupe.HashRadius, d.Dedupe.HashRadius)
	set(&p.Dedupe.WordDifference, d.Dedupe.WordDifference)
	set(&p.Dedupe.Guard, d.Dedupe.Guard)
	return p, append(bad, p.check()...)
}

// The words of access.grant.
const grantRequired, grantOptional = "required", "optional"

// reddit fills in the [reddit] table and gives the durations that cannot be read.
func (d *document) reddit(r *Reddit) []badValue {
	set(&r.RequestsPerMinute, d.Reddit.RequestsPerMinute)
	set(&r.MassRemovalShare, d.Reddit.MassRemovalShare)
	if d.Reddit.Readmit != nil {
		r.Readmit = ReadmitMode(*d.Reddit.Readmit)
	}
	var bad []badValue
	for _, t := range []struct {
		key  string
		to   *time.Duration
		text *string
	}{
		{"reddit.recheck_within", &r.RecheckWithin, d.Reddit.RecheckWithin},
		{"reddit.second_look_after", &r.SecondLookAfter, d.Reddit.SecondLookAfter},
	} {
		if t.text == nil {
			continue
		}
		duration, err := time.ParseDuration(*t.text)
		if err != nil {
			bad = append(bad, badValue{t.key, fmt.Sprintf(`%s: %q is not a duration; write for example "30s", "90m" or "48h"`, t.key, *t.text)})
			continue
		}
		*t.to = duration
	}
	return bad
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// A limit is what a setting must keep to.
type limit struct {
	key  string
	ok   bool // it does
	got  any
	want string
}

func (l limit) broken() badValue {
	return badValue{l.key, fmt.Sprintf("%s is %v; it must be %s", l.key, l.got, l.want)}
}

// broken returns the settings that do not keep to their limits.
func broken(limits []limit) []badValue {
	var bad []badValue
	for _, l := range limits {
		if !l.ok {
			bad = append(bad, l.broken())
		}
	}
	return bad
}

func in(x, low, high float64) bool { return x >= low && x <= high }

// check returns the settings that are out of range. The comparisons are written so that
// NaN fails them.
func (p Policy) check() []badValue {
	r, i, f, d := p.Reddit, p.Images, p.Filter, p.Dedupe
	limits := []limit{
		{"reddit.requests_per_minute", r.RequestsPerMinute > 0 && r.RequestsPerMinute <= 100, r.RequestsPerMinute, "more than 0 and at most 100, which is what Reddit allows"},
		{"reddit.recheck_within", r.RecheckWithin > 0 && r.RecheckWithin <= DeleteWithin, r.RecheckWithin, "more than 0s and at most 48h, the time Reddit gives for honouring deletions"},
		{"reddit.second_look_after", r.SecondLookAfter >= 0 && r.SecondLookAfter <= 24*time.Hour, r.SecondLookAfter, "0s to 24h"},
		{"reddit.mass_removal_share", r.MassRemovalShare > 0 && r.MassRemovalShare <= 1, r.MassRemovalShare, "more than 0 and at most 1"},
		{"reddit.readmit", r.Readmit == ReadmitNever || r.Readmit == ReadmitModerator, fmt.Sprintf("%q", r.Readmit), `"never" or "moderator"`},
		{"images.max_bytes", in(float64(i.MaxBytes), 1, 256<<20), i.MaxBytes, "1 to 268435456"},
		{"images.max_pixels", in(float64(i.MaxPixels), 1, 268402689), i.MaxPixels, "1 to 268402689"},
		{"images.max_side", in(float64(i.MaxSide), 1, 65535), i.MaxSide, "1 to 65535"},
		{"images.suspect_after", i.SuspectAfter == 0 || in(float64(i.SuspectAfter), 2, 1000000), i.SuspectAfter, "0, which is never, or 2 to 1000000"},
		{"filter.mode", f.Mode == Drop || f.Mode == Flag, fmt.Sprintf("%q", f.Mode), `"drop" or "flag"`},
		{"filter.english_threshold", in(f.EnglishThreshold, 0, 1), f.EnglishThreshold, "0 to 1"},
		{"dedupe.hash_radius", in(float64(d.HashRadius), 0, 31), d.HashRadius, "0 to 31, of the 64 bits of a hash"},
		{"dedupe.word_difference", in(float64(d.WordDifference), 0, 1000), d.WordDifference, "0 to 1000"},
	}
	limits = append(limits, checkHosts(i.Hosts)...)
	return broken(append(limits, checkPlaceholders(i.Placeholders, "images.placeholder")...))
}

// checkHosts gives the limits that a list of hosts must keep.
func checkHosts(list []Host) []limit {
	var limits []limit
	hosts := map[string]bool{}
	for n, h := range list {
		at := fmt.Sprintf("images.host[%d].", n)
		limits = append(limits,
			limit{at + "name", hostName(h.Name), fmt.Sprintf("%q", h.Name), "a host name such as i.redd.it, without scheme, port, path or wildcard"},
			limit{at + "requests_per_second", h.RequestsPerSecond > 0 && h.RequestsPerSecond <= 100, h.RequestsPerSecond, "more than 0 and at most 100"},
			limit{at + "name", h.Name != "reddit.com" && !strings.HasSuffix(h.Name, ".reddit.com"), fmt.Sprintf("%q", h.Name), "a host of images: reddit.com holds the API and pages, and is asked at the rate of [reddit] only"},
			limit{at + "concurrency", in(float64(h.Concurrency), 1, 64), h.Concurrency, "1 to 64"},
			limit{at + "concurrency", h.Name != "api.imgur.com" || h.Concurrency <= 1, h.Concurrency, "1 for api.imgur.com, whose answers say how many requests are left"},
			limit{at + "name", h.Name == "" || !hosts[h.Name], fmt.Sprintf("%q", h.Name), "a host that is not in the list already"})
		hosts[h.Name] = true
	}
	return limits
}

// hostName reports whether s is a lower-case DNS name of two labels or more whose last
// label is not a number, which rules out addresses.
func hostName(s string) bool {
	labels := strings.Split(s, ".")
	if len(s) > 253 || len(labels) < 2 {
		return false
	}
	for _, l := range labels {
		if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' ||
			strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return false
		}
	}
	return strings.Trim(labels[len(labels)-1], "0123456789") != ""
}

// lines finds the line of every key in a document that has already parsed: BurntSushi
// reports undecoded keys without their places. Keys of the n-th [[images.host]] are
// named images.host[n].key, as are those of other lists. It reads the plain form "key = value" under a [table];
// a key in another form is not found, and a message about it has no line.
func lines(b []byte) map[string]int {
	found := map[string]int{}
	table, count := "", map[string]int{}
	for n, line := range strings.Split(string(b), "\n") {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "#")
		line = strings.TrimSpace(line)
		switch name, _, isKey := strings.Cut(line, "="); {
		case strings.HasPrefix(line, "[["):
			table = strings.Trim(line, "[] \t")
			table, count[table] = fmt.Sprintf("%s[%d]", table, count[table]), count[table]+1
			note(found, table, n)
		case strings.HasPrefix(line, "["):
			table = strings.Trim(line, "[] \t")
			note(found, table, n)
		case isKey:
			key := strings.Trim(strings.TrimSpace(name), `"'`)
			if table != "" {
				key = table + "." + key
			}
			found[key] = n + 1
		}
	}
	return found
}

func note(found map[string]int, key string, n int) {
	if _, ok := found[key]; !ok {
		found[key] = n + 1
	}
}

// unknownKey makes the error for a key that the document does not have.
func unknownKey(key toml.Key, file string, where map[string]int, document reflect.Type) *fileError {
	name := key.String()
	line := where[name]
	for n := 0; line == 0 && n < len(where); n++ { // inside an array of tables
		last := len(key) - 1
		line = where[fmt.Sprintf("%s[%d].%s", key[:last].String(), n, key[last])]
	}
	if line == 0 {
		line = where[name+"[0]"] // an array of tables
	}
	hint := "see the comments of the default policy for the keys there are"
	if near := nearest(name, keysOf(document, "")); near != "" {
		hint = "did you mean " + near + "?"
	}
	return &fileError{file, line, "unknown key " + name, hint}
}

// keysOf lists the dotted keys of a document type.
func keysOf(t reflect.Type, prefix string) []string {
	var keys []string
	for i := range t.NumField() {
		f := t.Field(i)
		key, ft := prefix+f.Tag.Get("toml"), f.Type
		keys = append(keys, key)
		if ft.Kind() == reflect.Slice || ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		if ft.Kind() == reflect.Struct {
			keys = append(keys, keysOf(ft, key+".")...)
		}
	}
	return keys
}

// nearest returns the key that a mistyped one was probably meant to be: one that ends in
// the same name under another table, or the one it is a misspelling of.
func nearest(name string, keys []string) string {
	for _, k := range keys {
		if strings.HasSuffix(k, "."+name[strings.LastIndex(name, ".")+1:]) {
			return k
		}
	}
	return manifest.Nearest(name, keys)
}
