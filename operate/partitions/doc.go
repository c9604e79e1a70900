// Package partitions changes the number of partitions of an endpoint, for operators. The command edda endpoint
// partitions is written with it.
//
//	o, err := partitions.New(pool, "")
//	changed, err := o.Set(ctx, "orders", 16)
//
// # Promise
//
// Set works while no process runs the endpoint. It moves all messages that wait in the partitions back to the
// endpoint's own queue, in small transactions. Then it replaces the stored number in one transaction, with an audit
// entry. Processes that start with the new number move the messages to their new partitions by key.
//
// # Failures
//
// Set returns ErrRunning if a process holds a lease of the endpoint; then it has changed nothing, or moved only a part
// of the messages. After any error, and after a crash, the old number stays until all messages are moved: repeat Set.
package partitions
