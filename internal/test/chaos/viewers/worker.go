package viewers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The messages.
type (
	place   struct{ N int }
	charge  struct{ N int }
	charged struct{ N int }
	note    struct{ N int }
)

func (place) Kind() string   { return "viewers.place" }
func (charge) Kind() string  { return "viewers.charge" }
func (charged) Kind() string { return "viewers.charged" }
func (note) Kind() string    { return "viewers.note" }

// Order is the state of an order.
type Order struct {
	N    int
	Paid bool
}

// orders is the saga. One order in three is not over when it is paid.
var orders = saga.Define("order", saga.Options{},
	saga.StartedBy(func(m place) string { return keyOf(m.N) }, func(o *Order, ctx *saga.Context, m place) error {
		o.N = m.N
		ctx.Send(charge(m))
		return nil
	}),
	saga.OnReply(func(o *Order, ctx *saga.Context, _ charged) error {
		if o.Paid = true; o.N%3 != 0 {
			ctx.Complete()
		}
		return nil
	}),
)

func keyOf(n int) string { return fmt.Sprintf("%06d", n) }

// The endpoints. Nobody runs later, so its messages wait.
const (
	ordering = "orders"
	paying   = "payments"
	later    = "later"
)

// What an order dies of: the first as long as the fault is there, the second for ever.
func faulty(n int) bool   { return n%5 == 1 }
func hopeless(n int) bool { return n%50 == 2 }

// task is what a process of the scenario is to do.
type task struct {
	Serve string // the address at which it serves the pages
	Jobs  bool   // it runs and undoes jobs
}

func work(ctx context.Context, lw *lab.Worker) error {
	t := task{}
	if err := lw.Read(&t); err != nil {
		return err
	}
	switch {
	case t.Serve != "":
		return serve(ctx, lw, t.Serve)
	case t.Jobs:
		return runJobs(ctx, lw)
	}
	return lw.Serve(ctx, func(b *bus.Bus, pool *pgxpool.Pool) ([]edda.Runner, error) {
		o := bus.EndpointOptions{Poll: 200 * time.Millisecond, History: history.Options{Level: history.States}}
		o.Concurrency, o.BatchMax = 1, 10
		selling, err := bus.NewEndpoint(b, ordering, o, bus.Saga(orders))
		if err != nil {
			return nil, err
		}
		money, err := bus.NewEndpoint(b, paying, o, bus.HandleTx(pay))
		return []edda.Runner{selling, money}, err
	})
}

// slow is how long it takes to charge an order that could not be charged before.
const slow = 20 * time.Millisecond

func pay(ctx *bus.Context, tx pgx.Tx, m charge) error {
	var fault bool
	if err := tx.QueryRow(ctx, sql.Get("faulty")).Scan(&fault); err != nil {
		return err
	}
	if !fault && faulty(m.N) { // so that a job is undone before all of its letters were handled
		if err := run.Sleep(ctx, slow); err != nil {
			return err
		}
	}
	if hopeless(m.N) {
		return saga.Permanent(errors.New("this card does not exist"))
	}
	if fault && faulty(m.N) {
		return saga.Permanent(fmt.Errorf("the bank refuses order %d", m.N))
	}
	if _, err := tx.Exec(ctx, sql.Get("effect"), m.N); err != nil {
		return err
	}
	ctx.Reply(charged(m))
	return nil
}

// serve serves the pages until ctx ends.
func serve(ctx context.Context, lw *lab.Worker, address string) error {
	pool, err := lw.Pool(ctx, "")
	if err != nil {
		return err
	}
	defer pool.Close()
	ui, err := eddaui.New(pool, eddaui.Options{ //nolint:contextcheck // it connects when the first page is read
		Sagas: []*saga.Definition{orders}, Log: lab.Log(slog.LevelError),
		Authorize: func(*http.Request) (eddaui.Actor, error) {
			return eddaui.Actor{Name: "chaos", Permissions: eddaui.View | eddaui.Bodies}, nil
		},
	})
	if err != nil {
		return err
	}
	defer ui.Close()
	server := &http.Server{Addr: address, Handler: ui, ReadHeaderTimeout: time.Minute}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// runJobs runs each job that is open, and undoes the one that the ledger names, until ctx ends.
func runJobs(ctx context.Context, lw *lab.Worker) error {
	pool, err := lw.Pool(ctx, "")
	if err != nil {
		return err
	}
	defer pool.Close()
	op, err := operate.New(pool, operate.Options{})
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := runJobsOnce(ctx, pool, op); err != nil && ctx.Err() == nil {
			return err
		}
		_ = run.Sleep(ctx, 100*time.Millisecond) // its end is the loop's
	}
	return nil
}

func runJobsOnce(ctx context.Context, pool *pgxpool.Pool, op *operate.Operator) error {
	jobs, err := op.DeadLetters().Jobs(ctx, 10)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		if j.State == recoverability.JobOpen {
			if _, err := op.DeadLetters().RunJob(ctx, j.Number, nil); err != nil {
				return err
			}
		}
	}
	var number int64
	switch err := pool.QueryRow(ctx, sql.Get("to_undo")).Scan(&number); {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return err
	}
	done, err := op.DeadLetters().UndoJob(ctx, number)
	if err == nil {
		_, err = pool.Exec(ctx, sql.Get("undone"), number, done.Returned, done.Handled)
	}
	return err
}
