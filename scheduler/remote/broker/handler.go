package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/internal/option"
	"github.com/edda-go/edda/internal/report"
	"github.com/edda-go/edda/scheduler"
)

// HandlerOptions of a handler. Every zero is a default.
type HandlerOptions struct {
	Logger *slog.Logger // nil is slog.Default(). A report that is none is logged at Warn, and dropped
}

// NewHandler makes a handler of the reports on runs that Submit has submitted, for a Router of Watermill or, by
// watermill.Consume, for an endpoint. It writes them with reports. The payload of a report is an object:
//
//	{"run": "019a…", "attempt": 1, "outcome": "succeeded"}
//
// The outcome is "beat", "succeeded", "failed" or "dead", and the last two have an "error". Client makes such reports.
//
// It returns nil when the report is committed, when the attempt is over or there is no such run, and for a payload that
// is no report. It returns an error when the database is away: the broker has to bring the report again then.
func NewHandler(reports *scheduler.Reports, o HandlerOptions) message.NoPublishHandlerFunc {
	option.Default(&o.Logger, slog.Default())
	return func(m *message.Message) error {
		said, err := readReport(m.Payload)
		if err != nil {
			o.Logger.Warn("edda: a message is no report on a run, and is dropped", "message_uuid", m.UUID, "error", err)
			return nil
		}
		err = write(m.Context(), reports, said)
		if errors.Is(err, scheduler.ErrNoRun) || errors.Is(err, scheduler.ErrNotCurrent) {
			return nil
		}
		return err
	}
}

func write(ctx context.Context, reports *scheduler.Reports, said reported) error {
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
	d := json.NewDecoder(bytes.NewReader(payload))
	d.DisallowUnknownFields()
	if err := d.Decode(&said); err != nil {
		return said, fmt.Errorf("want an object with run, attempt and outcome: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return said, errors.New("more than one value")
	}
	_, known := said.Failure()
	switch {
	case said.Run.IsZero() || said.Attempt < 1 || said.Attempt > math.MaxInt32:
		return said, errors.New("want a run, and an attempt from 1")
	case !known && (said.Outcome != beat || said.Error != ""):
		return said, errors.New(`want the outcome "beat" or "succeeded", or "failed" or "dead" with an "error"`)
	}
	return said, nil
}
