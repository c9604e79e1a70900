// Package act implements the buttons of the pages: each action with its address, its fields, the right that it needs,
// the preview to confirm, and the Go function that runs it.
//
// # Promise
//
// An action calls one function of operate, its packages, deadletter or scheduler, which writes the entry of the
// audit. An action that destroys something, or changes many things, first shows a preview with the number, and runs
// only when the actor has confirmed that number. An action on many letters includes only letters that died before the
// preview. Each action shows the command that does the same.
//
// # States
//
//	form ──fields are wrong──▶ the form again, with the faults
//	  └──▶ preview, of some ──confirmed──▶ done, a page of the result
//
// # Failures
//
// A [Refusal] has the answer's status and a text for people: nothing was changed, unless its text says otherwise.
// Every other error comes from the database.
//
// Reading order: action.go, field.go, form.go, preview.go, then one file for each subject.
package act
