package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"rehydrate/cmd/internal/build"
	"rehydrate/internal/durable"
)

func (c *command) manCommand() *cobra.Command {
	var out string
	cmd := newCommand("man", noArgs, func(cmd *cobra.Command, _ []string) error {
		if out == "" {
			return usageError("%s needs --out DIR, the folder to write to", cmd.CommandPath())
		}
		return c.man(cmd.Context(), cmd.Root(), out)
	})
	registerOut(cmd, &out, "")
	cmd.Hidden = true // for those who package the program
	return cmd
}

func (c *command) man(ctx context.Context, root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	date := buildDate(c.now())
	root.DisableAutoGenTag = true
	var written []string
	for _, cmd := range commandsOf(root) {
		name := filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1")
		header := &doc.GenManHeader{Date: &date, Source: "rehydrate " + build.Version(), Manual: "rehydrate"}
		cmd.Long = manText(cmd.Long)
		if err := durable.Write(ctx, name, 0o644,
			func(w io.Writer) error { return doc.GenMan(cmd, header, w) }); err != nil {
			return fmt.Errorf("write a manual page: %w", err)
		}
		written = append(written, name)
	}
	return c.answer("man", manAnswer{written})
}

// commandsOf are a command and all below it that help shows.
func commandsOf(root *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{root}
	for i := 0; i < len(all); i++ { // all grows meanwhile
		for _, cmd := range all[i].Commands() {
			if !cmd.Hidden {
				all = append(all, cmd)
			}
		}
	}
	return all
}

// manText is a command's help text as Markdown, which cobra turns into the page.
func manText(help string) string {
	// Indented lines stay as they are, and a word such as <FILE> is not taken for HTML.
	return strings.NewReplacer("\n  ", "\n      ", "*", `\*`, "<", `\<`).Replace(help)
}

// buildDate is the day of the commit that the program was built from.
func buildDate(now time.Time) time.Time {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if at, err := time.Parse(time.RFC3339, s.Value); err == nil && s.Key == "vcs.time" {
				return at
			}
		}
	}
	return now // the build did not record it
}

// A manAnswer is what man prints.
type manAnswer struct {
	Written []string `json:"written"`
}
