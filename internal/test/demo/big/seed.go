package big

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed big.sql
var statements string

// Size is the number of rows of each kind.
type Size struct {
	Living  int // instances
	Letters int // dead ones
	Groups  int // of them
	Queued  int // messages in each of the long queues; a short one has 20,000 at most
	History int // messages
	Runs    int // of each manifest, an hour apart
}

// Large is the size with which pages are measured.
var Large = Size{
	Living: 1_000_000, Letters: 100_000, Groups: 300, Queued: 1_000_000, History: 10_000_000, Runs: 30 * 24,
}

// Part is the nth part of it.
func (s Size) Part(n int) Size {
	return Size{
		Living: s.Living / n, Letters: s.Letters / n, Groups: min(s.Groups, s.Letters/n), Queued: s.Queued / n,
		History: s.History / n, Runs: s.Runs / n,
	}
}

// The sizes that all worlds share.
const (
	versions  = 20  // of an instance with a history
	perPage   = 500 // messages of a page of the history
	manifests = 500
	short     = 20_000 // messages in a short queue
)

// The small numbers of ids. They identify the kind of row.
const (
	ofInstance = 0
	ofTimeout  = 1
	ofBurst    = 3
	ofLetter   = 4
	ofRun      = 8
	ofMessage  = 100 // and the version that it leads to
)

// World is a schema that was filled.
type World struct {
	Size
	pool   *pgxpool.Pool
	schema pg.Schema
	sql    pg.Statements
	began  int64 // of the history, in milliseconds
	now    int64
	header []byte
}

// IDOf is the id of a time in milliseconds, a small number and a number.
func IDOf(ms int64, v int, n int64) (id saga.ID) {
	for at := 5; at >= 0; at-- {
		id[at] = byte(ms)
		ms >>= 8
	}
	id[6], id[7], id[8] = 0x70|byte(v>>8), byte(v), 0x80
	for at := 15; at > 8; at-- {
		id[at] = byte(n)
		n >>= 8
	}
	return id
}

// endpoints are the installed endpoints, each with its kinds. The first two have the long queues.
var endpoints = []struct {
	name  string
	kinds []string
}{
	{"payments", []string{"payment.charge"}},
	{"orders", []string{"order.step", "order.overdue"}},
	{"labels", []string{"label.print"}},
	{"mails", []string{"mail.send"}},
	{"shipping", []string{"parcel.ship"}},
	{"stock", []string{"stock.reserve"}},
}

// Seed fills a schema that has been migrated and is empty.
func Seed(ctx context.Context, pool *pgxpool.Pool, schema string, size Size) (*World, error) {
	parsed, err := pg.ParseSchema(schema)
	if err != nil {
		return nil, err
	}
	w := open(pool, parsed, size, time.Now().UnixMilli())
	name := "seed of " + schema
	seeding, err := w.connect(ctx, name, false)
	if err != nil {
		return nil, err
	}
	defer seeding.Close()
	if err := w.seed(ctx, seeding, schema); err != nil {
		return nil, err
	}
	return w, w.end(ctx, name, seeding) // so that all is counted that seeding has read
}

func (w *World) seed(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	if err := w.install(ctx, pool, schema); err != nil {
		return fmt.Errorf("install the endpoints: %w", err)
	}
	return pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		conn := c.Conn()
		pg.EnsureArrays(conn.TypeMap())
		for _, fill := range []func(context.Context, *pgx.Conn) error{w.fillHistory, w.fillQueues, w.fillTables} {
			if err := fill(ctx, conn); err != nil {
				return err
			}
		}
		if _, err := conn.Exec(ctx, w.sql.Get("remember"), strconv.FormatInt(w.now, 10)); err != nil {
			return fmt.Errorf("remember when it was: %w", err)
		}
		return w.analyse(ctx, conn)
	})
}

// Open returns a world that Seed has made.
func Open(ctx context.Context, pool *pgxpool.Pool, schema string, size Size) (*World, error) {
	parsed, err := pg.ParseSchema(schema)
	if err != nil {
		return nil, err
	}
	var now int64
	err = pool.QueryRow(ctx, pg.Load(statements, parsed).Get("remembered")).Scan(&now)
	return open(pool, parsed, size, now), err
}

