// Package remote is the chaos scenario remote: the runs of manifests are done by programs without the database, and
// both sides are killed with SIGKILL while runs are triggered. The parent triggers each run, with a number as its
// input. Two processes here have the database: they run the scheduler and the endpoint that submits, and take reports.
// Two processes there do the work: they beat, fail one attempt in twenty, and report.
//
// The package has the way over HTTP, on sockets of the file system. internal/test/chaos/border has the way over
// JetStream, in a module of its own.
//
// # What it finds
//
//   - twice: a run, or an attempt of one, that ended more than once, by triggers on the tables of runs.
//   - forgotten: a run that was triggered, and is open at the end, is not there, or whose work was not done.
//   - wrongkey: work that was done under another key than the id of its run, or with the input of another run.
//   - unsaid: an attempt that succeeded or failed, though no process there was about to report that.
//   - unexplained: an attempt that was lost though no process that had it, or its report, was killed shortly before,
//     and the broker was not struck. One that did not come there in time needs no explanation.
//   - dropped: a report that was dropped here, though its attempt was not over.
//   - strange: a run that ended without success, one that nobody triggered, an attempt without an end, a last attempt
//     without success, a success that was not written down, a dead letter.
//   - idle: nothing was killed, struck or lost, so nothing was shown.
//
// Work may be done several times, always under one key: that is counted, and is no violation.
//
// # Failures
//
// A worker that ends by itself ends the scenario. Runs that do not end within minutes are forgotten.
package remote
