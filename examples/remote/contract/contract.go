package contract

// MakeReport asks for the report on a region.
type MakeReport struct{ Region string }

// Kind is the name of the message.
func (MakeReport) Kind() string { return "report.make" }

// The topics. Both are subjects of one stream.
const (
	Stream  = "reports"
	Runs    = "reports.make" // submissions, for workers
	Reports = "reports.ends" // beats and ends, for the shop
)
