// Package memory runs sagas, handlers and manifests in one process and without a database: for development, and for
// tests of several endpoints together. Nothing is durable. When the process ends, everything is gone.
//
//	b, err := memory.New(memory.Options{})
//	_, err = memory.NewEndpoint(b, "orders", bus.EndpointOptions{}, bus.Saga(Orders))
//	_, err = memory.NewEndpoint(b, "payment", bus.EndpointOptions{}, bus.Handle(charge))
//	go b.Run(ctx)
//	_, err = b.Send(ctx, PlaceOrder{OrderID: "7"})
//
// # Promise
//
// The definitions are those of package bus: the same parts, options, policies, kinds of messages and errors. A message
// is decoded, stepped and judged by the same code as on Postgres. Its end, the change of its saga and what its handler
// sends become visible together. A saga instance has one message in hand at a time, and so has a key of an Ordered
// endpoint. A suite of stories and the contract of the scheduler are kept by both.
//
// # What differs from Postgres
//
//   - Nothing survives the process, and there is one process. Nothing waits for a lease, and a limit
//     (ClusterConcurrency) bounds the handlers of this process; they have no slot. [Bus.SingleReplica] says so.
//   - Two steps never meet on one instance, so no save is lost: there are no conflicts.
//   - [NewEndpoint] refuses what needs a transaction of the database: bus.HandleTx. There is no SendTx and no SendSQL.
//     There are neither partitions nor relays.
//   - Options about batches, leases, crashes and the breaker have no effect. Poll is how long a queue pauses after
//     bus.ErrLeave. Each message is an event.BatchDone of its own.
//   - Dead letters, discarded messages and runs that have ended are kept up to a number, the newest 10,000 of each; ids
//     of saga.WithID for seven days.
//   - Groups of manifests bound nothing. A run has no list of its attempts, and is never lost.
//
// # The clock
//
// By default time is real. With [Options.Start] the bus has a clock of its own, which stands still until [Bus.Advance]
// moves it: a timeout of a day takes no time. Handlers run while it stands, and Advance waits for them: it does not
// pass a handler that blocks. The time that a handler may take (StepTimeout), a drain, and the pause between two calls
// of a singleton are real in any case.
//
// # Failures
//
// Errors are those of package bus. A handler that panics, or ends its goroutine, has failed.
//
// All methods are safe for concurrent use. Read world.go for the state, then endpoint.go, work.go and hold.go for the
// way of a message.
package memory
