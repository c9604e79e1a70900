package operate

import (
	"context"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/engine/repair"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
)

// Errors of Instances. A method that returns one of them has changed nothing.
var (
	// ErrNoInstance means that no instance of the key lives, or that the living one is not the expected one.
	ErrNoInstance = repair.ErrNotFound
	// ErrVersion means that the instance does not have the expected version.
	ErrVersion = repair.ErrVersion
	// ErrRemembered means that the instance has completed, and that its row only remembers it.
	ErrRemembered = repair.ErrRemembered
	// ErrState means that a state is not valid for the saga.
	ErrState = repair.ErrState
	// ErrFaulty means that a column of the instance's row cannot be decoded.
	ErrFaulty = repair.ErrFaulty
	// ErrNoTimeout means that an instance has no pending timeout of the name, or several.
	ErrNoTimeout = repair.ErrNoTimeout
	// ErrInHand means that the message of a timeout has left its place in the queue: a worker is handling it at this
	// moment, or has failed to, and the message waits for its next attempt.
	ErrInHand = repair.ErrInHand
)

// Instances lists living saga instances, and changes them without their handlers: one, or many at once.
//
// A change of one instance is one transaction. It locks the row of the instance first, so it waits for a handler of a
// pessimistic saga that has locked the row. A batch that has read the row without a lock loses its save, and handles
// its messages again with the state that the operator has left. The version grows by one with each change. The
// transaction writes an audit entry, and an entry of the history that shows the kind of change (repaired, retimed or
// stopped) and the actor.
//
// Secrets are masked in both: the fields that Target.Definition marks, or without a definition the fields that the
// history has masked in the previous version, and the parts that Options.Redact removes. Without a definition and a
// state of the previous version it is unknown which parts are secret, and the states are left out, unless
// Options.Unmasked.
type Instances struct{ o *Operator }

// Instances returns the methods for saga instances.
func (o *Operator) Instances() Instances { return Instances{o} }

// Target is the instance to change, with the expectations of the caller.
type Target struct {
	Saga, Key string
	ID        saga.ID // expected id; if the key has a different instance, ErrNoInstance; zero is any
	Version   int64   // expected version; if it has changed, ErrVersion; 0 is any
	Reason    string  // "" is the reason of the context, see WithReason

	Definition *saga.Definition // marks the secrets of the state; nil is unknown
}

// List lists living saga instances in the order of saga and key, without their states. It is for pages and tools:
// it reads at most one page of an index and neither locks nor waits; the answer may be out of date when it arrives.
func (i Instances) List(ctx context.Context, options persistence.ListOptions) ([]persistence.Listed, error) {
	listed, err := i.o.sagas.List(ctx, i.o.pool, options)
	return listed, pgerr.Explain(err)
}

// Show reads the living instance of a saga's key, with its state as it is stored. It does not need the saga's
// definition; a program that has the definition reads the instance with bus.Bus.Instance. ok is false if none lives.
func (i Instances) Show(ctx context.Context, name, key string) (l persistence.Listed, ok bool, err error) {
	l, ok, err = i.o.sagas.Show(ctx, i.o.pool, name, key)
	return l, ok, pgerr.Explain(err)
}

// Public reads a living instance with the state that the audit may keep: without its secrets, and without the parts
// that Options.Redact removes. If definition is nil, the secrets are the fields that the history has masked. The state
// is nil if it is unknown which parts are secret (see Options.Unmasked), or if it is not JSON. Public takes no lock. It
// returns ErrNoInstance if no instance of the key lives.
func (i Instances) Public(
	ctx context.Context, name, key string, definition *saga.Definition,
) (persistence.Listed, error) {
	return i.o.repair.Public(ctx, name, key, definition)
}

// Repair replaces the state of an instance, and returns the instance as it was and as it is. Its timeouts and its
// originator stay, and no handler is called. Target.Version is required. Repair waits for a handler that has locked the
// instance; if the handler saves a version, Repair returns ErrVersion.
//
// With a Target.Definition, state must be of its current version, without unknown fields, and is stored as the saga
// would write it. Without a definition, state must be JSON of the row's version.
//
// Repair also returns ErrNoInstance, ErrRemembered, ErrFaulty, ErrState, saga.ErrNewerState if a program with a newer
// definition has written the row, and saga.ErrTooLarge.
func (i Instances) Repair(ctx context.Context, t Target, state []byte) (before, after saga.Instance, err error) {
	return i.o.repair.Repair(ctx, repair.Target(t), state)
}

// End ends an instance as if it had completed, without calling its handlers, and returns it as it was. It deletes the
// instance's row and its timeouts; the key may start again, and no other saga is notified. If a run of a manifest
// started the instance, the run is cancelled. Messages on their way to the instance find no instance, and are treated
// as the saga treats messages for a missing one. Data that a program keeps beside the instance, such as
// persistence.Items, stays. A saga that remembers its completed instances does not remember this one.
//
// If a worker is handling a timeout of the instance at this moment, the worker discards it. End returns ErrNoInstance,
// ErrVersion, ErrRemembered or ErrFaulty.
func (i Instances) End(ctx context.Context, t Target) (saga.Instance, error) {
	return i.o.repair.End(ctx, repair.Target(t))
}

// FireTimeout makes a pending timeout due now, and returns it. timeout is its name; or its kind, if only one of the
// kind is pending; or its id. FireTimeout, MoveTimeout and CancelTimeout return ErrNoInstance, ErrVersion,
// ErrRemembered, ErrFaulty or ErrNoTimeout; FireTimeout and MoveTimeout may also return ErrInHand.
func (i Instances) FireTimeout(ctx context.Context, t Target, timeout string) (saga.Pending, error) {
	return i.o.repair.FireTimeout(ctx, repair.Target(t), timeout)
}

// MoveTimeout makes a timeout due at a different time, by the database's clock, and returns it. A time in the past is
// now.
func (i Instances) MoveTimeout(ctx context.Context, t Target, timeout string, at time.Time) (saga.Pending, error) {
	return i.o.repair.MoveTimeout(ctx, repair.Target(t), timeout, at)
}

// CancelTimeout cancels a timeout, and returns it as it was. A worker that is handling it discards it, or commits
// before.
func (i Instances) CancelTimeout(ctx context.Context, t Target, timeout string) (saga.Pending, error) {
	return i.o.repair.CancelTimeout(ctx, repair.Target(t), timeout)
}
