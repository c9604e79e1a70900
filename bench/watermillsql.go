package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	wsql "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	wmsg "github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
)

//go:embed watermillsql.sql
var watermillSQL string

// watermillsql is watermill-sql's own Subscriber and Publisher over a queue of ours. peers/watermillsql.md
// lists the trials.
type watermillsql struct {
	subscribers int
	batch       int // messages in one transaction of a subscriber
}

func init() {
	register("watermillsql", watermillsql{subscribers: 8, batch: 1},
		Case{Workload: Step, Share: 0.07},
		Case{Workload: Hot, Share: 0.02},
	)
	register("watermillsql-batch", watermillsql{subscribers: 4, batch: 100},
		Case{Workload: Step, Share: 0.12},
		Case{Workload: Hot, Share: 0.05},
	)
}

// Prepare creates the tables and fills them with COPY.
func (watermillsql) Prepare(ctx context.Context, db *pgxpool.Pool, c Case) error {
	if err := createInstances(ctx, db, c); err != nil {
		return err
	}
	if _, err := db.Exec(ctx, statements(watermillSQL, c.Schema())["queues"]); err != nil {
		return fmt.Errorf("create queues: %w", err)
	}
	return fill(ctx, db, pgx.Identifier{c.Schema(), "queue"}, []string{"uuid", "payload", "metadata", "key"},
		watermillRows(c))
}

func watermillRows(c Case) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		for m := range c.Charges() {
			body, err := json.Marshal(m)
			if !yield([]any{newID(), body, newHeader(), m.Order}, err) {
				return
			}
		}
	}
}

// Work runs the subscribers until every message was acknowledged.
func (p watermillsql) Work(ctx context.Context, w *Worker) error {
	config, err := pgxpool.ParseConfig(w.DSN)
	if err != nil {
		return err
	}
	config.MaxConns = int32(p.subscribers)
	steadyPlans(&config.ConnConfig.Config)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	worker := newWatermillWorker(w, p.batch)
	if err := pool.Ping(ctx); err != nil {
		return err
	}
	if err := w.Start(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for range p.subscribers {
		group.Go(func() error { return worker.subscribe(ctx, watermillDB{pool}) })
	}
	return group.Wait()
}

// watermillWorker holds the state that the subscribers of a process share.
type watermillWorker struct {
	adapters watermillAdapters
	sql      map[string]string
	errors   watermillErrors
	left     atomic.Int64
	done     chan struct{} // closed once every message was acknowledged
}

func newWatermillWorker(w *Worker, batch int) *watermillWorker {
	worker := &watermillWorker{
		adapters: newWatermillAdapters(w.Schema(), batch),
		sql:      statements(tablesSQL, w.Schema()),
		errors:   watermillErrors{first: make(chan error, 1)},
		done:     make(chan struct{}),
	}
	worker.left.Store(int64(w.N))
	return worker
}

// subscribe is one subscriber and its handler. To close the subscriber waits for its commit.
func (w *watermillWorker) subscribe(ctx context.Context, db wsql.Beginner) error {
	noDeadline := time.Duration(0)
	subscriber, err := wsql.NewSubscriber(db, wsql.SubscriberConfig{
		SchemaAdapter: w.adapters, OffsetsAdapter: watermillOffsets{w.adapters},
		AckDeadline: &noDeadline, PollInterval: 10 * time.Millisecond,
	}, w.errors)
	if err != nil {
		return err
	}
	messages, err := subscriber.Subscribe(ctx, "queue")
	if err != nil {
		return err
	}
	err = w.handleAll(ctx, messages)
	return errors.Join(err, subscriber.Close())
}

func (w *watermillWorker) handleAll(ctx context.Context, messages <-chan *wmsg.Message) error {
	for {
		select {
		case msg, open := <-messages:
			if !open {
				return context.Cause(ctx)
			}
			if err := w.handle(msg); err != nil {
				return err
			}
			msg.Ack()
			if w.left.Add(-1) == 0 {
				close(w.done)
			}
		case err := <-w.errors.first:
			return err
		case <-w.done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// handle is the step in the transaction that takes the message and will delete it.
func (w *watermillWorker) handle(msg *wmsg.Message) error {
	ctx := msg.Context()
	tx, ok := wsql.TxFromContext(ctx)
	if !ok {
		return errors.New("watermill-sql gave no transaction")
	}
	var m Charge
	if err := json.Unmarshal(msg.Payload, &m); err != nil {
		return err
	}
	return locked{
		load: func(key string, iid *uuid.UUID, state *[]byte) error { return w.load(ctx, tx, key, iid, state) },
		save: func(iid uuid.UUID, state []byte) error {
			_, err := tx.ExecContext(ctx, w.sql["save"], iid, state)
			return err
		},
		send: func(next Charged) error { return w.publish(msg, tx, next) },
	}.step(m)
}

func (w *watermillWorker) load(ctx context.Context, tx wsql.Tx, key string, iid *uuid.UUID, state *[]byte) error {
	rows, err := tx.QueryContext(ctx, w.sql["load"], key)
	if err != nil {
		return err
	}
	if !rows.Next() {
		return errors.Join(pgx.ErrNoRows, rows.Close())
	}
	return errors.Join(rows.Scan(iid, state), rows.Close())
}

// publish sends with a Publisher on the transaction of the message.
func (w *watermillWorker) publish(in *wmsg.Message, tx wsql.Tx, next Charged) error {
	body, err := json.Marshal(next)
	if err != nil {
		return err
	}
	out := wmsg.NewMessage(newID().String(), body)
	out.Metadata = in.Metadata
	out.SetContext(in.Context())
	publisher, err := wsql.NewPublisher(tx, wsql.PublisherConfig{SchemaAdapter: w.adapters}, nil)
	if err != nil {
		return err
	}
	return publisher.Publish("sink", out)
}

// Effects counts the effects of the run.
func (watermillsql) Effects(ctx context.Context, db *pgxpool.Pool, c Case) (Effects, error) {
	return readEffects(ctx, db, statements(watermillSQL, c.Schema())["effects"])
}
