// Package eddafx wires Edda into programs built with fx: a bus from the pool in the graph, and endpoints and other
// runners from values or from constructors that fx calls. They start and stop with the app.
//
//	fx.New(
//		fx.Provide(newPool, newStock),
//		eddafx.Module(bus.Options{}),
//		eddafx.Endpoint("orders", bus.EndpointOptions{}, bus.Saga(Orders)),
//		eddafx.EndpointFrom(func(s *Stock) eddafx.Spec {
//			return eddafx.Spec{Name: "stock", Parts: []bus.Part{bus.HandleTx(s.Reserve)}}
//		}),
//		eddafx.Scheduler(scheduler.Options{Owner: "shop"}, nightly),
//		eddafx.Runner(newMailRelay), // func(*bus.Bus, *Mail) (*outbox.Relay, error)
//	).Run()
//
// # Promise
//
// The app has started when every runner has passed every check. A faulty definition, a schema that is not migrated and
// a queue that is not installed fail the start, with all faults at once. The app stops when every runner has ended:
// endpoints drain first.
//
// # States
//
// Built (fx.New: definitions are checked), started (OnStart: the database is checked, then all run),
// stopping (OnStop: no message is taken, handlers finish), stopped.
//
// # Failures
//
// If a runner fails after the start, the app shuts down with exit code 1, and App.Stop returns its error. If
// handlers had to be cancelled, App.Stop returns bus.ErrDrain.
package eddafx
