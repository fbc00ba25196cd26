package state

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/reddit/calls"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A Summary is what became of the entries of a release.
type Summary struct {
	Release  string                   `json:"release"`
	Entries  int                      `json:"entries"`
	Running  string                   `json:"running,omitempty"` // the process that works in the workspace; of status alone
	Posts    int                      `json:"posts"`             // different ones; a gallery has several entries
	Outcomes map[manifest.Outcome]int `json:"outcomes"`
	Reasons  []Count                  `json:"reasons"`
	Flagged  int                      `json:"flagged"` // kept rows that the filters marked (flag mode)
	Retry    int                      `json:"retry"`   // entries that another run can still change
	// Unwritten are rows that are missing in the dataset, see ReasonNotWritten.
	Unwritten int `json:"not_written,omitempty"`
	Withheld  int `json:"withheld"` // posts that are gone, or lost images, and are not erased yet
	// WithheldImages is how many of these are there, and lost images.
	WithheldImages int `json:"withheld_images,omitempty"`
	// WithheldWent is how many images of posts that are withheld were erased alone before.
	WithheldWent int `json:"withheld_erased,omitempty"`
	// Back are posts that were held back when the job began, or an image of theirs, and that Reddit called live in it.
	Back   int     `json:"live_again,omitempty"`
	Odd    []Count `json:"odd,omitempty"`         // kept rows by what Reddit or a host says of their image now; it stays
	Before int     `json:"rows_before,omitempty"` // of the dataset, when the run began
	// Removed are the posts whose image or text was here when the job began, or that were held back, and had to go; an
	// image that left a post that stays counts as its post. In manifest order.
	Removed []RemovedPost `json:"removed_now,omitempty"`
	// ReportGone says that the job deleted the workspace's report.html, which could show what had to go.
	ReportGone bool `json:"report_removed,omitempty"`
	// Behind says that state.db is older than the log, so that what was removed since may be here, and is counted.
	Behind bool `json:"behind,omitempty"`
	// FilesMissing are files of the dataset on record that are not there.
	FilesMissing []string `json:"files_missing,omitempty"`
	// LeftManifest is how many stored images a run erased because its manifest no longer names their entries.
	LeftManifest int `json:"left_manifest,omitempty"`
	// FilesGone are files of the dataset that were not the recorded ones, had rows that must go, and were removed
	// whole: the next run writes them again.
	FilesGone []string `json:"files_removed,omitempty"`
	// Unfinished are files of the workspace that still have a row which must go, each with that row: a removal was cut
	// off, and the next job finishes it. Of status alone; a job with such files ends with *Unremoved.
	Unfinished []string `json:"removals_unfinished,omitempty"`
	// Strays are files in the dataset's folder that no run wrote and that have a row which must go, each with that
	// row. They are somebody's own, and stay.
	Strays           []string         `json:"strays_with_rows,omitempty"`
	Stay             []Count          `json:"not_taken_out,omitempty"`       // rows that stay because too many would leave for anything but a removal
	Left             []Count          `json:"taken_out,omitempty"`           // rows that left for anything but a removal
	Later            int              `json:"images_for_next_run,omitempty"` // as LaterNote says
	Hosts            []HostTrouble    `json:"hosts_in_trouble,omitempty"`
	Masked           Masked           `json:"masked"`
	MassRemoval      bool             `json:"mass_removal"`         // some are withheld until they are confirmed
	Heard            int              `json:"heard_gone,omitempty"` // entries with content here that an audit heard are gone
	WithheldSince    *time.Time       `json:"withheld_since"`       // when the first of them was found gone
	SettleBy         *time.Time       `json:"settle_by"`            // when its content has to be erased at the latest
	OpenCopies       int              `json:"open_copies"`          // that may hold rows that must go
	Copies           []CopyReport     `json:"copies,omitempty"`     // all that are not closed, after a run took rows out of them
	Returned         []TombstoneEntry `json:"returned"`             // tombstones that do not hold: lifted, or suspended by readmit
	Unverified       int              `json:"unverified"`           // posts that Reddit gave no verdict on in this run
	OldestAsk        *time.Time       `json:"oldest_ask"`           // when the kept post asked about longest ago was last seen live
	Ahead            bool             `json:"-"`                    // a kept post was last seen live in the future
	Stale            bool             `json:"stale"`                // a kept post was last seen live longer ago than the policy allows
	MassRemovalShare float64          `json:"mass_removal_share"`   // of the live posts: above it removals are withheld, or those that wait were
	Elapsed          time.Duration    `json:"elapsed_ns,omitempty"`
	Files            []workspace.File `json:"files,omitempty"`
	Unchanged        bool             `json:"unchanged,omitempty"`    // the dataset was already what it had to be
	GuardSpares      int              `json:"guard_spares,omitempty"` // duplicates that the policy's dedupe.guard would keep
	Recheck          bool             `json:"recheck,omitempty"`      // the run fetched and read nothing
	Looks            *Looks           `json:"looks,omitempty"`        // how often this run asked about posts
	Calls            *calls.Counts    `json:"calls,omitempty"`        // all the requests that it sent
}

