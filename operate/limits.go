package operate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/store/limit"
	"github.com/jackc/pgx/v5"
)

// MostLimit is the largest possible limit.
const MostLimit = limit.Most

// LimitInfo is a snapshot of one limit in the whole cluster, by the database's clock.
type LimitInfo struct {
	Name     string        // of the endpoint, or "named/" and the name that a program has given a limit of its own
	Limit    int           // how much may run at once: batches, handlers of a leased endpoint, or functions
	Held     int           // what runs now, Draining included
	Draining int           // runs on after the limit was lowered, and nothing follows it
	Waiting  int           // processes of a leased endpoint, or callers of package limit, that wait for their turn
	Oldest   time.Time     // when the first of them came; zero if none waits
	Waited   time.Duration // how long it has waited
	Declared int           // the last number of a program; 0 if none had one
	Operated bool          // an operator has set Limit, and what programs declare changes nothing until Reset
}

// Limits bounds how much of an endpoint, or of what programs do under a limit of their own, runs at once, in all
// processes together.
type Limits struct{ o *Operator }

// Limits returns the methods for limits.
func (o *Operator) Limits() Limits { return Limits{o} }

// Get reads the limit of that name. It returns ErrNoLimit if there is none.
func (l Limits) Get(ctx context.Context, name string) (LimitInfo, error) {
	info, err := l.o.limits.Get(ctx, l.o.pool, name)
	if err != nil {
		return LimitInfo{}, pgerr.Explain(err)
	}
	return limitInfo(info), nil
}

// List reads every limit, in the order of their names. Endpoints without a limit are not in it.
func (l Limits) List(ctx context.Context) ([]LimitInfo, error) {
	list, err := l.o.limits.List(ctx, l.o.pool, "")
	if err != nil {
		return nil, pgerr.Explain(err)
	}
	infos := make([]LimitInfo, 0, len(list))
	for _, i := range list {
		infos = append(infos, limitInfo(i))
	}
	return infos, nil
}

func limitInfo(i limit.Info) LimitInfo {
	info := LimitInfo{
		Name: i.Name, Limit: i.Slots, Held: i.Held, Draining: i.Draining, Waiting: i.Waiting,
		Oldest: i.Oldest, Declared: i.Declared, Operated: i.Operated,
	}
	if !i.Oldest.IsZero() {
		info.Waited = i.Now.Sub(i.Oldest)
	}
	return info
}

// Set lets n batches of an endpoint run at once, n handlers of a leased one, or n slots of a program's own limit be
// held, in all processes together: 1 to 10,000. Call it at any time. A higher limit takes effect at once. A lower one
// ends no work: nothing new begins until fewer than n are left. For an endpoint that is not leased, Set returns when
// the batches above the new limit have ended. An endpoint that had no limit follows its first one within a second or
// two. A limit cannot be removed, only raised to a large number. A later deploy with another number does not change n:
// see Reset.
//
// Errors: n is out of bounds; ErrNotInstalled: there is no such endpoint; ErrNoLimit: no program has used a limit of
// that name; ctx has ended.
func (l Limits) Set(ctx context.Context, name string, n int) error {
	if err := l.check(ctx, name); err != nil {
		return fmt.Errorf("set the limit of %.80q: %w", name, err)
	}
	return l.change(ctx, func(tx pgx.Tx) error { return l.o.limits.Set(ctx, tx, name, n) })
}

func (l Limits) check(ctx context.Context, name string) error {
	if strings.HasPrefix(name, limit.NamedPrefix) {
		_, err := l.Get(ctx, name)
		return err
	}
	q, err := l.o.find(ctx, name)
	if err == nil && q.Relay {
		err = errRelay
	}
	return err
}

// Reset takes back what Set has set: the limit is what the program has declared, by EndpointOptions.ClusterConcurrency
// or by a call of package limit, and follows it from then on. Lowering waits as in Set.
//
// Errors: ErrNoLimit if no program has declared one; ErrNotInstalled: there is no such endpoint; ctx has ended.
func (l Limits) Reset(ctx context.Context, name string) error {
	err := l.check(ctx, name)
	if err == nil {
		err = l.reset(ctx, name)
	}
	if err != nil {
		return fmt.Errorf("reset the limit of %.80q: %w", name, err)
	}
	return nil
}

func (l Limits) reset(ctx context.Context, name string) error {
	info, err := l.Get(ctx, name)
	if err != nil {
		return err
	}
	if info.Declared == 0 {
		return fmt.Errorf("%w: no program has declared one by EndpointOptions.ClusterConcurrency, so it stays at %d",
			ErrNoLimit, info.Limit)
	}
	return l.change(ctx, func(tx pgx.Tx) error { return l.o.limits.Reset(ctx, tx, name) })
}

// change sets a limit. The SQL function writes the entry of the audit, because others may call it too.
func (l Limits) change(ctx context.Context, set func(tx pgx.Tx) error) error {
	return pgerr.Explain(pgx.BeginTxFunc(ctx, l.o.pool, pg.ReadCommitted, func(tx pgx.Tx) error {
		if err := l.o.audit.Tell(ctx, tx); err != nil {
			return err
		}
		return set(tx)
	}))
}
