package remote

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/edda-go/edda/saga"
)

// The headers of a submission.
const (
	headerRun      = "Edda-Run"
	headerAttempt  = "Edda-Run-Attempt"
	headerManifest = "Edda-Manifest"
	headerDue      = "Edda-Due"
	headerKey      = "Idempotency-Key"
)

// Run names an attempt of a run.
type Run struct {
	ID       saga.ID
	Attempt  int       // 1 for the first
	Manifest string    // which emitted it
	Due      time.Time // of the run, in the zone of the manifest
}

var errNoRun = errors.New("it is no submission of a run")

// RunOf reads the run of a request that Submit has made. An error names the header that is missing or wrong.
func RunOf(r *http.Request) (Run, error) {
	id, err := saga.ParseID(r.Header.Get(headerRun))
	if err != nil {
		return Run{}, fmt.Errorf("%w: header %s: want a UUID", errNoRun, headerRun)
	}
	attempt, err := strconv.Atoi(r.Header.Get(headerAttempt))
	if err != nil || attempt < 1 {
		return Run{}, fmt.Errorf("%w: header %s: want a number from 1", errNoRun, headerAttempt)
	}
	due, err := time.Parse(time.RFC3339Nano, r.Header.Get(headerDue))
	if err != nil {
		return Run{}, fmt.Errorf("%w: header %s: want a time as in RFC 3339", errNoRun, headerDue)
	}
	return Run{ID: id, Attempt: attempt, Manifest: r.Header.Get(headerManifest), Due: due}, nil
}

// write writes what RunOf reads.
func write(h http.Header, f *saga.Fire) {
	h.Set(headerRun, f.Run.String())
	h.Set(headerKey, f.Run.String())
	h.Set(headerAttempt, strconv.Itoa(f.Attempt))
	h.Set(headerManifest, f.Manifest)
	h.Set(headerDue, f.Due.Format(time.RFC3339Nano))
}
