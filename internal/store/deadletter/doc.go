// Package deadletter stores messages that are no longer retried, and records messages that were consumed without
// effect. operate.DeadLetters has its methods; recoverability has its types, with the states of a letter and of a job.
//
// # Promise
//
// Header and body of a dead letter are kept byte for byte. Each dead letter ends exactly once (retried, edited or
// discarded, alone or by a job), even if several callers try at the same time and some are killed. Its content cannot
// make the insert fail: text that Postgres would refuse is replaced, and a long text is cut.
//
// # Groups
//
// Dead letters of one endpoint and kind whose errors differ only in numbers, ids and quoted texts form a group. The
// name of the group is computed when the letter is written and stored with it, so an index finds, counts and retries a
// group. SetNote writes a note on a group for other operators; the audit keeps it.
//
// # Failures
//
// ErrNotFound means that no dead letter has this number, or that a concurrent caller has just ended it. ErrNoJob
// means the same for jobs. Every other error is an error of the connection, the schema or the Resender. After an
// error nothing has changed, unless the connection broke during the commit: then ErrNotFound of a second call means
// that the first had succeeded. A Store is safe for concurrent use.
package deadletter
