// Package audit records who changed what, when and why.
//
//	ctx = audit.As(ctx, audit.Actor{Name: "ann@example.com", From: "10.0.0.7"})
//	ctx = audit.Because(ctx, "the bank is down")
//	err := operator.Limits().Set(ctx, "payments", 2)
//
// Whatever an operator changes, by the command or by a program that calls operate, deadletter or scheduler, is an
// [Entry], written in the transaction of the change: neither is there without the other. Exceptions are migrations, the
// installation of endpoints, and a Trigger without an actor, because programs trigger too.
//
// A program says who acts by the context. Without an actor the entry has the role of the database connection, which it
// has in any case. Name is what the program says: the database cannot check it.
//
// A change that changes nothing, such as a second cancel of a run, has no entry. Entries are kept for 400 days.
package audit
