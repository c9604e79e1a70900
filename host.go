package edda

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed host.sql
var connectionsAllowed string

// Runner is a member of a Host: a *bus.Endpoint, a *bus.Partitioned, or a loop of your own. Run blocks until ctx
// ends, and returns nil after a clean end.
type Runner interface {
	Run(ctx context.Context) error
}

// RunnerFunc is a function that implements Runner.
type RunnerFunc func(ctx context.Context) error

// Run calls f.
func (f RunnerFunc) Run(ctx context.Context) error { return f(ctx) }

// Methods that a Runner may have besides Run. An endpoint has all of them.
type (
	checker interface {
		Check(ctx context.Context) error
	}
	installer interface {
		Install(ctx context.Context) error
	}
	connector interface {
		Connections() (pool *pgxpool.Pool, more int)
	}
	named interface{ Name() string }
)

// Host runs endpoints and other Runners as one.
type Host struct {
	runners []Runner
	life    life
}

// NewHost returns a Host of runners. It does no I/O. It returns an error that lists the faults: a runner is nil, is
// given twice, or has another's name.
func NewHost(runners ...Runner) (*Host, error) {
	var faults []error
	seen := map[string]bool{}
	for i, r := range runners {
		if r == nil {
			faults = append(faults, fmt.Errorf("runner %d is nil", i+1))
			continue
		}
		if name := nameOf(r, i); seen[name] {
			faults = append(faults, fmt.Errorf("%s is given twice: give it once, and raise its Concurrency", name))
		} else {
			seen[name] = true
		}
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("new host: %w", errors.Join(faults...))
	}
	return &Host{runners: runners}, nil
}

// Install installs every runner with an Install method: the queues of the endpoints, and their subscriptions. It
// needs the right to create tables, and does nothing for a runner that is installed already. It ends at the first
// error. See bus.Endpoint.Install.
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

// Check makes every check that needs the database and returns all faults at once: the faults of each endpoint (see
// bus.Endpoint.Check), and whether the pool and the workers may open more connections than the server allows.
func (h *Host) Check(ctx context.Context) error {
	var faults []error
	for _, r := range h.runners {
		if c, ok := r.(checker); ok {
			faults = append(faults, c.Check(ctx))
		}
	}
	return errors.Join(append(faults, h.checkConnections(ctx))...)
}

// checkConnections compares the connections of this process with the server's limit, so that a host that may need more
// fails early.
func (h *Host) checkConnections(ctx context.Context) error {
	var faults []error
	for pool, d := range h.demands() {
		faults = append(faults, d.check(ctx, pool))
	}
	return errors.Join(faults...)
}

// demand is the number of connections that runners open in addition to those of their pool.
type demand struct {
	more  int
	terms []term
}

// term is the number of connections that one runner opens.
type term struct {
	more int
	of   string
}

const termsShown = 5 // the other terms are summed up; a host may have a thousand endpoints

// String names the runners that open the most connections, and the sum of the others.
func (d *demand) String() string {
	slices.SortStableFunc(d.terms, func(a, b term) int { return cmp.Compare(b.more, a.more) })
	texts, rest := []string{}, 0
	for n, t := range d.terms {
		if n < termsShown {
			texts = append(texts, fmt.Sprintf("%d of %s", t.more, t.of))
		} else {
			rest += t.more
		}
	}
	if others := len(d.terms) - len(texts); others > 0 {
		texts = append(texts, fmt.Sprintf("%d of others (%d in number)", rest, others))
	}
	return strings.Join(texts, ", ")
}

// demands returns, per pool, how many connections the runners open in addition to the pool's own.
func (h *Host) demands() map[*pgxpool.Pool]*demand {
	all := map[*pgxpool.Pool]*demand{}
	for i, r := range h.runners {
		c, ok := r.(connector)
		if !ok {
			continue
		}
		pool, more := c.Connections()
		if more == 0 {
			continue
		}
		if all[pool] == nil {
			all[pool] = &demand{}
		}
		all[pool].more += more
		all[pool].terms = append(all[pool].terms, term{more, nameOf(r, i)})
	}
	return all
}

func (d *demand) check(ctx context.Context, pool *pgxpool.Pool) error {
	var allowed int
	if err := pool.QueryRow(ctx, connectionsAllowed).Scan(&allowed); err != nil {
		return fmt.Errorf("read the server's limit of connections: %w", err)
	}
	ofPool := int(pool.Config().MaxConns)
	if needed := ofPool + d.more + 1; needed > allowed {
		return fmt.Errorf("the host may open %d connections (%d of the pool, %s, and 1 that listens), and the server "+
			"allows %d: lower Concurrency or the pool's MaxConns (pool_max_conns), or raise max_connections",
			needed, ofPool, d, allowed)
	}
	return nil
}

// Run calls Check, and then runs all runners until ctx ends or one of them fails. Then no endpoint takes more messages,
// handlers have Drain to finish, and Run returns after the last runner. If a runner returns nil, the others continue.
//
// Run returns nil after a clean end, the faults of Check, or the error of the runner that failed first, which is
// bus.ErrDrain if handlers had to be cancelled. A call while Run is running returns an error at once, and changes
// neither the runners nor Health. After it has returned, Run may be called again.
func (h *Host) Run(ctx context.Context) error {
	ended, err := h.life.begin()
	if err != nil {
		return err
	}
	defer ended()
	if err := h.Check(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		h.life.fail()
		return err
	}
	h.life.turn(Running)
	over, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() { h.stopping(over) })()
	group := run.NewGroup(ctx)
	for i, r := range h.runners {
		group.Go(h.life.note(i, r.Run))
	}
	return group.Wait()
}

const sayAfter = time.Second // a Run that ends sooner does not log its end

// stopping logs the runners that have not ended, unless over ends first. Endpoints log their handlers themselves.
func (h *Host) stopping(over context.Context) {
	h.life.turn(Stopping)
	if run.Sleep(over, sayAfter) != nil {
		return
	}
	var names []string
	for i, r := range h.runners {
		if h.life.of(i, "").State == Running {
			names = append(names, nameOf(r, i))
		}
	}
	slog.Default().Info("edda: the host waits for its runners", "runners", names)
}

func nameOf(r Runner, i int) string {
	if n, ok := r.(named); ok {
		return fmt.Sprintf("%q", n.Name())
	}
	return fmt.Sprintf("runner %d", i+1)
}
