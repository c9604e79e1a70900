// Package contention decides how the workers of an endpoint continue after conflicts and failures, and which message
// is to blame.
//
// A [Memory] stores what the workers of one endpoint in one process remember between transactions: which instances
// they hold, which instances lose saves, and which messages are to fail because of a transaction that rolled back. All
// of it is advice: a process that forgets it is slower, and still correct. It protects no instance against a worker of
// a different process: the store compares versions.
//
// An [Instance] is one saga instance of a batch: who has it, how it was loaded, and how its save ended.
//
// A [Breaker] slows the endpoint down while nothing succeeds. It is closed while messages are handled. After enough
// failures in a row it is open: one worker tries one message at a time, and the first message that is handled closes
// it. [Patience] computes how long a loop waits after a transaction was lost. [Guilty] and [Doubtful] judge by an
// error whether the only message of its transaction is at fault, and [Deaths] whether a message has killed enough
// processes.
//
// Nothing here can fail, except a rollback, which is logged: its connection is lost anyway.
package contention
