// Package publish writes what the maintainers of a release hand out: a release folder with nothing but ids, labels and
// what goes with them, a datasheet, the agreement of annotators, and the digest of each file. The same input gives the
// same bytes.
//
//   - What is written is read back, and has to hold the entries that were given.
//   - No file may hold words of an image that the workspace has, the name of a user, or an address of a post or image.
//   - Texts that pass through are left out of the entries of what is gone or held back.
//   - The folder gets its name when it is whole: after an error there is none.
package publish

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"rehydrate/internal/durable"
	"rehydrate/internal/userfile"
	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/manifest/guess"
	"rehydrate/pipeline/copies"
	"rehydrate/pipeline/language"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
	"rehydrate/study"
)

// Names of files in a published folder, beside those of every release.
const (
	PolicyName    = "policy.toml"
	DatasheetName = "datasheet.md"
	AgreementName = "agreement.json"
)

// Config says what is published.
type Config struct {
	Release    *manifest.Release
	Tombstones []manifest.Tombstone // of the release
	Policy     policy.Policy
	Workspace  *workspace.Workspace       // what is known of the posts; nil for nothing
	To         string                     // the folder to make
	Digests    bool                       // publish the digests of the images that the workspace has or had
	Splits     map[manifest.PostID]string // in place of the release's own; nil to keep those
	Keep       []string                   // columns that may hold words
	Answers    Answers                    // of the datasheet
	Agreement  *study.Agreement
	Key        []byte // an SSH private key that signs; nil for none
	Tool       string // version of the program
	Now        time.Time
}

// A Report says what was published.
type Report struct {
	Path        string   `json:"path"`
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	Digest      string   `json:"digest"` // of the release, as a grant names it
	Entries     int      `json:"entries"`
	Posts       int      `json:"posts"`
	WithDigests int      `json:"with_digests"`
	Hidden      int      `json:"without_phash,omitempty"` // rows of what is gone or held back, with other digests
	Emptied     int      `json:"without_texts,omitempty"` // rows of posts or images that are gone or held back
	NewDigest   bool     `json:"new_digest,omitempty"`    // texts were left out, and Digest is not that of the release
	Unknown     int      `json:"unknown,omitempty"`       // annotated entries that the release does not have
	Lacks       []string `json:"lacks"`                   // of license and citation, what release.toml does not have
	Open        []string `json:"open"`                    // questions of the datasheet
	Files       []File   `json:"files"`
	Signed      bool     `json:"signed"`
	Grants      bool     `json:"-"`       // whether its users need a grant
	Checked     int      `json:"checked"` // texts of images that the files were held against
	Removals

	// Missing are words for a missing value in place of annotators' answers.
	Missing []study.MissingWords `json:"missing_words,omitempty"`
}

// Removals are the tombstones that are published: how many, and what the release's own list does not tell of them.
type Removals struct {
	Tombstones int      `json:"tombstones"`
	Added      []string `json:"tombstones_of_workspace,omitempty"` // posts that the release's own list does not have
	// Held are those among them whose tombstones were lifted by statements that do not count, with why.
	Held   []HeldLift `json:"tombstones_with_refused_lift,omitempty"`
	Lifted []string   `json:"tombstones_lifted,omitempty"` // posts that the list has although a statement lifted them
	NoRow  []string   `json:"tombstones_without_row,omitempty"`
	// Ahead are posts whose tombstones the workspace wrote while a clock was ahead: they are published as of now.
	Ahead []string `json:"tombstones_dated_now,omitempty"`
}

// A HeldLift is a post whose tombstone holds although a statement lifted it.
type HeldLift struct {
	ID  manifest.PostID `json:"id"`
	Why string          `json:"why"`
}

// A File is one of the folder, with its SHA-256 in hex.
type File struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Refused is the error of Publish where a file would hold what must not be published. It does not repeat it.
type Refused struct{ Found []string }

func (r *Refused) Error() string {
	return "nothing was published:\n  " + strings.Join(r.Found, "\n  ")
}

