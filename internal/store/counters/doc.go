// Package counters owns the table that counts the work of sagas, by the hour.
//
// # Promise
//
// Store.Add adds the numbers of one endpoint to the current hour, Store.Read adds them up over a period, and
// Store.Prune deletes old hours. Pages show the numbers, and nothing else depends on them.
//
// # Failures
//
// If a process crashes, the numbers that it had not added are lost. An Add that failed must not be repeated: it could
// count twice.
package counters
