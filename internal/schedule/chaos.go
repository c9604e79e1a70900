package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/pgdev"
	"github.com/edda-go/edda/internal/procs"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/migrations/migrate"
	"github.com/jackc/pgx/v5/pgxpool"
)

// trial is one mode with its own server of Postgres.
type trial struct {
	settings
	mode   mode
	dsn    string
	pool   *pgxpool.Pool
	clock  *clock
	random *rand.Rand
	alive  []*procs.Process
	found  verdict

	witness witness
}

func try(ctx context.Context, s settings, m mode) (verdict, error) {
	t := &trial{settings: s, mode: m, random: rand.New(rand.NewPCG(s.seed, 1))}
	options := pgdev.Options{Durable: true, Private: true, Settings: map[string]string{"max_connections": "200"}}
	if s.clock {
		c, err := newClock()
		if err != nil {
			return verdict{}, err
		}
		defer c.remove()
		t.clock, options.Env = c, c.env
	}
	postgres, err := pgdev.Start(ctx, options)
	if err != nil {
		return verdict{}, err
	}
	defer func() { _ = postgres.Stop() }()
	t.dsn = postgres.DSN()
	if t.pool, err = pgxpool.New(ctx, t.dsn); err != nil {
		return verdict{}, err
	}
	defer t.pool.Close()
	defer t.dismiss()
	t.witness = witness{t.pool, postgres}
	if err = t.prepare(ctx); err == nil {
		err = t.run(ctx)
	}
	return t.found, err
}

func (t *trial) prepare(ctx context.Context) error {
	if err := migrate.Up(ctx, t.pool, migrate.Options{}); err != nil {
		return err
	}
	if _, err := t.pool.Exec(ctx, witnessSQL("create")); err != nil {
		return err
	}
	if t.mode.WithoutUnique {
		if _, err := t.pool.Exec(ctx, `DROP INDEX edda.run_entry_idx, edda.run_due_idx`); err != nil {
			return err
		}
	}
	b, err := bus.New(t.pool, bus.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return b.InstallQueue(ctx, endpoint, tick{}.Kind())
}

// run is the chaos, and the peace after it.
func (t *trial) run(ctx context.Context) error {
	for range t.servers {
		if err := t.hire(); err != nil {
			return err
		}
	}
	for end := time.Now().Add(t.mode.length); time.Now().Before(end); {
		if err := sleep(ctx, time.Duration(500+t.random.IntN(1500))*time.Millisecond); err != nil {
			return err
		}
		if err := t.strike(ctx); err != nil {
			return err
		}
	}
	if t.clock != nil {
		if err := t.clock.settle(ctx); err != nil {
			return err
		}
	}
	horizon, err := t.found.catchUp(ctx, t.witness)
	if err != nil {
		return err
	}
	return t.found.judge(ctx, t.witness, horizon)
}

// strike does one of the four things, the clock's twice as often as the others.
func (t *trial) strike(ctx context.Context) error {
	n := t.random.IntN(len(t.alive))
	switch what := t.random.IntN(5); {
	case what == 0:
		t.found.kills++
		t.alive[n].Kill()
		t.alive = append(t.alive[:n], t.alive[n+1:]...)
		return t.hire()
	case what == 1:
		t.found.stops++
		t.alive[n].Freeze()
		if err := sleep(ctx, ttl+time.Duration(t.random.IntN(2000))*time.Millisecond); err != nil {
			return err
		}
		t.alive[n].Thaw()
		return nil
	case what == 2 || t.clock == nil:
		return t.terminate(ctx)
	default:
		t.found.jumps++
		return t.clock.jump(time.Duration(t.random.IntN(20)-10) * time.Second)
	}
}

// terminate ends the session that evaluates. An evaluation is short: it looks for one for a while.
func (t *trial) terminate(ctx context.Context) error {
	name := fnv.New64a()
	name.Write([]byte("edda evaluate edda"))
	key := int64(name.Sum64()) //nolint:gosec // the bits are the key
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		ended := 0
		if err := t.witness.ask(ctx, witnessSQL("lock_holder"), []any{key}, &ended); err != nil {
			return err
		}
		if ended > 0 {
			t.found.locks++
			return nil
		}
	}
	return nil
}

func (t *trial) hire() error {
	s, err := server{DSN: t.dsn, Manifests: t.manifests, Mode: t.mode}.start()
	if err == nil {
		t.alive = append(t.alive, s)
	}
	return err
}

func (t *trial) dismiss() {
	for _, s := range t.alive {
		s.Kill()
	}
}

// clock is the database's, as libfaketime shows it.
type clock struct {
	file    string
	env     []string
	offset  time.Duration
	highest time.Duration
}

func newClock() (*clock, error) {
	found, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err != nil || len(found) == 0 {
		return nil, fmt.Errorf("libfaketime is not installed: apt-get install libfaketime, or leave the clock " +
			"alone with -clock=false")
	}
	f, err := os.CreateTemp("", "edda-clock")
	if err != nil {
		return nil, err
	}
	c := &clock{file: f.Name()}
	c.env = []string{"LD_PRELOAD=" + found[0], "FAKETIME_TIMESTAMP_FILE=" + c.file, "FAKETIME_NO_CACHE=1",
		"FAKETIME_DISABLE_SHM=1", "DONT_FAKE_MONOTONIC=1"}
	if err := f.Chmod(0o644); err != nil { // Postgres runs as somebody else
		return nil, err
	}
	return c, c.set(0)
}

func (c *clock) remove() { _ = os.Remove(c.file) }

func (c *clock) set(offset time.Duration) error {
	c.offset, c.highest = offset, max(c.highest, offset)
	next := c.file + ".next"
	if err := os.WriteFile(next, fmt.Appendf(nil, "%+d\n", int(offset.Seconds())), 0o644); err != nil {
		return err
	}
	return os.Rename(next, c.file)
}

func (c *clock) jump(by time.Duration) error { return c.set(c.offset + by) }

// settle goes to where the clock has been at most, so that everything that was ever due is due again.
func (c *clock) settle(ctx context.Context) error {
	if err := c.set(c.highest); err != nil {
		return err
	}
	return sleep(ctx, time.Second)
}

func sleep(ctx context.Context, d time.Duration) error { return run.Sleep(ctx, d) }
