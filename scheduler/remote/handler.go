package remote

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

// HandlerOptions of a handler of reports. Every zero is a default.
type HandlerOptions struct {
	// nil is slog.Default(). A report is logged at Warn if it could not be written, or has not the token of its
	// attempt. So is a message that is no report, or names no run of this database; one on an attempt that is over is
	// logged at Debug
	Logger *slog.Logger
}

// NewHandler makes a handler of the reports on runs that Submit has submitted. It writes them with reports:
//
//	POST /runs/{run}/{attempt}/beat
//	POST /runs/{run}/{attempt}/end   {"outcome": "succeeded"}, or "failed" or "dead" with an "error"
//
// It answers 204 when that is committed; 400 for a request that is not understood, and 413 for one of more than 64 KiB;
// 409 if the attempt is over, and 410 if there is no such run; 422 without the token of the attempt in the header
// Edda-Run-Token, as it came with the submission; 503 if the database is away, after which the request may be made
// again. It checks no other identity: put it behind what guards your other routes. NewHandler panics if reports is nil.
func NewHandler(reports *scheduler.Reports, o HandlerOptions) http.Handler {
	if reports == nil {
		panic("remote.NewHandler: the reports are nil: make them with scheduler.NewReports")
	}
	o.Logger = handlers.Logger(o.Logger)
	h := handler{reports, o.Logger}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /runs/{run}/{attempt}/beat", h.beat)
	mux.HandleFunc("POST /runs/{run}/{attempt}/end", h.end)
	return mux
}

type handler struct {
	reports *scheduler.Reports
	log     *slog.Logger
}

func (h handler) beat(w http.ResponseWriter, r *http.Request) {
	h.answer(w, r, h.reports.Beat)
}

func (h handler) end(w http.ResponseWriter, r *http.Request) {
	code, failure := readRequest(w, r)
	if code != 0 {
		http.Error(w, "want {\"outcome\": \"succeeded\"}, or \"failed\" or \"dead\" with an \"error\"", code)
		return
	}
	h.answer(w, r, func(ctx context.Context, run saga.ID, attempt int) error {
		err := h.reports.End(ctx, run, attempt, failure)
		if err == nil && failure != nil {
			h.log.Warn("edda: a run failed in a remote program", "run", run, "attempt", attempt, "error", failure)
		}
		return err
	})
}

// readRequest returns how the attempt failed, nil if it succeeded. code is the answer to a report that is none, else 0.
func readRequest(w http.ResponseWriter, r *http.Request) (code int, failure error) {
	var body report
	err := strict(http.MaxBytesReader(w, r.Body, mostReport), &body)
	if long := (*http.MaxBytesError)(nil); errors.As(err, &long) {
		return http.StatusRequestEntityTooLarge, nil
	}
	failure, ok := body.failure()
	if err == nil && ok {
		return 0, failure
	}
	return http.StatusBadRequest, nil
}

func (h handler) answer(w http.ResponseWriter, r *http.Request,
	do func(ctx context.Context, run saga.ID, attempt int) error) {
	run, err := saga.ParseID(r.PathValue("run"))
	attempt, ok := parseAttempt(r.PathValue("attempt"))
	if err != nil || !ok {
		http.Error(w, "want /runs/{run}/{attempt}/…: a UUID and a number from 1", http.StatusBadRequest)
		return
	}
	err = do(wire.WithToken(r.Context(), r.Header.Get(headers.token)), run, attempt)
	switch {
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
	case errors.Is(err, scheduler.ErrNoRun):
		http.Error(w, scheduler.ErrNoRun.Error(), http.StatusGone) // a 404 is that of another address
	case errors.Is(err, scheduler.ErrNotCurrent):
		http.Error(w, scheduler.ErrNotCurrent.Error(), http.StatusConflict)
	case errors.Is(err, wire.ErrNoToken):
		h.log.Warn("edda: a report without the token of its attempt was refused", "run", run, "attempt", attempt)
		http.Error(w, wire.ErrNoToken.Error(), http.StatusUnprocessableEntity)
	default:
		h.log.Warn("edda: a report on a run was not written", "run", run, "attempt", attempt, "error", err)
		http.Error(w, "the report was not written: try again", http.StatusServiceUnavailable)
	}
}
