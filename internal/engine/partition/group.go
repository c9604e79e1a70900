package partition

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/store/audit"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/jackc/pgx/v5"
)

//go:embed partition.sql
var statements string

// Most is the largest number of partitions of an endpoint.
const Most = 256

// Group is one partitioned endpoint in the database: its queues, its leases and its number of partitions. Safe for
// concurrent use.
type Group struct {
	GroupOptions
	sql pg.Statements
}

// GroupOptions are the options of a Group. All are required.
type GroupOptions struct {
	Endpoint   string
	Partitions int
	Pool       *pg.Pool
	Schema     pg.Schema
	Routes     *queue.Router
	Leases     *lease.Store
	Log        *slog.Logger
}

// NewGroup returns a Group. It does no I/O.
func NewGroup(o GroupOptions) *Group {
	return &Group{GroupOptions: o, sql: pg.Load(statements, o.Schema)}
}

// Lease returns the name of a lease of the endpoint. All names begin with the same prefix. An endpoint's name has no
// slash.
func (g *Group) Lease(what string) string { return "partition/" + g.Endpoint + "/" + what }

// ErrOtherNumber means that a different number of partitions is stored: with the new number, keys would move away
// from their waiting messages.
var ErrOtherNumber = errors.New("a different number of partitions is stored")

// Install creates the queues of the partitions, and stores their number. It fails if a different number is stored.
func (g *Group) Install(ctx context.Context) error {
	for n := range g.Partitions {
		if _, err := g.Routes.Create(ctx, queue.PartitionName(g.Endpoint, n)); err != nil {
			return err
		}
	}
	return g.storeNumber(ctx)
}

// Check finds the queues of the partitions, creates them if create is set, and compares their number with the stored
// one.
func (g *Group) Check(ctx context.Context, create bool) error {
	for n := range g.Partitions {
		if _, err := g.Routes.Find(ctx, queue.PartitionName(g.Endpoint, n), create); err != nil {
			return err
		}
	}
	if create {
		if err := g.storeNumber(ctx); err != nil && pgerr.ClassOf(err) != pgerr.Denied {
			return err
		}
	}
	return g.checkNumber(ctx)
}

// storeNumber stores the number of partitions, unless a number is stored.
func (g *Group) storeNumber(ctx context.Context) error {
	if err := g.checkNumber(ctx); !errors.Is(err, queue.ErrNotInstalled) {
		return err
	}
	if _, err := g.writeNumber(ctx, g.Pool, g.Partitions); err != nil {
		return err
	}
	return g.checkNumber(ctx)
}

// writeNumber stores a number of partitions if there is no number yet, and reports whether it has.
func (g *Group) writeNumber(ctx context.Context, db audit.Execer, n int) (stored bool, err error) {
	tag, err := db.Exec(ctx, g.sql.Get("set_partitions"), g.Endpoint, strconv.Itoa(n))
	if err != nil {
		return false, fmt.Errorf("store the number of partitions: %w", pgerr.Explain(err))
	}
	return tag.RowsAffected() == 1, nil
}

// checkNumber compares the number of partitions with the stored number.
func (g *Group) checkNumber(ctx context.Context) error {
	stored, err := g.Routes.PartitionNumber(ctx, g.Endpoint)
	switch {
	case err != nil:
		return err
	case stored == "":
		return fmt.Errorf("%w: let the owner of the schema install it once, with Partitioned.Install",
			queue.ErrNotInstalled)
	case stored != strconv.Itoa(g.Partitions):
		return fmt.Errorf("%w: %s, and the options have %d: set PartitionOptions.Partitions to %[2]s, or stop all "+
			"processes of the endpoint and run \"edda endpoint partitions %[4]s %[3]d\"",
			ErrOtherNumber, stored, g.Partitions, g.Endpoint)
	}
	return nil
}

// agree is checkNumber for a process that already has a lease of the endpoint: first it waits for a Renumber that may
// have read the leases before. The next Renumber finds the lease.
func (g *Group) agree(ctx context.Context) error {
	if _, err := g.Pool.Exec(ctx, g.sql.Get("share_number"), g.Endpoint); err != nil {
		return fmt.Errorf("wait for a change of the number of partitions: %w", pgerr.Explain(err))
	}
	return g.checkNumber(ctx)
}

const (
	collapseRows  = 1000            // rows in one transaction
	collapseEvery = 2 * time.Second // how often partitions of a former, larger number are emptied
)

