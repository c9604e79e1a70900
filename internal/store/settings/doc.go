// Package settings owns the table of what is set for endpoints while they run: a pause, and a number of workers.
//
// # Promise
//
// An endpoint's setting is one row. It holds for every process of the endpoint, and for those that start later, until
// it is set anew. Every statement finds its row by the primary key and holds it no longer than the statement takes, or
// the write of a batch.
//
// A Follower is what one process knows of it: it reads the row at each poll, and when it is told to look.
//
// # States
//
// No row: the endpoint has never run, and the numbers of its program hold. An endpoint that runs adds its row, so that
// a batch has a row to pause it with.
//
// # Failures
//
// Pause, Resume and SetConcurrency return pgx.ErrNoRows when no endpoint has the name.
package settings
