package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/snapshot"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// CountLimit is the default of Options.CountTo.
const CountLimit = 100_000

// QueueInfo describes one queue, by the database's clock.
type QueueInfo struct {
	Endpoint string
	Relay    bool     // a relay sends its messages to other systems
	Kinds    []string // kinds that are sent or published to it, sorted
	Ready    int64    // messages that are due, also if a worker has taken them
	Delayed  int64    // messages that are due later: delays, timeouts, retries
	Claimed  int64    // messages that leased workers have claimed, counted up to 10,000
	Parked   int64    // messages of an ordered endpoint that wait for an earlier message of their key
	// Capped is set if a count has reached Options.CountTo and is the planner's estimate instead. The estimate is
	// accurate to about ten percent on a table that autovacuum has analysed, and may be far off before that.
	Capped    bool
	OldestDue time.Time     // of the first message that is due; zero if no message is due
	Lag       time.Duration // how long that message has been due
}

// Queues counts, installs and examines queues. Messages has the methods for their messages.
type Queues struct{ o *Operator }

// Queues returns the methods for queues.
func (o *Operator) Queues() Queues { return Queues{o} }

// List counts the messages of every queue in one snapshot, in the order of the endpoints' names. It is for metrics
// and tools: it waits for no lock and blocks nothing. It sends a few statements for each 200 queues. Each count reads
// at most Options.CountTo index entries (for CountLimit about 15 ms), however many messages wait. The pool's role
// needs only SELECT on the tables.
func (q Queues) List(ctx context.Context) ([]QueueInfo, error) {
	infos, err := q.read(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the queues: %w", err)
	}
	return infos, nil
}

func (q Queues) read(ctx context.Context) ([]QueueInfo, error) {
	infos, err := q.count(ctx)
	if pgerr.ClassOf(err) == pgerr.Unprepared { // a queue was dropped since the subscriptions were read
		infos, err = q.count(ctx)
	}
	return infos, err
}

func (q Queues) count(ctx context.Context) ([]QueueInfo, error) {
	conn, err := q.o.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	known, err := q.o.routes.Reload(ctx, conn)
	if err != nil {
		return nil, err
	}
	infos, err := q.depths(ctx, conn, known)
	if err != nil {
		return nil, fmt.Errorf("count the messages: %w", pgerr.Explain(err))
	}
	kinds := kindsByQueue(known)
	for n := range infos {
		info := &infos[n]
		info.Kinds = kinds[known.Endpoints[info.Endpoint]]
		if err := estimate(ctx, conn, known.Endpoints[info.Endpoint], info, q.o.options.CountTo); err != nil {
			return nil, fmt.Errorf("count the messages of endpoint %s: %w", info.Endpoint, pgerr.Explain(err))
		}
	}
	slices.SortFunc(infos, func(a, b QueueInfo) int { return strings.Compare(a.Endpoint, b.Endpoint) })
	return infos, nil
}

// kindsByQueue returns the kinds that each queue consumes, sorted.
func kindsByQueue(known *queue.Routes) map[*queue.Queue][]string {
	kinds := map[*queue.Queue][]string{}
	for _, kind := range slices.Sorted(maps.Keys(known.Kinds)) {
		for _, q := range known.Kinds[kind] {
			kinds[q] = append(kinds[q], kind)
		}
	}
	return kinds
}

// countQueues is the number of queues that one statement counts. The statement locks the table and the index of each
// queue until its savepoint is rolled back, and Postgres has room for some thousands of locks.
const countQueues = 200

// depths counts each queue up to a limit. All counts use one snapshot: a message that moves between queues is counted
// once.
func (q Queues) depths(ctx context.Context, conn *pgxpool.Conn, known *queue.Routes) (infos []QueueInfo, err error) {
	pipeline := &pgx.Batch{}
	q.o.queueLook(pipeline)
	pipeline.Queue(q.o.sql.Get("begin_piece"))
	for some := range slices.Chunk(slices.Sorted(maps.Keys(known.ByID)), countQueues) {
		pipeline.Queue(q.o.sql.Get("depths"), some, q.o.options.CountTo).Query(func(rows pgx.Rows) error {
			found, err := pgx.CollectRows(rows,
				func(row pgx.CollectableRow) (QueueInfo, error) { return scanDepth(row, known, q.o.options.CountTo) })
			infos = append(infos, found...)
			return err
		})
		pipeline.Queue(q.o.sql.Get("unlock_piece"))
	}
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, conn, options, func(tx pgx.Tx) error { return tx.SendBatch(ctx, pipeline).Close() })
	return infos, err
}

