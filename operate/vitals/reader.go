package vitals

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/snapshot"
	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed vitals.sql
var statements string

const (
	listed     = 20   // the longest list of a report
	queryRunes = 200  // characters of a query that are shown
	within     = "5s" // statement_timeout of a Read
	lockWithin = "3s" // lock_timeout of a Read
	lookWithin = 20 * time.Second
)

// Options configure a Reader. Every zero is a default.
type Options struct {
	Schema     string // "" is "edda"
	Thresholds Thresholds
}

// Reader reads the vitals of one schema and its database. It is safe for concurrent use.
type Reader struct {
	pool    *pg.Pool
	schema  pg.Schema
	sql     pg.Statements
	limits  Thresholds
	letters *deadletter.Store
	pins    *snapshot.Look

	mu     sync.Mutex // guards the following fields
	before position
	seen   map[string]time.Time // when each holder of the last Read was first seen
}

// position is the position of the write-ahead log at a time of the database's clock.
type position struct {
	at  time.Time
	wal int64
}

// New makes a Reader over pool. It does no I/O. It returns an error if the schema's name or a threshold is invalid.
func New(pool *pgxpool.Pool, options Options) (*Reader, error) {
	if pool == nil {
		return nil, errors.New("new reader of vitals: the pool is nil")
	}
	schema, err := pg.ParseSchema(options.Schema)
	if err != nil {
		return nil, fmt.Errorf("new reader of vitals: %w", err)
	}
	if err := options.Thresholds.complete(); err != nil {
		return nil, fmt.Errorf("new reader of vitals: %w", err)
	}
	return &Reader{
		pool: pg.Committed(pool), schema: schema, sql: pg.Load(statements, schema), limits: options.Thresholds,
		letters: deadletter.New(schema), pins: snapshot.New(schema),
	}, nil
}

// Read reads and judges the vitals once. The first report of a Reader lacks the vital WAL, which compares two Reads.
func (r *Reader) Read(ctx context.Context) (Report, error) {
	f := facts{schema: r.schema.Name(), settings: map[string]string{}}
	err := r.look(ctx, func(tx pgx.Tx) error { return r.gather(ctx, tx, &f) })
	if err != nil {
		return Report{}, fmt.Errorf("read the vitals of the database: %w", pgerr.Explain(err))
	}
	f.report.Server.WALPerSecond = r.walRate(f.report.At, f.wal)
	r.watch(f.report.At, f.report.Holders)
	return f.judge(r.limits), nil
}

// look calls do with a read-only transaction whose statements have timeouts.
func (r *Reader) look(ctx context.Context, do func(tx pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	options := pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, r.pool, options, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, r.sql.Get("bound"), pg.Planned, lockWithin, within); err != nil {
			return err
		}
		return do(tx)
	})
}

// walRate returns the bytes per second that were written to the write-ahead log since the previous Read, -1 at the
// first. A Read that follows within a tenth of a second is compared with the Read before the previous one.
func (r *Reader) walRate(at time.Time, wal int64) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, took := r.before, at.Sub(r.before.at).Seconds()
	if before.at.IsZero() || took >= 0.1 || took < 0 {
		r.before = position{at, wal}
	}
	if before.at.IsZero() || took <= 0 || wal < before.wal { // a different server, or a clock that was set back
		return -1
	}
	return float64(wal-before.wal) / took
}

// watch sets how long the Reader has observed each holder. For a slot, a standby, and data that the role cannot see,
// only this distinguishes a snapshot that lasts from a snapshot that advances with the transactions.
func (r *Reader) watch(at time.Time, holders []Holder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := make(map[string]time.Time, len(holders))
	for n := range holders {
		h := &holders[n]
		key := h.Title() + " " + h.snapshot
		first, ok := r.seen[key]
		if !ok || first.After(at) {
			first = at
		}
		seen[key], h.Watched = first, at.Sub(first)
	}
	r.seen = seen
}