// A RemovedPost is a post that had to go, or that had to lose images and stays.
type RemovedPost struct {
	GonePost
	Rows []string `json:"rows,omitempty"` // of these images, where the post stays
}

// Names are the id of the post, or the rows of its images where it stays.
func (p RemovedPost) Names() []string {
	if len(p.Rows) > 0 {
		return p.Rows
	}
	return []string{string(p.ID)}
}

// Masked counts the names, addresses and numbers that were masked in the text of stored images.
type Masked struct {
	Names  int `json:"names"`
	Images int `json:"images"` // those with any
}

// Looks counts the questions about up to policy.MaxAsk posts each, repetitions of a failed
// request left out.
type Looks struct {
	Resolve int `json:"resolve"` // to resolve every post, second looks included
	Last    int `json:"last"`    // the last look before the export
}

// A HostTrouble is an image host that sent no images in this run.
type HostTrouble struct {
	Host  string    `json:"host"`
	Posts int       `json:"posts"` // whose images it did not send
	Next  time.Time `json:"next"`  // when asking again can be worth it
}

// A Count says how many entries have an outcome for a reason.
type Count struct {
	Outcome manifest.Outcome `json:"outcome"`
	Reason  manifest.Reason  `json:"reason"`
	Entries int              `json:"entries"`
}

// counting counts entries by outcome and reason.
type counting map[Count]int

func (c counting) add(res manifest.Result) { c[Count{Outcome: res.Outcome, Reason: res.Reason}]++ }

// list has the outcomes in the order of every table, and the reasons of each by their number.
func (c counting) list() (list []Count) {
	for count, n := range c {
		count.Entries = n
		list = append(list, count)
	}
	order := manifest.Outcomes() // not that of the map
	slices.SortFunc(list, func(a, b Count) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Outcome), slices.Index(order, b.Outcome)),
			cmp.Compare(b.Entries, a.Entries), cmp.Compare(a.Reason, b.Reason))
	})
	return list
}

