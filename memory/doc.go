// Package memory runs sagas, handlers and manifests in one process and without a database: for development, and for
// tests of several endpoints together. Nothing is durable: when the process ends, all data is lost.
//
//	b, err := memory.New(memory.Options{})
//	_, err = memory.NewEndpoint(b, "orders", bus.EndpointOptions{}, bus.Saga(Orders))
//	_, err = memory.NewEndpoint(b, "payment", bus.EndpointOptions{}, bus.Handle(charge))
//	go b.Run(ctx)
//	_, err = b.Send(ctx, PlaceOrder{OrderID: "7"})
//
// # Promise
//
// The definitions are those of package bus: the same parts, options, policies, kinds of messages and errors. The same
// code as on Postgres decodes a message, steps its saga and decides its outcome. The end of a message, the change of
// its saga and the messages that its handler sends become visible together. A saga instance handles one message at a
// time, and so does a key of an Ordered endpoint. The same stories, and the scheduler's contract, are tested on both.
//
// # Differences from Postgres
//
//   - Nothing survives the process, and there is one process. Nothing waits for a lease, and a limit
//     (ClusterConcurrency) applies to the handlers of this process; they have no slots. See [Bus.SingleReplica].
//   - Two steps never run on one instance at the same time, so no save is lost: there are no conflicts.
//   - [NewEndpoint] refuses bus.HandleTx, which needs a transaction of the database. There is no SendTx.
//     There are neither partitions nor relays.
//   - Options about batches, leases, crashes and the breaker have no effect. Poll is how long a queue pauses after
//     bus.ErrLeave. Each message is an event.BatchDone of its own.
//   - Of dead letters, discarded messages and ended runs the newest 10,000 each are kept; ids of saga.WithID for seven
//     days.
//   - Groups of manifests have no limits. A run has no list of its attempts, and is never lost.
//
// # The clock
//
// By default time is real. With [Options.Start] the bus has a clock of its own, which stands still until [Bus.Advance]
// moves it: a timeout of a day takes no time. Handlers run while the clock stands, and Advance waits for them, so it
// waits as long as a handler blocks. The time limit of a handler (StepTimeout), the drain, and the pause between two
// calls of a singleton are always real.
//
// # Failures
//
// Errors are those of package bus. A handler that panics, or ends its goroutine, has failed.
//
// All methods are safe for concurrent use. Read world.go for the state, then endpoint.go, work.go and hold.go for the
// path of a message.
package memory
