package eddaui_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/demo/world"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Orders is a saga of the program.
var Orders = world.Orders

// session returns the user of a request, as the program knows its sessions.
func session(r *http.Request) (string, error) {
	if name := r.Header.Get("X-Session"); name != "" {
		return name, nil
	}
	return "", errors.New("there is no session")
}

func embed(pool *pgxpool.Pool, mux *http.ServeMux, server *http.Server) error {
	// page embed
	ui, err := eddaui.New(pool, eddaui.Options{
		Sagas: []*saga.Definition{Orders},
		Authorize: func(r *http.Request) (eddaui.Actor, error) {
			user, err := session(r)
			if err != nil {
				return eddaui.Actor{}, err // 403, and the reason is in the log
			}
			return eddaui.Actor{Name: user, From: r.RemoteAddr, May: eddaui.Look | eddaui.Bodies}, nil
		},
	})
	if err != nil {
		return err
	}
	mux.Handle("/edda/", http.StripPrefix("/edda", ui))
	server.RegisterOnShutdown(ui.Close) // Shutdown waits for streams
	// end
	return nil
}

// What the page of the guide shows does what it says.
func TestPageOfTheGuide(t *testing.T) {
	t.Parallel()
	pool, _ := newSchema(t)
	mux, server := http.NewServeMux(), &http.Server{}
	if err := embed(pool, mux, server); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Shutdown(t.Context()) })
	ask := func(session string) int {
		r := httptest.NewRequest(http.MethodGet, "/edda/find", nil)
		r.Header.Set("X-Session", session)
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, r)
		return answer.Code
	}
	// the schema of the page is in no test's database
	if with, without := ask("ann"), ask(""); with == http.StatusForbidden || without != http.StatusForbidden {
		t.Errorf("with a session it is %d, without one %d", with, without)
	}
}
