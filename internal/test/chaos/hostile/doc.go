// Package hostile sends messages that are meant to do harm, beside messages that are not, and shows that the harm stays
// with the message that carries it.
//
// # Promise
//
// No input of a sender and no handler stops an endpoint, a relay or a process for longer than the attempts of one
// message. It finds:
//
//   - slow: a route on which, while the attack lasts, good messages are handled at less than half of the quiet rate.
//   - gap: a route without any effect for longer than a few overruns take, one after another.
//   - left: hostile messages that Edda accepted and that still wait at the end.
//   - vanished: those that were neither handled nor discarded, are no dead letter, and do not wait.
//   - lost, doubled, invented: good messages without an effect, with several (behind the relay, which promises no more
//     than one or more, only without), and effects of no good message.
//
// A worker that ends by itself is a failure too.
//
// # What attacks
//
// The attacker (attack.go) draws from kinds, headers, bodies and settings (draw.go), and sends through every entrance:
// Go's Send, the SQL function edda.send, INSERT into the queue as a sender's role may do it, and the inbox. The
// handlers of worker.go do to their own transaction what a message tells them: other roles, other settings, no
// transaction at all, panics, overruns. Good messages share the endpoints, the batches and the relay with the hostile
// ones.
//
// The same seed draws the same attacks, though not at the same moments.
package hostile
