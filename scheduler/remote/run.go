package remote

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/edda-go/edda/saga"
)

// ErrOver says that an attempt is over: it was cancelled, timed out, or lost and sent again, or there is no such run.
// The work that is done for it does not count any more.
var ErrOver = errors.New("the run has ended, or has a newer attempt")

// Run names an attempt of a run.
type Run struct {
	ID       saga.ID
	Attempt  int       // 1 for the first
	Manifest string    // which emitted it
	Due      time.Time // of the run, in the zone of the manifest
	Token    string    // of the attempt: a report without it is refused
}

// names are the names under which a submission has its run.
type names struct {
	kind                              string // of the names, in errors
	id, attempt, manifest, due, token string
}

var errNone = errors.New("it is not a submission of a run")

// read reads the run of a submission. An error says which name is missing or wrong.
func (n names) read(get func(name string) string) (Run, error) {
	wrong := func(name, want string) (Run, error) {
		return Run{}, fmt.Errorf("read a run: %w: %s %s: want %s", errNone, n.kind, name, want)
	}
	id, err := saga.ParseID(get(n.id))
	if err != nil || id.IsZero() {
		return wrong(n.id, "a UUID that is not zero")
	}
	attempt, ok := parseAttempt(get(n.attempt))
	if !ok {
		return wrong(n.attempt, "a number from 1 to 2147483647")
	}
	manifest := get(n.manifest)
	if manifest == "" {
		return wrong(n.manifest, "the name of a manifest")
	}
	due, err := time.Parse(time.RFC3339Nano, get(n.due))
	if err != nil {
		return wrong(n.due, "a time as in RFC 3339")
	}
	return Run{ID: id, Attempt: attempt, Manifest: manifest, Due: due, Token: get(n.token)}, nil
}

// write writes what read reads.
func (n names) write(set func(name, value string), f *saga.Firing, token string) {
	set(n.id, f.Run.String())
	set(n.attempt, strconv.Itoa(f.Attempt))
	set(n.manifest, f.Manifest)
	set(n.due, f.Due.Format(time.RFC3339Nano))
	if token != "" {
		set(n.token, token)
	}
}

// parseAttempt reads the number of an attempt. ok is false for a text that is none.
func parseAttempt(text string) (attempt int, ok bool) {
	attempt, err := strconv.Atoi(text)
	return attempt, err == nil && isAttempt(attempt)
}

// isAttempt reports whether an attempt may have the number.
func isAttempt(n int) bool { return n >= 1 && n <= math.MaxInt32 }

// headerKey is the header with the id of the run, under which its work is known.
const headerKey = "Idempotency-Key"

// headers are those of a submission.
var headers = names{kind: "header", id: "Edda-Run", attempt: "Edda-Run-Attempt", manifest: "Edda-Manifest",
	due: "Edda-Due", token: "Edda-Run-Token"}

// RunOf reads the run of a request that Submit has made. An error names the header that is missing or wrong.
func RunOf(r *http.Request) (Run, error) { return headers.read(r.Header.Get) }
