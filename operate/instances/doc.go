// Package instances is what an operator does to single saga instances: repair a state, end an instance without its
// handlers, and fire, move or cancel a timeout. The command edda saga is written with it.
//
//	o, err := instances.New(pool, instances.Options{})
//	done, err := o.Repair(ctx, instances.Repair{Saga: "order", Key: "7", Version: 3, State: state, Reason: "…"})
//
// # Promise
//
// A method is one transaction. It locks the row of the instance first, so it waits for a handler of a pessimistic saga
// that has the row in hand, and a batch that has read the row without its lock loses its save and handles its messages
// again with what the operator has left. The version grows by one with each change; a caller who names a version that
// is not the last changes nothing.
//
// The transaction writes an entry of the audit and a page of the history, which shows what it was: repaired, retimed or
// stopped, and by whom. Secrets are masked in both: those that the definition marks; without a definition those that
// the history has masked in the version before; and what Options.Redact takes away. Without a definition and a state
// of the version before nobody knows what is secret, and the states are left out, unless Options.Unmasked.
//
// # Failures
//
// ErrNotFound, ErrVersion, ErrRemembered, ErrState, ErrFaulty, ErrNoTimeout and ErrInHand: nothing has changed then.
// After any other error nothing has changed, unless the connection broke during the commit: look at the version.
package instances
