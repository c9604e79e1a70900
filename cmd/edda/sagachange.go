package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/persistence"
	"github.com/spf13/cobra"
)

// mostInput is the maximum number of bytes that are read of a file: more than the limit of bodies and states.
const mostInput = 2 << 20

// readFile reads a file, or for "-" at most mostInput of the standard input, which is more than any limit.
func (t *tool) readFile(file, what string) (text []byte, err error) {
	if file != "-" {
		text, err = os.ReadFile(file)
	} else if t.in == nil {
		err = errors.New("there is no standard input")
	} else {
		text, err = io.ReadAll(io.LimitReader(t.in, mostInput))
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	return append([]byte{}, text...), nil
}

// confirm asks the person at the terminal. Without a terminal, --yes is required.
func (t *tool) confirm(c *cobra.Command, yes bool, question string) error {
	if yes {
		return nil
	}
	if !t.terminal || t.in == nil {
		return usage(c, errors.New("nothing was changed: add --yes to do it"))
	}
	_, _ = fmt.Fprintf(t.err, "%s [y/N] ", view.Escape(question))
	answer, _ := bufio.NewReader(t.in).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errors.New("nothing was changed")
	}
	return nil
}

// changing is an instance that a command is about to change, and the operator that changes it.
type changing struct {
	op     operate.Instances
	before persistence.Listed
}

// change finds an instance and asks, and then runs do and prints the result. preview returns the text to show before,
// and the question.
func (t sagas) change(c *cobra.Command, args []string, yes bool, preview func(i changing) (told, question string),
	do func(ctx context.Context, i changing) (view.View, error)) error {
	timeout := t.timeout
	if t.terminal && !yes {
		timeout = t.unbounded(c) // a person needs time to read and answer
	}
	ctx, op, err := t.openWithin(c.Context(), timeout)
	if err != nil {
		return err
	}
	i := changing{op: op.Instances()}
	if i.before, err = living(ctx, op, args[0], args[1]); err != nil {
		return causeOf(ctx, err)
	}
	told, question := preview(i)
	if !yes {
		_, _ = fmt.Fprintln(t.err, view.Escape(told))
	}
	if err := t.confirm(c, yes, question); err != nil {
		return err
	}
	v, err := do(ctx, i)
	if err != nil {
		return causeOf(ctx, err)
	}
	return t.print(v)
}

// living reads a living instance.
func living(ctx context.Context, op *operate.Operator, name, key string) (persistence.Listed, error) {
	l, ok, err := op.Instances().Show(ctx, name, key)
	if err == nil && !ok {
		err = fmt.Errorf("show saga %s/%s: no instance of this key is alive: %w", name, key, errNotFound)
	}
	return l, err
}

