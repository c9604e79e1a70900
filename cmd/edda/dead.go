package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
	"github.com/spf13/cobra"
)

func (t letters) commands() *cobra.Command {
	c := &cobra.Command{
		Use: "dead", Short: "Show, retry, edit and discard dead letters",
		Long: `A dead letter is a message that failed for good. It is kept with its bytes until an operator retries or
discards it. Each has a number, and ends exactly once, however many people try at the same time. When a message of a
manifest fails for good, its run is dead instead (edda run list --state dead).`,
		Example: `  edda dead group
  edda dead list --endpoint orders
  edda dead retry 17 18
  edda dead retry --group 373371abe806 --rate 10 --yes
  edda dead discard 19 --reason "test data of the load test"`,
		RunE: group,
	}
	c.AddCommand(t.list(), t.group(), t.show(), t.retry(), t.edit(), t.discard(), t.jobs(), t.undo(), t.note())
	return c
}

// letters has the commands for dead letters.
type letters struct{ *tool }

func (t letters) list() *cobra.Command {
	flags := &letterFlags{}
	c := &cobra.Command{
		Use: "list", Short: "Show dead letters in the order of their numbers",
		Example: `  edda dead list
  edda dead list --endpoint orders --kind order.place --after 17
  edda dead list --group 373371abe806 --since 2h
  edda dead list --message 0198c0de-0000-7000-8000-000000000001`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if err := flags.check(c); err != nil {
				return err
			}
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				f, err := flags.read(ctx, t)
				if err != nil {
					return view.View{}, err
				}
				letters, err := op.DeadLetters().List(ctx, f)
				return listed(view.Letters(letters, f.Limit), "No such dead letter."), err
			})
		},
	}
	flags.add(c)
	c.Flags().Int64Var(&flags.filter.After, "after", 0, "continue after this number")
	c.Flags().IntVar(&flags.filter.Limit, "limit", deadletter.DefaultLimit, "dead letters, at most 200")
	return c
}

func (t letters) show() *cobra.Command {
	withBody := false
	c := &cobra.Command{
		Use: "show NUMBER", Short: "Show one dead letter: its error, its headers, and its body with --body",
		Long: `Show one dead letter: its error, its headers, and its body with --body. Exit code 3: no dead letter has
this number, or it was retried or discarded.`,
		Example: `  edda dead show 17
  edda dead show 17 --body --json | jq -r .body`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			numbers, err := numbersOf(c, args)
			if err != nil {
				return err
			}
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				l, err := op.DeadLetters().Show(ctx, numbers[0])
				return view.Letter(l, withBody), err
			})
		},
	}
	c.Flags().BoolVar(&withBody, "body", false, "show the body")
	return c
}

// numbersOf reads numbers of dead letters, each once, in their order.
func numbersOf(c *cobra.Command, args []string) (numbers []int64, err error) {
	seen := map[int64]bool{}
	for _, arg := range args {
		n, err := strconv.ParseInt(arg, 10, 64)
		if err != nil || n < 1 {
			return nil, usage(c, fmt.Errorf("%s is not the number of a dead letter: \"edda dead list\" shows them",
				view.Escape(arg)))
		}
		if !seen[n] {
			seen[n] = true
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}

func (t letters) retry() *cobra.Command {
	m := &many{action: recoverability.JobRetry}
	c := &cobra.Command{
		Use: "retry [NUMBER...]", Short: "Put dead letters back into their queues, with no attempt counted",
		Long: `Put dead letters back into the queues they came from, with their ids, headers and bytes, due now and with
no attempts counted. The commit wakes the workers.

With numbers each letter is a transaction of its own: if one fails, the others are retried, and the exit code is 1. With
a filter, or --all, the command runs a job: it retries the letters that exist now, at --rate letters a second. If the
job is interrupted or killed, --resume continues it; no letter is retried twice.

With --canary the job works in stages of 1, 5, 25, 125, 625 and then 3,125 letters. After each stage it waits until the
messages were handled or have failed again, at most 30 seconds. If more than a tenth of them failed again, the job
pauses and prints the reason. A message that waits for its next attempt counts as failed. "edda dead undo" takes back
the messages that no worker has tried yet.`,
		Example: `  edda dead retry 17 18 19
  edda dead retry --group 373371abe806 --rate 10 --yes
  edda dead retry --group 373371abe806 --canary --yes
  edda dead retry 17 --to orders-new
  edda dead retry --endpoint orders --since 2h --yes
  edda dead retry --resume 7`,
		RunE: func(c *cobra.Command, args []string) error {
			job, err := m.isJob(c, args)
			if err != nil {
				return err
			}
			if job {
				return t.endMany(c, m, "")
			}
			return t.endLetters(c, args, "retried",
				func(l ending) error { return l.store.RetryTo(l.ctx, l.number, m.to) })
		},
	}
	m.add(c)
	m.addRetry(c)
	return c
}

func (t letters) discard() *cobra.Command {
	reason := ""
	m := &many{action: recoverability.JobDiscard}
	c := &cobra.Command{
		Use: "discard [NUMBER...] --reason TEXT", Short: "End dead letters without an effect, and keep the reason",
		Long: `End dead letters without an effect. The reason is kept in the table discarded for 30 days; the body is
deleted at once and cannot be recovered. With numbers each letter is a transaction of its own; with a filter, or --all,
the command runs a job as "edda dead retry" does.`,
		Example: `  edda dead discard 17 18 --reason "sent twice by the import of May"
  edda dead discard --group 373371abe806 --reason "the load test" --yes`,
		RunE: func(c *cobra.Command, args []string) error {
			job, err := m.isJob(c, args)
			switch {
			case err != nil:
				return err
			case strings.TrimSpace(reason) == "" && m.resume == 0:
				return usage(c, errors.New(`--reason is missing: give it, for people who look for the message later`))
			case job:
				return t.endMany(c, m, reason)
			}
			return t.endLetters(c, args, "discarded",
				func(l ending) error { return l.store.Discard(l.ctx, l.number, reason) })
		},
	}
	m.add(c)
	c.Flags().StringVar(&reason, "reason", "", "why, for the record (required, except with --resume)")
	return c
}

func (t letters) group() *cobra.Command {
	var f recoverability.GroupFilter
	c := &cobra.Command{
		Use: "group", Short: "Show the groups of dead letters with similar errors",
		Long: `Show the groups of dead letters, the largest first. The letters of a group died in one endpoint, are of
one kind, and have errors that differ in numbers, ids and quoted texts only. EXAMPLE is the number of the newest.
Letters are counted up to 100,000; a larger group is marked with "+". NOTE is the note of the group, which "edda dead
note" writes. The command reads at most 1,000 groups; --after continues after them.`,
		Example: `  edda dead group
  edda dead group --endpoint orders
  edda dead retry --group 373371abe806 --rate 10 --yes`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				f.Notes = true
				groups, next, err := op.DeadLetters().Groups(ctx, f)
				return listed(view.LetterGroups(groups, next), "No such dead letter."), err
			})
		},
	}
	c.Flags().StringVar(&f.Endpoint, "endpoint", "", "only groups of this endpoint")
	c.Flags().StringVar(&f.Kind, "kind", "", "only groups of this kind")
	c.Flags().StringVar(&f.After, "after", "", "continue after the group of this name")
	return c
}

