// Command hostile sends messages that are meant to do harm, beside messages that are not, and shows that the
// harm stays with the message that carries it.
//
//	make hostile                            ten minutes
//	go run ./internal/hostile -for 1m       a shorter run
//
// # Promise
//
// No input of a sender and no handler stops an endpoint, a relay or a process for longer than the attempts of one
// message. The exit code is 0 only if all of this is true:
//
//   - slow: while the attack lasts, good messages are handled at half of the quiet rate or more, on every route;
//   - left: every hostile message that Edda accepted was handled, or discarded, or is a dead letter;
//   - vanished: none of them is gone without one of these three fates;
//   - lost, doubled: every good message has one effect (at least one behind the relay, which promises no more);
//   - died: no worker process ended.
//
// # What attacks
//
// The attacker (attack.go) draws from kinds, headers, bodies and settings, and sends through every entrance: Go's
// Send, the SQL function edda.send, INSERT into the queue as a sender role may do it, and Arrive. The handlers of
// worker.go do to their own transaction what a message tells them: other roles, other settings, no transaction at
// all, panics, overruns. Good messages share the endpoints, the batches and the relay with the hostile ones.
//
// # Failures
//
// The run prints what it sees every ten seconds, and a worker's log goes to standard error when it dies. The seed is
// printed first; the same seed draws the same attacks, though not at the same moments.
//
// Reading order: main.go, attack.go (what is sent), worker.go (who receives it), verdict.go with hostile.sql (what
// became of it).
package main
