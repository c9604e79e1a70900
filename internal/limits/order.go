package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/procs"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/migrations/migrate"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed order.sql
var orderText string

func orderSQL(name string) string { return namedSQL(orderText, "ledger", name) }

// ordering is the size of the scenario of order.
type ordering struct {
	keys, messages int // messages of each key
	kills, freezes int
}

const (
	turns     = "turns"
	turnsDone = "turns-done"
	turnPoll  = 200 * time.Millisecond
	idleMost  = lease + turnPoll + time.Second // the last for a machine with few processors
	drainMost = 5 * time.Minute
)

// order lets processes handle messages in Ordered: Strict while they are killed and frozen, and judges from their
// ledger.
func order(ctx context.Context, s settings, o ordering, pool *pgxpool.Pool, dsn string) error {
	b, err := prepareOrder(ctx, pool, o)
	if err != nil {
		return err
	}
	places := procs.NewWorkers(s.workers, func(place, life int) procs.Job {
		w := worker{Name: fmt.Sprintf("worker-%d-%d", place, life), DSN: dsn, Order: true}
		return procs.Job{Name: w.Name, Variable: workerVariable, Task: w, Stderr: os.Stderr}
	}, procs.Options{})
	all := run.NewGroup(ctx)
	all.Go(places.Run)
	v := orderVerdict{}
	all.Go(func(ctx context.Context) error {
		defer all.Stop()
		began := time.Now()
		if err := strike(ctx, s, o, pool, places); err != nil {
			return err
		}
		v.chaos = time.Since(began)
		return v.settle(ctx, o, pool, b)
	})
	if err := all.Wait(); err != nil {
		return err
	}
	fmt.Println(v.line(s, o))
	if v.broken(o) {
		return errBroken
	}
	return nil
}

// prepareOrder makes the schema, the ledger and the two queues, and sends all messages: the backlog is longer than what
// all processes together have in hand.
func prepareOrder(ctx context.Context, pool *pgxpool.Pool, o ordering) (*bus.Bus, error) {
	if err := migrate.Up(ctx, pool, migrate.Options{}); err != nil {
		return nil, err
	}
	if _, err := pool.Exec(ctx, orderSQL("create")); err != nil {
		return nil, err
	}
	b, err := bus.New(pool, bus.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if err := b.InstallQueue(ctx, turns, turn{}.Kind()); err != nil {
		return nil, err
	}
	if err := b.InstallQueue(ctx, turnsDone, turnDone{}.Kind()); err != nil {
		return nil, err
	}
	for n := range o.messages {
		some := make([]bus.RawMessage, o.keys)
		for k := range some {
			some[k].Name = turn{}.Kind()
			if some[k].Body, err = json.Marshal(turn{Key: "key-" + strconv.Itoa(k), N: n}); err != nil {
				return nil, err
			}
		}
		if err := b.SendRaw(ctx, turns, some...); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// strike kills and freezes processes in random order.
func strike(ctx context.Context, s settings, o ordering, pool *pgxpool.Pool, places *procs.Workers) error {
	random := rand.New(rand.NewPCG(s.seed, 2))
	kills, freezes := o.kills, o.freezes
	for kills+freezes > 0 && ctx.Err() == nil {
		sleep(ctx, time.Duration(500+random.IntN(1500))*time.Millisecond)
		p := places.Any(random)
		if p == nil {
			continue // it is being replaced
		}
		var err error
		if random.IntN(kills+freezes) < kills {
			kills--
			p.Kill()
			_, err = pool.Exec(ctx, `INSERT INTO ledger.blow (worker, kind) VALUES ($1, 'kill')`, p.Name)
		} else {
			freezes--
			err = freeze(ctx, pool, p, lease+time.Duration(random.IntN(1500))*time.Millisecond)
		}
		if err != nil {
			return err
		}
		fmt.Printf("  %d kills and %d freezes are left\n", kills, freezes)
	}
	return ctx.Err()
}

// freeze stops a process for longer than its leases.
func freeze(ctx context.Context, pool *pgxpool.Pool, p *procs.Process, d time.Duration) error {
	p.Freeze()
	defer p.Thaw()
	if _, err := pool.Exec(ctx, `INSERT INTO ledger.blow (worker, kind) VALUES ($1, 'freeze')`, p.Name); err != nil {
		return err
	}
	sleep(ctx, 200*time.Millisecond) // what it had sent before is done by then
	if _, err := pool.Exec(ctx, orderSQL("expiries"), p.Name, p.Pid()); err != nil {
		return err
	}
	sleep(ctx, d)
	return nil
}

// orderVerdict is what the ledger says.
type orderVerdict struct {
	overtakes, together, late, lost, doubled int
	runs, failed, zombies, kills, freezes    int

	idle, chaos time.Duration
}

var errRanOut = errors.New("the messages ran out before the last blow: send more")

// settle lets the rest run, which takes no time any more, and judges.
func (v *orderVerdict) settle(ctx context.Context, o ordering, pool *pgxpool.Pool, b *bus.Bus) error {
	var over time.Time
	if err := pool.QueryRow(ctx, `UPDATE ledger.quick SET yes = true RETURNING clock_timestamp()`).Scan(
		&over); err != nil {
		return err
	}
	if left, err := inQueues(ctx, b); err != nil || left == 0 {
		return errors.Join(err, errRanOut)
	}
	err := await(ctx, drainMost, func() (bool, error) {
		left, err := inQueues(ctx, b)
		return left == 0, err
	})
	if err != nil {
		return fmt.Errorf("wait until every message is handled: %w", err)
	}
	return pool.QueryRow(ctx, orderSQL("verdict"), o.keys, o.messages, over).Scan(&v.overtakes, &v.together, &v.late,
		&v.lost, &v.doubled,
		&v.runs, &v.failed, &v.zombies, &v.kills, &v.freezes, &v.idle)
}

// inQueues counts what is left anywhere.
func inQueues(ctx context.Context, b *bus.Bus) (left int64, err error) {
	queues, err := b.Queues(ctx)
	for _, q := range queues {
		left += q.Ready + q.Delayed + q.Claimed + q.Parked
	}
	return left, err
}

func (v *orderVerdict) line(s settings, o ordering) string {
	return fmt.Sprintf("order: seconds=%.0f workers=%d keys=%d messages=%d runs=%d failed=%d zombies=%d kills=%d "+
		"freezes=%d overtakes=%d together=%d late=%d lost=%d doubled=%d idle=%.1fs",
		v.chaos.Seconds(), s.workers, o.keys, o.keys*o.messages, v.runs, v.failed, v.zombies, v.kills, v.freezes,
		v.overtakes, v.together, v.late, v.lost, v.doubled, v.idle.Seconds())
}

func (v *orderVerdict) broken(o ordering) bool {
	return v.overtakes+v.together+v.late+v.lost+v.doubled > 0 || v.idle > idleMost || v.kills != o.kills ||
		v.freezes != o.freezes
}

// namedSQL is a statement of a file that names its own schema.
func namedSQL(text, schema, name string) string {
	parsed, err := pg.ParseSchema(schema)
	if err != nil {
		panic(err)
	}
	statements, err := pg.Load(text, parsed)
	if err != nil {
		panic(err)
	}
	return statements.Get(name)
}
