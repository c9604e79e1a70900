package counters

import (
	"cmp"
	"context"
	_ "embed"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

//go:embed counters.sql
var statements string

// Number names one number of Sums. The order is that of the table's columns.
type Number int

// Numbers of Sums. From Handler on they are durations: nanoseconds in memory, microseconds in the table.
const (
	Taken Number = iota
	Steps
	Retries
	Discarded
	Dead
	DeadConflicts
	Conflicts
	Busy
	Queued
	Batches
	Instances
	Writes
	Starts
	Lost
	LostStarts
	StateBytes
	Waits
	WaitTimeouts
	Turns
	Handler
	Critical
	Batch
	Wait
	Turn
	numbers
)

// Sums holds the numbers of one saga.
type Sums [numbers]int64

// stored returns a number in the unit of the table.
func (s *Sums) stored(n Number) int64 {
	if n >= Handler {
		return s[n] / int64(time.Microsecond)
	}
	return s[n]
}

// Saga holds the counts of one saga of an endpoint.
type Saga struct {
	Saga, Store string // Saga is "" for handlers that belong to no saga
	Sums
}

// Endpoint holds the counts of one endpoint of a process since it last added to the table.
type Endpoint struct {
	Name                  string
	Concurrency, BatchMax int
	Since                 time.Duration // how long it has counted
	Sagas                 []Saga
}

// Row holds the counts of one saga in one endpoint, added up over all processes and a period.
type Row struct {
	Endpoint string
	Saga
	Concurrency, BatchMax int // from the process that wrote last, like Store
	First, Last           time.Time
}

// Store has the statements of one schema. Safe for concurrent use.
type Store struct{ sql pg.Statements }

// New returns a store of a schema.
func New(schema pg.Schema) *Store { return &Store{pg.Load(statements, schema)} }

// Sender is implemented by pools, connections and transactions.
type Sender interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// Execer is implemented by pools, connections and transactions.
type Execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Add adds to the numbers of this hour, in one transaction that does not wait for the disk. The sagas are written in
// the order of their names, so that two processes cannot deadlock.
func (s *Store) Add(ctx context.Context, db Sender, e Endpoint) error {
	slices.SortFunc(e.Sagas, func(a, b Saga) int { return cmp.Compare(a.Saga, b.Saga) })
	pipeline := &pgx.Batch{}
	pipeline.Queue(s.sql.Get("before_counting"))
	add := s.sql.Get("add_counters")
	for _, c := range e.Sagas {
		args := []any{e.Name, c.Saga, c.Store, e.Concurrency, e.BatchMax, e.Since.Microseconds()}
		for n := range c.Sums {
			args = append(args, c.stored(Number(n)))
		}
		pipeline.Queue(add, args...)
	}
	return db.SendBatch(ctx, pipeline).Close()
}

// Read returns the numbers of the last period in the order of endpoints and sagas. It locks nothing.
func (s *Store) Read(ctx context.Context, db pg.Queryer, period time.Duration) ([]Row, error) {
	rows, err := db.Query(ctx, s.sql.Get("read_counters"), period.Microseconds())
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

func scan(row pgx.CollectableRow) (r Row, err error) {
	var read []int64
	err = row.Scan(&r.Endpoint, &r.Saga.Saga, &r.Store, &r.Concurrency, &r.BatchMax, &r.First, &r.Last, &read)
	r.First, r.Last = r.First.UTC(), r.Last.UTC()
	copy(r.Sums[:], read)
	for n := Handler; n < numbers; n++ {
		r.Sums[n] *= int64(time.Microsecond)
	}
	return r, err
}

// Hour holds the counts of one saga in one endpoint within an hour, in all processes.
type Hour struct {
	Hour           time.Time // its start, in UTC
	Endpoint, Saga string    // Saga is "" for handlers that belong to no saga
	Steps, Starts  int64
	First          time.Time // when counting began in this hour, or a little earlier
	Now            time.Time // the database's time

	// By the minute, for the current hour and the one before: 60 numbers each, nil for other hours. A program of an
	// older version adds to Steps only.
	MinuteSteps, MinuteRetries, MinuteDead []int64
}

// Hours returns the numbers of the last period by the hour, the oldest first. It locks nothing.
func (s *Store) Hours(ctx context.Context, db pg.Queryer, period time.Duration) ([]Hour, error) {
	rows, err := db.Query(ctx, s.sql.Get("read_hours"), period.Microseconds())
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (h Hour, err error) {
		err = row.Scan(&h.Hour, &h.Endpoint, &h.Saga, &h.Steps, &h.Starts, &h.First, &h.Now, &h.MinuteSteps,
			&h.MinuteRetries, &h.MinuteDead)
		h.Hour, h.First, h.Now = h.Hour.UTC(), h.First.UTC(), h.Now.UTC()
		return h, err
	})
}

// Prune deletes at most limit rows of hours that are older than olderThan, and returns how many it deleted.
func (s *Store) Prune(ctx context.Context, db Execer, olderThan time.Duration, limit int) (int64, error) {
	tag, err := db.Exec(ctx, s.sql.Get("prune_counters"), olderThan.Seconds(), limit)
	return tag.RowsAffected(), err
}
