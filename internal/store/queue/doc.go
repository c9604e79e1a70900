// Package queue owns the tables in which messages wait: one for each endpoint, and those that say which endpoint
// consumes which kind.
//
// Queue is one table: its names, and its statements by name. Every statement that returns messages returns the columns
// of Row first, in one order, and Reader reads them. Inserts, Returns and InOrder write messages.
//
// Router knows the queues and who consumes what, as it stood in one generation of the subscriptions. Each new
// subscription raises the generation in its transaction. A transaction that publishes takes the shared lock of the
// subscriptions, and compares the generation after it: so an event reaches every endpoint that was subscribed before.
//
// Errors: ErrNoRoute and ErrAmbiguous name the remedy. A statement of class pgerr.Unprepared says that a queue was
// dropped, one of class pgerr.GuardFailed that the subscriptions have changed: forget the routes, and try again.
package queue
