package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/spf13/cobra"
)

// many ends dead letters by a filter: retry and discard share these flags.
type many struct {
	letterFlags
	action recoverability.JobAction
	all    bool
	yes    bool
	rate   float64
	resume int64
	to     string // of a retry, as is canary
	canary bool
}

func (m *many) add(c *cobra.Command) {
	m.letterFlags.add(c)
	c.Flags().BoolVar(&m.all, "all", false, "all dead letters, in place of a filter")
	c.Flags().BoolVar(&m.yes, "yes", false, "do it; without it the command counts the selected letters and "+
		"changes nothing")
	c.Flags().Float64Var(&m.rate, "rate", 0, "letters a second; 0 is no limit")
	c.Flags().Int64Var(&m.resume, "resume", 0, "continue the interrupted job with this number")
}

// addRetry adds the flags that only a retry has.
func (m *many) addRetry(c *cobra.Command) {
	c.Flags().StringVar(&m.to, "to", "", "send them to this endpoint, in place of the one where each died")
	c.Flags().BoolVar(&m.canary, "canary", false, "with a filter: work in stages of 1, 5, 25, 125 and so on, and "+
		"pause "+
		"when more than a tenth of a stage fails again")
}

// isJob reports whether a command line has a filter, or numbers if it has no filter.
func (m *many) isJob(c *cobra.Command, numbers []string) (bool, error) {
	filter := m.given() || m.all
	switch {
	case m.resume < 0:
		return false, usage(c, fmt.Errorf("--resume %d: want the number of a job, 1 or more", m.resume))
	case m.resume > 0 && (filter || len(numbers) > 0):
		return false, usage(c, errors.New("--resume continues a job that has its letters: leave out the numbers "+
			"and the filter"))
	case filter && len(numbers) > 0:
		return false, usage(c, errors.New("give numbers of dead letters, or a filter"))
	case m.given() && m.all:
		return false, usage(c, errors.New("--all selects every dead letter: leave out the numbers and the filter"))
	case m.canary && !filter, m.to != "" && m.resume > 0:
		return false, usage(c, errors.New("--canary needs a filter or --all and no --resume, and --to works without "+
			"--resume only"))
	case !filter && m.resume == 0 && len(numbers) == 0:
		return false, usage(c, errors.New("give numbers of dead letters, or a filter such as --group, or --all"))
	}
	return filter || m.resume > 0, m.check(c)
}

// endMany makes a job of the filter, or resumes one, and runs it to its end. reason is for a job that discards.
func (t letters) endMany(c *cobra.Command, m *many, reason string) error {
	ctx, op, err := t.openWithin(c.Context(), t.unbounded(c))
	if err != nil {
		return err
	}
	number := m.resume
	if number == 0 {
		j := recoverability.Job{Action: m.action, Rate: m.rate, Reason: reason, To: m.to}
		if m.canary {
			j.Plan = deadletter.Canary()
		}
		if number, err = t.newJob(ctx, c, m, op.DeadLetters(), j); err != nil {
			return err
		}
	}
	return t.runJob(ctx, op, number, m.action)
}

// goOn continues a job that was interrupted, or that has paused itself.
func (t letters) goOn(c *cobra.Command, number int64) error {
	ctx, op, err := t.openWithin(c.Context(), t.unbounded(c))
	if err != nil {
		return err
	}
	return t.runJob(ctx, op, number, "")
}

func (t letters) newJob(ctx context.Context, c *cobra.Command, m *many, letters operate.DeadLetters,
	j recoverability.Job) (number int64, err error) {
	if j.Filter, err = m.read(ctx, t); err != nil {
		return 0, err
	}
	if !m.yes {
		n, err := letters.Count(ctx, j.Filter)
		if err != nil {
			return 0, causeOf(ctx, err)
		}
		chosen := view.Many(n, "dead letter is", "dead letters are")
		if n >= deadletter.CountLimit {
			chosen = fmt.Sprintf("%d dead letters or more are", n)
		}
		return 0, usage(c, fmt.Errorf("%s selected, and nothing was changed: add --yes to %s", chosen, m.action))
	}
	number, err = letters.NewJob(ctx, j)
	return number, causeOf(ctx, err)
}

const tellEvery = 2 * time.Second

// runJob runs a job to its end and prints its result. While the job runs, runJob prints the progress and how to
// continue it. It resumes a paused job. An action of "" accepts any job.
func (t letters) runJob(
	ctx context.Context, op *operate.Operator, number int64, action recoverability.JobAction,
) error {
	letters, said := op.DeadLetters(), time.Now()
	before, err := letters.Job(ctx, number)
	if err != nil {
		return causeOf(ctx, err)
	}
	goOn := fmt.Sprintf(`"edda dead %s --resume %d" continues it`, before.Action, number)
	if action != "" && before.Action != action {
		return fmt.Errorf("job %d does not %s its letters: %s", number, action, goOn)
	}
	if before.State == recoverability.JobPaused {
		if err := letters.ResumeJob(ctx, number); err != nil {
			return causeOf(ctx, err)
		}
	}
	j, err := letters.RunJob(ctx, number, func(j recoverability.Job) {
		if time.Since(said) >= tellEvery {
			said = time.Now()
			t.say(fmt.Sprintf("Job %d has ended %s so far; if it is interrupted, %s.", number,
				view.Many(j.Ended, "dead letter", "dead letters"), goOn))
		}
	})
	if err != nil {
		t.say(fmt.Sprintf("Job %d is not done: %s.", number, goOn))
		return causeOf(ctx, err)
	}
	printErr := t.print(view.Job(j))
	if j.State == recoverability.JobPaused {
		return errors.Join(printErr, fmt.Errorf("job %d has paused: %s\n\"edda dead undo %d\" takes back the messages "+
			"that still wait, and \"edda dead jobs --resume %d\" begins again with the first stage", number, j.Error,
			number, number))
	}
	if j.Kept > 0 {
		return errors.Join(printErr, fmt.Errorf("%s as before; the last: %s", view.Many(j.Kept,
			"dead letter could not be retried and is", "dead letters could not be retried and are"), j.Error))
	}
	return printErr
}

