// Package edda is the root of Edda: long-running business processes driven by messages, with everything durable in
// the user's own Postgres.
//
//	host, err := edda.NewHost(orders, payments) // endpoints of package bus
//	err = host.Install(ctx)                     // their queues, once for each release
//	err = host.Run(ctx)                         // until ctx ends, or one of them fails
//
// A process is a saga: Go methods on a struct, one for each message that it waits for. Package saga defines sagas, and
// package bus delivers their messages. A message, the change of its saga and the messages that it sends commit in one
// transaction. Host checks and runs several endpoints as one; package eddafx does the same for programs built with fx.
//
// Reading order: saga for authors of handlers; bus for the engine that runs them, beginning at process.go; migrations
// for the tables; recoverability for messages that fail.
package edda
