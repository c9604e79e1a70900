// Package queue owns the tables of waiting messages: one for each endpoint, and the subscriptions, which say which
// endpoint consumes which kind.
//
// Queue is one table: its names, and its statements by name. Every statement that returns messages returns the
// columns of Row first, in one order, and Reader reads them. Inserts, Returns and InOrder write messages.
//
// Router caches the queues and the subscriptions, as of one generation. Each new subscription raises the generation
// in its transaction. A transaction that publishes takes the shared lock of the subscriptions, and compares the
// generation after it: so an event reaches every endpoint that was subscribed before.
//
// Errors: ErrNoRoute and ErrAmbiguous name the remedy. An error of class pgerr.Unprepared means that a queue was
// dropped, and the class pgerr.GuardFailed that the subscriptions have changed: call Forget, and try again.
package queue
