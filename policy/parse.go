package policy

import (
	"fmt"
	"strings"
	"time"

	"rehydrate/manifest"
)

// The document is policy.toml as it is written, where that differs from a Policy.
type document struct {
	Access struct {
		Grant string `toml:"grant"`
	} `toml:"access"`
	Reddit struct {
		RequestsPerMinute float64     `toml:"requests_per_minute"`
		RecheckWithin     string      `toml:"recheck_within"`
		SecondLookAfter   string      `toml:"second_look_after"`
		MassRemovalShare  float64     `toml:"mass_removal_share"`
		Readmit           ReadmitMode `toml:"readmit"`
	} `toml:"reddit"`
	Images Images `toml:"images"`
	Text   Text   `toml:"text"`
	Filter Filter `toml:"filter"`
	Dedupe Dedupe `toml:"dedupe"`
}

// The words of access.grant.
const grantRequired, grantOptional = "required", "optional"

// Parse reads a policy.toml. Keys that are missing take their values from Default; an
// unknown key, a wrong type or a value out of range is a problem with its place and with
// what to write instead. The error is *manifest.Problems. The file name is used in messages only.
func Parse(b []byte, file string) (Policy, error) {
	p := Default()
	doc := document{Images: p.Images, Text: p.Text, Filter: p.Filter, Dedupe: p.Dedupe}
	doc.Images.Hosts = nil // one host in the file replaces the whole list
	doc.Access.Grant = grantOptional
	doc.Reddit.RequestsPerMinute, doc.Reddit.MassRemovalShare, doc.Reddit.Readmit = p.Reddit.RequestsPerMinute, p.Reddit.MassRemovalShare, p.Reddit.Readmit
	t, err := manifest.DecodeTOML(file, b, &doc)
	if err != nil {
		return Policy{}, err
	}
	if !t.Has("images.host") {
		doc.Images.Hosts = p.Images.Hosts
	} else {
		for i := range doc.Images.Hosts {
			h, at := &doc.Images.Hosts[i], fmt.Sprintf("images.host[%d].", i)
			h.Name = strings.ToLower(h.Name)
			if !t.Has(at + "requests_per_second") {
				h.RequestsPerSecond = 1
			}
			if !t.Has(at + "concurrency") {
				h.Concurrency = 1
			}
		}
	}
	p.Access.GrantRequired = doc.Access.Grant == grantRequired
	p.Images, p.Text, p.Filter, p.Dedupe = doc.Images, doc.Text, doc.Filter, doc.Dedupe
	p.Reddit.RequestsPerMinute, p.Reddit.MassRemovalShare, p.Reddit.Readmit = doc.Reddit.RequestsPerMinute, doc.Reddit.MassRemovalShare, doc.Reddit.Readmit
	readDuration(t, "reddit.recheck_within", doc.Reddit.RecheckWithin, &p.Reddit.RecheckWithin)
	readDuration(t, "reddit.second_look_after", doc.Reddit.SecondLookAfter, &p.Reddit.SecondLookAfter)
	grant := limit{"access.grant", p.Access.GrantRequired || doc.Access.Grant == grantOptional, fmt.Sprintf("%q", doc.Access.Grant), `"required" or "optional"`}
	addBroken(t, append(p.limits(), grant))
	if err := t.Err(); err != nil {
		return Policy{}, err
	}
	return p, nil
}

func readDuration(t *manifest.Document, key, text string, to *time.Duration) {
	if !t.Has(key) {
		return
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Add(key, fmt.Sprintf("%s: %q is not a duration", key, text), `write for example "30s", "90m" or "48h"`)
		return
	}
	*to = d
}

// A limit is what a setting must keep to.
type limit struct {
	key  string
	ok   bool // it does
	got  any
	want string
}

// addBroken adds a problem for each setting that does not keep to its limit.
func addBroken(t *manifest.Document, limits []limit) {
	for _, l := range limits {
		if !l.ok {
			t.Add(l.key, fmt.Sprintf("%s is %v; it must be %s", l.key, l.got, l.want), "")
		}
	}
}

func in(x, low, high float64) bool { return x >= low && x <= high }

// limits gives what the settings must keep to. The comparisons are written so that NaN
// fails them.
func (p Policy) limits() []limit {
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
	hosts := map[string]bool{}
	for n, h := range i.Hosts {
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
	return append(limits, placeholderLimits(i.Placeholders, "images.placeholder")...)
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
