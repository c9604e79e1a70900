package exchange

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	base "github.com/ThreeDotsLabs/watermill"
	wmsql "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Count is published by watermill-sql: count this number.
type Count struct{ Number int }

// Counted is published by the saga. A Router answers it, for watermill-sql.
type Counted struct{ Number int }

// Kind names the message.
func (Count) Kind() string { return "count" }

// Kind names the message.
func (Counted) Kind() string { return "counted" }

const (
	instances = 1000
	tallies   = "tallies"  // the endpoint that hosts the saga
	receipts  = "receipts" // the topic of the Router's answers, and the queue that the subscriber follows
)

// Tally is one of the instances that the numbers are spread over.
type Tally struct {
	Count int
	Sum   int64
}

// Add counts one number and says so.
func (t *Tally) Add(ctx *saga.Context, m Count) error {
	t.Count++
	t.Sum += int64(m.Number)
	ctx.Publish(Counted(m))
	return nil
}

var tally = saga.Define("tally", saga.Options{Store: saga.Optimistic},
	saga.StartedBy(func(m Count) string { return strconv.Itoa(m.Number % instances) }, (*Tally).Add))

// task is what a worker process is told.
type task struct{ Role string }

// work is the life of a worker process: one of the roles, until its parent asks it to end or has died.
func work(ctx context.Context, w *lab.Worker) error {
	var t task
	if err := w.Read(&t); err != nil {
		return err
	}
	return w.Serve(ctx, func(b *bus.Bus, pool *pgxpool.Pool) ([]edda.Runner, error) {
		e, err := endpoint(b)
		roles := map[string]edda.Runner{
			"endpoint":   e,
			"publisher":  role(func(ctx context.Context) error { return publish(ctx, pool) }),
			"router":     role(func(ctx context.Context) error { return route(ctx, b) }),
			"subscriber": role(func(ctx context.Context) error { return follow(ctx, pool) }),
		}
		return []edda.Runner{roles[t.Role]}, err
	})
}

// role ends without an error when it was asked to: then it was in the middle of something that is rolled back.
func role(f func(context.Context) error) edda.Runner {
	return edda.RunnerFunc(func(ctx context.Context) error {
		if err := f(ctx); ctx.Err() == nil {
			return err
		}
		return nil
	})
}

const (
	publishAtOnce = 100
	mostAhead     = 500 // numbers that are published and not received
)

// publish is a stock publisher in the transaction that also moves its cursor, so that a kill neither forgets nor
// repeats a number. It stays when it was stopped.
func publish(ctx context.Context, pool *pgxpool.Pool) error {
	for {
		var ahead int
		var stopped bool
		if err := pool.QueryRow(ctx, sql.Get("ahead")).Scan(&ahead, &stopped); err != nil {
			return fmt.Errorf("look for the receipts: %w", err)
		}
		if stopped {
			<-ctx.Done()
			return nil
		}
		if ahead >= mostAhead {
			_ = run.Sleep(ctx, time.Millisecond) // the query sees the end of ctx
			continue
		}
		if err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return publishSome(ctx, tx) }); err != nil {
			return fmt.Errorf("publish: %w", err)
		}
	}
}

func publishSome(ctx context.Context, tx pgx.Tx) error {
	var next int
	var stopped bool
	if err := tx.QueryRow(ctx, sql.Get("lock_cursor")).Scan(&next, &stopped); err != nil || stopped {
		return err
	}
	publisher, err := wmsql.NewPublisher(wmsql.TxFromPgx(tx), wmsql.PublisherConfig{
		SchemaAdapter: watermill.SchemaAdapter{Endpoint: tallies, Notify: true},
	}, nil)
	if err != nil {
		return err
	}
	var messages []*message.Message
	for range publishAtOnce {
		body, err := json.Marshal(Count{Number: next})
		if err != nil {
			return err
		}
		messages = append(messages, message.NewMessageWithContext(ctx, uuid.NewString(), body))
		next++
	}
	if err := publisher.Publish(Count{}.Kind(), messages...); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, sql.Get("move_cursor"), next)
	return err
}

// route is a stock Router, whose answers commit with its acks.
func route(ctx context.Context, b *bus.Bus) error {
	subscriber, err := watermill.NewSubscriber(b, watermill.SubscriberOptions{Logger: lab.Log(slog.LevelError)})
	if err != nil {
		return err
	}
	publisher, err := watermill.NewPublisher(b, watermill.PublisherOptions{})
	if err != nil {
		return err
	}
	router, err := message.NewRouter(message.RouterConfig{}, base.NopLogger{})
	if err != nil {
		return err
	}
	router.AddMiddleware(middleware.Recoverer, watermill.PublishWithAck)
	router.AddHandler("answer", Counted{}.Kind(), subscriber, receipts, publisher,
		func(m *message.Message) ([]*message.Message, error) {
			return []*message.Message{message.NewMessage(uuid.NewString(), m.Payload)}, nil
		})
	return router.Run(ctx)
}

// follow is a stock subscriber that writes each number through the transaction of its ack: both commit, or neither.
func follow(ctx context.Context, pool *pgxpool.Pool) error {
	s, err := wmsql.NewSubscriber(wmsql.BeginnerFromPgx(pool), wmsql.SubscriberConfig{
		SchemaAdapter:  watermill.SchemaAdapter{},
		OffsetsAdapter: watermill.OffsetsAdapter{},
		PollInterval:   20 * time.Millisecond,
	}, nil)
	if err != nil {
		return err
	}
	messages, err := s.Subscribe(ctx, receipts)
	if err != nil {
		return err
	}
	for m := range messages {
		err := receive(m) //nolint:contextcheck // the context of the message holds the transaction
		if err != nil {
			return errors.Join(err, s.Close()) // unanswered: the transaction is rolled back
		}
		m.Ack()
	}
	return s.Close()
}

// receive writes through the transaction that the context of the message holds.
func receive(m *message.Message) error {
	tx, ok := wmsql.TxFromContext(m.Context())
	if !ok {
		return errors.New("watermill-sql gave no transaction with the message")
	}
	var c Counted
	if err := json.Unmarshal(m.Payload, &c); err != nil {
		return fmt.Errorf("read %s: %w", m.UUID, err)
	}
	_, err := tx.ExecContext(m.Context(), sql.Get("receive"), c.Number)
	return err
}
