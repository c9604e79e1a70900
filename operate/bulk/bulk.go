package bulk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/audit"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/operate/instances"
	"github.com/edda-go/edda/operate/messages"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Operator acts on many instances of one schema. It is safe for concurrent use.
type Operator struct {
	pool      *pg.Pool
	sagas     *persistence.Store
	audit     *audit.Store
	instances *instances.Operator
	messages  *messages.Operator
	unmasked  bool
}

// Options configure an Operator. Every zero is a default.
type Options struct {
	Schema string // "" is "edda"
	// Redact returns the part of a state that the audit, the history and an export may have; nil omits only secrets.
	Redact func(saga string, state []byte) []byte
	// Unmasked keeps and exports a state even if it is unknown which parts are secret, see instances.Options.
	Unmasked bool
}

// New makes an Operator over pool. It does no I/O. It returns an error if the schema's name is invalid.
func New(pool *pgxpool.Pool, o Options) (*Operator, error) {
	one, err := instances.New(pool, instances.Options(o))
	if err != nil {
		return nil, fmt.Errorf("new operator of many instances: %w", err)
	}
	post, err := messages.New(pool, o.Schema)
	if err != nil {
		return nil, fmt.Errorf("new operator of many instances: %w", err)
	}
	schema, err := pg.ParseSchema(o.Schema)
	if err != nil {
		return nil, fmt.Errorf("new operator of many instances: %w", err)
	}
	return &Operator{pg.Committed(pool), persistence.New(schema), audit.Of(schema), one, post, o.Unmasked}, nil
}

// Filter selects living instances of one saga.
type Filter struct {
	Saga   string
	Prefix string    // of the keys; "" selects all
	After  string    // only keys after this one, to continue an interrupted call
	Until  time.Time // only instances that began before, by the database's clock; zero is the time of the call
}

var errNoSaga = errors.New("the name of the saga is missing")

// CountLimit is the maximum of Look.Count.
const CountLimit = 10_000

// mostShown is the number of instances that Look shows.
const mostShown = 10

// Look describes the instances that a Filter selects.
type Look struct {
	Count  int64
	Capped bool                 // there may be more
	First  []persistence.Listed // the first ten, without their states
	Until  time.Time            // the filter's, or the time of the call: use it in the filter of later calls
}

// Look counts the instances that a filter selects, up to CountLimit, and lists the first ten.
func (o *Operator) Look(ctx context.Context, f Filter) (l Look, err error) {
	f, err = o.settled(ctx, f)
	l.Until = f.Until
	if err == nil {
		err = o.each(ctx, f, func(string) {}, func(i persistence.Listed) error {
			if len(l.First) < mostShown {
				l.First = append(l.First, i)
			}
			if l.Count++; l.Count == CountLimit {
				l.Capped = true
				return errEnough
			}
			return nil
		})
	}
	if err != nil {
		return Look{}, fmt.Errorf("look at instances of %.80s: %w", f.Saga, err)
	}
	return l, nil
}

// errEnough ends a walk without an error.
var errEnough = errors.New("it is enough")

// settled returns the filter with Until set.
func (o *Operator) settled(ctx context.Context, f Filter) (Filter, error) {
	if f.Saga == "" {
		return f, errNoSaga
	}
	if !f.Until.IsZero() {
		return f, nil
	}
	if err := o.pool.QueryRow(ctx, "select clock_timestamp()").Scan(&f.Until); err != nil {
		return f, pgerr.Explain(err)
	}
	f.Until = f.Until.UTC()
	return f, nil
}

// each calls do for each instance that lives and has not completed, one page of the list at a time. It calls skip
// with the keys of the other instances.
func (o *Operator) each(ctx context.Context, f Filter, skip func(string), do func(persistence.Listed) error) error {
	for {
		page, err := o.sagas.List(ctx, o.pool, persistence.ListOptions{Saga: f.Saga, KeyPrefix: f.Prefix,
			AfterSaga: f.Saga, AfterKey: f.After, Limit: persistence.MaxLimit})
		if err != nil {
			return pgerr.Explain(err)
		}
		for _, l := range page {
			f.After = l.Instance.Key
			if !l.Started.Before(f.Until) || !l.Instance.RememberedUntil().IsZero() {
				skip(l.Instance.Key)
				continue
			}
			if err := do(l); errors.Is(err, errEnough) {
				return nil
			} else if err != nil {
				return err
			}
		}
		if len(page) < persistence.MaxLimit {
			return nil
		}
	}
}

// Done is the result of an operation on many instances.
type Done struct {
	Done  int64
	Gone  int64  // had ended before their turn
	Kept  int64  // are unchanged, because their rows cannot be read
	Error string // the error of the last instance in Kept
	Last  string // all selected instances up to this key are done; "" if no instance was reached
}

// raceWait is how long a call waits before it repeats a transaction that lost against a concurrent one.
const raceWait = 20 * time.Millisecond

// all calls one for each instance, and counts the results.
func (o *Operator) all(
	ctx context.Context, f Filter, progress func(Done), one func(saga.Instance) error,
) (Done, error) {
	done := Done{}
	f, err := o.settled(ctx, f)
	if err == nil {
		err = o.each(ctx, f, func(key string) { done.Last = key }, func(l persistence.Listed) error {
			err := one(l.Instance)
			for pgerr.ClassOf(err) == pgerr.Race {
				if err = run.Sleep(ctx, run.Jitter(raceWait)); err == nil {
					err = one(l.Instance)
				}
			}
			if err = done.count(err); err != nil {
				return err
			}
			if done.Last = l.Instance.Key; progress != nil {
				progress(done)
			}
			return nil
		})
	}
	return done, err
}

// count counts the result of one instance. It returns an error if that is not about the instance.
func (d *Done) count(err error) error {
	switch {
	case err == nil:
		d.Done++
	case errors.Is(err, instances.ErrNotFound), errors.Is(err, instances.ErrRemembered),
		errors.Is(err, messages.ErrNotFound):
		d.Gone++
	case errors.Is(err, instances.ErrFaulty):
		d.Kept++
		d.Error = err.Error()
	default:
		return err
	}
	return nil
}