// publishing is a folder in the making.
type publishing struct {
	Config
	Report
	temp    string
	table   string // the name of the annotations
	facts   facts
	change  func(*manifest.Entry)
	splits  map[string]bool   // of the entries
	written *manifest.Release // what check read
	known   func(word string) bool
	// distrusted is why no grant counts beside the list of revocations, "" where one can.
	distrusted string
}

// Publish makes the folder. The error is *Refused where it would hold what must not be in it.
func Publish(ctx context.Context, c Config) (Report, error) {
	p := newPublishing(c)
	err := p.build(ctx, p.annotate, p.accompany, p.check, p.seal, p.name)
	return p.Report, err
}

func newPublishing(c Config) *publishing {
	p := &publishing{Config: c, splits: map[string]bool{}, Report: Report{Path: c.To, Name: c.Release.Name,
		Version: c.Release.Version, Open: []string{}, Signed: c.Key != nil, Grants: c.Policy.Access.GrantRequired}}
	if c.Agreement != nil {
		p.Unknown, p.Missing = c.Agreement.Unknown, c.Agreement.Missing
	}
	p.Lacks = []string{}
	if c.Release.License == "" {
		p.Lacks = append(p.Lacks, "license")
	}
	if c.Release.Citation == "" {
		p.Lacks = append(p.Lacks, "citation")
	}
	return p
}

