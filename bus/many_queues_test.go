package bus_test

import (
	"context"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// statementCounter counts the statements that a pool sends. It leaves out BEGIN and COMMIT, which do no work, and
// mostly go out with the statements between them.
type statementCounter struct {
	sent  atomic.Int64
	named sync.Map // the texts of statements, by name
}

func (c *statementCounter) count(sql string) {
	if name, _, _ := strings.Cut(sql, "\n"); strings.HasPrefix(name, "-- name: ") {
		c.named.Store(strings.TrimPrefix(name, "-- name: "), sql)
	}
	if first, _, _ := strings.Cut(sql[strings.LastIndexByte(sql, '\n')+1:], " "); first != "begin" &&
		first != "commit" {
		c.sent.Add(1)
	}
}

func (c *statementCounter) TraceQueryStart(ctx context.Context, _ *pgx.Conn,
	d pgx.TraceQueryStartData) context.Context {
	c.count(d.SQL)
	return ctx
}
func (c *statementCounter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (c *statementCounter) TraceBatchStart(ctx context.Context, _ *pgx.Conn,
	_ pgx.TraceBatchStartData) context.Context {
	return ctx
}
func (c *statementCounter) TraceBatchQuery(_ context.Context, _ *pgx.Conn, d pgx.TraceBatchQueryData) {
	c.count(d.SQL)
}
func (c *statementCounter) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// sentByPeek returns the statements that an operator sends to peek at a queue, by name.
func (w *world) sentByPeek(endpoint string) pg.Statements {
	w.t.Helper()
	config, sent, all := w.pool.Config(), &statementCounter{}, pg.Statements{}
	config.ConnConfig.Tracer = sent
	pool, err := pgxpool.NewWithConfig(w.t.Context(), config)
	if err != nil {
		w.t.Fatal(err)
	}
	defer pool.Close()
	if _, err := w.operatorOf(pool).Messages().Peek(w.t.Context(), endpoint, operate.PeekOptions{}); err != nil {
		w.t.Fatal(err)
	}
	sent.named.Range(func(name, sql any) bool {
		all[name.(string)] = sql.(string)
		return true
	})
	return all
}

// in returns the number of statements that do sends.
func (c *statementCounter) in(do func()) int64 {
	before := c.sent.Load()
	do()
	return c.sent.Load() - before
}

const manyQueues = 2000

// makeManyQueues creates one real queue. The others are views of it, which are made ten times faster and look the same
// to readers.
func makeManyQueues(t *testing.T, owner *pgxpool.Pool, schema string) {
	t.Helper()
	for _, sql := range []string{
		`SELECT ":schema".create_queue('first')`,
		`INSERT INTO ":schema".queue (endpoint) SELECT 'q' || n FROM generate_series(2, ` + strconv.Itoa(manyQueues) +
			`) n`,
		`DO $$ DECLARE number int; BEGIN FOR number IN SELECT id FROM ":schema".queue WHERE endpoint <> 'first' LOOP
			EXECUTE format('CREATE VIEW ":schema".queue_%s AS SELECT * FROM ":schema".queue_1',
			number); END LOOP; END $$`,
	} {
		if _, err := owner.Exec(t.Context(), strings.ReplaceAll(sql, ":schema", schema)); err != nil {
			t.Fatal(err)
		}
	}
}

// Every process reads the list of all queues of its schema, cleans up after them and counts their messages. The cost
// for each queue must be negligible. The numbers are statements and bytes, which are the same on every machine. The
// test does not run in parallel, because it measures the heap.
func TestManyQueuesCostLittle(t *testing.T) {
	owner, schema := pgdev.Pool(t), pgdev.Schema(t)
	pgtest.Migrate(t, owner, schema)
	makeManyQueues(t, owner, schema)
	config, counter := owner.Config(), &statementCounter{}
	config.ConnConfig.Tracer = counter
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	b, err := bus.New(pool, bus.Options{Schema: schema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}

	o, err := operate.New(pool, operate.Options{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	before := heapInUse()
	if _, err := o.Messages().Peek(t.Context(), "first", operate.PeekOptions{}); err != nil {
		t.Fatal(err)
	}
	if grown := heapInUse() - before; grown > 10<<20 {
		t.Errorf("a process that knows %d queues keeps %d bytes for them, want at most 10 MiB", manyQueues, grown)
	}

	ledger := `INSERT INTO "` + schema + `".suspect (queue, due, id, deaths, alone, at)
		SELECT id, now(), gen_random_uuid(), 1, 0, now() - interval '1 hour' FROM "` + schema + `".queue`
	if _, err := owner.Exec(t.Context(), ledger); err != nil {
		t.Fatal(err)
	}
	if sent := counter.in(func() { bus.CleanNow(t.Context(), b) }); sent > 50 {
		t.Errorf("a clean-up of %d queues sends %d statements, want at most 50", manyQueues, sent)
	}
	var left int
	if err := owner.QueryRow(t.Context(), `SELECT count(*) FROM "`+schema+`".suspect`).Scan(&left); err != nil ||
		left > 0 {
		t.Errorf("%d entries of messages that are gone are left of the suspects, %v", left, err)
	}

	sent := counter.in(func() {
		infos, err := o.Queues().List(t.Context())
		if err != nil || len(infos) != manyQueues {
			t.Errorf("%d queues are counted, want %d; %v", len(infos), manyQueues, err)
		}
	})
	if sent > 50 {
		t.Errorf("counting the messages of %d queues takes %d statements, want at most 50", manyQueues, sent)
	}

	wanted := map[string]bool{}
	for number := range manyQueues {
		wanted[strconv.Itoa(number+1)] = true
	}
	for _, payload := range payloadsOf(t, pool, b) {
		for number := range strings.SplitSeq(payload, ",") {
			delete(wanted, number)
		}
	}
	if len(wanted) > 0 {
		t.Errorf("wake-ups for %d of %d queues did not arrive", len(wanted), manyQueues)
	}
}

// payloadsOf returns the notifications of one wake-up of all queues.
func payloadsOf(t *testing.T, pool *pgxpool.Pool, b *bus.Bus) (payloads []string) {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	channel := bus.Channel(b)
	if _, err := conn.Exec(t.Context(), "LISTEN "+channel); err != nil {
		t.Fatal(err)
	}
	bus.WakeAllNow(t.Context(), b)
	if _, err := pool.Exec(t.Context(), "SELECT pg_notify($1, 'the last')", channel); err != nil {
		t.Fatal(err)
	}
	for {
		n, err := conn.Conn().WaitForNotification(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n.Payload == "the last" {
			return payloads
		}
		payloads = append(payloads, n.Payload)
	}
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
