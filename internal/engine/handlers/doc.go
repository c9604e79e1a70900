// Package handlers has the table of an endpoint's handlers, and calls the functions of a user: handlers that are no
// saga's, hooks, receivers of events, and the handler of a logger.
//
// A [Table] collects the handlers of the parts of an endpoint: one [Consumer] for each kind, or one for all other
// kinds. It collects every fault of the parts, so that a program reports all of them at once. It does not change
// after its endpoint is built, and is then safe for concurrent use.
//
// A [Call] runs one handler inside the middleware of its endpoint. A panic becomes a *saga.PanicError, and a handler
// that took longer than its context allows has failed, whatever it returned. Its [Sends] keep the messages that the
// handler sends until the engine writes them; a message that cannot be sent makes the step fail permanently.
//
// [Hooks] and [Receivers] watch messages go out, transactions end and events happen. A [Guest] is a function that Edda
// calls while it holds something shared. If such a function panics, ends its goroutine or does not return, no message
// is lost and the process continues.
package handlers
