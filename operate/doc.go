// Package operate is what an operator does with a schema of Edda. The command edda is written with it, and a program
// can do the same for a page, a test or a script. An Operator needs a pool and the schema's name, and no handlers.
//
//	operator, err := operate.New(pool, operate.Options{})
//	ctx = audit.As(ctx, audit.Actor{Name: "ann@example.com"})
//	err = operator.Endpoints().Pause(ctx, "payments", "the bank is down")
//
// Its methods are grouped by their subject:
//
//	o.Queues()       count them, install them, find what keeps their dead rows
//	o.Messages()     look at messages that wait, find one by its id, cancel one
//	o.Endpoints()    pause and resume, set the number of workers, set what history keeps
//	o.Limits()       bound how much of an endpoint runs at once in all processes
//	o.Sagas()        look at instances, and at what sagas did
//	o.DeadLetters()  list, show, retry and discard dead letters
//	o.History()      say where a message is and why, show timelines of instances, and what followed from a message
//	o.Outbox()       look at the copies of relayed messages; o.Replay sends them again
//
// # Promise
//
// A method that reads uses a snapshot, locks nothing and waits for nothing; the answer may be out of date when it
// arrives. A method that changes something is one transaction, and takes effect in all processes: at once if they
// listen for notifications, otherwise within their Poll. Texts and bodies are as their senders wrote them, including
// control characters: escape them before you show them.
//
// # Failures
//
// ErrNotInstalled: no endpoint has the name. ErrNotFound: no such message. ErrNoLimit: there is no such limit. If
// the schema is not migrated, or the role lacks a right, the error says what to do.
package operate
