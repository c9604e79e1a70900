package viewers

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
	"github.com/jackc/pgx/v5"
)

//go:embed viewers.sql
var sqlText string

var sql = lab.SQL(sqlText)

// Scenario is the package's.
var Scenario = lab.Scenario{
	Name: "viewers", About: "workers, the server of the pages and the runner of jobs, while fifty pages are open",
	Full:  lab.Size{Workers: 2, For: 2 * time.Minute},
	Quick: lab.Size{Workers: 2, For: 15 * time.Second},
	SQL:   sql, Rules: []string{"untrue", "stale", "vanished", "undone though handled", "mute", "lost", "doubled"},
	Run: viewers, Work: work,
}

const (
	chosenInstances = 10
	notes           = 137 // that wait in the queue of later
	undoOrders      = 600
	restWithin      = 2 * time.Minute
	tick            = 50 * time.Millisecond
)

// trial is one run of the scenario. Two of its places are no workers: one serves the pages, and one runs jobs.
type trial struct {
	*lab.Lab
	op     *operate.Operator
	base   string // the address of the pages
	open   []*open
	chosen []string // keys of living instances

	orders int // that were placed
}

func viewers(ctx context.Context, s lab.Settings) error {
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	r := &trial{base: "http://" + address}
	return s.Try(ctx, lab.Trial{
		Prepare: func(ctx context.Context, l *lab.Lab) error {
			r.Lab = l
			return r.install(ctx)
		},
		Places: s.Workers + 2,
		Task: func(place int) any {
			return task{Serve: map[bool]string{true: address}[place == r.server()], Jobs: place == r.runner()}
		},
		Break: r.run, Judge: r.judge,
	})
}

