package watermill

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
)

// intakeRun is one Run: subscriptions pass arriving messages to one collector, which passes batches to one flusher.
// There is no timer: messages that arrive while a batch is being committed join the next.
type intakeRun struct {
	*Intake
	arrived chan *message.Message
	batches chan []*message.Message
	retry   run.Pauses // of the flusher
	unnamed bool       // the warning about a message without an id is logged
	over    bool       // the run has ended in a failure: no message may follow it
}

// subscribe keeps one subscription until ctx ends.
func (r *intakeRun) subscribe(ctx context.Context) error {
	retry := patience()
	for ctx.Err() == nil {
		begun := time.Now()
		channel, err := r.open(ctx)
		if err == nil {
			if err := r.follow(ctx, channel); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			break
		}
		r.options.Logger.Warn("edda: a subscription ended and is started again", "intake", r.Name(), "topic", r.topic,
			"error", err)
		_ = run.Sleep(ctx, retry.AfterRun(begun)) // its error is the loop's condition
	}
	return nil
}

// open calls the subscriber, which is the user's: if it panics or ends its goroutine, the subscription has failed.
func (r *intakeRun) open(ctx context.Context) (channel <-chan *message.Message, err error) {
	err = fmt.Errorf("Subscribe: %w", errExited)
	defer r.calls.Enter("Subscribe", [16]byte{}, time.Now())()
	run.Call(func() {
		defer recovered("Subscribe: ", &err)
		channel, err = r.subscriber.Subscribe(ctx, r.topic)
	})
	return channel, err
}

// follow passes on the messages of a channel until it is closed. After the end of ctx, which ends the subscription, it
// nacks every message.
func (r *intakeRun) follow(ctx context.Context, channel <-chan *message.Message) error {
	for {
		select {
		case m, open := <-channel:
			if !open {
				return nil
			}
			select {
			case r.arrived <- m:
			case <-ctx.Done():
				m.Nack()
			}
			continue
		case <-ctx.Done():
		}
		return r.refuse(channel)
	}
}

func (r *intakeRun) refuse(channel <-chan *message.Message) error {
	patience := time.NewTimer(r.options.Drain)
	defer patience.Stop()
	for {
		select {
		case m, open := <-channel:
			if !open {
				return nil
			}
			m.Nack()
		case <-patience.C:
			return bus.ErrDrain
		}
	}
}

// collect gathers arriving messages until the flusher is free.
func (r *intakeRun) collect(ctx context.Context) error {
	defer close(r.batches)
	var pending []*message.Message
	var size int
	for {
		in, out := r.arrived, r.batches
		if len(pending) >= r.options.BatchMax || size >= r.options.BatchBytes {
			in = nil
		}
		if len(pending) == 0 {
			out = nil
		}
		select {
		case m := <-in:
			pending = append(pending, m)
			size += len(m.Payload)
		case out <- pending:
			pending, size = nil, 0
		case <-ctx.Done():
			nack(pending)
			return nil
		}
	}
}

// flushAll ingests one batch after the other, until the collector has ended.
func (r *intakeRun) flushAll(ctx context.Context) error {
	for batch := range r.batches {
		if batch = r.stillWanted(batch); len(batch) > 0 {
			r.flush(ctx, batch)
			r.awaitWithdrawal(ctx, batch)
		}
	}
	return nil
}

// flush ingests a batch and answers it. The end of ctx does not end a transaction that has begun. A failure is answered
// late, so that flush does not spin while the database is away, or with a broker that delivers again at once.
func (r *intakeRun) flush(ctx context.Context, batch []*message.Message) {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	_, err := r.bus.Ingest(within, outbox.IngestOptions{From: r.options.Source, Endpoint: r.options.Endpoint},
		r.arrivals(batch)...)
	pause := r.retry.After(err)
	if err == nil {
		for _, m := range batch {
			m.Ack()
		}
		return
	}
	if errors.Is(err, saga.ErrTooLarge) && len(batch) > 1 { // one message is refused, and not its neighbours
		for n := range batch {
			r.flush(ctx, batch[n:n+1])
		}
		return
	}
	r.options.Logger.Warn("edda: messages were not ingested", "intake", r.Name(), "topic", r.topic, "messages",
		len(batch), "error", err)
	_ = run.Sleep(ctx, pause) // cut short by the end
	nack(batch)
}

func nack(messages []*message.Message) {
	for _, m := range messages {
		m.Nack()
	}
}

func (r *intakeRun) arrivals(batch []*message.Message) []outbox.IngestMessage {
	arrivals, asked := make([]outbox.IngestMessage, len(batch)), ""
	r.calls.Each(0, len(batch), func(h *run.Hand, n int) { arrivals[n] = r.arrival(h, batch[n], &asked) },
		func(n int, err error) {
			arrivals[n] = standard(r.topic, batch[n])
			arrivals[n].Fault = fmt.Errorf("IntakeOptions.%s: %w", asked, err)
		})
	return arrivals
}

// standard returns the message that the default functions make of m.
func standard(topic string, m *message.Message) outbox.IngestMessage {
	return outbox.IngestMessage{ID: m.UUID, Kind: KindOf(topic, m), Header: ownMetadata(m), Body: m.Payload}
}

// arrival returns the message for Ingest, with the id and the kind of the user's functions. If a function panics, the
// message becomes a dead letter, with the default id and kind: otherwise a message that makes it panic each time would
// block all messages behind it, and after a retry the letter would have no kind.
func (r *intakeRun) arrival(h *run.Hand, m *message.Message, asked *string) outbox.IngestMessage {
	a := standard(r.topic, m)
	id, kind, err := r.ask(h, m, asked)
	h.Return()
	if err != nil {
		a.Fault = err
		return a
	}
	a.ID, a.Kind = id, kind
	if a.ID == "" && !r.unnamed {
		r.unnamed = true
		r.options.Logger.Warn("edda: a message has no id, so a second delivery will be handled twice", "intake",
			r.Name(), "topic", r.topic, "kind", fmt.Sprintf("%.80q", a.Kind))
	}
	return a
}

// ask calls the user's functions. asked names the function that was called last, also if it does not return.
func (r *intakeRun) ask(h *run.Hand, m *message.Message, asked *string) (id, kind string, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("IntakeOptions.%s: %w", *asked, &saga.PanicError{Value: v, Stack: debug.Stack()})
		}
	}()
	*asked = "ID"
	h.Enter("IntakeOptions.ID", [16]byte{}, time.Now())
	id = r.options.ID(m)
	h.Return()
	*asked = "Kind"
	h.Enter("IntakeOptions.Kind", [16]byte{}, time.Now())
	return id, r.options.Kind(r.topic, m), nil
}

// ownMetadata returns the metadata without the kind.
func ownMetadata(m *message.Message) map[string]string {
	if _, ok := m.Metadata[KindKey]; !ok {
		return m.Metadata
	}
	header := make(map[string]string, len(m.Metadata))
	for name, value := range m.Metadata {
		if name != KindKey {
			header[name] = value
		}
	}
	return header
}
