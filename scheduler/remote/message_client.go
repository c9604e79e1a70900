package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	stock "github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/cenkalti/backoff/v4"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/saga"
)

// MessageClient reports to a handler of NewMessageHandler. It is safe for concurrent use if its publisher is.
//
// A Publisher of Edda does not join the message in hand: each report is committed by itself, as by
// watermill.PublishSeparately. A publisher that ignores the context of a message holds up Beat and End for as long as
// it takes: give it a timeout.
type MessageClient struct {
	Publisher message.Publisher
	Topic     string // of the reports
	// Permanent reports whether an error of the publisher means that no other try of an End can succeed. saga.Permanent
	// has the same effect, and so have the errors of the publishers of Watermill that are closed; nil is none.
	Permanent func(error) bool
	// nil is slog.Default(). An end that was not taken is logged at Warn, before it is tried again, and so is the first
	// of a series of signs of life that were not
	Logger *slog.Logger
}

var _ Logged = (*MessageClient)(nil)

var errNoPublisher = errors.New("the client has no Publisher")

// reported is the payload of a report.
type reported struct {
	Run     saga.ID `json:"run"`
	Attempt int     `json:"attempt"`
	Token   string  `json:"token,omitempty"`
	report
}

const beat = "beat" // the outcome that is none

// Beat is a sign of life: give one at least every third of scheduler.Options.LostAfter. It is published once. It never
// returns ErrOver: a broker gives no answers.
func (c *MessageClient) Beat(ctx context.Context, r Run) error {
	m, err := c.newReport(ctx, r, report{Outcome: beat})
	if err == nil {
		err = c.Publisher.Publish(c.Topic, m)
	}
	if err != nil {
		return fmt.Errorf("beat of run %s: %w", r.ID, err)
	}
	return nil
}

// End reports how the attempt ended. A nil failure is success. The run is tried again after another one while its
// manifest has retries, unless the failure is saga.Permanent. End publishes again, with pauses that grow to about half
// a minute, until the broker has the report, the publisher's error is permanent (see MessageClient.Permanent), or ctx
// ends.
func (c *MessageClient) End(ctx context.Context, r Run, failure error) error {
	m, err := c.newReport(ctx, r, reportOf(failure))
	if err == nil {
		once := func() error { return c.final(c.Publisher.Publish(c.Topic, m)) }
		err = insist(ctx, c.Log(), r.ID, r.Attempt, once)
	}
	if err != nil {
		return fmt.Errorf("end of run %s: %w", r.ID, err)
	}
	return nil
}

// final marks an error that another try cannot cure.
func (c *MessageClient) final(err error) error {
	permanent := (*saga.PermanentError)(nil)
	if err != nil && (errors.As(err, &permanent) || isClosed(err) || c.Permanent != nil && c.Permanent(err)) {
		return backoff.Permanent(err)
	}
	return err
}

// closedTexts are the errors of publishers after their Close that are no values of a package: in this order those of
// gochannel, watermill-kafka, watermill-sql and watermill-amqp, and that of a connection to NATS.
var closedTexts = []string{"Pub/Sub closed", "publisher closed", "publisher is closed",
	"pub/sub is connection closedChan", "nats: connection closed"}

// isClosed reports whether the publisher was closed: it will never take anything.
func isClosed(err error) bool {
	if errors.Is(err, watermill.ErrClosed) {
		return true
	}
	for ; err != nil; err = errors.Unwrap(err) {
		if slices.Contains(closedTexts, err.Error()) {
			return true
		}
	}
	return false
}

// Work gives a sign of life, calls work, gives other signs every so often meanwhile, and then reports how work ended:
// see the function Work. The context of work ends with ctx alone. A MessageClient without a Publisher is an error
// before that.
func (c *MessageClient) Work(ctx context.Context, r Run, every time.Duration,
	work func(ctx context.Context) error) error {
	if c.Publisher == nil {
		return fmt.Errorf("work for run %s: %w", r.ID, errNoPublisher)
	}
	return Work(ctx, c, r, every, work)
}

// Log returns the logger of the client.
func (c *MessageClient) Log() *slog.Logger { return cmp.Or(c.Logger, slog.Default()) }

// newReport makes the message of a report, for a Publish that joins no message in hand.
func (c *MessageClient) newReport(ctx context.Context, r Run, said report) (*message.Message, error) {
	if c.Publisher == nil {
		return nil, errNoPublisher
	}
	payload, err := json.Marshal(reported{Run: r.ID, Attempt: r.Attempt, Token: r.Token, report: said})
	if err != nil {
		return nil, err
	}
	m := message.NewMessage(stock.NewUUID(), payload)
	m.SetContext(watermill.PublishSeparately(ctx))
	return m, nil
}
