package bus_test

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// scales measures the bytes that the server sends between two requests of a connection.
type scales struct{ heaviest atomic.Int64 }

type weighed struct {
	net.Conn
	on     *scales
	answer atomic.Int64
}

func (c *weighed) Write(b []byte) (int, error) {
	c.answer.Store(0)
	return c.Conn.Write(b)
}

func (c *weighed) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	answer := c.answer.Add(int64(n))
	for {
		most := c.on.heaviest.Load()
		if answer <= most || c.on.heaviest.CompareAndSwap(most, answer) {
			return n, err
		}
	}
}

// weigh replaces the world's bus with a bus whose connections are measured.
func (w *world) weigh() *scales {
	w.t.Helper()
	s := &scales{}
	w.throughConnections(func(conn net.Conn) net.Conn { return &weighed{Conn: conn, on: s} })
	return s
}

// throughConnections replaces the world's pool and bus: their connections go through others.
func (w *world) throughConnections(others func(net.Conn) net.Conn) {
	w.t.Helper()
	config, err := pgxpool.ParseConfig(pgdev.DSN(w.t))
	if err != nil {
		w.t.Fatal(err)
	}
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return others(conn), nil
	}
	config.MaxConns = 10
	pgtest.Become(config, w.role)
	if w.pool, err = pgxpool.NewWithConfig(w.t.Context(), config); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(w.pool.Close)
	w.bus = w.newBus(bus.Options{Schema: w.schema, AutoInstall: true, Logger: slog.New(slog.DiscardHandler)})
}

// All headers of a take were in memory at once, however large, and so were all bodies of up to 64 KiB: 31 MiB by
// default, and gigabytes if a sender wanted that.
func TestServerSendsNoMoreThanBatchBytes(t *testing.T) {
	const (
		heavy, rows = 30_000, 32
		batchBytes  = 200_000
		frames      = 30_000 // names of columns, keys and times
	)
	inTx := bus.HandleTx(func(*bus.Context, pgx.Tx, place) error { return nil })
	leased := bus.Handle(func(*bus.Context, place) error { return nil })
	keyed := bus.Handle(func(*bus.Context, place) error { return nil },
		bus.KeyedBy(func(place) string { return "one" }))
	for name, c := range map[string]struct {
		options      bus.EndpointOptions
		part         bus.Part
		header, body int
		parked       bool
	}{
		"bodies of a take":       {part: inTx, body: heavy},
		"headers of a take":      {part: inTx, header: heavy},
		"headers under a permit": {options: bus.EndpointOptions{ClusterConcurrency: 1}, part: inTx, header: heavy},
		"bodies of a claim":      {part: leased, body: heavy},
		"headers of a claim":     {part: leased, header: heavy},
		"headers of slotted claims": {options: bus.EndpointOptions{ClusterConcurrency: 50}, part: leased,
			header: heavy},
		"headers in order": {options: bus.EndpointOptions{Ordered: bus.Strict}, part: keyed, header: heavy},
		"parked bodies": {options: bus.EndpointOptions{Ordered: bus.Strict}, part: keyed, body: heavy,
			parked: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			s := w.weigh()
			w.makeQueue("heavy")
			c.options.BatchBytes = batchBytes
			e := w.endpoint("heavy", c.options, c.part)
			if err := e.Install(t.Context()); err != nil {
				t.Fatal(err)
			}
			into := w.queue("heavy") + ` (due, id, kind, header, body) SELECT now(), gen_random_uuid()`
			if c.parked {
				into = `edda.parked (queue, key, attempt, conflict, sent, due, id, kind, header, body) SELECT 1,
					'one', 0, 0, now(), now(), gen_random_uuid()`
			}
			w.exec(`INSERT INTO `+into+`, 'order.place',
				convert_to(json_build_object('pad', repeat('x', $1))::text, 'UTF8'),
				convert_to(json_build_object('Order', repeat('y', $2))::text, 'UTF8')
				FROM generate_series(1, $3)`, c.header, c.body, rows)
			w.send(place{}) // to a lane with parked messages
			w.run(e)
			w.untilEmpty("heavy")
			w.want(0, `SELECT count(*) FROM edda.parked`)
			w.want(0, `SELECT count(*) FROM edda.dead_letter`)
			if most := s.heaviest.Load(); most > batchBytes+frames {
				t.Errorf("the server sent %d bytes at once, BatchBytes is %d", most, batchBytes)
			}
		})
	}
}

// A claim that was cut short by its bytes looked like the claim of an empty queue, and the others waited for the poll.
func TestClaimGoesOnWhereItsBytesEnded(t *testing.T) {
	w := newWorld(t, bus.Options{})
	part := bus.Handle(func(*bus.Context, place) error { return nil })
	w.install("heavy", part)
	w.exec(`INSERT INTO ` + w.queue("heavy") + ` (due, id, kind, header, body)
		SELECT now(), gen_random_uuid(), 'order.place', '{}', convert_to(json_build_object('Order', repeat('y',
		60000))::text, 'UTF8') FROM generate_series(1, 32)`)
	w.start("heavy", bus.EndpointOptions{BatchBytes: 100_000, Poll: time.Minute}, part)
	w.untilEmpty("heavy")
}
