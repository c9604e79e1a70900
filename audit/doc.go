// Package audit records changes by operators: who changed something, when and why.
//
//	ctx = audit.As(ctx, audit.Actor{Name: "ann@example.com", From: "10.0.0.7"})
//	ctx = audit.Because(ctx, "the bank is down")
//	err := operator.Limits().Set(ctx, "payments", 2)
//
// Every change by an operator, with the command or with a program that calls operate, deadletter or scheduler, adds
// an [Entry] in the transaction of the change: both commit or neither does. Exceptions are migrations, the
// installation of endpoints, and a Trigger without an actor, because programs trigger too.
//
// A program passes the actor in the context. Without an actor the entry has only the role of the database connection,
// which every entry has. The database cannot verify the name of the actor.
//
// A change without an effect, such as a second cancel of a run, has no entry. Entries are kept for 400 days.
package audit
