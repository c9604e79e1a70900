package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

func (t sagas) commands() *cobra.Command {
	c := &cobra.Command{
		Use: "saga", Short: "Show living saga instances, repair and end them, and move their timeouts",
		Example: `  edda saga list order --prefix 2026-
  edda saga show order 2026-0007
  edda saga repair order 2026-0007 --version 3 --state fixed.json --reason "the total was lost"
  edda saga end order --prefix load- --reason "the load test" --yes
  edda saga export order > orders.jsonl`,
		RunE: group,
	}
	c.AddCommand(t.list(), t.show(), t.repair(), t.end(), t.send(), t.export(), t.retime())
	return c
}

// sagas has the commands for saga instances.
type sagas struct{ *tool }

func (t sagas) list() *cobra.Command {
	var o persistence.ListOptions
	after, quiet := "", false
	c := &cobra.Command{
		Use: "list [SAGA]", Short: "Show living instances in the order of saga and key",
		Long: `Show living instances in the order of saga and key, of one saga or of all sagas, a page at a time.
TIMEOUTS is the number of pending timeouts, and NEXT the due time of the first. A completed instance is deleted, unless
its saga remembers it until the time in REMEMBERED UNTIL.

With --quiet the command shows instances that may be stuck, of the 200 oldest living instances of all sagas: first
instances with a timeout that is overdue by more than a minute, then the ones without a message for the longest time. It
skips at most 10,000 remembered instances.`,
		Example: `  edda saga list
  edda saga list --quiet --limit 10
  edda saga list order --prefix 2026- --limit 200
  edda saga list order --after order/2026-0007`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if quiet {
				return t.quiet(c, o, len(args)+len(o.KeyPrefix+after))
			}
			if len(args) == 1 {
				o.Saga = args[0]
			}
			if o.KeyPrefix != "" && o.Saga == "" {
				return usage(c, fmt.Errorf("--prefix needs the name of the saga: edda saga list SAGA --prefix %s",
					view.Escape(o.KeyPrefix)))
			}
			if after != "" {
				ok := false
				if o.AfterSaga, o.AfterKey, ok = strings.Cut(after, "/"); !ok {
					return usage(c, fmt.Errorf("--after %s: want SAGA/KEY, the end of the page before",
						view.Escape(after)))
				}
			}
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				all, err := op.Instances().List(ctx, o)
				return listed(view.Instances(all, o.Limit), "No such instance lives."), err
			})
		},
	}
	c.Flags().StringVar(&o.KeyPrefix, "prefix", "", "only keys that begin with this, with a SAGA")
	c.Flags().IntVar(&o.Limit, "limit", persistence.DefaultLimit, "instances, at most 200")
	c.Flags().StringVar(&after, "after", "", "continue after this instance, given as SAGA/KEY")
	c.Flags().BoolVar(&quiet, "quiet", false, "only instances that may be stuck, of all sagas")
	return c
}

// quiet shows the instances that may be stuck. more is the number of other flags and arguments on the command line.
func (t sagas) quiet(c *cobra.Command, o persistence.ListOptions, more int) error {
	if more > 0 {
		return usage(c, errors.New("--quiet reads the oldest instances of all sagas: only --limit goes with it"))
	}
	return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
		all, err := op.Instances().List(ctx, persistence.ListOptions{Quiet: true, Limit: o.Limit})
		return listed(view.Quiet(all), fmt.Sprintf("The %d oldest instances have completed: no instance may be stuck.",
			persistence.QuietWalk)), err
	})
}

func (t sagas) show() *cobra.Command {
	return &cobra.Command{
		Use: "show SAGA KEY", Short: "Show one instance with its state and its last versions",
		Long: `Show one instance with its stored state, its pending timeouts, the message that started it, and its last
10 versions. "edda history show" shows older versions. Exit code 3: there is no instance of this key; it has completed,
as "edda history show" reports, or never started.`,
		Example: `  edda saga show order 2026-0007
  edda saga show order 2026-0007 --json | jq '.state'`,
		Args: arguments(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				l, ok, err := op.Instances().Show(ctx, args[0], args[1])
				if err != nil {
					return view.View{}, err
				}
				if !ok {
					return view.View{}, fmt.Errorf("show saga %s/%s: no instance of this key is alive: %w", args[0],
						args[1],
						errNotFound)
				}
				versions, err := lastVersions(ctx, op, l.Instance)
				return view.Instance(l, versions), err
			})
		},
	}
}

// lastVersions returns the end of an instance's timeline; nothing if the instance has ended in the meantime.
func lastVersions(ctx context.Context, op *operate.Operator, i saga.Instance) ([]history.Version, error) {
	life, ok, err := op.History().Life(ctx, i.ID)
	if err != nil || !ok {
		return nil, err
	}
	versions, _, err := op.History().Timeline(ctx, life, saga.ID{}, 10)
	return versions, err
}

