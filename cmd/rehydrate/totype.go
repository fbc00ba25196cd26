package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rehydrate/cmd/internal/console"
	"rehydrate/pipeline/state"
)

// A reader pastes the commands of hints and screens. Typed so, each must work on what this command worked on.

// commandText finds commands in a text: the program, a name of one or two words, and flags and words in capitals.
var commandText = regexp.MustCompile(`\brehydrate( [a-z]+){1,2}( (--?[a-z][a-z-]*|[A-Z]+)\b)*`)

// joined is a command in which no line is broken.
func joined(command string) string { return strings.ReplaceAll(command, " ", console.Joint) }

// toType completes the commands in a text: each gets the workspace, the release and the leave that this command was
// given, as far as it takes them and does not name them itself. A rehearsal has a workspace of its own: demo gets none.
// Where the workspace was ended, or its posts are made up, what still works there takes the place of the commands that
// refuse it.
func (c *command) toType(text string) string {
	if c.called == nil {
		return text
	}
	return commandText.ReplaceAllStringFunc(text, func(found string) string {
		words := strings.Fields(found)
		next, name := c.called.Root(), 1
		for ; name < len(words); name++ {
			i := slices.IndexFunc(next.Commands(), func(sub *cobra.Command) bool { return sub.Name() == words[name] })
			if i < 0 {
				break
			}
			next = next.Commands()[i]
		}
		if name == 1 { // "rehydrate asks": no command
			return found
		}
		if next.HasSubCommands() || next.Name() == "demo" {
			return joined(found)
		}
		end := name
		for end < len(words) && (strings.HasPrefix(words[end], "-") || strings.ToUpper(words[end]) == words[end]) {
			end++
		}
		last := next.Flags().Lookup(strings.TrimPrefix(words[end-1], "--"))
		if letter, short := strings.CutPrefix(words[end-1], "-"); short && len(letter) == 1 {
			last = next.Flags().ShorthandLookup(letter)
		}
		if last != nil && last.NoOptDefVal == "" {
			end-- // its value follows
		}
		whole := joined(strings.Join(words[:name], " ") + c.given(next, words[name:], end-name))
		if c.ended && slices.Contains([]string{"purge", "recheck"}, next.Name()) && !slices.Contains(words, "--all") {
			whole = c.toType(endsAgain)
		}
		if c.madeUp && slices.Contains([]string{"run", "recheck"}, next.Name()) && !c.asksElsewhere() {
			whole = rehearsedBy
			for _, word := range words[name:end] {
				if strings.HasPrefix(word, "-") {
					whole += ", with " + word
				}
			}
		}
		return strings.Join(append([]string{whole}, words[end:]...), " ")
	})
}

// rehearsedBy asks again about posts that are made up. Which command it was, no workspace knows.
const rehearsedBy = "the rehydrate demo that you typed"

// asksElsewhere reports whether this command was given a place of its own to ask at, such as an emulator that serves.
func (c *command) asksElsewhere() bool {
	flag := c.called.Flags().Lookup("connect-to")
	return flag != nil && flag.Changed
}

// confirming is the command that confirms the removals of a release: this one, if it can. Otherwise it is a recheck,
// but posts that are made up are asked about by demo.
func (c *command) confirming(release string) string {
	switch {
	case c.called != nil && c.called.Flags().Lookup("confirm-removals") != nil:
		return c.again(confirms, confirms)
	case state.IsRehearsal(release):
		return rehearsedBy + ", with its --delete and " + confirms
	}
	return c.toType("rehydrate recheck RELEASE " + confirms)
}

// fetches reports whether this command, typed again, retries what failed: the others that count it fetch nothing.
func (c *command) fetches() bool {
	return c.called == nil || !slices.Contains([]string{"status", "ocr", "recheck", "merge"}, c.called.Name())
}

// given are the first words behind the name of a command, each after a space, with what this command was given.
func (c *command) given(next *cobra.Command, words []string, first int) string {
	text := ""
	about := false // a release
	for _, word := range words[:first] {
		if word == "RELEASE" {
			about = true
			if c.release != "" {
				word = shellWord(c.release)
			}
		}
		text += " " + word
	}
	if next.Flags().Lookup("workspace") != nil && !slices.Contains(words, "-w") {
		text += c.named()
	}
	// A release is asked about by the same leave, at the same place.
	for _, name := range []string{"grant", "approval", "policy", "connect-to", "cacert"} {
		flag := c.called.Flags().Lookup(name)
		if name == "approval" && c.called.Name() == "audit" { // the auditor's, which is not the holder's
			continue
		}
		if !about || flag == nil || next.Flags().Lookup(name) == nil || slices.Contains(words, "--"+name) {
			continue
		}
		values := []string{flag.Value.String()}
		if several, ok := flag.Value.(pflag.SliceValue); ok {
			values = several.GetSlice()
		}
		for _, value := range values {
			text += repeated("--"+name, value)
		}
	}
	return text
}
