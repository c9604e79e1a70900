package broker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	stock "github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/cenkalti/backoff/v4"
	"github.com/edda-go/edda/internal/report"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler/remote"
)

// Client reports to a handler of NewHandler. It is safe for concurrent use if its publisher is.
type Client struct {
	Publisher message.Publisher
	Topic     string // of the reports
	// nil is slog.Default(). An end that was not taken is logged at Warn, before it is tried again
	Logger *slog.Logger
}

var _ remote.Reporter = (*Client)(nil)

// reported is the payload of a report.
type reported struct {
	Run     saga.ID `json:"run"`
	Attempt int     `json:"attempt"`
	report.Report
}

const beat = "beat" // the outcome that is none

// Beat is a sign of life: give one at least every third of scheduler.Options.LostAfter. It is published once. It never
// returns remote.ErrOver: a broker gives no answers.
func (c *Client) Beat(ctx context.Context, r remote.Run) error {
	m, err := newReport(ctx, r, report.Report{Outcome: beat})
	if err == nil {
		err = c.Publisher.Publish(c.Topic, m)
	}
	if err != nil {
		return fmt.Errorf("beat of run %s: %w", r.ID, err)
	}
	return nil
}

// End reports how the attempt ended. A nil failure is success; another one is tried again while the manifest has
// retries, unless it is saga.Permanent. End publishes again, with pauses that grow to about half a minute, until the
// broker has the report, its error is a *saga.PermanentError, or ctx ends.
func (c *Client) End(ctx context.Context, r remote.Run, failure error) error {
	m, err := newReport(ctx, r, report.Of(failure))
	if err == nil {
		once := func() error { return final(c.Publisher.Publish(c.Topic, m)) }
		err = report.Insist(ctx, cmp.Or(c.Logger, slog.Default()), r.ID, r.Attempt, once)
	}
	if err != nil {
		return fmt.Errorf("end of run %s: %w", r.ID, err)
	}
	return nil
}

// final marks an error that another try cannot cure.
func final(err error) error {
	if permanent := (*saga.PermanentError)(nil); errors.As(err, &permanent) {
		return backoff.Permanent(err)
	}
	return err
}

// Work calls work, gives a sign of life every so often meanwhile, and then reports how it ended: see remote.Work. The
// context of work ends with ctx alone.
func (c *Client) Work(ctx context.Context, r remote.Run, every time.Duration,
	work func(ctx context.Context) error) error {
	return remote.Work(ctx, c, r, every, work)
}

func newReport(ctx context.Context, r remote.Run, said report.Report) (*message.Message, error) {
	payload, err := json.Marshal(reported{Run: r.ID, Attempt: r.Attempt, Report: said})
	if err != nil {
		return nil, err
	}
	m := message.NewMessage(stock.NewUUID(), payload)
	m.SetContext(ctx)
	return m, nil
}