func open(pool *pgxpool.Pool, schema pg.Schema, size Size, now int64) *World {
	return &World{
		Size: size, pool: pool, schema: schema, sql: pg.Load(statements, schema), now: now,
		began:  now - (6 * 24 * time.Hour).Milliseconds(),
		header: wire.AppendHeader(nil, &saga.Info{From: "shop"}),
	}
}

// analyse gives the planner statistics of all tables.
func (w *World) analyse(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, w.sql.Get("tables"), w.schema.Name())
	if err != nil {
		return fmt.Errorf("list the tables: %w", err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil {
		_, err = conn.Exec(ctx, "VACUUM (ANALYZE) "+strings.Join(tables, ", "))
	}
	return err
}

func (w *World) install(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	op, err := operate.New(pool, operate.Options{Schema: schema})
	if err != nil {
		return err
	}
	for _, e := range endpoints {
		if err := op.Queues().Install(ctx, e.name, e.kinds...); err != nil {
			return err
		}
	}
	if err := op.Queues().InstallRelay(ctx, "shop.events", "order.shipped"); err != nil {
		return err
	}
	if err := op.Endpoints().Pause(ctx, "payments", "the bank is down"); err != nil {
		return err
	}
	store, err := scheduler.NewStore(pool, scheduler.StoreOptions{Schema: schema})
	if err != nil {
		return err
	}
	for n := range manifests {
		m := scheduler.Manifest{
			Name: fmt.Sprintf("night/m-%03d", n), When: scheduler.Every(time.Hour), Message: print{},
		}
		if err := store.Put(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

type print struct{}

func (print) Kind() string { return "label.print" }

// lives is how many instances have a history.
func (w *World) lives() int { return min(w.Living, max(perPage, w.History/versions)/perPage*perPage) }

// at is when version v of a living instance was made. A page of the history has the versions of perPage instances.
func (w *World) at(n int64, v int) int64 {
	blocks := int64(w.lives() / perPage)
	page := int64(v-1)*blocks + n/perPage
	return w.began + page*(w.now-w.began)/(blocks*versions)
}

// message returns the id of the message that leads to version v of an instance. The version before sent it.
func (w *World) message(n int64, v int) saga.ID {
	return IDOf(w.at(n, max(v-1, 1)), ofMessage+v, n)
}

// fillHistory writes the pages of the history, and records the last page of each instance.
func (w *World) fillHistory(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, w.sql.Get("temporary"), pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("create the tables of the seed: %w", err)
	}
	last := make([]saga.ID, w.lives())
	serial := int64(0)
	keeper := history.Keeper{Store: history.New(w.schema), Host: "worker-1 (process 1)"}
	now := w.began
	newID := func() saga.ID { serial++; return IDOf(now, 2, serial) }
	for v := 1; v <= versions; v++ {
		if _, err := conn.Exec(ctx, w.sql.Get("slot"), (v-1)*4/versions); err != nil {
			return fmt.Errorf("move to the next slot: %w", err)
		}
		batch := &pgx.Batch{}
		for first := 0; first < len(last); first += perPage {
			now = w.at(int64(first), v)
			page := keeper.NewPage("orders", newID) // its memory is the batch's until that is sent
			page.Begin(history.Options{Level: history.States, Sample: 1}, time.UnixMilli(now))
			for n := first; n < first+perPage; n++ {
				w.step(page, int64(n), v, last[n])
			}
			id := page.ID()
			for n := first; n < first+perPage; n++ {
				last[n] = id
			}
			if page.Queue(batch); batch.Len() >= 50 || first+perPage >= len(last) {
				if err := conn.SendBatch(ctx, batch).Close(); err != nil {
					return fmt.Errorf("write the history: %w", err)
				}
				batch = &pgx.Batch{}
			}
		}
	}
	_, err := conn.CopyFrom(ctx, pgx.Identifier{"last_page"}, []string{"n", "ms", "page"},
		pgx.CopyFromSlice(len(last), func(n int) ([]any, error) {
			return []any{int64(n), w.at(int64(n), versions), [16]byte(last[n])}, nil
		}))
	return err
}

// step adds version v of an instance to a page.
func (w *World) step(page *history.Page, n int64, v int, previous saga.ID) {
	id := IDOf(w.began, ofInstance, n)
	kind := history.Changed
	if v == 1 {
		kind = history.Began
	}
	state, _ := json.Marshal(map[string]any{"Cents": n, "Version": v, "Customer": fmt.Sprintf("customer %d", n)})
	name, _ := named(n)
	change := page.AddChange(&history.Change{ID: id, Saga: name, Key: key(n), Version: int64(v), Kind: kind,
		Previous: previous, State: state})
	to, sends := "orders", "order.step"
	if v == versions {
		to, sends = "payments", "payment.charge"
	}
	info := &saga.Info{ID: w.message(n, v), Kind: "order.step", Attempt: 1, From: "orders",
		Sent: time.UnixMilli(w.at(n, max(v-1, 1))), ConversationID: w.message(n, 1)}
	if v > 1 {
		info.RelatedTo = w.message(n, v-1)
	}
	page.Add(&history.Attempt{Info: info, Fate: history.Handled, Change: change, Sent: []saga.Outgoing{
		{To: to, Info: saga.Info{ID: w.message(n, v+1), Kind: sends, Intent: saga.Command}}}})
}

func key(n int64) string { return fmt.Sprintf("k-%09d", n) }

// named returns the saga and the key of an instance by its number.
func named(n int64) (name, k string) {
	switch {
	case n%10 < 6:
		return "order", key(n)
	case n%10 < 9:
		return "parcel", key(n)
	}
	return "refund", key(n)
}

func (w *World) fillQueues(ctx context.Context, conn *pgx.Conn) error {
	number := func(endpoint string) (table string, err error) {
		var id int
		err = conn.QueryRow(ctx, w.sql.Get("number"), endpoint).Scan(&id)
		return fmt.Sprintf("%s.queue_%d", w.schema.Render(":schema"), id), err
	}
	into := func(endpoint, name string, args ...any) error {
		table, err := number(endpoint)
		if err != nil {
			return err
		}
		sql := w.schema.RenderWith(w.sql.Get(name), ":queue", table)
		if _, err := conn.Exec(ctx, sql, append([]any{pg.Planned}, args...)...); err != nil {
			return fmt.Errorf("fill the queue of %s with %s: %w", endpoint, name, err)
		}
		return nil
	}
	half := min(w.lives(), w.Queued/2)
	err := into("payments", "waiting", half, ofMessage+versions+1, w.header)
	if err == nil {
		err = into("payments", "burst", w.Queued-half, w.now, w.header, "payment.charge")
	}
	if err == nil {
		err = into("orders", "timeouts", min(w.Living, w.Queued), w.due(), w.began, w.header)
	}
	for _, e := range endpoints[2:] {
		if err == nil {
			err = into(e.name, "burst", min(w.Queued, short), w.now, w.header, e.kinds[0])
		}
	}
	if err == nil {
		err = into("shop.events", "burst", min(w.Queued, short), w.now, w.header, "order.shipped")
	}
	return err
}

// due is when the first timeout is due.
func (w *World) due() int64 { return w.now + (24 * time.Hour).Milliseconds() }

func (w *World) fillTables(ctx context.Context, conn *pgx.Conn) error {
	for _, f := range []struct {
		name string
		args []any
	}{
		{"sagas", []any{w.Living, versions, w.began, w.due()}},
		{"letters", []any{w.Letters, w.Groups, w.header, w.began}},
		{"discarded", []any{w.Letters, w.began}},
		{"lives", []any{w.Letters, w.began}},
		{"runs", []any{w.Runs, w.now}},
		{"attempts", nil},
		{"counters", nil},
		{"sessions", []any{20, w.now}},
		{"copies", []any{w.Letters, w.began, w.header}},
		{"audit", []any{w.Letters, w.began}},
		{"jobs", nil}, {"leases", nil}, {"limits", nil},
	} {
		if _, err := conn.Exec(ctx, w.sql.Get(f.name), append([]any{pg.Planned}, f.args...)...); err != nil {
			return fmt.Errorf("fill with %s: %w", f.name, err)
		}
	}
	return nil
}