// manyFlags select instances of a saga.
type manyFlags struct {
	operate.InstanceFilter
	all   bool
	until string
}

func (m *manyFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&m.Prefix, "prefix", "", "instances whose keys begin with this")
	c.Flags().BoolVar(&m.all, "all", false, "all instances of the saga")
	c.Flags().StringVar(&m.until, "started-before", "", "only instances that started before: 2026-11-21T10:00:00Z, "+
		"or 2h for two hours ago")
	c.Flags().StringVar(&m.After, "after", "", "only instances after this key, to continue an interrupted command")
}

// given reports whether any flag selects instances.
func (m *manyFlags) given() bool { return m.all || m.Prefix+m.until+m.After != "" }

func (m *manyFlags) check(c *cobra.Command) error {
	switch {
	case m.all && m.Prefix != "":
		return usage(c, errors.New("--all selects every instance: leave out --prefix"))
	case !m.all && m.Prefix == "":
		return usage(c, errors.New("give --prefix, or --all for all instances of the saga"))
	}
	return checkTimes(c, "started-before", m.until)
}

// read reads the times that are measured by the database's clock.
func (m *manyFlags) read(ctx context.Context, t *tool) error {
	if m.until == "" {
		return nil
	}
	now, err := t.now(ctx)
	m.Until, _ = view.ReadTime(m.until, now) // check has read it before
	return err
}

// deed is the operation of a command on many instances.
type deed struct {
	does, did string // "end", "ended"
	asks      string // the question before the operation
	goesOn    string // further flags of the command that continues
	do        func(ctx context.Context, op operate.Instances, f operate.InstanceFilter,
		progress func(operate.Progress)) (operate.Progress, error)
}

// many shows the selected instances, asks, runs the operation, and prints its result. If it is interrupted, it prints
// the command that continues.
func (t sagas) many(c *cobra.Command, m *manyFlags, yes bool, d deed) error {
	ctx, op, err := t.openWithin(c.Context(), t.unbounded(c))
	if err != nil {
		return err
	}
	look := operate.InstancePreview{}
	if err = m.read(ctx, t.tool); err == nil {
		look, err = op.Instances().Preview(ctx, m.InstanceFilter)
	}
	if err != nil {
		return causeOf(ctx, err)
	}
	m.Until = look.Until
	if !yes && look.Count > 0 {
		t.showChosen(look)
	}
	if err := t.confirm(c, yes || look.Count == 0, d.asks); err != nil {
		return err
	}
	said, goOn := time.Now(), t.goingOn(c, m, d)
	done, err := d.do(ctx, op.Instances(), m.InstanceFilter, func(d operate.Progress) {
		if time.Since(said) >= tellEvery {
			said = time.Now()
			t.say(fmt.Sprintf("%d so far. After an interruption, continue with: %s", d.Done, goOn(d.Last)))
		}
	})
	if err != nil {
		t.say(fmt.Sprintf("%s %s. To continue, run: %s",
			view.Many(done.Done, "instance was", "instances were"), d.did, goOn(done.Last)))
		return causeOf(ctx, err)
	}
	printErr := t.print(lineOf(view.Object{"done", done.Done, "gone", done.Gone, "kept", done.Kept, "error", done.Error,
		"last", done.Last}, "%s %s.", view.Many(done.Done, "instance was", "instances were"), d.did))
	if done.Kept > 0 {
		return errors.Join(printErr, fmt.Errorf("%s; the last: %s",
			view.Many(done.Kept, "instance is as it was", "instances are as they were"), done.Error))
	}
	return printErr
}

// showChosen prints how many instances are selected, and the first of them.
func (t sagas) showChosen(l operate.InstancePreview) {
	count := strconv.FormatInt(l.Count, 10)
	if l.Capped {
		count += " or more"
	}
	t.say(fmt.Sprintf("%s instances are selected:", count))
	for _, i := range l.First {
		t.say(view.Escape(fmt.Sprintf("    %s %s, version %d, started %s", i.Instance.Saga, i.Instance.Key,
			i.Instance.Version, view.Moment(i.Started))))
	}
	if rest := l.Count - int64(len(l.First)); rest > 0 {
		t.say(fmt.Sprintf("    and %d more", rest))
	}
}

// goingOn returns the command that continues after a key, without a connection string, which may have a password.
func (t sagas) goingOn(c *cobra.Command, m *manyFlags, d deed) func(last string) string {
	which := " --all"
	if m.Prefix != "" {
		which = " --prefix " + quoted(m.Prefix)
	}
	where := ""
	if c.Flags().Changed("database") {
		where = " --database URL"
	}
	if c.Flags().Changed("schema") {
		where += " --schema " + quoted(t.schema)
	}
	return func(last string) string {
		command := "edda saga " + d.does + " " + quoted(m.Saga) + d.goesOn + where + which + " --started-before " +
			m.Until.Format(time.RFC3339Nano)
		if last = cmp.Or(last, m.After); last != "" {
			command += " --after " + quoted(last)
		}
		return view.Escape(command)
	}
}

