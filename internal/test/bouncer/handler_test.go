//go:build bouncer

package bouncer_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

type task struct {
	Key  string
	N    int
	Fail int // attempts that fail
}

func (task) Kind() string { return "task.do" }

// attempts counts by task, in this process.
type attempts struct{ seen sync.Map }

func (a *attempts) failing(m task) bool {
	count, _ := a.seen.LoadOrStore(fmt.Sprint(m.Key, m.N), &atomic.Int32{})
	return int(count.(*atomic.Int32).Add(1)) <= m.Fail
}

func again(recoverability.Failure) recoverability.Decision {
	return recoverability.RetryIn(20 * time.Millisecond)
}

func (w *world) sendTasks(keys, n int, failing func(n int) int) {
	w.t.Helper()
	for i := range n {
		for k := range keys {
			w.send(task{Key: fmt.Sprint("key-", k), N: i, Fail: failing(i)})
		}
	}
}

func never(int) int { return 0 }

// A handler's savepoint keeps what failed apart from what its neighbours in the batch have written, and so does its
// own.
func TestSavepoints(t *testing.T) {
	w := newWorld(t)
	var tries attempts
	w.start("tasks", bus.EndpointOptions{Policy: again}, bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m task) error {
		if err := w.effect(ctx, tx, m.Key, m.N); err != nil {
			return err
		}
		err := pgx.BeginFunc(ctx, tx, func(inner pgx.Tx) error {
			return errors.Join(w.effect(ctx, inner, m.Key, m.N), errors.New("this one is rolled back"))
		})
		if err == nil {
			return saga.Permanent(errors.New("the inner savepoint was not rolled back"))
		}
		if tries.failing(m) {
			_, err := tx.Exec(ctx, "SELECT 1 / 0") // and the savepoint is lost
			return err
		}
		return nil
	}))
	w.sendTasks(4, 25, func(n int) int { return n % 3 })
	w.awaitEffects(100)
}

func TestLeasedHandlers(t *testing.T) {
	w := newWorld(t)
	var tries attempts
	do := bus.Handle(func(ctx *bus.Context, m task) error {
		if tries.failing(m) {
			return errors.New("not yet")
		}
		ctx.Send(saved(m))
		return nil
	})
	w.start("savers", bus.EndpointOptions{}, w.saves())
	w.start("tasks", bus.EndpointOptions{Policy: again, Lease: patiently}, do)
	w.startOn(w.newBus(bus.Options{}), "tasks", bus.EndpointOptions{Policy: again, Lease: patiently}, do)
	w.sendTasks(4, 40, func(n int) int { return n % 2 })
	w.awaitEffects(160)
}

type saved struct {
	Key  string
	N    int
	Fail int
}

func (saved) Kind() string { return "task.saved" }

// saves writes down what leased handlers send, in the order of the queue.
func (w *world) saves() bus.Part {
	return bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m saved) error { return w.effect(ctx, tx, m.Key, m.N) })
}

// Lanes are rows with an owner, so that order does not hang on a session.
func TestOrderedHandlers(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	seen := map[string][]int{}
	do := bus.Handle(func(_ *bus.Context, m task) error {
		mu.Lock()
		defer mu.Unlock()
		seen[m.Key] = append(seen[m.Key], m.N)
		return nil
	}, bus.KeyedBy(func(m task) string { return m.Key }))
	o := bus.EndpointOptions{Ordered: bus.Strict, Lease: patiently}
	w.start("tasks", o, do)
	w.startOn(w.newBus(bus.Options{}), "tasks", o, do)
	const keys, n = 6, 25
	w.sendTasks(keys, n, never)
	w.awaitRest()
	mu.Lock()
	defer mu.Unlock()
	for k := range keys {
		got := seen[fmt.Sprint("key-", k)]
		if len(got) != n {
			t.Errorf("key %d: %d messages, want %d: %v", k, len(got), n, got)
		}
		for i := range got {
			if got[i] != i {
				t.Errorf("key %d is out of order: %v", k, got)
				break
			}
		}
	}
}

// What limits the cluster is rows with an epoch, granted in transactions.
func TestLimitOfTheCluster(t *testing.T) {
	w := newWorld(t)
	const most = 2
	var now, peak atomic.Int32
	do := bus.Handle(func(ctx *bus.Context, m task) error {
		if n := now.Add(1); n > peak.Load() {
			peak.Store(n)
		}
		defer now.Add(-1)
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
		}
		ctx.Send(saved(m))
		return nil
	})
	o := bus.EndpointOptions{ClusterConcurrency: most, Lease: patiently}
	w.start("savers", bus.EndpointOptions{}, w.saves())
	w.start("tasks", o, do)
	w.startOn(w.newBus(bus.Options{}), "tasks", o, do)
	w.sendTasks(2, 40, never)
	w.awaitEffects(80)
	if peak.Load() > most {
		t.Errorf("%d handlers ran at once, want %d", peak.Load(), most)
	}
}

