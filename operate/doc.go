// Package operate is what an operator does with a schema of Edda: it looks at queues, messages, instances, limits, dead
// letters and the copies of an outbox, pauses and resumes endpoints, cancels messages, and retries what failed.
//
// The command edda is written with it, and a program can do the same: for a page, a test or a script. An Operator needs
// a pool and the schema's name, and no handlers.
//
// # Promise
//
// What looks reads a snapshot, locks nothing and waits for nothing; the answer may be old when it arrives. What changes
// something is one transaction, and takes effect in all processes: at once where they listen for notifications, and
// within their Poll elsewhere. Texts and bodies are as their senders gave them, control characters included: escape them
// before you show them.
//
// # Failures
//
// ErrNotInstalled: no endpoint has the name. ErrNotFound: no such message. ErrNoLimit: the endpoint has no limit. A
// schema that is not migrated, and a role that lacks a right, are errors that say what to do.
package operate
