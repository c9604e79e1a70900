// Package deadletter keeps the messages that nobody will try again by himself, and the ones that were consumed without
// effect. It owns the tables dead_letter, dead_letter_job, dead_letter_edit and discarded; no other package names them
// in SQL.
//
// # Promise
//
// Header and body of a dead letter are kept byte for byte. Each dead letter ends exactly once, retried, edited or
// discarded, one by one or by a job, however many people and programs try at the same time and whenever one of them is
// killed. Writing one cannot fail on what it holds: text that Postgres would refuse is replaced, a long text is cut.
//
// # States of a dead letter
//
//	waiting    a row of dead_letter, listed in the order of its number
//	retried    the row is gone, and in the same transaction the message is back in its queue with its id,
//	           header and body, and with no attempts counted
//	edited     the same with another body or other headers; a row of dead_letter_edit has what it was before
//	discarded  the row is gone, and a row of discarded says why; the body is gone with it
//
// A message that dies again after a retry is another dead letter with another number.
//
// # Groups
//
// Dead letters of one endpoint and kind whose errors differ in numbers, ids and quoted texts only are a group. Its name
// is computed when the letter is written and stored with it, so that a group is found, counted and retried by an index.
//
// # Jobs
//
//	open ──each step: some letters end, the mark moves──▶ open ──▶ done
//	  └──▶ cancelled
//
// A job is a row: a filter, a rate, the last number that it is about, and the mark up to which it has come. A step is
// one transaction that locks the job, ends the next letters and moves the mark. Hence a job that is killed goes on
// where its last step ended, and two who run it take turns. A letter that cannot be retried, since its endpoint has no
// queue, is kept and counted, and stops nobody.
//
// # Failures
//
// ErrNotFound: there is no dead letter with this number, or somebody else has just ended it. ErrNoJob is the same for
// jobs. Every other error is one of the connection, the schema or the Resender; nothing has changed then, unless the
// connection was lost during the commit: call again, and ErrNotFound says that it had come through.
//
// Texts are stored as they came, control characters included: whoever shows them escapes them.
//
// Reading order: store.go, queue.go, text.go, headers.go, group.go, list.go, walk.go, scan.go, resolve.go, edit.go,
// job.go, runjob.go, statements.sql.
package deadletter
