package eddaui_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/test/pgtest"
)

// Hidden parts of the example: the pgxpool.Pool of a program, with the tables of Edda.
var check, openPool = pgtest.Must, pgtest.Example

// The pages are a handler. Authorize returns the actor of a request with its rights.
func ExampleNew() {
	_, pool, end := openPool()
	defer end()
	ui, err := eddaui.New(pool, eddaui.Options{Authorize: func(r *http.Request) (eddaui.Actor, error) {
		name, _, _ := r.BasicAuth() // checked by a handler around this one
		return eddaui.Actor{Name: name, Permissions: eddaui.View | eddaui.Retry | eddaui.Pause}, nil
	}})
	check(err)
	defer ui.Close()
	mux := http.NewServeMux()
	mux.Handle("/edda/", http.StripPrefix("/edda", ui))

	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/edda/find", nil))
	fmt.Println(answer.Code)
	// Output: 200
}