func freeAddress(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func (r *trial) install(ctx context.Context) (err error) {
	if r.op, err = operate.New(r.Pool, operate.Options{}); err != nil {
		return err
	}
	for endpoint, kinds := range map[string][]string{
		ordering: {place{}.Kind()}, paying: {charge{}.Kind()}, later: {note{}.Kind()},
	} {
		if err := r.op.Queues().Install(ctx, endpoint, kinds...); err != nil {
			return err
		}
	}
	for n := range notes {
		if _, err := r.Bus.Send(ctx, note{n}); err != nil {
			return err
		}
	}
	return nil
}

// run is all phases. The processes run meanwhile, and are there at the end.
func (r *trial) run(ctx context.Context, _ *lab.Lab) error {
	if err := r.choose(ctx); err != nil {
		return err
	}
	looking := run.NewGroup(ctx)
	for _, o := range r.open {
		looking.Go(o.look)
	}
	defer func() {
		looking.Stop()
		_ = looking.Wait() // a viewer does not fail
	}()
	if err := inOrder(ctx, r.rage, r.canary, r.undo, r.rest); err != nil {
		return err
	}
	cuts := 0
	for _, o := range r.open {
		cuts += o.cuts()
	}
	r.Fact("open", len(r.open))
	r.Fact("cut", cuts)
	r.Expect(cuts > 0, "void", "no stream was cut: the experiment proves nothing")
	return nil
}

// inOrder takes steps one after another, until one fails.
func inOrder(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// choose places some orders that live on, and opens the pages.
func (r *trial) choose(ctx context.Context) error {
	if err := r.placeSome(3 * chosenInstances)(ctx); err != nil {
		return err
	}
	for n := range chosenInstances {
		r.chosen = append(r.chosen, keyOf(3*(n+1))) // they live on when they are paid
	}
	err := lab.Await(ctx, restWithin, "the first orders", func() (bool, error) {
		var n int
		err := r.Row(ctx, sql.Get("living"), []any{r.chosen}, &n)
		return n == len(r.chosen), err
	})
	if err != nil {
		return err
	}
	add := func(n int, path string) {
		for range n {
			r.open = append(r.open, &open{path: path, base: r.base, fragments: map[string]string{}})
		}
	}
	for _, key := range r.chosen {
		add(1, "/sagas/order/"+key)
	}
	add(10, "/now")
	add(10, "/dead")
	add(10, "/endpoints/"+paying)
	add(5, "/endpoints/"+later)
	add(5, "/sagas/order")
	return nil
}

// place places the next order, in the transaction in which the ledger learns of it.
func (r *trial) place(ctx context.Context) error {
	r.orders++
	n := r.orders
	err := pgx.BeginFunc(ctx, r.Pool, func(tx pgx.Tx) error {
		if _, err := r.Bus.SendTx(ctx, tx, place{n}); err != nil || hopeless(n) {
			return err
		}
		_, err := tx.Exec(ctx, sql.Get("told"), n)
		return err
	})
	if err != nil {
		return fmt.Errorf("place order %d: %w", n, err)
	}
	return nil
}

// rage places orders, and kills a worker or the server of the pages every now and then.
func (r *trial) rage(ctx context.Context) error {
	strike := time.Now().Add(2 * time.Second)
	for end := time.Now().Add(r.For); time.Now().Before(end); {
		if err := r.place(ctx); err != nil {
			return err
		}
		if time.Now().After(strike) {
			if err := r.strike(ctx, r.Random.IntN(r.Workers+1)); err != nil {
				return err
			}
			strike = time.Now().Add(r.Between(time.Second, 4*time.Second))
		}
		if err := run.Sleep(ctx, tick); err != nil {
			return err
		}
	}
	return nil
}

// The places of processes that are no workers.
func (r *trial) server() int { return r.Workers }
func (r *trial) runner() int { return r.Workers + 1 }

// strike kills the process of a place, if it lives.
func (r *trial) strike(ctx context.Context, place int) error {
	if p := r.Crew.At(place); p != nil {
		return r.Kill(ctx, p)
	}
	return nil
}

// placeSome places the next orders.
func (r *trial) placeSome(n int) func(context.Context) error {
	return func(ctx context.Context) error {
		return inOrder(ctx, slices.Repeat([]func(context.Context) error{r.place}, n)...)
	}
}

func (r *trial) exec(name string, args ...any) func(context.Context) error {
	return func(ctx context.Context) error { return r.Exec(ctx, sql.Get(name), args...) }
}

func (r *trial) pause(ctx context.Context) error {
	return r.op.Endpoints().Pause(ctx, paying, "letters are sent, and taken back")
}

func (r *trial) resume(ctx context.Context) error { return r.op.Endpoints().Resume(ctx, paying) }

// retry makes a job that retries the letters of the payments.
func (r *trial) retry(ctx context.Context, rate float64, plan ...int) (number int64, err error) {
	return r.op.DeadLetters().NewJob(ctx, recoverability.Job{
		Action: recoverability.JobRetry, Filter: recoverability.LetterFilter{Endpoint: paying}, Rate: rate, Plan: plan,
	})
}

// canary mends the fault, and has a job in stages retry all letters, while its process is killed.
func (r *trial) canary(ctx context.Context) error {
	if err := inOrder(ctx, r.settled, r.exec("set_fault", false)); err != nil {
		return err
	}
	number, err := r.retry(ctx, 20, 1, 2, 5, 20)
	if err != nil {
		return err
	}
	stopped := 0
	err = r.whileKilling(ctx, "the end of the canary", func() (bool, error) {
		j, err := r.op.DeadLetters().Job(ctx, number)
		if err != nil || j.State != recoverability.JobPaused {
			return j.State == recoverability.JobDone, err
		}
		stopped++
		r.Expect(j.Error != "" && j.Mark > 0, "mute", "job %d is paused without a reason", number)
		return false, r.op.DeadLetters().ResumeJob(ctx, number)
	})
	r.Fact("stopped", stopped)
	return err
}

// whileKilling kills the runner of jobs, and the server of the pages, until the answer is yes.
func (r *trial) whileKilling(ctx context.Context, what string, ask func() (bool, error)) error {
	strike := time.Now().Add(300 * time.Millisecond)
	return lab.Await(ctx, restWithin, what, func() (bool, error) {
		if yes, err := ask(); yes || err != nil {
			return yes, err
		}
		if time.Now().Before(strike) {
			return false, nil
		}
		strike = time.Now().Add(r.Between(300*time.Millisecond, 2*time.Second))
		place := r.runner()
		if r.Random.IntN(4) == 0 {
			place = r.server()
		}
		return false, r.strike(ctx, place)
	})
}

// undo has a job retry letters to an endpoint that is paused. Some of them are handled, and the others are taken back.
func (r *trial) undo(ctx context.Context) error {
	err := inOrder(ctx, r.settled, r.exec("mark"), r.exec("set_fault", true), r.placeSome(undoOrders), r.settled,
		r.pause, r.exec("keep_letters"), r.exec("set_fault", false))
	if err != nil {
		return err
	}
	number, err := r.retry(ctx, 0)
	if err != nil {
		return err
	}
	return inOrder(ctx,
		func(ctx context.Context) error {
			return r.whileKilling(ctx, "the end of the job", func() (bool, error) {
				j, err := r.op.DeadLetters().Job(ctx, number)
				return j.State == recoverability.JobDone, err
			})
		},
		r.resume,
		func(ctx context.Context) error {
			return lab.Await(ctx, restWithin, "the first of the letters", r.some(ctx, "effects"))
		},
		r.exec("undo", number), r.pause,
		func(ctx context.Context) error {
			return r.whileKilling(ctx, "the end of the undoing", r.some(ctx, "was_undone", number))
		},
		r.resume)
}

// some asks whether a statement counts anything.
func (r *trial) some(ctx context.Context, name string, args ...any) func() (bool, error) {
	return func() (bool, error) {
		n := 0
		err := r.Row(ctx, sql.Get(name), args, &n)
		return n > 0, err
	}
}

// settled waits until nothing but the notes waits.
func (r *trial) settled(ctx context.Context) error {
	return lab.Await(ctx, restWithin, "the end of all orders", func() (bool, error) {
		left, err := r.Left(ctx)
		return left == notes, err
	})
}

// rest judges while all processes run. Then the letters that were taken back are sent, so that each order is paid.
func (r *trial) rest(ctx context.Context) error {
	if err := r.settled(ctx); err != nil {
		return err
	}
	var back, handled int
	if err := r.Row(ctx, sql.Get("outcome_of_undo"), nil, &back, &handled); err != nil {
		return err
	}
	r.Fact("taken_back", back)
	r.Fact("handled_before", handled)
	r.Expect(back > 0 && handled > 0, "void", "of the letters %d were taken back and %d handled: nothing is proved",
		back, handled)
	if err := r.Check(ctx, r.Pool, "check_undo"); err != nil {
		return err
	}
	if err := r.compare(ctx); err != nil {
		return err
	}
	if _, err := r.retry(ctx, 0); err != nil {
		return err
	}
	return lab.Await(ctx, restWithin, "the end of the last job", func() (bool, error) {
		jobs, err := r.op.DeadLetters().Jobs(ctx, 1)
		if err != nil || len(jobs) == 0 || jobs[0].State != recoverability.JobDone {
			return false, err
		}
		left, err := r.Left(ctx)
		return left == notes, err
	})
}

// judge counts effects. The processes have ended.
func (r *trial) judge(ctx context.Context, _ *lab.Lab) error {
	r.Fact("orders", r.orders)
	return r.CheckEffects(ctx, r.Pool)
}
