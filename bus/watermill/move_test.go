package watermill_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	base "github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/jackc/pgx/v5"
)

// moving is a program on watermill-sql with its own tables, which moves to Edda and back while it publishes.
type moving struct {
	*world
	beginner  sql.Beginner
	insert    string
	publisher atomic.Pointer[message.Publisher]
	published atomic.Int64
}

// stock is the publisher and the subscriber of watermill-sql with its default adapters.
func (m *moving) stock() (message.Publisher, message.Subscriber) {
	m.Helper()
	messages := sql.DefaultPostgreSQLSchema{GenerateMessagesTableName: func(topic string) string {
		return pgx.Identifier{m.schema, "watermill_" + topic}.Sanitize()
	}}
	offsets := sql.DefaultPostgreSQLOffsetsAdapter{GenerateMessagesOffsetsTableName: func(topic string) string {
		return pgx.Identifier{m.schema, "watermill_offsets_" + topic}.Sanitize()
	}}
	config := sql.PublisherConfig{SchemaAdapter: messages, AutoInitializeSchema: true}
	p, err := sql.NewPublisher(m.beginner, config, nil)
	if err != nil {
		m.Fatal(err)
	}
	s, err := sql.NewSubscriber(m.beginner, sql.SubscriberConfig{SchemaAdapter: messages, OffsetsAdapter: offsets,
		InitializeSchema: true, PollInterval: 5 * time.Millisecond}, nil)
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { _ = s.Close() })
	return p, s
}

// publish publishes numbers until ctx ends, with the current publisher.
func (m *moving) publish(ctx context.Context) {
	for ctx.Err() == nil {
		text := fmt.Append(nil, m.published.Load())
		if err := (*m.publisher.Load()).Publish("orders", message.NewMessage(base.NewUUID(), text)); err != nil {
			m.Error(err)
			return
		}
		m.published.Add(1)
	}
}

// untilMore waits until some more are published.
func (m *moving) untilMore() {
	m.Helper()
	from := m.published.Load()
	m.until("more is published", func() bool { return m.published.Load() > from+40 })
}

// old is the program's handler before the move: its write commits with the ack. It is idempotent, because messages that
// the intake had in hand when it was stopped may have been ingested, and are delivered again.
func (m *moving) old(one *message.Message) error {
	tx, ok := sql.TxFromContext(one.Context())
	if !ok {
		return errors.New("watermill-sql gave no transaction")
	}
	_, err := tx.ExecContext(one.Context(), m.insert+` ON CONFLICT DO NOTHING`, string(one.Payload), "old")
	return err
}

// now is the same handler on Edda. It is idempotent too, because messages that the intake had ingested when it was
// stopped may be delivered to the old handler first. A number that the new handler itself gets twice is an error.
func (m *moving) now(one *message.Message) error {
	tx, ok := watermill.TxFromContext(one.Context())
	if !ok {
		return errors.New("the endpoint gave no transaction")
	}
	const unlessOld = ` ON CONFLICT (number) DO UPDATE SET by = 'old' WHERE handled.by = 'old'`
	tag, err := tx.Exec(one.Context(), m.insert+unlessOld, string(one.Payload), "new")
	if err == nil && tag.RowsAffected() == 0 {
		err = errors.New("the new handler has had it before")
	}
	return err
}

// follow runs the old handler until it is stopped.
func (m *moving) follow(s message.Subscriber) (stop func()) {
	stopped := make(chan struct{})
	var following sync.WaitGroup
	following.Go(func() {
		for m.attend(s, stopped) {
		}
	})
	return func() { close(stopped); following.Wait() }
}

