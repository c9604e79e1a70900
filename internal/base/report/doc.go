// Package report is what reports on runs have in common, whatever brings them: the run that a submission names, the
// words for an outcome, the reading of a report, and the patience of the program that reports.
//
// # Promise
//
// Names.Read reads what Names.Write has written, and refuses what names no attempt of a run. Failure reads what Of has
// written: success, a failure, or a failure that is never tried again. Insist returns nil only after a report was
// taken.
//
// # States and failures
//
// A Report has none: it is a value. Failure refuses one whose words contradict each other. Of a name that occurs twice
// in a report the last one counts, as in package encoding/json.
package report
