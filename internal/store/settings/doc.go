// Package settings owns the table of the settings that operators change while endpoints run: a pause, and a number of
// workers.
//
// # Promise
//
// An endpoint's setting is one row. It applies to every process of the endpoint, including later ones, until it is
// changed. Every statement finds its row by the primary key and locks it no longer than the statement takes, or the
// write of a batch.
//
// A Follower caches the setting in one process: it reads the row at each poll, and when Look is called.
//
// # States
//
// No row: the endpoint has never run, and the numbers of its program apply. An endpoint that runs adds its row, so
// that a batch has a row to pause it with.
//
// # Failures
//
// Pause, Resume and SetConcurrency return pgx.ErrNoRows if no endpoint has the name.
package settings
