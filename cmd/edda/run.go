package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/spf13/cobra"
)

func (t *tool) runCommands() *cobra.Command {
	c := &cobra.Command{
		Use: "run", Short: "Show, cancel and retry runs of manifests",
		Long: `A run is one firing of a manifest. It waits for its moment, is queued, then active while its message is
handled, and ends as succeeded, cancelled or timed_out; one that failed for good is dead, and holds its manifest until
somebody retries or cancels it.`,
		Example: `  edda run list --state dead
  edda run show 0198c0de-0000-7000-8000-000000000001
  edda run retry 0198c0de-0000-7000-8000-000000000001 --note "the disk is free again"`,
		RunE: group,
	}
	c.AddCommand(t.runList(), t.runShow(), t.runCancel(), t.runRetry())
	return c
}

type attemptJSON struct {
	Attempt int        `json:"attempt"`
	Message saga.ID    `json:"message"`
	Sent    time.Time  `json:"sent"`
	Began   *time.Time `json:"began"`
	Worker  string     `json:"worker"`
	Ended   *time.Time `json:"ended"`
	Outcome string     `json:"outcome"`
	Error   string     `json:"error"`
}

type runJSON struct {
	Run      saga.ID       `json:"run"`
	Manifest string        `json:"manifest"`
	Group    string        `json:"group"`
	Origin   string        `json:"origin"`
	State    string        `json:"state"`
	Due      time.Time     `json:"due"`
	Ready    time.Time     `json:"ready"`
	Queued   time.Time     `json:"queued"`
	Ended    *time.Time    `json:"ended"`
	Priority int           `json:"priority"`
	Kind     string        `json:"kind"`
	Attempt  int           `json:"attempt"`
	Refused  int           `json:"refused"`
	Message  *saga.ID      `json:"message"`
	Deadline *time.Time    `json:"deadline"`
	Beat     *time.Time    `json:"beat"`
	Error    string        `json:"error"`
	Note     string        `json:"note"`
	Attempts []attemptJSON `json:"attempts,omitempty"` // show only, as are size and body
	Size     *int          `json:"size,omitempty"`
	body
}

func runOf(r scheduler.RunInfo) runJSON {
	j := runJSON{
		Run: r.ID, Manifest: r.Manifest, Group: r.Group, Origin: r.Origin, State: string(r.State), Due: r.Due.UTC(),
		Ready:  r.Ready.UTC(),
		Queued: r.Queued.UTC(), Ended: jsonTime(r.Ended), Priority: r.Priority, Kind: r.Kind, Attempt: r.Attempt,
		Refused: r.Refused,
		Message: jsonID(r.Message), Deadline: jsonTime(r.Deadline), Beat: jsonTime(r.Beat), Error: r.Error,
		Note: r.Note,
	}
	for _, a := range r.Attempts {
		j.Attempts = append(j.Attempts, attemptJSON{Attempt: a.Attempt, Message: a.Message, Sent: a.Sent.UTC(),
			Began:  jsonTime(a.Began),
			Worker: a.Worker, Ended: jsonTime(a.Ended), Outcome: a.Outcome, Error: a.Error})
	}
	return j
}

const runStates = " waiting queued active dead succeeded cancelled timed_out "

