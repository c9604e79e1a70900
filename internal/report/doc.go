// Package report is what reports on runs have in common, whatever brings them: the words for an outcome, and the
// patience of the program that reports.
//
// # Promise
//
// Failure reads what Of has written: success, a failure, or a failure that is never tried again. Insist returns nil
// only after a report was taken.
//
// # States and failures
//
// A Report has none: it is a value. One whose words contradict each other is refused by Failure.
package report
