// Package deadletter stores messages that are no longer retried, and records messages that were consumed without
// effect. It owns the tables dead_letter, dead_letter_job, dead_letter_sent, dead_letter_edit and discarded; no other
// package names them in SQL.
//
//	letters := operator.DeadLetters() // of an operate.Operator
//	groups, _, err := letters.Groups(ctx, pool, deadletter.GroupFilter{Endpoint: "orders"})
//	err = letters.Retry(ctx, pool, operator, number)
//
// # Promise
//
// Header and body of a dead letter are kept byte for byte. Each dead letter ends exactly once (retried, edited or
// discarded, alone or by a job), even if several callers try at the same time and some are killed. Its content cannot
// make the insert fail: text that Postgres would refuse is replaced, and a long text is cut.
//
// # States of a dead letter
//
//	waiting    a row of dead_letter, listed in the order of its number
//	retried    the row is gone, and in the same transaction the message is back in its queue with its id,
//	           header and body, and with no attempts counted
//	edited     the same with another body or other headers; a row of dead_letter_edit has the old message
//	discarded  the row is gone, and a row of discarded has the reason; the body is gone
//
// A message that fails permanently again after a retry is a new dead letter with a new number.
//
// # Groups
//
// Dead letters of one endpoint and kind whose errors differ only in numbers, ids and quoted texts form a group. The
// name of the group is computed when the letter is written and stored with it, so an index finds, counts and retries
// a group. SetNote writes a note on a group for other operators; package audit keeps it.
//
// # Jobs
//
//	open ──each step: some letters end, the mark advances──▶ open ──▶ done
//	  └──▶ cancelled
//
// A job is a row: a filter, a rate, the last number that it covers, and a mark, the last number that it has finished.
// A step is one transaction that locks the job, ends the next letters and advances the mark. So a job that is killed
// continues where its last step ended, and two callers that run one job alternate. A letter that cannot be retried,
// because its endpoint has no queue, is kept and counted, and the job continues.
//
// # Failures
//
// ErrNotFound means that no dead letter has this number, or that a concurrent caller has just ended it. ErrNoJob
// means the same for jobs. Every other error is an error of the connection, the schema or the Resender. After an
// error nothing has changed, unless the connection broke during the commit: then ErrNotFound of a second call means
// that the first had succeeded.
//
// Texts are stored with their control characters: escape them before you print them. A Store is safe for concurrent
// use.
package deadletter
