// Package instances has the operations of an operator on single saga instances: repair a state, end an instance
// without its handlers, and fire, move or cancel a timeout. The command edda saga is written with it.
//
//	o, err := instances.New(pool, instances.Options{})
//	done, err := o.Repair(ctx, instances.Repair{Saga: "order", Key: "7", Version: 3, State: state, Reason: "…"})
//
// # Promise
//
// Each method is one transaction. It locks the row of the instance first, so it waits for a handler of a pessimistic
// saga that has locked the row. A batch that has read the row without a lock loses its save, and handles its messages
// again with the state that the operator has left. The version grows by one with each change. If the caller names a
// version that is not the present one, the method changes nothing.
//
// The transaction writes an audit entry and a page of the history, the record of one transaction, which shows the
// kind of change (repaired, retimed or stopped) and the actor. Secrets are masked in both. They are the fields that
// the definition marks, or without a definition the fields that the history has masked in the previous version, and
// the parts that Options.Redact removes. Without a definition and a state of the previous version it is unknown which
// parts are secret, and the states are left out, unless Options.Unmasked.
//
// # Failures
//
// If a method returns ErrNotFound, ErrVersion, ErrRemembered, ErrState, ErrFaulty, ErrNoTimeout or ErrInHand, it has
// changed nothing. After any other error nothing has changed either, unless the connection broke during the commit:
// check the version.
package instances
