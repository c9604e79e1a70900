//go:build bouncer

package bouncer_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/edda-go/edda/eddaui"
)

// PgBouncer refuses the settings that the pages ask for. They are there all the same.
func TestPagesAreThereBehindABouncer(t *testing.T) {
	w := newWorld(t)
	ui, err := eddaui.New(w.pool, eddaui.Options{Schema: w.schema, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ui.Close)
	for _, path := range []string{"/", "/dead", "/manifests", "/sagas", "/limits"} {
		answer := httptest.NewRecorder()
		ui.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		if answer.Code != http.StatusOK {
			t.Errorf("%s is %d: %s", path, answer.Code, answer.Body)
		}
	}
}
