package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/limit"
	"github.com/edda-go/edda/internal/pg"
)

// MostLimit is the largest limit there can be.
const MostLimit = limit.Most

// LimitInfo is how the limit of one endpoint stands in the whole cluster, by the database's clock. It is a snapshot.
type LimitInfo struct {
	Endpoint string
	Limit    int           // how much may run at once: batches, or handlers of a leased endpoint
	InForce  int           // Limit, or 0 while it is paused
	Held     int           // what runs now, Draining included
	Draining int           // runs on after the limit was lowered or paused, and nothing follows it
	Waiting  int           // processes of a leased endpoint that wait for their turn; those of others do not queue up
	Oldest   time.Time     // when the first of them came; zero when nobody waits
	Waited   time.Duration // how long that one has waited
	Paused   time.Time     // since when; zero when it is not
	Reason   string        // of the pause
}

// Limit tells how the limit of an endpoint stands. ErrNoLimit when it has none.
func (o *Operator) Limit(ctx context.Context, endpoint string) (LimitInfo, error) {
	info, err := o.limits.Get(ctx, o.pool, endpoint)
	if err != nil {
		return LimitInfo{}, limitError(err)
	}
	return limitInfo(info), nil
}

// Limits tells how every limit stands, in the order of the endpoints' names. Endpoints without one are not among them.
func (o *Operator) Limits(ctx context.Context) ([]LimitInfo, error) {
	list, err := o.limits.List(ctx, o.pool, "")
	if err != nil {
		return nil, pg.Explain(err)
	}
	infos := make([]LimitInfo, 0, len(list))
	for _, i := range list {
		infos = append(infos, limitInfo(i))
	}
	return infos, nil
}

func limitInfo(i limit.Info) LimitInfo {
	info := LimitInfo{
		Endpoint: i.Name, Limit: i.Slots, InForce: i.InForce, Held: i.Held, Draining: i.Draining, Waiting: i.Waiting,
		Oldest: i.Oldest, Paused: i.Paused, Reason: i.Reason,
	}
	if !i.Oldest.IsZero() {
		info.Waited = i.Now.Sub(i.Oldest)
	}
	return info
}

// SetLimit lets n batches of an endpoint run at once, or n handlers of a leased one, in all processes together: 1 to
// 10,000. It may be called while they run. Raising takes effect at once. Lowering ends nothing that runs: nothing new
// begins until less than n is left. For an endpoint that is not leased it returns when so many batches as were too many
// have ended. An endpoint that had no limit heeds its first within a second or two of that. There is no way back to
// none, only to a large number.
//
// Errors: n is out of bounds; ErrNotInstalled: there is no such endpoint; ctx has ended.
func (o *Operator) SetLimit(ctx context.Context, endpoint string, n int) error {
	if q, err := o.find(ctx, endpoint); err != nil {
		return fmt.Errorf("set the limit of endpoint %.80q: %w", endpoint, err)
	} else if q.Relay {
		return fmt.Errorf("set the limit of endpoint %.80q: %w", endpoint, errRelay)
	}
	if err := o.limits.Set(ctx, o.pool.Writing(), endpoint, n); err != nil {
		return pg.Explain(err)
	}
	return nil
}

// PauseLimit lets nothing of an endpoint begin until ResumeLimit; what runs goes on. reason is for those who look.
// ErrNoLimit when the endpoint has no limit.
func (o *Operator) PauseLimit(ctx context.Context, endpoint, reason string) error {
	return limitError(o.limits.Pause(ctx, o.pool.Writing(), endpoint, reason))
}

// ResumeLimit ends a pause; the limit is what it was, or what it was set to meanwhile. ErrNoLimit when the endpoint has
// no limit.
func (o *Operator) ResumeLimit(ctx context.Context, endpoint string) error {
	if err := o.limits.Resume(ctx, o.pool.Writing(), endpoint); err != nil {
		return limitError(err)
	}
	return nil
}

func limitError(err error) error {
	if errors.Is(err, limit.ErrNoLimit) {
		return fmt.Errorf("%w: %w", ErrNoLimit, err)
	}
	return pg.Explain(err)
}
