package operate

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/store/audit"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// InstanceFilter selects living instances of one saga: those that Instances.List returns for the saga and the prefix,
// in the order of their keys, if they began before Until.
type InstanceFilter struct {
	Saga   string
	Prefix string    // of the keys; "" selects all
	After  string    // only keys after this one, to continue an interrupted call
	Until  time.Time // only instances that began before, by the database's clock; zero is the time of the call
}

// ManyOptions are the options of EndAll, SendAll and Export. Every zero is a default.
type ManyOptions struct {
	Reason     string           // "" is the reason of the context, see WithReason
	Definition *saga.Definition // marks the secrets of states; nil is unknown
	Job        saga.ID          // of SendAll, a UUID of version 7: repeat it to continue a call; zero is a new job
	Max        int64            // of Export: if there are more instances, it returns ErrTooMany at once; 0 is no limit
	Progress   func(Progress)   // if it is not nil, EndAll and SendAll call it after each instance
}

// Progress is the result of an operation on many instances.
type Progress struct {
	Done  int64
	Gone  int64  // had ended before their turn
	Kept  int64  // are unchanged, because their rows cannot be read
	Error string // the error of the last instance in Kept
	Last  string // all selected instances up to this key are done; "" if no instance was reached
}

// ErrTooMany means that a filter selects more instances than ManyOptions.Max.
var ErrTooMany = errors.New("there are more instances than are exported at once")

var errNoSaga = errors.New("the name of the saga is missing")

const (
	mostCounted = 10_000 // the maximum of InstancePreview.Count
	mostShown   = 10     // instances that Preview returns
)

// InstancePreview describes the instances that an InstanceFilter selects.
type InstancePreview struct {
	Count  int64                // at most 10,000
	Capped bool                 // there may be more
	First  []persistence.Listed // the first ten, without their states
	Until  time.Time            // the filter's, or the time of the call: use it in the filter of later calls
}

// Preview counts the instances that a filter selects, and lists the first ten.
func (i Instances) Preview(ctx context.Context, f InstanceFilter) (p InstancePreview, err error) {
	f, err = i.settled(ctx, f)
	p.Until = f.Until
	if err == nil {
		err = i.each(ctx, f, func(string) {}, func(l persistence.Listed) error {
			if len(p.First) < mostShown {
				p.First = append(p.First, l)
			}
			if p.Count++; p.Count == mostCounted {
				p.Capped = true
				return errEnough
			}
			return nil
		})
	}
	if err != nil {
		return InstancePreview{}, fmt.Errorf("select instances of %.80s: %w", f.Saga, err)
	}
	return p, nil
}

// EndAll ends the selected instances as End does, each in its own transaction and with its audit entry, so it locks one
// instance at a time. Instances that begin later are not part of it. If an instance has ended before its turn, it is
// counted as gone, even if its key has started again. If the row of an instance cannot be read, the instance is
// unchanged and counted as kept. EndAll continues with the other instances.
//
// Completed transactions stay committed: if EndAll returns an error, the Progress has the instances until then. To
// continue, repeat the call with the same filter, and with Progress.Last as InstanceFilter.After or from the beginning:
// ended instances are not found again. No row describes the whole operation.
func (i Instances) EndAll(ctx context.Context, f InstanceFilter, o ManyOptions) (Progress, error) {
	done, err := i.all(ctx, f, o.Progress, func(one saga.Instance) error {
		_, err := i.End(ctx, Target{Saga: one.Saga, Key: one.Key, ID: one.ID,
			Reason: o.Reason, Definition: o.Definition})
		return err
	})
	if err != nil {
		err = fmt.Errorf("end instances of %.80s: %w", f.Saga, err)
	}
	return done, err
}

// SendAll sends a message to the selected instances as Messages.Send does to one; its ID, Saga, Key and Instance are
// ignored. An instance receives the message of a ManyOptions.Job once, however often it is sent within seven days.
// Otherwise SendAll is like EndAll.
func (i Instances) SendAll(
	ctx context.Context, f InstanceFilter, m OutgoingMessage, o ManyOptions,
) (Progress, error) {
	if o.Job.IsZero() {
		o.Job = saga.ID(uuid.Must(uuid.NewV7()))
	}
	if m.Reason == "" {
		m.Reason = o.Reason
	}
	done, err := i.all(ctx, f, o.Progress, func(one saga.Instance) error {
		m.ID, m.Saga, m.Key, m.Instance = messageID(o.Job, one.ID), one.Saga, one.Key, one.ID
		_, _, err := i.o.Messages().Send(ctx, m)
		return err
	})
	if err != nil {
		err = fmt.Errorf("send to instances of %.80s: %w", f.Saga, err)
	}
	return done, err
}

