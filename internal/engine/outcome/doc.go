// Package outcome carries out the fates of the messages of one transaction, for all engines.
//
// [Effects] writes them in the transaction: sends, retries, dead letters, discards, removals, ends of runs, and with a
// [Historian] the history. After the COMMIT it wakes workers, writes the log and emits events, and [Counts] and
// [Report] add the fates up. Nothing that follows the COMMIT can fail.
//
// A failure of the database leaves every message as it was: the messages change only in the last statements of the
// transaction, and an engine that rolls back starts again with the same rows.
package outcome
