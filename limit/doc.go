// Package limit bounds how many callers, in all processes together, do the same kind of work at a time: the exports
// that one database bears, the calls that a partner allows, a job that must not run twice.
//
//	limits, err := limit.New(pool, limit.Options{})
//	err = limits.Do(ctx, "exports", 3, func(ctx context.Context, s *limit.Slot) error { … })
//
// A limit of 1 is a critical section. For a loop that one process runs all the time see scheduler.Singleton; for the
// number of batches of an endpoint see bus.EndpointOptions.ClusterConcurrency.
//
// # Promise
//
// A limit of n never has more than n holders, measured by the database's clock. When a limit is lowered, callers that
// hold a slot may finish. Callers are served in their order of arrival, also callers of different processes. Of one
// process, 16 callers are in line in the database at a time, and its other callers wait behind them. A slot whose
// process dies is free when its lease is over, and a caller that dies while it waits delays the others for at most 3 s.
//
// # What is not promised
//
// A process that is frozen, or cut off from the database, learns too late that it has lost its slot, and may continue
// for a moment while a second process holds it. Protect effects that must not happen then: in this database with
// Slot.Guard, elsewhere with Slot.Epoch, which the other system compares.
//
// # States of a slot
//
//	held      from Acquire on, and renewed
//	lost      it was not renewed in time, or another caller has it: its context ends with ErrLost
//	released  by Release, or when the function of Do has returned
//
// # Limits
//
// The number is the program's, and takes effect when a process first passes it, unless an operator has set a different
// one:
//
//	edda limit set named/exports 5
//	edda limit reset named/exports
//
// # Failures
//
// Acquire returns an error of the database at once, and does not wait for the database to come back. If the answer to a
// request was lost on its way, the slot may be granted all the same; it is free again when its lease is over.
package limit