// Renumber gives the endpoint the group's number of partitions, which may be 0: it creates their queues, moves all
// messages that wait in partitions back to the endpoint's own queue, and stores the number in one transaction with
// the writes of also. A process that starts at the same time either has a lease when Renumber checks, which then
// returns ErrRunning, or waits in agree and finds the new number.
func (g *Group) Renumber(ctx context.Context, also func(tx pgx.Tx) error) (messages int, err error) {
	for n := range g.Partitions {
		if _, err := g.Routes.Create(ctx, queue.PartitionName(g.Endpoint, n)); err != nil {
			return 0, err
		}
	}
	if messages, err = g.collapse(ctx, g.Pool); err != nil {
		return messages, err
	}
	return messages, pgx.BeginTxFunc(ctx, g.Pool, pg.ReadCommitted, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, g.sql.Get("forget_partitions"), g.Endpoint); err != nil {
			return fmt.Errorf("delete the number of partitions: %w", pgerr.Explain(err))
		}
		if _, err := tx.Exec(ctx, g.sql.Get("lock_number"), g.Endpoint); err != nil {
			return fmt.Errorf("lock the number of partitions: %w", pgerr.Explain(err))
		}
		late, err := g.collapse(ctx, tx) // messages of a process that has started and ended since the first check
		if messages += late; err != nil {
			return err
		}
		if g.Partitions > 0 {
			if stored, err := g.writeNumber(ctx, tx, g.Partitions); err != nil {
				return err
			} else if !stored {
				return errors.New("a different number of partitions was stored at the same time: try again")
			}
		}
		return also(tx)
	})
}

// collapse moves all messages that wait in the partitions back to the endpoint's own queue, while no process runs.
func (g *Group) collapse(ctx context.Context, db lease.DB) (messages int, err error) {
	if err := g.checkAlone(ctx, db); err != nil {
		return 0, err
	}
	known, err := g.Routes.Reload(ctx, g.Pool)
	if err != nil {
		return 0, err
	}
	for _, q := range known.Partitions(g.Endpoint, 0) {
		for n := collapseRows; n == collapseRows; messages += n {
			if n, err = collapseSome(ctx, db, q, known.Endpoints[g.Endpoint]); err != nil {
				return messages, err
			}
		}
	}
	return messages, nil
}

// ErrRunning means that a process holds a lease of the endpoint.
var ErrRunning = errors.New("the endpoint is running")

// checkAlone returns an error while a process runs the endpoint.
func (g *Group) checkAlone(ctx context.Context, db lease.DB) error {
	all, err := g.Leases.Under(ctx, db, g.Lease(""))
	if err != nil {
		return pgerr.Explain(err)
	}
	for _, l := range all {
		if l.Held() {
			return fmt.Errorf("%w: a process still holds the lease %s: stop all processes of the endpoint, or "+
				"wait %v if it crashed", ErrRunning, l.Name, l.Left.Round(time.Second))
		}
	}
	return nil
}

func collapseSome(ctx context.Context, db lease.DB, from, to *queue.Queue) (n int, err error) {
	if err := db.QueryRow(ctx, from.To(to, "collapse"), collapseRows).Scan(&n); err != nil {
		return 0, fmt.Errorf("move messages from %s to %s: %w", from.Endpoint, to.Endpoint, pgerr.Explain(err))
	}
	return n, nil
}

// CollapseLate moves messages that still reach partitions of a former, larger number, until ctx ends: they are
// answers to requests that sagas had sent from there. Each move is guarded by the term t of the distributor.
func (g *Group) CollapseLate(ctx context.Context, t lease.Term) error {
	for run.Sleep(ctx, run.Jitter(collapseEvery)) == nil {
		known, err := g.Routes.Get(ctx, g.Pool)
		if err == nil {
			for _, q := range known.Partitions(g.Endpoint, g.Partitions) {
				err = g.collapseGuarded(ctx, t, q, known.Endpoints[g.Endpoint])
			}
		}
		if err != nil && ctx.Err() == nil { // next time
			g.Log.Debug("edda: late messages of former partitions were not moved", "endpoint", g.Endpoint, "error", err)
		}
	}
	return nil
}

func (g *Group) collapseGuarded(ctx context.Context, t lease.Term, from, to *queue.Queue) error {
	return pgx.BeginFunc(ctx, g.Pool, func(tx pgx.Tx) error {
		if err := g.Leases.Guard(ctx, tx, t); err != nil {
			return err
		}
		_, err := collapseSome(ctx, tx, from, to)
		return err
	})
}
