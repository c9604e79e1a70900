package bulk

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/audit"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/operate/instances"
	"github.com/edda-go/edda/operate/messages"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// End is why instances end, and their definition.
type End struct {
	Reason     string           // "" is the reason of the context, see audit.Because
	Definition *saga.Definition // marks the secrets of states; nil is unknown
}

// End ends instances as instances.Operator.End does. progress may be nil; it is called after each instance. If End
// returns an error, Done has the instances until then.
func (o *Operator) End(ctx context.Context, f Filter, e End, progress func(Done)) (Done, error) {
	done, err := o.all(ctx, f, progress, func(i saga.Instance) error {
		_, err := o.instances.End(ctx, instances.End{Saga: i.Saga, Key: i.Key, ID: i.ID,
			Reason: e.Reason, Definition: e.Definition})
		return err
	})
	if err != nil {
		err = fmt.Errorf("end instances of %.80s: %w", f.Saga, err)
	}
	return done, err
}

// Send is a message for each of many instances.
type Send struct {
	Job saga.ID // from JobID: repeat it to continue an interrupted call; zero is a new job
	// Message is sent to each instance. Its ID, Saga, Key and Instance are ignored.
	Message messages.Message
}

// JobID returns a new id for an operation that sends to many instances.
func JobID() saga.ID { return saga.ID(uuid.Must(uuid.NewV7())) }

// Send sends a message to instances as messages.Operator.Send does to one. An instance receives the message of a Job
// once, within seven days. progress may be nil; it is called after each instance. After an error, Done has the
// instances until then.
func (o *Operator) Send(ctx context.Context, f Filter, s Send, progress func(Done)) (Done, error) {
	if s.Job.IsZero() {
		s.Job = JobID()
	}
	done, err := o.all(ctx, f, progress, func(i saga.Instance) error {
		m := s.Message
		m.ID, m.Saga, m.Key, m.Instance = messageID(s.Job, i.ID), i.Saga, i.Key, i.ID
		_, err := o.messages.Send(ctx, m)
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

// Export is why instances are exported, their definition, and how many at most.
type Export struct {
	Reason     string           // "" is the reason of the context, see audit.Because
	Definition *saga.Definition // marks the secrets of states; nil is unknown
	Most       int64            // instances; if there are more, Export returns ErrTooMany at once. 0 is no limit
}

// ErrTooMany means that a filter selects more instances than Export.Most.
var ErrTooMany = errors.New("there are more instances than are exported at once")

// Export calls do with each instance and its state without its secrets: see instances.Operator.Public. If it is
// unknown which parts of a state are secret, the state is nil, unless Options.Unmasked. One audit entry with the
// actor and the filter is written before the first instance is read. Instances that end before their turn are left
// out. Export returns ErrTooMany if the filter selects more than Export.Most.
func (o *Operator) Export(ctx context.Context, f Filter, e Export, do func(persistence.Listed) error) (Done, error) {
	done, err := o.export(ctx, f, e, do)
	if err != nil {
		err = fmt.Errorf("export instances of %.80s: %w", f.Saga, err)
	}
	return done, err
}

func (o *Operator) export(ctx context.Context, f Filter, e Export, do func(persistence.Listed) error) (Done, error) {
	look, err := o.Look(ctx, f)
	if err != nil {
		return Done{}, err
	}
	if e.Most > 0 && look.Count > e.Most {
		return Done{}, fmt.Errorf("%w: want at most %d", ErrTooMany, e.Most)
	}
	f.Until = look.Until
	if err := o.tell(ctx, f, e, look); err != nil {
		return Done{}, err
	}
	return o.all(ctx, f, nil, func(i saga.Instance) error {
		l, err := o.instances.Public(ctx, i.Saga, i.Key, e.Definition)
		if err == nil && l.Instance.ID != i.ID {
			err = instances.ErrNotFound
		}
		if err == nil {
			err = do(l)
		}
		return err
	})
}

// tell writes the audit entry of an export.
func (o *Operator) tell(ctx context.Context, f Filter, e Export, l Look) error {
	what := map[string]any{"instances": l.Count, "until": f.Until.Format(time.RFC3339Nano)}
	if f.Prefix != "" {
		what["prefix"] = f.Prefix
	}
	if f.After != "" {
		what["after"] = f.After
	}
	if l.Capped {
		what["capped"] = true // there may be more than CountLimit
	}
	if o.unmasked {
		what["unmasked"] = true
	}
	return pgx.BeginTxFunc(ctx, o.pool, pg.ReadCommitted, func(tx pgx.Tx) error {
		return o.audit.Add(ctx, tx, audit.Change{Verb: "saga.export", Target: f.Saga, Reason: e.Reason,
			After: what})
	})
}
