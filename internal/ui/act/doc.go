// Package act is what people do on the pages: each button with its address, its fields, the right that it needs, what
// is shown before it is done, and the Go function that does it.
//
// # Promise
//
// An action calls one function of operate, its packages, deadletter or scheduler, which writes the entry of the audit.
// What destroys something, and what is about many, is shown first with its number, and is done only when that number
// has been agreed to. An action of many letters is bounded by the moment of that look: what died later is not part of
// it. Each action knows the command that does the same.
//
// # States
//
//	form ──fields are wrong──▶ the form again, with what is wrong
//	  └──▶ preview, of some ──agreed──▶ done, a page of the outcome
//
// # Failures
//
// A [Refusal] has the answer's status and a text for people: nothing was done, or what its text says. Every other error
// is one of the database.
//
// Reading order: action.go, field.go, form.go, preview.go, then one file for each subject.
package act
