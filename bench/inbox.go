package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
)

// Inbox is a stream of messages from an external system, in batches as an Intake makes them, to an endpoint that steps
// them while they come. Each peer of it is a way to bring them in.
const Inbox = "inbox"

const (
	inboxBatch  = 500
	inboxSource = "bench"
	inboxHands  = 4
	inboxFull   = 1_000_000 // ids in each of the other slots
	inboxQuick  = 100_000
)

// intake is edda's step, fed from outside.
type intake struct {
	edda
	full   bool // the ring's other slots have ids in them
	random bool // ids have no order
	bring  func(ctx context.Context, b *bus.Bus, messages []outbox.IngestMessage) error
}

func init() {
	for name, p := range map[string]intake{
		"inbox":         {bring: arrive},
		"inbox-full":    {bring: arrive, full: true},
		"inbox-random":  {bring: arrive, full: true, random: true},
		"inbox-unnamed": {bring: arriveUnnamed},
		"inbox-off":     {bring: sendRaw},
	} {
		register(name, p, Case{Workload: Inbox, Store: Optimistic})
	}
}

// arrive claims the ids.
func arrive(ctx context.Context, b *bus.Bus, messages []outbox.IngestMessage) error {
	_, err := b.Ingest(ctx, outbox.IngestOptions{From: inboxSource, Endpoint: "work"}, messages...)
	return err
}

// arriveUnnamed takes the same path without a claim: the difference is the cost of the claim.
func arriveUnnamed(ctx context.Context, b *bus.Bus, messages []outbox.IngestMessage) error {
	for n := range messages {
		messages[n].ID = ""
	}
	return arrive(ctx, b, messages)
}

// sendRaw sends the messages as a program without an inbox would.
func sendRaw(ctx context.Context, b *bus.Bus, messages []outbox.IngestMessage) error {
	raws := make([]bus.RawMessage, len(messages))
	for n, m := range messages {
		id, err := saga.ParseID(m.ID)
		if err != nil {
			return err
		}
		raws[n] = bus.RawMessage{Raw: saga.Raw{Name: m.Kind, Body: m.Body}, ID: id, Header: m.Header}
	}
	return b.SendRaw(ctx, "work", raws...)
}

// Prepare is that of edda with an empty queue, and with ids in the slots that are not written into.
func (i intake) Prepare(ctx context.Context, db *pgxpool.Pool, c Case) error {
	if err := i.edda.Prepare(ctx, db, c); err != nil {
		return err
	}
	sql := statements(eddaSQL, c.Schema())
	if _, err := db.Exec(ctx, sql["drain"]); err != nil || !i.full {
		return err
	}
	ids := inboxFull
	if c.N <= messages[Inbox].quick {
		ids = inboxQuick
	}
	for slot := 1; slot <= 3; slot++ {
		if _, err := db.Exec(ctx, sql["fill_inbox"], slot, inboxSource+"\nwork", ids, i.random); err != nil {
			return fmt.Errorf("fill slot %d of the inbox: %w", slot, err)
		}
	}
	_, err := db.Exec(ctx, "CHECKPOINT")
	return err
}

// Work feeds the endpoint while it runs.
func (i intake) Work(ctx context.Context, w *Worker) error {
	pool, err := pgxpool.New(ctx, w.DSN)
	if err != nil {
		return err
	}
	defer pool.Close()
	b, err := bus.New(pool, bus.Options{Schema: w.Schema(), History: noHistory,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	endpoint, err := bus.NewEndpoint(b, "work", bus.EndpointOptions{}, bus.Saga(definition(w.Store)))
	if err != nil {
		return err
	}
	batches, err := i.batches(w.Case)
	if err != nil {
		return err
	}
	return w.run(ctx, pool, endpoint, func(ctx context.Context, before int64) error {
		if err := i.feed(ctx, b, batches); err != nil {
			return err
		}
		return w.untilEmpty(ctx, pool, before)
	})
}

// feed delivers the batches by several goroutines, as several topics do: a single one waits for its commits, so the
// endpoint would take small batches, and the benchmark would measure their cost instead of the cost of the claim.
func (i intake) feed(ctx context.Context, b *bus.Bus, batches [][]outbox.IngestMessage) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inboxHands)
	for _, batch := range batches {
		group.Go(func() error { return i.bring(ctx, b, batch) })
	}
	return group.Wait()
}

// batches makes all messages beforehand: their sender is a different program.
func (i intake) batches(c Case) (all [][]outbox.IngestMessage, err error) {
	batch := make([]outbox.IngestMessage, 0, inboxBatch)
	for m := range c.Charges() {
		body, err := json.Marshal(m)
		if err != nil {
			return nil, err
		}
		id := newID()
		if i.random {
			id = uuid.New()
		}
		batch = append(batch, outbox.IngestMessage{ID: id.String(), Kind: m.Kind(),
			Header: map[string]string{"seq": strconv.FormatInt(m.Seq, 10)}, Body: body})
		if len(batch) == inboxBatch {
			all, batch = append(all, batch), make([]outbox.IngestMessage, 0, inboxBatch)
		}
	}
	if len(batch) > 0 {
		all = append(all, batch)
	}
	return all, nil
}
