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

// LimitInfo is a snapshot of one limit in the whole cluster, by the database's clock.
type LimitInfo struct {
	Name     string        // of the endpoint, or "named/" and the name of a limit of package limit
	Limit    int           // maximum number of batches, handlers of a leased endpoint, or functions at the same time
	Held     int           // how many run now, including Draining
	Draining int           // how many still run above a lowered limit; no others follow them
	Waiting  int           // processes of a leased endpoint, or callers of package limit, that wait for a slot
	Oldest   time.Time     // when the first of them began to wait; zero if Waiting is 0
	Waited   time.Duration // how long it has waited
	Declared int           // the limit that a program declared last; 0 if no program has declared one
	Operated bool          // an operator has set Limit, so declarations of programs change nothing until Reset
}

// Limits limits, over all processes together, how many batches or handlers of an endpoint, or functions of package
// limit, run at the same time.
type Limits struct{ o *Operator }

// Limits returns the methods for limits.
func (o *Operator) Limits() Limits { return Limits{o} }

// Get reads the limit of that name. It returns ErrNoLimit if the limit does not exist.
func (l Limits) Get(ctx context.Context, name string) (LimitInfo, error) {
	info, err := l.o.limits.Get(ctx, l.o.pool, name)
	if err != nil {
		return LimitInfo{}, pgerr.Explain(err)
	}
	return limitInfo(info), nil
}

// List reads all limits, in the order of their names. Endpoints without a limit are not listed.
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

// Set sets a limit for all processes together to n, 1 to 10,000: the number of batches of an endpoint, of handlers of
// a leased endpoint, or of slots of a limit of package limit. It may be called at any time. A higher limit takes
// effect at once. A lower one ends no work: nothing new begins until fewer than n run. For an endpoint that is not
// leased, Set returns when the batches above the new limit have ended. An endpoint that had no limit obeys its first
// one within two seconds. A limit cannot be removed, only raised to a large number. A later deploy with a different
// number does not change n: see Reset.
//
// Set returns an error if n is out of range, ErrNotInstalled if the endpoint does not exist, ErrNoLimit if no program
// has used a limit of package limit with that name, and the error of ctx if that ends.
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

// Reset undoes Set: the limit is again the number that the program has declared, by EndpointOptions.ClusterConcurrency
// or by a call of package limit, and follows later declarations. If that lowers the limit, Reset waits as Set does.
//
// Reset returns ErrNoLimit if no program has declared a limit, ErrNotInstalled if the endpoint does not exist, and
// the error of ctx if that ends.
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
		return fmt.Errorf("%w: no program has declared one with EndpointOptions.ClusterConcurrency, or with calls "+
			"under a named limit, so it stays at %d", ErrNoLimit, info.Limit)
	}
	return l.change(ctx, func(tx pgx.Tx) error { return l.o.limits.Reset(ctx, tx, name) })
}

// change sets a limit. The SQL function writes the audit entry, because it can also be called directly.
func (l Limits) change(ctx context.Context, set func(tx pgx.Tx) error) error {
	return pgerr.Explain(pgx.BeginTxFunc(ctx, l.o.pool, pg.ReadCommitted, func(tx pgx.Tx) error {
		if err := l.o.audit.Tell(ctx, tx); err != nil {
			return err
		}
		return set(tx)
	}))
}
