//go:build bouncer

package bouncer_test

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5"
)

// Two servers evaluate and dispatch; each due time has one run, and each run one effect.
func TestScheduler(t *testing.T) {
	w := newWorld(t)
	w.start("tasks", bus.EndpointOptions{}, bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m task) error {
		return w.effect(ctx, tx, ctx.Info().Fire.Run.String(), m.N)
	}))
	var manifests []scheduler.Manifest
	for i := range 5 {
		manifests = append(manifests, scheduler.Manifest{Name: fmt.Sprint("every-", i),
			When: scheduler.Every(time.Second), Message: task{Key: "run", N: i}})
	}
	for range 2 {
		o := scheduler.Options{Owner: "test", PollOnly: true, Logger: slog.New(w.log),
			Evaluate: 200 * time.Millisecond, Dispatch: 100 * time.Millisecond}
		s, err := scheduler.New(w.newBus(bus.Options{}), o, manifests...)
		if err == nil {
			err = s.Check(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		w.run(s.Run)
	}
	w.await("15 runs", "true", "SELECT (count(*) >= 15)::text FROM :schema.run WHERE state = 'succeeded'")
	w.await("an effect of each", "true", `SELECT ((SELECT count(*) FROM :schema.run WHERE state = 'succeeded')
		= (SELECT count(DISTINCT key) FROM :schema.effect) AND (SELECT count(DISTINCT key) = count(*)
		FROM :schema.effect))::text`)
	if twice := w.text("SELECT count(*)::text FROM (SELECT FROM :schema.run WHERE origin = 'schedule' GROUP BY " +
		"manifest_id, due HAVING count(*) > 1) x"); twice != "0" {
		t.Errorf("%s due times have two runs", twice)
	}
}

// Three replicas of a Singleton, of which each gives up after some sweeps: one at a time works, and its writes are
// fenced.
func TestSingleton(t *testing.T) {
	w := newWorld(t)
	var now, peak, swept atomic.Int32
	for range 3 {
		own := atomic.Int32{}
		sweep := func(term scheduler.Term) error {
			if n := now.Add(1); n > peak.Load() {
				peak.Store(n)
			}
			defer now.Add(-1)
			swept.Add(1)
			err := term.InTx(term, func(tx pgx.Tx) error {
				return w.effect(term, tx, fmt.Sprint(term.Epoch()),
					int(swept.Load()))
			})
			if own.Add(1)%5 == 0 {
				w.edda("lease", "resign", "singleton/sweeper")
			}
			return err
		}
		o := scheduler.SingletonOptions{Schema: w.schema, PollOnly: true, Logger: slog.New(w.log),
			Lease: 3 * time.Second,
			Renew: 300 * time.Millisecond, Acquire: 300 * time.Millisecond}
		s, err := scheduler.NewSingleton(w.pool, "sweeper", scheduler.Sweep(100*time.Millisecond, sweep), o)
		if err != nil {
			t.Fatal(err)
		}
		w.run(s.Run)
	}
	w.await("three terms", "true", "SELECT (count(DISTINCT key) >= 3)::text FROM :schema.effect")
	w.log.explain("a sweep took longer") // those that resign by the command do
	if peak.Load() != 1 {
		t.Errorf("%d replicas swept at once", peak.Load())
	}
}
