// Package eddafx is Edda for programs built with fx. It wires, and does nothing else: a bus from the pool in the
// graph, endpoints from values or from constructors that fx calls, and their life in the app's.
//
//	fx.New(
//		fx.Provide(newPool, newStock),
//		eddafx.Module(bus.Options{}),
//		eddafx.Endpoint("orders", bus.EndpointOptions{}, bus.Saga(Orders)),
//		eddafx.EndpointFrom(func(s *Stock) eddafx.Spec {
//			return eddafx.Spec{Name: "stock", Parts: []bus.Part{bus.HandleTx(s.Reserve)}}
//		}),
//	).Run()
//
// # Promise
//
// The app has started when every endpoint has passed every check, and not before: a definition with a fault, a
// schema that is not migrated, a queue that is not installed fail the start, all of them at once. The app stops when
// every endpoint has drained.
//
// # States
//
// Built (fx.New: definitions are checked), started (OnStart: the database is checked, then the endpoints run),
// stopping (OnStop: nothing more is taken, handlers finish), stopped.
//
// # Failures
//
// An endpoint that fails after the start shuts the app down with exit code 1, and App.Stop returns its error. One that
// had to cancel handlers makes App.Stop return bus.ErrDrain.
//
// Reading order: eddafx.go.
package eddafx