func (t letters) note() *cobra.Command {
	remove := false
	c := &cobra.Command{
		Use: "note GROUP TEXT", Short: "Write the note of a group of dead letters, or remove it with --remove",
		Long: `Write the note of a group: the cause, the ticket, the person who works on it. The list of groups and the
pages show the note with its author and time. A new note replaces the old one; --remove removes it. A note has at most
2,000 bytes of text, and every reader of the tables can read it.

A note is an entry of the audit: it is kept for 400 days, also while the group has no letters. Exit code 3: no dead
letter is in the group.`,
		Example: `  edda dead note 373371abe806 "the warehouse lost its certificate; OPS-1234"
  edda dead note 373371abe806 --remove`,
		Args: arguments(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, args []string) error {
			if remove == (len(args) == 2) {
				return usage(c, errors.New("give the text of the note, or --remove"))
			}
			text := strings.TrimSpace(strings.Join(args[1:], ""))
			if !remove && text == "" {
				return usage(c, errors.New("the note is empty: give a text, or remove the note with --remove"))
			}
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				err := op.DeadLetters().SetNote(ctx, args[0], text)
				said := "Group %s has the note."
				if remove {
					said = "Group %s has no note."
				}
				return lineOf(view.Object{"group", args[0], "note", text}, said, args[0]), err
			})
		},
	}
	c.Flags().BoolVar(&remove, "remove", false, "remove the note")
	return c
}

// ending is the end of one dead letter.
type ending struct {
	ctx    context.Context
	store  operate.DeadLetters
	number int64
}

type failedLetter struct {
	Number int64  `json:"number"`
	Error  string `json:"error"`
}

// endLetters ends dead letters one by one. It prints the result, and then returns an error for the letters that failed.
func (t letters) endLetters(c *cobra.Command, args []string, done string, end func(ending) error) error {
	numbers, err := numbersOf(c, args)
	if err != nil {
		return err
	}
	ctx, op, err := t.open(c.Context())
	if err != nil {
		return err
	}
	ended, gone, failed := []int64{}, []int64{}, []failedLetter{}
	var worst error // a failure decides the exit code before a letter that does not exist
	for _, number := range numbers {
		err := end(ending{ctx, op.DeadLetters(), number})
		switch {
		case err == nil:
			ended = append(ended, number)
		case errors.Is(err, operate.ErrNoLetter):
			gone = append(gone, number)
			if worst == nil {
				worst = err
			}
		default:
			failed = append(failed, failedLetter{number, redact(err.Error(), t.database)})
			worst = causeOf(ctx, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	v := view.View{JSON: view.Object{done, ended, "not_found", gone, "failed", failed}}
	for _, number := range ended {
		v.Parts = append(v.Parts, linef("Dead letter %d is %s.", number, done))
	}
	printErr := t.print(v)
	return errors.Join(printErr, summary(worst, gone, failed))
}

// summary lists all failures, with the exit code of the worst.
func summary(worst error, gone []int64, failed []failedLetter) error {
	if len(gone)+len(failed) < 2 {
		return worst
	}
	text := ""
	for _, number := range gone {
		text += fmt.Sprintf("\n  %d: %v", number, operate.ErrNoLetter)
	}
	for _, f := range failed {
		text += fmt.Sprintf("\n  %d: %s", f.Number, f.Error)
	}
	text = fmt.Sprintf("%d dead letters are as they were:%s", len(gone)+len(failed), text)
	return severalErrors{text: text, worst: worst}
}

// severalErrors has its own text, and otherwise behaves like the worst of several errors.
type severalErrors struct {
	text  string
	worst error
}

func (e severalErrors) Error() string { return e.text }
func (e severalErrors) Unwrap() error { return e.worst }
