package eddaui_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/test/demo/world"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// viewed is a kind of open page: a text of a statement that each of its reads sends once, and a function that changes
// the page.
type viewed struct {
	path, statement string
	change          func(ctx context.Context) error
	fragment, text  string // where the change shows

	reads  atomic.Int64
	before int64 // number of reads when the change was committed
}

// tracers counts the reads of several kinds of pages.
type tracers []*viewed

func (t tracers) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	for _, v := range t {
		if strings.Contains(q.SQL, v.statement) {
			v.reads.Add(1)
		}
	}
	return ctx
}

func (tracers) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// Two hundred viewers of five kinds of pages cost five reads a second at most, and the second read after a change
// shows it to each of them.
func TestTwoHundredViewersAreFiveReadsASecond(t *testing.T) {
	t.Parallel()
	pool, schema, shop := newShop(t)
	kinds := kindsViewed(t, pool, schema, shop)
	config := pool.Config().Copy()
	config.ConnConfig.Tracer, config.MaxConns = kinds, 4
	reader, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reader.Close)
	s := serve(t, pool, schema, eddaui.Options{Reader: reader})
	for _, v := range kinds {
		before := v.reads.Load()
		if s.get(v.path); v.reads.Load() != before+1 {
			t.Fatalf("page %s sends %q %d times: the test counts the wrong statement", v.path, v.statement,
				v.reads.Load()-before)
		}
	}
	for _, v := range kinds {
		v.reads.Store(0)
	}
	began := time.Now()
	streams := map[*viewed][]*stream{}
	for range 40 {
		for _, v := range kinds {
			streams[v] = append(streams[v], s.open(v.path+"?live=1"))
		}
	}
	for _, v := range kinds { // every viewer has the page before the change
		for _, st := range streams[v] {
			st.until("the page "+v.path, func(e event) bool { return e.id == v.fragment })
		}
	}
	for _, v := range kinds {
		if err := v.change(t.Context()); err != nil {
			t.Fatal(err)
		}
		v.before = v.reads.Load()
		streams[v][0].until("the change on "+v.path, fragment(v.fragment, v.text))
		// one may have begun before the change, and one while the event was in flight
		if more := v.reads.Load() - v.before; more > 3 {
			t.Errorf("page %s was read %d times until it showed a change, want 2, or 3 on a slow machine", v.path, more)
		}
	}
	for _, v := range kinds {
		for _, st := range streams[v][1:] {
			st.until("the change on "+v.path, fragment(v.fragment, v.text))
		}
		n := v.reads.Load() // before the clock: a further read may begin at any moment
		if seconds := time.Since(began).Seconds(); n > int64(seconds)+1 {
			t.Errorf("40 viewers of %s cost %d reads in %.1f s, want %d at most", v.path, n, seconds, int64(seconds)+1)
		}
	}
}

func kindsViewed(t *testing.T, pool *pgxpool.Pool, schema string, shop *world.Shop) tracers {
	t.Helper()
	store, err := scheduler.NewStore(pool, scheduler.StoreOptions{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	op, err := operate.New(pool, operate.Options{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	return tracers{
		{path: "/now", statement: "s.renewed, s.ended", fragment: "sentences", text: "they count", change: func(
			ctx context.Context,
		) error {
			return op.Endpoints().Pause(ctx, "stock", "they count")
		}},
		{path: "/dead", statement: "-- name: jobs\n", fragment: "groups", text: "a new cause", change: func(
			context.Context,
		) error {
			pgtest.Exec(t, pool, `INSERT INTO `+schema+`.dead_letter (endpoint, message_id, kind, header, body,
				attempts, conflicts, reason, error, error_group)
				VALUES ('stock', gen_random_uuid(), 'k', '', '', 1, 0, '', 'a new cause', 'abcdefabcdef')`)
			return nil
		}},
		{path: "/limits", statement: ".lease l", fragment: "limits", text: "7", change: func(
			ctx context.Context,
		) error {
			return op.Limits().Set(ctx, "mails", 7)
		}},
		{path: "/manifests", statement: "-- name: count_runs\n", fragment: "manifests", text: "2 queued",
			change: func(ctx context.Context) error {
				_, err := store.Trigger(ctx, "hourly/rates", nil, scheduler.TriggerOptions{})
				return err
			}},
		{path: "/sagas/order/2026-0014", statement: "-- name: last_page\n", fragment: "timeline", text: "order.note",
			change: func(ctx context.Context) error {
				_, err := shop.Bus.Send(ctx, world.Note{Order: "2026-0014", Text: "ring once"})
				return err
			}},
	}
}