func (t sagas) send() *cobra.Command {
	m, s, job, yes := &manyFlags{}, &sending{}, "", false
	c := &cobra.Command{
		Use: "send SAGA KIND --body FILE", Short: "Send a message to many instances",
		Long: `Send a message to each instance of a saga whose key begins with --prefix, or to all instances. The body
is the same for all; the message names its instance outside the body. The command prints the number of the instances and
the first ten, and asks at a terminal; otherwise it needs --yes. "edda send --instance" sends to one instance.

Each instance is a transaction of its own, with an entry of the audit. Instances that start after the command are not
included. The command prints the id of its job first, and after an interruption how to continue: with the same --job an
instance gets the message once, however often it is sent within seven days.`,
		Example: `  edda saga send order order.nudge --body nudge.json --prefix 2026-
  edda saga send order order.nudge --body nudge.json --all --started-before 48h --reason "the mails were lost" --yes`,
		Args: arguments(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) (err error) {
			m.Saga, s.message.Kind = args[0], args[1]
			if err := m.check(c); err != nil {
				return err
			}
			of := operate.ManyOptions{Job: saga.ID(uuid.Must(uuid.NewV7()))}
			if job != "" {
				if of.Job, err = saga.ParseID(job); err != nil {
					return usage(c, fmt.Errorf("--job %s: %w", view.Escape(job), err))
				}
			}
			if err := s.read(c, t.tool); err != nil {
				return err
			}
			goesOn := " " + quoted(args[1]) + s.again() + " --job " + of.Job.String()
			if t.reason != "" {
				goesOn += " --reason " + quoted(t.reason)
			}
			d := deed{does: "send", did: "sent to", goesOn: goesOn,
				asks: "Send to them? The effects of their handlers cannot be undone."}
			d.do = func(ctx context.Context, op operate.Instances, f operate.InstanceFilter, p func(operate.Progress)) (
				operate.Progress, error) {
				t.say(fmt.Sprintf("This is job %s: if it is killed, continue with --job %[1]s. No instance "+
					"gets the message twice.", of.Job))
				of.Progress = p
				return op.SendAll(ctx, f, s.message, of)
			}
			return t.many(c, m, yes, d)
		},
	}
	m.add(c)
	s.add(c)
	c.Flags().StringVar(&job, "job", "", "continue the interrupted job with this id")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

func (t sagas) export() *cobra.Command {
	m, unmasked := &manyFlags{}, false
	c := &cobra.Command{
		Use: "export SAGA", Short: "Print instances with their states as JSON lines",
		Long: `Print the living instances of a saga as JSON lines, in the order of their keys, with the fields of "edda
saga list" and the state. Fields that the history has masked as secrets are masked here too. If the history does not
have the state of an instance, its secrets are unknown: the command omits the state and reports the number of omitted
states, unless --unmasked is given. Control characters are escaped. The audit gets an entry with the actor and the
filter. Instances that start after the command are not included.`,
		Example: `  edda saga export order > orders.jsonl
  edda saga export order --prefix 2026- --reason "for the auditors" | jq .state`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			m.Saga = args[0]
			m.all = m.Prefix == ""
			if err := m.check(c); err != nil {
				return err
			}
			ctx, _, err := t.openWithin(c.Context(), t.unbounded(c))
			if err != nil {
				return err
			}
			return causeOf(ctx, t.exportMany(ctx, m, unmasked))
		},
	}
	m.add(c)
	c.Flags().BoolVar(&unmasked, "unmasked", false, "also print states whose secrets are unknown")
	return c
}

// exportMany prints the selected instances, and how many states are left out.
func (t sagas) exportMany(ctx context.Context, m *manyFlags, unmasked bool) error {
	op, err := operate.New(t.pool, operate.Options{Schema: t.schemaName(), Unmasked: unmasked})
	if err != nil {
		return err
	}
	if err := m.read(ctx, t.tool); err != nil {
		return err
	}
	without := 0
	_, err = op.Instances().Export(ctx, m.InstanceFilter, operate.ManyOptions{}, func(l persistence.Listed) error {
		if l.Instance.State == nil {
			without++
		}
		return histories(t).jsonLine(view.Instances([]persistence.Listed{l}, 0).Rows[0].JSON)
	})
	if without > 0 {
		t.say(fmt.Sprintf("%d states are left out: the history does not have them, so their secrets are unknown. "+
			"--unmasked prints them as they are.", without))
	}
	return err
}
