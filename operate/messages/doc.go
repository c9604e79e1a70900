// Package messages sends messages on behalf of an operator: to the endpoint that consumes the kind, to a named
// endpoint, or to one saga instance. The command edda send is written with it.
//
//	o, err := messages.New(pool, "")
//	sent, err := o.Send(ctx, messages.Message{Kind: "order.place", Body: body, Reason: "lost by the shop"})
//
// # Promise
//
// Send is one transaction: the SQL function send of the schema writes the message, with the same checks as every
// send, and the audit has an entry with the sender. The body is not in the audit. Workers are woken after the commit.
//
// # Failures
//
// If Send returns ErrNoRoute, ErrAmbiguous, ErrNotFound, ErrConflict, or an error of Postgres for an argument that
// the function refuses, it has sent nothing. If the connection breaks during the commit, the message may have been
// sent: a message with an ID may be sent again.
package messages
