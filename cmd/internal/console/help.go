package console

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Help prints the help of commands to out, wherever that goes in the columns of a usual terminal. Paragraphs are filled;
// one with an indented line keeps its lines, which are broken where they are too long.
func Help(out io.Writer) func(*cobra.Command, []string) {
	const width = 80
	const noise = "[=true|false]" // pflag puts it behind every switch
	return func(cmd *cobra.Command, _ []string) {
		for paragraph := range strings.SplitSeq(cmd.Long, "\n\n") {
			if !strings.Contains("\n"+paragraph, "\n ") {
				paragraph = strings.Join(strings.Fields(paragraph), " ")
			}
			wrapLines(out, paragraph+"\n\n", width)
		}
		wrapLines(out, strings.ReplaceAll(cmd.UsageString(), noise, strings.Repeat(" ", len(noise))), width)
	}
}

func wrapLines(out io.Writer, text string, width int) {
	for line := range strings.Lines(text) {
		fmt.Fprintln(out, wrap(strings.TrimRight(line, " \n"), width)) // a stream of help remembers its error
	}
}
