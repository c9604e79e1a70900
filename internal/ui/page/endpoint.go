package page

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/history/whereabouts"
	"github.com/edda-go/edda/internal/ui/act"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/internal/ui/words"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

// endpointPage is the page of one endpoint.
type endpointPage struct {
	Head
	Row       endpointRow
	Settings  operate.EndpointSettings
	Kinds     []string
	Says      []sentence
	Processes []whereabouts.Process
	Limit     *operate.LimitInfo // nil without a limit
	Sagas     []operate.SagaCounters
	Groups    []recoverability.LetterGroup
	Messages  []queuedRow
	More      bool // there are more messages
	Forms     []act.Form

	shown view.Object
}

// queuedRow is a message in a queue.
type queuedRow struct {
	ID      saga.ID
	Kind    string
	State   string
	Due     time.Time
	Attempt int
	From    string
	Error   string
	Size    int
}

// Workers describes how many workers each process has.
func (e *endpointPage) Workers() string {
	if e.Settings.Concurrency == 0 {
		return "set by each program"
	}
	return words.Of(int64(e.Settings.Concurrency), "worker") + " in each process"
}

// History describes how much of the history is kept.
func (e *endpointPage) History() string {
	o := e.Settings.History
	text := o.Level.String()
	if text == "" {
		text = "set by each program"
	}
	if o.Sample > 0 {
		text += fmt.Sprintf(", of %g %% of the conversations", o.Sample*100)
	}
	return text
}

// JSON returns the output of the commands.
func (e *endpointPage) JSON() any { return e.shown }

// headShown is how many messages of a queue are shown.
const headShown = 20

// Endpoint reads the page of one endpoint.
func (s *Source) Endpoint(ctx context.Context, a Ask) (Page, error) {
	name := a.Path("endpoint")
	rows, err := endpointsOf(ctx, s)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(rows, func(r endpointRow) bool { return r.Name == name })
	if at < 0 {
		return nil, missing(fmt.Sprintf("The endpoint %s is not installed in this schema.", view.Escape(name)))
	}
	e := &endpointPage{Head: head("now", name, "edda queue peek "+words.Quoted(name)).audited("", name),
		Row: rows[at]}
	e.Says = e.Row.sentences(e.Now)
	if err := addPace(ctx, s, rows[at:at+1]); err != nil {
		return nil, err
	}
	e.Row = rows[at]
	if err := addSettings(ctx, s, e); err != nil {
		return nil, err
	}
	e.Forms = act.Endpoint(e.Settings, e.Limit)
	messages, err := s.Op.Messages().Peek(ctx, name, operate.PeekOptions{Limit: headShown + 1, BodyBytes: 1})
	if err != nil {
		return nil, err
	}
	if e.More = len(messages) > headShown; e.More {
		messages = messages[:headShown]
	}
	for _, m := range messages {
		e.Messages = append(e.Messages, queued(&m))
	}
	e.saysFailing()
	if !e.Row.Relay {
		e.shown = append(e.shown, view.Paces([]operate.Pace{operate.Pace(e.Row.Pace)}).View().JSON...)
	}
	e.shown = append(e.shown, view.Peeked(messages, 0, false).View().JSON...)
	return e, nil
}

// saysFailing adds a sentence if all messages at the head of the queue have failed.
func (e *endpointPage) saysFailing() {
	waits := func(m queuedRow) bool { return m.State != "retrying" }
	if len(e.Messages) > 0 && !slices.ContainsFunc(e.Messages, waits) {
		e.Says = append(e.Says, sentence{State: "retrying", About: e.Row.Name,
			Text: "every message at the head of the queue has failed and waits for a retry"})
	}
}

func queued(m *operate.QueuedMessage) queuedRow {
	q := queuedRow{
		ID: m.Info.ID, Kind: m.Info.Kind, State: "delayed", Due: m.Info.Due, Attempt: m.Info.Attempt, From: m.Info.From,
		Error: m.LastError, Size: m.Size,
	}
	switch {
	case m.Ready:
		q.State = "waiting"
	case m.Info.Attempt > 1:
		q.State = "retrying"
	case m.Info.Intent == saga.Timer:
		q.State = "timer"
	}
	return q
}

// addSettings adds everything except the messages.
func addSettings(ctx context.Context, s *Source, e *endpointPage) error {
	of := &e.Row.of
	e.Kinds, e.Settings, e.Processes, e.Groups = of.queue.Kinds, of.settings, of.processes, of.groups
	set := []operate.EndpointSettings{}
	if of.settings.Endpoint != "" {
		set = append(set, of.settings)
	}
	e.shown = append(view.Queues([]operate.QueueInfo{of.queue}).View().JSON, view.Endpoints(set).View().JSON...)
	limits, err := s.Op.Limits().List(ctx)
	if err != nil {
		return err
	}
	for _, l := range limits {
		if l.Name == e.Row.Name {
			e.Limit = &l
		}
	}
	if e.Sagas, err = s.Op.Endpoints().Counters(ctx, 0); err != nil {
		return err
	}
	e.Sagas = slices.DeleteFunc(e.Sagas, func(c operate.SagaCounters) bool { return c.Endpoint != e.Row.Name })
	return nil
}

// Handler returns the average time of a handler.
func Handler(c operate.SagaCounters) time.Duration { return mean(c.Times.Handler, c.Messages.Steps) }

// Critical returns the average time from when a message was due to its commit.
func Critical(c operate.SagaCounters) time.Duration { return mean(c.Times.Critical, c.Messages.Steps) }

// Waited returns the share of the batches' time that they waited for instances of other holders, in words.
func Waited(c operate.SagaCounters) string {
	if c.Times.Batch <= 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(c.Waiting.Wait+c.Waiting.Turn)/float64(c.Times.Batch))
}

func mean(sum time.Duration, n int64) time.Duration {
	if n == 0 {
		return 0
	}
	return sum / time.Duration(n)
}
