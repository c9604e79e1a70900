// Package counters owns the table of what sagas did, by the hour.
//
// # Promise
//
// Store.Add adds the numbers of one endpoint to the present hour, Store.Read adds them up over a period, and
// Store.Prune deletes old hours. Pages show the numbers, and nothing else depends on them.
//
// # Failures
//
// What a process had not added when it crashed is lost. An Add that failed is not to be repeated: it could count twice.
package counters
