// Package messages is how an operator sends a message: to who consumes its kind, to an endpoint, or to one saga
// instance. The command edda send is written with it.
//
//	o, err := messages.New(pool, "")
//	sent, err := o.Send(ctx, messages.Message{Kind: "order.place", Body: body, Reason: "lost by the shop"})
//
// # Promise
//
// Send is one transaction: the SQL function send of the schema writes the message, with the checks of every other send,
// and the audit has an entry with who sent it. The body is not in the audit. Workers are woken when it commits.
//
// # Failures
//
// ErrNoRoute, ErrAmbiguous, ErrNotFound, ErrConflict, and an error of Postgres for an argument that the function
// refuses: nothing was sent. If the connection breaks during the commit the message may have been sent: a message with
// an ID may be sent again.
package messages