// facts are the data of one Read.
type facts struct {
	schema   string
	database string
	report   Report // without vitals
	wal      int64
	settings map[string]string // in the units of Postgres
	xids     age               // of the database with the oldest transaction id
	multis   age               // the same for multixacts
	off      int64
	locked   int64 // tables and indexes of the schema
}

// age is the age of a database in transactions, and the age that makes autovacuum freeze its rows.
type age struct {
	database   string
	now, limit int64
}

func (a age) ratio() float64 { return float64(a.now) / float64(max(a.limit, 1)) }

func (r *Reader) gather(ctx context.Context, tx pgx.Tx, f *facts) error {
	p := &f.report
	row := tx.QueryRow(ctx, r.sql.Get("server"), pg.Planned)
	if err := row.Scan(&p.At, &p.Role, &f.database, &p.Visible, &f.wal, &p.Server.Allowed, &f.xids.database,
		&f.xids.now, &f.xids.limit, &f.multis.database, &f.multis.now, &f.multis.limit); err != nil {
		return err
	}
	p.At = p.At.UTC()
	p.Server.FreezeRatio = max(f.xids.ratio(), f.multis.ratio())
	for _, read := range []struct {
		sql  string
		args []any
		scan func(row pgx.CollectableRow) error
	}{
		{r.sql.Get("settings"), []any{settingNames}, f.scanSetting},
		{r.sql.Get("connections"), []any{listed}, f.scanClient},
		{r.sql.Get("tables"), []any{listed}, f.scanTable},
		{r.sql.Get("slots"), []any{listed}, f.scanSlot},
	} {
		if err := each(ctx, tx, read.scan, read.sql, read.args...); err != nil {
			return err
		}
	}
	holders, err := r.pins.Holders(ctx, tx, listed, queryRunes)
	for _, h := range holders {
		p.Holders = append(p.Holders, Holder{Kind: h.Kind, Name: h.Name, Database: h.Database, Role: h.Role,
			Application: h.Application, State: h.State, Catalogs: h.Catalogs, Transactions: h.Transactions,
			Held: h.Held, Queried: h.Queried, Query: h.Query, snapshot: h.XID})
	}
	return err
}

// each calls scan with each row.
func each(ctx context.Context, tx pgx.Tx, scan func(row pgx.CollectableRow) error, sql string, args ...any) error {
	rows, err := tx.Query(ctx, sql, append([]any{pg.Planned}, args...)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (f *facts) scanClient(row pgx.CollectableRow) error {
	var c Client
	err := row.Scan(&c.Application, &c.Connections, &f.report.Server.Used)
	f.report.Clients = append(f.report.Clients, c)
	return err
}

func (f *facts) scanTable(row pgx.CollectableRow) error {
	var (
		t        Table
		vacuumed *time.Time
	)
	err := row.Scan(&t.Name, &t.Endpoint, &t.Live, &t.Dead, &vacuumed, &t.Off, &f.report.Server.Tables, &f.off,
		&f.locked)
	if vacuumed != nil {
		t.Vacuumed = vacuumed.UTC()
	}
	f.report.Tables = append(f.report.Tables, t)
	return err
}

func (f *facts) scanSlot(row pgx.CollectableRow) error {
	var s KeptWAL
	err := row.Scan(&s.Slot, &s.Active, &s.Bytes)
	f.report.Slots = append(f.report.Slots, s)
	return err
}

// judge adds the vitals to the report.
func (f *facts) judge(limits Thresholds) Report {
	r := &f.report
	for _, vitals := range [][]Vital{
		f.snapshots(limits), f.deadRows(limits), f.autovacuum(limits), f.connections(limits), f.log(limits),
		f.slots(limits), f.freeze(limits), f.visibility(), f.settingVitals(),
	} {
		r.Vitals = append(r.Vitals, vitals...)
	}
	sortVitals(r.Vitals)
	return *r
}
