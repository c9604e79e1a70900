// Package bulk has the operations of an operator on many saga instances: end them, send each a message, export them.
// The commands edda saga end, send and export with --prefix or --all are written with it.
//
//	o, err := bulk.New(pool, bulk.Options{})
//	look, err := o.Look(ctx, bulk.Filter{Saga: "order", Prefix: "load-"})
//	until := bulk.Filter{Saga: "order", Prefix: "load-", Until: look.Until}
//	done, err := o.End(ctx, until, bulk.End{Reason: "the load test"}, nil)
//
// # Promise
//
// A call selects the instances that edda saga list shows for the saga and the prefix, in the order of their keys, if
// they began before Filter.Until, or without it before the call. Instances that begin later are not part of it.
//
// Each instance has its own transaction, that of instances.Operator.End or messages.Operator.Send, so a call locks
// one instance at a time, and the audit has an entry for each with the actor and the reason. If an instance has ended
// before its turn, it is counted as gone, even if its key has started again. If the row of an instance cannot be
// read, the instance is unchanged and counted as kept. The call continues with the other instances.
//
// # When a call is interrupted
//
// Completed transactions stay committed, and Done.Last is the key that the call has reached. To continue, repeat the
// call with the same Filter, and with Last as Filter.After or from the beginning: ended instances are not found
// again, and a message of one Send.Job reaches an instance once, however often it is sent within seven days.
//
// No row describes the whole operation: the remaining instances are the living ones.
package bulk
