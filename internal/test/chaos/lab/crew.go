package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/procs"
	"github.com/jackc/pgx/v5"
)

// Crew is the workers of a trial, and what is done to them. A killed worker is replaced at once.
type Crew struct {
	*procs.Workers
	lab *Lab

	mu   sync.Mutex // guards calm
	calm bool       // SayCalm was called
}

// newCrew starts no worker yet. The ledger will have the start of each.
func newCrew(ctx context.Context, l *Lab, t Trial) *Crew {
	if t.Places == 0 {
		t.Places = l.Workers
	}
	c := &Crew{lab: l}
	c.Workers = procs.NewWorkers(t.Places, func(place, life int) procs.Job {
		dsn := l.Server.DSN()
		if t.DSN != nil {
			dsn = t.DSN(place)
		}
		return l.Job(fmt.Sprintf("%s-%d-%d", l.Scenario.Name, place+1, life), dsn, t.Task(place))
	}, procs.Options{MayEnd: t.MayEnd, Started: func(p *procs.Process) {
		_ = l.Record(ctx, "start", p.Name)
		_ = c.calmed(p) // it is killed, or Wait returns the error
	}})
	return c
}

// KillAny kills one of the workers.
func (c *Crew) KillAny(ctx context.Context) error {
	p, err := c.living(ctx)
	if err != nil {
		return err
	}
	return c.lab.Kill(ctx, p)
}

// FreezeAny stops one of the workers for a time between two others. It calls settled, which may be nil, once the server
// has done what the worker had sent before. A frozen worker extends nothing, so what it holds then ends with its lease.
func (c *Crew) FreezeAny(ctx context.Context, least, most time.Duration, settled func(p *procs.Process) error) error {
	p, err := c.living(ctx)
	if err != nil {
		return err
	}
	p.Freeze()
	defer p.Thaw()
	if err := c.lab.Note(ctx, Freeze, p.Name); err != nil {
		return err
	}
	const underWay = 200 * time.Millisecond
	if err := run.Sleep(ctx, underWay); err != nil {
		return err
	}
	if settled != nil {
		if err := settled(p); err != nil {
			return err
		}
	}
	return run.Sleep(ctx, max(0, c.lab.Between(least, most)-underWay))
}

// living waits for a worker that runs, and picks one at random.
func (c *Crew) living(ctx context.Context) (*procs.Process, error) {
	for {
		if p := c.Any(c.lab.Random); p != nil {
			return p, nil
		}
		if err := run.Sleep(ctx, 10*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// SayCalm writes a line to each worker, which closes its Calm: the breaking is over. A worker that starts later, in
// the place of the last one that was killed, gets the line when it starts.
func (c *Crew) SayCalm() (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calm = true
	for _, p := range c.Living() {
		err = errors.Join(err, p.WriteLine("calm"))
	}
	return err
}

// calmed writes the line of SayCalm to a new worker if SayCalm was called before. A second line changes nothing.
func (c *Crew) calmed(p *procs.Process) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.calm {
		return nil
	}
	return p.WriteLine("calm")
}

// Blow is one way to break something.
type Blow struct {
	Share  int // how often it is struck, in proportion to the others
	Strike func(ctx context.Context) error
}

// Rage strikes blows that it draws, with pauses between least and most, until the time is over.
func (c *Crew) Rage(ctx context.Context, lasting, least, most time.Duration, blows ...Blow) error {
	var all []Blow
	for _, b := range blows {
		all = append(all, slices.Repeat([]Blow{b}, b.Share)...)
	}
	for end := time.Now().Add(lasting); time.Now().Before(end); {
		if err := c.strike(ctx, least, most, all[c.lab.Random.IntN(len(all))]); err != nil {
			return err
		}
	}
	return nil
}

// StrikeAll strikes each blow as often as its share says, in random order, with pauses between least and most.
func (c *Crew) StrikeAll(ctx context.Context, least, most time.Duration, blows ...Blow) error {
	var all []Blow
	for _, b := range blows {
		all = append(all, slices.Repeat([]Blow{b}, b.Share)...)
	}
	c.lab.Random.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	for _, b := range all {
		if err := c.strike(ctx, least, most, b); err != nil {
			return err
		}
	}
	return nil
}

func (c *Crew) strike(ctx context.Context, least, most time.Duration, b Blow) error {
	if err := run.Sleep(ctx, c.lab.Between(least, most)); err != nil {
		return err
	}
	return b.Strike(ctx)
}

// Aborted is a kill that undid a transaction.
const Aborted = "aborted kill"

// batch is an open transaction of a process, as the database shows it.
type batch struct {
	Backend int
	XID     string // with its epoch
	Moved   string // when the session last began or ended to do anything
}

// A frozen process's session must stand still for some looks: on a busy machine a COMMIT may lie in the socket for a
// while before Postgres reads it.
const (
	looks    = 10
	lookWait = 10 * time.Millisecond
)

// KillOpen freezes a worker, and kills it if it has a transaction open and stays at it. Otherwise KillOpen wakes it.
// KillOpen reports whether Postgres has rolled the transaction back.
func (c *Crew) KillOpen(ctx context.Context, p *procs.Process) (inFlight bool, err error) {
	p.Freeze()
	defer p.Thaw()
	var first batch
	for n := range looks {
		b, err := c.openBatch(ctx, p)
		if err != nil || b == nil || n > 0 && *b != first {
			return false, err
		}
		first = *b
		if err := run.Sleep(ctx, lookWait); err != nil {
			return false, err
		}
	}
	if err := c.lab.Kill(ctx, p); err != nil {
		return false, err
	}
	outcome := "in progress"
	err = Await(ctx, 10*time.Second, "the end of the transaction of "+p.Name, func() (bool, error) {
		err := c.lab.Row(ctx, statements.Get("outcome"), []any{first.XID}, &outcome)
		return outcome != "in progress", err
	})
	if err == nil && outcome == "aborted" {
		return true, c.lab.Note(ctx, Aborted, p.Name)
	}
	return false, err
}

func (c *Crew) openBatch(ctx context.Context, p *procs.Process) (*batch, error) {
	rows, err := c.lab.Pool.Query(ctx, statements.Get("open_batch"), p.Name)
	if err != nil {
		return nil, fmt.Errorf("look for an open transaction of %s: %w", p.Name, err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByPos[batch])
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0], nil
}
