package outcome

import "github.com/edda-go/edda/internal/engine/message"

// Report counts how the messages of a transaction ended.
type Report struct {
	Taken    int   // messages that were taken
	Handled  int   // messages of Taken that were decided
	Consumed int   // messages of Handled that a handler handled
	Done     int   // messages of Handled that were handled or are not wanted
	Busy     int   // messages that were left because other workers have their instances
	Failures int   // attempts that failed, except conflicts
	Failure  error // the error of the last of them
}

// ReportOf returns the report on the transaction of e; err is why it was rolled back, or nil.
func ReportOf(e *Effects, err error) Report {
	r := Report{Taken: len(e.In.Messages), Failures: e.In.Failures, Failure: e.In.Failure}
	for _, m := range e.In.Messages {
		switch {
		case err != nil:
		case m.Fate != message.FateLeft:
			r.Handled++
			if m.Fate == message.FateDone {
				r.Consumed++
			}
			if m.Fate == message.FateDone || m.Fate == message.FateDropped && m.Err == nil {
				r.Done++
			}
		case m.Instance != nil && (m.Instance.BusyHere() || m.Instance.BusyThere()):
			r.Busy++
		}
	}
	return r
}
