// Package lease gives a name to one process at a time, for as long as the process lives, and to a different one soon
// after it died. It owns the table lease: one row for each name, which is never deleted and whose epoch only grows.
//
// # Promise
//
// By the database's clock a lease has at most one holder, and each term has an epoch that no other term of that name
// has, before or after it. A write that is guarded by its term (Store.Guard) commits only if no later term has begun,
// and no later term begins while the transaction of such a write is open.
//
// The context of the function that a Keeper runs ends before the database lets a different process in, whether the
// database answers or not: at the start of the last attempt that succeeded, plus Lease, less Margin, by this
// process's monotonic clock. The lease is released when the function has returned, and never before.
//
// # Outside the promise
//
// A process that is paused, by SIGSTOP or by its machine, ends nothing during the pause. When it continues it may run
// a few instructions of a term that is over, before its timer ends the context. So a lease decides which process
// tries. Work that must not happen twice has to be guarded in the database: by Guard, by a version, by a unique key.
// Effects outside the database can carry the epoch, for a receiver that refuses smaller ones. The clocks of two
// machines are never compared; the database's clock must not jump forward by more than Margin while a lease is held.
//
// # States of a Keeper
//
//	standby    bids every Acquire interval, or when woken
//	holding    the function runs, and every Renew interval the lease is renewed
//	stopping   the function's context has ended, and it has not returned; the lease is renewed for at most Stop
//
// standby → holding when the Keeper wins a bid. holding → stopping when Run's context ends, when the holder was asked
// to resign, when the lease was lost, or when its renewal is in doubt for too long. holding or stopping → standby
// when the function has returned; then, unless it was lost, the lease is released.
//
// # Failures
//
// A renewal has one of three outcomes. Renewed. Lost: the row shows that the term is over, and that is final.
// Unknown: an error, or no answer in time; the Keeper tries again after a pause, until the trusted time is over.
//
// If the function does not return after its context ended, its Keeper does not bid and Run does not return. The
// Keeper renews the lease for Stop, logs a warning, and then lets the lease expire.
//
// A lease works through PgBouncer in transaction mode. NOTIFY only shortens the wait for a lease that was released: a
// listener calls Wake for the payload "lease:<name>". Correctness relies on polling alone.
package lease
