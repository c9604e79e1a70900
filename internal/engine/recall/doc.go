// Package recall stores what the workers of one endpoint in one process remember between transactions: which
// instances they hold, which instances lose saves, and which messages are to fail because of a transaction that
// rolled back. All of it is advice: a process that forgets it is slower, and still correct. It protects no instance
// against a worker of a different process: the store compares versions.
package recall
