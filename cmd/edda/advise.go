package main

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/view"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/operate/vitals"
	"github.com/spf13/cobra"
)

const adviseHelp = `Show which sagas are contended and what would help, judged by the counters of the endpoints and the
state of the queues.

Endpoints add their counters to the table saga_counter every ten seconds or so, and when they have
drained; they are kept by the hour for fourteen days. Each sentence names the number that it is
based on and its threshold. Sagas with fewer than %d messages in the period are not judged.

Before that it names what keeps Postgres from removing handled messages, such as a transaction that
has been open for 45 seconds, when there are %d of them: the log of a process warns of the same.

Nothing is locked. The exit code is 0 whatever the advice is.`

func (t *tool) adviseCommand() *cobra.Command {
	var period time.Duration
	c := &cobra.Command{
		Use: "advise", Short: "Show which sagas are contended and what would help",
		Long: fmt.Sprintf(adviseHelp, enoughMessages, operate.PinDeadRows),
		Example: `  edda advise
  edda advise --period 2h
  edda advise --json | jq '.sagas[] | select(.contended)'`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if period < 0 {
				return usage(c, fmt.Errorf("--period %v: want 0 (a day) or more", period))
			}
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				counters, err := op.Sagas().Counters(ctx, period)
				if err != nil {
					return view.View{}, err
				}
				queues, err := op.Queues().List(ctx)
				if err != nil {
					return view.View{}, err
				}
				pin, suffers, err := op.Queues().Pin(ctx)
				if !suffers || !pin.Old() {
					pin = operate.Pin{}
				}
				return advisedView(advise(counters, queues), pin, t.schemaName()), err
			})
		},
	}
	c.Flags().DurationVar(&period, "period", operate.CounterPeriod, "look at this much of the past, and up to an hour "+
		"more; at most fourteen days are kept")
	return c
}

type findingJSON struct {
	Symptom   string  `json:"symptom"`
	Number    string  `json:"number"`
	Value     float64 `json:"value"`
	Threshold float64 `json:"threshold"`
	Says      string  `json:"says"`
}

type advisedJSON struct {
	Endpoint     string        `json:"endpoint"`
	Saga         string        `json:"saga"` // "" for plain handlers, and messages that reached no handler
	Store        string        `json:"store"`
	Since        time.Time     `json:"since"`
	Last         time.Time     `json:"last"`
	Judged       bool          `json:"judged"`
	Contended    bool          `json:"contended"`
	Messages     int64         `json:"messages"`
	Retries      int64         `json:"retries"`
	Dead         int64         `json:"dead"`
	Conflicts    int64         `json:"conflicts"`
	PutDown      int64         `json:"put_down"`
	Waits        int64         `json:"waits"`
	WaitTimeouts int64         `json:"wait_timeouts"`
	Writes       int64         `json:"writes"`
	Handler      float64       `json:"handler_seconds"`
	Critical     float64       `json:"critical_seconds"`
	Batch        float64       `json:"batch_seconds"`
	Wait         float64       `json:"wait_seconds"`
	Findings     []findingJSON `json:"findings"`
}

func jsonOf(a advised) advisedJSON {
	c := a.counters
	j := advisedJSON{
		Endpoint: c.Endpoint, Saga: c.Saga, Store: c.Store, Since: c.Since, Last: c.Last, Judged: a.enough,
		Contended: a.contended,
		Messages:  c.Messages.Steps, Retries: c.Messages.Retries, Dead: c.Messages.Dead,
		Conflicts: c.Messages.Conflicts, PutDown: c.Messages.Busy + c.Messages.Queued,
		Waits:        c.Waiting.Waits,
		WaitTimeouts: c.Waiting.Timeouts, Writes: c.Saves.Writes, Handler: c.Times.Handler.Seconds(),
		Critical: c.Times.Critical.Seconds(),
		Batch:    c.Times.Batch.Seconds(), Wait: (c.Waiting.Wait + c.Waiting.Turn).Seconds(), Findings: []findingJSON{},
	}
	for _, f := range a.findings {
		j.Findings = append(j.Findings, findingJSON{f.symptom, f.number, f.value, f.threshold, f.says})
	}
	return j
}

type pinJSON struct {
	Holder       string  `json:"holder"`
	Held         float64 `json:"held_seconds"` // 0 where that is not known
	Transactions int64   `json:"transactions"`
	Table        string  `json:"table"`
	Endpoint     string  `json:"endpoint"` // "" where the table is no queue
	DeadRows     int64   `json:"dead_rows"`
	Remedy       string  `json:"remedy"`
}

// pinOf is nil without a pin.
func pinOf(p operate.Pin) *pinJSON {
	if p.Kind == "" {
		return nil
	}
	return &pinJSON{p.Holder(), p.Held.Seconds(), p.Transactions, p.Table, p.Endpoint, p.DeadRows, p.Remedy()}
}