func (t letters) jobs() *cobra.Command {
	cancel, resume, limit := int64(0), int64(0), 0
	c := &cobra.Command{
		Use: "jobs", Short: "Show the jobs that retry or discard many dead letters; --cancel ends one",
		Long: `Show the jobs that retry or discard many dead letters, the newest first. --resume continues a job that is
paused, or that is open and that no process runs. Jobs that have ended are kept for 30 days.`,
		Example: `  edda dead jobs
  edda dead jobs --cancel 7
  edda dead jobs --resume 8`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if resume != 0 && cancel != 0 {
				return usage(c, errors.New("give --cancel or --resume"))
			}
			if resume != 0 {
				return t.goOn(c, resume)
			}
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				if cancel != 0 {
					if err := op.DeadLetters().CancelJob(ctx, cancel); err != nil {
						return view.View{}, err
					}
				}
				jobs, err := op.DeadLetters().Jobs(ctx, limit)
				return listed(view.Jobs(jobs), "No job has retried or discarded dead letters."), err
			})
		},
	}
	c.Flags().Int64Var(&cancel, "cancel", 0, "end the job with this number; the letters it has ended stay ended")
	c.Flags().Int64Var(&resume, "resume", 0, "continue the job with this number, and run it to its end")
	c.Flags().IntVar(&limit, "limit", deadletter.DefaultLimit, "jobs, at most 200")
	return c
}

func (t letters) undo() *cobra.Command {
	return &cobra.Command{
		Use: "undo JOB", Short: "Take back the messages of a job that no worker has tried yet",
		Long: `Take back the messages that a job has retried: each one that still waits in its queue, and that no worker
has tried yet, becomes the same dead letter again, with its number. The command prints how many messages stay: a worker
has tried them or is handling them, so they may be handled, wait for a retry, or be dead letters again. A job that is
open or paused is cancelled first. After an interruption run the command again. The record of a job's messages is kept
for 30 days.`,
		Example: `  edda dead undo 7`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			number, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || number < 1 {
				return usage(c, fmt.Errorf("%s is not the number of a job: \"edda dead jobs\" shows them",
					view.Escape(args[0])))
			}
			ctx, op, err := t.openWithin(c.Context(), t.unbounded(c))
			if err != nil {
				return err
			}
			done, err := op.DeadLetters().UndoJob(ctx, number)
			if err != nil {
				return causeOf(ctx, err)
			}
			return t.print(view.Undone(number, done))
		},
	}
}

// letterFlags select dead letters on a command line.
type letterFlags struct {
	filter       recoverability.LetterFilter
	message      string
	since, until string
}

func (f *letterFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.filter.Endpoint, "endpoint", "", "only letters that died in this endpoint")
	c.Flags().StringVar(&f.filter.Kind, "kind", "", "only letters of this kind")
	c.Flags().StringVar(&f.filter.Group, "group", "", `only letters of this group; "edda dead group" shows the groups`)
	c.Flags().StringVar(&f.message, "message", "", "only letters of the message with this id")
	c.Flags().StringVar(&f.since, "since", "", "only letters that died at this time or later: 2026-11-21T10:00:00Z, "+
		"or 2h "+
		"for two hours ago")
	c.Flags().StringVar(&f.until, "until", "", "only letters that died before this time")
}

// given reports whether any flag selects letters.
func (f *letterFlags) given() bool {
	return f.filter.Endpoint+f.filter.Kind+f.filter.Group+f.message+f.since+f.until != ""
}

// check reads the flags that need no database.
func (f *letterFlags) check(c *cobra.Command) (err error) {
	if f.message != "" {
		if f.filter.MessageID, err = saga.ParseID(f.message); err != nil {
			return usage(c, fmt.Errorf("--message %s: %w", view.Escape(f.message), err))
		}
	}
	return checkTimes(c, "since", f.since, "until", f.until)
}

// read returns the filter. It measures "two hours ago" by the database's clock.
func (f *letterFlags) read(ctx context.Context, t letters) (recoverability.LetterFilter, error) {
	if f.since+f.until == "" {
		return f.filter, nil
	}
	now, err := t.now(ctx)
	if err != nil {
		return f.filter, err
	}
	f.filter.DiedFrom, _ = view.ReadTime(f.since, now) // check has read them before
	f.filter.DiedBefore, _ = view.ReadTime(f.until, now)
	return f.filter, nil
}

// checkTimes checks the times of flags; its arguments are pairs of a flag's name and its text.
func checkTimes(c *cobra.Command, flags ...string) error {
	for n := 0; n < len(flags); n += 2 {
		if _, err := view.ReadTime(flags[n+1], time.Time{}); err != nil {
			return usage(c, fmt.Errorf("--%s %s: %w", flags[n], view.Escape(flags[n+1]), err))
		}
	}
	return nil
}
