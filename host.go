package edda

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/edda-go/edda/internal/run"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed host.sql
var connectionsAllowed string

// Runner is what a Host runs: a *bus.Endpoint, a *bus.Partitioned, or a loop of your own. Run blocks, works until ctx
// ends, and returns nil when it then ended in order.
type Runner interface {
	Run(ctx context.Context) error
}

// What a Runner may have beside Run. An endpoint has all of it.
type (
	checker interface {
		Check(ctx context.Context) error
	}
	installer interface {
		Install(ctx context.Context) error
	}
	connector interface{ Connections() int }
	named     interface{ Name() string }
)

// Host runs endpoints, and what else a program has to run, as one.
type Host struct {
	pool    *pgxpool.Pool
	runners []Runner
}

// NewHost collects what runs together over pool. It does no I/O. It fails when the pool or a runner is nil, and when
// the same runner, or two with one name, are given.
func NewHost(pool *pgxpool.Pool, runners ...Runner) (*Host, error) {
	var faults []error
	if pool == nil {
		faults = append(faults, errors.New("the pool is nil"))
	}
	seen := map[string]bool{}
	for i, r := range runners {
		if r == nil {
			faults = append(faults, fmt.Errorf("runner %d is nil", i+1))
			continue
		}
		if name := nameOf(r, i); seen[name] {
			faults = append(faults, fmt.Errorf("%s is given twice: raise its Concurrency instead", name))
		} else {
			seen[name] = true
		}
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("new host: %w", errors.Join(faults...))
	}
	return &Host{pool: pool, runners: runners}, nil
}

// Install installs every runner that can be installed: the queues of the endpoints, and what they subscribe to. It
// needs the right to create tables, and does nothing where it was done before. See bus.Endpoint.Install.
func (h *Host) Install(ctx context.Context) error {
	for _, r := range h.runners {
		if i, ok := r.(installer); ok {
			if err := i.Install(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// Check makes every check that needs the database and reports all that is wrong at once: those of each endpoint
// (see bus.Endpoint.Check), and that the server allows as many connections as the pool and the workers will open.
func (h *Host) Check(ctx context.Context) error {
	var faults []error
	for _, r := range h.runners {
		if c, ok := r.(checker); ok {
			faults = append(faults, c.Check(ctx))
		}
	}
	return errors.Join(append(faults, h.checkConnections(ctx))...)
}

// checkConnections compares what this process will open with what the server allows, so that a host which can
// never have all its workers says so at its start and not by workers that wait.
func (h *Host) checkConnections(ctx context.Context) error {
	needed := int(h.pool.Config().MaxConns)
	terms := []string{fmt.Sprintf("%d of the pool", needed)}
	listens := false
	for i, r := range h.runners {
		c, ok := r.(connector)
		if !ok || c.Connections() == 0 {
			continue
		}
		needed += c.Connections()
		terms = append(terms, fmt.Sprintf("%d of %s", c.Connections(), nameOf(r, i)))
		listens = true
	}
	if !listens {
		return nil
	}
	var allowed int
	if err := h.pool.QueryRow(ctx, connectionsAllowed).Scan(&allowed); err != nil {
		return fmt.Errorf("read how many connections the server allows: %w", err)
	}
	if needed++; needed > allowed {
		return fmt.Errorf("the host may open %d connections (%s, and 1 that listens), and the server allows %d: "+
			"lower Concurrency or the pool's MaxConns (pool_max_conns), or raise max_connections",
			needed, strings.Join(terms, ", "), allowed)
	}
	return nil
}

// Run checks everything (see Check), and then runs all runners until ctx ends or one of them fails. Then every endpoint
// takes nothing more, lets its handlers finish for its Drain, and Run returns when the last runner has. A runner that
// returns nil leaves the others running.
//
// It returns nil after a clean end, the faults of Check before anything has run, and otherwise the error of the runner
// that failed first; bus.ErrDrain when handlers had to be cancelled.
func (h *Host) Run(ctx context.Context) error {
	if err := h.Check(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	group := run.NewGroup(ctx)
	for _, r := range h.runners {
		group.Go(r.Run)
	}
	return group.Wait()
}

func nameOf(r Runner, i int) string {
	if n, ok := r.(named); ok {
		return fmt.Sprintf("%q", n.Name())
	}
	return fmt.Sprintf("runner %d", i+1)
}
