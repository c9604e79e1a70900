// Package runs reports the fates of messages that manifests emitted to the scheduler's runs.
//
// Such a message names its run and the attempt of the run (saga.Info.Firing). The transaction that consumes the message
// also ends the run. It does so with the SQL functions run_check, run_end, run_beat and run_rest, whose contract is
// in the migration 00010_scheduler.sql: this package's SQL names no table of the scheduler.
//
// A transaction first checks the runs of its messages, and locks the current ones until it ends. A message whose run
// was cancelled, timed out or sent again in the meantime is discarded without a call of its handler.
package runs
