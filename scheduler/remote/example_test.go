package remote_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/scheduler"
	"github.com/edda-go/edda/scheduler/remote"
)

// What the example does not show: the pgxpool.Pool of a program, with the tables of Edda.
var check, openPool = pgtest.Must, pgtest.Example

// The program with the database takes reports on runs that it has submitted. Put the handler behind what guards your
// other routes.
func ExampleNewHandler() {
	_, pool, end := openPool()
	defer end()
	reports, err := scheduler.NewReports(pool, "")
	check(err)
	mux := http.NewServeMux()
	mux.Handle("/edda/", http.StripPrefix("/edda", remote.NewHandler(reports, remote.HandlerOptions{})))

	// A remote.Client in the other program asks this.
	ask := httptest.NewRequest(http.MethodPost, "/edda/runs/01890a5d-ac96-774b-bcce-b302099a8057/1/end",
		bytes.NewBufferString(`{"outcome": "succeeded"}`))
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, ask)
	fmt.Println(answer.Code == http.StatusGone) // there is no such run
	// Output: true
}
