package batch

import "github.com/edda-go/edda/internal/engine/delivery"

// Report is how a transaction ended.
type Report struct {
	Taken    int   // messages
	Handled  int   // of them, that met their fate
	Consumed int   // of these, that were handled
	Done     int   // of these, that were handled or are not wanted
	Busy     int   // that were left, since others have their instances
	Failures int   // attempts that failed, except conflicts
	Failure  error // the last of them
}

// ReportOf returns how the transaction of e ended; err is why it was rolled back.
func ReportOf(e *delivery.Effects, err error) Report {
	r := Report{Taken: len(e.In.Messages), Failures: e.In.Failures, Failure: e.In.Failure}
	for _, m := range e.In.Messages {
		switch {
		case err != nil:
		case m.Fate != delivery.FateLeft:
			r.Handled++
			if m.Fate == delivery.FateDone {
				r.Consumed++
			}
			if m.Fate == delivery.FateDone || m.Fate == delivery.FateDropped && m.Err == nil {
				r.Done++
			}
		case m.Instance != nil && (m.Instance.Status == delivery.BusyHere || m.Instance.Status == delivery.BusyThere):
			r.Busy++
		}
	}
	return r
}
