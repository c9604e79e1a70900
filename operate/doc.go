// Package operate has the operations of an operator on a schema of Edda. The command edda is written with it, and a
// program can use it for a page, a test or a script. An Operator needs a pool and the schema's name, and no handlers.
//
//	operator, err := operate.New(pool, operate.Options{})
//	ctx = operate.WithActor(ctx, operate.Actor{Name: "ann@example.com"})
//	err = operator.Endpoints().Pause(ctx, "payments", "the bank is down")
//
// Its methods are grouped by their subject:
//
//	o.Queues()       count them, install them, find the session that keeps their dead rows
//	o.Messages()     list messages that wait, find one by its id, cancel one, send one
//	o.Endpoints()    pause and resume, set the number of workers and of partitions, set the level of history,
//	                 count what they handle, show which endpoints send which kinds to which endpoints
//	o.Limits()       limit how many batches or handlers of an endpoint run at the same time in all processes,
//	                 and show which process holds each slot
//	o.Instances()    list instances, repair a state, end an instance, fire a timeout; end many, send to many, export
//	o.Audit()        list the changes by operators
//	o.DeadLetters()  list, show, retry and discard dead letters
//	o.History()      find a message and explain its state, show timelines of instances, and follow conversations
//	o.Outbox()       list the copies of relayed messages; o.Replay sends them again
//
// # Promise
//
// A method that reads uses a snapshot, locks nothing and waits for nothing; the answer may be out of date when it
// arrives. A method that changes something is one transaction, and takes effect in all processes: at once if they
// listen for notifications, otherwise within their Poll. Texts and bodies are returned as their senders wrote them,
// including control characters: escape them before you show them. All methods are safe for concurrent use.
//
// # Failures
//
// A method that returns an error of this package has changed nothing, except SetPartitions. If the connection breaks
// during a change, the change may have been committed: read its result. ErrNotInstalled means that no endpoint has the
// name, ErrNotFound that no queue has the message, and ErrNoLimit that the limit does not exist. If the schema is not
// migrated, or the role lacks a right, the error names the remedy.
package operate
