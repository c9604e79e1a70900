package dispatch

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

// isolated returns a pool whose transactions have this level unless they set one.
func (w *loopsWorld) isolated(level string) *pgxpool.Pool {
	w.t.Helper()
	config := pgtest.Direct(w.t, w.pool).Config()
	config.ConnConfig.RuntimeParams["default_transaction_isolation"] = level
	return w.poolOf(config)
}

func (w *loopsWorld) poolOf(config *pgxpool.Config) *pgxpool.Pool {
	w.t.Helper()
	pool, err := pgxpool.NewWithConfig(w.t.Context(), config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(pool.Close)
	return pool
}

// The runs of a strict group are counted after the wait for its lock. A transaction with one snapshot would count
// them as they were before.
func TestStrictCapHoldsWhateverTheDefaultIsolationIs(t *testing.T) {
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) { strictCapUnder(t, level) })
	}
}

func strictCapUnder(t *testing.T, level string) {
	w := loopsOpen(t)
	pool := w.isolated(level)
	w.queued("q", 2, w.group("g", 1, true, 0))
	a, b := w.schedulerOver(pool), w.schedulerOver(pool)
	ofA, err := a.dispatcher.pick(t.Context())
	if err != nil || len(ofA) != 1 {
		t.Fatalf("a picked %d, %v", len(ofA), err)
	}
	w.exec("UPDATE :schema.run SET priority = 9 WHERE id <> $1", ofA[0].id)
	ofB, err := b.dispatcher.pick(t.Context())
	if err != nil || len(ofB) != 1 || ofB[0].id == ofA[0].id {
		t.Fatalf("b picked %d, %v; want the other run", len(ofB), err)
	}
	// a holds the group's row. A third session requests a lock on the table, and b waits behind that with its
	// transaction begun.
	holding, goOn := make(chan struct{}), make(chan struct{})
	var begun atomic.Bool
	w.sender.before = func(context.Context, saga.Message, saga.Firing) error {
		if !begun.Swap(true) {
			close(holding)
			<-goOn
		}
		return nil
	}
	var beside sync.WaitGroup
	dispatch := func(s *Engine, some []candidate, want int) {
		beside.Go(func() {
			if n, err := s.dispatcher.dispatchAll(context.WithoutCancel(t.Context()), some); n != want || err != nil {
				t.Errorf("%s: a server dispatched %d, want %d; %v", level, n, want, err)
			}
		})
	}
	defer beside.Wait()
	proceed := sync.OnceFunc(func() { close(goOn) })
	defer proceed()
	const waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = to_regclass($1)"
	groups := w.schema.Render(":schema.manifest_group")
	dispatch(a, ofA, 1)
	<-holding
	beside.Go(func() { w.alter(groups) })
	w.await("the table is asked for", func() bool { return w.count(waiting, groups) == 1 })
	dispatch(b, ofB, 0)
	w.await("b waits", func() bool { return w.count(waiting, groups) == 2 })
	proceed()
	beside.Wait()
	if n := w.count("SELECT count(*) FROM :schema.run WHERE state = 'active'"); n != 1 {
		t.Errorf("%s: %d runs of a group with the strict cap 1 are active", level, n)
	}
}

// alter locks a table as a change of it does, and releases it at once.
func (w *loopsWorld) alter(table string) {
	ctx := context.WithoutCancel(w.t.Context())
	tx, err := w.owner.Begin(ctx)
	if err == nil {
		_, err = tx.Exec(ctx, "LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE")
		err = errors.Join(err, tx.Rollback(ctx))
	}
	if err != nil {
		w.t.Error(err)
	}
}