func (t sagas) repair() *cobra.Command {
	reason, file, version, yes := "", "", int64(0), false
	c := because("reason", &reason, &cobra.Command{
		Use: "repair SAGA KEY --version N --state FILE --reason TEXT", Short: "Replace the state of an instance",
		Long: `Replace the state of an instance with JSON from a file, or from the standard input for "-". --version is
the version whose state you have edited: if the instance has a different version now, the command changes nothing. It
prints the difference and asks at a terminal; otherwise it needs --yes.

The command waits for a handler that is working on the instance. The version grows by one, the history shows the repair,
and the audit has the state before and after. The command cannot check the state against its type; a program can, with
operate.Instances.Repair. Exit code 3: there is no instance of this key.`,
		Example: `  edda saga show order 2026-0007 --json | jq .state > state.json
  edda saga repair order 2026-0007 --version 3 --state state.json --reason "the total was lost"`,
		Args: arguments(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			if version < 1 || file == "" {
				return usage(c, errors.New("--version and --state are required: \"edda saga show\" has both"))
			}
			state, err := t.readFile(file, "the new state")
			if err != nil {
				return err
			}
			of := operate.Target{Saga: args[0], Key: args[1], Version: version, Reason: reason}
			return t.change(c, args, yes, func(i changing) (string, string) {
				return "The state changes: " + diffOf(i.before.Instance.State, state),
					fmt.Sprintf("Repair %s %s?", args[0], args[1])
			}, func(ctx context.Context, i changing) (view.View, error) {
				before, after, err := i.op.Repair(ctx, of, state)
				return view.Repaired(before, after), err
			})
		},
	})
	c.Flags().Int64Var(&version, "version", 0, "the version whose state you have edited")
	c.Flags().StringVar(&file, "state", "", `file with the new state, JSON; "-" is the standard input`)
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

// diffOf returns the differences between two states, for people.
func diffOf(before, after []byte) string {
	if diff := history.Diff(before, after); diff != "" {
		return diff
	}
	return "nothing differs"
}

func (t sagas) end() *cobra.Command {
	reason, version, yes, m := "", int64(0), false, &manyFlags{}
	c := because("reason", &reason, &cobra.Command{
		Use: "end SAGA [KEY] --reason TEXT", Short: "End an instance without its handlers, or many",
		Long: `End an instance as if it had completed, without its handlers: its row is deleted with its timeouts, and
its key may start again. No saga is notified, and messages already queued for the instance will find no instance. If a
run of a manifest started the instance, the run is cancelled. The command asks at a terminal; otherwise it needs --yes.
The history shows the instance as stopped. With --version the command changes nothing if the instance has a different
version.

Without KEY, and with --prefix or --all, the command ends many instances, each in a transaction of its own. It prints
their number and the first ten before. Instances that start after the command are not included. After an interruption
run the command again: it ends the remaining instances.`,
		Example: `  edda saga end order 2026-0007 --reason "an order of the load test"
  edda saga end order --prefix load- --reason "the load test" --yes`,
		Args: arguments(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, args []string) error {
			if m.Saga = args[0]; len(args) == 1 {
				return t.endMany(c, m, version, yes, reason)
			}
			if m.given() {
				return usage(c, errors.New("give a KEY, or choose many"))
			}
			of := operate.Target{Saga: args[0], Key: args[1], Version: version, Reason: reason}
			return t.change(c, args, yes, func(i changing) (string, string) {
				return fmt.Sprintf("It has version %d, and %s. State: %s", i.before.Instance.Version,
						view.Many(len(i.before.Instance.Pending), "timeout waits", "timeouts wait"),
						view.Body(i.before.Instance.State)),
					fmt.Sprintf("End %s %s? This cannot be undone.", args[0], args[1])
			}, func(ctx context.Context, i changing) (view.View, error) {
				ended, err := i.op.End(ctx, of)
				return view.Ended(ended), err
			})
		},
	})
	c.Flags().Int64Var(&version, "version", 0, "end it only if it has this version; 0 is any")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	m.add(c)
	return c
}

func (t sagas) endMany(c *cobra.Command, m *manyFlags, version int64, yes bool, reason string) error {
	if version != 0 {
		return usage(c, errors.New("--version works with one instance: give its KEY"))
	}
	if err := m.check(c); err != nil {
		return err
	}
	d := deed{does: "end", did: "ended", goesOn: " --reason " + quoted(reason),
		asks: "End them? This cannot be undone."}
	d.do = func(ctx context.Context, op operate.Instances, f operate.InstanceFilter, p func(operate.Progress)) (
		operate.Progress, error) {
		return op.EndAll(ctx, f, operate.ManyOptions{Reason: reason, Progress: p})
	}
	return t.many(c, m, yes, d)
}

func (t sagas) retime() *cobra.Command {
	at, fire, cancel, version := "", false, false, int64(0)
	c := &cobra.Command{
		Use: "timeout SAGA KEY NAME", Short: "Fire, move or cancel a pending timeout of an instance",
		Long: `Fire, move or cancel a pending timeout of an instance. NAME is the name that the saga gave it, else its
kind, if only one of the kind is pending, else its id. "edda saga show" shows all of them. A timeout that a worker is
handling cannot be fired or moved; if it is cancelled, it has no effect.`,
		Example: `  edda saga timeout order 2026-0007 payment-due --fire
  edda saga timeout order 2026-0007 payment-due --at 2026-12-01T10:00:00Z
  edda saga timeout order 2026-0007 payment-due --at 2h
  edda saga timeout order 2026-0007 payment-due --cancel --reason "it was paid in cash"`,
		Args: arguments(cobra.ExactArgs(3)),
		RunE: func(c *cobra.Command, args []string) error {
			if given := [3]bool{fire, at != "", cancel}; given != [3]bool{true} && given != [3]bool{1: true} &&
				given != [3]bool{2: true} {
				return usage(c, errors.New("give --fire, --at or --cancel"))
			}
			if _, err := comingTime(at, time.Time{}); at != "" && err != nil {
				return usage(c, fmt.Errorf("--at %s: %w", view.Escape(at), err))
			}
			of := operate.Target{Saga: args[0], Key: args[1], Version: version}
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				switch {
				case fire:
					p, err := op.Instances().FireTimeout(ctx, of, args[2])
					return view.Timeout(of, args[2], "fired", p), err
				case cancel:
					p, err := op.Instances().CancelTimeout(ctx, of, args[2])
					return view.Timeout(of, args[2], "cancelled", p), err
				}
				now, err := t.now(ctx)
				if err != nil {
					return view.View{}, err
				}
				due, _ := comingTime(at, now) // the command line was checked before
				p, err := op.Instances().MoveTimeout(ctx, of, args[2], due)
				return view.Timeout(of, args[2], "moved", p), err
			})
		},
	}
	c.Flags().BoolVar(&fire, "fire", false, "make it due now")
	c.Flags().StringVar(&at, "at", "", "make it due at this time: 2026-12-01T10:00:00Z, or 2h for in two hours")
	c.Flags().BoolVar(&cancel, "cancel", false, "cancel it")
	c.Flags().Int64Var(&version, "version", 0, "only if the instance has this version; 0 is any")
	return c
}

// comingTime reads a time, or a duration from now.
func comingTime(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(strings.TrimSpace(text)); err == nil {
		return now.Add(d), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, errors.New("want a time like 2026-12-01T10:00:00Z, or a duration from now, like 90m")
	}
	return at, nil
}
