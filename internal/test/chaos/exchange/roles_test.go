package exchange

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	base "github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/procs"
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

// assignment is what a worker process is told by its environment.
type assignment struct {
	Role, Name  string
	DSN, Schema string
	Total       int
}

const assignmentVariable = "EDDA_WATERMILL_EXAMPLE"

// place is what every role needs.
type place struct {
	pool   *pgxpool.Pool
	schema string
	sql    pg.Statements
}

// work is a worker process. It ends when its role has nothing left to do, or when its parent asks it to or has died.
func work(ctx context.Context) error {
	var a assignment
	ctx, err := procs.Attend(ctx, assignmentVariable, &a)
	if err != nil {
		return err
	}
	config, err := pgxpool.ParseConfig(a.DSN)
	if err != nil {
		return err
	}
	config.ConnConfig.RuntimeParams["application_name"] = a.Name
	p, err := openPlace(ctx, config, a.Schema)
	if err != nil {
		return err
	}
	defer p.pool.Close()
	switch a.Role {
	case "publisher":
		err = p.publish(ctx, a.Total)
	case "endpoint":
		err = p.host(ctx)
	case "router":
		err = p.route(ctx)
	case "subscriber":
		err = p.follow(ctx)
	default:
		err = fmt.Errorf("there is no role %q", a.Role)
	}
	if ctx.Err() != nil {
		return nil // asked to end, in the middle of something that was rolled back
	}
	return err
}

func openPlace(ctx context.Context, config *pgxpool.Config, schemaName string) (*place, error) {
	schema, err := pg.ParseSchema(schemaName)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return &place{pool: pool, schema: schemaName, sql: pg.Load(statementsText, schema)}, nil
}

const publishAtOnce = 100

// publish is a stock publisher in the transaction that also moves its cursor, so that a kill neither forgets nor
// repeats a number.
func (p *place) publish(ctx context.Context, total int) error {
	for {
		next := 0
		err := pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
			if err := tx.QueryRow(ctx, p.sql.Get("lock_cursor")).Scan(&next); err != nil || next >= total {
				return err
			}
			publisher, err := sql.NewPublisher(sql.TxFromPgx(tx), sql.PublisherConfig{
				SchemaAdapter: watermill.SchemaAdapter{Schema: p.schema, Endpoint: tallies, Notify: true},
			}, nil)
			if err != nil {
				return err
			}
			var messages []*message.Message
			for ; next < total && len(messages) < publishAtOnce; next++ {
				body, err := json.Marshal(Count{Number: next})
				if err != nil {
					return err
				}
				messages = append(messages, message.NewMessageWithContext(ctx, uuid.NewString(), body))
			}
			if err := publisher.Publish(Count{}.Kind(), messages...); err != nil {
				return err
			}
			_, err = tx.Exec(ctx, p.sql.Get("move_cursor"), next)
			return err
		})
		if err != nil {
			return fmt.Errorf("publish: %w", err)
		}
		if next >= total {
			return nil
		}
	}
}

// host is the Edda endpoint with the saga.
func (p *place) host(ctx context.Context) error {
	e, err := p.endpoint()
	if err != nil {
		return err
	}
	return e.Run(ctx)
}

func (p *place) endpoint() (*bus.Endpoint, error) {
	b, err := p.bus()
	if err != nil {
		return nil, err
	}
	return bus.NewEndpoint(b, tallies, bus.EndpointOptions{}, bus.Saga(tally))
}

func (p *place) bus() (*bus.Bus, error) {
	return bus.New(p.pool, bus.Options{Schema: p.schema, Logger: quiet})
}

// route is a stock Router, whose answers commit with its acks.
func (p *place) route(ctx context.Context) error {
	b, err := p.bus()
	if err != nil {
		return err
	}
	subscriber, err := watermill.NewSubscriber(b, watermill.SubscriberOptions{Logger: quiet})
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
	router.AddMiddleware(middleware.Recoverer, watermill.Together)
	router.AddHandler("answer", Counted{}.Kind(), subscriber, receipts, publisher,
		func(m *message.Message) ([]*message.Message, error) {
			return []*message.Message{message.NewMessage(uuid.NewString(), m.Payload)}, nil
		})
	return router.Run(ctx)
}

var quiet = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))

// follow is a stock subscriber that writes each number through the transaction of its ack: both commit, or neither.
func (p *place) follow(ctx context.Context) error {
	s, err := sql.NewSubscriber(sql.BeginnerFromPgx(p.pool), p.stock(), nil)
	if err != nil {
		return err
	}
	messages, err := s.Subscribe(ctx, receipts)
	if err != nil {
		return err
	}
	for m := range messages {
		err := p.receive(m.Context(), m) // the message's own, which holds the transaction
		if err != nil {
			return errors.Join(err, s.Close()) // unanswered: the transaction is rolled back
		}
		m.Ack()
	}
	return s.Close()
}

func (p *place) stock() sql.SubscriberConfig {
	return sql.SubscriberConfig{
		SchemaAdapter:  watermill.SchemaAdapter{Schema: p.schema},
		OffsetsAdapter: watermill.OffsetsAdapter{Schema: p.schema},
		PollInterval:   20 * time.Millisecond,
	}
}

func (p *place) receive(ctx context.Context, m *message.Message) error {
	tx, ok := sql.TxFromContext(ctx)
	if !ok {
		return errors.New("watermill-sql gave no transaction with the message")
	}
	var c Counted
	if err := json.Unmarshal(m.Payload, &c); err != nil {
		return fmt.Errorf("read %s: %w", m.UUID, err)
	}
	_, err := tx.ExecContext(ctx, p.sql.Get("receive"), c.Number)
	return err
}
