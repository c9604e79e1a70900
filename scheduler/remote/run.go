package remote

import (
	"fmt"
	"net/http"
	"time"

	"github.com/edda-go/edda/internal/base/report"
	"github.com/edda-go/edda/saga"
)

// headerKey is the header with the id of the run, under which its work is known.
const headerKey = "Idempotency-Key"

// headers are those of a submission.
var headers = report.Names{Kind: "header", ID: "Edda-Run", Attempt: "Edda-Run-Attempt", Manifest: "Edda-Manifest",
	Due: "Edda-Due", Token: "Edda-Run-Token"}

// Run names an attempt of a run.
type Run struct {
	ID       saga.ID
	Attempt  int       // 1 for the first
	Manifest string    // which emitted it
	Due      time.Time // of the run, in the zone of the manifest
	Token    string    // of the attempt: a report without it is refused
}

// RunOf reads the run of a request that Submit has made. An error names the header that is missing or wrong.
func RunOf(r *http.Request) (Run, error) {
	run, err := headers.Read(r.Header.Get)
	if err != nil {
		return Run{}, fmt.Errorf("read a run: %w", err)
	}
	return Run(run), nil
}

// write writes what RunOf reads.
func write(h http.Header, f *saga.Fire, token string) {
	h.Set(headerKey, f.Run.String())
	headers.Write(h.Set, f, token)
}
