package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/procs"
	"github.com/jackc/pgx/v5/pgxpool"
)

// force is the workers, each a process that is started again when it was killed.
type force struct {
	dsn  string
	pool *pgxpool.Pool

	mu     sync.Mutex
	alive  []*procs.Process
	number int
}

func (f *force) hire(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.number++
	m, err := worker{Name: fmt.Sprintf("worker-%d", f.number), DSN: f.dsn}.start()
	if err != nil {
		return err
	}
	f.alive = append(f.alive, m)
	_, err = f.pool.Exec(ctx, `INSERT INTO witness.worker (name) VALUES ($1)`, m.Name)
	return err
}

// blow writes down what happens to a worker. The moment is after a kill and before a stop: a run has ended by then, and
// a lease that is over so long after a stop is over.
func (f *force) blow(ctx context.Context, m *procs.Process, kind string) error {
	_, err := f.pool.Exec(ctx, `INSERT INTO witness.blow (worker, kind) VALUES ($1, $2)`, m.Name, kind)
	return err
}

func (f *force) kill(ctx context.Context, m *procs.Process) error {
	m.Kill()
	if err := f.blow(ctx, m, "kill"); err != nil {
		return err
	}
	_, err := f.pool.Exec(ctx, `UPDATE witness.worker SET until = clock_timestamp() WHERE name = $1`, m.Name)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.alive = slices.DeleteFunc(f.alive, func(other *procs.Process) bool { return other == m })
	return err
}

// stop keeps a worker from running for longer than its leases.
func (f *force) stop(ctx context.Context, m *procs.Process) error {
	m.Freeze()
	if err := f.blow(ctx, m, "stop"); err != nil {
		return err
	}
	sleep(ctx, 200*time.Millisecond) // what it had sent before is done by then
	if _, err := f.pool.Exec(ctx, witnessSQL("expiries"), m.Name); err != nil {
		return err
	}
	sleep(ctx, lease+time.Duration(rand.IntN(2000))*time.Millisecond)
	m.Thaw()
	return nil
}

// chaos lets workers work for a while, changes the limit, kills and stops them, and then lets them finish in peace.
func chaos(ctx context.Context, s settings, pool *pgxpool.Pool, b *bus.Bus, dsn string) error {
	random := rand.New(rand.NewPCG(s.seed, 1))
	f := &force{dsn: dsn, pool: pool}
	defer f.dismiss()
	if err := setLimit(ctx, pool, b, 3); err != nil {
		return err
	}
	for range s.workers {
		if err := f.hire(ctx); err != nil {
			return err
		}
	}
	end := time.Now().Add(s.length)
	nextBlow := time.Now().Add(3 * time.Second)
	for time.Now().Before(end) && ctx.Err() == nil {
		sleep(ctx, time.Duration(300+random.IntN(2500))*time.Millisecond)
		if err := setLimit(ctx, pool, b, 1+random.IntN(most)); err != nil {
			return err
		}
		if time.Now().Before(nextBlow) {
			continue
		}
		if err := f.strike(ctx, random); err != nil {
			return err
		}
		nextBlow = time.Now().Add(time.Duration(2+random.IntN(3)) * time.Second)
		fmt.Printf("  %2.0f s left\n", time.Until(end).Seconds())
	}
	return f.finish(ctx, b)
}

// strike kills a worker, or stops it, and sees to it that there are as many as before.
func (f *force) strike(ctx context.Context, random *rand.Rand) error {
	f.mu.Lock()
	m := f.alive[random.IntN(len(f.alive))]
	f.mu.Unlock()
	if random.IntN(2) == 0 {
		return f.stop(ctx, m)
	}
	if err := f.kill(ctx, m); err != nil {
		return err
	}
	return f.hire(ctx)
}

// finish lets the rest run, which takes no time any more.
func (f *force) finish(ctx context.Context, b *bus.Bus) error {
	if _, err := f.pool.Exec(ctx, `UPDATE witness.worker SET until = clock_timestamp()
		WHERE until IS NULL`); err != nil {
		return err
	}
	if _, err := f.pool.Exec(ctx, `UPDATE witness.quick SET yes = true`); err != nil {
		return err
	}
	if err := setLimit(ctx, f.pool, b, 50); err != nil {
		return err
	}
	deadline := time.Now().Add(2 * time.Minute)
	for time.Now().Before(deadline) && ctx.Err() == nil {
		queues, err := b.Queues(ctx)
		if err != nil {
			return err
		}
		left := int64(0)
		for _, q := range queues {
			left += q.Ready + q.Delayed + q.Claimed
		}
		if left == 0 {
			return nil
		}
		sleep(ctx, 200*time.Millisecond)
	}
	return fmt.Errorf("messages are left after two minutes")
}

func (f *force) dismiss() {
	for _, m := range f.alive {
		m.Kill()
	}
}

func setLimit(ctx context.Context, pool *pgxpool.Pool, b *bus.Bus, n int) error {
	var asked time.Time
	if err := pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&asked); err != nil {
		return err
	}
	if err := b.SetLimit(ctx, jobs, n); err != nil {
		return err
	}
	_, err := pool.Exec(ctx, `INSERT INTO witness.change VALUES ($1, $2, clock_timestamp())`, n, asked)
	return err
}

// dieAtDefaults kills a worker whose handlers run, and measures how long it takes until all of them run again in
// another.
func dieAtDefaults(ctx context.Context, pool *pgxpool.Pool, b *bus.Bus, dsn string) (time.Duration, error) {
	const n = 10
	first, err := worker{Name: "first", DSN: dsn, Defaults: true}.start()
	if err != nil {
		return 0, err
	}
	for i := range n {
		if _, err := b.Send(ctx, slowJob{N: i}); err != nil {
			return 0, err
		}
	}
	running := func(name string) (count int, last, now time.Time, err error) {
		err = pool.QueryRow(ctx, `SELECT count(*), coalesce(max(began), now()), clock_timestamp() FROM witness.run
			WHERE worker = $1 AND n < 0`, name).Scan(&count, &last, &now)
		return count, last, now, err
	}
	if err := await(ctx, 30*time.Second, func() (bool, error) {
		got, _, _, err := running("first")
		return got == n,
			err
	}); err != nil {
		return 0, fmt.Errorf("slow jobs begin: %w", err)
	}
	second, err := worker{Name: "second", DSN: dsn, Defaults: true}.start()
	if err != nil {
		return 0, err
	}
	defer second.Kill()
	first.Kill()
	_, _, killed, err := running("first")
	if err != nil {
		return 0, err
	}
	var last time.Time
	err = await(ctx, time.Minute, func() (bool, error) {
		got, at, _, err := running("second")
		last = at
		return got == n, err
	})
	return last.Sub(killed), err
}

func await(ctx context.Context, most time.Duration, done func() (bool, error)) error {
	for end := time.Now().Add(most); ctx.Err() == nil; sleep(ctx, 50*time.Millisecond) {
		ok, err := done()
		if err != nil || ok {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("it did not happen in %v", most)
		}
	}
	return ctx.Err()
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
