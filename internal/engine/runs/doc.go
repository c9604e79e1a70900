// Package runs tells the scheduler's runs what became of the messages that its manifests emitted.
//
// Such a message names its run and the attempt of the run (saga.Info.Fire). The transaction that consumes the message
// also ends the run. It does so with the SQL functions run_check, run_end, run_beat and run_rest, whose contract is in
// the migration 00010_scheduler.sql: this package names none of the scheduler's tables.
//
// A transaction first checks the runs of its messages, which locks those that are current until it ends. A message
// whose run was cancelled, timed out or sent again meanwhile is discarded without a call of its handler.
package runs
