// Package bulk is what an operator does to many saga instances: end them, send each a message, export them. The
// commands edda saga end, send and export with --prefix or --all are written with it.
//
//	o, err := bulk.New(pool, bulk.Options{})
//	look, err := o.Look(ctx, bulk.Filter{Saga: "order", Prefix: "load-"})
//	until := bulk.Filter{Saga: "order", Prefix: "load-", Until: look.Until}
//	done, err := o.End(ctx, until, bulk.End{Reason: "the load test"}, nil)
//
// # Promise
//
// The instances are those that edda saga list shows for the saga and the prefix, in the order of their keys, and that
// began before Filter.Until; without it, before the call. What begins later is not part of it.
//
// Each instance is a transaction of its own, that of instances.Operator.End or messages.Operator.Send, so a call locks
// one instance at a time, and the audit has an entry for each with the actor and the reason. An instance that has ended
// meanwhile is counted as gone, also if its key has started anew, and one whose row cannot be read is kept and counted;
// the others go on.
//
// # When a call is interrupted
//
// What was done stays done, and Done.Last is the key that the call has reached. A call with the same Filter goes on,
// with Last as Filter.After or from the beginning: what was ended is not there any more, and a message of one Send.Job
// reaches an instance once, however often it is sent within seven days.
//
// There is no row of a job. The instances that live are what is left of it.
package bulk
