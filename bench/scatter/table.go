package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

var columns = "design\tstore\tscatters\teach\treplies/s\tconflicts\tretries\tlock waits\tput down\tsaga " +
	"writes\tp99 quiet\telsewhere\there\there/quiet\t"

const legend = `each: from the send to the end of one scatter. conflicts: messages whose saga lost its save. retries:
failed attempts. lock waits: batches that waited for a saga of another server. put down: messages that were taken and
left, because their saga was in other hands. saga writes: versions written, for each scatter. p99: of the critical times
of unrelated messages: in quiet, and during the run those of another endpoint (what the busy machine costs) and of this
one.
`

// printTable writes the lines.
func printTable(out io.Writer, lines []line) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(table, columns) // Flush tells
	for _, l := range lines {
		quiet, elsewhere, p99 := quantile(append(l.quiet.here, l.quiet.elsewhere...), 0.99),
			quantile(l.during.elsewhere, 0.99), quantile(l.during.here, 0.99)
		ratio := "-"
		if quiet > 0 {
			ratio = fmt.Sprintf("%.1f", float64(p99)/float64(quiet))
		}
		c := l.saga
		_, _ = fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%.0f\t%d\t%d\t%d\t%d\t%.1f\t%s\t%s\t%s\t%s\t\n", l.design, l.store,
			l.scatters,
			milliseconds(l.each()), l.rate(), c.Messages.Conflicts, c.Messages.Retries, c.Waiting.Waits,
			c.Messages.Busy+c.Messages.Queued,
			float64(c.Saves.Writes)/float64(max(1, l.scatters)),
			milliseconds(quiet), milliseconds(elsewhere), milliseconds(p99), ratio)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprint(out, legend)
	return err
}

func (l line) each() time.Duration { return l.took / time.Duration(max(1, l.scatters)) }

// rate is the replies of a second.
func (l line) rate() float64 {
	if l.took <= 0 {
		return 0
	}
	return float64(l.scatters*l.requests) / l.took.Seconds()
}

func milliseconds(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}