// attend is one subscription of the old handler. It reports whether a further subscription is needed: a message that
// Edda has handled in between fails the transaction of watermill-sql, which is REPEATABLE READ and ends with the
// context. The context ends between two messages: watermill-sql would roll back a transaction that the handler uses.
func (m *moving) attend(s message.Subscriber, stopped <-chan struct{}) (again bool) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(m.Context()))
	messages, err := s.Subscribe(ctx, "orders")
	if err != nil {
		m.Error(err)
		cancel()
		return false
	}
	defer func() {
		cancel()
		for range messages { // until the transaction is rolled back
		}
	}()
	for {
		select {
		case <-stopped:
			return false
		case one, ok := <-messages:
			if !ok {
				return false
			}
			if err := m.old(one); err != nil {
				if again = pgerr.ClassOf(err) == pgerr.Race; !again {
					m.Error(err)
				}
				return again
			}
			one.Ack()
		}
	}
}

// bring runs an intake of the messages that the stock publisher continues to write, until it is stopped.
func (m *moving) bring(s message.Subscriber) (stop func()) {
	m.Helper()
	// page intake
	intake, err := watermill.NewIntake(m.bus, "orders", s, watermill.IntakeOptions{Source: "watermill-sql"})
	// end
	if err != nil {
		m.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(m.Context()))
	ended := make(chan error, 1)
	go func() { ended <- intake.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			m.Error(err)
		}
	}
}

// handled counts the rows that one of the handlers has written.
func (m *moving) handled(by string) (n int64) {
	m.Helper()
	if err := m.pool.QueryRow(m.Context(), `SELECT count(*) FROM `+pgx.Identifier{m.schema, "handled"}.Sanitize()+
		` WHERE $1 IN (by, '')`, by).Scan(&n); err != nil {
		m.Fatal(err)
	}
	return n
}

// A program on watermill-sql moves to Edda and back while it continues to publish, by the steps of
// docs/guide/watermill.md: every message is handled once.
func TestMoveFromWatermillSQLAndBack(t *testing.T) {
	m := &moving{world: newWorld(t)}
	m.beginner = sql.BeginnerFromPgx(m.pool)
	table := pgx.Identifier{m.schema, "handled"}.Sanitize()
	m.insert = `INSERT INTO ` + table + ` (number, by) VALUES ($1, $2)`
	if _, err := m.pool.Exec(t.Context(), `CREATE TABLE `+table+` (number text PRIMARY KEY, by text)`); err != nil {
		t.Fatal(err)
	}
	stock, subscriber := m.stock()
	stopOld := m.follow(subscriber)
	m.publisher.Store(&stock)
	ctx, stopPublishing := context.WithCancel(context.WithoutCancel(t.Context()))
	var publishing sync.WaitGroup
	publishing.Go(func() { m.publish(ctx) })
	m.untilMore()

	// Edda's endpoint runs before a message comes for it.
	m.run("shop", bus.EndpointOptions{Concurrency: 1}, watermill.ConsumeTx("orders", m.now))
	publisher, err := watermill.NewPublisher(m.bus, watermill.PublisherOptions{})
	if err != nil {
		t.Fatal(err)
	}
	edda := message.Publisher(publisher)
	stopOld() // the publishers belong to a different team: an intake takes the place of the old handler
	_, again := m.stock()
	stopIntake := m.bring(again)
	m.untilMore()
	m.until("the endpoint handles", func() bool { return m.handled("new") > 0 })

	m.publisher.Store(&edda) // now the publishers move
	m.untilMore()
	m.publisher.Store(&stock) // and back, in the middle
	m.untilMore()
	stopIntake()
	_, back := m.stock()
	stopOld = m.follow(back)
	m.untilMore()
	stopPublishing()
	publishing.Wait()
	m.until("all are handled", func() bool { return m.handled("") == m.published.Load() && m.left("shop") == 0 })
	stopOld()
	if old, now := m.handled("old"), m.handled("new"); old == 0 || now == 0 || m.left("shop") != 0 {
		t.Errorf("published %d, handled by the old handler %d and by the new one %d", m.published.Load(), old, now)
	}
	if letters := m.letters(); letters != "" { // a number that the new handler gets twice fails
		t.Errorf("dead letters: %s", letters)
	}
}