// Two servers share the partitions by leases, and one leaves in the middle.
func TestPartitions(t *testing.T) {
	w := newWorld(t)
	server := func(b *bus.Bus, name string) (stop func()) {
		o := bus.PartitionOptions{Partitions: 3, Lease: patiently, Holder: name,
			Endpoint: bus.EndpointOptions{Poll: quickly}}
		p, err := bus.NewPartitioned(b, "tallies", o, bus.Saga(tallies()))
		if err == nil {
			err = p.Install(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return w.run(p.Run)
	}
	w.start("savers", bus.EndpointOptions{}, w.saves())
	server(w.bus, "one")
	stop := server(w.newBus(bus.Options{}), "two")
	w.sendTasks(5, 20, never)
	stop()
	w.sendTasks(5, 20, func(int) int { return 1 }) // counted on
	w.await("all tallies", "5", "SELECT count(DISTINCT key)::text FROM :schema.effect WHERE n = 40")
	w.awaitEffects(200)
}

type tally struct{ N int }

func tallies() *saga.Definition {
	return saga.Define("tally", saga.Options{Store: saga.Optimistic},
		saga.StartedBy(func(m task) string { return m.Key }, func(s *tally, ctx *saga.Context, _ task) error {
			s.N++
			ctx.Send(saved{Key: ctx.Key(), N: s.N})
			return nil
		}))
}

// Messages that fail become dead letters; a job sends them again, a page of letters in each transaction.
func TestDeadLettersAndAJob(t *testing.T) {
	w := newWorld(t)
	var broken atomic.Bool
	broken.Store(true)
	w.start("tasks", bus.EndpointOptions{}, bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m task) error {
		if broken.Load() {
			return saga.Permanent(errors.New("it is broken"))
		}
		return w.effect(ctx, tx, m.Key, m.N)
	}))
	w.sendTasks(3, 20, never)
	w.await("dead letters", "60", "SELECT count(*)::text FROM :schema.dead_letter")
	w.log.explain("message dead-lettered")
	broken.Store(false)
	w.edda("dead", "retry", "--all", "--yes")
	w.awaitEffects(60)
	if left := w.text("SELECT count(*)::text FROM :schema.dead_letter"); left != "0" {
		t.Errorf("%s dead letters are left", left)
	}
}

// A pause is a row, which every process reads at its poll. The command too comes through PgBouncer.
func TestPauseAndResume(t *testing.T) {
	w := newWorld(t)
	w.start("tasks", bus.EndpointOptions{}, bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m task) error {
		return w.effect(ctx, tx, m.Key, m.N)
	}))
	w.send(task{Key: "before"})
	w.awaitEffects(1)
	w.edda("endpoint", "pause", "tasks", "--reason", "a test")
	w.awaitPaused()
	w.send(task{Key: "meanwhile"})
	w.wantSaid("tasks", "queue", "list")
	if n := w.text("SELECT count(*)::text FROM :schema.effect"); n != "1" {
		t.Errorf("%s effects during the pause, want 1", n)
	}
	w.log.explain("endpoint is paused")
	w.edda("endpoint", "resume", "tasks")
	w.awaitEffects(2)
	w.log.explain("endpoint is paused")
}

// A process of another language sends with the SQL function; what a handler sets for its transaction ends with it.
func TestHandlersSettingsEndWithTheTransaction(t *testing.T) {
	w := newWorld(t)
	w.start("tasks", bus.EndpointOptions{}, bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m task) error {
		if _, err := tx.Exec(ctx, "SET LOCAL edda_test.own = 'mine'"); err != nil {
			return err
		}
		return w.effect(ctx, tx, m.Key, m.N)
	}))
	for i := range 20 {
		sql := w.sql("SELECT count(*) FROM :schema.send('task.do', convert_to($1, 'UTF8'))")
		if _, err := w.pool.Exec(t.Context(), sql, fmt.Sprintf(`{"Key":"sql","N":%d}`, i)); err != nil {
			t.Fatal(err)
		}
	}
	w.awaitEffects(20)
	shared.Lock()
	defer shared.Unlock()
	inEachSession(t, w.bouncer.DSN(), func(ctx context.Context, tx pgx.Tx) {
		var left string
		if err := tx.QueryRow(ctx, "SELECT coalesce(current_setting('edda_test.own', true), '')").Scan(
			&left); err != nil || left != "" {
			t.Errorf("%q is left of a handler's setting, %v", left, err)
		}
	})
}
