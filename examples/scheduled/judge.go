package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5"
)

// errWrong is the answer of the check: the exit code is 1.
var errWrong = errors.New("not everything is as it should be")

// line is one of the table, as the statement check has it.
type line struct {
	Name                     string
	Expected                 int // due times until the end
	Runs, Succeeded, Effects int
	// due times that were run or done twice, not done, or run though nobody expected them
	Doubled, Missing, Stranger int
	Again                      int // further attempts
}

// faults of a manifest that is to succeed each time. A report may have fewer runs than its parent, but tells of each
// settlement.
func (l line) faults() (all []string) {
	add := func(wrong bool, what string) {
		if wrong {
			all = append(all, l.Name+": "+what)
		}
	}
	follower := strings.HasPrefix(l.Name, "report/")
	add(l.Expected == 0, "it was never due")
	add(l.Effects != l.Expected, fmt.Sprintf("%d effects, want %d", l.Effects, l.Expected))
	add(l.Runs != l.Succeeded, fmt.Sprintf("%d of %d runs succeeded", l.Succeeded, l.Runs))
	add(!follower && l.Runs != l.Expected, fmt.Sprintf("%d runs, want %d", l.Runs, l.Expected))
	add(follower && (l.Runs == 0 || l.Runs > l.Expected), fmt.Sprintf("%d runs, want 1 to %d", l.Runs, l.Expected))
	add(l.Doubled+l.Missing+l.Stranger > 0, fmt.Sprintf("%d due times doubled, %d missing, %d that nobody expected",
		l.Doubled, l.Missing, l.Stranger))
	return all
}

// judge prints the table and what is wrong.
func (p *show) judge(ctx context.Context, out io.Writer) error {
	lines, err := p.lines(ctx)
	if err != nil {
		return err
	}
	var faults []string
	for _, l := range lines {
		if l.Name != failing {
			faults = append(faults, l.faults()...)
		} else if l.Effects > 0 {
			faults = append(faults, fmt.Sprintf("%s: %d effects of handlers that failed", failing, l.Effects))
		}
	}
	if err := printTable(out, lines); err != nil {
		return err
	}
	for _, check := range []func(context.Context, io.Writer) ([]string, error){p.judgeGroup, p.judgeReports,
		p.judgeHeld} {
		found, err := check(ctx, out)
		if err != nil {
			return err
		}
		faults = append(faults, found...)
	}
	for _, f := range faults {
		_, _ = fmt.Fprintf(out, "wrong: %s\n", f)
	}
	if len(faults) > 0 || len(lines) != len(p.due) {
		return fmt.Errorf("%w: %d faults; %d of %d manifests are there", errWrong, len(faults), len(lines), len(p.due))
	}
	_, _ = fmt.Fprintln(out, "Each due time was run once and done once.")
	return nil
}

func (p *show) lines(ctx context.Context) ([]line, error) {
	var names []string
	var dues []time.Time
	for name, all := range p.due {
		for _, due := range all {
			names, dues = append(names, name), append(dues, due)
		}
	}
	rows, err := p.Pool.Query(ctx, p.sql.Get("check"), names, dues)
	if err != nil {
		return nil, fmt.Errorf("check the runs: %w", err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowToStructByPos[line])
	if err != nil {
		return nil, fmt.Errorf("check the runs: %w", err)
	}
	return lines, nil
}

func (p *show) judgeGroup(ctx context.Context, out io.Writer) (faults []string, err error) {
	most, err := p.number(ctx, "at_once", groupName)
	if err != nil {
		return nil, err
	}
	_, _ = fmt.Fprintf(out, "Of the strict group %q at most %d runs were active at a moment; its cap is %d.\n",
		groupName, most, groupMax)
	if most > groupMax || most == 0 {
		faults = append(faults, fmt.Sprintf("%d runs of group %s were active at a moment, want 1 to %d", most,
			groupName, groupMax))
	}
	return faults, nil
}

func (p *show) judgeReports(ctx context.Context, out io.Writer) (faults []string, err error) {
	early, err := p.number(ctx, "too_early")
	if err != nil {
		return nil, err
	}
	_, _ = fmt.Fprintf(out, "%d reports came before the settlement that they tell of.\n", early)
	if early > 0 {
		faults = append(faults, fmt.Sprintf("%d reports came too early", early))
	}
	return faults, nil
}

// judgeHeld sees that the manifest that fails has fired once, and what it waits for.
func (p *show) judgeHeld(ctx context.Context, out io.Writer) (faults []string, err error) {
	m, err := p.store.Manifest(ctx, failing)
	if err != nil {
		return nil, err
	}
	runs, err := p.store.Runs(ctx, scheduler.RunFilter{Manifest: failing})
	if err != nil {
		return nil, err
	}
	if len(runs) != 1 || runs[0].State != scheduler.RunDead || m.State != scheduler.ManifestHeld ||
		m.Held.ID != runs[0].ID || len(p.due[failing]) < 2 {
		faults = append(faults, fmt.Sprintf("%s is %s with %d runs, want it held by one that is dead", failing, m.State,
			len(runs)))
	}
	_, _ = fmt.Fprintf(out, "%s is %s: it has %d of %d firings, since run %s is dead:\n  %s\n", failing, m.State,
		len(runs), len(p.due[failing]), m.Held.ID, m.Held.Error)
	_, _ = fmt.Fprintf(out, "It waits for somebody. The first command fires it once more when the cause is mended; "+
		"the second gives that firing up:\n"+
		"  edda run retry %[1]s --schema %[2]s --note \"the file is right again\"\n  edda run cancel %[1]s "+
		"--schema %[2]s --note \"no rates today\"\n",
		m.Held.ID, p.Edda)
	return faults, nil
}
