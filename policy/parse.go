package policy

import (
	"fmt"
	"regexp"
	"strconv"
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

// Parse reads a policy.toml. Keys that are missing take their values from Default; an unknown key, a wrong type or a
// value out of range is a problem with its place and with what to write instead. The error is *manifest.Problems. The
// file name is used in messages only.
func Parse(b []byte, file string) (Policy, error) {
	var doc document
	if _, err := manifest.DecodeTOML("default.toml", []byte(defaultTOML), &doc); err != nil {
		return Policy{}, err
	}
	hosts := doc.Images.Hosts
	doc.Images.Hosts = nil // one host in the file replaces the whole list
	t, err := manifest.DecodeTOML(file, b, &doc)
	if err != nil {
		return Policy{}, err
	}
	for i := range doc.Images.Hosts {
		h, at := &doc.Images.Hosts[i], fmt.Sprintf("images.host[%d].", i)
		h.Name = strings.ToLower(h.Name)
		// Only where it is missing: a 0 that was written is refused below.
		if !t.Has(at + "requests_per_second") {
			h.RequestsPerSecond = 1
		}
		if !t.Has(at + "concurrency") {
			h.Concurrency = 1
		}
		if !t.Has(at + "respect_robots_tag") {
			h.RespectRobotsTag = respectsTag(h.Name)
		}
	}
	if !t.Has("images.host") {
		doc.Images.Hosts = hosts
	}
	c, r := checker{t}, doc.Reddit
	p := Policy{Images: doc.Images, Text: doc.Text, Filter: doc.Filter, Dedupe: doc.Dedupe, Reddit: Reddit{
		RequestsPerMinute: r.RequestsPerMinute, MassRemovalShare: r.MassRemovalShare, Readmit: r.Readmit,
		RecheckWithin:   c.duration("reddit.recheck_within", r.RecheckWithin),
		SecondLookAfter: c.duration("reddit.second_look_after", r.SecondLookAfter)}}
	p.Access.GrantRequired = doc.Access.Grant == "required"
	c.want("access.grant", p.Access.GrantRequired || doc.Access.Grant == "optional", doc.Access.Grant,
		`"required" or "optional"`)
	c.check(p)
	if err := t.Err(); err != nil {
		return Policy{}, err
	}
	return p, nil
}

// A checker notes what is wrong with the settings of a file.
type checker struct{ *manifest.Document }

func (c checker) duration(key, text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		c.Add(key, fmt.Sprintf("%s: %q is not a duration", key, text), `write for example "30s", "90m" or "48h"`)
		return time.Second // within all limits: one problem is enough
	}
	return d
}

// want notes a setting that does not keep to its limit.
func (c checker) want(key string, ok bool, got any, want string) {
	if text, is := got.(string); is {
		got = strconv.Quote(text)
	}
	if !ok {
		c.Add(key, fmt.Sprintf("%s is %v; it must be %s", key, got, want), "")
	}
}

func (c checker) within(key string, got, low, high int64, more string) {
	c.want(key, low <= got && got <= high, got, fmt.Sprintf("%d to %d%s", low, high, more))
}

// aboveZero is written so that NaN fails it.
func (c checker) aboveZero(key string, got, high float64, more string) {
	c.want(key, got > 0 && got <= high, got, fmt.Sprintf("more than 0 and at most %v%s", high, more))
}

// check notes all that breaks a limit.
func (c checker) check(p Policy) {
	r, i, f, d := p.Reddit, p.Images, p.Filter, p.Dedupe
	c.aboveZero("reddit.requests_per_minute", r.RequestsPerMinute, 100, ", which is what Reddit allows")
	c.want("reddit.recheck_within", r.RecheckWithin > 0 && r.RecheckWithin <= DeleteWithin, r.RecheckWithin,
		"more than 0s and at most 48h, the time Reddit gives for honouring deletions")
	c.want("reddit.second_look_after", r.SecondLookAfter >= 0 && r.SecondLookAfter <= 24*time.Hour, r.SecondLookAfter,
		"0s to 24h")
	c.aboveZero("reddit.mass_removal_share", r.MassRemovalShare, 1, "")
	c.want("reddit.readmit", r.Readmit == ReadmitNever || r.Readmit == ReadmitModerator, string(r.Readmit),
		`"never" or "moderator"`)
	widest := WidestImages()
	c.within("images.max_bytes", i.MaxBytes, 1, widest.MaxBytes, "")
	c.within("images.max_pixels", i.MaxPixels, 1, widest.MaxPixels, "")
	c.within("images.max_side", int64(i.MaxSide), 1, int64(widest.MaxSide), "")
	if i.SuspectAfter != 0 {
		c.want("images.suspect_after", i.SuspectAfter >= 2 && i.SuspectAfter <= 1000000, i.SuspectAfter,
			"0, which is never, or 2 to 1000000")
	}
	for n, id := range i.AllowSame {
		parsed, err := manifest.ParsePostID(string(id))
		c.want(fmt.Sprintf("images.allow_same_as_removed[%d]", n), err == nil && parsed == id, string(id),
			"a post id, in lower case without t3_")
	}
	c.want("filter.mode", f.Mode == Drop || f.Mode == Flag, string(f.Mode), `"drop" or "flag"`)
	c.want("filter.english_threshold", f.EnglishThreshold >= 0 && f.EnglishThreshold <= 1, f.EnglishThreshold, "0 to 1")
	c.within("dedupe.hash_radius", int64(d.HashRadius), 0, 31, ", of the 64 bits of a hash")
	c.within("dedupe.word_difference", int64(d.WordDifference), 0, 1000, "")
	seen := map[string]bool{}
	for n, h := range i.Hosts {
		at := fmt.Sprintf("images.host[%d].", n)
		c.want(at+"name", hostName(h.Name), h.Name, "a host name such as i.redd.it, without scheme, port, path or wildcard")
		c.want(at+"name", h.Name != "reddit.com" && !strings.HasSuffix(h.Name, ".reddit.com"), h.Name,
			"a host of images: reddit.com holds the API and pages, and is asked at the rate of [reddit] only")
		c.want(at+"name", h.Name == "" || !seen[h.Name], h.Name, "a host that is not in the list already")
		c.aboveZero(at+"requests_per_second", h.RequestsPerSecond, 100, "")
		c.within(at+"concurrency", int64(h.Concurrency), 1, 64, "")
		c.want(at+"concurrency", h.Name != "api.imgur.com" || h.Concurrency <= 1, h.Concurrency,
			"1 for api.imgur.com, whose answers say how many requests are left")
		seen[h.Name] = true
	}
	c.checkPlaceholders(i.Placeholders)
}

// A last label that begins with a letter rules out addresses.
var hostForm = regexp.MustCompile(`^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$`)

// hostName reports whether s is a lower-case DNS name of two labels or more.
func hostName(s string) bool { return len(s) <= 253 && hostForm.MatchString(s) }