// Status counts the entries of a workspace by outcome and reason. It reads only.
func Status(ctx context.Context, ws *workspace.Workspace, now time.Time) (Summary, error) {
	b, bound, err := ws.Binding(ctx)
	if err != nil {
		return Summary{}, err
	}
	if !bound {
		return Summary{}, workspace.ErrNoWorkspace
	}
	j, err := StoredJudge(ctx, ws, now)
	if err != nil {
		return Summary{}, err
	}
	p := j.Policy
	s := Summary{Release: b.Release, Outcomes: map[manifest.Outcome]int{}, MassRemovalShare: p.Reddit.MassRemovalShare}
	counts, odd, stay := counting{}, counting{}, counting{}
	withheld, lost := map[manifest.PostID]bool{}, map[manifest.PostID]bool{}
	var went []manifest.Key // of those that are withheld
	for rec, err := range ws.Records(ctx, workspace.Select{Bare: true}) {
		if err != nil {
			return Summary{}, err
		}
		res := j.Known(rec)
		if was := rec.Result; was != nil && was.Outcome == manifest.Kept && res.Outcome != manifest.Kept && !Removes(res) {
			if res.Outcome.Retryable() {
				s.Retry++
			} else {
				stay[Count{Outcome: res.Outcome, Reason: res.Reason}]++
			}
			res = *was // its row is in the dataset
		}
		s.Entries++
		if IsUnwritten(rec) {
			s.Unwritten++
		}
		s.Outcomes[res.Outcome]++
		counts[Count{Outcome: res.Outcome, Reason: res.Reason}]++
		if t := rec.Trouble; t != nil && res.Outcome == manifest.Kept { // beside its image
			odd[Count{Outcome: t.Outcome, Reason: t.Reason}]++
		}
		if res.Outcome.Retryable() {
			s.Retry++
		}
		if rec.Reading != nil && rec.Reading.Masked > 0 {
			s.Masked.Names += rec.Reading.Masked
			s.Masked.Images++
		}
		if t := rec.Trouble; rec.Post.Withheld {
			withheld[rec.ID] = true // of a gallery each entry says so
			if WentBefore(rec) {
				went = append(went, rec.Key)
			}
			s.withhold(rec.Post.GoneAt, now, rec.Post.Unconfirmed)
		} else if t != nil && t.Withheld() {
			lost[rec.ID] = true
			s.withhold(t.At, now, t.Beside == workspace.Unconfirmed)
		}
		// What was filtered out of the dataset still has its image here.
		if _, gone := j.heard.Applied(rec); gone &&
			(res.Outcome == manifest.Kept || rec.Image != nil || rec.Reading != nil) {
			s.Heard++
		}
		if res.Outcome == manifest.Kept { // only rows that are handed out can be too old
			if res.Flagged() {
				s.Flagged++
			}
			s.Stale = s.Stale || p.Stale(rec.Post.LiveAt, now)
			s.Ahead = s.Ahead || policy.Ahead(rec.Post.LiveAt, now)
			if s.OldestAsk == nil || rec.Post.LiveAt.Before(*s.OldestAsk) {
				at := rec.Post.LiveAt
				s.OldestAsk = &at
			}
		}
	}
	later, err := ws.PostsOfNoEntry(ctx)
	if err != nil {
		return Summary{}, err
	}
	for _, p := range later {
		if p.Withheld {
			withheld[p.ID] = true
			s.withhold(p.GoneAt, now, p.Unconfirmed)
		}
	}
	waiting, err := ReadNote[LaterNote](ctx, ws)
	if err != nil {
		return Summary{}, err
	}
	s.Later = max(0, int(waiting))
	s.Withheld, s.WithheldImages = len(withheld)+len(lost), len(lost)
	s.WithheldWent, err = wereHere(ctx, ws, went)
	if err != nil {
		return Summary{}, err
	}
	s.FilesMissing, err = missingFiles(ctx, ws)
	if err != nil {
		return Summary{}, err
	}
	err = ws.CheckCurrent(ctx)
	s.Behind = errors.Is(err, workspace.ErrBehind) || waiting < 0
	if err != nil && !errors.Is(err, workspace.ErrBehind) {
		return Summary{}, err
	}
	_, s.Posts, err = ws.Counts(ctx)
	if err != nil {
		return Summary{}, err
	}
	mass, err := ReadNote[MassRemovalNote](ctx, ws)
	if err != nil {
		return Summary{}, err
	}
	if s.MassRemoval { // the note stays when all of them are live again
		s.MassRemovalShare = cmp.Or(float64(mass), s.MassRemovalShare)
	}
	s.OpenCopies, err = openCopies(ctx, ws)
	if err != nil {
		return Summary{}, err
	}
	s.Returned, err = Returned(ctx, ws, nil, now)
	if err != nil {
		return Summary{}, err
	}
	s.Reasons, s.Odd, s.Stay = counts.list(), odd.list(), stay.list()
	return s, nil
}

// wereHere counts those of these entries of which an image was stored, and erased.
func wereHere(ctx context.Context, ws *workspace.Workspace, went []manifest.Key) (n int, err error) {
	if len(went) == 0 {
		return 0, nil
	}
	var posts []manifest.PostID
	for _, k := range went {
		posts = append(posts, k.ID)
	}
	former, err := ws.FormerImages(ctx, posts)
	erased := map[manifest.Key]bool{}
	for _, f := range former {
		erased[f.Key] = erased[f.Key] || f.Erased
	}
	for _, k := range went {
		if erased[k] {
			n++
		}
	}
	return n, err
}

func (s *Summary) withhold(gone, now time.Time, unconfirmed bool) {
	s.MassRemoval = s.MassRemoval || unconfirmed
	// The clock runs while a mass removal waits for its confirmation: the oldest one counts.
	if gone.IsZero() || s.WithheldSince != nil && !gone.Before(*s.WithheldSince) {
		return
	}
	since, by := gone, policy.GoneBy(gone, now)
	s.WithheldSince, s.SettleBy = &since, &by
}

// missingFiles lists the files that the last export wrote and that are not there.
func missingFiles(ctx context.Context, ws *workspace.Workspace) (missing []string, err error) {
	last, err := ReadNote[ExportNote](ctx, ws)
	if err != nil {
		return nil, err
	}
	for _, file := range last.Files {
		f, err := ws.OpenFile(file.Name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, file.Name)
		case err == nil: // what is wrong with one that does not open verify says
			f.Close()
		}
	}
	return missing, nil
}
