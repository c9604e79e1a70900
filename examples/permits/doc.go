// Command permits replays an event log through sagas: each row of the log is published at its moment, each case is a
// saga instance with a timer for its deadline. At the end the database is compared with the file.
//
//	go run ./examples/permits -log FILE
//	go run ./examples/permits -verify -log FILE
//
// # Promise
//
// It exits with 0 only if each event of the file has exactly one effect, each case has one living instance whose last
// activity is the last one by event time, the timer of each case fired once and not early, and no message was given up.
//
// # States of a run
//
// A run is prepared (tables and queues are there), begun (its clock goes), and over when all queues are empty. In a
// database that DATABASE_URL names its tables stay, and -verify checks them again. When the program is killed, the same
// command goes on with the run: an event is published under an id that is made of its case and its line. Several
// processes may run the same command at once, and share the work.
//
// # Failures
//
// A database that cannot be reached ends the program with an error. Everything that is not as the file says is a
// difference, which is printed.
//
// case.go is the saga and its handlers. log.go reads the file, replay.go is the run, check.go with check.sql compares.
package main
