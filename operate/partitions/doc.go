// Package partitions is how an operator changes the number of partitions of an endpoint. The command edda endpoint
// partitions is written with it.
//
//	o, err := partitions.New(pool, "")
//	changed, err := o.Set(ctx, "orders", 16)
//
// # Promise
//
// Set works while no process runs the endpoint. It moves everything that waits in the partitions back to the endpoint's
// own queue, in small transactions. Then it replaces the stored number in one transaction, with an entry in the audit.
// Processes that start with the new number move the messages to their new partitions by key.
//
// # Failures
//
// ErrRunning: a process holds a lease of the endpoint, and nothing was changed, or not everything was moved. After any
// error, and after a crash, the old number stands until all was moved, and Set may be repeated.
package partitions