func (t *tool) runList() *cobra.Command {
	var f scheduler.RunFilter
	var state, after, since, until string
	c := &cobra.Command{
		Use: "list", Short: "Show runs, the newest first",
		Example: `  edda run list --manifest night/settle
  edda run list --state dead
  edda run list --since 2h --json | jq '[.runs[] | select(.state == "timed_out")] | length'`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if f.State = scheduler.RunState(state); state != "" && !strings.Contains(runStates, " "+state+" ") {
				return usage(c, fmt.Errorf("--state %s: want one of%s", escape(state),
					strings.TrimRight(runStates, " ")))
			}
			if f.Limit < 1 || f.Limit > scheduler.MostListed {
				return usage(c, fmt.Errorf("--limit %d: want 1 to %d", f.Limit, scheduler.MostListed))
			}
			if after != "" {
				if f.After, err = saga.ParseID(after); err != nil {
					return usage(c, fmt.Errorf("--after %s: %w", escape(after), err))
				}
			}
			for flag, text := range map[string]string{"--since": since, "--until": until} {
				if _, err := timeOf(text, time.Time{}); err != nil {
					return usage(c, fmt.Errorf("%s %s: %w", flag, escape(text), err))
				}
			}
			ctx, s, err := t.openStore(c.Context())
			if err != nil {
				return err
			}
			if f.Since, f.Until, err = t.period(ctx, since, until); err != nil {
				return err
			}
			list, err := s.Runs(ctx, f)
			if err != nil {
				return causeOf(ctx, err)
			}
			return t.print(runPage(list, f.Limit))
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.Manifest, "manifest", "", "only those of this manifest")
	flags.StringVar(&f.Group, "group", "", "only those that were queued in this group")
	flags.StringVar(&state, "state", "", "only those in this state: waiting, queued, active, dead, succeeded, "+
		"cancelled, timed_out")
	flags.StringVar(&since, "since", "", "only those that were queued then or later: 2026-11-21T10:00:00Z, or 2h "+
		"for two hours ago")
	flags.StringVar(&until, "until", "", "only those that were queued earlier than that")
	flags.StringVar(&after, "after", "", "go on behind the run of this id")
	flags.IntVar(&f.Limit, "limit", 100, "runs, at most 1000")
	return c
}

func runPage(list []scheduler.RunInfo, limit int) result {
	all, next := []runJSON{}, ""
	rows := [][]string{{"RUN", "MANIFEST", "STATE", "ORIGIN", "DUE", "ATTEMPT", "QUEUED", "ENDED", "ERROR"}}
	for _, r := range list {
		all = append(all, runOf(r))
		rows = append(rows, []string{r.ID.String(), r.Manifest, string(r.State), r.Origin, moment(r.Due),
			strconv.Itoa(r.Attempt), moment(r.Queued),
			moment(r.Ended), shortened(r.Error, 60)})
	}
	if len(list) == limit {
		next = list[limit-1].ID.String()
	}
	return result{value: map[string]any{"runs": all, "next": next}, page: func(p *page) {
		if len(list) == 0 {
			p.line("No such run.")
			return
		}
		p.table(rows)
		if next != "" {
			p.line("There may be more: --after %s", next)
		}
	}}
}

func (t *tool) runShow() *cobra.Command {
	bodies := false
	c := &cobra.Command{
		Use: "show RUN", Short: "Show one run with its attempts",
		Long: `Show one run with its attempts, the newest first. Its message is shown with --body only. Exit code 3:
there is none.`,
		Example: `  edda run show 0198c0de-0000-7000-8000-000000000001`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			ids, err := runIDs(c, args)
			if err != nil {
				return err
			}
			ctx, s, err := t.openStore(c.Context())
			if err != nil {
				return err
			}
			r, err := s.RunOf(ctx, ids[0])
			if err != nil {
				return causeOf(ctx, err)
			}
			return t.print(shownRun(r, bodies))
		},
	}
	c.Flags().BoolVar(&bodies, "body", false, "show its message")
	return c
}

func shownRun(r scheduler.RunInfo, bodies bool) result {
	j, size := runOf(r), len(r.Body)
	if j.Size = &size; bodies {
		j.body = bodyOf(r.Body)
	}
	return result{value: j, page: func(p *page) {
		p.fields("run", r.ID.String(), "manifest", r.Manifest, "group", r.Group, "state", string(r.State), "origin",
			r.Origin, "due", moment(r.Due),
			"ready", moment(r.Ready), "queued", moment(r.Queued), "ended", moment(r.Ended), "kind", r.Kind, "priority",
			strconv.Itoa(r.Priority),
			"deadline", moment(r.Deadline), "sign of life", moment(r.Beat), "refused", strconv.Itoa(r.Refused), "error",
			r.Error, "note", r.Note)
		if len(r.Attempts) > 0 {
			rows := [][]string{{"ATTEMPT", "MESSAGE", "SENT", "BEGAN", "ENDED", "OUTCOME", "WORKER", "ERROR"}}
			for _, a := range r.Attempts {
				rows = append(rows, []string{strconv.Itoa(a.Attempt), a.Message.String(), moment(a.Sent),
					moment(a.Began), moment(a.Ended), a.Outcome,
					a.Worker, shortened(a.Error, 80)})
			}
			p.table(rows)
		}
		if bodies {
			p.block(pretty(r.Body))
		}
	}}
}

