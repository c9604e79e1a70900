// Package handlers has the table of an endpoint's handlers, and the call of a handler that is no saga.
//
// A [Table] adds up what the parts of an endpoint handle: one [Consumer] for each kind, or one for all other kinds. It
// collects every fault of the parts, so that a program sees all of them at once. It does not change once its endpoint
// is built, and is then safe for concurrent use.
//
// A [Call] runs one handler with the middleware of its endpoint around it. A panic becomes a *saga.PanicError, and a
// handler that took longer than its context allows has failed, whatever it returned. What the handler sends is kept in
// its [Sends] until the engine writes it; a message that cannot be sent makes the step fail for good.
package handlers
