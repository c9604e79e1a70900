// Command replay is the program that the scenario permits kills: it replays an event log through sagas. Each row of the
// log is published at its moment, and each case is a saga instance with a timer for its deadline. At the end the
// database is compared with the file.
//
//	DATABASE_URL=… replay -log FILE -for 10s
//	DATABASE_URL=… replay -log FILE -verify
//
// # Promise
//
// It exits with 0 only if each event of the file has exactly one effect, each case has one living instance whose last
// activity is the last one by event time, the timer of each case fired once and not early, and no message was given up.
//
// # States of a run
//
// A run is prepared (tables and queues are there), begun (its clock runs), and over when all queues are empty. When the
// program is killed, the same command continues the run: an event is published under an id that is made of its case and
// its line. Several processes may run the same command at once, and share the work.
//
// case.go is the saga and its handlers. replay.go is the run, check.go with check.sql compares.
package main
