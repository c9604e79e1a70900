// Package edda is the root of Edda: long-running business processes driven by messages, with everything
// durable in the user's own Postgres.
//
// A process is a saga: Go methods on a struct, one for each message it waits for. Package saga defines it,
// package bus delivers its messages, and a message, the change of the saga and what it sends commit in one
// transaction. This package itself holds Host, which checks and runs several endpoints as one; package eddafx does
// the same for programs built with fx.
//
// Reading order: saga for what a handler's author writes; bus for what runs it, beginning at process.go;
// migrations for the tables; recoverability for what happens to a message that fails.
package edda