// pinLines say what keeps dead rows.
func pinLines(pin operate.Pin) []view.Part {
	if pin.Kind == "" {
		return nil
	}
	held, where := "", "table "+pin.Table
	if pin.Held > 0 {
		held = shortSpan(pin.Held) + ", "
	}
	if pin.Endpoint != "" {
		where = "the queue of endpoint " + pin.Endpoint
	}
	return []view.Part{linef("%s keeps dead rows from being removed (for %s%d transactions), and reading becomes "+
		"slower until it ends. Most are in %s: %d.", pin.Holder(), held, pin.Transactions, where, pin.DeadRows),
		linef("  %s.", pin.Remedy())}
}

func advisedView(all []advised, pin operate.Pin, schema string) view.View {
	values, parts := []advisedJSON{}, pinLines(pin)
	if len(all) == 0 {
		parts = append(parts, linef("No endpoint of schema %q has counted anything in this time.", schema))
	}
	for _, a := range all {
		values, parts = append(values, jsonOf(a)), append(parts, a.lines()...)
	}
	return view.View{JSON: view.Object{"sagas", values, "pin", pinOf(pin)}, Parts: parts}
}

// lines are a saga's headline, and below it each finding with its reason.
func (a advised) lines() []view.Part {
	lines := []view.Part{a.headline()}
	if a.unhandled() {
		return lines
	}
	for _, f := range a.findings {
		lines = append(lines, linef("  %s: %s. [%s: %s, advice begins at %s]", f.symptom, f.says, f.number,
			digits(f.value), digits(f.threshold)))
	}
	return lines
}

// unhandled reports whether these are messages that reached no handler: there may be no plain handler at all.
func (a advised) unhandled() bool { return a.counters.Saga == "" && a.counters.Messages.Steps == 0 }

func (a advised) headline() view.Line {
	s := subject{SagaCounters: a.counters}
	name := fmt.Sprintf("saga %s in endpoint %s (%s)", s.Saga, s.Endpoint, s.Store)
	if s.Saga == "" {
		name = fmt.Sprintf("plain handlers of endpoint %s", s.Endpoint)
	}
	switch {
	case a.unhandled():
		return linef("messages of endpoint %s that no handler has handled: %d times taken, %d times tried again, %d "+
			"dead letters.", s.Endpoint, s.Messages.Taken, s.Messages.Retries, s.Messages.Dead)
	case !a.enough:
		return linef("%s: %d messages are too few to judge by (advice begins at %d).", name, s.Messages.Taken,
			enoughMessages)
	case a.contended:
		return linef("%s: contended.", name)
	case len(a.findings) > 0:
		return linef("%s: not contended.", name)
	case s.Saga == "":
		return linef("%s: nothing to change. %d messages, critical time %s (advice begins at %.0f s).", name,
			s.Messages.Steps, shortSpan(s.critical()), longCritical)
	}
	return linef("%s: nothing to change, the store fits. %d messages, %s of the attempts lost (advice begins at %s), "+
		"critical time %s (at %.0f s).", name, s.Messages.Steps, percent(s.conflictShare()), percent(manyConflicts),
		shortSpan(s.critical()), longCritical)
}

// digits is a number with three digits that count.
func digits(v float64) string { return fmt.Sprintf("%.3g", v) }

const vitalsHelp = `Show what in the database hurts Edda's queues, or will soon, in sentences: the worst first.

It reads who holds the oldest snapshot, dead rows and vacuum of the tables, connections, the
write-ahead log, replication slots, the age of transaction ids, and settings that matter. Of each it
prints the number, and where it begins to warn or to be bad. What it tells to do it never does.

It looks twice, --over apart, to see how much write-ahead log is written. It locks nothing that a
worker waits for, and gives up after three seconds at a lock. A role with pg_read_all_stats sees more.

The exit code is 0 whatever it finds.`

func (t *tool) vitalsCommand() *cobra.Command {
	var over time.Duration
	c := &cobra.Command{
		Use: "vitals", Short: "Show what in the database hurts the queues, or will soon", Long: vitalsHelp,
		Example: `  edda vitals
  edda vitals --over 10s
  edda vitals --json | jq '.vitals[] | select(.level != "ok") | .sentence'`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if over < 0 || over > time.Hour {
				return usage(c, fmt.Errorf("--over %v: want 0 (one look) to 1h", over))
			}
			return t.operate(c, func(ctx context.Context, _ *operate.Operator) (view.View, error) {
				reader, err := vitals.New(t.pool, vitals.Options{Schema: t.schemaName()})
				if err != nil {
					return view.View{}, err
				}
				found, err := reader.Read(ctx)
				if err == nil && over > 0 {
					select {
					case <-time.After(over):
						found, err = reader.Read(ctx)
					case <-ctx.Done():
						err = context.Cause(ctx)
					}
				}
				return view.Vitals(&found), err
			})
		},
	}
	c.Flags().DurationVar(&over, "over", time.Second, "measure the write-ahead log for so long; 0 does not")
	return c
}
