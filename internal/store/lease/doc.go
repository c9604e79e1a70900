// Package lease lets one process at a time do something, for as long as it lives, and another one soon after it died.
// It owns the table lease: one row for each name, which is never deleted and whose epoch only grows.
//
// # Promise
//
// By the database's clock a lease has at most one holder, and each term has an epoch that no other term of that name
// has, before or after it. A write that is guarded by its term (Store.Guard) commits only while no later term has
// begun, and no later term begins while the transaction of such a write is open.
//
// The function that a Keeper runs has a context that ends, whatever the database does or does not answer, before the
// database lets another process in: at the start of the last attempt that succeeded, plus Lease, less Margin, by this
// process's monotonic clock. The lease is released when the function has returned, and never before.
//
// # What is not promised
//
// A process that is paused, by SIGSTOP or by its machine, ends nothing while it sleeps. When it wakes it may run a few
// instructions of a term that is over, before its timer ends the context. So a lease decides who tries. What must not
// happen twice has to be guarded in the database: by Guard, by a version, by a unique key. What happens outside the
// database can be given the epoch, for a receiver that refuses smaller ones. The clocks of two machines are never
// compared; that of the database must not jump forward by more than Margin while a lease is held.
//
// # States of a Keeper
//
//	standby    bids every Acquire interval, or when woken
//	holding    the function runs, and every Renew interval the lease is renewed
//	stopping   the function's context has ended, and it has not returned; the lease is renewed for at most Stop
//
// standby → holding when a bid is won. holding → stopping when Run's context ends, when the holder was asked to resign,
// when the lease was lost, or when its renewal is in doubt for too long. holding or stopping → standby when the
// function has returned; then, unless it was lost, the lease is released.
//
// # Failures
//
// The outcome of a renewal is one of three. Renewed. Lost: the row says that the term is over, and that is final.
// Unknown: an error, or no answer in time; it is tried again after a pause, until the trusted time is over.
//
// A function that does not return after its context ended keeps its Keeper from bidding and Run from returning. It is
// renewed for Stop, warned of, and then left to its Lease.
//
// A lease works through PgBouncer in transaction mode. NOTIFY only shortens the wait for a lease that was released:
// a listener calls Wake for the payload "lease:<name>". Polling is the truth.
package lease