// messageID returns the id of a job's message to an instance: the time of the job, and a hash of both ids.
func messageID(job, instance saga.ID) (id saga.ID) {
	sum := sha256.Sum256(append(job[:], instance[:]...))
	copy(id[:], sum[:])
	copy(id[:6], job[:6])
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80 // version 7
	return id
}

// Export calls do with each selected instance and its state without its secrets, as Public returns it. If it is
// unknown which parts of a state are secret, the state is nil, unless Options.Unmasked. One audit entry with the actor
// and the filter is written before the first instance is read. Instances that end before their turn are left out.
// Export returns ErrTooMany if the filter selects more than ManyOptions.Max.
func (i Instances) Export(
	ctx context.Context, f InstanceFilter, o ManyOptions, do func(persistence.Listed) error,
) (Progress, error) {
	done, err := i.export(ctx, f, o, do)
	if err != nil {
		err = fmt.Errorf("export instances of %.80s: %w", f.Saga, err)
	}
	return done, err
}

func (i Instances) export(
	ctx context.Context, f InstanceFilter, o ManyOptions, do func(persistence.Listed) error,
) (Progress, error) {
	look, err := i.Preview(ctx, f)
	if err != nil {
		return Progress{}, err
	}
	if o.Max > 0 && look.Count > o.Max {
		return Progress{}, fmt.Errorf("%w: want at most %d", ErrTooMany, o.Max)
	}
	f.Until = look.Until
	if err := i.recordExport(ctx, f, o, look); err != nil {
		return Progress{}, err
	}
	return i.all(ctx, f, nil, func(one saga.Instance) error {
		l, err := i.Public(ctx, one.Saga, one.Key, o.Definition)
		if err == nil && l.Instance.ID != one.ID {
			err = ErrNoInstance
		}
		if err == nil {
			err = do(l)
		}
		return err
	})
}

// recordExport writes the audit entry of an export.
func (i Instances) recordExport(ctx context.Context, f InstanceFilter, o ManyOptions, p InstancePreview) error {
	what := map[string]any{"instances": p.Count, "until": f.Until.Format(time.RFC3339Nano)}
	if f.Prefix != "" {
		what["prefix"] = f.Prefix
	}
	if f.After != "" {
		what["after"] = f.After
	}
	if p.Capped {
		what["capped"] = true
	}
	if i.o.repair.Unmasked {
		what["unmasked"] = true
	}
	c := audit.Change{Verb: "saga.export", Target: f.Saga, Reason: o.Reason, After: what}
	return i.o.inAudit(ctx, &c, func(pgx.Tx) error { return nil })
}

// errEnough ends a walk without an error.
var errEnough = errors.New("limit reached")

// settled returns the filter with Until set.
func (i Instances) settled(ctx context.Context, f InstanceFilter) (InstanceFilter, error) {
	if f.Saga == "" {
		return f, errNoSaga
	}
	if !f.Until.IsZero() {
		return f, nil
	}
	if err := i.o.pool.QueryRow(ctx, "select clock_timestamp()").Scan(&f.Until); err != nil {
		return f, pgerr.Explain(err)
	}
	f.Until = f.Until.UTC()
	return f, nil
}

// each calls do for each instance that lives and has not completed, one page of the list at a time. It calls skip
// with the keys of the other instances.
func (i Instances) each(
	ctx context.Context, f InstanceFilter, skip func(string), do func(persistence.Listed) error,
) error {
	for {
		page, err := i.List(ctx, persistence.ListOptions{Saga: f.Saga, KeyPrefix: f.Prefix,
			AfterSaga: f.Saga, AfterKey: f.After, Limit: persistence.MaxLimit})
		if err != nil {
			return err
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

// raceWait is how long a call waits before it repeats a transaction that lost against a concurrent one.
const raceWait = 20 * time.Millisecond

// all calls do for each instance, and counts the results.
func (i Instances) all(
	ctx context.Context, f InstanceFilter, progress func(Progress), do func(saga.Instance) error,
) (Progress, error) {
	done := Progress{}
	f, err := i.settled(ctx, f)
	if err == nil {
		err = i.each(ctx, f, func(key string) { done.Last = key }, func(l persistence.Listed) error {
			err := do(l.Instance)
			for pgerr.ClassOf(err) == pgerr.Race {
				if err = run.Sleep(ctx, run.Jitter(raceWait)); err == nil {
					err = do(l.Instance)
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
func (p *Progress) count(err error) error {
	switch {
	case err == nil:
		p.Done++
	case errors.Is(err, ErrNoInstance), errors.Is(err, ErrRemembered):
		p.Gone++
	case errors.Is(err, ErrFaulty):
		p.Kept++
		p.Error = err.Error()
	default:
		return err
	}
	return nil
}
