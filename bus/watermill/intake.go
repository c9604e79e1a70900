package watermill

import (
	"context"
	"errors"
	"fmt"
	"github.com/edda-go/edda/internal/engine/handlers"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/option"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
)

// IntakeOptions are the options of an Intake. A zero field is a default; a negative number is an error.
type IntakeOptions struct {
	// Endpoint gets the messages. "" publishes them: each endpoint that is subscribed to the kind gets a copy.
	Endpoint string
	// Source is the scope of the ids, which are unique in it; "" is the topic. Two brokers with a topic of one name
	// need two sources. Do not change it once messages have come: under a new name every repeated message is new.
	Source string

	// A message that makes one of these two panic becomes a dead letter, under its UUID and the result of KindOf.
	Kind KindFunc                      // of the messages; nil is KindOf
	ID   func(*message.Message) string // distinguishes the messages of the source; nil is the UUID

	// Subscriptions is the number of subscriptions to the topic; 0 is 1, which keeps the order, at most 1,000. With
	// one, most brokers have one message in flight, and each has a transaction of its own. With more, messages are
	// ingested in batches, if the subscriber shares the topic among them.
	Subscriptions int
	BatchMax      int           // messages of one transaction; 0 is 500, at most 10,000
	BatchBytes    int           // of their payloads; 0 is 4 MiB, at most 64 MiB
	Drain         time.Duration // how long Run waits, at its end, for the subscriber to close its channels; 0 is 10 s
	Logger        *slog.Logger  // nil is slog.Default()
}

const (
	standardIntake     = 500
	mostBatch          = 10_000
	standardBatchBytes = 4 << 20
	mostSubscriptions  = 1000
	standardDrain      = 10 * time.Second
	flushTimeout       = 30 * time.Second
)

// Intake ingests the messages of a topic, from any Watermill subscriber, into the queues of this database, each id
// once. It acks a message when the transaction that holds it is committed, and not before.
type Intake struct {
	bus        *bus.Bus
	topic      string
	subscriber message.Subscriber
	options    IntakeOptions
	running    atomic.Bool
	calls      run.Calls // of functions of the user
}

// NewIntake makes an Intake. It does no I/O. It fails when b or subscriber is nil, the topic is empty, or an option is
// out of range. The subscriber stays the caller's: Run ends its subscriptions by their context, and this package never
// closes it.
func NewIntake(b *bus.Bus, topic string, subscriber message.Subscriber, o IntakeOptions) (*Intake, error) {
	var faults []error
	if b == nil {
		faults = append(faults, errors.New("the bus is nil"))
	}
	if subscriber == nil {
		faults = append(faults, errors.New("the subscriber is nil"))
	}
	if topic == "" {
		faults = append(faults, errors.New("the topic is empty"))
	}
	if o.Source == "" {
		o.Source = topic
	}
	if err := outbox.CheckSource(o.Source); err != nil {
		faults = append(faults, fmt.Errorf("Source: %w", err))
	}
	if o.Endpoint != "" {
		if err := saga.CheckName(o.Endpoint); err != nil {
			faults = append(faults, fmt.Errorf("Endpoint %.80q: %w", o.Endpoint, err))
		}
	}
	if err := errors.Join(append(faults, o.fill())...); err != nil {
		return nil, fmt.Errorf("new intake of %.80q: %w", topic, err)
	}
	return &Intake{bus: b, topic: topic, subscriber: subscriber, options: o}, nil
}

// fill checks the numbers and sets the defaults.
func (o *IntakeOptions) fill() error {
	var f option.Faults
	f.Int("Subscriptions", &o.Subscriptions, 1, 0, mostSubscriptions)
	f.Int("BatchMax", &o.BatchMax, standardIntake, 0, mostBatch)
	f.Int("BatchBytes", &o.BatchBytes, standardBatchBytes, 0, 64<<20)
	f.Duration("Drain", &o.Drain, standardDrain, 0, 24*time.Hour)
	if o.Kind == nil {
		o.Kind = KindOf
	}
	if o.ID == nil {
		o.ID = func(m *message.Message) string { return m.UUID }
	}
	o.Logger = handlers.Logger(o.Logger)
	return f.Err()
}

// Name returns the name of this intake, from its source and endpoint.
func (i *Intake) Name() string {
	if i.options.Endpoint == "" {
		return "intake of " + i.options.Source
	}
	return "intake of " + i.options.Source + " for " + i.options.Endpoint
}

// Install creates the queue of Endpoint, if it is set, so that messages wait there for the endpoint's first run. It
// needs the right to create tables, and does nothing if the queue exists.
func (i *Intake) Install(ctx context.Context) error {
	if i.options.Endpoint == "" {
		return nil
	}
	return i.bus.InstallQueue(ctx, i.options.Endpoint)
}

// Check finds the queue of Endpoint. If it does not exist, the error is bus.ErrNotInstalled.
func (i *Intake) Check(ctx context.Context) error {
	if i.options.Endpoint == "" {
		return nil
	}
	if err := i.bus.CheckQueue(ctx, i.options.Endpoint); err != nil {
		return fmt.Errorf("%s: %w", i.Name(), err)
	}
	return nil
}

// Run subscribes and ingests messages until ctx ends; then it takes no more, commits and acks the batch that it has
// begun, nacks the remaining messages, and waits for the subscriber to close its channels. It returns nil after a clean
// end, bus.ErrDrain if the subscriber did not close them within Drain, bus.ErrNotInstalled, or bus.ErrRunning. A
// subscription that fails or ends is made again, with a back-off.
func (i *Intake) Run(ctx context.Context) error {
	if !i.running.CompareAndSwap(false, true) {
		return fmt.Errorf("%s: %w", i.Name(), bus.ErrRunning)
	}
	ends := run.Ends{Name: i.Name(), Drain: i.options.Drain, Log: i.options.Logger, Calls: &i.calls,
		Within: run.Patience}
	return ends.Run(ctx, i.runToEnd)
}

// runToEnd is the body of Run. If a user's function does not return, runToEnd outlives Run, and a second Run fails.
func (i *Intake) runToEnd(ctx context.Context) error {
	defer i.running.Store(false)
	if err := i.Check(ctx); errors.Is(err, bus.ErrNotInstalled) {
		return err
	}
	i.options.Logger.Info("edda: intake started", "intake", i.Name(), "topic", i.topic)
	r := &intakeRun{
		Intake: i, arrived: make(chan *message.Message), batches: make(chan []*message.Message), retry: patience(),
	}
	group := run.NewGroup(ctx)
	group.Go(i.bus.Clean)
	group.Go(r.collect)
	group.Go(r.flushAll)
	for range i.options.Subscriptions {
		group.Go(r.subscribe)
	}
	err := group.Wait()
	i.options.Logger.Info("edda: intake stopped", "intake", i.Name(), "topic", i.topic, "error", err)
	return err
}

func patience() run.Pauses { return run.Pauses{First: 100 * time.Millisecond, Most: 10 * time.Second} }
