package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (c *command) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages, one for each command",
		Long: `Write a manual page for rehydrate and for each of its commands into a folder: what
--help says, for man. Asks nobody; writes only DIR, which is made where it is missing.` +
			exitHelp(exitDone, exitFailed, exitUsage),
		Example: "  rehydrate man ~/.local/share/man/man1 && man rehydrate-run",
		Args:    exactArgs(1, "one DIR to write to"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.man(cmd.Root(), args[0])
		},
	}
}

func (c *command) man(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var written []string
	for _, cmd := range commandsOf(root) {
		name := filepath.Join(dir, manName(cmd)+".1")
		if err := replaceFile(name, func(w io.Writer) error { return writeMan(w, cmd) }); err != nil {
			return fmt.Errorf("write a manual page: %w", err)
		}
		// A manual is for all users of the machine.
		if err := os.Chmod(name, 0o644); err != nil {
			return err
		}
		written = append(written, name)
	}
	if c.json {
		return c.printJSON(map[string]any{"written": written})
	}
	for _, name := range written {
		fmt.Fprintf(c.stdout, "wrote %s\n", name)
	}
	return nil
}

// commandsOf are a command and all below it that help shows.
func commandsOf(root *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{root}
	for i := 0; i < len(all); i++ {
		for _, cmd := range all[i].Commands() {
			if !cmd.Hidden {
				all = append(all, cmd)
			}
		}
	}
	return all
}

// manName is the name of a command's manual page: rehydrate-grant-check.
func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// writeMan writes a command's manual page: man(7) macros, no date, so that equal programs give
// equal pages.
func writeMan(w io.Writer, cmd *cobra.Command) error {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"rehydrate %s\" \"rehydrate\"\n", roffText(strings.ToUpper(manName(cmd))), roffText(version()))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roffText(manName(cmd)), roffText(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roffText(cmd.UseLine()))
	text, status, _ := strings.Cut(cmd.Long, "\n\nExit status:\n")
	b.WriteString(".SH DESCRIPTION\n")
	roffParagraphs(&b, text)
	if below := cmd.Commands(); len(below) > 0 {
		b.WriteString(".SH COMMANDS\n")
		for _, sub := range below {
			if !sub.Hidden {
				fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roffText(sub.Name()), roffText(sub.Short))
			}
		}
	}
	roffFlags(&b, "OPTIONS", cmd.NonInheritedFlags())
	roffFlags(&b, "OPTIONS OF ALL COMMANDS", cmd.InheritedFlags())
	if status != "" {
		b.WriteString(".SH EXIT STATUS\n")
		for line := range strings.Lines(status) {
			code, meaning, _ := strings.Cut(strings.TrimSpace(line), " ")
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roffText(code), roffText(strings.TrimSpace(meaning)))
		}
	}
	if cmd.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.EX\n%s\n.EE\n", roffText(strings.TrimRight(cmd.Example, "\n")))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// roffParagraphs writes text that blank lines divide. Indented lines stay as they are.
func roffParagraphs(b *strings.Builder, text string) {
	for i, paragraph := range strings.Split(text, "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if strings.HasPrefix(paragraph, " ") {
			fmt.Fprintf(b, ".EX\n%s\n.EE\n", roffText(paragraph))
		} else {
			fmt.Fprintln(b, roffText(paragraph))
		}
	}
}

func roffFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roffText(strings.TrimSpace(name+" "+value)), roffText(usage))
	})
}

var roffEscaper = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "~", `\(ti`, "^", `\(ha`)

// roffText makes a text safe for roff: no escape and, at the start of a line, no request.
func roffText(s string) string {
	lines := strings.Split(roffEscaper.Replace(s), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
