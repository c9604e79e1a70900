// Command permits replays an event log through sagas, kills workers while they work, and counts what came of it.
//
//	go run ./examples/permits -log FILE -workers 3 -kill 20
//	go run ./examples/permits -verify -log FILE
//
// # Promise
//
// It exits with 0 only if each event of the file has exactly one effect, each case has one living instance whose last
// activity is the last one by event time, the timer of each case fired once and not early, no message was given up,
// and as many kills as were asked for struck a worker whose transaction was open and was then rolled back. The truth is
// the file; what came of it is read from the database; neither is asked of the engine.
//
// # What runs
//
// The program starts itself as worker processes. Each runs two endpoints: "cases" with one saga, of which every case of
// the log is an instance, and "records" with handlers that write into tables of our own. The parent publishes each row
// of the log at its moment, kills workers, replaces them, and tells of the progress.
//
// # States of a run
//
// A run is prepared (tables and queues are there), begun (its clock goes), and over when all queues are empty. Its
// tables are then checked and removed, unless -keep was given or something was wrong. When the parent dies, the workers
// end, and the same command with the same DATABASE_URL goes on with the run: what was published is known by its id.
//
// # Failures
//
// A worker that ends by itself, or a database that cannot be reached, ends the run with an error. Everything that is
// not as the file says is a difference, which is printed.
//
// # Reading order
//
// case.go (the saga), recorder.go, worker.go; log.go and pace.go (the file and its time); replay.go with feed.go,
// kill.go and internal/procs (the parent); check.go with check.sql (how it is judged); main.go (flags).
package main
