package eddaui

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/saga"
)

// ServeHTTP serves a page, its JSON, its stream, or a file of the pages. A panic of a function of the program is
// logged, and answered with 500.
func (u *UI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() { //nolint:contextcheck // the request has the context
		v := recover()
		if err, ok := v.(error); v == nil || ok && errors.Is(err, http.ErrAbortHandler) {
			if v != nil {
				panic(v) // net/http breaks the connection
			}
			return
		}
		u.log.ErrorContext(r.Context(), "edda: ui: a request panicked", "path", r.URL.Path,
			"panic", fmt.Sprintf("%T", v), "stack", string(debug.Stack())) // the value may have a body
		u.complain(w, r, http.StatusInternalServerError, "This page failed. The log of the program has the details.")
	}()
	u.handler.ServeHTTP(w, r)
}

type redact = func(kind string, body json.RawMessage) json.RawMessage

// notShown replaces a text if Redact has failed.
var notShown = json.RawMessage(`"not shown: Options.Redact failed, and the log of the program has the details"`)

// redacting wraps Redact, so that its panic does not end loops and jobs.
func redacting(f redact, log *slog.Logger) redact {
	if f == nil {
		return nil
	}
	guest, faults := &handlers.Guest{}, &handlers.Faults{}
	return func(kind string, body json.RawMessage) json.RawMessage {
		shown, err := handlers.Ask(guest, handlers.Patience, func() json.RawMessage { return f(kind, body) })
		if err == nil {
			return shown
		}
		var panicked *saga.PanicError
		if errors.As(err, &panicked) {
			// the value may have a body
			err = &saga.PanicError{Value: fmt.Sprintf("%T", panicked.Value), Stack: panicked.Stack}
		}
		faults.Log(err, log, "edda: ui: Options.Redact failed", "kind", kind)
		return notShown
	}
}
