package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"github.com/edda-go/edda/internal/engine/hooks"
	"log/slog"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/internal/base/report"
	"github.com/edda-go/edda/scheduler"
)

// HandlerOptions of a handler. Every zero is a default.
type HandlerOptions struct {
	// nil is slog.Default(). A report that is none, that names no run of this database, or that has not the token of
	// its attempt, is logged at Warn, and one on an attempt that is over at Debug. Each of them is dropped
	Logger *slog.Logger
}

// NewHandler makes a handler of the reports on runs that Submit has submitted, for a Router of Watermill or, by
// watermill.Consume, for an endpoint. It writes them with reports. The payload of a report is an object:
//
//	{"run": "019a…", "attempt": 1, "token": "x1…", "outcome": "succeeded"}
//
// The token is that of the submission. The outcome is "beat", "succeeded", "failed" or "dead", and the last two have an
// "error". Client makes such reports. Other names are ignored, so that a program of another version may say more.
//
// It returns nil when the report is committed, when the attempt is over or there is no such run, and for a payload that
// is no report or has not the token. It returns an error when the database is away: the broker has to bring the report
// again then. NewHandler panics if reports is nil.
func NewHandler(reports *scheduler.Reports, o HandlerOptions) message.NoPublishHandlerFunc {
	if reports == nil {
		panic("broker.NewHandler: the reports are nil: make them with scheduler.NewReports")
	}
	o.Logger = hooks.Logger(o.Logger)
	return func(m *message.Message) error {
		said, err := readReport(m.Payload)
		if err != nil {
			o.Logger.Warn("edda: a message is no report on a run, and is dropped", "message_uuid", m.UUID, "error", err)
			return nil
		}
		about := []any{"run", said.Run, "attempt", said.Attempt, "outcome", said.Outcome}
		err = write(m.Context(), reports, said)
		switch {
		case err == nil && said.Error != "":
			o.Logger.Warn("edda: a run failed in another program", append(about, "error", said.Error)...)
		case errors.Is(err, scheduler.ErrNoRun):
			o.Logger.Warn("edda: a report is on a run that is not there, and is dropped", about...)
			return nil
		case errors.Is(err, scheduler.ErrNotCurrent):
			o.Logger.Debug("edda: a report is on an attempt that is over, and is dropped", about...)
			return nil
		case errors.Is(err, report.ErrNoToken):
			o.Logger.Warn("edda: a report without the token of its attempt was refused", about...)
			return nil
		}
		return err
	}
}

func write(ctx context.Context, reports *scheduler.Reports, said reported) error {
	ctx = report.WithToken(ctx, said.Token)
	if said.Outcome == beat {
		return reports.Beat(ctx, said.Run, said.Attempt)
	}
	failure, _ := said.Failure() // readReport has looked
	return reports.End(ctx, said.Run, said.Attempt, failure)
}

// readReport returns an error for a payload that no Client writes.
func readReport(payload []byte) (said reported, err error) {
	if len(payload) > report.Most {
		return said, fmt.Errorf("it has %d bytes: want at most %d", len(payload), report.Most)
	}
	if err := report.Lenient(bytes.NewReader(payload), &said); err != nil {
		return said, fmt.Errorf("want an object with run, attempt and outcome: %w", err)
	}
	_, known := said.Failure()
	switch {
	case said.Run.IsZero() || !report.IsAttempt(said.Attempt):
		return said, errors.New("want a run, and an attempt from 1")
	case !known && (said.Outcome != beat || said.Error != ""):
		return said, errors.New(`want the outcome "beat" or "succeeded", or "failed" or "dead" with an "error"`)
	}
	return said, nil
}
