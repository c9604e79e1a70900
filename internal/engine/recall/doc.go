// Package recall is what the workers of one endpoint in one process remember from one transaction to the next: which
// instances they hold, which lose saves, and which messages are to fail because of what they did to a transaction that
// rolled back. All of it is advice. A process that forgets it is slower, and no less right. It protects no instance
// against a worker of another process: the store compares versions.
package recall
