package advice

import (
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/operate"
)

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

// View is what the counters of sagas and the state of their queues mean, below what keeps dead rows if there is a pin.
func View(all []operate.SagaCounters, queues []operate.QueueInfo, pin operate.Pin, schema string) view.View {
	values, parts := []advisedJSON{}, pinLines(pin)
	if len(all) == 0 {
		parts = append(parts, linef("No endpoint of schema %q has counted anything in this time.", schema))
	}
	for _, a := range judge(all, queues) {
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
		return linef("messages of endpoint %s that no handler has handled: taken %s, tried again %s, %s.",
			s.Endpoint, view.Many(s.Messages.Taken, "time", "times"), view.Many(s.Messages.Retries, "time", "times"),
			view.Many(s.Messages.Dead, "dead letter", "dead letters"))
	case !a.enough:
		return linef("%s: %s too few to judge by (advice begins at %d).", name,
			view.Many(s.Messages.Taken, "message is", "messages are"), EnoughMessages)
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

func linef(format string, args ...any) view.Line { return view.Line(fmt.Sprintf(format, args...)) }