func scanDepth(row pgx.CollectableRow, known *queue.Routes, most int64) (info QueueInfo, err error) {
	var (
		id     int
		oldest *time.Time
		now    time.Time
	)
	if err := row.Scan(&id, &info.Ready, &info.Delayed, &info.Claimed, &info.Parked, &oldest, &now); err != nil {
		return info, err
	}
	q := known.ByID[id]
	info.Endpoint, info.Relay = q.Endpoint, q.Relay
	if oldest != nil {
		info.OldestDue, info.Lag = oldest.UTC(), now.Sub(*oldest)
	}
	info.Capped = max(info.Ready, info.Delayed, info.Claimed, info.Parked) >= most
	if info.Delayed < most {
		info.Delayed -= info.Claimed
	}
	return info, nil
}

// estimate replaces counts that reached the limit by the planner's numbers.
func estimate(ctx context.Context, conn *pgxpool.Conn, q *queue.Queue, info *QueueInfo, most int64) error {
	for number, sql := range map[*int64]string{&info.Ready: q.SQL("estimate_ready"),
		&info.Delayed: q.SQL("estimate_delayed")} {
		if *number < most {
			continue
		}
		rows, err := planRows(ctx, conn, sql)
		if err != nil {
			return err
		}
		*number = max(*number, rows)
	}
	return nil
}

// planRows returns the number of rows that the planner expects of a statement.
func planRows(ctx context.Context, conn *pgxpool.Conn, explain string) (int64, error) {
	var text []byte
	if err := conn.QueryRow(ctx, explain).Scan(&text); err != nil {
		return 0, err
	}
	var plans []struct {
		Plan struct {
			Rows float64 `json:"Plan Rows"`
		}
	}
	if err := json.Unmarshal(text, &plans); err != nil || len(plans) == 0 {
		return 0, fmt.Errorf("read the planner's estimate: %w", err)
	}
	return int64(math.Round(plans[0].Plan.Rows)), nil
}

// Install creates the queue of an endpoint and subscribes it to kinds, in addition to its other subscriptions. It is
// bus.Endpoint.Install for programs that do not have the endpoint's handlers, such as a separate program with the
// right to create tables. If the queue and the subscriptions exist, it does nothing.
//
// It returns an error if the endpoint or a kind has an invalid name, the queue belongs to a relay, the role may not
// create tables, or the schema is not migrated.
func (q Queues) Install(ctx context.Context, endpoint string, kinds ...string) error {
	return q.install(ctx, endpoint, false, kinds)
}

// InstallRelay is Install for a relay: outbox.Relay.Install for programs that do not have the relay. It returns an
// error if an endpoint of that name has run.
func (q Queues) InstallRelay(ctx context.Context, name string, kinds ...string) error {
	return q.install(ctx, name, true, kinds)
}

func (q Queues) install(ctx context.Context, endpoint string, relay bool, kinds []string) error {
	if err := q.o.routes.Install(ctx, endpoint, relay, kinds); err != nil {
		return fmt.Errorf("install endpoint %.80q: %w", endpoint, err)
	}
	return nil
}

// Pin is the oldest holder of a snapshot that keeps Postgres from removing dead rows: a session with a transaction, a
// prepared transaction, a replication slot, or a standby that reports its queries (hot_standby_feedback). Until it
// ends, workers read past dead rows.
type Pin struct {
	Kind         string        // "session", "prepared transaction", "replication slot" or "standby"
	Name         string        // the process id of a session or a standby's walsender, the gid, or the slot's name
	Database     string        // "" for a slot or a standby, which keep the rows of all databases
	Role         string        // "" for a slot
	Application  string        // the application_name of a session or a standby
	State        string        // of a session or a slot; "" if the role may not see it
	Held         time.Duration // since the transaction began; 0 if that is unknown, or the role may not see it
	Transactions int64         // number of transactions that have begun since then
	Table        string        // the table of the schema with the most dead rows
	Endpoint     string        // the endpoint whose queue the table is, or ""
	DeadRows     int64         // of the table, by the estimate of Postgres' statistics
	XID          string        // two pins with the same Name and XID are the same pin
	Asker        string        // the role of the session that ran the query
}

// Pin finds the holder that keeps dead rows, if a queue has 2,000 dead rows or any other table 10,000, and reports
// whether it found one. The holder may be a transaction that ends soon: see Pin.Old. Pin reads only catalog views,
// locks nothing, and needs no right beyond SELECT on the schema's tables; a role with pg_read_all_stats sees more.
func (q Queues) Pin(ctx context.Context) (p Pin, suffers bool, err error) {
	found, suffers, err := q.o.pins.Find(ctx, q.o.pool)
	return Pin(found), suffers, err
}

// Old reports whether the pin has lasted for 20 seconds or longer. If its age is unknown, Old reports whether a
// thousand transactions have begun since.
func (p Pin) Old() bool { return snapshot.Pin(p).Old() }

// Holder describes the pin, as far as the role may see it.
func (p Pin) Holder() string { return snapshot.Pin(p).Holder() }

// Remedy describes how to end the pin.
func (p Pin) Remedy() string { return snapshot.Pin(p).Remedy() }
