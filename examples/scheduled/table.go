package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

const legend = `expected: due times that scheduler.Occurrences computes from the declaration. runs: those in the
table of runs. effects: rows that handlers wrote in their transactions, settlements reported for a report: one run of
it may tell of two. doubled, missing, unexpected: due times. again: further attempts.

`

// printTable writes the lines.
func printTable(out io.Writer, lines []line) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	// Flush tells
	_, _ = fmt.Fprintln(table, "\nmanifest\texpected\truns\tsucceeded\teffects\tdoubled\tmissing\tunexpected\tagain\t")
	for _, l := range lines {
		missing := fmt.Sprint(l.Missing)
		if l.Name == failing {
			missing = "held"
		}
		_, _ = fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%s\t%d\t%d\t\n", l.Name, l.Expected, l.Runs, l.Succeeded,
			l.Effects, l.Doubled, missing, l.Stranger, l.Again)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprint(out, legend)
	return err
}
