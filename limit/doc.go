// Package limit lets a program do a thing of its own in at most so many places at once, in all processes together: the
// exports that one database bears, the calls that a partner allows, a job that must not run twice.
//
//	limits, err := limit.New(pool, limit.Options{})
//	err = limits.Do(ctx, "exports", 3, func(ctx context.Context, s *limit.Slot) error { … })
//
// A limit of 1 is a critical section. For a loop that one process runs all the time see scheduler.Singleton, and for
// how much of an endpoint runs at once, bus.EndpointOptions.ClusterConcurrency.
//
// # Promise
//
// A limit of n never has more than n holders, measured by the database's clock. Holders that were at work when it was
// lowered may finish. Callers are served in the order in which they came, also those of different processes; of one
// process 16 callers stand in line at a time, and its others behind them. A slot whose process dies is free when its
// lease is over, and a caller that dies while it waits holds up the others for at most 3 s.
//
// # What is not promised
//
// A process that is frozen, or cut off from the database, learns too late that it has lost its slot, and may go on for
// a moment while another has it. Protect what must not happen then: in this database with Slot.Guard, elsewhere with
// Slot.Epoch, which the other system compares.
//
// # States of a slot
//
//	held      from Acquire on, and renewed
//	lost      it was not renewed in time, or another has it: its context ends with ErrLost
//	released  by Release, or when the function of Do has returned
//
// # Limits
//
// The number is the program's, and takes effect when a process says it first, unless an operator has set another one:
//
//	edda limit set named/exports 5
//	edda limit reset named/exports
//
// # Failures
//
// Acquire returns the error of the database when it has one, and does not wait for the database. If the answer to a
// request was lost on its way, the slot may be granted all the same; it is free again when its lease is over.
package limit