// build does the steps on a folder with a temporary name beside the one to make, and removes what is left of it.
func (p *publishing) build(ctx context.Context, steps ...func(context.Context) error) error {
	list, err := os.ReadDir(p.To)
	if len(list) > 0 {
		return &userfile.Fault{Err: fmt.Errorf("--out %s is not empty: it has %s; name a new folder", p.To,
			list[0].Name()), Flag: true}
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return &userfile.Fault{Err: fmt.Errorf("--out: %w", err)}
	}
	to, err := filepath.Abs(p.To)
	if err != nil {
		return err
	}
	parent, base := filepath.Split(to)
	p.temp = filepath.Join(parent, durable.TempPrefix+base)
	if err := os.RemoveAll(p.temp); err != nil {
		return err
	}
	if err := os.Mkdir(p.temp, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(p.temp)
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// name gives the folder its name.
func (p *publishing) name(ctx context.Context) error {
	parent, temp := filepath.Split(p.temp)
	root, err := os.OpenRoot(parent)
	if err != nil {
		return err
	}
	defer root.Close()
	return durable.In(root).Rename(ctx, temp, strings.TrimPrefix(temp, durable.TempPrefix))
}

// write adds a file to the folder.
func (p *publishing) write(ctx context.Context, name string, fill func(io.Writer) error) error {
	sum := sha256.New()
	err := durable.Write(ctx, filepath.Join(p.temp, name), 0o644,
		func(w io.Writer) error { return fill(io.MultiWriter(w, sum)) })
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	p.Files = append(p.Files, File{name, hex.EncodeToString(sum.Sum(nil))})
	return nil
}

func (p *publishing) writeBytes(ctx context.Context, name string, data []byte) error {
	return p.write(ctx, name, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// annotate writes the annotations and release.toml.
func (p *publishing) annotate(ctx context.Context) error {
	stones, lifted, hidden, err := p.removals(ctx)
	if err != nil {
		return err
	}
	gone, posts := map[manifest.PostID]bool{}, map[manifest.PostID]bool{}
	for _, t := range stones {
		gone[t.ID] = true
	}
	digests := map[manifest.Key]manifest.Entry{}
	if p.Digests {
		for e, err := range copies.Digested(ctx, p.Workspace, p.Policy, hidden) {
			if err != nil {
				return err
			}
			digests[e.Key] = e
		}
	}
	p.change = func(e *manifest.Entry) {
		if d, ok := digests[e.Key]; ok && d.SHA256 != "" && (!e.Named() || copies.AreOf(*e, d)) {
			e.SHA256, e.StrippedSHA256, e.PixelsSHA256, e.PHash = d.SHA256, d.StrippedSHA256, d.PixelsSHA256, d.PHash
		}
		if p.Splits != nil {
			e.Split = p.Splits[e.ID]
		}
		if hidden.HasRow(e.Key.String()) {
			looks := e.PHash
			copies.HideContent(p.Release.Schema, e)
			if !p.Digests { // what the release has of it is published already, and with it the digest would change
				e.PHash = looks
			}
		}
	}
	for _, name := range p.Keep {
		if name != manifest.FieldSplit.String() && name != keepBatch && name != keepName &&
			name != manifest.RevocationsName &&
			!slices.ContainsFunc(p.Release.Schema.Columns, func(c manifest.Column) bool { return c.Name == name }) &&
			!slices.ContainsFunc(
				p.Release.Schema.Categories, func(c manifest.Category) bool { return c.Name == name }) {
			return userfile.Wrong("--keep: the release has no column %q", name)
		}
	}
	unused := maps.Clone(p.Splits)
	counter, filled := labels.NewCounter(p.Release.Schema), map[manifest.Field]bool{}
	for e, err := range labels.Images(p.Release.Schema, p.Release.Entries(ctx)) {
		if err != nil {
			return userfile.Faulty(err)
		}
		p.change(&e)
		if e.Split == "" {
			return userfile.Wrong("--split: the file does not name the split of %s", e.ID)
		}
		delete(unused, e.ID)
		p.splits[e.Split] = true
		counter.Add(e)
		posts[e.ID] = true
		if gone[e.ID] {
			p.facts.Gone++
		}
		if e.SHA256+e.StrippedSHA256+e.PixelsSHA256+e.PHash != "" {
			p.WithDigests++
		}
		for _, field := range manifest.Fields() {
			filled[field] = filled[field] || field.Of(e) != field.Of(manifest.Entry{})
		}
	}
	if len(unused) > 0 {
		return userfile.Wrong("--split: the file names %d posts that the release does not have, such as %s; "+
			"take the split of this release", len(unused), slices.Min(slices.Collect(maps.Keys(unused))))
	}
	var fields []manifest.Field
	for field, has := range filled {
		if has {
			fields = append(fields, field)
		}
	}
	again, err := p.Release.Rewrite(fields...)
	if err != nil {
		return err
	}
	p.table = again.Manifest
	p.facts.Stats, p.facts.Columns = counter.Stats(), again.Columns()
	p.Entries, p.Posts = p.facts.Stats.Entries, len(posts)
	stones = p.tell(stones, lifted, posts)
	counted := func(e *manifest.Entry) {
		had := len(slices.Concat(e.Values...))
		p.change(e)
		if len(slices.Concat(e.Values...)) < had {
			p.Emptied++
		}
		if p.Digests && hidden.HasRow(e.Key.String()) && e.SHA256 != "" && e.PHash == "" {
			p.Hidden++
		}
	}
	err = p.write(ctx, again.Manifest, func(w io.Writer) error { return again.Write(ctx, w, p.Release, counted) })
	if err == nil {
		err = p.write(ctx, manifest.TombstonesName, func(w io.Writer) error { return manifest.WriteTombstones(w, stones) })
	}
	if err != nil {
		return err
	}
	return p.writeBytes(ctx, manifest.SettingsName, again.Settings)
}

// maxAhead is how far clocks and time zones may differ.
const maxAhead = 24 * time.Hour

// removals returns the tombstones that hold, those that were lifted, and the rows that must be hidden by what holds and
// by what the workspace knows. A tombstone of the future in the release is a slip of whoever wrote it.
func (p *publishing) removals(ctx context.Context) (stones []manifest.Tombstone, lifted []state.TombstoneEntry,
	hidden state.GoneSet, err error) {
	stones, hidden = slices.Clone(p.Config.Tombstones), state.GoneSet{Posts: map[manifest.PostID]state.GonePost{}}
	for _, t := range stones {
		hidden.Posts[t.ID] = state.GonePost{ID: t.ID, State: t.State}
		if t.Time.After(p.Now.Add(maxAhead)) {
			return nil, nil, hidden, userfile.Wrong("%s: the tombstone of %s is of %s, which is in the future: correct its time",
				manifest.TombstonesName, t.ID, t.Time.UTC().Format(time.RFC3339))
		}
	}
	if p.Workspace != nil {
		if err := state.CheckTombstones(ctx, p.Workspace); err != nil {
			return nil, nil, hidden, err
		}
		var hold state.Holding
		hold, lifted, err = state.StonesToPublish(ctx, p.Workspace, p.Release, p.Config.Tombstones, p.Config.Policy, p.Now)
		if err != nil {
			return nil, nil, hidden, err
		}
		hidden, err = state.MustHide(ctx, p.Workspace, hold, p.Config.Policy)
		if err != nil {
			return nil, nil, hidden, err
		}
		stones = nil
		for _, id := range slices.Sorted(maps.Keys(hold)) { // what is said of them is the same each time
			stones = append(stones, hold[id].Tombstone)
		}
	}
	return stones, lifted, hidden, nil
}

// tell returns the tombstones, the oldest first, without those of the workspace that no row is of, and notes what is to
// be said of them.
func (p *publishing) tell(stones []manifest.Tombstone, lifted []state.TombstoneEntry,
	rows map[manifest.PostID]bool) []manifest.Tombstone {
	published := map[manifest.PostID]time.Time{}
	for _, t := range p.Config.Tombstones {
		published[t.ID] = t.Time
	}
	stones = slices.DeleteFunc(stones, func(t manifest.Tombstone) bool {
		_, listed := published[t.ID]
		return !rows[t.ID] && !listed
	})
	lifts := map[policy.NamedTombstone]*state.LiftNote{}
	for _, e := range lifted {
		lifts[policy.NameTombstone(e.ID, e.Time)] = e.Lifted
	}
	p.Removals = Removals{Tombstones: len(stones)}
	for i, t := range stones {
		lift := lifts[policy.NameTombstone(t.ID, t.Time)]
		since, listed := published[t.ID]
		ahead := policy.Ahead(t.Time, p.Now) // whoever reads the list would count from then
		if ahead && listed {
			stones[i].Time = since
		}
		if !listed {
			p.Added = append(p.Added, string(t.ID))
			if ahead {
				p.Ahead, stones[i].Time = append(p.Ahead, string(t.ID)), p.Now
			}
			if lift != nil {
				p.Held = append(p.Held, HeldLift{t.ID, cmp.Or(lift.Refused, "a job with another edition put it back")})
			}
		} else if lift != nil && lift.Refused == "" {
			p.Lifted = append(p.Lifted, string(t.ID))
		}
		if !rows[t.ID] { // a version may have dropped the row
			p.NoRow = append(p.NoRow, string(t.ID))
		}
	}
	slices.SortFunc(stones, func(a, b manifest.Tombstone) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.ID, b.ID))
	})
	return stones
}

// accompany writes what goes with the annotations.
func (p *publishing) accompany(ctx context.Context) error {
	text := policy.DefaultTOML() // what counts where the release says nothing
	var err error
	if p.Release.PolicyPath != "" {
		text, err = userfile.Read(p.Release.PolicyPath)
	}
	if err == nil {
		err = p.writeBytes(ctx, PolicyName, text)
	}
	if list := p.Release.RevocationsPath; err == nil && list != "" {
		for _, suffix := range []string{"", manifest.SignatureSuffix} {
			text, err := userfile.Read(list + suffix)
			if err == nil {
				err = p.writeBytes(ctx, manifest.RevocationsName+suffix, text)
			}
			if err != nil && (suffix == "" || !errors.Is(err, os.ErrNotExist)) {
				return err
			}
		}
	}
	if a := p.Agreement; err == nil && a != nil {
		a.Ignored = nil // names of questions, which are not the release's
		var b []byte
		b, err = json.MarshalIndent(a, "", "  ")
		if err == nil {
			err = p.writeBytes(ctx, AgreementName, append(b, '\n'))
		}
	}
	if err != nil {
		return err
	}
	p.facts.publishing = p
	sheet, open, err := p.Answers.datasheet(p.facts)
	if err != nil {
		return err
	}
	p.Open = open
	return p.writeBytes(ctx, DatasheetName, sheet)
}

// check reads what was written: it has to be the release, and to hold nothing that must not be published.
func (p *publishing) check(ctx context.Context) error {
	r, err := manifest.Open(p.temp, manifest.Options{})
	if err == nil {
		_, err = r.Check(ctx)
	}
	if err != nil {
		return fmt.Errorf("read what was written: %w", err)
	}
	p.Digest, p.written = r.Digest, r
	p.NewDigest = p.Emptied > 0 && r.Digest != p.Release.Digest
	if err := p.same(ctx, r); err != nil {
		return err
	}
	english, err := language.New()
	if err != nil {
		return err
	}
	p.known = english.Knows
	found, err := guess.Unfit(ctx, r, p.Release.ColumnOf, p.Keep, p.known)
	if err != nil {
		return err
	}
	for i := range found {
		found[i] += ": take it out of release.toml, or publish it with --keep"
	}
	found = append(found, p.unfitNames()...)
	more, err := p.search(ctx)
	if err != nil {
		return err
	}
	found = append(found, more...)
	p.distrusted, err = p.distrust(ctx)
	if err != nil {
		return err
	}
	if p.distrusted != "" && !slices.Contains(p.Keep, manifest.RevocationsName) {
		found = append(found, fmt.Sprintf("%s %s: write a newer list and sign it, or publish it as it is with --keep %[1]s",
			manifest.RevocationsName, p.distrusted))
	}
	if len(found) > 0 {
		return &Refused{found}
	}
	return nil
}

// unfitNames says where the release's name, texts of the schema, names of splits and names of batches name somebody.
func (p *publishing) unfitNames() (found []string) {
	kept := func(name string) bool { return slices.Contains(p.Keep, name) }
	if kind := guess.NamesSomebody(p.Release.Name); kind != "" && !kept(keepName) {
		found = append(found,
			fmt.Sprintf("the name of the release holds %s: change it in release.toml, or publish it with --keep %s",
				kind, keepName))
	}
	for _, text := range guess.UnfitTexts(p.Release.Schema, kept) {
		found = append(found, text+": take it out, or publish it with --keep and the category's name")
	}
	if field := manifest.FieldSplit.String(); !kept(field) {
		for _, named := range guess.NamedParts("split", slices.Sorted(maps.Keys(p.splits)), p.known) {
			found = append(found, named+": rename the split, or publish it with --keep "+field)
		}
	}
	if p.Agreement == nil || kept(keepBatch) {
		return found
	}
	for _, named := range guess.NamedParts("batch", p.batches(), p.known) {
		found = append(found, named+": rename the batch, or publish it with --keep "+keepBatch)
	}
	return found
}

// batches are the names of batches that agreement.json has.
func (p *publishing) batches() (names []string) {
	if p.Agreement == nil {
		return nil
	}
	for _, b := range p.Agreement.Batches {
		names = append(names, b.Batch)
	}
	return names
}

// What --keep calls the names of batches and the name of the release.
const (
	keepBatch = "batch"
	keepName  = "name"
)

// same holds the entries of what was written against those that were given.
func (p *publishing) same(ctx context.Context, r *manifest.Release) error {
	next, stop := iter.Pull2(r.Entries(ctx))
	defer stop()
	for want, err := range p.Release.Entries(ctx) {
		if err != nil {
			return err
		}
		p.change(&want)
		e, err, ok := next()
		if err != nil {
			return err
		}
		e.Line = want.Line
		if !ok || !reflect.DeepEqual(e, want) {
			return fmt.Errorf("entry %s was not written as it is: this is a mistake in rehydrate", want.Key)
		}
	}
	e, err, more := next()
	if err == nil && more {
		err = fmt.Errorf("entry %s was written and not given: this is a mistake in rehydrate", e.Key)
	}
	return err
}

// seal writes the digests of all files, and signs them.
func (p *publishing) seal(ctx context.Context) error {
	slices.SortFunc(p.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	var sums bytes.Buffer
	for _, f := range p.Files {
		fmt.Fprintf(&sums, "%s  %s\n", f.SHA256, f.Name)
	}
	err := p.writeBytes(ctx, manifest.SumsName, sums.Bytes())
	if err != nil || p.Key == nil {
		return err
	}
	signature, err := policy.Sign(p.Key, policy.ReleaseNamespace, bytes.NewReader(sums.Bytes()))
	if err != nil {
		return userfile.Wrong("--sign: %w", err)
	}
	return p.writeBytes(ctx, manifest.SumsName+manifest.SignatureSuffix, signature)
}