func runIDs(c *cobra.Command, args []string) (ids []saga.ID, err error) {
	for _, text := range args {
		id, err := saga.ParseID(text)
		if err != nil {
			return nil, usage(c, fmt.Errorf("%s is no id of a run: %w", escape(text), err))
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func noteFlag(c *cobra.Command, note *string) {
	c.Flags().StringVar(note, "note", "", "why, for the record (required)")
}

func checkNote(c *cobra.Command, note string) error {
	if strings.TrimSpace(note) == "" {
		return usage(c, errors.New("--note is missing: say why, for the record"))
	}
	return nil
}

func (t *tool) runCancel() *cobra.Command {
	note := ""
	c := &cobra.Command{
		Use: "cancel RUN... --note TEXT", Short: "End runs that have not ended",
		Long: `End runs that wait, are queued, active or dead. A handler that has a run's message in hand cannot commit
any more, and a message on its way is dropped. The manifest may fire again: pause it first if it must not. Each run is a
transaction of its own.`,
		Example: `  edda run cancel 0198c0de-0000-7000-8000-000000000001 --note "wrong rates"`,
		Args:    arguments(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.changeRuns(c, args, note, change{"cancelled", (*scheduler.Store).Cancel})
		},
	}
	noteFlag(c, &note)
	return c
}

func (t *tool) runRetry() *cobra.Command {
	note := ""
	c := &cobra.Command{
		Use: "retry RUN... --note TEXT", Short: "Queue runs again that are dead, timed out or cancelled",
		Long: `Queue runs again that are dead, timed out or cancelled, with the message that they have, and one that
waits for its next attempt at once. A dead run holds its manifest no longer. Each run is a transaction of its own.`,
		Example: `  edda run retry 0198c0de-0000-7000-8000-000000000001 --note "the disk is free again"`,
		Args:    arguments(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.changeRuns(c, args, note, change{"retried", (*scheduler.Store).Retry})
		},
	}
	noteFlag(c, &note)
	return c
}

// change is what is done to runs, one by one.
type change struct {
	done string
	to   func(s *scheduler.Store, ctx context.Context, run saga.ID, note string) error
}

func (t *tool) changeRuns(c *cobra.Command, args []string, note string, do change) error {
	ids, err := runIDs(c, args)
	if err == nil {
		err = checkNote(c, note)
	}
	if err != nil {
		return err
	}
	ctx, s, err := t.openStore(c.Context())
	if err != nil {
		return err
	}
	done, faults := []saga.ID{}, []error{}
	for _, id := range ids {
		if err := do.to(s, ctx, id, note); err != nil {
			faults = append(faults, causeOf(ctx, err))
			continue
		}
		done = append(done, id)
	}
	printErr := t.print(result{value: map[string]any{do.done: done}, page: func(p *page) {
		for _, id := range done {
			p.line("Run %s is %s.", id, do.done)
		}
	}})
	return errors.Join(printErr, worstOf(faults))
}

// worstOf is all faults in one, with the exit code of the worst: a failure is worse than a run that is not there.
func worstOf(faults []error) error {
	if len(faults) < 2 {
		return errors.Join(faults...)
	}
	all := listed{text: fmt.Sprintf("%d runs are as they were:", len(faults))}
	for _, fault := range faults {
		all.text += "\n  " + fault.Error()
		if all.worst == nil || errors.Is(all.worst, scheduler.ErrNoRun) {
			all.worst = fault
		}
	}
	return all
}
