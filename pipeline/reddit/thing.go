package reddit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"rehydrate/manifest"
	"rehydrate/policy"
)

// factFields are the fields of a link that a verdict needs. What is not named here is never
// decoded, so that no other field can be stored by accident. Author, title and selftext are
// read for Reddit's markers and go no further.
type factFields struct {
	Author            *string         `json:"author"`
	Title             string          `json:"title"`
	Selftext          string          `json:"selftext"`
	Subreddit         string          `json:"subreddit"`
	RemovedByCategory *string         `json:"removed_by_category"`
	RemovalReason     *string         `json:"removal_reason"`
	RobotIndexable    *bool           `json:"is_robot_indexable"`
	Quarantine        *bool           `json:"quarantine"`
	BannedBy          json.RawMessage `json:"banned_by"`  // null, a name, or true
	RemovedBy         json.RawMessage `json:"removed_by"` // null or a name
	Removed           json.RawMessage `json:"removed"`    // these two for moderators only
	Spam              json.RawMessage `json:"spam"`
}

// readThing reads a link. It fails when a field that a verdict rests on has a type that
// it never had, or when the author is missing: such a thing is not evidence. Trouble with
// the media is a fault of the images and leaves the facts whole.
func readThing(data json.RawMessage, p policy.Policy) (Post, error) {
	facts, subreddit, err := readFacts(data)
	if err != nil {
		return Post{}, err
	}
	images := findImages(data, p)
	facts.HasMedia = hasMedia(images)
	return Post{Facts: facts, Images: images, Subreddit: subreddit}, nil
}

// readFacts reads what a verdict rests on, and the subreddit of the post as in Post.
func readFacts(data json.RawMessage) (policy.Facts, string, error) {
	var t factFields
	if err := json.Unmarshal(data, &t); err != nil {
		return policy.Facts{}, "", fmt.Errorf("read a thing: %w", err)
	}
	if t.Author == nil {
		return policy.Facts{}, "", errors.New("read a thing: it has no author field")
	}
	subreddit, _ := manifest.Subreddit(t.Subreddit)
	return policy.Facts{
		RemovedBy:        value(t.RemovedByCategory),
		RemovalReason:    value(t.RemovalReason),
		ModRemoved:       isSet(t.BannedBy) || isSet(t.RemovedBy) || isSet(t.Removed) || isSet(t.Spam),
		AuthorDeleted:    *t.Author == "[deleted]",
		SelftextDeleted:  t.Selftext == "[deleted]",
		SelftextRemoved:  t.Selftext == "[removed]",
		TitleDeleted:     t.Title == "[deleted by user]",
		TitleRemoved:     strings.HasPrefix(t.Title, "[ Removed by "),
		RobotIndexable:   t.RobotIndexable,
		Quarantine:       value(t.Quarantine),
		ProfileSubreddit: strings.HasPrefix(strings.ToLower(t.Subreddit), "u_"),
	}, subreddit, nil
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// isSet reports whether a field that only moderators see is there and says yes: a name,
// true, or anything else but null, false and "".
func isSet(raw json.RawMessage) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", "false", `""`:
		return false
	}
	return true
}
